# SPDX-License-Identifier: Apache-2.0
"""Whether releases of one table that are kept break k together, asked without being told to: a recipient of two learns
what none of them says. The audits are jobs; this module only says which are due, and what was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

from anonfit.web.jobs import Job
from anonfit.web.views import View, number_of

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


def pairs_of(view: View) -> list[Pair]:
    """The runs of the table as it is now that are worth an audit together; those of one spec are one release."""
    kept = [job for job in view.runs if job.state == "done" and job.params.get("table") == view.table]
    first = {job.params.get("mark", job.id): job for job in reversed(kept)}
    newest = sorted(first.values(), key=number_of, reverse=True)
    handed = [job for job in newest[NEWEST:] if job.params.get("handed")]
    return [_pair(one, other) for one, other in combinations([*newest[:NEWEST], *handed], 2)]


def _pair(one: Job, other: Job) -> Pair:
    left, right = sorted((one, other), key=number_of)
    return left.id, right.id


def ask(view: View) -> bool:
    """Have audited what is due once no run is waited for; whether something is at work."""
    jobs = view.jobs.all("together")
    if any(not job.is_over for job in jobs):
        return True
    if any(not job.is_over for job in view.runs):
        return False
    known = {tuple(pair) for job in jobs if job.state != "cancelled" for pair in job.params["pairs"]}
    due = [list(pair) for pair in pairs_of(view) if pair not in known]
    if due:
        view.jobs.submit("together", {"pairs": due, "title": "together"})
    return bool(due)


def make_way(view: View) -> None:
    """A run that somebody starts comes first; what was not audited yet is asked for again later."""
    for job in view.jobs.all("together"):
        if not job.is_over:
            view.jobs.cancel(job.id)


def broken(view: View) -> Sequence[Broken]:
    """The pairs of runs that break k together, those that were handed over first."""
    found: dict[Pair, dict[str, Any]] = {}
    for job in view.jobs.all("together"):
        for each in view.jobs.result(job.id).get("pairs", ()) if job.state == "done" else ():
            one, other = each["runs"]
            found[one, other] = each
    runs = {job.id: job for job in view.runs}
    told = []
    for pair, each in found.items():
        if each["holds"] is False and all(run in runs for run in pair):
            both = [runs[run] for run in pair]
            handed = sum(bool(job.params.get("handed")) for job in both)
            told.append(Broken((number_of(both[0]), number_of(both[1])), pair, each["k"], each["share"], handed))
    return sorted(told, key=lambda each: (-each.handed, [-number for number in each.numbers]))
