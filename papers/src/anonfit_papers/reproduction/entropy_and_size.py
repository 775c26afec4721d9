# SPDX-License-Identifier: Apache-2.0
"""R20: which figure of a release tells how well a class is predicted from it (figure 9 d–e of KDD 2006)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import polars as pl

from anonfit_papers.datasets_tables import census_sources
from anonfit_papers.reproduction.census_parts import (
    CENSUS_SHARES,
    PAPERS_BALANCE,
    PAPERS_NUMBER,
    CensusClass,
    gave_of,
    learned_parts,
    rows_in_words,
    scale,
    table,
)
from anonfit_papers.reproduction.comparing import correlation, correlations_test, rank_correlation
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Result, Settings
from anonfit_papers.reproduction.learner_words import J48_SETTINGS
from anonfit_papers.reproduction.learning import INFOGAIN, MEDIAN, TDS
from anonfit_papers.reproduction.paper_words import K_OURS

METHODS = (INFOGAIN, TDS, MEDIAN)
LEARNER = "j48"


def _judge(of: CensusClass, settings: Settings, gave: Sequence[Measured]) -> Result:
    _, _, ks = scale(settings, of)
    rows = []
    for method in METHODS:
        for k in ks:
            parts = gave_of(settings, gave, method, k, of)
            mean = {name: float(np.mean([part[name] for part in parts])) for name in (LEARNER, "entropy", "size")}
            rows.append(
                {
                    "method": method,
                    "k": k,
                    "accuracy of J48": round(mean[LEARNER], 3),
                    "conditional entropy": round(mean["entropy"], 4),
                    "average class size": round(mean["size"], 2),
                }
            )
    return judged(of, settings, pl.DataFrame(rows))


def judged(of: CensusClass, settings: Settings, shown: pl.DataFrame) -> Result:
    """What the table of the experiment says: its numbers, as they are printed, are all that is judged."""
    accuracy, entropy, size = (shown[name].to_list() for name in shown.columns[2:])
    by_entropy, by_size = correlation(accuracy, entropy), correlation(accuracy, size)
    chance = correlations_test(accuracy, entropy, size)
    ranks = rank_correlation(accuracy, entropy), rank_correlation(accuracy, size)
    checks = (
        Check("accuracy falls with entropy", by_entropy < 0, by_entropy < 0, f"correlation {by_entropy:+.2f}"),
        Check(
            "entropy tells more of accuracy than class size",
            abs(by_entropy) > abs(by_size),
            abs(by_entropy) > abs(by_size),
            f"correlation {by_entropy:+.2f} with entropy, {by_size:+.2f} with class size (of ranks {ranks[0]:+.2f}, "
            f"{ranks[1]:+.2f}), p of the difference = {chance:.2g}, if methods and k told independently of each "
            "other, which they do not",
            # All points are of the same folds: no p of theirs shows that chance is ruled out.
            weak=True,
        ),
    )

    def panel(name: str, *, log_x: bool) -> Panel:
        lines = []
        for method in METHODS:
            own = shown.filter(pl.col("method") == method)
            lines.append(Line(method, own[name].to_list(), own["accuracy of J48"].to_list()))
        label = name if log_x else f"{name} in bits"
        return Panel("", label, "test accuracy of J48 in %", tuple(lines), "points", log_x=log_x)

    figure = Figure(
        f"What tells of accuracy: {table(settings.data, of).name}, each point one method and k",
        (panel("conditional entropy", log_x=False), panel("average class size", log_x=True)),
    )
    notes = (
        "Figures of the training folds; accuracy of the test folds; means over folds.",
        *_parts_of_it(shown),
        rows_in_words(settings, of),
    )
    return Result(shown, figure, checks, notes)


def _parts_of_it(shown: pl.DataFrame) -> Iterator[str]:
    """What some of the points say: those without the smallest k, and those of each method."""

    def both(points: pl.DataFrame) -> str:
        accuracy, entropy, size = (points[name].to_list() for name in points.columns[2:])
        return f"{correlation(accuracy, entropy):+.2f} with entropy, {correlation(accuracy, size):+.2f} with class size"

    least = min(shown["k"].to_list())
    further = shown.filter(pl.col("k") > least)
    if further["k"].n_unique() < 2:
        return
    methods = "; ".join(f"{method} {both(shown.filter(pl.col('method') == method))}" for method in METHODS)
    yield (
        f"Correlation without k = {least}: {both(further)}. Of each method alone: {methods}. Where a method has "
        "more accuracy with more entropy, models learn its small groups by heart: low entropy of training rows "
        "promises nothing there."
    )


def _experiment(name: str, of: CensusClass, title: str, folds: str) -> Experiment:
    return Experiment(
        name,
        title,
        "KDD 2006, figure 9 d–e",
        ("C5",),
        "Average class size does not tell how accurate a model will be; the conditional entropy of the class does: low "
        "entropy means high accuracy.",
        "The correlation of accuracy with entropy is negative, and stronger than that with average class size.",
        f"{of.reading} All methods and k are looked at together, since the paper's curves are; other k move both "
        f"correlations. {K_OURS} Chance is asked by Williams's test of two correlations with the same numbers, each "
        "method and k as one trial. These share rows, folds and curves, so the test finds too much: whatever its p, "
        "the claim holds weakly at the most.",
        CENSUS_SHARES[of],
        f"{J48_SETTINGS}.",
        partial(learned_parts, of=of),
        partial(_judge, of),
        census_sources,
        f"The folds, methods and k of {folds}; test accuracy of J48.",
    )


ENTROPY_AND_SIZE = _experiment("R20", PAPERS_BALANCE, "Conditional entropy and class size", "R19")
ENTROPY_AND_SIZE_BY_NUMBER = _experiment(
    "R36", PAPERS_NUMBER, "Conditional entropy and class size, divided at 30,000", "R35"
)
