# SPDX-License-Identifier: Apache-2.0
"""Predicates over columns: a tree of AND and OR over conditions, and what it is as disjoint rectangles, each a product
of one set of codes per quasi-identifier. Sets are the bits of a whole number, so that meeting and parting them is one
step.

NOT is already worked into the conditions, so that a missing value satisfies a condition only where it is asked for, as
in SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from operator import ge, gt, le, lt
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import SpecError
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
        return self in COMPARISONS

    @property
    def opposite(self) -> Relation:
        """What NOT makes of it."""
        return _OPPOSITES[self]


_PAIRS = (
    (Relation.IN, Relation.NOT_IN),
    (Relation.LESS, Relation.AT_LEAST),
    (Relation.MORE, Relation.AT_MOST),
    (Relation.MISSING, Relation.NOT_MISSING),
)
_OPPOSITES = dict(_PAIRS) | {second: first for first, second in _PAIRS}
COMPARISONS: dict[Relation, Callable[[Any, Any], Any]] = {
    Relation.LESS: lt,
    Relation.AT_MOST: le,
    Relation.MORE: gt,
    Relation.AT_LEAST: ge,
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
    else:
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
    return np.asarray((np.bitwise_and if isinstance(predicate, And) else np.bitwise_or).reduce(parts))


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


LIMIT = 10_000
"""Rectangles of a workload."""

Rectangle: TypeAlias = dict[int, int]
"""The set of codes of each quasi-identifier that is restricted; sets are never empty."""

Part: TypeAlias = tuple[int, int] | bool
"""What a predicate over one column selects: a quasi-identifier and a set of its codes; or, where it is over a column
that is released raw, whether it holds.
"""


def set_of(mask: NDArray[np.uint8]) -> int:
    """A mask of codes as the bits of a number."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


def masks_of(rectangles: Sequence[Rectangle], sizes: Sequence[int]) -> NDArray[np.uint8]:
    """(rectangle, code of any quasi-identifier) 1 where within; the columns have these many codes."""
    masks = np.ones((len(rectangles), sum(sizes)), np.uint8)
    first = np.cumsum([0, *sizes])
    for row, rectangle in enumerate(rectangles):
        for column, codes in rectangle.items():
            packed = np.frombuffer(codes.to_bytes(-(-sizes[column] // 8), "little"), np.uint8)
            bits = np.unpackbits(packed, count=sizes[column], bitorder="little")
            masks[row, first[column] : first[column + 1]] = bits
    return masks


def by_column(predicate: Predicate) -> Predicate:
    """The same predicate with parts over one and the same column put together: they are one set of codes."""
    if isinstance(predicate, Condition):
        return predicate
    grouped: dict[str | int, list[Predicate]] = {}
    for place, part in enumerate(predicate.parts):
        inner = by_column(part)
        column = column_of(inner)
        grouped.setdefault(place if column is None else column, []).append(inner)
    join = all_of if isinstance(predicate, And) else any_of
    parts = tuple(join(parts) for parts in grouped.values())
    return parts[0] if len(parts) == 1 else type(predicate)(parts)


def rectangles_of(predicate: Predicate, part: Callable[[Predicate], Part], sizes: Sequence[int]) -> list[Rectangle]:
    """Disjoint rectangles that together are what a predicate selects, which is put together by column; `part` says what
    its parts over one column select, and `sizes` how many codes each quasi-identifier has.
    """
    return _Parter(part, [(1 << size) - 1 for size in sizes]).of(predicate)


class _Parter:
    """Puts rectangles together so that they stay disjoint."""

    def __init__(self, part: Callable[[Predicate], Part], everything: Sequence[int]) -> None:
        self.part = part
        self.everything = everything

    def of(self, predicate: Predicate) -> list[Rectangle]:
        """The rectangles of a predicate."""
        if isinstance(predicate, Condition) or column_of(predicate) is not None:
            selected = self.part(predicate)
            if isinstance(selected, bool):
                return [{}] if selected else []
            column, codes = selected
            return [self.only(column, codes)] if codes else []
        parts = sorted((self.of(part) for part in predicate.parts), key=len)
        return self.all_of(parts) if isinstance(predicate, And) else self.any_of(parts)

    def all_of(self, parts: Sequence[list[Rectangle]]) -> list[Rectangle]:
        """What lies in all parts. Each is disjoint, so what their rectangles share is."""
        product: list[Rectangle] = [{}]
        for part in parts:
            shared = (_shared(rectangle, other) for rectangle in product for other in part)
            product = _bounded([both for both in shared if both is not None])
        return product

    def any_of(self, parts: Sequence[list[Rectangle]]) -> list[Rectangle]:
        """What lies in some part: of each what the parts before it leave over."""
        union: list[Rectangle] = []
        last = 0
        for part in parts:
            rest = part
            for taken in union:
                rest = _bounded([piece for rectangle in rest for piece in self.beside(rectangle, taken)])
            union = _bounded([*union, *rest])
            if len(union) > 2 * last:
                union = self.joined(union)
                last = len(union)
        return self.joined(union)

    def beside(self, rectangle: Rectangle, taken: Rectangle) -> list[Rectangle]:
        """What is left of a rectangle when another is taken from it, in disjoint pieces: one per column."""
        if any(not rectangle.get(column, codes) & codes for column, codes in taken.items()):
            return [rectangle]
        pieces, inner = [], dict(rectangle)
        for column, codes in taken.items():
            held = inner.get(column, self.everything[column])
            if held & ~codes:
                pieces.append({**inner, column: held & ~codes})
            inner[column] = held & codes
        return pieces

    def joined(self, rectangles: list[Rectangle]) -> list[Rectangle]:
        """Fewer rectangles: those that differ in one column only are one."""
        for column in sorted({column for rectangle in rectangles for column in rectangle}):
            alike: dict[tuple[tuple[int, int], ...], int] = {}
            for rectangle in rectangles:
                others = tuple(sorted((at, codes) for at, codes in rectangle.items() if at != column))
                alike[others] = alike.get(others, 0) | rectangle.get(column, self.everything[column])
            if len(alike) < len(rectangles):
                rectangles = [{**dict(others), **self.only(column, codes)} for others, codes in alike.items()]
        return rectangles

    def only(self, column: int, codes: int) -> Rectangle:
        """The rows with some codes of a column; that all of its codes are selected says nothing."""
        return {} if codes == self.everything[column] else {column: codes}


def _shared(rectangle: Rectangle, other: Rectangle) -> Rectangle | None:
    """What two rectangles share, if anything."""
    shared = dict(rectangle)
    for column, codes in other.items():
        shared[column] = shared[column] & codes if column in shared else codes
        if shared[column] == 0:
            return None
    return shared


def _bounded(rectangles: list[Rectangle]) -> list[Rectangle]:
    if len(rectangles) > LIMIT:
        raise SpecError([f"it needs more than {LIMIT:,} rectangles of values; divide it into several selections."])
    return rectangles
