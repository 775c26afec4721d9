# SPDX-License-Identifier: Apache-2.0
"""Jobs on several processes, each on one thread. Whoever stops waiting stops the processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from threading import Thread, current_thread, main_thread
from typing import Any

from anonfit.errors import MissingPackage
from anonfit.evaluation.jobs import Job, Outcome, Setting, run

__all__ = ["outcomes"]

LIBRARIES = ("POLARS_MAX", "OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUMBA_NUM")
ONE_THREAD = {f"{name}_THREADS": "1" for name in LIBRARIES}

LOOK = 0.3
"""Seconds after which a look is taken whether Ctrl-C was pressed."""

_setting: Setting | None = None


def outcomes(setting: Setting, jobs: Sequence[Job], workers: int) -> Iterator[Outcome]:
    """What jobs find, as soon as each is done.

    Args:
        setting: What they share.
        jobs: The jobs.
        workers: How many processes; 1: this one.
    """
    if workers == 1 or len(jobs) < 2:
        for job in jobs:
            yield run(setting, job)
        return
    pool = _loky().ProcessPoolExecutor(min(workers, len(jobs)), initializer=_begin, initargs=(setting,), env=ONE_THREAD)
    finished = False
    try:
        with _interruption() as is_interrupted:
            yield from _as_done(pool, iter(jobs), is_interrupted, ahead=2 * workers)
        finished = True
    finally:
        pool.shutdown(wait=True, kill_workers=not finished)


def _as_done(pool: Any, jobs: Iterator[Job], is_interrupted: Callable[[], bool], *, ahead: int) -> Iterator[Outcome]:
    """Outcomes as they come. Only so many jobs are handed over ahead: what is handed over cannot be taken back."""
    waiting = {pool.submit(_run, job) for job in islice(jobs, ahead)}
    while waiting:
        done, waiting = wait(waiting, timeout=LOOK, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()
        if is_interrupted():
            raise KeyboardInterrupt
        waiting |= {pool.submit(_run, job) for job in islice(jobs, len(done))}


@contextmanager
def _interruption() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed. It waits until nothing is half done: no entry half written, no job half handed
    over. The second time it does not wait.
    """
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or before in (None, signal.SIG_IGN):
        yield lambda: False
        return

    def press(number: int, _frame: Any) -> None:
        pressed.append(number)
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, press)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


def _loky() -> Any:
    """Processes that neither copy the threads of this one nor run its main module again. scikit-learn brings them."""
    try:
        return import_module("joblib.externals.loky")
    except ModuleNotFoundError:
        raise MissingPackage("scikit-learn", "learn", "Evaluating on several processes") from None


def _begin(setting: Setting) -> None:
    """Keep what all jobs share; Ctrl-C is for the process that waits."""
    global _setting
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    _setting = setting


def _end_with(parent: int) -> None:
    """End this process when the one that waits for it has ended, in whatever way."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _run(job: Job) -> Outcome:
    assert _setting is not None
    return run(_setting, job)
