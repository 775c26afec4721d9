# SPDX-License-Identifier: Apache-2.0
"""A table that is never read as a whole: it is audited and reported some rows at a time, and what is said of it is what
is said of a table in memory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pairwise_cases import cases
from random_requests import FACTORS
from test_same_release import _made, _spec

from anonfit.api import run
from anonfit.auditing import measuring
from anonfit.errors import AnonfitError, AuditFailed
from anonfit.release import draft as made
from anonfit.release.draft import drawn_regions
from anonfit.release.evidence import audit_draft, both_reports
from anonfit.release.publish import publish_draft
from anonfit.spec.keywords import spec_of_keywords

CASES = cases(FACTORS, 200)


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are many, and few are read at once."""
    monkeypatch.setattr(made, "MANY_ROWS", 10)
    monkeypatch.setattr("anonfit.release.engine.BATCH", 41)
    monkeypatch.setattr(measuring, "ROWS_AT_ONCE", 37)


def _told(report: dict[str, Any]) -> dict[str, Any]:
    """A report without what tells engines apart."""
    plain = json.loads(json.dumps(report, default=str))
    return {name: value for name, value in plain.items() if name not in ("engine", "measured_on", "distributions")}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("part", range(4))
def test_the_audit_and_the_reports_are_those_of_a_table_in_memory(part: int, tmp_path: Path) -> None:
    compared = 0
    for seed, case in list(enumerate(CASES))[part::24]:
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            spec = _spec(case, seed, folder, "duckdb")
        except AnonfitError:
            continue
        spec = replace(spec, output=replace(spec.output, format=("parquet", "csv", "arrow")[seed % 3]))
        expected, found = _made(spec, "memory"), _made(spec, "duckdb", 40)
        if isinstance(expected, AnonfitError) or found.rows.read <= 10:
            continue
        assert found.is_large
        audits = [audit_draft(one, found.stored.path) for one in (expected, found)]
        described = [audit.to_dict() for audit in audits]
        assert described[0] == described[1], (seed, case)
        for one, other in zip(both_reports(expected, audits[0]), both_reports(found, audits[1]), strict=True):
            assert _told(one) == _told(other), (seed, case)
            assert other["measured_on"]["rows"] == other["measured_on"]["of"]
        compared += 1
    assert compared > 3


def _people(rows: int = 900) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame({
        "age": rng.integers(0, 90, rows),
        "place": rng.choice(["north", "south", "east"], rows),
        "income": rng.normal(size=rows).round(2),
        "ill": rng.choice(["yes", "no"], rows),
    })  # fmt: skip


WORDS: dict[str, Any] = {
    "quasi_identifiers": ["age", "place"],
    "targets": ["ill"],
    "insensitive": ["income"],
    "release": ["income"],
    "k": 5,
    "engine": "duckdb",
}


def test_a_published_folder_and_a_lazy_frame_of_it(tmp_path: Path) -> None:
    _people().write_parquet(tmp_path / "people.parquet")
    spec = spec_of_keywords(str(tmp_path / "people.parquet"), WORDS)
    release = run(spec, tmp_path / "out")
    assert isinstance(release.data, pl.LazyFrame)
    assert len(release.data.collect()) == 900
    assert release.report["audit"]["passed"]
    assert release.report["measured_on"]["of"] == 900


@pytest.mark.parametrize("huge", [1 << 16, 6, 0], ids=["none huge", "some huge", "all huge"])
def test_figures_of_regions_that_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, huge: int) -> None:
    monkeypatch.setattr(made, "DRAWN", 300)
    monkeypatch.setattr(made, "HUGE", huge)
    _people().write_parquet(tmp_path / "people.parquet")
    spec = spec_of_keywords(str(tmp_path / "people.parquet"), WORDS)
    found, expected = _made(spec, "duckdb"), _made(spec, "memory")
    report = both_reports(found, audit_draft(found, found.stored.path))[1]
    whole = both_reports(expected, audit_draft(expected, expected.table))[1]
    assert 100 < report["measured_on"]["rows"] < 600
    for name in ("group_sizes", "detail", "partition", "initial_risk", "columns_lost", "columns", "rows"):
        assert report[name] == whole[name], name
    assert report["attack"]["re_identification"]["blind_chance"] == whole["attack"]["re_identification"]["blind_chance"]


def test_what_does_not_hold_is_not_published(tmp_path: Path) -> None:
    _people().write_parquet(tmp_path / "people.parquet")
    found = _made(spec_of_keywords(str(tmp_path / "people.parquet"), WORDS), "duckdb")
    table = found.stored.scan().collect()
    for number, fault in enumerate([table[1:], table.reverse(), table.with_columns(pl.col("income") + 1)]):
        fault.write_parquet(found.stored.path)
        with pytest.raises(AuditFailed):
            publish_draft(found, tmp_path / f"out{number}")
        assert not (tmp_path / f"out{number}").exists()


def test_regions_are_drawn_as_a_whole_and_evenly() -> None:
    nodes = np.arange(20_000)
    for share in (0.0, 0.1, 0.5, 1.0):
        drawn = drawn_regions(nodes, share, seed=7)
        assert abs(drawn.mean() - share) < 0.015
        assert (drawn_regions(nodes[::-1].copy(), share, seed=7) == drawn[::-1]).all()
