# SPDX-License-Identifier: Apache-2.0
"""Folds of the census table, recoded and learned from: three experiments look at the same parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from anonfit.metrics.groups import class_entropy
from anonfit_papers.datasets_tables import census, census_numbers, census_sources, fingerprint
from anonfit_papers.purpose_tables import Task
from anonfit_papers.reproduction.frame import Measured, Part, Settings
from anonfit_papers.reproduction.learning import INFOGAIN, MEDIAN, ORIGINAL, TDS, Holdout, folds

LEARNERS = ("j48", "weka-naive-bayes", "weka-random-forest")
METHODS = (ORIGINAL, INFOGAIN, TDS, MEDIAN)


@dataclass(frozen=True, slots=True)
class Cell:
    """A fold as a method shows it for a k; the original has none, which is 0."""

    fold: int
    method: str
    k: int


def scale(settings: Settings) -> tuple[int, int | None, tuple[int, ...]]:
    """How many folds, how many rows (None: all), and which k."""
    return settings.choose((3, 6000, (5, 25, 100)), (10, None, (2, 5, 10, 25, 50, 100, 250, 500, 1000)))


@cache
def table(folder: Path, *, numbers: bool = False) -> Task:
    """The census table, read once; with its class or with its number."""
    return census_numbers(folder) if numbers else census(folder)


@cache
def _mark(folder: Path) -> str:
    return fingerprint(folder, census_sources(folder))


def key(settings: Settings, of: str) -> dict[str, object]:
    """What all parts of an experiment on the census table have in their keys."""
    count, sample, _ = scale(settings)
    return {"of": of, "data": _mark(settings.data), "folds": count, "rows": sample}


@cache
def divided(settings: Settings, fold: int, *, numbers: bool = False) -> Holdout:
    """The rows of a fold."""
    task = table(settings.data, numbers=numbers)
    count, sample, _ = scale(settings)
    return Holdout.of(task, *list(folds(len(task.frame), count, sample=sample))[fold])


def cells(settings: Settings, methods: Sequence[str] = METHODS) -> list[Cell]:
    """The folds as each method shows them, for each k."""
    count, _, ks = scale(settings)
    return [
        Cell(fold, method, k)
        for fold in range(count)
        for method in methods
        for k in ((0,) if method == ORIGINAL else ks)
    ]


def learned(settings: Settings, cell: Cell) -> Measured:
    """The accuracies of each learner, and two figures of the training rows that look at no model."""
    holdout = divided(settings, cell.fold)
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


def rows_in_words(settings: Settings) -> str:
    """Which rows an experiment looked at, in words."""
    task = table(settings.data)
    count, sample, _ = scale(settings)
    return f"{task.name}: {min(sample or len(task.frame), len(task.frame)):,} rows, {count} folds."


def learned_parts(settings: Settings) -> list[Part]:
    """The parts of all cells."""
    return [
        Part(
            {**key(settings, "census accuracy"), "fold": cell.fold, "method": cell.method, "k": cell.k},
            settings.choose(1.0, 7.0),
            partial(learned, settings, cell),
        )
        for cell in cells(settings)
    ]


def gave_of(settings: Settings, gave: Sequence[Measured], method: str, k: int) -> list[Measured]:
    """What a method gave for a k, fold by fold."""
    wanted = 0 if method == ORIGINAL else k
    return [
        part for cell, part in zip(cells(settings), gave, strict=False) if cell.method == method and cell.k == wanted
    ]
