# SPDX-License-Identifier: Apache-2.0
"""Claims of KDD 2006 whose opposite is planted do not hold: none rests on a comparison that could not have failed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from anonfit_papers.reproduction import bounding_regions, census_numbers, forest_overfits, projection
from anonfit_papers.reproduction.bounding_regions import BOUNDING_REGIONS, BOX, WHOLE
from anonfit_papers.reproduction.census_numbers import CENSUS_NUMBERS
from anonfit_papers.reproduction.census_parts import PAPERS_NUMBER, cells
from anonfit_papers.reproduction.contraceptives import CONTRACEPTIVES
from anonfit_papers.reproduction.forest_overfits import FOREST, FOREST_OVERFITS, TRAINING
from anonfit_papers.reproduction.frame import Settings, Verdict
from anonfit_papers.reproduction.learning import INFOGAIN, LSD, MEDIAN, ORIGINAL, TDS
from anonfit_papers.reproduction.projection import PROJECTION

FULL = Settings(quick=False, folder=Path())


@pytest.fixture(autouse=True)
def _without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (bounding_regions, census_numbers, forest_overfits, projection):
        monkeypatch.setattr(module, "table", lambda *_: SimpleNamespace(name="ACS wages", target="wage"))
        monkeypatch.setattr(module, "rows_in_words", lambda *_: "")
    monkeypatch.setattr(projection, "order", lambda *_: tuple("abcde"))


@pytest.mark.parametrize(
    ("rival", "at_two", "verdict"),
    [(48.0, 48.0, Verdict.HOLDS), (48.0, 52.0, Verdict.WITHIN_BAND), (52.0, 52.0, Verdict.FAILS)],
)
def test_contraceptives_by_a_better_rival(rival: float, at_two: float, verdict: Verdict) -> None:
    assert CONTRACEPTIVES.judge(FULL, [_divided(rival, at_two), _divided(rival - 0.1, at_two)]).verdict == verdict


def _divided(rival: float, at_two: float) -> dict[str, Any]:
    return {ORIGINAL: [53.0] * 7, INFOGAIN: [50.0] * 7, TDS: [at_two] + [rival] * 6, MEDIAN: [45.0] * 7}


@pytest.mark.parametrize(("infogain", "verdict"), [(70.0, Verdict.HOLDS), (50.0, Verdict.FAILS)])
def test_columns_left_out_by_a_rival_that_loses_more(infogain: float, verdict: Verdict) -> None:
    after = {ORIGINAL: 66.0, INFOGAIN: infogain, TDS: 56.0, MEDIAN: 68.0}
    gave = [{"accuracy": [76.0, 75.0, 74.0, after[method], 55.0]} for _, method in projection._cells(FULL)]
    assert PROJECTION.judge(FULL, gave).verdict == verdict


@pytest.mark.parametrize(
    ("lsd", "line", "verdict"), [(16.0, 18.0, Verdict.HOLDS), (19.0, 25.0, Verdict.FAILS), (16.0, 14.0, Verdict.FAILS)]
)
def test_numbers_by_a_better_median_and_a_better_line(lsd: float, line: float, verdict: Verdict) -> None:
    tree = {ORIGINAL: 15.0, LSD: lsd, MEDIAN: 17.0}
    gave = [
        {"m5p": tree[cell.method], "weka-linear-regression": tree[cell.method] + line - 16.0}
        for cell in cells(FULL, census_numbers.METHODS, PAPERS_NUMBER)
    ]
    assert CENSUS_NUMBERS.judge(FULL, gave).verdict == verdict


@pytest.mark.parametrize(
    ("trained", "released", "chosen", "verdict"),
    [
        (95.0, 77.0, 74.0, Verdict.HOLDS),
        (80.0, 77.0, 74.0, Verdict.FAILS),
        (95.0, 74.0, 74.0, Verdict.FAILS),
        (95.0, 77.0, 76.0, Verdict.FAILS),
        (95.0, 77.0, 75.01, Verdict.WEAKLY),
    ],
)
def test_forests_that_do_not_overfit_or_are_helped(
    trained: float, released: float, chosen: float, verdict: Verdict
) -> None:
    draw = np.random.default_rng(0)
    tested = {ORIGINAL: 75.0, INFOGAIN: released, TDS: 74.0, MEDIAN: 73.0}
    gave: list[dict[str, Any]] = [
        {FOREST: tested[cell.method] + draw.normal() / 100, TRAINING: trained} for cell in cells(FULL)
    ]
    gave += [{"accuracy": [chosen + 0.2 * (-1) ** fold, 75.0]} for fold in range(10)]
    assert FOREST_OVERFITS.judge(FULL, gave).verdict == verdict


@pytest.mark.parametrize(
    ("box", "median", "verdict"),
    [(77.0, 74.0, Verdict.HOLDS), (77.0, 78.0, Verdict.FAILS), (80.0, 74.0, Verdict.FAILS)],
)
def test_boxes_that_change_much_or_turn_the_order(box: float, median: float, verdict: Verdict) -> None:
    found = {(INFOGAIN, WHOLE): 77.0, (INFOGAIN, BOX): box, (MEDIAN, WHOLE): median, (MEDIAN, BOX): median}
    gave = [
        {word: dict.fromkeys(bounding_regions.LEARNERS, found[method, word]) for word in (WHOLE, BOX)}
        for _, method, _ in bounding_regions._cells(FULL)
    ]
    assert BOUNDING_REGIONS.judge(FULL, gave).verdict == verdict
