# SPDX-License-Identifier: Apache-2.0
"""Selections over codes: as rectangles of codes, and by the classes of columns that are released as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.selections import CodedSelections, Signatures, signatures_of
from anonfit.errors import SpecError
from anonfit.tables.domains import Domain, OrderedDomain
from anonfit.workload.coding import codes_of, cut_places_of, size_of, unobserved_met_by_cuts
from anonfit.workload.comparing import has_steps
from anonfit.workload.predicates import ColumnKind, Condition, Predicate, Relation, conditions_of
from anonfit.workload.rectangles import (
    LIMIT,
    Part,
    Rectangle,
    by_column,
    column_of,
    masks_of,
    rectangles_of,
    set_of,
)
from anonfit.workload.truth import ColumnValues, Rows, Values, truth_of

__all__ = ["Classes", "Selection", "SelectionCoder"]

LARGEST = 1 << 32
"""Rectangles times codes: a byte of memory each."""


@dataclass(frozen=True, slots=True)
class Selection:
    """One selection: the text it is known by, what it asks, and the request it comes from."""

    name: str
    predicate: Predicate
    weight: float
    place: str
    is_each: bool = False


@dataclass(frozen=True, slots=True)
class Classes:
    """Values of a column that is released as it is, in classes that satisfy the same parts of predicates."""

    truths: NDArray[np.bool_]  # (class, part over this column)
    of_value: NDArray[np.int64]  # (different value, at the end missing)


class SelectionCoder:
    """Codes selections over the quasi-identifiers of a table."""

    def __init__(self, asked: Sequence[Selection], domains: Sequence[Domain], values: Values) -> None:
        """`values` are all that the table has."""
        self.asked, self.domains = asked, domains
        self.sizes = [size_of(domain) for domain in domains]
        self.place = {domain.name: place for place, domain in enumerate(domains)}
        observed = partial(self._is_observed, values)
        self.predicates = [by_column(unobserved_met_by_cuts(one.predicate, observed)) for one in asked]
        self.raw = [self._raw_parts(predicate) for predicate in self.predicates]
        self.parts = list(dict.fromkeys(part for found in self.raw for part in found))

    @property
    def raw_columns(self) -> list[ColumnKind]:
        """The columns that are released as they are and have a part in some predicate."""
        kinds = [next(conditions_of(part)).kind for part in self.parts]
        return list({kind.declared.name: kind for kind in kinds}.values())

    def classes(self, column: ColumnValues) -> Classes:
        """The classes of a raw column's values."""
        name = column.kind.declared.name
        truths = [truth_of(part, column) for part in self.parts if column_of(part) == name]
        return Classes(*_different(np.stack(truths, axis=1)))

    def of_rows(self, rows: Rows) -> CodedSelections:
        """The coded form of all selections, with the signatures of rows."""
        columns = [rows.column(kind) for kind in self.raw_columns]
        classes = [self.classes(column) for column in columns]
        sizes = [len(one.truths) for one in classes]
        own = [one.of_value[column.places] for one, column in zip(classes, columns, strict=True)]
        signatures, of_row = signatures_of(sizes, own, len(rows.frame))
        return self.coded(signatures, [one.truths for one in classes], of_row)

    def coded(
        self, signatures: Signatures, truths_of: Sequence[NDArray[np.bool_]], of_row: NDArray[np.int64]
    ) -> CodedSelections:
        """The coded form of all selections, given the signatures that occur, what is true of the classes of each raw
        column, and the signatures of rows.
        """
        truths = self._truths(signatures, truths_of)
        place = {part: number for number, part in enumerate(self.parts)}
        rectangles: list[Rectangle] = []
        applies: list[NDArray[np.bool_]] = []
        selection: list[int] = []
        for number, predicate in enumerate(self.predicates):
            needed = [place[part] for part in self.raw[number]]
            try:
                found = self._rectangles(predicate, self.raw[number], truths[:, needed])
            except SpecError as error:
                raise SpecError([f"{self.asked[number].place}: {fault}" for fault in error.faults]) from None
            rectangles += [rectangle for rectangle, _ in found]
            applies += [which for _, which in found]
            selection += [number] * len(found)
            self._check_size(len(rectangles))
        return CodedSelections(
            rectangles=masks_of(rectangles, self.sizes),
            selection=np.array(selection, dtype=np.int64),
            weights=np.array([one.weight for one in self.asked], dtype=np.float64),
            signatures=of_row,
            applies=np.array(applies, dtype=np.uint8).reshape(len(rectangles), len(truths)).T.copy(),
            faces=self._faces(one for one, which in zip(self.predicates, self.asked, strict=True) if not which.is_each),
            names=tuple(one.name for one in self.asked),
        )

    def _check_size(self, rectangles: int) -> None:
        if rectangles > LIMIT:
            raise SpecError([f"workload.selections: they need more than {LIMIT:,} rectangles; ask for fewer."])
        if rectangles * sum(self.sizes) > LARGEST:
            widest = max(zip(self.sizes, self.place, strict=True))
            raise SpecError(
                [
                    f"workload.selections: too many for columns of so many values ('{widest[1]}' has "
                    f"{widest[0]:,}); ask for fewer, or round its values."
                ]
            )

    def _is_observed(self, values: Values, condition: Condition) -> bool:
        """Whether some row has the end of a condition, where that matters."""
        place = self.place.get(condition.column)
        domain = None if place is None else self.domains[place]
        if not isinstance(domain, OrderedDomain) or has_steps(domain.dtype):
            return True
        equal = Condition(condition.column, Relation.IN, condition.values, kind=condition.kind)
        return bool(values.column(condition.kind).truth(equal).any())

    def _raw_parts(self, predicate: Predicate) -> list[Predicate]:
        """The parts over single columns that are released as they are."""
        column = column_of(predicate)
        if column is not None:
            return [] if column in self.place else [predicate]
        assert not isinstance(predicate, Condition)
        return list(dict.fromkeys(found for part in predicate.parts for found in self._raw_parts(part)))

    def _truths(self, signatures: Signatures, truths_of: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """Of each signature which parts hold. (signature, part)"""
        truths = np.zeros((1, 0), np.bool_)
        for size, known, own in zip(signatures.sizes, signatures.known, truths_of, strict=True):
            truths = np.hstack([truths[known // size], own[known % size]])
        names = [column_of(part) for part in self.parts]
        order = [place for name in dict.fromkeys(names) for place, other in enumerate(names) if other == name]
        found: NDArray[np.bool_] = truths[:, np.argsort(order)]
        return found

    def _rectangles(
        self, predicate: Predicate, raw: Sequence[Predicate], truths: NDArray[np.bool_]
    ) -> list[tuple[Rectangle, NDArray[np.bool_]]]:
        """The rectangles of a predicate, and for which signatures each counts; disjoint for every signature."""
        patterns, pattern_of = _different(truths)
        found: dict[tuple[tuple[tuple[int, int], ...], ...], NDArray[np.bool_]] = {}
        for number, pattern in enumerate(patterns):
            known = dict(zip(raw, pattern.tolist(), strict=True))
            parts = rectangles_of(predicate, partial(self._part, known=known), self.sizes)
            key = tuple(tuple(sorted(rectangle.items())) for rectangle in parts)
            found[key] = found.get(key, False) | (pattern_of == number)
        return [(dict(rectangle), which) for key, which in found.items() for rectangle in key]

    def _part(self, predicate: Predicate, known: Mapping[Predicate, bool]) -> Part:
        """What a part over one column selects; of raw columns it is known for each signature."""
        column = column_of(predicate)
        assert column is not None
        if column not in self.place:
            return known[predicate]
        place = self.place[column]
        return place, set_of(codes_of(predicate, self.domains[place]))

    def _faces(self, predicates: Iterator[Predicate]) -> NDArray[np.uint8]:
        """(code of any quasi-identifier,) 1 where a cut below the code lies exactly at its value."""
        found = [np.zeros(size, np.uint8) for size in self.sizes]
        for predicate in predicates:
            for flags, domain in zip(found, self.domains, strict=True):
                if isinstance(domain, OrderedDomain):
                    places = cut_places_of(predicate, domain)
                    flags[int(domain.has_missing) :][np.isin(domain.values, places)] = 1
        return np.concatenate(found) if found else np.zeros(0, np.uint8)


def _different(rows: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """The different rows of truths, and which of them each row is."""
    if rows.shape[1] == 0:
        return rows[:1], np.zeros(len(rows), np.int64)
    packed = np.ascontiguousarray(np.packbits(rows, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], which
