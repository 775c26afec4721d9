# SPDX-License-Identifier: Apache-2.0
"""Columns of X that say how rows count: they have a part in `fit` only."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import polars as pl
import pytest
from patients import DECLARED, outcomes, patients

import anonfit as af
from anonfit import Anonymizer
from anonfit.estimators.anonymizer import AS_IN_ANONYMIZE
from waivers import waived

TABLE = patients(rows=400)
DIED = outcomes(TABLE)["died"]
WEIGHTS = pl.Series("weight", np.random.default_rng(5).choice([0.2, 1.0, 9.0], 400))
WARDS = pl.Series("ward", [1, 2, 3, 4] * 100)
PERSONS = pl.Series("person", np.arange(400) // 2)
WHOLE = TABLE.with_columns(WEIGHTS, WARDS, PERSONS)


def test_every_keyword_of_anonymize_has_its_like() -> None:
    """Those that say what becomes of a released table have none, nor those about rows that are not in memory: nothing
    is released, and rows are given.
    """
    of_releases = {"data", "identifiers", "insensitive", "default_role", "release", "threads"}
    of_releases |= {
        "values",
        "order",
        "regions",
        "intervals",
        "consent",
        "title",
        "table_name",
        "contact",
        "clusters",
        "query_log",
        "rules",
        "suppression_limit",
        "attack_limit",
    }
    of_releases |= {"engine", "memory", "spill", "sample", "query", "table"}
    own = {*AS_IN_ANONYMIZE, "k", "quasi_identifiers", "targets"}
    assert own == set(inspect.signature(af.anonymize).parameters) - of_releases
    assert own < set(inspect.signature(Anonymizer).parameters)


def test_sample_weights_count_as_they_do_for_anonymize() -> None:
    table = TABLE.with_columns(WEIGHTS)
    found = Anonymizer(k=8, sample_weight="weight", output="labels", **DECLARED).fit(table, DIED)
    expected = af.anonymize(
        table.with_columns(DIED),
        quasi_identifiers=TABLE.columns,
        k=8,
        targets=["died"],
        sample_weight="weight",
        **DECLARED,
    )
    assert found.recoding_.to_json() == expected.recoding.to_json()
    assert found.recoding_.to_json() != Anonymizer(k=8, **DECLARED).fit(TABLE, DIED).recoding_.to_json()
    assert found.transform(table).columns == TABLE.columns


@pytest.mark.parametrize("policy", ["category", "drop"])
def test_missing_values_are_treated_as_by_anonymize(policy: str) -> None:
    found = Anonymizer(k=8, missing_policy=policy, output="labels", **DECLARED).fit(TABLE, DIED)
    expected = af.anonymize(
        TABLE.with_columns(DIED),
        quasi_identifiers=TABLE.columns,
        k=8,
        targets=["died"],
        missing_policy=policy,
        **DECLARED,
    )
    assert found.recoding_.to_json() == expected.recoding.to_json()
    assert len(found.transform(TABLE)) == len(TABLE)


def test_missing_values_may_be_refused() -> None:
    with pytest.raises(af.DataError, match="missing values in 'age', and missing_policy is 'error'"):
        Anonymizer(k=8, missing_policy="error", **DECLARED).fit(TABLE, DIED)


SETTINGS: dict[str, Any] = {"quasi_identifiers": TABLE.columns, "sensitive": waived("ward"), **DECLARED}


KINDS = {"polars": pl.DataFrame, "pandas": pl.DataFrame.to_pandas, "arrow": pl.DataFrame.to_arrow}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("output", ["ends", "expected", "labels", "bounds"])
def test_new_rows_need_no_columns_that_are_not_in_the_output(output: str, kind: str) -> None:
    made = Anonymizer(k=8, output=output, remainder="drop", entity="person", sample_weight="weight", **SETTINGS)
    convert = KINDS[kind]
    expected = made.fit(convert(WHOLE), DIED).transform(convert(WHOLE))
    for absent in (["person", "ward", "weight"], ["ward"]):
        found = made.transform(convert(WHOLE.drop(absent)))
        assert type(found) is type(expected)
        assert pl.DataFrame(found).equals(pl.DataFrame(expected))


def test_columns_that_are_passed_on_are_needed() -> None:
    made = Anonymizer(k=8, entity="person", **SETTINGS).fit(WHOLE.drop("weight"), DIED)
    found = made.transform(TABLE.with_columns(WARDS))
    assert found.shape[1] == len(made.get_feature_names_out())
    with pytest.raises(ValueError, match="yet now missing"):
        made.transform(TABLE.with_columns(PERSONS))
    with pytest.raises(ValueError, match="yet now missing"):
        made.transform(TABLE.drop("age").with_columns(WARDS))
    with pytest.raises(ValueError, match="unseen at fit time"):
        made.transform(TABLE.with_columns(WARDS, other=1))


@pytest.mark.parametrize("word", ["k", "seed", "denoise"])
def test_numbers_and_truths_of_numpy_are_taken(word: str) -> None:
    given = {"k": np.int64(8), "seed": np.int64(3), "denoise": np.bool_(False)}
    plain = {"k": 8, "seed": 3, "denoise": False}
    found = Anonymizer(**{**plain, word: given[word]}, **DECLARED).fit(TABLE, DIED)
    assert found.recoding_.to_json() == Anonymizer(**plain, **DECLARED).fit(TABLE, DIED).recoding_.to_json()


@pytest.mark.parametrize("values", [[0.5, 1.5], [1, 2, 3], list(range(30)), [0.5, 1.5, 2.5]])
def test_y_is_taken_for_what_anonymize_takes_it_for(values: list[float]) -> None:
    y = pl.Series("y", [values[number % len(values)] for number in TABLE["age"].fill_null(0)])
    expected = af.anonymize(
        TABLE.with_columns(y), quasi_identifiers=TABLE.columns, k=8, targets=["y"], release=["y"], **DECLARED
    )
    found = Anonymizer(k=8, **DECLARED).fit(TABLE, y)
    assert found.recoding_.to_json() == expected.recoding.to_json()
