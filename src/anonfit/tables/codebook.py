# SPDX-License-Identifier: Apache-2.0
"""From columns of values to columns of codes: finds each quasi-identifier's domain and codes the rows with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import DataError, TaxonomyError
from anonfit.tables.frames import categorized
from anonfit.tables.scales import Scale, on_axis, parse_cut, scale_of, thresholds
from anonfit.tables.schema import (
    OTHER,
    Codes,
    Column,
    ColumnType,
    Domain,
    NominalDomain,
    NominalSplit,
    OrderedDomain,
    OrdinalDomain,
    code_dtype,
    name_positions,
    refuse_complex,
    require_known,
    texts_of,
)
from anonfit.tables.taxonomy import ROOT, Taxonomy
from anonfit.tables.taxonomy_leaves import leaf_positions

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
        return _parsed(
            values,
            _dates(values.cast(pl.String), column.date_format),
            "dates",
            " Declare date_format, for example '%d.%m.%Y'.",
        )
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
            f"column '{before.name}': {len(bad)} value(s) are not {what} (first in row {rows}); mend them, list "
            "them under "
            f"[data] missing, or make the column nominal.{advice}"
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
    values, ranks = np.unique(axis, return_inverse=True)
    return values, ranks


def _code_ordered(column: Column, values: pl.Series) -> CodedValues:
    present = values.is_not_null().to_numpy() if values.null_count() else None
    axis = on_axis(values.drop_nulls() if present is not None else values)
    distinct, ranks = _distinct(axis)
    has_missing = present is not None
    _check_calendar(column.name, values)
    kind = ColumnType.CONTINUOUS if values.dtype.is_numeric() else ColumnType.DATE
    domain = OrderedDomain(column.name, kind, values.dtype, distinct, has_missing, column.domain, column.date_format)
    _check_declared(domain)
    codes = ranks.astype(code_dtype(len(distinct) + has_missing), copy=False)
    if present is not None:
        known, codes = codes, np.zeros(len(values), codes.dtype)
        codes[present] = known + codes.dtype.type(1)
    return CodedValues(domain, codes)


def _check_calendar(name: str, values: pl.Series) -> None:
    """Years beyond 9999 have no texts, so nothing can be cut there."""
    if values.dtype.is_temporal() and len(values):
        years = values.dt.year()
        lowest, highest = years.min(), years.max()
        if lowest is not None and not 1 <= int(str(lowest)) <= int(str(highest)) <= 9999:
            raise DataError(f"column '{name}': some dates are not in the years 1 to 9999; make them missing.")


def _check_declared(domain: OrderedDomain) -> None:
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
        return _occurring(*categorized(values))
    if isinstance(values.dtype, pl.Datetime):
        values = values.cast(pl.Datetime("us", values.dtype.time_zone))
    distinct = values.unique().drop_nulls().sort()
    missing = values.is_null().to_numpy() if values.null_count() else None
    if values.dtype in (pl.Boolean, pl.Date, pl.Datetime) or values.dtype.is_numeric():
        known = values.drop_nulls() if missing is not None else values
        axis = known.cast(pl.Int64).to_numpy() if values.dtype == pl.Boolean else on_axis(known)
        ranks = _distinct(axis)[1]
        rows = np.full(len(values), len(distinct), np.int64)
        rows[slice(None) if missing is None else ~missing] = ranks
        return distinct, rows
    return categorized(texts_of(values))


def _occurring(distinct: pl.Series, rows: NDArray[np.uint32]) -> tuple[pl.Series, NDArray[np.uint32]]:
    """The same without texts that no row has: a column in a dictionary may bring such."""
    seen = np.zeros(len(distinct) + 1, bool)
    seen[rows] = True
    seen[-1] = True  # missing stays one more
    if seen.all():
        return distinct, rows
    place = np.cumsum(seen, dtype=np.uint32) - np.uint32(1)
    return distinct.filter(seen[:-1]), place[rows]


def _code_by_position(rows: NDArray[Any], positions: NDArray[np.int32], has_missing: bool, size: int) -> Codes:
    """Codes of rows whose distinct values have these positions; missing rows have the place after the last value."""
    lookup = np.zeros(len(positions) + 1, code_dtype(size + has_missing))
    lookup[:-1] = positions + int(has_missing)
    codes: Codes = lookup[rows]
    return codes


def _code_ordinal(column: Column, values: pl.Series) -> CodedValues:
    distinct, rows = _groups(values)
    positions = name_positions(column.order, distinct)
    require_known(positions, distinct, rows, where="its order", error=DataError)
    has_missing = values.null_count() > 0
    domain = OrdinalDomain(column.name, column.order, has_missing)
    return CodedValues(domain, _code_by_position(rows, positions, has_missing, len(column.order)))


def _code_nominal(column: Column, values: pl.Series, persons: PersonCounter, k: int) -> CodedValues:
    distinct, rows = _groups(values)
    has_missing = values.null_count() > 0
    if column.taxonomy is not None:
        positions = leaf_positions(column.taxonomy, distinct, column=column.name)
        require_known(positions, distinct, rows, where="its taxonomy", error=TaxonomyError)
        # Numbers and dates are matched with the leaves by value, all else by name.
        scale = scale_of(values.dtype)
        kind = {None: ColumnType.NOMINAL, Scale.NUMBER: ColumnType.CONTINUOUS}.get(scale, ColumnType.DATE)
        split = column.split or NominalSplit.MULTIWAY
        domain = NominalDomain(column.name, column.taxonomy, split, has_missing, None, kind, column.date_format)
        return CodedValues(domain, _code_by_position(rows, positions, has_missing, len(domain.taxonomy.leaves)))
    split = column.split or NominalSplit.SUBSET
    if column.domain:
        names = [str(name) for name in column.domain]
        positions = name_positions(names, distinct)
        require_known(positions, distinct, rows, where="its domain", error=DataError)
        flat = Taxonomy.flat(names, _root_beside(names), column=column.name)
        return CodedValues(
            NominalDomain(column.name, flat, split, has_missing),
            _code_by_position(rows, positions, has_missing, len(names)),
        )
    return _code_flat(column.name, distinct, rows, persons, k, split, has_missing)


def _root_beside(names: Sequence[str]) -> str:
    """A name for the root that is no value's."""
    root = ROOT
    while root in names:
        root += ROOT
    return root


def _code_flat(
    name: str,
    distinct: pl.Series,
    rows: NDArray[Any],
    persons: PersonCounter,
    k: int,
    split: NominalSplit,
    has_missing: bool,
) -> CodedValues:
    """A column without a declared domain: values that fewer than k persons have are one value without a name."""
    texts = texts_of(distinct).to_list()
    many = persons(rows, len(texts) + 1)[:-1] >= k
    named = sorted(text for text, is_named in zip(texts, many.tolist(), strict=True) if is_named)
    other = None
    if len(named) < len(texts) or not texts:
        other = OTHER
        while other in named:
            other += " values" if other == OTHER else "+"
        named.append(other)
    position = {text: index for index, text in enumerate(named)}
    rare = len(named) - 1
    positions = np.array(
        [position[text] if is_named else rare for text, is_named in zip(texts, many.tolist(), strict=True)],
        dtype=np.int32,
    )
    domain = NominalDomain(name, Taxonomy.flat(named, _root_beside(named), column=name), split, has_missing, other)
    return CodedValues(domain, _code_by_position(rows, positions, has_missing, len(named)))


def code_column(column: Column, values: pl.Series, *, persons: PersonCounter, k: int) -> CodedValues:
    """Find a quasi-identifier's domain and code its rows."""
    refuse_complex(values)
    values = typed(column, values)
    kind = column_type(column, values.dtype)
    if column.taxonomy is not None:
        return _code_nominal(column, values, persons, k)
    if kind == ColumnType.ORDINAL:
        return _code_ordinal(column, values)
    if kind == ColumnType.NOMINAL:
        return _code_nominal(column, values, persons, k)
    if column.split is not None:
        raise DataError(f"column '{column.name}' is {kind}: split is for nominal columns and columns with a taxonomy.")
    if scale_of(values.dtype) is None:
        raise DataError(
            f"column '{column.name}' is of type {values.dtype}; a quasi-identifier needs numbers, dates or texts."
        )
    return _code_ordered(column, values)
