# SPDX-License-Identifier: Apache-2.0
"""y becomes target columns: their names, their kinds, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from anonfit import Anonymizer
from anonfit.errors import DataError, RequestError
from anonfit.estimators.inputs import targets_of

TABLE = pl.DataFrame({"age": range(40), "target": range(40)})


def found(y: Any, settings: Any = None, criterion: str = "auto") -> Any:
    return targets_of(y, settings, table=TABLE, criterion=criterion)


CLASSES = ["a", "b"] * 20


@pytest.mark.parametrize(
    "y",
    [
        CLASSES,
        np.array(CLASSES),
        np.array(CLASSES, dtype=object),
        np.array(CLASSES).reshape(-1, 1),
        pl.Series(CLASSES),
        pl.Series(CLASSES, dtype=pl.Categorical),
        pd.Series(CLASSES),
        pd.Series(CLASSES, dtype="category", index=range(40, 80)),
        pd.Series(CLASSES, name="target"),
    ],
)
def test_classes_are_nominal(y: Any) -> None:
    targets = found(y)
    assert targets.names == ["target_2"]  # `target` is a column of the table
    assert targets.types == {"target_2": "nominal"}
    assert targets.columns[0].cast(pl.String).to_list() == CLASSES
    assert targets.entries == ({"column": "target_2"},)


@pytest.mark.parametrize(
    ("y", "criterion", "kind"),
    [
        ([0, 1] * 20, "auto", "nominal"),
        ([0.0, 1.0] * 20, "auto", "nominal"),
        ([True, False] * 20, "auto", "nominal"),
        ([0.5, 1.0] * 20, "auto", "nominal"),
        ([0.5, 1.0, 1.5, 2.0] * 10, "auto", "continuous"),
        ([number % 20 for number in range(40)], "auto", "nominal"),
        ([number % 21 for number in range(40)], "auto", "continuous"),
        ([0, 1] * 20, "lsd", "continuous"),
        (list(range(40)), "infogain", "nominal"),
        ([0.5, 1.0] * 20, "infogain", "continuous"),
    ],
)
def test_numbers_are_classes_or_numbers(y: Any, criterion: str, kind: str) -> None:
    assert found(np.array(y), criterion=criterion).types == {"target_2": kind}


def test_what_is_said_of_a_target_stands() -> None:
    assert found([0, 1] * 20, [{"type": "continuous"}]).types == {"target_2": "continuous"}
    targets = found(pd.Series(range(40), name="cost"), [{"classes": [10, 20], "weight": 2.0}])
    assert targets.types == {"cost": "continuous"}
    assert targets.entries == ({"classes": [10, 20], "weight": 2.0, "column": "cost"},)
    assert found([0, 1] * 20, ["died"]).names == ["died"]
    assert found([0, 1] * 20, "died").names == ["died"]


def test_several_columns_are_several_targets() -> None:
    frame = pd.DataFrame({"died": CLASSES, "cost": np.arange(40) / 7})
    for y in (frame, pl.from_pandas(frame)):
        targets = found(y, [{}, {"weight": 0.5}])
        assert targets.names == ["died", "cost"]
        assert targets.types == {"died": "nominal", "cost": "continuous"}
        assert targets.entries == ({"column": "died"}, {"weight": 0.5, "column": "cost"})
    assert found(np.arange(80).reshape(40, 2) / 7).names == ["target_2", "target_3"]


def test_a_quasi_identifier_may_be_a_target_too() -> None:
    targets = found(CLASSES, [{"weight": 2.0}, {"column": "age", "classes": [20]}])
    assert targets.entries == ({"weight": 2.0, "column": "target_2"}, {"column": "age", "classes": [20]})
    assert targets.names == ["target_2"]
    assert found(None, ["age"]).entries == ({"column": "age"},)


@pytest.mark.parametrize("y", [[None, *CLASSES[1:]], [float("nan"), *range(39)], pd.Series([pd.NA, *CLASSES[1:]])])
def test_missing_values_are_refused(y: Any) -> None:
    with pytest.raises(DataError, match=r"y has missing values \('target_2': 1 row\)"):
        found(y if isinstance(y, pd.Series) else np.array(y, dtype=object))
    with pytest.raises(DataError, match="y has missing values"):
        Anonymizer(k=2).fit(TABLE, y)


def test_missing_numbers_are_refused() -> None:
    with pytest.raises(DataError, match="y has missing values"):
        found(np.array([np.nan, *np.arange(39.0)]))


def test_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        found(CLASSES[1:])


@pytest.mark.parametrize(
    ("y", "settings", "message"),
    [
        (None, [{"weight": 2.0}], "there is no y"),
        (CLASSES, [{}, {}], "targets has 2 entries for y, which has 1 column"),
        (CLASSES, [1], "an entry of targets is a name, or settings"),
        (np.zeros((40, 2, 2)), None, "y must be a column of values or several"),
    ],
)
def test_settings_that_do_not_fit_are_refused(y: Any, settings: Any, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        found(y, settings)
