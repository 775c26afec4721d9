# SPDX-License-Identifier: Apache-2.0
"""From columns of values to columns of codes: finds each quasi-identifier's domain and codes the rows with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_FLOOR
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import DataError, TaxonomyError, counted
from anonfit.tables import schema
from anonfit.tables.frames import categorized
from anonfit.tables.scales import Scale, on_axis, parse_cut, scale_of, thresholds
from anonfit.tables.schema import Codes, Column, ColumnType, Domain, NominalDomain, NominalSplit, code_dtype
from anonfit.tables.taxonomy import ROOT, Taxonomy
from anonfit.tables.taxonomy_leaves import advice_of, leaf_positions

PersonCounter = Callable[[NDArray[np.int64], int], NDArray[np.int64]]
"""Given a group number for each row and the number of groups: how many persons each group has."""

DENSE = 1 << 22
"""Integers within a range of so many values are coded through a table of that range instead of by sorting."""


@dataclass(frozen=True, slots=True)
class CodedValues:
    """A column's domain and the code of each row."""

    domain: Domain
    codes: Codes


def column_type(column: Column, dtype: pl.DataType) -> ColumnType:
    """The declared type of a column, or the one its data has."""
    if column.type is not None:
        return column.type
    if column.date_format is not None:
        return ColumnType.DATE
    if column.taxonomy is not None:
        return ColumnType.NOMINAL
    if dtype.is_numeric():
        return ColumnType.CONTINUOUS
    return ColumnType.DATE if dtype in (pl.Date, pl.Datetime) else ColumnType.NOMINAL


def typed(column: Column, values: pl.Series) -> pl.Series:
    """The values of a quasi-identifier in the type they are declared to be, with NaN as missing."""
    kind = column_type(column, values.dtype)
    if values.dtype.is_float():
        return values.fill_nan(None)
    if kind == ColumnType.CONTINUOUS and not values.dtype.is_numeric():
        # The text "NaN" is no number: like any text that means missing it must be listed, so that rows with it can be
        # dropped before values are parsed.
        numbers = values.cast(pl.String).cast(pl.Float64, strict=False).fill_nan(None)
        return _parsed(values, numbers, "numbers", "")
    if kind == ColumnType.DATE and values.dtype not in (pl.Date, pl.Datetime):
        days = _dates(values.cast(pl.String), column.date_format)
        return _parsed(values, days, "dates", " Declare date_format, for example '%d.%m.%Y'.")
    return values


def _dates(texts: pl.Series, form: str | None) -> pl.Series:
    if form is None:
        # Only ISO forms are read without being told: 01/02/2023 is a day in January to some and in February to others.
        days = texts.str.to_date("%Y-%m-%d", strict=False)
        if days.null_count() == texts.null_count():
            return days
        clocks = ("%H:%M:%S%.f", "%H:%M")
        joined = texts.str.replace(" ", "T", literal=True)
        times = [joined.str.to_datetime(f"%Y-%m-%dT{clock}", strict=False, time_unit="us") for clock in clocks]
        zoned = joined.str.to_datetime("%+", strict=False, time_unit="us", time_zone="UTC").dt.replace_time_zone(None)
        return pl.select(pl.coalesce(days.cast(pl.Datetime("us")), *times, zoned)).to_series()
    if any(part in form for part in ("%H", "%I", "%M", "%S", "%T")):
        return texts.str.to_datetime(form, strict=False, time_unit="us")
    return texts.str.strptime(pl.Date, form, strict=False)


def _parsed(before: pl.Series, after: pl.Series, what: str, advice: str) -> pl.Series:
    """The parsed values, or an error that says how many could not be parsed and in which rows, never what they are."""
    bad = (after.is_null() & before.is_not_null()).arg_true()
    if len(bad):
        rows = ", ".join(str(row + 1) for row in bad.head(3).to_list())
        raise DataError(
            f"column '{before.name}': {counted(len(bad), 'value is', 'values are')} not {what} (first in row {rows}); "
            f"mend them, list them under [data] missing, or make the column nominal.{advice}"
        )
    return after.alias(before.name)


def _distinct(axis: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The distinct numbers, ascending, and the rank of each number among them."""
    if axis.dtype.kind == "i" and len(axis):
        low, high = int(axis.min()), int(axis.max())
        if high - low < min(DENSE, 16 * len(axis) + 1024):
            offsets = axis - low
            seen = np.zeros(high - low + 1, bool)
            seen[offsets] = True
            ranks = np.cumsum(seen, dtype=np.int64) - 1
            values = np.flatnonzero(seen) + low
            return values, ranks.astype(code_dtype(len(values) + 1))[offsets]
    return np.unique(axis, return_inverse=True)


def _code_ordered(column: Column, values: pl.Series) -> CodedValues:
    has_missing = values.null_count() > 0
    distinct, ranks = _distinct(on_axis(values.drop_nulls() if has_missing else values))
    _check_calendar(column.name, values)
    kind = ColumnType.CONTINUOUS if values.dtype.is_numeric() else ColumnType.DATE
    domain = schema.OrderedDomain(
        column.name, kind, values.dtype, distinct, has_missing, column.domain, column.date_format
    )
    _check_declared(domain)
    codes = ranks.astype(code_dtype(len(distinct) + has_missing), copy=False)
    if has_missing:
        known, codes = codes, np.zeros(len(values), codes.dtype)
        codes[values.is_not_null().to_numpy()] = known + codes.dtype.type(1)
    return CodedValues(domain, codes)


def _check_calendar(name: str, values: pl.Series) -> None:
    """Years beyond 9999 have no texts, so nothing can be cut there."""
    if values.dtype.is_temporal() and not values.dt.year().is_between(1, 9999).all():  # a missing one is of no year
        raise DataError(f"column '{name}': some dates are not in the years 1 to 9999; make them missing.")


def _check_declared(domain: schema.OrderedDomain) -> None:
    """All values must lie in a declared domain."""
    if not domain.declared:
        return
    scale = scale_of(domain.dtype)
    assert scale is not None
    if len(domain.declared) != 2:
        raise DataError(f"column '{domain.name}': the domain of an ordered column is [lowest, highest].")
    try:
        low, high = (parse_cut(end, scale) for end in domain.declared)
    except ValueError as error:
        raise DataError(f"column '{domain.name}': its domain does not fit its values: {error}.") from None
    if not low < high:  # type: ignore[operator]
        raise DataError(f"column '{domain.name}': the lowest end of its domain comes first: found [{low}, {high}].")
    lowest = thresholds([low], domain.dtype)[0]
    highest = thresholds([high], domain.dtype, rounding=ROUND_FLOOR)[0]
    if len(domain.values) and (domain.values[0] < lowest or domain.values[-1] > highest):
        raise DataError(
            f"column '{domain.name}': some values lie outside its domain [{low}, {high}]; widen it or mend the data."
        )


def _groups(values: pl.Series) -> tuple[pl.Series, NDArray[Any]]:
    """The distinct values in any order, without missing, and each row's place among them (missing: one more)."""
    if isinstance(values.dtype, (pl.String, pl.Categorical, pl.Enum)):
        distinct, rows = categorized(values)
        seen = np.zeros(len(distinct) + 1, bool)
        seen[rows] = True
        seen[-1] = True  # missing stays one more
        if seen.all():
            return distinct, rows
        # A column in a dictionary may bring texts that no row has.
        return distinct.filter(seen[:-1]), (np.cumsum(seen, dtype=np.uint32) - np.uint32(1))[rows]
    if isinstance(values.dtype, pl.Datetime):
        values = values.cast(pl.Datetime("us", values.dtype.time_zone))
    distinct = values.unique().drop_nulls().sort()
    missing = values.is_null().to_numpy() if values.null_count() else None
    if values.dtype in (pl.Boolean, pl.Date, pl.Datetime) or values.dtype.is_numeric():
        known = values.drop_nulls() if missing is not None else values
        axis = known.cast(pl.Int64).to_numpy() if values.dtype == pl.Boolean else on_axis(known)
        places = np.full(len(values), len(distinct), np.int64)
        places[slice(None) if missing is None else ~missing] = _distinct(axis)[1]
        return distinct, places
    return categorized(schema.texts_of(values))


def _coded(
    domain: schema.OrdinalDomain | NominalDomain, rows: NDArray[Any], positions: NDArray[np.int32]
) -> CodedValues:
    """A column of names, whose distinct values have these positions in the domain; missing rows have the place after
    the last value.
    """
    names = domain.taxonomy.leaves if isinstance(domain, NominalDomain) else domain.order
    lookup = np.zeros(len(positions) + 1, code_dtype(len(names) + domain.has_missing))
    lookup[:-1] = positions + int(domain.has_missing)
    return CodedValues(domain, lookup[rows])


def _code_ordinal(column: Column, values: pl.Series) -> CodedValues:
    distinct, rows = _groups(values)
    positions = schema.name_positions(column.order, distinct)
    schema.require_known(positions, distinct, rows, where="its order", error=DataError)
    return _coded(schema.OrdinalDomain(column.name, column.order, values.null_count() > 0), rows, positions)


def _code_nominal(column: Column, values: pl.Series, persons: PersonCounter, k: int) -> CodedValues:
    distinct, rows = _groups(values)
    has_missing = values.null_count() > 0
    if column.taxonomy is not None:
        positions = leaf_positions(column.taxonomy, distinct, column=column.name)
        advice = advice_of(column.taxonomy, distinct)
        schema.require_known(positions, distinct, rows, where="its taxonomy", error=TaxonomyError, advice=advice)
        # Numbers and dates are matched with the leaves by value, all else by name.
        scale = scale_of(values.dtype)
        kind = {None: ColumnType.NOMINAL, Scale.NUMBER: ColumnType.CONTINUOUS}.get(scale, ColumnType.DATE)
        split = column.split or NominalSplit.MULTIWAY
        domain = NominalDomain(column.name, column.taxonomy, split, has_missing, None, kind, column.date_format)
        return _coded(domain, rows, positions)
    names, other = [str(name) for name in column.domain], None
    if names:
        positions = schema.name_positions(names, distinct)
        schema.require_known(positions, distinct, rows, where="its domain", error=DataError)
    else:
        names, other, positions = _named(distinct, persons(rows, len(distinct) + 1)[:-1] >= k)
    root = ROOT
    while root in names:  # it is no value's name
        root += ROOT
    taxonomy = Taxonomy.flat(names, root, column=column.name)
    domain = NominalDomain(column.name, taxonomy, column.split or NominalSplit.SUBSET, has_missing, other)
    return _coded(domain, rows, positions)


def _named(distinct: pl.Series, is_common: NDArray[np.bool_]) -> tuple[list[str], str | None, NDArray[np.int32]]:
    """The names of a column without a declared domain, where values that fewer than k persons have are one value
    without a name: `other`, which comes last; and the place of each distinct value among them.
    """
    texts = schema.texts_of(distinct).to_list()
    names = sorted(text for text, is_named in zip(texts, is_common.tolist(), strict=True) if is_named)
    position = {text: index for index, text in enumerate(names)}
    other = None
    if len(names) < len(texts) or not texts:
        other = schema.OTHER
        while other in position:
            other += " values" if other == schema.OTHER else "+"
        names.append(other)
    return names, other, np.array([position.get(text, len(position)) for text in texts], dtype=np.int32)


def code_column(column: Column, values: pl.Series, *, persons: PersonCounter, k: int) -> CodedValues:
    """Find a quasi-identifier's domain and code its rows."""
    schema.refuse_complex(values)
    values = typed(column, values)
    kind = column_type(column, values.dtype)
    if column.taxonomy is not None or kind == ColumnType.NOMINAL:
        return _code_nominal(column, values, persons, k)
    if kind == ColumnType.ORDINAL:
        return _code_ordinal(column, values)
    if column.split is not None:
        raise DataError(f"column '{column.name}' is {kind}: split is for nominal columns and columns with a taxonomy.")
    if scale_of(values.dtype) is None:
        raise DataError(
            f"column '{column.name}' is of type {values.dtype}; a quasi-identifier needs numbers, dates or texts."
        )
    return _code_ordered(column, values)
