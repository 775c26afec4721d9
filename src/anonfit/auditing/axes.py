# SPDX-License-Identifier: Apache-2.0
"""One column of the space of boxes: values that no label tells apart are one cell, and a label is runs of cells.
Cell 0 is missing; the last cell holds values that the column's meaning does not know."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing.coding import BoolArray, FloatArray, IntArray, dictionary, integers, is_text
from anonfit.auditing.labels import Interval, Run, ValueSet, joined, leaf_interval
from anonfit.auditing.meanings import LabelMeaning

Cells = npt.NDArray[np.int32]
Numbers = IntArray | FloatArray
_EXACT = 2**52  # below this, integers and halves are exact as floating point numbers
_UNITS = {"ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True, slots=True)
class PlacedColumn:
    """The cell of every row, how many rows lie beyond the declared domain, and how many are not understood."""

    cells: Cells
    beyond: int
    unknown: int
    strangers: BoolArray | None = None  # (row) whether either is so; None: of no row


def placed_on_line(series: pl.Series, meaning: LabelMeaning, *, ends: list[Decimal]) -> PlacedColumn:
    """The cells of an ordered column (see `_line_axis`); values beyond a declared domain go to its end intervals."""
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
    beyond_count = 0 if beyond is None else int(np.count_nonzero(beyond))
    if lost is None:
        return PlacedColumn(cells, beyond_count, 0, beyond if beyond_count else None)
    missing = series.is_null().to_numpy()
    cells[lost] = 2 * len(ends) + 2
    cells[missing] = 0
    strange = lost & ~missing
    strangers = strange if beyond is None else strange | beyond
    return PlacedColumn(cells, beyond_count, int(np.count_nonzero(strange)), strangers)


def distinct_texts(series: pl.Series) -> tuple[IntArray, list[str]]:
    """The different texts of a column, and the number of every row's text, counted from 1 (0: missing)."""
    different = dictionary(series if is_text(series) else series.cast(pl.String))
    return different.codes, different.values.to_list()


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


def on_line(series: pl.Series, meaning: LabelMeaning) -> tuple[pl.Series, Fraction]:
    """A column as numbers (null: not understood), and how many of them make one unit of the labels' ends."""
    kind = series.dtype
    if meaning.type == "ordinal":
        return _positions(series, {word: i for i, word in enumerate(meaning.order)}), Fraction(1)
    if meaning.type == "date":
        if not kind.is_temporal():
            series = as_moments(series, meaning.date_format)
        if series.dtype == pl.Date:
            return series, Fraction(1, 86400)
        if isinstance(series.dtype, pl.Datetime):
            return series, Fraction(_UNITS[series.dtype.time_unit])
        return _none(series)
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
    """A column of which no value is understood."""
    return pl.Series([None] * len(series), dtype=pl.Float64), Fraction(1)


def _positions(series: pl.Series, position: Mapping[str, int]) -> pl.Series:
    codes, texts = distinct_texts(series)
    places = pl.Series(
        [None, *(position.get(text, position.get(text.removesuffix(".0"))) for text in texts)], dtype=pl.Int64
    )
    return places.gather(codes)


def _within(
    values: Numbers, low: float | None, high: float | None, *, lost: BoolArray | None
) -> tuple[Numbers, BoolArray | None]:
    """Values moved to the nearest end of the domain, and which had to be."""
    if low is None and high is None:
        return values, None
    clipped: Any = np.clip(values, low, high)
    moved: BoolArray = clipped != values
    return clipped, moved if lost is None else moved & ~lost


def _cells_of_integers(values: Numbers, ends: list[Fraction]) -> Cells:
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


def _cells_by_steps(values: Numbers, ends: list[Fraction]) -> Cells:
    """Count the ends not above a value, and those below it: an end between two integers counts for both at once."""
    limit = 2**63 - 1
    at_least = np.array([min(max(math.ceil(end), -limit), limit) for end in ends], np.int64)
    above = np.array([min(max(math.floor(end) + 1, -limit), limit) for end in ends], np.int64)
    cells = 1 + np.searchsorted(at_least, values, "right") + np.searchsorted(above, values, "right")
    return cells.astype(np.int32)


def _cells_of_floats(values: Numbers, ends: list[Fraction]) -> Cells:
    line = np.array([*map(float, ends), np.nan])
    below = np.searchsorted(line[:-1], values, "left")
    cells: Cells = (1 + 2 * below + (line[below] == values)).astype(np.int32)
    return cells


@dataclass(frozen=True, slots=True)
class Axis:
    """The cells of one column: how many, the runs of cells of a label's set, and the cells of raw values."""

    cells: int
    runs: Callable[[ValueSet], list[Run]]
    place: Callable[[pl.Series], PlacedColumn]

    def numbers(self, sets: Iterable[ValueSet]) -> IntArray:
        """The number of the set that holds each cell, -1 of those in none."""
        numbers = np.full(self.cells, -1, np.int64)
        for number, values in enumerate(sets):
            for low, high in self.runs(values):
                numbers[low : high + 1] = number
        return numbers


def axis_of(meaning: LabelMeaning, sets: Sequence[ValueSet]) -> Axis:
    """The axis that tells apart what these sets of one column tell apart."""
    axis = _name_axis(meaning, sets) if meaning.type == "nominal" else _line_axis(meaning, sets)
    return replace(axis, place=_knows_none_missing(axis.place)) if meaning.missing is False else axis


def _knows_none_missing(place: Callable[[pl.Series], PlacedColumn]) -> Callable[[pl.Series], PlacedColumn]:
    """The cells of a column of which a recoding has no missing values: one is as strange as an unknown name."""

    def placed(series: pl.Series) -> PlacedColumn:
        known = place(series)
        if not series.null_count():
            return known
        lost = known.cells == 0
        return replace(known, strangers=lost if known.strangers is None else lost | known.strangers)

    return placed


def _name_axis(meaning: LabelMeaning, sets: Sequence[ValueSet]) -> Axis:
    """A nominal column: a cell per leaf; without a taxonomy, per name that some label uses."""
    if meaning.tree is not None:
        leaves, below = meaning.tree.leaves, meaning.tree.below
    else:
        named = {name for values in sets for name in values.names}
        leaves = tuple(sorted(named if meaning.other is None else named | {meaning.other}))
        below = {leaf: (position, position) for position, leaf in enumerate(leaves)}
    cell_of = {leaf: position + 1 for position, leaf in enumerate(leaves)}
    unknown = len(leaves) + 1
    rest = unknown if meaning.other is None else cell_of.get(meaning.other, unknown)

    def runs(values: ValueSet) -> list[Run]:
        return _cells(values, unknown, [(below[name][0] + 1, below[name][1] + 1) for name in values.names])

    def place(series: pl.Series) -> PlacedColumn:
        codes, texts = distinct_texts(series)
        if series.dtype.is_numeric() or series.dtype == pl.Boolean:
            texts = [next((spelled for spelled in _spellings(text) if spelled in cell_of), text) for text in texts]
        cell = np.array([0, *(cell_of.get(text, rest) for text in texts)], np.int32)
        cells = cell.take(codes)
        if unknown not in cell:
            return PlacedColumn(cells, 0, 0)
        strange = cells == unknown
        return PlacedColumn(cells, 0, int(np.count_nonzero(strange)), strange)

    return Axis(unknown + 1, runs, place)


def _spellings(text: str) -> tuple[str, ...]:
    """How a number or truth value may be written as a name."""
    return text, text.removesuffix(".0"), text.capitalize(), text.upper()


def _line_axis(meaning: LabelMeaning, sets: Sequence[ValueSet]) -> Axis:
    """An ordered column: with ends b1 < b2 < …, cells are missing, below b1, b1, between b1 and b2, b2, …"""
    intervals = [interval for values in sets for interval in values.intervals]
    ends = sorted({end for interval in intervals for end in (interval.lower, interval.upper) if end is not None})
    position = {end: i for i, end in enumerate(ends)}
    unknown = 2 * len(ends) + 2

    def run(interval: Interval) -> Run:
        low = 1 if interval.lower is None else 2 * position[interval.lower] + 2
        if interval.upper is None:
            return low, unknown - 1
        return low, 2 * position[interval.upper] + (2 if interval.closed else 1)

    def runs(values: ValueSet) -> list[Run]:
        return _cells(values, unknown, [run(interval) for interval in values.intervals])

    def place(series: pl.Series) -> PlacedColumn:
        return placed_on_line(series, meaning, ends=ends)

    return Axis(unknown + 1, runs, place)


def _cells(values: ValueSet, last: int, runs: Iterable[Run]) -> list[Run]:
    """The cells of a set as separate runs in rising order."""
    every = [(1, last)] if values.everything else list(runs)
    return joined([*every, (0, 0)] if values.missing else every)


def leaf_placer(leaves: Sequence[str], meaning: LabelMeaning) -> Callable[[pl.Series], IntArray]:
    """What finds the leaf of every number, date or word by the intervals that leaves name: counted from 1, 0 for
    missing, -1 for a value that is in none.
    """
    intervals = [leaf_interval(leaf, meaning) for leaf in leaves]
    sets = [ValueSet(intervals=() if interval is None else (interval,)) for interval in intervals]
    axis = axis_of(meaning, sets)
    numbers = axis.numbers(sets)
    leaf_of = np.where(numbers < 0, -1, numbers + 1)
    leaf_of[0] = 0
    return lambda series: leaf_of[axis.place(series).cells]
