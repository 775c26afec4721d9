# SPDX-License-Identifier: Apache-2.0
"""Plain ID3: the k-anonymous tree that hides nothing, by another program."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from anonfit.estimators.k_anonymous_tree import KAnonymousTreeClassifier
from anonfit.evaluation.plain_id3 import PlainId3


@pytest.mark.parametrize("seed", range(5))
def test_plain_id3_is_the_anonymous_tree_that_hides_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({name: rng.choice(list("pqrs"), 300) for name in "abc"})
    chance = rng.random(300) < 0.15
    labels = pl.Series(np.where((frame["a"] == "p").to_numpy() ^ (frame["b"] < "r").to_numpy() ^ chance, "y", "n"))
    training, test = frame[:200], frame[200:]
    own = PlainId3().fit(training, labels[:200]).predict(test)
    other = KAnonymousTreeClassifier(1, variant="id3").fit(training, labels[:200]).predict(test)
    assert own.to_list() == other.tolist()


def test_rows_with_values_that_a_node_has_not_seen_are_told() -> None:
    model = PlainId3().fit(pl.DataFrame({"a": ["x", "x", "y"]}), pl.Series(["n", "n", "y"]))
    rows = pl.DataFrame({"a": ["y", "z"]})
    assert model.predict(rows).to_list() == ["y", "n"]
    assert model.undecided(rows).tolist() == [False, True]


def test_without_columns_the_most_frequent_class_is_predicted() -> None:
    model = PlainId3().fit(pl.DataFrame(height=3), pl.Series(["n", "n", "y"]))
    assert model.predict(pl.DataFrame(height=2)).to_list() == ["n", "n"]
