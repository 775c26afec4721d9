# SPDX-License-Identifier: Apache-2.0
"""Weka's learners: what they learn, what they accept, and that every process can have them."""

from __future__ import annotations

import shutil

import numpy as np
import polars as pl
import pytest
from evaluation_tables import people, spec
from test_learners import rows

import anonfit as af
from anonfit.evaluation.learners import WEKA_CLASSIFIERS, WEKA_REGRESSORS, learner

pytest.importorskip("weka", reason="the extra weka is not installed")
if shutil.which("java") is None:
    pytest.skip("Java is not installed", allow_module_level=True)


@pytest.mark.parametrize("name", WEKA_CLASSIFIERS)
def test_classifiers_learn_a_simple_rule(name: str) -> None:
    features, classes, _ = rows()
    predicted = learner(name).make(0).fit(features, classes).predict(features)
    assert (predicted == classes).mean() >= 0.9


@pytest.mark.parametrize("name", WEKA_REGRESSORS)
def test_regressors_learn_a_sum(name: str) -> None:
    features, _, numbers = rows()
    predicted = learner(name).make(0).fit(features, numbers).predict(features)
    assert (predicted - numbers).abs().mean() < 0.5


@pytest.mark.parametrize("name", [*WEKA_CLASSIFIERS, *WEKA_REGRESSORS])
def test_values_that_training_had_not_are_accepted(name: str) -> None:
    features, classes, numbers = rows()
    labels = classes if learner(name).predicts == "classes" else numbers
    others = pl.DataFrame({"number": [None, 3.0, float("nan")], "text": ["violet", None, "red"]})
    predicted = learner(name).make(0).fit(features, labels).predict(others)
    assert len(predicted) == 3
    assert predicted.null_count() == 0


@pytest.mark.parametrize("name", ["j48", "weka-random-forest"])
def test_equal_seeds_give_equal_models(name: str) -> None:
    features, classes, _ = rows()
    noisy = classes.gather(np.random.default_rng(5).permutation(len(classes)))
    first, second = (learner(name).make(7).fit(features, noisy).predict(features) for _ in range(2))
    assert first.equals(second)


def test_j48_splits_texts_by_their_values() -> None:
    # A multiway split on a nominal attribute tells each text apart; a number per text could not in one step.
    features = pl.DataFrame({"t": ["a", "b", "c", "d"] * 20})
    labels = pl.Series("class", ["x", "y", "x", "y"] * 20)
    model = learner("j48").make(0).fit(features, labels)
    assert model.predict(pl.DataFrame({"t": ["d", "c", "b", "a"]})).to_list() == ["y", "x", "y", "x"]
    assert str(model.classifier.measureNumLeaves()) == "4.0"  # type: ignore[attr-defined]


def test_j48_prunes_what_chance_made() -> None:
    rng = np.random.default_rng(0)
    features = pl.DataFrame({"n": rng.normal(size=300)})
    labels = pl.Series(np.where(rng.random(300) < 0.8, "often", "seldom"))
    assert set(learner("j48").make(0).fit(features, labels).predict(features)) == {"often"}


def test_one_class_is_predicted_always() -> None:
    features, _, _ = rows(50)
    only = pl.Series("class", ["same"] * 50)
    for name in WEKA_CLASSIFIERS:
        assert learner(name).make(0).fit(features, only).predict(features).to_list() == ["same"] * 50


def test_every_process_has_a_java_machine_of_its_own() -> None:
    here = learner("j48").make(0).fit(*rows()[:2])  # this process has one already
    found = af.evaluate(people(), spec(), methods=["spec"], learners=["j48"], folds=2, workers=2)
    again = af.evaluate(people(), spec(), methods=["spec"], learners=["j48"], folds=2, workers=1)
    assert here is not None
    assert found.frame.equals(again.frame)
    assert found.summary()["test"][0] > 0.85
