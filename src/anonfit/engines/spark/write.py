# SPDX-License-Identifier: Apache-2.0
"""The released table sorted by Spark, and its parts put together in one file."""

from __future__ import annotations

import heapq
import pickle
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anonfit.engines.contract import Placing, Written
from anonfit.engines.memory.write import sink
from anonfit.engines.spark.count import loaded
from anonfit.engines.spark.rows import (
    CONTENT,
    PART,
    RAW,
    apart,
    in_shared_folder,
    pack,
    packed,
    restored,
    unpack,
    without_signs,
)
from anonfit.engines.spark.source import parts_of, quiet, result_of, seen_mark
from anonfit.errors import EngineError

RANK, NUMBER = "rank", "number"
KIND, SIGNS = "kind", "signs"
SAMPLED = 400
"""Rows of a pack that say where to cut."""
WRITTEN = 1 << 18
"""Rows of a pack that is written."""


def _placed(batches: Iterable[Any], placing: bytes) -> Iterator[pl.DataFrame]:
    """The ranks and raw values of rows."""
    places = loaded(placing)
    for batch in batches:
        for content, raw in zip(batch.column(CONTENT), batch.column(RAW), strict=True):
            codes = unpack(content.as_buffer(), places.fields)
            ranks = places.ranks({name: codes[name].to_numpy(writable=True) for name in places.fields})
            values = unpack(raw.as_buffer())
            yield pl.DataFrame([pl.Series(RANK, ranks.astype(np.int64)), *values.get_columns()])


def _keys(frame: pl.DataFrame) -> pl.DataFrame:
    """What rows are sorted by. -0.0 equals 0.0 but looks different, so that the signs of all zeros come last."""
    numbers = [name for name, dtype in frame.schema.items() if dtype.is_float()]
    if not numbers:
        return frame
    keys = without_signs(frame, frame.columns)
    signs = (
        pl.when((pl.col(name) == 0.0) & ((1.0 / pl.col(name)) < 0.0)).then(pl.lit("0")).otherwise(pl.lit("1"))
        for name in numbers
    )
    return keys.with_columns(frame.select(pl.concat_str(signs).alias(SIGNS)).to_series())


def _sorted(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows in order."""
    keys = _keys(frame)
    order = keys.with_row_index("row").sort(keys.columns, nulls_last=False)["row"]
    return frame[order]


def sample_keys(placing: bytes, batches: Iterable[Any]) -> Iterator[Any]:
    """What a few rows of every pack, spread over it, are sorted by."""
    for frame in _placed(batches, placing):
        if len(frame):
            step = max(1, len(frame) // SAMPLED)
            yield packed({CONTENT: [pack(_keys(frame.gather_every(step)))]})


def edges_of(samples: Sequence[bytes], parts: int) -> bytes:
    """The first keys of all parts of the order but the first, and how many parts begin with each."""
    keys = pl.concat([unpack(sample) for sample in samples])
    names = keys.columns
    keys = keys.sort(names, nulls_last=False)
    chosen = keys[[len(keys) * number // parts for number in range(1, parts)]]
    return pack(chosen.group_by(names, maintain_order=True).agg(pl.len().alias(NUMBER)))


def cut_rows(placing: bytes, edges: bytes, batches: Iterable[Any]) -> Iterator[Any]:
    """Packs of their own for the rows of each part: the part, and ranks and raw values. Rows that equal an edge look
    the same and may go to any part beside it: they are spread over these, so that no part is large because of them.
    """
    firsts = unpack(edges)
    before = np.concatenate([[0], np.cumsum(firsts[NUMBER].to_numpy().astype(np.int64))])
    for frame in _placed(batches, placing):
        parts = pl.Series(PART, _parts(_keys(frame), firsts.drop(NUMBER), before))
        for number, part in apart(frame.with_columns(parts), PART):
            yield packed({PART: [number], CONTENT: [pack(part)]})


def _parts(keys: pl.DataFrame, edges: pl.DataFrame, before: Any) -> Any:
    """The part of each row: edges are sorted in twice, before and after the rows that equal them."""
    frames = [
        keys.with_columns(pl.lit(1, pl.Int8).alias(KIND), pl.int_range(pl.len(), dtype=pl.Int64).alias("row")),
        *(edges.with_columns(pl.lit(kind, pl.Int8).alias(KIND), pl.lit(-1, pl.Int64).alias("row")) for kind in (0, 2)),
    ]
    order = pl.concat(frames).sort([*keys.columns, KIND], nulls_last=False).select(KIND, "row")
    kinds, rows = order[KIND].to_numpy(), order["row"].to_numpy()
    opened, closed = np.cumsum(kinds == 0)[kinds == 1], np.cumsum(kinds == 2)[kinds == 1]
    rows = rows[kinds == 1]
    parts = np.empty(len(rows), np.int64)
    # Equal to an edge that stands n times: any of the n + 1 parts from the one that it ends.
    parts[rows] = before[closed] + np.arange(len(rows)) % (before[opened] - before[closed] + 1)
    return parts


def sort_part(key: tuple[Any, ...], table: Any) -> Any:
    """Packs of the rows of one part, numbered by their order."""
    import pyarrow as pa

    rows = _sorted(pl.concat([unpack(content.as_buffer()) for content in table.column(CONTENT)], rechunk=True))
    contents = [pack(rows.slice(first, WRITTEN)) for first in range(0, len(rows), WRITTEN)]
    part = pa.array([int(key[0].as_py())] * len(contents), pa.int64())
    numbers = pa.array(range(len(contents)), pa.int64())
    return pa.table([part, numbers, pa.array(contents, pa.binary())], names=[PART, NUMBER, CONTENT])


TIMES = 4
"""Parts for each partition: Spark puts several into one, by chance, and few are as good as equal shares."""


def sorted_rows(coded: Any, placing: Placing, partitions: int, mark: str) -> Any:
    """Packs of ranks and raw values: parts of the order, and packs of each in their order. They are only given to
    executors that see the mark.
    """
    content = pickle.dumps(placing)
    with quiet():
        sampled = coded.mapInArrow(partial(sample_keys, content), f"{CONTENT} binary")
    samples = result_of(sampled.toArrow).column(CONTENT)
    edges = edges_of([sample.as_buffer() for sample in samples], partitions * TIMES)

    def one_part(key: tuple[Any, ...], table: Any) -> Any:
        return in_shared_folder(sort_part, mark, key, table)

    with quiet():
        cut = coded.mapInArrow(partial(cut_rows, content, edges), f"{PART} bigint, {CONTENT} binary")
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
    result_of(lambda: ordered.write.mode("error").option("compression", "zstd").parquet(folder.absolute().as_uri()))
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
    for part, number, content in heapq.merge(*files, key=lambda pack: pack[:2]):
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
