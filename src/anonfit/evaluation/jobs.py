# SPDX-License-Identifier: Apache-2.0
"""The work of an evaluation, in jobs that are done in any order and in any process: a method, a k and a fold each.

What was found is kept in a file that the next evaluation goes on from. It holds measures, no record's values; every
entry stands under a hash of all that it depends on, so that one file serves different evaluations.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass, replace
from importlib import import_module
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from threading import Thread, current_thread, main_thread
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import AnonfitError, DemandError, MissingPackage, RequestError
from anonfit.evaluation.judging import (
    COMBINED,
    Figure,
    LearnerResult,
    TrainingAndTest,
    learned,
    measured,
    release_figures,
    released,
)
from anonfit.evaluation.learners import Learner
from anonfit.evaluation.methods import BASELINES, ORIGINAL, REMOVED, Method
from anonfit.evaluation.models import LearnedRecoding, Task
from anonfit.evaluation.result import Unmet
from anonfit.spec.learning import Asked
from anonfit.spec.model import Spec
from anonfit.spec.parse import spec_tables
from anonfit.tables.schema import Role, Schema


@dataclass(frozen=True)
class EvaluationSetting:
    """What all jobs of an evaluation share."""

    spec: Spec
    schema: Schema
    frame: pl.DataFrame = field(repr=False)
    tasks: tuple[Task, ...]
    learners: tuple[Learner, ...]
    fold_of: NDArray[np.int64] = field(repr=False)  # (row,)
    protocol: str
    encoding: str
    seed: int
    asked: tuple[Asked, ...] = field(default=(), repr=False)
    """The questions of a query log, by which releases are judged."""
    latest: dict[tuple[str, int | None], LearnedRecoding | None] = field(default_factory=dict, repr=False)

    def division(self, fold: int) -> TrainingAndTest:
        """The rows of a fold are tested on, the others learned from."""
        is_test = self.fold_of == fold
        return TrainingAndTest(self.schema, self.frame[np.flatnonzero(~is_test)], self.frame[np.flatnonzero(is_test)])


@dataclass(frozen=True, slots=True)
class Job:
    """What is still to be found of one method, k and fold."""

    way: Method | str
    k: int | None
    fold: int
    wanted: frozenset[tuple[str, str]]
    """Titles of models and names of learners."""
    figures: bool

    @property
    def title(self) -> str:
        """For whoever waits."""
        at = "" if self.k is None else f", k = {self.k}"
        return f"{name_of(self.way)}{at}, fold {self.fold + 1}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a job measured, or why it could not be done."""

    job: Job
    measured: tuple[LearnerResult, ...] = ()
    figures: tuple[Figure, ...] = ()
    fault: str = ""
    is_unmet: bool = False
    """Whether the demand cannot be met, so that others go on; any other fault ends the evaluation."""


def name_of(way: Method | str) -> str:
    """What a method or baseline is called."""
    return way if isinstance(way, str) else way.name


def jobs_of(
    ways: Sequence[Method | str], ks: Sequence[int], folds: int, wanted: frozenset[tuple[str, str]]
) -> Iterator[Job]:
    """All jobs, those of a baseline once for all k."""
    for way in ways:
        is_baseline = isinstance(way, str) and way in BASELINES
        for k in (None,) if is_baseline else ks:
            for fold in range(folds):
                yield Job(way, k, fold, wanted, figures=not is_baseline)


def fold_of_rows(schema: Schema, frame: pl.DataFrame, folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of each row, drawn at random; the rows of a person are in one fold."""
    entity = schema.name_of(Role.ENTITY)
    units = np.arange(len(frame)) if entity is None else frame[entity].rank("dense").to_numpy().astype(np.int64) - 1
    count = int(units.max(initial=-1)) + 1
    drawn = np.empty(count, np.int64)
    drawn[np.random.default_rng(seed).permutation(count)] = np.arange(count) % folds
    fold_of: NDArray[np.int64] = drawn[units]
    return fold_of


def run(setting: EvaluationSetting, job: Job) -> Outcome:
    """Do a job."""
    try:
        return _done(setting, job)
    except AnonfitError as error:
        # Some errors cannot cross from one process to another, but their words can.
        return Outcome(job, fault=str(error), is_unmet=isinstance(error, DemandError))


def _done(setting: EvaluationSetting, job: Job) -> Outcome:
    division = setting.division(job.fold)
    seed = setting.seed + job.fold
    if setting.protocol == COMBINED and job.way not in (ORIGINAL, REMOVED):
        recoded = _combined(setting, job)
    else:
        recoded = learned(job.way, setting.spec, setting.schema, division.training, k=job.k, seed=seed)
    release = released(job.way, division, recoded, protocol=setting.protocol, encoding=setting.encoding)
    results = []
    for task in setting.tasks:
        chosen = [learner for learner in setting.learners if (task.model.title, learner.name) in job.wanted]
        results += measured(release, division, task, chosen, seed)
    figures = release_figures(recoded, setting.spec, setting.tasks, setting.asked) if job.figures and recoded else []
    return Outcome(job, tuple(results), tuple(figures))


def _combined(setting: EvaluationSetting, job: Job) -> LearnedRecoding | None:
    """The recoding of all rows; the folds of one method and k follow each other, so the last one is kept."""
    key = (name_of(job.way), job.k)
    if key not in setting.latest:
        setting.latest.clear()
        setting.latest[key] = learned(job.way, setting.spec, setting.schema, setting.frame, k=job.k, seed=setting.seed)
    return setting.latest[key]


FORMAT = 2
"""Raised when the same request would be measured differently."""
HEAD = json.dumps({"version": FORMAT})
FILE = "store.jsonl"


def _hashed(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else json.dumps(part, ensure_ascii=False, default=str).encode()
        digest.update(hashlib.sha256(data).digest())
    return digest.hexdigest()


def _rows(frame: pl.DataFrame) -> bytes:
    """The rows as bytes; categories are named at random, so their texts stand for them."""
    kinds = (pl.Categorical, pl.Enum)
    frame = frame.with_columns(column.cast(pl.String) for column in frame if isinstance(column.dtype, kinds))
    buffer = io.BytesIO()
    frame.write_ipc(buffer, compression="uncompressed")
    return buffer.getvalue()


class Keys:
    """The keys of an evaluation's entries."""

    def __init__(self, setting: EvaluationSetting) -> None:
        spec = spec_tables(setting.spec)
        spec.get("data", {}).pop("source", None)
        spec["privacy"].pop("k")
        fitted = [pickle.dumps(target.model) for target in setting.spec.targets if target.model is not None]
        self._shared = _hashed(
            [FORMAT, version("anonfit"), setting.protocol, setting.encoding, setting.seed],
            spec,
            repr(setting.schema),
            _rows(setting.frame),
            setting.fold_of.tobytes(),
            *([repr(setting.asked)] if setting.asked else []),
            *fitted,
        )
        # Figures are measured of the targets of all models at once, so they depend on which models are asked for.
        self._targets = sorted({task.labels.column.name for task in setting.tasks})

    def of(self, job: Job, task: Task | None = None, learner: str = "") -> str:
        """The key of what a learner did in a job, or without one of the figures of a release."""
        model = self._targets if task is None else [task.model.target, list(task.using), task.model.where]
        settings = repr(job.way) if is_dataclass(job.way) else ""
        return _hashed([self._shared, name_of(job.way), settings, job.k, job.fold, model, learner])


class Store(dict[str, Any]):
    """Entries by key, and the file they are kept in, if there is one."""

    def __init__(self, folder: Path | None) -> None:
        super().__init__()
        self._path = None
        if folder is None:
            return
        if folder.exists() and not folder.is_dir():
            raise RequestError(f"{folder} is a file; name a folder to keep results in.")
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / FILE
        if _is_begun(self._path):
            self.update(_entries(self._path))

    def add(self, entries: Mapping[str, Any]) -> None:
        """Keep entries, in one go."""
        self.update(entries)
        if self._path is None or not entries:
            return
        lines = [json.dumps({"key": key, "found": value}, ensure_ascii=False) for key, value in entries.items()]
        with open(self._path, "a", encoding="utf-8", opener=_private) as file:
            # Each line begins with its end of line, so that one which was cut short spoils no other.
            file.write("" if _is_begun(self._path) else HEAD)
            file.write("".join(f"\n{line}" for line in lines))


def _private(path: str, flags: int) -> int:
    """Opens a file that only its owner can read, if it is new: figures are of raw rows."""
    return os.open(path, flags, 0o600)


def _is_begun(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _entries(path: Path) -> list[tuple[str, Any]]:
    """The whole lines of a file: the last may have been cut short."""
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    if head != HEAD:
        raise RequestError(f"{path} is no store of this version of anonfit; name another folder, or remove the file.")
    entries = []
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        entries.append((entry["key"], entry["found"]))
    return entries


LIBRARIES = ("POLARS_MAX", "OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUMBA_NUM")
ONE_THREAD = {f"{name}_THREADS": "1" for name in LIBRARIES}

LOOK = 0.3
"""Seconds after which a look is taken whether Ctrl-C was pressed."""

_setting: EvaluationSetting | None = None


def outcomes(setting: EvaluationSetting, jobs: Sequence[Job], workers: int) -> Iterator[Outcome]:
    """What jobs find, as soon as each is done, in so many processes; 1: in this one."""
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


def _begin(setting: EvaluationSetting) -> None:
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


Progress: TypeAlias = Callable[[int, int, str], None]
"""Told how many jobs are done, of how many, and which was the last."""


def pairs_of(setting: EvaluationSetting) -> Iterator[tuple[str, str]]:
    """The models and learners that fit together."""
    for task in setting.tasks:
        for learner in setting.learners:
            if learner.predicts == task.labels.predicts:
                yield task.model.title, learner.name


def work(
    setting: EvaluationSetting, jobs: Sequence[Job], kept: Store, keys: Keys, *, workers: int, progress: Progress
) -> list[Unmet]:
    """Do what is not kept yet; which demands cannot be met."""
    by_title = {task.model.title: task for task in setting.tasks}
    left = [rest for job in jobs if (rest := _left(job, keys, kept, by_title)) is not None]
    done = len(jobs) - len(left)
    progress(done, len(jobs), "")
    if left:
        _prepare(setting)
    unmet = []
    for outcome in outcomes(setting, left, workers):
        job = outcome.job
        if outcome.fault and not outcome.is_unmet:
            raise RequestError(outcome.fault)
        if outcome.is_unmet:
            unmet.append(Unmet(name_of(job.way), job.k, job.fold, outcome.fault))
        kept.add(dict(_new_entries(outcome, keys, by_title)))
        done += 1
        progress(done, len(jobs), job.title)
    return sorted(unmet, key=lambda cell: (cell.method, cell.k or 0, cell.fold))


def _prepare(setting: EvaluationSetting) -> None:
    """Compile once, so that no process has to."""
    from anonfit.engines.memory.warming import is_compiled, warm_refining, warm_up

    models = setting.spec.privacy.has_models
    if not is_compiled(models=models):
        warm_up(models=models)
    if setting.spec.method.capabilities.refines and not is_compiled(models=models, refining=True):
        warm_refining(models=models)


def _left(job: Job, keys: Keys, kept: Store, tasks: Mapping[str, Task]) -> Job | None:
    """What is still to be found by a job; None if nothing is."""
    wanted = frozenset((title, name) for title, name in job.wanted if keys.of(job, tasks[title], name) not in kept)
    figures = job.figures and keys.of(job) not in kept
    return replace(job, wanted=wanted, figures=figures) if wanted or figures else None


def _new_entries(outcome: Outcome, keys: Keys, tasks: Mapping[str, Task]) -> Iterator[tuple[str, Any]]:
    job = outcome.job
    for result in outcome.measured:
        yield keys.of(job, tasks[result.model], result.learner), result.values
    if job.figures and not outcome.fault:
        figures = [[figure.name, figure.target, figure.value] for figure in outcome.figures]
        yield keys.of(job), figures


def collected(
    setting: EvaluationSetting, jobs: Sequence[Job], kept: Store, keys: Keys
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[Unmet]]:
    """The measures and figures that are kept, in the order of what was asked, and models that could not be measured."""
    rows: list[dict[str, Any]] = []
    figures: list[dict[str, Any]] = []
    empty: dict[Unmet, None] = {}
    for job in jobs:
        shared = {"method": name_of(job.way), "k": job.k, "fold": job.fold}
        for task in setting.tasks:
            for learner in setting.learners:
                kept_values = kept.get(keys.of(job, task, learner.name))
                if kept_values == {}:
                    why = f"the model '{task.model.title}' has no rows to learn from, or none to test on."
                    empty[Unmet(name_of(job.way), job.k, job.fold, why)] = None
                place = {**shared, "learner": learner.name, "model": task.model.title}
                rows += [
                    {**place, "part": part, "measure": measure, "value": value}
                    for part, measures in (kept_values or {}).items()
                    for measure, value in measures.items()
                ]
        figures += [
            {**shared, "figure": name, "target": target, "value": value}
            for name, target, value in kept.get(keys.of(job), [])
        ]
    return rows, figures, list(empty)
