# SPDX-License-Identifier: Apache-2.0
"""From frames to matrices, by hand; and rows taken together change nothing."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import CategoricalNB

from anonfit.evaluation.learners import (
    CLASSIFIERS,
    CategoryMatrix,
    NumberMatrix,
    codes_of,
    learner,
    once_for_each,
    together,
)

FRAME = pl.DataFrame({"n": [1.0, None, 3.0], "t": ["b", "a", None]})


def test_numbers_stay_and_texts_become_a_column_each() -> None:
    found = NumberMatrix.of(FRAME, np.ones(3), may_be_missing=True)
    # numbers, then one column for each of: missing, a, b
    expected = [[1, 0, 0, 1], [np.nan, 0, 1, 0], [3, 1, 0, 0]]
    assert np.array_equal(found.matrix(FRAME), np.array(expected), equal_nan=True)


def test_a_missing_number_stands_at_the_mean_and_is_told() -> None:
    found = NumberMatrix.of(FRAME, np.array([3.0, 1.0, 1.0]), may_be_missing=False)
    matrix = found.matrix(FRAME)
    # (3 · 1 + 1 · 3) / 4 = 1.5, and whether it is missing stands before the number
    assert matrix[:, :2].tolist() == [[0, 1], [1, 1.5], [0, 3]]


def test_a_column_without_a_number_tells_nothing() -> None:
    training = pl.DataFrame({"n": [1.0, 2.0] * 20, "gone": [None] * 40}, schema={"n": pl.Float64, "gone": pl.Float64})
    test = pl.DataFrame({"n": [1.0, 2.0], "gone": [5.0, None]})
    for may_be_missing in (True, False):
        found = NumberMatrix.of(training, np.ones(40), may_be_missing=may_be_missing)
        assert found.matrix(test).tolist() == [[1, 0], [2, 0]]
    labels = pl.Series(["a", "b"] * 20)
    for name in CLASSIFIERS:
        assert learner(name).make(0).fit(training, labels).predict(test).to_list() == ["a", "b"], name


def test_a_text_that_training_had_not_is_in_no_column() -> None:
    found = NumberMatrix.of(FRAME.select("t"), np.ones(3), may_be_missing=True)
    assert found.matrix(pl.DataFrame({"t": ["new"]})).tolist() == [[0, 0, 0]]


def test_categories_of_few_numbers_are_the_numbers() -> None:
    frame = pl.DataFrame({"n": [5.0, 1.0, 1.0, 3.0]})
    found = CategoryMatrix.of(frame, np.ones(4))
    asked = pl.DataFrame({"n": [0.0, 1.0, 2.9, 3.0, 4.0, 99.0, None]})
    # parts meet at 2 and 4; what is missing is the last category
    assert found.matrix(asked)[:, 0].tolist() == [0, 0, 1, 1, 2, 2, 3]
    assert found.sizes == [4]


def test_categories_of_many_numbers_hold_about_as_many_rows() -> None:
    numbers = np.random.default_rng(0).normal(size=4000)
    frame = pl.DataFrame({"n": numbers})
    found = CategoryMatrix.of(frame, np.ones(len(frame)))
    sizes = np.bincount(found.matrix(frame)[:, 0])
    assert len(sizes) == 20
    assert sizes.min() >= 199
    assert sizes.max() <= 201


def test_codes_are_places_among_known_values() -> None:
    known = pl.Series(["a", "c"])
    assert codes_of(pl.Series(["c", "b", None, "a"]), known).tolist() == [1, 2, 2, 0]


def test_rows_that_are_alike_are_taken_together() -> None:
    frame = pl.DataFrame({"n": [1.0, 2.0, 1.0, 1.0, float("nan"), float("nan")], "t": ["x", "x", "x", "x", None, None]})
    found = together(frame, np.array([0, 0, 0, 1, 1, 1]))
    assert found.counts.tolist() == [2, 1, 1, 2]
    assert found.codes.tolist() == [0, 0, 1, 1]
    assert found.features["t"].to_list() == ["x", "x", "x", None]


def test_predictions_of_rows_that_are_alike_are_made_once() -> None:
    asked = []

    def predict(rows: pl.DataFrame) -> np.ndarray:
        asked.append(len(rows))
        return rows["n"].to_numpy() * 10

    frame = pl.DataFrame({"n": [3.0, 1.0, 3.0, 2.0, 1.0]})
    assert once_for_each(predict, frame).tolist() == [30, 10, 30, 20, 10]
    assert asked == [3]


@pytest.mark.parametrize("seed", range(5))
def test_learners_of_rows_taken_together_learn_what_the_rows_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = pl.DataFrame({"a": rng.integers(0, 4, 300).astype(float), "b": rng.integers(0, 3, 300).astype(float)})
    labels = pl.Series((features["a"].to_numpy() + rng.integers(0, 4, 300) > 3).astype(np.int64))
    matrix = features.to_numpy()
    plain = CategoricalNB().fit(matrix.astype(int), labels.to_numpy()).predict(matrix.astype(int))
    ours = learner("naive-bayes").make(0).fit(features, labels).predict(features)
    # One more category, for values that are not known, makes the smoothing a little stronger.
    assert (ours.to_numpy() == plain).mean() > 0.97
    scaled = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0)
    plain = LogisticRegression(max_iter=500).fit(scaled, labels.to_numpy()).predict(scaled)
    ours = learner("logistic-regression").make(0).fit(features, labels).predict(features)
    assert (ours.to_numpy() == plain).all()
