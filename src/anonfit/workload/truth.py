# SPDX-License-Identifier: Apache-2.0
"""The values of a predicate, what a written number, text, date or truth means in a column, and which rows of a raw
table satisfy a predicate, exactly. Conditions are tried on the distinct values of a column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from functools import cached_property, reduce
from math import ceil, floor, inf
from operator import and_, or_
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import DataError, did_you_mean
from anonfit.tables.codebook import typed
from anonfit.tables.frames import categorized
from anonfit.tables.scales import START_OF_TIME, Axis, on_axis
from anonfit.tables.schema import ColumnType, name_positions, require_known, texts_of
from anonfit.tables.taxonomy import Taxonomy
from anonfit.tables.taxonomy_leaves import leaf_positions
from anonfit.workload import predicates
from anonfit.workload.predicates import COMPARISONS, And, ColumnKind, Condition, Holding, Predicate, Relation, Value

DAY = 24 * 3600 * 10**6


def has_steps(dtype: pl.DataType) -> bool:
    """Whether there is a next value after each: whole numbers, decimals and days. Times and fractions are held to be
    dense, since the next microsecond makes no sense in a label.
    """
    return dtype.is_integer() or dtype.is_decimal() or dtype == pl.Date


def place_of(value: Value, dtype: pl.DataType) -> Fraction | float:
    """Where a value stands on the axis of a column type: exactly, or as the nearest float that the column can hold."""
    if isinstance(value, datetime):
        time = value - START_OF_TIME
        microseconds = (time.days * 86_400 + time.seconds) * 10**6 + time.microseconds
        return Fraction(microseconds, DAY if dtype == pl.Date else 1)
    assert isinstance(value, Fraction)
    if isinstance(dtype, pl.Decimal):
        return value * Fraction(10) ** int(dtype.scale or 0)
    if dtype.is_integer():
        return value
    try:
        number = float(value)
    except OverflowError:
        return inf if value > 0 else -inf
    # So that 37.1 is 37.1 also in a column of 32 bits.
    return float(np.float32(number)) if dtype == pl.Float32 else number


def compared(axis: Axis, relation: Relation, values: tuple[Value, ...], dtype: pl.DataType) -> NDArray[np.bool_]:
    """Which numbers of an axis stand in a relation to the values."""
    places = [place_of(value, dtype) for value in values]
    if relation in (Relation.IN, Relation.NOT_IN):
        if axis.dtype.kind == "i":  # it can hold whole numbers of 64 bits
            whole = [int(place) for place in places if place % 1 == 0 and -(2**63) <= place < 2**63]
            equal = np.isin(axis, np.array(whole, dtype=np.int64))
        else:
            equal = np.isin(axis, np.array(places, dtype=np.float64))
        return ~equal if relation == Relation.NOT_IN else equal
    (place,) = places
    # Against whole numbers a fraction is rounded to the side on which it changes nothing.
    if isinstance(place, Fraction):
        place = ceil(place) if relation in (Relation.AT_LEAST, Relation.LESS) else floor(place)
    return np.asarray(COMPARISONS[relation](axis, place))


def cut_places(relation: Relation, value: Value, dtype: pl.DataType) -> list[int | float]:
    """Where cuts part what is selected from what is not: above each place on the one side, below it on the other.

    On a dense axis AT_MOST and MORE have none: the cut is anywhere between the value and the next one.
    """
    place = place_of(value, dtype)
    if not has_steps(dtype):
        number = int(place) if isinstance(place, Fraction) else place
        return [] if relation in (Relation.AT_MOST, Relation.MORE) else [number]
    assert isinstance(place, Fraction)
    if relation in (Relation.AT_LEAST, Relation.LESS):
        return [ceil(place)]
    if relation in (Relation.AT_MOST, Relation.MORE):
        return [floor(place) + 1]
    return [int(place), int(place) + 1] if place.denominator == 1 else []


LONGEST_NUMBER = 400
"""Digits and exponents beyond it are refused: no text may ask for a number of unbounded size."""


class Form(StrEnum):
    """How a value is written."""

    NUMBER = "number"
    TEXT = "text"
    DATE = "date"
    TRUTH = "truth"


class Literal(NamedTuple):
    """A value as it is written: what it is, its text, and the words of the predicate that say so."""

    form: Form
    text: str
    quoted: str


def number_in(text: str) -> Fraction | None:
    """The exact number that a text is, if it is one."""
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa) > LONGEST_NUMBER or len(exponent) > 4 or "/" in text or "_" in text:
        return None
    try:
        return Fraction(text) if not exponent or abs(int(exponent)) <= LONGEST_NUMBER else None
    except ValueError:
        return None


def moment_in(text: str) -> datetime | None:
    """The date or time that a text is, if it is one in ISO form."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo is not None else moment
    except (ValueError, OverflowError):
        return None


def plain_in(text: str, holding: Holding) -> Value | None:
    """The number or moment that a text is, in a column of numbers or dates; in others a text is itself."""
    if holding == Holding.NUMBERS:
        return number_in(text)
    return moment_in(text) if holding == Holding.DATES else text


def values_of(literal: Literal, kind: ColumnKind) -> tuple[Value, ...]:
    """What a literal means in a column: one value, or the leaves below a node of its taxonomy.

    Raises:
        ValueError: The column cannot hold such a value; the message says why and what can be written.
    """
    if kind.type == ColumnType.ORDINAL:
        return (_known(_name(literal), kind.declared.order, "its order"),)
    taxonomy = kind.declared.taxonomy
    if taxonomy is not None and literal.form == Form.TEXT:
        leaves = _leaves(taxonomy, literal.text)
        if leaves:
            return tuple(name_in(leaf, kind) for leaf in leaves)
    value = _plain(literal, kind)
    _check_declared(value, literal, kind)
    return (value,)


def _name(literal: Literal) -> str:
    """A literal as a name: in columns of names a number is the name that is written with its digits."""
    if literal.form == Form.DATE:
        raise ValueError(f"{literal.quoted} is a date, and the column holds names; write one in single quotes")
    return literal.text


def name_in(leaf: str, kind: ColumnKind) -> str:
    """A leaf as the name that rows are compared by: truths whatever the case they are written in."""
    return leaf.lower() if kind.holding == Holding.TRUTHS else leaf


def _plain(literal: Literal, kind: ColumnKind) -> Value:
    """A literal as a value of the column's kind."""
    if kind.holding == Holding.TEXTS:
        if literal.form == Form.TRUTH:
            raise ValueError(f"{literal.quoted} is a truth, and the column holds texts; write one in single quotes")
        return _name(literal)
    if kind.holding == Holding.TRUTHS:
        if literal.text.lower() in ("true", "false") and literal.form in (Form.TRUTH, Form.TEXT):
            return literal.text.lower()
        raise ValueError(f"{literal.quoted} is neither TRUE nor FALSE, and the column holds nothing else")
    if kind.holding == Holding.NUMBERS:
        number = number_in(literal.text) if literal.form in (Form.NUMBER, Form.TEXT) else None
        if number is None:
            raise ValueError(f"{literal.quoted} is no number, and the column holds numbers; write one without quotes")
        if literal.form == Form.TEXT and kind.type != ColumnType.NOMINAL:
            what = f"is a text, and the column holds numbers; write {literal.text} without quotes"
            raise ValueError(f"{literal.quoted} {what}")
        return number
    moment = moment_in(literal.text) if literal.form in (Form.TEXT, Form.DATE) else None
    if moment is None:
        raise ValueError(f"{literal.quoted} is no date, and the column holds dates; write one as '2020-01-31'")
    return moment


def _leaves(taxonomy: Taxonomy, name: str) -> tuple[str, ...]:
    """The leaf of a name, or all leaves below the node of that name; none if there is no such node."""
    if name in taxonomy.leaf_position:
        return (name,)
    if name not in taxonomy.names:
        return ()
    node = taxonomy.find(name)
    return taxonomy.leaves[taxonomy.first_leaf[node] : taxonomy.last_leaf[node] + 1]


def _check_declared(value: Value, literal: Literal, kind: ColumnKind) -> None:
    """Refuse a value that a declared taxonomy or domain does not hold: it can only be a slip."""
    if kind.type != ColumnType.NOMINAL:
        return
    taxonomy = kind.declared.taxonomy
    if taxonomy is not None:
        if isinstance(value, str):
            _known(value, [name_in(name, kind) for name in taxonomy.names], "its taxonomy")
        elif leaf_of_value(taxonomy, value) < 0:
            raise ValueError(f"no leaf of its taxonomy holds {literal.quoted}; name a node, or a value of a leaf")
    elif kind.declared.domain:
        names = [name_in(str(name), kind) for name in kind.declared.domain]
        if isinstance(value, str):
            _known(value, names, "its domain")
        elif value not in [plain_in(name, kind.holding) for name in names]:
            raise ValueError(f"{literal.quoted} is not in its domain; {did_you_mean(literal.text, names)}")


def _known(name: str, names: Iterable[str], where: str) -> str:
    known = list(names)
    if name not in known:
        raise ValueError(f"'{name}' is not in {where}; {did_you_mean(name, known)}")
    return name


def written(value: Value) -> str:
    """A value as SQL writes it."""
    if isinstance(value, Fraction):
        return str(int(value) if value.denominator == 1 else float(value))
    if isinstance(value, datetime):
        is_day = value == datetime(value.year, value.month, value.day)
        return f"'{value.date() if is_day else value}'"
    return "'" + value.replace("'", "''") + "'"


def leaf_of_value(taxonomy: Taxonomy, value: Fraction | datetime) -> int:
    """The position of the leaf that holds a number or moment, -1 if none does."""
    if isinstance(value, datetime):
        series = pl.Series([value], dtype=pl.Datetime("us"))
    elif value.denominator == 1 and abs(value) < 2**63:
        series = pl.Series([int(value)], dtype=pl.Int64)
    else:
        series = pl.Series([float(value)], dtype=pl.Float64)
    return int(leaf_positions(taxonomy, series)[0])


def holds(predicate: Predicate, frame: pl.DataFrame) -> NDArray[np.bool_]:
    """Whether each row of a raw table satisfies a predicate; missing values satisfy no comparison."""
    return RawTable(frame).holds(predicate)


class ColumnValues:
    """The distinct values of a column, and each row's place among them; missing rows have the place after the last."""

    def __init__(self, kind: ColumnKind, values: pl.Series) -> None:
        values = typed(kind.declared, values)
        self.kind = kind
        self.missing_rows = values.null_count()
        if kind.holding in (Holding.TEXTS, Holding.TRUTHS):
            self.distinct, self.places = categorized(texts_of(values))
        else:
            self.distinct, self.places = _numbered(values)

    @cached_property
    def axis(self) -> Axis:
        """The distinct values as numbers."""
        return _axis(self.distinct)

    @cached_property
    def names(self) -> list[str]:
        """The name of each distinct value: its leaf where it is a number or date in a taxonomy, else its text."""
        taxonomy = self.kind.declared.taxonomy
        if taxonomy is None or self.kind.holding in (Holding.TEXTS, Holding.TRUTHS):
            texts: list[str] = texts_of(self.distinct).to_list()
            return texts
        positions = leaf_positions(taxonomy, self.distinct, column=self.kind.declared.name)
        return [taxonomy.leaves[position] if position >= 0 else "" for position in positions.tolist()]

    @cached_property
    def ranks(self) -> NDArray[np.int32]:
        """The rank of each distinct value in the declared order."""
        ranks = name_positions(self.kind.declared.order, self.distinct)
        require_known(ranks, self.distinct, self.places, where="its order", error=DataError)
        return ranks

    def truth(self, condition: Condition) -> NDArray[np.bool_]:
        """Whether each distinct value satisfies a condition, and at the end whether a missing one does."""
        if condition.relation in (Relation.MISSING, Relation.NOT_MISSING):
            is_missing = condition.relation == Relation.MISSING
            return np.append(np.full(len(self.distinct), not is_missing), is_missing)
        return np.append(self._compared(condition), False)

    def _compared(self, condition: Condition) -> NDArray[np.bool_]:
        relation, values = condition.relation, condition.values
        if self.kind.is_ordered:
            return compared(self.axis, relation, values, self.distinct.dtype)
        if self.kind.type == ColumnType.ORDINAL:
            return ranked(self.ranks, condition)
        names = {value for value in values if isinstance(value, str)}
        plain = tuple(value for value in values if not isinstance(value, str))
        named = np.array([name in names for name in self.names], dtype=np.bool_) if names else np.False_
        if plain:
            named = named | compared(self.axis, Relation.IN, plain, self.distinct.dtype)
        met = np.broadcast_to(named, len(self.distinct))
        return ~met if relation == Relation.NOT_IN else met


def ranked(ranks: NDArray[Any], condition: Condition) -> NDArray[np.bool_]:
    """Which ranks of a declared order satisfy a condition."""
    wanted = [condition.kind.declared.order.index(str(value)) for value in condition.values]
    relation = condition.relation
    if relation in (Relation.IN, Relation.NOT_IN):
        return np.isin(ranks, wanted, invert=relation == Relation.NOT_IN)
    return np.asarray(COMPARISONS[relation](ranks, wanted[0]))


def _axis(values: pl.Series) -> Axis:
    """As `on_axis`, but a raw column may hold infinite numbers."""
    return values.to_numpy().astype(np.float64) + 0.0 if values.dtype.is_float() else on_axis(values)


def _numbered(values: pl.Series) -> tuple[pl.Series, NDArray[Any]]:
    """The distinct numbers, dates or times, ascending, and each row's place among them."""
    present = values.is_not_null().to_numpy()
    known = values.drop_nulls()
    _, first, ranks = np.unique(_axis(known), return_index=True, return_inverse=True)
    places = np.full(len(values), len(first), np.int64)
    places[present] = ranks
    return known.gather(first), places


class TableValues:
    """The values of a table's columns, of which each is looked at once."""

    def __init__(self, values: Callable[[str], pl.Series]) -> None:
        self.values = values
        self._columns: dict[str, ColumnValues] = {}

    def column(self, kind: ColumnKind) -> ColumnValues:
        """The values of a column."""
        name = kind.declared.name
        if name not in self._columns:
            self._columns[name] = ColumnValues(kind, self.values(name))
        return self._columns[name]


class RawTable(TableValues):
    """The rows of a raw table, asked about many predicates."""

    def __init__(self, frame: pl.DataFrame) -> None:
        super().__init__(frame.get_column)
        self.frame = frame

    def holds(self, predicate: Predicate) -> NDArray[np.bool_]:
        """Whether each row satisfies a predicate."""
        of_one = self._of_one_column(predicate)
        if of_one is not None:
            column, truth = of_one
            return np.asarray(truth[column.places])
        assert not isinstance(predicate, Condition)
        is_and = isinstance(predicate, And)
        return reduce(and_ if is_and else or_, map(self.holds, predicate.parts), np.full(len(self.frame), is_and))

    def count(
        self,
        predicates: Iterable[Predicate],
        *,
        counts: NDArray[Any] | None = None,
        among: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.int64]:
        """How many rows satisfy each predicate, each row counted `counts` times; only those `among` some rows."""
        weights = np.ones(len(self.frame), np.int64) if counts is None else np.asarray(counts, dtype=np.int64)
        if among is not None:
            weights = weights * among
        by_value: dict[str, NDArray[Any]] = {}
        totals = []
        for predicate in predicates:
            of_one = self._of_one_column(predicate)
            if of_one is None:
                totals.append(int(weights[self.holds(predicate)].sum()))
                continue
            column, truth = of_one
            name = column.kind.declared.name
            if name not in by_value:
                by_value[name] = np.bincount(column.places, weights=weights, minlength=len(truth))
            totals.append(round(by_value[name][truth].sum()))
        return np.array(totals, dtype=np.int64)

    def _of_one_column(self, predicate: Predicate) -> tuple[ColumnValues, NDArray[np.bool_]] | None:
        """The truth of each distinct value, for a predicate over a single column."""
        if predicates.column_of(predicate) is None:
            return None
        column = self.column(next(predicates.conditions_of(predicate)).kind)
        return column, predicates.evaluated(predicate, column.truth)
