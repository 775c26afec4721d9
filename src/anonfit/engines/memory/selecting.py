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
from anonfit.engines.memory.forms import PARTS, SIZES, Constraint, NodeView, Scratch
from anonfit.engines.memory.layout import AFTER, BIT, FIRST, FROM, GAP, LAST, MASK, PLACE, TILE, TO, Columns, Rows
from anonfit.engines.memory.tallies import Placed, SensitiveTally, Tally, cuts_legal, parts_legal
from anonfit.runtime.compiling import DirectCalls, called
from anonfit.tables.schema import MISSING, CodedColumn, CodedTable, SplitMode

TIE = 1e-9
Pieces: TypeAlias = list[NDArray[np.int64]]
"""The codes of each of some pieces of a column."""
Split = tuple[int, int, int, int]
"""Column (-1: none), number of parts, code below an ordered cut (-1: none), and 1 for a split by a set."""


@dataclass(frozen=True, slots=True)
class _BestSplit:
    """A column's best split: what it leaves of imprecision, the codes of its parts and the persons of each, and the
    code above which an ordered cut lies (-1: none).
    """

    column: int
    left: float
    spread: float
    parts: Pieces
    sizes: NDArray[Any]
    before: int = -1
    by_set: bool = False


@dataclass(frozen=True, slots=True)
class _Elements:
    """The pieces of a column that a split may part, one after the other."""

    codes: NDArray[np.int64]  # (code,)
    starts: NDArray[np.int64]  # (piece,) where the codes of each begin

    @classmethod
    def single(cls, codes: NDArray[np.int64]) -> _Elements:
        """Every code by itself."""
        return cls(codes, np.arange(len(codes)))

    @classmethod
    def of(cls, pieces: Sequence[NDArray[np.int64]]) -> _Elements:
        """Pieces of several codes."""
        lengths = np.array([len(codes) for codes in pieces], np.int64)
        return cls(np.concatenate(pieces), np.cumsum(lengths) - lengths)

    @property
    def places(self) -> NDArray[np.int64]:
        """The piece of each code."""
        if len(self.starts) == len(self.codes):
            return self.starts
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.codes)))

    def parts(self) -> Pieces:
        """The codes of each piece."""
        return np.split(self.codes, self.starts[1:])


_Ends: TypeAlias = tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True, slots=True)
class _Reached:
    """Which pieces of a column are reached by rectangles, those of a selection together."""

    selector: Selector
    rectangles: NDArray[np.intp]  # (rectangle,)
    pieces: NDArray[np.bool_]  # (rectangle, piece)

    def ends(self) -> _Ends:
        """Whether each rectangle reaches some piece, and the first and the last one that it does."""
        lowest, highest = self.pieces.argmax(axis=1), self.pieces.shape[1] - 1 - self.pieces[:, ::-1].argmax(axis=1)
        return self.pieces[np.arange(len(lowest)), lowest], lowest, highest

    def first_joined(self) -> _Reached:
        """The same with the first two pieces as one."""
        joined = np.column_stack([self.pieces[:, 0] | self.pieces[:, 1], self.pieces[:, 2:]])
        return _Reached(self.selector, self.rectangles, joined)

    def _selections(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Where the rectangles of each selection begin, and its weight."""
        of_rectangle = self.selector.selection[self.rectangles]
        is_first = np.ones(len(of_rectangle), np.bool_)
        np.not_equal(of_rectangle[1:], of_rectangle[:-1], out=is_first[1:])
        firsts = is_first.nonzero()[0]
        return firsts, self.selector.weights[of_rectangle[firsts]]

    def weights(self) -> NDArray[np.float64]:
        """The weight of the selections that reach each piece, for rows of each signature. (signature, piece)"""
        reaching = np.zeros((len(self.selector.applies), self.pieces.shape[1]))
        firsts, weights = self._selections()
        if len(firsts):
            for signature, applies in enumerate(self.selector.applies[:, self.rectangles]):
                some = np.logical_or.reduceat(self.pieces & applies[:, None], firsts, axis=0)
                reaching[signature] = (weights[:, None] * some).sum(axis=0)
        return reaching

    def weights_beside(self, count: int, ends: _Ends) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """The same of what is up to each of so many pieces but the last, and of what is above it. (signature,
        piece - 1); None if a selection that reaches anything reaches both sides of every cut.
        """
        some, lowest, highest = ends
        if not (some & ((lowest > 0) | (highest < count - 1))).any():
            return None
        low, high = np.zeros((2, len(self.selector.applies), count - 1))
        firsts, weights = self._selections()
        for signature, applies in enumerate(self.selector.applies[:, self.rectangles]):
            used = applies & some
            first, last = np.where(used, lowest, count), np.where(used, highest, -1)
            if len(firsts) < len(first):
                first, last = np.minimum.reduceat(first, firsts), np.maximum.reduceat(last, firsts)
            low[signature] = np.cumsum(np.bincount(first, weights, count + 1))[: count - 1]
            high[signature] = np.cumsum(np.bincount(last + 1, weights, count + 1)[::-1])[::-1][2:]
        return low, high


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
        self.columns = columns
        order = np.argsort(asked.selection, kind="stable")
        self.rectangles = asked.rectangles[order].astype(bool)
        self.applies = asked.applies[:, order].astype(bool)
        self.selection = asked.selection[order]
        self.weights = asked.weights
        self.boundaries = asked.boundaries
        self.every = np.arange(len(order))
        self.first_selections: dict[int, NDArray[np.int64]] = {}
        self.runs = [self._runs(column) for column in range(len(coded))]

    def _runs(self, column: int) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
        """The first and the last code of a column that each rectangle holds, the last before the first where it holds
        none; None if some rectangle does not hold all between them.
        """
        first, size = int(self.columns.facts[PLACE, column]), self.coded[column].size
        _, lowest, highest = _Reached(self, self.every, self.rectangles[:, first : first + size]).ends()
        held = np.add.reduce(self.rectangles[:, first : first + size], axis=1, dtype=np.int64)
        if ((held > 0) & (held != highest - lowest + 1)).any():
            return None
        return np.where(held > 0, lowest, size), np.where(held > 0, highest, -1)

    def spreads(self, node: NodeView, call: Callable[..., Any] = called) -> dict[int, float]:
        """The columns of a node that can be split, and the normalized range of each."""
        if not len(self.selection):
            return {}
        spreads = np.empty(len(self.coded))
        call(find_spreads, node, spreads)
        return {column: spread for column, spread in enumerate(spreads.tolist()) if spread >= 0}

    def choose(
        self, node: NodeView, spreads: dict[int, float], tally_of: Callable[[int], Tally], scratch: Scratch
    ) -> Split | None:
        """The split of a node that leaves the least imprecision, written to scratch; None if none makes it smaller.
        `spreads` has its columns that can be split, `tally_of` what its rows have of a column.
        """
        overlaps: NDArray[np.bool_] = np.stack([self._overlaps(node, column) for column in range(len(self.coded))])
        missed = len(overlaps) - np.add.reduce(overlaps, axis=0, dtype=np.int64)  # (rectangle,) in so many columns
        best: _BestSplit | None = None
        now: float | None = None
        for column, spread in spreads.items():
            tally = tally_of(column)
            if now is None:
                by_signature = np.bincount(tally.signatures, tally.masses, len(self.applies))
                inside = np.flatnonzero(missed == 0)
                reached = _Reached(self, inside, np.ones((len(inside), 1), np.bool_))
                now = float((by_signature * reached.weights()[:, 0]).sum()) / float(tally.masses.sum())
            others = missed == ~overlaps[column]
            candidate = self._best_of_column(node, column, spread, others, tally)
            if candidate is not None and (
                best is None
                or candidate.left < best.left - TIE
                or (candidate.left <= best.left + TIE and candidate.spread > best.spread + TIE)
            ):
                best = candidate
        if best is None or now is None or not now - best.left > TIE:
            return None
        return self._write(best, scratch)

    def _tile(self, node: NodeView, column: int) -> NDArray[np.bool_]:
        """Which codes of a column the node's tile holds."""
        size = self.coded[column].size
        held = int(self.columns.facts[TILE, column])
        if held >= 0:
            return node.tile[held : held + size].astype(bool)
        codes = np.arange(size)
        inside: NDArray[np.bool_] = (codes >= node.span[FROM, column]) & (codes <= node.span[TO, column])
        return inside

    def _overlaps(self, node: NodeView, column: int) -> NDArray[np.bool_]:
        """Whether each rectangle reaches a code of the tile. (rectangle,)"""
        first, runs = int(self.columns.facts[PLACE, column]), self.runs[column]
        if runs is not None and self.columns.facts[TILE, column] < 0:
            within: NDArray[np.bool_] = (runs[0] <= node.span[TO, column]) & (runs[1] >= node.span[FROM, column])
            return within
        if self.columns.facts[TILE, column] >= 0:
            reached = self.rectangles[:, first : first + self.coded[column].size] & self._tile(node, column)
        else:
            reached = self.rectangles[:, first + node.span[FROM, column] : first + node.span[TO, column] + 1]
        overlaps: NDArray[np.bool_] = reached[self.every, reached.argmax(axis=1)]
        return overlaps

    def _best_of_column(
        self, node: NodeView, column: int, spread: float, others: NDArray[np.bool_], tally: Tally
    ) -> _BestSplit | None:
        elements = self._elements(node, column)
        reached, ends = self._reached(column, elements, np.flatnonzero(others))
        mode, count = self.coded[column].mode, len(elements.starts)
        beside = None
        if mode != SplitMode.MULTIWAY:
            beside = reached.weights_beside(count, ends) if count > 1 else None
            if beside is None:
                return None
        place_of_code = np.full(self.coded[column].size, -1, np.int64)
        place_of_code[elements.codes] = elements.places
        placed = Placed.of(tally, place_of_code)
        signatures = len(self.applies)
        masses = np.bincount(tally.signatures * count + placed.places, tally.masses, signatures * count)
        masses = masses.reshape(signatures, count)
        if beside is None:
            return self._multiway(node, column, spread, elements.parts(), placed, reached, masses)
        below, (of_low, of_high) = np.cumsum(masses, axis=1)[:, :-1], beside
        above = masses.sum(axis=1)[:, None] - below
        left = (below * of_low + above * of_high).sum(axis=0) / masses.sum()
        left[~cuts_legal(placed, count, self.k, self.constraints)] = np.inf
        cut, least = -1, float("inf")
        for place, found in enumerate(left.tolist()):
            if found < least - TIE:
                cut, least = place, found
        if cut < 0:
            return None
        middle = int(elements.starts[cut + 1])
        parts = [np.sort(elements.codes[:middle]), np.sort(elements.codes[middle:])]
        side = placed.places > cut
        sizes = np.bincount(side, tally.persons, 2)
        if mode != SplitMode.ORDERED:
            return _BestSplit(column, least, spread, parts, sizes, by_set=True)
        start = int(parts[1][0])
        at_boundary = bool(self.boundaries[int(self.columns.facts[PLACE, column]) + start])
        before = start if at_boundary else int(tally.codes[~side].max())
        return _BestSplit(column, least, spread, parts, sizes, before)

    def _reached(self, column: int, elements: _Elements, rectangles: NDArray[np.intp]) -> tuple[_Reached, _Ends]:
        """Which elements of a column some rectangles reach: of runs of codes only the ends."""
        first, runs = int(self.columns.facts[PLACE, column]), self.runs[column]
        if self.coded[column].mode == SplitMode.ORDERED:
            low, high = int(elements.codes[0]), int(elements.codes[-1])
            if runs is not None:
                lowest, highest = np.maximum(runs[0][rectangles], low), np.minimum(runs[1][rectangles], high)
                nothing = np.empty((0, len(elements.starts)), np.bool_)
                return _Reached(self, rectangles, nothing), (lowest <= highest, lowest - low, highest - low)
            pieces = self.rectangles[rectangles, first + low : first + high + 1]
        else:
            pieces = self.rectangles[rectangles[:, None], first + elements.codes]
            if len(elements.starts) < len(elements.codes):
                pieces = np.logical_or.reduceat(pieces, elements.starts, axis=1)
        reached = _Reached(self, rectangles, pieces)
        return reached, reached.ends()

    def _elements(self, node: NodeView, column: int) -> _Elements:
        """The pieces that a cut may part, in the order of cutting: also those without rows."""
        mode = self.coded[column].mode
        if mode == SplitMode.ORDERED:
            return _Elements.single(np.arange(int(node.span[FROM, column]), int(node.span[TO, column]) + 1))
        tile = self._tile(node, column)
        if mode != SplitMode.SUBSET:
            pieces = self._children(node, column, tile)
            if mode == SplitMode.MULTIWAY:
                return _Elements.of(pieces)
            keys = [int(self._first_selections(column)[codes].min()) for codes in pieces]
            return _Elements.of([pieces[index] for index in np.argsort(keys, kind="stable")])
        codes = np.flatnonzero(tile)
        return _Elements.single(codes[np.argsort(self._first_selections(column)[codes], kind="stable")])

    def _first_selections(self, column: int) -> NDArray[np.int64]:
        """The first selection that speaks of each code of a column; a high number where none does."""
        if column not in self.first_selections:
            first, size = int(self.columns.facts[PLACE, column]), self.coded[column].size
            speaks = self.rectangles[:, first : first + size]
            highest = len(self.boundaries) + len(self.selection)
            # Rectangles stand in the order of their selections.
            first_speaking = np.where(speaks.any(axis=0), self.selection[speaks.argmax(axis=0)], highest)
            self.first_selections[column] = first_speaking
        return self.first_selections[column]

    def _children(self, node: NodeView, column: int, tile: NDArray[np.bool_]) -> Pieces:
        """Missing, if some values are, and the children of the taxonomy node over the rows."""
        low, high, top = inner_range(node, column)
        taxonomy = self.columns.taxonomy
        pieces = [np.array([MISSING])] if node.span[GAP, column] == 1 else []
        child = int(top) + 1
        if taxonomy[AFTER, top] == child:
            child = int(top)
        while child < taxonomy[AFTER, top]:
            codes = np.arange(max(taxonomy[FIRST, child], low), min(taxonomy[LAST, child], high) + 1)
            if taxonomy[FIRST, child] >= low and taxonomy[LAST, child] <= high and tile[codes].all():
                pieces.append(codes)
            child = int(taxonomy[AFTER, child])
        return pieces

    def _multiway(
        self, node: NodeView, column: int, spread: float, parts: Pieces, placed: Placed, reached: _Reached, masses: Any
    ) -> _BestSplit | None:
        """Every child apart; missing alone if it may be, otherwise with the first child."""
        for joined in (0, 1):
            if joined:
                if node.span[GAP, column] == 0 or len(parts) <= 2:
                    return None
                parts = [np.concatenate(parts[:2]), *parts[2:]]
                placed = placed.first_joined()
                reached = reached.first_joined()
                masses = np.column_stack([masses[:, 0] + masses[:, 1], masses[:, 2:]])
            if parts_legal(placed, len(parts), self.k, self.constraints):
                left = float((masses * reached.weights()).sum() / masses.sum())
                sizes = np.bincount(placed.places, placed.tally.persons, len(parts))
                return _BestSplit(column, left, spread, parts, sizes)
        return None

    def _write(self, split: _BestSplit, scratch: Scratch) -> Split:
        """Write a split where the kernels that move rows read it."""
        lists, parts = scratch.lists, len(split.parts)
        lists[SIZES, :parts] = split.sizes
        if split.by_set:
            scratch.side[: self.coded[split.column].size] = 1
            scratch.side[split.parts[0]] = 0
            return split.column, 2, -1, 1
        lists[PARTS, :parts] = [part[0] for part in split.parts]
        return split.column, parts, split.before, 0


class RowSelector:
    """Chooses splits of nodes whose rows are in memory."""

    def __init__(
        self, selector: Selector, table: CodedTable, purpose: SplitObjective, constraints: Sequence[Constraint]
    ) -> None:
        assert purpose.selections is not None
        self.selector, self.table, self.constraints = selector, table, constraints
        self.signatures, self.masses = purpose.selections.signatures, purpose.masses
        self.call = DirectCalls()
        self.counts = np.ones(table.rows, np.int64) if table.counts is None else table.counts.astype(np.int64)

    def choose(self, node: NodeView, rows: Rows, scratch: Scratch) -> Split | None:
        """A node's split, written to scratch; `rows` has all packed rows."""
        spreads = self.selector.spreads(node, self.call)
        if not spreads:
            return None
        part, columns = rows.part(node.start, node.stop), self.selector.columns
        numbers = part.field(columns.number)
        persons = self.counts[numbers]
        masses = persons if self.masses is None else self.masses[numbers]
        signatures = self.signatures[numbers]
        entities = None if self.table.entities is None else self.table.entities[numbers].astype(np.int64)
        sensitive = [constraint.codes[numbers].astype(np.int64) for constraint in self.constraints]

        def tally_of(column: int) -> Tally:
            bit, mask = columns.facts[[BIT, MASK], column].tolist()
            codes = part.field(bit, mask)
            of_sensitive = tuple(SensitiveTally(codes, values, persons) for values in sensitive)
            return Tally(codes, signatures, masses, persons, of_sensitive, entities)

        return self.selector.choose(node, spreads, tally_of, scratch)
