# SPDX-License-Identifier: Apache-2.0
"""Columns of every type pass through every engine as they pass through memory: values, types and order."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import anonfit as af
from engines import FAST_ENGINES

ROWS = 60
NOW = datetime(2024, 2, 29, 12, 30, 15, 123456)
COLUMNS: dict[str, tuple[list[Any], Any]] = {
    "boolean": ([True, False, None], pl.Boolean),
    "int8": ([-128, 127, None], pl.Int8),
    "uint64": ([2**63 + 5, 0, None], pl.UInt64),
    "int64": ([-(2**63), 2**63 - 1, 7], pl.Int64),
    "float32": ([0.1, -0.0, 0.0, float("nan"), None], pl.Float32),
    "float64": ([1e300, -0.0, 0.0, float("nan"), float("inf"), None], pl.Float64),
    "decimal": ([Decimal("1.50"), Decimal("-12.25"), None], pl.Decimal(10, 2)),
    "date": ([date(1900, 1, 1), date(2100, 12, 31), None], pl.Date),
    "time": ([time(1, 2, 3), time(23, 59), None], pl.Time),
    "microseconds": ([NOW, NOW - timedelta(days=30000), None], pl.Datetime("us")),
    "milliseconds": ([NOW, None], pl.Datetime("ms")),
    "nanoseconds": ([NOW, NOW + timedelta(seconds=1)], pl.Datetime("ns")),
    "zoned": ([NOW.replace(tzinfo=UTC), None], pl.Datetime("us", "Europe/Berlin")),
    "duration": ([timedelta(days=1), timedelta(microseconds=-5), None], pl.Duration("us")),
    "text": (["", "ä", "Z", "a\nb", 'q"', "\U0001f600", "￿", None], pl.String),
    "categorical": (["b", "a", None], pl.Categorical),
    "enum": (["second", "first", None], pl.Enum(["second", "first", "never"])),
    "nothing": ([None], pl.Null),
}


@pytest.mark.parametrize("engine", FAST_ENGINES)
@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("source", ["frame", "parquet"])
def test_raw_columns(engine, kind, source, tmp_path):
    values, dtype = COLUMNS[kind]
    rng = np.random.default_rng(7)
    picked = [values[place] for place in rng.integers(0, len(values), ROWS)]
    frame = pl.DataFrame({"age": rng.integers(0, 5, ROWS), "raw": pl.Series(picked, dtype=dtype)})
    given: Any = frame
    if source == "parquet":
        frame.write_parquet(tmp_path / "table.parquet")
        given = str(tmp_path / "table.parquet")
    words = {"quasi_identifiers": ["age"], "insensitive": ["raw"], "k": 5}
    expected, found = af.anonymize(given, **words).data, af.anonymize(given, engine=engine, **words).data
    assert_frame_equal(found, expected, check_exact=True)
    assert [repr(value) for value in found["raw"]] == [repr(value) for value in expected["raw"]]


@pytest.mark.parametrize("engine", FAST_ENGINES)
@pytest.mark.parametrize("kind", ["boolean", "int8", "int64", "float32", "decimal", "date", "microseconds", "milliseconds",
                                  "nanoseconds", "zoned", "text", "categorical", "enum"])  # fmt: skip
@pytest.mark.parametrize("counted", [False, True])
def test_quasi_identifiers(engine, kind, counted):
    values, dtype = COLUMNS[kind]
    rng = np.random.default_rng(8)
    picked = [values[place] for place in rng.integers(0, len(values), ROWS)]
    frame = pl.DataFrame(
        {
            "one": pl.Series(picked, dtype=dtype),
            "two": rng.choice([0.0, -0.0, 1.5], ROWS),
            "many": rng.integers(1, 4, ROWS),
        }
    )
    words: dict[str, Any] = {"quasi_identifiers": ["one", "two"], "k": 4}
    words |= {"count": "many"} if counted else {"insensitive": ["many"]}
    expected, found = af.anonymize(frame, **words), af.anonymize(frame, engine=engine, **words)
    assert found.recoding.to_json() == expected.recoding.to_json()
    assert_frame_equal(found.data, expected.data, check_exact=True)
