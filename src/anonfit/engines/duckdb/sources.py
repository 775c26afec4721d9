# SPDX-License-Identifier: Apache-2.0
"""A source as DuckDB reads it: Parquet files, into which rows of other kinds are written first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.engines.contract import Opening
from anonfit.engines.duckdb.sql import text
from anonfit.runtime.threads import available_memory, thread_count
from anonfit.tables.ingesting import ingest, scan_of
from anonfit.tables.reading import ReadOptions

if TYPE_CHECKING:
    import polars as pl

    from anonfit.engines.duckdb.engine import DuckDBEngine

LEAST_MEMORY = 256 * 2**20
"""What DuckDB is given at least, if nothing is said."""


@contextmanager
def opened(source: Any, options: ReadOptions, asked: Opening, folder: Path) -> Iterator[DuckDBEngine]:
    """The source's rows in a database of our own."""
    from anonfit.engines.duckdb.connection import connect
    from anonfit.engines.duckdb.engine import DuckDBEngine

    memory = asked.memory or max(available_memory() // 2, LEAST_MEMORY)
    with connect(folder / "duckdb", memory=memory, threads=thread_count(asked.threads)) as connection:
        files = ingest(source, options, folder)
        texts = {} if files.cleaned else dict.fromkeys(options.clean, options.missing)
        yield DuckDBEngine(
            connection,
            files.files,
            files.schema,
            missing_texts=texts,
            without_missing=asked.dropping,
            count=asked.count,
            scan=scan_of(files, missing_texts=texts, without_missing=asked.dropping),
        )


def file_rows(files: Sequence[Path]) -> tuple[dict[str, str], str]:
    """The columns of files by names of our own, and the rows of the files under these names. Folders such as `age=7`
    say nothing about rows.
    """
    import polars as pl

    places = {name: f"column{place}" for place, name in enumerate(pl.read_parquet_schema(files[0]))}
    paths = ", ".join(text(str(path)) for path in files)
    return places, f"read_parquet([{paths}], hive_partitioning = false) AS file({', '.join(places.values())})"


def clean(column: str, dtype: pl.DataType, missing: Sequence[str]) -> str:
    """A source column in which nothing but NULL is missing."""
    import polars as pl

    if isinstance(dtype, pl.String) and missing:
        return f"CASE WHEN {column} IN ({', '.join(text(word) for word in missing)}) THEN NULL ELSE {column} END"
    if dtype.is_float():
        return f"CASE WHEN isnan({column}) THEN NULL ELSE {column} END"
    return column
