# SPDX-License-Identifier: Apache-2.0
"""What executors do with rows once it is known what their values become: code them, derive fields, draw and count them.
What ends with `batches` is the work on one partition.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from anonfit.engines.contract import CountRequest, Draw, first_of_run
from anonfit.engines.spark.rows import (
    CHANGED,
    CHUNK,
    CONTENT,
    NODE,
    RAW,
    arrow,
    chunks,
    pack,
    packed,
    unpack,
    unpacked,
    without_signs,
)

REQUEST, ROWS = "request", "rows"


def draw_rows(draw: Draw, names: Sequence[str], batches: Iterable[Any]) -> Iterator[Any]:
    """Packs of some fields of the rows that are drawn."""
    for rows in unpacked(batches, list(dict.fromkeys([*draw.fields, *names]))):
        chosen = draw.drawn({name: rows[name].to_numpy() for name in draw.fields})
        yield packed({CONTENT: [pack(rows.filter(chosen).select(names))]})


def derive_fields(work: bytes, names: Sequence[str], batches: Iterable[Any]) -> Iterator[Any]:
    """The same packs, with more fields; `work` says what they are, as bytes."""
    for rows in unpacked(batches):
        further = loaded(work)({name: rows[name].to_numpy() for name in names})
        yield packed({CONTENT: [pack(rows.with_columns(pl.Series(name, values) for name, values in further.items()))]})


@dataclass(frozen=True, slots=True)
class Lookup:
    """What the values of some held columns become: a frame of these columns and `field`, sent as bytes."""

    field: str
    names: tuple[str, ...]
    content: bytes
    entries: int


def code(
    lookups: Sequence[Lookup], known: Sequence[str], kept: Sequence[str], pack_rows: int, batches: Iterable[Any]
) -> Iterator[Any]:
    """Packs, of about so many rows, of coded rows, all of node 0, and of the values of the columns `kept`. Rows with a
    missing value of `known` are left out.
    """
    tables = [unpack(lookup.content) for lookup in lookups]
    for rows in chunks(batches, max([CHUNK, *(lookup.entries for lookup in lookups)])):
        frame = rows.drop_nulls(known) if known else rows
        columns = [pl.repeat(0, len(frame), dtype=pl.Int32, eager=True).alias(NODE)]
        columns += [_looked_up(frame, lookup, table) for lookup, table in zip(lookups, tables, strict=True)]
        coded = pl.DataFrame(columns)
        raw = frame.select(pl.col(name).alias(f"raw{place}") for place, name in enumerate(kept))
        for first in range(0, len(frame), pack_rows):
            yield packed({CONTENT: [pack(coded.slice(first, pack_rows))], RAW: [pack(raw.slice(first, pack_rows))]})


def _looked_up(frame: pl.DataFrame, lookup: Lookup, table: pl.DataFrame) -> pl.Series:
    names = list(lookup.names)
    keys = without_signs(frame, names)
    codes = keys.join(table, on=names, how="left", nulls_equal=True, maintain_order="left")[lookup.field]
    if codes.null_count() or len(codes) != len(frame):
        raise AssertionError(CHANGED)
    return codes


@dataclass(frozen=True, slots=True)
class Count:
    """Counts the groups of some requests in one partition; rows of finished nodes have a node below 0."""

    requests: tuple[CountRequest, ...]
    every: tuple[bool, ...]
    """Whether a request is about all nodes that are not finished."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Partial counts: (request, node, codes, sums, rows)."""
        parts: list[list[Any]] = [[] for _ in self.requests]
        for rows in unpacked(batches, self.names):
            frame = rows.filter(pl.col(NODE) >= 0)
            for number, request in enumerate(self.requests):
                asked = frame if self.every[number] else frame.filter(pl.col(NODE).is_in(request.nodes))
                asked, keys = _keyed(asked, request)
                parts[number].append(asked.group_by(keys).agg(*_sums(request), pl.len().cast(pl.Int64).alias(ROWS)))
        for number, of_request in enumerate(parts):
            if of_request:
                counted = of_request[0]
                if len(of_request) > 1:
                    keys = [name for name in counted.columns if name != ROWS and not name.startswith("sum")]
                    counted = pl.concat(of_request).group_by(keys).agg(pl.exclude(keys).sum())
                yield from arrow(self._padded(number, counted))

    @property
    def names(self) -> list[str]:
        """The columns that are needed."""
        fields = (
            name
            for request in self.requests
            for name in (*request.by, *(name for sum_ in request.sums for name in sum_))
        )
        within = (request.within[0] for request in self.requests if request.within is not None)
        return list(dict.fromkeys([NODE, *fields, *within]))

    @property
    def widths(self) -> tuple[int, int]:
        """The largest numbers of fields that groups are made by, and of sums."""
        return max(len(request.by) for request in self.requests), max(len(request.sums) for request in self.requests)

    @property
    def columns(self) -> list[str]:
        """The columns of partial counts of whatever request."""
        by, sums = self.widths
        return [NODE, *(f"by{place}" for place in range(by)), *(f"sum{place}" for place in range(sums)), ROWS]

    def _padded(self, number: int, counted: pl.DataFrame) -> pl.DataFrame:
        """Counts of one request in the columns that all have."""
        return counted.select(
            pl.lit(number, pl.Int32).alias(REQUEST),
            *(
                (pl.col(name).cast(pl.Int64) if name in counted.columns else pl.lit(0, pl.Int64).alias(name))
                for name in self.columns
            ),
        )

    def schema(self) -> str:
        """The columns of the partial counts, as Spark says it."""
        return ", ".join([f"{REQUEST} int", *(f"{name} bigint" for name in self.columns)])


def _keyed(rows: pl.DataFrame, request: CountRequest) -> tuple[pl.DataFrame, list[Any]]:
    """The rows that a request is about, and the columns and expressions that they are grouped by."""
    if request.within is not None:
        name, first, stop = request.within
        rows = rows.filter(pl.col(name).ge(first) & pl.col(name).lt(stop))
    runs: dict[str, Any] = {}
    keys: list[Any] = [NODE]
    for place, (name, starts) in enumerate(zip(request.by, request.starts, strict=True)):
        key = f"by{place}"
        if starts:
            runs[key] = pl.Series(first_of_run(rows[name].to_numpy(), starts))
        keys.append(key if starts else pl.col(name).alias(key))
    return rows.with_columns(**runs), keys


def _sums(request: CountRequest) -> list[Any]:
    sums = []
    for place, factors in enumerate(request.sums):
        if not factors:
            sums.append(pl.len().cast(pl.Int64).alias(f"sum{place}"))
            continue
        product = pl.col(factors[0]).cast(pl.Int64)
        for name in factors[1:]:
            product = product * pl.col(name).cast(pl.Int64)
        sums.append(product.sum().alias(f"sum{place}"))
    return sums


def fields_of(contents: Iterable[Any], names: Sequence[str]) -> dict[str, Any]:
    """The fields of the rows of a node's packs; kernels are compiled for arrays that can be written."""
    frame = pl.concat([unpack(content, names) for content in contents], rechunk=True)
    return {name: frame[name].to_numpy(writable=True) for name in names}


_KNOWN: dict[bytes, Any] = {}


def loaded(content: bytes) -> Any:
    """What was sent as bytes; a process keeps the last one."""
    if content not in _KNOWN:
        _KNOWN.clear()
        _KNOWN[content] = pickle.loads(content)  # noqa: S301 - our own driver sent it
    return _KNOWN[content]
