# SPDX-License-Identifier: Apache-2.0
"""Choosing splits for selections, from how many rows of each signature a node has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.objectives import SplitObjective
from anonfit.criteria.targets import CodedSelections
from anonfit.engines.memory.candidates import inner_range, spread_of, tighten
from anonfit.engines.memory.constraints import Constraint
from anonfit.engines.memory.layout import AFTER, BIT, FIRST, FROM, GAP, LAST, MASK, PLACE, TILE, TO, Columns, Rows
from anonfit.engines.memory.objective import KernelObjective
from anonfit.engines.memory.scratch import PARTS, SIZES, Scratch
from anonfit.tables.schema import MISSING, CodedColumn, CodedTable, SplitMode


@dataclass(frozen=True, slots=True)
class SensitiveTally:
    """Entries of a column's codes and a sensitive column's values: how many persons have both."""

    codes: NDArray[np.integer[Any]]  # (entry,)
    values: NDArray[np.int64]  # (entry,)
    persons: NDArray[np.int64]  # (entry,)


@dataclass(frozen=True, slots=True)
class Tally:
    """What a node's rows have of a column. Entries are rows, or groups of rows that are alike; where persons have
    several rows (`entities`), they are rows.
    """

    codes: NDArray[np.integer[Any]]  # (entry,)
    signatures: NDArray[np.int64]  # (entry,)
    masses: NDArray[np.int64]  # (entry,)
    persons: NDArray[np.int64]  # (entry,) every row counted on its own
    sensitive: tuple[SensitiveTally, ...]
    entities: NDArray[np.int64] | None = None  # (entry,) also of sensitive entries


@dataclass(frozen=True, slots=True)
class Placed:
    """Entries and the place of each among the pieces that a split may part."""

    tally: Tally
    places: NDArray[np.int64]  # (entry,)
    sensitive: tuple[NDArray[np.int64], ...]  # for each sensitive column (entry,)

    @classmethod
    def of(cls, tally: Tally, place_of_code: NDArray[np.int64]) -> Placed:
        """The places of entries, given those of codes."""
        places = place_of_code[tally.codes]
        sensitive = (
            places if of_column.codes is tally.codes else place_of_code[of_column.codes]
            for of_column in tally.sensitive
        )
        return cls(tally, places, tuple(sensitive))

    def first_joined(self) -> Placed:
        """The same with the first two pieces as one."""
        return Placed(
            self.tally,
            np.maximum(self.places - 1, 0),
            tuple(np.maximum(places - 1, 0) for places in self.sensitive),
        )


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Sensitive entries in the order of their places."""

    values: NDArray[np.int64]  # (entry,)
    persons: NDArray[np.int64]  # (entry,)
    entities: NDArray[np.int64] | None  # (entry,)
    edges: NDArray[np.int64]  # (place + 1,) where the entries of each place begin
    size: int

    def counts(self, start: int, stop: int) -> NDArray[np.int64]:
        """How many persons of the places from one to before another have each value."""
        inside = slice(int(self.edges[start]), int(self.edges[stop]))
        values = self.values[inside]
        if self.entities is None:
            return np.bincount(values, self.persons[inside], self.size).astype(np.int64)
        pairs = np.unique(self.entities[inside] * self.size + values)
        return np.bincount(pairs % self.size, minlength=self.size)


def _sorted(placed: Placed, count: int, constraints: Sequence[Constraint]) -> Iterator[_Sorted]:
    """The entries of each sensitive column."""
    entities = placed.tally.entities
    for constraint, tally, places in zip(constraints, placed.tally.sensitive, placed.sensitive, strict=True):
        order = np.argsort(places, kind="stable")
        edges = np.searchsorted(places[order], np.arange(count + 1))
        owners = None if entities is None else entities[order]
        yield _Sorted(tally.values[order], tally.persons[order], owners, edges, constraint.column.size)


def parts_legal(placed: Placed, count: int, k: int, constraints: Sequence[Constraint]) -> bool:
    """Whether all places that have entries may be groups, of which there must be two."""
    present = np.unique(placed.places)
    if len(present) < 2 or _persons(placed, count)[present].min() < k:
        return False
    return all(
        bool(model.allows(held.counts(place, place + 1)))
        for constraint, held in zip(constraints, _sorted(placed, count, constraints), strict=True)
        for place in present.tolist()
        for model in constraint.models
    )


def _persons(placed: Placed, count: int) -> NDArray[np.int64]:
    """The persons of each place."""
    entities, places = placed.tally.entities, placed.places
    if entities is None:
        return np.bincount(places, placed.tally.persons, count).astype(np.int64)
    return np.bincount(np.unique(entities * count + places) % count, minlength=count)


def cuts_legal(placed: Placed, count: int, k: int, constraints: Sequence[Constraint]) -> NDArray[np.bool_]:
    """Whether a cut after each place but the last leaves two groups that may exist."""
    entities = placed.tally.entities
    if entities is None:
        persons = _persons(placed, count)
        low = np.cumsum(persons)[:-1]
        high = persons.sum() - low
    else:
        low, high = _beside(entities, placed.places, count)
    legal: NDArray[np.bool_] = (low >= k) & (high >= k)
    for constraint, held in zip(constraints, _sorted(placed, count, constraints), strict=True) if legal.any() else ():
        for place, groups in _both_sides(held, np.flatnonzero(legal).tolist(), count):
            legal[place] = all(bool(model.allows(group)) for group in groups for model in constraint.models)
    return legal


def _both_sides(
    held: _Sorted, cuts: Sequence[int], count: int
) -> Iterator[tuple[int, tuple[NDArray[np.int64], NDArray[np.int64]]]]:
    """Each cut, and the persons who have each value up to it and above it."""
    if held.entities is not None:  # a person may be on both sides
        yield from ((cut, (held.counts(0, cut + 1), held.counts(cut + 1, count))) for cut in cuts)
        return
    whole, below, done = held.counts(0, count), np.zeros(held.size, np.int64), 0
    for cut in cuts:
        below = below + held.counts(done, cut + 1)
        done = cut + 1
        yield cut, (below, whole - below)


def _beside(
    owners: NDArray[np.int64], places: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Owners with a row up to each place but the last, and above it."""
    _, first = np.unique(owners, return_inverse=True)
    lowest = np.full(first.max() + 1, count, np.int64)
    highest = np.full(first.max() + 1, -1, np.int64)
    np.minimum.at(lowest, first, places)
    np.maximum.at(highest, first, places)
    low = np.cumsum(np.bincount(lowest, minlength=count))[:-1]
    high = len(lowest) - np.cumsum(np.bincount(highest, minlength=count))[:-1]
    return low, high


TIE = 1e-9
Split = tuple[int, int, int, int]
"""Column (-1: none), number of parts, code below an ordered cut (-1: none), and 1 for a split by a set."""


class View(NamedTuple):
    """A node as kernels see it: its rows or its histogram, its span and tile, and the working memory."""

    rows: Rows
    columns: Columns
    objective: KernelObjective
    scratch: Scratch
    start: int
    stop: int
    histogram: Any
    span: NDArray[np.int64]
    tile: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _BestSplit:
    """A column's best split: what it leaves of imprecision, the codes of its parts and the persons of each, and the
    code above which an ordered cut lies (-1: none).
    """

    column: int
    left: float
    spread: float
    parts: list[NDArray[np.int64]]
    sizes: NDArray[Any]
    before: int = -1
    by_set: bool = False


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
        self.firsts = np.flatnonzero(np.append(True, np.diff(self.selection) > 0)) if len(order) else order
        self.weights = asked.weights[self.selection[self.firsts]] if len(order) else np.zeros(0)
        self.boundaries = asked.boundaries

    def spreads(self, node: View) -> dict[int, float]:
        """The columns of a node that can be split, and the normalized range of each."""
        spreads = {}
        for column in range(len(self.coded)) if len(self.selection) else ():
            where = (column, node.start, node.stop, node.histogram, node.span)
            tighten(node.rows, node.columns, node.objective, *where)
            spread = spread_of(node.rows, node.columns, node.objective, *where, node.tile, node.scratch)
            if spread >= 0:
                spreads[column] = spread
        return spreads

    def choose(
        self, node: View, spreads: dict[int, float], tally_of: Callable[[int], Tally], scratch: Scratch
    ) -> Split | None:
        """The split that leaves the least imprecision, written to scratch; None if none makes it smaller.

        Args:
            node: The node.
            spreads: Its columns that can be split, and their spreads.
            tally_of: What the node's rows have of a column.
            scratch: Where the split is written.
        """
        overlaps: NDArray[np.bool_] = np.stack(
            [self._reach(node, column).any(axis=1) for column in range(len(self.coded))]
        )
        best: _BestSplit | None = None
        now = mass = 0.0
        for column, spread in spreads.items():
            tally = tally_of(column)
            if not mass:
                mass = float(tally.masses.sum())
                by_signature = np.bincount(tally.signatures, tally.masses, len(self.applies))
                now = float(by_signature @ self._weight(np.logical_and.reduce(overlaps)[:, None])[:, 0]) / mass
            others = np.logical_and.reduce(np.delete(overlaps, column, axis=0))
            candidate = self._best_of_column(node, column, spread, others=others, tally=tally, mass=mass)
            if candidate is not None and (
                best is None
                or candidate.left < best.left - TIE
                or (candidate.left <= best.left + TIE and candidate.spread > best.spread + TIE)
            ):
                best = candidate
        if best is None or not now - best.left > TIE:
            return None
        return self._write(best, scratch)

    def _tile(self, node: View, column: int) -> NDArray[np.bool_]:
        """Which codes of a column the node's tile holds."""
        size = self.coded[column].size
        held = int(self.columns.facts[TILE, column])
        if held >= 0:
            return node.tile[held : held + size].astype(bool)
        codes = np.arange(size)
        inside: NDArray[np.bool_] = (codes >= node.span[FROM, column]) & (codes <= node.span[TO, column])
        return inside

    def _reach(self, node: View, column: int) -> NDArray[np.bool_]:
        """The codes of the tile that each rectangle reaches. (rectangle, code)"""
        first = int(self.columns.facts[PLACE, column])
        size = self.coded[column].size
        return self.rectangles[:, first : first + size] & self._tile(node, column)

    def _weight(self, reached: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The weight of the selections that reach each of several regions, for rows of each signature.

        reached: (rectangle, region); the result: (signature, region).
        """
        weights = np.empty((len(self.applies), reached.shape[1]))
        for signature, applies in enumerate(self.applies):
            some = np.logical_or.reduceat(reached & applies[:, None], self.firsts, axis=0)
            weights[signature] = self.weights @ some
        return weights

    def _best_of_column(
        self, node: View, column: int, spread: float, *, others: NDArray[np.bool_], tally: Tally, mass: float
    ) -> _BestSplit | None:
        elements = self._elements(node, column)
        place_of_code = np.full(self.coded[column].size, -1, np.int64)
        for place, codes in enumerate(elements):
            place_of_code[codes] = place
        placed = Placed.of(tally, place_of_code)
        reach = self._reach(node, column) & others[:, None]
        reached = np.stack([reach[:, codes].any(axis=1) for codes in elements], axis=1)
        signatures = len(self.applies)
        masses = np.bincount(
            tally.signatures * len(elements) + placed.places, tally.masses, signatures * len(elements)
        ).reshape(signatures, len(elements))
        mode = self.coded[column].mode
        if mode == SplitMode.MULTIWAY:
            return self._multiway(column, spread, elements, placed, reached, masses, mass=mass, node=node)
        if len(elements) < 2:
            return None
        below = np.cumsum(masses, axis=1)[:, :-1]
        above = masses.sum(axis=1)[:, None] - below
        low = self._weight(np.logical_or.accumulate(reached, axis=1)[:, :-1])
        high = self._weight(np.logical_or.accumulate(reached[:, ::-1], axis=1)[:, ::-1][:, 1:])
        left = (below * low + above * high).sum(axis=0) / mass
        left[~cuts_legal(placed, len(elements), self.k, self.constraints)] = np.inf
        cut, least = -1, float("inf")
        for place, value in enumerate(left.tolist()):
            if value < least - TIE:
                cut, least = place, value
        if cut < 0:
            return None
        parts = [np.sort(np.concatenate(elements[: cut + 1])), np.sort(np.concatenate(elements[cut + 1 :]))]
        side = placed.places > cut
        sizes = np.bincount(side, tally.persons, 2)
        if mode != SplitMode.ORDERED:
            return _BestSplit(column, least, spread, parts, sizes, by_set=True)
        start = int(parts[1][0])
        at_boundary = bool(self.boundaries[int(self.columns.facts[PLACE, column]) + start])
        before = start if at_boundary else int(tally.codes[~side].max())
        return _BestSplit(column, least, spread, parts, sizes, before)

    def _elements(self, node: View, column: int) -> list[NDArray[np.int64]]:
        """The pieces that a cut may part, in the order of cutting: also those without rows."""
        mode = self.coded[column].mode
        if mode == SplitMode.ORDERED:
            return [np.array([code]) for code in range(int(node.span[FROM, column]), int(node.span[TO, column]) + 1)]
        tile = self._tile(node, column)
        if mode == SplitMode.SUBSET:
            pieces = [np.array([code]) for code in np.flatnonzero(tile)]
        else:
            pieces = self._children(node, column, tile)
        if mode == SplitMode.MULTIWAY:
            return pieces
        first = int(self.columns.facts[PLACE, column])
        keys = []
        for codes in pieces:
            touching = np.flatnonzero(self.rectangles[:, first + codes].any(axis=1))
            keys.append(
                int(self.selection[touching].min()) if len(touching) else len(self.boundaries) + len(self.selection)
            )
        return [pieces[index] for index in np.argsort(keys, kind="stable")]

    def _children(self, node: View, column: int, tile: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
        """Missing, if some values are, and the children of the taxonomy node over the rows."""
        low, high, top = inner_range(node.columns, column, node.span, node.tile)
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
        self,
        column: int,
        spread: float,
        elements: list[NDArray[np.int64]],
        placed: Placed,
        reached: NDArray[np.bool_],
        masses: NDArray[Any],
        *,
        mass: float,
        node: View,
    ) -> _BestSplit | None:
        """Every child apart; missing alone if it may be, otherwise with the first child."""
        for joined in (0, 1):
            if joined:
                if node.span[GAP, column] == 0 or len(elements) <= 2:
                    return None
                elements = [np.concatenate(elements[:2]), *elements[2:]]
                placed = placed.first_joined()
                reached = np.column_stack([reached[:, 0] | reached[:, 1], reached[:, 2:]])
                masses = np.column_stack([masses[:, 0] + masses[:, 1], masses[:, 2:]])
            if parts_legal(placed, len(elements), self.k, self.constraints):
                left = float((masses * self._weight(reached)).sum()) / mass
                sizes = np.bincount(placed.places, placed.tally.persons, len(elements))
                return _BestSplit(column, left, spread, elements, sizes)
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
        self.counts = np.ones(table.rows, np.int64) if table.counts is None else table.counts.astype(np.int64)

    def choose(self, node: View, rows: Rows, scratch: Scratch) -> Split | None:
        """A node's split, written to scratch; `rows` has all packed rows."""
        spreads = self.selector.spreads(node)
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
