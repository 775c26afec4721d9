# SPDX-License-Identifier: Apache-2.0
"""Frames of any kind, and files with types, are read without being changed."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from anonfit.errors import DataError
from anonfit.tables.frames import from_frame, like
from anonfit.tables.reading import ReadOptions, column_names, read_table

MIXED = pd.DataFrame(
    {
        "whole": [1, 2, 3],
        "number": [1.5, float("nan"), 2.5],
        "text": ["a", None, "c"],
        "mixed": pd.Series([1, "x", pd.NA], dtype=object),
        "nullable": pd.array([1, None, 3], dtype="Int64"),
        "truth": [True, False, True],
        "maybe": pd.array([True, None, False], dtype="boolean"),
        "category": pd.Categorical(["b", "a", None], categories=["z", "b", "a"]),
        "when": pd.to_datetime(["2024-01-01", "2024-01-02", None]),
        "zone": pd.to_datetime(["2024-01-01", "2024-01-02", None], utc=True).tz_convert("Europe/Berlin"),
        "day": [date(2024, 1, 1), None, date(2024, 1, 3)],
        "money": [Decimal("1.50"), None, Decimal("2.25")],
    }
)
READ = {
    "whole": [1, 2, 3],
    "number": [1.5, None, 2.5],
    "text": ["a", None, "c"],
    "mixed": ["1", "x", None],
    "nullable": [1, None, 3],
    "truth": [True, False, True],
    "maybe": [True, None, False],
    "category": ["b", "a", None],
    "when": [datetime(2024, 1, 1), datetime(2024, 1, 2), None],
    "day": [date(2024, 1, 1), None, date(2024, 1, 3)],
    "money": [Decimal("1.50"), None, Decimal("2.25")],
}
INDEXES = {
    "plain": pd.RangeIndex(3),
    "duplicate": pd.Index([7, 7, 7]),
    "text": pd.Index(["x", "y", "x"]),
    "dates": pd.DatetimeIndex(["2024-01-03", "2024-01-01", "2024-01-01"]),
    "several": pd.MultiIndex.from_tuples([("a", 1), ("a", 1), ("b", 2)]),
    "missing": pd.Index([np.nan, np.nan, 1.0]),
}


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_pandas_of_all_types_and_indexes(index: pd.Index) -> None:
    source = MIXED.set_axis(index, axis=0)
    before = source.copy(deep=True)
    found = from_frame(source)
    assert found.drop("zone").to_dict(as_series=False) == READ
    assert found["zone"].dt.convert_time_zone("UTC").to_list() == [
        datetime(2024, 1, 1, tzinfo=UTC),
        datetime(2024, 1, 2, tzinfo=UTC),
        None,
    ]
    pd.testing.assert_frame_equal(source, before)


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_a_pandas_frame_comes_back_with_its_index(index: pd.Index) -> None:
    source = pd.DataFrame({"a": [1, 2, 3]}, index=index)
    back = like(source, from_frame(source))
    assert isinstance(back, pd.DataFrame)
    pd.testing.assert_index_equal(back.index, index)
    pd.testing.assert_index_equal(like(source, from_frame(source), index=False).index, pd.RangeIndex(3))


def test_names_that_are_no_texts_become_texts() -> None:
    assert from_frame(pd.DataFrame([[1, 2]], columns=[2019, "a"])).columns == ["2019", "a"]


@pytest.mark.parametrize("names", [["a", "a"], [1, "1"]])
def test_names_that_stand_twice_are_refused(names: list[Any]) -> None:
    with pytest.raises(DataError, match="stand twice"):
        from_frame(pd.DataFrame([[1, 2]], columns=names))


def test_names_that_stand_twice_are_refused_in_arrow_too() -> None:
    with pytest.raises(DataError, match="stand twice"):
        from_frame(pa.table([[1], [2]], names=["a", "a"]))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2**70, 1], [str(2**70), "1"]),
        ([1j, 2j], ["1j", "2j"]),
        (["a", 1.5], ["a", "1.5"]),
        ([True, "x"], ["True", "x"]),
        ([date(2024, 1, 1), "x"], ["2024-01-01", "x"]),
        (pd.period_range("2024-01", periods=2, freq="M"), ["2024-01", "2024-02"]),
        (pd.interval_range(0, 2), ["(0, 1]", "(1, 2]"]),
    ],
    ids=["huge", "complex", "text and number", "truth and text", "date and text", "period", "interval"],
)
def test_pandas_objects_that_polars_does_not_know_become_texts(values: Any, expected: list[str]) -> None:
    assert from_frame(pd.DataFrame({"x": values}))["x"].to_list() == expected


def test_arrow_polars_lazy_and_dict_are_frames() -> None:
    expected = pl.DataFrame({"a": [1, 2], "b": ["x", None]})
    for source in (
        expected,
        expected.lazy(),
        expected.to_arrow(),
        expected.to_arrow().to_batches()[0],
        expected.to_dict(as_series=False),
    ):
        assert from_frame(source).equals(expected)
    assert from_frame(pa.table({"a": pa.array(["x", "y"]).dictionary_encode()}))["a"].to_list() == ["x", "y"]


def test_results_are_of_the_kind_that_came_in() -> None:
    frame = pl.DataFrame({"a": [1]})
    assert isinstance(like(frame, frame), pl.DataFrame)
    assert isinstance(like(frame.to_arrow(), frame), pa.Table)
    assert isinstance(like("a.csv", frame), pl.DataFrame)
    assert isinstance(like(pd.DataFrame({"a": [1]}), frame), pd.DataFrame)


@pytest.mark.parametrize(
    "source", [None, 5, [{"a": 1}], np.zeros((2, 2)), pd.Series([1]), pl.Series([1]), pa.array([1])]
)
def test_what_is_no_table_is_refused(source: Any) -> None:
    with pytest.raises(DataError, match="a table is needed"):
        from_frame(source)


def test_a_mapping_of_uneven_lists_is_refused() -> None:
    with pytest.raises(DataError):
        from_frame({"a": [1, 2], "b": [1, 2, 3]})


# --- files with types -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parquet", "arrow", "feather", "ipc"])
def test_files_with_types(tmp_path: Path, kind: str) -> None:
    frame = pl.DataFrame({"a": [1, 2], "b": ["x", "?"], "c": [date(2024, 1, 1), None], "d": [Decimal("1.50"), None]})
    path = tmp_path / f"t.{kind}"
    frame.write_parquet(path) if kind == "parquet" else frame.write_ipc(path)
    assert read_table(path, ReadOptions()).equals(frame)
    assert column_names(path, ReadOptions()) == ("a", "b", "c", "d")
    some = read_table(path, ReadOptions(missing=("?",), columns=("b",), clean=frozenset(["b"])))
    assert some.to_dict(as_series=False) == {"b": ["x", None]}


def test_a_pattern_of_files_with_types(tmp_path: Path) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "1.parquet")
    pl.DataFrame({"a": [2.5]}).write_parquet(tmp_path / "2.parquet")
    assert read_table(tmp_path / "*.parquet", ReadOptions())["a"].to_list() == [1, 2.5]


@pytest.mark.parametrize(
    "kind",
    [
        "parquet",
        pytest.param(
            "arrow",
        ),
    ],
)
def test_names_that_hold_signs_of_patterns(tmp_path: Path, kind: str) -> None:
    frame, path = pl.DataFrame({"a": [1]}), tmp_path / f"[a].{kind}"
    frame.write_parquet(path) if kind == "parquet" else frame.write_ipc(path)
    assert read_table(path, ReadOptions()).equals(frame)


# --- missing texts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["x", "?", ""])])
def test_missing_texts_of_frames_are_missing_and_the_frame_is_not_changed(dtype: Any) -> None:
    source = pl.DataFrame({"a": pl.Series(["x", "?", "", None]).cast(dtype), "raw": ["?", "?", "x", ""]})
    before = source.clone()
    found = read_table(source, ReadOptions(missing=("?", ""), clean=frozenset(["a"])))
    assert found["a"].cast(pl.String).to_list() == ["x", None, None, None]
    assert found["raw"].to_list() == ["?", "?", "x", ""]
    assert source.equals(before)
    assert source.schema == before.schema


def test_numbers_are_never_missing_texts() -> None:
    assert read_table({"a": [1, 99]}, ReadOptions(missing=("99",), clean=frozenset(["a"])))["a"].to_list() == [1, 99]
