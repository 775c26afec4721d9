# SPDX-License-Identifier: Apache-2.0
"""A source as Parquet files, for engines that do not read it as a whole: rows pass through a few at a time. And the
columns of rows that do not fit in memory: of each, values that show what all of them are.

The columns get the types that they have when a source is read into memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from anonfit.errors import DataError, EngineError, refuse_fork
from anonfit.tables import reading
from anonfit.tables.databases import DatabaseSource
from anonfit.tables.frames import from_frame
from anonfit.tables.layout import UNPACKED
from anonfit.tables.reading import ReadOptions, files_of
from anonfit.tables.sources import format_of

HEAD = 1 << 20  # rows that show whether a column has many different values
MANY = 1 << 12  # different values that are many


class ScannedColumns:
    """The columns of a lazy frame. Of one with few different values all are given; of others, those of many rows, and a
    number that is not whole, if there is one.
    """

    def __init__(self, rows: pl.LazyFrame) -> None:
        self.rows = rows
        self.schema: Mapping[str, pl.DataType] = rows.collect_schema()
        self._known: dict[str, pl.Series] = {}

    def __getitem__(self, name: str, /) -> pl.Series:
        """The different values of a column, or many of them."""
        if name not in self._known:
            self._known[name] = self._values(name)
        return self._known[name]

    def _values(self, name: str) -> pl.Series:
        head = self.rows.select(name).head(HEAD).collect().to_series().unique()
        if len(head) <= MANY:
            return self.rows.select(pl.col(name).unique()).collect(engine="streaming").to_series()
        if not self.schema[name].is_float():
            return head
        parts = self.rows.select(name).filter(pl.col(name) % 1 != 0).head(1).collect().to_series()
        return head.append(parts)


RawColumns: TypeAlias = pl.DataFrame | ScannedColumns
"""Columns by their names: those of a frame, or of rows that are elsewhere. What holds of their values holds of all."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """Parquet files and the wanted columns in them; `cleaned` says that missing texts are missing already."""

    files: tuple[Path, ...]
    schema: Mapping[str, pl.DataType]
    cleaned: bool


def ingest(source: Any, options: ReadOptions, folder: Path) -> Ingested:
    """A source as Parquet files, written to a folder where it is none yet."""
    refuse_fork()
    try:
        ingested = _ingested(source, options, folder)
    except OSError as error:
        raise EngineError(
            f"the source could not be copied to the spill folder {folder.parent} ({error.strerror}): is the disk full?"
        ) from None
    except pl.exceptions.PolarsError as error:  # its text may hold values
        raise DataError(f"the source cannot be read: {type(error).__name__}; it may be damaged.") from None
    ingested = _without_codes(ingested, options, folder)
    for name, dtype in ingested.schema.items():
        if dtype in (pl.Int128, pl.UInt128):
            raise DataError(
                f"column '{name}' is of type {dtype}, which only the engine 'memory' reads; cast it to Int64."
            )
    return ingested


def _without_codes(ingested: Ingested, options: ReadOptions, folder: Path) -> Ingested:
    """The files with values that mean missing in single columns as missing."""
    changed = reading.without_codes(options, ingested.schema)
    if not changed:
        return ingested
    files = tuple(folder / f"coded-{number}.parquet" for number in range(len(ingested.files)))
    for path, file in zip(ingested.files, files, strict=True):
        rows = pl.scan_parquet(path, glob=False).select(list(ingested.schema))
        rows.with_columns(changed).sink_parquet(file)
        if path.parent == folder:
            path.unlink()
    return replace(ingested, files=files)


def _ingested(source: Any, options: ReadOptions, folder: Path) -> Ingested:
    if isinstance(source, DatabaseSource):
        return _from_database(source, options, folder)
    if not isinstance(source, str | Path):
        frame = from_frame(source)
        return _stored(frame.select(options.wanted(frame.columns)), folder, cleaned=False)
    paths = files_of(source)
    if format_of(paths[0]).is_text:
        return _from_text(source, paths, options, folder)
    try:
        scans = [reading.scan_of_types(path, options) for path in paths]
        schemas = [scan.collect_schema() for scan in scans]
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{paths[0].name} cannot be read as a table: {type(error).__name__}.") from None
    wanted = options.wanted(schemas[0].names())
    chosen = [[(name, dtype) for name, dtype in types.items() if name in wanted] for types in schemas]
    if any(types != chosen[0] for types in chosen):
        return _in_memory(source, options, folder)
    if all(format_of(path).name == "parquet" for path in paths) and not _may_be_confused(schemas):
        return Ingested(tuple(paths), {name: schemas[0][name] for name in wanted}, cleaned=False)
    files = [folder / f"source-{number}.parquet" for number in range(len(scans))]
    for scan, file in zip(scans, files, strict=True):
        scan.select(wanted).sink_parquet(file)
    return Ingested(tuple(files), {name: schemas[0][name] for name in wanted}, cleaned=False)


def _may_be_confused(schemas: Sequence[Mapping[str, pl.DataType]]) -> bool:
    """Whether columns of several files could be taken for others where case does not count: their order differs."""
    names = [list(schema) for schema in schemas]
    every = {name for own in names for name in own}
    return any(own != names[0] for own in names) and len({name.lower() for name in every}) < len(every)


def scan_of(
    ingested: Ingested, *, missing_texts: Mapping[str, Sequence[str]], without_missing: Sequence[str]
) -> pl.LazyFrame:
    """The rows of files as they are when a source is read into memory: in columns of `missing_texts` some texts mean a
    missing value, and rows without a value of a column of `without_missing` are left out.
    """
    rows = pl.concat([pl.scan_parquet(path, glob=False).select(list(ingested.schema)) for path in ingested.files])
    floats = [name for name, dtype in ingested.schema.items() if dtype.is_float()]
    clean = [pl.col(name).fill_nan(None) for name in floats]
    for name, texts in missing_texts.items():
        if texts and isinstance(ingested.schema[name], pl.String | pl.Categorical | pl.Enum):
            column = pl.col(name)
            clean.append(pl.when(~column.cast(pl.String).is_in(list(texts))).then(column).alias(name))
    rows = rows.with_columns(clean) if clean else rows
    return rows.drop_nulls(list(without_missing)) if without_missing else rows


def _from_database(source: DatabaseSource, options: ReadOptions, folder: Path) -> Ingested:
    """The rows of a database, many batches a file: every scan opens each file, and finds what is in it."""
    schema = source.schema()
    wanted = {name: schema[name] for name in options.wanted(schema)}
    files: list[Path] = []
    held: list[pl.DataFrame] = []

    def write() -> None:
        files.append(folder / f"source-{len(files)}.parquet")
        pl.concat(held).write_parquet(files[-1])
        held.clear()

    for frame in source.frames(options.columns):
        held.append(frame)
        if sum(map(len, held)) >= HEAD:
            write()
    if held or not files:
        write()
    return Ingested(tuple(files), wanted, cleaned=False)


def _in_memory(source: Any, options: ReadOptions, folder: Path) -> Ingested:
    """What must be seen as a whole to be understood: files of different types, or with uneven lines."""
    return _stored(reading.read_table(source, options), folder, cleaned=True)


def _stored(frame: pl.DataFrame, folder: Path, *, cleaned: bool) -> Ingested:
    path = folder / "source.parquet"
    try:
        frame.write_parquet(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise DataError(f"the table has columns that cannot be stored ({type(error).__name__}).") from None
    return Ingested((path,), dict(frame.schema), cleaned)


def _from_text(source: Any, paths: Sequence[Path], options: ReadOptions, folder: Path) -> Ingested:
    """Text files, each read once if it is what its samples show."""
    files = [folder / f"source-{number}.parquet" for number in range(len(paths))]
    schemas = [_text_schema(path, options, file) for path, file in zip(paths, files, strict=True)]
    if any(schema != schemas[0] for schema in schemas):
        return _in_memory(source, options, folder)
    return Ingested(tuple(files), schemas[0], cleaned=True)


def _text_schema(path: Path, options: ReadOptions, file: Path) -> dict[str, pl.DataType]:
    """Write a text file's rows to a Parquet file; the types of its columns."""
    if path.suffix in UNPACKED:
        reading.refuse_too_large(path)  # it is unpacked in memory
    files = {"rows": file, "texts": file.with_suffix(".texts.parquet"), "mended": file.with_suffix(".mended.csv")}

    def keep(rows: pl.LazyFrame, what: str) -> pl.LazyFrame:
        rows.sink_parquet(files[what])
        return pl.scan_parquet(files[what], glob=False)

    def copy(pieces: Iterable[bytes]) -> Path:
        with files["mended"].open("xb") as opened:
            opened.writelines(pieces)
        return files["mended"]

    rows = reading.text_rows(path, options, dict.fromkeys(options.texts, pl.String()), keep=keep, copy=copy)
    for what in ("texts", "mended"):
        files[what].unlink(missing_ok=True)
    return dict(rows.collect_schema())
