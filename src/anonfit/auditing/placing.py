# SPDX-License-Identifier: Apache-2.0
"""Raw values on the line of their column: numbers, dates and words of an order become cells between ends of labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing.coding import IntArray, integers, is_text
from anonfit.auditing.meanings import Meaning
from anonfit.auditing.numbering import dictionary

__all__ = ["Cells", "Placed", "as_moments", "distinct_texts", "on_line", "placed_on_line"]

Cells = npt.NDArray[np.int32]
Values = npt.NDArray[np.int64] | npt.NDArray[np.float64]
_EXACT = 2**52  # below this, integers and halves are exact as floating point numbers
_UNITS = {"ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True, slots=True)
class Placed:
    """The cell of every row, and how many rows lie beyond the declared domain or are not understood."""

    cells: Cells
    beyond: int
    unknown: int
    strangers: npt.NDArray[np.bool_] | None = None  # the rows of which either holds; None: of none


def placed_on_line(series: pl.Series, meaning: Meaning, *, ends: list[Decimal]) -> Placed:
    """The cells of an ordered column (see `axes.py`); values beyond a declared domain go to its end intervals."""
    numbers, scale = on_line(series, meaning)
    lost = numbers.is_null().to_numpy() if numbers.null_count() else None
    low, high = (None if end is None else Fraction(end) * scale for end in meaning.domain)
    scaled = [Fraction(end) * scale for end in ends]
    whole = integers(numbers)
    if whole is not None:
        floor, ceiling = None if low is None else math.ceil(low), None if high is None else math.floor(high)
        values, beyond = _within(whole, floor, ceiling, lost=lost)
        cells = _cells_of_integers(values, scaled)
    else:
        floats = numbers.cast(pl.Float64).fill_null(0.0).to_numpy()
        least, most = None if low is None else float(low), None if high is None else float(high)
        values, beyond = _within(floats, least, most, lost=lost)
        cells = _cells_of_floats(values, scaled)
    number = int(np.count_nonzero(beyond)) if beyond is not None else 0
    if lost is None:
        return Placed(cells, number, 0, beyond if number else None)
    missing = series.is_null().to_numpy()
    cells[lost] = 2 * len(ends) + 2
    cells[missing] = 0
    strange = lost & ~missing
    unknown = int(np.count_nonzero(strange))
    return Placed(cells, number, unknown, strange if beyond is None else strange | beyond)


def distinct_texts(series: pl.Series) -> tuple[IntArray, list[str]]:
    """Every row's number (0: missing) and the text of the numbers 1, 2, …"""
    found = dictionary(series if is_text(series) else series.cast(pl.String))
    return found.codes, found.values.to_list()


def as_moments(series: pl.Series, date_format: str | None = None) -> pl.Series:
    """Texts as times; null where a text is none."""
    texts = series.cast(pl.String)
    if texts.null_count() == len(texts):
        return texts.cast(pl.Datetime("us"))
    if date_format is not None:
        return texts.str.to_datetime(date_format, strict=False, time_unit="us")
    day = texts.str.to_date("%Y-%m-%d", strict=False)
    if day.null_count() == texts.null_count():
        return day.cast(pl.Datetime("us"))
    swapped = texts.str.replace(" ", "T", literal=True)
    unit: Literal["ns", "us"] = "ns" if swapped.str.contains(r"\.\d{6}\d*[1-9]").any() else "us"
    moments = [
        swapped.str.to_datetime(f"%Y-%m-%dT{clock}", strict=False, time_unit=unit) for clock in ("%H:%M:%S%.f", "%H:%M")
    ]
    zoned = swapped.str.to_datetime("%+", strict=False, time_unit=unit, time_zone="UTC").dt.replace_time_zone(None)
    return pl.select(pl.coalesce(day.cast(pl.Datetime(unit), strict=False), *moments, zoned)).to_series()


def on_line(series: pl.Series, meaning: Meaning) -> tuple[pl.Series, Fraction]:
    """A column as numbers on its line, and how many of them make one unit of the labels' ends; null: not understood."""
    kind = series.dtype
    if meaning.type == "ordinal":
        return _positions(series, {word: i for i, word in enumerate(meaning.order)}), Fraction(1)
    if meaning.type == "date":
        if not kind.is_temporal():
            series = as_moments(series, meaning.date_format)
        if series.dtype == pl.Date:
            return series, Fraction(1, 86400)
        return (
            (series, Fraction(_UNITS[series.dtype.time_unit]))
            if isinstance(series.dtype, pl.Datetime)
            else _none(series)
        )
    if isinstance(kind, pl.Decimal):
        return series.to_physical(), Fraction(10**kind.scale)
    if kind.is_numeric() or kind == pl.Boolean:
        return (series.cast(pl.UInt8) if kind == pl.Boolean else series), Fraction(1)
    if kind.is_temporal():
        return _none(series)
    texts = series.cast(pl.String)
    whole = texts.cast(pl.Int64, strict=False)
    numbers = whole if whole.null_count() == texts.null_count() else texts.cast(pl.Float64, strict=False).fill_nan(None)
    return numbers, Fraction(1)


def _none(series: pl.Series) -> tuple[pl.Series, Fraction]:
    return pl.Series([None] * len(series), dtype=pl.Float64), Fraction(1)


def _positions(series: pl.Series, position: Mapping[str, int]) -> pl.Series:
    codes, texts = distinct_texts(series)
    places = pl.Series(
        [None, *(position.get(text, position.get(text.removesuffix(".0"))) for text in texts)], dtype=pl.Int64
    )
    return places.gather(codes)


def _within(
    values: Values, low: float | None, high: float | None, *, lost: npt.NDArray[np.bool_] | None
) -> tuple[Values, npt.NDArray[np.bool_] | None]:
    """Values moved to the nearest end of the domain, and which had to be."""
    if low is None and high is None:
        return values, None
    clipped: Any = np.clip(values, low, high)
    moved: npt.NDArray[np.bool_] = clipped != values
    return clipped, moved if lost is None else moved & ~lost


def _cells_of_integers(values: Values, ends: list[Fraction]) -> Cells:
    """Exact for every 64-bit integer: narrow ranges by a table, wide ones as floats where these are exact."""
    if not len(values):
        return np.empty(0, np.int32)
    low, high = int(values.min()), int(values.max())
    if high - low <= max(len(values), 2**16):
        table = _cells_by_steps(np.arange(low, high + 1, dtype=np.int64), ends)
        return table[values - low]
    if max([abs(low), abs(high), *(abs(math.ceil(end)) for end in ends)]) < _EXACT:
        return _cells_of_floats(values.astype(np.float64), ends)
    return _cells_by_steps(values, ends)


def _cells_by_steps(values: Values, ends: list[Fraction]) -> Cells:
    """Count the ends not above a value, and those below it: an end between two integers counts for both at once."""
    limit = 2**63 - 1
    at_least = np.array([min(max(math.ceil(end), -limit), limit) for end in ends], np.int64)
    above = np.array([min(max(math.floor(end) + 1, -limit), limit) for end in ends], np.int64)
    cells = 1 + np.searchsorted(at_least, values, "right") + np.searchsorted(above, values, "right")
    return cells.astype(np.int32)


def _cells_of_floats(values: Values, ends: list[Fraction]) -> Cells:
    line = np.array([*map(float, ends), np.nan])
    below = np.searchsorted(line[:-1], values, "left")
    cells: Cells = (1 + 2 * below + (line[below] == values)).astype(np.int32)
    return cells
