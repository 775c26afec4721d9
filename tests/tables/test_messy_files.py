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
