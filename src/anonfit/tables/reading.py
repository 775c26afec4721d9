# SPDX-License-Identifier: Apache-2.0
"""Reading a table from a file or frame into polars, with texts kept as they are and declared missing texts as
missing.
"""

from __future__ import annotations

import glob
import os
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from anonfit.errors import DataError, refuse_fork, refuse_patterns
from anonfit.runtime.process import available_memory
from anonfit.runtime.strict_json import refuse_endless
from anonfit.tables.databases import DatabaseSource
from anonfit.tables.frames import categorized, from_frame, is_spark, spark_names
from anonfit.tables.layout import (
    BLANKS,
    FileLayout,
    count_delimiters,
    count_led_by_zero,
    has_stray_signs,
    unpacked_size,
)
from anonfit.tables.mending import line_of, mended, plain
from anonfit.tables.number_signs import is_faithful, may_be_grouped
from anonfit.tables.sniffing import CsvShape, sniff
from anonfit.tables.sources import format_of


@dataclass(frozen=True, slots=True)
class ReadOptions(FileLayout):
    """How to read: what counts as missing, what a file looks like, which columns are wanted or are texts."""

    missing: tuple[str, ...] = ("",)
    missing_in: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Texts and numbers that mean missing in single columns, beside those that do in all."""
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


TYPES = {"whole": pl.Int64(), "number": pl.Float64(), "date": pl.Date(), "text": pl.String()}


def csv_shape(path: Path, options: ReadOptions) -> CsvShape:
    """What a text file looks like."""
    known = {name: (*options.missing, *texts) for name, texts in options.missing_in.items()}
    shape = sniff(path, options, missing={**known, "": options.missing})
    refuse_patterns(shape.names)
    return shape


def _csv_scan(
    source: Path | bytes, shape: CsvShape, options: ReadOptions, schema: Mapping[str, pl.DataType]
) -> pl.LazyFrame:
    """The rows of a plain text file, with columns of these types."""
    return pl.scan_csv(
        source,
        separator=shape.delimiter,
        has_header=False,
        skip_lines=shape.skipped,
        schema=dict(schema),
        null_values=sorted({"", *options.missing}),
        decimal_comma=shape.decimal_comma,
        quote_char=shape.dialect.quote or None,
        glob=False,
    )


def _needs_mending(path: Path, shape: CsvShape) -> bool:
    """Whether a plain reader would misread a text file."""
    try:
        if not shape.is_plain or path.suffix == ".zst" or not shape.dialect.quote:
            return not shape.is_plain
        return has_stray_signs(path, shape.delimiter, shape.skipped)
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{path.name} cannot be read: it is cut short, or not what its ending says.") from None


Keep: TypeAlias = Callable[[pl.LazyFrame, str], pl.LazyFrame]
"""Puts rows (`texts` that are not typed yet, or typed `rows`) in memory or in a file, and gives them from there."""


def text_rows(
    path: Path,
    options: ReadOptions,
    types: Mapping[str, pl.DataType],
    *,
    keep: Keep,
    copy: Callable[[Iterable[bytes]], Path | bytes],
) -> pl.LazyFrame:
    """The rows of a text file, kept somewhere, in columns that are texts of these `types` or what their values are. A
    file that a plain reader would misread is copied first, its lines mended.
    """
    shape = csv_shape(path, options)
    try:
        if not _needs_mending(path, shape):
            try:
                rows = _plain_rows(path, shape, options, types, keep)
            except (pl.exceptions.PolarsError, OSError):
                rows = None  # who mends it tells what is wrong, and where
            if rows is not None and _looks_even(path, shape, rows):
                return rows
        return _plain_rows(copy(mended(path, shape, options)), plain(shape), options, types, keep)
    except TwoReadings as error:
        column, record = error.args
        line = line_of(path, shape, options, record)
        raise DataError(
            f"{path.name}: column '{column}': its numbers may have decimals or parted thousands (as in line "
            f'{line}); write decimal = "." or decimal = "," in [data].'
        ) from None


def _plain_rows(
    source: Path | bytes, shape: CsvShape, options: ReadOptions, types: Mapping[str, pl.DataType], keep: Keep
) -> pl.LazyFrame:
    """The rows of a plain file. They can be read as what they are, not as texts first, unless texts that are no numbers
    mean missing in single columns, which could be columns of numbers.
    """
    wanted = options.wanted(shape.names)
    codes = (text for texts in options.missing_in.values() for text in texts)
    if not shape.by_texts and all(map(_is_float, codes)):
        # If a value deeper in the file is not of the type its column begins with, see what each text is.
        with suppress(pl.exceptions.PolarsError, OSError):
            known = {name: types.get(name, TYPES[kind]) for name, kind in zip(shape.names, shape.types, strict=True)}
            rows = keep(_csv_scan(source, shape, options, known).select(wanted), "rows")
            if _says_what_is_written(source, shape, rows):
                return rows
    scan = _csv_scan(source, shape, options, dict.fromkeys(shape.names, pl.String()))
    texts = keep(scan.select(_unpadded(options, wanted)), "texts")
    return keep(texts.select(_value_types(texts, shape, options, wanted)), "rows")


def _says_what_is_written(source: Path | bytes, shape: CsvShape, rows: pl.LazyFrame) -> bool:
    """Whether columns of numbers hold nothing that only a text holds: no number led by a zero, and no nan."""
    schema = rows.collect_schema()
    numbers = [name for name, dtype in schema.items() if dtype.is_numeric()]
    floats = [name for name in numbers if schema[name].is_float()]
    if floats and not rows.select(pl.all_horizontal(pl.col(floats).is_finite().all())).collect().item():
        return False
    if not numbers or (isinstance(source, Path) and source.suffix == ".zst"):
        return True
    led = count_led_by_zero(source, shape.delimiter, shape.skipped)
    if led == 0:
        return True
    texts = [name for name, dtype in schema.items() if isinstance(dtype, pl.String | pl.Categorical | pl.Enum)]
    led_texts = (
        pl.sum_horizontal(pl.col(texts).cast(pl.String).str.contains(r"^[-+]?0\d").sum()) if texts else pl.lit(0)
    )
    return len(schema) == len(shape.names) and led == rows.select(led_texts).collect().item()


def _looks_even(path: Path, shape: CsvShape, rows: pl.LazyFrame) -> bool:
    """Whether all lines have equally many fields, and none is the header again. A line that is empty or too short
    leaves its last field missing.
    """
    last = shape.names[-1]
    if shape.header_line is not None and _repeats_names(rows):
        return False
    if len(shape.names) < 2:
        return True
    if last in rows.collect_schema() and not rows.select(pl.col(last).null_count()).collect().item():
        return True
    records = int(rows.select(pl.len()).collect().item())
    if records == 0 or path.suffix == ".zst":
        return True
    return count_delimiters(path, shape.delimiter, shape.skipped) == records * (len(shape.names) - 1)


def _repeats_names(rows: pl.LazyFrame) -> bool:
    """Whether a row has in all columns of texts the names of these."""
    texts = [name for name, dtype in rows.collect_schema().items() if isinstance(dtype, pl.String | pl.Categorical)]
    for some in (texts[:1], texts) if texts else ():
        same = pl.all_horizontal([pl.col(name).cast(pl.String) == name for name in some])
        if not rows.select(same.any()).collect().item():
            return False
    return bool(texts)


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _unpadded(options: ReadOptions, names: Iterable[str]) -> Iterator[pl.Expr]:
    """Texts without the blanks around them, and missing texts as missing."""
    for name in names:
        stripped = pl.col(name).str.strip_chars(BLANKS)
        missing = sorted({"", *options.missing, *options.missing_in.get(name, ())})
        yield pl.when(~stripped.is_in(missing)).then(stripped).alias(name)


def _value_types(rows: pl.LazyFrame, shape: CsvShape, options: ReadOptions, wanted: Sequence[str]) -> list[pl.Expr]:
    """For each column of texts the numbers or dates that all of them are; else the texts."""
    kinds = {name: (kind, signs) for name, kind, signs in zip(shape.names, shape.types, shape.signs, strict=True)}
    # What texts of each column may be, the narrowest type first; missing where they are not.
    tries: dict[str, list[pl.Expr]] = {name: [] for name in wanted}
    for name in wanted:
        kind, signs = kinds[name]
        if kind == "date" and name not in options.texts:
            tries[name] = [pl.col(name).str.to_date("%Y-%m-%d", strict=False)]
        elif kind != "text" and name not in options.texts:
            numbers = signs.expression(pl.col(name))
            tries[name] = [numbers.cast(dtype, strict=False) for dtype in (pl.Int64, pl.Float64)]
    failing = [
        (attempt.is_null() & pl.col(name).is_not_null()).any().alias(f"{place}-{number}")
        for place, name in enumerate(wanted)
        for number, attempt in enumerate(tries[name])
    ]
    failed = rows.select(failing).collect().to_dicts()[0] if failing else {}
    chosen = []
    for place, name in enumerate(wanted):
        fitting = [number for number in range(len(tries[name])) if not failed[f"{place}-{number}"]]
        if fitting and kinds[name][0] != "date" and not is_faithful(rows, name, kinds[name][1]):
            fitting = []
        if fitting[:1] == [1] and kinds[name][0] == "whole":
            texts = rows.select(name).collect().to_series()
            if may_be_grouped(texts):
                raise TwoReadings(name, int(texts.str.contains(r"[.,]").fill_null(value=False).arg_max() or 0))
        chosen.append((tries[name][fitting[0]] if fitting else pl.col(name)).alias(name))
    return chosen


class TwoReadings(Exception):
    """Numbers of a column that began as whole ones go on with decimals or with parted thousands, and nobody can tell
    which: the column, and the first such record.
    """


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
    try:
        if kind.is_text:
            scan = text_rows(
                path,
                options,
                categories,
                keep=lambda rows, _: rows.collect().lazy(),
                copy=lambda pieces: b"".join(pieces),
            )
        else:
            scan = scan_of_types(path, options)
            scan = scan.select(options.wanted(scan.collect_schema().names()))
        frame: pl.DataFrame = scan.collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        what = "a table" if kind.is_text else kind.name
        raise DataError(f"{path.name} cannot be read as {what}: {type(error).__name__}.") from None
    return frame


def scan_of_types(path: Path, options: ReadOptions) -> pl.LazyFrame:
    """The rows of a file that has types."""
    scan = format_of(path).scan
    assert scan is not None
    rows = scan(path, options)
    refuse_patterns(rows.collect_schema())
    return rows


def notices_of(source: Any, options: ReadOptions) -> list[str]:
    """What was guessed or left out when text files were read, in a sentence each."""
    if not isinstance(source, str | Path):
        return []
    texts = [path for path in files_of(source) if format_of(path).is_text]
    return [f"{path.name}: {notice}" for path in texts for notice in csv_shape(path, options).notices]


def found_layout(source: Any, options: ReadOptions) -> dict[str, Any]:
    """What was guessed of a text file and should be written down: another encoding, and names below other lines."""
    if not isinstance(source, str | Path) or not format_of(path := files_of(source)[0]).is_text:
        return {}
    shape = csv_shape(path, options)
    if not shape.notices:
        return {}
    line = shape.header_line or 1
    above = {"header_row": line} if any(f"line {line}" in notice for notice in shape.notices) and line > 1 else {}
    return {**({"encoding": shape.encoding} if shape.encoding != "utf-8" else {}), **above}


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
        return tuple(scan_of_types(path, options).collect_schema().names())
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path.name} cannot be read as {kind.name}: {type(error).__name__}.") from None


def without_codes(options: ReadOptions, schema: Mapping[str, pl.DataType]) -> list[pl.Expr]:
    """Columns of which single values mean missing, with these as missing; numbers are compared as such."""
    expressions = []
    for name in (name for name in options.missing_in if name in schema):
        texts, column = options.missing_in[name], pl.col(name)
        if schema[name].is_numeric():
            is_code = column.cast(pl.Float64).is_in([float(text) for text in texts if _is_float(text)])
        else:
            is_code = column.cast(pl.String).is_in(list(texts))
        expressions.append(pl.when(~is_code).then(column).alias(name))
    return expressions


def _missing_texts(frame: pl.DataFrame, missing: Collection[str], names: Iterable[str]) -> pl.DataFrame:
    """Declared missing texts of some columns as missing values."""
    changed = []
    for column in (frame[name] for name in names):
        # Comparing is much faster than looking up.
        is_clean = column.dtype == pl.String and not any((column == text).any() for text in missing)
        if is_clean or not isinstance(column.dtype, (pl.String, pl.Categorical, pl.Enum)):
            continue
        distinct, places = categorized(column)
        if (is_missing := distinct.is_in(sorted(missing))).any():
            known = pl.concat([distinct.set(is_missing, None), pl.Series([None], dtype=pl.String)])
            changed.append(known.gather(places).alias(column.name))
    return frame.with_columns(changed)


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
            return frame.with_columns(without_codes(options, frame.schema))
    elif isinstance(source, DatabaseSource):
        frame = pl.concat(source.frames(options.columns))
    else:
        frame = from_frame(source)
        if options.columns is not None:
            frame = frame.select(options.wanted(frame.columns))
    if options.missing:
        frame = _missing_texts(frame, options.missing, [name for name in frame.columns if name in options.clean])
    return frame.with_columns(without_codes(options, frame.schema))


def _stack(frames: Sequence[pl.DataFrame], files: Sequence[Path]) -> pl.DataFrame:
    """The rows of several files as one table. A column without values in a file has the type of the others."""
    for frame, path in zip(frames, files, strict=True):
        if frame.columns != frames[0].columns:
            raise DataError(
                f"{path.name} has other columns than {files[0].name}; all files of a pattern need the same."
            )
    even = list(frames)
    for name, first_type in frames[0].schema.items():
        is_empty = [frame[name].null_count() == len(frame) for frame in frames]
        types = [frame.schema[name] for frame, empty in zip(frames, is_empty, strict=True) if not empty]
        if len(set(types)) > 1 and not all(dtype.is_numeric() for dtype in types):
            raise DataError(
                f"column '{name}' is of other types in other files of the pattern; declare its type, or mend them."
            )
        nothing = pl.lit(None, dtype=types[0] if types else first_type).alias(name)
        even = [frame.with_columns(nothing) if empty else frame for frame, empty in zip(even, is_empty, strict=True)]
    return pl.concat(even, how="vertical_relaxed", rechunk=True)
