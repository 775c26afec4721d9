# SPDX-License-Identifier: Apache-2.0
"""What is expected of the rows of a region if their values are spread evenly over it: the only guess that a recipient
can make without knowing more.

Every column is divided into *atoms*, within which neither a region nor a predicate makes a difference. An atom of an
ordered column is as large as it is long, counted in values where there is a next one; a name or rank is one. A missing
value is one value beside others that can be counted, and none beside an interval in which there is no next value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.bits import unpacked
from anonfit.recoding.boxes import Boxes
from anonfit.recoding.columns import OrderedCells, RecodedColumn
from anonfit.recoding.recoding import Recoding
from anonfit.tables.scales import thresholds
from anonfit.tables.schema import Domain, OrderedDomain
from anonfit.workload.coding import cut_places_of, size_of
from anonfit.workload.literals import has_steps
from anonfit.workload.predicates import Predicate

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Ends", "Spread", "observed_ends", "spread_of"]

Ends = Mapping[str, tuple[float, float]]
"""From where to where ordered columns reach, on the axes of their types; the upper end is not included."""
DAYS = 365
MICROSECONDS = 86_400_000_000
NEXT_TO_NOTHING = 1e-9
"""The size of a missing value beside an interval, as a share of the column."""


@dataclass(frozen=True, slots=True)
class _Atoms:
    """The atoms of a column: the cell of each, its size, and its middle as a number."""

    cell: NDArray[np.int64]  # (atom,)
    size: NDArray[np.float64]  # (atom,)
    middle: NDArray[np.float64]  # (atom,) not a number for a missing value and for names


@dataclass(frozen=True, slots=True)
class Spread:
    """The atoms of all columns, and domains whose codes are atoms: predicates are coded over them."""

    columns: tuple[_Atoms, ...]
    domains: tuple[Domain, ...]
    boxes: Boxes

    def shares(
        self, nodes: NDArray[Any], rectangles: NDArray[np.uint8], *, number: int | None = None
    ) -> NDArray[np.float64]:
        """The share of each region that lies in each rectangle; of a column that is a `number`, the sum of its values
        in that share. (node, rectangle)
        """
        found = np.ones((len(nodes), len(rectangles)))
        for index, mask in enumerate(self._masks(rectangles)):
            if mask.all() and index != number:
                continue
            found *= self._share(nodes, index, mask, by_value=index == number)
        return found

    def known_shares(self, nodes: NDArray[Any], rectangles: NDArray[np.uint8], number: int) -> NDArray[np.float64]:
        """As `shares`, of rows whose value of a column is not missing. (node, rectangle)"""
        first = sum(len(column.size) for column in self.columns[:number])
        missing = np.flatnonzero(np.isnan(self.columns[number].middle)) + first
        held = rectangles.copy()
        held[:, missing] = 0
        return self.shares(nodes, held)

    def _masks(self, rectangles: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
        first = 0
        for column in self.columns:
            yield rectangles[:, first : first + len(column.size)]
            first += len(column.size)

    def _share(
        self, nodes: NDArray[Any], index: int, mask: NDArray[np.uint8], *, by_value: bool
    ) -> NDArray[np.float64]:
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
        shares: NDArray[np.float64] = sums[:, :-1] / np.maximum(sums[:, -1:], np.finfo(np.float64).tiny)
        return shares[parts.of_node]


def spread_of(
    recoding: Recoding, domains: Sequence[Domain], predicates: Sequence[Predicate], ends: Ends | None = None
) -> Spread:
    """Divide columns into atoms.

    Args:
        recoding: The recoding.
        domains: What the quasi-identifiers of the rows can be; only types are used.
        predicates: All that will be asked.
        ends: Where ordered columns begin and end. Without: as the recoding declares or, beyond its outermost cuts, as
            far as the interval beside them is long, which is all that a recipient can know.
    """
    columns, found = [], []
    for column, domain in zip(recoding.columns, domains, strict=True):
        if isinstance(column, OrderedCells) and isinstance(domain, OrderedDomain):
            atoms, domain = _ordered(column, domain, predicates, (ends or {}).get(column.name))
        else:
            atoms = _named(column, domain)
        columns.append(atoms)
        found.append(domain)
    return Spread(tuple(columns), tuple(found), recoding.boxes)


def _named(column: RecodedColumn, domain: Domain) -> _Atoms:
    """Names and ranks: every cell is an atom."""
    count = size_of(domain)
    assert count == column.size
    return _Atoms(np.arange(count), np.ones(count), np.full(count, np.nan))


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
    whole = _reaching(domain, low, high)
    boundaries = [place for one in predicates for place in cut_places_of(one, whole).tolist()]
    points = np.unique(np.array([low, high, *cuts.tolist(), *boundaries], dtype=np.float64))
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
    return _Atoms(cells.astype(np.int64), sizes, middles / _unit(domain.dtype)), replace(
        domain, values=values, has_missing=column.has_missing
    )


def _reaching(domain: OrderedDomain, low: float, high: float) -> OrderedDomain:
    """A domain from one end to another."""
    ends: Any = np.array([low, high], dtype=domain.values.dtype)
    return replace(domain, values=ends)


def _unit(dtype: pl.DataType) -> float:
    """What one is on the axis of a type."""
    import polars as pl

    return float(10 ** int(dtype.scale or 0)) if isinstance(dtype, pl.Decimal) else 1.0


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
        everything = _reaching(domain, -largest, largest)
        places = [place for one in predicates for place in cut_places_of(one, everything).tolist()]
        known = np.unique(np.array(places, dtype=np.float64))
    if not len(known):
        return 0.0, 1.0
    if len(known) > 1:
        return float(2 * known[0] - known[1]), float(2 * known[-1] - known[-2])
    room = _room(domain.dtype) or abs(float(known[0])) or 1.0
    return float(known[0]) - room, float(known[0]) + room


def _room(dtype: pl.DataType) -> float:
    """How far a single cut between dates lies from the ends."""
    import polars as pl

    if dtype == pl.Date:
        return float(DAYS)
    return float(DAYS * MICROSECONDS) if isinstance(dtype, pl.Datetime) else 0.0


def observed_ends(domains: Sequence[Domain]) -> dict[str, tuple[float, float]]:
    """From the smallest to the largest value of raw rows. Not for public figures."""
    return {
        domain.name: (float(domain.values[0]), float(domain.values[-1]) + int(has_steps(domain.dtype)))
        for domain in domains
        if isinstance(domain, OrderedDomain) and len(domain.values)
    }
