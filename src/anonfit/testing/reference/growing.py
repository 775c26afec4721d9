# SPDX-License-Identifier: Apache-2.0
"""How the plain engine grows a tree: a node's split is chosen by selections as long as they gain by it, so that fewer
persons are in regions that a selection only touches; then by targets or blind.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.objectives import MEDIAN, TIE, SplitObjective, child_key, root_key
from anonfit.criteria.targets import CodedSelections
from anonfit.engines.tree import Tree
from anonfit.tables.schema import MISSING, CodedTable, SplitMode
from anonfit.testing.reference.choosing import Blind, Guided
from anonfit.testing.reference.records import Diverse, Parts, PlainNode, PlainSplit, Records, joined


class Selecting:
    """The split after which selections retrieve the fewest persons."""

    def __init__(self, records: Records, purpose: SplitObjective, selections: CodedSelections) -> None:
        self.records = records
        self.purpose = purpose
        self.selections = selections
        self.signatures = [int(signature) for signature in selections.signatures]
        ends = np.cumsum([column.size for column in records.columns]).tolist()
        self.firsts = [0, *ends[:-1]]  # (column,) where its codes stand among those of all columns

    def touched(self, column: int, codes: Sequence[int]) -> NDArray[np.bool_]:
        """Which rectangles have one of these codes. (rectangle,)"""
        places = [self.firsts[column] + code for code in codes]
        return np.asarray(self.selections.rectangles[:, places].any(axis=1))

    def retrieved(self, rows: Sequence[int], meets: NDArray[np.bool_]) -> float:
        """The weighted mass of rows that selections retrieve from a region, given the rectangles that meet it."""
        selections = self.selections
        masses = [0] * len(selections.applies)  # (signature,)
        for row in rows:
            masses[self.signatures[row]] += self.records.masses[row]
        total = 0.0
        for selection, weight in enumerate(selections.shares.tolist()):
            for signature, mass in enumerate(masses):
                if np.any(meets & (selections.selection == selection) & (selections.applies[signature] == 1)):
                    total += float(weight) * float(mass)
        return total

    def meets(self, node: PlainNode, but: int = -1) -> NDArray[np.bool_]:
        """Which rectangles have a code in common with a node's tile in every column (but one). (rectangle,)"""
        met = np.ones(len(self.selections.rectangles), np.bool_)
        for column, codes in enumerate(node.tile):
            if column != but:
                met &= self.touched(column, codes)
        return met

    def split_retrieved(self, node: PlainNode, column: int, parts: Parts) -> float:
        """The weighted mass that selections retrieve from all parts of a split."""
        beside = self.meets(node, but=column)
        total = 0.0
        for part in parts:
            total += self.retrieved(self.records.within(node, column, part), beside & self.touched(column, part))
        return total

    def first_selection(self, column: int, piece: Sequence[int]) -> int:
        """The lowest number of a selection that reaches a code of an element."""
        reached = self.selections.selection[self.touched(column, piece)].tolist()
        return min(reached, default=len(self.selections.weights))

    def candidates(self, node: PlainNode, column: int) -> Iterator[Parts]:
        """The legal splits of a column, in the order in which they are compared."""
        records, tile = self.records, node.tile[column]
        mode = records.columns[column].mode
        if mode == SplitMode.MULTIWAY:
            parts = records.multiway(node, column)
            options = [parts] if parts else []
        elif mode == SplitMode.ORDERED:
            known, gap = records.known(node, column)
            lowest = MISSING if gap else known[0]
            cuts = range(lowest + 1, known[-1] + 1)
            options = [[[code for code in tile if code < cut], [code for code in tile if code >= cut]] for cut in cuts]
        else:
            pieces = [[code] for code in tile] if mode == SplitMode.SUBSET else records.elements(node, column)
            order = sorted(pieces, key=lambda piece: self.first_selection(column, piece))
            options = [[joined(order[:cut]), joined(order[cut:])] for cut in range(1, len(order))]
        for parts in options:
            if mode == SplitMode.MULTIWAY or records.all_legal(node, column, parts):
                yield parts

    def split_of(self, column: int, parts: Parts) -> PlainSplit:
        """A split as it is kept; an ordered one may lie exactly at the boundary of a rectangle."""
        mode = self.records.columns[column].mode
        at_boundary = mode == SplitMode.ORDERED and bool(self.selections.boundaries[self.firsts[column] + parts[1][0]])
        return PlainSplit(column, parts, is_set=mode in (SplitMode.SUBSET, SplitMode.BINARY), at_boundary=at_boundary)

    def best_of(self, node: PlainNode, column: int) -> tuple[Parts, float] | None:
        """The best split of a column and what is retrieved after it per mass, if there is a legal one."""
        mass = self.records.mass(node.rows)
        best: tuple[Parts, float] | None = None
        for parts in self.candidates(node, column):
            mean = self.split_retrieved(node, column, parts) / mass
            if best is None or mean < best[1] - TIE:
                best = parts, mean
        return best

    def choose(self, node: PlainNode) -> PlainSplit | None:
        """The split of a node that reduces what is retrieved, if there is one."""
        best: PlainSplit | None = None
        best_mean, best_spread = 0.0, 0.0
        for column in range(len(self.records.columns)):
            spread = self.records.spread(node, column)
            offer = self.best_of(node, column) if spread >= 0 and self.purpose.may_split(column) else None
            if offer is None:
                continue
            parts, mean = offer
            wider = mean <= best_mean + TIE and spread > best_spread + TIE
            if best is None or mean < best_mean - TIE or wider:
                best, best_mean, best_spread = self.split_of(column, parts), mean, spread
        before = self.retrieved(node.rows, self.meets(node)) / self.records.mass(node.rows)
        return best if best is not None and before - best_mean > TIE else None


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
