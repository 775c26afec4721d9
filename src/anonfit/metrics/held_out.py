# SPDX-License-Identifier: Apache-2.0
"""What a recipient can predict from regions: a small learner over a recoding, judged on rows it has not seen.

It needs nothing but counts, so it is there where no learning library is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.recoding.recoding import Recoding, Unseen

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Gain", "RegionLearner", "depths", "leaned", "paired_gain"]

LEAN = 100
"""A region's classes are counted together with so many rows of the region it was cut from: small regions say little by
themselves.
"""


@dataclass(frozen=True, slots=True)
class RegionLearner:
    """Predicts the class that is most frequent in a row's region, among the rows it was taught."""

    recoding: Recoding
    classes: pl.Series
    likely: NDArray[np.int64]  # (node,) the number of its most likely class

    @classmethod
    def taught(cls, recoding: Recoding, frame: pl.DataFrame, target: str) -> RegionLearner:
        """The learner of a recoding, taught with the rows of a frame.

        Args:
            recoding: The regions.
            frame: Raw rows.
            target: The column to predict; a missing value is a class of its own.
        """
        classes = frame[target].unique().sort()
        of_row = frame[target].rank("dense").fill_null(0).to_numpy().astype(np.int64) - 1
        if classes.null_count():  # missing sorts first
            of_row += 1
        nodes, parent = _nodes(recoding, frame), recoding.parents
        counts = np.zeros((len(parent), len(classes)))
        np.add.at(counts, (nodes, of_row), 1.0)
        return cls(recoding, classes, leaned(counts, counts.sum(axis=1), parent).argmax(axis=1))

    def predict(self, frame: pl.DataFrame) -> pl.Series:
        """The predicted class of each row; one with a value that the recoding does not know ends in an inner node."""
        nodes = _nodes(self.recoding, frame)
        # A region of a grid that no row was taught of says what the whole table says.
        return self.classes.gather(self.likely[np.where(nodes < len(self.likely), nodes, 0)])


def _nodes(recoding: Recoding, frame: pl.DataFrame) -> NDArray[np.int32]:
    return recoding.nodes(recoding.cells(frame, unseen=Unseen.ANCESTOR))


def leaned(sums: NDArray[np.float64], sizes: NDArray[np.float64], parent: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean of every node's rows, where each leans on that of the node it was cut from.

    Args:
        sums: (node, value) what the rows that end there sum up to: rows of each class, or numbers.
        sizes: (node,) how many rows end there.
        parent: (node,) the node each was cut from, -1 for the root; nodes stand in breadth-first order.

    Returns:
        (node, value) the means.
    """
    sums, sizes = sums.copy(), sizes.copy()
    levels = depths(parent)
    for level in reversed(levels[1:]):
        np.add.at(sums, parent[level], sums[level])
        np.add.at(sizes, parent[level], sizes[level])
    means = sums / max(float(sizes[0]), 1.0)
    for level in levels[1:]:
        means[level] = (sums[level] + LEAN * means[parent[level]]) / (sizes[level] + LEAN)[:, None]
    return means


def depths(parent: NDArray[np.int64]) -> list[slice]:
    """The nodes of each depth: in breadth-first order a node's parent never stands after that of a later node."""
    found = [slice(0, 1)]
    while found[-1].stop < len(parent):
        stop = int(np.searchsorted(parent, found[-1].stop))
        found.append(slice(found[-1].stop, stop))
    return found


@dataclass(frozen=True, slots=True)
class Gain:
    """How much larger a share of right predictions is than another, on the same rows, and what chance can do to it."""

    share: float
    noise: float
    """Two standard errors of the paired difference."""

    @property
    def is_real(self) -> bool:
        """Whether it is a gain that chance does not explain."""
        return self.share > self.noise

    @property
    def is_loss(self) -> bool:
        """Whether it is a loss that chance does not explain."""
        return self.share < -self.noise


def paired_gain(before: NDArray[np.bool_], after: NDArray[np.bool_]) -> Gain:
    """What was gained from one way to predict to another.

    Args:
        before: (row,) whether the first was right.
        after: (row,) whether the second was.

    Returns:
        The gain.

    Example:
        >>> right = np.array([True] * 30 + [False] * 70)
        >>> paired_gain(right, right)
        Gain(share=0.0, noise=0.0)
    """
    differences = after.astype(np.float64) - before
    rows = len(differences)
    if rows < 2:
        return Gain(float(differences.sum()), math.inf)
    return Gain(float(differences.mean()), 2 * float(differences.std(ddof=1)) / math.sqrt(rows))
