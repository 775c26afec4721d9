# SPDX-License-Identifier: Apache-2.0
"""Diversity of numbers: the known values of a group are far enough apart.

Squared-error diversity: LeFevre, DeWitt, Ramakrishnan: Workload-Aware Anonymization, KDD 2006; variance diversity: the
same authors, TODS 33(3), 2008.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anonfit.privacy.bounds import at_most, plain
from anonfit.privacy.sensitive import TIE, SensitiveColumn

__all__ = ["SquaredError", "Variance", "least_variance", "squared_deviations"]


@dataclass(frozen=True, slots=True)
class SquaredError:
    """The squared deviations from the group's mean add up to at least `error`."""

    name: ClassVar[str] = "squared-error"
    is_monotone: ClassVar[bool] = True
    column: SensitiveColumn
    error: float

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the sum is large enough."""
        persons, errors = _errors(self.column, counts)
        slack = np.sqrt(persons) * self.column.rounding
        found: NDArray[np.bool_] = errors >= (math.sqrt(self.error) + slack) ** 2 * (1 - TIE)
        return found

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The sum of squared deviations of the known values."""
        return _errors(self.column, counts)[1]

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """The table's own sum is too small, and that of a group is never larger."""
        found = float(self.figure(counts))
        return (
            f"{self.column.name} has a sum of squared deviations of {plain(found)} over the whole table, so error "
            f"cannot exceed {at_most(found / (1 - TIE))}; squared-error asks for error = {plain(self.error)}."
        )


@dataclass(frozen=True, slots=True)
class Variance:
    """The variance of the known values of every group is at least `variance`."""

    name: ClassVar[str] = "variance"
    is_monotone: ClassVar[bool] = True
    column: SensitiveColumn
    variance: float

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the variance is large enough."""
        found: NDArray[np.bool_] = self.figure(counts) >= least_variance(self) * (1 - TIE)
        return found

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The variance of the known values; 0 where there are none."""
        persons, errors = _errors(self.column, counts)
        return errors / np.maximum(persons, 1)

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """The table's own variance is too small, and that of some group is never larger."""
        found = float(self.figure(counts))
        return (
            f"{self.column.name} has variance {plain(found)} over the whole table, so variance cannot exceed "
            f"{at_most(found / (1 - TIE))}; variance = {plain(self.variance)} is asked for."
        )


def least_variance(model: Variance) -> float:
    """The variance that numbers in fixed point must have so that those they stand for have what is asked."""
    return (math.sqrt(model.variance) + model.column.rounding) ** 2


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
    found: NDArray[np.float64] = np.maximum(moved_squares - moved_sums * moved_sums / some, 0.0)
    return found


def _errors(column: SensitiveColumn, counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The persons of groups whose value is known, and their squared deviations."""
    assert column.numbers is not None
    assert column.scale is not None
    first = int(column.has_missing)
    known, numbers = counts[..., first:], column.numbers[first:]
    persons = known.sum(axis=-1)
    errors = squared_deviations(persons, known @ numbers, known @ (numbers * numbers))
    return persons, errors * column.scale.step**2
