# SPDX-License-Identifier: Apache-2.0
"""What a node's rows have of a column, and which of its splits leave groups that may exist. For `selecting.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.memory.forms import Constraint


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

    def in_two(self, cut: int) -> Placed:
        """The same with what is up to a place as one piece, and what is above it as the other."""
        return Placed(
            self.tally,
            (self.places > cut).astype(np.int64),
            tuple((places > cut).astype(np.int64) for places in self.sensitive),
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
