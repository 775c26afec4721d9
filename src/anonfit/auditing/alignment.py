# SPDX-License-Identifier: Apache-2.0
"""Makes a raw column of two files comparable by value: a text in one may be a number or a date in the other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing.coding import as_numbers
from anonfit.auditing.placing import as_moments

__all__ = ["Hashes", "add_hashes", "aligned", "same_types"]

Hashes = npt.NDArray[np.uint64]
_MIX = np.uint64(0x9E3779B97F4A7C15)


def aligned(one: pl.Series, other: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Two columns with the same type, so that equal values are equal; as texts where nothing better holds."""
    pair = (_plain(one), _plain(other))
    texts = [series.dtype == pl.String for series in pair]
    if texts == [True, True]:
        numbers = [as_numbers(series) for series in pair]
        pair = (numbers[0], numbers[1]) if all(series.dtype != pl.String for series in numbers) else pair
    elif any(texts):
        text, typed = pair if texts[0] else pair[::-1]
        read = _like(text, typed)
        pair = (read, typed) if texts[0] else (typed, read)
    return _same_type(*pair)


def same_types(one: pl.Series, other: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Two columns as they are where they have one type: equal texts are equal whatever they mean."""
    pair = (_plain(one), _plain(other))
    return pair if pair[0].dtype == pair[1].dtype else aligned(one, other)


def _plain(series: pl.Series) -> pl.Series:
    """Few types instead of many: text, truth value, number, time."""
    kind = series.dtype
    if isinstance(kind, (pl.Categorical, pl.Enum)):
        return series.cast(pl.String)
    if kind == pl.Date:
        return series.cast(pl.Datetime("us"))
    if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
        return series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return series


def _like(text: pl.Series, typed: pl.Series) -> pl.Series:
    """A text column read as what the other is; unchanged if some text cannot be read so."""
    kind = typed.dtype
    if kind == pl.Boolean:
        words = {"true": True, "false": False, "1": True, "0": False}
        read = text.str.to_lowercase().replace_strict(words, default=None, return_dtype=pl.Boolean)
    elif kind.is_numeric():
        read = text.cast(pl.Int64, strict=False)
        if read.null_count() > text.null_count():
            read = text.cast(pl.Float64, strict=False)
    elif isinstance(kind, pl.Datetime):
        read = as_moments(text)
    else:
        return text
    return read if read.null_count() == text.null_count() else text


def _same_type(one: pl.Series, other: pl.Series) -> tuple[pl.Series, pl.Series]:
    kinds = (one.dtype, other.dtype)
    if kinds[0] == kinds[1]:
        return one, other
    common: pl.DataType = pl.String()
    if all(isinstance(kind, pl.Datetime) for kind in kinds):
        common = pl.Datetime("ns" if "ns" in [getattr(kind, "time_unit", "") for kind in kinds] else "us")
    elif all(kind.is_numeric() or kind == pl.Boolean for kind in kinds):
        whole = all(kind.is_integer() or kind == pl.Boolean for kind in kinds)
        common = pl.Int64() if whole else pl.Float32() if pl.Float32 in kinds else pl.Float64()
    try:
        return one.cast(common), other.cast(common)
    except pl.exceptions.PolarsError:
        return one.cast(pl.String), other.cast(pl.String)


def add_hashes(hashes: Hashes, series: pl.Series, *, place: int) -> Hashes:
    """Fold one more column into 64-bit hashes of rows; a changed value goes unseen with a chance of rows / 2**64."""
    column: Hashes = series.hash(seed=place).to_numpy()
    mixed: Hashes = (hashes ^ column) * _MIX
    return mixed ^ (mixed >> np.uint64(29))
