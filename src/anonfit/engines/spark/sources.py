# SPDX-License-Identifier: Apache-2.0
"""Sources as DataFrames of Spark whose columns are in the form in which they are held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.engines.spark.rows import Clean, Load, Read, held_name
from anonfit.engines.spark.session import quiet
from anonfit.engines.spark.storage import is_storable, spark_type, stored_type

if TYPE_CHECKING:
    import polars as pl

__all__ = ["PARTITION", "from_files", "from_spark", "storable"]

PARTITION = 1 << 18
"""Rows that a partition has, roughly, as long as Spark's setting of partitions allows for so many."""


def storable(schema: Mapping[str, pl.DataType]) -> tuple[str, ...]:
    """The columns that can be held, in the order in which they are."""
    return tuple(name for name, dtype in schema.items() if is_storable(dtype))


def _words(schema: Mapping[str, pl.DataType], names: Sequence[str]) -> str:
    """The columns as they are held, as Spark says it."""
    return ", ".join(f"{held_name(place)} {spark_type(stored_type(schema[name]))}" for place, name in enumerate(names))


def from_spark(source: Any, schema: Mapping[str, pl.DataType], missing: Mapping[str, Sequence[str]]) -> Any:
    """The columns of a schema of a DataFrame of Spark."""
    names = storable(schema)
    # Columns are renamed by their places: names may have dots, or differ in case only.
    place_of = {name: f"column{place}" for place, name in enumerate(source.columns)}
    found = source.toDF(*place_of.values()).select(*(place_of[name] for name in names))
    clean = Clean({place_of[name]: tuple(texts) for name, texts in missing.items() if name in place_of})
    with quiet():
        return found.mapInArrow(Load(clean, tuple(place_of[name] for name in names)), _words(schema, names))


def from_files(
    session: Any, files: Sequence[Path], schema: Mapping[str, pl.DataType], missing: Mapping[str, Sequence[str]]
) -> Any:
    """The columns of a schema of Parquet files, which executors must see, too."""
    names = storable(schema)
    tasks = [(str(path.absolute()), first, rows) for path in files for first, rows in _runs(path)]
    clean = Clean({name: tuple(texts) for name, texts in missing.items()})
    numbers = session.range(0, len(tasks), 1, max(1, len(tasks)))
    with quiet():
        return numbers.mapInArrow(Read(clean, names, tuple(tasks)), _words(schema, names))


def _runs(path: Path) -> list[tuple[int, int]]:
    """Runs of whole row groups of a file, each large enough for a partition: first row and how many."""
    from pyarrow import parquet

    metadata = parquet.read_metadata(path)
    found: list[tuple[int, int]] = []
    first = rows = 0
    for group in range(metadata.num_row_groups):
        rows += metadata.row_group(group).num_rows
        if rows >= PARTITION:
            found.append((first, rows))
            first, rows = first + rows, 0
    return [*found, (first, rows)] if rows else found
