# SPDX-License-Identifier: Apache-2.0
"""The audit reads raw files by code of its own, and as the package does."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from anonfit.auditing.reading import open_table
from anonfit.tables.reading import ReadOptions, read_table
from messy_files import Messy, bank

READABLE = [messy for messy in bank() if messy.table is not None and not messy.settings]


@pytest.mark.parametrize("messy", READABLE, ids=[messy.name for messy in READABLE])
def test_the_audit_reads_messy_files_as_the_package_does(messy: Messy, tmp_path: Path) -> None:
    path = tmp_path / f"table{messy.suffix}"
    path.write_bytes(messy.content)
    ours = read_table(path, ReadOptions())
    names = [name for name in ours.columns if name]
    readings = [open_table(path, columns=names, care=sign).frame(ours.columns) for sign in ".,"]
    assert any(all(same(audited[name], ours[name]) for name in ours.columns) for audited in readings)


def same(audited: pl.Series, ours: pl.Series) -> bool:
    """Whether texts that the audit read are the values that the package read."""
    assert audited.dtype == pl.String
    values = audited.str.to_date(strict=False) if ours.dtype == pl.Date else audited.cast(ours.dtype, strict=False)
    return values.to_list() == ours.to_list()


def test_values_that_mean_missing_in_one_column_are_missing_there_only(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("age,city\n-9,Rome\n31,-9\n-9.0,Bonn\n")
    read = open_table(path, columns=["age", "city"], codes={"age": ("-9",)}).frame(["age", "city"])
    assert read.to_dict(as_series=False) == {"age": [None, "31", None], "city": ["Rome", "-9", "Bonn"]}
