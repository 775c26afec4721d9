# SPDX-License-Identifier: Apache-2.0
"""Frames of other libraries in and out: inputs are never changed, results are of the kind that came in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import DataError, MissingPackage, listed
from anonfit.tables.spark_frames import is_spark, spark_rows

if TYPE_CHECKING:
    import polars as pl

__all__ = ["categorized", "from_frame", "like"]

SEED, SLOT_BITS = 0, 16
SAMPLE, FEW = 4096, 256
"""A column with more than so many different texts among its first ones is none of few texts."""


def from_frame(source: Any) -> pl.DataFrame:
    """Any known kind of frame as polars, its index left out."""
    import polars as pl

    if isinstance(source, pl.DataFrame):
        return source
    if isinstance(source, pl.LazyFrame):
        collected: pl.DataFrame = source.collect()
        return collected
    kind = type(source).__module__.split(".")[0]
    if kind == "pandas" and hasattr(source, "columns"):
        return _from_pandas(source)
    if kind == "pyarrow" and hasattr(source, "schema"):
        _refuse_twice([str(name) for name in source.schema.names])
        found = pl.from_arrow(source)
        if isinstance(found, pl.DataFrame):
            return found
    if is_spark(source):
        return spark_rows(source)
    if isinstance(source, Mapping):
        try:
            return pl.DataFrame(source)
        except pl.exceptions.ShapeError:
            raise DataError(
                "the columns of the mapping are of different lengths; a table needs equally long ones."
            ) from None
    raise DataError(
        f"a table is needed: a path, or a polars, pandas, Arrow or Spark frame; found "
        f"{type(source).__module__}.{type(source).__name__}."
    )


def _from_pandas(source: Any) -> pl.DataFrame:
    import polars as pl

    names = [str(name) for name in source.columns]
    _refuse_twice(names)
    series = []
    for position, name in enumerate(names):
        values = source.iloc[:, position]
        try:
            found: Any = pl.from_pandas(values.reset_index(drop=True))
            known = not isinstance(found.dtype, pl.BaseExtension)
        except Exception:  # mixed objects fail in many ways, in pandas, pyarrow or polars
            known = False
        if known:
            series.append(found.alias(name))
        else:
            texts = [None if _is_missing(value) else str(value) for value in values.tolist()]
            series.append(pl.Series(name, texts, dtype=pl.String))
    return pl.DataFrame(series)


def _refuse_twice(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"column names stand twice in the frame: {listed(twice)}; rename them.")


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return type(value).__name__ in ("NAType", "NaTType")


def like(source: Any, frame: pl.DataFrame, *, index: bool = True) -> Any:
    """A polars frame as the kind of frame that `source` is; a pandas one with its index, if asked."""
    kind = type(source).__module__.split(".")[0]
    try:
        if kind == "pandas":
            found = frame.to_pandas()
            if index:
                found.index = source.index
            return found
        if kind == "pyarrow":
            return frame.to_arrow()
    except ModuleNotFoundError:
        raise MissingPackage("pyarrow", kind if kind == "pandas" else "arrow", f"A {kind} frame") from None
    return frame


def categorized(texts: pl.Series) -> tuple[pl.Series, NDArray[np.uint32]]:
    """The distinct texts of a column, in no particular order, and each row's place among them (missing: one more).

    Few texts are told apart by 64-bit hashes, which is faster. Otherwise categories of its own are used: those that
    polars shares between columns are never freed.
    """
    import polars as pl

    found = texts
    if not isinstance(texts.dtype, pl.Categorical) or texts.dtype.categories.is_global():
        known = _by_hash(texts.cast(pl.String)) if texts.dtype != pl.Enum else None
        if known is not None:
            return known
        found = texts.cast(pl.Categorical(pl.Categories.random()))
    assert isinstance(found.dtype, pl.Categorical)
    distinct = found.dtype.categories.to_series()
    places = found.to_physical()
    if places.null_count():
        places = places.fill_null(len(distinct))
    return distinct.alias(texts.name), places.to_numpy()


def _by_hash(texts: pl.Series) -> tuple[pl.Series, NDArray[np.uint32]] | None:
    """The same through a table in which every text has the slot that some bits of its hash name; None if two different
    hashes of every try have one slot.
    """
    hashes = texts.hash(seed=SEED).to_numpy()
    if len(np.unique(hashes[:SAMPLE])) > FEW:
        return None
    for shift in range(0, 64, SLOT_BITS):
        slots = ((hashes >> np.uint64(shift)) & np.uint64((1 << SLOT_BITS) - 1)).view(np.int64)
        row = np.full(1 << SLOT_BITS, -1)
        row[slots] = np.arange(len(slots))
        used = np.flatnonzero(row >= 0)
        hash_of = np.zeros(1 << SLOT_BITS, np.uint64)
        hash_of[used] = hashes[row[used]]
        if np.array_equal(hash_of.take(slots), hashes):
            distinct = texts.gather(row[used])
            known = distinct.is_not_null().to_numpy()
            place = np.zeros(1 << SLOT_BITS, np.uint32)
            place[used] = np.where(known, np.cumsum(known) - 1, np.count_nonzero(known))
            return distinct.drop_nulls(), place.take(slots)
    return None
