# SPDX-License-Identifier: Apache-2.0
"""Writing the released table from Spark: the order is cut into parts, each is sorted by itself, and Spark writes them.
The parts, one after the other, are the data file.
"""

from __future__ import annotations

import heapq
import pickle
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.engines.contract import Placing, Written
from anonfit.engines.sinking import sink
from anonfit.engines.spark.packs import CONTENT, PART, unpack
from anonfit.engines.spark.rows import Shared
from anonfit.engines.spark.session import quiet, told
from anonfit.engines.spark.sorting import NUMBER, RANK, Cut, Sample, Sort, edges_of
from anonfit.engines.spark.sources import parts_of, seen_mark
from anonfit.engines.spark.storage import restored
from anonfit.errors import EngineError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["sorted_rows", "write_sorted"]

TIMES = 4
"""Parts for each partition: Spark puts several into one, by chance, and few are as good as equal shares."""


def sorted_rows(coded: Any, placing: Placing, partitions: int, mark: str) -> Any:
    """Packs of ranks and raw values: parts of the order, and packs of each in their order. They are only given to
    executors that see the mark.
    """
    content = pickle.dumps(placing)
    with quiet():
        sampled = coded.mapInArrow(Sample(content), f"{CONTENT} binary")
    samples = told(sampled.toArrow).column(CONTENT)
    edges = edges_of([one.as_buffer() for one in samples], partitions * TIMES)
    sort = Shared(Sort(), mark)

    def one_part(key: tuple[Any, ...], table: Any) -> Any:
        return sort(key, table)

    with quiet():
        cut = coded.mapInArrow(Cut(content, edges), f"{PART} bigint, {CONTENT} binary")
        return cut.groupBy(PART).applyInArrow(one_part, f"{PART} bigint, {NUMBER} bigint, {CONTENT} binary")


def write_sorted(
    coded: Any,
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
    ordered = sorted_rows(coded, placing, partitions, seen_mark(folder))
    told(lambda: ordered.write.mode("error").option("compression", "zstd").parquet(folder.absolute().as_uri()))
    regions = placing.regions
    schema = {name: kept[name] if name in kept else regions.schema[name] for name in names}
    written = 0

    def frames() -> Iterator[tuple[pl.Series, dict[str, pl.Series]]]:
        nonlocal written
        for frame in _packs(folder):
            written += len(frame)
            raw = {
                name: restored(frame[f"raw{place}"], dtype).alias(name)
                for place, (name, dtype) in enumerate(kept.items())
            }
            yield frame[RANK], raw

    sink(frames, regions, names, schema, path, kind)
    if written != rows:
        raise EngineError(
            f"engine spark: of {rows} rows that the executors wrote, {written} are in {folder.parent.parent} on this "
            "machine; set engine.spill to a folder that the driver and all executors share."
        )
    shutil.rmtree(folder, ignore_errors=True)
    return Written(path, kind, schema, rows)


def _packs(folder: Path) -> Iterator[pl.DataFrame]:
    """The written rows in their order, a pack at a time: every file has some parts, in their order."""
    files = (_packs_of(path) for path in parts_of(folder))
    last = (-1, -1)
    for part, number, content in heapq.merge(*files, key=lambda one: one[:2]):
        if (part, number) <= last:
            raise AssertionError("parts of the released table are not in order")
        last = part, number
        yield unpack(content)


def _packs_of(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """The packs of one file: part, place in it, and rows."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=1, columns=[PART, NUMBER, CONTENT]):
            for row in zip(*(batch.column(name) for name in (PART, NUMBER, CONTENT)), strict=True):
                yield row[0].as_py(), row[1].as_py(), row[2].as_buffer()
