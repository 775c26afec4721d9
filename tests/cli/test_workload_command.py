# SPDX-License-Identifier: Apache-2.0
"""`anonfit workload` as a person and as a script use it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonfit.spec.parse import read_spec
from commands import command

SPEC = """version = 1
[data]
source = "people.csv"
[columns.name]
role = "identifier"
[columns.age]
role = "quasi-identifier"
[columns.job]
role = "quasi-identifier"
type = "nominal"
[columns.ill]
role = "sensitive"
diversity = "none"
reason = "made-up people"
[privacy]
k = 5
"""
LOG = """
select job, count(*) from people where age between 30 and 40 group by job;
select job, count(*) from people where age between 30 and 40 group by job;
select avg(age) from people where job = 'nurse';
select avg(age) from people where ill = 'yes';
select name from people where name = 'Marker7';
select from where x ike 'Marker7';
drop table people;
"""


def anonfit(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return command(*words, folder=folder, columns=100)


def found(*words: str, folder: Path) -> dict[str, Any]:
    result = anonfit("workload", *words, "--json", folder=folder)
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "name": [f"Marker{row}" for row in range(300)],
            "age": rng.integers(20, 70, 300),
            "job": rng.choice(["clerk", "miner", "nurse"], 300),
            "ill": rng.choice(["yes", "no"], 300),
        }
    )
    frame.write_csv(tmp_path / "people.csv")
    (tmp_path / "spec.toml").write_text(SPEC)
    (tmp_path / "log.sql").write_text(LOG)
    return tmp_path


def test_a_person_reads_what_was_learned_and_what_was_not(folder: Path) -> None:
    result = anonfit("workload", "log.sql", "--spec", "spec.toml", folder=folder)
    assert result.returncode == 0, result.stderr
    assert "7 statements: 5 queries, 1 that ask nothing, 1 that could not be read" in result.stdout
    assert "age >= 30 and age <= 40" in result.stdout
    assert "'ill' is guarded" in result.stdout
    assert "log.sql, line 7" in result.stdout
    assert "Marker7" not in result.stderr
    assert "not usable in 1 query: a condition in which 'ill' is guarded" in " ".join(result.stdout.split())
    assert "name it: --dialect" in result.stdout
    spec = read_spec(folder / "learned.toml")
    assert [one.where for one in spec.workload.selections] == ["age >= 30 and age <= 40", "job = 'nurse'"]
    assert "Marker7" not in (folder / "learned.toml").read_text()


def test_the_learned_spec_runs(folder: Path) -> None:
    assert anonfit("workload", "log.sql", "--spec", "spec.toml", "--out", "mine.toml", folder=folder).returncode == 0
    result = anonfit("run", "mine.toml", "--out", "release", "--json", folder=folder)
    assert result.returncode == 0, result.stderr
    report = json.loads((folder / "release" / "report.json").read_text())
    assert report["queries"]["asked"] == 2
    assert len(report["selections"]["answers"]) == 2


def test_a_script_reads_one_object(folder: Path) -> None:
    content = found("log.sql", "log.sql", "--spec", "spec.toml", "--table", "people", folder=folder)
    assert (content["statements"], content["queries"], content["unread"]) == (14, 10, 2)
    assert content["selections"][0] == {
        "where": "age >= 30 and age <= 40",
        "weight": 0.6667,
        "queries": 4,
        "exactly": 4,
    }
    assert content["unread_statements"][0]["why"] == "it is not SQL of this dialect"
    assert set(content["weights"]) == {"age", "job"}
    assert content["tables"] == {"people": 10}


def test_a_log_that_teaches_nothing_says_so(folder: Path) -> None:
    result = anonfit("workload", "log.sql", "--spec", "spec.toml", "--table", "persons", folder=folder)
    assert result.returncode == 0
    assert "Nothing was learned" in result.stdout
    assert "Tables that queries name: people." in result.stdout


def test_options_reach_the_learning(folder: Path) -> None:
    assert len(found("log.sql", "--spec", "spec.toml", "--selections", "1", folder=folder)["selections"]) == 1
    parts = found("log.sql", "--spec", "spec.toml", "--minterms", "3", "--replace", folder=folder)["selections"]
    assert 0 < len(parts) <= 3


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("none.sql", "--spec", "spec.toml"), "there is no such query log"),
        (("log.sql", "--spec", "none.toml"), "there is no such spec file"),
        (("log.sql", "--spec", "spec.toml", "--dialect", "klingon"), "there is no dialect 'klingon'"),
        (("log.sql", "--spec", "spec.toml", "--out", "no/where.toml"), "there is no such folder"),
        (("log.sql", "--spec", "spec.toml", "--out", "spec.toml"), "is already there"),
    ],
)
def test_wrong_requests_are_exit_status_two_and_one_sentence(folder: Path, words: tuple[str, ...], text: str) -> None:
    result = anonfit("workload", *words, folder=folder)
    assert result.returncode == 2
    assert text in " ".join(result.stderr.split())
    assert result.stderr.count("error:") == 1


def test_evaluate_judges_by_the_log_without_a_target(folder: Path) -> None:
    anonfit("workload", "log.sql", "--spec", "spec.toml", folder=folder)
    words = ("learned.toml", "--methods", "spec,median", "--folds", "2", "--workers", "1")
    content = json.loads(anonfit("evaluate", *words, "--json", folder=folder).stdout)
    figures = {(one["method"], one["figure"]): one["value"] for one in content["figures"]}
    for name in ("query_imprecision", "query_precision", "query_recall", "query_count_error", "query_avg_error"):
        assert ("spec", name) in figures
    assert figures["spec", "query_imprecision"] <= figures["median", "query_imprecision"]
    assert figures["spec", "query_recall"] == 1.0
    assert content["summary"] == []
    shown = anonfit("evaluate", *words, folder=folder).stdout
    assert "Selections and queries, answered from the release" in shown
