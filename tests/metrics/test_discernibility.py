# SPDX-License-Identifier: Apache-2.0
"""Weighted discernibility: the paper's definition by hand, against a plain recount of released files, and beside NCP."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.metrics.groups import group_figures
from anonfit.metrics.losses import (
    ColumnLoss,
    Discernibility,
    Losses,
    disagreements,
    weighted_discernibility,
)

PEOPLE = pl.DataFrame({"first": ["a", "a", "a", "b"], "second": ["x", "x", "y", "y"]})


def recoded(frame: pl.DataFrame, k: int = 1) -> tuple[Any, np.ndarray[Any, Any]]:
    """A release that tells every name, also where nothing more is to be divided."""
    splits = dict.fromkeys(frame.columns, "multiway")
    release = af.anonymize(frame, quasi_identifiers=frame.columns, k=k, splits=splits)
    return release.recoding, release.recoding.nodes(release.recoding.cells(frame))


@pytest.mark.parametrize(
    ("weights", "total"), [((1, 0), 10), ((0.5, 0.5), 9), ((0, 1), 8), ((2, 2), 9), ((0, 0), 9), (None, 9)]
)
def test_the_toy_case_of_the_paper(weights: tuple[float, float] | None, total: float) -> None:
    recoding, nodes = recoded(PEOPLE)
    given = None if weights is None else dict(zip(PEOPLE.columns, weights, strict=True))
    found = weighted_discernibility(recoding, nodes, weights=given)
    assert dict(found.columns) == {"first": 10, "second": 8}
    assert found.total == total
    assert group_figures(np.array([2, 1, 1]), k=1).discernibility == 6  # of both columns together


def test_columns_that_are_not_named_have_the_weight_one() -> None:
    recoding, nodes = recoded(PEOPLE)
    found = weighted_discernibility(recoding, nodes, weights={"second": 3})
    assert found.weights == {"first": 0.25, "second": 0.75}
    assert (found.weights["first"], found.columns["first"], found.share("first")) == (0.25, 10, 10 / 16)


@pytest.mark.parametrize("seed", range(20))
def test_it_counts_the_labels_of_the_file(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "age": rng.integers(0, 60, 200),
            "place": [["n", "s", "e", "w", None][one] for one in rng.integers(0, 5, 200)],
            "hours": [None if one > 30 else int(one) for one in rng.integers(0, 40, 200)],
        }
    )
    release = af.anonymize(frame, quasi_identifiers=frame.columns, k=5)
    nodes = release.recoding.nodes(release.recoding.cells(frame))
    found = weighted_discernibility(release.recoding, nodes)
    for name in frame.columns:
        assert found.columns[name] == sum(n * n for n in Counter(release.data[name].to_list()).values())
    assert found.total == pytest.approx(sum(found.columns.values()) / 3)


def test_persons_that_rows_stand_for_and_withheld_ones() -> None:
    recoding, nodes = recoded(PEOPLE)
    found = weighted_discernibility(recoding, nodes, counts=np.array([2, 1, 1, 1]))
    assert dict(found.columns) == {"first": 17, "second": 13}
    lost = weighted_discernibility(recoding, np.where(np.arange(4) == 3, -1, nodes), withheld=1)
    # Three persons are left; each of the two others cannot be told from any of the five.
    assert dict(lost.columns) == {"first": 9 + 2 * 5, "second": 5 + 2 * 5}
    assert lost.persons == 5


def figures(ncp: float, squares: int) -> tuple[Losses, Discernibility]:
    return Losses((ColumnLoss("age", ncp, ncp),)), Discernibility({"age": squares}, {"age": 1.0}, 10)


def test_where_ncp_and_wdm_disagree() -> None:
    assert disagreements(figures(0.2, 40), figures(0.3, 60)) == {}
    assert disagreements(figures(0.2, 60), figures(0.2, 40)) == {}
    assert disagreements(figures(0.2, 60), figures(0.3, 40)) == {"age": "ncp"}
    assert disagreements(figures(0.3, 40), figures(0.2, 60)) == {"age": "wdm"}
