# SPDX-License-Identifier: Apache-2.0
"""The nearest safe tree: held against an obvious pruning, and against the audit."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import anonfit as af

FEATURES = ["a", "b", "c"]


def people(seed: int, rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.integers(0, 4, rows) for name in FEATURES})
    frame["y"] = np.where((frame["a"] * frame["b"] + frame["c"] + rng.integers(0, 2, rows)) % 3 == 0, "yes", "no")
    return frame


def fitted(frame: pd.DataFrame, seed: int = 0) -> DecisionTreeClassifier:
    return DecisionTreeClassifier(random_state=seed).fit(frame[FEATURES], frame["y"])


def leaf_sets(
    model: Any, cut: set[int], public: list[str], private: list[str]
) -> dict[tuple[int, ...], frozenset[int]]:
    """For every public combination the ends that it can come to, where some nodes are cut to leaves."""
    tree = model.tree_
    found = {}
    for known in product(range(4), repeat=len(public)):
        ends = set()
        for rest in product(range(4), repeat=len(private)):
            row = dict(zip([*public, *private], [*known, *rest], strict=True))
            node = 0
            while tree.children_left[node] >= 0 and node not in cut:
                below = row[FEATURES[tree.feature[node]]] <= tree.threshold[node]
                node = tree.children_left[node] if below else tree.children_right[node]
            ends.add(int(node))
        found[known] = frozenset(ends)
    return found


def smallest_span(model: Any, cut: set[int], frame: pd.DataFrame, public: list[str]) -> int:
    private = [name for name in FEATURES if name not in public]
    ends = leaf_sets(model, cut, public, private)
    spans = [ends[tuple(row)] for row in frame[public].itertuples(index=False)]
    return min(spans.count(span) for span in set(spans))


def cut_nodes(model: Any, safe: Any) -> set[int]:
    """The nodes of the fitted tree at which the safe one ends."""
    tree, nodes = model.tree_, safe.nodes
    first = nodes.first_child
    pairs, found = [(0, 0)], set()
    while pairs:
        node, other = pairs.pop()
        if tree.children_left[node] < 0:
            continue
        if nodes.children[other] == 0:
            found.add(int(node))
        else:
            assert FEATURES[tree.feature[node]] == safe.columns[int(nodes.column[other])]
            pairs += [(tree.children_left[node], first[other]), (tree.children_right[node], first[other] + 1)]
    return found


@pytest.mark.parametrize("seed", range(25))
def test_nothing_that_was_cut_off_could_stay(seed: int) -> None:
    frame = people(seed, 40 + 4 * seed)
    public = [["a"], ["a", "b"], ["a", "b", "c"], ["b", "c"]][seed % 4]
    model, k = fitted(frame, seed), 2 + seed % 9
    private = [*(name for name in FEATURES if name not in public), "y"]
    safe = af.nearest_safe_tree(model, frame, public=public, private=private, k=k)
    found = af.audit_tree(safe, frame, public=public, private=private, k=k)
    assert found.passed
    cut = cut_nodes(model, safe)
    assert smallest_span(model, cut, frame, public) == found.k
    for node in cut:
        below = {int(model.tree_.children_left[node]), int(model.tree_.children_right[node])}
        inner = {one for one in below if model.tree_.children_left[one] >= 0}
        assert smallest_span(model, cut - {node} | inner, frame, public) < k


def put_back(model: Any, frame: pd.DataFrame, public: list[str], k: int) -> set[int]:
    """The nodes at which a tree ends whose tests were put back one by one, those that tell most first."""
    tree, order = model.tree_, [0]
    for node in order:
        order += [int(one[node]) for one in (tree.children_left, tree.children_right) if one[node] >= 0]
    rows = model.decision_path(frame[FEATURES]).toarray().T == 1  # (node, row)

    def bits(node: int) -> float:
        counts = frame["y"][rows[node]].value_counts().to_numpy()
        return float(-(counts * np.log2(counts / counts.sum())).sum())

    def told(node: int) -> float:
        return round(bits(node) - bits(tree.children_left[node]) - bits(tree.children_right[node]), 6)

    cut, waiting = {0}, [0]
    while waiting:
        waiting.sort(key=lambda node: (-told(node), order.index(node)))
        node = waiting.pop(0)
        sons = {int(tree.children_left[node]), int(tree.children_right[node])}
        inner = {one for one in sons if tree.children_left[one] >= 0}
        if smallest_span(model, cut - {node} | inner, frame, public) >= k:
            cut = cut - {node} | inner
            waiting += inner
    return cut


@pytest.mark.parametrize("seed", range(12))
def test_tests_that_tell_most_of_the_class_stay(seed: int) -> None:
    frame = people(seed, 90)
    public, k = [["a", "b"], ["b", "c"], ["a"]][seed % 3], 4 + seed
    model = DecisionTreeClassifier(max_depth=5, random_state=seed).fit(frame[FEATURES], frame["y"])
    private = [*(name for name in FEATURES if name not in public), "y"]
    safe = af.nearest_safe_tree(model, frame, public=public, private=private, k=k)
    assert cut_nodes(model, safe) == put_back(model, frame, public, k)


def test_a_safe_tree_stays_as_it_is_and_predicts_the_same() -> None:
    frame = people(1, 200)
    model = DecisionTreeClassifier(min_samples_leaf=20, random_state=0).fit(frame[FEATURES], frame["y"])
    safe = af.nearest_safe_tree(model, frame, public=FEATURES, private=["y"], k=20)
    assert safe.leaves == model.get_n_leaves()
    assert safe.predict(frame).tolist() == model.predict(frame[FEATURES]).tolist()
    np.testing.assert_allclose(safe.predict_shares(frame), model.predict_proba(frame[FEATURES]))
    assert af.audit_tree(safe, frame).k == af.audit_tree(model, frame, public=FEATURES, private=["y"]).k


def test_private_tests_stay() -> None:
    frame = people(2, 100)
    model = fitted(frame)
    safe = af.nearest_safe_tree(model, frame, public=[], private=[*FEATURES, "y"], k=100)
    assert safe.leaves == model.get_n_leaves()


def test_cuts_are_no_thresholds_of_records() -> None:
    frame = pd.DataFrame({"a": [17.123456789] * 10 + [55.987654321] * 10, "y": [0] * 10 + [1] * 10})
    model = DecisionTreeClassifier().fit(frame[["a"]], frame["y"])
    safe = af.nearest_safe_tree(model, frame, public=["a"], private=["y"], k=5)
    text = safe.to_model_json()
    assert safe.leaves == 2
    assert str(model.tree_.threshold[0]) not in text
    assert "17.12" not in text
    assert "55.98" not in text


def test_diversity_and_a_public_class_are_held() -> None:
    frame = people(4, 300)
    model = fitted(frame)
    safe = af.nearest_safe_tree(model, frame, public=["a", "b"], private=["c", "y"], k=2, max_confidence=0.8)
    assert af.audit_tree(safe, frame, max_confidence=0.8, k=2).passed
    looser = af.nearest_safe_tree(model, frame, public=["a", "b"], private=["c", "y"], k=2)
    assert looser.leaves > safe.leaves
    known = af.nearest_safe_tree(model, frame, public=["a", "b", "y"], private=["c"], k=6)
    assert known.class_is_public
    assert af.audit_tree(known, frame, k=6).passed
    assert af.audit_tree(known, frame).class_is_public


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        *(({"k": k}, "k must be a whole number of at least 1") for k in (0, -1, 2.5, True, "3", None)),
        *(({"entropy_l": one}, "entropy_l must be") for one in (0, 0.5, "x", float("nan"), True)),
        *(({"max_confidence": one}, "max_confidence must be") for one in (0, 2, -1, "x", float("nan"))),
        ({"public": "a"}, "'public' and 'private' are lists"),
        ({"private": "y"}, "'public' and 'private' are lists"),
        ({"features": ["b", "a", "c"]}, "not those that the tree was fitted with"),
    ],
)
def test_what_is_no_demand_is_refused(asked: dict[str, Any], words: str) -> None:
    frame = people(5, 60)
    ask: dict[str, Any] = {"public": ["a"], "private": ["b", "c", "y"], "k": 3}
    with pytest.raises(af.RequestError, match=words):
        af.nearest_safe_tree(fitted(frame), frame, **(ask | asked))


def test_rows_that_the_tree_was_not_taught_with_are_refused(tmp_path: Any) -> None:
    frame = people(5, 60)
    ask: dict[str, Any] = {"public": ["a"], "private": ["b", "c", "y"], "k": 3}
    with pytest.raises(af.DataError, match="taught with more rows than the data has"):
        af.nearest_safe_tree(fitted(frame), frame[:50], **ask)
    with pytest.raises(af.DataError, match="no column 'y', which is the class"):
        af.nearest_safe_tree(fitted(frame), frame[FEATURES], **ask)
    # A tree of a forest was taught with some of the rows, and those of the others are no less protected.
    forest = RandomForestClassifier(2, random_state=0).fit(frame[FEATURES], frame["y"])
    assert af.nearest_safe_tree(forest.estimators_[0], frame, features=FEATURES, **ask).leaves > 1
    frame.to_csv(tmp_path / "people.csv", index=False)
    told = [af.nearest_safe_tree(fitted(frame), one, **ask).to_model_json() for one in (frame, tmp_path / "people.csv")]
    assert told[0] == told[1]


def test_numbers_are_no_classes() -> None:
    frame = people(5, 60).assign(y=np.linspace(1, 2, 60))
    model = DecisionTreeRegressor(max_depth=3).fit(frame[FEATURES], frame["y"])
    with pytest.raises(af.RequestError, match="a DecisionTreeRegressor tells numbers and not classes"):
        af.nearest_safe_tree(model, frame, public=["a"], private=["b", "c", "y"], k=3)


def test_wrong_requests_are_told() -> None:
    frame = people(5, 60)
    model = fitted(frame)
    ask: dict[str, Any] = {"public": ["a"], "private": ["b", "c", "y"], "k": 3}
    forest = RandomForestClassifier(2, random_state=0).fit(frame[FEATURES], frame["y"])
    with pytest.raises(af.RequestError, match="of a forest, give one of its 'estimators_'"):
        af.nearest_safe_tree(forest, frame, **ask)
    with pytest.raises(af.RequestError, match="give them as 'features'"):
        af.nearest_safe_tree(forest.estimators_[0], frame, **ask)
    with pytest.raises(af.RequestError, match="the tree reads 'c'"):
        af.nearest_safe_tree(model, frame, public=["a"], private=["b", "y"], k=3)
    with pytest.raises(af.RequestError, match="both public and private"):
        af.nearest_safe_tree(model, frame, public=["a", "b"], private=["b", "c", "y"], k=3)
    with pytest.raises(af.RequestError, match="name the class as 'target'"):
        af.nearest_safe_tree(model, frame, public=["a"], private=["b", "c"], k=3)
    with pytest.raises(af.Infeasible, match="fewer than k = 61"):
        af.nearest_safe_tree(model, frame, **(ask | {"k": 61}))
    with pytest.raises(af.DataError, match="not the rows it was taught with"):
        af.nearest_safe_tree(model, frame.assign(a=0, b=0, c=0), **ask)
    with pytest.raises(af.DataError, match="missing values"):
        af.nearest_safe_tree(model, pl.from_pandas(frame).with_columns(a=pl.lit(None, pl.Int64)), **ask)
    with pytest.raises(af.RequestError, match="populations = 'all' is not known"):
        af.nearest_safe_tree(model, frame, **ask, populations="all")
