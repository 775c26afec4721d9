# SPDX-License-Identifier: Apache-2.0
"""The released form of a tree: what it tells, that it comes back as it was, and that damage is refused."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.algorithms.trees.released import ReleasedTree, release_tree
from anonfit.report.trees import drawn_text

MORTGAGES = pl.DataFrame(
    {
        "marital": ["Unmarried", "Married", "Married", "Married", "Unmarried", "Unmarried"],
        "car": ["Yes", "Yes", "No", "No", "Yes", "No"],
    }
)
RISK = ["good", "good", "bad", "bad", "bad", "bad"]


def figure_1() -> af.KAnonymousTreeClassifier:
    return af.KAnonymousTreeClassifier(3, ["marital"], ["car"], variant="id3").fit(MORTGAGES, RISK)


def classifier(seed: int, **options: Any) -> tuple[af.KAnonymousTreeClassifier, pl.DataFrame, list[str]]:
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "age": rng.integers(20, 80, 400),
            "town": rng.choice(["a", "b", "c", "d"], 400),
            "dose": np.round(rng.normal(10, 3, 400), 1),
        }
    )
    risk = frame["age"].to_numpy() + 5 * frame["dose"].to_numpy() + 20 * (frame["town"].to_numpy() == "a")
    y = np.where(risk + rng.normal(0, 8, 400) > 105, "ill", "well").tolist()
    return af.KAnonymousTreeClassifier(10, ["age", "town"], ["dose"], **options).fit(frame, y), frame, y


@pytest.mark.parametrize("populations", ["exact", "relative", "majority"])
@pytest.mark.parametrize("seed", range(4))
def test_a_tree_comes_back_as_it_was_and_predicts_the_same(populations: str, seed: int) -> None:
    fitted, frame, _ = classifier(seed, pruning=0)
    tree = release_tree(fitted.tree_, populations)
    text = tree.to_model_json()
    again = ReleasedTree.from_model_json(text)
    assert again.to_model_json() == text
    assert again.predict(frame).tolist() == fitted.predict(frame).tolist()
    assert again.leaf_of(frame).tolist() == tree.leaf_of(frame).tolist()
    shares = again.predict_shares(frame)
    places = {"exact": 1e-12, "relative": 0.0011}
    if populations in places:
        np.testing.assert_allclose(shares, fitted.predict_proba(frame), atol=places[populations])
    else:
        assert set(np.unique(shares)) <= {0.0, 1.0}


@pytest.mark.parametrize("populations", ["exact", "relative", "majority"])
def test_the_audit_reads_every_form(populations: str) -> None:
    for seed in range(6):
        fitted, frame, y = classifier(seed, pruning=0)
        tree = release_tree(fitted.tree_, populations)
        data = frame.with_columns(pl.Series("class", y))
        found = af.audit_tree(tree, data, k=10)
        assert found.passed, found.missed
        assert (found.k, found.spans.sizes.groups) == (fitted.tree_.k, len(fitted.tree_.spans))
        assert sorted(span.persons for span in found.of_spans) == sorted(fitted.tree_.spans.sizes.tolist())
        exposure = fitted.exposure()
        assert exposure is not None
        assert found.certain is not None
        assert found.certain.persons == exposure.certain
        assert af.audit_tree(fitted, data, k=10).k == found.k


def test_what_is_told_is_what_was_chosen() -> None:
    tree = figure_1().tree_
    told = {kind: json.loads(release_tree(tree, kind).to_model_json()) for kind in ("exact", "relative", "majority")}
    assert told["exact"]["bins"] == [[3, 0], [0, 1], [1, 1]]
    assert told["relative"]["bins"] == [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    assert "bins" not in told["majority"]
    assert {tuple(one["predicts"]) for one in told.values()} == {(0, 1, 0)}


def test_classes_that_no_leaf_tells_are_not_named_with_the_majority() -> None:
    _, frame, y = classifier(0)
    rare = ["a rare one", *y[1:200], "xerotic", "xerotic", *y[202:]]  # before and after the others
    tree = af.KAnonymousTreeClassifier(10, ["age", "town"], ["dose"]).fit(frame, rare).tree_
    assert tree.classes == ("a rare one", "ill", "well", "xerotic")
    released = release_tree(tree, "majority")
    text = released.to_model_json()
    assert released.classes == ("ill", "well")
    assert "rare" not in text
    assert "xerotic" not in text
    again = ReleasedTree.from_model_json(text)
    assert again.predict(frame).tolist() == np.array(tree.classes)[tree.majority[tree.nodes_of(frame)]].tolist()
    data = frame.with_columns(pl.Series("class", rare))
    assert af.audit_tree(again, data, k=10).passed
    # A class that is not named and yet is the most frequent one of a leaf.
    wrong = data.with_columns(pl.col("class").replace("ill", "sick"))
    assert [one.name for one in af.audit_tree(again, wrong, k=10).missed] == ["populations"]


def test_a_name_that_is_not_known_ends_where_it_would_be_tested() -> None:
    tree = release_tree(figure_1().tree_)
    new = pl.DataFrame({"marital": ["Widowed", "Married", None], "car": ["Yes", "Bicycle", "No"]})
    assert tree.leaf_of(new).tolist() == [-1, -1, 0]
    assert tree.predict(new).tolist() == ["good", "bad", "bad"]
    with pytest.raises(af.DataError, match="no column 'car'; the tree needs"):
        tree.predict(new.drop("car"))


def test_wrong_populations_are_found_by_the_audit() -> None:
    data = MORTGAGES.with_columns(pl.Series("class", RISK))
    for kind, change in (("exact", [3, 1]), ("relative", [0.9, 0.1])):
        written = json.loads(release_tree(figure_1().tree_, kind).to_model_json())
        written["bins"][0] = change
        found = af.audit_tree(ReleasedTree.from_model_json(json.dumps(written)), data, k=3)
        assert [one.name for one in found.missed] == ["populations"]
    written = json.loads(release_tree(figure_1().tree_, "majority").to_model_json())
    written["predicts"][1] = 0
    assert not af.audit_tree(ReleasedTree.from_model_json(json.dumps(written)), data, k=3).passed


def test_a_moved_cut_is_found_by_the_audit() -> None:
    fitted, frame, y = classifier(0)
    written = json.loads(release_tree(fitted.tree_).to_model_json())
    column = next(one for one in written["columns"] if one.get("cuts"))
    column["cuts"][0] -= 1
    found = af.audit_tree(
        ReleasedTree.from_model_json(json.dumps(written)), frame.with_columns(pl.Series("class", y)), k=10
    )
    assert not found.passed


@pytest.mark.parametrize("cut", [10**400, -(10**400), 1e308])
def test_a_cut_beyond_all_numbers_is_no_crash(cut: float, tmp_path: Path) -> None:
    fitted, frame, y = classifier(0)
    written = json.loads(release_tree(fitted.tree_).to_model_json())
    next(one for one in written["columns"] if one.get("cuts"))["cuts"][-1 if cut > 0 else 0] = cut
    (tmp_path / "model.json").write_text(json.dumps(written))
    data = frame.with_columns(pl.Series("class", y))
    for read in (
        lambda: af.audit_tree(tmp_path / "model.json", data, target="class", k=10),
        lambda: af.load_tree(tmp_path / "model.json").predict(frame),
    ):
        with contextlib.suppress(af.AnonfitError):
            read()


DAMAGES: dict[str, Any] = {
    "no format": lambda one: one.pop("format"),
    "another version": lambda one: one.update(version=2),
    "no nodes": lambda one: one.pop("nodes"),
    "a class that is not": lambda one: one["predicts"].__setitem__(0, 7),
    "fewer leaves": lambda one: one["predicts"].pop(),
    "fewer bins": lambda one: one["bins"].pop(),
    "texts in bins": lambda one: one["bins"].__setitem__(0, ["3", "0"]),
    "below nobody": lambda one: one["bins"].__setitem__(0, [-3, 0]),
    "a public column that is not": lambda one: one.update(public=["age"]),
    "no classes": lambda one: one.update(classes=[]),
    "other populations": lambda one: one.update(populations="some"),
    "bins where none are told": lambda one: one.update(populations="majority"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_models_are_refused_by_both_readers(name: str) -> None:
    written = json.loads(release_tree(figure_1().tree_).to_model_json())
    DAMAGES[name](written)
    text = json.dumps(written)
    with pytest.raises(af.ReleaseError):
        ReleasedTree.from_model_json(text)

    class Held:
        def to_model_json(self) -> str:
            return text

    with pytest.raises(af.AnonfitError):
        af.audit_tree(Held(), MORTGAGES.with_columns(pl.Series("class", RISK)), k=3)


def test_what_else_stands_in_a_model_is_found() -> None:
    written = json.loads(release_tree(figure_1().tree_).to_model_json()) | {"rows": [["Lisa", "good"]]}

    class Held:
        def to_model_json(self) -> str:
            return json.dumps(written)

    with pytest.raises(af.ReleaseError, match="holds what no tree of anonfit holds: 'rows'"):
        af.audit_tree(Held(), MORTGAGES.with_columns(pl.Series("class", RISK)), k=3)


def test_the_text_of_figure_1() -> None:
    assert drawn_text(release_tree(figure_1().tree_)) == (
        "class: bad | good\n"
        "public: marital; private: car; the class is private\n"
        "Numbers are training persons.\n"
        "\n"
        "car? (private)\n"
        "├─ No → bad  (3: bad 3)\n"
        "└─ Yes → marital?\n"
        "   ├─ Married → good  (1: good 1)\n"
        "   └─ Unmarried → bad  (2: bad 1, good 1)\n"
    )
    assert "(1:" not in drawn_text(release_tree(figure_1().tree_, "relative"))
    assert drawn_text(release_tree(figure_1().tree_, "majority")).splitlines()[-1] == "   └─ Unmarried → bad"


def test_the_audit_reads_every_kind_of_column() -> None:
    rng = np.random.default_rng(5)
    rows = 500
    days = rng.integers(0, 700, rows)
    frame = pl.DataFrame(
        {
            "admitted": pl.Series(days, dtype=pl.Int32).cast(pl.Date),
            "grade": rng.choice(["low", "mid", "high"], rows),
            "region": rng.choice(["n1", "n2", "s1", "s2"], rows),
            "ward": rng.integers(1, 5, rows),
            "age": rng.integers(0, 100, rows),
            "flag": rng.random(rows) < 0.5,
        }
    )
    ages = {
        "name": "*",
        "children": [{"name": "< 20"}, {"name": "old", "children": [{"name": "[20, 60)"}, {"name": "≥ 60"}]}],
    }
    regions = {"name": "*", "children": [{"name": "n", "children": [{"name": "n1"}, {"name": "n2"}]}, {"name": "s", "children": [{"name": "s1"}, {"name": "s2"}]}]}  # fmt: skip
    told = (days > 300) + (frame["grade"].to_numpy() == "high") + (frame["age"].to_numpy() >= 60) + (frame["ward"].to_numpy() == 2)  # fmt: skip
    y = np.where(told + frame["flag"].to_numpy() + rng.normal(0, 0.4, rows) > 2, 1, 0)
    for public in (["admitted", "age", "region"], ["grade", "ward", "flag"], list(frame.columns)):
        private = [name for name in frame.columns if name not in public]
        fitted = af.KAnonymousTreeClassifier(
            5,
            public,
            private,
            pruning=0,
            types={"grade": "ordinal", "ward": "nominal"},
            orders={"grade": ["low", "mid", "high"]},
            taxonomies={"age": ages, "region": regions},
        ).fit(frame, y)
        tested = {fitted.tree_.columns[column] for column in fitted.tree_.nodes.column.tolist() if column >= 0}
        assert len(tested) >= 4
        found = af.audit_tree(fitted, frame.with_columns(pl.Series("class", y)), k=5)
        assert found.passed, found.missed
        assert sorted(span.persons for span in found.of_spans) == sorted(fitted.tree_.spans.sizes.tolist())
        again = ReleasedTree.from_model_json(fitted.tree_.to_model_json())
        assert again.predict(frame).tolist() == fitted.predict(frame).tolist()
        text = frame.with_columns(pl.Series("class", y)).cast(pl.String)
        assert af.audit_tree(again, text.with_columns(pl.col("flag").cast(pl.String)), k=5).k == found.k
