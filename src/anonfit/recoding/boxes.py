# SPDX-License-Identifier: Apache-2.0
"""The box of every node of a tree: the cells it holds of each column, as runs or, where a split was by a set, as
sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.bits import Bits, bits_of_runs, blocks_of, bounds_of, different_sets, set_bits, unpacked
from anonfit.engines.tree import Tree

__all__ = ["Boxes", "ColumnSets", "Parts", "boxes_of"]


@dataclass(frozen=True, slots=True)
class ColumnSets:
    """The parts of a column that are not runs: the set of each node (-1: a run), and the different sets."""

    of_node: NDArray[np.int32]  # (node,)
    bits: Bits  # (set, byte)


@dataclass(frozen=True, slots=True)
class Parts:
    """The different parts that some nodes have of a column: runs of cells, or sets from the first to the last cell."""

    first: NDArray[np.int64]  # (part,)
    last: NDArray[np.int64]  # (part,)
    set_of: NDArray[np.int64]  # (part,) its row of `sets`, -1 for a run
    sets: Bits  # (set, byte)
    of_node: NDArray[np.int64]  # (node,) the part of each of the nodes

    def cells(self) -> list[Sequence[int]]:
        """The cells of each part, in ascending order."""
        found: list[Sequence[int]] = list(map(range, self.first.tolist(), (self.last + 1).tolist()))
        by_set = np.flatnonzero(self.set_of >= 0)
        size = 8 * self.sets.shape[1]
        for block in blocks_of(len(by_set), size):
            rows, cells = np.nonzero(unpacked(self.sets[self.set_of[by_set[block]]], size))
            ends = np.cumsum(np.bincount(rows, minlength=block.stop - block.start)).tolist()
            listed = cells.tolist()
            for part, begin, end in zip(by_set[block].tolist(), [0, *ends], ends, strict=False):
                found[part] = listed[begin:end]
        return found

    def bits(self, size: int) -> Bits:
        """The bits of each part of a column of so many cells."""
        found = bits_of_runs(self.first, self.last, size)
        by_set = self.set_of >= 0
        if by_set.any():
            found[by_set] = self.sets[self.set_of[by_set]]
        return found


@dataclass(frozen=True, slots=True)
class Boxes:
    """Per node and column the first and last cell; `sets_of` has the parts that are not runs, for columns with any."""

    first: NDArray[np.int32]  # (node, column)
    last: NDArray[np.int32]  # (node, column)
    sets_of: dict[int, ColumnSets]  # column -> its sets

    def cells(self, node: int, column: int) -> tuple[int, ...]:
        """The cells of a node's part of a column."""
        return tuple(self.parts(np.array([node]), column).cells()[0])

    def parts(self, nodes: NDArray[np.integer], column: int) -> Parts:
        """The different parts that nodes have of a column: what is made of a part is made once, not once per node."""
        first, last = self.first[nodes, column].astype(np.int64), self.last[nodes, column].astype(np.int64)
        keys = first << 32 | (last + 1)
        sets = self.sets_of.get(column)
        if sets is not None:
            number = sets.of_node[nodes].astype(np.int64)
            keys = np.where(number < 0, keys, -1 - number)
        distinct, node, which = np.unique(keys, return_index=True, return_inverse=True)
        return Parts(
            first=first[node],
            last=last[node],
            set_of=np.where(distinct < 0, -1 - distinct, -1),
            sets=np.zeros((0, 1), np.uint8) if sets is None else sets.bits,
            of_node=which,
        )


@dataclass(frozen=True, slots=True)
class _Steps:
    """The nodes at which a column's cells become fewer: the root, and the children of its splits.

    `above` is the step before each, `of_node` the last step on the way to each node, and `low` to `high` are the cells
    that a split by runs leaves to a step.
    """

    nodes: NDArray[np.int64]  # (step,)
    above: NDArray[np.int64]  # (step,)
    of_node: NDArray[np.int64]  # (node,)
    low: NDArray[np.int32]  # (step,)
    high: NDArray[np.int32]  # (step,)


def boxes_of(tree: Tree, sizes: list[int]) -> Boxes:
    """The boxes of a tree over columns of these many cells, column by column.

    Which cells a node holds is what all steps on its way leave. All ways are followed at once: in each round a step
    takes in what is known of a step above it, which is twice as far away as in the round before.
    """
    count = len(tree.column)
    boxes = Boxes(np.zeros((count, len(sizes)), np.int32), np.zeros((count, len(sizes)), np.int32), {})
    parent = np.append(0, np.repeat(np.arange(count), tree.children))
    divided_by_sets = set(tree.column[tree.set_of >= 0].tolist())
    for column, size in enumerate(sizes):
        steps = _steps(tree, parent, column, size)
        if column in divided_by_sets:
            _place_sets(tree, boxes, steps, column, size)
            continue
        first, last, above = steps.low, steps.high, steps.above
        while above.any():
            first, last = np.maximum(first, first[above]), np.minimum(last, last[above])
            above = above[above]
        boxes.first[:, column], boxes.last[:, column] = first[steps.of_node], last[steps.of_node]
    return boxes


def _steps(tree: Tree, parent: NDArray[np.int64], column: int, size: int) -> _Steps:
    """The steps of a column."""
    every = np.arange(len(parent))
    is_step = tree.column[parent] == column
    is_step[0] = True
    nearest = np.where(is_step, every, parent)
    while not is_step[nearest].all():
        nearest = nearest[nearest]
    nodes = np.flatnonzero(is_step)
    place = np.cumsum(is_step) - 1
    low, high = np.zeros(len(nodes), np.int32), np.full(len(nodes), size - 1, np.int32)
    by_run = tree.set_of[parent[nodes]] < 0
    by_run[0] = False
    low[by_run] = tree.start[nodes[by_run]]
    has_next = by_run & (np.append(parent, -1)[nodes + 1] == parent[nodes])
    high[has_next] = tree.start[nodes[has_next] + 1] - 1
    return _Steps(nodes, place[nearest[parent[nodes]]], place[nearest], low, high)


def _place_sets(tree: Tree, boxes: Boxes, steps: _Steps, column: int, size: int) -> None:
    """The parts of a column that is divided by sets."""
    bits = bits_of_runs(steps.low, steps.high, size)
    divided, which, sets = set_bits(tree, column, size)
    first = np.searchsorted(steps.nodes, tree.first_child[divided])
    bits[first] &= sets[which]
    bits[first + 1] &= ~sets[which]
    above = steps.above
    while above.any():
        bits &= bits[above]
        above = above[above]
    low, high, counts = bounds_of(bits)
    boxes.first[:, column], boxes.last[:, column] = low[steps.of_node], high[steps.of_node]
    is_set = high - low + 1 != counts
    if is_set.any():
        number = np.full(len(bits), -1, np.int32)
        different, number[is_set] = different_sets(bits[is_set])
        boxes.sets_of[column] = ColumnSets(number[steps.of_node], different)
