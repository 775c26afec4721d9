# SPDX-License-Identifier: Apache-2.0
"""R22: what selections cost that have nothing to do with the class (figure 9 g of KDD 2006)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import polars as pl

from anonfit.evaluation.learners import learner
from anonfit_papers.datasets_tables import census_sources
from anonfit_papers.reproduction.census_parts import divided, key, rows_in_words, scale, table
from anonfit_papers.reproduction.comparing import mean_and_error
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.learning import INFOGAIN, MEDIAN

K = 50
METHODS = (INFOGAIN, MEDIAN)
SMALL = 3.0


def _counts(settings: Settings) -> tuple[int, ...]:
    return settings.choose((1, 2, 5), (1, 2, 5, 10, 25, 50, 100))


def grouped(settings: Settings, fold: int, method: str, groups: int) -> Measured:
    """J48's accuracy where the rows of each of some random groups are recoded apart, and one model learns from all."""
    holdout = divided(settings, fold)
    draw = np.random.default_rng((fold, groups))
    target = holdout.targets[0]
    group_of = [draw.integers(0, groups, len(rows)) for rows in (holdout.training, holdout.test)]
    parts: list[list[pl.DataFrame]] = [[], []]
    labels: list[list[pl.Series]] = [[], []]
    for group in range(groups):
        rows = [np.flatnonzero(drawn == group) for drawn in group_of]
        own = holdout.part(*rows)
        recoded = own.recoded(method, K)
        for place, features in enumerate((recoded.training, recoded.test)):
            parts[place].append(pl.DataFrame([series for columns in features.values() for series in columns]))
        labels[0].append(own.training[target])
        labels[1].append(own.test[target])
    training, test = (pl.concat(frames) for frames in parts)
    known, true = (pl.concat(series_of) for series_of in labels)
    model = learner("j48").make(fold).fit(training, known)
    return {"accuracy": 100 * float((model.predict(test) == true).sum()) / len(true)}


def _cells(settings: Settings) -> list[tuple[int, str, int]]:
    return [
        (fold, method, groups)
        for fold in range(scale(settings)[0])
        for method in METHODS
        for groups in _counts(settings)
    ]


def _plan(settings: Settings) -> Iterator[Part]:
    for fold, method, groups in _cells(settings):
        own = {**key(settings, "random groups"), "fold": fold, "method": method, "groups": groups, "k": K}
        yield Part(own, settings.choose(0.3, 2.0) + 0.05 * groups, partial(grouped, settings, fold, method, groups))


def _judge(settings: Settings, gave: Sequence[Measured]) -> Result:
    counts = _counts(settings)
    accuracies = {
        (method, groups): [
            part["accuracy"] for cell, part in zip(_cells(settings), gave, strict=True) if cell[1:] == (method, groups)
        ]
        for method in METHODS
        for groups in counts
    }
    mean = {cell: mean_and_error(numbers) for cell, numbers in accuracies.items()}
    loss = mean[INFOGAIN, counts[0]][0] - mean[INFOGAIN, counts[-1]][0]
    small = [groups for groups in counts if mean[INFOGAIN, counts[0]][0] - mean[INFOGAIN, groups][0] < SMALL]
    below = [groups for groups in counts if mean[INFOGAIN, groups][0] < mean[MEDIAN, groups][0]]
    checks = (
        Check(
            f"accuracy with InfoGain falls by less than {SMALL:g} points from 1 to {counts[-1]} groups",
            0 <= loss < SMALL,
            loss < SMALL,
            f"{-loss:+.2f} points; less than {SMALL:g} points with up to {small[-1]} groups",
        ),
        Check(
            "InfoGain at least Median for every number of groups",
            not below,
            not below,
            f"below at {', '.join(map(str, below))}" if below else "above at all",
        ),
    )
    rows = [
        {
            "groups": groups,
            **{method: round(mean[method, groups][0], 2) for method in METHODS},
            **{f"{method} error": round(mean[method, groups][1], 2) for method in METHODS},
        }
        for groups in counts
    ]
    lines = tuple(Line.of(method, counts, [accuracies[method, groups] for groups in counts]) for method in METHODS)
    panel = Panel("J48", "random groups, recoded apart", "test accuracy in %", lines, log_x=True)
    figure = Figure(
        f"Selections that have nothing to do with the class: {table(settings.data).name}, k = {K}", (panel,)
    )
    return Result(
        pl.DataFrame(rows),
        figure,
        checks,
        ("Accuracy in percent, mean over folds ± its standard error.", rows_in_words(settings)),
    )


RANDOM_GROUPS = Experiment(
    "R22",
    "Selections that tell nothing of the class",
    "KDD 2006, figure 9 g",
    ("C9",),
    "Accuracy falls only slightly as rows are divided into more random groups that are anonymized apart.",
    "InfoGain loses less than 3 points from one group to the most, and is at least as accurate as Median.",
    _plan,
    _judge,
    census_sources,
    "The folds of R19; k = 50, up to 100 groups (quick: 5); one J48 over all groups.",
)
