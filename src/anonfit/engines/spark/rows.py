# SPDX-License-Identifier: Apache-2.0
"""Rows in Spark. Values are held as whole numbers, numbers, texts or bytes that sort as the values do: Spark itself
does not know all types of columns that files have, and here every value comes back as it was. Executors read rows,
bring them into that form, and find their different values; what ends with `batches` is the work on one partition. Coded
rows are in packs, many rows as one value: Spark holds and moves packs, and never looks into them.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, TypeAlias

import polars as pl

TOP = -(1 << 63)


def is_storable(dtype: pl.DataType) -> bool:
    """Whether values of a type can be held."""
    wide = (pl.Int128, pl.UInt128) if hasattr(pl, "UInt128") else (pl.Int128,)
    return not (dtype.is_nested() or dtype == pl.Object or isinstance(dtype, wide))


def stored_type(dtype: pl.DataType) -> pl.DataType:
    """The type that values of a type are held as."""
    if dtype.is_float():
        return pl.Float64()
    if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return pl.String()
    if isinstance(dtype, pl.Binary):
        return pl.Binary()
    if isinstance(dtype, pl.Decimal):
        return pl.Decimal(38, dtype.scale)
    return pl.Int64()


def spark_type(dtype: pl.DataType) -> str:
    """The name that Spark has for a type of storage."""
    if isinstance(dtype, pl.Decimal):
        return f"decimal(38,{dtype.scale})"
    return {pl.Float64: "double", pl.String: "string", pl.Binary: "binary"}.get(type(dtype), "bigint")


def stored(column: pl.Series) -> pl.Series:
    """A column as it is held."""
    dtype = column.dtype
    kind = stored_type(dtype)
    if isinstance(dtype, pl.UInt64):
        return column.to_frame().select(pl.col(column.name).reinterpret(signed=True) ^ TOP).to_series()
    if dtype.is_temporal():
        return column.to_physical().cast(kind)
    return column.cast(kind)


def restored(column: pl.Series, dtype: pl.DataType) -> pl.Series:
    """A column of a type from what is held of it."""
    if isinstance(dtype, pl.UInt64):
        return column.to_frame().select((pl.col(column.name) ^ TOP).reinterpret(signed=False)).to_series()
    if isinstance(dtype, pl.Null):
        return pl.Series(column.name, [None] * len(column), dtype=pl.Null)
    if isinstance(dtype, pl.Date):
        return column.cast(pl.Int32).cast(dtype)
    return column.cast(dtype)


CHANGED = "the source changed while it was read"
NOT_SHARED = "the spill folder is not seen where an executor runs"
CHUNK = 1 << 19
"""Rows that are worked on at once."""
SET, ROWS = "set", "rows"
ALL, KEPT, LEFT_OUT, PARTITIONS, KNOWN = -1, -2, -3, -4, -5
"""In place of a set: all rows, those that are kept, the persons of the others, partitions that have rows; and from the
last one down, of each raw column the known values, and at most how many of them differ.
"""


frozen = 0
"""How many modules there were when what they hold was last taken from the garbage collector's sight."""


def _freeze() -> None:
    """Take what modules hold from the garbage collector's sight: Spark lets it look at everything after every task,
    which takes far longer than a small task itself.
    """
    global frozen
    if "pyspark.worker" in sys.modules and len(sys.modules) != frozen:
        gc.freeze()
        frozen = len(sys.modules)


def chunks(batches: Iterable[Any], rows: int = CHUNK) -> Iterator[pl.DataFrame]:
    """Batches of Arrow as frames of about so many rows."""
    _freeze()
    waiting: list[Any] = []
    count = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        waiting.append(pl.from_arrow(batch))
        count += batch.num_rows
        if count >= rows:
            yield pl.concat(waiting, rechunk=True)
            waiting, count = [], 0
    if waiting:
        yield pl.concat(waiting, rechunk=True)


def arrow(frame: pl.DataFrame) -> Iterator[Any]:
    """A frame as the batches of Arrow that Spark takes."""
    import pyarrow as pa

    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    simple = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    schema = pa.schema([pa.field(column.name, simple.get(column.type, column.type)) for column in table.schema])
    yield from table.cast(schema).to_batches(max_chunksize=CHUNK)


def without_signs(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Some columns, their numbers with -0.0 as 0.0, which it equals."""
    floats = [pl.col(name) for name in names if frame.schema[name].is_float()]
    unsigned = [pl.when(number == 0.0).then(0.0).otherwise(number).name.keep() for number in floats]
    return frame.select(names).with_columns(unsigned)


Missing: TypeAlias = Mapping[str, Sequence[str]]
"""Which texts of some columns mean a missing value."""


def held_rows(missing: Missing, frame: pl.DataFrame) -> pl.DataFrame:
    """A frame as it is held: nothing but null is missing."""
    columns = []
    for place, name in enumerate(frame.columns):
        column = stored(frame[name])
        texts = list(missing.get(name, ()))
        if column.dtype == pl.String and texts and isinstance(frame[name].dtype, pl.String):
            kept = pl.when(pl.col(name).is_in(texts)).then(None).otherwise(pl.col(name))
            column = column.to_frame().select(kept.alias(name)).to_series()
        elif column.dtype.is_float():
            column = column.fill_nan(None)
        columns.append(column.alias(held_name(place)))
    return pl.DataFrame(columns)


def held_name(place: int) -> str:
    """The name of a source column where it is held: names of records' columns may be any text."""
    return f"held{place}"


Work: TypeAlias = Callable[..., Any]
"""What executors do with the batches of a partition."""


def load(missing: Missing, names: Sequence[str], batches: Iterable[Any]) -> Iterator[Any]:
    """Rows of a DataFrame of Spark in the form in which they are held."""
    for frame in chunks(batches):
        yield from arrow(held_rows(missing, frame.select(names)))


def read(
    missing: Missing, names: Sequence[str], tasks: Sequence[tuple[str, int, int]], batches: Iterable[Any]
) -> Iterator[Any]:
    """Rows of Parquet files in the form in which they are held; a task is a file, its first row and how many. Batches
    have the numbers of tasks.
    """
    for batch in batches:
        for number in batch.column(0).to_pylist():
            file, begin, rows = tasks[number]
            scan = pl.scan_parquet(file, glob=False).select(names)
            for first in range(begin, begin + rows, CHUNK):
                count = min(CHUNK, begin + rows - first)
                yield from arrow(held_rows(missing, scan.slice(first, count).collect()))


def in_shared_folder(work: Work, mark: str, *given: Any) -> Any:
    """Work that gives rows which the executor then writes to the spill folder. Where that is not the driver's, they
    would stay for all to read: there is none without the file that the driver put into it.
    """
    if not os.path.exists(mark):  # noqa: PTH110 - may be an address of another kind
        raise RuntimeError(NOT_SHARED)
    return work(*given)


def one_after_other(first: Work, second: Work, batches: Iterable[Any]) -> Any:
    """What a second work makes of what the first gives, in the same process."""
    return second(first(batches))


@dataclass(frozen=True, slots=True)
class Survey:
    """Counts the different values of sets of columns, in one go. Columns are named as they are held; rows with a
    missing value of `known` are left out. Beside the sets there are all rows, the persons of those left out, who are
    told by the column `persons`, and what `raw` columns may tell apart.
    """

    sets: tuple[tuple[str, ...], ...]
    known: tuple[str, ...]
    persons: str | None
    raw: tuple[str, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Partial counts: (set, value of each column as a whole number, a number or a text, rows)."""
        parts = [part for frame in chunks(batches) for part in self._counted(frame)]
        if parts:
            parts.append(self._row(PARTITIONS, 1))
            keys = [name for name in parts[0].columns if name != ROWS]
            yield from arrow(pl.concat(parts).group_by(keys).agg(pl.col(ROWS).sum()))

    def _counted(self, frame: pl.DataFrame) -> list[pl.DataFrame]:
        kept = frame.drop_nulls(self.known) if self.known else frame
        parts = [self._row(ALL, len(frame)), self._row(KEPT, len(kept))]
        if len(kept) < len(frame):
            out = frame.filter(pl.any_horizontal(pl.col(self.known).is_null()))
            counts = None if self.persons is None else out[self.persons].cast(pl.Int64, strict=False).fill_null(0)
            parts.append(self._row(LEFT_OUT, len(out) if counts is None else int(counts.sum())))
        for place, name in enumerate(self.raw):
            values = kept[name].drop_nulls()
            parts.append(self._row(KNOWN - 2 * place, len(values)))
            parts.append(self._row(KNOWN - 2 * place - 1, values.n_unique()))
        for number, names in enumerate(self.sets):
            grouped = without_signs(kept, names).group_by(list(names)).agg(pl.len().cast(pl.Int64).alias(ROWS))
            parts.append(grouped.select(pl.lit(number, pl.Int32).alias(SET), *_keys(names, grouped.schema, self), ROWS))
        return parts

    @property
    def width(self) -> int:
        """The largest number of columns of a set."""
        return max((len(names) for names in self.sets), default=1)

    def _row(self, number: int, rows: int) -> pl.DataFrame:
        """What is told beside the sets."""
        kinds = {SET: pl.Int32, **{name: kind for name, _, kind in _forms(self.width)}, ROWS: pl.Int64}
        row: Any = pl.DataFrame([{SET: number, ROWS: rows}], schema=kinds)
        return row  # type: ignore[no-any-return]

    def schema(self) -> str:
        """The columns of the partial counts, as Spark says it."""
        words = {"whole": "bigint", "number": "double", "text": "string"}
        columns = [f"{form}{place} {words[form]}" for place in range(self.width) for form in words]
        return ", ".join([f"{SET} int", *columns, f"{ROWS} bigint"])


def _forms(width: int) -> list[tuple[str, int, Any]]:
    return [
        (f"{form}{place}", place, kind)
        for place in range(width)
        for form, kind in (("whole", pl.Int64), ("number", pl.Float64), ("text", pl.String))
    ]


def form_of(dtype: Any) -> str:
    """The form that a held value has in a survey."""
    return {pl.Int64: "whole", pl.Float64: "number"}.get(type(dtype), "text")


def _keys(names: Sequence[str], schema: Mapping[str, Any], survey: Survey) -> list[Any]:
    keys = []
    for name, place, kind in _forms(survey.width):
        held = names[place] if place < len(names) else None
        if held is None or f"{form_of(schema[held])}{place}" != name:
            keys.append(pl.lit(None, kind).alias(name))
        elif schema[held] == pl.Binary:
            keys.append(pl.col(held).bin.encode("hex").alias(name))
        else:
            keys.append(pl.col(held).cast(kind).alias(name))
    return keys


NODE, PART = "node", "part"
CONTENT, RAW = "content", "raw"
"""Columns of packs: nodes and codes of rows, and raw values of the same rows."""


def pack(frame: pl.DataFrame) -> bytes:
    """Rows as bytes."""
    content = BytesIO()
    frame.write_ipc(content, compression="uncompressed")
    return content.getvalue()


def unpack(content: bytes, names: Sequence[str] | None = None) -> pl.DataFrame:
    """Some columns of the rows of a pack."""
    _freeze()
    frame: pl.DataFrame = pl.read_ipc(BytesIO(content), columns=None if names is None else list(names))
    return frame if names is None else frame.select(names)


def unpacked(batches: Iterable[Any], names: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
    """The rows of packs, pack after pack."""
    for batch in batches:
        for content in batch.column(CONTENT):
            yield unpack(content.as_buffer(), names)


def packed(columns: Mapping[str, Sequence[Any]]) -> Any:
    """A batch of packs, and of whole numbers that stand beside them."""
    import pyarrow as pa

    kinds = {CONTENT: pa.binary(), RAW: pa.binary()}
    return pa.RecordBatch.from_pydict(
        {name: pa.array(values, kinds.get(name, pa.int64())) for name, values in columns.items()}
    )


def apart(frame: pl.DataFrame, by: str) -> Iterator[tuple[int, pl.DataFrame]]:
    """The rows of each number of a column, without that column."""
    for (number,), part in frame.partition_by(by, as_dict=True, include_key=False).items():
        yield int(number), part
