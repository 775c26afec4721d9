# SPDX-License-Identifier: Apache-2.0
"""The tree of splits that tiles the domain, as flat arrays. Engines grow one over codes; a recoding keeps one over
cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEAF", "Tree"]

LEAF = -1


@dataclass(frozen=True, slots=True)
class Tree:
    """Nodes in breadth-first order; the children of a node stand together, in the order of their runs.

    A split divides the codes its node holds of `column` into runs: child i takes the codes from its `start` up to, not
    including, the next child's. Where a node has a set (`set_of` >= 0), it has two children: the first takes the
    codes of `sets[set_of]`, the second all others. `before` is, for a child of an ordered split, the highest code of
    its node's rows below `start` (-1 elsewhere): the cut lies somewhere above `before` and not above `start`.
    """

    column: NDArray[np.int32]  # (node,) LEAF for a region
    children: NDArray[np.int32]  # (node,)
    start: NDArray[np.int32]  # (node,)
    before: NDArray[np.int32]  # (node,)
    set_of: NDArray[np.int32]  # (node,)
    sets: tuple[NDArray[np.int32], ...] = ()

    @property
    def first_child(self) -> NDArray[np.int32]:
        """The node number of each node's first child (of no meaning for a region)."""
        before = np.cumsum(self.children, dtype=np.int64) - self.children
        return (before + 1).astype(np.int32)

    @property
    def region_of(self) -> NDArray[np.int32]:
        """The region number of each node that is a region, -1 for the others: regions are numbered in node order."""
        is_region = self.column == LEAF
        numbers = np.cumsum(is_region, dtype=np.int64) - 1
        return np.where(is_region, numbers, -1).astype(np.int32)

    @property
    def regions(self) -> int:
        """How many regions there are, empty ones included."""
        return int(np.count_nonzero(self.column == LEAF))

    @classmethod
    def single(cls) -> Tree:
        """One region that holds everything."""
        one = np.array([-1], dtype=np.int32)
        return cls(one, np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int32), one, one)
