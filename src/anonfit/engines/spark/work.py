# SPDX-License-Identifier: Apache-2.0
"""What executors do with rows once it is known what their values become: code them, count them, finish small nodes and
find the regions of rows. Each class is the work on one partition, or on one node.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from anonfit.engines.contract import CountRequest
from anonfit.engines.spark.rows import CHANGED, CHUNK, arrow, chunks, frame_of, polars, without_signs

if TYPE_CHECKING:
    import polars as pl

__all__ = ["NODE", "RANK", "ROWS", "SIGNS", "Code", "Count", "Finish", "Lookup", "Place"]

NODE, RANK, SIGNS, ROWS = "node", "rank", "signs", "rows"
REQUEST = "request"


@dataclass(frozen=True, slots=True)
class Lookup:
    """What the values of some held columns become: a frame of these columns and `field`, sent as bytes."""

    field: str
    names: tuple[str, ...]
    content: bytes
    entries: int


@dataclass(frozen=True, slots=True)
class Code:
    """Turns rows into their fields, and keeps some columns. Rows with a missing value of `known` are left out."""

    lookups: tuple[Lookup, ...]
    known: tuple[str, ...]
    kept: tuple[str, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Coded rows, all of node 0."""
        pl = polars()
        tables = [frame_of(one.content) for one in self.lookups]
        size = max([CHUNK, *(one.entries for one in self.lookups)])
        for rows in chunks(batches, size):
            frame = rows.drop_nulls(self.known) if self.known else rows
            found = [pl.repeat(0, len(frame), dtype=pl.Int32, eager=True).alias(NODE)]
            found += [_looked_up(frame, one, table) for one, table in zip(self.lookups, tables, strict=True)]
            found += [frame[name].alias(f"raw{place}") for place, name in enumerate(self.kept)]
            yield from arrow(pl.DataFrame(found))


def _looked_up(frame: pl.DataFrame, lookup: Lookup, table: pl.DataFrame) -> pl.Series:
    pl = polars()
    names = list(lookup.names)
    keys = frame.select(
        without_signs(pl.col(name)).alias(name) if frame.schema[name].is_float() else pl.col(name) for name in names
    )
    found = keys.join(table, on=names, how="left", nulls_equal=True, maintain_order="left")[lookup.field]
    if found.null_count() or len(found) != len(frame):
        raise AssertionError(CHANGED)
    return found


@dataclass(frozen=True, slots=True)
class Count:
    """Counts the groups that some requests ask for: partial counts of a partition. Rows of finished nodes have a node
    below 0.
    """

    requests: tuple[CountRequest, ...]
    every: tuple[bool, ...]
    """Whether a request is about all nodes that are not finished."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Partial counts: (request, node, codes, sums, rows)."""
        pl = polars()
        parts: list[list[Any]] = [[] for _ in self.requests]
        for rows in chunks(batches):
            frame = rows.filter(pl.col(NODE) >= 0)
            for number, request in enumerate(self.requests):
                asked = frame if self.every[number] else frame.filter(pl.col(NODE).is_in(request.nodes))
                keys = [NODE, *request.by]
                parts[number].append(
                    asked.group_by(keys)
                    .agg(*_sums(request), pl.len().cast(pl.Int64).alias(ROWS))
                    .rename(_names(request))
                )
        for number, found in enumerate(parts):
            if found:
                counted = found[0]
                if len(found) > 1:
                    keys = [name for name in counted.columns if name != ROWS and not name.startswith("sum")]
                    counted = pl.concat(found).group_by(keys).agg(pl.exclude(keys).sum())
                yield from arrow(self._padded(number, counted))

    @property
    def widths(self) -> tuple[int, int]:
        """The largest numbers of fields that groups are made by, and of sums."""
        return max(len(one.by) for one in self.requests), max(len(one.sums) for one in self.requests)

    def _padded(self, number: int, counted: pl.DataFrame) -> pl.DataFrame:
        """Counts of one request in the columns that all have."""
        pl = polars()
        by, sums = self.widths
        names = [NODE, *(f"by{place}" for place in range(by)), *(f"sum{place}" for place in range(sums)), ROWS]
        return counted.select(
            pl.lit(number, pl.Int32).alias(REQUEST),
            *(
                (pl.col(name).cast(pl.Int64) if name in counted.columns else pl.lit(0, pl.Int64).alias(name))
                for name in names
            ),
        )

    def schema(self) -> str:
        """The columns of the partial counts, as Spark says it."""
        by, sums = self.widths
        names = [NODE, *(f"by{place}" for place in range(by)), *(f"sum{place}" for place in range(sums)), ROWS]
        return ", ".join([f"{REQUEST} int", *(f"{name} bigint" for name in names)])


def _names(request: CountRequest) -> dict[str, str]:
    return {name: f"by{place}" for place, name in enumerate(request.by)}


def _sums(request: CountRequest) -> list[Any]:
    pl = polars()
    found = []
    for place, factors in enumerate(request.sums):
        if not factors:
            found.append(pl.len().cast(pl.Int64).alias(f"sum{place}"))
            continue
        product = pl.col(factors[0]).cast(pl.Int64)
        for name in factors[1:]:
            product = product * pl.col(name).cast(pl.Int64)
        found.append(product.sum().alias(f"sum{place}"))
    return found


@dataclass(frozen=True, slots=True)
class Finish:
    """Grows the subtree of one node. `grow` is the work of the in-memory kernel, as bytes."""

    grow: bytes
    names: tuple[str, ...]
    types: tuple[str, ...]

    def __call__(self, key: tuple[Any, ...], table: Any) -> Any:
        """One row: the node, and what the kernel says of it."""
        import pyarrow as pa

        polars()
        number = -1 - int(key[0].as_py())
        values = {
            name: np.ascontiguousarray(table.column(name).to_numpy().astype(dtype))
            for name, dtype in zip(self.names, self.types, strict=True)
        }
        nodes, members = _loaded(self.grow)(number, values)
        numbers = [pa.array([one], pa.int64()) for one in (number, nodes.shape[1])]
        content = [pa.array([one.tobytes()], pa.binary()) for one in (nodes, members)]
        return pa.table([*numbers, *content], names=[NODE, "facts", "nodes", "members"])


_KNOWN: dict[bytes, Any] = {}


def _loaded(content: bytes) -> Any:
    """What was sent as bytes; a process keeps the last one."""
    if content not in _KNOWN:
        _KNOWN.clear()
        _KNOWN[content] = pickle.loads(content)  # noqa: S301 - our own driver sent it
    return _KNOWN[content]


@dataclass(frozen=True, slots=True)
class Place:
    """Finds the rank of each row. Of numbers, the sign of zeros is told beside them: 0 for -0.0, which comes first."""

    placing: bytes
    fields: tuple[str, ...]
    types: tuple[str, ...]
    raw: tuple[str, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Rows of a rank, raw values, and signs."""
        pl = polars()
        placing = _loaded(self.placing)
        for frame in chunks(batches):
            codes = {
                name: np.ascontiguousarray(frame[name].to_numpy().astype(dtype))
                for name, dtype in zip(self.fields, self.types, strict=True)
            }
            ranks = pl.Series(RANK, placing.ranks(codes).astype(np.int64))
            yield from arrow(frame.select(ranks, *self.raw, _signs(frame, self.raw).alias(SIGNS)))


def _signs(frame: pl.DataFrame, raw: Sequence[str]) -> Any:
    """The signs of all zeros of a row, as texts that sort as they should."""
    pl = polars()
    numbers = [name for name in raw if frame.schema[name].is_float()]
    if not numbers:
        return pl.lit(None, pl.String)
    return pl.concat_str(
        pl.when((pl.col(name) == 0.0) & ((1.0 / pl.col(name)) < 0.0)).then(pl.lit("0")).otherwise(pl.lit("1"))
        for name in numbers
    )
