# SPDX-License-Identifier: Apache-2.0
"""Top-down refinement on the command line: a release with several quasi-identifiers, its steps, its audit, a release by
an edited recoding, and a file that was changed afterwards.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from test_commands import anonfit, found

SPEC = """version = 1
[data]
source = "people.csv"
[columns.age]
role = "quasi-identifier"
[columns.town]
role = "quasi-identifier"
[columns.hours]
role = "quasi-identifier"
[columns.outcome]
role = "target"
[privacy]
k = 10
[[privacy.quasi_identifiers]]
columns = ["age", "town"]
k = 20
[[privacy.quasi_identifiers]]
columns = ["hours", "town"]
[method]
algorithm = "tdr"
[output]
format = "csv"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with people, a spec and its release."""
    place = tmp_path_factory.mktemp("people")
    rng = np.random.default_rng(2)
    age, town = rng.integers(18, 80, 600), rng.choice(list("abcd"), 600, p=[0.4, 0.3, 0.2, 0.1])
    told = (age > 45) + (town == "a") + rng.normal(0, 0.4, 600) > 0.8
    frame = pl.DataFrame({"age": age, "town": town, "hours": rng.integers(1, 60, 600)})
    frame.with_columns(outcome=pl.Series(np.where(told, "yes", "no"))).write_csv(place / "people.csv")
    (place / "spec.toml").write_text(SPEC)
    assert anonfit("run", "spec.toml", "--out", "release", folder=place).returncode == 0
    return place


def test_the_steps_are_shown_on_request(folder: Path) -> None:
    result = anonfit("run", "spec.toml", "--out", "steps", "--steps", folder=folder)
    assert result.returncode == 0, result.stderr
    assert "age, town: " in result.stdout
    assert "(asked: 20)" in result.stdout
    (head,) = [line for line in result.stdout.splitlines() if "gain" in line and "anonymity" in line]
    assert head.split() == ["column", "refined", "into", "gain", "loss", "score", "anonymity"]
    again = found(anonfit("run", "spec.toml", "--out", "more", "--steps", "--json", folder=folder))
    assert again["refinements"]["steps"][0]["column"] in ("age", "town", "hours")
    plain = found(anonfit("run", "spec.toml", "--out", "plain", "--json", folder=folder))
    assert "refinements" not in plain
    assert plain["stopped"] is False
    assert [(one["columns"], one["k"]) for one in plain["quasi_identifiers"]] == [
        (["age", "town"], 20),
        (["hours", "town"], 10),
    ]
    assert all(one["smallest_group"] >= one["k"] for one in plain["quasi_identifiers"])


def test_labels_are_whole_on_a_narrow_screen(folder: Path) -> None:
    result = anonfit("run", "spec.toml", "--out", "narrow", "--steps", folder=folder, COLUMNS="60")
    assert result.returncode == 0, result.stderr
    (_, shown) = result.stdout.split("for the owner of the data only", 1)
    assert "…" not in shown


def test_a_release_that_was_stopped_says_so(folder: Path) -> None:
    words = ("run", "spec.toml", "--out", "early", "--replace", "--set", "method.time_budget=1e-9")
    result = anonfit(*words, folder=folder)
    assert result.returncode == 0, result.stderr
    assert "Refining was stopped after 0 refinements; more were possible." in result.stdout
    assert found(anonfit(*words, "--json", folder=folder))["stopped"] is True


def test_the_audit_counts_every_quasi_identifier(folder: Path) -> None:
    result = anonfit("audit", "release", "--source", "people.csv", folder=folder)
    assert result.returncode == 0, result.stderr
    assert "age, town: k = " in result.stdout
    assert "all quasi-identifiers together: k = " in result.stdout
    by_spec = found(anonfit("audit", "release/data.csv", "spec.toml", "--json", folder=folder))
    assert [one["columns"] for one in by_spec["sets"]] == [["age", "town"], ["hours", "town"]]
    assert by_spec["passed"]


def test_a_group_that_lost_rows_is_found_in_its_quasi_identifier(folder: Path) -> None:
    table = pl.read_csv(folder / "release" / "data.csv", infer_schema=False)
    least = table.group_by("hours", "town").len().sort("len", "hours", "town").row(0, named=True)
    inside = (pl.col("hours") == least["hours"]) & (pl.col("town") == least["town"])
    pl.concat([table.filter(~inside), table.filter(inside).head(2)]).write_csv(folder / "short.csv")
    result = anonfit("audit", "short.csv", "spec.toml", "--json", folder=folder)
    assert result.returncode == 1
    missed = [one["where"] for one in found(result)["findings"] if one["met"] is False]
    assert "hours, town" in missed


def test_an_edited_recoding_makes_another_release(folder: Path) -> None:
    tables = json.loads((folder / "release" / "recoding.json").read_text())
    tables["parts"]["town"] = [-1] * len(tables["parts"]["town"])
    (folder / "edited.json").write_text(json.dumps(tables))
    words = ("apply", "release", "people.csv", "--recoding", "edited.json", "--out", "coarser", "--json")
    assert found(anonfit(*words, folder=folder))["rows"]["released"] == 600
    assert set(pl.read_csv(folder / "coarser" / "data.csv")["town"].unique()) == {"*"}
    refused = anonfit("apply", "release", "people.csv", "--recoding", "none.json", "--out", "other", folder=folder)
    assert refused.returncode == 2
    assert "there is no such recoding" in refused.stderr


def test_refining_begins_with_an_edited_recoding(folder: Path) -> None:
    tables = json.loads((folder / "release" / "recoding.json").read_text())
    (age,) = [column for column in tables["columns"] if column["name"] == "age"]
    age["cuts"], tables["parts"]["age"] = [33], [0, 1]
    tables["parts"]["town"] = [-1] * len(tables["parts"]["town"])
    (folder / "edited.json").write_text(json.dumps(tables))
    result = anonfit("run", "spec.toml", "--out", "again", "--start", "edited.json", "--json", folder=folder)
    assert result.returncode == 0, result.stderr
    assert 33 in json.loads((folder / "again" / "recoding.json").read_text())["columns"][0]["cuts"]
    age["cuts"], tables["parts"]["age"] = list(range(19, 80)), list(range(62))
    (folder / "edited.json").write_text(json.dumps(tables))
    result = anonfit("run", "spec.toml", "--out", "finer", "--start", "edited.json", folder=folder)
    assert result.returncode == 1
    assert "leaves fewer than k = 20 persons in a group of 'age', 'town'" in result.stderr.replace("\n", " ")
    assert not (folder / "finer").exists()
