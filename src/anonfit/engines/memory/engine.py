# SPDX-License-Identifier: Apache-2.0
"""The in-memory engine: packs coded rows, grows a tree over them with all cores, and routes rows to regions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import local
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.memory import growing
from anonfit.engines.memory.counting import count_rows
from anonfit.engines.memory.layout import MISSING, SIZE, SIZES, Columns, Rows, describe, make_scratch, pack, rows_of
from anonfit.engines.memory.splitting import FROM, GAP, HIGH, LOW, SPAN, TO, choose_split
from anonfit.engines.memory.trees import breadth_first, settle
from anonfit.engines.tree import Tree
from anonfit.privacy.k_anonymity import KAnonymity
from anonfit.tables.coded import CodedTable
from anonfit.threads import thread_count

__all__ = ["Growth", "grow"]

SUBTREE = 1 << 16
"""Nodes of fewer rows are grown by one thread, each with all nodes below it."""

Result = TypeVar("Result")


class _Node:
    """A node that waits to be split by all threads together."""

    __slots__ = ("buffer", "histogram", "number", "span", "start", "stop")

    def __init__(self, number: int, start: int, stop: int, buffer: int, span: Any, histogram: Any) -> None:
        self.number, self.start, self.stop, self.buffer = number, start, stop, buffer
        self.span, self.histogram = span, histogram


class _Grower:
    """Grows one tree: the top with all threads on one node at a time, then whole subtrees, one per thread."""

    def __init__(self, table: CodedTable, k: int, threads: int, subtree: int) -> None:
        self.columns, words = describe(table)
        self.rows = table.rows
        first = pack(table, self.columns, words, threads=threads)
        self.buffers = (first, rows_of(np.empty_like(first.words)))
        self.k = k
        self.subtree_rows = subtree
        self.threads = threads
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self.own = local()
        self.scratch = make_scratch(self.columns, table.rows)
        self.nodes = growing.new_nodes()
        self.used = 1

    def each(self, task: Callable[..., Result], *arguments: Iterable[Any]) -> list[Result]:
        return list(self.pool.map(task, *arguments) if self.pool else map(task, *arguments))

    def bounds(self, start: int, stop: int) -> tuple[list[int], list[int]]:
        """Equal runs of rows, one per thread."""
        edges = np.linspace(start, stop, self.threads + 1).astype(int).tolist()
        return edges[:-1], edges[1:]

    def count(self, buffer: int, start: int, stop: int) -> NDArray[np.int64]:
        """The histogram of some rows, counted by all threads."""

        def task(begin: int, end: int) -> NDArray[np.int64]:
            histogram = np.zeros(self.columns.bins, np.int64)
            count_rows(self.buffers[buffer], self.columns, begin, end, 1, histogram)
            return histogram

        total: NDArray[np.int64] = np.sum(self.each(task, *self.bounds(start, stop)), axis=0)
        return total

    def root(self) -> _Node:
        """The node of all rows."""
        facts = self.columns.facts
        span = np.zeros((SPAN, facts.shape[1]), np.int64)
        span[FROM], span[TO] = 0, facts[SIZE] - 1
        span[LOW], span[HIGH], span[GAP] = facts[MISSING], facts[SIZE] - 1, facts[MISSING]
        return _Node(0, 0, self.rows, 0, span, self.count(0, 0, self.rows))

    def partition(self, node: _Node, column: int, parts: int) -> list[tuple[int, int]]:
        """Move a node's rows to their parts with two threads; the run of each part in the other buffer."""
        source, target = self.buffers[node.buffer], self.buffers[1 - node.buffer]
        lists = self.scratch.lists
        sizes = lists[SIZES, :parts].copy()
        if self.columns.counts >= 0:
            growing.count_parts(source, self.columns, column, parts, node.start, node.stop, lists, sizes)
        edges = node.start + np.concatenate([[0], np.cumsum(sizes)])
        middle = (node.start + node.stop) // 2

        def move(start: int, stop: int, step: int, places: NDArray[np.int64]) -> None:
            growing.scatter(source, target, self.columns, column, parts, start, stop, step, lists, places)

        self.each(move, (node.start, node.stop - 1), (middle, middle - 1), (1, -1), (edges[:-1].copy(), edges[1:] - 1))
        return [(int(edges[part]), int(edges[part + 1])) for part in range(parts)]

    def split(self, node: _Node) -> list[_Node]:
        """Split a large node; its parts that have rows, or nothing if it is a region."""
        rows = self.buffers[node.buffer]
        column, parts, below = choose_split(
            rows, self.columns, node.start, node.stop, node.histogram, self.k, node.span, self.scratch
        )
        if column < 0:
            self.nodes, self.used = growing.finish(
                self.nodes,
                self.used,
                node.number,
                rows,
                self.columns,
                node.start,
                node.stop,
                node.buffer,
                node.span,
            )
            return []
        self.nodes, self.used, first = growing.attach(
            self.nodes,
            self.used,
            node.number,
            self.columns,
            column,
            parts,
            below,
            node.span,
            self.scratch.lists,
        )
        runs = self.partition(node, column, parts)
        largest = max(range(parts), key=lambda part: runs[part][1] - runs[part][0])
        rest = node.histogram
        found = []
        for part, (start, stop) in enumerate(runs):
            if start == stop:
                continue
            span = np.empty_like(node.span)
            growing.child_span(node.span, column, part, parts, self.scratch.lists, span)
            histogram = None
            if part != largest:
                histogram = self.count(1 - node.buffer, start, stop)
                rest = rest - histogram
            found.append(_Node(first + part, start, stop, 1 - node.buffer, span, histogram))
        for child in found:
            if child.histogram is None:
                child.histogram = rest
        return found

    def subtree(self, node: _Node) -> NDArray[np.int64]:
        if not hasattr(self.own, "scratch"):
            self.own.scratch = make_scratch(self.columns, self.rows)
        found: NDArray[np.int64] = growing.grow_subtree(
            *self.buffers,
            self.columns,
            node.start,
            node.stop,
            node.buffer,
            node.histogram,
            self.k,
            node.span,
            self.own.scratch,
        )
        return found

    def grow(self) -> NDArray[np.int64]:
        """All nodes of the tree, in no particular order but with the root first."""
        limit = max(self.subtree_rows, self.rows // (4 * self.threads)) if self.pool else self.rows
        waiting, small = [self.root()], []
        while waiting:
            node = waiting.pop()
            if node.stop - node.start <= limit:
                small.append(node)
            else:
                waiting.extend(self.split(node))
        small.sort(key=lambda node: node.start - node.stop)
        top = self.nodes[: self.used]
        return _join(top, [node.number for node in small], self.each(self.subtree, small))

    def close(self) -> None:
        if self.pool:
            self.pool.shutdown()


def _join(top: NDArray[np.int64], numbers: list[int], subtrees: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Hang subtrees on the nodes of the top that they grew from."""
    used = len(top)
    blocks = [top]
    for number, subtree in zip(numbers, subtrees, strict=True):
        shift = used - 1
        splits = subtree[:, growing.CHILDREN] > 0
        subtree[splits, growing.CHILD] += shift
        kept = top[number, [growing.START, growing.BEFORE]]
        top[number] = subtree[0]
        top[number, [growing.START, growing.BEFORE]] = kept
        blocks.append(subtree[1:])
        used += len(subtree) - 1
    return np.concatenate(blocks)


@dataclass(frozen=True, slots=True)
class Growth:
    """A grown tree over codes, and the packed rows in the order of its regions."""

    tree: Tree
    rows: Rows
    columns: Columns

    @property
    def numbers(self) -> NDArray[np.uint32]:
        """The number in the table of each packed row."""
        return self.rows.quarters[:, self.columns.number]


def grow(table: CodedTable, model: KAnonymity, *, threads: int | None = None, subtree: int = SUBTREE) -> Growth:
    """Grow a Median Mondrian tree in which the model allows every region that has rows.

    Nodes of at most `subtree` rows are left to one thread.
    """
    grower = _Grower(table, model.k, thread_count(threads), subtree)
    try:
        nodes = grower.grow()
    finally:
        grower.close()
    settle(nodes, *grower.buffers)
    return Growth(breadth_first(nodes), grower.buffers[0], grower.columns)
