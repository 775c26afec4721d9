# SPDX-License-Identifier: Apache-2.0
"""Rows drawn at random, the same ones in whatever order and however many at a time the rows of a table come.

Every row has a key, a hash of what it holds, and rows are drawn by their places in the order of keys. Rows of one key
hold the same, so it does not matter which of them has which place. The order is never made as a whole: rows are counted
by the first bits of their keys, and those alike in these bits to a row that is drawn are looked at once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.tables.frames import categorized
from anonfit.workload.logs.raw_rows import RawRows

if TYPE_CHECKING:
    import polars as pl

__all__ = ["drawn_rows"]

BITS = 20
"""First bits of keys by which rows are counted."""
KEY, TIMES = "key", "times"
_MISSING = np.uint64(0x9E3779B97F4A7C15)


def drawn_rows(rows: RawRows, names: Sequence[str], *, size: int, seed: int) -> pl.DataFrame:
    """Some columns of rows that are drawn at random, each as likely as any other; of all rows if these are no more."""
    import polars as pl

    if rows.count == 0:
        return rows.without_rows().select(names)
    if rows.count <= size:
        return pl.concat([batch.frame.select(names) for batch in rows.batches(names)])
    places = np.sort(np.random.default_rng(seed).choice(rows.count, size, replace=False))
    sizes = np.zeros(1 << BITS, np.int64)
    for _, keys in _keyed(rows, names):
        sizes += np.bincount(_first_bits(keys), minlength=len(sizes))
    ends = np.cumsum(sizes)
    run = np.searchsorted(ends, places, side="right")
    wanted = np.zeros(len(sizes), np.bool_)
    wanted[run] = True
    found = _different(rows, names, wanted)
    # Rows of other runs are not among those that were found.
    before = ends - np.cumsum(np.where(wanted, sizes, 0))
    at = np.searchsorted(found[TIMES].cum_sum().to_numpy(), places - before[run], side="right")
    drawn: pl.DataFrame = found[at].select(pl.col(_held(place)).alias(name) for place, name in enumerate(names))
    return drawn


def _held(place: int) -> str:
    return f"column{place}"


def _first_bits(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    return (keys >> np.uint64(64 - BITS)).astype(np.int64)


def _different(rows: RawRows, names: Sequence[str], wanted: NDArray[np.bool_]) -> pl.DataFrame:
    """What rows hold whose keys begin in a way that is wanted, in the order of keys, and how many rows hold it."""
    import polars as pl

    columns = [_held(place) for place in range(len(names))]
    found: pl.DataFrame | None = None
    for frame, keys in _keyed(rows, names):
        chosen = np.flatnonzero(wanted[_first_bits(keys)])
        some = frame[chosen].select(pl.col(name).alias(one) for name, one in zip(names, columns, strict=True))
        some = some.with_columns(pl.Series(KEY, keys[chosen]), pl.lit(1, pl.Int64).alias(TIMES))
        both = some if found is None else pl.concat([found, some])
        found = both.group_by(*columns, KEY).agg(pl.col(TIMES).sum())
    assert found is not None
    return found.sort(KEY, *columns)


def _keyed(rows: RawRows, names: Sequence[str]) -> Iterator[tuple[pl.DataFrame, NDArray[np.uint64]]]:
    """The rows, and the key of each."""
    for batch in rows.batches(names):
        keys = np.zeros(len(batch.frame), np.uint64)
        for name in names:
            keys = _mixed(keys * np.uint64(31) + _mixed(_bits(batch.frame[name])))
        yield batch.frame, keys


def _bits(values: pl.Series) -> NDArray[np.uint64]:
    """(row,) A number for each value, the same for the same."""
    import polars as pl

    dtype = values.dtype
    if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        distinct, places = categorized(values.cast(pl.String))
        hashes = [int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) for text in distinct.to_list()]
        found: NDArray[np.uint64] = np.array([*hashes, int(_MISSING)], np.uint64)[places]
        return found
    plain = values.to_physical()
    if plain.dtype.is_integer() or plain.dtype == pl.Boolean:
        numbers = plain.cast(pl.Int64, strict=False).fill_null(0).to_numpy().view(np.uint64)
    else:
        numbers = (plain.cast(pl.Float64, strict=False).fill_null(0.0).to_numpy() + 0.0).view(np.uint64)
    return np.where(values.is_null().to_numpy(), _MISSING, numbers)


def _mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers whose every bit hangs on every bit of those given; no two become one."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
