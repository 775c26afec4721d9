# SPDX-License-Identifier: Apache-2.0
"""Growing a tree level by level: an engine counts the nodes of a level, the kernels choose their splits from the
counts, the engine routes the rows. Nodes that are small enough are handed over and finished in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.contract import Finishing, OutOfCore
from anonfit.engines.levels.splitting import KernelLayout, LevelNode, LevelSplitter
from anonfit.engines.memory.engine import Grower, OpenNode
from anonfit.engines.memory.growing import Subtree, breadth_first, join_subtrees, region_sizes
from anonfit.engines.memory.layout import Shape
from anonfit.engines.memory.selecting import RowSelector
from anonfit.engines.tree import Tree
from anonfit.runtime.process import thread_count


class Finisher:
    """Grows the subtree of any of the nodes that were handed over, given its rows; threads may share it, and it can be
    sent to another process.
    """

    def __init__(self, layout: KernelLayout, k: int, nodes: Mapping[int, OpenNode]) -> None:
        self.layout, self.k, self.nodes = layout, k, nodes
        self.selector = layout.selector(k)

    def __call__(self, number: int, values: Mapping[str, NDArray[Any]]) -> Subtree:
        """The nodes below the node of a number, which has these rows, and the members of their sets."""
        node, rows = self.nodes[number], len(next(iter(values.values())))
        selector = self._row_selector(values, rows) if node.selecting else None
        grower = Grower(self.layout.pack(values, rows), self.layout.forms, self.k, selector=selector)
        return grower.grow(grower.root(node.span, node.tile, node.key))

    def _row_selector(self, values: Mapping[str, NDArray[Any]], rows: int) -> RowSelector:
        """What still splits a node for selections."""
        shape = self.layout.shape
        table, purpose, constraints = shape.with_rows(values, rows, has_counts=shape.has_counts)
        assert self.selector is not None
        assert purpose.selections is not None
        signatures = shape.signatures.of([values[name] for name in shape.signature_names], rows)
        purpose = replace(purpose, selections=replace(purpose.selections, signatures=signatures))
        return RowSelector(self.selector, table, purpose, constraints)


HAND_OVER = 1 << 20
"""Nodes of at most so many rows are finished in memory."""


@dataclass(frozen=True, slots=True)
class Grown:
    """A tree over codes, the rows of each node that is a region, and how many levels were counted outside."""

    tree: Tree
    sizes: NDArray[np.int64]  # (node,)
    levels: int


class LevelGrower(LevelSplitter):
    """Grows a Mondrian tree over the rows of an engine, which are coded: the same tree that they give in memory. Nodes
    of at most `hand_over` rows are finished in memory, `threads` of them at once.
    """

    def __init__(self, engine: OutOfCore, shape: Shape, k: int, *, hand_over: int, threads: int | None) -> None:
        super().__init__(engine, shape, k, hand_over)
        self.engine, self.threads = engine, thread_count(threads)
        self.small: list[LevelNode] = []
        self.levels = 0

    def grow(self, on_level: Callable[[int, int], None], start: Start | None) -> Grown:
        """The tree of all nodes; `on_level` hears the level and how many nodes are counted in it. `start` splits a root
        that is not handed over in another way than by counting it; the tree is then another one than in memory.
        """
        waiting, finished = self._sorted_out([self.root()])
        if waiting and start is not None:
            waiting, finished = self._sorted_out(start(self, waiting[0]))
        while waiting:
            self.levels += 1
            on_level(self.levels, len(waiting))
            moves, children, regions = self.split_level(waiting)
            sizes = self.engine.route(moves, [*finished, *regions])
            for child in children:
                child.rows = sizes[child.number]
            waiting, finished = self._sorted_out(children)
        if finished:
            self.engine.route([], finished)
        return self.finish()

    def _sorted_out(self, nodes: list[LevelNode]) -> tuple[list[LevelNode], list[int]]:
        """The nodes that are to be counted, and the numbers of those that are handed over."""
        small = [node for node in nodes if node.rows <= self.hand_over]
        self.small += small
        return [node for node in nodes if node.rows > self.hand_over], [node.number for node in small]

    def finish(self) -> Grown:
        """Finish the nodes that were handed over, all threads at work, and put the tree together."""
        sizes = {node.number: node.rows for node in self.small}
        small = {
            node.number: OpenNode(node.number, node.span, node.tile, node.key, node.selecting) for node in self.small
        }
        grow = Finisher(KernelLayout.make(self.shape, self.whole, counted=False), self.k, small)
        numbers, subtrees = [], []
        for number, below, sets in self._finished(sizes, grow) if sizes else ():
            numbers.append(number)
            subtrees.append((below, sets))
        nodes, members = join_subtrees(self.nodes[: self.used], self.members[: self.filled], numbers, subtrees)
        return Grown(breadth_first(nodes, members), region_sizes(nodes), self.levels)

    def _finished(
        self, sizes: dict[int, int], grow: Finisher
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


Start: TypeAlias = Callable[[LevelGrower, LevelNode], list[LevelNode]]
"""What splits a root some other way: the nodes that its rows are in afterwards."""
