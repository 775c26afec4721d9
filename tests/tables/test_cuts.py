# SPDX-License-Identifier: Apache-2.0
"""A cut lies above the lower of two neighbouring values and not above the upper one, and is as simple as can be."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anonfit.tables.scales import (
    CutPoints,
    cuts_between,
    on_axis,
    simplest_dates,
    simplest_numbers,
    simplest_times,
    thresholds,
)
from strategies import tries

EPOCH = date(1970, 1, 1)
START = datetime(1970, 1, 1)
DAY = 24 * 3600 * 10**6
WHOLE = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
DAYS = st.integers((date.min - EPOCH).days, (date.max - EPOCH).days)
LAST_DAY = (date.max - EPOCH).days * DAY
MOMENTS = st.integers((datetime.min - START) // timedelta(microseconds=1), LAST_DAY)


def pair(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return st.tuples(values, values).filter(lambda both: both[0] != both[1]).map(lambda both: tuple(sorted(both)))


def number(low: float, high: float) -> float:
    return float(simplest_numbers(np.array([low]), np.array([high]))[0])


# --- numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (37, 38, 37.5),
        (36, 38, 37),
        (21, 41, 30),
        (19, 81, 50),
        (999, 1001, 1000),
        (-38, -37, -37.5),
        (-1, 1, 0),
        (-3, 0, -2),
        (0, 1, 0.5),
        (0.1, 0.2, 0.15),
        (0.13, 0.42, 0.3),
        (1.5, 9.5, 5),
        (1e-9, 3e-9, 2e-9),
        (1234.561, 1234.569, 1234.565),
        (5e17, 5e18, 3e18),
        (-1e300, 1e300, 0),
    ],
)
def test_the_simplest_number_by_hand(low: float, high: float, expected: float) -> None:
    assert number(low, high) == expected


@given(pair(FLOATS))
@example((0.0, 5e-324))
@example((5e-324, 1.5e-323))
@example((-5e-324, 5e-324))
@example((1.0, float(np.nextafter(1.0, 2.0))))
@example((-1.7976931348623157e308, 1.7976931348623157e308))
@example((1.7976931348623155e308, 1.7976931348623157e308))
@example((0.1, 0.30000000000000004))
@example((-0.0, 5e-324))
def test_a_cut_lies_strictly_between_floats_wherever_one_does(both: tuple[float, float]) -> None:
    low, high = both
    cut = number(low, high)
    assert low < cut <= high
    if np.nextafter(low, np.inf) < high:
        assert cut < high


@given(pair(st.integers(-(10**9), 10**9)), st.integers(0, 4))
def test_no_number_between_has_fewer_digits(both: tuple[int, int], digits: int) -> None:
    """A multiple of the largest power of ten that has one strictly between; the one nearest the middle."""
    unit = 10**digits
    low, high = Fraction(both[0], unit), Fraction(both[1], unit)
    cut = Fraction(Decimal(repr(number(both[0] / unit, both[1] / unit))))
    assert low < cut < high
    power = next(
        power for power in range(18, -19, -1) if (low // Fraction(10) ** power + 1) * Fraction(10) ** power < high
    )
    step = Fraction(10) ** power
    assert cut % step == 0
    middle = (low + high) / 2
    others = [near for near in (cut - step, cut + step) if low < near < high]
    assert all(abs(cut - middle) <= abs(near - middle) for near in others)


@given(st.lists(pair(FLOATS), min_size=1, max_size=5))
def test_a_cut_does_not_depend_on_the_others(pairs: list[tuple[float, float]]) -> None:
    together = simplest_numbers(np.array([low for low, _ in pairs]), np.array([high for _, high in pairs]))
    assert together.tolist() == [number(low, high) for low, high in pairs]
    assert not np.signbit(together[together == 0]).any()


# --- dates and times --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ("2023-05-01", "2024-05-01", "2024-01-01"),
        ("2020-05-01", "2024-05-01", "2022-01-01"),
        ("2024-01-01", "2025-01-01", "2024-07-01"),
        ("2024-03-05", "2024-04-20", "2024-04-01"),
        ("2024-03-05", "2024-03-15", "2024-03-10"),
        ("2024-03-05", "2024-03-07", "2024-03-06"),
        ("2024-03-05", "2024-03-06", "2024-03-06"),
        ("2023-12-31", "2024-01-02", "2024-01-01"),
        ("0001-01-01", "9999-12-31", "5000-01-01"),
        ("9999-12-01", "9999-12-31", "9999-12-16"),
    ],
)
def test_the_simplest_date_by_hand(low: str, high: str, expected: str) -> None:
    days = [(date.fromisoformat(text) - EPOCH).days for text in (low, high)]
    assert simplest_dates(*days) == expected


@given(pair(DAYS))
def test_a_date_lies_strictly_between_wherever_a_day_does(both: tuple[int, int]) -> None:
    cut = (date.fromisoformat(simplest_dates(*both)) - EPOCH).days
    assert both[0] < cut <= both[1]
    assert cut < both[1] or both[1] - both[0] == 1


@given(st.integers(-20_000, 40_000), st.integers(2, 1500))
def test_the_first_of_a_year_comes_before_the_first_of_a_month(low: int, length: int) -> None:
    between = [EPOCH + timedelta(days=day) for day in range(low + 1, low + length)]
    cut = date.fromisoformat(simplest_dates(low, low + length))
    years = [day for day in between if (day.month, day.day) == (1, 1)]
    months = [day for day in between if day.day == 1]
    wanted = years or months or between
    middle = EPOCH + timedelta(days=(2 * low + length) // 2)
    assert cut in wanted
    assert abs(cut - middle) == min(abs(day - middle) for day in wanted)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ("2023-05-01T12:00:00", "2024-05-01T12:00:00", "2024-01-01T00:00:00"),
        ("2024-03-05T23:00:00", "2024-03-06T01:00:00", "2024-03-06T00:00:00"),
        ("2024-03-05T00:00:00", "2024-03-06T00:00:00", "2024-03-05T12:00:00"),
        ("2024-03-05T10:10:00", "2024-03-05T10:50:00", "2024-03-05T10:30:00"),
        ("2024-03-05T10:59:30", "2024-03-05T11:00:30", "2024-03-05T11:00:00"),
        ("2024-03-05T10:10:10", "2024-03-05T10:10:20", "2024-03-05T10:10:15"),
        ("2024-03-05T10:10:10.1", "2024-03-05T10:10:10.3", "2024-03-05T10:10:10.200000"),
        ("2024-03-05T10:10:10.000001", "2024-03-05T10:10:10.000002", "2024-03-05T10:10:10.000002"),
        ("1969-12-31T23:59:59", "1970-01-01T00:00:01", "1970-01-01T00:00:00"),
    ],
)
def test_the_simplest_time_by_hand(low: str, high: str, expected: str) -> None:
    moments = [(datetime.fromisoformat(text) - START) // timedelta(microseconds=1) for text in (low, high)]
    assert simplest_times(*moments) == expected


@given(
    pair(MOMENTS)
    | st.tuples(MOMENTS.filter(lambda us: us < 0), st.integers(1, 10**7)).map(lambda both: (both[0], sum(both)))
)
def test_a_time_lies_strictly_between_wherever_a_microsecond_does(both: tuple[int, int]) -> None:
    low, high = both
    cut = (datetime.fromisoformat(simplest_times(low, high)) - START) // timedelta(microseconds=1)
    assert low < cut <= high
    assert cut < high or high - low == 1
    for unit in (DAY, 3600 * 10**6, 60 * 10**6, 10**6):
        if (low // unit + 1) * unit < high:
            assert cut % unit == 0
            break


@given(st.integers(0, LAST_DAY - DAY), st.integers(1, DAY - 1))
def test_times_of_the_last_day_there_is(low: int, late: int) -> None:
    cut = (datetime.fromisoformat(simplest_times(low, LAST_DAY + late)) - START) // timedelta(microseconds=1)
    assert low < cut < LAST_DAY + late


# --- cuts of columns --------------------------------------------------------------------------------------------


def check_parts(low: int | float, high: int | float, dtype: pl.DataType, points: CutPoints) -> Any:
    """The cut parts the two values on the axis of their type."""
    kind = np.float64 if dtype.is_float() else np.int64
    cut = cuts_between(np.array([low], kind), np.array([high], kind), dtype, points=points)
    threshold = thresholds(cut, dtype)[0]
    assert low < threshold <= high
    if points == CutPoints.VALUE:
        assert threshold == high
    return cut[0]


POINTS = st.sampled_from(CutPoints)


@given(pair(WHOLE), POINTS)
@example((2**53, 2**53 + 1), CutPoints.SIMPLEST)
@example((-(2**63), -(2**63) + 1), CutPoints.SIMPLEST)
@example((-(2**63), 2**63 - 1), CutPoints.SIMPLEST)
@example((2**52 - 1, 2**52), CutPoints.SIMPLEST)
def test_cuts_of_whole_numbers(both: tuple[int, int], points: CutPoints) -> None:
    cut = check_parts(*both, pl.Int64(), points)
    if points == CutPoints.SIMPLEST and both[1] - both[0] > 1:
        assert both[0] < cut < both[1]


@given(pair(FLOATS.map(lambda value: value + 0.0)), POINTS)
def test_cuts_of_floats(both: tuple[float, float], points: CutPoints) -> None:
    check_parts(*both, pl.Float64(), points)


@given(pair(st.floats(width=32, allow_nan=False, allow_infinity=False)), POINTS)
def test_cuts_of_short_floats(both: tuple[float, float], points: CutPoints) -> None:
    check_parts(both[0] + 0.0, both[1] + 0.0, pl.Float32(), points)


@given(pair(st.integers(-(10**15), 10**15)), st.integers(0, 12), POINTS)
def test_cuts_of_decimals(both: tuple[int, int], scale: int, points: CutPoints) -> None:
    check_parts(*both, pl.Decimal(38, scale), points)


@given(pair(DAYS), POINTS)
def test_cuts_of_dates(both: tuple[int, int], points: CutPoints) -> None:
    check_parts(*both, pl.Date(), points)


@given(pair(MOMENTS), POINTS, st.sampled_from(["ms", "us", "ns"]))
def test_cuts_of_times(both: tuple[int, int], points: CutPoints, unit: Any) -> None:
    check_parts(*both, pl.Datetime(unit), points)


def test_whole_numbers_are_written_without_a_fraction() -> None:
    cuts = cuts_between(np.array([1, 3, 10**16]), np.array([3, 4, 10**16 + 2]), pl.Int64(), points=CutPoints.SIMPLEST)
    assert [repr(cut) for cut in cuts] == ["2", "3.5", str(10**16 + 1)]
    values = cuts_between(np.array([1.5]), np.array([3.0]), pl.Float64(), points=CutPoints.VALUE)
    assert values == [3.0]


@given(st.lists(FLOATS.map(lambda value: value + 0.0), min_size=2, max_size=8, unique=True))
@tries(50)
def test_a_cut_is_nobodys_value(values: list[float]) -> None:
    series = pl.Series(values).sort()
    axis = on_axis(series)
    cuts = cuts_between(axis[:-1], axis[1:], pl.Float64(), points=CutPoints.SIMPLEST)
    adjacent = np.nextafter(axis[:-1], np.inf) == axis[1:]
    assert all(cut not in values for cut, is_adjacent in zip(cuts, adjacent, strict=True) if not is_adjacent)


@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=30, unique=True),
    st.sampled_from([1, 4, 100]),
    st.data(),
)
def test_a_cut_of_a_node_is_no_value_of_the_column(values: list[int], unit: int, data: st.DataObject) -> None:
    """A node may have few of the values; a simple number between two of them may be another record's."""
    axis = np.array(sorted(values)) / unit if unit > 1 else np.array(sorted(values))
    low = data.draw(st.integers(0, len(axis) - 2))
    high = data.draw(st.integers(low + 1, len(axis) - 1))
    dtype = pl.Float64() if unit > 1 else pl.Int64()
    (cut,) = cuts_between(axis[[low]], axis[[high]], dtype, points=CutPoints.SIMPLEST, values=axis)
    assert axis[low] < cut < axis[high]
    assert cut not in axis


@pytest.mark.parametrize("values", [[0, 5, 10], [0, 10, 20, 30]])
def test_a_date_of_a_node_is_no_value_of_the_column(values: list[int]) -> None:
    assert day_between(values) not in values


def test_a_free_day_is_looked_for_in_every_gap_of_a_node() -> None:
    assert day_between([0, 5, 6, 10]) not in (5, 6)


def day_between(values: list[int]) -> int:
    """The cut of a node that has the first and the last of a column's values."""
    axis = np.array(values)
    (cut,) = cuts_between(axis[:1], axis[-1:], pl.Date(), points=CutPoints.SIMPLEST, values=axis)
    day = (date.fromisoformat(str(cut)) - EPOCH).days
    assert axis[0] < day <= axis[-1]
    return day
