# SPDX-License-Identifier: Apache-2.0
"""Reading a table from a file or frame into polars, with texts kept as they are and declared missing texts as
missing.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from anonfit.errors import DataError, listed, refuse_fork, refuse_patterns
from anonfit.runtime.strict_json import refuse_endless
from anonfit.runtime.threads import available_memory
from anonfit.tables.databases import DatabaseSource
from anonfit.tables.formats import format_of
from anonfit.tables.frames import categorized, from_frame, is_spark, spark_names
from anonfit.tables.sniffing import CsvShape, sniff, uneven_line, unpacked_size, without_empty_lines


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read: what counts as missing, what a text file looks like, which columns are wanted or are texts."""

    missing: tuple[str, ...] = ("",)
    delimiter: str | None = None
    header: bool | None = None
    columns: tuple[str, ...] | None = None
    texts: frozenset[str] = field(default_factory=frozenset)
    clean: frozenset[str] = field(default_factory=frozenset)
    """Columns of frames and of files with types in which missing texts are looked for."""
    raw: frozenset[str] = field(default_factory=frozenset)
    """Columns that are released as they are read; of text files, texts in them are not held as categories."""

    def wanted(self, names: Iterable[str]) -> list[str]:
        """Those of a table's columns that are wanted, in its order; there may be very many."""
        columns = None if self.columns is None else frozenset(self.columns)
        return [name for name in names if columns is None or name in columns]


def files_of(source: str | Path) -> list[Path]:
    """The files of a path or pattern."""
    text = str(source)
    if any(sign in text for sign in "*?[") and not os.path.exists(text):  # noqa: PTH110 - any text is asked for
        paths = sorted(Path(name) for name in glob.glob(text))  # noqa: PTH207 - absolute patterns too
        if not paths:
            raise DataError(f"{text}: no file matches this pattern.")
        return [_checked(path) for path in paths]
    return [_checked(Path(text))]


def _checked(path: Path) -> Path:
    """A path if a file is there that can be read."""
    if not os.path.exists(path):  # noqa: PTH110 - of a name too long, too
        raise DataError(f"{path}: there is no such file.")
    if path.is_dir():
        raise DataError(f"{path} is a folder; name the file or a pattern such as {path}/*.parquet.")
    refuse_endless(path)
    if str(path) != str(path).encode("utf-8", "replace").decode():
        raise DataError(f"{path}: the name is not UTF-8; rename the file or its folder.")
    return path


def csv_types(shape: CsvShape, categories: Mapping[str, pl.DataType]) -> dict[str, pl.DataType]:
    """The type each column is read as: what the samples show, or texts that are sorted out later."""
    types = {"whole": pl.Int64(), "number": pl.Float64(), "date": pl.Date(), "text": pl.String()}
    return {
        name: pl.String() if shape.padded else categories.get(name, types[kind])
        for name, kind in zip(shape.names, shape.types, strict=True)
    }


def csv_shape(path: Path, options: ReadOptions) -> CsvShape:
    """What a text file looks like."""
    shape = sniff(path, delimiter=options.delimiter, has_header=options.header, missing=options.missing)
    if len(set(shape.names)) < len(shape.names):
        twice = sorted(name for name, times in Counter(shape.names).items() if times > 1)
        raise DataError(f"{path.name}: column names stand twice: {listed(twice)}; rename them.")
    refuse_patterns(shape.names)
    return shape


def csv_scan(
    source: Path | bytes, shape: CsvShape, options: ReadOptions, schema: Mapping[str, pl.DataType], skipped: int
) -> pl.LazyFrame:
    """The rows of a text file, with columns of these types."""
    return pl.scan_csv(
        source,
        separator=shape.delimiter,
        has_header=False,
        skip_lines=skipped,
        schema=dict(schema),
        null_values=sorted({"", *options.missing}),
        decimal_comma=shape.decimal_comma,
        glob=False,
    )


def _read_csv(path: Path, options: ReadOptions, categories: Mapping[str, pl.DataType]) -> pl.DataFrame:
    shape = csv_shape(path, options)
    wanted = options.wanted(shape.names)

    def read(source: Path | bytes, schema: Mapping[str, pl.DataType], skipped: int) -> pl.DataFrame:
        frame: pl.DataFrame = csv_scan(source, shape, options, schema, skipped).select(wanted).collect()
        return frame

    def read_typed(source: Path | bytes, skipped: int) -> pl.DataFrame:
        try:
            frame = read(source, csv_types(shape, categories), skipped)
            return _unpad(frame, shape, options) if shape.padded else frame
        except (pl.exceptions.PolarsError, OSError):
            pass
        # A value deeper in the file was not of the type its column begins with: read texts, then see what each is.
        try:
            frame = read(source, {name: pl.String() for name in shape.names}, skipped)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise DataError(f"{path.name} cannot be read as a table: {kind_of_error(error, path, shape)}") from None
        return _unpad(frame, shape, options)

    frame = read_typed(path, shape.skipped)
    # An empty line, or one that is too short, leaves its last field missing.
    last = shape.names[-1]
    may_be_uneven = len(frame) > 0 and (last not in frame.columns or frame[last].null_count() > 0)
    if len(shape.names) > 1 and may_be_uneven:
        content = without_empty_lines(path, shape, len(frame))
        if content is not None:
            frame = read_typed(content, 0)
    return frame


def kind_of_error(error: Exception, path: Path, shape: CsvShape) -> str:
    """The kind of a reader's error without the values it may quote."""
    text = str(error).lower()
    if isinstance(error, OSError):
        return "it is cut short, or not what its ending says."
    return "it is not UTF-8 text; convert it first." if "utf" in text else uneven_line(path, shape)


def unpadded(missing: Sequence[str]) -> pl.Expr:
    """All texts without the blanks around them, and missing texts as missing."""
    stripped = pl.all().str.strip_chars(" ")
    return pl.when(stripped.is_in(missing)).then(None).otherwise(stripped).name.keep()


def _unpad(frame: pl.DataFrame, shape: CsvShape, options: ReadOptions) -> pl.DataFrame:
    """Texts without the blanks around them, missing texts as missing, and numbers where every text is one."""
    cleaned = frame.select(unpadded(sorted({"", *options.missing})))
    kinds = dict(zip(shape.names, shape.types, strict=True))
    return pl.DataFrame(
        [
            column
            if column.name in options.texts or kinds[column.name] == "text"
            else _as_values(column, kinds[column.name], shape.decimal_comma)
            for column in cleaned
        ]
    )


def _as_values(texts: pl.Series, kind: str, decimal_comma: bool) -> pl.Series:
    """A column of texts as the numbers or dates that all of them are; else as it is."""
    for attempt in value_tries(pl.lit(texts), kind, decimal_comma):
        typed = pl.select(attempt).to_series()
        if typed.null_count() == texts.null_count():
            return typed.alias(texts.name)
    return texts


def value_tries(texts: pl.Expr, kind: str, decimal_comma: bool) -> list[pl.Expr]:
    """What texts of a kind may be, the narrowest type first; missing where they are not."""
    if kind == "date":
        return [texts.str.to_date("%Y-%m-%d", strict=False)]
    numbers = texts.str.replace(",", ".", literal=True) if decimal_comma else texts
    return [numbers.cast(pl.Int64, strict=False), numbers.cast(pl.Float64, strict=False)]


def refuse_too_large(path: Path) -> None:
    """Refuse a file that cannot fit in memory, packed or not: what then happens is no error that can be told."""
    free = available_memory()
    if unpacked_size(path, free) > free:
        raise DataError(
            f"{path.name} is larger than the memory that is free ({free / 2**30:.2f} GiB); give more, or take the "
            "engine duckdb and a file that is not packed."
        )


def _read_file(path: Path, options: ReadOptions, categories: Mapping[str, pl.DataType]) -> pl.DataFrame:
    kind = format_of(path)
    refuse_too_large(path)
    if kind.is_text:
        return _read_csv(path, options, categories)
    try:
        scan = scan_of_types(path)
        frame: pl.DataFrame = scan.select(options.wanted(scan.collect_schema().names())).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path.name} cannot be read as {kind.name}: {type(error).__name__}.") from None
    return frame


def scan_of_types(path: Path) -> pl.LazyFrame:
    """The rows of a file that has types."""
    scan = format_of(path).scan
    assert scan is not None
    rows = scan(path)
    refuse_patterns(rows.collect_schema())
    return rows


def column_names(source: Any, options: ReadOptions) -> tuple[str, ...]:
    """The names of a source's columns, without reading its rows where it is a file."""
    if isinstance(source, DatabaseSource):
        return source.names()
    if is_spark(source):
        return spark_names(source)
    if not isinstance(source, str | Path):
        return tuple(str(name) for name in from_frame(source).columns)
    path = files_of(source)[0]
    kind = format_of(path)
    if kind.is_text:
        return csv_shape(path, options).names
    try:
        return tuple(scan_of_types(path).collect_schema().names())
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path.name} cannot be read as {kind.name}: {type(error).__name__}.") from None


def _missing_texts(frame: pl.DataFrame, missing: Collection[str], names: Collection[str]) -> pl.DataFrame:
    """Declared missing texts of some columns as missing values."""
    changed = []
    for name in names:
        column = frame[name]
        if missing and isinstance(column.dtype, (pl.String, pl.Categorical, pl.Enum)):
            # Comparing is much faster than looking up.
            if column.dtype == pl.String and not any((column == text).any() for text in missing):
                continue
            distinct, places = categorized(column)
            if distinct.is_in(sorted(missing)).any():
                known = distinct.set(distinct.is_in(sorted(missing)), None)
                column = pl.concat([known, pl.Series([None], dtype=pl.String)]).gather(places).alias(name)
                changed.append(column)
    return frame.with_columns(changed) if changed else frame


def read_table(source: Any, options: ReadOptions) -> pl.DataFrame:
    """The table of a file, a pattern of files, a database or a frame, as polars."""
    refuse_fork()
    if isinstance(source, str | Path):
        # Files of one table share their categories, so that they can be stacked.
        categories: dict[str, pl.DataType] = {
            name: pl.String() if name in options.raw else pl.Categorical(pl.Categories.random())
            for name in options.texts
        }
        paths = files_of(source)
        frames = [_read_file(path, options, categories) for path in paths]
        frame = frames[0] if len(frames) == 1 else _stack(frames, paths)
        if format_of(paths[0]).is_text:
            return frame
    elif isinstance(source, DatabaseSource):
        frame = pl.concat(source.frames(options.columns))
    else:
        frame = from_frame(source)
        if options.columns is not None:
            frame = frame.select(options.wanted(frame.columns))
    return _missing_texts(frame, options.missing, [name for name in frame.columns if name in options.clean])


def _stack(frames: Sequence[pl.DataFrame], files: Sequence[Path]) -> pl.DataFrame:
    for frame, path in zip(frames, files, strict=True):
        if frame.columns != frames[0].columns:
            raise DataError(
                f"{path.name} has other columns than {files[0].name}; all files of a pattern need the same."
            )
    columns = []
    for name in frames[0].columns:
        parts = [frame[name] for frame in frames]
        types = {part.dtype for part in parts if part.null_count() < len(part)}
        if len(types) > 1 and not all(dtype.is_numeric() for dtype in types):
            raise DataError(
                f"column '{name}' is of other types in other files of the pattern; declare its type, or mend them."
            )
        dtype = next(iter(types), parts[0].dtype)
        frames_of = [
            (part if part.null_count() < len(part) else pl.Series(name, [None] * len(part), dtype=dtype)).to_frame()
            for part in parts
        ]
        columns.append(pl.concat(frames_of, how="vertical_relaxed", rechunk=True))
    return pl.concat(columns, how="horizontal")
