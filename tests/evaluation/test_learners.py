# SPDX-License-Identifier: Apache-2.0
"""Learners by name: what they learn, what they accept, and that they are the same each time."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from anonfit.errors import RequestError
from anonfit.evaluation.learners import CLASSIFIERS, ID3, LEARNERS, REGRESSORS, ClassShares, learner

OF_CLASSES = (*CLASSIFIERS, ID3)
ALL = (*OF_CLASSES, *REGRESSORS)
"""All but Weka's, which are in test_weka.py."""


def rows(count: int = 600, seed: int = 0) -> tuple[pl.DataFrame, pl.Series, pl.Series]:
    """Features of both kinds, a class and a number that follow from them."""
    rng = np.random.default_rng(seed)
    number = rng.integers(0, 10, count).astype(np.float64)
    text = rng.choice(["red", "green", "blue"], count)
    features = pl.DataFrame({"number": number, "text": text})
    classes = pl.Series("class", np.where((number >= 5) | (text == "red"), "high", "low"))
    numbers = pl.Series("value", 3 * number + 10 * (text == "red"))
    return features, classes, numbers


@pytest.mark.parametrize("name", OF_CLASSES)
def test_classifiers_learn_a_simple_rule(name: str) -> None:
    features, classes, _ = rows()
    predicted = learner(name).make(0).fit(features, classes).predict(features)
    assert predicted.dtype == pl.String
    assert set(predicted.unique()) == {"high", "low"}
    assert (predicted == classes).mean() >= 0.9


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_learn_a_sum(name: str) -> None:
    features, _, numbers = rows()
    predicted = learner(name).make(0).fit(features, numbers).predict(features)
    assert (predicted - numbers).abs().mean() < 0.5


@pytest.mark.parametrize("name", ALL)
def test_equal_seeds_give_equal_models(name: str) -> None:
    features, classes, numbers = rows()
    labels = classes if learner(name).predicts == "classes" else numbers
    noisy = labels.gather(np.random.default_rng(5).permutation(len(labels)))
    first, second = (learner(name).make(7).fit(features, noisy).predict(features) for _ in range(2))
    assert first.equals(second)


@pytest.mark.parametrize("name", ALL)
def test_values_that_training_had_not_are_accepted(name: str) -> None:
    features, classes, numbers = rows()
    labels = classes if learner(name).predicts == "classes" else numbers
    gaps = features.with_columns(pl.when(pl.col("number") == 0).then(None).otherwise(pl.col("number")).alias("number"))
    others = pl.DataFrame({"number": [None, 3.0, float("nan")], "text": ["violet", None, "red"]})
    predicted = learner(name).make(0).fit(gaps, labels).predict(others)
    assert len(predicted) == 3
    assert predicted.null_count() == 0


@pytest.mark.parametrize("name", ALL)
def test_missing_numbers_are_accepted_though_training_had_none(name: str) -> None:
    features, classes, numbers = rows()
    labels = classes if learner(name).predicts == "classes" else numbers
    others = pl.DataFrame({"number": [None, 3.0], "text": ["red", "red"]}, schema_overrides={"number": pl.Float64})
    predicted = learner(name).make(0).fit(features, labels).predict(others)
    assert predicted.null_count() == 0


@pytest.mark.parametrize("name", OF_CLASSES)
def test_one_class_is_predicted_always(name: str) -> None:
    features, _, _ = rows(50)
    only = pl.Series("class", ["same"] * 50)
    assert learner(name).make(0).fit(features, only).predict(features).to_list() == ["same"] * 50


@pytest.mark.parametrize("name", OF_CLASSES)
def test_without_anything_to_tell_rows_apart_the_commonest_class_is_predicted(name: str) -> None:
    constant = pl.DataFrame({"nothing": np.zeros(30)})
    labels = pl.Series("class", ["a"] * 20 + ["b"] * 10)
    assert set(learner(name).make(0).fit(constant, labels).predict(constant)) == {"a"}


@pytest.mark.parametrize("name", REGRESSORS)
def test_without_anything_to_tell_rows_apart_the_mean_is_predicted(name: str) -> None:
    constant = pl.DataFrame({"nothing": np.zeros(4)})
    predicted = learner(name).make(0).fit(constant, pl.Series([1.0, 2.0, 3.0, 6.0])).predict(constant)
    # a forest is the mean over rows drawn with replacement
    assert predicted.to_list() == pytest.approx([3.0] * 4, abs=0.2 if name == "forest-regression" else 1e-9)


def test_classes_may_be_numbers() -> None:
    features, classes, _ = rows()
    labels = (classes == "high").cast(pl.Int64)
    predicted = learner("tree").make(0).fit(features, labels).predict(features)
    assert predicted.dtype == pl.Int64
    assert (predicted == labels).all()


def test_an_unknown_learner_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(RequestError, match="no learner 'random-forrest'; did you mean 'random-forest'"):
        learner("random-forrest")


def test_every_name_is_a_learner_of_classes_or_numbers() -> None:
    found = {name: learner(name).predicts for name in LEARNERS}
    assert [name for name, kind in found.items() if kind == "numbers"] == [
        "linear-regression",
        "tree-regression",
        "forest-regression",
        "boosting-regression",
        "weka-linear-regression",
        "m5p",
    ]


def test_shares_are_measured_by_hand() -> None:
    """Three of four pairs are ranked rightly; a class that was not learned is a mistake in whatever was expected."""
    shares = ClassShares(pl.Series(["a", "b"]), np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]]))
    found = shares.measures(pl.Series(["a", "a", "b", "b"]))
    assert found["auc"] == pytest.approx(3 / 4)
    assert found["brier"] == pytest.approx((0.01 + 0.16 + 0.49 + 0.04) / 4)
    assert shares.measures(pl.Series(["c"] * 4)) == {"brier": pytest.approx(((0.82 + 0.52 + 0.58 + 0.68) / 4 + 1) / 2)}
