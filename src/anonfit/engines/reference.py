# SPDX-License-Identifier: Apache-2.0
"""A plain engine that every other one is tested against: Median Mondrian in the words of the definition, with no
regard to speed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from anonfit.counts.measures import Layout
from anonfit.criteria.median import Median
from anonfit.engines.tree import LEAF, Tree
from anonfit.privacy.models import PrivacyModel
from anonfit.tables.coded import MISSING, CodedColumn, CodedTable, SplitMode
from anonfit.tables.taxonomy import Taxonomy

__all__ = ["grow"]

Parts = list[list[int]]


@dataclass
class _Node:
    """Rows of the table, the codes each column's tile holds, and what became of it."""

    rows: list[int]
    tile: list[list[int]]
    start: int = 0
    before: int = -1
    column: int = LEAF
    children: list[_Node] = field(default_factory=list)


class _Reference:
    def __init__(self, table: CodedTable, model: PrivacyModel, criterion: Median) -> None:
        self.model = model
        self.criterion = criterion
        self.columns = table.columns
        self.codes = [[int(code) for code in codes] for codes in table.codes]
        self.counts = None if table.counts is None else [int(count) for count in table.counts]
        self.entities = None if table.entities is None else [int(entity) for entity in table.entities]
        weights = np.ones(table.rows, np.int64) if table.counts is None else table.counts.astype(np.int64)
        self.additions = Layout(model.measures).of_rows(weights)  # (row, sum)

    def weight(self, rows: Iterable[int]) -> int:
        """How much rows weigh where the median is sought: a row once, or as often as its count."""
        return sum(self.counts[row] if self.counts else 1 for row in rows)

    def legal(self, rows: Sequence[int]) -> bool:
        sums = self.additions[list(rows)].sum(axis=0)
        if self.entities:
            sums[0] = len({self.entities[row] for row in rows})
        return bool(self.model.allows(sums))

    def within(self, node: _Node, column: int, codes: Iterable[int]) -> list[int]:
        wanted = set(codes)
        return [row for row in node.rows if self.codes[column][row] in wanted]

    def known(self, node: _Node, index: int) -> tuple[list[int], bool]:
        """The codes the node's rows have beside missing, ascending, and whether some are missing."""
        present = sorted({self.codes[index][row] for row in node.rows})
        gap = self.columns[index].has_missing and MISSING in present
        return (present[1:] if gap else present), gap

    def cover(self, node: _Node, index: int) -> tuple[int, list[int]]:
        """The taxonomy node that free descents lead to, and the codes of the tile that remain there."""
        column = self.columns[index]
        taxonomy, shift = _taxonomy(column), int(column.has_missing)
        known, gap = self.known(node, index)
        if not known:
            return 0, [MISSING]
        found = 0
        for candidate in range(len(taxonomy.names)):
            leaves = _codes_below(taxonomy, candidate, shift)
            on_first_path = not gap or leaves[0] == shift
            if set(known) <= set(leaves) and on_first_path:
                found = candidate
        below = set(_codes_below(taxonomy, found, shift)) | ({MISSING} if gap else set())
        return found, [code for code in node.tile[index] if code in below]

    def spread(self, node: _Node, index: int) -> float:
        column = self.columns[index]
        known, gap = self.known(node, index)
        if len(known) + gap < 2 or not known:
            return -1.0
        shift = int(column.has_missing)
        whole = float(column.size - shift - 1)
        part = float(len(known) - 1)
        if column.mode == SplitMode.ORDERED:
            whole = float(column.positions[-1] - column.positions[shift])
            part = float(column.positions[known[-1]] - column.positions[known[0]])
        elif column.mode != SplitMode.SUBSET:
            part = float(len(self.cover(node, index)[1]) - gap - 1)
        return part * (1.0 / whole) if whole > 0 else 0.0

    def elements(self, node: _Node, index: int) -> Parts:
        """The pieces that a cut may part: codes, or missing and the children of a taxonomy node."""
        column = self.columns[index]
        known, gap = self.known(node, index)
        if column.mode in (SplitMode.ORDERED, SplitMode.SUBSET):
            return [[code] for code in ([MISSING] if gap else []) + known]
        taxonomy, shift = _taxonomy(column), int(column.has_missing)
        top, tile = self.cover(node, index)
        below = [child for child, parent in enumerate(taxonomy.parents) if parent == top] or [top]
        pieces = [[code for code in _codes_below(taxonomy, child, shift) if code in tile] for child in below]
        return ([[MISSING]] if gap else []) + [piece for piece in pieces if piece]

    def two_way(self, node: _Node, index: int) -> Parts | None:
        """The median cut, or the nearest legal one in rows."""
        pieces = [piece for piece in self.elements(node, index) if self.within(node, index, piece)]
        total = self.weight(node.rows)
        options = []
        for cut in range(1, len(pieces)):
            left = self.within(node, index, joined(pieces[:cut]))
            right = self.within(node, index, joined(pieces[cut:]))
            if self.legal(left) and self.legal(right):
                last = self.weight(self.within(node, index, pieces[cut - 1]))
                options.append((self.criterion.distance(self.weight(left), last, total), cut))
        if not options:
            return None
        cut = min(options)[1]
        return [joined(pieces[:cut]), joined(pieces[cut:])]

    def multiway(self, node: _Node, index: int) -> Parts | None:
        """Every child apart; missing alone if it may be, otherwise with the first child."""
        pieces = self.elements(node, index)
        gap = self.known(node, index)[1]
        for parts in [pieces, [pieces[0] + pieces[1], *pieces[2:]]] if gap and len(pieces) > 2 else [pieces]:
            filled = [rows for rows in (self.within(node, index, part) for part in parts) if rows]
            if len(filled) > 1 and all(self.legal(rows) for rows in filled):
                return parts
        return None

    def choose(self, node: _Node) -> tuple[int, Parts] | None:
        spread = [self.spread(node, index) for index in range(len(self.columns))]
        while (best := self.criterion.prefer(spread)) >= 0:
            way = self.multiway if self.columns[best].mode == SplitMode.MULTIWAY else self.two_way
            if parts := way(node, best):
                return best, parts
            spread[best] = -1.0
        return None

    def divide(self, node: _Node, index: int, starts: list[int]) -> list[_Node]:
        """Give a node children that take runs of its tile from `starts` on."""
        tile = node.tile[index]
        node.column = index
        for start, end in zip(starts, [*starts[1:], tile[-1] + 1], strict=True):
            codes = [code for code in tile if start <= code < end]
            tiles = [*node.tile[:index], codes, *node.tile[index + 1 :]]
            node.children.append(_Node(self.within(node, index, codes), tiles, start))
        return node.children

    def narrow(self, node: _Node, index: int) -> _Node:
        """Free descent: the node that holds the rows, after cutting away what the taxonomy leaves empty."""
        tile, kept = node.tile[index], self.cover(node, index)[1]
        if kept == tile:
            return node
        starts = sorted({tile[0], kept[0]} | ({kept[-1] + 1} if kept[-1] < tile[-1] else set()))
        return next(child for child in self.divide(node, index, starts) if child.rows)

    def grow(self, node: _Node) -> None:
        choice = self.choose(node)
        if choice is None:
            for index, column in enumerate(self.columns):
                if column.mode >= SplitMode.BINARY:
                    node = self.narrow(node, index)
            return
        index, parts = choice
        if self.columns[index].mode >= SplitMode.BINARY:
            node = self.narrow(node, index)
        starts = [node.tile[index][0]] + [part[0] for part in parts[1:]]
        children = self.divide(node, index, starts)
        if self.columns[index].mode == SplitMode.ORDERED:
            children[1].before = max(self.codes[index][row] for row in children[0].rows)
        for child in children:
            if child.rows:
                self.grow(child)


def joined(pieces: Parts) -> list[int]:
    """The codes of several pieces."""
    return [code for piece in pieces for code in piece]


def _taxonomy(column: CodedColumn) -> Taxonomy:
    assert column.taxonomy is not None
    return column.taxonomy


def _codes_below(taxonomy: Taxonomy, node: int, shift: int) -> list[int]:
    return list(range(taxonomy.first_leaf[node] + shift, taxonomy.last_leaf[node] + shift + 1))


def grow(table: CodedTable, model: PrivacyModel, criterion: Median) -> Tree:
    """Grow a Mondrian tree in which the privacy model allows every region that has rows."""
    reference = _Reference(table, model, criterion)
    root = _Node(list(range(table.rows)), [list(range(column.size)) for column in table.columns])
    reference.grow(root)
    nodes: list[_Node] = []
    waiting = deque([root])
    while waiting:
        nodes.append(waiting.popleft())
        waiting.extend(nodes[-1].children)
    return Tree(
        column=np.array([node.column for node in nodes], dtype=np.int32),
        children=np.array([len(node.children) for node in nodes], dtype=np.int32),
        start=np.array([node.start for node in nodes], dtype=np.int32),
        before=np.array([node.before for node in nodes], dtype=np.int32),
        set_of=np.full(len(nodes), -1, dtype=np.int32),
    )
