# SPDX-License-Identifier: Apache-2.0
"""What `max_confidence` caps: every target that is released as it is, by its classes, in the release and in its audit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.errors import SpecError
from waivers import waived

ROWS, MOST = 240, 0.6


def people() -> pl.DataFrame:
    """Ages tell the grade and the outcome nearly for certain; grades are whole numbers of more than 20 values."""
    rng = np.random.default_rng(5)
    age = np.sort(rng.integers(20, 80, ROWS))
    return pl.DataFrame(
        {
            "age": age,
            "outcome": np.where(age + 5 * rng.normal(size=ROWS) < 50, "home", "died"),
            "other": np.where(age % 2 == 0, "x", "y"),
            "grade": np.where(rng.random(ROWS) < 0.5, age // 30, rng.integers(0, 40, ROWS)),
            "weight": np.round(rng.normal(size=ROWS), 2),
            "born": pl.Series(age).cast(pl.Int32).cast(pl.Date),
        }
    )


def largest(data: pl.DataFrame, column: str) -> float:
    """The largest share of a value in a group."""
    shares = data.group_by("age", column).len().with_columns(pl.col("len") / pl.col("len").sum().over("age"))
    return float(shares["len"].max())  # type: ignore[arg-type]


def spec(*columns: str, settings: str = "") -> af.Spec:
    """A spec of the table with age as the quasi-identifier and these columns as targets."""
    text = f'version = 1\n[privacy]\nk = 5\nmax_confidence = {MOST}\n[columns.age]\nrole = "quasi-identifier"\n'
    text += "".join(f'[columns.{name}]\nrole = "target"\nrelease = true\n' for name in columns)
    return af.parse_spec(text + settings)


def released(*columns: str, settings: str = "", out: Path) -> af.Release:
    asked = spec(*columns, settings=settings)
    return af.run(replace(asked, data=replace(asked.data, source=people().select("age", *columns))), out)


def test_the_table_is_one_that_needs_the_cap() -> None:
    free = af.anonymize(
        people().select("age", "outcome", "grade"),
        quasi_identifiers=["age"],
        k=5,
        targets=["outcome"],
        insensitive=["grade"],
    )
    assert largest(free.data, "outcome") > MOST


@pytest.mark.parametrize("targets", ["[]", '["other"]', '["age"]'])
def test_a_target_that_the_workload_leaves_out_is_capped(tmp_path: Path, targets: str) -> None:
    found = released("outcome", "other", settings=f"[workload]\ntargets = {targets}\n", out=tmp_path / "out")
    for column in ("outcome", "other"):
        assert largest(found.data, column) <= MOST
    capped = {line["column"]: line["met"] for line in found.report["diversity"] if line["model"] == "max_confidence"}
    assert (capped["outcome"], capped["other"]) == (True, True)
    again = af.audit_release(tmp_path / "out")
    assert again.passed
    asked = [finding.where for finding in again.findings if finding.name == "max_confidence"]
    assert sorted(map(str, asked)) == ["other", "outcome"]


def test_numbers_that_the_criterion_takes_for_classes_are_capped(tmp_path: Path) -> None:
    assert people()["grade"].n_unique() > 20
    found = released("grade", settings='[method]\ncriterion = "infogain"\n', out=tmp_path / "out")
    assert found.data["age"].n_unique() > 1
    assert largest(found.data, "grade") <= MOST
    again = af.audit_release(tmp_path / "out", source=people().select("age", "grade"))
    assert again.passed
    assert [finding.met for finding in again.findings if finding.name == "max_confidence"] == [True]
    more = af.load(tmp_path / "out").extend(people().select("age", "grade"))
    assert largest(more.data, "grade") <= MOST


@pytest.mark.parametrize(
    ("column", "settings", "words"),
    [
        ("grade", "", "'grade' is a number: give classes, equal_width or type = 'nominal'"),
        ("grade", '[method]\ncriterion = "lsd"\n', "'grade' is a number"),
        ("grade", "[workload]\ntargets = []\n", "'grade' is a number"),
        ("weight", '[method]\ncriterion = "infogain"\n', "'weight' is a number"),
        ("born", "", "'born' is a date: give type = 'nominal'"),
    ],
)
def test_a_target_without_classes_is_refused(tmp_path: Path, column: str, settings: str, words: str) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        released(column, settings=settings, out=tmp_path / "out")
    assert "max_confidence caps classes" in str(caught.value)


@pytest.mark.parametrize(
    "target", [{"column": "grade", "classes": [10]}, {"column": "grade", "equal_width": 3}, "nominal"]
)
def test_classes_or_a_type_mend_it(target: Any) -> None:
    words: dict[str, Any] = {"targets": ["grade"], "types": {"grade": "nominal"}}
    if target != "nominal":
        words = {"targets": [target]}
    found = af.anonymize(
        people().select("age", "grade"), quasi_identifiers=["age"], k=5, max_confidence=0.9, release=["grade"], **words
    )
    assert [line["met"] for line in found.report["diversity"]] == [True]


def test_a_generalized_target_is_left_out_and_said_to_be(tmp_path: Path) -> None:
    found = released("outcome", settings='[workload]\ntargets = ["age", "outcome"]\n', out=tmp_path / "out")
    lines = {line["column"]: line for line in found.report["diversity"]}
    assert lines["outcome"]["met"] is True
    assert lines["age"]["met"] is None
    assert "quasi-identifier" in lines["age"]["sentence"]


@pytest.mark.parametrize(("model", "parameter"), [("beta-likeness", "beta"), ("delta-disclosure", "delta")])
def test_nothing_may_differ_from_the_whole_table_at_all(tmp_path: Path, model: str, parameter: str) -> None:
    table = pl.DataFrame({"age": [20, 20, 60, 60, 61, 61], "illness": ["a", "b"] * 3})
    demand = {"illness": {"model": model, parameter: 0}}
    found = af.anonymize(table, quasi_identifiers=["age"], k=2, sensitive=demand)
    assert found.data["age"].n_unique() == 3  # all three are as mixed as the whole
    found.save(tmp_path / "out")
    assert af.audit_release(tmp_path / "out", source=table).passed
    skewed = table.with_columns(illness=pl.Series(["a", "a", "b", "b", "a", "b"]))
    assert af.anonymize(skewed, quasi_identifiers=["age"], k=2, sensitive=demand).data["age"].n_unique() < 3


def test_a_person_with_several_values_is_told_of() -> None:
    table = pl.DataFrame({"who": [0, 0, 1, 1, 2, 2], "age": [20, 20, 30, 30, 40, 40], "illness": ["a", "b"] * 3})
    words: dict[str, Any] = {"quasi_identifiers": ["age"], "k": 2, "entity": "who"}

    def told(**more: Any) -> bool:
        found = af.anonymize(table, **words, **more).report["not_covered"]
        return any(line.startswith("Persons with several values") for line in found)

    alpha = {"illness": {"model": "alpha-k", "alpha": 0.5}}
    assert told(sensitive=alpha)
    assert told(targets=["illness"], max_confidence=0.5)
    assert not told(sensitive=waived("illness"))
    plain = af.anonymize(table.drop("who"), quasi_identifiers=["age"], k=2, sensitive=alpha).report["not_covered"]
    assert not any(line.startswith("Persons with several values") for line in plain)
