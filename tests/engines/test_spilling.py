# SPDX-License-Identifier: Apache-2.0
"""What an engine puts on disk: only its owner can read it, it is gone at the end, and what a killed run left is removed
by the next one. Too little memory or disk is a clear error.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit import api
from anonfit.engines.duckdb import source as connections
from anonfit.errors import AuditFailed, EngineError, Infeasible, RequestError
from anonfit.release.run import make
from anonfit.runtime.files import spill_folder, sweep_spill, workplace
from anonfit.spec.keywords import spec_of_keywords


def _table(rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    columns = {f"q{column}": rng.integers(0, 60, rows) for column in range(6)}
    return pl.DataFrame(columns | {"y": rng.choice(["a", "b"], rows)})


def _large() -> pl.DataFrame:
    """Rows that need more than 128 MiB, with too many texts to keep these as ranks."""
    frame = pl.concat([_table(200_000)] * 5)
    texts = (pl.int_range(pl.len()) % 200_000).cast(pl.String) + "x" * 120
    return frame.with_columns(texts.alias("note"))


def _spec(frame: pl.DataFrame, folder: Path, **words):
    names = [name for name in frame.columns if name.startswith("q")]
    words = {"k": 10, "engine": "duckdb", "spill": str(folder), "targets": ["y"]} | words
    return spec_of_keywords(frame, {"quasi_identifiers": names, **words})


def test_a_folder_of_our_own(tmp_path):
    with spill_folder(tmp_path / "deep" / "place") as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "rows").write_text("x")
    assert list((tmp_path / "deep" / "place").iterdir()) == []


def test_a_folder_in_use_stays_whoever_uses_it(tmp_path):
    finished = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    with spill_folder(tmp_path) as folder:
        # As seen from another machine, or from another container: there is no such process.
        away = folder.rename(tmp_path / f"anonfit-spill-{int(finished.stdout)}-abc")
        sweep_spill(tmp_path)
        assert away.exists()
    # And one that is no longer used goes, also if another process has its number by now.
    away.rename(tmp_path / f"anonfit-spill-{os.getpid()}-abc")
    sweep_spill(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_pipes_in_place_of_locks_are_not_waited_for(tmp_path):
    left = tmp_path / "anonfit-spill-1-abc"
    left.mkdir()
    os.mkfifo(left / "lock")
    os.mkfifo(tmp_path / ".out.anonfit-lock")
    with spill_folder(tmp_path), workplace(tmp_path / "out"):
        assert not left.exists()
    assert list(tmp_path.iterdir()) == []


def test_what_others_left_is_theirs(tmp_path, monkeypatch):
    left = tmp_path / "anonfit-spill-1-abc"
    left.mkdir()
    (left / "lock").touch()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    sweep_spill(tmp_path)
    assert left.exists()


def test_a_query_can_be_interrupted(tmp_path):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # what began the tests ignores it, perhaps
    try:
        interrupt_query(tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)


def interrupt_query(tmp_path):
    with connections.connect(tmp_path, memory=256 * 2**20) as connection:
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            connection.value("SELECT sum(hash(a.range, b.range) % 7) FROM range(1000000) a, range(1000000) b")
        timer.join()


@pytest.mark.parametrize("fetch", ["value", "frame", "columns"])
def test_a_request_to_end_is_not_taken_for_an_interrupt(tmp_path, monkeypatch, fetch):
    def end(*_):
        raise SystemExit(143)

    before = signal.signal(signal.SIGTERM, end)
    try:
        with connections.connect(tmp_path, memory=256 * 2**20) as connection:
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM))
            timer.start()
            with pytest.raises(SystemExit) as ended:
                getattr(connection, fetch)(
                    "SELECT sum(hash(a.range, b.range) % 7) FROM range(1000000) a, range(1000000) b"
                )
            timer.join()
            assert ended.value.code == 143
            assert connection.value("SELECT 7") == 7
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("request_to_end", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_that_nobody_answers_leaves_nothing(tmp_path, request_to_end):
    before = signal.signal(request_to_end, signal.SIG_DFL)  # what began the tests ignores it, perhaps
    try:
        end_by_request(tmp_path, request_to_end)
        assert signal.getsignal(request_to_end) is signal.SIG_DFL
    finally:
        signal.signal(request_to_end, before)


def end_by_request(tmp_path, request_to_end):

    def killed() -> None:
        with spill_folder(tmp_path) as folder, workplace(tmp_path / "out"):
            (folder / "rows").write_text("x")
            os.kill(os.getpid(), request_to_end)
            time.sleep(1)

    with pytest.raises(SystemExit) as ended:
        killed()
    assert ended.value.code == 128 + request_to_end
    assert list(tmp_path.iterdir()) == []


def test_who_asked_not_to_hear_that_the_terminal_is_gone_does_not(tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with workplace(tmp_path / "out"):
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_nothing_is_shown_of_progress(tmp_path):
    with connections.connect(tmp_path) as connection:
        assert connection.value("SELECT current_setting('enable_progress_bar')") is False


def test_the_folder_is_gone_although_somebody_keeps_the_error(tmp_path, monkeypatch):
    def fail(*_):
        raise AuditFailed("no")

    monkeypatch.setattr(api, "require_passed", fail)
    with pytest.raises(AuditFailed) as kept:
        af.anonymize(_spec(_table(500), tmp_path))
    assert kept.tb is not None
    assert list(tmp_path.iterdir()) == []


def test_the_folder_is_gone_after_a_failure(tmp_path):
    with pytest.raises(ZeroDivisionError), spill_folder(tmp_path):
        raise ZeroDivisionError
    with pytest.raises(Infeasible):
        make(_spec(_table(50), tmp_path, k=51))
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(RequestError, match="engine.spill: no folder can be made"), spill_folder(tmp_path / "file"):
        pass


def test_what_running_processes_have_is_left_alone(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for process in (gone.pid, 1, os.getpid()):
        (tmp_path / f"anonfit-spill-{process}-0123").mkdir()
    (tmp_path / "anonfit-spill-of-somebody").mkdir()
    (tmp_path / "other").mkdir()
    sweep_spill(tmp_path)
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {"anonfit-spill-1-0123", f"anonfit-spill-{os.getpid()}-0123", "anonfit-spill-of-somebody", "other"}


def test_the_written_table_stays_as_long_as_what_was_made(tmp_path):
    made = make(_spec(_table(500), tmp_path))
    assert made.stored is not None
    assert made.stored.path.exists()
    assert len(made.table) == 500
    del made
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
import polars as pl
import anonfit as af
from anonfit import api
from anonfit.engines.duckdb.engine import DuckDBEngine
from anonfit.engines.duckdb import write as writing

route = DuckDBEngine.route
def killed(self, moves, finished):
    found = route(self, moves, finished)
    os.kill(os.getpid(), signal.SIGKILL)
    return found
DuckDBEngine.route = killed
af.run(sys.argv[1], sys.argv[2])
"""

SPEC = """
version = 1
data.source = "table.parquet"
columns.q0.role = "quasi-identifier"
columns.q1.role = "quasi-identifier"
columns.y.role = "target"
privacy.k = 5
engine = { name = "duckdb", spill = "spill", hand_over = 100 }
"""


def test_a_run_that_is_killed_half_way(tmp_path):
    _table(2000).select("q0", "q1", "y").write_parquet(tmp_path / "table.parquet")
    (tmp_path / "spec.toml").write_text(SPEC)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "spec.toml"), str(tmp_path / "release")], check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "release").exists()
    assert len(list((tmp_path / "spill").iterdir())) == 1
    release = af.run(tmp_path / "spec.toml", tmp_path / "release")
    assert af.load(tmp_path / "release").data.equals(release.data)
    del release
    assert list((tmp_path / "spill").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir() if "release" in path.name) == [
        "release", "release.internal.html", "release.internal.json"
    ]  # fmt: skip


def test_too_little_memory(tmp_path):
    spec = _spec(_table(400_000), tmp_path)
    spec = replace(spec, engine=replace(spec.engine, memory=2**20, hand_over=1000))
    with pytest.raises(EngineError, match=r"0\.00 GiB of memory is too little"):
        make(spec)
    assert list(tmp_path.iterdir()) == []


def test_rows_are_spilled(tmp_path):
    """A table of several times the memory gives the same release."""
    frame = _large()
    limited = _spec(frame, tmp_path, k=500, insensitive=["note"])
    limited = replace(limited, engine=replace(limited.engine, memory=64 * 2**20, hand_over=200_000))
    usual = replace(limited, engine=replace(limited.engine, name="memory"))
    assert make(limited).recoding.to_json() == make(usual).recoding.to_json()


@pytest.mark.skipif(os.getuid() != 0, reason="a small disk can be made by root only")
def test_a_full_disk(tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)], capture_output=True, check=False
    ).returncode:
        pytest.skip("a small disk cannot be made here")
    try:
        frame = _large()
        frame.write_parquet(tmp_path / "table.parquet")
        spec = _spec(frame, place, insensitive=["note"])
        spec = replace(
            spec,
            data=replace(spec.data, source=str(tmp_path / "table.parquet")),
            engine=replace(spec.engine, memory=64 * 2**20, hand_over=100_000),
        )
        with pytest.raises(EngineError, match="the disk of the spill folder .*small is full"):
            make(spec)
        assert list(place.iterdir()) == []
    finally:
        time.sleep(0.1)
        subprocess.run(["umount", str(place)], check=True)


def test_the_limit_is_set(tmp_path):
    with connections.connect(tmp_path, memory=3 * 2**30, threads=2) as connection:
        assert connection.value("SELECT current_setting('memory_limit')") == "3.0 GiB"
        assert connection.value("SELECT current_setting('temp_directory')") == str(tmp_path)
