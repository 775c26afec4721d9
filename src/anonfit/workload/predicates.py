# SPDX-License-Identifier: Apache-2.0
"""Predicates over columns: a tree of AND and OR over conditions. NOT is already worked into the conditions, so that a
missing value satisfies a condition only where it is asked for, as in SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.tables.codebook import column_type
from anonfit.tables.schema import Column, ColumnType, Role

Value: TypeAlias = str | Fraction | datetime
"""What a condition compares with: a name, an exact number, or a moment (of UTC where it had a zone)."""


class Holding(StrEnum):
    """What the values of a column are."""

    NUMBERS = "numbers"
    DATES = "dates"
    TEXTS = "texts"
    TRUTHS = "truths"
    NOTHING_PLAIN = "no plain values"


@dataclass(frozen=True, slots=True)
class ColumnKind:
    """What a predicate must know of a column: what is declared of it, and what its values are."""

    declared: Column
    type: ColumnType
    holding: Holding

    @property
    def is_ordered(self) -> bool:
        """Whether its values are compared by number or date."""
        return self.type in (ColumnType.CONTINUOUS, ColumnType.DATE)

    @property
    def is_released(self) -> bool:
        """Whether anybody can select by it."""
        role = self.declared.role
        return role == Role.QUASI_IDENTIFIER or role.is_released_raw


class Relation(StrEnum):
    """How a value must stand to those of a condition. A missing value satisfies MISSING only."""

    IN = "in"
    NOT_IN = "not in"
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="
    MISSING = "is null"
    NOT_MISSING = "is not null"

    @property
    def is_of_order(self) -> bool:
        """Whether it needs values that have an order."""
        return self in (Relation.LESS, Relation.AT_MOST, Relation.MORE, Relation.AT_LEAST)

    @property
    def opposite(self) -> Relation:
        """What NOT makes of it."""
        return _OPPOSITES[self]


_OPPOSITES = {
    Relation.IN: Relation.NOT_IN,
    Relation.NOT_IN: Relation.IN,
    Relation.LESS: Relation.AT_LEAST,
    Relation.AT_LEAST: Relation.LESS,
    Relation.MORE: Relation.AT_MOST,
    Relation.AT_MOST: Relation.MORE,
    Relation.MISSING: Relation.NOT_MISSING,
    Relation.NOT_MISSING: Relation.MISSING,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A relation between a column and values: any number for IN and NOT_IN, one for those of order, else none."""

    column: str
    relation: Relation
    values: tuple[Value, ...] = ()
    kind: ColumnKind = field(kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold. Without parts: every row."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Some part holds. Without parts: no row."""

    parts: tuple[Predicate, ...]


Predicate: TypeAlias = And | Or | Condition


def all_of(parts: Iterable[Predicate]) -> Predicate:
    """The parts joined by AND, without nesting that says nothing."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def any_of(parts: Iterable[Predicate]) -> Predicate:
    """The parts joined by OR, without nesting that says nothing."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,))]
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def conditions_of(predicate: Predicate) -> Iterator[Condition]:
    """All conditions of a predicate."""
    if isinstance(predicate, Condition):
        yield predicate
        return
    for part in predicate.parts:
        yield from conditions_of(part)


def column_of(predicate: Predicate) -> str | None:
    """The column of a predicate over one column."""
    columns = {condition.column for condition in conditions_of(predicate)}
    return columns.pop() if len(columns) == 1 else None


def evaluated(predicate: Predicate, truth: Callable[[Condition], NDArray[Any]]) -> NDArray[Any]:
    """What a predicate comes to, given the truths of each of its conditions."""
    if isinstance(predicate, Condition):
        return truth(predicate)
    parts = [evaluated(part, truth) for part in predicate.parts]
    truths: NDArray[Any] = (np.bitwise_and if isinstance(predicate, And) else np.bitwise_or).reduce(parts)
    return truths


def mapped(predicate: Predicate, change: Callable[[Condition], Predicate]) -> Predicate:
    """The predicate with every condition changed."""
    if isinstance(predicate, Condition):
        return change(predicate)
    parts = (mapped(part, change) for part in predicate.parts)
    return all_of(parts) if isinstance(predicate, And) else any_of(parts)


def kinds_of(columns: Sequence[Column], frame: pl.DataFrame) -> dict[str, ColumnKind]:
    """The kind of each column, by name; columns that the frame does not hold (identifiers) are known too."""
    kinds = {}
    for column in columns:
        dtype = frame.schema.get(column.name, pl.String())
        declared = column_type(column, dtype)
        # A taxonomy says what is near what; the order of the values has no part in it.
        kind = ColumnType.NOMINAL if column.taxonomy is not None else declared
        kinds[column.name] = ColumnKind(column, kind, _holding(declared, dtype))
    return kinds


def _holding(declared: ColumnType, dtype: pl.DataType) -> Holding:
    """What values of a type are, once those that are declared to be numbers or dates are read as such."""
    if dtype.is_float() or declared == ColumnType.CONTINUOUS:
        return Holding.NUMBERS
    if dtype in (pl.Date, pl.Datetime) or declared == ColumnType.DATE:
        return Holding.DATES
    if dtype.is_numeric():
        return Holding.NUMBERS
    if dtype == pl.Boolean:
        return Holding.TRUTHS
    return Holding.TEXTS if isinstance(dtype, pl.String | pl.Categorical | pl.Enum) else Holding.NOTHING_PLAIN
