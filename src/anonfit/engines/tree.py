# SPDX-License-Identifier: Apache-2.0
"""The shapes that tile a domain: a tree of splits, as flat arrays, and a grid, whose regions are all combinations of
the parts of columns that are divided each by itself. The box of a node is what it holds of each column, as runs or,
where a split was by a set, as sets of codes, which are bits. Engines grow a tree over codes; a recoding keeps a shape
over cells.

There may be more regions of a grid than could ever be listed, so nodes are given only to those that rows were found in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from threading import Lock

import numpy as np
from numpy.typing import NDArray

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
        unset = np.array([-1], dtype=np.int32)
        return cls(unset, np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int32), unset, unset)


Bits = NDArray[np.uint8]

BLOCK = 1 << 22
"""Codes that are unpacked at once."""

_SIGNS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
_LOWEST = _SIGNS.argmax(axis=1)  # (byte,) the place of its first code
_HIGHEST = 7 - _SIGNS[:, ::-1].argmax(axis=1)


def blocks_of(rows: int, size: int) -> list[slice]:
    """Slices of rows that are few enough to be unpacked at once."""
    step = max(1, BLOCK // max(1, size))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def bits_of_pairs(sets: NDArray[np.integer], codes: NDArray[np.integer], rows: int, size: int) -> Bits:
    """The bits of `rows` sets of a column of `size` codes, from pairs of set and code in the order of the sets."""
    bits = np.zeros((rows, -(-size // 8)), np.uint8)
    for block in blocks_of(rows, size):
        first, last = np.searchsorted(sets, [block.start, block.stop])
        held = np.zeros((block.stop - block.start, size), np.bool_)
        held[sets[first:last] - block.start, codes[first:last]] = True
        bits[block] = np.packbits(held, axis=1)
    return bits


def bits_of_runs(first: NDArray[np.integer], last: NDArray[np.integer], size: int) -> Bits:
    """The bits of runs of codes, both ends included and within the column."""
    bits = np.empty((len(first), -(-size // 8)), np.uint8)
    byte = np.arange(0, 8 * bits.shape[1], 8)
    for block in blocks_of(len(first), size):
        below = np.clip(first[block, None] - byte, 0, 8)  # codes of the byte that come before the run
        above = np.clip(byte + 7 - last[block, None], 0, 8)
        bits[block] = (0xFF >> below) & (0xFF << above) & 0xFF
    return bits


def set_bits(tree: Tree, column: int, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Bits]:
    """The nodes that divide a column by sets, which of the column's sets each has, and the bits of these sets."""
    nodes = np.flatnonzero((tree.column == column) & (tree.set_of >= 0))
    numbers, which = np.unique(tree.set_of[nodes], return_inverse=True)
    sets = [tree.sets[number] for number in numbers.tolist()]
    lengths = np.fromiter(map(len, sets), np.int64, len(sets))
    codes = np.concatenate(sets) if sets else np.zeros(0, np.int32)
    return nodes, which, bits_of_pairs(np.repeat(np.arange(len(sets)), lengths), codes, len(sets), size)


def bounds_of(bits: Bits) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The lowest and highest code of each set, and how many it has; an empty one reaches from 0 to -1."""
    rows = np.arange(len(bits))
    is_used = bits != 0
    low = is_used.argmax(axis=1)
    high = bits.shape[1] - 1 - is_used[:, ::-1].argmax(axis=1)
    counts = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
    first = np.where(counts > 0, 8 * low + _LOWEST[bits[rows, low]], 0)
    last = np.where(counts > 0, 8 * high + _HIGHEST[bits[rows, high]], -1)
    return first, last, counts


def unpacked(bits: Bits, size: int) -> NDArray[np.bool_]:
    """(set, code) whether the set holds the code."""
    return np.unpackbits(bits, axis=1, count=size).view(np.bool_)


def different_sets(bits: Bits) -> tuple[Bits, NDArray[np.int64]]:
    """The different sets, and which of them each row is."""
    rows = np.ascontiguousarray(bits).view(np.dtype((np.void, bits.shape[1]))).ravel()
    _, first, which = np.unique(rows, return_index=True, return_inverse=True)
    return bits[first], which


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
        cells_of_part: list[Sequence[int]] = list(map(range, self.first.tolist(), (self.last + 1).tolist()))
        by_set = np.flatnonzero(self.set_of >= 0)
        size = 8 * self.sets.shape[1]
        for block in blocks_of(len(by_set), size):
            rows, cells = np.nonzero(unpacked(self.sets[self.set_of[by_set[block]]], size))
            ends = np.cumsum(np.bincount(rows, minlength=block.stop - block.start)).tolist()
            listed = cells.tolist()
            for part, begin, end in zip(by_set[block].tolist(), [0, *ends], ends, strict=False):
                cells_of_part[part] = listed[begin:end]
        return cells_of_part

    def bits(self, size: int) -> Bits:
        """The bits of each part of a column of so many cells."""
        bits = bits_of_runs(self.first, self.last, size)
        by_set = self.set_of >= 0
        if by_set.any():
            bits[by_set] = self.sets[self.set_of[by_set]]
        return bits


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


ROOT = 0
"""The node that holds everything; the regions are below it."""

_NUMBERING = Lock()


@dataclass(frozen=True, slots=True)
class GridColumn:
    """The parts of a column, numbered by their first cells."""

    part_of: NDArray[np.int32]  # (cell,)
    rest: int = -1
    """The part of the values of a suppressed column that are not disclosed, -1 without one."""

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return int(self.part_of.max(initial=-1)) + 1

    @property
    def unknown(self) -> int:
        """What holds a value that the recoding does not know: the rest, or the whole column."""
        return self.parts if self.rest < 0 else self.rest


def grid_column(part_of: Sequence[int] | NDArray[np.integer], rest: int = -1) -> GridColumn:
    """A column whose parts have any numbers; `rest` is that of the rest."""
    given = np.asarray(part_of, np.int64)
    numbers, first, which = np.unique(given, return_index=True, return_inverse=True)
    rank = np.empty(len(numbers), np.int32)
    rank[np.argsort(first)] = np.arange(len(numbers), dtype=np.int32)
    place = np.flatnonzero(numbers == rest)
    return GridColumn(rank[which], int(rank[place[0]]) if len(place) else -1)


@dataclass(frozen=True)
class Grid:
    """The parts of every column, and the nodes of the combinations that were met so far."""

    columns: tuple[GridColumn, ...]
    _met: list[NDArray[np.int32]] = field(default_factory=list, repr=False, compare=False)
    _boxes: list[Boxes] = field(default_factory=list, repr=False, compare=False)

    @property
    def regions(self) -> int:
        """How many regions tile the domain, empty ones included."""
        return prod(column.parts for column in self.columns)

    @property
    def met(self) -> NDArray[np.int32]:
        """(node, column) the part of each node, the root first; the number of parts stands for a whole column."""
        return self._met[0] if self._met else np.array([[column.parts for column in self.columns]], np.int32)

    def nodes(self, cells: Sequence[NDArray[np.integer]]) -> NDArray[np.int32]:
        """The node of each row, from its cells; -1 is a value that the recoding does not know."""
        parts = [
            np.append(column.part_of, np.int32(column.unknown))[own]
            for column, own in zip(self.columns, cells, strict=True)
        ]
        return self.number(parts)

    def number(self, parts: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
        """The node of each row, from its parts: a combination that was never met gets the next number."""
        with _NUMBERING:
            met = self.met
            both = [np.concatenate([met[:, index], own]) for index, own in enumerate(parts)]
            which = combined(both, [column.parts + 1 for column in self.columns])
            known, of_row = which[: len(met)], which[len(met) :]
            node_of = np.full(int(which.max(initial=0)) + 1, -1, np.int32)
            node_of[known] = np.arange(len(met), dtype=np.int32)
            new, first = np.unique(of_row, return_index=True)
            is_new = node_of[new] < 0
            node_of[new[is_new]] = np.arange(len(met), len(met) + np.count_nonzero(is_new), dtype=np.int32)
            if is_new.any():
                rows = np.stack([own[first[is_new]] for own in parts], axis=1)
                self._met[:] = [np.concatenate([met, rows])]
            nodes: NDArray[np.int32] = node_of[of_row]
            return nodes

    def boxes(self) -> Boxes:
        """The cells of the nodes that were met so far."""
        met = self.met
        if self._boxes and len(self._boxes[0].first) == len(met):
            return self._boxes[0]
        boxes = Boxes(np.zeros(met.shape, np.int32), np.zeros(met.shape, np.int32), {})
        for index, column in enumerate(self.columns):
            size, parts = len(column.part_of), column.parts
            order = np.argsort(column.part_of, kind="stable")
            bits = bits_of_pairs(column.part_of[order], order, parts, size)
            first, last, counts = bounds_of(bits)
            first, last = np.append(first, 0), np.append(last, size - 1)
            boxes.first[:, index], boxes.last[:, index] = first[met[:, index]], last[met[:, index]]
            is_set = np.append(last[:-1] - first[:-1] + 1 != counts, False)
            if is_set.any():
                number = np.where(is_set, np.cumsum(is_set) - 1, -1).astype(np.int32)
                boxes.sets_of[index] = ColumnSets(number[met[:, index]], bits[is_set[:-1]])
        self._boxes[:] = [boxes]
        return boxes


def combined(codes: Sequence[NDArray[np.integer]], sizes: Sequence[int]) -> NDArray[np.int64]:
    """A number for each different combination of codes, from 0 on."""
    groups, count = np.zeros(len(codes[0]) if codes else 0, np.int64), 1
    for column, size in zip(codes, sizes, strict=True):
        if count * size >= 1 << 62:
            _, groups = np.unique(groups, return_inverse=True)
            count = int(groups.max(initial=0)) + 1
        groups, count = groups * size + column, count * size
    return np.unique(groups, return_inverse=True)[1]
