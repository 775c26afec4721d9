# SPDX-License-Identifier: Apache-2.0
"""Growing a tree level by level: an engine counts the nodes of a level, the kernels choose their splits from the
counts, the engine routes the rows. Nodes that are small enough are handed over and finished in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.chance import child_key, root_key
from anonfit.engines.contract import CountRequest, Engine, Finishing, Move
from anonfit.engines.levels.counts import count_nodes, whole_table
from anonfit.engines.levels.finishing import Finisher, Subtrees
from anonfit.engines.levels.shape import PERSONS, Layout, Shape, code_name, sensitive_name
from anonfit.engines.memory import growing
from anonfit.engines.memory.engine import draw_by_key, join_subtrees, root_span
from anonfit.engines.memory.guard import ABSENT
from anonfit.engines.memory.layout import SIZE, Rows, rows_of
from anonfit.engines.memory.scratch import PARTS, SIZES, make_scratch
from anonfit.engines.memory.selecting import Split
from anonfit.engines.memory.spans import child_span, child_tile
from anonfit.engines.memory.splitting import choose_split
from anonfit.engines.memory.structs import shared
from anonfit.engines.memory.trees import breadth_first, region_sizes
from anonfit.engines.tree import Tree
from anonfit.threads import thread_count

__all__ = ["HAND_OVER", "Grown", "grow_by_levels"]

HAND_OVER = 1 << 20
"""Nodes of at most so many rows are finished in memory."""


@dataclass(frozen=True, slots=True)
class Grown:
    """A tree over codes, how many rows each of its nodes has that is a region, and how many levels were counted
    outside.
    """

    tree: Tree
    sizes: NDArray[np.int64]  # (node,)
    levels: int


@dataclass(slots=True)
class _Node:
    """A node that waits to be split or handed over."""

    number: int
    rows: int
    span: NDArray[np.int64]
    tile: NDArray[np.uint8]
    key: int
    """What chance depends on."""
    taken: dict[int, Rows] = field(default_factory=dict)
    """For columns that models were asked of, the groups of codes and sensitive values that stand for the rows."""


class LevelGrower:
    """Grows one tree over an engine."""

    def __init__(self, engine: Engine, shape: Shape, k: int, hand_over: int, threads: int) -> None:
        self.engine, self.shape, self.k = engine, shape, k
        self.hand_over, self.threads = hand_over, threads
        whole = whole_table(engine, shape)
        self.layout = Layout.make(shape, whole, counted=True)
        self.finisher = Finisher(Layout.make(shape, whole, counted=False), k)
        self.columns, self.guide = shared(self.layout.columns), shared(self.layout.guide)
        self.guard = None if self.layout.guard is None else shared(self.layout.guard)
        self.rows = self.layout.pack({}, 1)
        self._make_scratch(1)
        self.nodes, self.used = growing.new_nodes(), 1
        self.members, self.filled = np.empty(64, np.int64), 0
        self.small: list[_Node] = []
        self.levels = 0

    def _make_scratch(self, rows: int) -> None:
        self.scratch = make_scratch(self.layout.columns, self.layout.guide, self.layout.guard, rows)
        self.scratch_rows, self.shared_scratch = rows, shared(self.scratch)

    def grow(self, told: Callable[[int, int], None] | None = None) -> Grown:
        """The tree of all nodes; `told` hears the level and how many nodes are counted in it."""
        span, tile = root_span(self.layout.columns)
        root = _Node(0, self.engine.rows, span, tile, root_key(self.shape.purpose.seed))
        waiting, finished = [root], []
        if root.rows <= self.hand_over:
            waiting, finished = [], [0]
            self.small.append(root)
        while waiting:
            self.levels += 1
            if told is not None:
                told(self.levels, len(waiting))
            moves, children, regions = self.split_level(waiting)
            sizes = self.engine.route(moves, [*finished, *regions])
            waiting, finished = [], []
            for child in children:
                child.rows = sizes[child.number]
                if child.rows <= self.hand_over:
                    self.small.append(child)
                    finished.append(child.number)
                else:
                    waiting.append(child)
        if finished:
            self.engine.route([], finished)
        return self.finish()

    def split_level(self, waiting: list[_Node]) -> tuple[list[Move], list[_Node], list[int]]:
        """Split the nodes of a level: what engines do for it, the parts that have rows, and nodes that stay whole."""
        histograms = count_nodes(self.engine, self.layout, [node.number for node in waiting])
        moves: list[Move] = []
        children: list[_Node] = []
        regions: list[int] = []
        while waiting:
            asking: dict[int, list[_Node]] = {}
            for node in waiting:
                histogram = histograms.of(node.number)
                split = self.choose(node, histogram)
                if split[0] <= ABSENT:
                    asking.setdefault(ABSENT - split[0], []).append(node)
                elif split[0] < 0:
                    self._end(node, histogram)
                    regions.append(node.number)
                else:
                    move, parts = self._attach(node, split)
                    moves.append(move)
                    children += parts
            self._take_groups(asking)
            waiting = [node for nodes in asking.values() for node in nodes]
        return moves, children, regions

    def choose(self, node: _Node, histogram: NDArray[np.int64]) -> Split:
        """A node's split from its counts."""
        rows = self.rows
        if self.layout.guard is not None:
            taken = self.layout.guard.taken
            taken[:] = ABSENT
            blocks, used = [self.rows.words], 1
            for column, groups in node.taken.items():
                taken[:, column] = used, used + len(groups.words)
                blocks.append(groups.words)
                used += len(groups.words)
            if used > self.scratch_rows:
                self._make_scratch(used)
            rows = rows_of(np.concatenate(blocks))
        if self.shape.purpose.by_chance:
            draw_by_key(node.key, self.scratch)
        given = shared(rows)  # held while the kernel runs
        chosen: Split = choose_split(
            given,
            self.columns,
            self.guide,
            self.k,
            self.guard,
            0,
            0,
            histogram,
            node.span,
            node.tile,
            self.shared_scratch,
        )
        return chosen

    def _take_groups(self, asking: dict[int, list[_Node]]) -> None:
        """Get the groups that models must be asked of, for each column and the nodes that need them."""
        names = tuple(sensitive_name(one) for one in range(len(self.shape.guarded)))
        columns = list(asking)
        requests = [
            CountRequest(
                tuple(node.number for node in asking[column]), (code_name(column), *names), (self.shape.persons,)
            )
            for column in columns
        ]
        for column, request, counted in zip(columns, requests, self.engine.count(requests), strict=True):
            order = np.argsort(counted.nodes, kind="stable")
            edges = np.searchsorted(counted.nodes[order], [request.nodes, [one + 1 for one in request.nodes]])
            for index, node in enumerate(asking[column]):
                chosen = order[edges[0, index] : edges[1, index]]
                values: dict[str, NDArray[Any]] = dict(zip(request.by, counted.by[:, chosen], strict=True))
                values[PERSONS] = counted.sums[0, chosen]
                node.taken[column] = self.layout.pack(values, len(chosen))

    def _end(self, node: _Node, histogram: NDArray[np.int64]) -> None:
        """Make a node a region."""
        self.nodes, self.used = growing.finish(
            self.nodes,
            self.used,
            node.number,
            shared(self.rows),
            self.columns,
            self.guide,
            0,
            node.rows,
            0,
            histogram,
            node.span,
            node.tile,
        )

    def _attach(self, node: _Node, split: Split) -> tuple[Move, list[_Node]]:
        """Write a chosen split into the tree."""
        column, parts, before, by_set = split
        lists, side = self.scratch.lists, self.scratch.side
        sizes = lists[SIZES, :parts].copy()
        self.nodes, self.used, first, self.members, self.filled = growing.attach(
            self.nodes,
            self.used,
            node.number,
            self.columns,
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
        children = []
        for part in range(parts):
            if sizes[part] == 0:
                continue
            span, tile = np.empty_like(node.span), node.tile.copy()
            if by_set:
                child_tile(self.columns, node.span, node.tile, column, part, side, span, tile)
            else:
                child_span(self.columns, node.span, node.tile, column, part, parts, lists, span, tile)
            children.append(_Node(int(first) + part, 0, span, tile, child_key(node.key, part)))
        return self._move(node.number, split, int(first)), children

    def _move(self, number: int, split: Split, first: int) -> Move:
        column, parts, _, by_set = (int(one) for one in split)
        if by_set:
            size = int(self.layout.columns.facts[SIZE, column])
            members = np.flatnonzero(self.scratch.side[:size] == 0).tolist()
            return Move(number, code_name(column), first, members=tuple(members))
        return Move(number, code_name(column), first, tuple(self.scratch.lists[PARTS, :parts].tolist()))

    def finish(self) -> Grown:
        """Finish the nodes that were handed over, all threads at work, and put the tree together."""
        sizes = {node.number: node.rows for node in self.small}
        grow = Subtrees(
            self.finisher,
            {node.number: node.key for node in self.small},
            {node.number: node.span for node in self.small},
            {node.number: node.tile for node in self.small},
        )
        numbers, subtrees = [], []
        for number, below, sets in self._finished(sizes, grow) if sizes else ():
            numbers.append(number)
            subtrees.append((below, sets))
        nodes, members = join_subtrees(self.nodes[: self.used], self.members[: self.filled], numbers, subtrees)
        return Grown(breadth_first(nodes, members), region_sizes(nodes), self.levels)

    def _finished(
        self, sizes: dict[int, int], grow: Subtrees
    ) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
        """The subtrees of small nodes, grown by the engine if it does that, else here."""
        if isinstance(self.engine, Finishing):
            yield from self.engine.finish(sizes, self.shape.names, grow)
            return
        taken = self.engine.take(sizes, self.shape.names)
        with ThreadPoolExecutor(self.threads) as pool:
            begun = ((number, pool.submit(grow, number, values)) for number, values in taken)
            for number, done in _few_ahead(begun, 2 * self.threads):
                yield number, *done.result()


def _few_ahead(items: Iterator[Any], count: int) -> Iterator[Any]:
    """The same items; at most so many are begun before the first of them is used."""
    begun: list[Any] = []
    for item in items:
        begun.append(item)
        if len(begun) > count:
            yield begun.pop(0)
    yield from begun


def grow_by_levels(
    engine: Engine,
    shape: Shape,
    k: int,
    *,
    hand_over: int = HAND_OVER,
    threads: int | None = None,
    told: Callable[[int, int], None] | None = None,
) -> Grown:
    """Grow a Mondrian tree over the rows of an engine: the same tree that they give in memory.

    Args:
        engine: Where the rows are, coded.
        shape: The table without its rows.
        k: How many persons every region must have.
        hand_over: Nodes of at most so many rows are finished in memory.
        threads: How many of them at once.
        told: Hears each level that is counted, and how many nodes it has.

    Returns:
        The tree.
    """
    return LevelGrower(engine, shape, k, hand_over, thread_count(threads)).grow(told)
