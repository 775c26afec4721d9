# SPDX-License-Identifier: Apache-2.0
"""The release folder: whole or not there, and refused when it was changed."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import anonfit as af
from anonfit.errors import AuditFailed, ReleaseError
from waivers import waived


@pytest.fixture
def people() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "age": [20 + index % 40 for index in range(200)],
            "sex": ["f" if index % 3 else "m" for index in range(200)],
            "illness": ["flu" if index % 4 else "cold" for index in range(200)],
        }
    )


@pytest.fixture
def release(people: pl.DataFrame) -> af.Release:
    return af.anonymize(people, quasi_identifiers=["age", "sex"], k=5, sensitive=waived("illness"))


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
def test_a_saved_release_loads_as_it_was(release: af.Release, tmp_path: Path, kind: str) -> None:
    release.save(tmp_path / "out", format=kind)
    loaded = af.load(tmp_path / "out")
    assert loaded.data.cast(pl.String).equals(release.data.cast(pl.String))
    assert loaded.recoding.to_json() == release.recoding.to_json()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        [f"data.{kind}", "manifest.json", "recoding.json", "report.html", "report.json"]
    )


def test_the_internal_record_is_beside_the_folder_and_private(release: af.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out")
    record = tmp_path / "out.internal.json"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert json.loads(record.read_text())["rows"]["read"] == 200
    assert stat.S_IMODE((tmp_path / "out.internal.html").stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"out", "out.internal.json", "out.internal.html"}


def test_a_folder_that_is_there_is_not_overwritten(release: af.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out")
    with pytest.raises(ReleaseError, match="already there"):
        release.save(tmp_path / "out")
    release.save(tmp_path / "out", replace=True)
    af.load(tmp_path / "out")


def test_replace_touches_nothing_but_releases(release: af.Release, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(ReleaseError, match="not a release"):
        release.save(tmp_path / "mine", replace=True)
    assert (tmp_path / "mine" / "thesis.txt").exists()


@pytest.mark.parametrize("name", ["data.parquet", "recoding.json", "report.json", "report.html"])
def test_a_changed_file_is_refused(release: af.Release, tmp_path: Path, name: str) -> None:
    release.save(tmp_path / "out")
    path = tmp_path / "out" / name
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(ReleaseError, match="changed"):
        af.load(tmp_path / "out")


@pytest.mark.parametrize("name", ["data.parquet", "recoding.json", "manifest.json"])
def test_a_missing_file_is_refused(release: af.Release, tmp_path: Path, name: str) -> None:
    release.save(tmp_path / "out")
    (tmp_path / "out" / name).unlink()
    with pytest.raises(ReleaseError):
        af.load(tmp_path / "out")


def test_an_added_file_is_refused(release: af.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("hello")
    with pytest.raises(ReleaseError, match=r"notes\.txt"):
        af.load(tmp_path / "out")


def test_an_unknown_version_is_refused(release: af.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 99}))
    with pytest.raises(ReleaseError, match="99"):
        af.load(tmp_path / "out")


def test_a_failed_audit_publishes_nothing(release: af.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from anonfit import publishing

    def write_too_little(table: pl.DataFrame, path: Path, kind: str) -> None:
        table.head(len(table) - 1).write_parquet(path)

    monkeypatch.setattr(publishing, "write_table", write_too_little)
    with pytest.raises(AuditFailed):
        release.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_swept_and_does_not_load(release: af.Release, tmp_path: Path) -> None:
    left = tmp_path / ".out.anonfit-99999999-abcd"
    left.mkdir()
    (left / "data.parquet").write_bytes(b"half")
    with pytest.raises(ReleaseError):
        af.load(left)
    release.save(tmp_path / "out")
    assert not left.exists()


KILLED = """
import sys, polars as pl, anonfit as af
from anonfit.spec_reading import spec_of
rows = 4000
people = pl.DataFrame({"age": [20 + (i * 7919) % 60 for i in range(rows)], "size": [(i * 104729) % 997 for i in range(rows)]})
people.write_csv(sys.argv[1] + "/people.csv")
spec = spec_of({"version": 1, "data": {"source": sys.argv[1] + "/people.csv"}, "privacy": {"k": 5},
                "columns": {"age": {"role": "quasi-identifier"}, "size": {"role": "quasi-identifier"}}})
print("ready", flush=True)
while True:
    af.run(spec, sys.argv[1] + "/out", replace=True)
"""


def test_a_run_killed_at_any_point_leaves_no_half_release(tmp_path: Path) -> None:
    for turn in range(6):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(1.2 + 0.13 * turn)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        if (tmp_path / "out").exists():
            af.load(tmp_path / "out")
        for folder in tmp_path.glob(".out.anonfit-*"):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700 or (folder / "manifest.json").exists()
    spec = af.parse_spec(
        f'version = 1\n[data]\nsource = "{tmp_path}/people.csv"\n[columns.age]\nrole = "quasi-identifier"\n'
        '[columns.size]\nrole = "quasi-identifier"\n[privacy]\nk = 5\n'
    )
    af.run(spec, tmp_path / "out", replace=(tmp_path / "out").exists())
    af.load(tmp_path / "out")
    assert not list(tmp_path.glob(".out.anonfit-*"))


def test_the_files_of_a_release_can_be_read_by_others_but_the_workplace_cannot(
    release: af.Release, tmp_path: Path
) -> None:
    os.umask(0o077)
    try:
        release.save(tmp_path / "out")
    finally:
        os.umask(0o022)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "out" / "data.parquet").stat().st_mode) == 0o644
