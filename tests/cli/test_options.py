# SPDX-License-Identifier: Apache-2.0
"""What all verbs take: how much is told, logs, dry runs; where results go; and texts of errors that people met."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.cli.options import trial
from anonfit.errors import AnonfitError, SpecError
from anonfit.spec.keywords import in_keywords
from anonfit.spec.parse import spec_of
from commands import command

SPEC = """version = 1
[data]
source = "people.csv"
default_role = "insensitive"
[columns.age]
role = "quasi-identifier"
[columns.sex]
role = "quasi-identifier"
[privacy]
k = 5
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    pl.DataFrame(
        {"age": rng.integers(20, 70, 200), "sex": rng.choice(["f", "m"], 200), "out": rng.choice(["y", "n"], 200)}
    ).write_csv(tmp_path / "people.csv")
    (tmp_path / "spec.toml").write_text(SPEC)
    return tmp_path


def test_results_and_nothing_else_are_on_standard_output(folder: Path) -> None:
    command("run", "spec.toml", "--out", "release", folder=folder)
    done = command("audit", "release", folder=folder)
    assert done.stdout.startswith("The release holds what it claims: k = 5 of age, sex.")
    assert "attacker" in done.stdout
    assert done.stderr == "Auditing …\n"
    quiet = command("audit", "release", "--quiet", folder=folder)
    assert (quiet.stdout, quiet.stderr) == (done.stdout, "")


def test_a_dry_run_checks_everything_and_writes_nothing(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    done = command("run", "spec.toml", "--out", "release", "--dry-run", folder=folder)
    assert done.returncode == 0
    assert done.stdout.startswith("Nothing was written; this could be published as release")
    assert sorted(folder.rglob("*")) == before
    assert json.loads(command("run", "spec.toml", "--dry-run", "--json", folder=folder).stdout)["dry_run"] is True
    (folder / "release").mkdir()
    refused = command("run", "spec.toml", "--out", "release", "--dry-run", folder=folder)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "already there" in refused.stderr
    infeasible = command("run", "spec.toml", "--dry-run", "--set", "privacy.k=500", folder=folder)
    assert infeasible.returncode == 1


def test_a_dry_run_that_is_killed_leaves_a_private_folder_that_the_next_removes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = """
import os, signal
from anonfit.cli.options import trial
with trial(dry=True, name="release") as place:
    place.mkdir()
    (place / "data.csv").write_text("rows")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", killed], env=environment, check=False)
    (left,) = tmp_path.iterdir()
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with trial(dry=True, name="release") as place:
        assert place is not None
        assert list(tmp_path.iterdir()) == [place.parent]
    assert list(tmp_path.iterdir()) == []


def test_apply_and_tree_have_dry_runs(folder: Path) -> None:
    command("run", "spec.toml", "--out", "release", folder=folder)
    before = sorted(folder.rglob("*"))
    words = ("apply", "release", "people.csv", "--out", "again", "--dry-run")
    assert command(*words, folder=folder).stdout.startswith("Nothing was written; this could be published as again")
    settings = ("--set", "columns.out.role='target'", "--dry-run")
    done = command("tree", "spec.toml", *settings, folder=folder)
    assert done.stdout.startswith("Nothing was written; this could be published as spec-tree"), done.stderr
    assert sorted(folder.rglob("*")) == before


def test_a_log_has_every_stage_and_the_end(folder: Path) -> None:
    done = command("run", "spec.toml", "--dry-run", "--log", "json", folder=folder)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert {"Reading", "Auditing", "Reporting"} <= {line.get("stage") for line in lines}
    assert all(set(line) >= {"time", "verb", "event", "seconds"} and line["seconds"] >= 0 for line in lines)
    assert lines[-1] | {"time": 0, "seconds": 0} == {
        "time": 0,
        "verb": "run",
        "event": "end",
        "status": 0,
        "error": None,
        "seconds": 0,
    }
    failed = command("run", "nowhere.toml", "--log", "json", folder=folder)
    entry = json.loads(failed.stderr.splitlines()[0])
    assert (entry["event"], entry["status"]) == ("end", 2)


def test_verbose_tells_how_long_stages_took_and_goes_with_no_quiet(folder: Path) -> None:
    done = command("run", "spec.toml", "--dry-run", "--verbose", folder=folder)
    assert "Reading: 0." in done.stderr
    both = command("run", "spec.toml", "--verbose", "--quiet", folder=folder)
    assert both.returncode == 2
    assert "ask for opposite things" in both.stderr


def test_the_highest_risk_is_a_number_or_a_name(folder: Path) -> None:
    command("run", "spec.toml", "--out", "release", folder=folder)
    for risk, status in (("0.25", 0), ("0.001", 1), ("tools", 0), ("strict", 1)):
        done = command("audit", "release", "--max-risk", risk, folder=folder)
        assert done.returncode == status, done.stdout
        assert "prosecutor risk" in done.stdout
    unknown = command("audit", "release", "--max-risk", "none", folder=folder)
    assert "There is no risk threshold 'none'" in unknown.stderr


def test_python_m_is_the_command_and_completion_is_on() -> None:
    done = subprocess.run([sys.executable, "-m", "anonfit", "--help"], capture_output=True, text=True, check=True)
    assert "Usage: anonfit" in done.stdout
    assert "--install-completion" in done.stdout


def test_what_is_refused_is_refused_before_anything_is_compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pl.read_csv(folder / "people.csv").with_columns(ldl=pl.Series(np.arange(200) / 7))
    rows.write_csv(folder / "people.csv")
    compiled: list[Any] = []
    monkeypatch.setattr("anonfit.engines.memory.warming.is_compiled", lambda **_: False)
    monkeypatch.setattr("anonfit.release.engine.prepare", lambda *words, **_: compiled.append(words))
    done = command("run", "spec.toml", "--out", "release", folder=folder)
    assert "column 'ldl' would be released as it is" in done.stderr
    assert compiled == []
    assert (
        command("run", "spec.toml", "--out", "ok", "--set", "columns.ldl.role='identifier'", folder=folder).returncode
        == 0
    )
    assert len(compiled) == 1


@pytest.mark.parametrize(
    ("text", "in_python"),
    [
        ("privacy.k must be at least 1; found 0.", "k must be at least 1; found 0."),
        ("method.alpha is for weight_rule", "alpha is for weight_rule"),
        ("engine.name = 'x' is not known", "engine = 'x' is not known"),
        ("columns.age.type is wrong", "columns['age']: type is wrong"),
        ("columns.agee: the table has no such column", "column 'agee': the table has no such column"),
        ("needs output.consent = true.", "needs consent = True."),
        ("see privacy.kind and data.source_of", "see privacy.kind and data.source_of"),
    ],
)
def test_faults_speak_keywords_to_who_calls_from_python(text: str, in_python: str) -> None:
    assert in_keywords(text) == in_python


def test_the_same_fault_names_a_key_in_a_file_and_a_keyword_in_python() -> None:
    frame = pl.DataFrame({"age": [1, 2, 3, 4] * 5})
    with pytest.raises(AnonfitError) as from_python:
        af.anonymize(frame, quasi_identifiers=["age"], k=2, order="original")
    tables = {
        "version": 1,
        "columns": {"age": {"role": "quasi-identifier"}},
        "privacy": {"k": 2},
        "output": {"order": "original"},
    }
    with pytest.raises(SpecError) as from_file:
        spec_of(tables)
    assert "output.order" in str(from_file.value)
    assert "output." not in str(from_python.value)
    assert "order" in str(from_python.value)
    assert "consent = True" in str(from_python.value)
