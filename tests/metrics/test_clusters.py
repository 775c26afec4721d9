# SPDX-License-Identifier: Apache-2.0
"""Clusters of the raw rows and of a release: distances by hand, and what releases keep of clusters that are there."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.metrics.clusters import _points, _scaled, _within, cluster_figures

pytest.importorskip("sklearn")


def test_the_share_of_the_variance_within_clusters() -> None:
    points = np.array([[0.0], [2.0], [10.0], [12.0]])
    # 4 of 104 squared distances are left.
    assert _within(points, np.array([0, 0, 1, 1])) == pytest.approx(4 / 104)
    assert _within(points, np.array([0, 0, 0, 0])) == pytest.approx(1.0)
    assert _within(points, np.arange(4)) == 0.0
    assert _within(np.ones((3, 1)), np.array([0, 1, 1])) == 0.0


def test_every_feature_has_the_variance_of_its_weight() -> None:
    rng = np.random.default_rng(0)
    numbers = rng.normal(50, 9, (100, 1))
    names = np.eye(3)[rng.integers(0, 3, 100)]
    for values in (numbers, names):
        assert np.square(_scaled(values, 2.0)).sum() / 100 == pytest.approx(2.0)
    gaps = numbers.copy()
    gaps[:10] = np.nan
    scaled = _scaled(gaps, 1.0)
    assert scaled[:10].tolist() == [[0.0]] * 10
    assert not _scaled(np.full((4, 1), 7.0), 1.0).any()


def people(rows: int = 600, seed: int = 0) -> pl.DataFrame:
    """Three kinds of people, and a column that has nothing to do with them."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, rows)
    return pl.DataFrame(
        {
            "age": (20 + 25 * kind + rng.integers(0, 8, rows)).astype(np.int64),
            "job": np.array(["clerk", "miner", "nurse"])[np.where(rng.random(rows) < 0.9, kind, (kind + 1) % 3)],
            "noise": rng.integers(0, 1000, rows),
            "born": [date(1990, 1, 1) + timedelta(days=int(day)) for day in rng.integers(0, 4000, rows)],
            "stage": np.array(["I", "II", "III"])[kind],
        }
    )


NAMES = ["age", "job", "noise", "born", "stage"]
WORDS: dict[str, Any] = {
    "quasi_identifiers": NAMES,
    "types": {"stage": "ordinal"},
    "orders": {"stage": ["I", "II", "III"]},
}


def figures(release: af.Release, frame: pl.DataFrame, features: dict[str, float], clusters: int = 3) -> Any:
    nodes = release.recoding.nodes(release.recoding.cells(frame))
    return cluster_figures(release.recoding, frame, nodes, features, clusters=clusters, seed=1)


def test_a_release_that_tells_everything_has_the_clusters_of_the_rows() -> None:
    frame = people().select("age")
    found = figures(af.anonymize(frame, k=1, quasi_identifiers=["age"]), frame, {"age": 1.0})
    assert found.clusters == 3
    assert found.agreement > 0.97
    assert found.within_release == pytest.approx(found.within_original, abs=0.02)


def test_clustering_keeps_clusters_that_a_blind_release_loses() -> None:
    frame = people()
    features = {"age": 1.0, "job": 1.0}
    blind, made = (
        figures(af.anonymize(frame, k=40, **WORDS, **words), frame, features)
        for words in ({}, {"criterion": "clustering", "features": list(features)})
    )
    assert made.agreement > blind.agreement + 0.15
    assert made.within_release < blind.within_release


def test_one_region_has_no_clusters() -> None:
    frame = people(50)
    assert figures(af.anonymize(frame, k=50, **WORDS), frame, {"age": 1.0}) is None


def test_points_that_hardly_differ_are_not_told_apart() -> None:
    frame = pl.DataFrame({"age": [*range(50)] * 2, "raw": [1e12, 1.0, 2.0, 3.0] * 25})
    release = af.anonymize(frame, quasi_identifiers=["age"], k=100, default_role="insensitive")
    made = cluster_figures(release.recoding, frame, np.zeros(100, np.int64), {"raw": 1.0}, clusters=4)
    assert made is not None
    assert made.clusters == 2


def test_points_are_the_middles_of_intervals_and_shares_of_names() -> None:
    frame = pl.DataFrame({"age": [10, 11, 30, 31], "job": ["a", "b", "c", "c"], "raw": [1, None, 3, 4]})
    release = af.anonymize(
        frame,
        quasi_identifiers=["age", "job"],
        k=2,
        insensitive=["raw"],
        release=["raw"],
        domains={"age": [0, 40]},
        cut_points="value",
        consent=True,
        split_on=["age"],
    )
    nodes = release.recoding.nodes(release.recoding.cells(frame))
    original, released = _points(release.recoding, frame, nodes, {"age": 1.0, "job": 1.0, "raw": 1.0})
    low, high = released[:2], released[2:]
    assert np.array_equal(low[0, :-1], low[1, :-1])
    assert np.array_equal(high[0, :-1], high[1, :-1])
    assert low[0, 0] == -high[0, 0] == -1.0  # the middles of [0, 30) and [30, 40], standardized
    assert not released[:, 1:-1].any()  # any name everywhere: no distances
    assert original[1, -1] == released[1, -1] == 0.0  # a missing number stands at the mean
    assert np.array_equal(original[:, -1], released[:, -1])
