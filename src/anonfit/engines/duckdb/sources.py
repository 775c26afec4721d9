# SPDX-License-Identifier: Apache-2.0
"""Columns of Parquet files as DuckDB reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anonfit.engines.duckdb.sql import text

if TYPE_CHECKING:
    import polars as pl

__all__ = ["clean", "file_rows"]


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
        return f"CASE WHEN {column} IN ({', '.join(text(one) for one in missing)}) THEN NULL ELSE {column} END"
    if dtype.is_float():
        return f"CASE WHEN isnan({column}) THEN NULL ELSE {column} END"
    return column
