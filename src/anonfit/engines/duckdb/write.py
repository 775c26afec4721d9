# SPDX-License-Identifier: Apache-2.0
"""Writing the released table from DuckDB: rows get the rank of their region, the database sorts them, and they are
written as they come out of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from anonfit.engines.contract import Placing, Written
from anonfit.engines.duckdb.source import Connection
from anonfit.engines.memory.write import sink

BATCH = 1 << 18
"""Rows that are on their way at once."""
PLACED = "placed_rows"


def _place(connection: Connection, table: str, placing: Placing, raw: Sequence[str]) -> None:
    """A table of the rows' ranks and raw values."""
    import pyarrow as pa

    fields = list(placing.fields)
    query = f"SELECT {', '.join([*fields, *raw])} FROM {table}"  # noqa: S608 - our names
    batches = connection.batches(query, BATCH)

    def placed() -> Iterator[Any]:
        for batch in batches:
            codes = {name: batch.column(place).to_numpy(zero_copy_only=False) for place, name in enumerate(fields)}
            values = [batch.column(len(fields) + place) for place in range(len(raw))]
            yield pa.RecordBatch.from_arrays([pa.array(placing.ranks(codes)), *values], names=["rank", *raw])

    connection.store(PLACED, placed())
    connection.run(f"DROP TABLE {table}")


@dataclass(frozen=True, slots=True)
class KeptColumn:
    """A column that is released as it is: its type, and its values in rising order where rows hold their ranks."""

    dtype: pl.DataType
    dictionary: pl.Series | None = None

    def values(self, stored: pl.Series, name: str) -> pl.Series:
        """The values of rows."""
        values = stored if self.dictionary is None else self.dictionary.gather(stored)
        return values.cast(self.dtype).alias(name)


def _order(raw: Mapping[str, KeptColumn]) -> str:
    """Ranks first, then raw values; -0.0 equals 0.0 but looks different, so that comes last."""
    keys = ["rank", *(f"{place} NULLS FIRST" for place in raw)]
    keys += [
        f"(CASE WHEN {place} = 0 AND signbit({place}) THEN 0 ELSE 1 END)"
        for place, column in raw.items()
        if column.dtype.is_float()
    ]
    return ", ".join(keys)


def write_sorted(
    connection: Connection,
    table: str,
    placing: Placing,
    names: Sequence[str],
    kept: Mapping[str, KeptColumn],
    path: Path,
    kind: str,
) -> Written:
    """Write the rows of a table, whose raw columns `kept` are raw0, raw1, …"""
    stored = {name: f"raw{place}" for place, name in enumerate(kept)}
    raw = {place: kept[name] for name, place in stored.items()}
    _place(connection, table, placing, list(raw))
    columns = ", ".join(["rank", *raw])
    query = f"SELECT {columns} FROM {PLACED} ORDER BY {_order(raw)}"  # noqa: S608
    regions = placing.regions
    schema = {name: kept[name].dtype if name in kept else regions.schema[name] for name in names}
    rows = int(connection.value(f"SELECT count(*) FROM {PLACED}"))  # noqa: S608

    def parts() -> Iterator[tuple[pl.Series, dict[str, pl.Series]]]:
        for batch in connection.batches(query, BATCH):
            frame = pl.from_arrow(batch)
            assert isinstance(frame, pl.DataFrame)
            yield frame["rank"], {name: kept[name].values(frame[stored[name]], name) for name in kept}

    sink(parts, regions, names, schema, path, kind)
    connection.run(f"DROP TABLE {PLACED}")
    return Written(path, kind, schema, rows)
