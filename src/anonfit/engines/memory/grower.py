# SPDX-License-Identifier: Apache-2.0
"""The in-memory engine: packs coded rows, grows a tree over them with all cores, and routes rows to regions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import local
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.splitting import MEDIAN, WORD, SplitObjective, child_key, exponential, root_key
from anonfit.engines.memory import growing, guard, guide, layout
from anonfit.engines.memory.count import count_rows
from anonfit.engines.memory.growing import child_span, child_tile
from anonfit.engines.memory.guard import Guard, Guarded
from anonfit.engines.memory.guide import SLOTS, Guide
from anonfit.engines.memory.layout import (
    FROM,
    GAP,
    HIGH,
    LOW,
    MISSING,
    SIZE,
    SPAN,
    TO,
    Columns,
    Packing,
    Rows,
    pack,
    rows_of,
    shared,
)
from anonfit.engines.memory.route import count_parts, scatter
from anonfit.engines.memory.scratch import CHANCE, SIZES, Scratch, make_scratch
from anonfit.engines.memory.selecting import RowSelector, Selector, Split, View
from anonfit.engines.memory.splitting import choose_split
from anonfit.engines.memory.trees import begins_of, breadth_first, settle
from anonfit.engines.tree import Tree
from anonfit.runtime.threads import thread_count
from anonfit.tables.schema import CodedTable, SplitMode

SUBTREE = 1 << 16
"""Nodes of fewer rows are grown by one thread, each with all nodes below it."""

UNCOUNTED = np.empty(0, np.int64)
"""The histogram of a node whose rows are to be looked at."""

Result = TypeVar("Result")


def tiled_modes(purpose: SplitObjective) -> set[SplitMode]:
    """The modes whose columns are divided into sets, so that nodes must keep the codes they hold."""
    modes = {SplitMode.BINARY} if purpose.targets else set()
    return modes if purpose.selections is None else {SplitMode.BINARY, SplitMode.SUBSET}


def root_span(columns: Columns) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The span and the tile of all rows."""
    facts = columns.facts
    span = np.zeros((SPAN, facts.shape[1]), np.int64)
    span[FROM], span[TO] = 0, facts[SIZE] - 1
    span[LOW], span[HIGH], span[GAP] = facts[MISSING], facts[SIZE] - 1, facts[MISSING]
    return span, np.ones(columns.tile, np.uint8)


Subtree = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Nodes, and the members of their sets."""


def join_subtrees(
    top: NDArray[np.int64], members: NDArray[np.int64], numbers: Sequence[int], subtrees: Sequence[Subtree]
) -> Subtree:
    """Hang subtrees on the nodes of the top that they grew from; all nodes and the members of their sets."""
    blocks, sets = [top], [members]
    used, filled = len(top), len(members)
    for number, (subtree, own) in zip(numbers, subtrees, strict=True):
        subtree[subtree[:, growing.CHILDREN] > 0, growing.CHILD] += used - 1
        subtree[subtree[:, growing.SET] >= 0, growing.SET] += filled
        kept = top[number, [growing.START, growing.BEFORE]]
        top[number] = subtree[0]
        top[number, [growing.START, growing.BEFORE]] = kept
        blocks.append(subtree[1:])
        sets.append(own)
        used += len(subtree) - 1
        filled += len(own)
    return np.concatenate(blocks), np.concatenate(sets)


def signed_key(key: int) -> int:
    """The bits of a key as kernels hold whole numbers."""
    return key - WORD - 1 if key > WORD >> 1 else key


def draw_by_key(key: int, scratch: Scratch) -> None:
    """Give every column the number that chance has for it at the node of a key."""
    scratch.found[CHANCE] = [exponential(key, column) for column in range(len(scratch.found[0]))]


@dataclass(slots=True)
class Node:
    """A node that waits to be split by all threads together."""

    number: int
    start: int
    stop: int
    buffer: int
    span: NDArray[np.int64]
    tile: NDArray[np.uint8]
    histogram: Any
    selecting: bool
    key: int = 0


class Grower:
    """Grows one tree: the top with all threads on one node at a time, then whole subtrees, one per thread."""

    def __init__(
        self,
        first: Rows,
        columns: Columns,
        guide: Guide,
        guard: Guard | None,
        k: int,
        *,
        selector: RowSelector | None = None,
        by_chance: bool = False,
        threads: int = 1,
        subtree: int = SUBTREE,
    ) -> None:
        """A tree over packed rows, as these are described by columns, guide and guard."""
        self.columns, self.guide, self.guard = columns, guide, guard
        self.k, self.by_chance, self.selector = k, by_chance, selector
        self.rows = len(first.words)
        self.buffers = (first, rows_of(np.empty_like(first.words)))
        # What kernels are given in place of these tuples.
        self.shared_buffers = (shared(self.buffers[0]), shared(self.buffers[1]))
        self.shared_columns, self.shared_guide = shared(columns), shared(guide)
        self.shared_guard = None if guard is None else shared(guard)
        self.subtree_rows = subtree
        self.threads = threads
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self.own = local()
        self.scratch = make_scratch(columns, guide, guard, self.rows)
        self.shared_scratch = shared(self.scratch)
        self.nodes, self.used = growing.new_nodes(), 1
        self.members, self.filled = np.empty(64, np.int64), 0

    @classmethod
    def of_table(
        cls, table: CodedTable, k: int, purpose: SplitObjective, guarded: Sequence[Guarded], threads: int, subtree: int
    ) -> Self:
        """A tree over the rows of a table."""
        packing = Packing()
        fields = layout.add_fields(table, packing)
        guide_fields, guard_fields = guide.add_fields(purpose, packing), guard.add_fields(guarded, packing)
        packing.settle()
        columns = layout.describe(table, packing, fields, tiled=tiled_modes(purpose))
        selector = None
        if purpose.selections is not None:
            chooser = Selector(table.columns, k, purpose.selections, guarded, columns)
            selector = RowSelector(chooser, table, purpose, guarded)
        return cls(
            pack(packing, table.rows, entities=table.entities, threads=threads),
            columns,
            guide.make_guide(purpose, guide.whole_of(purpose, table), packing, guide_fields),
            guard.make_guard(guarded, packing, guard_fields, len(table.columns)) if guarded else None,
            k,
            selector=selector,
            by_chance=purpose.by_chance,
            threads=threads,
            subtree=subtree,
        )

    def each(self, task: Callable[..., Result], *arguments: Iterable[Any]) -> list[Result]:
        """The results of a task for each of its arguments, made by all threads."""
        return list(self.pool.map(task, *arguments) if self.pool else map(task, *arguments))

    def bounds(self, start: int, stop: int) -> tuple[list[int], list[int]]:
        """Equal runs of rows, one per thread."""
        edges = np.linspace(start, stop, self.threads + 1).astype(int).tolist()
        return edges[:-1], edges[1:]

    def count(self, buffer: int, start: int, stop: int) -> NDArray[np.int64]:
        """The histogram of some rows, counted by all threads."""
        slots = int(self.guide.settings[SLOTS])

        def task(begin: int, end: int) -> NDArray[np.int64]:
            histogram = np.zeros(self.columns.bins * slots, np.int64)
            places = np.zeros(max(1, len(self.columns.narrow)), np.int64)
            count_rows(
                self.shared_buffers[buffer], self.shared_columns, self.shared_guide, begin, end, 1, histogram, places
            )
            return histogram

        total: NDArray[np.int64] = np.sum(self.each(task, *self.bounds(start, stop)), axis=0)
        return total

    def root(self, span: NDArray[np.int64], tile: NDArray[np.uint8], key: int) -> Node:
        """The node of all rows."""
        return Node(0, 0, self.rows, 0, span, tile, self.count(0, 0, self.rows), self.selector is not None, key)

    def partition(self, node: Node, split: Split) -> list[tuple[int, int]]:
        """Move a node's rows to their parts with two threads; the run of each part in the other buffer."""
        source, target = self.shared_buffers[node.buffer], self.shared_buffers[1 - node.buffer]
        column, parts, _, by_set = split
        columns, scratch = self.shared_columns, self.shared_scratch
        sizes = self.scratch.lists[SIZES, :parts].copy()
        if self.columns.counts >= 0:
            count_parts(source, columns, column, parts, by_set, node.start, node.stop, scratch, sizes)
        edges = node.start + np.concatenate([[0], np.cumsum(sizes)])
        middle = (node.start + node.stop) // 2

        def move(start: int, stop: int, step: int, places: NDArray[np.int64]) -> None:
            scatter(source, target, columns, column, parts, by_set, start, stop, step, scratch, places)

        self.each(move, (node.start, node.stop - 1), (middle, middle - 1), (1, -1), (edges[:-1].copy(), edges[1:] - 1))
        return [(int(edges[part]), int(edges[part + 1])) for part in range(parts)]

    def choose(self, node: Node) -> Split:
        """A large node's split: by selections as long as they gain, then by the targets or the median."""
        rows = self.shared_buffers[node.buffer]
        if node.selecting:
            assert self.selector is not None
            found = self.selector.choose(
                View(
                    rows,
                    self.shared_columns,
                    self.shared_guide,
                    self.shared_scratch,
                    node.start,
                    node.stop,
                    node.histogram,
                    node.span,
                    node.tile,
                ),
                self.buffers[node.buffer],
                self.scratch,
            )
            if found is not None:
                return found
            node.selecting = False
        if self.by_chance:
            draw_by_key(node.key, self.scratch)
        chosen: Split = choose_split(
            rows,
            self.shared_columns,
            self.shared_guide,
            self.k,
            self.shared_guard,
            node.start,
            node.stop,
            node.histogram,
            node.span,
            node.tile,
            self.shared_scratch,
        )
        return chosen

    def split(self, node: Node) -> list[Node]:
        """Split a large node; its parts that have rows, or nothing if it is a region."""
        split = self.choose(node)
        column, parts, before, by_set = split
        if column < 0:
            self.nodes, self.used = growing.finish(
                self.nodes,
                self.used,
                node.number,
                self.shared_buffers[node.buffer],
                self.shared_columns,
                self.shared_guide,
                node.start,
                node.stop,
                node.buffer,
                UNCOUNTED,
                node.span,
                node.tile,
            )
            return []
        self.nodes, self.used, first, self.members, self.filled = growing.attach(
            self.nodes,
            self.used,
            node.number,
            self.shared_columns,
            column,
            parts,
            before,
            by_set,
            self.members,
            self.filled,
            node.span,
            node.tile,
            self.shared_scratch,
        )
        return self.parts(node, split, first)

    def parts(self, node: Node, split: Split, first: int) -> list[Node]:
        """The parts of a split that have rows; the largest gets what is left of the node's histogram."""
        column, parts, _, by_set = split
        columns, lists, side = self.shared_columns, self.scratch.lists, self.scratch.side
        runs = self.partition(node, split)
        largest = max(range(parts), key=lambda part: runs[part][1] - runs[part][0])
        rest = node.histogram
        found = []
        for part, (start, stop) in enumerate(runs):
            if start == stop:
                continue
            span, tile = np.empty_like(node.span), node.tile.copy()
            if by_set:
                child_tile(columns, node.span, node.tile, column, part, side, span, tile)
            else:
                child_span(columns, node.span, node.tile, column, part, parts, lists, span, tile)
            histogram = None
            if part != largest:
                histogram = self.count(1 - node.buffer, start, stop)
                rest = rest - histogram
            key = child_key(node.key, part)
            found.append(Node(first + part, start, stop, 1 - node.buffer, span, tile, histogram, node.selecting, key))
        for child in found:
            if child.histogram is None:
                child.histogram = rest
        return found

    def subtree(self, node: Node) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The nodes below a small node and the members of their sets, found by one thread."""
        if not hasattr(self.own, "scratch"):
            self.own.scratch = shared(make_scratch(self.columns, self.guide, self.guard, self.largest))
        found: tuple[NDArray[np.int64], NDArray[np.int64]] = growing.grow_subtree(
            *self.shared_buffers,
            self.shared_columns,
            self.shared_guide,
            self.k,
            self.shared_guard,
            node.start,
            node.stop,
            node.buffer,
            signed_key(node.key),
            node.histogram,
            node.span,
            node.tile,
            self.own.scratch,
        )
        return found

    def grow(self, root: Node) -> Subtree:
        """All nodes, and the members of their sets."""
        limit = max(self.subtree_rows, self.rows // (4 * self.threads)) if self.pool else self.rows
        waiting, small = [root], []
        while waiting:
            node = waiting.pop()
            if node.stop - node.start <= limit and not node.selecting:
                small.append(node)
            else:
                waiting.extend(self.split(node))
        small.sort(key=lambda node: node.start - node.stop)
        self.largest = max((node.stop - node.start for node in small), default=1)
        subtrees = self.each(self.subtree, small)
        return join_subtrees(
            self.nodes[: self.used], self.members[: self.filled], [node.number for node in small], subtrees
        )

    def tree(self, key: int) -> tuple[Tree, NDArray[np.int64]]:
        """The tree of all rows, whose root has this key, and where the rows of each region begin."""
        nodes, members = self.grow(self.root(*root_span(self.columns), key))
        settle(nodes, self.buffers[0].words, self.buffers[1].words)
        return breadth_first(nodes, members), begins_of(nodes)

    def close(self) -> None:
        """Let the threads go."""
        if self.pool:
            self.pool.shutdown()


@dataclass(frozen=True, slots=True)
class Growth:
    """A grown tree over codes, and the packed rows, those of a region together; `begins` has the first row of each."""

    tree: Tree
    rows: Rows
    columns: Columns
    begins: NDArray[np.int64]  # (region with rows,) ascending

    @property
    def numbers(self) -> NDArray[np.uint32]:
        """The number in the table of each packed row."""
        return self.rows.field(self.columns.number)


def grow(
    table: CodedTable,
    k: int,
    purpose: SplitObjective = MEDIAN,
    *,
    guarded: Sequence[Guarded] = (),
    threads: int | None = None,
    subtree: int = SUBTREE,
) -> Growth:
    """Grow a Mondrian tree in which every region that has rows has k persons and what the guarding models ask.

    Nodes of at most `subtree` rows are left to one thread.
    """
    grower = Grower.of_table(table, k, purpose, guarded, thread_count(threads), subtree)
    try:
        tree, begins = grower.tree(root_key(purpose.seed))
    finally:
        grower.close()
    return Growth(tree, grower.buffers[0], grower.columns, begins)
