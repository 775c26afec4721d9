# SPDX-License-Identifier: Apache-2.0
"""The selections of a workload, coded: from requests to rectangles of codes and the rows they count for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from anonfit.criteria.selections import CodedSelections
from anonfit.errors import SpecError, did_you_mean
from anonfit.tables.domains import Domain
from anonfit.tables.schema import Column, ColumnType
from anonfit.workload.each import selections_of_each
from anonfit.workload.literals import written
from anonfit.workload.parsing import parse_predicate
from anonfit.workload.predicates import ColumnKind, Condition, Holding, Predicate, Relation, conditions_of, kinds_of
from anonfit.workload.rectangles import LIMIT
from anonfit.workload.selection_coding import Selection, SelectionCoder
from anonfit.workload.truth import Rows, Values

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "AskedSelections",
    "SelectionRequest",
    "Selections",
    "ask_selections",
    "code_predicates",
    "code_selections",
    "predicates_of",
]


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
class AskedSelections:
    """The selections of a workload over the values of a table, whichever rows have these."""

    coder: SelectionCoder
    predicates: tuple[Predicate, ...]  # (selection,)
    warnings: tuple[str, ...]


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
    rows = Rows(frame)
    found = ask_selections(requests, kinds_of(columns, frame), domains, rows)
    return Selections(found.coder.of_rows(rows), found.predicates, found.warnings)


def ask_selections(
    requests: Sequence[SelectionRequest], kinds: Mapping[str, ColumnKind], domains: Sequence[Domain], values: Values
) -> AskedSelections:
    """The selections of a workload, given what its columns are and which values they have."""
    by_name = {domain.name: domain for domain in domains}

    def each(name: str) -> list[tuple[str, Condition]]:
        return selections_of_each(values.column(kinds[name]), by_name.get(name))

    asked = list(_asked(requests, kinds, each))
    if len(asked) > LIMIT:
        raise SpecError([f"workload.selections: {len(asked):,} selections are more than {LIMIT:,}; ask for fewer."])
    warnings = [warning for one in asked if not one.is_each for warning in _unmet(one, values)]
    coder = SelectionCoder(asked, domains, values)
    return AskedSelections(coder, tuple(one.predicate for one in asked), tuple(warnings))


def code_predicates(predicates: Sequence[Predicate], domains: Sequence[Domain], rows: Rows) -> CodedSelections:
    """Code predicates as selections of equal weight.

    Args:
        predicates: What is asked.
        domains: What the codes of each quasi-identifier stand for.
        rows: The raw rows.
    """
    asked = [Selection("", one, 1.0, f"query {number}", is_each=True) for number, one in enumerate(predicates, start=1)]
    return SelectionCoder(asked, domains, rows).of_rows(rows)


def _asked(
    requests: Sequence[SelectionRequest],
    kinds: Mapping[str, ColumnKind],
    each: Callable[[str], list[tuple[str, Condition]]],
) -> Iterator[Selection]:
    """The selections of all requests in order."""
    faults: list[str] = []
    found: list[Selection] = []
    for number, request in enumerate(requests):
        place = f"workload.selections[{number}]"
        try:
            if request.where is not None and request.each is None:
                predicate = parse_predicate(request.where, kinds)
                found.append(Selection(request.where, predicate, request.weight, place))
            elif request.each is not None and request.where is None:
                _check_each(request.each, kinds)
                parts = each(request.each)
                found += [Selection(name, condition, request.weight, place, is_each=True) for name, condition in parts]
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


def _unmet(asked: Selection, values: Values) -> Iterator[str]:
    """A warning for each name of a column without a declared domain that no row has: it may be a slip."""
    for condition in conditions_of(asked.predicate):
        declared = condition.kind.declared
        if condition.kind.type != ColumnType.NOMINAL or declared.taxonomy is not None or declared.domain:
            continue
        column = values.column(condition.kind)
        for value in condition.values:
            wanted = Condition(condition.column, Relation.IN, (value,), kind=condition.kind)
            if not column.truth(wanted).any():
                yield f"{asked.place}: no row has {condition.column} = {written(value)}; a slip?"
