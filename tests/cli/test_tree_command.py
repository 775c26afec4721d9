# SPDX-License-Identifier: Apache-2.0
"""`anonfit tree`: a spec in, a folder out; exit statuses; predictions."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import polars as pl
import pytest

from commands import command

ROWS = """name,marital,car,risk
Lisa,Unmarried,Yes,good
John,Married,Yes,good
Ben,Married,No,bad
Laura,Married,No,bad
Robert,Unmarried,Yes,bad
Anna,Unmarried,No,bad
"""
SPEC = """version = 1
[data]
source = "mortgages.csv"
[columns.name]
role = "identifier"
[columns.marital]
role = "quasi-identifier"
type = "nominal"
[columns.car]
role = "sensitive"
diversity = "none"
reason = "made-up customers"
type = "nominal"
domain = ["Yes", "No"]
[columns.risk]
role = "target"
[privacy]
k = 3
[method]
algorithm = "tree"
variant = "id3"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "mortgages.csv").write_text(ROWS)
    (tmp_path / "spec.toml").write_text(SPEC)
    return tmp_path


def anonfit(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return command(*words, folder=place)


def test_a_spec_becomes_a_folder_and_predictions(place: Path) -> None:
    done = anonfit(place, "tree", "spec.toml")
    assert done.returncode == 0, done.stderr
    assert "3 leaves, 2 spans, the smallest of 3 persons (asked: 3)" in done.stdout
    assert "└─ Unmarried → bad  (2: bad 1, good 1)" in done.stdout
    assert (place / "spec-tree" / "tree.svg").is_file()
    audited = anonfit(place, "audit", "spec-tree", "--source", "mortgages.csv")
    assert (audited.returncode, "holds what it claims: k = 3 of spans by marital" in audited.stdout) == (0, True)
    assert anonfit(place, "audit", "spec-tree").returncode == 1
    shown = anonfit(place, "tree", "--from", "spec-tree")
    assert "car? (private)" in shown.stdout
    done = anonfit(place, "tree", "--from", "spec-tree", "--predict", "mortgages.csv", "--json")
    assert json.loads(done.stdout) == {"predicted": "mortgages-predicted.csv", "rows": 6}
    found = pl.read_csv(place / "mortgages-predicted.csv")
    assert found["predicted_risk"].to_list() == ["bad", "good", "bad", "bad", "bad", "bad"]
    again = anonfit(place, "tree", "--from", "spec-tree", "--predict", "mortgages.csv")
    assert again.returncode == 2
    assert "already there" in again.stderr


def test_json_is_one_object(place: Path) -> None:
    done = anonfit(place, "tree", "spec.toml", "--out", "t", "--json", "--set", "output.populations=majority")
    found = json.loads(done.stdout)
    assert (found["k"], found["smallest_span"], found["spans"], found["leaves"], found["passed"]) == (3, 3, 2, 3, True)
    assert done.stderr == ""
    assert json.loads(anonfit(place, "tree", "--from", "t", "--json").stdout)["populations"] == "majority"


def test_statuses_are_those_of_the_contract(place: Path) -> None:
    unmet = anonfit(place, "tree", "spec.toml", "--set", "privacy.k=7")
    assert (unmet.returncode, "fewer than k = 7" in unmet.stderr) == (1, True)
    wrong = anonfit(place, "tree", "spec.toml", "--set", "method.variant=cart", "--set", "method.max_spans=0")
    assert wrong.returncode == 2
    assert "2 faults" in wrong.stderr
    assert anonfit(place, "tree").returncode == 2
    both = anonfit(place, "tree", "spec.toml", "--from", "t")
    assert (both.returncode, "name one of the two" in both.stderr) == (2, True)
    alone = anonfit(place, "tree", "--predict", "mortgages.csv")
    assert (alone.returncode, "name it with --from" in alone.stderr) == (2, True)
    shown = anonfit(place, "tree", "--from", "t", "--out", "o")
    assert (shown.returncode, "writes nothing" in shown.stderr) == (2, True)
    (place / "table.toml").write_text(SPEC.replace('domain = ["Yes", "No"]', "").split("[method]")[0])
    table = anonfit(place, "tree", "table.toml", "--set", "method.algorithm=mondrian")
    assert (table.returncode, "makes a table" in table.stderr) == (2, True)
    assert anonfit(place, "tree", "table.toml", "--out", "t").returncode == 0  # names no algorithm
    assert not (place / "spec-tree").exists()


def test_the_table_of_the_tree_is_an_ordinary_release(place: Path) -> None:
    done = anonfit(place, "run", "spec.toml", "--out", "table", "--json", "--set", "output.format=csv")
    assert json.loads(done.stdout)["smallest_group"] == 3
    assert pl.read_csv(place / "table" / "data.csv").columns == ["marital", "car", "risk"]
    audited = anonfit(place, "audit", "table", "--source", "mortgages.csv")
    assert audited.returncode == 0, audited.stderr
