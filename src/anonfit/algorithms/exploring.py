# SPDX-License-Identifier: Apache-2.0
"""Where the use of a release is not known: many ways to weigh columns are tried, those that no other betters are kept,
and one of them is published by a rule that is stated.

A candidate depends on its number and the seed only, so each can be made again; a time budget only says how many are
tried. Nothing but the chosen one leaves the program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import numpy as np

from anonfit.algorithms.result import Anonymized
from anonfit.runtime.process import Stage, silent, stoppable
from anonfit.workload.targets import Workload

CANDIDATES = 32
"""How many are tried where no time is given."""
MOST = 10_000
"""No more are tried, whatever the time."""
WAYS = ("first", "product", "blend", "probabilistic", "clustering")
RULE = (
    "of those that no other one betters in some figure without being worse in another, the one whose figures, each "
    "scaled from 0 (the best of these) to 1 (the worst), add up to the least; of equal ones the first"
)
"""By what one is published."""
RULE_OF_TARGETS = f"of those by which every target is predicted as well as by what targets alone ask for, {RULE}"
"""The same where there are targets."""
SEEDS = 1 << 31
METHOD = ("criterion", "weight_rule", "alpha", "seed")


@dataclass(frozen=True, slots=True)
class CandidateRule:
    """A way to choose splits that is tried; weights have few digits, so that a user can ask for it by hand."""

    number: int
    criterion: str
    weights: Mapping[str, float]
    weight_rule: str | None = None
    alpha: float = 0.5
    seed: int = 0

    def workload(self, asked: Workload) -> Workload:
        """What was asked, in this way."""
        words = {name: getattr(self, name) for name in METHOD}
        return replace(asked, **words | {"weights": self.weights, "weight_rule": self.weight_rule or "first"})


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate and its figures, of which less is better."""

    candidate: CandidateRule
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Explored:
    """What was tried, the Pareto front among it, and the chosen one with its regions (as places in `tried`)."""

    tried: tuple[Tried, ...]
    front: tuple[int, ...]
    chosen: int
    result: Anonymized

    @property
    def candidate(self) -> CandidateRule:
        """The chosen one."""
        return self.tried[self.chosen].candidate


def candidate(number: int, seed: int, stated: Mapping[str, float]) -> CandidateRule:
    """The candidate of a number: 0 is blind, 1 makes clusters, and the others draw a way, weights and a seed. Drawn
    weights are multiples of those in `stated`: how much each quasi-identifier matters, as far as it is known.
    """
    if number == 0:
        return CandidateRule(0, "median", {}, seed=seed)
    if number == 1:
        return CandidateRule(1, "clustering", dict(stated), seed=seed)
    # Seeds may be negative; a generator's may not.
    rng = np.random.default_rng([number, seed % (1 << 64)])
    way = WAYS[int(rng.integers(len(WAYS)))]
    # Three digits, so that what is above 0 stays so.
    weights = {name: float(f"{weight * float(rng.exponential()):.3g}") for name, weight in stated.items()}
    alpha = round(float(rng.uniform(0.1, 0.9)), 2) if way == "blend" else 0.5
    own = int(rng.integers(SEEDS))
    if way == "clustering":
        return CandidateRule(number, "clustering", weights, seed=own)
    return CandidateRule(number, "weighted", weights, way, alpha, own)


def front(figures: Sequence[Sequence[float]]) -> list[int]:
    """The places of the Pareto front: no other is better in some figure and worse in none; equal ones all stay."""
    table = np.array(figures, dtype=np.float64)
    betters = [(table <= figure).all(axis=1) & (table < figure).any(axis=1) for figure in table]
    return [place for place, better in enumerate(betters) if not better.any()]


def nearest(figures: Sequence[Sequence[float]]) -> int:
    """The place of the one whose scaled figures add up to the least; of equal ones the first."""
    table = np.array(figures, dtype=np.float64)
    best, width = table.min(axis=0), np.ptp(table, axis=0)
    scaled = (table - best) / np.where(width > 0, width, 1.0)
    return int(np.argmin(np.round(scaled.sum(axis=1), 9)))


def explore(
    asked: Workload,
    stated: Mapping[str, float],
    make: Callable[[Workload], Anonymized],
    measure: Callable[[Anonymized], Mapping[str, float]],
    *,
    served: CandidateRule | None = None,
    errors: Sequence[str] = (),
    seconds: float | None = None,
    stage: Stage = silent,
) -> Explored:
    """Try candidates until the time is over (at least two) or, without a time, enough were tried, and choose one. An
    interrupt ends the search as the time does.

    `asked` is what is asked beside the way to choose splits, `make` makes regions for a workload, and `measure` gives
    the figures of regions, of which less is better. What is `served` is tried first, and nothing is chosen that is
    worse in one of the figures `errors`.
    """
    end = math.inf if seconds is None else monotonic() + seconds
    most = CANDIDATES if seconds is None else MOST
    tried: list[Tried] = []
    with stoppable() as stopped:
        while len(tried) < most and (len(tried) < 2 or not (stopped() or monotonic() >= end)):
            number = len(tried)
            stage(f"Trying way {number + 1} to weigh columns")
            if served is None:
                rule = candidate(number, asked.seed, stated)
            else:
                rule = replace(candidate(number - 1, asked.seed, stated), number=number) if number else served
            tried.append(Tried(rule, measure(make(rule.workload(asked)))))
    figures = [list(trial.figures.values()) for trial in tried]
    first = tried[0].figures
    fit = [place for place, trial in enumerate(tried) if all(trial.figures[name] <= first[name] for name in errors)]
    kept = [fit[place] for place in front([figures[place] for place in fit])]
    chosen = kept[nearest([figures[place] for place in kept])]
    # Made again: the regions of a whole front would take much memory.
    return Explored(tuple(tried), tuple(kept), chosen, make(tried[chosen].candidate.workload(asked)))


def exploration_record(explored: Explored, *, rule: str, seconds: float | None, seed: int) -> dict[str, Any]:
    """The exploration as the internal record has it: every candidate with what it takes to make it again."""
    lines = [
        {
            "number": trial.candidate.number,
            "method": {name: getattr(trial.candidate, name) for name in METHOD},
            "weights": dict(trial.candidate.weights),
            "figures": dict(trial.figures),
            "on_front": place in explored.front,
        }
        for place, trial in enumerate(explored.tried)
    ]
    return {"rule": rule, "seed": seed, "time_budget": seconds, "published": explored.chosen, "candidates": lines}
