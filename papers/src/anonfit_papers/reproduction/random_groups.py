# SPDX-License-Identifier: Apache-2.0
"""R22: what selections cost that have nothing to do with the class (figure 9 g of KDD 2006)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import polars as pl

from anonfit.errors import counted
from anonfit.evaluation.learners import learner
from anonfit_papers.datasets_tables import census_sources
from anonfit_papers.reproduction.census_parts import (
    CENSUS_SHARES,
    PAPERS_BALANCE,
    PAPERS_NUMBER,
    CensusClass,
    divided,
    key,
    rows_in_words,
    scale,
    table,
)
from anonfit_papers.reproduction.comparing import difference, mean_and_error
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.learner_words import J48_SETTINGS
from anonfit_papers.reproduction.learning import INFOGAIN, MEDIAN
from anonfit_papers.reproduction.paper_words import from_memory

K = 50
METHODS = (INFOGAIN, MEDIAN)
SEVERAL = 10
"""Groups: how many the paper's word covers."""
SMALL, LARGE = 1.0, 3.0
"""Points that are lost slightly, and that would be a large effect."""
FULL_COUNTS = (1, 2, 5, 10, 25, 50, 100)


def _counts(settings: Settings) -> tuple[int, ...]:
    return settings.choose((1, 2, 5), FULL_COUNTS)


def grouped(of: CensusClass, settings: Settings, fold: int, method: str, groups: int) -> Measured:
    """J48's accuracy where the rows of each of some random groups are recoded apart, and one model learns from all."""
    holdout = divided(settings, fold, of)
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


def _plan(of: CensusClass, settings: Settings) -> Iterator[Part]:
    for fold, method, groups in _cells(settings):
        own = {**key(settings, "random groups", of), "fold": fold, "method": method, "groups": groups, "k": K}
        yield Part(own, settings.choose(0.3, 2.0) + 0.05 * groups, partial(grouped, of, settings, fold, method, groups))


def _judge(of: CensusClass, settings: Settings, gave: Sequence[Measured]) -> Result:
    counts = _counts(settings)
    accuracies = {
        (method, groups): [
            part["accuracy"] for cell, part in zip(_cells(settings), gave, strict=True) if cell[1:] == (method, groups)
        ]
        for method in METHODS
        for groups in counts
    }
    mean = {cell: mean_and_error(numbers) for cell, numbers in accuracies.items()}
    lost = {groups: mean[INFOGAIN, counts[0]][0] - mean[INFOGAIN, groups][0] for groups in counts}
    several = max(groups for groups in counts if groups <= SEVERAL)
    ahead = {
        groups: difference(accuracies[INFOGAIN, groups], accuracies[MEDIAN, groups], folds=scale(settings, of)[0])
        for groups in counts
        if groups <= SEVERAL
    }
    closest = min(ahead, key=lambda groups: ahead[groups].mean)
    fine = ahead[closest].mean >= 0
    checks = (
        Check(
            f"accuracy with InfoGain falls by less than {SMALL:g} point from 1 to {several} groups",
            0 <= lost[several] < SMALL,
            lost[several] < LARGE,
            f"{-lost[several]:+.2f} points",
        ),
        Check(
            f"InfoGain at least Median with up to {several} groups",
            fine,
            fine,
            f"least ahead with {counted(closest, 'group')}: {ahead[closest]}",
            any(gap.is_weak for gap in ahead.values()),
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
        f"Selections that have nothing to do with the class: {table(settings.data, of).name}, k = {K}", (panel,)
    )
    notes = [
        "Accuracy in percent, mean over folds ± its standard error.",
        rows_in_words(settings, of),
    ]
    if counts[-1] > SEVERAL:
        further = ", ".join(f"{-lost[groups]:+.2f} with {groups}" for groups in counts if groups > SEVERAL)
        notes.insert(1, f"Beyond what the paper speaks of, our own finding: points against one group {further}.")
    return Result(pl.DataFrame(rows), figure, checks, tuple(notes))


def _experiment(name: str, of: CensusClass, title: str) -> Experiment:
    return Experiment(
        name,
        title,
        "KDD 2006, figure 9 g",
        ("C9",),
        "Accuracy falls slightly as rows are divided into more random groups that are anonymized apart; several "
        "selections can be incorporated without large negative effects.",
        f"With up to {SEVERAL} groups InfoGain loses less than {LARGE:g} points and is at least as accurate as Median.",
        f"{of.reading} Several is read as up to {SEVERAL} groups, slightly as less than {SMALL:g} point; what happens "
        f"beyond is shown and not judged. {from_memory(f'k = {K}, of which we are unsure')}",
        CENSUS_SHARES[of],
        f"{J48_SETTINGS}; one for all groups.",
        partial(_plan, of),
        partial(_judge, of),
        census_sources,
        f"The folds of R19; up to {FULL_COUNTS[-1]} groups (quick: 5).",
    )


RANDOM_GROUPS = _experiment("R22", PAPERS_BALANCE, "Selections that tell nothing of the class")
RANDOM_GROUPS_BY_NUMBER = _experiment(
    "R37", PAPERS_NUMBER, "Selections that tell nothing of the class, divided at 30,000"
)
