# SPDX-License-Identifier: Apache-2.0
"""The metrics of one registry, and that whoever tells figures takes them from there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.evaluation.comparing_page import sections
from anonfit.metrics import registry
from anonfit.metrics.registry import METRICS, Metric, RecodedTable, figures

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
WORDS = {"quasi_identifiers": ["age"], "targets": ["ill"], "k": 5}


def people(seed: int = 0) -> pl.DataFrame:
    ages = np.random.default_rng(seed).integers(20, 80, 60)
    return pl.DataFrame({"age": ages, "ill": ["yes" if age > 50 else "no" for age in ages]})


@pytest.fixture
def widest(monkeypatch: pytest.MonkeyPatch) -> Metric:
    """A metric that nobody knows, of all uses but the report, whose content the audit knows."""
    added = Metric(
        "widest",
        "regions",
        lambda table: max(column.ncp for column in table.losses.columns),
        "the largest NCP of a column",
        ("compare", "evaluate", "explore"),
        title="Widest column",
        words="widest column",
        note="Widest: the column that lost most.",
    )
    monkeypatch.setattr(registry, "METRICS", (*METRICS, added))
    return added


def test_no_two_metrics_of_one_subject_have_one_name() -> None:
    names = [(metric.subject, metric.name) for metric in METRICS]
    assert len(set(names)) == len(names)


def documented(metric: Metric) -> str:
    subject = "" if metric.subject == "release" else f" of a {metric.subject}"
    formula = metric.formula.replace("|", "&#124;")
    return f"| `{metric.name}`{subject} | {formula} | {metric.needs} | {', '.join(metric.uses)} |"


def test_every_metric_is_documented() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    table = [line for line in text.splitlines() if line.startswith("| `")]
    assert table == [documented(metric) for metric in METRICS]


def test_a_metric_is_computed_only_where_a_table_has_what_it_needs() -> None:
    release = af.anonymize(people(), **WORDS)
    rows = RecodedTable(release.recoding, None, group_of=np.zeros(60, np.int64), classes={"ill": np.arange(60) % 2})
    assert {metric.name for metric, _, _ in figures(rows, "compare")} == {
        "discernibility",
        "entropy",
        "conditional_entropy",
        "explained",
        "classification_metric",
    }
    unknown = replace(rows, knows_persons=False)
    assert "discernibility" not in {metric.name for metric, _, _ in figures(unknown, "compare")}


def test_a_new_metric_is_compared_and_shown(widest: Metric) -> None:
    fine, coarse = (af.anonymize(people(), **{**WORDS, "k": k}) for k in (5, 20))
    found = af.compare(fine, coarse, names=["fine", "coarse"]).to_dict()
    values = [one["utility"]["losses"]["widest"] for one in found["releases"]]
    assert values == [one["utility"]["losses"]["columns"][0]["ncp"] for one in found["releases"]]
    (shown,) = (one for one in sections(found) if one.title == "Utility whatever the purpose")
    assert (widest.title, tuple(f"{value:.3f}" for value in values)) in shown.lines
    assert shown.note.endswith(widest.note)


def test_a_new_metric_is_evaluated(widest: Metric) -> None:
    spec = af.parse_spec(
        "version = 1\ncolumns.age.role = 'quasi-identifier'\ncolumns.ill.role = 'target'\nprivacy.k = 5"
    )
    found = af.evaluate(people(), spec, methods=["spec"], learners=["tree"], folds=2, workers=1).figures
    assert found.filter(figure=widest.name)["value"].to_list() == found.filter(figure="gcp")["value"].to_list()
