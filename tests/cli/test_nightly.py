# SPDX-License-Identifier: Apache-2.0
"""The nightly job of the examples: PostgreSQL in, apply, PostgreSQL out, audit, exit status."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from anonfit.tables.database_writing import write_to_database
from anonfit.tables.databases import named_source
from anonfit.tables.sources import read_address
from commands import command
from postgresql_server import PASSWORD

JOB = Path(__file__).parents[2] / "examples" / "nightly" / "nightly.sh"


def _patients(rows: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, rows)
    return pl.DataFrame(
        {
            "age": age,
            "town": rng.choice(["Köln", "Bonn", "Trier"], rows),
            "admitted": [date(2024, 1, 1) + timedelta(days=int(day)) for day in rng.integers(0, 300, rows)],
            "illness": np.where(rng.random(rows) < age / 130, "heart", "other"),
        }
    )


@pytest.fixture
def tonight(postgresql_address, monkeypatch):
    """Sets the patients of a night."""
    monkeypatch.setenv("CLINIC", postgresql_address)
    monkeypatch.setenv("RELEASES", postgresql_address)

    def fill(rows: int, seed: int, table: str = "tonight") -> None:
        frame = _patients(rows, seed)
        write_to_database(read_address(postgresql_address, folder=Path()), table, [frame], frame.schema, replace=True)

    fill(400, 0, "quiet_night")
    fill(3000, 1)
    return fill


def _released(address: str) -> pl.DataFrame:
    return pl.concat(named_source(f"{address}#patients_released").frames())


def test_the_commands_of_the_job(tonight, postgresql_address, tmp_path):
    lines = [line.strip() for line in JOB.read_text(encoding="utf-8").splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("anonfit ")]
    assert [words[0] for words in commands] == ["run", "apply", "audit", "audit"]
    for words in commands:
        done = command(*(word.replace("$spec", str(JOB.with_name("spec.toml"))) for word in words), folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert PASSWORD not in done.stdout + done.stderr
    assert len(_released(postgresql_address)) == len(pl.read_parquet(tmp_path / "night" / "data.parquet"))


@pytest.mark.slow
def test_nights_that_come_and_fail(tonight, postgresql_address, tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "anonfit").write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from anonfit.cli.main import main; main()" "$@"\n')  # fmt: skip
    (programs / "anonfit").chmod(0o755)
    folder = tmp_path / "releases"
    folder.mkdir()

    def night() -> subprocess.CompletedProcess[str]:
        path = f"{programs}:{os.environ['PATH']}"
        return subprocess.run([JOB, folder], capture_output=True, text=True, env={**os.environ, "PATH": path})

    first = night()
    assert first.returncode == 0, first.stderr
    before = _released(postgresql_address)
    recoding = (folder / "learned" / "recoding.json").read_bytes()
    tonight(2500, 2)
    assert night().returncode == 0
    second = _released(postgresql_address)
    assert len(second) != len(before)
    assert (folder / "night" / "recoding.json").read_bytes() == recoding
    tonight(15, 3)  # too few for any region
    refused = night()
    assert refused.returncode == 1
    assert _released(postgresql_address).equals(second)
    os.environ["CLINIC"] = "postgresql://nobody:hunter3@127.0.0.1:1/none"
    unreachable = night()
    assert unreachable.returncode == 2
    assert "hunter3" not in unreachable.stdout + unreachable.stderr
    assert _released(postgresql_address).equals(second)
    assert not any(PASSWORD.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())
