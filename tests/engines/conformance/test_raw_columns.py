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


@pytest.mark.sampled(5)
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


@pytest.mark.sampled(5)
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


def _released_as_in_memory(engine: str, source: Any, **words: Any) -> None:
    expected, found = af.anonymize(source, **words), af.anonymize(source, engine=engine, **words)
    assert_frame_equal(found.data, expected.data, check_exact=True)
    assert found.recoding.to_json() == expected.recoding.to_json()


@pytest.mark.parametrize("engine", FAST_ENGINES)
def test_names_that_differ_in_case_or_are_our_own(engine, tmp_path):
    rng = np.random.default_rng(8)
    names = ["age", "Age", "AGE_1", "rows_of_a_value", "held0", "column1", 'a"b; DROP TABLE x --']
    frame = pl.DataFrame({name: rng.integers(0, 4 + place, ROWS) for place, name in enumerate(names)})
    words = {"quasi_identifiers": ["Age", *names[3:6]], "insensitive": ["AGE_1", names[6]], "identifiers": ["age"]}
    _released_as_in_memory(engine, frame, k=5, **words)
    frame.write_parquet(tmp_path / "part-0.parquet")
    _released_as_in_memory(engine, str(tmp_path / "part-0.parquet"), k=5, **words)
    frame.select(*names[1:], names[0]).write_parquet(tmp_path / "part-1.parquet")
    _released_as_in_memory(engine, str(tmp_path / "part-*.parquet"), k=5, **words)


@pytest.mark.parametrize("engine", FAST_ENGINES)
def test_folders_that_look_like_columns(engine, tmp_path):
    folder = tmp_path / "age=7"
    folder.mkdir()
    rng = np.random.default_rng(9)
    pl.DataFrame({"age": rng.integers(0, 50, ROWS)}).write_parquet(folder / "table[1].parquet")
    pl.DataFrame({"age": rng.integers(50, 90, ROWS)}).write_parquet(folder / "table1.parquet")
    _released_as_in_memory(engine, str(folder / "table1.parquet"), quasi_identifiers=["age"], k=5)


@pytest.mark.parametrize("engine", ["memory", *FAST_ENGINES])
def test_files_with_columns_in_another_order_are_refused(engine, tmp_path):
    frame = pl.DataFrame({"age": range(ROWS), "size": range(ROWS)})
    frame.write_parquet(tmp_path / "part-0.parquet")
    frame.select("size", "age").write_parquet(tmp_path / "part-1.parquet")
    with pytest.raises(af.errors.DataError, match="part-1.parquet has other columns"):
        af.anonymize(str(tmp_path / "part-*.parquet"), quasi_identifiers=["age", "size"], k=5, engine=engine)


@pytest.mark.parametrize("engine", FAST_ENGINES)
def test_numbers_of_128_bits_are_refused(engine):
    frame = pl.DataFrame({"age": pl.Series(range(ROWS), dtype=pl.Int128)})
    with pytest.raises(af.errors.DataError, match=r"column 'age' is of type Int128.*cast it to Int64"):
        af.anonymize(frame, quasi_identifiers=["age"], k=5, engine=engine)
