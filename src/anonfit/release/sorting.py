# SPDX-License-Identifier: Apache-2.0
"""Sort keys of released columns: integers that order rows as their values do, packed into as few words as they need."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import DataError
from anonfit.tables.frames import categorized
from anonfit.threads import thread_count

if TYPE_CHECKING:
    import polars as pl

__all__ = ["sort_keys"]

Key = tuple[NDArray[np.uint64], int]
"""One number per row, missing lowest, and how many bits it needs."""


def _of_integers(numbers: NDArray[Any], missing: NDArray[np.bool_] | None) -> Key:
    """Distances from the smallest number; one more where missing values need the zero."""
    if missing is not None and missing.all():
        return np.zeros(len(numbers), np.uint64), 0
    known = numbers if missing is None else numbers[~missing]
    low, high = int(known.min()), int(known.max())
    bits = (high - low + (missing is not None)).bit_length()
    if bits > 64:
        return _of_ranks(numbers, missing)
    # Differences of 64-bit integers are right modulo 2^64, also where the subtraction itself overflows.
    keys = numbers.astype(np.int64, copy=False).view(np.uint64) - np.uint64(low % 2**64)
    if missing is not None:
        keys = np.where(missing, np.uint64(0), keys + np.uint64(1))
    return keys, bits


def _of_ranks(numbers: NDArray[Any], missing: NDArray[np.bool_] | None) -> Key:
    ranks = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    return _of_integers(ranks, missing)


def _of_floats(numbers: NDArray[np.float64], missing: NDArray[np.bool_] | None) -> Key:
    """The bits of a float, turned so that they order as the floats do; NaN comes last."""
    bits = (np.where(np.isnan(numbers), np.nan, numbers) + 0.0).view(np.uint64)  # -0.0 is 0.0
    keys = np.where(bits >> np.uint64(63) != 0, ~bits, bits | np.uint64(1 << 63))
    if missing is None:
        return keys, 64
    # No float but -NaN has the lowest keys, and NaN was made positive above.
    return np.where(missing, np.uint64(0), keys), 64


def _of_texts(values: pl.Series) -> Key:
    """Ranks of texts among the distinct ones, by code point."""
    distinct, places = categorized(values)
    first = int(values.null_count() > 0)  # missing needs the zero
    ranks = np.zeros(len(distinct) + 1, np.uint64)
    ranks[distinct.arg_sort().to_numpy()] = np.arange(first, len(distinct) + first)
    return ranks.take(places), max(0, len(distinct) - 1 + first).bit_length()


def _key(values: pl.Series) -> Key:
    import polars as pl

    dtype = values.dtype
    if len(values) == 0:
        return np.zeros(0, np.uint64), 0
    if isinstance(dtype, (pl.String, pl.Categorical, pl.Enum)):
        return _of_texts(values)
    missing = values.is_null().to_numpy() if values.null_count() else None
    if dtype.is_float():
        return _of_floats(values.cast(pl.Float64).fill_null(0.0).to_numpy(), missing)
    if dtype == pl.Boolean:
        return _of_integers(values.fill_null(value=False).to_numpy().astype(np.int64), missing)
    if (dtype.is_integer() and dtype not in (pl.UInt64, pl.Int128)) or dtype.is_temporal():
        return _of_integers(values.to_physical().fill_null(0).to_numpy(), missing)
    if dtype.is_nested() or dtype == pl.Object:
        raise DataError(f"column '{values.name}' is of type {dtype}; only plain values can be released.")
    if dtype == pl.Null:
        return np.zeros(len(values), np.uint64), 0
    ranks = values.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()
    return _of_integers(ranks, missing)


def _signs(values: pl.Series) -> Key:
    """Which zeros are not negative: the last thing to order rows by, since -0.0 equals 0.0 but looks different."""
    import polars as pl

    numbers = values.cast(pl.Float64).fill_null(1.0).to_numpy()
    negative = (numbers == 0) & np.signbit(numbers)
    return (~negative).astype(np.uint64), int(negative.any())


def sort_keys(columns: Sequence[pl.Series]) -> NDArray[np.uint64]:
    """(word, row): keys that order rows by the columns' values, the first column first."""
    rows = len(columns[0]) if columns else 0
    with ThreadPoolExecutor(thread_count()) as pool:
        keys = [*pool.map(_key, columns), *(_signs(values) for values in columns if values.dtype.is_float())]
    words: list[NDArray[np.uint64]] = []
    free = 0
    for numbers, bits in keys:
        if bits == 0:
            continue
        if bits <= free:
            words[-1] <<= np.uint64(bits)
            words[-1] |= numbers
            free -= bits
        else:
            words.append(numbers)
            free = 64 - bits
    if len(words) == 1:
        return words[0][None, :]
    return np.stack(words) if words else np.zeros((0, rows), np.uint64)
