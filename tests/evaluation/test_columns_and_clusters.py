# SPDX-License-Identifier: Apache-2.0
"""What evaluate tells of columns and clusters, with and without something to predict."""

from __future__ import annotations

import polars as pl
import pytest
from evaluation_tables import SPEC, people, spec

import anonfit as af
from anonfit.evaluation.result import FIGURE_COLUMNS, Evaluation, frame_of


def test_a_release_for_clusters_needs_nothing_to_predict() -> None:
    pytest.importorskip("sklearn")
    text = SPEC.replace('role = "target"', 'role = "insensitive"').replace(
        'targets = ["ill"]', 'features = ["age", "job"]'
    )
    asked = spec(text + "clusters = 3\n[method]\ncriterion = 'clustering'\n")
    found = af.evaluate(people(), asked, methods=["spec", "median", "weighted"], folds=2, workers=1)
    assert len(found.frame) == 0
    means = {
        (row["method"], row["figure"]): row["value"]
        for row in found.figures.group_by("method", "figure").agg(pl.col("value").mean()).to_dicts()
    }
    for name in ("spec", "median", "weighted"):
        assert -1 <= means[name, "cluster_agreement"] <= 1
        assert means[name, "cluster_within"] >= means[name, "cluster_within_original"]
    columns = found.figures.filter(pl.col("figure") == "column_ncp")["target"].unique().sort().to_list()
    assert columns == ["age", "job"]
    assert set(found.disagreements()["column"].to_list()) <= {"age", "job"}


def figures(**values: tuple[float, float]) -> Evaluation:
    """Means of one column, for NCP and for pairs, by method."""
    rows = [
        {"method": method, "k": 5, "fold": fold, "figure": name, "target": "age", "value": value}
        for method, pair in values.items()
        for name, value in zip(("column_ncp", "column_together"), pair, strict=True)
        for fold in (0, 1)
    ]
    return Evaluation(frame_of([], ("method", "k")), frame_of(rows, FIGURE_COLUMNS), 2, "holdout")


def test_where_ncp_and_wdm_disagree_is_told() -> None:
    found = figures(
        median=(0.5, 0.2), alike=(0.4, 0.1), ncp=(0.4, 0.3), wdm=(0.6, 0.1), same=(0.5, 0.2)
    ).disagreements()
    assert found.select("method", "better_by").rows() == [("ncp", "ncp"), ("wdm", "wdm")]
    assert found.row(0, named=True)["together_of_baseline"] == 0.2
    assert len(figures(median=(0.5, 0.2)).disagreements()) == 0
    assert len(figures().disagreements()) == 0
