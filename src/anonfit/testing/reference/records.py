# SPDX-License-Identifier: Apache-2.0
"""The table of the plain engine: which groups of its rows may exist, and what a node could be divided into."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.objectives import SplitObjective, median_distance
from anonfit.engines.tree import LEAF
from anonfit.tables.schema import MISSING, CodedColumn, CodedTable, SplitMode
from anonfit.tables.taxonomy import Taxonomy

Parts = list[list[int]]
"""Codes of a column, in pieces that stand in an order."""


@dataclass(frozen=True, slots=True)
class Diverse:
    """A sensitive column, and whether a group with so many persons of each of its values may exist."""

    codes: NDArray[np.integer]  # (row,)
    size: int
    allows: Callable[[NDArray[np.int64]], bool]


@dataclass
class PlainNode:
    """Rows of the table, the codes each column's tile holds, and what became of it."""

    rows: list[int]
    tile: list[list[int]]
    selecting: bool
    start: int = 0
    before: int = -1
    column: int = LEAF
    first_set: list[int] | None = None
    key: int = 0
    children: list[PlainNode] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PlainSplit:
    """The codes of each part of a column, and where a cut lies if it lies exactly at the upper part's first code."""

    column: int
    parts: Parts
    is_set: bool
    at_boundary: bool = False


class Records:
    """The rows in plain lists, with what every criterion asks of them."""

    def __init__(self, table: CodedTable, k: int, purpose: SplitObjective, diversity: Sequence[Diverse]) -> None:
        self.k = k
        self.diversity = diversity
        self.columns = table.columns
        self.codes = [[int(code) for code in codes] for codes in table.codes]
        self.persons = [1] * table.rows if table.counts is None else [int(count) for count in table.counts]
        self.entities = None if table.entities is None else [int(entity) for entity in table.entities]
        self.masses = self.persons if purpose.masses is None else [int(mass) for mass in purpose.masses]

    def weight(self, rows: Iterable[int]) -> int:
        """How much rows weigh where the median is sought: a row once, or as often as its count."""
        return sum(self.persons[row] for row in rows)

    def mass(self, rows: Iterable[int]) -> int:
        """How much rows weigh in targets and selections."""
        return sum(self.masses[row] for row in rows)

    def legal(self, rows: Sequence[int]) -> bool:
        """Whether rows may be a group: enough persons, and diverse ones."""
        if not rows:
            return False
        persons = self.weight(rows) if self.entities is None else len({self.entities[row] for row in rows})
        return persons >= self.k and all(sensitive.allows(self.counts(sensitive, rows)) for sensitive in self.diversity)

    def counts(self, sensitive: Diverse, rows: Iterable[int]) -> NDArray[np.int64]:
        """How many persons have each value of a sensitive column; a person with several values has each of them."""
        counts = np.zeros(sensitive.size, np.int64)
        if self.entities is None:
            for row in rows:
                counts[sensitive.codes[row]] += self.persons[row]
        else:
            for _, value in {(self.entities[row], int(sensitive.codes[row])) for row in rows}:
                counts[value] += 1
        return counts

    def within(self, node: PlainNode, column: int, codes: Iterable[int]) -> list[int]:
        """The node's rows that have one of these codes."""
        wanted = set(codes)
        return [row for row in node.rows if self.codes[column][row] in wanted]

    def all_legal(self, node: PlainNode, column: int, parts: Parts) -> bool:
        """Whether the rows of every part may be a group."""
        return all(self.legal(self.within(node, column, part)) for part in parts)

    def known(self, node: PlainNode, index: int) -> tuple[list[int], bool]:
        """The codes the node's rows have beside missing, ascending, and whether some are missing."""
        present = sorted({self.codes[index][row] for row in node.rows})
        gap = self.columns[index].has_missing and MISSING in present
        return (present[1:] if gap else present), gap

    def cover(self, node: PlainNode, index: int) -> tuple[int, list[int]]:
        """The taxonomy node that free descents lead to, and the codes of the tile that remain there."""
        column = self.columns[index]
        taxonomy, shift = _taxonomy(column), int(column.has_missing)
        known, gap = self.known(node, index)
        if not known:
            return 0, [MISSING]
        top = 0
        for candidate in range(len(taxonomy.names)):
            leaves = _codes_below(taxonomy, candidate, shift)
            on_first_path = not gap or leaves[0] == shift
            if set(known) <= set(leaves) and on_first_path:
                top = candidate
        below = set(_codes_below(taxonomy, top, shift)) | ({MISSING} if gap else set())
        return top, [code for code in node.tile[index] if code in below]

    def spread(self, node: PlainNode, index: int) -> float:
        """The normalized range of a column in a node; -1 where there is nothing to split."""
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

    def elements(self, node: PlainNode, index: int) -> Parts:
        """The pieces that a cut may part, by their codes: codes, or missing and the children of a taxonomy node."""
        column = self.columns[index]
        known, gap = self.known(node, index)
        if column.mode in (SplitMode.ORDERED, SplitMode.SUBSET):
            return [[code] for code in ([MISSING] if gap else []) + known]
        taxonomy, shift = _taxonomy(column), int(column.has_missing)
        top, tile = self.cover(node, index)
        below = [child for child, parent in enumerate(taxonomy.parents) if parent == top] or [top]
        pieces = [[code for code in _codes_below(taxonomy, child, shift) if code in tile] for child in below]
        return ([[MISSING]] if gap else []) + [piece for piece in pieces if piece]

    def filled(self, node: PlainNode, index: int) -> Parts:
        """The elements that have rows."""
        return [piece for piece in self.elements(node, index) if self.within(node, index, piece)]

    def median(self, node: PlainNode, index: int, pieces: Parts) -> Parts | None:
        """Pieces cut at the median, or at the nearest legal cut in rows."""
        total = self.weight(node.rows)
        options = []
        for cut in range(1, len(pieces)):
            low, high = joined(pieces[:cut]), joined(pieces[cut:])
            if self.all_legal(node, index, [low, high]):
                below = self.weight(self.within(node, index, low))
                last = self.weight(self.within(node, index, pieces[cut - 1]))
                options.append((median_distance(below, last, total), cut))
        if not options:
            return None
        cut = min(options)[1]
        return [joined(pieces[:cut]), joined(pieces[cut:])]

    def multiway(self, node: PlainNode, index: int) -> Parts | None:
        """Every child apart; missing alone if it may be, otherwise with the first child."""
        pieces = self.elements(node, index)
        gap = self.known(node, index)[1]
        for parts in [pieces, [pieces[0] + pieces[1], *pieces[2:]]] if gap and len(pieces) > 2 else [pieces]:
            filled = [part for part in parts if self.within(node, index, part)]
            if len(filled) > 1 and self.all_legal(node, index, filled):
                return parts
        return None


def joined(pieces: Parts) -> list[int]:
    """The codes of several pieces."""
    return [code for piece in pieces for code in piece]


def _taxonomy(column: CodedColumn) -> Taxonomy:
    assert column.taxonomy is not None
    return column.taxonomy


def _codes_below(taxonomy: Taxonomy, node: int, shift: int) -> list[int]:
    return list(range(taxonomy.first_leaf[node] + shift, taxonomy.last_leaf[node] + shift + 1))
