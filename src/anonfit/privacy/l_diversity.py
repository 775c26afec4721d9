# SPDX-License-Identifier: Apache-2.0
"""l-diversity: a group has several values of the sensitive column, none of them too frequent.

Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam: l-Diversity: Privacy Beyond k-Anonymity, TKDD 1(1), 2007.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anonfit.privacy.bounds import at_most, more_than, plain
from anonfit.privacy.sensitive import TIE, SensitiveColumn

__all__ = ["DistinctL", "EntropyL", "RecursiveCL", "entropy"]


@dataclass(frozen=True, slots=True)
class DistinctL:
    """At least l different values in every group."""

    name: ClassVar[str] = "distinct-l"
    is_monotone: ClassVar[bool] = True
    column: SensitiveColumn
    l: int  # noqa: E741 - the parameter's name in the field

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether there are l values."""
        found: NDArray[np.bool_] = _distinct(counts) >= self.l
        return found

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The number of different values."""
        return _distinct(counts).astype(np.float64)

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """The table has too few values."""
        found = int(_distinct(counts))
        among = ", missing among them," if self.column.has_missing else ""
        return (
            f"{self.column.name} has {found} distinct value(s){among} over the whole table, so l cannot exceed "
            f"{found}; distinct-l asks for l = {self.l}."
        )


@dataclass(frozen=True, slots=True)
class EntropyL:
    """The entropy of the values in every group is at least that of l equally frequent ones."""

    name: ClassVar[str] = "entropy-l"
    is_monotone: ClassVar[bool] = True
    column: SensitiveColumn
    l: float  # noqa: E741 - the parameter's name in the field

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the entropy is at least ln l."""
        found: NDArray[np.bool_] = entropy(counts) >= math.log(self.l) - TIE
        return found

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """How many equally frequent values would have the same entropy."""
        return np.exp(entropy(counts))

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """The table's own entropy is too low, and that of some group is never higher."""
        found = float(entropy(counts))
        return (
            f"{self.column.name} has entropy {plain(round(found / math.log(2), 3))} bits over the whole table, so l "
            f"cannot exceed {at_most(math.exp(found + TIE))}; entropy-l asks for l = {plain(self.l)}."
        )


@dataclass(frozen=True, slots=True)
class RecursiveCL:
    """The most frequent value has fewer than c times the persons of all values from the l-th most frequent on."""

    name: ClassVar[str] = "recursive-cl"
    is_monotone: ClassVar[bool] = True
    column: SensitiveColumn
    c: float
    l: int  # noqa: E741 - the parameter's name in the field

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the most frequent value stays below c times the rest; without l values the rest is nobody."""
        found: NDArray[np.bool_] = counts.max(axis=-1) < self.c * _rest(counts, self.l)
        return found

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
            f"{self.column.name} has {distinct} distinct value(s), the most frequent with {most} of "
            f"{int(counts.sum())} persons, over the whole table, so {', or '.join(ways)}; recursive-cl asks for "
            f"c = {plain(self.c)}, l = {self.l}."
        )


def entropy(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The entropy of groups, in nats. counts: (…, size)"""
    persons = counts.sum(axis=-1)
    # A value that nobody has adds 0, as one that a single person has.
    parts = counts * np.log(np.maximum(counts, 1))
    found: NDArray[np.float64] = np.log(persons) - parts.sum(axis=-1) / persons
    return found


def _distinct(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    found: NDArray[np.int64] = (counts > 0).sum(axis=-1)
    return found


def _rest(counts: NDArray[np.int64], l: int) -> NDArray[np.int64]:  # noqa: E741
    """The persons of all values from the l-th most frequent on."""
    ascending = np.sort(counts, axis=-1)
    values = counts.shape[-1]
    rest: NDArray[np.int64] = ascending[..., : max(values - l + 1, 0)].sum(axis=-1)
    return rest
