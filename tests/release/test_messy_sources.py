# SPDX-License-Identifier: Apache-2.0
"""From a messy file to an audited release: the audit, which reads the file anew by itself, agrees."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import anonfit as af
from anonfit.spec.parse import parse_spec
from commands import command

ROWS = [(20 + number % 40, ("Köln", "Zürich", "Genève")[number % 3], (number % 7) / 2 + 1.25) for number in range(120)]
SPEC = """
version = 1
[data]
source = "{name}"
{data}
[columns.age]
role = "quasi-identifier"
{age}
[columns.city]
role = "insensitive"
[columns.size]
role = "quasi-identifier"
[privacy]
k = 5
[engine]
name = "{engine}"
"""


def lines(sign: str = ";", decimal: str = ",", tail: str = "") -> list[str]:
    return [f"{age}{sign}{city}{sign}{size}".replace(".", decimal) + tail for age, city, size in ROWS]


def text_of(header: str, rows: list[str]) -> str:
    return "\n".join([header, *rows]) + "\n"


MESSY: dict[str, Callable[[], bytes]] = {
    "windows": lambda: text_of("age;city;size", lines()).encode("cp1252"),
    "title and sep": lambda: ("sep=;\nExport 2019\n\n" + text_of("age;city;size", lines())).encode("utf-16"),
    "trailing": lambda: text_of("age;city;size;", lines(tail=";")).replace("\n", "\r").encode(),
    "quoted": lambda: text_of("age,city,size", [row.replace("Köln", '"Köln, 5"" pipe"') for row in lines(",", ".")]).encode(),
}  # fmt: skip


def released(folder: Path, content: bytes, *, engine: str = "memory", data: str = "", age: str = "") -> Path:
    (folder / "people.csv").write_bytes(content)
    spec = parse_spec(SPEC.format(name="people.csv", data=data, age=age, engine=engine), folder=folder)
    af.anonymize(spec).save(folder / "release")
    return folder / "release"


@pytest.mark.parametrize("kind", MESSY)
def test_the_audit_reads_the_source_anew_and_agrees(kind: str, tmp_path: Path) -> None:
    folder = released(tmp_path, MESSY[kind](), engine="duckdb" if kind == "trailing" else "memory")
    assert af.audit_release(folder, source=tmp_path / "people.csv").passed
    wrong = MESSY[kind]().replace(
        "41".encode("utf-16-le" if kind == "title and sep" else "ascii"),
        b"9\x009\x00"[:: 1 if kind == "title and sep" else 2],
    )
    assert wrong != MESSY[kind]()
    (tmp_path / "other.csv").write_bytes(wrong)
    assert not af.audit_release(folder, source=tmp_path / "other.csv").passed


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_codes_of_one_column_are_missing_for_every_engine_and_for_the_audit(tmp_path: Path, engine: str) -> None:
    rows: list[Any] = [
        row if number % 4 else row.replace(row.split(";")[0], "-9", 1) for number, row in enumerate(lines())
    ]
    content = text_of("age;city;size", rows).encode()
    folder = released(tmp_path, content, engine=engine, age="missing = [-9]")
    labels = set(af.load(folder).data["age"])
    assert any("missing" in label or label == "*" for label in labels)
    assert not any("-9" in label for label in labels)
    assert af.audit_release(folder, source=tmp_path / "people.csv").passed


TOWNS = "town,age\n" + "Győr,31\nPécs,42\nSzeged,27\nGyőr,55\n" * 10


@pytest.mark.parametrize(
    ("content", "setting"),
    [
        (TOWNS.encode("cp1250"), 'encoding = "cp1250"'),
        (f"{TOWNS}Summe,999\n".encode(), "skip_rows = [42]"),
        (TOWNS.replace("age\n", "age\nname,years\n").encode(), "skip_rows = [2]"),
    ],
    ids=["encoding", "total", "units"],
)
def test_what_a_spec_says_of_a_file_its_audit_is_told_by_it(content: bytes, setting: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    columns = "".join(f'[columns.{name}]\nrole = "quasi-identifier"\n' for name in ("town", "age"))
    spec = 'version = 1\nprivacy.k = 5\n[data]\nsource = "t.csv"\n{}\n' + columns
    (tmp_path / "spec.toml").write_text(spec.format(""))
    refused = command("run", "spec.toml", "--out", "release", folder=tmp_path)
    assert refused.returncode == 2
    assert re.search(r"t\.csv: line (2|42) ", refused.stderr)
    (tmp_path / "spec.toml").write_text(spec.format(setting))
    made = command("run", "spec.toml", "--out", "release", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    assert command("audit", "release", "--source", "t.csv", folder=tmp_path).returncode == 1
    told = command("audit", "release", "spec.toml", "--source", "t.csv", folder=tmp_path)
    assert told.returncode == 0, told.stdout
    assert "The release holds what it claims: k = 5 of town, age." in told.stdout
