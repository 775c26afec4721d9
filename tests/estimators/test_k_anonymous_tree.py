# SPDX-License-Identifier: Apache-2.0
"""The classifier as scikit-learn sees it, what it refuses, and what it keeps."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.utils import estimator_checks

from anonfit import DataError, Infeasible, KAnonymousTreeClassifier, RequestError, TaxonomyError, audit_tree

EXPECTED: dict[str, str] = {}
"""Checks that fail, with the reason: none."""


def people(rows: int = 300, seed: int = 0) -> tuple[pl.DataFrame, pl.Series]:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    town = rng.choice(["north", "south", "east"], rows)
    dose = rng.integers(0, 5, rows)
    ill = np.where(rng.random(rows) < 0.1 + 0.6 * (age > 50) + 0.2 * (dose > 2), "ill", "well")
    return pl.DataFrame({"age": age, "town": town, "dose": dose}), pl.Series("state", ill)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("classifier", [KAnonymousTreeClassifier(), KAnonymousTreeClassifier(k=2)], ids=repr)
def test_every_check_of_scikit_learn_passes(classifier: Any) -> None:
    found = estimator_checks.check_estimator(classifier, expected_failed_checks=EXPECTED, on_fail=None, on_skip=None)
    failed = {entry["check_name"] for entry in found if entry["status"] not in ("passed", "skipped")}
    assert failed == set(EXPECTED)


def test_any_frame_gives_the_same_tree() -> None:
    frame, labels = people()
    found = [
        KAnonymousTreeClassifier(k=10).fit(one, two).predict_proba(one)
        for one, two in [(frame, labels), (frame.to_pandas(), labels.to_pandas()), (frame.to_arrow(), labels.to_list())]
    ]
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


def test_order_of_rows_tells_nothing() -> None:
    frame, labels = people()
    order = np.random.default_rng(1).permutation(len(frame))
    one = KAnonymousTreeClassifier(k=5, private=["dose"]).fit(frame, labels).tree_
    two = KAnonymousTreeClassifier(k=5, private=["dose"]).fit(frame[order], labels[order]).tree_
    assert one.tiling.to_json() == two.tiling.to_json()
    assert (one.counts == two.counts).all()
    for field in ("first", "leaves", "classes", "counts"):
        assert (getattr(one.spans, field) == getattr(two.spans, field)).all()


def test_no_training_row_is_kept() -> None:
    frame, labels = people()
    frame = frame.with_columns(town=pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("planted-town")).otherwise("town"))
    frame = frame.with_columns(age=pl.when(pl.int_range(pl.len()) == 8).then(86_753).otherwise("age"))
    classifier = KAnonymousTreeClassifier(k=10).fit(frame, labels)
    kept = pickle.dumps(classifier)
    assert b"planted-town" not in kept
    assert (86_753).to_bytes(8, "little") not in kept
    assert len(kept) < 20_000


def test_a_private_value_that_one_person_has_is_not_named() -> None:
    frame, labels = people()
    frame = frame.with_columns(town=pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("planted-town")).otherwise("town"))
    classifier = KAnonymousTreeClassifier(k=10, private=["town"]).fit(frame, labels)
    assert b"planted-town" not in pickle.dumps(classifier)
    assert classifier.tree_.k >= 10
    assert len(classifier.predict(frame)) == 300


def test_dates_orders_and_declared_values_are_columns_too() -> None:
    rng = np.random.default_rng(3)
    days = rng.integers(0, 3000, 400)
    grade = rng.choice(["low", "middle", "high"], 400)
    kind = rng.choice(["p", "q"], 400)
    frame = pl.DataFrame({"born": pl.Series(days).cast(pl.Date), "grade": grade, "kind": kind})
    labels = np.where((days > 1500) == (grade == "high"), "yes", "no")
    classifier = KAnonymousTreeClassifier(
        5,
        private=["grade"],
        orders={"grade": ["low", "middle", "high"]},
        types={"grade": "ordinal"},
        domains={"kind": ["p", "q", "r"]},
    ).fit(frame, labels)
    assert (classifier.predict(frame) == labels).mean() > 0.95
    assert classifier.tree_.k >= 5
    assert {"born", "grade"} <= {classifier.tree_.columns[one] for one in classifier.tree_.nodes.column if one >= 0}


@pytest.mark.parametrize("private", [[], ["dose"], ["town", "dose"], ["age", "town", "dose"]])
def test_k_holds_whatever_is_private(private: list[str]) -> None:
    frame, labels = people()
    for k in (2, 10, 40):
        tree = KAnonymousTreeClassifier(k, private=private).fit(frame, labels).tree_
        assert tree.k >= k
        assert tree.spans.sizes.sum() == len(frame)
        assert tree.private == tuple(private)


def test_with_everything_private_there_is_one_span() -> None:
    frame, labels = people()
    tree = KAnonymousTreeClassifier(300, private=frame.columns, pruning=0).fit(frame, labels).tree_
    assert len(tree.spans) == 1
    assert tree.leaves > 2


def test_an_empty_son_predicts_like_its_parent() -> None:
    frame = pl.DataFrame({"town": ["a"] * 6 + ["b"] * 6, "age": [1] * 12})
    labels = ["x"] * 5 + ["y"] * 1 + ["y"] * 6
    taxonomy = {"name": "*", "children": [{"name": "a"}, {"name": "b"}, {"name": "never"}]}
    classifier = KAnonymousTreeClassifier(3, taxonomies={"town": taxonomy}, variant="id3", types={"age": "nominal"})
    classifier.fit(frame, labels)
    assert classifier.tree_.bins.tolist() == [[5, 1], [0, 6], [0, 0]]
    assert classifier.predict(pl.DataFrame({"town": ["never"], "age": [1]})).tolist() == ["y"]
    assert classifier.predict_proba(pl.DataFrame({"town": ["never"], "age": [1]})).tolist() == [[5 / 12, 7 / 12]]


def test_a_value_that_is_not_known_stays_at_the_node_that_asks() -> None:
    frame = pl.DataFrame({"town": ["a"] * 6 + ["b"] * 6})
    classifier = KAnonymousTreeClassifier(3).fit(frame, ["x"] * 6 + ["y"] * 6)
    assert classifier.predict_proba(pl.DataFrame({"town": ["elsewhere"]})).tolist() == [[0.5, 0.5]]


def test_classes_of_any_plain_kind() -> None:
    frame, _ = people()
    for classes in ([3, 7], [True, False], ["a", "b"], [0.5, 1.5]):
        labels = np.where(frame["age"].to_numpy() > 50, classes[0], classes[1])
        if classes == [0.5, 1.5]:
            with pytest.raises(ValueError, match="label type"):
                KAnonymousTreeClassifier().fit(frame, labels)
            continue
        found = KAnonymousTreeClassifier().fit(frame, labels).predict(frame)
        assert (found == labels).mean() > 0.95
        assert found.dtype == labels.dtype


def test_classes_that_no_model_can_name_are_refused() -> None:
    frame, _ = people()
    days = np.where(frame["age"].to_numpy() > 50, np.datetime64("2020-01-01"), np.datetime64("2021-01-01"))
    with pytest.raises(RequestError, match="y holds datetime64.*make it texts"):
        KAnonymousTreeClassifier().fit(frame, days)


def test_the_class_has_a_name_of_its_own() -> None:
    frame, labels = people()
    classifier = KAnonymousTreeClassifier().fit(frame, labels.alias("age"))
    assert classifier.tree_.target == "class"
    assert audit_tree(classifier, frame.with_columns(labels.alias("class")), k=10).passed
    crowded = frame.rename({"town": "class"})
    assert KAnonymousTreeClassifier().fit(crowded, labels.to_list()).tree_.target == "class_"


def test_values_of_public_columns_may_be_cuts() -> None:
    frame, labels = people()
    classifier = KAnonymousTreeClassifier(private=["town"], cut_points="value").fit(frame, labels)
    assert classifier.tree_.leaves > 1


def test_cross_validation_learns_something() -> None:
    frame, labels = people(1000)
    found = cross_val_score(KAnonymousTreeClassifier(k=10, private=["dose"]), frame.to_pandas(), labels.to_pandas())
    assert found.mean() > 0.7


def test_more_private_columns_never_lower_what_is_asked_of_spans() -> None:
    frame, labels = people(600)
    for entropy_l in (1.2, 1.5):
        tree = KAnonymousTreeClassifier(5, private=["dose"], entropy_l=entropy_l).fit(frame, labels).tree_
        shares = tree.spans.counts / tree.spans.sizes[:, None]
        entropy = -(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=1)
        assert (entropy >= np.log(entropy_l) - 1e-9).all()


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"k": 0}, RequestError, "k must be a whole number"),
        ({"k": 2.5}, RequestError, "k must be a whole number"),
        ({"k": 301}, Infeasible, "fewer than k = 301"),
        ({"variant": "cart"}, RequestError, "variant = 'cart' is not known"),
        ({"variant": "id3"}, RequestError, "'age' is continuous.*'id3' divides nominal columns only"),
        ({"public": ["age"]}, RequestError, "2 column.*neither public nor private"),
        ({"public": ["age"], "private": ["age", "town", "dose"]}, RequestError, "named public and private"),
        ({"private": ["tow"]}, RequestError, "no column 'tow'; did you mean 'town'"),
        ({"entropy_l": 0.5}, RequestError, "entropy_l must be"),
        ({"entropy_l": 2.5}, Infeasible, "l cannot exceed"),
        ({"max_confidence": 0}, RequestError, "max_confidence must be"),
        ({"max_confidence": 0.5}, Infeasible, "max_confidence must be at least"),
        ({"pruning": 0.7}, RequestError, "pruning must be"),
        ({"max_spans": 0}, RequestError, "max_spans must be"),
        ({"cut_points": "middle"}, RequestError, "cut_points = 'middle'"),
        (
            {"taxonomies": {"town": {"name": "*", "children": [{"name": "north"}, {"name": "south"}]}}},
            TaxonomyError,
            "not in its taxonomy",
        ),
        ({"max_spans": 1, "private": ["dose"], "k": 2}, RequestError, "more than max_spans = 1 spans"),
        ({"max_spans": 1, "k": 2}, RequestError, "more than max_spans = 1 spans"),
        ({"class_is_public": "no"}, RequestError, "class_is_public must be True or False"),
        (
            {"cut_points": "value", "private": ["dose"]},
            RequestError,
            "values of single persons in the private .*'dose'",
        ),
    ],
)
def test_what_is_refused(settings: dict[str, Any], error: type[Exception], text: str) -> None:
    frame, labels = people()
    with pytest.raises(error, match=text):
        KAnonymousTreeClassifier(**settings).fit(frame, labels)


def test_missing_values_are_refused_without_showing_a_row() -> None:
    frame, labels = people()
    bad = frame.with_columns(town=pl.when(pl.int_range(pl.len()) == 3).then(None).otherwise("town"))
    with pytest.raises(DataError, match=r"missing values.*'town': up to 1 row.*not modelled for trees"):
        KAnonymousTreeClassifier().fit(bad, labels)
    blank = frame.with_columns(town=pl.when(pl.int_range(pl.len()) == 3).then(pl.lit("?")).otherwise("town"))
    with pytest.raises(DataError, match="missing values"):
        KAnonymousTreeClassifier(missing=("?",)).fit(blank, labels)
    classifier = KAnonymousTreeClassifier().fit(frame, labels)
    with pytest.raises(DataError, match="missing values"):
        classifier.predict(bad)
    with pytest.raises(DataError, match="y has 1 missing"):
        KAnonymousTreeClassifier().fit(frame, [None, *labels.to_list()[1:]])


def test_a_public_class_is_not_exposed() -> None:
    frame, labels = people()
    assert KAnonymousTreeClassifier(class_is_public=True).fit(frame, labels).exposure() is None


def test_exposure_counts_persons() -> None:
    frame = pl.DataFrame({"town": ["a"] * 4 + ["b"] * 4 + ["c"] * 10})
    labels = ["x"] * 4 + ["y", "y", "y", "x"] + ["y"] * 9 + ["x"]
    classifier = KAnonymousTreeClassifier(4, pruning=0, variant="id3").fit(frame, labels)
    found = classifier.exposure((0.75, 0.9, 0.95))
    assert found is not None
    assert (found.persons, found.certain, found.highest) == (18, 4, 1.0)
    assert found.at_least == {0.75: 18, 0.9: 14, 0.95: 4}


def test_pandas_index_and_names_do_not_matter() -> None:
    frame, labels = people()
    odd = frame.to_pandas().set_index(pd.Index(range(1000, 1300)))
    classifier = KAnonymousTreeClassifier().fit(odd, labels.to_numpy())
    assert classifier.feature_names_in_.tolist() == frame.columns
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(odd.rename(columns={"age": "years"}))
