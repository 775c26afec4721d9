# SPDX-License-Identifier: Apache-2.0
"""Splits that serve selections: at a node, the legal split after which the fewest rows lie in regions that a selection
overlaps though it does not ask for them. Few nodes are split so, hence plain arrays instead of kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.purpose import Purpose
from anonfit.engines.memory.elements import inner_range, spread_of, tighten
from anonfit.engines.memory.guard import Guarded
from anonfit.engines.memory.guide import Guide
from anonfit.engines.memory.layout import AFTER, BIT, FIRST, FROM, GAP, LAST, MASK, PLACE, TILE, TO, Columns, Rows
from anonfit.engines.memory.scratch import PARTS, SIZES, Scratch
from anonfit.tables.coded import MISSING, CodedTable, SplitMode

__all__ = ["Node", "Selector", "Shared", "Split"]

TIE = 1e-9
Split = tuple[int, int, int, int]
"""Column (-1: none), number of parts, code below an ordered cut (-1: none), and 1 for a split by a set."""


@dataclass(slots=True)
class Node:
    """A node that waits to be split by all threads together."""

    number: int
    start: int
    stop: int
    buffer: int
    span: NDArray[np.int64]
    tile: NDArray[np.uint8]
    histogram: Any
    selecting: bool
    key: int = 0


class Shared(NamedTuple):
    """What kernels are given of a node's rows, the columns, the guide and the working memory."""

    rows: Rows
    columns: Columns
    guide: Guide
    scratch: Scratch


@dataclass(frozen=True, slots=True)
class _Rows:
    """What is known of a node's rows."""

    masses: NDArray[np.int64]
    signatures: NDArray[np.int64]
    weights: NDArray[np.int64]  # persons of each row, counted on its own
    entities: NDArray[np.uint32] | None
    sensitive: tuple[NDArray[np.int64], ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """A column's best split: what it leaves of imprecision, the codes of its parts and the part of each row, and the
    code above which an ordered cut lies (-1: none).
    """

    column: int
    left: float
    spread: float
    parts: list[NDArray[np.int64]]
    part_of_row: NDArray[np.int64]
    before: int = -1
    by_set: bool = False


class Selector:
    """Chooses splits by the selections of a purpose."""

    def __init__(
        self,
        table: CodedTable,
        k: int,
        purpose: Purpose,
        guarded: Sequence[Guarded],
        columns: Columns,
    ) -> None:
        assert purpose.selections is not None
        self.table, self.k, self.guarded = table, k, guarded
        self.columns = columns
        asked = purpose.selections
        order = np.argsort(asked.selection, kind="stable")
        self.rectangles = asked.rectangles[order].astype(bool)
        self.applies = asked.applies[:, order].astype(bool)
        self.selection = asked.selection[order]
        self.firsts = np.flatnonzero(np.append(True, np.diff(self.selection) > 0)) if len(order) else order
        self.weights = asked.weights[self.selection[self.firsts]] if len(order) else np.zeros(0)
        self.faces = asked.faces
        self.signatures = asked.signatures
        self.masses = purpose.masses
        self.counts = np.ones(table.rows, np.int64) if table.counts is None else table.counts.astype(np.int64)

    def choose(self, node: Node, rows: Rows, scratch: Scratch, shared: Shared) -> Split | None:
        """The split that leaves the least imprecision, written to scratch; None if none makes it smaller."""
        if not len(self.selection):
            return None
        known = self._rows(node, rows)
        count = len(self.table.columns)
        overlaps: NDArray[np.bool_] = np.stack([self._reach(node, column).any(axis=1) for column in range(count)])
        mass = float(known.masses.sum())
        by_signature = np.bincount(known.signatures, known.masses, len(self.applies))
        now = float(by_signature @ self._weight(_all(overlaps)[:, None])[:, 0]) / mass
        best: _Found | None = None
        for column in range(count):
            where = (column, node.start, node.stop, node.histogram, node.span)
            tighten(shared.rows, shared.columns, shared.guide, *where)
            spread = spread_of(shared.rows, shared.columns, shared.guide, *where, node.tile, shared.scratch)
            if spread < 0:
                continue
            others = _all(np.delete(overlaps, column, axis=0))
            found = self._best_of_column(
                node, rows, column, spread, others=others, known=known, mass=mass, shared=shared
            )
            if found is not None and (
                best is None
                or found.left < best.left - TIE
                or (found.left <= best.left + TIE and found.spread > best.spread + TIE)
            ):
                best = found
        if best is None or not now - best.left > TIE:
            return None
        return self._write(best, scratch)

    def _rows(self, node: Node, rows: Rows) -> _Rows:
        numbers = rows.part(node.start, node.stop).field(self.columns.number)
        weights = self.counts[numbers]
        return _Rows(
            masses=weights if self.masses is None else self.masses[numbers],
            signatures=self.signatures[numbers],
            weights=weights,
            entities=None if self.table.entities is None else self.table.entities[numbers],
            sensitive=tuple(one.codes[numbers].astype(np.int64) for one in self.guarded),
        )

    def _tile(self, node: Node, column: int) -> NDArray[np.bool_]:
        """Which codes of a column the node's tile holds."""
        size = self.table.columns[column].size
        held = int(self.columns.facts[TILE, column])
        if held >= 0:
            return node.tile[held : held + size].astype(bool)
        codes = np.arange(size)
        inside: NDArray[np.bool_] = (codes >= node.span[FROM, column]) & (codes <= node.span[TO, column])
        return inside

    def _reach(self, node: Node, column: int) -> NDArray[np.bool_]:
        """The codes of the tile that each rectangle reaches. (rectangle, code)"""
        first = int(self.columns.facts[PLACE, column])
        size = self.table.columns[column].size
        reach: NDArray[np.bool_] = self.rectangles[:, first : first + size] & self._tile(node, column)
        return reach

    def _weight(self, reached: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The weight of the selections that reach each of several regions, for rows of each signature.

        reached: (rectangle, region); the result: (signature, region).
        """
        found = np.empty((len(self.applies), reached.shape[1]))
        for signature, applies in enumerate(self.applies):
            some = np.logical_or.reduceat(reached & applies[:, None], self.firsts, axis=0)
            found[signature] = self.weights @ some
        return found

    def _best_of_column(
        self,
        node: Node,
        rows: Rows,
        column: int,
        spread: float,
        *,
        others: NDArray[np.bool_],
        known: _Rows,
        mass: float,
        shared: Shared,
    ) -> _Found | None:
        elements = self._elements(node, column, shared)
        size = self.table.columns[column].size
        place_of_code = np.full(size, -1, np.int64)
        for place, codes in enumerate(elements):
            place_of_code[codes] = place
        bit, mask = self.columns.facts[[BIT, MASK], column].tolist()
        of_row = rows.part(node.start, node.stop).field(bit, mask)
        places = place_of_code[of_row]
        reach = self._reach(node, column) & others[:, None]
        reached = np.stack([reach[:, codes].any(axis=1) for codes in elements], axis=1)
        signatures = len(self.applies)
        masses = np.bincount(
            known.signatures * len(elements) + places, known.masses, signatures * len(elements)
        ).reshape(signatures, len(elements))
        mode = self.table.columns[column].mode
        if mode == SplitMode.MULTIWAY:
            return self._multiway(column, spread, elements, places, reached, masses, known=known, mass=mass, node=node)
        if len(elements) < 2:
            return None
        below = np.cumsum(masses, axis=1)[:, :-1]
        above = masses.sum(axis=1)[:, None] - below
        low = self._weight(np.logical_or.accumulate(reached, axis=1)[:, :-1])
        high = self._weight(np.logical_or.accumulate(reached[:, ::-1], axis=1)[:, ::-1][:, 1:])
        left = (below * low + above * high).sum(axis=0) / mass
        left[~self._legal(places, len(elements), known)] = np.inf
        cut, least = -1, float("inf")
        for place, value in enumerate(left.tolist()):
            if value < least - TIE:
                cut, least = place, value
        if cut < 0:
            return None
        parts = [np.sort(np.concatenate(elements[: cut + 1])), np.sort(np.concatenate(elements[cut + 1 :]))]
        side = (places > cut).astype(np.int64)
        if mode != SplitMode.ORDERED:
            return _Found(column, least, spread, parts, side, by_set=True)
        start = int(parts[1][0])
        is_face = bool(self.faces[int(self.columns.facts[PLACE, column]) + start])
        before = start if is_face else int(of_row[side == 0].max())
        return _Found(column, least, spread, parts, side, before)

    def _elements(self, node: Node, column: int, shared: Shared) -> list[NDArray[np.int64]]:
        """The pieces that a cut may part, in the order of cutting: also those without rows."""
        mode = self.table.columns[column].mode
        if mode == SplitMode.ORDERED:
            return [np.array([code]) for code in range(int(node.span[FROM, column]), int(node.span[TO, column]) + 1)]
        tile = self._tile(node, column)
        if mode == SplitMode.SUBSET:
            pieces = [np.array([code]) for code in np.flatnonzero(tile)]
        else:
            pieces = self._children(node, column, tile, shared)
        if mode == SplitMode.MULTIWAY:
            return pieces
        first = int(self.columns.facts[PLACE, column])
        keys = []
        for codes in pieces:
            touching = np.flatnonzero(self.rectangles[:, first + codes].any(axis=1))
            keys.append(int(self.selection[touching].min()) if len(touching) else len(self.faces) + len(self.selection))
        return [pieces[index] for index in np.argsort(keys, kind="stable")]

    def _children(self, node: Node, column: int, tile: NDArray[np.bool_], shared: Shared) -> list[NDArray[np.int64]]:
        """Missing, if some values are, and the children of the taxonomy node over the rows."""
        low, high, top = inner_range(shared.columns, column, node.span, node.tile)
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
        places: NDArray[np.int64],
        reached: NDArray[np.bool_],
        masses: NDArray[Any],
        *,
        known: _Rows,
        mass: float,
        node: Node,
    ) -> _Found | None:
        """Every child apart; missing alone if it may be, otherwise with the first child."""
        for joined in (0, 1):
            if joined:
                if node.span[GAP, column] == 0 or len(elements) <= 2:
                    return None
                elements = [np.concatenate(elements[:2]), *elements[2:]]
                places = np.maximum(places - 1, 0)
                reached = np.column_stack([reached[:, 0] | reached[:, 1], reached[:, 2:]])
                masses = np.column_stack([masses[:, 0] + masses[:, 1], masses[:, 2:]])
            if self._parts_legal(places, known):
                left = float((masses * self._weight(reached)).sum()) / mass
                return _Found(column, left, spread, elements, places)
        return None

    def _parts_legal(self, places: NDArray[np.int64], known: _Rows) -> bool:
        present = np.unique(places)
        if len(present) < 2:
            return False
        for part in present:
            inside = places == part
            if not self._group_legal(inside, known):
                return False
        return True

    def _group_legal(self, inside: NDArray[np.bool_], known: _Rows) -> bool:
        entities = None if known.entities is None else known.entities[inside]
        persons = int(known.weights[inside].sum()) if entities is None else len(np.unique(entities))
        if persons < self.k:
            return False
        for one, codes in zip(self.guarded, known.sensitive, strict=True):
            mine = codes[inside]
            if entities is None:
                counts = np.bincount(mine, known.weights[inside], one.column.size).astype(np.int64)
            else:
                pairs = np.unique(entities.astype(np.int64) * one.column.size + mine)
                counts = np.bincount(pairs % one.column.size, minlength=one.column.size)
            if not all(bool(model.allows(counts)) for model in one.models):
                return False
        return True

    def _legal(self, places: NDArray[np.int64], count: int, known: _Rows) -> NDArray[np.bool_]:
        """Whether a cut after each place but the last leaves two groups that may exist."""
        if known.entities is None:
            weights = np.bincount(places, known.weights, count)
            low, high = np.cumsum(weights)[:-1], (weights.sum() - np.cumsum(weights))[:-1]
        else:
            low, high = _beside(known.entities.astype(np.int64), places, count)
        legal: NDArray[np.bool_] = (low >= self.k) & (high >= self.k)
        for place in np.flatnonzero(legal) if self.guarded else ():
            inside = places <= place
            legal[place] = self._group_legal(inside, known) and self._group_legal(~inside, known)
        return legal

    def _write(self, found: _Found, scratch: Scratch) -> Split:
        """Write a split where the kernels that move rows read it."""
        lists, parts = scratch.lists, len(found.parts)
        lists[SIZES, :parts] = np.bincount(found.part_of_row, minlength=parts)
        if found.by_set:
            scratch.side[: self.table.columns[found.column].size] = 1
            scratch.side[found.parts[0]] = 0
            return found.column, 2, -1, 1
        lists[PARTS, :parts] = [part[0] for part in found.parts]
        return found.column, parts, found.before, 0


def _all(truth: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether all of each column are true."""
    found: NDArray[np.bool_] = np.logical_and.reduce(truth, axis=0)
    return found


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
