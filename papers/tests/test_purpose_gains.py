# SPDX-License-Identifier: Apache-2.0
"""What a purpose gains on Agrawal's people: regions are learned from training rows only, and test rows go through the
same recoding.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import anonfit as af
from anonfit_papers.agrawal import AGRAWAL_COLUMNS, agrawal, score, taxonomies

ROWS = 1_000
TRIALS = 20
NUMERIC_TRIALS = 10
SELECTION_TRIALS = 5

# Function 2 with the fixed constants: ages [from, to), salaries [from, to).
RECTANGLES = (
    ((0, 40), (50_000, 100_000)),
    ((40, 60), (75_000, 125_000)),
    ((60, 200), (25_000, 75_000)),
)
SELECTIONS = [
    f"age >= {young} and age < {old} and salary >= {low} and salary < {high}"
    for (young, old), (low, high) in RECTANGLES
]


def people(trial: int, function: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Training and test rows of a trial."""
    return agrawal(ROWS, function=function, seed=trial), agrawal(ROWS, function=function, seed=10_000 + trial)


def released(training: pl.DataFrame, k: int, **words: Any) -> af.Release:
    return af.anonymize(
        training,
        quasi_identifiers=AGRAWAL_COLUMNS,
        k=k,
        taxonomies=taxonomies(),
        order="original",
        consent=True,
        **words,
    )


def features(release: af.Release, test: pl.DataFrame, target: str) -> tuple[Any, Any]:
    """The ends of the regions of a release, and of the test rows."""
    encoder = af.RegionEncoder("ends", release.recoding)
    learned = encoder.fit_transform(release.data.drop(target))
    return learned, encoder.transform(release.recoding.apply(test.select(AGRAWAL_COLUMNS), unseen="ancestor"))


# --- classes ----------------------------------------------------------------------------------------------------


def accuracy(training: pl.DataFrame, test: pl.DataFrame, criterion: str) -> float:
    """The share of test rows whose group a tree tells that was trained on a release."""
    release = released(training, 25, targets=["group"], criterion=criterion)
    learned, tests = features(release, test, "group")
    tree = DecisionTreeClassifier(criterion="entropy", ccp_alpha=0.003, random_state=0)
    tree.fit(learned, release.data["group"].to_list())
    return float(tree.score(tests, test["group"].to_list()))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("function", [2, 4, 6, 7])
def test_a_tree_from_the_infogain_release_is_ten_points_above_one_from_the_median_release(function: int) -> None:
    tables = [people(trial, function) for trial in range(TRIALS)]
    purpose = np.array([accuracy(*pair, "infogain") for pair in tables])
    blind = np.array([accuracy(*pair, "median") for pair in tables])
    assert (purpose - blind).mean() >= 0.10
    # A blind release that says nothing would make the gap easy; the purpose's must be good by itself.
    assert purpose.mean() >= 0.85


# --- numbers ----------------------------------------------------------------------------------------------------


def absolute_errors(training: pl.DataFrame, test: pl.DataFrame, k: int, criterion: str) -> list[float]:
    """The mean absolute error of a regression tree and of a linear regression that were trained on a release."""
    release = released(training, k, targets=["score"], criterion=criterion, release=["score"])
    learned, tests = features(release, test, "score")
    learners = (DecisionTreeRegressor(min_samples_leaf=k, random_state=0), LinearRegression())
    truth = test["score"].to_numpy()
    return [
        float(np.abs(learner.fit(learned, release.data["score"].to_numpy()).predict(tests) - truth).mean())
        for learner in learners
    ]


@pytest.mark.slow
@pytest.mark.parametrize("k", [10, 25, 50])
def test_lsd_has_a_smaller_absolute_error_than_median(k: int) -> None:
    tables = [
        tuple(rows.drop("group").with_columns(score(rows, 7)) for rows in people(trial, 7))
        for trial in range(NUMERIC_TRIALS)
    ]
    purpose = np.array([absolute_errors(*pair, k, "lsd") for pair in tables]).mean(axis=0)
    blind = np.array([absolute_errors(*pair, k, "median") for pair in tables]).mean(axis=0)
    assert (purpose < blind).all()
    spread = np.mean([np.abs(test["score"] - training["score"].mean()).mean() for training, test in tables])
    assert (purpose < spread / 2).all(), "the purpose's models say little more than the mean"


# --- selections -------------------------------------------------------------------------------------------------


def imprecision(training: pl.DataFrame, release: af.Release) -> np.ndarray:
    """Rows outside each rectangle whose region overlaps it, counted from the bounds of the regions."""
    bounds = release.recoding.apply(training, values="bounds")
    found = []
    for (young, old), (low, high) in RECTANGLES:
        overlap = bounds.select(
            (pl.col("age_lower").fill_null(-np.inf) < old)
            & (pl.col("age_upper").fill_null(np.inf) > young)
            & (pl.col("salary_lower").fill_null(-np.inf) < high)
            & (pl.col("salary_upper").fill_null(np.inf) > low)
        ).to_series()
        inside = training.select(
            pl.col("age").is_between(young, old, closed="left") & pl.col("salary").is_between(low, high, closed="left")
        ).to_series()
        assert overlap.filter(inside).all()
        found.append((overlap & ~inside).sum())
    return np.array(found)


@cache
def imprecisions(k: int) -> dict[str, list[int]]:
    """The total imprecision of each trial, by the way the release was made."""
    ways: dict[str, dict[str, Any]] = {
        "median": {"criterion": "median"},
        "restricted median": {"criterion": "median", "split_on": ["age", "salary"]},
        "selection": {"criterion": "selection", "selections": SELECTIONS},
    }
    tables = [people(trial, 2)[0] for trial in range(SELECTION_TRIALS)]
    return {
        way: [int(imprecision(rows, released(rows, k, insensitive=["group"], **words)).sum()) for rows in tables]
        for way, words in ways.items()
    }


def test_the_rectangles_are_function_2() -> None:
    training, _ = people(0, 2)
    inside = pl.any_horizontal(
        pl.col("age").is_between(young, old, closed="left") & pl.col("salary").is_between(low, high, closed="left")
        for (young, old), (low, high) in RECTANGLES
    )
    assert (training.select(inside).to_series() == (training["group"] == "A")).all()


@pytest.mark.parametrize("k", [25, 100])
def test_the_imprecision_that_a_release_reports_is_the_one_counted_from_its_bounds(k: int) -> None:
    training, _ = people(0, 2)
    release = released(training, k, insensitive=["group"], criterion="selection", selections=SELECTIONS)
    assert release._draft.answers is not None
    reported = release._draft.answers.answers.imprecision
    assert reported.sum() > 0
    np.testing.assert_array_equal(reported, imprecision(training, release))


@pytest.mark.slow
@pytest.mark.parametrize("k", [5, 10, 25, 50, 100])
def test_selection_is_less_imprecise_than_median(k: int) -> None:
    found = imprecisions(k)
    for selection, restricted, blind in zip(
        found["selection"], found["restricted median"], found["median"], strict=True
    ):
        assert selection < restricted < blind


@pytest.mark.slow
def test_imprecision_does_not_fall_as_k_grows() -> None:
    for way in ("selection", "restricted median"):
        means = [np.mean(imprecisions(k)[way]) for k in (5, 10, 25, 50, 100)]
        assert means == sorted(means)
