# SPDX-License-Identifier: Apache-2.0
"""R18: rows that a selection gets too many, by k (figure 11 of KDD 2006)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.recoding.recoding import Recoding
from anonfit_papers.agrawal import agrawal
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.learner_words import NO_CLASSES, NOBODY
from anonfit_papers.reproduction.learning import MEDIAN, Holdout, recode
from anonfit_papers.reproduction.paper_words import K_OURS, from_memory

ROWS = 1000
KS = (2, 5, 10, 25, 50, 100, 250)
RECTANGLES = (((20, 40), (50_000, 100_000)), ((40, 60), (75_000, 125_000)), ((60, 81), (25_000, 75_000)))
"""Function 2: ages and salaries from the first end up to, not including, the second. Function 2 includes it, but no
salary is exactly there.
"""
SELECTION, RESTRICTED = "Selection", "Median, age and salary"
METHODS = (SELECTION, RESTRICTED, MEDIAN)


def imprecision(recoding: Recoding, rows: pl.DataFrame) -> int:
    """How many rows too many the three selections get, together.

    Args:
        recoding: The recoding.
        rows: The rows it was made from, with `age` (whole numbers) and `salary`.

    Returns:
        Rows whose region overlaps a rectangle, less rows that lie in it; summed over the rectangles.
    """
    shown = recoding.apply(rows, values="bounds")
    too_many = 0
    for ages, salaries in RECTANGLES:
        overlaps, inside = np.ones(len(rows), bool), np.ones(len(rows), bool)
        for name, (low, high) in (("age", ages), ("salary", salaries)):
            raw = rows[name].to_numpy()
            inside &= (raw >= low) & (raw < high)
            overlaps &= _end(shown, f"{name}_lower", -np.inf) < high
            overlaps &= _end(shown, f"{name}_upper", np.inf) > low
        too_many += int(overlaps.sum()) - int(inside.sum())
    return too_many


def _end(shown: pl.DataFrame, name: str, opened: float) -> NDArray[np.float64]:
    """One end of each row's interval; an open one is beyond everything."""
    ends: NDArray[np.float64] = shown[name].cast(float).fill_null(opened).to_numpy()
    return ends


def trial(number: int, ks: Sequence[int]) -> Measured:
    """The imprecision of each method for each k, on one table."""
    rows = agrawal(ROWS, seed=number).drop("group")
    holdout = Holdout.synthetic(rows, rows, [])
    wheres = [
        f"age >= {ages[0]} and age < {ages[1]} and salary >= {salaries[0]} and salary < {salaries[1]}"
        for ages, salaries in RECTANGLES
    ]
    words: dict[str, dict[str, Any]] = {
        SELECTION: {"criterion": "selection", "selections": wheres},
        RESTRICTED: {"split_on": ["age", "salary"]},
        MEDIAN: {},
    }
    return {method: [imprecision(recode(holdout, MEDIAN, k, **words[method]), rows) for k in ks] for method in METHODS}


def _plan(settings: Settings) -> Iterator[Part]:
    for number in range(settings.choose(3, 25)):
        yield Part({"of": "imprecision", "trial": number, "rows": ROWS, "ks": KS}, 0.8, partial(trial, number, KS))


def _judge(_: Settings, gave: Sequence[Measured]) -> Result:
    excess = {method: np.array([part[method] for part in gave], dtype=np.float64) for method in METHODS}  # (trial, k)
    means = {method: numbers.mean(axis=0) for method, numbers in excess.items()}
    checks = []
    for first, second in ((SELECTION, RESTRICTED), (RESTRICTED, MEDIAN)):
        share = float((means[first] <= means[second]).mean())
        worst = (means[first] - means[second]).max()
        evidence = f"for {100 * share:.0f} % of the k; nearest {abs(worst):.1f} rows {'more' if worst > 0 else 'fewer'}"
        checks.append(Check(f"'{first}' at most '{second}'", share == 1, share >= 0.9, evidence))
    for method in METHODS:
        steps = np.diff(means[method])
        evidence = f"{means[method][0]:.0f} rows at k = {KS[0]}, {means[method][-1]:.0f} at k = {KS[-1]}"
        grows = bool((steps >= 0).all())
        checks.append(Check(f"'{method}' grows with k", grows, grows, evidence))
    rows = [
        {"k": k, **{method: round(float(means[method][place]), 1) for method in METHODS}} for place, k in enumerate(KS)
    ]
    lines = tuple(Line.of(method, KS, excess[method].T.tolist()) for method in METHODS)
    panel = Panel("function 2 as three selections", "k", "rows too many", lines, log_x=True)
    return Result(
        pl.DataFrame(rows),
        Figure(f"Imprecision of selections, {ROWS:,} rows, {len(gave)} tables", (panel,)),
        tuple(checks),
        ("Rows that the three selections get beyond those they ask for, summed over the selections.",),
    )


IMPRECISION = Experiment(
    "R18",
    "Imprecision of a selection",
    "KDD 2006, figure 11",
    ("C8",),
    "Imprecision grows with k, and is smallest where the selection is part of the workload.",
    "Selection ≤ Median over age and salary ≤ Median over all columns for at least 90 % of the k; each grows with k.",
    "The three rectangles are separate selections with the constants of Agrawal's function 2, as printed in 1993; "
    "imprecision is the number of rows answered beyond those asked for, summed over the three. "
    f"{from_memory('1,000 records')} {K_OURS}",
    NO_CLASSES,
    NOBODY,
    _plan,
    _judge,
    setting="Agrawal's function 2 as three rectangles of age and salary; 1,000 rows, the mean of 25 tables (quick: "
    "3); the paper has one table.",
)
