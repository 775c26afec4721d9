# SPDX-License-Identifier: Apache-2.0
"""The engines that must hold the contract. A new one is added here, and all tests of this folder ask it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from anonfit.engines.contract import OutOfCore
from anonfit.testing.engine import PlainEngine
from spark_sessions import spark_session

ENGINES = ["duckdb", pytest.param("spark", marks=pytest.mark.spark)]
FAST_ENGINES = ["duckdb"]
"""Those that can be asked hundreds of times."""


@contextmanager
def engine_of(name: str, frame: pl.DataFrame, folder: Path) -> Iterator[OutOfCore]:
    """An engine that has the rows of a frame."""
    if name == "plain":
        yield PlainEngine(frame)
        return
    folder.mkdir(exist_ok=True)
    frame.write_parquet(folder / "rows.parquet")
    if name == "spark":
        from anonfit.engines.spark.engine import SparkEngine
        from anonfit.engines.spark.source import from_files

        engine = SparkEngine(from_files(spark_session(), [folder / "rows.parquet"], frame.schema, {}), frame.schema)
        try:
            yield engine
        finally:
            engine.close()
        return
    assert name == "duckdb"
    from anonfit.engines.duckdb.engine import DuckDBEngine
    from anonfit.engines.duckdb.source import connect

    with connect(folder / "spill", memory=256 * 2**20, threads=2) as connection:
        yield DuckDBEngine(connection, [folder / "rows.parquet"], frame.schema)
