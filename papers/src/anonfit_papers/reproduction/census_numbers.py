# SPDX-License-Identifier: Apache-2.0
"""R24: how far predicted wages are off, by method and k (figure 9 i of KDD 2006)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import polars as pl

from anonfit_papers.datasets_tables import census_sources
from anonfit_papers.reproduction.census_parts import (
    PAPERS_NUMBER,
    Cell,
    cells,
    divided,
    key,
    rows_in_words,
    scale,
    table,
)
from anonfit_papers.reproduction.comparing import difference, mean_and_error
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.learning import LEARNER_NAMES, LSD, MEDIAN, ORIGINAL
from anonfit_papers.reproduction.paper_words import K_OURS, from_memory

METHODS = (ORIGINAL, LSD, MEDIAN)
LEARNERS = ("m5p", "weka-linear-regression")


def learned(settings: Settings, cell: Cell) -> Measured:
    """The mean absolute error of each learner."""
    holdout = divided(settings, cell.fold, None)
    recoded = holdout.recoded(cell.method, cell.k)
    return {name: recoded.tested(name, holdout.targets[0], seed=cell.fold).absolute_error for name in LEARNERS}


def _plan(settings: Settings) -> Iterator[Part]:
    for cell in cells(settings, METHODS, PAPERS_NUMBER):
        own = {**key(settings, "census numbers", None), "fold": cell.fold, "method": cell.method, "k": cell.k}
        seconds = settings.choose(0.5, 8.0 if cell.method == ORIGINAL else 3.0)
        yield Part(own, seconds, partial(learned, settings, cell))


def _judge(settings: Settings, gave: Sequence[Measured]) -> Result:
    _, _, ks = scale(settings, PAPERS_NUMBER)

    def errors(method: str, name: str, k: int) -> list[float]:
        wanted = 0 if method == ORIGINAL else k
        pairs = zip(cells(settings, METHODS, PAPERS_NUMBER), gave, strict=True)
        return [part[name] for cell, part in pairs if cell.method == method and cell.k == wanted]

    rows, checks = [], []
    for name in LEARNERS:
        for k in ks:
            row: dict[str, object] = {"learner": LEARNER_NAMES[name], "k": k}
            for method in METHODS:
                mean, error = mean_and_error(errors(method, name, k))
                row |= {method: round(mean, 1), f"{method} error": round(error, 1)}
            gap = difference(errors(MEDIAN, name, k), errors(LSD, name, k))
            row |= {"LSD better by": round(gap.mean, 1), "p": float(f"{gap.p:.2g}")}
            evidence = f"{gap.mean:+.1f}, p = {gap.p:.2g}"
            checks.append(
                Check(
                    f"{LEARNER_NAMES[name]}, k = {k}: LSD errs less than Median",
                    gap.mean > 0,
                    gap.mean > 0,
                    evidence,
                    gap.is_weak,
                )
            )
            rows.append(row)
    for method in METHODS:
        tree, line = (
            sum(sum(errors(method, name, k)) for k in ks) / sum(len(errors(method, name, k)) for k in ks)
            for name in LEARNERS
        )
        checks.append(
            Check(
                f"{method}: linear regression errs more than M5P",
                line > tree,
                line > tree,
                f"{line:.1f} against {tree:.1f}",
            )
        )

    def panel(name: str) -> Panel:
        lines = tuple(Line.of(method, ks, [errors(method, name, k) for k in ks]) for method in METHODS)
        return Panel(LEARNER_NAMES[name], "k", "mean absolute test error", lines, log_x=True)

    task = table(settings.data, None)
    return Result(
        pl.DataFrame(rows),
        Figure(
            f"Predicting {task.target}, {task.name}, {scale(settings, PAPERS_NUMBER)[0]} folds",
            tuple(panel(name) for name in LEARNERS),
        ),
        tuple(checks),
        (
            "Mean absolute error over test folds ± its standard error, in the unit of the target.",
            rows_in_words(settings, None),
        ),
    )


CENSUS_NUMBERS = Experiment(
    "R24",
    "A number of census records",
    "KDD 2006, figure 9 i",
    ("C6",),
    "LSD Mondrian leads to a smaller mean absolute error than Median Mondrian, for the M5 regression tree and for "
    "linear regression; linear regression errs more over all, because salary is not linear.",
    "LSD below Median at every k; linear regression above the tree.",
    "The target is the yearly wage as it is; LSD tries up to 32 cuts of equally many rows where the paper says no "
    f"more than that numbers are discretized. {from_memory('the survey of 2003')} {K_OURS}",
    "A number is predicted; no class.",
    "M5P of Weka (model tree, smoothed and pruned, at least 4 rows a leaf) and LinearRegression of Weka (M5 selection "
    "of columns, ridge 1e-8): its defaults.",
    _plan,
    _judge,
    census_sources,
    "The rows and folds of R19 with the wage as the target (where Adult stands in: hours of work a week).",
)
