# SPDX-License-Identifier: Apache-2.0
"""A query log teaches every engine what it teaches the in-memory engine, and the release is judged by it alike."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from test_same_release import _answered, _made

from anonfit.auditing import measuring
from anonfit.errors import DataError
from anonfit.release import draft as made
from anonfit.release import engine as release_engine
from anonfit.release.draft import Draft
from anonfit.release.evidence import audit_draft, both_reports
from anonfit.spec.keywords import spec_of_keywords
from anonfit.spec.model import QueryLogSpec, Spec
from anonfit.workload.logs import merging
from engines import FAST_ENGINES
from spark_sessions import spark_frame
from waivers import waived

WORDS: dict[str, Any] = {
    "quasi_identifiers": ["age", "hours", "town"],
    "insensitive": ["pay"],
    "sensitive": waived("ill"),
    "release": ["pay", "ill"],
    "k": 4,
}


def _people(rows: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    found = pl.DataFrame({
        "age": rng.integers(18, 90, rows),
        "hours": rng.integers(1, 80, rows) / 2,
        "town": rng.choice([f"t{at}" for at in range(12)], rows, p=np.arange(12, 0, -1) / 78),
        "pay": rng.integers(0, 9, rows) * 1000,
        "ill": rng.choice(["x", "y", "z"], rows),
        "people": rng.integers(1, 5, rows),
    })  # fmt: skip
    gaps = [pl.when(pl.Series(rng.random(rows) < 0.95)).then(pl.col(name)).alias(name) for name in ("age", "pay")]
    return found.with_columns(gaps)


def _log(seed: int, queries: int = 120) -> str:
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(queries):
        low, town = rng.integers(18, 80), rng.integers(0, 12)
        where = [f"age BETWEEN {low} AND {low + rng.integers(0, 30)}", f"hours > {rng.integers(0, 30)}"]
        where += [f"town IN ('t{town}', 't{rng.integers(0, 12)}')", f"pay <= {rng.integers(0, 9)}000", "age IS NULL"]
        chosen = rng.choice(where, rng.integers(1, 4), replace=False).tolist()
        shown, group = [("COUNT(*)", ""), ("town, SUM(pay)", " GROUP BY town"), ("AVG(hours)", "")][rng.integers(0, 3)]
        lines.append(f"SELECT {shown} FROM t WHERE {rng.choice([' AND ', ' OR ']).join(chosen)}{group}")
    return "\n".join(lines)


def _spec(folder: Path, seed: int, *, frame: Any = None, words: dict[str, Any] = WORDS, **log: Any) -> Spec:
    """A spec of a table with a log; what `frame` makes of it is used in place of a file."""
    people = _people(400 + 37 * seed, seed)
    people.write_parquet(folder / "people.parquet")
    (folder / "log.sql").write_text(_log(seed), encoding="utf-8")
    persons = {"count": "people"} if seed % 2 else {"identifiers": ["people"]}
    policy = "category" if seed % 3 else "drop"
    source = str(folder / "people.parquet") if frame is None else frame(people)
    spec = spec_of_keywords(source, words | persons | {"missing_policy": policy})
    asked = QueryLogSpec((str(folder / "log.sql"),), **log)
    return replace(spec, workload=replace(spec.workload, query_log=asked))


def _reports(found: Draft) -> list[dict[str, Any]]:
    table = found.table if found.stored is None else found.stored.path
    plain = json.loads(json.dumps(both_reports(found, audit_draft(found, table)), default=str))
    return [
        {name: one[name] for name in one if name not in ("engine", "measured_on", "distributions")} for one in plain
    ]


def _same(found: Draft, expected: Draft) -> None:
    assert found.spec.workload == expected.spec.workload
    assert found.spec.method == expected.spec.method
    assert found.asked == expected.asked
    assert found.recoding.to_json() == expected.recoding.to_json()
    assert_frame_equal(found.table, expected.table, check_exact=True)
    assert _answered(found) == _answered(expected)


@pytest.fixture(autouse=True)
def _few_rows_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "SAMPLE", 150)
    monkeypatch.setattr("anonfit.release.engine.BATCH", 41)


LOGS: list[dict[str, Any]] = [{"selections": 10}, {}, {"minterms": 12}, {"learn": False}]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("engine", FAST_ENGINES)
@pytest.mark.parametrize("seed", range(6))
def test_what_is_learned_made_and_told(engine: str, seed: int, tmp_path: Path) -> None:
    spec = _spec(tmp_path, seed, **LOGS[seed % 4])
    expected, found = _made(spec, "memory"), _made(spec, engine, 40)
    _same(found, expected)
    assert found.asked
    assert bool(found.spec.workload.selections) == (seed % 4 != 3)
    assert _reports(found) == _reports(expected)
    assert _reports(found)[1]["queries"]["judged"] > 20


@pytest.mark.parametrize("engine", FAST_ENGINES)
def test_a_refined_table_is_judged(engine: str, tmp_path: Path) -> None:
    words = {name: WORDS[name] for name in ("quasi_identifiers", "insensitive", "k")} | {"release": ["pay"]}
    spec = _spec(tmp_path, 1, words=words | {"targets": ["ill"], "algorithm": "tdr"}, learn=False)
    expected, found = _made(spec, "memory"), _made(spec, engine, 40)
    _same(found, expected)
    assert _reports(found) == _reports(expected)
    assert _reports(found)[1]["queries"]["judged"] > 20


@pytest.mark.parametrize("engine", FAST_ENGINES)
@pytest.mark.parametrize("seed", range(2))
def test_a_table_that_is_never_read_as_a_whole(
    engine: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made, "MANY_ROWS", 10)
    monkeypatch.setattr(measuring, "ROWS_AT_ONCE", 37)
    spec = _spec(tmp_path, seed, selections=10)
    expected, found = _made(spec, "memory"), _made(spec, engine, 40)
    assert found.is_large
    _same(found, expected)
    assert _reports(found) == _reports(expected)


@pytest.mark.parametrize("huge", [1 << 16, 6, 0], ids=["none huge", "some huge", "all huge"])
def test_queries_are_judged_on_rows_that_are_drawn(huge: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "MANY_ROWS", 10)
    monkeypatch.setattr(made, "DRAWN", 150)
    monkeypatch.setattr(made, "HUGE", huge)
    found = _made(_spec(tmp_path, 2, selections=10), "duckdb", 40)
    for report in both_reports(found, audit_draft(found, found.stored.path)):
        assert report["measured_on"]["rows"] < 400
        assert "answers to queries" in report["measured_on"]["sentence"]
    inner = report["queries"]
    assert inner["judged"] > 20
    assert all(one["true"] <= one["answered"] <= report["measured_on"]["rows"] for one in inner["queries"])


def test_wrong_counts_are_told_of_all_rows(tmp_path: Path) -> None:
    def frame(people: pl.DataFrame) -> pl.DataFrame:
        return people.with_columns(pl.Series("people", [0, -1] * (len(people) // 2) + [1] * (len(people) % 2)))

    found = _made(_spec(tmp_path, 1, frame=frame), "duckdb")
    assert isinstance(found, DataError)
    assert "2 values are not whole numbers of at least 1" in str(found)


def test_auto_reads_a_log_outside_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_engine, "available_memory", lambda: 300)
    spec = _spec(tmp_path, 0)
    assert release_engine.engine_for(spec, tmp_path / "people.parquet")[0] == "duckdb"


@pytest.mark.sampled(2)
@pytest.mark.spark
@pytest.mark.parametrize("is_frame", [False, True], ids=["file", "frame"])
def test_spark(is_frame: bool, tmp_path: Path) -> None:
    spec = _spec(tmp_path, 1, frame=spark_frame if is_frame else None, selections=10)
    expected, found = _made(spec, "memory"), _made(spec, "spark", 60)
    _same(found, expected)
    assert _reports(found)[0] == _reports(expected)[0]
