# SPDX-License-Identifier: Apache-2.0
"""Whether releases of one table that are kept break k together, asked without being told to: a recipient of two learns
what none of them says. The audits are jobs; this module only says which are due, and what was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

from anonfit.web.jobs import GONE, Job
from anonfit.web.views import WorkspaceView

Pair: TypeAlias = tuple[str, str]
NEWEST = 5
"""So many runs are held against each other unasked, and against all that were handed over."""


@dataclass(frozen=True, slots=True)
class Broken:
    """Two runs that break k together."""

    numbers: tuple[int, int]
    ids: Pair
    k: int
    share: Any
    handed: int
    """How many of the two were handed over."""


def pairs_of(view: WorkspaceView) -> list[Pair]:
    """The runs of the table as it is now that are worth an audit together; those of one spec are one release."""
    kept = [job for job in view.runs if job.state == "done" and job.params.get("table") == view.table]
    first = {job.params.get("mark", job.id): job for job in reversed(kept)}
    newest = sorted(first.values(), key=lambda job: job.number, reverse=True)
    handed = [job for job in newest[NEWEST:] if job.params.get("handed")]
    return [(older.id, newer.id) for newer, older in combinations([*newest[:NEWEST], *handed], 2)]


def ask(view: WorkspaceView) -> bool:
    """Have audited what is due once no run is waited for; whether something is at work."""
    jobs = view.jobs.all("together")
    if any(not job.is_over for job in jobs):
        return True
    if any(not job.is_over for job in view.runs):
        return False
    asked = [job for job in jobs if job.state == "done" or _has_failed(job)]
    known = {tuple(pair) for job in asked for pair in job.params["pairs"]}
    due = [list(pair) for pair in pairs_of(view) if pair not in known]
    if due:
        view.jobs.submit("together", {"pairs": due, "title": "together"})
    return bool(due)


def _has_failed(job: Job) -> bool:
    """Whether asking again would be in vain; one that ended with its server did not fail."""
    return job.error is not None and job.error["kind"] != GONE["kind"]


def unchecked(view: WorkspaceView) -> str | None:
    """Why some runs could not be held against each other, if that is so."""
    failed = (job.error["message"] for job in view.jobs.all("together") if job.error and _has_failed(job))
    runs = {job.id for job in view.runs}
    unknown = (pair.get("fault") for ids, pair in _audited(view) if pair["holds"] is None and runs.issuperset(ids))
    return next((words for words in (*failed, *unknown) if words), None)


def _audited(view: WorkspaceView) -> Iterable[tuple[Pair, dict[str, Any]]]:
    """The pairs that were audited, and what was found of each."""
    results = [view.jobs.result(job.id) for job in view.jobs.all("together") if job.state == "done"]
    return {tuple(pair["runs"]): pair for result in results for pair in result.get("pairs", ())}.items()


def make_way(view: WorkspaceView) -> None:
    """A run that somebody starts comes first; what was not audited yet is asked for again later."""
    for job in view.jobs.all("together"):
        if not job.is_over:
            view.jobs.cancel(job.id)


def broken(view: WorkspaceView) -> Sequence[Broken]:
    """The pairs of runs that break k together, those that were handed over first."""
    runs = {job.id: job for job in view.runs}
    broken = []
    for (one, other), pair in _audited(view):
        if pair["holds"] is False and one in runs and other in runs:
            handed = sum(bool(runs[run].params.get("handed")) for run in (one, other))
            numbers = runs[one].number, runs[other].number
            broken.append(Broken(numbers, (one, other), pair["k"], pair["share"], handed))
    return sorted(broken, key=lambda pair: (-pair.handed, [-number for number in pair.numbers]))
