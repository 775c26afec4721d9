# SPDX-License-Identifier: Apache-2.0
"""Features for linear models: lines that bend at cuts; and the plain Python that recipients copy finds the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    RandomForestRegressor,
    StackingRegressor,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from anonfit.errors import RequestError
from anonfit.estimators.anonymizer import Anonymizer
from anonfit.estimators.features import MOST_BENDS, bends_of, mean_above, suited_encoding
from anonfit.estimators.region_encoder import RegionEncoder
from anonfit.evaluation.learners import CLASSIFIERS, REGRESSORS, learner

PAGE = Path(__file__).parents[2] / "docs" / "recipients.md"
AGES = ["< 30", "[30, 45)", "≥ 45", "[45, 50)", "*", "[30, 50)"]
JOBS = ["Sales", "{Craft, Sales}", "*", "Craft", "{Clerk, Craft}", "Clerk"]


def copied() -> dict[str, Any]:
    """What the page's code defines."""
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    found: dict[str, Any] = {}
    exec(code, found)
    return found


def test_a_value_is_above_a_bend_by_the_mean_over_its_interval() -> None:
    rng = np.random.default_rng(0)
    lower = rng.uniform(-10, 10, 50)
    upper = lower + rng.uniform(0.1, 10, 50)
    values = lower[:, None] + (upper - lower)[:, None] * (np.arange(20000) + 0.5) / 20000
    expected = np.maximum(values - 3.0, 0).mean(axis=1)
    np.testing.assert_allclose(mean_above(lower, upper, 3.0), expected, atol=1e-6)
    assert mean_above(np.array([5.0, 1.0]), np.array([5.0, 1.0]), 3.0).tolist() == [2.0, 0.0]


def test_numbers_of_any_size_have_finite_features() -> None:
    far = np.array([-1e308, 1e308])
    assert np.isfinite(mean_above(far[:1], far[1:], -1e308)).all()
    assert np.isfinite(mean_above(far[1:], far[1:], -1e308)).all()


def test_lines_bend_at_few_of_many_cuts() -> None:
    assert bends_of(np.array([1.0, 4.0])) == (1.0, 4.0)
    many = bends_of(np.arange(100.0))
    assert len(many) == MOST_BENDS
    assert (many[0], many[-1]) == (0.0, 99.0)


def test_smooth_features_are_named_by_their_bends() -> None:
    encoder = RegionEncoder("smooth").fit(pl.DataFrame({"age": AGES}))
    names = ["age", "age_lower", "age_upper", "age_above_30", "age_above_45", "age_above_50"]
    assert encoder.get_feature_names_out().tolist() == names


@pytest.mark.parametrize(
    "labels",
    [
        AGES,
        ["[0, 30)", "[30, 60)", "[60, 120]"],
        ["< 5", "≥ 5"],
        ["< 39", "39", "[40, 45)", "≥ 45"],
        ["missing", "missing or < 30", "[30, 45)", "≥ 45", "*", "not missing"],
        ["[0, 30)", "missing or [30, 60)", "[60, 120]", "missing"],
        ["≤ 37", "38–42", "≥ 43"],
        ["0–17", "18", "missing or 19–120"],
        ["[3, 7]", "[9, 12]", "20", "-4"],
        [f"[{cut}, {cut + 1})" for cut in range(30)],
        ["< 2020-01-01", "[2020-01-01, 2020-03-01T12:00:00)", "≥ 2020-03-01T12:00:00"],
        ["< 2020-01-01", "≥ 2020-01-01", "missing"],
    ],
)
def test_recipients_who_copy_the_page_find_the_same_numbers(labels: list[str]) -> None:
    found = np.array(copied()["number_features"](labels))
    frame = pl.DataFrame({"age": labels})
    np.testing.assert_allclose(found, RegionEncoder("smooth").fit_transform(frame))
    missing = found[:, -1:] if any("missing" in label for label in labels) else found[:, :0]
    for encoding, columns in (("expected", slice(0, 1)), ("ends", slice(1, 3)), ("both", slice(0, 3))):
        expected = RegionEncoder(encoding).fit_transform(frame)
        np.testing.assert_allclose(np.hstack([found[:, columns], missing]), expected)


@pytest.mark.parametrize("labels", [["*", "*"], ["*", "missing", "not missing"]])
def test_a_column_that_is_nowhere_cut_is_0_to_recipients(labels: list[str]) -> None:
    found = np.array(copied()["number_features"](labels))
    frame = pl.DataFrame({"age": labels})
    np.testing.assert_allclose(found, RegionEncoder("smooth", types={"age": "continuous"}).fit_transform(frame))


@pytest.mark.parametrize(
    "labels",
    [
        JOBS,
        ["missing or {Craft, Sales}", "Craft", "*", "missing", "not missing"],
        ["missing or Craft", "Sales"],
        ['"a, b"', '{"a, b", c d}', '"{x}"', 'missing or {"a \\"q\\", b", c d}', "*"],
        ["other", "{other, no - name}", "no - name"],
    ],
)
def test_recipients_who_copy_the_page_find_the_same_shares(labels: list[str]) -> None:
    found = np.array(copied()["name_features"](labels))
    np.testing.assert_allclose(found, RegionEncoder("expected").fit_transform(pl.DataFrame({"job": labels})))


def test_recipients_who_know_a_taxonomy_find_the_same_shares() -> None:
    leaves = [{"name": "DE"}, {"name": "FR"}]
    tree = {"name": "*", "children": [{"name": "EU", "children": leaves}, {"name": "ZA"}]}
    labels = ["EU", "ZA", "FR", "{EU, ZA}", "*"]
    encoder = RegionEncoder("expected", taxonomies={"country": tree})
    found = np.array(copied()["name_features"](labels, {"EU": ["FR", "DE"]}))
    np.testing.assert_allclose(found, encoder.fit_transform(pl.DataFrame({"country": labels})))


# --- which features suit a learner -------------------------------------------------------------------------------


def test_linear_models_are_given_smooth_features_and_others_expected_ones() -> None:
    linear = (LogisticRegression(), Ridge(), LinearSVC(), make_pipeline(StandardScaler(), Ridge()))
    wrapped = (GridSearchCV(Ridge(), {}), TransformedTargetRegressor(Ridge()))
    by_default = (CalibratedClassifierCV(), TransformedTargetRegressor())
    voting = VotingClassifier([("a", LogisticRegression()), ("b", "drop"), ("c", LinearSVC())])
    assert {suited_encoding(one) for one in (*linear, *wrapped, *by_default, voting)} == {"smooth"}
    some = StackingRegressor([("a", Ridge()), ("b", RandomForestRegressor())])
    others = (HistGradientBoostingClassifier(), RandomForestRegressor(), BaggingClassifier(), some)
    assert {suited_encoding(one) for one in others} == {"expected"}
    by_name = {name for name in (*CLASSIFIERS, *REGRESSORS) if learner(name).encoding == "smooth"}
    assert by_name == {"linear-svm", "logistic-regression", "linear-regression"}
    assert learner("j48").encoding == "ends"


def test_a_pipeline_gives_a_learner_the_features_that_suit_it() -> None:
    rng = np.random.default_rng(0)
    people = pl.DataFrame({"age": rng.integers(18, 90, 300), "hours": rng.integers(0, 60, 300)})
    ill = np.where(people["age"].to_numpy() + 9 * rng.normal(size=300) > 50, "yes", "no")
    for model, steps, encoding in (
        (LogisticRegression(), ["anonymizer", "standardscaler", "logisticregression"], "smooth"),
        (HistGradientBoostingClassifier(), ["anonymizer", "histgradientboostingclassifier"], "expected"),
    ):
        pipeline = Anonymizer.before(model, k=7).fit(people, ill)
        assert list(pipeline.named_steps) == steps
        assert pipeline[0].output == encoding
        assert pipeline[0].k == 7
        assert pipeline.score(people, ill) > 0.8


def test_the_output_of_such_a_pipeline_is_not_asked_for() -> None:
    with pytest.raises(RequestError, match="leave output out"):
        Anonymizer.before(LogisticRegression(), output="ends")
