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
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass, replace
from importlib import import_module
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import AnonfitError, DemandError, MissingPackage, RequestError
from anonfit.evaluation import judging
from anonfit.evaluation.judging import COMBINED, Figure, ReleasedFeatures, TrainingAndTest, Values
from anonfit.evaluation.learners import Learner
from anonfit.evaluation.methods import BASELINES
from anonfit.evaluation.models import SUITED, LearnedRecoding, ModelTask
from anonfit.evaluation.result import Unmet
from anonfit.evaluation.toolkit import ToolkitMethod, Way
from anonfit.runtime.process import stoppable
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
    tasks: tuple[ModelTask, ...]
    learners: tuple[Learner, ...]
    fold_of: NDArray[np.int64] = field(repr=False)  # (row,)
    protocol: str
    encoding: str
    seed: int
    asked: tuple[Asked, ...] = field(default=(), repr=False)
    """The questions of a query log, by which releases are judged."""
    latest: dict[tuple[str, int | None], LearnedRecoding | None] = field(default_factory=dict, repr=False)

    def learners_by_encoding(self) -> dict[str, list[Learner]]:
        """Learners by how regions become numbers for them."""
        found: dict[str, list[Learner]] = {}
        for learner in self.learners:
            found.setdefault(learner.encoding if self.encoding == SUITED else self.encoding, []).append(learner)
        return found

    def division(self, fold: int) -> TrainingAndTest:
        """The rows of a fold are tested on, the others learned from."""
        is_test = self.fold_of == fold
        return TrainingAndTest(self.schema, self.frame[np.flatnonzero(~is_test)], self.frame[np.flatnonzero(is_test)])


@dataclass(frozen=True, slots=True)
class FoldJob:
    """What is still to be found of one method, k and fold."""

    way: Way
    k: int | None
    fold: int
    wanted: tuple[tuple[str, str], ...]
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

    job: FoldJob
    values: Mapping[tuple[str, str], Values] = field(default_factory=dict)
    """By the title of the model and the name of the learner."""
    figures: Sequence[Figure] = ()
    fault: str = ""
    is_unmet: bool = False
    """Whether the demand cannot be met, so that others go on; any other fault ends the evaluation."""


def name_of(way: Way) -> str:
    """What a method or baseline is called."""
    return way if isinstance(way, str) else way.name


def jobs_of(
    ways: Sequence[Way], ks: Sequence[int], folds: int, wanted: tuple[tuple[str, str], ...]
) -> Iterator[FoldJob]:
    """All jobs, those of a baseline once for all k."""
    for way in ways:
        is_baseline = isinstance(way, str) and way in BASELINES
        for k in (None,) if is_baseline else ks:
            for fold in range(folds):
                yield FoldJob(way, k, fold, wanted, figures=not is_baseline)


def fold_of_rows(schema: Schema, frame: pl.DataFrame, folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of each row, drawn at random; the rows of a person are in one fold."""
    entity = schema.name_of(Role.ENTITY)
    units = np.arange(len(frame)) if entity is None else frame[entity].rank("dense").to_numpy().astype(np.int64) - 1
    count = int(units.max(initial=-1)) + 1
    fold_of_units = np.empty(count, np.int64)
    fold_of_units[np.random.default_rng(seed).permutation(count)] = np.arange(count) % folds
    return fold_of_units.take(units)


def run(setting: EvaluationSetting, job: FoldJob) -> Outcome:
    """Do a job."""
    try:
        return _done(setting, job)
    except AnonfitError as error:
        # Some errors cannot cross from one process to another, but their words can.
        return Outcome(job, fault=str(error), is_unmet=isinstance(error, DemandError))


def _done(setting: EvaluationSetting, job: FoldJob) -> Outcome:
    division = setting.division(job.fold)
    seed = setting.seed + job.fold
    if isinstance(job.way, ToolkitMethod):
        assert job.k is not None
        release, groups = job.way.released(division, setting.tasks, job.k)
        return Outcome(
            job, _values(setting, job, division, release, setting.learners), [("group_count", "", float(groups))]
        )
    if setting.protocol == COMBINED and job.way not in BASELINES:
        # The folds of one method and k follow each other, so the last recoding of all rows is kept.
        key = (name_of(job.way), job.k)
        if key not in setting.latest:
            setting.latest.clear()
            setting.latest[key] = judging.learned(
                job.way, setting.spec, setting.schema, setting.frame, k=job.k, seed=setting.seed
            )
        recoded = setting.latest[key]
    else:
        recoded = judging.learned(job.way, setting.spec, setting.schema, division.training, k=job.k, seed=seed)
    values: dict[tuple[str, str], Values] = {}
    for encoding, learners in setting.learners_by_encoding().items():
        release = judging.released(job.way, division, recoded, protocol=setting.protocol, encoding=encoding)
        values |= _values(setting, job, division, release, learners)
    figures = (
        judging.release_figures(recoded, setting.spec, setting.tasks, setting.asked) if job.figures and recoded else []
    )
    return Outcome(job, values, figures)


def _values(
    setting: EvaluationSetting,
    job: FoldJob,
    division: TrainingAndTest,
    release: ReleasedFeatures,
    learners: Sequence[Learner],
) -> dict[tuple[str, str], Values]:
    """What some learners make of a release, for every model."""
    values: dict[tuple[str, str], Values] = {}
    for task in setting.tasks:
        chosen = [learner for learner in learners if (task.model.title, learner.name) in job.wanted]
        values |= judging.measured(release, division, task, chosen, setting.seed + job.fold)
    return values


FORMAT = 4
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


class Store(dict[str, Any]):
    """The entries of an evaluation by key, and the file they are kept in, if there is one."""

    def __init__(self, folder: Path | None, setting: EvaluationSetting) -> None:
        super().__init__()
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
        self._tasks = {task.model.title: task for task in setting.tasks}
        # Figures are measured of the targets of all models at once, so they depend on which models are asked for.
        self._targets = sorted({task.labels.column.name for task in setting.tasks})
        self._path = None if folder is None else folder / FILE
        if folder is None or self._path is None:
            return
        if folder.exists() and not folder.is_dir():
            raise RequestError(f"{folder} is a file; name a folder to keep results in.")
        folder.mkdir(parents=True, exist_ok=True)
        if _is_begun(self._path):
            self.update(_entries(self._path))

    def key(self, job: FoldJob, model: str = "", learner: str = "") -> str:
        """The key of what a learner did for a model in a job, or without them of the figures of a release."""
        asked: list[Any] = self._targets
        if learner:
            task = self._tasks[model]
            asked = [task.model.target, list(task.using), task.model.where]
        settings = repr(job.way) if is_dataclass(job.way) else ""
        return _hashed([self._shared, name_of(job.way), settings, job.k, job.fold, asked, learner])

    def left(self, job: FoldJob) -> FoldJob | None:
        """What is still to be found by a job; None if nothing is."""
        wanted = tuple(pair for pair in job.wanted if self.key(job, *pair) not in self)
        figures = job.figures and self.key(job) not in self
        return replace(job, wanted=wanted, figures=figures) if wanted or figures else None

    def add(self, outcome: Outcome) -> None:
        """Keep what a job found, in one go."""
        entries: dict[str, Any] = {self.key(outcome.job, *pair): values for pair, values in outcome.values.items()}
        if outcome.job.figures and not outcome.fault:
            entries[self.key(outcome.job)] = outcome.figures
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
        with suppress(ValueError):
            entry = json.loads(line)
            entries.append((entry["key"], entry["found"]))
    return entries


LIBRARIES = ("POLARS_MAX", "OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUMBA_NUM")
ONE_THREAD = {f"{name}_THREADS": "1" for name in LIBRARIES}

LOOK = 0.3
"""Seconds after which a look is taken whether Ctrl-C was pressed."""

_setting: EvaluationSetting | None = None


def outcomes(setting: EvaluationSetting, jobs: Sequence[FoldJob], workers: int) -> Iterator[Outcome]:
    """What jobs find, as soon as each is done, in so many processes; 1: in this one."""
    if workers == 1 or len(jobs) < 2:
        for job in jobs:
            yield run(setting, job)
        return
    try:  # neither copies the threads of this process nor runs its main module again; scikit-learn brings it
        loky: Any = import_module("joblib.externals.loky")
    except ModuleNotFoundError:
        raise MissingPackage("scikit-learn", "learn", "Evaluating on several processes") from None
    pool = loky.ProcessPoolExecutor(min(workers, len(jobs)), initializer=_begin, initargs=(setting,), env=ONE_THREAD)
    finished = False
    try:
        # Ctrl-C waits until nothing is half done: no entry half written, no job half handed over.
        with stoppable() as is_interrupted:
            yield from _as_done(pool, iter(jobs), is_interrupted, ahead=2 * workers)
        finished = True
    finally:
        pool.shutdown(wait=True, kill_workers=not finished)


def _as_done(
    pool: Any, jobs: Iterator[FoldJob], is_interrupted: Callable[[], bool], *, ahead: int
) -> Iterator[Outcome]:
    """Outcomes as they come. Only so many jobs are handed over ahead: what is handed over cannot be taken back."""
    waiting = {pool.submit(_run, job) for job in islice(jobs, ahead)}
    while waiting:
        done, waiting = wait(waiting, timeout=LOOK, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()
        if is_interrupted():
            raise KeyboardInterrupt
        waiting |= {pool.submit(_run, job) for job in islice(jobs, len(done))}


def _begin(setting: EvaluationSetting) -> None:
    """Keep what all jobs share. Ctrl-C is for the process that waits; this one ends when that has ended, in whatever
    way.
    """
    global _setting
    parent, _setting = os.getppid(), setting

    def end_with_parent() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=end_with_parent, daemon=True).start()


def _run(job: FoldJob) -> Outcome:
    assert _setting is not None
    return run(_setting, job)


Progress: TypeAlias = Callable[[int, int, str], None]
"""Told how many jobs are done, of how many, and which was the last."""


def work(
    setting: EvaluationSetting, jobs: Sequence[FoldJob], kept: Store, *, workers: int, progress: Progress
) -> list[Unmet]:
    """Do what is not kept yet; which demands cannot be met."""
    left = [rest for job in jobs if (rest := kept.left(job)) is not None]
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
        kept.add(outcome)
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


def collected(jobs: Sequence[FoldJob], kept: Store) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[Unmet]]:
    """The measures and figures that are kept, in the order of what was asked, and models that could not be measured."""
    rows: list[dict[str, Any]] = []
    figures: list[dict[str, Any]] = []
    empty: dict[Unmet, None] = {}
    for job in jobs:
        shared = {"method": name_of(job.way), "k": job.k, "fold": job.fold}
        for model, learner in job.wanted:
            values = kept.get(kept.key(job, model, learner))
            if values == {}:
                why = f"the model '{model}' has no rows to learn from, or none to test on."
                empty[Unmet(name_of(job.way), job.k, job.fold, why)] = None
            rows += [
                {**shared, "learner": learner, "model": model, "part": part, "measure": measure, "value": value}
                for part, measures in (values or {}).items()
                for measure, value in measures.items()
            ]
        figures += [
            {**shared, "figure": name, "target": target, "value": value}
            for name, target, value in kept.get(kept.key(job), [])
        ]
    return rows, figures, list(empty)
