# SPDX-License-Identifier: Apache-2.0
"""How far two distributions over the values of a column are apart: the earth mover's distances of t-closeness.

Each of them is a weighted sum over runs of codes: of what the one distribution has more than the other in that run.
For equal distances a run is a value, for ordered ones all values up to one, for hierarchical ones the values below a
node of the taxonomy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonfit.privacy.sensitive import SensitiveColumn
from anonfit.tables.taxonomy import Taxonomy

__all__ = ["Distance", "equal_distance", "hierarchical_distance", "ordered_distance"]


@dataclass(frozen=True, slots=True, eq=False)
class Distance:
    """Runs of codes, from `first` to `last` inclusive, and how much an excess in each weighs."""

    name: str
    first: NDArray[np.int64]  # (run,)
    last: NDArray[np.int64]  # (run,)
    weight: NDArray[np.float64]  # (run,)

    def of(self, excess: NDArray[np.float64]) -> NDArray[np.float64]:
        """The distance of distributions from another, given how much more of each value they have. excess: (…, size)"""
        before = np.zeros((*excess.shape[:-1], excess.shape[-1] + 1))
        np.cumsum(excess, axis=-1, out=before[..., 1:])
        found: NDArray[np.float64] = np.abs(before[..., self.last + 1] - before[..., self.first]) @ self.weight
        return found


def equal_distance(column: SensitiveColumn) -> Distance:
    """Any two values are at distance 1: half the sum of the differences."""
    values = np.arange(column.size)
    return Distance("equal", values, values, np.full(column.size, 0.5))


def ordered_distance(column: SensitiveColumn) -> Distance:
    """Neighbouring values are one step apart, the lowest and the highest 1."""
    steps = max(column.size - 1, 0)
    return Distance("ordered", np.zeros(steps, np.int64), np.arange(steps), np.full(steps, 1.0 / max(steps, 1)))


def hierarchical_distance(column: SensitiveColumn) -> Distance:
    """Two values are at the height of their lowest common node, as a part of the root's.

    Li, Li and Venkatasubramanian charge every inner node its height, as a part of the root's, times the smaller of what
    its children have too much and too little. That smaller one is half of the children's differences less the node's
    own, so each node's difference counts with half the height it lies below its parent.
    """
    assert column.taxonomy is not None
    heights = _heights(column.taxonomy)
    top = max(heights[0], 1)
    firsts, lasts = _runs(column, column.taxonomy)
    above = np.array([heights[parent] if parent >= 0 else top for parent in column.taxonomy.parents])
    weights = (above - heights) / (2.0 * top)
    if column.has_missing:
        firsts, lasts, weights = np.append(firsts, 0), np.append(lasts, 0), np.append(weights, 0.5)
    kept = (lasts >= firsts) & (weights > 0)
    return Distance("hierarchical", firsts[kept], lasts[kept], weights[kept])


def _runs(column: SensitiveColumn, taxonomy: Taxonomy) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and last code below each node of the taxonomy; the last before the first where none is."""
    shift = int(column.has_missing)
    leaves = np.arange(column.size - shift) if column.leaves is None else column.leaves[shift:]
    firsts = np.searchsorted(leaves, taxonomy.first_leaf, side="left") + shift
    lasts = np.searchsorted(leaves, taxonomy.last_leaf, side="right") + shift - 1
    return firsts, lasts


def _heights(taxonomy: Taxonomy) -> NDArray[np.int64]:
    """The longest way down to a leaf from each node."""
    heights = [0] * len(taxonomy.parents)
    for node in range(len(heights) - 1, 0, -1):
        parent = taxonomy.parents[node]
        heights[parent] = max(heights[parent], heights[node] + 1)
    return np.array(heights)
