# SPDX-License-Identifier: Apache-2.0
"""Files of Excel, SPSS and Stata: columns and rows without a value, and texts of the same numbers."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anonfit as af
from anonfit.auditing.formats import check_bytes
from anonfit.errors import DataError
from anonfit.tables.foreign_writing import sink_statistics, sink_workbook
from anonfit.tables.sources import PLAIN

sys.path.insert(0, str(Path(__file__).parents[1] / "mutation"))
from checker import check

ROWS = 60
EMPTY = {"number": pl.Float64, "whole": pl.Int64, "truth": pl.Boolean, "text": pl.String, "day": pl.Date}


def people() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "age": [20 + place * 7 % 60 for place in range(ROWS)],
            "income": [place % 9 / 4 for place in range(ROWS)],
            **{name: pl.Series([None] * ROWS, dtype=dtype) for name, dtype in EMPTY.items()},
        }
    )


@pytest.mark.parametrize("kind", ["xlsx", "sav", "dta"])
@pytest.mark.parametrize("values", ["labels", "bounds", "representative"])
def test_columns_without_a_value_are_released(tmp_path: Path, kind: str, values: Any) -> None:
    """Also of a column that is not divided, which has no bounds."""
    release = af.anonymize(
        people(), quasi_identifiers=["age", "income"], split_on=["age"], insensitive=[*EMPTY], k=25, values=values
    )
    folder = release.save(tmp_path / "out", format=kind)
    assert af.audit_release(folder, source=people()).passed
    assert check(folder).faults == ()
    assert af.load(folder).data[[*EMPTY]].null_count().row(0) == (ROWS,) * len(EMPTY)


@pytest.mark.parametrize("kind", ["sav", "dta"])
def test_other_bytes_are_found_beside_a_column_without_a_value(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"data.{kind}"
    sink_statistics(kind, people().lazy(), path, PLAIN)
    assert check_bytes(path).met
    path.write_bytes(path.read_bytes() + b"more")
    assert not check_bytes(path).met


def test_last_rows_without_a_value_are_refused_in_a_workbook(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1.0, None, 3.0, None], "b": [date(2024, 1, 1), None, None, None]})
    with pytest.raises(DataError, match="the last row has no value"):
        sink_workbook(frame.lazy(), tmp_path / "data.xlsx")
    sink_workbook(frame.head(3).lazy(), tmp_path / "data.xlsx")
    assert check_bytes(tmp_path / "data.xlsx").met


@pytest.mark.parametrize("kind", ["sav", "dta"])
def test_texts_of_the_same_numbers_are_the_same_bytes(tmp_path: Path, kind: str) -> None:
    frame = pl.DataFrame({"c": ["01", "1", "1.0", "001", "a", "a 2", "a 02"] * 3})
    written = set()
    for turn in range(12):
        path = tmp_path / f"data{turn}.{kind}"
        sink_statistics(kind, frame.lazy(), path, PLAIN)
        written.add(path.read_bytes())
        assert check_bytes(path).met
    assert len(written) == 1
