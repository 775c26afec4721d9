# SPDX-License-Identifier: Apache-2.0
"""Writing the released table from Spark: rows get the rank of their region, are sorted by ranges, and Spark writes one
part for each range. The parts, one after the other, are the data file.
"""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from anonfit.engines.contract import Placing, Written
from anonfit.engines.sinking import sink
from anonfit.engines.spark.session import quiet, told
from anonfit.engines.spark.sources import parts_of
from anonfit.engines.spark.storage import restored, spark_type, stored_type
from anonfit.engines.spark.work import RANK, SIGNS, Place
from anonfit.errors import EngineError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["sorted_rows", "write_sorted"]

BATCH = 1 << 18
"""Rows that are on their way at once."""


def sorted_rows(
    coded: Any, types: Mapping[str, np.dtype[Any]], placing: Placing, kept: Mapping[str, pl.DataType], partitions: int
) -> Any:
    """Ranks and raw values, in order: each partition is sorted and comes after the one before it."""
    from pyspark.sql import functions

    fields = tuple(placing.fields)
    raw = tuple(f"raw{place}" for place in range(len(kept)))
    held = {name: stored_type(dtype) for name, dtype in zip(raw, kept.values(), strict=True)}
    work = Place(pickle.dumps(placing), fields, tuple(types[name].str for name in fields), raw)
    words = [f"{RANK} bigint", *(f"{name} {spark_type(dtype)}" for name, dtype in held.items()), f"{SIGNS} string"]
    # -0.0 equals 0.0 but looks different, so that comes last.
    keys = [functions.col(RANK)]
    for name, dtype in held.items():
        column = functions.col(name)
        keys.append(functions.when(column == 0.0, 0.0).otherwise(column) if dtype.is_float() else column)
    keys.append(functions.col(SIGNS))
    order = [key.asc_nulls_first() for key in keys]
    with quiet():
        placed = coded.select(*dict.fromkeys([*fields, *raw])).mapInArrow(work, ", ".join(words))
        return placed.repartitionByRange(partitions, *order).sortWithinPartitions(*order).drop(SIGNS)


def write_sorted(
    coded: Any,
    types: Mapping[str, np.dtype[Any]],
    placing: Placing,
    names: Sequence[str],
    kept: Mapping[str, pl.DataType],
    partitions: int,
    rows: int,
    path: Path,
    kind: str,
) -> Written:
    """Write the rows, whose raw columns `kept` are raw0, raw1, …"""
    folder = path.with_name(f"{path.name}.parts")
    ordered = sorted_rows(coded, types, placing, kept, partitions)
    told(lambda: ordered.write.mode("error").option("compression", "zstd").parquet(folder.absolute().as_uri()))
    parts = _parts(folder, rows)
    regions = placing.regions
    schema = {name: kept[name] if name in kept else regions.schema[name] for name in names}
    sink(lambda: _frames(parts, kept), regions, names, schema, path, kind)
    shutil.rmtree(folder, ignore_errors=True)
    return Written(path, kind, schema, rows)


def _parts(folder: Path, rows: int) -> list[Path]:
    """The parts in their order, all of them."""
    import polars as pl

    parts = parts_of(folder)
    found = sum(int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item()) for path in parts)
    if found != rows:
        raise EngineError(
            f"engine spark: of {rows} rows that the executors wrote, {found} are in {folder.parent.parent} on this "
            "machine; set engine.spill to a folder that the driver and all executors share."
        )
    return parts


def _frames(parts: Sequence[Path], kept: Mapping[str, pl.DataType]) -> Iterator[tuple[pl.Series, dict[str, pl.Series]]]:
    """The ranks and raw columns of the rows, a few at a time."""
    import polars as pl

    for path in parts:
        scan = pl.scan_parquet(path, glob=False)
        rows = int(scan.select(pl.len()).collect().item())
        for first in range(0, rows, BATCH):
            frame = scan.slice(first, BATCH).collect()
            raw = {
                name: restored(frame[f"raw{place}"], dtype).alias(name)
                for place, (name, dtype) in enumerate(kept.items())
            }
            yield frame[RANK], raw
