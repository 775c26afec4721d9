# SPDX-License-Identifier: Apache-2.0
"""What is summed over the rows of a group: the additive integer statistics that privacy models and criteria are made
of, with numbers in fixed point.

For a node and a column an engine supplies the sums of every code (RainForest's AVC-set); adding them gives the sums
of any run or set of codes, and subtracting a part's from the whole gives the rest's. Sums of integers do not depend on
the order of rows, on threads, or on what was subtracted from what; sums of floats do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LARGEST_NUMBER",
    "ClassCounts",
    "FixedPoint",
    "Layout",
    "Measure",
    "Moments",
    "Persons",
    "Shares",
    "Sums",
    "fixed_point",
    "sums_by_code",
]

LARGEST_NUMBER = 1e150
"""Squares of larger numbers cannot be summed in floats."""
SUM_BITS = 62
MOST_BITS = 26


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """A number stands as round((number - centre) / step); the step is a power of two."""

    centre: float
    step: float

    def quantize(self, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        """The whole multiples that stand for these numbers."""
        return np.rint((numbers - self.centre) / self.step).astype(np.int64)

    def restore(self, multiples: NDArray[np.int64] | int) -> NDArray[np.float64]:
        """The numbers that multiples stand for."""
        return np.asarray(multiples, dtype=np.float64) * self.step + self.centre


def fixed_point(lowest: float, highest: float, *, persons: int) -> FixedPoint:
    """The finest fixed point in which squares of numbers between two ends can be summed over so many persons in 64
    bits.

    Args:
        lowest: The smallest number.
        highest: The largest number.
        persons: The largest number of persons that may be summed.

    Returns:
        A scale that depends on nothing else, so that every engine finds the same.

    Example:
        >>> fixed_point(0.0, 2.0, persons=1000).centre
        1.0
    """
    if not (math.isfinite(lowest) and math.isfinite(highest) and lowest <= highest):
        raise ValueError("fixed point needs two finite ends in order")
    bits = min(MOST_BITS, (SUM_BITS - max(persons, 1).bit_length()) // 2)
    centre = lowest / 2 + highest / 2
    reach = max(highest - centre, centre - lowest)
    if reach == 0:
        return FixedPoint(centre, 1.0)
    # The smallest power of two with which the farthest number still has at most so many bits.
    exponent = math.frexp(reach)[1] - bits
    return FixedPoint(centre, math.ldexp(1.0, max(exponent, -1022)))


Sums: TypeAlias = NDArray[np.int64]
"""One integer per sum of a layout, in the last dimension."""


class Measure(Protocol):
    """Something that is summed over rows."""

    @property
    def width(self) -> int:
        """How many sums it has."""

    def of_rows(self, weights: NDArray[np.int64]) -> Sums:
        """What each row adds to the sums, a row standing for so many persons. (row, sum)"""


@dataclass(frozen=True, slots=True)
class Persons:
    """The number of persons. Where persons have several rows it counts rows; engines count those persons exactly,
    apart.
    """

    width: int = 1

    def of_rows(self, weights: NDArray[np.int64]) -> Sums:
        """A row's persons."""
        return weights[:, None]


@dataclass(frozen=True, slots=True)
class ClassCounts:
    """The number of persons of each class of a nominal column. classes: (row,)."""

    column: str
    classes: NDArray[np.int64]
    width: int

    def of_rows(self, weights: NDArray[np.int64]) -> Sums:
        """A row's persons, in the place of its class."""
        found = np.zeros((len(weights), self.width), np.int64)
        found[np.arange(len(weights)), self.classes] = weights
        return found


@dataclass(frozen=True, slots=True)
class Shares:
    """The sum of each class's share, where rows have a share of every class. shares: (row, class), whole numbers."""

    column: str
    shares: NDArray[np.int64]

    @property
    def width(self) -> int:
        """How many classes there are."""
        return int(self.shares.shape[1])

    def of_rows(self, weights: NDArray[np.int64]) -> Sums:
        """A row's persons times its shares."""
        found: Sums = weights[:, None] * self.shares
        return found


@dataclass(frozen=True, slots=True)
class Moments:
    """Number, sum and sum of squares of a numeric column in fixed point. multiples: (row,)."""

    column: str
    multiples: NDArray[np.int64]
    scale: FixedPoint
    width: int = 3

    def of_rows(self, weights: NDArray[np.int64]) -> Sums:
        """A row's persons, and they times its value and its value's square."""
        return np.stack([weights, weights * self.multiples, weights * self.multiples**2], axis=1)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the sums of each measure stand in a vector of sums."""

    measures: tuple[Measure, ...]

    @property
    def width(self) -> int:
        """How many sums there are in all."""
        return sum(measure.width for measure in self.measures)

    def place(self, index: int) -> slice:
        """The place of a measure's sums."""
        start = sum(measure.width for measure in self.measures[:index])
        return slice(start, start + self.measures[index].width)

    def of_rows(self, weights: NDArray[np.int64]) -> Sums:
        """What each row adds. (row, sum)"""
        return np.concatenate([measure.of_rows(weights) for measure in self.measures], axis=1)


def sums_by_code(codes: Sequence[int] | NDArray[np.int64], additions: Sums, size: int) -> Sums:
    """The AVC-set of a column: for every code the sums of the rows that have it. (code, sum)"""
    found = np.zeros((size, additions.shape[1]), np.int64)
    np.add.at(found, np.asarray(codes, dtype=np.int64), additions)
    return found
