# SPDX-License-Identifier: Apache-2.0
"""R7 and R9: errors on masked Adult over k (figures 5 and 6 a of TKDE 2007)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import polars as pl

from anonfit_papers.datasets import ADULT
from anonfit_papers.reproduction.adult_parts import (
    READING,
    SETTING,
    SHARES,
    TOP,
    curve_figure,
    curve_parts,
    curve_rows,
    errors_of,
    gap_check,
)
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Result, Settings
from anonfit_papers.reproduction.learner_words import J48_SETTINGS
from anonfit_papers.reproduction.masking import J48
from anonfit_papers.reproduction.paper_words import AUTHORS_K

QUICK = " Quick: Top7 and two k."
ERRORS = "Errors in percent. BE: on the original; UE: with the columns removed; AE: with them masked."


def _far_below(errors: dict[int, float], upper: float, points: float) -> Check:
    worst = max(errors, key=lambda k: errors[k])
    fine = errors[worst] < upper - points
    evidence = f"AE at most {errors[worst]:.2f} % (k = {worst}), UE {upper:.2f} %"
    return Check(f"AE is at least {points:g} points below UE", fine, fine, evidence)


def _generalized(settings: Settings, gave: Sequence[Measured]) -> Result:
    base, upper, errors = errors_of(settings, gave)
    chosen = {k: error for k, error in errors[TOP].items() if k <= 600}
    gaps = {k: error - base for k, error in chosen.items()}
    mean = sum(gaps.values()) / len(gaps)
    checks = (
        gap_check(f"Top{TOP}: AE − BE below 2 points for 20 ≤ k ≤ 600", gaps, 2.0, 2.8),
        Check("its mean is at most 2 points", mean <= 2.0, mean <= 2.0, f"{mean:.2f} points"),
        _far_below(chosen, upper[TOP], 3.0),
    )
    figure = curve_figure(settings, gave, "J48, generalized and discretized")
    return Result(pl.DataFrame(curve_rows(settings, gave)), figure, checks, (ERRORS,))


GENERALIZED_ADULT = Experiment(
    "R7",
    "Errors when Adult is generalized",
    "TKDE 2007, figure 6 a",
    ("T5",),
    "With taxonomies, AE − BE is below 2 points for Top7 and 20 ≤ k ≤ 600, and AE is much lower than UE.",
    "AE − BE at most 2.8 points, on average at most 2.0; AE at least 3 points below UE.",
    f"{READING} Much lower is read as 3 points at the least. {AUTHORS_K}",
    SHARES,
    f"{J48_SETTINGS}.",
    partial(curve_parts, suppress=False, name=J48),
    _generalized,
    lambda _: ADULT,
    SETTING + QUICK,
)


def _suppressed(settings: Settings, gave: Sequence[Measured]) -> Result:
    base, upper, errors = errors_of(settings, gave)
    gaps = {k: error - base for k, error in errors[TOP].items()}
    checks = (
        gap_check(f"Top{TOP}: AE − BE below 2.5 points for 20 ≤ k ≤ 1000", gaps, 2.5, 3.2),
        _far_below(errors[TOP], upper[TOP], 3.0),
    )
    falls = [(low, high) for (low, before), (high, after) in pairwise(errors[TOP].items()) if after < before]
    notes = [ERRORS]
    if falls:
        notes.append(f"As in the paper, AE does not always grow: it falls {_between(falls)}.")
    figure = curve_figure(settings, gave, "J48, suppressed and discretized")
    return Result(pl.DataFrame(curve_rows(settings, gave)), figure, checks, tuple(notes))


def _between(pairs: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"from k = {low} to {high}" for low, high in pairs)


SUPPRESSED_ADULT = Experiment(
    "R9",
    "Errors when Adult is suppressed",
    "TKDE 2007, figure 5",
    ("T5",),
    "Without taxonomies, AE − BE is below 2.5 points for Top7 and 20 ≤ k ≤ 1000, and AE is much lower than UE.",
    "AE − BE at most 3.2 points; AE at least 3 points below UE.",
    f"{READING} Names are suppressed one by one, numbers are cut. Much lower is read as 3 points at the least. "
    f"{AUTHORS_K}",
    SHARES,
    f"{J48_SETTINGS}.",
    partial(curve_parts, suppress=True, name=J48),
    _suppressed,
    lambda _: ADULT,
    SETTING + QUICK,
)
