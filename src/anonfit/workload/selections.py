# SPDX-License-Identifier: Apache-2.0
"""The selections of a workload, coded: from requests to rectangles of codes and the rows they count for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.selections import CodedSelections
from anonfit.errors import SpecError, did_you_mean
from anonfit.tables.domains import Domain, OrderedDomain
from anonfit.tables.schema import Column, ColumnType
from anonfit.workload.coding import codes_of, cut_places_of, size_of, unobserved_met_by_cuts
from anonfit.workload.comparing import has_steps
from anonfit.workload.each import selections_of_each
from anonfit.workload.literals import written
from anonfit.workload.parsing import parse_predicate
from anonfit.workload.predicates import ColumnKind, Condition, Holding, Predicate, Relation, conditions_of, kinds_of
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
from anonfit.workload.truth import Rows, truth_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["SelectionRequest", "Selections", "code_predicates", "code_selections", "predicates_of"]


LARGEST = 1 << 32
"""Rectangles times codes: a byte of memory each."""


class SelectionRequest(Protocol):
    """What is asked for: the rows a predicate holds of, or those of each value of a column."""

    @property
    def where(self) -> str | None:
        """A WHERE condition."""

    @property
    def each(self) -> str | None:
        """A column."""

    @property
    def weight(self) -> float:
        """How much it matters."""


@dataclass(frozen=True, slots=True)
class Selections:
    """The selections of a workload: over codes, and as exact predicates over raw rows.

    `warnings` are for whoever makes the release, not for the release: they tell what its rows do not hold.
    """

    coded: CodedSelections
    predicates: tuple[Predicate, ...]  # (selection,)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Asked:
    """One selection: the text it is known by, what it asks, and the request it comes from."""

    name: str
    predicate: Predicate
    weight: float
    place: str
    is_each: bool = False


def predicates_of(
    requests: Sequence[SelectionRequest], columns: Sequence[Column], frame: pl.DataFrame
) -> tuple[Predicate, ...]:
    """The predicates of the requests that have one, for `faces`; all faults are reported together.

    Args:
        requests: The selections of a workload.
        columns: All columns of the table.
        frame: Its raw rows.
    """
    kinds = kinds_of(columns, frame)
    return tuple(asked.predicate for asked in _asked(requests, kinds, lambda _: []))


def code_selections(
    requests: Sequence[SelectionRequest], columns: Sequence[Column], domains: Sequence[Domain], frame: pl.DataFrame
) -> Selections:
    """Code the selections of a workload.

    Args:
        requests: The selections.
        columns: All columns of the table.
        domains: What the codes of each quasi-identifier stand for, with the faces of the predicates (`with_faces`).
        frame: The raw rows.

    Returns:
        The selections: disjoint rectangles of codes, and which rows each counts for.
    """
    kinds, rows = kinds_of(columns, frame), Rows(frame)
    by_name = {domain.name: domain for domain in domains}

    def each(name: str) -> list[tuple[str, Condition]]:
        return selections_of_each(rows.column(kinds[name]), by_name.get(name))

    asked = list(_asked(requests, kinds, each))
    if len(asked) > LIMIT:
        raise SpecError([f"workload.selections: {len(asked):,} selections are more than {LIMIT:,}; ask for fewer."])
    coder = _Coder(rows, domains)
    warnings = [warning for one in asked if not one.is_each for warning in _unmet(one, rows)]
    return Selections(coder.coded(asked), tuple(one.predicate for one in asked), tuple(warnings))


def code_predicates(predicates: Sequence[Predicate], domains: Sequence[Domain], rows: Rows) -> CodedSelections:
    """Code predicates as selections of equal weight.

    Args:
        predicates: What is asked.
        domains: What the codes of each quasi-identifier stand for.
        rows: The raw rows.
    """
    asked = [_Asked("", one, 1.0, f"query {number}", is_each=True) for number, one in enumerate(predicates, start=1)]
    return _Coder(rows, domains).coded(asked)


def _asked(
    requests: Sequence[SelectionRequest],
    kinds: Mapping[str, ColumnKind],
    each: Callable[[str], list[tuple[str, Condition]]],
) -> Iterator[_Asked]:
    """The selections of all requests in order."""
    faults: list[str] = []
    found: list[_Asked] = []
    for number, request in enumerate(requests):
        place = f"workload.selections[{number}]"
        try:
            if request.where is not None and request.each is None:
                predicate = parse_predicate(request.where, kinds)
                found.append(_Asked(request.where, predicate, request.weight, place))
            elif request.each is not None and request.where is None:
                _check_each(request.each, kinds)
                parts = each(request.each)
                found += [_Asked(name, condition, request.weight, place, is_each=True) for name, condition in parts]
            else:
                faults.append(f"{place} must have either a where or an each.")
        except SpecError as error:
            faults += [f"{place}: {fault}" for fault in error.faults]
    if faults:
        raise SpecError(faults)
    return iter(found)


def _check_each(name: str, kinds: Mapping[str, ColumnKind]) -> None:
    kind = kinds.get(name)
    if kind is None:
        raise SpecError([f"each = '{name}' is no column; {did_you_mean(name, kinds)}"])
    if not kind.is_released:
        role = kind.declared.role
        raise SpecError([f"each = '{name}' is not released (its role is '{role}'), so nobody can select by it."])
    if kind.holding == Holding.NOTHING_PLAIN:
        raise SpecError([f"each = '{name}' holds neither numbers, dates, texts nor truths."])


def _unmet(asked: _Asked, rows: Rows) -> Iterator[str]:
    """A warning for each name of a column without a declared domain that no row has: it may be a slip."""
    for condition in conditions_of(asked.predicate):
        declared = condition.kind.declared
        if condition.kind.type != ColumnType.NOMINAL or declared.taxonomy is not None or declared.domain:
            continue
        column = rows.column(condition.kind)
        for value in condition.values:
            wanted = Condition(condition.column, Relation.IN, (value,), kind=condition.kind)
            if not column.truth(wanted).any():
                yield f"{asked.place}: no row has {condition.column} = {written(value)}; a slip?"


class _Coder:
    """Codes predicates over the quasi-identifiers of a table."""

    def __init__(self, rows: Rows, domains: Sequence[Domain]) -> None:
        self.rows = rows
        self.domains = domains
        self.sizes = [size_of(domain) for domain in domains]
        self.place = {domain.name: place for place, domain in enumerate(domains)}

    def coded(self, asked: Sequence[_Asked]) -> CodedSelections:
        """The coded form of all selections."""
        predicates = [by_column(unobserved_met_by_cuts(one.predicate, self.is_observed)) for one in asked]
        raw = [self.raw_parts(predicate) for predicate in predicates]
        parts = list(dict.fromkeys(part for found in raw for part in found))
        signatures, truths = self.signatures(parts)
        place = {part: number for number, part in enumerate(parts)}
        rectangles: list[Rectangle] = []
        applies: list[NDArray[np.bool_]] = []
        selection: list[int] = []
        for number, predicate in enumerate(predicates):
            needed = [place[part] for part in raw[number]]
            try:
                found = self.rectangles(predicate, raw[number], truths[:, needed])
            except SpecError as error:
                raise SpecError([f"{asked[number].place}: {fault}" for fault in error.faults]) from None
            rectangles += [rectangle for rectangle, _ in found]
            applies += [which for _, which in found]
            selection += [number] * len(found)
            if len(rectangles) > LIMIT:
                raise SpecError([f"workload.selections: they need more than {LIMIT:,} rectangles; ask for fewer."])
            if len(rectangles) * sum(self.sizes) > LARGEST:
                widest = max(zip(self.sizes, self.place, strict=True))
                raise SpecError(
                    [
                        f"workload.selections: too many for columns of so many values ('{widest[1]}' has "
                        f"{widest[0]:,}); ask for fewer, or round its values."
                    ]
                )
        return CodedSelections(
            rectangles=masks_of(rectangles, self.sizes),
            selection=np.array(selection, dtype=np.int64),
            weights=np.array([one.weight for one in asked], dtype=np.float64),
            signatures=signatures,
            applies=np.array(applies, dtype=np.uint8).reshape(len(rectangles), len(truths)).T.copy(),
            faces=self.faces(one for one, which in zip(predicates, asked, strict=True) if not which.is_each),
            names=tuple(one.name for one in asked),
        )

    def is_observed(self, condition: Condition) -> bool:
        """Whether some row has the end of a condition, where that matters."""
        place = self.place.get(condition.column)
        domain = None if place is None else self.domains[place]
        if not isinstance(domain, OrderedDomain) or has_steps(domain.dtype):
            return True
        equal = Condition(condition.column, Relation.IN, condition.values, kind=condition.kind)
        return bool(self.rows.column(condition.kind).truth(equal).any())

    def raw_parts(self, predicate: Predicate) -> list[Predicate]:
        """The parts over single columns that are released as they are."""
        column = column_of(predicate)
        if column is not None:
            return [] if column in self.place else [predicate]
        assert not isinstance(predicate, Condition)
        return list(dict.fromkeys(found for part in predicate.parts for found in self.raw_parts(part)))

    def signatures(self, parts: Sequence[Predicate]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The signature of each row, and of each signature which parts hold. (row,), (signature, part)"""
        found = np.zeros(len(self.rows.frame), np.int64)
        truths = np.zeros((1, 0), np.bool_)
        order: list[int] = []
        for name in dict.fromkeys(column_of(part) for part in parts):
            places = [number for number, part in enumerate(parts) if column_of(part) == name]
            column = self.rows.column(next(conditions_of(parts[places[0]])).kind)
            different, group = _different(np.stack([truth_of(parts[number], column) for number in places], axis=1))
            used, found = np.unique(found * len(different) + group[column.places], return_inverse=True)
            truths = np.hstack([truths[used // len(different)], different[used % len(different)]])
            order += places
        return found, truths[:, np.argsort(order)]

    def rectangles(
        self, predicate: Predicate, raw: Sequence[Predicate], truths: NDArray[np.bool_]
    ) -> list[tuple[Rectangle, NDArray[np.bool_]]]:
        """The rectangles of a predicate, and for which signatures each counts; disjoint for every signature."""
        patterns, pattern_of = _different(truths)
        found: dict[tuple[tuple[tuple[int, int], ...], ...], NDArray[np.bool_]] = {}
        for number, pattern in enumerate(patterns):
            known = dict(zip(raw, pattern.tolist(), strict=True))
            parts = rectangles_of(predicate, partial(self.part, known=known), self.sizes)
            key = tuple(tuple(sorted(rectangle.items())) for rectangle in parts)
            found[key] = found.get(key, False) | (pattern_of == number)
        return [(dict(rectangle), which) for key, which in found.items() for rectangle in key]

    def part(self, predicate: Predicate, known: Mapping[Predicate, bool]) -> Part:
        """What a part over one column selects; of raw columns it is known for each signature."""
        column = column_of(predicate)
        assert column is not None
        if column not in self.place:
            return known[predicate]
        place = self.place[column]
        return place, set_of(codes_of(predicate, self.domains[place]))

    def faces(self, predicates: Iterator[Predicate]) -> NDArray[np.uint8]:
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
