# SPDX-License-Identifier: Apache-2.0
"""R23: what is left when models do without the most telling columns (figure 9 h of KDD 2006)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
import polars as pl

from anonfit_papers.datasets_tables import census_sources
from anonfit_papers.rankings import greedy_gain
from anonfit_papers.reproduction.census_parts import (
    CENSUS_SHARES,
    METHODS,
    PAPERS_BALANCE,
    PAPERS_NUMBER,
    CensusClass,
    divided,
    key,
    rows_in_words,
    scale,
    table,
)
from anonfit_papers.reproduction.comparing import difference
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.learner_words import J48_SETTINGS
from anonfit_papers.reproduction.learning import INFOGAIN, MEDIAN, TDS
from anonfit_papers.reproduction.paper_words import from_memory

K = 100
SOON = 3
"""Columns whose loss is looked at: after them all methods are near to knowing nothing."""


@cache
def order(folder: Path, of: CensusClass) -> tuple[str, ...]:
    """The columns, the most telling first."""
    task = table(folder, of)
    return tuple(greedy_gain(task.frame, task.target, task.quasi_identifiers))


def projected(of: CensusClass, settings: Settings, fold: int, method: str) -> Measured:
    """J48's accuracy without the most telling column, the two most telling, …"""
    holdout = divided(settings, fold, of)
    recoded = holdout.recoded(method, K)
    columns = order(settings.data, of)
    return {
        "accuracy": [
            recoded.tested("j48", holdout.targets[0], using=columns[dropped:]).accuracy
            for dropped in range(len(columns))
        ]
    }


def _cells(settings: Settings) -> list[tuple[int, str]]:
    return [(fold, method) for fold in range(scale(settings)[0]) for method in METHODS]


def _plan(of: CensusClass, settings: Settings) -> Iterator[Part]:
    for fold, method in _cells(settings):
        own = {
            **key(settings, "projection", of),
            "fold": fold,
            "method": method,
            "k": K,
            "order": order(settings.data, of),
        }
        yield Part(own, settings.choose(0.3, 3.0), partial(projected, of, settings, fold, method))


def _judge(of: CensusClass, settings: Settings, gave: Sequence[Measured]) -> Result:
    columns = order(settings.data, of)
    accuracies = {
        method: np.array(
            [part["accuracy"] for cell, part in zip(_cells(settings), gave, strict=True) if cell[1] == method]
        )
        for method in METHODS
    }  # (fold, dropped)
    mean = {method: numbers.mean(axis=0) for method, numbers in accuracies.items()}
    lost = {method: float(mean[method][0] - mean[method][SOON]) for method in METHODS}
    evidence = ", ".join(f"{method} {lost[method]:.2f}" for method in METHODS)
    evidence = f"points lost: {evidence}"
    fall = all(points > 0 for points in lost.values())
    checks = [Check(f"accuracy falls with {SOON} columns left out", fall, fall, evidence)]
    by_fold = {method: (numbers[:, 0] - numbers[:, SOON]).tolist() for method, numbers in accuracies.items()}
    for other in (INFOGAIN, MEDIAN):
        more = difference(by_fold[TDS], by_fold[other], folds=len(by_fold[TDS]))
        claim = f"after {SOON} columns TDS has lost more than {other}"
        checks.append(Check(claim, more.mean > 0, more.mean > 0, evidence, more.is_weak))
    rows = [
        {
            "dropped": dropped,
            "last dropped": columns[dropped - 1] if dropped else "",
            **{method: round(float(mean[method][dropped]), 2) for method in METHODS},
        }
        for dropped in range(len(columns))
    ]
    places = range(len(columns))
    lines = tuple(Line.of(method, places, accuracies[method].T.tolist()) for method in METHODS)
    panel = Panel("J48", "most telling columns left out", "test accuracy in %", lines)
    figure = Figure(f"Models that do without columns: {table(settings.data, of).name}, k = {K}", (panel,))
    notes = (
        f"Order of the columns by greedy information gain on the original: {', '.join(columns)}.",
        rows_in_words(settings, of),
    )
    return Result(pl.DataFrame(rows), figure, tuple(checks), notes)


def _experiment(name: str, of: CensusClass, title: str) -> Experiment:
    return Experiment(
        name,
        title,
        "KDD 2006, figure 9 h",
        ("C10",),
        "Accuracy falls as the most predictive columns are left out, and fastest for TDS.",
        f"Every method loses accuracy, and of the three TDS most, once the {SOON} most telling columns are left out.",
        f"{of.reading} Fastest is read as the most points lost once {SOON} columns are left out. "
        + from_memory(f"k = {K}, of which we are unsure"),
        CENSUS_SHARES[of],
        f"{J48_SETTINGS}.",
        partial(_plan, of),
        partial(_judge, of),
        census_sources,
        "The folds of R19; columns ranked by greedy information gain on the original table.",
    )


PROJECTION = _experiment("R23", PAPERS_BALANCE, "Models that do without columns")
PROJECTION_BY_NUMBER = _experiment("R38", PAPERS_NUMBER, "Models that do without columns, divided at 30,000")
