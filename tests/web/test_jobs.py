# SPDX-License-Identifier: Apache-2.0
"""Jobs are processes of their own: they queue, keep their limits, end within two seconds, and outlive the server."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import httpx2
import pytest
from web_doors import SPEC, Door, door_of, people, start_server

from anonfit.errors import RequestError
from anonfit.web.jobs import Job, Jobs, Limits, TooBusy, _members
from anonfit.web.workspace import Workspace
from commands import command


def started(jobs: Jobs, job: Job, seconds: float = 30) -> Job:
    """Wait until a job has begun to work."""
    until = time.monotonic() + seconds
    while not jobs.stages(job.id) and time.monotonic() < until:
        time.sleep(0.02)
    return jobs.get(job.id)


def slow_spec(folder: Path) -> str:
    """A spec whose run takes long: many rows are read from a packed file."""
    if not (folder / "many.csv").exists():
        lines = people(20_000).splitlines()
        (folder / "many.csv").write_text("\n".join([lines[0], *lines[1:] * 40]) + "\n")
    return SPEC.replace("people.csv", "many.csv").replace("k = 5", "k = 5\nattack_limit = 0.99").replace(
        'diversity = "none"\nreason = "the people are made up"\n', ""
    ) + ('[[privacy.diversity]]\ncolumn = "illness"\nmodel = "entropy-l"\nl = 2\n')


def test_a_run_publishes_what_the_command_publishes_byte_for_byte(door: Door) -> None:
    (door.folder / "spec.toml").write_text(SPEC)
    job = door.jobs.wait(door.jobs.submit("run", {}, spec=SPEC).id, 120)
    assert job.state == "done", job.error
    assert command("run", "spec.toml", "--out", "release", folder=door.folder).returncode == 0
    ours, theirs = door.jobs.folder(job.id) / "release", door.folder / "release"
    assert sorted(path.name for path in ours.iterdir()) == sorted(path.name for path in theirs.iterdir())
    for path in theirs.iterdir():
        assert (ours / path.name).read_bytes() == path.read_bytes(), path.name
    assert (door.jobs.folder(job.id) / "release.internal.json").stat().st_mode & 0o077 == 0


def test_an_infeasible_demand_fails_with_the_words_of_the_command(door: Door) -> None:
    text = SPEC.replace("k = 5", "k = 5000")
    (door.folder / "spec.toml").write_text(text)
    job = door.jobs.wait(door.jobs.submit("run", {}, spec=text).id, 60)
    told = json.loads(command("run", "spec.toml", "--json", folder=door.folder).stdout)["error"]
    assert (job.state, dict(job.error or {})) == ("failed", told)
    assert not (door.jobs.folder(job.id) / "release").exists()


def test_cancel_ends_a_job_and_all_it_started_within_two_seconds(door: Door) -> None:
    job = started(door.jobs, door.jobs.submit("run", {}, spec=slow_spec(door.folder)))
    group = door.jobs._running[job.id][0].pid
    assert list(_members({group}))
    begun = time.monotonic()
    door.jobs.cancel(job.id)
    assert door.jobs.wait(job.id, 5).state == "cancelled"
    while list(_members({group})):
        time.sleep(0.01)
    assert time.monotonic() - begun < 2
    assert {path.name for path in door.jobs.folder(job.id).iterdir()} <= {"job.json", "spec.toml", "stages.jsonl"}


def test_a_job_that_waits_is_cancelled_before_it_begins(door: Door) -> None:
    first = door.jobs.submit("run", {}, spec=slow_spec(door.folder))
    second = door.jobs.submit("run", {}, spec=SPEC)
    assert door.jobs.cancel(second.id).state == "cancelled"
    door.jobs.cancel(first.id)
    assert door.jobs.wait(first.id, 5).state == "cancelled"


@pytest.mark.parametrize(("limits", "kind"), [({"memory": 1 << 20}, "MemoryLimit"), ({"seconds": 0.01}, "TimeLimit")])
def test_a_job_beyond_its_limits_is_ended_and_says_so(tmp_path: Path, limits: dict[str, float], kind: str) -> None:
    door = door_of(tmp_path, **limits)
    job = door.jobs.wait(door.jobs.submit("run", {}, spec=slow_spec(tmp_path)).id, 30)
    assert (job.state, (job.error or {})["kind"]) == ("failed", kind)
    door.jobs.close()


def test_a_job_that_dies_does_not_harm_the_server(door: Door) -> None:
    job = started(door.jobs, door.jobs.submit("run", {}, spec=slow_spec(door.folder)))
    os.kill(door.jobs._running[job.id][0].pid, signal.SIGKILL)
    ended = door.jobs.wait(job.id, 10)
    assert ended.state == "failed"
    assert "signal 9" in (ended.error or {})["message"]
    assert door.page.get("/explore").status_code == 200


def test_the_queue_has_an_end(tmp_path: Path) -> None:
    door = door_of(tmp_path, waiting=2)
    with door.jobs._changed:
        door.jobs.submit("run", {}, spec=SPEC)
        door.jobs.submit("run", {}, spec=SPEC)
        with pytest.raises(TooBusy):
            door.jobs.submit("run", {}, spec=SPEC)
    assert len(door.jobs.all()) == 2
    door.jobs.close()


def test_a_new_server_has_finished_runs_and_marks_the_others(tmp_path: Path) -> None:
    door = door_of(tmp_path)
    done = door.jobs.wait(door.jobs.submit("run", {}, spec=SPEC).id, 60)
    half = started(door.jobs, door.jobs.submit("run", {}, spec=slow_spec(tmp_path)))
    waiting = door.jobs.submit("run", {}, spec=SPEC)
    folder = door.jobs.folder(half.id)
    kept = {job.id: (door.jobs.folder(job.id) / "job.json").read_text() for job in (half, waiting)}
    door.jobs.close()
    for job_id, text in kept.items():
        (tmp_path / "runs" / job_id / "job.json").write_text(text)  # as a server that was killed left it
    (folder / "release").mkdir()
    (folder / ".release.anonfit-1-x").mkdir()
    again = Jobs(Workspace.of(tmp_path), Limits(memory=8 << 30, spare=False))
    assert again.get(done.id).state == "done"
    assert (again.folder(done.id) / "release" / "manifest.json").exists()
    for job in (half, waiting):
        assert again.get(job.id).state == "failed"
        assert "start it again" in (again.get(job.id).error or {})["message"]
    assert {path.name for path in folder.iterdir()} <= {"job.json", "spec.toml", "stages.jsonl"}
    again.close()


def test_a_job_that_is_not_over_cannot_be_removed(door: Door) -> None:
    job = door.jobs.submit("run", {}, spec=slow_spec(door.folder))
    with pytest.raises(RequestError, match="cancel it first"):
        door.jobs.remove(job.id)
    door.jobs.cancel(job.id)
    door.jobs.wait(job.id, 5)
    door.jobs.remove(job.id)
    assert not (door.folder / "runs" / job.id).exists()


def killed_and_started_again(folder: Path, times: int) -> None:
    """Kill a server again and again while it works: no finished run is lost, none that is half-made is offered."""
    draw, finished = random.Random(1), set[str]()
    for _ in range(times):
        server = start_server(folder)
        bearer = {"authorization": f"Bearer {(folder / '.anonfit-web' / 'token').read_text().strip()}"}
        with httpx2.Client(base_url=server.address, headers=bearer, timeout=30) as client:
            jobs = client.get("/api/v1/jobs").json()
            done = {job["id"] for job in jobs if job["state"] == "done"}
            assert finished <= done
            assert all(job["state"] in ("done", "failed") for job in jobs)
            for job in jobs:
                whole = client.get(f"/api/v1/jobs/{job['id']}/release").status_code
                assert whole == (200 if job["state"] == "done" else 409)
                if job["state"] == "failed":
                    assert not (folder / "runs" / job["id"] / "release").exists()
            for _ in range(2):
                assert client.post("/api/v1/jobs", data={"spec": SPEC}).status_code == 201
            time.sleep(draw.random() * 4)
            finished = {job["id"] for job in client.get("/api/v1/jobs").json() if job["state"] == "done"}
        server.end(signal.SIGKILL)


def test_a_server_that_is_killed_loses_no_finished_run(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(people())
    killed_and_started_again(tmp_path, 2)


@pytest.mark.slow
def test_a_hundred_kills_lose_no_finished_run(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(people())
    killed_and_started_again(tmp_path, 100)


def test_two_servers_do_not_share_a_folder(server, tmp_path: Path) -> None:
    told = command("web", str(tmp_path), "--no-browser", "--port", "0", folder=tmp_path)
    assert told.returncode == 2
    assert "another anonfit web is at work" in told.stderr
