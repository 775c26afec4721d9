# SPDX-License-Identifier: Apache-2.0
"""The box of every node of a tree: the cells it holds of each column, as runs or, where a split was by a set, as
sets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.tree import Tree

__all__ = ["Boxes", "boxes_of"]


@dataclass(frozen=True, slots=True)
class Boxes:
    """Per node and column the first and last cell; `sets` has the cells of those parts that are not a run."""

    first: NDArray[np.int32]  # (node, column)
    last: NDArray[np.int32]  # (node, column)
    sets: dict[tuple[int, int], tuple[int, ...]]

    def cells(self, node: int, column: int) -> tuple[int, ...]:
        """The cells of a node's part of a column."""
        found = self.sets.get((node, column))
        return found if found is not None else tuple(range(self.first[node, column], self.last[node, column] + 1))


def boxes_of(tree: Tree, sizes: list[int]) -> Boxes:
    """The boxes of a tree over columns of these many cells, level by level."""
    count = len(tree.column)
    first = np.zeros((count, len(sizes)), np.int32)
    last = np.zeros((count, len(sizes)), np.int32)
    last[0] = np.array(sizes, np.int32) - 1
    boxes = Boxes(first, last, {})
    parent = np.repeat(np.arange(count), tree.children)  # of nodes 1, 2, …
    begin, end = 1, 1 + int(tree.children[0])
    while begin < end:
        level = np.arange(begin, end)
        above = parent[level - 1]
        first[level], last[level] = first[above], last[above]
        column = tree.column[above]
        by_run = tree.set_of[above] < 0
        first[level[by_run], column[by_run]] = np.maximum(first[level, column], tree.start[level])[by_run]
        is_last = np.append(above[1:] != above[:-1], True)
        inner = by_run & ~is_last
        next_start = np.append(tree.start[level[1:]], 0)
        last[level[inner], column[inner]] = np.minimum(last[level, column], next_start - 1)[inner]
        if tree.sets:
            _place_sets(tree, boxes, level, above)
        begin, end = end, end + int(tree.children[level].sum())
    return boxes


def _place_sets(tree: Tree, boxes: Boxes, level: NDArray[np.int64], above: NDArray[np.int64]) -> None:
    """Sets of a level: those of set splits, and those inherited, cut by run splits."""
    for node, parent in zip(level.tolist(), above.tolist(), strict=True):
        column = int(tree.column[parent])
        for other in range(boxes.first.shape[1]):
            if other != column and (parent, other) in boxes.sets:
                boxes.sets[node, other] = boxes.sets[parent, other]
        if tree.set_of[parent] >= 0:
            members = {int(cell) for cell in tree.sets[tree.set_of[parent]]}
            wanted = node == parent_first(tree, parent)
            _put(
                boxes,
                node,
                column,
                [cell for cell in boxes.cells(parent, column) if (cell in members) == wanted],
            )
        elif (parent, column) in boxes.sets:
            low, high = boxes.first[node, column], boxes.last[node, column]
            _put(boxes, node, column, [cell for cell in boxes.sets[parent, column] if low <= cell <= high])


def parent_first(tree: Tree, node: int) -> int:
    """The first child of a node."""
    return int(tree.first_child[node])


def _put(boxes: Boxes, node: int, column: int, cells: list[int]) -> None:
    """Keep a part as a run where it is one."""
    boxes.first[node, column] = cells[0] if cells else 0
    boxes.last[node, column] = cells[-1] if cells else -1
    if cells and cells[-1] - cells[0] + 1 != len(cells):
        boxes.sets[node, column] = tuple(cells)
