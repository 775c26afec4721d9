# SPDX-License-Identifier: Apache-2.0
"""A CSV file is laid out as the recipient's program reads it, on every engine, and audited as such."""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anonfit as af
from anonfit.errors import SpecError

sys.path.insert(0, str(Path(__file__).parents[1] / "mutation"))
from checker import check

ROWS = 120
LAYOUTS = [(";", ",", True), ("\t", ".", False), ("|", ",", False), (";", ".", False), (",", ".", True)]


def people() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "age": [18 + place * 7 % 50 for place in range(ROWS)],
            "town; or so": [["Rome", "Oslo|x", "Bern\tb", "a, b"][place % 4] for place in range(ROWS)],
            "income": [None if place % 11 == 0 else place % 8 * 1.25 for place in range(ROWS)],
            "rate": [Decimal(place % 5) / 4 for place in range(ROWS)],
            "seen": [datetime(2024, 1, 1 + place % 4, 12, 0, 0, 500000) for place in range(ROWS)],
            "day": [date(2024, 1, 1 + place % 4) for place in range(ROWS)],
            "smokes": [place % 3 == 0 for place in range(ROWS)],
            "illness": [["flu, bad", "1,5", "2;3", "none"][place % 4] for place in range(ROWS)],
        },
        schema_overrides={"rate": pl.Decimal(10, 2)},
    )


def written_spec(folder: Path, *, values: str = "labels") -> Path:
    people().write_parquet(folder / "people.parquet")
    text = f"""
version = 1
[data]
source = "people.parquet"
default_role = "insensitive"
[columns]
age = {{ role = "quasi-identifier" }}
"town; or so" = {{ role = "quasi-identifier" }}
income = {{ role = "quasi-identifier" }}
[privacy]
k = 4
[output]
format = "csv"
values = "{values}"
"""
    (folder / "spec.toml").write_text(text)
    return folder / "spec.toml"


def settings(delimiter: str, decimal: str, bom: bool, engine: str = "memory") -> list[str]:
    given = {"output.delimiter": delimiter, "output.decimal": decimal, "output.bom": bom, "engine.name": engine}
    usual = {"output.delimiter": ",", "output.decimal": ".", "output.bom": False}
    return [f"{name}={json.dumps(value)}" for name, value in given.items() if usual.get(name) != value]


def as_excel(path: Path, delimiter: str, decimal: str) -> list[list[Any]]:
    """As a spreadsheet opens a file: it goes by the mark and the signs of the country; what looks like a number is one."""
    content = path.read_bytes()
    text = content.decode("utf-8-sig" if content.startswith(b"\xef\xbb\xbf") else "cp1252")
    lines = csv.reader(text.split("\n")[:-1], delimiter=delimiter)

    def value(field: str) -> Any:
        try:
            return float(field.replace(decimal, ".")) if decimal in field or field.isdigit() else field
        except ValueError:
            return field

    return [[value(field) for field in line] for line in lines]


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize(("delimiter", "decimal", "bom"), LAYOUTS[:2])
def test_a_layout_is_written_audited_checked_and_loaded(
    tmp_path: Path, delimiter: str, decimal: str, bom: bool, engine: str
) -> None:
    spec = written_spec(tmp_path, values="bounds")
    plain = af.run(spec, tmp_path / "plain", settings=settings(",", ".", False))
    made = af.run(spec, tmp_path / "out", settings=settings(delimiter, decimal, bom, engine))
    folder = tmp_path / "out"
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    said = manifest["spec"]["output"]
    assert (said["delimiter"], said.get("decimal", "."), said.get("bom", False)) == (delimiter, decimal, bom)
    assert (folder / "data.csv").read_bytes().startswith(b"\xef\xbb\xbf") == bom
    assert af.load(folder).data.equals(af.load(tmp_path / "plain").data)
    assert made.recoding.to_json() == plain.recoding.to_json()
    assert af.audit_release(folder, source=people()).passed
    assert check(folder).faults == ()


def test_every_engine_writes_the_same_bytes(tmp_path: Path) -> None:
    spec = written_spec(tmp_path)
    for engine in ("memory", "duckdb"):
        af.run(spec, tmp_path / engine, settings=settings(";", ",", True, engine))
    for name in ("data.csv", "codebook.csv"):
        assert (tmp_path / "memory" / name).read_bytes() == (tmp_path / "duckdb" / name).read_bytes()


@pytest.mark.spark
def test_spark_writes_the_same_bytes(tmp_path: Path) -> None:
    spec = written_spec(tmp_path)
    for engine in ("memory", "spark"):
        af.run(spec, tmp_path / engine, settings=settings(";", ",", True, engine))
    assert (tmp_path / "memory" / "data.csv").read_bytes() == (tmp_path / "spark" / "data.csv").read_bytes()


def test_a_spreadsheet_opens_it_without_a_wizard(tmp_path: Path) -> None:
    af.run(written_spec(tmp_path), tmp_path / "out", settings=settings(";", ",", True))
    header, *rows = as_excel(tmp_path / "out" / "data.csv", ";", ",")
    assert header == people().columns
    assert len(rows) == ROWS
    assert all(len(row) == len(header) for row in rows)
    rates = sorted(row[header.index("rate")] for row in rows)
    assert rates == sorted(map(float, people()["rate"]))
    header, *rows = as_excel(tmp_path / "out" / "codebook.csv", ";", ",")
    assert [row[0] for row in rows] == people().columns


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "a point in place of a comma": lambda content: content.replace(b";0,25;", b";0.25;", 1),
    "no mark": lambda content: content.removeprefix(b"\xef\xbb\xbf"),
    "two marks": lambda content: b"\xef\xbb\xbf" + content,
    "a needless quote": lambda content: content.replace(b"none", b'"none"', 1),
    "more decimals": lambda content: content.replace(b";0,25;", b";0,250;", 1),
    "another delimiter": lambda content: content.replace(b";", b"|"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_is_laid_out_otherwise_is_found(tmp_path: Path, change: str) -> None:
    af.run(written_spec(tmp_path), tmp_path / "out", settings=settings(";", ",", True))
    path = tmp_path / "out" / "data.csv"
    old = path.read_bytes()
    new = CHANGES[change](old)
    assert new != old
    path.write_bytes(new)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text("utf-8"))
    digest = hashlib.sha256(new).hexdigest()
    page = tmp_path / "out" / "report.html"
    page.write_text(page.read_text("utf-8").replace(manifest["files"]["data.csv"], digest), "utf-8")
    manifest["files"] |= {"data.csv": digest, "report.html": hashlib.sha256(page.read_bytes()).hexdigest()}
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    (tmp_path / "out" / "manifest.json").write_text(text, "utf-8")
    try:
        found = af.audit_release(tmp_path / "out")
    except af.AnonfitError:
        return
    assert not found.passed


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (["output.decimal=','"], "output.delimiter and output.decimal are both ','"),
        (["output.delimiter=':'"], "output.delimiter must be one of"),
        (["output.decimal=';'"], "output.decimal must be one of"),
        (["output.format='parquet'", "output.delimiter=';'"], "output.delimiter is of CSV files only"),
        (["output.format='arrow'", "output.bom=true"], "output.bom is of CSV files only"),
    ],
)
def test_a_layout_that_is_none_is_refused(tmp_path: Path, given: list[str], fault: str) -> None:
    with pytest.raises(SpecError, match=fault):
        af.run(written_spec(tmp_path), tmp_path / "out", settings=given)
