# SPDX-License-Identifier: Apache-2.0
"""The audit of trees, forests and other models against spans by their definition."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier
from spans_reference import exposed, sizes, spans

from anonfit.auditing.model_trees import read_fitted
from anonfit.auditing.tree_models import spans_of_tree
from anonfit.auditing.trees import audit_tree
from anonfit.errors import DataError, RequestError

MORTGAGES = pd.DataFrame(
    {
        "married": [0, 1, 1, 1, 0, 0],
        "car": [1, 1, 0, 0, 1, 0],
        "risk": ["good", "good", "bad", "bad", "bad", "bad"],
    }
)
"""Table 1 of Friedman, Schuster and Wolff: Lisa, John, Ben, Laura, Robert, Anna."""


def figure_1() -> DecisionTreeClassifier:
    """Car first, then Marital Status below Car = Yes."""
    model = DecisionTreeClassifier(criterion="entropy", random_state=0)
    return model.fit(MORTGAGES[["married", "car"]], MORTGAGES["risk"])


def test_the_tree_of_figure_1_is_3_anonymous() -> None:
    found = audit_tree(figure_1(), MORTGAGES, public=["married"], private=["car", "risk"], k=3)
    assert (found.k, found.passed, found.outcomes, found.spans.sizes.groups) == (3, True, 3, 2)
    assert found.below_k is not None
    assert found.below_k.persons == 0
    assert sorted((span.persons, len(span.leaves)) for span in found.of_spans) == [(3, 2), (3, 2)]
    assert not audit_tree(figure_1(), MORTGAGES, public=["married"], private=["car", "risk"], k=4).passed


def test_what_is_public_decides() -> None:
    """Counting only the rows of a leaf would find 1 in every case."""
    both = audit_tree(figure_1(), MORTGAGES, public=["married", "car"], private=["risk"], k=2)
    assert (both.k, both.passed) == (1, False)
    assert both.below_k is not None
    assert both.below_k.persons == 1  # John
    known = audit_tree(figure_1(), MORTGAGES, public=["married", "risk"], private=["car"], target="risk", k=2)
    assert (known.k, known.class_is_public, known.exposed) == (1, True, ())
    # Both leaves that Married can come to, and both of Unmarried, once for each class.
    assert sorted((span.of_class, span.persons, len(span.leaves)) for span in known.of_spans) == [
        ("bad", 2, 2),
        ("bad", 2, 2),
        ("good", 1, 2),
        ("good", 1, 2),
    ]
    none = audit_tree(figure_1(), MORTGAGES, public=[], private=["married", "car", "risk"], k=6)
    assert (none.k, none.passed) == (6, True)


def people(seed: int, rows: int, *, columns: int = 4, values: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"c{number}": rng.integers(0, values, rows) for number in range(columns)})
    frame["y"] = (frame.sum(axis=1) + rng.integers(0, 3, rows)) % 3 > 0
    return frame


def check(model: Any, outcome: Any, frame: pd.DataFrame, public: list[str], *, class_is_public: bool = False) -> None:
    features = [name for name in frame.columns if name != "y"]
    private = [name for name in features if name not in public]
    found = audit_tree(
        model,
        frame,
        public=[*public, *(["y"] if class_is_public else [])],
        private=[*private, *([] if class_is_public else ["y"])],
        target="y",
        k=5,
    )
    rows = frame.to_dict("records")
    domain = {name: sorted(set(frame[name])) for name in private}
    asked: dict[tuple[Any, ...], Any] = {}

    def answer(row: dict[str, Any]) -> Any:
        key = tuple(row[name] for name in features)
        if key not in asked:
            asked[key] = outcome(pd.DataFrame([row])[features])
        return asked[key]

    expected = spans(answer, rows, public=public, private=domain, public_class="y" if class_is_public else None)
    counted = sizes(expected)
    assert found.k == counted[0]
    assert found.spans.sizes.groups == len(counted)
    assert found.below_k is not None
    assert found.below_k.persons == sum(size for size in counted if size < 5)
    for one in found.exposed:
        assert one.persons.persons == exposed(expected, frame["y"].tolist(), one.confidence)
    assert bool(found.exposed) != class_is_public


@pytest.mark.parametrize("seed", range(15))
def test_fitted_trees_have_the_spans_of_the_definition(seed: int) -> None:
    frame = people(seed, 12 + 3 * seed)
    features = ["c0", "c1", "c2", "c3"]
    model = DecisionTreeClassifier(random_state=seed, min_samples_leaf=1 + seed % 3).fit(frame[features], frame["y"])

    def leaf(rows: pd.DataFrame) -> int:
        return int(model.apply(rows)[0])

    check(model, leaf, frame, features[: seed % 5], class_is_public=seed % 7 == 0)


@pytest.mark.parametrize("trees", [200, pytest.param(4000, marks=pytest.mark.slow)])
def test_spans_of_random_trees_are_those_of_the_definition(trees: int) -> None:
    features = ["c0", "c1", "c2", "c3"]
    grid = pd.DataFrame(list(product(range(3), repeat=4)), columns=features)
    for seed in range(trees):
        frame = people(seed, 8 + seed % 40)
        public = [name for place, name in enumerate(features) if seed >> place & 1]
        model = DecisionTreeClassifier(random_state=seed, max_depth=1 + seed % 7).fit(frame[features], frame["y"])
        leaf = dict(zip(grid.itertuples(index=False, name=None), model.apply(grid).tolist(), strict=True))

        def outcome(row: dict[str, Any], leaf: dict[Any, int] = leaf) -> int:
            return leaf[tuple(row[name] for name in features)]

        private = {name: range(3) for name in features if name not in public}
        expected = spans(outcome, frame.to_dict("records"), public=public, private=private)
        of_row, leaves = spans_of_tree(read_fitted(model, features).trees[0], pl.from_pandas(frame), public)
        assert [frozenset(leaves[span].tolist()) for span in of_row.tolist()] == expected


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier, GradientBoostingClassifier])
def test_trees_of_a_forest_are_joined(kind: Any) -> None:
    frame = people(3, 40, columns=3)
    features = ["c0", "c1", "c2"]
    model = kind(n_estimators=3, max_depth=2, random_state=0).fit(frame[features], frame["y"])

    def leaves(rows: pd.DataFrame) -> tuple[int, ...]:
        return tuple(int(tree.apply(rows.to_numpy())[0]) for tree in np.asarray(model.estimators_).ravel())

    check(model, leaves, frame, ["c0", "c2"])
    found = audit_tree(model, frame, public=["c0", "c2"], private=["c1", "y"], k=5)
    assert found.kind == "forest"
    assert len(found.trees) == 3
    alone = [one.smallest for one in found.trees]
    assert all(one is not None and found.k is not None and found.k <= one for one in alone)
    for one, tree in zip(found.trees, np.asarray(model.estimators_).ravel(), strict=True):
        single = audit_tree(tree, frame, public=["c0", "c2"], private=["c1", "y"], features=features)
        assert (single.k, single.spans.sizes.groups) == (one.smallest, one.spans)


@pytest.mark.parametrize("seed", range(12))
def test_any_model_is_asked_for_all_private_values(seed: int) -> None:
    frame = people(seed, 25, columns=3)
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 3, (3, 3, 3))

    def outcome(rows: pd.DataFrame) -> Any:
        return table[rows["c0"], rows["c1"], rows["c2"]]

    check(outcome, lambda rows: int(outcome(rows)[0]), frame, ["c0", "c1", "c2"][: seed % 4])


def test_a_pipeline_is_a_model_with_outcomes() -> None:
    frame = people(5, 60)
    words = frame.assign(c0=frame["c0"].map({0: "red", 1: "green", 2: "blue"}))
    features = ["c0", "c1", "c2", "c3"]
    model = make_pipeline(OneHotEncoder(), DecisionTreeClassifier(max_depth=3, random_state=0))
    model.fit(words[features], words["y"])
    found = audit_tree(model, words, public=["c0", "c1"], private=["c2", "c3", "y"], k=2)
    assert (found.kind, found.outcomes, found.trees) == ("model", 2, ())

    def leaves(rows: pd.DataFrame) -> Any:
        return model[-1].apply(model[0].transform(rows))

    finer = audit_tree(leaves, words[[*features, "y"]], public=["c0", "c1"], private=["c2", "c3", "y"], target="y")
    assert finer.spans.sizes.groups >= found.spans.sizes.groups
    assert finer.k is not None
    assert found.k is not None
    assert finer.k <= found.k


def test_too_many_private_values_are_refused_unless_fewer_are_given() -> None:
    frame = pl.DataFrame({"a": [0, 1] * 50, "b": list(range(100)), "y": [0, 1] * 50})

    def model(rows: pl.DataFrame) -> Any:
        return (rows["a"] == 1) & (rows["b"] < 50)

    with pytest.raises(DataError, match="asked 200 times \\(2 public combinations under 100 private ones\\)"):
        audit_tree(model, frame, public=["a"], private=["b", "y"], target="y", limit=199)
    found = audit_tree(model, frame, public=["a"], private=["b", "y"], target="y", domains={"b": [0, 99]}, limit=4)
    assert found.k == 50
    narrow = audit_tree(model, frame, public=["a"], private=["b", "y"], target="y", domains={"b": [99]})
    assert narrow.k == 100


def test_single_precision_is_that_of_the_library() -> None:
    """0.1 + 0.2 and 0.3 are one number for scikit-learn."""
    values = [0.3, 0.1 + 0.2, 16777217.0, 16777216.0, 5.0, 0.25]
    frame = pl.DataFrame({"a": values * 2, "y": [0, 1, 0, 1, 1, 0] * 2})
    model = DecisionTreeClassifier(random_state=0).fit(frame.select("a").to_pandas(), frame["y"].to_numpy())
    found = audit_tree(model, frame, public=["a"], private=["y"])
    leaves = model.apply(frame.select("a").to_pandas())
    assert found.spans.sizes.groups == len(set(leaves.tolist()))
    assert found.k == min(np.bincount(leaves)[np.bincount(leaves) > 0])
    assert found.findings[0].met


def test_missing_numbers_go_where_the_library_sends_them() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=80), "b": rng.normal(size=80)})
    frame.loc[::5, "a"] = np.nan
    frame["y"] = ((frame["a"].isna()) | (frame["b"] > 0)).astype(int)
    model = DecisionTreeClassifier(random_state=0, max_depth=4).fit(frame[["a", "b"]], frame["y"])
    found = audit_tree(model, frame, public=["a", "b"], private=["y"])
    counts = np.bincount(model.apply(frame[["a", "b"]]))
    assert found.k == min(counts[counts > 0])
    assert found.spans.sizes.groups == np.count_nonzero(counts)


def test_other_rows_than_the_training_rows_are_told() -> None:
    frame = people(9, 60)
    features = ["c0", "c1", "c2", "c3"]
    model = DecisionTreeClassifier(random_state=0).fit(frame[features], frame["y"])
    found = audit_tree(model, frame.head(40), public=["c0"], private=[*features[1:], "y"], k=1)
    assert not found.passed
    assert [one.name for one in found.missed] == ["training data"]


def test_diversity_and_confidence_are_asked_of_spans() -> None:
    ask = {"public": ["married"], "private": ["car", "risk"]}
    close = audit_tree(figure_1(), MORTGAGES, **ask, diversity=[{"column": "risk", "model": "entropy-l", "l": 1.889}])
    assert [one.model for one in close.spans.diversity] == ["entropy-l"]
    assert close.passed  # every span has one good of three: entropy 0.6365, l = 1.8899
    assert not audit_tree(
        figure_1(), MORTGAGES, **ask, diversity=[{"column": "risk", "model": "entropy-l", "l": 1.9}]
    ).passed
    assert audit_tree(figure_1(), MORTGAGES, **ask, max_confidence=0.67).passed
    assert not audit_tree(figure_1(), MORTGAGES, **ask, max_confidence=0.66).passed
    assert audit_tree(figure_1(), MORTGAGES, **ask).certain is not None


def test_persons_may_be_counted_or_have_several_rows() -> None:
    frame = MORTGAGES.assign(n=[5, 1, 1, 1, 1, 1], who=["a", "b", "b", "c", "a", "d"])
    ask = {"public": ["married"], "private": ["car", "risk"]}
    assert audit_tree(figure_1(), frame, **ask, count="n").k == 3
    assert audit_tree(figure_1(), frame, **ask, count="n").spans.persons == 10
    assert audit_tree(figure_1(), frame, **ask, entity="who").k == 2


def test_public_figures_hide_few_individuals() -> None:
    found = audit_tree(figure_1(), MORTGAGES, public=["married", "car"], private=["risk"], k=2)
    shown = found.public_figures(2)
    assert shown["k"] == "fewer than 2"
    assert {"persons": 1, "leaves": [3]} not in shown["of_spans"]
    assert [one["persons"] for one in shown["of_spans"]].count("fewer than 2") == 1
    assert found.to_dict()["k"] == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"public": ["married"], "private": ["risk"]}, "The model reads 'car'; name it"),
        ({"public": ["married", "car"], "private": ["car", "risk"]}, "Both public and private: 'car'"),
        ({"public": ["married", "married"], "private": ["car", "risk"]}, "named twice"),
        ({"public": "married", "private": ["car", "risk"]}, "are lists of columns"),
        ({}, "needs the public and the private columns"),
        ({"public": ["married"], "private": ["car", "risky"]}, "has no column 'risky' .*did you mean 'risk'"),
        ({"public": ["married"], "private": ["car", "risk"], "target": "car"}, "cannot be the class"),
        ({"public": ["married"], "private": ["car", "risk"], "target": "name"}, "among neither"),
        ({"public": ["married"], "private": ["car", "risk"], "features": ["car", "married"]}, "leave them out"),
        ({"public": ["married"], "private": ["car", "risk"], "max_confidence": 2}, "above 0 and at most 1"),
        ({"public": ["married"], "private": ["car", "risk"], "confidences": [0]}, "above 0 and at most 1"),
        ({"public": ["married"], "private": ["car", "risk"], "k": 0}, "k is a whole number of at least 1"),
        *(
            ({"public": ["married"], "private": ["car", "risk"], "k": k}, "k is a whole number of at least 1")
            for k in (2.5, "3", True)
        ),
        ({"public": ["married"], "private": ["car", "risk"], "confidences": ["x"]}, "above 0 and at most 1"),
        ({"public": ["married"], "private": ["car", "risk"], "domains": {"car": [0]}}, "of a tree, all values"),
        (
            {
                "public": ["married"],
                "private": ["car", "risk"],
                "diversity": [{"column": "married", "model": "distinct-l", "l": 2}],
            },
            "no private column",
        ),
        (
            {"public": ["married", "risk"], "private": ["car"], "max_confidence": 0.9},
            "of a private class, and there is none",
        ),
    ],
)
def test_wrong_requests_are_told(options: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestError, match=words):
        audit_tree(figure_1(), MORTGAGES, **options)


def test_wrong_models_are_told() -> None:
    ask = {"public": ["married"], "private": ["car", "risk"], "target": "risk"}
    with pytest.raises(DataError, match="cannot be audited: give a fitted tree"):
        audit_tree(7, MORTGAGES, **ask)
    with pytest.raises(DataError, match="cannot be audited: give a fitted tree"):
        audit_tree(DecisionTreeClassifier, MORTGAGES, **ask)
    with pytest.raises(DataError, match="does not give one outcome for each row"):
        audit_tree(lambda rows: np.zeros((len(rows), 2)), MORTGAGES, **ask)
    unnamed = DecisionTreeClassifier().fit(MORTGAGES[["married", "car"]].to_numpy(), MORTGAGES["risk"])
    with pytest.raises(DataError, match="give them as 'features'"):
        audit_tree(unnamed, MORTGAGES, **ask)
    assert audit_tree(unnamed, MORTGAGES, features=["married", "car"], **ask).k == 3
    words = MORTGAGES.assign(married=["no", "yes", "yes", "yes", "no", "no"])
    with pytest.raises(DataError, match="with numbers, and it holds other values"):
        audit_tree(figure_1(), words, **ask)
    with pytest.raises(DataError, match="has no rows"):
        audit_tree(figure_1(), MORTGAGES.head(0), **ask)


def test_errors_never_show_values() -> None:
    words = MORTGAGES.assign(married=["secret1", "yes", "yes", "yes", "no", "no"])
    with pytest.raises(DataError) as caught:
        audit_tree(figure_1(), words, public=["married"], private=["car", "risk"])
    assert "secret1" not in str(caught.value)


def test_different_rows_and_how_often_each_was_there_tell_the_same() -> None:
    rng = np.random.default_rng(4)
    rows = pl.DataFrame({name: rng.integers(0, 4, 300) for name in ("a", "b", "c")})
    rows = rows.with_columns(pl.Series("y", np.where(rng.random(300) < 0.3 + 0.1 * rows["a"].to_numpy(), "u", "v")))
    counted = rows.group_by(rows.columns).len("often")
    assert len(counted) < 150
    model = DecisionTreeClassifier(max_depth=4, random_state=0)
    model.fit(rows.select("a", "b", "c").to_pandas(), rows["y"].to_list())
    for public, private in ((["a", "b"], ["c", "y"]), (["a", "y"], ["b", "c"])):
        asked: dict[str, Any] = {"public": public, "private": private, "target": "y", "k": 3}
        expected = audit_tree(model, rows, **asked)
        found = audit_tree(model, counted, times="often", **asked)
        assert found.to_dict() == expected.to_dict()
        assert found.public_figures(3) == expected.public_figures(3)
        assert found.spans.rows == 300
    with pytest.raises(DataError, match="'times' says how often a row was there"):
        audit_tree(model, counted, times="often", count="often", **asked)


def test_the_order_of_spans_tells_nothing_of_the_order_of_rows() -> None:
    rows = MORTGAGES.sample(frac=1, random_state=1)
    asked: dict[str, Any] = {"public": ["married"], "private": ["car", "risk"]}
    assert audit_tree(figure_1(), rows, **asked).of_spans == audit_tree(figure_1(), MORTGAGES, **asked).of_spans
