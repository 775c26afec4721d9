# SPDX-License-Identifier: Apache-2.0
"""The two orders of columns: counted by hand, and wrong requests."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonfit.errors import DataError, RequestError
from anonfit_papers.rankings import greedy_gain, information_gains, repeated_root, tree_root


def test_gains_are_those_counted_by_hand() -> None:
    rows = pl.DataFrame(
        {
            "same": [1] * 8,
            "half": ["x"] * 4 + ["y"] * 4,
            "class": ["Y", "Y", "Y", "N", "N", "N", "N", "Y"],
        }
    )
    left = -(3 / 4 * math.log2(3 / 4) + 1 / 4 * math.log2(1 / 4))
    found = information_gains(rows, "class", ["same", "half"])
    assert found["same"] == pytest.approx(0.0)
    assert found["half"] == pytest.approx(1 - left)


def test_what_is_known_already_tells_nothing_more() -> None:
    # copy tells as much as first, but nothing once first is known; weak tells less alone and more together.
    first = np.repeat([0, 1], 50)
    weak = np.tile([0, 1], 50)
    label = np.where((first == 1) | ((weak == 1) & (np.arange(100) % 4 == 1)), "Y", "N")
    rows = pl.DataFrame({"weak": weak, "first": first, "copy": first, "class": label})
    gains = information_gains(rows, "class", ["weak", "first", "copy"])
    assert gains["first"] == gains["copy"] > gains["weak"] > 0
    assert greedy_gain(rows, "class", ["weak", "first", "copy"]) == ["first", "weak", "copy"]


def test_equal_columns_keep_their_order() -> None:
    rows = pl.DataFrame({"b": [1, 2, 1, 2], "a": [1, 2, 1, 2], "class": ["Y", "N", "Y", "N"]})
    assert greedy_gain(rows, "class", ["b", "a"]) == ["b", "a"]
    assert greedy_gain(rows, "class", ["a", "b"]) == ["a", "b"]


def test_numbers_of_many_values_are_grouped() -> None:
    # As names, a thousand different numbers would tell everything.
    draw = np.random.default_rng(0)
    rows = pl.DataFrame({"noise": draw.normal(size=1000), "class": draw.choice(["Y", "N"], 1000)})
    assert information_gains(rows, "class", ["noise"])["noise"] < 0.02
    assert information_gains(rows.with_columns(pl.col("noise").cast(pl.String)), "class", ["noise"])["noise"] > 0.9


def test_missing_values_are_a_value() -> None:
    rows = pl.DataFrame({"a": [None, None, "x", "x"], "class": ["Y", "Y", "N", "N"]})
    assert information_gains(rows, "class", ["a"])["a"] == pytest.approx(1.0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans()), min_size=1, max_size=40))
def test_gains_are_between_nothing_and_all(found: list[tuple[int, int, bool]]) -> None:
    rows = pl.DataFrame(found, schema=["a", "b", "class"], orient="row")
    shares = rows["class"].value_counts()["count"].to_numpy() / len(rows)
    whole = float(-(shares * np.log2(shares)).sum())
    gains = information_gains(rows, "class", ["a", "b"])
    assert all(-1e-9 <= gain <= whole + 1e-9 for gain in gains.values())
    assert sorted(greedy_gain(rows, "class", ["a", "b"])) == ["a", "b"]


def test_roots_are_removed_one_after_another() -> None:
    label = np.tile([0, 1], 32)
    draw = np.random.default_rng(1)

    def noisy(share: float) -> np.ndarray:
        return np.where(draw.random(64) < share, 1 - label, label)

    rows = pl.DataFrame(
        {"bad": noisy(0.45), "names": np.where(noisy(0.1) == 1, "m", "n"), "good": label, "class": label.astype(str)}
    )
    assert repeated_root(rows, "class", ["bad", "names", "good"]) == ["good", "names", "bad"]
    assert tree_root(rows.select("names", "bad"), rows["class"]) == "names"


def test_another_tree_can_be_grown() -> None:
    rows = pl.DataFrame({"a": [1, 2], "b": [1, 2], "c": [1, 2], "class": ["Y", "N"]})
    seen: list[list[str]] = []

    def last(features: pl.DataFrame, labels: pl.Series) -> str:
        seen.append(features.columns)
        assert labels.to_list() == ["Y", "N"]
        return features.columns[-1]

    assert repeated_root(rows, "class", ["a", "b", "c"], root=last) == ["c", "b", "a"]
    assert seen == [["a", "b", "c"], ["a", "b"]]


def test_wrong_requests_are_refused() -> None:
    rows = pl.DataFrame({"a": [1], "class": ["Y"]})
    for rank in (information_gains, greedy_gain, repeated_root):
        with pytest.raises(DataError, match="no column 'b'"):
            rank(rows, "class", ["a", "b"])
        with pytest.raises(RequestError, match="'class' is the class"):
            rank(rows, "class", ["a", "class"])
        with pytest.raises(DataError, match="no rows"):
            rank(rows.head(0), "class", ["a"])
