# SPDX-License-Identifier: Apache-2.0
"""The jobs of an evaluation that are left to do, done and kept; and what is kept, as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from anonfit.errors import RequestError
from anonfit.evaluation.jobs import Job, Outcome, Setting, name_of
from anonfit.evaluation.models import Task
from anonfit.evaluation.result import Unmet
from anonfit.evaluation.store import Keys, Store
from anonfit.evaluation.workers import outcomes

__all__ = ["Progress", "collected", "pairs_of", "work"]

Progress: TypeAlias = Callable[[int, int, str], None]
"""Told how many jobs are done, of how many, and which was the last."""


def pairs_of(setting: Setting) -> Iterator[tuple[str, str]]:
    """The models and learners that fit together."""
    for task in setting.tasks:
        for one in setting.learners:
            if one.predicts == task.labels.predicts:
                yield task.model.title, one.name


def work(
    setting: Setting, jobs: Sequence[Job], kept: Store, keys: Keys, *, workers: int, progress: Progress
) -> list[Unmet]:
    """Do what is not kept yet; which demands cannot be met."""
    by_title = {task.model.title: task for task in setting.tasks}
    left = [found for job in jobs if (found := _left(job, keys, kept, by_title)) is not None]
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
        kept.add(dict(_entries(outcome, keys, by_title)))
        done += 1
        progress(done, len(jobs), job.title)
    return sorted(unmet, key=lambda one: (one.method, one.k or 0, one.fold))


def _prepare(setting: Setting) -> None:
    """Compile once, so that no process has to."""
    from anonfit.engines.memory.warming import is_compiled, warm_refining, warm_up

    models = setting.spec.privacy.has_models
    if not is_compiled(models=models):
        warm_up(models=models)
    if setting.spec.method.capabilities.refines and not is_compiled(models=models, refining=True):
        warm_refining(models=models)


def _left(job: Job, keys: Keys, kept: Store, tasks: Mapping[str, Task]) -> Job | None:
    """What is still to be found by a job; None if nothing is."""
    wanted = frozenset(
        (title, name) for title, name in job.wanted if keys.of(job.way, job.k, job.fold, tasks[title], name) not in kept
    )
    figures = job.figures and keys.of(job.way, job.k, job.fold) not in kept
    return replace(job, wanted=wanted, figures=figures) if wanted or figures else None


def _entries(outcome: Outcome, keys: Keys, tasks: Mapping[str, Task]) -> Iterator[tuple[str, Any]]:
    job = outcome.job
    for one in outcome.measured:
        yield keys.of(job.way, job.k, job.fold, tasks[one.model], one.learner), one.values
    if job.figures and not outcome.fault:
        figures = [[one.name, one.target, one.value] for one in outcome.figures]
        yield keys.of(job.way, job.k, job.fold), figures


def collected(
    setting: Setting, jobs: Sequence[Job], kept: Store, keys: Keys
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[Unmet]]:
    """The measures and figures that are kept, in the order of what was asked, and models that could not be measured."""
    rows: list[dict[str, Any]] = []
    figures: list[dict[str, Any]] = []
    empty: dict[Unmet, None] = {}
    for job in jobs:
        shared = {"method": name_of(job.way), "k": job.k, "fold": job.fold}
        for task in setting.tasks:
            for one in setting.learners:
                key = keys.of(job.way, job.k, job.fold, task, one.name)
                found = kept.get(key, None)
                if found == {}:
                    why = f"the model '{task.model.title}' has no rows to learn from, or none to test on."
                    empty[Unmet(name_of(job.way), job.k, job.fold, why)] = None
                place = {**shared, "learner": one.name, "model": task.model.title}
                rows += [
                    {**place, "part": part, "measure": measure, "value": value}
                    for part, measures in (found or {}).items()
                    for measure, value in measures.items()
                ]
        key = keys.of(job.way, job.k, job.fold)
        figures += [
            {**shared, "figure": name, "target": target, "value": value} for name, target, value in kept.get(key, [])
        ]
    return rows, figures, list(empty)
