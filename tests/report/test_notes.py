# SPDX-License-Identifier: Apache-2.0
"""README.txt and codebook.csv tell people who did not make a release what it is, and an audit that they tell nothing
else.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anonfit as af
from anonfit.spec.parse import spec_of
from waivers import waived

sys.path.insert(0, str(Path(__file__).parents[1] / "mutation"))
from checker import check

ROWS = 240


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    ages = [18 + 7 * place % 60 for place in range(ROWS)]
    days = pl.Series([f"20{place % 17 + 10}-0{place % 9 + 1}-11" for place in range(ROWS)]).str.to_date()
    return pl.DataFrame(
        {
            "name": [f"person {place}" for place in range(ROWS)],
            "age": ages,
            "born": days,
            "town": [["Rome", "Oslo", "Bern", None][place % 4] for place in range(ROWS)],
            "level": [["low", "middle", "high"][place % 3] for place in range(ROWS)],
            "illness": [["flu", "none"][place % 5 == 0] for place in range(ROWS)],
            "visits": [place % 6 for place in range(ROWS)],
        }
    )


def made(people: pl.DataFrame, folder: Path, **more: Any) -> Path:
    words: dict[str, Any] = {
        "quasi_identifiers": ["age", "born", "town", "level"],
        "identifiers": ["name"],
        "k": 6,
        "sensitive": waived("illness"),
        "insensitive": ["visits"],
        "types": {"level": "ordinal"},
        "orders": {"level": ["low", "middle", "high"]},
        "domains": {"age": [0, 120]},
    }
    release = af.anonymize(people, **words | more)
    release.save(folder, format="csv")
    return folder


def codebook(folder: Path) -> dict[str, dict[str, Any]]:
    lines = pl.read_csv(folder / "codebook.csv", infer_schema=False)
    return {line["column"]: line for line in lines.to_dicts()}


def test_the_codebook_has_a_line_for_every_column(people: pl.DataFrame, tmp_path: Path) -> None:
    folder = made(people, tmp_path / "out")
    lines = codebook(folder)
    assert list(lines) == pl.read_csv(folder / "data.csv").columns
    report = json.loads((folder / "report.json").read_text("utf-8"))
    different = {line["name"]: line.get("different") for line in report["columns"]}
    assert {name: line["labels"] for name, line in lines.items()} == {
        name: None if different[name] is None else str(different[name]) for name in lines
    }
    assert lines["age"]["type"] == "whole number"
    assert lines["age"]["domain"] == "0 to 120"
    assert lines["age"]["cuts"].endswith(" between whole numbers")
    assert lines["born"]["type"] == "date"
    assert lines["born"]["cuts"].endswith(" between days")
    assert lines["level"]["domain"] == "low < middle < high"
    assert "missing or L" in lines["town"]["means"]
    assert "missing" not in lines["age"]["means"]
    recoding = json.loads((folder / "recoding.json").read_text("utf-8"))
    place = [column["name"] for column in recoding["columns"]].index("town")
    assert lines["town"]["taxonomy"] == f"recoding.json: columns[{place}].taxonomy"
    assert lines["illness"]["role"] == "as it was: nobody should learn it of a person"


def test_bounds_have_a_line_each(people: pl.DataFrame, tmp_path: Path) -> None:
    lines = codebook(made(people, tmp_path / "out", values="bounds"))
    assert {name: line["of"] for name, line in lines.items() if name.startswith("age")} == {
        "age_lower": "age",
        "age_upper": "age",
    }
    assert lines["age_lower"]["means"].startswith("the value is this or above")


def test_the_readme_says_what_the_release_is(people: pl.DataFrame, tmp_path: Path) -> None:
    heading = {"title": "Patients of 2026", "contact": "data@example.org"}
    text = (made(people, tmp_path / "out", **heading) / "README.txt").read_text("utf-8")
    assert text.startswith("Patients of 2026\n================\n")
    assert "Contact: data@example.org" in text
    assert "It has 240 rows and 6 columns." in text
    assert "Left out: name." in text
    assert "k = 6: every combination of age, born, town and level" in " ".join(text.split())
    for words in ("[a, b)", "{u, v, w}", "missing or L", "Excel:", "R: read.csv(", "Python:", "anonfit audit"):
        assert words in text
    assert "person 1" not in text


def test_both_are_the_same_every_time(people: pl.DataFrame, tmp_path: Path) -> None:
    one, other = made(people, tmp_path / "one"), made(people, tmp_path / "other")
    for name in ("README.txt", "codebook.csv"):
        assert (one / name).read_bytes() == (other / name).read_bytes()


@pytest.mark.parametrize("name", ["README.txt", "codebook.csv"])
@pytest.mark.parametrize("change", [lambda text: text + "\n", lambda text: text.replace("a", "b", 1)])
def test_a_note_that_says_something_else_is_found(people: pl.DataFrame, tmp_path: Path, name: str, change: Any) -> None:
    folder = made(people, tmp_path / "out")
    assert af.audit_release(folder).passed
    content = change((folder / name).read_text("utf-8")).encode()
    (folder / name).write_bytes(content)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    manifest["files"][name] = hashlib.sha256(content).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert [finding.name for finding in af.audit_release(folder).missed] == ["report notes"]


def test_a_release_of_an_earlier_version_has_no_notes(people: pl.DataFrame, tmp_path: Path) -> None:
    folder = made(people, tmp_path / "out")
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    for name in ("README.txt", "codebook.csv"):
        (folder / name).unlink()
        del manifest["files"][name]
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert len(af.load(folder).data) == ROWS
    found = af.audit_release(folder)
    assert found.passed
    assert "report notes" not in [finding.name for finding in found.findings]


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_words_of_others_are_no_formulas_in_the_codebook(tmp_path: Path, kind: str) -> None:
    """The codebook is CSV, whatever the data file is."""
    frame = pl.DataFrame({"age": list(range(30)) * 2, "=1+cmd": [1, 2] * 30, "size": ["-s", "l"] * 30})
    frame.write_parquet(tmp_path / "people.parquet")
    columns = {
        "age": {"role": "quasi-identifier", "title": '=HYPERLINK("http://evil")', "domain": [-5, 99]},
        "=1+cmd": {"role": "insensitive", "title": "@x"},
        "size": {"role": "quasi-identifier", "type": "ordinal", "order": ["-s", "l"]},
    }
    tables = {"version": 1, "data": {"source": "people.parquet"}, "columns": columns, "privacy": {"k": 5}}
    spec = spec_of({**tables, "output": {"format": kind}}, folder=tmp_path)
    af.run(spec, tmp_path / "out")
    lines = codebook(tmp_path / "out")
    assert lines["age"]["means"].startswith("'=HYPERLINK")
    assert lines["age"]["domain"] == "-5 to 99"
    assert (lines["'=1+cmd"]["of"], lines["'=1+cmd"]["means"][:4]) == ("'=1+cmd", "'@x:")
    assert lines["size"]["domain"] == "'-s < l"
    assert af.audit_release(tmp_path / "out", source=frame).passed
    assert check(tmp_path / "out").faults == ()
