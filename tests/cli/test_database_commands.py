# SPDX-License-Identifier: Apache-2.0
"""Every verb on a PostgreSQL table by its address alone; no password in anything that a command shows or writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from anonfit.errors import DataError
from anonfit.tables.database_writing import write_to_database
from anonfit.tables.databases import named_source
from anonfit.tables.sources import read_address, without_password
from commands import command
from postgresql_server import PASSWORD

ROWS = 600


def _patients(seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, ROWS)
    return pl.DataFrame(
        {
            "age": age,
            "town": rng.choice(["Köln", "Bonn", "Trier"], ROWS),
            "outcome": np.where(rng.random(ROWS) < age / 110, "ill", "well"),
        }
    )


@pytest.fixture(scope="module")
def clinic(postgresql_address: str) -> str:
    """A server with two nights of patients; the password is the environment's."""
    address = read_address(postgresql_address, folder=Path())
    for night in (1, 2):
        frame = _patients(night)
        write_to_database(address, f"patients{night}", [frame], frame.schema, replace=True)
    return without_password(postgresql_address)


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)


def _spec(source: str, more: str = "") -> str:
    return f"""version = 1
[data]
source = "{source}"
[columns]
age = {{ role = "quasi-identifier" }}
town = {{ role = "quasi-identifier" }}
outcome = {{ role = "target" }}
[privacy]
k = 5
suppression_limit = 0.2
{more}"""


def test_every_verb(clinic, tmp_path):
    def run(*words: str) -> dict:
        done = command(*words, "--json", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert PASSWORD not in done.stdout + done.stderr
        return json.loads(done.stdout)

    proposed = run("init", f"{clinic}#patients1", "--out", "proposed.toml")
    assert [column["name"] for column in proposed["columns"]] == ["age", "town", "outcome"]
    assert f'source = "{clinic}#patients1"' in (tmp_path / "proposed.toml").read_text()
    (tmp_path / "spec.toml").write_text(_spec(f"{clinic}#patients1"))
    made = run("run", "spec.toml", "--out", "release", "--to", f"{clinic}#released")
    assert made["written_to"] == "postgresql:…#released"
    assert made["rows"]["released"] == ROWS
    released = pl.concat(named_source(f"{clinic}#released").frames())
    expected = pl.read_parquet(tmp_path / "release" / "data.parquet")
    assert released.rows() == expected.cast({"age": pl.String, "town": pl.String}).rows()
    applied = run(
        "apply", "release", f"{clinic}#patients2", "--out", "night", "--to", f"{clinic}#released", "--replace"
    )
    assert applied["passed"] is True
    night = pl.concat(named_source(f"{clinic}#released").frames())
    assert len(night) == applied["rows"]["released"]
    queried = "SELECT * FROM patients2 WHERE age < 60"
    run("apply", "release", clinic, "--query", queried, "--out", "young", "--suppression-limit", "0.5")
    assert run("audit", "release", "--source", f"{clinic}#patients1")["passed"] is True
    audited = run("audit", f"{clinic}#released", "--quasi-identifiers", "age,town", "--k", "5")
    assert audited["passed"] is True
    assert command("audit", f"{clinic}#released", "--quasi-identifiers", "age,town", "--k", "300", folder=tmp_path).returncode == 1  # fmt: skip
    wrong = command("audit", "release", "--source", f"{clinic}#patients2", folder=tmp_path)
    assert wrong.returncode == 1
    run("evaluate", "spec.toml", "--learners", "tree", "--folds", "2", "--methods", "spec", "--workers", "1")
    (tmp_path / "log.sql").write_text("SELECT * FROM patients1 WHERE age > 50;\n" * 3)
    run("workload", "log.sql", "--spec", "spec.toml")
    run("run", "learned.toml", "--out", "learned")
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or PASSWORD.encode() not in path.read_bytes()


def test_a_spec_that_writes_to_a_database(clinic, postgresql_address, tmp_path, monkeypatch):
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.setenv("ANONFIT_CLINIC", postgresql_address)
    more = f'[output]\nto = "{postgresql_address}"\ntable = "from_spec"\n'
    (tmp_path / "spec.toml").write_text(_spec("env:ANONFIT_CLINIC#patients1", more))
    made = command("run", "spec.toml", "--out", "release", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "also written to postgresql:…#from_spec" in made.stdout
    again = command("run", "spec.toml", "--out", "again", folder=tmp_path)
    assert again.returncode == 2
    assert "the postgresql table 'from_spec' is already there" in again.stderr
    assert not (tmp_path / "again").exists()
    record = json.loads((tmp_path / "release.internal.json").read_text())
    assert record["spec"]["output"] == {"to": "postgresql:…", "table": "from_spec"}
    assert record["spec"]["data"]["source"] == "env:ANONFIT_CLINIC#patients1"
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "spec.toml"]
    secrets = (PASSWORD.encode(), b"keeper", b"127.0.0.1")
    assert not any(word in path.read_bytes() for path in written for word in secrets)
    public = (tmp_path / "release" / "manifest.json").read_text()
    assert not any(word in public for word in ("ANONFIT_CLINIC", "from_spec", "patients1"))


@pytest.mark.parametrize(
    "words",
    [
        ("init", "{}#t"),
        ("apply", "release", "{}#t"),
        ("audit", "release", "--source", "{}#t"),
        ("audit", "release", "--source={}#t"),
        ("run", "spec.toml", "--to", "{}#t"),
        ("run", "spec.toml", "--set", "data.source={}#t"),
        ("run", "spec.toml", "--set", "output.to='{}#t'"),
    ],
)
def test_a_password_on_the_command_line_is_refused(words, postgresql_address, tmp_path):
    done = command(*(word.format(postgresql_address) for word in words), folder=tmp_path)
    assert done.returncode == 2
    assert "which the list of processes shows to everybody" in done.stderr
    assert PASSWORD not in done.stderr


def test_a_table_that_cannot_be_written_after_all_leaves_the_folder(postgresql_address, tmp_path, monkeypatch):
    from anonfit.tables import database_writing

    _patients(1).write_csv(tmp_path / "patients.csv")
    (tmp_path / "spec.toml").write_text(_spec("patients.csv"))
    monkeypatch.setattr(database_writing, "_copy", lambda *_words: None)  # nothing arrives
    monkeypatch.setenv("ANONFIT_CLINIC", postgresql_address)
    done = command("run", "spec.toml", "--out", "release", "--to", "env:ANONFIT_CLINIC#lost", folder=tmp_path)
    assert done.returncode == 2
    assert "release is published, but postgresql does not give the rows" in done.stderr
    assert (tmp_path / "release" / "manifest.json").is_file()
    with pytest.raises(DataError, match="cannot be read"):
        named_source(f"{postgresql_address}#lost").names()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('to = "release.csv"', "begins with one of duckdb, sqlite"),
        ('to = "sqlite:x.db"', "names a table"),
        ('to = "sqlite:x.db#t"\ntable = "u"', "names a table"),
        ('table = "u"', "name that by output.to"),
        ('to = "sqlite:nowhere/x.db#t"', "no such folder"),
        ('to = "env:ANONFIT_NOTHING#t"', "ANONFIT_NOTHING holds no address"),
        ('to = "postgresql://nobody:hunter3@127.0.0.1:1/x#t"', "could not be written \\(OperationalError\\)"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_any_work(more, message, tmp_path):
    _patients(1).write_csv(tmp_path / "patients.csv")
    (tmp_path / "spec.toml").write_text(_spec("patients.csv", f"[output]\n{more}\n"))
    done = command("run", "spec.toml", "--out", "release", folder=tmp_path)
    assert done.returncode == 2
    assert re.search(message, done.stderr)
    assert "hunter3" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["patients.csv", "spec.toml"]
