# SPDX-License-Identifier: Apache-2.0
"""`anonfit compare` as a person and as a script use it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

import anonfit as af
from commands import command
from waivers import waived


def anonfit(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return command("compare", *words, folder=folder)


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    people = pl.DataFrame(
        {
            "age": [20 + index * 7 % 40 for index in range(200)],
            "sex": ["f" if index % 3 else "m" for index in range(200)],
            "illness": ["flu" if index % 4 else "cold" for index in range(200)],
        }
    )
    people.write_csv(folder / "people.csv")
    for k in (5, 20):
        release = af.anonymize(
            folder / "people.csv", quasi_identifiers=["age", "sex"], k=k, sensitive=waived("illness")
        )
        release.save(folder / f"k{k}")
    return folder


def test_tables_for_people_and_a_page(releases: Path) -> None:
    result = anonfit("k5", "k20", "--source", "people.csv", "--out", "page.html", folder=releases)
    assert result.returncode == 0, result.stderr
    for text in ("What was asked", "Discernibility", "Two releases together", "k5 with k20", "read next: page.html"):
        assert text in result.stdout
    assert (releases / "page.html").read_text().startswith("<!doctype html>")
    again = anonfit("k5", "k20", "--out", "page.html", folder=releases)
    assert again.returncode == 2
    assert "already there" in again.stderr
    assert anonfit("k5", "k20", "--out", "page.html", "--replace", folder=releases).returncode == 0


def test_one_object_for_scripts(releases: Path) -> None:
    result = anonfit("k5", "k20", "--json", folder=releases)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    found = json.loads(result.stdout)
    assert [one["asked"]["k"] for one in found["releases"]] == [5, 20]
    assert found["releases"][0]["utility"]["losses"]["gcp"] < found["releases"][1]["utility"]["losses"]["gcp"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("k5",), "two releases or more"),
        (("k5", "nowhere"), "no such release folder"),
        (("k5", "people.csv"), "is a file"),
        (("k5", "empty"), "is not a release"),
        (("k5", "broken"), "was changed after"),
        (("k5", "k5"), "the same folder"),
        (("k5", "k20", "--source", "nothing.csv"), "no such file"),
        (("k5", "k20", "--out", "no/page.html"), "no such folder"),
    ],
)
def test_a_wrong_request_is_exit_status_two_and_one_sentence(releases: Path, words: tuple[str, ...], text: str) -> None:
    (releases / "empty").mkdir(exist_ok=True)
    if not (releases / "broken").exists():
        shutil.copytree(releases / "k20", releases / "broken")
        (releases / "broken" / "report.html").write_text("")
    result = anonfit(*words, folder=releases)
    assert result.returncode == 2
    assert text in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
