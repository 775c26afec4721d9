# SPDX-License-Identifier: Apache-2.0
"""Models held against a table: what they predict and what they see."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from evaluation_tables import SPEC, people, spec

from anonfit.errors import RequestError
from anonfit.evaluation.models import ModelSpec, default_models, model_of, tasks_of
from anonfit.release.bind import schema_of
from anonfit.spec.model import Spec

WITH_AGE = SPEC.replace('targets = ["ill"]', 'targets = ["ill", { column = "age", classes = [30, 50] }]')


def tasks(*given: Any, asked: Spec | None = None) -> Any:
    frame, asked = people(100), asked or spec()
    return tasks_of([model_of(one) for one in given], asked, schema_of(asked, frame.columns), frame)


def test_models_are_named_by_what_they_are() -> None:
    assert ModelSpec("ill").title == "ill"
    assert ModelSpec("ill", ("age", "job"), "age > 3").title == "ill using age, job where age > 3"
    assert ModelSpec("ill", name="short").title == "short"


def test_each_target_is_a_model_if_none_is_named() -> None:
    assert [one.target for one in default_models(spec())] == ["ill"]
    with pytest.raises(RequestError, match="nothing to predict"):
        default_models(spec(SPEC.replace('targets = ["ill"]', "targets = []")))


def test_a_model_sees_what_is_released_and_no_target() -> None:
    (task,) = tasks("ill")
    assert task.using == ("age", "job", "hours")
    (task,) = tasks({"target": "ill", "using": ["job", "cost"]})
    assert task.using == ("job", "cost")


def test_kinds_of_targets() -> None:
    ill, cost = tasks("ill", "cost")
    assert (ill.labels.predicts, cost.labels.predicts) == ("classes", "numbers")
    frame = people(100)
    assert cost.labels.raw(frame).to_list() == frame["cost"].to_list()
    assert ill.labels.raw(frame).to_list() == frame["ill"].to_list()


def test_thresholds_make_classes_of_numbers() -> None:
    (age,) = tasks("age", asked=spec(WITH_AGE))
    frame = pl.DataFrame({"age": [29, 30, 49, 50, None]})
    assert age.labels.raw(frame).to_list() == ["0", "1", "1", "2", None]


def test_classes_of_equal_width_divide_the_range() -> None:
    asked = spec(SPEC.replace('targets = ["ill"]', 'targets = [{ column = "cost", equal_width = 2 }]'))
    frame = people(100).with_columns(cost=pl.Series([0.0] * 99 + [100.0]))
    (task,) = tasks_of([ModelSpec("cost")], asked, schema_of(asked, frame.columns), frame)
    assert task.labels.edges == (50.0,)
    assert task.labels.raw(pl.DataFrame({"cost": [49.9, 50.0]})).to_list() == ["0", "1"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"target": "il"}, "predicts 'il', which is no column of the table; did you mean 'ill'"),
        ({"target": "ill", "using": ["agee"]}, "uses 'agee', which is no column of the table; did you mean 'age'"),
        ({"target": "ill", "using": ["ill"]}, "predicts 'ill', so it cannot use it"),
        ({"target": "ill", "using": "age"}, "must be a list of columns"),
        ({"target": "ill", "using": ["age", "job", "age"]}, "names a column twice"),
        ({"target": "ill", "usin": ["age"]}, "no setting 'usin'; did you mean 'using'"),
        ({"using": ["age"]}, "needs a target"),
        ({"target": "job"}, "'job' is a quasi-identifier with classes"),
    ],
)
def test_wrong_models_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestError, match=words):
        tasks(given)


def test_two_models_of_one_name_are_refused() -> None:
    with pytest.raises(RequestError, match="two models are called 'ill'"):
        tasks("ill", {"target": "cost", "name": "ill"})


@pytest.mark.parametrize("role", ["identifier", "entity"])
@pytest.mark.parametrize("given", [{"target": "ill", "using": ["hours"]}, {"target": "hours"}])
def test_models_of_columns_that_are_not_released_are_refused(role: str, given: dict[str, Any]) -> None:
    asked = spec(SPEC.replace("insensitive", role))
    with pytest.raises(RequestError, match=f"'hours', which has the role '{role}' and is not released"):
        tasks(given, asked=asked)
