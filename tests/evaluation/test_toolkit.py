# SPDX-License-Identifier: Apache-2.0
"""ai-privacy-toolkit as a method of `evaluate`: what models see of its release, and what it cannot be asked for."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import polars as pl
import pytest
from evaluation_tables import SPEC, people, spec

import anonfit as af
from anonfit.errors import MissingPackage, RequestError
from anonfit.evaluation import grid, toolkit
from anonfit.evaluation.judging import TrainingAndTest
from anonfit.evaluation.learners import NumberMatrix
from anonfit.evaluation.models import default_models, tasks_of
from anonfit.evaluation.toolkit import TOOLKIT_METHODS, Matrix, Released
from anonfit.tables.schema import Schema

FOREST = TOOLKIT_METHODS["toolkit-forest"]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the toolkit was asked; in its place every row is released as it is, in two groups."""
    found: list[dict[str, Any]] = []

    def fake(training: Matrix, test: Matrix, predictions: Any, k: int, slices: Any, *, numbers: bool) -> Released:
        found.append({"training": training, "predictions": predictions, "k": k, "slices": slices, "numbers": numbers})
        return Released(training, test, 2)

    monkeypatch.setattr(toolkit, "anonymize_class", lambda: None)
    monkeypatch.setattr(toolkit, "released", fake)
    return found


def test_it_is_given_one_hot_columns_and_what_a_guide_predicts(calls: list[dict[str, Any]]) -> None:
    frame = people(200)
    found = af.evaluate(frame, spec(), methods=["toolkit-forest"], ks=[7], learners=["tree"], folds=2, workers=1)
    assert [call["k"] for call in calls] == [7, 7]
    first = calls[0]
    jobs = frame["job"].n_unique()
    assert first["training"].shape == (100, 1 + jobs)
    assert first["slices"] == [range(1, 1 + jobs)]
    assert (first["training"][:, 1:].sum(axis=1) == 1).all()
    assert len(first["predictions"]) == 100
    assert not first["numbers"]
    assert set(found.figures.filter(figure="group_count")["value"]) == {2.0}
    assert found.frame.filter(part="test", measure="accuracy")["value"].min() > 0.5


def test_models_that_use_some_columns_see_these(calls: list[dict[str, Any]]) -> None:
    frame, asked = people(200), spec()
    setting = grid._setting(
        asked, frame, models=[], learners=["tree"], protocol="holdout", folds=2, seed=0, encoding="suited"
    )
    division = setting.division(0)
    release, groups = FOREST.released(division, setting.tasks, 5)
    assert groups == 2
    assert release.training.frame(["age"]).width == 1
    assert release.test.frame(["job"]).width == frame["job"].n_unique()
    assert len(release.test.frame()) == len(division.test)


def test_what_it_cannot_be_asked_for_is_refused(calls: list[dict[str, Any]]) -> None:
    frame = people(60)
    hours = "[columns.hours]\nrole = "
    diverse = SPEC.replace(f'{hours}"insensitive"', f'{hours}"sensitive"')
    diverse += "[[privacy.diversity]]\ncolumn = 'hours'\nmodel = 'distinct-l'\nl = 2\n"
    asked: dict[str, Any] = {"methods": ["toolkit-boosting"], "folds": 2, "workers": 1, "learners": ["tree"]}
    for words, text, fault in (
        ({"protocol": "raw-test"}, SPEC, "protocols other than 'holdout'"),
        ({"models": [{"target": "ill", "where": "age >= 50"}]}, SPEC, "models of some rows"),
        ({}, diverse, "demands other than k"),
    ):
        with pytest.raises(RequestError, match=fault):
            af.evaluate(frame, spec(text), **asked | words)
    with pytest.raises(RequestError, match="did you mean 'toolkit-forest'"):
        af.evaluate(frame, spec(), **asked | {"methods": ["toolkit-forst"]})


def test_without_its_package_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "find_spec", lambda _: None)
    monkeypatch.delitem(sys.modules, "apt.anonymization", raising=False)
    with pytest.raises(MissingPackage, match="toolkit"):
        af.evaluate(people(60), spec(), methods=["toolkit-forest"], learners=["tree"], folds=2, workers=1)


def test_the_columns_of_a_matrix_are_known_by_their_feature() -> None:
    frame = pl.DataFrame({"place": ["a", "b", "a"], "age": [1.0, None, 3.0], "size": [1.0, 2.0, 3.0]})
    for may_be_missing, expected in (
        (False, {"age": range(2), "size": range(2, 3), "place": range(3, 5)}),
        (True, {"age": range(1), "size": range(1, 2), "place": range(2, 4)}),
    ):
        known = NumberMatrix.of(frame, np.ones(3), may_be_missing=may_be_missing)
        assert known.places == expected
        assert known.places_of_texts == [expected["place"]]
        assert known.matrix(frame)[:, expected["place"].start].tolist() == [1.0, 0.0, 1.0]
        assert known.matrix(frame)[:, expected["size"].start].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.skipif(find_spec("apt") is None, reason="ai-privacy-toolkit is not installed")
@pytest.mark.filterwarnings("ignore")
def test_its_groups_have_k_rows() -> None:
    frame, asked = people(300), spec()
    schema = Schema(tuple(grid._rows(asked, frame, 2)[0].columns))
    tasks = tasks_of(default_models(asked), asked, schema, frame)
    release, groups = FOREST.released(TrainingAndTest(schema, frame[:200], frame[200:]), tasks, 10)
    sizes = release.training.frame(["age", "job"]).group_by(pl.all()).len()["len"]
    assert groups >= len(sizes) > 1
    assert sizes.min() >= 10
