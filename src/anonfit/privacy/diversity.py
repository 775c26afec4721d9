# SPDX-License-Identifier: Apache-2.0
"""Diversity: a group has several values of the sensitive column, none of them too frequent (l-diversity), or known
numbers far enough apart.

l-diversity: Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam: l-Diversity: Privacy Beyond k-Anonymity, TKDD 1(1),
2007. Squared-error diversity: LeFevre, DeWitt, Ramakrishnan: Workload-Aware Anonymization, KDD 2006; variance
diversity: the same authors, TODS 33(3), 2008.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import counted
from anonfit.privacy.models import (
    NUMBERS,
    TIE,
    DiversityModel,
    Kind,
    Parameter,
    SensitiveColumn,
    at_most,
    more_than,
    plain,
)


@dataclass(frozen=True, slots=True)
class DistinctL(DiversityModel):
    """At least l different values in every group."""

    name = "distinct-l"
    words = "every group has at least l different values"
    attacker = "Someone who finds a person's group still sees at least l different values in it."
    sentence = "every group has at least {} different values"
    parameters = (Parameter("l", "different values in every group", Kind.WHOLE, lowest=1, empty="lowest"),)
    kernel = 0
    column: SensitiveColumn
    l: int  # noqa: E741 - the parameter's name in the field

    def limits(self) -> tuple[int, float]:
        """l."""
        return self.l, self.l

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The number of different values."""
        return _distinct(counts).astype(np.float64)

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """The table has too few values."""
        distinct = int(_distinct(counts))
        among = ", missing among them," if self.column.has_missing else ""
        return (
            f"{self.column.name} has {counted(distinct, 'distinct value')}{among} over the whole table, so l cannot "
            f"exceed {distinct}; distinct-l asks for l = {self.l}."
        )


@dataclass(frozen=True, slots=True)
class EntropyL(DiversityModel):
    """The entropy of the values in every group is at least that of l equally frequent ones."""

    name = "entropy-l"
    words = "the entropy of every group is at least that of l equally frequent values"
    attacker = (
        "Someone who finds a person's group sees values as mixed as l equally frequent ones, so a guess stays a guess."
    )
    sentence = "every group is at least as mixed as {} equally frequent values"
    parameters = (Parameter("l", "equally frequent values of the same entropy", lowest=1, empty="lowest"),)
    kernel = 1
    column: SensitiveColumn
    l: float  # noqa: E741 - the parameter's name in the field

    def limits(self) -> tuple[int, float]:
        """The entropy."""
        return 0, math.log(self.l) - TIE

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the entropy is at least ln l."""
        return entropy(counts) >= math.log(self.l) - TIE

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """How many equally frequent values would have the same entropy."""
        return np.exp(entropy(counts))

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """The table's own entropy is too low, and that of some group is never higher."""
        nats = float(entropy(counts))
        return (
            f"{self.column.name} has entropy {plain(round(nats / math.log(2), 3))} bits over the whole table, so l "
            f"cannot exceed {at_most(math.exp(nats + TIE))}; entropy-l asks for l = {plain(self.l)}."
        )


@dataclass(frozen=True, slots=True)
class RecursiveCL(DiversityModel):
    """The most frequent value has fewer than c times the persons of all values from the l-th most frequent on."""

    name = "recursive-cl"
    words = "the most frequent value has fewer than c times the persons of the l-th most frequent and all rarer ones"
    attacker = "Someone who can rule out some values of a group still cannot be sure of the most frequent one."
    sentence = (
        "in every group the most frequent value has at most {} times the persons of all values from frequency rank {l} "
        "on"
    )
    bound = "less than"
    parameters = (
        Parameter("c", "how many times the rest the most frequent value may be", above_lowest=True),
        Parameter("l", "the rest begins with the l-th most frequent value", Kind.WHOLE, lowest=1, empty="lowest"),
    )
    kernel = 2
    column: SensitiveColumn
    c: float
    l: int  # noqa: E741 - the parameter's name in the field

    def limits(self) -> tuple[int, float]:
        """l and c."""
        return self.l, self.c

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the most frequent value stays below c times the rest; without l values the rest is nobody."""
        allowed: NDArray[np.bool_] = counts.max(axis=-1) < self.c * _rest(counts, self.l)
        return allowed

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The most frequent value's persons for each person of the rest: c must be above it."""
        rest = _rest(counts, self.l)
        ratio = counts.max(axis=-1) / np.maximum(rest, 1)
        return np.where(rest > 0, ratio, np.inf)

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """The table's most frequent value is too frequent, or the table has too few values."""
        distinct = int(_distinct(counts))
        most = int(counts.max())
        possible = [l for l in range(2, distinct + 1) if most < self.c * int(_rest(counts, l))]  # noqa: E741
        ways = []
        if distinct >= self.l:
            ways.append(f"with l = {self.l} c must be at least {more_than(float(self.figure(counts)))}")
        if possible:
            ways.append(f"with c = {plain(self.c)} l cannot exceed {possible[-1]}")
        if not ways:
            least = more_than(most / int(_rest(counts, distinct)))
            ways.append(f"l cannot exceed {distinct}, and with l = {distinct} c must be at least {least}")
        return (
            f"{self.column.name} has {counted(distinct, 'distinct value')}, the most frequent with {most} of "
            f"{int(counts.sum())} persons, over the whole table, so {', or '.join(ways)}; recursive-cl asks for "
            f"c = {plain(self.c)}, l = {self.l}."
        )


def entropy(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The entropy of groups, in nats. counts: (…, size)"""
    persons = counts.sum(axis=-1)
    # A value that nobody has adds 0, as one that a single person has.
    parts = counts * np.log(np.maximum(counts, 1))
    nats: NDArray[np.float64] = np.log(persons) - parts.sum(axis=-1) / persons
    return nats


def _distinct(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    values: NDArray[np.int64] = (counts > 0).sum(axis=-1)
    return values


def _rest(counts: NDArray[np.int64], l: int) -> NDArray[np.int64]:  # noqa: E741
    """The persons of all values from the l-th most frequent on."""
    ascending = np.sort(counts, axis=-1)
    values = counts.shape[-1]
    rest: NDArray[np.int64] = ascending[..., : max(values - l + 1, 0)].sum(axis=-1)
    return rest


@dataclass(frozen=True, slots=True)
class SquaredError(DiversityModel):
    """The squared deviations from the group's mean add up to at least `error`."""

    name = "squared-error"
    words = "the numbers of every group deviate enough from their mean, added up"
    attacker = "Someone who estimates the number from a person's group is wrong by enough, in sum."
    sentence = "in every group the squared deviations from the mean add up to at least {}"
    parameters = (
        Parameter("error", "the smallest sum of squared deviations, in the column's unit squared", empty="lowest"),
    )
    suits = NUMBERS
    kernel = 7
    column: SensitiveColumn
    error: float

    def limits(self) -> tuple[int, float]:
        """The root of the sum."""
        return 0, math.sqrt(self.error)

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the sum is large enough."""
        persons, errors = _errors(self.column, counts)
        slack = np.sqrt(persons) * self.column.rounding
        return errors >= (math.sqrt(self.error) + slack) ** 2 * (1 - TIE)

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The sum of squared deviations of the known values."""
        return _errors(self.column, counts)[1]

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """The table's own sum is too small, and that of a group is never larger."""
        total = float(self.figure(counts))
        return (
            f"{self.column.name} has a sum of squared deviations of {plain(total)} over the whole table, so error "
            f"cannot exceed {at_most(total / (1 - TIE))}; squared-error asks for error = {plain(self.error)}."
        )


@dataclass(frozen=True, slots=True)
class Variance(DiversityModel):
    """The variance of the known values of every group is at least `variance`."""

    name = "variance"
    words = "the numbers of every group deviate enough from their mean, on average"
    attacker = "Someone who estimates the number from a person's group is wrong by enough, on average."
    sentence = "in every group the variance is at least {}"
    parameters = (Parameter("variance", "the smallest variance, in the column's unit squared", empty="lowest"),)
    suits = NUMBERS
    kernel = 8
    column: SensitiveColumn
    variance: float

    def limits(self) -> tuple[int, float]:
        """The variance that numbers in fixed point must have so that those they stand for have what is asked."""
        return 0, (math.sqrt(self.variance) + self.column.rounding) ** 2 * (1 - TIE)

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The variance of the known values; 0 where there are none."""
        persons, errors = _errors(self.column, counts)
        return errors / np.maximum(persons, 1)

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """The table's own variance is too small, and that of some group is never larger."""
        variance = float(self.figure(counts))
        return (
            f"{self.column.name} has variance {plain(variance)} over the whole table, so variance cannot exceed "
            f"{at_most(variance / (1 - TIE))}; variance = {plain(self.variance)} is asked for."
        )


def squared_deviations(
    persons: NDArray[np.int64], sums: NDArray[np.int64], squares: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The squared deviations from the mean of groups of whole numbers, from their number, sum and sum of squares.

    The plain difference squares - sums² / persons loses half its digits in a group far from 0, and sums² needs 128
    bits. So the numbers are first moved by the whole number nearest to their mean, which is exact in 64 bits. What is
    then left to subtract is at most half of what it is subtracted from.

    Args:
        persons: How many numbers a group has; 0 where it has none.
        sums: Their sum.
        squares: The sum of their squares, below 2⁶².

    Returns:
        One figure per group, right to the last few bits.

    Example:
        >>> float(squared_deviations(np.array(4), np.array(4_000_002), np.array(4_000_004_000_002)))
        1.0
    """
    some = np.maximum(persons, 1)
    middle = np.rint(sums / some).astype(np.int64)
    moved_squares = squares - middle * (2 * sums - persons * middle)
    moved_sums = (sums - persons * middle).astype(np.float64)
    return np.maximum(moved_squares - moved_sums * moved_sums / some, 0.0)


def _errors(column: SensitiveColumn, counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The persons of groups whose value is known, and their squared deviations."""
    assert column.numbers is not None
    assert column.scale is not None
    first = int(column.has_missing)
    known, numbers = counts[..., first:], column.numbers[first:]
    persons = known.sum(axis=-1)
    errors = squared_deviations(persons, known @ numbers, known @ (numbers * numbers))
    return persons, errors * column.scale.step**2


DIVERSITY: tuple[type[DiversityModel], ...] = (DistinctL, EntropyL, RecursiveCL, SquaredError, Variance)
"""The models of this module."""
