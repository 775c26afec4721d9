# SPDX-License-Identifier: Apache-2.0
"""The transformer: rows in, regions out, row for row, in everything that scikit-learn does with transformers."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from patients import COUNTRIES, DECLARED, outcomes, patients
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import anonfit as af
from anonfit import Anonymizer, RegionEncoder
from anonfit.errors import DataError, Infeasible, RequestError
from waivers import waived

TABLE = patients()
DIED = outcomes(TABLE)["died"]


def fitted(**words: Any) -> Anonymizer:
    return Anonymizer(**{"k": 5, **DECLARED, **words}).fit(TABLE)


# --- rows -------------------------------------------------------------------------------------------------------


def test_rows_are_those_of_the_recoding() -> None:
    anonymizer = fitted(output="labels")
    release = af.anonymize(TABLE, quasi_identifiers=TABLE.columns, k=5, **DECLARED)
    assert anonymizer.recoding_.to_json() == release.recoding.to_json()
    found = anonymizer.transform(TABLE)
    assert found.equals(release.recoding.apply(TABLE))
    assert found.sort(found.columns).equals(release.data.sort(found.columns))
    assert fitted(output="bounds").transform(TABLE).equals(release.recoding.apply(TABLE, values="bounds"))


@pytest.mark.parametrize("encoding", ["ends", "expected", "both"])
def test_features_are_those_of_the_encoder(encoding: str) -> None:
    anonymizer = fitted(output=encoding)
    encoder = RegionEncoder(encoding, anonymizer.recoding_)
    for rows in (TABLE, patients(1), TABLE.head(1), TABLE.clear()):
        recoded = anonymizer.recoding_.apply(rows, unseen="ancestor")
        np.testing.assert_array_equal(anonymizer.transform(rows), encoder.fit(recoded).transform(recoded))
    assert anonymizer.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()


def test_every_region_has_k_training_rows() -> None:
    found = fitted(k=7).transform(TABLE)
    assert np.unique(found, axis=0, return_counts=True)[1].min() >= 7
    assert len(np.unique(found, axis=0)) > 20


def test_values_that_were_not_there_stay_in_the_smallest_region_that_holds_them() -> None:
    anonymizer = fitted(output="labels")
    known = TABLE.filter(pl.col("age").is_not_null()).head(1)
    strange = known.with_columns(country=pl.lit("Atlantis"))
    found, of_known = anonymizer.transform(strange), anonymizer.transform(known)
    assert found["country"].to_list() == ["*"]
    assert anonymizer.transform(known.with_columns(grade=pl.lit(None, dtype=pl.String))).height == 1
    for name in ("age", "admitted"):
        wide, narrow = (
            RegionEncoder("ends", anonymizer.recoding_).fit_transform(frame.select(name))[0]
            for frame in (found, of_known)
        )
        assert wide[0] <= narrow[0]
        assert wide[1] >= narrow[1]


def test_texts_that_mean_missing_mean_it_in_new_rows_too() -> None:
    table = TABLE.with_columns(sex=pl.Series(["?", "F", "M"] * 200))
    anonymizer = Anonymizer(k=5, missing=["?"], output="labels", **DECLARED).fit(table)
    assert anonymizer.recoding_.columns[3].has_missing
    new = table.head(300)
    nulls = new.with_columns(sex=pl.when(pl.col("sex") == "?").then(None).otherwise(pl.col("sex")))
    assert anonymizer.transform(new).equals(anonymizer.transform(nulls))
    assert "missing" in "".join(anonymizer.transform(new)["sex"].cast(pl.String).unique().to_list())


def test_too_few_rows_cannot_be_anonymized() -> None:
    with pytest.raises(Infeasible):
        Anonymizer(k=10).fit(TABLE.select("age").head(9))
    with pytest.raises(ValueError, match="minimum of 10 is required"):
        Anonymizer(k=10).fit(np.zeros((9, 2)))


# --- parts of a table -------------------------------------------------------------------------------------------


def test_other_columns_are_passed_on() -> None:
    table = TABLE.select("age", "sex").with_columns(cost=pl.Series(np.arange(600.0)), ward=pl.lit("a"))
    anonymizer = Anonymizer(k=5, quasi_identifiers=["age", "sex"], output="labels").fit(table)
    assert anonymizer.transform(table).select("cost", "ward").equals(table.select("cost", "ward"))
    with pytest.raises(DataError, match="column 'ward' is no quasi-identifier and holds no numbers"):
        Anonymizer(k=5, quasi_identifiers=["age", "sex"]).fit(table)
    features = Anonymizer(k=5, quasi_identifiers=["age", "sex"]).fit(table.drop("ward"))
    assert features.get_feature_names_out().tolist()[-1] == "cost"
    np.testing.assert_array_equal(features.transform(table.drop("ward"))[:, -1], np.arange(600.0))
    dropped = Anonymizer(k=5, quasi_identifiers=["age", "sex"], remainder="drop").fit(table)
    np.testing.assert_array_equal(dropped.transform(table), features.transform(table.drop("ward"))[:, :-1])


def test_persons_and_not_rows_are_counted() -> None:
    table = TABLE.select("age", "sex").with_columns(who=pl.Series(np.arange(600) // 4))
    anonymizer = Anonymizer(k=5, entity="who").fit(table)
    assert anonymizer.recoding_.quasi_identifiers == ("age", "sex")
    groups = pl.DataFrame(anonymizer.transform(table)).with_columns(who=table["who"])
    keys = [name for name in groups.columns if name != "who"]
    assert groups.group_by(keys).agg(pl.col("who").n_unique())["who"].min() >= 5
    assert not any("who" in name for name in anonymizer.get_feature_names_out())
    counted = Anonymizer(k=5, count="who").fit(table.with_columns(who=pl.lit(5)))
    assert counted.recoding_.regions > anonymizer.recoding_.regions


def test_sensitive_columns_are_no_quasi_identifiers() -> None:
    table = TABLE.with_columns(diagnosis=pl.Series(["a", "b", "c"] * 200))
    anonymizer = Anonymizer(k=5, sensitive=waived("diagnosis"), output="labels", **DECLARED).fit(table)
    assert anonymizer.recoding_.quasi_identifiers == tuple(TABLE.columns)
    assert anonymizer.transform(table)["diagnosis"].equals(table["diagnosis"])


# --- frames -----------------------------------------------------------------------------------------------------


def test_frames_come_out_as_they_went_in() -> None:
    anonymizer = fitted(output="labels")
    expected = anonymizer.transform(TABLE)
    pandas = TABLE.to_pandas().set_index(np.arange(600)[::-1] * 3)
    found = anonymizer.transform(pandas)
    assert isinstance(found, pd.DataFrame)
    assert found.index.equals(pandas.index)
    assert found.astype(str).to_numpy().tolist() == expected.cast(pl.String).to_numpy().tolist()
    assert isinstance(anonymizer.transform(TABLE.to_arrow()), pa.Table)
    assert isinstance(anonymizer.transform(TABLE.lazy()), pl.DataFrame)


@pytest.mark.parametrize("output", ["ends", "expected", "labels", "bounds"])
def test_set_output_gives_pandas_or_polars_whatever_came_in(output: str) -> None:
    for source in (TABLE, TABLE.to_pandas().set_index(np.arange(600) + 7), TABLE.to_arrow()):
        plain = Anonymizer(k=5, output=output, **DECLARED).fit(source)
        names = plain.get_feature_names_out().tolist()
        of_polars = clone(plain).set_output(transform="polars").fit_transform(source)
        of_pandas = clone(plain).set_output(transform="pandas").fit_transform(source)
        assert isinstance(of_polars, pl.DataFrame)
        assert isinstance(of_pandas, pd.DataFrame)
        assert of_polars.columns == of_pandas.columns.tolist() == names
        index = source.index if isinstance(source, pd.DataFrame) else pd.RangeIndex(600)
        pd.testing.assert_frame_equal(of_pandas, of_polars.to_pandas().set_index(index))
        with config_context(transform_output="polars"):
            assert of_polars.equals(plain.transform(source))
        if output in ("ends", "expected"):
            np.testing.assert_array_equal(plain.transform(source), of_polars.to_numpy())


def test_arrays_stand_for_frames() -> None:
    table = TABLE.select("age", "sex", "country")
    array = table.to_pandas().to_numpy(dtype=object)
    from_frame = Anonymizer(k=5).fit(table)
    from_array = Anonymizer(k=5).fit(array)
    assert from_array.get_feature_names_out().tolist()[:3] == ["x0_lower", "x0_upper", "x0_missing"]
    assert from_array.get_feature_names_out(table.columns).tolist() == from_frame.get_feature_names_out().tolist()
    np.testing.assert_array_equal(from_array.transform(array), from_frame.transform(table))
    labels = Anonymizer(k=5, output="labels").fit(array).transform(array)
    assert isinstance(labels, np.ndarray)
    assert labels.tolist() == [list(row) for row in from_frame.recoding_.apply(table).rows()]


def test_inputs_are_not_changed() -> None:
    table, pandas = TABLE.clone(), TABLE.to_pandas()
    copy = pandas.copy()
    fitted().transform(table)
    Anonymizer(k=5, **DECLARED).fit(pandas).transform(pandas)
    assert table.equals(TABLE)
    assert copy.equals(pandas)


# --- scikit-learn -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [DecisionTreeClassifier(max_depth=4, random_state=0), LogisticRegression()])
def test_it_works_in_a_pipeline_and_in_cross_validation(learner: Any) -> None:
    pipeline = make_pipeline(Anonymizer(k=10, output="expected", **DECLARED), StandardScaler(), learner)
    for table in (TABLE, TABLE.to_pandas()):
        scores = cross_val_score(pipeline, table, DIED.to_numpy(), cv=3, error_score="raise")
        assert scores.mean() > 0.75
    # What always says no would be right less often.
    assert (DIED == "yes").mean() > 0.35


def test_a_grid_may_search_its_parameters() -> None:
    pipeline = make_pipeline(Anonymizer(**DECLARED), DecisionTreeClassifier(max_depth=4, random_state=0))
    grid = {"anonymizer__k": [5, 150], "anonymizer__output": ["ends", "expected"]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(TABLE, DIED.to_numpy())
    assert search.best_params_["anonymizer__k"] == 5
    assert search.best_estimator_[0].recoding_.regions > 3


def test_labels_may_go_to_an_encoder_of_their_own() -> None:
    declared = {"orders": DECLARED["orders"], "taxonomies": DECLARED["taxonomies"]}
    pipeline = make_pipeline(Anonymizer(k=5, output="labels", **DECLARED), RegionEncoder(**declared))
    np.testing.assert_array_equal(pipeline.fit_transform(TABLE), fitted().transform(TABLE))


def test_it_may_be_one_of_several_transformers() -> None:
    split = ColumnTransformer([("regions", Anonymizer(k=5), ["age", "sex"]), ("others", "drop", ["country"])])
    assert split.fit_transform(TABLE.to_pandas()).shape == (600, 5)


def test_copies_are_the_same() -> None:
    anonymizer = fitted(taxonomies={"country": af.Taxonomy.from_tree(COUNTRIES)})
    expected = anonymizer.transform(TABLE)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(anonymizer)).transform(TABLE), expected)
    np.testing.assert_array_equal(clone(anonymizer).fit(TABLE).transform(TABLE), expected)
    assert clone(anonymizer).get_params()["k"] == 5
    encoder = RegionEncoder("expected", anonymizer.recoding_).fit(anonymizer.recoding_.apply(TABLE))
    rows = anonymizer.recoding_.apply(TABLE)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(encoder)).transform(rows), encoder.transform(rows))


def test_what_is_pickled_holds_no_row() -> None:
    table = TABLE.with_columns(
        sex=pl.Series(["unique-name", *TABLE["sex"].to_list()[1:]]),
        age=pl.Series([123457, *TABLE["age"].to_list()[1:]]),
    )
    anonymizer = Anonymizer(k=5, **DECLARED).fit(table, DIED)
    text = pickle.dumps(anonymizer)
    assert b"unique-name" not in text
    assert (123457).to_bytes(3, "little") not in text
    assert b"123457" not in text


# --- faults -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"output": "label"}, "output = 'label' is not known; did you mean 'labels'"),
        ({"remainder": "x"}, "remainder = 'x' is not known"),
        ({"quasi_identifiers": ["age", "length"]}, "X has no column 'length', which quasi_identifiers names"),
    ],
)
def test_wrong_settings_are_refused(words: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        fitted(**words)


def test_other_columns_than_in_training_are_refused() -> None:
    with pytest.raises(ValueError, match="feature names should match"):
        fitted().transform(TABLE.rename({"sex": "gender"}))
    with pytest.raises(ValueError, match="feature names should match"):
        fitted().transform(TABLE.drop("sex"))


def test_two_columns_of_one_name_are_refused() -> None:
    table = TABLE.select("age").with_columns(age_lower=pl.lit(1.0))
    with pytest.raises(RequestError, match="two features would be called 'age_lower'"):
        Anonymizer(k=5, quasi_identifiers=["age"]).fit(table)
