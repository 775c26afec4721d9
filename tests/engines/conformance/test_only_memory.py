# SPDX-License-Identifier: Apache-2.0
"""What only the in-memory engine does is an error of one sentence elsewhere; `auto` takes the engine that can do it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import anonfit as af
from anonfit.engines.contract import CAPABILITIES
from anonfit.errors import SpecError
from anonfit.release import engine as release_engine
from anonfit.release.run import make
from anonfit.spec.keywords import spec_of_keywords
from anonfit.spec.model import Spec
from engines import ENGINES


class Model:
    def predict(self, rows: Any) -> Any:
        return [0.0] * len(rows)


ASKED: dict[str, dict[str, Any]] = {
    "entity": {"entity": "who"},
    "models": {"targets": [{"column": "ill", "model": Model()}], "identifiers": ["who"]},
    "observed": {"regions": "observed", "consent": True, "identifiers": ["who"]},
    "original": {"order": "original", "consent": True, "identifiers": ["who"]},
    "explore": {"criterion": "explore", "identifiers": ["who"]},
}


def _table() -> pl.DataFrame:
    return pl.DataFrame({"age": [1, 2, 3, 4, 5, 6], "ill": list("ababab"), "who": list("uvwxyz")})


def _spec(name: str, engine: str) -> Spec:
    words = {"quasi_identifiers": ["age"], "targets": ["ill"], "k": 2, "engine": engine} | ASKED[name]
    return spec_of_keywords(_table(), words)


def test_all_are_tried():
    assert list(ASKED) == [choice.name for choice in CAPABILITIES]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("choice", CAPABILITIES, ids=lambda choice: choice.name)
def test_refused(engine, choice):
    with pytest.raises(SpecError) as found:
        make(_spec(choice.name, engine))
    assert str(found.value) == f"engine.name = '{engine}': {choice.asked} needs the engine 'memory'."


@pytest.mark.parametrize("choice", CAPABILITIES, ids=lambda choice: choice.name)
def test_auto_takes_memory_where_only_that_can(choice, tmp_path, monkeypatch):
    monkeypatch.setattr(release_engine, "available_memory", lambda: 300)
    _table().write_parquet(tmp_path / "table.parquet")
    named, reason = release_engine.engine_for(_spec(choice.name, "auto"), tmp_path / "table.parquet")
    assert named == "memory"
    assert reason == f"the table may not fit in memory, but {choice.asked} needs the engine 'memory'"


def test_auto_takes_memory_where_the_table_fits(tmp_path):
    _table().write_parquet(tmp_path / "table.parquet")
    words = {"quasi_identifiers": ["age"], "targets": ["ill"], "identifiers": ["who"], "k": 2}
    made = make(spec_of_keywords(str(tmp_path / "table.parquet"), words))
    assert (made.engine, made.engine_reason) == ("memory", "the table fits in memory")


def test_auto_takes_duckdb_where_it_does_not(tmp_path, monkeypatch):
    monkeypatch.setattr(release_engine, "available_memory", lambda: 300)
    monkeypatch.setattr("anonfit.engines.duckdb.source.LEAST_MEMORY", 64 * 2**20)
    _table().write_parquet(tmp_path / "table.parquet")
    words = {"quasi_identifiers": ["age"], "targets": ["ill"], "identifiers": ["who"], "k": 2}
    release = af.anonymize(str(tmp_path / "table.parquet"), **words)
    assert release.report["engine"] == {"name": "duckdb", "reason": "the table does not fit in memory with ease"}
    words |= {"regions": "observed", "consent": True}
    made = make(spec_of_keywords(str(tmp_path / "table.parquet"), words))
    assert made.engine == "memory"
    assert made.engine_reason is not None
    assert made.engine_reason.endswith("""output.regions = "observed" needs the engine 'memory'""")


def test_the_manifest_and_the_report_say_which_engine(tmp_path):
    words = {"quasi_identifiers": ["age"], "targets": ["ill"], "identifiers": ["who"], "k": 2, "engine": "duckdb"}
    af.anonymize(_table(), **words).save(tmp_path / "release")
    loaded = af.load(tmp_path / "release")
    assert loaded.report["engine"]["name"] == "duckdb"
    assert '"engine": "duckdb"' in (tmp_path / "release" / "manifest.json").read_text()
