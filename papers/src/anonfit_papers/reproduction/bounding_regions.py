# SPDX-License-Identifier: Apache-2.0
"""R40: models that see the bounding box of a group's own rows, beside the whole region (figure 3 of KDD 2006)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import polars as pl

from anonfit_papers.datasets_tables import census_sources
from anonfit_papers.reproduction.census_parts import (
    CENSUS_SHARES,
    PAPERS_BALANCE,
    divided,
    key,
    rows_in_words,
    scale,
    table,
)
from anonfit_papers.reproduction.comparing import difference, mean_and_error
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import OWN, Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.learner_words import BAYES_SETTINGS, J48_SETTINGS
from anonfit_papers.reproduction.learning import INFOGAIN, LEARNER_NAMES, MEDIAN

METHODS = (INFOGAIN, MEDIAN)
LEARNERS = ("j48", "weka-naive-bayes")
WHOLE, BOX = "whole regions", "bounding boxes"
LITTLE = 2.0
"""Points that the reading may change an accuracy by."""


def _ks(settings: Settings) -> tuple[int, ...]:
    return settings.choose((25,), (25, 100))


def learned(settings: Settings, fold: int, method: str, k: int) -> Measured:
    """The accuracy of each learner, of whole regions and of bounding boxes."""
    holdout = divided(settings, fold)
    shown = {
        WHOLE: holdout.recoded(method, k),
        BOX: holdout.recoded(method, k, regions="observed"),
    }
    return {
        word: {name: recoded.tested(name, holdout.targets[0], seed=fold).accuracy for name in LEARNERS}
        for word, recoded in shown.items()
    }


def _cells(settings: Settings) -> list[tuple[int, str, int]]:
    folds = range(scale(settings)[0])
    return [(fold, method, k) for fold in folds for method in METHODS for k in _ks(settings)]


def _plan(settings: Settings) -> Iterator[Part]:
    for fold, method, k in _cells(settings):
        own = {**key(settings, "bounding regions"), "fold": fold, "method": method, "k": k}
        yield Part(own, settings.choose(0.7, 5.0), partial(learned, settings, fold, method, k))


def _judge(settings: Settings, gave: Sequence[Measured]) -> Result:
    cells, count = _cells(settings), scale(settings)[0]

    def accuracies(method: str, k: int, word: str, name: str) -> list[float]:
        return [part[word][name] for cell, part in zip(cells, gave, strict=True) if cell[1:] == (method, k)]

    rows, checks, gaps = [], [], []
    for name in LEARNERS:
        for k in _ks(settings):
            for method in METHODS:
                whole, box = (accuracies(method, k, word, name) for word in (WHOLE, BOX))
                gap = difference(box, whole, folds=count)
                gaps.append(gap.mean)
                rows.append(
                    {
                        "learner": LEARNER_NAMES[name],
                        "method": method,
                        "k": k,
                        WHOLE: round(mean_and_error(whole)[0], 2),
                        BOX: round(mean_and_error(box)[0], 2),
                        "boxes above by": round(gap.mean, 2),
                        "p": float(f"{gap.p:.2g}"),
                    }
                )
            first, second = (accuracies(method, k, BOX, name) for method in METHODS)
            ahead = difference(first, second, folds=count)
            claim = f"{LEARNER_NAMES[name]}, k = {k}: InfoGain is above Median with bounding boxes, too"
            checks.append(Check(claim, ahead.mean > 0, ahead.mean > 0, str(ahead), ahead.is_weak))
    little = max(abs(gap) for gap in gaps) < LITTLE
    evidence = f"from {min(gaps):+.2f} to {max(gaps):+.2f} points"
    checks.append(Check(f"the reading changes no accuracy by {LITTLE:g} points", little, little, evidence))
    panels = tuple(_panel(settings, name, rows) for name in LEARNERS)
    figure = Figure(f"What models see of a region, {table(settings.data).name}", panels)
    notes = (
        "Accuracy in percent, mean over folds; p is that of a paired t-test over folds. A bounding box tells the "
        "smallest and the largest value that rows of a group really have: each is the value of some person, and where "
        'the ends of two boxes are apart nobody lies between. Releases tell it only with `regions = "observed"` and '
        "`consent`; nothing of it is needed for the other experiments.",
        rows_in_words(settings),
    )
    return Result(pl.DataFrame(rows), figure, tuple(checks), notes)


def _panel(settings: Settings, name: str, rows: Sequence[dict[str, object]]) -> Panel:
    ks = _ks(settings)
    lines = []
    for method in METHODS:
        own = [row for row in rows if row["learner"] == LEARNER_NAMES[name] and row["method"] == method]
        for word in (WHOLE, BOX):
            values = [float(str(row[word])) for row in own]
            lines.append(Line(f"{method}, {word}", ks, values, style=method, dashed=word == BOX))
    return Panel(LEARNER_NAMES[name], "k", "test accuracy in %", tuple(lines), log_x=len(ks) > 1)


BOUNDING_REGIONS = Experiment(
    "R40",
    "Bounding regions",
    "KDD 2006, figure 3 and section 4.2",
    (OWN,),
    "No claim of the paper, whose basic algorithm maps rows to their bounding region: models "
    "learn alike from the smallest boxes and from whole regions, and InfoGain stays above Median.",
    f"No accuracy changes by {LITTLE:g} points, and InfoGain stays above Median.",
    "The paper's bounding region is read as the smallest box around the group's own training rows; all other "
    "experiments read it as the whole region, which every record belongs to that is recoded later. Whether that "
    f"changes what models learn is our own question, and the paper claims nothing of it. {PAPERS_BALANCE.reading}",
    CENSUS_SHARES[PAPERS_BALANCE],
    f"{J48_SETTINGS}; {BAYES_SETTINGS}.",
    _plan,
    _judge,
    census_sources,
    "The folds of R19; k: 25 and 100 (quick: 25). A test row gets the box of the group it falls into.",
)
