# SPDX-License-Identifier: Apache-2.0
"""What queries are expected to give if the values of a region's rows are spread evenly over it: the only guess that a
recipient can make without knowing more.

Every column is divided into *atoms*, within which neither a region nor a predicate makes a difference. An atom of an
ordered column is as large as it is long, counted in values where there is a next one; a name or rank is one. A missing
value is one value beside others that can be counted, and none beside an interval in which there is no next value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.criteria.targets import CodedSelections
from anonfit.engines.tree import Boxes, unpacked
from anonfit.metrics.arrays import AnyIntegers, Floats, Integers
from anonfit.recoding.columns import OrderedCells
from anonfit.recoding.recoding import Recoding
from anonfit.tables.scales import thresholds
from anonfit.tables.schema import Domain, OrderedDomain
from anonfit.workload.coding import cut_places_of, size_of
from anonfit.workload.predicates import ColumnKind, Holding, Predicate
from anonfit.workload.selections import code_predicates
from anonfit.workload.truth import RawTable, has_steps

Ends = Mapping[str, tuple[float, float]]
"""From where to where ordered columns reach, on the axes of their types; the upper end is not included."""
DAYS = 365
MICROSECONDS = 86_400_000_000
NEXT_TO_NOTHING = 1e-9
"""The size of a missing value beside an interval, as a share of the column."""


@dataclass(frozen=True, slots=True)
class _Atoms:
    """The atoms of a column: the cell of each, its size, and its middle as a number."""

    cell: Integers  # (atom,)
    size: Floats  # (atom,)
    middle: Floats  # (atom,) not a number for a missing value and for names


@dataclass(frozen=True, slots=True)
class Spread:
    """The atoms of all columns, and domains whose codes are atoms: predicates are coded over them."""

    columns: tuple[_Atoms, ...]
    domains: tuple[Domain, ...]
    boxes: Boxes

    def shares(self, nodes: NDArray[Any], rectangles: NDArray[np.uint8], *, number: int | None = None) -> Floats:
        """(node, rectangle) The share of each region in each rectangle; of a column `number`, its sum in that share."""
        shares = np.ones((len(nodes), len(rectangles)))
        masks = np.split(rectangles, np.cumsum([len(column.size) for column in self.columns])[:-1], axis=1)
        for index, mask in enumerate(masks):
            if not mask.all() or index == number:
                shares *= self._share(nodes, index, mask, by_value=index == number)
        return shares

    def known_shares(self, nodes: NDArray[Any], rectangles: NDArray[np.uint8], number: int) -> Floats:
        """As `shares`, of rows whose value of a column is not missing. (node, rectangle)"""
        first = sum(len(column.size) for column in self.columns[:number])
        missing = np.flatnonzero(np.isnan(self.columns[number].middle)) + first
        held = rectangles.copy()
        held[:, missing] = 0
        return self.shares(nodes, held)

    def _share(self, nodes: NDArray[Any], index: int, mask: NDArray[np.uint8], *, by_value: bool) -> Floats:
        """(node, rectangle) for one column."""
        atoms, parts = self.columns[index], self.boxes.parts(nodes, index)
        size = 1 + int(max(atoms.cell.max(initial=0), parts.last.max(initial=0)))
        within = mask.T * atoms.size[:, None]  # (atom, rectangle)
        if by_value:
            within = within * np.nan_to_num(atoms.middle)[:, None]
        by_cell = np.zeros((size, within.shape[1] + 1))
        np.add.at(by_cell, atoms.cell, np.column_stack([within, atoms.size]))
        before = np.zeros((size + 1, by_cell.shape[1]))
        np.cumsum(by_cell, axis=0, out=before[1:])
        sums = before[parts.last + 1] - before[parts.first]  # (part, rectangle and in the end all)
        sets = np.flatnonzero(parts.set_of >= 0)
        if len(sets):
            sums[sets] = unpacked(parts.sets[parts.set_of[sets]], size).astype(np.float64) @ by_cell
        shares: Floats = sums[:, :-1] / np.maximum(sums[:, -1:], np.finfo(np.float64).tiny)
        return shares[parts.of_node]


def uniform_spread(
    recoding: Recoding, domains: Sequence[Domain], predicates: Sequence[Predicate], ends: Ends | None = None
) -> Spread:
    """Divide columns into atoms, within which no predicate makes a difference; of domains only types are used.

    Ordered columns reach as far as the ends say. Without: as the recoding declares or, beyond its outermost cuts, as
    far as the interval beside them is long, which is all that a recipient can know.
    """
    columns, atom_domains = [], []
    for column, domain in zip(recoding.columns, domains, strict=True):
        if isinstance(column, OrderedCells) and isinstance(domain, OrderedDomain):
            atoms, domain = _ordered(column, domain, predicates, (ends or {}).get(column.name))
        else:  # every name and every rank is an atom
            count = column.size
            assert count == size_of(domain)
            atoms = _Atoms(np.arange(count), np.ones(count), np.full(count, np.nan))
        columns.append(atoms)
        atom_domains.append(domain)
    return Spread(tuple(columns), tuple(atom_domains), recoding.boxes)


def _ordered(
    column: OrderedCells, domain: OrderedDomain, predicates: Sequence[Predicate], ends: tuple[float, float] | None
) -> tuple[_Atoms, OrderedDomain]:
    cuts = thresholds(column.cuts, domain.dtype)
    steps = has_steps(domain.dtype)
    low, high = ends or _stated(column, domain, cuts, predicates)
    if len(cuts):  # every interval has some room
        room = 1.0 if steps else (abs(high - low) or 1.0) / 1000
        low = low if low < cuts[0] else float(cuts[0]) - room
        high = high if high > cuts[-1] else float(cuts[-1]) + room
    if not low < high:
        high = low + 1
    points = np.unique([low, high, *cuts.tolist(), *_boundaries(domain, low, high, predicates)])
    points = points[(points >= low) & (points <= high)]
    starts, sizes = points[:-1], np.diff(points)
    middles = starts + (sizes - (1 if steps else 0)) / 2
    asked = starts if steps else middles
    values: Any = asked.astype(domain.values.dtype) if domain.values.dtype.kind == "i" else asked
    cells = np.searchsorted(cuts, values, side="right") + int(column.has_missing)
    if column.has_missing:
        missing = 1.0 if steps else NEXT_TO_NOTHING * (high - low)
        cells, sizes = np.append(0, cells), np.append(missing, sizes)
        middles = np.append(np.nan, middles)
    unit = float(10 ** int(domain.dtype.scale or 0)) if isinstance(domain.dtype, pl.Decimal) else 1.0
    atoms = _Atoms(cells.astype(np.int64), sizes, middles / unit)
    return atoms, replace(domain, values=values, has_missing=column.has_missing)


def _boundaries(domain: OrderedDomain, low: float, high: float, predicates: Sequence[Predicate]) -> list[float]:
    """Where predicates cut a domain that reaches from one end to another."""
    ends: Any = np.array([low, high], dtype=domain.values.dtype)
    reaching = replace(domain, values=ends)
    return [float(place) for predicate in predicates for place in cut_places_of(predicate, reaching).tolist()]


def _stated(
    column: OrderedCells, domain: OrderedDomain, cuts: NDArray[Any], predicates: Sequence[Predicate]
) -> tuple[float, float]:
    """Where a column begins and ends as far as the recoding says, or the predicates where it says nothing."""
    steps = int(has_steps(domain.dtype))
    if column.domain:
        low, high = thresholds(column.domain, domain.dtype).tolist()
        return float(low), float(high + steps)
    known = cuts
    if not len(known):
        largest = np.finfo(np.float64).max / 4 if domain.values.dtype.kind == "f" else 2**53
        known = np.unique(np.array(_boundaries(domain, -largest, largest, predicates), np.float64))
    if not len(known):
        return 0.0, 1.0
    if len(known) > 1:
        return float(2 * known[0] - known[1]), float(2 * known[-1] - known[-2])
    room = abs(float(known[0])) or 1.0
    if isinstance(domain.dtype, pl.Date | pl.Datetime):
        room = float(DAYS if domain.dtype == pl.Date else DAYS * MICROSECONDS)
    return float(known[0]) - room, float(known[0]) + room


def observed_ends(domains: Sequence[Domain]) -> dict[str, tuple[float, float]]:
    """From the smallest to the largest value of raw rows. Not for public figures."""
    return {
        domain.name: (float(domain.values[0]), float(domain.values[-1]) + int(has_steps(domain.dtype)))
        for domain in domains
        if isinstance(domain, OrderedDomain) and len(domain.values)
    }


RECTANGLES = 128
"""Rectangles whose shares are found together."""


@dataclass(frozen=True, slots=True)
class QueryTable:
    """Raw rows, and the regions in which they were released.

    `kinds` are of all columns, `domains` of the quasi-identifiers; `nodes` is -1 for rows that are withheld; `counts`
    are the persons that rows stand for.
    """

    recoding: Recoding
    kinds: Mapping[str, ColumnKind]
    domains: Sequence[Domain]
    frame: pl.DataFrame
    nodes: AnyIntegers  # (row,)
    counts: Integers | None = None  # (row,)


class Estimator:
    """Estimates what predicates are met by, from regions and from columns that are released as they are."""

    def __init__(self, table: QueryTable, rows: RawTable, predicates: Sequence[Predicate], ends: Ends | None) -> None:
        self.table = table
        self.spread: Spread = uniform_spread(table.recoding, table.domains, predicates, ends)
        self.coded: CodedSelections = code_predicates(predicates, self.spread.domains, rows)
        self.released = table.nodes >= 0
        self.nodes, place = np.unique(table.nodes[self.released], return_inverse=True)
        keys, self.group_of = np.unique(
            place * len(self.coded.applies) + self.coded.signatures[self.released], return_inverse=True
        )
        self.node, self.signature = keys // len(self.coded.applies), keys % len(self.coded.applies)
        self.own = {name: at for at, name in enumerate(table.recoding.quasi_identifiers)}

    def known(self, column: str | None) -> Floats:
        """(row,) What each raw row counts: nothing where its value is missing."""
        counts = self.table.counts
        masses = np.ones(len(self.table.frame)) if counts is None else counts.astype(np.float64)
        return masses if column is None else masses * self.table.frame[column].is_not_null().to_numpy()

    def values(self, column: str | None) -> Floats | None:
        """(row,) The numbers of a column, 0 where they are missing; None if it holds none."""
        if column is None or self.table.kinds[column].holding != Holding.NUMBERS:
            return None
        series = self.table.frame[column]
        return series.cast(pl.Float64, strict=False).fill_nan(None).fill_null(0.0).to_numpy()

    def sums(self, place: slice, column: str | None, *, with_values: bool) -> tuple[Floats, Floats]:
        """For each of some predicates how many rows with a value of the column are expected, and its sum over them."""
        selection = self.coded.selection
        first, last = np.searchsorted(selection, [place.start, place.stop])
        counts, sums = np.zeros(place.stop - place.start), np.zeros(place.stop - place.start)
        own = None if column is None else self.own.get(column)
        for begin in range(int(first), int(last), RECTANGLES):
            chunk = slice(begin, min(begin + RECTANGLES, int(last)))
            applies = self.coded.applies[self.signature, chunk].astype(np.float64)  # (group, rectangle)
            masks, at = self.coded.rectangles[chunk], selection[chunk] - place.start
            if own is None:
                shares, weights = self.spread.shares(self.nodes, masks), self._of_groups(self.known(column))
            else:
                shares = self.spread.known_shares(self.nodes, masks, own)
                weights = self._of_groups(self.known(None))
            np.add.at(counts, at, weights @ (shares[self.node] * applies))
            if with_values and own is not None:
                shares = self.spread.shares(self.nodes, masks, number=own)
            elif with_values:
                values = self.values(column)
                assert values is not None
                weights = self._of_groups(values * self.known(column))
            if with_values:
                np.add.at(sums, at, weights @ (shares[self.node] * applies))
        return counts, sums

    def _of_groups(self, numbers: Floats) -> Floats:
        """(group,) The sum of numbers of raw rows."""
        sums: Floats = np.bincount(self.group_of, weights=numbers[self.released], minlength=len(self.node)).astype(
            np.float64, copy=False
        )
        return sums
