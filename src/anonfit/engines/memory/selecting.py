# SPDX-License-Identifier: Apache-2.0
"""Choosing splits for selections, from how many rows of each signature a node has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.objectives import SplitObjective
from anonfit.criteria.targets import CodedSelections
from anonfit.engines.memory.candidates import find_spreads, inner_range
from anonfit.engines.memory.cutting import TIE
from anonfit.engines.memory.forms import PARTS, SIZES, Constraint, NodeView, Scratch
from anonfit.engines.memory.layout import AFTER, BIT, FIRST, FROM, GAP, LAST, MASK, PLACE, TILE, TO, Columns, Rows
from anonfit.engines.memory.selecting_kernels import (
    KernelSelections,
    find_reaching,
    find_selecting_cut,
    imprecision,
    imprecision_of_parts,
)
from anonfit.engines.memory.tallies import Placed, SensitiveTally, Tally, parts_legal
from anonfit.runtime.compiling import DirectCalls, called, shared
from anonfit.tables.schema import MISSING, CodedColumn, CodedTable, SplitMode

Call: TypeAlias = Callable[..., Any]
"""How kernels are called."""
Places: TypeAlias = NDArray[np.int64]
"""(code,) The piece that each code of a column is in, in the order of cutting; -1: in none."""
Split = tuple[int, int, int, int]
"""Column (-1: none), number of parts, code below an ordered cut (-1: none), and 1 for a split by a set."""
EVERY_CODE: Places = np.empty(0, np.int64)
"""In place of these: each code of the tile, which is a run, is a piece."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A column's best split: what it leaves of imprecision, and the piece that it cuts after (-1: each is a part)."""

    column: int
    left: float
    spread: float
    tally: Tally
    places: Places
    cut: int = -1

    def is_better(self, other: _Candidate | None) -> bool:
        """Whether it is to be preferred to the best of the columns before it."""
        if other is None or self.left < other.left - TIE:
            return True
        return self.left <= other.left + TIE and self.spread > other.spread + TIE


class Selector:
    """Chooses splits by selections."""

    def __init__(
        self,
        coded: Sequence[CodedColumn],
        k: int,
        asked: CodedSelections,
        constraints: Sequence[Constraint],
        columns: Columns,
    ) -> None:
        self.coded, self.k, self.constraints = coded, k, constraints
        self.columns, self.boundaries = columns, asked.boundaries
        order = np.argsort(asked.selection, kind="stable")
        rectangles = np.ascontiguousarray(asked.rectangles[order])
        ends = [self._ends(rectangles, column) for column in range(len(coded))]
        self.selections = KernelSelections(
            rectangles,
            lowest=np.stack([lowest for lowest, _, _ in ends]),
            highest=np.stack([highest for _, highest, _ in ends]),
            runs=np.array([is_run for _, _, is_run in ends], np.int64),
            selection=asked.selection[order],
            weights=asked.shares,
            applies=np.ascontiguousarray(asked.applies[:, order]),
        )
        self.shared_selections = shared(self.selections)
        self.first_selections: dict[int, NDArray[np.int64]] = {}

    def _ends(self, rectangles: NDArray[np.uint8], column: int) -> tuple[NDArray[np.int64], NDArray[np.int64], bool]:
        """The first and the last code of a column that each rectangle holds, and whether all hold all between them."""
        first, size = int(self.columns.facts[PLACE, column]), self.coded[column].size
        held = rectangles[:, first : first + size]
        count = held.sum(axis=1, dtype=np.int64)
        lowest = np.where(count > 0, held.argmax(axis=1), size)
        highest = np.where(count > 0, size - 1 - held[:, ::-1].argmax(axis=1), -1)
        return lowest, highest, bool((count == np.maximum(highest - lowest + 1, 0)).all())

    def spreads(self, node: NodeView, call: Call = called) -> dict[int, float]:
        """The columns of a node that can be split, and the normalized range of each."""
        if not len(self.selections.selection):
            return {}
        spreads = np.empty(len(self.coded))
        call(find_spreads, node, spreads)
        return {column: spread for column, spread in enumerate(spreads.tolist()) if spread >= 0}

    def choose(
        self,
        node: NodeView,
        spreads: dict[int, float],
        tally_of: Callable[[int], Tally],
        scratch: Scratch,
        call: Call = called,
    ) -> Split | None:
        """The split of a node that leaves the least imprecision, written to scratch; None if none makes it smaller.
        `spreads` has its columns that can be split, `tally_of` what its rows have of a column.
        """
        reaching = np.empty(len(self.selections.selection), np.int64)
        reaching = reaching[: call(find_reaching, node, self.shared_selections, reaching)]
        best: _Candidate | None = None
        now: float | None = None
        for column, spread in spreads.items() if len(reaching) else ():
            tally = tally_of(column)
            if now is None:
                now = call(imprecision, self.shared_selections, reaching, tally.signatures, tally.masses)
            weigh = self._weigh_multiway if self.coded[column].mode == SplitMode.MULTIWAY else self._weigh_cuts
            candidate = weigh(node, column, spread, tally, reaching, call)
            if candidate is not None and candidate.is_better(best):
                best = candidate
        if best is None or now is None or not now - best.left > TIE:
            return None
        return self._write(node, best, scratch)

    def _tile(self, node: NodeView, column: int) -> NDArray[np.bool_]:
        """Which codes of a column the node's tile holds."""
        size = self.coded[column].size
        held = int(self.columns.facts[TILE, column])
        if held >= 0:
            return node.tile[held : held + size].astype(bool)
        codes = np.arange(size)
        inside: NDArray[np.bool_] = (codes >= node.span[FROM, column]) & (codes <= node.span[TO, column])
        return inside

    def _weigh_cuts(
        self, node: NodeView, column: int, spread: float, tally: Tally, reaching: NDArray[np.int64], call: Call
    ) -> _Candidate | None:
        """The best cut of a column in two."""
        places, count = EVERY_CODE, int(node.span[TO, column] - node.span[FROM, column]) + 1
        if self.coded[column].mode != SplitMode.ORDERED:
            places = self._in_order(node, column)
            count = int(places.max()) + 1

        left = np.empty(max(count - 1, 0))
        of_rows = tally.codes, tally.signatures, tally.masses, tally.persons
        cut = call(find_selecting_cut, node, self.shared_selections, reaching, column, places, count, *of_rows, left)
        if cut >= 0 and (tally.entities is not None or self.constraints):
            is_run = places is EVERY_CODE
            placed = Placed.of(
                tally, np.arange(self.coded[column].size) - node.span[FROM, column] if is_run else places
            )
            cut = self._first_allowed(left, cut, placed)
        return None if cut < 0 else _Candidate(column, float(left[cut]), spread, tally, places, cut)

    def _first_allowed(self, left: NDArray[np.float64], least: int, placed: Placed) -> int:
        """The first of the cuts that leave least, of those that may be made: the rows of a person count once, and
        models must allow both parts. If no other leaves as little as the one that leaves `least`, it is asked alone;
        else all that would be the best so far.
        """

        def is_allowed(cut: int) -> bool:
            return parts_legal(placed.in_two(cut), 2, self.k, self.constraints)

        if np.count_nonzero(left <= left[least] + TIE) == 1 and is_allowed(least):
            return least
        best, lowest = -1, float("inf")
        for cut, found in enumerate(left.tolist()):
            if found < lowest - TIE and is_allowed(cut):
                best, lowest = cut, found
        return best

    def _weigh_multiway(
        self, node: NodeView, column: int, spread: float, tally: Tally, reaching: NDArray[np.int64], call: Call
    ) -> _Candidate | None:
        """Every child apart; missing alone if it may be, otherwise with the first child."""
        children = self._children(node, column)
        options = [children]
        if node.span[GAP, column] == 1 and children.max() > 1:
            options.append(np.where(children > 0, children - 1, children))
        for places in options:
            count = int(places.max()) + 1
            if parts_legal(Placed.of(tally, places), count, self.k, self.constraints):
                of_column = int(self.columns.facts[PLACE, column]), places, count
                of_rows = tally.codes, tally.signatures, tally.masses
                left = call(imprecision_of_parts, self.shared_selections, reaching, *of_column, *of_rows)
                return _Candidate(column, left, spread, tally, places)
        return None

    def _in_order(self, node: NodeView, column: int) -> Places:
        """The pieces that a cut may part, also those without rows: by the first selection that speaks of each."""
        first_selections = self._first_selections(column)
        if self.coded[column].mode == SplitMode.SUBSET:
            codes = np.flatnonzero(self._tile(node, column))
            places = np.full(self.coded[column].size, -1, np.int64)
            places[codes[np.argsort(first_selections[codes], kind="stable")]] = np.arange(len(codes))
            return places
        places = self._children(node, column)
        firsts = np.full(places.max() + 1, first_selections.max())
        np.minimum.at(firsts, places[places >= 0], first_selections[places >= 0])
        rank = np.empty_like(firsts)
        rank[np.argsort(firsts, kind="stable")] = np.arange(len(firsts))
        return np.where(places >= 0, rank[places], -1)

    def _first_selections(self, column: int) -> NDArray[np.int64]:
        """The first selection that speaks of each code of a column; a high number where none does."""
        if column not in self.first_selections:
            first, size = int(self.columns.facts[PLACE, column]), self.coded[column].size
            speaks = self.selections.rectangles[:, first : first + size].astype(bool)
            highest = len(self.boundaries) + len(self.selections.selection)
            # Rectangles stand in the order of their selections.
            first_speaking = np.where(speaks.any(axis=0), self.selections.selection[speaks.argmax(axis=0)], highest)
            self.first_selections[column] = first_speaking
        return self.first_selections[column]

    def _children(self, node: NodeView, column: int) -> Places:
        """Missing, if some values are, and the children of the taxonomy node over the rows."""
        low, high, top = inner_range(node, column)
        tile, taxonomy = self._tile(node, column), self.columns.taxonomy
        places, used = np.full(self.coded[column].size, -1, np.int64), 0
        if node.span[GAP, column] == 1:
            places[MISSING], used = 0, 1
        child = int(top) + 1
        if taxonomy[AFTER, top] == child:
            child = int(top)
        while child < taxonomy[AFTER, top]:
            codes = slice(int(max(taxonomy[FIRST, child], low)), int(min(taxonomy[LAST, child], high)) + 1)
            if taxonomy[FIRST, child] >= low and taxonomy[LAST, child] <= high and tile[codes].all():
                places[codes] = used
                used += 1
            child = int(taxonomy[AFTER, child])
        return places

    def _write(self, node: NodeView, split: _Candidate, scratch: Scratch) -> Split:
        """Write a split where the kernels that move rows read it."""
        column, places, tally, lists = split.column, split.places, split.tally, scratch.lists
        if places is EVERY_CODE:
            first = int(node.span[FROM, column])
            start = first + split.cut + 1
            is_second = tally.codes >= start
            lists[PARTS, :2], lists[SIZES, :2] = [first, start], np.bincount(is_second, tally.persons, 2)
            at_boundary = bool(self.boundaries[int(self.columns.facts[PLACE, column]) + start])
            return column, 2, start if at_boundary else int(tally.codes[~is_second].max()), 0
        if split.cut >= 0:
            side = (places < 0) | (places > split.cut)
            scratch.side[: len(side)] = side
            lists[SIZES, :2] = np.bincount(side[tally.codes], tally.persons, 2)
            return column, 2, -1, 1
        parts = int(places.max()) + 1
        lists[SIZES, :parts] = np.bincount(places[tally.codes], tally.persons, parts)
        lists[PARTS, :parts] = np.searchsorted(np.maximum.accumulate(places), np.arange(parts))
        return column, parts, -1, 0


class RowSelector:
    """Chooses splits of nodes whose rows are in memory."""

    def __init__(
        self, selector: Selector, table: CodedTable, purpose: SplitObjective, constraints: Sequence[Constraint]
    ) -> None:
        assert purpose.selections is not None
        self.selector, self.table, self.constraints = selector, table, constraints
        self.call = DirectCalls()
        counts = np.ones(table.rows, np.int64) if table.counts is None else table.counts
        self.signatures, self.counts = purpose.selections.signatures, counts.astype(np.int64)
        self.masses = self.counts if purpose.masses is None else purpose.masses.astype(np.int64)

    def choose(self, node: NodeView, rows: Rows, scratch: Scratch) -> Split | None:
        """A node's split, written to scratch; `rows` has all packed rows."""
        spreads = self.selector.spreads(node, self.call)
        if not spreads:
            return None
        part, columns = rows.part(node.start, node.stop), self.selector.columns
        numbers = part.field(columns.number)
        persons, masses, signatures = self.counts[numbers], self.masses[numbers], self.signatures[numbers]
        entities = None if self.table.entities is None else self.table.entities[numbers].astype(np.int64)
        sensitive = [constraint.codes[numbers].astype(np.int64) for constraint in self.constraints]

        def tally_of(column: int) -> Tally:
            bit, mask = columns.facts[[BIT, MASK], column].tolist()
            codes = part.field(bit, mask)
            of_sensitive = tuple(SensitiveTally(codes, values, persons) for values in sensitive)
            return Tally(codes, signatures, masses, persons, of_sensitive, entities)

        return self.selector.choose(node, spreads, tally_of, scratch, self.call)
