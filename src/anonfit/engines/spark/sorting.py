# SPDX-License-Identifier: Apache-2.0
"""What executors do to bring the released rows into their order: rows get the rank of their region, a few of them say
where the order is to be cut, and each part is sorted by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from anonfit.engines.spark.packs import CONTENT, PART, RAW, apart, pack, packed, unpack
from anonfit.engines.spark.rows import frame_of, polars, without_signs
from anonfit.engines.spark.work import loaded

if TYPE_CHECKING:
    import polars as pl

__all__ = ["NUMBER", "RANK", "Cut", "Sample", "Sort", "edges_of"]

RANK, NUMBER = "rank", "number"
KIND, SIGNS = "kind", "signs"
SAMPLED = 400
"""Rows of a pack that say where to cut."""
WRITTEN = 1 << 18
"""Rows of a pack that is written."""


def _placed(batches: Iterable[Any], placing: bytes) -> Iterator[pl.DataFrame]:
    """The ranks and raw values of rows."""
    pl = polars()
    found = loaded(placing)
    for batch in batches:
        for content, raw in zip(batch.column(CONTENT), batch.column(RAW), strict=True):
            codes = unpack(content.as_buffer(), found.fields)
            ranks = found.ranks({name: codes[name].to_numpy(writable=True) for name in found.fields})
            values = unpack(raw.as_buffer())
            yield pl.DataFrame([pl.Series(RANK, ranks.astype(np.int64)), *values.get_columns()])


def _keys(frame: pl.DataFrame) -> pl.DataFrame:
    """What rows are sorted by. -0.0 equals 0.0 but looks different, so that the signs of all zeros come last."""
    pl = polars()
    numbers = [name for name, dtype in frame.schema.items() if dtype.is_float()]
    if not numbers:
        return frame
    keys = frame.with_columns(without_signs(pl.col(name)).alias(name) for name in numbers)
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


@dataclass(frozen=True, slots=True)
class Sample:
    """A few rows of every pack, spread over it."""

    placing: bytes

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """What these are sorted by."""
        for frame in _placed(batches, self.placing):
            if len(frame):
                step = max(1, len(frame) // SAMPLED)
                yield packed({CONTENT: [pack(_keys(frame.gather_every(step)))]})


def edges_of(samples: Sequence[bytes], parts: int) -> bytes:
    """Where the order is cut into so many parts: the first keys of all but the first, of equal ones one with how often
    it stands there.
    """
    pl = polars()
    keys = pl.concat([unpack(one) for one in samples])
    names = keys.columns
    keys = keys.sort(names, nulls_last=False)
    chosen = keys[[len(keys) * number // parts for number in range(1, parts)]]
    return pack(chosen.group_by(names, maintain_order=True).agg(pl.len().alias(NUMBER)))


@dataclass(frozen=True, slots=True)
class Cut:
    """Packs of their own for the rows of each part. Rows that equal an edge look the same and may go to any part beside
    it: they are spread over these, so that no part is large because of them.
    """

    placing: bytes
    edges: bytes

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Parts, and packs of ranks and raw values."""
        pl = polars()
        edges = frame_of(self.edges)
        before = np.concatenate([[0], np.cumsum(edges[NUMBER].to_numpy().astype(np.int64))])
        for frame in _placed(batches, self.placing):
            parts = pl.Series(PART, _parts(_keys(frame), edges.drop(NUMBER), before))
            for number, part in apart(frame.with_columns(parts), PART):
                yield packed({PART: [number], CONTENT: [pack(part)]})


def _parts(keys: pl.DataFrame, edges: pl.DataFrame, before: Any) -> Any:
    """The part of each row: edges are sorted in twice, before and after the rows that equal them."""
    pl = polars()
    frames = [
        keys.with_columns(pl.lit(1, pl.Int8).alias(KIND), pl.int_range(pl.len(), dtype=pl.Int64).alias("row")),
        *(edges.with_columns(pl.lit(kind, pl.Int8).alias(KIND), pl.lit(-1, pl.Int64).alias("row")) for kind in (0, 2)),
    ]
    order = pl.concat(frames).sort([*keys.columns, KIND], nulls_last=False).select(KIND, "row")
    kinds, rows = order[KIND].to_numpy(), order["row"].to_numpy()
    opened, closed = np.cumsum(kinds == 0)[kinds == 1], np.cumsum(kinds == 2)[kinds == 1]
    rows = rows[kinds == 1]
    found = np.empty(len(rows), np.int64)
    # Equal to an edge that stands n times: any of the n + 1 parts from the one that it ends.
    found[rows] = before[closed] + np.arange(len(rows)) % (before[opened] - before[closed] + 1)
    return found


@dataclass(frozen=True, slots=True)
class Sort:
    """Sorts one part."""

    def __call__(self, key: tuple[Any, ...], table: Any) -> Any:
        """Packs of its rows, numbered by their order."""
        import pyarrow as pa

        pl = polars()
        rows = _sorted(pl.concat([unpack(content.as_buffer()) for content in table.column(CONTENT)], rechunk=True))
        contents = [pack(rows.slice(first, WRITTEN)) for first in range(0, len(rows), WRITTEN)]
        return pa.table(
            [
                pa.array([int(key[0].as_py())] * len(contents), pa.int64()),
                pa.array(range(len(contents)), pa.int64()),
                pa.array(contents, pa.binary()),
            ],
            names=[PART, NUMBER, CONTENT],
        )
