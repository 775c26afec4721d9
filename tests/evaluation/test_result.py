# SPDX-License-Identifier: Apache-2.0
"""Summaries and comparisons, from measures written by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from anonfit.errors import RequestError
from anonfit.evaluation.result import COLUMNS, FIGURE_COLUMNS, Evaluation, frame_of, holm

ACCURACY = {
    ("spec", 5): [0.8, 0.9, 0.7],
    ("spec", 9): [0.7, 0.8, 0.6],
    ("median", 5): [0.6, 0.8, 0.6],
    ("median", 9): [0.6, 0.7, 0.6],
    ("original", None): [0.9, 0.9, 0.8],
}


def evaluation(model: str = "ill") -> Evaluation:
    rows = [
        {
            "method": method,
            "k": k,
            "learner": "tree",
            "model": model,
            "fold": fold,
            "part": part,
            "measure": "accuracy",
            "value": found,
        }
        for (method, k), values in ACCURACY.items()
        for fold, test in enumerate(values)
        for part, found in (("train", 1.0), ("test", test))
    ]
    return Evaluation(frame_of(rows, COLUMNS), frame_of([], FIGURE_COLUMNS), folds=3, protocol="holdout")


def test_a_summary_has_means_and_deviations_over_folds() -> None:
    first = evaluation().summary().row(0, named=True)
    assert (first["method"], first["k"], first["folds"], first["train"]) == ("spec", 5, 3, 1.0)
    assert first["test"] == pytest.approx(0.8)
    assert first["deviation"] == pytest.approx(0.1)
    assert first["less_median"] == pytest.approx(0.4 / 3)
    assert first["less_original"] == pytest.approx(-0.2 / 3)
    assert "less_removed" not in first


def test_what_is_compared_with_itself_is_left_empty() -> None:
    found = evaluation().summary()
    assert found.filter(method="median")["less_median"].null_count() == 2
    assert found.filter(method="original")["less_original"].null_count() == 1


def test_many_comparisons_are_corrected() -> None:
    assert holm([0.01, 0.04, 0.03]) == [0.03, 0.06, 0.06]
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    found = evaluation().compared("spec", "median")
    assert found["adjusted_p"].to_list() == holm(found["corrected_p"].to_list())


def test_methods_are_compared_at_the_same_k() -> None:
    found = evaluation().compared("spec", "median")
    assert found["k"].to_list() == [5, 9]
    assert found["difference"].to_list() == pytest.approx([0.4 / 3, 0.2 / 3])
    expected = stats.ttest_rel(ACCURACY["spec", 5], ACCURACY["median", 5])
    assert found["t"][0] == pytest.approx(expected.statistic)
    assert found["p"][0] == pytest.approx(expected.pvalue)
    # Three folds: half as many test rows as training rows.
    assert found["corrected_t"][0] == pytest.approx(expected.statistic * ((1 / 3) / (1 / 3 + 1 / 2)) ** 0.5)


def test_a_baseline_is_compared_with_every_k() -> None:
    found = evaluation()
    assert found.compared("spec", "original")["k"].to_list() == [5, 9]
    backwards = found.compared("original", "spec")
    assert backwards["k"].to_list() == [5, 9]
    assert backwards["difference"].to_list() == pytest.approx([0.2 / 3, 0.5 / 3])


def test_training_rows_can_be_compared() -> None:
    assert evaluation().compared("spec", "median", part="train")["difference"].to_list() == [0.0, 0.0]


def test_a_method_that_was_not_evaluated_is_refused() -> None:
    with pytest.raises(RequestError, match="'medan' was not evaluated; did you mean 'median'"):
        evaluation().compared("spec", "medan")


def test_results_are_written_and_can_be_read(tmp_path: Path) -> None:
    found = evaluation()
    folder = found.save(tmp_path / "new")
    names = ["evaluation.html", "figures.csv", "results.csv", "summary.csv"]
    assert sorted(path.name for path in folder.iterdir()) == names
    page = (folder / "evaluation.html").read_text(encoding="utf-8")
    assert "<script" not in page
    for row in found.summary().to_dicts():
        assert row["learner"] in page
        assert f">{(100 if row['measure'] == 'accuracy' else 1) * row['test']:,.2f}</td>" in page
    assert pl.read_csv(folder / "results.csv").equals(found.frame)


def test_names_are_texts_on_the_page(tmp_path: Path) -> None:
    name = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\u202e"
    page = (evaluation(name).save(tmp_path / "new") / "evaluation.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;" in page
    assert not any(sign in page for sign in ("<script", "<img", "\x1b", "\u202e"))
    assert "Content-Security-Policy" in page


# --- against ai-privacy-toolkit ----------------------------------------------------------------------------------


def measured_with(values: dict[str, dict[str, list[float]]], measure: str = "accuracy") -> Evaluation:
    """An evaluation of k = 5 with the value of each method and learner, fold by fold, and a group more in each method."""
    rows = [
        {
            "method": method,
            "k": 5,
            "learner": learner,
            "model": "y",
            "fold": fold,
            "part": "test",
            "measure": measure,
            "value": value,
        }
        for method, learners in values.items()
        for learner, found in learners.items()
        for fold, value in enumerate(found)
    ]
    figures = [
        {"method": method, "k": 5, "fold": fold, "figure": "group_count", "target": "", "value": float(place + 1)}
        for place, method in enumerate(values)
        for fold in range(3)
    ]
    return Evaluation(frame_of(rows, COLUMNS), frame_of(figures, FIGURE_COLUMNS), 3, "holdout")


GUIDED = {
    "spec": {"tree": [0.8, 0.9, 0.7], "linear": [0.6, 0.7, 0.8]},
    "toolkit-forest": {"tree": [0.7, 0.7, 0.7], "linear": [0.6, 0.6, 0.6]},
    "toolkit-boosting": {"tree": [0.9, 0.9, 0.9], "linear": [0.3, 0.3, 0.3]},
}


def test_a_lead_is_over_the_guide_that_is_better_for_all_learners_together() -> None:
    leads = measured_with(GUIDED).leads()
    assert leads["learner"].to_list() == ["mean of all learners", "tree", "linear"]
    assert set(leads["guide"]) == {"toolkit-forest"}
    assert leads["lead"].to_list() == pytest.approx([0.1, 0.1, 0.1])
    assert leads["error"].to_list() == pytest.approx([np.std([0.05, 0.15, 0.1], ddof=1) / 3**0.5, *[0.1 / 3**0.5] * 2])
    assert set(leads.select("groups", "guide_groups").rows()) == {(1.0, 2.0)}
    _, tree, linear = leads["corrected_p"].to_list()
    assert leads["adjusted_p"].to_list() == pytest.approx([leads["corrected_p"][0], 2 * tree, 2 * linear])


def test_a_lead_in_errors_is_above_0_where_errors_are_smaller() -> None:
    leads = measured_with(GUIDED, "mae").leads()
    assert set(leads["guide"]) == {"toolkit-boosting"}
    assert leads["lead"].to_list() == pytest.approx([-0.15, 0.1, -0.4])


def test_without_the_toolkit_there_is_no_lead(tmp_path: Path) -> None:
    alone = measured_with({"spec": GUIDED["spec"]})
    assert not len(alone.leads())
    assert not (alone.save(tmp_path / "alone") / "leads.csv").exists()
    assert (measured_with(GUIDED).save(tmp_path / "both") / "leads.csv").exists()
