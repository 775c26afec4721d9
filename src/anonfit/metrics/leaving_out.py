# SPDX-License-Identifier: Apache-2.0
"""What the rows of a region tell of each other: each row's target is predicted from the other rows of its region.

No row predicts itself, so regions of few rows do not look better than they are. Regions that were made to tell the
target apart still have seen it: how much that flatters them only held-out rows can say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Predicted", "predicted_classes", "predicted_numbers"]

DENSE = 1 << 24
"""With more pairs of a region and a class, pairs are sorted instead of counted in a table."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """How well targets are predicted: rows that are right (classes), or squared errors (numbers)."""

    rows: int
    by_table: float
    """From all other rows together."""
    by_region: float
    """From the other rows of the region."""


def predicted_classes(regions: NDArray[np.integer], classes: NDArray[np.integer], count: int, width: int) -> Predicted:
    """How many rows have the class that is most frequent among the others; of equally frequent ones the first counts.

    Args:
        regions: (row,) the region of each row, 0 to `count` - 1.
        classes: (row,) the class of each row, 0 to `width` - 1.
        count: How many regions there are.
        width: How many classes there are.

    Returns:
        Rows that are predicted right.
    """
    keys = regions.astype(np.int64) * width + classes
    if count * width <= DENSE:
        table = np.bincount(keys, minlength=count * width)
        pairs = np.flatnonzero(table)
        held = table[pairs]
    else:
        pairs, held = np.unique(keys, return_counts=True)
    everybody = np.bincount(pairs % width, weights=held, minlength=width).astype(np.int64)
    known = np.flatnonzero(everybody)
    whole = _right(np.zeros(len(known), np.int64), known, everybody[known])
    return Predicted(len(keys), whole, _right(pairs // width, pairs % width, held))


def _right(regions: NDArray[np.int64], classes: NDArray[np.int64], held: NDArray[np.int64]) -> int:
    """Rows that are predicted right, from the sizes of pairs of a region and a class.

    Only the most frequent class of a region can be: without one of its rows it must still be more frequent than the
    next, or as frequent and before it.
    """
    if not len(held):
        return 0
    order = np.lexsort((classes, -held, regions))
    region, name, size = regions[order], classes[order], held[order]
    is_first = np.append(True, region[1:] != region[:-1])
    best = np.flatnonzero(is_first)
    after = np.minimum(best + 1, len(order) - 1)
    has_next = (after > best) & (region[after] == region[best])
    next_size = np.where(has_next, size[after], 0)
    wins = (size[best] - 1 > next_size) | ((size[best] - 1 == next_size) & (~has_next | (name[best] < name[after])))
    return int(size[best][wins].sum())


def predicted_numbers(regions: NDArray[np.integer], numbers: NDArray[np.float64], count: int) -> Predicted:
    """The squared errors of predicting each number by the mean of the others; a row alone in its region is predicted
    by the mean of all others.

    Args:
        regions: (row,) the region of each row, 0 to `count` - 1.
        numbers: (row,) the numbers, none of them missing.
        count: How many regions there are.

    Returns:
        The mean squared errors.
    """
    rows = len(numbers)
    if rows < 2:
        return Predicted(rows, 0.0, 0.0)
    centred = numbers - numbers.mean()  # so that squares do not drown in the mean's
    squares = centred * centred
    sizes = np.bincount(regions, minlength=count)
    sums = np.bincount(regions, weights=centred, minlength=count)
    within = np.bincount(regions, weights=squares, minlength=count) - sums * sums / np.maximum(sizes, 1)
    # Without a row the mean moves away from it: its error grows by n / (n - 1).
    by_others = np.maximum(within, 0.0) * np.square(sizes / np.maximum(sizes - 1, 1))
    alone = np.square(sums * (rows / (rows - 1)))
    by_region = np.where(sizes > 1, by_others, alone)
    return Predicted(rows, float(squares.sum()) * (rows / (rows - 1)) ** 2 / rows, float(by_region.sum()) / rows)
