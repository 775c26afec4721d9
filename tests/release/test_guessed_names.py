# SPDX-License-Identifier: Apache-2.0
"""A first line that is only taken for a header may be a person's record: no message tells what stands in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

import anonfit as af
from anonfit.errors import AnonfitError, SpecError
from anonfit.spec.parse import spec_of

SECRET = "MARIAMUELLERHIV"
REST = [[f"P{place}", "Bonn", "flu"] for place in range(30)]
WORDS: dict[str, Any] = {"quasi_identifiers": ["name"], "insensitive": ["city", "ill"], "k": 3}


def written(folder: Path, kind: str, rows: list[list[str]]) -> Path:
    path = folder / f"people.{kind}"
    if kind == "csv":
        path.write_text("".join(",".join(row) + "\n" for row in rows), encoding="utf-8")
        return path
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet("s")
        for place, row in enumerate(rows):
            sheet.write_row(place, 0, row)
    return path


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize("third", ["acne", SECRET], ids=["names apart", "a name twice"])
def test_a_first_record_is_not_told(tmp_path: Path, kind: str, third: str) -> None:
    source = written(tmp_path, kind, [[SECRET, "Berlin", third], *REST])
    with pytest.raises(AnonfitError) as error:
        af.anonymize(source, **WORDS)
    assert not any(word in str(error.value) for word in (SECRET, "Berlin", "acne"))
    assert "header = " in str(error.value)


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_names_are_told_once_the_spec_knows_one(tmp_path: Path, kind: str) -> None:
    source = written(tmp_path, kind, [["name", "city", "illness"], *REST])
    with pytest.raises(SpecError, match="1 column has no role: 'illness'"):
        af.anonymize(source, **WORDS)


def test_names_of_a_declared_header_are_told(tmp_path: Path) -> None:
    written(tmp_path, "csv", [["a", "b", "c"], *REST])
    columns = {"name": {"role": "quasi-identifier"}}
    tables = {"version": 1, "columns": columns, "privacy": {"k": 3}, "data": {"source": "people.csv", "header": True}}
    with pytest.raises(SpecError, match="valid: a, b, c"):
        af.run(spec_of(tables, folder=tmp_path), tmp_path / "out")
