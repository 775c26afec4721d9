# SPDX-License-Identifier: Apache-2.0
"""A value lies at or above a cut exactly if its place on the axis does."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anonfit.errors import DataError
from anonfit.tables.scales import Scale, cut_text, on_axis, on_axis_text, parse_cut, scale_of, thresholds

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
MODERATE = st.floats(-1e17, 1e17)
CUTS = st.integers(-(2**62), 2**62) | MODERATE


def at_or_above(values: list[Any], dtype: Any, cut: Any) -> list[bool]:
    series = pl.Series(values, dtype=dtype)
    return list((on_axis(series) >= thresholds([cut], series.dtype)[0]).tolist())


def exact(cut: int | float) -> Fraction:
    """A float cut is the number it is written as."""
    return Fraction(Decimal(repr(cut)))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), CUTS)
@example([2**53, 2**53 + 1], 2**53 + 1)
@example([37, 38], 37.5)
@example([-37, -38], -37.5)
def test_whole_numbers(values: list[int], cut: int | float) -> None:
    assert at_or_above(values, pl.Int64, cut) == [value >= exact(cut) for value in values]


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt8, pl.Int16, pl.UInt32, pl.UInt64])
def test_whole_numbers_of_every_width(dtype: Any) -> None:
    assert at_or_above([0, 1, 100, 127], dtype, 99.5) == [False, False, True, True]


@given(st.lists(FLOATS, min_size=1), FLOATS)
@example([-0.0, 0.0], 0.0)
@example([5e-324, 0.0], 5e-324)
def test_floats(values: list[float], cut: float) -> None:
    assert at_or_above(values, pl.Float64, cut) == [value >= cut for value in values]


@given(
    st.lists(st.integers(-(2**53) + 1, 2**53 - 1), min_size=1),
    st.integers(0, 6),
    st.floats(-1e12, 1e12) | st.integers(-(10**12), 10**12),
)
def test_decimals(units: list[int], scale: int, cut: int | float) -> None:
    values = [Decimal(unit).scaleb(-scale) for unit in units]
    assert at_or_above(values, pl.Decimal(38, scale), cut) == [Fraction(value) >= exact(cut) for value in values]


@given(st.lists(st.dates(), min_size=1), st.dates())
def test_dates(values: list[date], cut: date) -> None:
    assert at_or_above(values, pl.Date, cut.isoformat()) == [value >= cut for value in values]


@given(st.lists(st.dates(), min_size=1), st.datetimes())
def test_dates_against_a_time(values: list[date], cut: datetime) -> None:
    expected = [datetime(value.year, value.month, value.day) >= cut for value in values]
    assert at_or_above(values, pl.Date, cut.isoformat()) == expected


@given(st.lists(st.datetimes(), min_size=1), st.datetimes() | st.dates())
def test_times(values: list[datetime], cut: datetime | date) -> None:
    moment = cut if isinstance(cut, datetime) else datetime(cut.year, cut.month, cut.day)
    assert at_or_above(values, pl.Datetime("us"), cut.isoformat()) == [value >= moment for value in values]


@given(st.lists(st.integers(-(10**15), 10**15), min_size=1), st.integers(-(10**12), 10**12))
@example([-500], 0)
@example([-1500, -1000, -999, 999, 1000], -1)
def test_times_in_nanoseconds(nanoseconds: list[int], microsecond: int) -> None:
    values = pl.Series(nanoseconds).cast(pl.Datetime("ns"))
    cut = (datetime(1970, 1, 1) + timedelta(microseconds=microsecond)).isoformat()
    found = on_axis(values) >= thresholds([cut], values.dtype)[0]
    assert found.tolist() == [value >= 1000 * microsecond for value in nanoseconds]


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1), st.integers(-(10**15), 10**15))
def test_times_in_milliseconds(milliseconds: list[int], microsecond: int) -> None:
    values = pl.Series(milliseconds).cast(pl.Datetime("ms"))
    cut = (datetime(1970, 1, 1) + timedelta(microseconds=microsecond)).isoformat()
    found = on_axis(values) >= thresholds([cut], values.dtype)[0]
    assert found.tolist() == [1000 * value >= microsecond for value in milliseconds]


def test_times_with_a_zone_are_placed_in_utc() -> None:
    values = pl.Series(
        [datetime(2024, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=2))), datetime(2024, 1, 1, tzinfo=UTC)]
    )
    found = (
        on_axis(values.dt.convert_time_zone("Europe/Berlin")) >= thresholds(["2024-01-01"], pl.Datetime("us", "UTC"))[0]
    )
    assert found.tolist() == [False, True]


@given(st.integers(-(2**62), 2**62))
def test_a_number_of_an_axis_is_written_back_exactly(number: int) -> None:
    assert thresholds([on_axis_text(number, pl.Int64())], pl.Int64())[0] == number


def test_the_axis_keeps_the_order_of_big_numbers_and_joins_the_zeros() -> None:
    assert on_axis(pl.Series([2**53 + 1, 2**53])).tolist() == [2**53 + 1, 2**53]
    assert not np.signbit(on_axis(pl.Series([-0.0, 0.0]))).any()
    assert on_axis(pl.Series([Decimal("1.10"), Decimal("-2.05")])).tolist() == [110, -205]


@pytest.mark.parametrize("values", [[float("inf"), 1.0], [1.0, float("-inf")]])
def test_infinite_numbers_are_refused_by_column(values: list[float]) -> None:
    with pytest.raises(DataError, match="column 'x'.*infinite"):
        on_axis(pl.Series("x", values))


@pytest.mark.parametrize(
    "values",
    [
        pl.Series("x", [2**63], dtype=pl.UInt64),
        pl.Series("x", [2**100], dtype=pl.Int128),
        pl.Series("x", [Decimal(10) ** 30], dtype=pl.Decimal(38, 2)),
    ],
)
def test_numbers_beyond_the_axis_are_refused_by_column_without_their_value(values: pl.Series) -> None:
    with pytest.raises(DataError, match="column 'x'.*63 bits") as caught:
        on_axis(values)
    assert str(values[0]) not in str(caught.value)


def test_decimals_of_more_digits_than_a_cut_can_have_are_refused_by_column() -> None:
    values = [Decimal("123456789012.345671"), Decimal("123456789012.345678")]
    with pytest.raises(DataError, match="column 'x'.*15 digits") as caught:
        on_axis(pl.Series("x", values))
    assert "345671" not in str(caught.value)


@pytest.mark.parametrize("cut", [1e19, -1e300, 10**30])
@pytest.mark.parametrize("dtype", [pl.Int64, pl.Decimal(18, 2), pl.UInt8])
def test_a_cut_beyond_a_types_range_has_all_values_on_one_side(cut: float, dtype: Any) -> None:
    assert at_or_above([1, 2], dtype, cut) == [cut < 0, cut < 0]


def test_scales_follow_types() -> None:
    assert scale_of(pl.Int8()) == scale_of(pl.Float32()) == scale_of(pl.Decimal(9, 2)) == Scale.NUMBER
    assert scale_of(pl.Date()) == Scale.DATE
    assert scale_of(pl.Datetime("ms", "UTC")) == Scale.TIME
    for dtype in (pl.String(), pl.Boolean(), pl.Time(), pl.Duration("us"), pl.Null(), pl.List(pl.Int64)):
        assert scale_of(dtype) is None


@pytest.mark.parametrize(
    ("cut", "text"),
    [
        (37, "37"),
        (37.0, "37"),
        (37.5, "37.5"),
        (-5, "-5"),
        (1e-05, "1e-05"),
        (1e22, "1e+22"),
        ("2024-03-01", "2024-03-01"),
        (-0.5, "-0.5"),
    ],
)
def test_texts_of_cuts(cut: Any, text: str) -> None:
    assert cut_text(cut) == text


@pytest.mark.parametrize(
    ("value", "scale"),
    [
        (True, Scale.NUMBER),
        ("1", Scale.NUMBER),
        (float("nan"), Scale.NUMBER),
        (float("inf"), Scale.NUMBER),
        (None, Scale.DATE),
        (5, Scale.DATE),
        ("yesterday", Scale.DATE),
        ("2024-13-01", Scale.TIME),
    ],
)
def test_cuts_of_another_scale_are_refused(value: Any, scale: Scale) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the callers say where
        parse_cut(value, scale)


def test_declared_dates_and_times_become_their_iso_text() -> None:
    assert parse_cut(date(2024, 1, 2), Scale.DATE) == "2024-01-02"
    assert parse_cut("2024-01-02", Scale.DATE) == "2024-01-02"
    assert parse_cut(datetime(2024, 1, 2, 3), Scale.TIME) == "2024-01-02T03:00:00"


def test_a_declared_time_with_a_zone_is_meant_in_utc() -> None:
    berlin = timezone(timedelta(hours=2))
    assert parse_cut(datetime(2024, 1, 2, 3, tzinfo=berlin), Scale.TIME) == "2024-01-02T01:00:00"
