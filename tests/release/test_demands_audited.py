# SPDX-License-Identifier: Apache-2.0
"""Every demand is audited in the written file: what misses one is not published, what holds it says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from demanding import ROWS, UNMET, WORDS, declared, missing_demand, people

import anonfit as af
from anonfit.auditing.models import MAX_CONFIDENCE, MODELS
from anonfit.errors import AuditFailed, SpecError
from anonfit.privacy.catalogue import MODELS as CATALOGUE
from anonfit.release.publish import publish_draft


def test_every_model_is_planted() -> None:
    assert {model for _, model, _ in UNMET} == set(CATALOGUE)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize(("column", "model", "parameters"), UNMET, ids=str)
def test_a_file_that_misses_a_demand_is_not_published(
    tmp_path: Path, column: str, model: str, parameters: dict[str, Any], kind: str
) -> None:
    made = missing_demand(column, model, parameters)
    with pytest.raises(AuditFailed) as caught:
        publish_draft(made, tmp_path / "out", kind=kind)
    assert MODELS[model].bad in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "target", ["outcome", {"column": "cost", "classes": [400.0]}, {"column": "cost", "equal_width": 2}]
)
def test_a_file_that_makes_a_target_too_certain_is_not_published(tmp_path: Path, target: Any) -> None:
    words = WORDS | {"targets": [target], "insensitive": ["cost" if target == "outcome" else "outcome"]}
    made = af.anonymize(people(), **words)._draft
    made = replace(made, spec=replace(made.spec, privacy=replace(made.spec.privacy, max_confidence=0.9)))
    with pytest.raises(AuditFailed) as caught:
        publish_draft(made, tmp_path / "out")
    assert MAX_CONFIDENCE.bad in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sampled(11)
@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
@pytest.mark.parametrize(("column", "model", "parameters"), UNMET, ids=str)
def test_what_holds_a_demand_is_published_and_can_be_audited_again(
    tmp_path: Path, column: str, model: str, parameters: dict[str, Any], kind: str
) -> None:
    sensitive = {**WORDS["sensitive"], column: {"model": model, **parameters}}
    release = af.anonymize(people(), **WORDS | {"sensitive": sensitive}, **declared(column, parameters))
    release.save(tmp_path / "out", format=kind)
    lines = {line["column"]: line["met"] for line in release.report["diversity"] if line["model"] == model}
    assert lines[column] is True
    again = af.audit_release(tmp_path / "out", source=people())
    assert [finding.met for finding in again.findings if finding.name == model] == [True]
    assert again.passed
    assert again.unchecked == ()


@pytest.mark.parametrize("values", ["labels", "bounds", "representative"])
def test_a_confidence_is_audited_whatever_the_values(tmp_path: Path, values: str) -> None:
    words = WORDS | {"criterion": "auto", "values": values, "max_confidence": 0.8}
    release = af.anonymize(people(), **words)
    release.save(tmp_path / "out")
    again = af.audit_release(tmp_path / "out", source=people())
    assert {finding.met for finding in again.findings if finding.name == "max_confidence"} == {True}


def test_classes_of_whole_numbers_stay_classes_in_a_loaded_release(tmp_path: Path) -> None:
    release = af.anonymize(people(), **WORDS | {"criterion": "auto", "max_confidence": 0.8})
    release.save(tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["spec"]["columns"]["outcome"]["type"] == "nominal"
    assert manifest["algorithm"] == "InfoGain Mondrian"
    extended = af.load(tmp_path / "out").extend(people())
    assert extended.report["asked"]["algorithm"] == "InfoGain Mondrian"
    assert extended.report["rows"]["released"] == ROWS


def test_a_numeric_target_stays_a_number_in_a_loaded_release(tmp_path: Path) -> None:
    words = WORDS | {"targets": ["cost"], "insensitive": ["outcome"], "criterion": "auto"}
    af.anonymize(people(), **words).save(tmp_path / "out")
    two_costs = people().filter(pl.col("cost").is_in([500.0, 510.0]))
    extended = af.load(tmp_path / "out").extend(pl.concat([two_costs] * 10))
    assert extended.report["asked"]["algorithm"] == "LSD Mondrian"


def test_a_number_has_no_classes_to_be_sure_of(tmp_path: Path) -> None:
    words = WORDS | {"targets": ["outcome", "cost"], "insensitive": [], "criterion": "auto", "max_confidence": 0.8}
    with pytest.raises(SpecError, match="'cost' is a number"):
        af.anonymize(people(), **words)
    made = af.anonymize(people(), **words | {"max_confidence": 1.0})._draft
    made = replace(made, spec=replace(made.spec, privacy=replace(made.spec.privacy, max_confidence=0.999)))
    with pytest.raises(AuditFailed, match="Not checked: the target holds numbers or dates"):
        publish_draft(made, tmp_path / "out")


def test_a_target_that_is_a_quasi_identifier_is_said_to_be_unchecked() -> None:
    words = WORDS | {"targets": ["outcome", "sex"], "criterion": "auto", "max_confidence": 0.9}
    release = af.anonymize(people(), **words)
    lines = {line["column"]: line for line in release.report["diversity"] if line["model"] == "max_confidence"}
    assert lines["outcome"]["met"] is True
    assert lines["sex"]["met"] is None
    assert "quasi-identifier" in lines["sex"]["sentence"]
