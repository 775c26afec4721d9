# SPDX-License-Identifier: Apache-2.0
"""R28 and R29: how many people's class k-anonymous trees give away, and what a limit of confidence costs (section 4.2
of PKDD 2006).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from anonfit_papers.datasets import ADULT
from anonfit_papers.reproduction.adult_parts import SHARES
from anonfit_papers.reproduction.anonymous_trees import TRAINING, grown_part
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.learner_words import TREE_SETTINGS

VARIANTS = ("id3", "c45")
KS = (10, 25, 50, 75, 100, 250, 500, 750, 1000, 2000)
QUICK_KS = (10, 75, 500, 1000)
FLOOR = 0.751
LIMITS = (FLOOR, 0.752, 0.76, 0.78, 0.8, 0.825, 0.85, 0.875, 0.9, 0.925, 0.95, 0.975, 1.0)
QUICK_LIMITS = (FLOOR, 0.752, 0.85, 0.9, 1.0)
ALONE = 1
"""The k of trees whose spans are held to a confidence only."""
USEFUL = 0.5
"""Points below the majority's error from which on a tree is of use."""
MAJORITY = 100 * 3700 / 15_060
"""The error of who always says ≤50K, on the test rows."""


def _ks(settings: Settings) -> tuple[int, ...]:
    return settings.choose(QUICK_KS, KS)


def _limits(settings: Settings) -> tuple[float, ...]:
    return settings.choose(QUICK_LIMITS, LIMITS)


def _plan_exposure(settings: Settings) -> Iterator[Part]:
    for variant in VARIANTS:
        for k in _ks(settings):
            yield grown_part(settings, variant, k)


def _judge_exposure(settings: Settings, gave: Sequence[Measured]) -> Result:
    ks = _ks(settings)
    exposed = {
        variant: {k: gave[number * len(ks) + place]["exposed"] for place, k in enumerate(ks)}
        for number, variant in enumerate(VARIANTS)
    }
    first_safe = {
        variant: next((k for k in ks if not any(of[other] for other in ks if other >= k)), 0)
        for variant, of in exposed.items()
    }
    id3, c45 = exposed["id3"], exposed["c45"]
    shares = {k: c45[k] / TRAINING for k in ks}
    checks = (
        Check(
            "ID3 exposes nobody only for k beyond 750",
            all(id3[k] > 0 for k in ks if k <= 750) and all(id3[k] == 0 for k in ks if k > 750),
            all(id3[k] > 0 for k in ks if k <= 500) and all(id3[k] == 0 for k in ks if k >= 1000),
            f"nobody from k = {first_safe['id3']} on",
        ),
        Check(
            "C4.5 exposes fewer than 0.5 % at any k, and nobody from k = 75 on",
            max(shares.values()) < 0.005 and all(c45[k] == 0 for k in ks if k >= 75),
            max(shares.values()) < 0.005 and all(c45[k] == 0 for k in ks if k >= 100),
            f"{100 * max(shares.values()):.2f} % at most, nobody from k = {first_safe['c45']} on",
        ),
    )
    rows = [{"k": k, "ID3": id3[k], "C4.5": c45[k]} for k in ks]
    lines = (Line("ID3", ks, list(id3.values())), Line("C4.5", ks, list(c45.values())))
    panel = Panel("persons whose class is certain", "k", "persons", lines, log_x=True)
    notes = ("Persons of 30,162 who have a span in which all have one class.",)
    return Result(pl.DataFrame(rows), Figure("Exposed classes, Adult", (panel,)), checks, notes)


def _plan_limits(settings: Settings) -> Iterator[Part]:
    for variant in VARIANTS:
        for limit in _limits(settings):
            yield grown_part(settings, variant, ALONE, limit)


def _judge_limits(settings: Settings, gave: Sequence[Measured]) -> Result:
    limits = _limits(settings)
    trees = {
        variant: dict(zip(limits, gave[number * len(limits) : (number + 1) * len(limits)], strict=True))
        for number, variant in enumerate(VARIANTS)
    }
    errors = {variant: {limit: tree["error"] for limit, tree in of.items()} for variant, of in trees.items()}
    kept = [
        tree["highest"] <= limit + 1e-9
        for of in trees.values()
        for limit, tree in of.items()
        if tree["error"] is not None
    ]
    floor = all(of[FLOOR] is None and of[0.752] is not None for of in errors.values())
    useless = errors["id3"][0.85]
    first = {variant: _first_useful(of) for variant, of in errors.items()}
    lower = first["c45"] < first["id3"]
    checks = (
        Check(
            "no tree has a limit below 75.1 %", floor, floor, "none at 0.751, some at 0.752" if floor else "otherwise"
        ),
        Check(
            "ID3 learns nothing at 85 %",
            abs(useless - MAJORITY) < 1e-9,
            abs(useless - MAJORITY) <= USEFUL,
            f"error {useless:.2f} at 85 %, {MAJORITY:.2f} of the majority",
        ),
        Check(
            "C4.5 learns something at a lower limit than ID3",
            lower,
            lower,
            f"C4.5 {_from(first['c45'])}, ID3 {_from(first['id3'])}",
        ),
        Check("no span tells a class with more confidence", all(kept), all(kept), f"in {len(kept)} trees"),
    )
    rows = [
        {
            "limit": limit,
            **{name: _rounded(errors[variant][limit]) for name, variant in (("ID3", "id3"), ("C4.5", "c45"))},
        }
        for limit in limits
    ]
    lines = tuple(
        Line(name, [100 * limit for limit in limits[1:]], [errors[variant][limit] for limit in limits[1:]])
        for name, variant in (("ID3", "id3"), ("C4.5", "c45"))
    )
    panel = Panel("a limit of confidence and no k", "highest share of a class in a span, in %", "error in %", lines)
    notes = ("Error in percent of 15,060 test rows; empty where no tree keeps the limit.",)
    return Result(pl.DataFrame(rows), Figure("What a limit of confidence costs, Adult", (panel,)), checks, notes)


def _first_useful(errors: Mapping[float, float | None]) -> float:
    """The lowest limit at which a tree errs less than who always says the more frequent class; none is infinite."""
    useful = (limit for limit, error in errors.items() if error is not None and error < MAJORITY - USEFUL)
    return min(useful, default=math.inf)


def _from(limit: float) -> str:
    return f"from {100 * limit:.1f} % on" if limit < math.inf else "at none"


def _rounded(error: float | None) -> float | None:
    return None if error is None else round(error, 2)


_SETTING = "As in R26: ID3 on the 8 nominal columns of Adult, C4.5 on all 14."

EXPOSED_CLASSES = Experiment(
    "R28",
    "Classes that k-anonymous trees expose",
    "PKDD 2006, section 4.2",
    ("K4",),
    "The persons whose class an attacker infers with certainty drop to zero for ID3 only for k beyond 750; for C4.5 at "
    "k = 75, and are below 0.5 % for smaller k.",
    "ID3 nobody at k ≥ 1000 and somebody at k ≤ 500; C4.5 below 0.5 % for all k and nobody for k ≥ 100.",
    "Exposed are persons of spans in which all have the same class. The text prints k = 75 and 750; the others are "
    "ours.",
    SHARES,
    f"{TREE_SETTINGS}.",
    _plan_exposure,
    _judge_exposure,
    lambda _: ADULT,
    _SETTING,
)

CONFIDENCE_LIMITS = Experiment(
    "R29",
    "A limit of confidence instead of k",
    "PKDD 2006, figures 5 and 6",
    ("K5",),
    "The lowest limit that can be kept is 75.1 %; at 85 % and below ID3 learns nothing of use; C4.5 goes lower.",
    f"The floor exactly; the error of ID3 at 85 % within {USEFUL:g} points of the majority's.",
    "The limit is asked of every span that has persons, and of the root. With two classes it is the entropy "
    "l-diversity that the paper asks for: 85 % is l = 1.526. From which errors on a tree is of use is our own reading: "
    f"{USEFUL:g} points below the majority's. The text prints 75.1 and 85 %; the other limits are ours.",
    SHARES,
    f"{TREE_SETTINGS}.",
    _plan_limits,
    _judge_limits,
    lambda _: ADULT,
    f"{_SETTING} Every span has a class of at most the limit's share, and k is 1.",
)
