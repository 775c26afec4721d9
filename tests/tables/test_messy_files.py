# SPDX-License-Identifier: Apache-2.0
"""The bank of messy files: each is read rightly, or refused with the line and the key; by every reader alike."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anonfit.errors import DataError
from anonfit.tables.ingesting import ingest, scan_of
from anonfit.tables.reading import ReadOptions, csv_shape, read_table
from messy_files import Messy, Table, bank

BANK = bank()
by_name = pytest.mark.parametrize("messy", BANK, ids=[messy.name for messy in BANK])


def placed(messy: Messy, folder: Path) -> Path:
    path = folder / f"table{messy.suffix}"
    path.write_bytes(messy.content)
    return path


def options(messy: Messy) -> ReadOptions:
    given: dict[str, Any] = dict(messy.settings)
    if isinstance(given.get("skip_rows"), list):
        given["skip_rows"] = tuple(given["skip_rows"])
    return ReadOptions(**given)


def as_table(frame: pl.DataFrame) -> Table:
    return frame.to_dict(as_series=False)


@by_name
def test_a_messy_file_is_read_rightly_or_refused_by_line_and_key(messy: Messy, tmp_path: Path) -> None:
    path = placed(messy, tmp_path)
    if not messy.refused:
        assert as_table(read_table(path, ReadOptions())) == messy.table
        notices = " ".join(csv_shape(path, ReadOptions()).notices)
        assert messy.notice in notices if messy.notice else not notices
        return
    with pytest.raises(DataError, match=messy.refused) as caught:
        read_table(path, ReadOptions())
    assert str(caught.value).startswith("table.csv: ")
    if messy.table is not None:
        assert as_table(read_table(path, options(messy))) == messy.table


@by_name
def test_engines_that_do_not_read_it_whole_are_given_the_same(messy: Messy, tmp_path: Path) -> None:
    path = placed(messy, tmp_path)
    folder = tmp_path / "spill"
    folder.mkdir()
    if messy.refused:
        with pytest.raises(DataError, match=messy.refused):
            ingest(path, ReadOptions(), folder)
    if messy.table is not None:
        for left in folder.iterdir():
            left.unlink()
        ingested = ingest(path, options(messy), folder)
        assert as_table(scan_of(ingested, missing_texts={}, without_missing=()).collect()) == messy.table
        assert {file.suffix for file in folder.iterdir()} == {".parquet"}


def test_at_least_sixty_files_and_nine_of_ten_without_a_setting() -> None:
    names = [messy.name for messy in BANK]
    assert len(names) == len(set(names)) >= 60
    assert sum(not messy.refused for messy in BANK) >= 0.9 * len(BANK)
    assert all(re.search("line", messy.refused) for messy in BANK if messy.refused)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"<table>\n<tr><th>age</th></tr>\n<tr><td>31</td></tr>\n</table>\n", "HTML or XML; open it in a spreadsheet"),
        (b'\xef\xbb\xbf<?xml version="1.0"?><x/>\n', "HTML or XML"),
        (b'[{"age": 31, "city": "Rome"}]\n', "JSON; write one object a line and name it .jsonl"),
        (b"PK\x03\x04\x14\x00\x06\x00" + bytes(range(256)), "a workbook, or packed; give it its own ending"),
        (b"\x1f\x8b\x08\x00" + bytes(60), "packed; give it the ending .csv.gz"),
        (b"%PDF-1.4\n%abc\n", "a document; save the table in it as CSV"),
    ],
)
def test_what_is_no_text_of_a_table_is_called_what_it_is(content: bytes, what: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"^table.csv: from line 1 on it is no text file of a table but {what}"):
        read_table(path, ReadOptions())


def test_a_total_of_a_file_longer_than_twenty_lines_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("age,city,n\n" + "31,Rome,5\n42,Oslo,6\n" * 20 + "Summe aller,,440\n")
    with pytest.raises(DataError, match=r"line 42 looks like a total.*skip_rows = \[42\]"):
        read_table(path, ReadOptions())
