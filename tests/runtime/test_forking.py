# SPDX-License-Identifier: Apache-2.0
"""Processes that are forked after anonfit was used: a sentence at once, where they would wait without end."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anonfit as af

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="there is no fork"),
    pytest.mark.filterwarnings("ignore:.*fork"),
]
PEOPLE = pl.DataFrame({"age": [20, 30, 40, 50] * 3, "ill": ["a", "b", "a"] * 4})
WORDS: dict[str, Any] = {"quasi_identifiers": ["age"], "k": 3}


def _tell(doors: dict[str, Any], pipe: Any) -> None:
    for name, door in doors.items():
        try:
            door()
        except af.EngineError as error:
            pipe.send((name, str(error)))
    pipe.close()


def test_every_door_refuses_at_once_in_a_fork(tmp_path: Path) -> None:
    release = af.anonymize(PEOPLE, insensitive=["ill"], **WORDS)
    release.save(tmp_path / "out")
    PEOPLE.write_csv(tmp_path / "people.csv")
    anonymizer = af.Anonymizer(k=3, quasi_identifiers=["age"]).fit(PEOPLE.select("age"))
    doors = {
        "anonymize": lambda: af.anonymize(PEOPLE, insensitive=["ill"], **WORDS),
        "anonymize a file by duckdb": lambda: af.anonymize(
            str(tmp_path / "people.csv"), insensitive=["ill"], engine="duckdb", **WORDS
        ),
        "load": lambda: af.load(tmp_path / "out"),
        "extend": lambda: release.extend(PEOPLE),
        "save": lambda: release.save(tmp_path / "again"),
        "apply": lambda: release.recoding.apply(PEOPLE),
        "audit": lambda: af.audit(tmp_path / "people.csv", **WORDS),
        "audit_release": lambda: af.audit_release(tmp_path / "out"),
        "fit": lambda: af.Anonymizer(k=3, quasi_identifiers=["age"]).fit(PEOPLE.select("age")),
        "transform": lambda: anonymizer.transform(PEOPLE.select("age")),
    }
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_tell, args=(doors, theirs))
    process.start()
    theirs.close()
    told = {}
    while ours.poll(30):
        try:
            name, text = ours.recv()
        except EOFError:
            break
        told[name] = text
    process.kill()
    process.join()
    assert set(told) == set(doors)
    assert all("'spawn' or 'forkserver'" in text for text in told.values())
