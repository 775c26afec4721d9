# SPDX-License-Identifier: Apache-2.0
"""R7, R9 and R10: errors on masked Adult over k (figures 5 and 6 of TKDE 2007)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import polars as pl

from anonfit_papers.datasets import ADULT
from anonfit_papers.reproduction.adult_parts import (
    SETTING,
    TOP,
    curve_figure,
    curve_parts,
    curve_rows,
    errors_of,
    gap_check,
)
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.masking import J48

BAYES, WEKA_BAYES = "naive-bayes", "weka-naive-bayes"
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
    partial(curve_parts, suppress=True, name=J48),
    _suppressed,
    lambda _: ADULT,
    SETTING + QUICK,
)


def _bayes_parts(settings: Settings) -> list[Part]:
    return [part for name in (BAYES, WEKA_BAYES) for part in curve_parts(settings, suppress=False, name=name)]


def _bayes(settings: Settings, gave: Sequence[Measured]) -> Result:
    half = len(gave) // 2
    own, weka = gave[:half], gave[half:]
    base, _, errors = errors_of(settings, own)
    gaps = {k: error - base for k, error in errors[TOP].items()}
    worst = max(gaps, key=lambda k: gaps[k])
    small = {(top, k): error - base for top in errors if top <= TOP for k, error in errors[top].items() if k <= 180}
    (top, k), most = max(small.items(), key=lambda item: item[1])
    checks = (
        Check("the baseline error is 18.07", abs(base - 18.07) <= 0.1, 16.5 <= base <= 19, f"{base:.2f} (paper 18.07)"),
        Check(
            f"Top{TOP}: AE − BE at most 1.5 points for 20 ≤ k ≤ 1000",
            gaps[worst] <= 1.5,
            gaps[worst] <= 2.0,
            f"at most {gaps[worst]:.2f} points, at k = {worst}",
        ),
        Check(
            "AE below BE for k ≤ 180, Top5 and Top7",
            most < 0,
            most <= 0.2,
            f"AE − BE at most {most:+.2f} points, Top{top} at k = {k}",
        ),
    )
    rows = [
        {"learner": name, **row}
        for name, some in (("normal", own), ("supervised discretization", weka))
        for row in curve_rows(settings, some)
    ]
    notes = (
        ERRORS,
        "The paper's program (Orange, about 2006) treated numbers in a way that it does not say. Judged is naive Bayes "
        "with normal distributions; Weka's with supervised discretization stands beside it.",
    )
    return Result(pl.DataFrame(rows), curve_figure(settings, own, "Naive Bayes, generalized"), checks, notes)


NAIVE_BAYES_ADULT = Experiment(
    "R10",
    "Errors of naive Bayes when Adult is generalized",
    "TKDE 2007, figure 6 b",
    ("T6",),
    "For naive Bayes BE is 18.07 %, AE − BE at most 1.5 points for 20 ≤ k ≤ 1000, and AE is below BE for k ≤ 180 (Top5 "
    "and Top7).",
    "BE 16.5 to 19 %; AE − BE at most 2 points; AE at most 0.2 points above BE for k ≤ 180.",
    _bayes_parts,
    _bayes,
    lambda _: ADULT,
    SETTING.replace("J48 of Weka in place of C4.5", "naive Bayes in place of Orange's") + QUICK,
)
