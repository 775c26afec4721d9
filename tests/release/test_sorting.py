# SPDX-License-Identifier: Apache-2.0
"""Sort keys order rows as their values do."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_series_equal

from anonfit.engines.memory.write import order_rows, sort_keys

ZONE = pl.Datetime("us", "Europe/Berlin")
COLUMNS = {
    "small": pl.Series([3, None, -5, 3, 127, -128], dtype=pl.Int8),
    "whole": pl.Series([2**63 - 1, 0, -(2**63), 7, 7, -1], dtype=pl.Int64),
    "whole_missing": pl.Series([2**63 - 1, None, -(2**63), 7, 7, -1], dtype=pl.Int64),
    "unsigned": pl.Series([2**32 - 1, 0, 5, 5, None, 1], dtype=pl.UInt32),
    "long_unsigned": pl.Series([2**64 - 1, 0, 5, 5, None, 1], dtype=pl.UInt64),
    "truth": pl.Series([True, None, False, True, False, None]),
    "text": pl.Series(["b", "", None, "é", "B", "b"]),
    "category": pl.Series(["z", "a", None, "z", "m", "a"], dtype=pl.Categorical),
    "date": pl.Series([date(1, 1, 1), None, date(9999, 12, 31), date(1970, 1, 1), date(1969, 12, 31), None]),
    "moment": pl.Series([datetime(2024, 3, 31, 0, 59), None, datetime(1900, 1, 1), *[datetime(2024, 10, 27)] * 3]).cast(
        ZONE
    ),
    "clock": pl.Series([time(23, 59, 59), time(0), None, time(1), time(1), time(2)]),
    "span": pl.Series([timedelta(days=-3), timedelta(0), None, timedelta(hours=1), timedelta(0), timedelta(0)]),
    "float": pl.Series([1.5, -0.0, 0.0, None, float("inf"), -1e-300]),
    "single": pl.Series([1.5, -0.0, 0.0, None, 2.25, -1e-30], dtype=pl.Float32),
    "decimal": pl.Series([Decimal("1.50"), None, Decimal("-2.25"), Decimal(0), Decimal("1.50"), Decimal(9)]),
    "constant": pl.Series([4] * 6),
    "nothing": pl.Series([None] * 6, dtype=pl.Int32),
    "no_text": pl.Series([None] * 6, dtype=pl.String),
    "no_type": pl.Series([None] * 6),
}


def in_order(columns: list[pl.Series]) -> tuple[list[pl.Series], np.ndarray[Any, Any]]:
    numbers = np.arange(len(columns[0]), dtype=np.uint32)
    order, _ = order_rows(np.zeros(1, np.int32), np.zeros(1, np.int64), numbers, 1, sort_keys(columns))
    return [values.gather(order) for values in columns], order


@pytest.mark.parametrize("name", [name for name, values in COLUMNS.items() if values.dtype != pl.Null])
def test_values_of_every_type_are_ordered(name: str) -> None:
    values = COLUMNS[name].alias(name)
    (found,), _ = in_order([values])
    lexical = found.cast(pl.String) if values.dtype == pl.Categorical else found
    assert_series_equal(lexical, lexical.sort(nulls_last=False))


def test_zeros_keep_their_signs() -> None:
    (found,), _ = in_order([pl.Series("x", [0.0, -0.0, 0.0, -0.0])])
    assert np.signbit(found.to_numpy()).tolist() == [True, True, False, False]


def test_all_columns_together_order_rows_by_the_first_then_by_the_next() -> None:
    columns = [values.alias(name) for name, values in COLUMNS.items() if values.dtype != pl.Null]
    found, _ = in_order(columns)
    texts = [values.cast(pl.String) if values.dtype == pl.Categorical else values for values in columns]
    assert_series_equal(found[0], pl.DataFrame(texts).sort(pl.all(), nulls_last=False)["small"])


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.sampled_from(["", "a", "aa", "ß", "~"]),
            st.none() | st.floats(allow_nan=False),
            st.integers(-3, 3),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_rows_are_ordered_as_polars_orders_them(rows: list[tuple[Any, ...]]) -> None:
    types = [pl.Int64, pl.String, pl.Float64, pl.Int16]
    frame = pl.DataFrame(rows, schema=list(zip("abcd", types, strict=True)), orient="row")
    found, _ = in_order(frame.get_columns())
    assert pl.DataFrame(found).equals(frame.sort("a", "b", "c", "d", nulls_last=False))
