# SPDX-License-Identifier: Apache-2.0
"""The headline of a report says what was met, what was missed and what nobody asked; and there is one report, in memory
and in the folder.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.errors import RequestError
from anonfit.report.content import verdict
from anonfit.report.page import report_page
from waivers import waived


@cache
def people(rows: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    age = rng.integers(20, 80, rows)
    return pl.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], rows),
            "ill": rng.choice(["flu", "gout", "cold"], rows),
            "out": np.where(age > 50, "y", "n"),
        }
    )


def released(**words: Any) -> af.Release:
    words = {"sensitive": {"ill": {"model": "distinct-l", "l": 2}}, "insensitive": ["out"], "k": 10} | words
    return af.anonymize(people(), quasi_identifiers=["age", "sex"], **words)


def test_thresholds_that_some_persons_miss_are_in_the_headline() -> None:
    report = released().report
    told = report["verdict"]
    assert told["met"][0].startswith("The written file is 10-anonymous")
    assert told["met"][1] == "Every group holds what was asked of ill."
    assert told["missed"] == []
    over = [line for line in report["audit"]["prosecutor"]["above"] if line["above"]["persons"] != 0]
    assert over
    assert all(f"{line['threshold']:g} (" in told["not_asked"][0] for line in over)
    page = report_page(report)
    assert page.index("Asked and met") < page.index("Not asked") < page.index("Asked: persons per group")
    assert '<div class="verdict fair">' in page


def test_where_nothing_is_left_open_nothing_is_said_to_be() -> None:
    report = released(k=20).report
    assert report["verdict"]["not_asked"] == []
    assert "Not asked" not in report_page(report)


def test_a_sensitive_column_of_which_nothing_is_asked_is_in_the_headline_with_the_reason() -> None:
    report = released(k=20, sensitive=waived("ill")).report
    assert report["asked"]["waived"] == {"ill": "made-up people"}
    (told,) = report["verdict"]["not_asked"]
    assert told.startswith("ill: nothing was asked")
    assert "made-up people" in told
    assert told in " ".join(sentence for part in report["board"] for sentence in part["sentences"])


def test_what_was_missed_comes_first() -> None:
    report = dict(released(sensitive=waived("ill")).report)
    finding = {"name": "k", "met": False, "asked": 10, "found": 4, "where": "age, sex"}
    finding["sentence"] = "Some group holds too few persons."
    report["audit"] = {**report["audit"], "passed": False, "findings": [finding]}
    report["verdict"] = verdict(report)
    assert (report["verdict"]["met"], report["verdict"]["missed"]) == ([], ["Some group holds too few persons."])
    page = report_page(report)
    assert page.index("Asked and missed") < page.index("Not asked")
    assert "Asked and met" not in page


@pytest.mark.parametrize("sensitive", [["ill"], "ill", {"ill": None}, {"ill": []}])
def test_a_sensitive_column_needs_a_demand_or_a_reason(sensitive: Any) -> None:
    with pytest.raises(RequestError, match=r"nothing is asked of 'ill'.*'model': 'none', 'reason'"):
        released(sensitive=sensitive)


@pytest.mark.parametrize("reason", [None, "", "  ", 5])
def test_a_reason_is_a_text(reason: Any) -> None:
    with pytest.raises(RequestError, match="reason"):
        released(sensitive={"ill": {"model": "none", "reason": reason}})


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ({"rules": True, "targets": ["out"], "insensitive": []}, "rules"),
        ({"criterion": "clustering"}, "clusters"),
        ({"targets": ["out"], "insensitive": []}, "comparison"),
        ({}, "initial_risk"),
    ],
)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_one_report_in_memory_and_in_the_folder(words: dict[str, Any], name: str, kind: str, tmp_path: Path) -> None:
    release = released(**words)
    loaded = af.load(release.save(tmp_path / "release", format=kind))
    assert release.report[name] is not None
    assert release.report == loaded.report
    assert release.report is release.report


def test_a_curve_that_was_asked_for_is_saved_again(tmp_path: Path) -> None:
    people().write_csv(tmp_path / "people.csv")
    (tmp_path / "spec.toml").write_text(
        'version = 1\n[data]\nsource = "people.csv"\ndefault_role = "insensitive"\n[privacy]\nk = 10\n'
        '[columns.age]\nrole = "quasi-identifier"\n[columns.out]\nrole = "target"\n'
    )
    release = af.run(tmp_path / "spec.toml", tmp_path / "one", curve=[5, 20])
    again = af.load(release.save(tmp_path / "two"))
    assert release.report["curve"] is not None
    assert release.report == again.report
