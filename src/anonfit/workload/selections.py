# SPDX-License-Identifier: Apache-2.0
"""The selections of a workload: from requests, also of one selection per value of a column, to rectangles of codes and
the rows they count for. Nothing is selected by sensitive columns, or by capped targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import polars as pl

from anonfit.criteria.targets import CodedSelections
from anonfit.errors import SpecError, did_you_mean
from anonfit.tables.scales import on_axis
from anonfit.tables.schema import Column, ColumnType, Domain, NominalDomain, Role, name_positions
from anonfit.tables.taxonomy_leaves import leaf_positions
from anonfit.workload import predicates
from anonfit.workload.coding import Selection, SelectionCoder
from anonfit.workload.parsing import PLAIN_NAME, parse_predicate
from anonfit.workload.predicates import LIMIT, ColumnKind, Condition, Holding, Predicate, Relation, Value
from anonfit.workload.truth import ColumnValues, RawTable, TableValues, name_in, written


def selections_of_each(column: ColumnValues, domain: Domain | None) -> list[tuple[str, Condition]]:
    """A condition per value that rows have, missing first, each with the text that says it; a column with a domain is a
    quasi-identifier, and of a nominal one the leaves are its values.
    """
    kind = column.kind
    name = kind.declared.name
    shown = name if PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'
    selections = []
    if column.missing_rows:
        selections.append((f"{shown} IS NULL", Condition(name, Relation.MISSING, kind=kind)))
    if isinstance(domain, NominalDomain):
        selections += _of_leaves(shown, column, domain)
    else:
        selections += [(f"{shown} = {written(value)}", _equal(kind, value)) for value in _values(column)]
    if len(selections) > LIMIT:
        raise SpecError(
            [f"column '{name}' has {len(selections):,} values; one selection each would be more than {LIMIT:,}."]
        )
    return selections


def _values(column: ColumnValues) -> Sequence[Value]:
    """The values of a column that has no leaves."""
    if column.kind.type == ColumnType.ORDINAL:
        return [column.kind.declared.order[rank] for rank in sorted(set(column.ranks.tolist()))]
    if column.kind.holding in (Holding.TEXTS, Holding.TRUTHS):
        return sorted(column.names)
    on_axis(column.distinct)  # refuses numbers that are infinite
    return [_value(value) for value in column.distinct.to_list()]


def _equal(kind: ColumnKind, value: Value) -> Condition:
    return Condition(kind.declared.name, Relation.IN, (value,), kind=kind)


def _of_leaves(shown: str, column: ColumnValues, domain: NominalDomain) -> list[tuple[str, Condition]]:
    """A condition per leaf that rows have; values too rare to be named are one."""
    kind, leaves = column.kind, domain.taxonomy.leaves
    if kind.declared.taxonomy is not None:
        truths = kind.holding == Holding.TRUTHS
        present = leaf_positions(domain.taxonomy, column.distinct == "true" if truths else column.distinct)
    else:
        present = name_positions(leaves, column.distinct)
        if domain.other is not None:  # a value that happens to be written as that leaf is itself not named
            present[present == domain.taxonomy.leaf_position[domain.other]] = -1
    selections = [
        (f"{shown} = {written(leaves[position])}", _equal(kind, name_in(leaves[position], kind)))
        for position in np.unique(present[present >= 0]).tolist()
    ]
    if domain.other is not None and (present < 0).any():
        others = tuple(name_in(leaf, kind) for leaf in leaves if leaf != domain.other)
        rare = Condition(kind.declared.name, Relation.NOT_IN, others, kind=kind)
        selections.append((f"{shown} is none of its frequent values", rare))
    return selections


def _value(value: Any) -> Value:
    """A value of a frame as a condition compares it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else Fraction(value)


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
    """The predicates of the requests that have one, for `selection_boundaries`; all faults are reported together."""
    kinds = predicates.kinds_of(columns, frame)
    return tuple(asked.predicate for asked in _asked(requests, kinds, lambda _: []))


def code_selections(
    requests: Sequence[SelectionRequest], columns: Sequence[Column], domains: Sequence[Domain], frame: pl.DataFrame
) -> Selections:
    """The selections of a workload as disjoint rectangles of codes, and which raw rows each counts for; the domains
    have the boundaries of the predicates (`with_boundaries`).
    """
    rows = RawTable(frame)
    asked = ask_selections(requests, predicates.kinds_of(columns, frame), domains, rows)
    return Selections(asked.coder.of_rows(rows), asked.predicates, asked.warnings)


def ask_selections(
    requests: Sequence[SelectionRequest],
    kinds: Mapping[str, ColumnKind],
    domains: Sequence[Domain],
    values: TableValues,
) -> AskedSelections:
    """The selections of a workload, given what its columns are and which values they have."""
    by_name = {domain.name: domain for domain in domains}

    def each(name: str) -> list[tuple[str, Condition]]:
        return selections_of_each(values.column(kinds[name]), by_name.get(name))

    asked = _asked(requests, kinds, each)
    if len(asked) > LIMIT:
        raise SpecError([f"workload.selections: {len(asked):,} selections are more than {LIMIT:,}; ask for fewer."])
    warnings = [warning for selection in asked if not selection.is_each for warning in _unmet(selection, values)]
    coder = SelectionCoder(asked, domains, values)
    return AskedSelections(coder, tuple(selection.predicate for selection in asked), tuple(warnings))


def code_predicates(predicates: Sequence[Predicate], domains: Sequence[Domain], rows: RawTable) -> CodedSelections:
    """Code predicates as selections of equal weight."""
    asked = [
        Selection("", predicate, 1.0, f"query {number}", is_each=True)
        for number, predicate in enumerate(predicates, start=1)
    ]
    return SelectionCoder(asked, domains, rows).of_rows(rows)


def _asked(
    requests: Sequence[SelectionRequest],
    kinds: Mapping[str, ColumnKind],
    each: Callable[[str], list[tuple[str, Condition]]],
) -> list[Selection]:
    """The selections of all requests in order."""
    faults: list[str] = []
    selections: list[Selection] = []
    known = _KnownColumns(kinds)
    for number, request in enumerate(requests):
        place = f"workload.selections[{number}]"
        try:
            if request.where is not None and request.each is None:
                predicate = _predicate(request.where, known)
                selections.append(Selection(request.where, predicate, request.weight, place))
            elif request.each is not None and request.where is None:
                _check_each(request.each, kinds)
                weight, parts = request.weight, each(request.each)
                selections += [Selection(name, condition, weight, place, is_each=True) for name, condition in parts]
            else:
                faults.append(f"{place} must have either a where or an each.")
        except SpecError as error:
            faults += [f"{place}: {fault}" for fault in error.faults]
    if faults:
        raise SpecError(faults)
    return selections


class _KnownColumns:
    """Columns that are the same if the same is declared of them, by the same objects."""

    def __init__(self, columns: Mapping[str, ColumnKind]) -> None:
        self.columns = columns
        self.key = tuple((name, kind.type, kind.holding, id(kind.declared)) for name, kind in columns.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _KnownColumns) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=1 << 12)  # what is asked is read by many: to check it, to code it, to answer it
def _predicate(where: str, known: _KnownColumns) -> Predicate:
    return parse_predicate(where, known.columns)


def _check_each(name: str, kinds: Mapping[str, ColumnKind]) -> None:
    kind = kinds.get(name)
    if kind is None:
        raise SpecError([f"each = '{name}' is no column; {did_you_mean(name, kinds)}"])
    if not kind.is_released:
        role = kind.declared.role
        raise SpecError([f"each = '{name}' is not released (its role is '{role}'), so nobody can select by it."])
    if kind.holding == Holding.NOTHING_PLAIN:
        raise SpecError([f"each = '{name}' holds neither numbers, dates, texts nor truths."])


def _unmet(asked: Selection, values: TableValues) -> Iterator[str]:
    """A warning for each name of a column without a declared domain that no row has: it may be a slip."""
    for condition in predicates.conditions_of(asked.predicate):
        declared = condition.kind.declared
        if condition.kind.type != ColumnType.NOMINAL or declared.taxonomy is not None or declared.domain:
            continue
        column = values.column(condition.kind)
        for value in condition.values:
            wanted = Condition(condition.column, Relation.IN, (value,), kind=condition.kind)
            if not column.truth(wanted).any():
                yield f"{asked.place}: no row has {condition.column} = {written(value)}; a slip?"


def refuse_sensitive_selections(
    requests: Sequence[SelectionRequest], columns: Sequence[Column], frame: pl.DataFrame, *, is_capped: bool
) -> None:
    """Refuse selections by sensitive columns and by targets that are capped; all faults are reported together."""
    predicates_of(requests, columns, frame)  # refuses those that cannot be read
    kinds = predicates.kinds_of(columns, frame)
    faults = [
        f"workload.selections[{number}]: {why}"
        for number, request in enumerate(requests)
        for name in _names(request, kinds)
        if (why := why_not_selectable(name, kinds[name].declared.role, is_capped=is_capped))
    ]
    if faults:
        raise SpecError(faults)


def _names(request: SelectionRequest, kinds: Mapping[str, ColumnKind]) -> Iterable[str]:
    """The columns that a selection names, each once."""
    if request.where is None:
        return () if request.each is None else (request.each,)
    return dict.fromkeys(
        condition.column for condition in predicates.conditions_of(_predicate(request.where, _KnownColumns(kinds)))
    )


def why_not_selectable(name: str, role: Role, *, is_capped: bool) -> str | None:
    """Why nothing may be selected by a column; None if it may."""
    if role == Role.SENSITIVE:
        return (
            f"'{name}' is sensitive: regions made for its values, and a report of how well they are answered, would "
            "tell them of persons; select by other columns."
        )
    if role == Role.TARGET and is_capped:
        return (
            f"'{name}' is a target that privacy.max_confidence caps: a report of how well its values are answered "
            "would tell more of persons; select by other columns, or remove max_confidence."
        )
    return None
