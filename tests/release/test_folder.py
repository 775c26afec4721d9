# SPDX-License-Identifier: Apache-2.0
"""The release folder: whole or not there, and refused when it was changed."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import shutil
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anonfit as af
from anonfit.errors import AuditFailed, ReleaseError
from anonfit.runtime import files
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
        ["README.txt", "codebook.csv", f"data.{kind}", "manifest.json", "recoding.json", "report.html", "report.json"]
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


@pytest.mark.parametrize(
    "name", ["data.parquet", "recoding.json", "report.json", "report.html", "README.txt", "codebook.csv"]
)
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
    from anonfit.release import publish as publishing

    def write_too_little(table: pl.DataFrame, path: Path, *_: Any) -> None:
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


def test_what_appears_at_the_place_meanwhile_stays(
    release: af.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from anonfit.release import publish as publishing

    write = publishing.write_table

    def write_slowly(table: pl.DataFrame, path: Path, kind: str, *_: Any) -> None:
        write(table, path, kind)
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "thesis.txt").write_text("years of work")

    monkeypatch.setattr(publishing, "write_table", write_slowly)
    with pytest.raises(ReleaseError, match="already there"):
        release.save(tmp_path / "out")
    assert (tmp_path / "out" / "thesis.txt").read_text() == "years of work"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(ReleaseError, match="not a release"):
        release.save(tmp_path / "out", replace=True)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("exchanges", [True, False])
def test_what_appears_at_the_last_moment_stays(
    release: af.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool
) -> None:
    """Between the last look and the rename."""
    name = files._name

    def late(entry: Path, place: Path, *, replace: bool) -> None:
        if place.name == "out":
            place.mkdir()
            (place / "thesis.txt").write_text("years of work")
        name(entry, place, replace=replace)

    monkeypatch.setattr(files, "_name", late)
    if not exchanges:
        monkeypatch.setattr(files, "_renameat2", lambda: None)
    with pytest.raises(ReleaseError, match="already there"):
        release.save(tmp_path / "out")
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "thesis.txt"]


def test_a_folder_with_a_manifest_of_others_is_not_replaced(release: af.Release, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text('{"manifest_version": 3}')
    with pytest.raises(ReleaseError, match="not a release"):
        release.save(tmp_path / "out", replace=True)
    assert (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize("name", ["out.internal.json", "out.internal.html"])
def test_a_file_that_has_the_name_of_a_record_stays(release: af.Release, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("of somebody else")
    with pytest.raises(ReleaseError, match=f"{name} is already there"):
        release.save(tmp_path / "out")
    with pytest.raises(ReleaseError, match=f"{name} is not an internal record"):
        release.save(tmp_path / "out", replace=True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["of somebody else"]


def test_the_record_of_an_earlier_release_is_kept_unless_it_may_be_replaced(
    release: af.Release, tmp_path: Path
) -> None:
    release.save(tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / "elsewhere")
    with pytest.raises(ReleaseError, match="already there"):
        release.save(tmp_path / "out")
    release.save(tmp_path / "out", replace=True)
    af.load(tmp_path / "out")


def test_threads_that_save_to_one_place_do_not_disturb_each_other(release: af.Release, tmp_path: Path) -> None:
    def save(_: int) -> str:
        try:
            release.save(tmp_path / "out")
        except ReleaseError as error:
            return str(error).partition(";")[0].split(" ", 1)[1]
        return "saved"

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(save, range(4))) == ["is already there"] * 3 + ["saved"]
        done = [pool.submit(release.save, tmp_path / "out", replace=True) for _ in range(4)]
        assert [one.result() for one in done] == [tmp_path / "out"] * 4
    af.load(tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"out", "out.internal.json", "out.internal.html"}


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_failure_while_names_are_given_leaves_all_as_it_was(
    release: af.Release, people: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool
) -> None:
    release.save(tmp_path / "out")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    other = af.anonymize(people, quasi_identifiers=["age", "sex"], k=20, sensitive=waived("illness"))
    name = files._name

    def full(entry: Path, place: Path, *, replace: bool) -> None:
        if place.name == "out":
            raise OSError(errno.ENOSPC, "No space left on device")
        name(entry, place, replace=replace)

    monkeypatch.setattr(files, "_name", full)
    if not exchanges:
        monkeypatch.setattr(files, "_renameat2", lambda: None)
    with pytest.raises(ReleaseError, match="the disk is full"):
        other.save(tmp_path / "out", replace=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_release_that_others_could_not_load_is_not_published(
    release: af.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from anonfit.release import publish as publishing

    def write(path: Path, text: str) -> None:
        path.write_text("{}" if path.name == "recoding.json" else text, encoding="utf-8")

    monkeypatch.setattr(publishing, "write_new", write)
    with pytest.raises(AuditFailed, match="cannot be loaded, so nothing is published"):
        release.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@contextmanager
def _files_of_at_most(size: int) -> Iterator[None]:
    """As on a disk that gets full: what is longer cannot be written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_files_that_cannot_be_written_whole(release: af.Release, tmp_path: Path, kind: str) -> None:
    release.save(tmp_path / "whole", format=kind)
    sizes = sorted({path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()})
    place = tmp_path / "place"
    place.mkdir()
    for size in sizes:
        with _files_of_at_most(size - 1), pytest.raises(ReleaseError, match="disk is full|the disk full"):
            release.save(place / "out", format=kind)
        assert list(place.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk can be made by root only")
@pytest.mark.parametrize("replace", [False, True])
def test_a_full_disk(release: af.Release, tmp_path: Path, replace: bool) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(mounted, capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be made here")
    try:
        if replace:
            release.save(disk / "out")
        before = {path: path.read_bytes() for path in disk.rglob("*") if path.is_file()}
        published, refused = 0, []
        for pages in (0, 1, 2, 5, 10, 14, 18, 22, 26, 30, 34, 38, 42, 60):
            free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
            (disk / "ballast").write_bytes(bytes(free - 4096 * pages))
            try:
                release.save(disk / "out", replace=replace)
                published += 1
                json.loads((disk / "out.internal.json").read_text())
                assert (disk / "out.internal.html").read_text().endswith("</html>\n")
            except ReleaseError as error:
                refused.append(str(error))
            (disk / "ballast").unlink()
            if not published:
                assert {path: path.read_bytes() for path in disk.rglob("*") if path.is_file()} == before
            elif not replace:
                af.load(disk / "out")
                shutil.rmtree(disk / "out")
                (disk / "out.internal.json").unlink()
                (disk / "out.internal.html").unlink()
        assert published
        assert refused
        assert all(re.search("disk is full|the disk full", text) for text in refused)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


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
