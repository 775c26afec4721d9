# SPDX-License-Identifier: Apache-2.0
"""Frames of other libraries in and out: inputs are never changed, results are of the kind that came in."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import DataError, MissingPackage, listed, refuse_fork, refuse_patterns
from anonfit.runtime.process import thread_count


def is_spark(source: Any) -> bool:
    """Whether a source is a DataFrame of Spark, without importing it."""
    kind = type(source)
    return kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame"


def spark_names(source: Any) -> tuple[str, ...]:
    """The names of its columns."""
    names = tuple(source.columns)
    _refuse_twice(names)
    refuse_patterns(names)
    return names


def spark_types(source: Any) -> dict[str, pl.DataType]:
    """The types that its columns have when they come here."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_schema

    types: dict[str, pl.DataType] = {}
    for field in source.schema.fields:
        try:
            arrow = to_arrow_schema(type(source.schema)([field]), timezone="UTC", prefers_large_types=False)
            frame = pl.from_arrow(arrow.empty_table())
        except (PySparkException, pl.exceptions.PolarsError, TypeError, ValueError):
            raise DataError(
                f"column '{field.name}' is of Spark's type {field.dataType.simpleString()}, which is not known here; "
                "leave it out, or cast it."
            ) from None
        assert isinstance(frame, pl.DataFrame)
        types[field.name] = frame.schema[field.name]
    return types


def spark_rows(source: Any) -> pl.DataFrame:
    """All rows, here: for those who ask for the engine 'memory'."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, message="PySpark does not yet fully support pandas")
        frame = pl.from_arrow(source.toArrow())
    assert isinstance(frame, pl.DataFrame)
    return frame.cast(spark_types(source))  # type: ignore[arg-type]


SEED = 0
CHUNK = 1 << 15  # rows that are worked on at a time: what is computed of them stays near the processor
SLOTS = [(12, shift) for shift in range(0, 64, 4)] + [(16, shift) for shift in (0, 16, 32, 48)]
"""How many bits of a hash, and from which on, may tell texts apart: the fewer, the faster."""
SAMPLE, FEW = 4096, 256  # a column with more than so many different texts among its first ones is none of few texts


def from_frame(source: Any) -> pl.DataFrame:
    """Any known kind of frame as polars, its index left out."""
    refuse_fork()
    frame = _as_polars(source)
    refuse_patterns(frame.columns)
    return frame


def _as_polars(source: Any) -> pl.DataFrame:
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        collected: pl.DataFrame = source.collect() if isinstance(source, pl.LazyFrame) else source
        return collected
    kind = type(source).__module__.split(".")[0]
    if kind == "pandas" and hasattr(source, "columns"):
        return _from_pandas(source)
    if kind == "pyarrow" and hasattr(source, "schema"):
        _refuse_twice([str(name) for name in source.schema.names])
        frame = pl.from_arrow(source)
        if isinstance(frame, pl.DataFrame):
            return frame
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
    names = [str(name) for name in source.columns]
    _refuse_twice(names)
    series = []
    for position, name in enumerate(names):
        values = source.iloc[:, position]
        try:
            column: Any = pl.from_pandas(values.reset_index(drop=True))
        except Exception:  # mixed objects fail in many ways, in pandas, pyarrow or polars
            column = None
        if column is None or isinstance(column.dtype, pl.BaseExtension):
            texts = [None if _is_missing(value) else str(value) for value in values.tolist()]
            column = pl.Series(texts, dtype=pl.String)
        series.append(column.alias(name))
    return pl.DataFrame(series)


def _refuse_twice(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"column names stand twice in the frame: {listed(twice)}; rename them.")


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:
        return type(value).__name__ in ("NAType", "NaTType")


def like(source: Any, frame: pl.DataFrame, *, index: bool = True) -> Any:
    """A polars frame as the kind of frame that `source` is; a pandas one with its index, if asked."""
    kind = type(source).__module__.split(".")[0]
    try:
        if kind == "pandas":
            result = frame.to_pandas()
            if index:
                result.index = source.index
            return result
        if kind == "pyarrow":
            return frame.to_arrow()
    except ModuleNotFoundError:
        raise MissingPackage("pyarrow", kind if kind == "pandas" else "arrow", f"A {kind} frame") from None
    return frame


def rebuilt(frame: pl.DataFrame) -> pl.DataFrame:
    """The same values in buffers that hold nothing else.

    Rows that are chosen or sorted share the texts of the table they come from, in its order and with those of rows that
    were left out, and a missing value may have a value beneath it: who saves such a frame saves all of that.
    """
    return frame.select([_rebuilt(column) for column in frame])


def _rebuilt(column: pl.Series) -> pl.Expr:
    """A column anew; what has neither texts nor missing values was copied when rows were chosen."""
    expression, dtype = pl.col(column.name), column.dtype
    if isinstance(dtype, pl.String):
        return pl.concat_str([expression, pl.lit("")]).alias(column.name)
    if isinstance(dtype, pl.Binary):
        return expression.bin.encode("hex").str.decode("hex")
    if isinstance(dtype, pl.Categorical):
        # Categories that somebody named are written with that name.
        return expression if dtype == pl.Categorical() else expression.cast(pl.String).cast(pl.Categorical())
    if not column.null_count() or isinstance(dtype, pl.Enum | pl.Null):
        return expression
    plain = expression.to_physical() if dtype.is_temporal() else expression
    filled = plain.fill_null(value=False) if dtype == pl.Boolean else plain.fill_null(0)
    return pl.when(expression.is_not_null()).then(filled).cast(dtype).alias(column.name)


_NUMBERS = {pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32, pl.Float64}


def enumerated(texts: pl.Series) -> pl.Series:
    """A column of few different texts as an Enum of those that it has, by code point; any other as it is."""
    known = _by_hash(texts) if texts.dtype == pl.String else None
    if known is None:
        return texts
    distinct, places = known
    order = distinct.arg_sort()  # as they came, they would tell in which order rows stood
    ranks = np.empty(len(distinct) + 1, np.min_scalar_type(len(distinct)))
    ranks[order.to_numpy()] = np.arange(len(distinct))
    ranks[-1] = 0
    numbers = pl.Series(texts.name, ranks.take(places))
    if texts.null_count():
        numbers = numbers.set(texts.is_null(), None)
    return numbers.cat.to(pl.Enum(rebuilt(distinct.gather(order).to_frame()).to_series()))


def reordered(frame: pl.DataFrame, rows: NDArray[np.uint32]) -> pl.DataFrame:
    """All rows in another order, rebuilt. Texts that are enumerated are texts again: each is copied once, and rows
    point to it.
    """
    places = rows.astype(np.intp)  # else NumPy makes it anew for every column

    def taken(column: pl.Series) -> pl.Series:
        if column.dtype in _NUMBERS and not column.null_count():
            return pl.Series(column.name, column.to_numpy().take(places), column.dtype)
        if not isinstance(column.dtype, pl.Enum):
            return rebuilt(column.gather(rows).to_frame()).to_series()
        texts, numbers = column.dtype.categories, column.to_physical()
        if column.null_count():
            numbers = numbers.cast(pl.UInt32).fill_null(len(texts))
        return texts.extend_constant(None, 1).gather(numbers.to_numpy().take(places)).alias(column.name)

    with ThreadPoolExecutor(thread_count()) as pool:
        return pl.DataFrame(list(pool.map(taken, frame)))


def categorized(texts: pl.Series) -> tuple[pl.Series, NDArray[np.uint32]]:
    """The distinct texts of a column, in no particular order, and each row's place among them (missing: one more).

    Few texts are told apart by 64-bit hashes, which is faster. Otherwise categories of its own are used: those that
    polars shares between columns are never freed.
    """
    held = texts
    if not isinstance(texts.dtype, pl.Categorical) or texts.dtype.categories.is_global():
        known = _by_hash(texts.cast(pl.String)) if texts.dtype != pl.Enum else None
        if known is not None:
            return known
        held = texts.cast(pl.Categorical(pl.Categories.random()))
    assert isinstance(held.dtype, pl.Categorical)
    distinct = held.dtype.categories.to_series()
    places = held.to_physical()
    if places.null_count():
        places = places.fill_null(len(distinct))
    return distinct.alias(texts.name), places.to_numpy()


def _by_hash(texts: pl.Series) -> tuple[pl.Series, NDArray[np.uint32]] | None:
    """The same through a table in which every text has the slot that some bits of its hash name; None if two different
    hashes have one slot, whichever bits are taken.
    """
    hashes = texts.hash(seed=SEED).to_numpy()
    common = np.unique(hashes[:SAMPLE])
    if len(common) > FEW:
        return None
    for bits, shift in SLOTS:
        slots = _slots(common, bits, shift)
        if len(np.unique(slots)) == len(slots) and (numbered := _numbered(hashes, bits, shift)) is not None:
            rows, places = numbered
            distinct = texts.gather(rows)
            if distinct.null_count():
                known = distinct.is_not_null().to_numpy()
                places = np.where(known, np.cumsum(known) - 1, np.count_nonzero(known)).astype(np.uint32).take(places)
            return distinct.drop_nulls(), places
    return None


def _slots(hashes: NDArray[np.uint64], bits: int, shift: int) -> NDArray[np.int64]:
    """Some bits of each hash."""
    return ((hashes >> np.uint64(shift)) & np.uint64((1 << bits) - 1)).view(np.int64)


def _numbered(hashes: NDArray[np.uint64], bits: int, shift: int) -> tuple[list[int], NDArray[np.uint32]] | None:
    """A row of each distinct hash, and the number of each row's hash among them; None if two hashes have one slot."""
    # What an empty slot holds belongs into the next one, so that no hash is taken for it.
    hash_of = _slots(np.arange(1, (1 << bits) + 1, dtype=np.uint64), bits, 0).view(np.uint64) << np.uint64(shift)
    number = np.full(1 << bits, -1, np.int32)
    rows: list[int] = []
    places = np.empty(len(hashes), np.uint32)
    for start in range(0, len(hashes), CHUNK):
        part = hashes[start : start + CHUNK]
        slots = _slots(part, bits, shift)
        while (is_new := hash_of.take(slots) != part).any():
            first = int(is_new.argmax())
            slot = slots[first]
            if number[slot] >= 0:
                return None
            hash_of[slot], number[slot] = part[first], len(rows)
            rows.append(start + first)
        places[start : start + CHUNK] = number.take(slots)
    return rows, places
