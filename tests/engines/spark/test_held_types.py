# SPDX-License-Identifier: Apache-2.0
"""Values come back from the form in which Spark holds them as they were, and sort there as they do."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_series_equal

from anonfit.engines.spark.rows import is_storable, restored, spark_type, stored, stored_type

NOW = datetime(2024, 2, 29, 12, 30, 15, 123456)
COLUMNS: list[tuple[list[Any], Any, str]] = [
    ([True, False, None], pl.Boolean(), "bigint"),
    ([-128, 127, None], pl.Int8(), "bigint"),
    ([0, 2**32 - 1, None], pl.UInt32(), "bigint"),
    ([2**63 + 5, 0, 7, 2**64 - 1, None], pl.UInt64(), "bigint"),
    ([-(2**63), 2**63 - 1, 7], pl.Int64(), "bigint"),
    ([0.1, -1.5, None], pl.Float32(), "double"),
    ([1e300, -5e-324, float("inf"), None], pl.Float64(), "double"),
    ([Decimal("1.50"), Decimal("-12.25"), None], pl.Decimal(10, 2), "decimal(38,2)"),
    ([Decimal(10) ** 30, Decimal("-0.5"), None], pl.Decimal(38, 3), "decimal(38,3)"),
    ([date(1900, 1, 1), date(2100, 12, 31), None], pl.Date(), "bigint"),
    ([time(1, 2, 3), time(23, 59), None], pl.Time(), "bigint"),
    ([NOW, NOW - timedelta(days=30000), None], pl.Datetime("us"), "bigint"),
    ([NOW, NOW + timedelta(seconds=1)], pl.Datetime("ns"), "bigint"),
    ([NOW.replace(tzinfo=UTC), None], pl.Datetime("ms", "Europe/Berlin"), "bigint"),
    ([timedelta(days=1), timedelta(microseconds=-5), None], pl.Duration("us"), "bigint"),
    (["", "ä", "Z", None], pl.String(), "string"),
    ([b"", b"\xff", None], pl.Binary(), "binary"),
    ([None, None], pl.Null(), "bigint"),
]


@pytest.mark.parametrize(("values", "dtype", "held"), COLUMNS, ids=[str(dtype) for _, dtype, _ in COLUMNS])
def test_values_come_back(values, dtype, held):
    column = pl.Series("a", values, dtype=dtype)
    found = stored(column)
    assert found.dtype == stored_type(dtype)
    assert spark_type(found.dtype) == held
    assert_series_equal(restored(found, dtype), column, check_exact=True)
    if dtype != pl.Null():
        assert found.arg_sort().to_list() == column.arg_sort().to_list()


def test_texts_are_held_as_texts():
    for dtype in (pl.Categorical(), pl.Enum(["b", "a"])):
        column = pl.Series("a", ["a", "b", None], dtype=dtype)
        assert stored(column).to_list() == ["a", "b", None]
        assert restored(stored(column), dtype).to_list() == ["a", "b", None]


def test_what_is_not_plain_is_not_held():
    assert not is_storable(pl.List(pl.Int64()))
    assert not is_storable(pl.Struct({"a": pl.Int64()}))
    assert not is_storable(pl.Object())
    assert not is_storable(pl.Int128())
    assert is_storable(pl.Null())
