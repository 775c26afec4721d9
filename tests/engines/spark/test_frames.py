# SPDX-License-Identifier: Apache-2.0
"""DataFrames of Spark as sources: types, names, what is refused, and what no error or record tells."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import anonfit as af
from anonfit.engines.spark import source as sources
from anonfit.engines.spark import write as writing
from anonfit.errors import DataError, EngineError, SpecError
from anonfit.release import draft as made
from anonfit.tables.frames import spark_types
from spark_sessions import spark_frame, spark_session

pytestmark = pytest.mark.spark
ROWS = 60


def _table() -> pl.DataFrame:
    rng = np.random.default_rng(5)

    def picked(*values: Any) -> list[Any]:
        return [values[place] for place in rng.integers(0, len(values), ROWS)]

    now = datetime.datetime(2024, 2, 29, 12, 30, 15, 123456)
    return pl.DataFrame({
        "age.in years": rng.integers(0, 9, ROWS),
        "raw": picked("x", "é", None, "Z"),
        "Raw": pl.Series(picked(1, -128, None), dtype=pl.Int8),
        "float": pl.Series(picked(0.0, -0.0, 0.5, float("nan"), None), dtype=pl.Float32),
        "double": picked(0.0, -0.0, 1e300, float("nan"), None),
        "decimal": pl.Series(picked(Decimal("1.50"), Decimal("-12.25"), None), dtype=pl.Decimal(10, 2)),
        "date": picked(datetime.date(1900, 1, 1), datetime.date(2100, 12, 31), None),
        "zoned": pl.Series(picked(now, None), dtype=pl.Datetime("us", "UTC")),
        "naive": picked(now, now - datetime.timedelta(days=30000), None),
        "duration": picked(datetime.timedelta(days=1), datetime.timedelta(microseconds=-5), None),
        "flag": picked(True, False, None),
    })  # fmt: skip


def test_a_frame_with_columns_of_all_types(tmp_path):
    frame = _table()
    source = spark_frame(frame)
    assert spark_types(source) == dict(frame.schema)
    words: dict[str, Any] = {"quasi_identifiers": ["age.in years"], "insensitive": frame.columns[1:], "k": 5}
    expected, found = af.anonymize(frame, **words), af.anonymize(source, **words)
    assert found.recoding.to_json() == expected.recoding.to_json()
    assert_frame_equal(found.data, expected.data, check_exact=True)
    for name in ("float", "double"):
        assert list(map(repr, found.data[name])) == list(map(repr, expected.data[name]))
    assert found.report["engine"]["name"] == "spark"
    found.save(tmp_path / "release")
    assert json.loads((tmp_path / "release" / "manifest.json").read_text())["engine"] == "spark"


def test_a_large_frame_is_never_here_as_a_whole(tmp_path, monkeypatch):
    frame = _table().with_columns(pl.Series("ill", ["a", "b", "c"] * 20))
    words: dict[str, Any] = {"quasi_identifiers": ["age.in years"], "insensitive": frame.columns[1:-1], "k": 5}
    words |= {"targets": ["ill"], "selections": ['"age.in years" < 4'], "missing_policy": "drop"}
    expected = af.anonymize(frame, **words)
    monkeypatch.setattr(made, "MANY_ROWS", 10)
    monkeypatch.setattr("anonfit.release.engine.BATCH", 7)

    def refused(*_: Any) -> None:
        raise AssertionError("all rows at once")

    monkeypatch.setattr("anonfit.release.engine.rows_here", refused)
    found = af.anonymize(spark_frame(frame), **words)
    found.save(tmp_path / "release")
    assert found.report["measured_on"]["of"] == ROWS
    assert found.report["audit"]["passed"]
    assert found.recoding.to_json() == expected.recoding.to_json()
    told = [{**one.report, "engine": None, "measured_on": None} for one in (expected, found)]
    assert told[0] == told[1]


def test_rows_that_spark_wrote_are_read_as_they_were(tmp_path, monkeypatch):
    frame = _table()
    monkeypatch.setattr(sources, "CHUNK", 7)
    held = sources.hold(spark_frame(frame).repartition(3), dict(frame.schema), {}, tmp_path / "held")
    assert len(held.files) > 1
    columns = ["raw", "age.in years", "zoned", "decimal"]
    assert_frame_equal(held.scan().select(columns).collect(), frame.select(columns), check_row_order=False)
    older = pl.col("age.in years") > 4
    assert_frame_equal(
        held.scan().filter(older).select(columns).collect(),
        frame.filter(older).select(columns),
        check_row_order=False,
    )
    assert len(held.scan().head(11).collect()) == 11
    assert held.scan().select(pl.len()).collect().item() == ROWS
    found = held.scan().collect(engine="streaming")
    assert dict(found.schema) == dict(frame.schema)


def test_files_with_columns_of_all_types(tmp_path):
    frame = _table().with_columns(
        pl.Series("wide", [2**63 + 5, 0, None] * 20, dtype=pl.UInt64),
        pl.Series("fine", [1, 10**18, None] * 20).cast(pl.Datetime("ns")),
        pl.Series("time", [1, 10**9, None] * 20).cast(pl.Time),
        pl.Series("kind", ["b", "a", None] * 20, dtype=pl.Categorical),
        pl.Series("level", ["b", "a", None] * 20, dtype=pl.Enum(["b", "a", "never"])),
        pl.Series("nothing", [None] * ROWS),
    )
    frame.write_parquet(tmp_path / "table.parquet")
    words: dict[str, Any] = {"quasi_identifiers": ["age.in years", "kind"], "k": 5, "default_role": "insensitive"}
    expected = af.anonymize(str(tmp_path / "table.parquet"), engine="memory", **words)
    found = af.anonymize(str(tmp_path / "table.parquet"), engine="spark", **words)
    assert found.recoding.to_json() == expected.recoding.to_json()
    assert_frame_equal(found.data, expected.data, check_exact=True)


def test_columns_that_are_refused():
    source = spark_session().sql("SELECT id % 3 AS age, array(id) AS many FROM range(20)")
    with pytest.raises(DataError, match="column 'many' is of type List.*only plain values"):
        af.anonymize(source, quasi_identifiers=["age"], insensitive=["many"], k=2)
    source = spark_session().sql("SELECT id % 3 AS age, make_ym_interval(1, 2) AS long FROM range(20)")
    with pytest.raises(DataError, match="column 'long' is of Spark's type interval"):
        af.anonymize(source, quasi_identifiers=["age"], insensitive=["long"], k=2)
    with pytest.raises(DataError, match="stand twice"):
        af.anonymize(spark_session().sql("SELECT 1 AS a, 2 AS a"), quasi_identifiers=["a"], k=1)
    with pytest.raises(DataError, match="no rows"):
        af.anonymize(spark_session().sql("SELECT id AS a FROM range(0)"), quasi_identifiers=["a"], k=1)
    source = spark_session().sql("SELECT id % 3 AS age, id AS who FROM range(20)")
    with pytest.raises(SpecError, match="100% of its values are distinct"):
        af.anonymize(source, quasi_identifiers=["age"], insensitive=["who"], k=2)


def test_failures_of_spark_do_not_tell_values():
    source = spark_session().sql("SELECT id % 3 AS age, CAST(concat('secret', id) AS INT) AS broken FROM range(20)")
    with pytest.raises(EngineError) as caught:
        af.anonymize(source, quasi_identifiers=["age"], insensitive=["broken"], k=2)
    assert "secret" not in str(caught.value)
    assert "a job failed" in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("address", ["s3a://key:hidden@bucket/a.parquet", "wasbs://a@b.net/c.parquet?sig=hidden"])
def test_addresses_with_keys_are_refused(address):
    with pytest.raises(SpecError, match="Spark's settings") as caught:
        af.anonymize(address, quasi_identifiers=["age"], k=2, engine="spark")
    assert "hidden" not in str(caught.value)


def test_an_address_that_spark_reads(tmp_path):
    frame = _table().select("age.in years", "raw", "date")
    folder = tmp_path / "table"
    spark_frame(frame).write.parquet(folder.as_uri())
    words: dict[str, Any] = {"quasi_identifiers": ["age.in years", "date"], "insensitive": ["raw"], "k": 4}
    expected = af.anonymize(frame, **words)
    found = af.anonymize(Path(folder).as_uri(), engine="spark", **words)
    assert_frame_equal(found.data, expected.data, check_exact=True)
    with pytest.raises(EngineError, match="a job failed") as caught:
        af.anonymize("file:///nowhere/private", engine="spark", **words)
    assert "private" not in str(caught.value)


def test_memory_is_set_by_spark():
    with pytest.raises(SpecError, match="Spark's own settings"):
        af.anonymize(_table(), quasi_identifiers=["raw"], default_role="insensitive", k=2, engine="spark", memory="1GB")


@pytest.mark.parametrize("folder", ["source", "data.parquet.parts"])
def test_rows_are_not_written_where_executors_do_not_see_the_spill_folder(tmp_path, monkeypatch, folder):
    """As on a machine that has another disk in its place."""
    real, real_result_of = sources.seen_mark, sources.result_of

    def mark(place: Path) -> str:
        found = Path(real(place))
        if place.name == folder:
            found.unlink()
        return str(found)

    seen: list[list[str]] = []

    def result_of(work: Any) -> Any:
        try:
            return real_result_of(work)
        except EngineError:
            seen.append([path.name for path in tmp_path.rglob("*.parquet") if folder in str(path)])
            raise

    for module in (sources, writing):
        monkeypatch.setattr(module, "seen_mark", mark)
        monkeypatch.setattr(module, "result_of", result_of)
    frame = spark_frame(pl.DataFrame({"age": [20, 30, 40] * 4}))
    with pytest.raises(EngineError, match="set spill to a folder that the driver and all executors share"):
        af.anonymize(frame, quasi_identifiers=["age"], k=3, spill=str(tmp_path))
    assert seen == [[]]
    assert list(tmp_path.iterdir()) == []
