# SPDX-License-Identifier: Apache-2.0
"""How the plain engine grows a tree: a node's split is chosen by selections as long as they gain by it, then by
targets or blind.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from anonfit.criteria.objectives import MEDIAN, SplitObjective, child_key, root_key
from anonfit.engines.tree import Tree
from anonfit.tables.schema import CodedTable, SplitMode
from anonfit.testing.reference.choosing import Blind, Guided
from anonfit.testing.reference.records import Diverse, PlainNode, PlainSplit, Records
from anonfit.testing.reference.selecting import Selecting


class _Growing:
    def __init__(self, records: Records, purpose: SplitObjective) -> None:
        self.records = records
        self.purpose = purpose
        self.selecting = Selecting(records, purpose, purpose.selections) if purpose.selections is not None else None
        self.criterion = Guided(records, purpose) if purpose.targets else Blind(records, purpose)

    def choose(self, node: PlainNode) -> PlainSplit | None:
        """The split of a node; one that selections have nothing to gain from is theirs no more."""
        if self.selecting and node.selecting:
            if split := self.selecting.choose(node):
                return split
            node.selecting = False
        return self.criterion.choose(node)

    def child(self, node: PlainNode, index: int, codes: list[int], start: int) -> PlainNode:
        """Give a node a child that takes some codes of its tile."""
        tiles = [*node.tile[:index], codes, *node.tile[index + 1 :]]
        child = PlainNode(self.records.within(node, index, codes), tiles, node.selecting, start)
        node.column = index
        node.children.append(child)
        return child

    def divide(self, node: PlainNode, index: int, starts: list[int]) -> list[PlainNode]:
        """Give a node children that take runs of its tile from `starts` on."""
        tile = node.tile[index]
        for start, end in zip(starts, [*starts[1:], tile[-1] + 1], strict=True):
            self.child(node, index, [code for code in tile if start <= code < end], start)
        return node.children

    def divide_by_set(self, node: PlainNode, index: int, codes: list[int]) -> list[PlainNode]:
        """Give a node two children: one takes these codes, the other the rest of its tile."""
        node.first_set = sorted(codes)
        self.child(node, index, node.first_set, 0)
        self.child(node, index, [code for code in node.tile[index] if code not in codes], 0)
        return node.children

    def narrow(self, node: PlainNode, index: int) -> PlainNode:
        """Free descent: the node that holds the rows, after cutting away what the taxonomy leaves empty."""
        tile, kept = node.tile[index], self.records.cover(node, index)[1]
        if kept == tile:
            return node
        starts = sorted({tile[0], kept[0]} | ({kept[-1] + 1} if kept[-1] < tile[-1] else set()))
        return next(child for child in self.divide(node, index, starts) if child.rows)

    def narrow_all(self, node: PlainNode) -> None:
        """The free descents of a region."""
        for index, column in enumerate(self.records.columns):
            if column.mode >= SplitMode.BINARY and self.purpose.may_split(index):
                node = self.narrow(node, index)

    def apply(self, split: PlainSplit, node: PlainNode) -> list[PlainNode]:
        """Divide a node, after the free descent of the column that is split."""
        index = split.column
        mode = self.records.columns[index].mode
        if mode >= SplitMode.BINARY:
            node = self.narrow(node, index)
        if split.is_set:
            return self.divide_by_set(node, index, split.parts[0])
        children = self.divide(node, index, [node.tile[index][0]] + [part[0] for part in split.parts[1:]])
        if mode == SplitMode.ORDERED:
            highest = max(self.records.codes[index][row] for row in children[0].rows)
            children[1].before = children[1].start if split.at_boundary else highest
        return children

    def grow(self, node: PlainNode) -> None:
        split = self.choose(node)
        if split is None:
            self.narrow_all(node)
            return
        for part, child in enumerate(self.apply(split, node)):
            child.key = child_key(node.key, part)
            if child.rows:
                self.grow(child)


def _tree(root: PlainNode) -> Tree:
    """The nodes below a root as a tree, breadth first."""
    nodes: list[PlainNode] = []
    waiting = deque([root])
    while waiting:
        nodes.append(waiting.popleft())
        waiting.extend(nodes[-1].children)
    sets = [node.first_set for node in nodes if node.first_set is not None]
    has_set = np.array([node.first_set is not None for node in nodes])
    return Tree(
        column=np.array([node.column for node in nodes], dtype=np.int32),
        children=np.array([len(node.children) for node in nodes], dtype=np.int32),
        start=np.array([node.start for node in nodes], dtype=np.int32),
        before=np.array([node.before for node in nodes], dtype=np.int32),
        set_of=np.where(has_set, np.cumsum(has_set) - 1, -1).astype(np.int32),
        sets=tuple(np.array(codes, dtype=np.int32) for codes in sets),
    )


def grow(table: CodedTable, k: int, purpose: SplitObjective = MEDIAN, *, diversity: Sequence[Diverse] = ()) -> Tree:
    """Grow a Mondrian tree for a purpose.

    Args:
        table: The rows in codes.
        k: The persons that every region with rows must have.
        purpose: What chooses the splits.
        diversity: What every region with rows must hold of sensitive columns.

    Returns:
        The tree of splits over codes.
    """
    records = Records(table, k, purpose, diversity)
    growing = _Growing(records, purpose)
    root = PlainNode(list(range(table.rows)), [list(range(column.size)) for column in table.columns], selecting=True)
    root.key = root_key(purpose.seed)
    growing.grow(root)
    return _tree(root)
