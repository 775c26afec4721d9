# SPDX-License-Identifier: Apache-2.0
"""Jobs: each is a process of its own that works in a folder of its own, with a queue, limits, and an end within two
seconds. What is known of a job is in its folder, so that a server that was killed finds it again.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Condition, Thread
from typing import Any, Literal, TypeAlias

from anonfit.errors import AnonfitError, RequestError
from anonfit.web.workspace import RUNS, SPEC, Workspace, replace_text

State: TypeAlias = Literal["queued", "running", "done", "failed", "cancelled"]
ENDED = ("done", "failed", "cancelled")
JOB, RESULT, STAGES, SENT, RELEASE = "job.json", "result.json", "stages.jsonl", "sent", "release"
KEPT = (JOB, RESULT, STAGES, SPEC)
"""What stays of a job that came to nothing."""
VERSION = 1
MEASURED = 0.25
"""Seconds between two looks at the memory of jobs."""
NICER = 10
"""By how much jobs come after the server, which answers first."""
GRACE = 0.5
"""Seconds that a job has to leave by itself when it is cancelled."""
QUICK = ("look", "values", "count", "combinations", "rows", "records", "tables")
"""Kinds of short questions, which do not wait for long work."""


class TooBusy(AnonfitError):
    """More jobs wait than are allowed to."""


class NoSuchJob(RequestError):
    """There is no such job."""


class Failed(AnonfitError):
    """A question that could not be answered; its text is that of the error."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What jobs may take."""

    memory: int
    """Bytes of one job."""
    seconds: float = 4 * 3600
    at_once: int = 1
    waiting: int = 200
    upload: int = 8 << 30
    """Bytes of a request."""
    spare: bool = True
    """Whether a process waits for the next job, so that it begins at once."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job, as it stands in its folder."""

    id: str
    kind: str
    state: State = "queued"
    params: Mapping[str, Any] = field(default_factory=dict)
    created: float = 0.0
    started: float | None = None
    ended: float | None = None
    error: Mapping[str, Any] | None = None
    version: int = VERSION

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens."""
        return self.state in ENDED

    @property
    def number(self) -> int:
        """What people call it: jobs of a kind are counted 1, 2, 3."""
        return int(self.id.partition("-")[0])


def failure(kind: str, message: str) -> dict[str, Any]:
    """An error as every door writes it in JSON."""
    return {"kind": kind, "message": message, "faults": [message]}


GONE = failure("Interrupted", "the server ended while this ran, so nothing was published; start it again.")


class Jobs:
    """The jobs of a workspace; a thread of its own starts, watches and ends their processes."""

    def __init__(self, space: Workspace, limits: Limits) -> None:
        self.space, self.limits = space, limits
        self._changed = Condition()
        self._waiting: list[str] = []
        self._running: dict[str, tuple[subprocess.Popen[bytes], float]] = {}
        self._ending: dict[str, tuple[float, Mapping[str, Any] | None]] = {}
        self._known: dict[str, Job] = {}
        self._spare: subprocess.Popen[bytes] | None = None
        self._held: dict[int, int] = {}
        self._measured = 0.0
        self._closed = False
        with self._changed:
            for folder in sorted((space.root / RUNS).iterdir()):
                self._adopt(folder)
        self._watcher = Thread(target=self._watch, name="jobs", daemon=True)
        self._watcher.start()

    # --- what doors ask -----------------------------------------------------------------------------------------

    def folder(self, job_id: str) -> Path:
        """The folder of a job."""
        return self.space.root / RUNS / self.get(job_id).id

    def get(self, job_id: str) -> Job:
        """A job by its name."""
        try:
            return self._known[job_id]
        except KeyError:
            raise NoSuchJob("there is no such job.") from None

    def all(self, *kinds: str) -> list[Job]:
        """Jobs of some kinds, the newest first."""
        with self._changed:
            chosen = [job for job in self._known.values() if not kinds or job.kind in kinds]
        return sorted(chosen, key=lambda job: (job.created, job.id), reverse=True)

    def stages(self, job_id: str) -> list[dict[str, Any]]:
        """The stages that a job has told of."""
        with suppress(OSError):
            lines = (self.folder(job_id) / STAGES).read_text(encoding="utf-8").splitlines()
            return [json.loads(line) for line in lines if line.endswith("}")]
        return []

    def result(self, job_id: str) -> dict[str, Any]:
        """What a finished job found; empty if there is nothing."""
        result = (_read(self.folder(job_id) / RESULT) or {}).get("result")
        return result if isinstance(result, dict) else {}

    def make(self, kind: str, params: Mapping[str, Any]) -> tuple[str, Path]:
        """A place for a new job, to be filled before it is started."""
        with self._changed:
            if len(self._waiting) >= self.limits.waiting:
                raise TooBusy(f"{len(self._waiting)} jobs wait already; try again when some are done.")
            number = 1 + max((job.number for job in self._known.values() if job.kind == kind), default=0)
            job_id = f"{number:04}-{secrets.token_hex(4)}"
            folder = self.space.root / RUNS / job_id
            folder.mkdir(mode=0o700)
            self._put(Job(job_id, kind, params=dict(params), created=time.time()))
        return job_id, folder

    def start(self, job_id: str) -> Job:
        """Put a job into the queue."""
        with self._changed:
            self._waiting.append(job_id)
            self._changed.notify_all()
        return self.get(job_id)

    def note(self, job_id: str, **facts: Any) -> None:
        """Write something down about a job."""
        with self._changed:
            job = self.get(job_id)
            if any(job.params.get(name) != value for name, value in facts.items()):
                self._put(replace(job, params={**job.params, **facts}))

    def submit(self, kind: str, params: Mapping[str, Any], *, spec: str | None = None) -> Job:
        """Make a job and start it."""
        job_id, folder = self.make(kind, params)
        if spec is not None:
            replace_text(folder / SPEC, spec)
        return self.start(job_id)

    def cancel(self, job_id: str) -> Job:
        """End a job; within two seconds nothing of it runs any more."""
        with self._changed:
            job = self.get(job_id)
            if job_id in self._running:
                self._stop(job_id, None)
            elif not job.is_over:
                self._waiting = [waiting for waiting in self._waiting if waiting != job_id]
                self._end(replace(job, state="cancelled"))
            self._changed.notify_all()
        return self.get(job_id)

    def remove(self, job_id: str) -> None:
        """Forget a job that is over, and all that it made."""
        with self._changed:
            if not self.get(job_id).is_over:
                raise RequestError("this job is not over; cancel it first.")
            shutil.rmtree(self.folder(job_id), ignore_errors=True)
            del self._known[job_id]

    def wait(self, job_id: str, seconds: float) -> Job:
        """Wait until a job is over, or for so long."""
        until = time.monotonic() + seconds
        with self._changed:
            while not self.get(job_id).is_over and (left := until - time.monotonic()) > 0:
                self._changed.wait(min(left, 1.0))
        return self.get(job_id)

    def ask(
        self, kind: str, params: Mapping[str, Any], *, state: str, seconds: float = 60, anew: bool = False
    ) -> dict[str, Any]:
        """The answer to a short question; the same question about the same state is answered from memory, unless it is
        asked anew.
        """
        if not anew and (known := self.answered(kind, params, state=state)) is not None:
            return known
        job = self.wait(self.submit(kind, params).id, seconds)
        if not job.is_over:
            self.cancel(job.id)
            raise Failed(f"no answer came within {seconds:g} seconds; the table may be too large for this question.")
        answer = self.result(job.id)
        self.remove(job.id)
        if job.error is not None:
            raise Failed(str(job.error["message"]))
        replace_text(self._kept(kind, params, state), json.dumps(answer))
        return answer

    def answered(self, kind: str, params: Mapping[str, Any], *, state: str) -> dict[str, Any] | None:
        """The answer to a question that was asked before; None if it was not."""
        return _read(self._kept(kind, params, state))

    def _kept(self, kind: str, params: Mapping[str, Any], state: str) -> Path:
        """Where the answer to a question is kept."""
        key = hashlib.sha256(json.dumps([kind, params, state], sort_keys=True, default=str).encode()).hexdigest()
        return self.space.state / "answers" / f"{key}.json"

    def close(self) -> None:
        """End all processes."""
        with self._changed:
            self._closed = True
            for process, _ in self._running.values():
                _signal(process, signal.SIGKILL)
            if self._spare is not None:
                _signal(self._spare, signal.SIGKILL)
                self._spare.communicate()
            self._changed.notify_all()
        self._watcher.join(timeout=5)

    # --- what the thread does -----------------------------------------------------------------------------------

    def _watch(self) -> None:
        while True:
            self._measure()
            with self._changed:
                for job_id, (process, _) in list(self._running.items()):
                    if self._closed or process.poll() is not None:
                        self._finish(job_id, process.wait())
                    else:
                        self._hold_to_limits(job_id, process)
                if self._closed:
                    return
                for job_id in list(self._waiting):
                    if self._has_room(self._known[job_id]):
                        self._waiting.remove(job_id)
                        self._launch(job_id)
                if self._spare is None and self.limits.spare:
                    self._spare = _process()
                self._changed.wait(0.05 if self._running else 0.5)

    def _measure(self) -> None:
        """Look at the memory of all jobs, while others may go on: pages wait for the lock, not for /proc."""
        if time.monotonic() - self._measured < MEASURED:
            return
        with self._changed:
            groups = {process.pid for process, _ in self._running.values()}
        self._held = _memory(groups) if groups else {}
        self._measured = time.monotonic()

    def _has_room(self, job: Job) -> bool:
        """Short questions and long work have places of their own."""
        is_quick = job.kind in QUICK
        alike = sum((self._known[running].kind in QUICK) == is_quick for running in self._running)
        return alike < (2 if is_quick else self.limits.at_once)

    def _launch(self, job_id: str) -> None:
        process = self._spare if self._spare is not None and self._spare.poll() is None else _process()
        self._spare = None
        self._put(replace(self._known[job_id], state="running", started=time.time()))
        self._running[job_id] = (process, time.monotonic())
        order = {"root": str(self.space.root), "folder": str(self.folder(job_id))}
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
        self._changed.notify_all()

    def _hold_to_limits(self, job_id: str, process: subprocess.Popen[bytes]) -> None:
        begun = self._running[job_id][1]
        if job_id in self._ending:
            if time.monotonic() > self._ending[job_id][0]:
                _signal(process, signal.SIGKILL)
        elif time.monotonic() - begun > self.limits.seconds:
            words = f"the job took more than the {self.limits.seconds:g} seconds that are allowed; allow more (--time)."
            self._stop(job_id, failure("TimeLimit", words))
        elif self._held.get(process.pid, 0) > self.limits.memory:
            size = f"{self.limits.memory / 2**30:.1f} GiB"
            words = f"the job needed more than the {size} of memory that are allowed; allow more (--memory)."
            self._stop(job_id, failure("MemoryLimit", words), grace=0)

    def _stop(self, job_id: str, error: Mapping[str, Any] | None, grace: float = GRACE) -> None:
        """Ask a process to end, and see that it does."""
        if job_id not in self._ending:
            self._ending[job_id] = (time.monotonic() + grace, error)
            _signal(self._running[job_id][0], signal.SIGTERM)

    def _finish(self, job_id: str, status: int) -> None:
        process, _ = self._running.pop(job_id)
        _signal(process, signal.SIGKILL)  # what it may have started itself
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        how = f"signal {-status}" if status < 0 else f"status {status}"
        words = f"the process of this job ended ({how}), perhaps for want of memory; nothing was published."
        _, fault = self._ending.pop(job_id, (0.0, GONE if self._closed else failure("Ended", words)))
        job = _with_result(self._known[job_id], self.folder(job_id))
        if not job.is_over:
            job = replace(job, state="cancelled" if fault is None else "failed", error=fault)
        self._end(job)

    def _end(self, job: Job) -> None:
        """Write down that a job is over; nothing half-made of it stays, nor a table that was sent along with it."""
        folder = self.space.root / RUNS / job.id
        shutil.rmtree(folder / SENT, ignore_errors=True)
        self._put(replace(job, ended=job.ended or time.time()))
        for path in folder.iterdir() if job.state != "done" else ():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name not in KEPT:
                path.unlink(missing_ok=True)
        self._changed.notify_all()

    def _put(self, job: Job) -> None:
        replace_text(self.space.root / RUNS / job.id / JOB, json.dumps(asdict(job)))
        self._known[job.id] = job

    def _adopt(self, folder: Path) -> None:
        """Take over a job of an earlier server: what was finished is there, the rest is marked."""
        try:
            job = Job(**(_read(folder / JOB) or {}))
        except TypeError:
            return
        if job.version != VERSION or job.id != folder.name:
            return
        if job.kind in QUICK:
            shutil.rmtree(folder, ignore_errors=True)
            return
        self._known[job.id] = job
        if not job.is_over:
            ended = _with_result(job, folder)
            self._end(ended if ended.is_over else replace(job, state="failed", error=GONE))


def _read(path: Path) -> dict[str, Any] | None:
    """The object in a file of JSON; None if there is none that can be read."""
    with suppress(OSError, ValueError):
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content
    return None


def _with_result(job: Job, folder: Path) -> Job:
    """A job with what its process left as the last thing it did."""
    result = _read(folder / RESULT)
    if result is None:
        return job
    state: State = "done" if result["error"] is None else "failed"
    return replace(job, state=state, error=result["error"], ended=result["ended"])


def _process() -> subprocess.Popen[bytes]:
    """A process that waits for a job; it ends with the server, since its standard input does."""
    process = subprocess.Popen(
        [sys.executable, "-m", "anonfit.web.tasks"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=None if os.environ.get("ANONFIT_DEBUG") else subprocess.DEVNULL,
        start_new_session=True,
    )
    if sys.platform != "win32":
        with suppress(OSError):  # from its first import on
            os.setpriority(os.PRIO_PROCESS, process.pid, os.getpriority(os.PRIO_PROCESS, 0) + NICER)
    return process


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Signal a process and all that it started."""
    with suppress(OSError):
        os.killpg(process.pid, number)


def _members(groups: Container[int]) -> Iterator[tuple[int, int]]:
    """The processes of some groups, each after its group, where the system has /proc."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                fields = Path(f"/proc/{entry.name}/stat").read_text().rpartition(")")[2].split()
                if int(fields[2]) in groups:
                    yield int(fields[2]), int(entry.name)


def _memory(groups: Container[int]) -> dict[int, int]:
    """The bytes that each group of processes holds in memory; nothing where the system does not tell."""
    held: dict[int, int] = {}
    if not Path("/proc/self/statm").exists():
        return held
    for group, number in _members(groups):
        with suppress(OSError, IndexError, ValueError):
            pages = int(Path(f"/proc/{number}/statm").read_text().split()[1])
            held[group] = held.get(group, 0) + pages * os.sysconf("SC_PAGE_SIZE")
    return held
