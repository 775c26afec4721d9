# SPDX-License-Identifier: Apache-2.0
"""`anonfit evaluate` as a person and as a script use it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from commands import PROGRAM, command

pytest.importorskip("sklearn", reason="the extra learn is not installed")

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
role = "target"
[privacy]
k = 5
"""


def evaluate(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return command("evaluate", "spec.toml", *words, folder=folder, columns=100)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    age, job = rng.integers(20, 70, 300), rng.choice(["clerk", "miner", "nurse"], 300)
    ill = np.where((age >= 45) & (job == "miner"), "yes", "no")
    names = [f"Marker{row}" for row in range(300)]
    pl.DataFrame({"name": names, "age": age, "job": job, "ill": ill}).write_csv(tmp_path / "people.csv")
    (tmp_path / "spec.toml").write_text(SPEC)
    return tmp_path


def test_a_person_reads_a_table(folder: Path) -> None:
    found = evaluate("--learners", "logistic-regression,tree", "--folds", "2", "--workers", "1", folder=folder)
    assert found.returncode == 0
    assert "ill: accuracy in percent, more is better" in found.stdout
    assert "logistic-regression" in found.stdout
    assert "to original  to removed  to median" in found.stdout
    assert "Mean of 2 folds ± deviation" in found.stdout
    assert "8 of 8 done" in found.stderr


def test_a_script_reads_one_object_and_a_folder(folder: Path) -> None:
    words = ("--k", "3,30", "--methods", "infogain,original", "--learners", "tree", "--folds", "2", "--workers", "1")
    found = evaluate(*words, "--out", "trial", "--json", folder=folder)
    assert found.returncode == 0
    assert found.stderr == ""
    value: dict[str, Any] = json.loads(found.stdout)
    assert (value["protocol"], value["folds"], value["folder"]) == ("holdout", 2, "trial")
    cells = [(row["method"], row["k"]) for row in value["summary"]]
    assert cells == [("infogain", 3), ("infogain", 30), ("original", None)]
    assert {row["figure"] for row in value["figures"]} >= {"average_size", "gcp", "conditional_entropy"}
    files = {path.name: path.read_text() for path in (folder / "trial").iterdir()}
    assert sorted(files) == ["evaluation.html", "figures.csv", "results.csv", "store.jsonl", "summary.csv"]
    assert not any("Marker" in text for text in files.values())
    assert {path.stat().st_mode & 0o777 for path in (folder / "trial").iterdir()} == {0o600}
    again = evaluate(*words, "--out", "trial", folder=folder)
    assert "6 of 6 done …" in again.stderr  # at once: nothing was left to do
    assert (folder / "trial" / "results.csv").read_text() == files["results.csv"]


@pytest.mark.parametrize("words", [["--quiet"], ["--log", "json"]])
def test_what_is_done_is_told_as_it_is_asked(folder: Path, words: list[str]) -> None:
    few = ("--methods", "original", "--learners", "tree", "--folds", "2", "--workers", "1")
    lines = evaluate(*few, *words, folder=folder).stderr.splitlines()
    log = [json.loads(line) for line in lines]
    assert [entry["event"] for entry in log] == ([] if "--quiet" in words else ["stage"] * (len(log) - 1) + ["end"])
    assert bool(log) == any("2 of 2 done" in entry.get("stage", "") for entry in log)


def test_a_model_can_be_described(folder: Path) -> None:
    pytest.importorskip("sqlglot", reason="the extra sql is not installed")
    words = ("--methods", "median", "--learners", "tree", "--folds", "2", "--workers", "1", "--json")
    found = evaluate(*words, "--using", "age", "--where", "age >= 30", folder=folder)
    assert json.loads(found.stdout)["summary"][0]["model"] == "ill using age where age >= 30"


def test_folds_without_rows_for_a_model_are_told(folder: Path) -> None:
    pytest.importorskip("sqlglot", reason="the extra sql is not installed")
    frame = pl.read_csv(folder / "people.csv")
    youngest = frame["age"].min()
    first = pl.when(pl.int_range(300) == 0).then(youngest - 1)
    frame.with_columns(age=first.otherwise(pl.col("age"))).write_csv(folder / "people.csv")
    words = ("--methods", "original,removed", "--learners", "tree", "--folds", "2", "--workers", "1", "--out", "trial")
    why = f"the model 'ill where age < {youngest}' has no rows to learn from, or none to test on."
    for _ in range(2):  # also where it is kept
        told = evaluate(*words, "--where", f"age < {youngest}", folder=folder).stdout
        assert f"not measured (original; removed): {why}" in told
    assert "not measured" not in evaluate(*words, folder=folder).stdout


def test_the_leaking_protocol_says_so(folder: Path) -> None:
    words = ("--methods", "median", "--learners", "tree", "--folds", "2", "--workers", "1")
    found = evaluate(*words, "--protocol", "combined", folder=folder)
    assert "lets class-guided methods see test labels" in found.stdout


def test_a_demand_that_cannot_be_met_is_told(folder: Path) -> None:
    words = ("--methods", "median,original", "--learners", "tree", "--folds", "2", "--workers", "1")
    found = evaluate(*words, "--k", "5,1000", folder=folder)
    assert found.returncode == 0
    assert "not measured (median, k = 1000)" in found.stdout


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--learners", "tre"], "there is no learner 'tre'; did you mean 'tree'?"),
        (["--methods", "medain"], "there is no method 'medain'; did you mean 'median'?"),
        (["--k", "5,x"], "--k needs whole numbers such as 5,10,50; found '5,x'."),
        (["--protocol", "hold"], "there is no protocol 'hold'; did you mean 'holdout'?"),
        (["--target", "il"], "predicts 'il', which is no column of the table; did you mean 'ill'?"),
        (["--target", "name"], "predicts 'name', which has the role 'identifier' and is not released."),
    ],
)
def test_wrong_words_are_refused(folder: Path, words: list[str], text: str) -> None:
    found = evaluate(*words, folder=folder)
    assert found.returncode == 2
    assert text in found.stderr


def test_a_script_reads_what_was_wrong(folder: Path) -> None:
    found = evaluate("--learners", "tre", "--json", folder=folder)
    assert found.returncode == 2
    assert json.loads(found.stdout)["error"]["message"] == "there is no learner 'tre'; did you mean 'tree'?"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of a terminal are those of POSIX")
def test_ctrl_c_keeps_what_was_found(folder: Path) -> None:
    words = ["--methods", "median", "--learners", "random-forest", "--folds", "8", "--workers", "2", "--out", "trial"]
    with subprocess.Popen(
        [*PROGRAM, "evaluate", "spec.toml", *words],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as program:
        assert program.stderr is not None
        for line in program.stderr:
            if line.startswith(("1 of", "2 of")):
                break
        os.killpg(program.pid, signal.SIGINT)  # as a terminal does: to all processes
        rest = program.stderr.read()
    assert program.returncode == 130
    assert rest.splitlines()[-1] == "interrupted; what was found is kept in trial; the same command goes on from there."
    assert "Traceback" not in rest
    kept = (folder / "trial" / "store.jsonl").read_text()
    again = evaluate(*words, "--json", folder=folder)
    assert again.returncode == 0
    assert json.loads(again.stdout)["summary"][0]["folds"] == 8
    whole = (folder / "trial" / "store.jsonl").read_text()
    assert whole.startswith(kept)
    assert len(kept.splitlines()) < len(whole.splitlines()) == 1 + 2 * 8


def test_a_name_in_other_letters_is_recognized(folder: Path) -> None:
    found = evaluate("--methods", "TDR", "--folds", "2", folder=folder)
    assert found.returncode == 2
    assert "there is no method 'TDR'; did you mean 'tdr'?" in found.stderr
    found = evaluate("--learners", "ID3", "--folds", "2", folder=folder)
    assert "there is no learner 'ID3'; did you mean 'id3'?" in found.stderr
