# SPDX-License-Identifier: Apache-2.0
"""Columns whose names polars takes for patterns are refused wherever a table comes in."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import anonfit as af
from anonfit.cli.main import app
from anonfit.errors import DataError

NAMES = ["*", "^i.*$", "^q$", "^$"]
ROLES: dict[str, Any] = {"identifiers": ["id1"], "quasi_identifiers": ["q"], "insensitive": ["z"], "k": 5}


def table(name: str) -> pl.DataFrame:
    return pl.DataFrame({"id1": [f"person {i}" for i in range(60)], "q": [i % 7 for i in range(60)], name: ["a"] * 60})


def refused(work: Callable[[], object], name: str) -> None:
    with pytest.raises(DataError, match="column names stand for other columns") as found:
        work()
    assert repr(name) in str(found.value)


@pytest.mark.parametrize("name", NAMES)
def test_frames_and_files_are_refused_with_the_reason(name: str, tmp_path: Path) -> None:
    frame = table(name)
    frame.write_csv(tmp_path / "people.csv")
    frame.write_parquet(tmp_path / "people.parquet")
    frame.write_ipc(tmp_path / "people.arrow")
    with sqlite3.connect(tmp_path / "people.db") as database:
        database.execute(f'create table people (id1 text, q int, "{name}" text)')
    files = [tmp_path / f"people.{kind}" for kind in ("csv", "parquet", "arrow")]
    for source in (frame, frame.lazy(), frame.to_arrow(), frame.to_pandas(), *files):
        for engine in ("memory", "duckdb"):
            refused(lambda source=source, engine=engine: af.anonymize(source, **ROLES, engine=engine), name)
        refused(lambda source=source: af.audit(source, quasi_identifiers=["q"]), name)
    refused(lambda: af.anonymize(f"sqlite:///{tmp_path}/people.db", table="people", **ROLES), name)


@pytest.mark.parametrize("name", ["*", "^i.*$"])
def test_every_command_tells_the_reason(name: str, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    table(name).write_csv(path)
    for words in (
        ["init", str(path), "--out", str(tmp_path / "s.toml")],
        ["audit", str(path), "--quasi-identifiers", "q"],
    ):
        found = CliRunner().invoke(app, words)
        assert isinstance(found.exception, DataError)
        assert "names stand for other columns" in str(found.exception)


def test_new_rows_are_refused_too() -> None:
    release = af.anonymize(table("z"), **ROLES)
    refused(lambda: release.extend(table("*")), "*")
    refused(lambda: release.recoding.apply(table("*")), "*")


def test_names_that_only_look_like_patterns_are_names() -> None:
    for name in ("^x", "x$", "**", "a*", "$^"):
        frame = table(name)
        release = af.anonymize(frame, **{**ROLES, "insensitive": [name]})
        assert release.data.columns == ["q", name]
