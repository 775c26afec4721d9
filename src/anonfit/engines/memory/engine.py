# SPDX-License-Identifier: Apache-2.0
"""Rows in a frame in memory: packed, and grown into a tree by compiled kernels with all threads. What growers of all
engines share comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from threading import local
from typing import Any, Self, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.criteria.objectives import MEDIAN, SplitObjective, child_key, exponential, root_key
from anonfit.engines.contract import Field
from anonfit.engines.memory import growing, layout
from anonfit.engines.memory.count import count_rows
from anonfit.engines.memory.forms import (
    CHANCE,
    RULE,
    SIZES,
    SLOTS,
    Constraint,
    KernelForms,
    NodeView,
    apart,
    kernel_forms,
    make_scratch,
    sorted_column,
    whole_of,
)
from anonfit.engines.memory.growing import Subtree, begins_of, breadth_first, join_subtrees, settle
from anonfit.engines.memory.layout import Columns, Rows, Shape, rows_of
from anonfit.engines.memory.packing import in_order_of, pack
from anonfit.engines.memory.route import count_parts, scatter
from anonfit.engines.memory.selecting import RowSelector, Selector, Split
from anonfit.engines.memory.splitting import BY_CHANCE, choose_split, signed_key
from anonfit.engines.tree import Tree
from anonfit.runtime.compiling import DirectCalls, called, shared
from anonfit.runtime.process import side_by_side, thread_count
from anonfit.tables.schema import CodedTable, Codes, Persons


def root_span(columns: Columns) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The span and the tile of all rows."""
    facts = columns.facts
    span = np.zeros((layout.SPAN, facts.shape[1]), np.int64)
    span[[layout.LOW, layout.GAP]] = facts[layout.MISSING]
    span[[layout.TO, layout.HIGH]] = facts[layout.SIZE] - 1
    return span, np.ones(columns.tile, np.uint8)


def count_run(rows: Rows, forms: KernelForms, given: KernelForms, start: int, stop: int) -> NDArray[np.int64]:
    """The histogram of a run of rows, which are shared with the kernel as the forms `given` are."""
    histogram = apart(forms.columns.bins * int(forms.objective.settings[SLOTS]), np.int64)
    count_rows(rows, given.columns, given.objective, start, stop, 1, histogram)
    return histogram


@dataclass(slots=True)
class OpenNode:
    """A node that is not split yet."""

    number: int
    span: NDArray[np.int64]
    tile: NDArray[np.uint8]
    key: int
    """What chance depends on."""
    selecting: bool
    """Whether it is still split for selections, where that gains."""


class TreeGrower:
    """A tree under way as kernels write it, and the working memory in which its splits are chosen."""

    def __init__(self, forms: KernelForms, k: int) -> None:
        self.forms, self.k = forms, k
        self.columns, self.objective, self.constraints = forms
        self.shared_forms = forms.shared()
        self.by_chance = self.objective.settings[RULE] == BY_CHANCE
        self.nodes, self.used = growing.new_nodes(), 1
        self.members, self.filled = np.empty(64, np.int64), 0
        self.call: Callable[..., Any] = called

    def make_scratch(self, rows: int) -> None:
        """Make working memory for nodes of so many rows."""
        self.scratch = make_scratch(self.forms, rows)
        self.shared_scratch = shared(self.scratch)

    def view(self, node: OpenNode, rows: Rows, start: int, stop: int, histogram: NDArray[np.int64]) -> NodeView:
        """A node as kernels see it; `rows` are shared with these."""
        columns, objective, _ = self.shared_forms
        of_node = start, stop, histogram, node.span, node.tile
        return NodeView(rows, columns, objective, self.shared_scratch, self.k, *of_node)

    def best_split(self, node: OpenNode, view: NodeView) -> Split:
        """A node's split by the targets or the median."""
        if self.by_chance:
            numbers = [exponential(node.key, column) for column in range(self.scratch.splits.shape[1])]
            self.scratch.splits[CHANCE] = numbers
        chosen: Split = self.call(choose_split, view, self.shared_forms.constraints)
        return chosen

    def make_region(self, node: OpenNode, view: NodeView, buffer: int) -> None:
        """Make a node a region."""
        self.nodes, self.used = self.call(growing.finish, self.nodes, self.used, node.number, view, buffer)

    def write_split(self, node: OpenNode, view: NodeView, split: Split) -> int:
        """Write a chosen split into the tree; the number of its first part."""
        own = self.members, self.filled
        self.nodes, self.used, first, self.members, self.filled = self.call(
            growing.attach, self.nodes, self.used, node.number, view, split, *own
        )
        return int(first)

    def part_of(self, view: NodeView, split: Split, part: int) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """The span and the tile of a part of a split."""
        span, tile = np.empty_like(view.span), np.empty_like(view.tile)
        self.call(growing.child_span, view, split, part, span, tile)
        return span, tile


SUBTREE = 1 << 16
"""Nodes of fewer rows are grown by one thread, each with all nodes below it."""

SHARE = 2
"""How many subtrees each thread should have at least, so that all end at about the same time."""

FEW = 1 << 12
"""Nodes of fewer rows are counted and moved before a second thread is awake."""

LARGE = 5 << 18
"""Nodes of more rows are worth the while of all threads."""

UNCOUNTED = np.empty(0, np.int64)
"""The histogram of a node whose rows are to be looked at."""

Result = TypeVar("Result")


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
        spare: Rows | None = None,
    ) -> None:
        """A tree over packed rows, which the forms describe; `spare` is as much memory that nobody needs any more."""
        super().__init__(forms, k)
        self.selector = selector
        self.call = DirectCalls()
        self.rows = len(first.words)
        self.make_scratch(self.rows)
        self.buffers = (first, spare or rows_of(np.empty_like(first.words)))
        self.shared_buffers = (shared(self.buffers[0]), shared(self.buffers[1]))
        self.subtree_rows = subtree
        self.threads = threads
        self.pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None
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
        spare, column = None, sorted_column(table, purpose, constraints)
        if column >= 0:
            field = (int(forms.columns.facts[fact, column]) for fact in (layout.BIT, layout.MASK, layout.SIZE))
            rows, spare = in_order_of(rows, *field, threads=threads), rows
            forms = forms._replace(columns=forms.columns._replace(sorted=column))
        return cls(rows, forms, k, selector=selector, threads=threads, subtree=subtree, spare=spare)

    def each(self, task: Callable[..., Result], *arguments: Iterable[Any], rows: int = FEW) -> list[Result]:
        """The results of a task for each of its arguments, made by all threads; of few rows by this one."""
        return side_by_side(self.pool if rows >= FEW else None, self.threads, task, *arguments)

    def bounds(self, start: int, stop: int) -> tuple[list[int], list[int]]:
        """Equal runs of rows, one per thread."""
        edges = np.linspace(start, stop, self.threads + 1).astype(int).tolist()
        return edges[:-1], edges[1:]

    def count(self, buffer: int, start: int, stop: int) -> NDArray[np.int64]:
        """The histogram of some rows, counted by all threads."""
        task = partial(count_run, self.shared_buffers[buffer], self.forms, self.shared_forms)
        total: NDArray[np.int64] = np.sum(self.each(task, *self.bounds(start, stop), rows=stop - start), axis=0)
        return total

    def root(self, span: NDArray[np.int64], tile: NDArray[np.uint8], key: int) -> WaitingNode:
        """The node of all rows."""
        selecting = self.selector is not None
        return WaitingNode(0, span, tile, key, selecting, 0, self.rows, 0, self.count(0, 0, self.rows))

    def partition(self, node: WaitingNode, view: NodeView, split: Split) -> list[tuple[int, int]]:
        """Move a node's rows to their parts with two threads; the run of each part in the other buffer."""
        target = self.shared_buffers[1 - node.buffer]
        sizes = self.scratch.lists[SIZES, : split[1]].copy()
        if self.columns.counts >= 0:
            count_parts(view, split, sizes)
        edges = node.start + np.concatenate([[0], np.cumsum(sizes)])
        middle = (node.start + node.stop) // 2

        def move(start: int, stop: int, step: int, places: NDArray[np.int64]) -> None:
            self.call(scatter, view, target, split, start, stop, step, places)

        forward, backward = (node.start, middle, 1, edges[:-1].copy()), (node.stop - 1, middle - 1, -1, edges[1:] - 1)
        self.each(move, *zip(forward, backward, strict=True), rows=node.stop - node.start)
        return list(pairwise(edges.tolist()))

    def choose(self, node: WaitingNode, view: NodeView) -> Split:
        """A large node's split: by selections as long as they gain, then by the targets or the median."""
        if node.selecting:
            assert self.selector is not None
            split = self.selector.choose(view, self.buffers[node.buffer], self.scratch)
            if split is not None:
                return split
            node.selecting = False
        return self.best_split(node, view)

    def split(self, node: WaitingNode) -> list[WaitingNode]:
        """Split a large node; its parts that have rows, or nothing if it is a region."""
        view = self.view(node, self.shared_buffers[node.buffer], node.start, node.stop, node.histogram)
        split = self.choose(node, view)
        if split[0] < 0:
            self.make_region(node, view._replace(histogram=UNCOUNTED), node.buffer)
            return []
        return self.parts(node, view, split, self.write_split(node, view, split))

    def parts(self, node: WaitingNode, view: NodeView, split: Split, first: int) -> list[WaitingNode]:
        """The parts of a split that have rows; the largest gets what is left of the node's histogram."""
        runs = self.partition(node, view, split)
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
            own = *self.part_of(view, split, part), child_key(node.key, part), node.selecting
            children.append(WaitingNode(first + part, *own, start, stop, 1 - node.buffer, histogram))
        for child in children:
            if child.histogram is None:
                child.histogram = rest
        return children

    def subtree(self, node: WaitingNode) -> Subtree:
        """The nodes below a small node and the members of their sets, found by one thread."""
        if not hasattr(self.own, "scratch"):
            self.own.scratch = shared(make_scratch(self.forms, self.largest))
        rows, other = self.shared_buffers[node.buffer], self.shared_buffers[1 - node.buffer]
        view = self.view(node, rows, node.start, node.stop, node.histogram)._replace(scratch=self.own.scratch)
        constraints = self.shared_forms.constraints
        grown: Subtree = growing.grow_subtree(view, other, constraints, node.buffer, signed_key(node.key))
        return grown

    def grow(self, root: WaitingNode) -> Subtree:
        """All nodes, and the members of their sets."""
        limit = self.rows
        if self.pool:
            limit = max(self.subtree_rows, min(self.rows // (SHARE * self.threads), LARGE))
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
        parts = np.array_split(nodes, self.threads)
        self.each(partial(settle, first=self.buffers[0].words, second=self.buffers[1].words), parts)
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


MOSTLY = 0.85
"""Columns of which a smaller share of values differs, roughly, need no exact count."""


class MemoryEngine:
    """The rows of a frame."""

    name = "memory"

    def __init__(self, frame: pl.DataFrame, *, read: int | None = None, persons_left_out: int = 0) -> None:
        """Rows of which the source has `read`, if not only these."""
        self.frame = frame
        self.read = len(frame) if read is None else read
        self.persons_left_out = persons_left_out
        self.codes: tuple[Codes, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.frame)

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The columns and their types."""
        return self.frame.schema

    @property
    def scan(self) -> pl.LazyFrame:
        """The rows."""
        return self.frame.lazy()

    def missing(self, names: Sequence[str]) -> dict[str, int]:
        """How many values are missing in columns that have missing values."""
        return {name: count for name in names if (count := self.frame[name].null_count())}

    def distinct_shares(self, names: Sequence[str]) -> dict[str, float]:
        """The share of different values among each column's known ones, 0 where it is far from 1."""
        shares = dict.fromkeys(names, 0.0)
        roughly = self.frame.lazy().select(pl.col(list(names)).approx_n_unique()).collect()
        for name in names:
            values = self.frame[name]
            known = len(values) - values.null_count()
            if known > 1 and roughly[name][0] >= MOSTLY * known:
                shares[name] = values.drop_nulls().n_unique() / known
        return shares

    def distinct(self, names: Sequence[str]) -> tuple[pl.DataFrame, None]:
        """The values of every row."""
        return self.frame.select(names), None

    def code(self, fields: Sequence[Field], kept: Sequence[str]) -> None:  # noqa: ARG002  the frame has all columns
        """Take the codes of all rows: those of the quasi-identifiers."""
        self.codes = tuple(field.codes for field in fields)

    def grow(self, shape: Shape, persons: Persons, k: int, *, threads: int | None) -> Growth:
        """The tree of the coded rows."""
        table = CodedTable(shape.columns, self.codes, self.rows, persons.counts, persons.entities)
        return grow(table, k, shape.purpose, constraints=shape.constraints, threads=threads)
