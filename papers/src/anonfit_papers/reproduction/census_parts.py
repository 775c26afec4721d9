# SPDX-License-Identifier: Apache-2.0
"""Folds of the census table, recoded and learned from: three experiments look at the same parts, for each of two
classes that wages are divided into.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from anonfit.metrics.groups import class_entropy
from anonfit_papers.datasets_tables import census, census_numbers, census_sources, fingerprint
from anonfit_papers.purpose_tables import HIGH_WAGE, Task
from anonfit_papers.reproduction.frame import Measured, Part, Settings
from anonfit_papers.reproduction.learner_words import BAYES_SETTINGS, FOREST_SETTINGS, J48_SETTINGS
from anonfit_papers.reproduction.learning import INFOGAIN, MEDIAN, ORIGINAL, TDS, Holdout, folds
from anonfit_papers.reproduction.paper_words import from_memory

LEARNERS = ("j48", "weka-naive-bayes", "weka-random-forest")
METHODS = (ORIGINAL, INFOGAIN, TDS, MEDIAN)
KS = (2, 5, 10, 25, 50, 100, 250, 500, 1000)


@dataclass(frozen=True, slots=True)
class CensusClass:
    """Where wages are divided into two classes, what that stands for, and which k a quick run looks at."""

    least: int
    """The lowest wage of the upper class."""
    reading: str
    """Which reading of the paper it is."""
    quick_ks: tuple[int, ...] = (25,)


_MEMORY = from_memory("the survey of 2003, 30,000, about 56 % below it")

PAPERS_BALANCE = CensusClass(
    40_000,
    "The class as balanced as the paper's, which had about 56 % of its records in the lower one: wages of 2018 divided "
    f"at 40,000. {_MEMORY}",
    quick_ks=(5, 25, 100),
)
PAPERS_NUMBER = CensusClass(
    HIGH_WAGE,
    "The class divided at the paper's number, 30,000: wages of 2018 are higher than those of 2003, so most records are "
    f"in the upper class. {_MEMORY}",
)

CENSUS_SHARES = {
    PAPERS_BALANCE: "Low 56.2 %, high 43.8 % (the paper: about 56 % low).",
    PAPERS_NUMBER: "High 56.5 %, low 43.5 % (the paper: about 56 % low).",
}
CENSUS_LEARNERS = f"{J48_SETTINGS}; {BAYES_SETTINGS}; {FOREST_SETTINGS}."
CENSUS_SETTING = (
    "51,787 wage earners of the American Community Survey of 2018 in ten states, nine predictors (the paper: another "
    "sample, of 2003, of the same survey and columns), taxonomies by the words of its dictionary; 10 folds (quick: "
    "6,000 rows, 3 folds)."
)


@dataclass(frozen=True, slots=True)
class Cell:
    """A fold as a method shows it for a k; the original has none, which is 0."""

    fold: int
    method: str
    k: int


def scale(settings: Settings, of: CensusClass = PAPERS_BALANCE) -> tuple[int, int | None, tuple[int, ...]]:
    """How many folds, how many rows (None: all), and which k."""
    return settings.choose((3, 6000, of.quick_ks), (10, None, KS))


@cache
def table(folder: Path, of: CensusClass | None = PAPERS_BALANCE) -> Task:
    """The census table, read once; with its class, or with its number where no class is given."""
    return census_numbers(folder) if of is None else census(folder, of.least)


@cache
def _mark(folder: Path) -> str:
    return fingerprint(folder, census_sources(folder))


def key(settings: Settings, name: str, of: CensusClass | None = PAPERS_BALANCE) -> dict[str, object]:
    """What all parts of an experiment on the census table have in their keys."""
    count, sample, _ = scale(settings)
    own = {} if of is None else {"least": of.least}
    return {"of": name, "data": _mark(settings.data), "folds": count, "rows": sample, **own}


@cache
def divided(settings: Settings, fold: int, of: CensusClass | None = PAPERS_BALANCE) -> Holdout:
    """The rows of a fold."""
    task = table(settings.data, of)
    count, sample, _ = scale(settings)
    return Holdout.of(task, *list(folds(len(task.frame), count, sample=sample))[fold])


def cells(settings: Settings, methods: Sequence[str] = METHODS, of: CensusClass = PAPERS_BALANCE) -> list[Cell]:
    """The folds as each method shows them, for each k."""
    count, _, ks = scale(settings, of)
    return [
        Cell(fold, method, k)
        for fold in range(count)
        for method in methods
        for k in ((0,) if method == ORIGINAL else ks)
    ]


def learned(settings: Settings, cell: Cell, of: CensusClass = PAPERS_BALANCE) -> Measured:
    """The accuracies of each learner, and two figures of the training rows that look at no model."""
    holdout = divided(settings, cell.fold, of)
    recoded = holdout.recoded(cell.method, cell.k)
    target = holdout.targets[0]
    figures: Measured = {}
    for name in LEARNERS:
        tested = recoded.tested(name, target, seed=cell.fold)
        figures[name] = tested.accuracy
        if name == "weka-random-forest":
            figures["training"] = tested.training_accuracy
    if recoded.recoding is not None:
        classes = holdout.training[target].rank("dense").to_numpy().astype(np.int64) - 1
        entropy = class_entropy(target, recoded.nodes, classes).conditional_entropy
        figures |= {"size": len(classes) / len(np.unique(recoded.nodes)), "entropy": entropy}
    return figures


def rows_in_words(settings: Settings, of: CensusClass | None = PAPERS_BALANCE) -> str:
    """Which rows an experiment looked at, in words, and the share of each class."""
    task = table(settings.data, of)
    count, sample, _ = scale(settings)
    rows = f"{task.name}: {min(sample or len(task.frame), len(task.frame)):,} rows, {count} folds."
    return rows if of is None else f"{rows} Classes: {shares_in_words(task)}."


def shares_in_words(task: Task) -> str:
    """The share of each class of a table, the largest first."""
    counts = task.frame[task.target].value_counts(sort=True)
    return ", ".join(f"{name} {100 * count / len(task.frame):.1f} %" for name, count in counts.iter_rows())


def learned_parts(settings: Settings, of: CensusClass = PAPERS_BALANCE) -> list[Part]:
    """The parts of all cells."""
    return [
        Part(
            {**key(settings, "census accuracy", of), "fold": cell.fold, "method": cell.method, "k": cell.k},
            settings.choose(0.6, 7.0),
            partial(learned, settings, cell, of),
        )
        for cell in cells(settings, of=of)
    ]


def gave_of(
    settings: Settings, gave: Sequence[Measured], method: str, k: int, of: CensusClass = PAPERS_BALANCE
) -> list[Measured]:
    """What a method gave for a k, fold by fold."""
    wanted = 0 if method == ORIGINAL else k
    return [
        part
        for cell, part in zip(cells(settings, of=of), gave, strict=False)
        if cell.method == method and cell.k == wanted
    ]
