# SPDX-License-Identifier: Apache-2.0
"""Numbers as whole multiples of a step around a centre, so that their sums, and sums of their squares, are exact
integers.

Sums of integers do not depend on the order of rows, on threads, or on what was subtracted from what; sums of floats do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST_NUMBER", "FixedPoint", "fixed_point"]

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
