# SPDX-License-Identifier: Apache-2.0
"""The in-memory engine: packs coded rows, grows a tree over them with all cores, and routes rows to regions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import local
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.objectives import MEDIAN, SplitObjective, child_key, root_key
from anonfit.engines.memory import growing
from anonfit.engines.memory.constraints import Constraint, add_constraint_fields, make_constraints
from anonfit.engines.memory.layout import (
    NARROW,
    Columns,
    Packing,
    Rows,
    TableFields,
    add_table_fields,
    describe,
    pack,
    rows_of,
    shared,
)
from anonfit.engines.memory.objective import (
    ObjectiveFields,
    Whole,
    add_objective_fields,
    make_objective,
    whole_of,
)
from anonfit.engines.memory.route import count_parts, scatter
from anonfit.engines.memory.scratch import SIZES, KernelForms, make_scratch
from anonfit.engines.memory.selecting import RowSelector, Selector, Split, View
from anonfit.engines.memory.trees import (
    OpenNode,
    Subtree,
    TreeGrower,
    begins_of,
    breadth_first,
    count_run,
    join_subtrees,
    root_span,
    settle,
    signed_key,
)
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


def packing_of(
    table: CodedTable, purpose: SplitObjective, constraints: Sequence[Constraint]
) -> tuple[Packing, TableFields, ObjectiveFields, tuple[int, ...]]:
    """How rows are packed, and the numbers of the fields of the table, the purpose and the constraints."""
    packing = Packing()
    fields = add_table_fields(table, packing)
    of_purpose, of_constraints = add_objective_fields(purpose, packing), add_constraint_fields(constraints, packing)
    packing.settle()
    return packing, fields, of_purpose, of_constraints


def kernel_forms(
    table: CodedTable,
    purpose: SplitObjective,
    constraints: Sequence[Constraint],
    whole: Whole,
    *,
    narrow_size: int = NARROW,
) -> tuple[Packing, KernelForms]:
    """How rows are packed, and what kernels read beside them."""
    packing, fields, of_purpose, of_constraints = packing_of(table, purpose, constraints)
    return packing, KernelForms(
        describe(table, packing, fields, tiled=tiled_modes(purpose), narrow_size=narrow_size),
        make_objective(purpose, whole, packing, of_purpose),
        make_constraints(constraints, packing, of_constraints, len(table.columns)) if constraints else None,
    )


@dataclass(slots=True)
class WaitingNode(OpenNode):
    """A node that waits to be split by all threads together: a run of rows in one of two buffers."""

    start: int
    stop: int
    buffer: int
    histogram: Any


class Grower(TreeGrower):
    """Grows one tree: the top with all threads on one node at a time, then whole subtrees, one per thread."""

    def __init__(
        self,
        first: Rows,
        forms: KernelForms,
        k: int,
        *,
        selector: RowSelector | None = None,
        threads: int = 1,
        subtree: int = SUBTREE,
    ) -> None:
        """A tree over packed rows, which the forms describe."""
        super().__init__(forms, k)
        self.selector = selector
        self.rows = len(first.words)
        self.make_scratch(self.rows)
        self.buffers = (first, rows_of(np.empty_like(first.words)))
        self.shared_buffers = (shared(self.buffers[0]), shared(self.buffers[1]))
        self.subtree_rows = subtree
        self.threads = threads
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self.own = local()

    @classmethod
    def of_table(
        cls,
        table: CodedTable,
        k: int,
        purpose: SplitObjective,
        constraints: Sequence[Constraint],
        threads: int,
        subtree: int,
    ) -> Self:
        """A tree over the rows of a table."""
        packing, forms = kernel_forms(table, purpose, constraints, whole_of(purpose, table))
        selector = None
        if purpose.selections is not None:
            chooser = Selector(table.columns, k, purpose.selections, constraints, forms.columns)
            selector = RowSelector(chooser, table, purpose, constraints)
        rows = pack(packing, table.rows, entities=table.entities, threads=threads)
        return cls(rows, forms, k, selector=selector, threads=threads, subtree=subtree)

    def each(self, task: Callable[..., Result], *arguments: Iterable[Any]) -> list[Result]:
        """The results of a task for each of its arguments, made by all threads."""
        return list(self.pool.map(task, *arguments) if self.pool else map(task, *arguments))

    def bounds(self, start: int, stop: int) -> tuple[list[int], list[int]]:
        """Equal runs of rows, one per thread."""
        edges = np.linspace(start, stop, self.threads + 1).astype(int).tolist()
        return edges[:-1], edges[1:]

    def count(self, buffer: int, start: int, stop: int) -> NDArray[np.int64]:
        """The histogram of some rows, counted by all threads."""
        task = partial(count_run, self.shared_buffers[buffer], self.forms, self.shared_forms)
        total: NDArray[np.int64] = np.sum(self.each(task, *self.bounds(start, stop)), axis=0)
        return total

    def root(self, span: NDArray[np.int64], tile: NDArray[np.uint8], key: int) -> WaitingNode:
        """The node of all rows."""
        selecting = self.selector is not None
        return WaitingNode(0, span, tile, key, selecting, 0, self.rows, 0, self.count(0, 0, self.rows))

    def partition(self, node: WaitingNode, split: Split) -> list[tuple[int, int]]:
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

    def choose(self, node: WaitingNode) -> Split:
        """A large node's split: by selections as long as they gain, then by the targets or the median."""
        rows = self.shared_buffers[node.buffer]
        if node.selecting:
            assert self.selector is not None
            kernels = rows, self.shared_columns, self.shared_objective, self.shared_scratch
            view = View(*kernels, node.start, node.stop, node.histogram, node.span, node.tile)
            split = self.selector.choose(view, self.buffers[node.buffer], self.scratch)
            if split is not None:
                return split
            node.selecting = False
        return self.best_split(node, rows, node.start, node.stop, node.histogram)

    def split(self, node: WaitingNode) -> list[WaitingNode]:
        """Split a large node; its parts that have rows, or nothing if it is a region."""
        split = self.choose(node)
        if split[0] < 0:
            rows = self.shared_buffers[node.buffer]
            self.make_region(node, rows, node.start, node.stop, node.buffer, UNCOUNTED)
            return []
        return self.parts(node, split, self.write_split(node, split))

    def parts(self, node: WaitingNode, split: Split, first: int) -> list[WaitingNode]:
        """The parts of a split that have rows; the largest gets what is left of the node's histogram."""
        runs = self.partition(node, split)
        largest = max(range(len(runs)), key=lambda part: runs[part][1] - runs[part][0])
        rest = node.histogram
        children = []
        for part, (start, stop) in enumerate(runs):
            if start == stop:
                continue
            histogram = None
            if part != largest:
                histogram = self.count(1 - node.buffer, start, stop)
                rest = rest - histogram
            own = *self.part_of(node, split, part), child_key(node.key, part), node.selecting
            children.append(WaitingNode(first + part, *own, start, stop, 1 - node.buffer, histogram))
        for child in children:
            if child.histogram is None:
                child.histogram = rest
        return children

    def subtree(self, node: WaitingNode) -> Subtree:
        """The nodes below a small node and the members of their sets, found by one thread."""
        if not hasattr(self.own, "scratch"):
            self.own.scratch = shared(make_scratch(self.forms, self.largest))
        grown: Subtree = growing.grow_subtree(
            *self.shared_buffers,
            self.shared_columns,
            self.shared_objective,
            self.k,
            self.shared_constraints,
            node.start,
            node.stop,
            node.buffer,
            signed_key(node.key),
            node.histogram,
            node.span,
            node.tile,
            self.own.scratch,
        )
        return grown

    def grow(self, root: WaitingNode) -> Subtree:
        """All nodes, and the members of their sets."""
        limit = max(self.subtree_rows, self.rows // self.threads) if self.pool else self.rows
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
    constraints: Sequence[Constraint] = (),
    threads: int | None = None,
    subtree: int = SUBTREE,
) -> Growth:
    """Grow a Mondrian tree in which every region that has rows has k persons and what the guarding models ask.

    Nodes of at most `subtree` rows are left to one thread.
    """
    grower = Grower.of_table(table, k, purpose, constraints, thread_count(threads), subtree)
    try:
        tree, begins = grower.tree(root_key(purpose.seed))
    finally:
        grower.close()
    return Growth(tree, grower.buffers[0], grower.columns, begins)
