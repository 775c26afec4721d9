# SPDX-License-Identifier: Apache-2.0
"""Decision trees on every engine: the same model, and the same rows of the table that it stands for, as in memory."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from random_requests import FACTORS, random_request

from anonfit.auditing import measuring
from anonfit.engines.duckdb import engine as duckdb_engine
from anonfit.errors import AnonfitError, AuditFailed, EngineError
from anonfit.release import draft as held
from anonfit.release import engine as release_engine
from anonfit.release.evidence import audit_draft, both_reports
from anonfit.release.run import make
from anonfit.release.trees import make_tree_of, publish_tree
from anonfit.spec.keywords import spec_of_keywords
from anonfit.spec.model import DiversitySpec, OutputSpec, Spec
from engines import ENGINES, FAST_ENGINES
from spark_sessions import spark_frame

FIXED = {
    "criterion": "auto", "candidates": "boundary", "rule": "none", "more": "none", "hand_over": "all",
    "persons": "rows", "model": "none", "selections": "none",
}  # fmt: skip
WORDS = ("candidates", "criterion", "weights", "weight_rule", "split_on", "min_gain", "sensitive", "max_confidence")


def _source(rng: np.random.Generator, frame: pl.DataFrame, folder: Path, engine: str) -> Any:
    kind = str(rng.choice(["frame", "parquet", "csv"]))
    path = folder / f"table.{kind}"
    if kind == "frame":
        return spark_frame(frame) if engine == "spark" else frame
    frame.write_csv(path) if kind == "csv" else frame.write_parquet(path)
    return str(path)


def _spec(seed: int, folder: Path, engine: str) -> Spec:
    """A request with private columns, some of which have gaps."""
    rng = np.random.default_rng(seed)
    case = {name: str(rng.choice(words)) for name, words in FACTORS.items()} | FIXED
    case["target"] = str(rng.choice(["class", "edges", "classes"]))
    case["tree"] = str(rng.choice(["multiway", "none"]))
    case["missing"] = str(rng.choice(["none", "drop", "category"], p=[0.45, 0.45, 0.1]))
    frame, words = random_request(case, seed)
    words = {name: word for name, word in words.items() if name not in WORDS}
    words |= {"algorithm": "tree", "variant": str(rng.choice(["c45", "id3"], p=[0.7, 0.3]))}
    if rng.random() < 0.8 and words.get("missing_policy") != "drop":
        frame = frame.with_columns(pl.col("word").fill_null("w"), pl.col("^several$").fill_null("a"))
    words["types"]["extra"] = "nominal" if rng.random() < 0.5 else "continuous"
    if words["variant"] == "id3" and rng.random() < 0.9:
        words["types"] |= {"extra": "nominal"} | ({"ordered": "nominal"} if case["ordered"] != "wide" else {})
    if rng.random() < 0.4:
        words["pruning"] = 0.0
    if rng.random() < 0.3:
        words["max_confidence"] = 0.9
    if words["cut_points"] == "value" and rng.random() < 0.5:
        words["types"]["extra"] = "nominal"
    spec = spec_of_keywords(_source(rng, frame, folder, engine), words)
    if rng.random() < 0.2:
        asked = (DiversitySpec(spec.targets[0].column, "entropy-l", {"l": 1.3}),)
        spec = replace(spec, privacy=replace(spec.privacy, diversity=asked))
    return spec


def _made(spec: Spec, engine: str, make_one: Any) -> Any:
    try:
        return make_one(replace(spec, engine=replace(spec.engine, name=engine)))
    except AnonfitError as error:
        return error


def _same(spec: Spec, engine: str, make_one: Any) -> tuple[Any, Any] | None:
    """What both make; None where both refuse."""
    expected, found = _made(spec, "memory", make_one), _made(spec, engine, make_one)
    if isinstance(expected, AnonfitError):
        assert (type(found), str(found)) == (type(expected), str(expected))
        return None
    assert not isinstance(found, AnonfitError), repr(found)
    return expected, found


def _check(seed: int, engine: str, folder: Path) -> tuple[bool, bool]:
    """Whether there was a table of several regions, and a tree with a test."""
    folder.mkdir()
    try:
        spec = _spec(seed, folder, engine)
    except AnonfitError:
        return False, False
    if tables := _same(spec, engine, make):
        expected, found = tables
        assert found.recoding.to_json() == expected.recoding.to_json()
        assert_frame_equal(found.table, expected.table, check_exact=True)
        assert found.rows == expected.rows
        assert found.steered == expected.steered
        assert dict(found.dtypes) == dict(expected.table.schema)
    if seed % 3 == 0:
        spec = replace(spec, privacy=replace(spec.privacy, class_is_public=True, max_confidence=1.0, diversity=()))
    # What is said of the columns of a table only is refused for the tree itself.
    columns = {name: replace(column, release=False) for name, column in spec.columns.items()}
    spec = replace(spec, output=OutputSpec(), columns=columns, method=replace(spec.method, seed=0))
    if trees := _same(spec, engine, make_tree_of):
        expected, found = trees
        assert found.tree.to_model_json() == expected.tree.to_model_json()
        assert found.rows == expected.rows
        assert found.engine == engine
    return bool(tables and tables[0].recoding.node_count > 1), bool(trees and trees[0].tree.leaves > 1)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("engine", ENGINES)
def test_random_requests(engine, tmp_path):
    first = int(os.environ.get("FIRST_SEED", "0"))
    seeds = int(os.environ.get("SEEDS", "24")) if engine in FAST_ENGINES else 6
    tables = trees = 0
    for seed in range(first, first + seeds):
        try:
            table, tree = _check(seed, engine, tmp_path / str(seed))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        tables, trees = tables + table, trees + tree
    assert tables > seeds // 4, tables
    assert trees > seeds // 4, trees


def _people(rows: int = 900) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    age, smokes = rng.integers(20, 90, rows), rng.choice(["yes", "no"], rows)
    return pl.DataFrame({
        "age": age,
        "place": rng.choice(["north", "south", "east"], rows),
        "smokes": smokes,
        "ill": np.where(age + 20 * (smokes == "yes") + rng.normal(0, 10, rows) > 60, "ill", "well"),
    })  # fmt: skip


WORDS_OF_PEOPLE: dict[str, Any] = {
    "quasi_identifiers": ["age", "place"],
    "insensitive": ["smokes"],
    "targets": ["ill"],
    "k": 5,
    "algorithm": "tree",
}


def _people_spec(folder: Path) -> Spec:
    _people().write_parquet(folder / "people.parquet")
    return spec_of_keywords(str(folder / "people.parquet"), WORDS_OF_PEOPLE)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("populations", ["exact", "relative"])
def test_a_published_tree_is_the_same_file_by_file(engine, populations, tmp_path):
    spec = _people_spec(tmp_path)
    spec = replace(spec, output=replace(spec.output, populations=populations))
    for name in ("memory", engine):
        publish_tree(_made(spec, name, make_tree_of), tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "memory").iterdir())
    assert files == sorted(path.name for path in (tmp_path / engine).iterdir())
    for name in ("model.json", "tree.txt", "tree.svg", "audit.json"):
        assert (tmp_path / engine / name).read_bytes() == (tmp_path / "memory" / name).read_bytes(), name
    manifests = [json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("memory", engine)]
    assert [one.pop("engine") for one in manifests] == ["memory", engine]
    assert manifests[0] == manifests[1]


def test_a_tree_that_others_changed_is_not_published(tmp_path):
    made = _made(_people_spec(tmp_path), "duckdb", make_tree_of)
    fewer = replace(made, source=made.source.with_columns(pl.col(made.times) * 2))
    with pytest.raises(AuditFailed, match="Some bins do not hold what the tree says"):
        publish_tree(fewer, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_large_table_is_audited_and_reported_as_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(held, "MANY_ROWS", 10)
    monkeypatch.setattr("anonfit.release.engine.BATCH", 41)
    monkeypatch.setattr(measuring, "ROWS_AT_ONCE", 37)
    spec = _people_spec(tmp_path)
    expected, found = (_made(spec, name, make) for name in ("memory", "duckdb"))
    assert found.is_large
    assert expected.recoding.node_count > 3
    audits = [audit_draft(one, found.stored.path) for one in (expected, found)]
    assert audits[0].to_dict() == audits[1].to_dict()
    reports = [both_reports(*one) for one in zip((expected, found), audits, strict=True)]
    for one, other in zip(*reports, strict=True):
        for name in set(one) - {"engine", "distributions"}:
            assert one[name] == other[name], name


@pytest.mark.parametrize("make_one", [make, make_tree_of])
def test_more_groups_than_fit_are_an_error(make_one, tmp_path, monkeypatch):
    monkeypatch.setattr(duckdb_engine, "GROUP_TIMES", 1 << 30)
    found = _made(_people_spec(tmp_path), "duckdb", make_one)
    assert isinstance(found, EngineError)
    assert re.search("groups of equal rows need .* GiB of memory; give more by --memory", str(found))


def test_nothing_left_is_one_sentence_on_every_engine(tmp_path):
    frame = _people(40).with_columns(pl.lit(None, pl.String).alias("smokes"))
    frame.write_parquet(tmp_path / "people.parquet")
    spec = spec_of_keywords(str(tmp_path / "people.parquet"), {**WORDS_OF_PEOPLE, "missing_policy": "drop"})
    for make_one in (make, make_tree_of):
        assert _same(spec, "duckdb", make_one) is None


def test_auto_takes_duckdb_for_a_tree_that_does_not_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(release_engine, "available_memory", lambda: 300)
    monkeypatch.setattr("anonfit.engines.duckdb.source.LEAST_MEMORY", 64 * 2**20)
    assert make_tree_of(_people_spec(tmp_path)).engine == "duckdb"
