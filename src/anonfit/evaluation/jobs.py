# SPDX-License-Identifier: Apache-2.0
"""The work of an evaluation, in jobs that are done in any order and in any process: a method, a k and a fold each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import AnonfitError, DemandError
from anonfit.evaluation.figures import Figure, release_figures
from anonfit.evaluation.judging import COMBINED, Division, Measured, learned, measured, released
from anonfit.evaluation.learners import Learner
from anonfit.evaluation.methods import BASELINES, ORIGINAL, REMOVED, Method
from anonfit.evaluation.models import Task
from anonfit.evaluation.selecting import Learned
from anonfit.spec.learning import Asked
from anonfit.spec.model import Spec
from anonfit.tables.schema import Role, Schema

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Job", "Outcome", "Setting", "fold_of_rows", "jobs_of", "name_of", "run"]


@dataclass(frozen=True)
class Setting:
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
    latest: dict[tuple[str, int | None], Learned | None] = field(default_factory=dict, repr=False)

    def division(self, fold: int) -> Division:
        """The rows of a fold are tested on, the others learned from."""
        is_test = self.fold_of == fold
        return Division(self.schema, self.frame[np.flatnonzero(~is_test)], self.frame[np.flatnonzero(is_test)])


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
    """What a job found, or why it could not be done."""

    job: Job
    measured: tuple[Measured, ...] = ()
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
    found: NDArray[np.int64] = drawn[units]
    return found


def run(setting: Setting, job: Job) -> Outcome:
    """Do a job."""
    try:
        return _done(setting, job)
    except AnonfitError as error:
        # Some errors cannot cross from one process to another, but their words can.
        return Outcome(job, fault=str(error), is_unmet=isinstance(error, DemandError))


def _done(setting: Setting, job: Job) -> Outcome:
    division = setting.division(job.fold)
    seed = setting.seed + job.fold
    if setting.protocol == COMBINED and job.way not in (ORIGINAL, REMOVED):
        found = _combined(setting, job)
    else:
        found = learned(job.way, setting.spec, setting.schema, division.training, k=job.k, seed=seed)
    release = released(job.way, division, found, protocol=setting.protocol, encoding=setting.encoding)
    results = []
    for task in setting.tasks:
        chosen = [one for one in setting.learners if (task.model.title, one.name) in job.wanted]
        results += measured(release, division, task, chosen, seed)
    figures = release_figures(found, setting.spec, setting.tasks, setting.asked) if job.figures and found else []
    return Outcome(job, tuple(results), tuple(figures))


def _combined(setting: Setting, job: Job) -> Learned | None:
    """The recoding of all rows; the folds of one method and k follow each other, so the last one is kept."""
    key = (name_of(job.way), job.k)
    if key not in setting.latest:
        setting.latest.clear()
        setting.latest[key] = learned(job.way, setting.spec, setting.schema, setting.frame, k=job.k, seed=setting.seed)
    return setting.latest[key]
