# SPDX-License-Identifier: Apache-2.0
"""An audit that reads some rows at a time finds what the audit in memory finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from audit_folders import Folder
from test_audit_planted_faults import IN_THE_FILE, NEEDS_SOURCE

import anonfit as af
from anonfit.auditing import counting, measuring, reading
from anonfit.auditing.api import audit, audit_release
from anonfit.auditing.released import batches_of
from anonfit.errors import AnonfitError, DataError


def outcome(ask: Callable[..., Any], *given: Any, **words: Any) -> Any:
    """All that an audit says, or its error."""
    try:
        return ask(*given, **words).to_dict()
    except AnonfitError as error:
        return type(error), str(error)


def same(ask: Callable[..., Any], *given: Any, batches: tuple[int, ...] = (17, 64, 10_000), **words: Any) -> Any:
    """Ask for an audit in memory and in batches; what both say."""
    expected = outcome(ask, *given, **words)
    for rows in batches:
        found = outcome(ask, *given, rows_at_once=rows, **words)
        assert found == expected, rows
    return expected


@pytest.fixture(params=[False, True], ids=["together", "early"])
def _early(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few pairs of a group and a value already, complete groups are measured before the file's end."""
    if request.param:
        monkeypatch.setattr(counting, "_MANY_PAIRS", 3)


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("_early")
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_sound_folder(tmp_path: Path, kind: str) -> None:
    folder = Folder(tmp_path / "release", kind=kind)
    found = same(audit_release, folder.write(), source=folder.raw)
    assert found["passed"]
    assert same(audit_release, folder.path)["passed"]


@pytest.mark.sampled(11)
@pytest.mark.parametrize("fault", [*NEEDS_SOURCE, *IN_THE_FILE], ids=lambda fault: fault.__name__)
def test_a_planted_fault(tmp_path: Path, fault: Callable[[Folder], None]) -> None:
    kind = "csv" if len(fault.__name__) % 2 else "parquet"
    folder = Folder(tmp_path / "release", kind=kind)
    fault(folder)
    found = same(audit_release, folder.write(), source=folder.raw, batches=(23,))
    assert not isinstance(found, dict) or not found["passed"]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_rows_out_of_order(tmp_path: Path, kind: str) -> None:
    for seed in range(5):
        folder = Folder(tmp_path / f"release{seed}", kind=kind)
        rng = np.random.default_rng(seed)
        swapped = np.arange(len(folder.data))
        places = rng.integers(0, len(swapped), 2)
        swapped[places] = swapped[places[::-1]]
        folder.data = folder.data[swapped]
        found = same(audit_release, folder.write(sort=False), source=folder.raw, batches=(23,))
        sorted_too = folder.data.equals(folder.data.sort(folder.data.columns))
        assert found["sorted"] == sorted_too


def test_a_source_of_other_types(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release", kind="csv")
    folder.write()
    typed = folder.raw.with_columns(pl.col("note").cast(pl.Float64), pl.col("diagnosis").cast(pl.Categorical))
    folder.raw.write_csv(tmp_path / "source.csv")
    for source in (typed, typed.with_columns(pl.col("note").cast(pl.Decimal(10, 2))), tmp_path / "source.csv"):
        assert same(audit_release, folder.path, source=source)["passed"]
    text = pl.read_csv(tmp_path / "source.csv", infer_schema=False)
    assert same(audit_release, folder.path, source=text.with_columns(pl.col("note") + ".0"))["passed"]
    assert not same(audit_release, folder.path, source=text.with_columns(pl.col("note") + ".5"))["passed"]


def test_lazy_frames(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    folder.write()
    lazy = audit_release(folder.path, source=folder.raw.lazy(), rows_at_once=9).to_dict()
    assert lazy == audit_release(folder.path, source=folder.raw).to_dict()


@pytest.mark.parametrize("values", ["labels", "representative"])
def test_a_source_without_rows(tmp_path: Path, values: str) -> None:
    frame = pl.DataFrame({"age": [20, 30, 30, 30, 30, 40] * 4})
    path = af.anonymize(frame, quasi_identifiers=["age"], k=4, values=values).save(tmp_path / "release")
    found = same(audit_release, path, source=frame.head(0), batches=(3,))
    assert not found["passed"]


def test_a_table_without_rows_is_one_batch() -> None:
    batches = list(batches_of(reading.open_table(pl.DataFrame({"age": [1]}).head(0)), ["age"], 3))
    assert [batch.height() for batch in batches] == [0]


def _random_table(rng: np.random.Generator) -> pl.DataFrame:
    rows = int(rng.integers(0, 120))
    number = rng.choice([0.0, -0.0, 1.5, 2.25, 40.0], rows)
    return pl.DataFrame({
        "age": rng.choice(["[0, 30)", "[30, 60)", "≥ 60"], rows),
        "place": rng.choice(["*", "north", "south"], rows),
        "many": rng.integers(1, 4, rows),
        "illness": pl.Series(rng.choice(["a", "b", "c", ""], rows)).cast(pl.Categorical),
        "number": pl.Series(number).set(pl.Series(rng.random(rows) < 0.1), None),
        "text": pl.Series(rng.integers(0, 30, rows)).cast(pl.String),
    })  # fmt: skip


DEMANDS = [
    {"column": "illness", "model": "distinct-l", "l": 2},
    {"column": "illness", "model": "entropy-l", "l": 1.5},
    {"column": "number", "model": "t-closeness", "t": 0.3},
    {"column": "text", "model": "t-closeness", "t": 0.3, "distance": "ordered"},
    {"column": "text", "model": "alpha-k", "alpha": 0.4, "type": "nominal"},
    {"column": "illness", "model": "recursive-cl", "c": 2.0, "l": 2},
    {"column": "illness", "model": "delta-disclosure", "delta": 1.5},
    {"column": "number", "model": "variance", "variance": 0.2},
    {"column": "text", "model": "squared-error", "error": 5.0},
]


@pytest.mark.sampled(11)
@pytest.mark.usefixtures("_early")
@pytest.mark.parametrize("block", range(4))
def test_random_tables_and_demands(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        rng = np.random.default_rng(seed)
        table = _random_table(rng)
        if rng.random() < 0.6:
            table = table.sort(table.columns)
        chosen = [DEMANDS[place] for place in rng.choice(len(DEMANDS), int(rng.integers(0, 4)), replace=False)]
        words: dict[str, Any] = {"diversity": chosen, "k": int(rng.integers(1, 6)), "order": "sorted"}
        if rng.random() < 0.5:
            words["count"] = "many"
        if rng.random() < 0.3:
            words["quasi_identifier_sets"] = [["age"], ["place"], ["age", "place"]]
        if rng.random() < 0.3:
            words |= {"targets": ["illness", {"column": "many", "classes": [2]}], "max_confidence": 0.8}
        if rng.random() < 0.3:
            words["max_risk"] = 0.1
        same(audit, table, quasi_identifiers=["age", "place"], batches=(13, 200), **words)


def test_measurements_written_as_text() -> None:
    rng = np.random.default_rng(0)
    digits = rng.integers(3, 6, 9000)
    written = [f"{number:.{places}f}" for number, places in zip(rng.random(9000) * 50, digits, strict=True)]
    table = pl.DataFrame({"age": np.repeat([1, 2, 3], 3000), "cost": written}).sort("age", "cost")
    for words in ({}, {"sensitive": {"cost": {"model": "distinct-l", "l": 3}}}):
        same(audit, table, quasi_identifiers=["age"], batches=(1000,), **words)


def test_what_needs_the_whole_table_is_refused() -> None:
    table = pl.DataFrame({"age": ["a", "a"], "who": [1, 1]})
    for words in ({"entity": "who"}, {"source": table}, {"population": table}):
        with pytest.raises(DataError, match="some rows at a time"):
            audit(table, quasi_identifiers=["age"], rows_at_once=2, **words)


def test_a_file_of_very_many_rows_is_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(tmp_path / "release")
    folder.write()
    folder.raw.write_parquet(tmp_path / "source.parquet")
    expected = audit_release(folder.path, source=tmp_path / "source.parquet").to_dict()
    opened = measuring.open_released

    def in_batches(table: Any, names: Any, rows: int | None) -> Any:
        return pytest.fail("read as a whole") if rows is None else opened(table, names, rows)

    monkeypatch.setattr(measuring, "open_released", in_batches)
    monkeypatch.setattr(measuring, "_MANY_ROWS", 10)
    monkeypatch.setitem(reading._CELLS, "typed", 100)
    assert audit_release(folder.path, source=tmp_path / "source.parquet").to_dict() == expected
    with pytest.raises(pytest.fail.Exception):
        audit_release(folder.path, source=folder.raw)
