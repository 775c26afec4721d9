# SPDX-License-Identifier: Apache-2.0
"""Reads any table for the audit: a file or a frame becomes an `AuditedTable` whose missing values are all null. The
audit reads for itself, so that a fault of the package's own reader cannot hide a fault of its writer."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import polars as pl
from polars.exceptions import PolarsError
from polars.selectors import by_name

from anonfit.auditing.coding import as_pointers, few_texts
from anonfit.auditing.file_bytes import ReadForm, unquoted
from anonfit.auditing.formats import DELIMITERS, PACKED, endings, foreign_rows, format_of
from anonfit.auditing.source_files import FOREIGN, WORKBOOKS, read_text, read_workbook, without_codes
from anonfit.errors import DataError, did_you_mean, refuse_patterns

_CELLS = {"text": 160_000_000, "typed": 20_000_000}  # held in memory together; larger tables are read in parts
_BYTES_PER_CELL = 12  # of a text file, about
_ROWS_PER_TEXT = 8  # at least, for a column of few different texts

TextScan: TypeAlias = Callable[[Iterable[str]], pl.LazyFrame]


@dataclass(frozen=True, slots=True)
class AuditedTable:
    """A table to be read column by column; text that means missing, NaN and null come out as null."""

    lazy: pl.LazyFrame
    schema: Mapping[str, pl.DataType]  # of the columns as they come out
    label: str  # how messages call it
    width: int  # columns to read at once
    missing: tuple[str, ...]
    kind: Literal["text", "typed", "clean"]  # a text file; a typed file or frame; a frame already as it comes out
    scan: TextScan | None = None  # a text file anew, some columns as dictionaries
    keys: frozenset[str] | None = None  # of a typed table, the columns in which `missing` means missing; None: all
    rest: tuple[str, ...] = ()  # and what means missing in the others
    whole_lines: bool = False  # a text file whose lines are read to their ends, whichever columns are wanted

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in file order."""
        return tuple(self.schema)

    @property
    def is_text(self) -> bool:
        """Whether it is a text file, in which nothing tells a number from a text of digits."""
        return self.scan is not None

    def frame(self, names: Sequence[str]) -> pl.DataFrame:
        """Some columns, all rows."""
        frame = _collected(self.lazy.select(names), self.label, whole_lines=self.whole_lines)
        if self.kind != "typed":
            return frame
        missing = [self.missing if self.keys is None or name in self.keys else self.rest for name in names]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return frame.with_columns(pool.map(_clean, frame.get_columns(), missing))

    def columns(self, names: Sequence[str]) -> Iterator[list[pl.Series]]:
        """Some columns, as many at a time as fit."""
        for begin in range(0, len(names), self.width):
            yield self.frame(names[begin : begin + self.width]).get_columns()

    def height(self) -> int:
        """The number of rows."""
        return int(_collected(self.lazy.select(pl.len()), self.label).item())

    def only(self, names: Iterable[str]) -> AuditedTable:
        """The same table with some of its columns; names it does not have are left out."""
        wanted = [name for name in dict.fromkeys(names) if name in self.schema]
        schema = {name: self.schema[name] for name in wanted}
        return replace(self, lazy=self.lazy.select(wanted), schema=schema, whole_lines=False)

    def loaded(self, keys: Iterable[str]) -> AuditedTable:
        """The same table in memory, if it fits; the key columns of a text file as integers that point to texts."""
        table = self
        if self.scan is not None:
            texts = [name for name in keys if name in self.schema]
            lazy = self.scan(texts).select(self.names)
            table = replace(self, lazy=lazy, schema={**self.schema, **dict.fromkeys(texts, pl.Categorical())})
        if table.width < len(table.schema):
            return table
        return replace(table, lazy=table.frame(table.names).lazy(), kind="clean")

    def shortened(self) -> AuditedTable:
        """The same table, if it is in memory, with texts as pointers to the different ones, where these are few."""
        if self.kind != "clean":
            return self

        def short(series: pl.Series) -> pl.Series:
            texts = few_texts(series, len(series) // _ROWS_PER_TEXT) if series.dtype == pl.String else None
            return series if texts is None else as_pointers(texts, series.name)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            columns = list(pool.map(short, self.frame(self.names).get_columns()))
        return replace(self, lazy=pl.DataFrame(columns).lazy())


@dataclass(frozen=True, slots=True)
class ReleasedText:
    """The text file of a release, whose layout is stated and not found."""

    path: Path
    texts: tuple[str, ...]  # the columns that hold texts: the others may have decimal commas
    form: ReadForm

    def scanned(self, missing: Sequence[str]) -> tuple[pl.LazyFrame, int, TextScan, str]:
        """Its lines as a lazy frame, the number of cells, how to scan it with dictionaries, and its name."""
        label = f"the file '{self.path.name}'"
        if not self.path.is_file():
            raise DataError(f"{_begin(label)} does not exist or is not a file.")

        def scan(texts: Iterable[str]) -> pl.LazyFrame:
            lines = _lines([self.path], self.form.delimiter, missing)
            if self.form.decimal != ".":
                numbers = [by_name(name).as_expr() for name in _schema(lines, label) if name not in self.texts]
                lines = lines.with_columns(number.str.replace(",", ".", literal=True) for number in numbers)
            return lines.cast(dict.fromkeys(texts, pl.Categorical()))

        return scan(()), self.path.stat().st_size // _BYTES_PER_CELL, scan, label


def _lines(paths: list[Path], delimiter: str, missing: Sequence[str], types: Any = None) -> pl.LazyFrame:
    """The lines of text files, with fields of these types, or texts."""
    return pl.scan_csv(
        paths,
        separator=delimiter,
        infer_schema=False,
        schema_overrides=types,
        null_values=list(missing),
        glob=False,
        with_column_names=unquoted,
    )


def released_file(path: Path, texts: Iterable[str], form: ReadForm) -> Path | ReleasedText:
    """The data file of a release as it is read: one that is laid out as usual is found to be so."""
    is_plain = form == ReadForm() or not is_text_file(path)
    return path if is_plain else ReleasedText(path, tuple(texts), form)


def require_columns(table: AuditedTable, names: Iterable[str], *, purpose: str) -> None:
    """Raise if the table lacks a column, naming the nearest one it has."""
    for name in names:
        if name not in table.schema:
            hint = did_you_mean(name, table.names)
            raise DataError(f"{_begin(table.label)} has no column '{name}' ({purpose}): {hint}")


def open_table(
    data: object,
    *,
    missing: Sequence[str] = ("",),
    label: str = "the data",
    lazily: bool = False,
    stripped: bool = False,
    columns: Sequence[str] | None = None,
    codes: Mapping[str, Sequence[str]] | None = None,
    care: str | None = None,
    layout: Mapping[str, Any] | None = None,
) -> AuditedTable:
    """Open a path of a known format or a polars, pandas or Arrow frame. A lazy frame is collected, unless it is to be
    read `lazily`; texts of a text file are `stripped` of the blanks around them if asked. A file that has these
    `columns` may be as its owner keeps it, and is then read with care: always, if `care` names the decimal sign of
    numbers that can be read in two ways, or a `layout` is given. `codes` are values that mean missing in one column.
    """
    scan: TextScan | None = None
    cells = 0
    if isinstance(data, ReleasedText):
        lazy, cells, scan, label = data.scanned(missing)
    elif isinstance(data, (str, Path)):
        owned = None if columns is None else _owned(Path(data), columns, missing, care, layout or {})
        lazy, cells, scan, label = owned or _scan(Path(data), missing, stripped=stripped)
    else:
        lazy = data if lazily and isinstance(data, pl.LazyFrame) else _frame(data, label).lazy()
    kind: Literal["text", "typed"] = "text" if scan else "typed"
    schema = _schema(lazy, label)
    if codes and (changed := without_codes(schema, codes)):
        lazy = lazy.with_columns(changed)
        scan = None if scan is None else _then(scan, changed)
    nested = [name for name, dtype in schema.items() if dtype.is_nested() or dtype == pl.Object]
    if nested:
        raise DataError(f"Column '{nested[0]}' of {label} holds nested values: an audit needs one value per cell.")
    width = len(schema) if cells <= _CELLS[kind] else len(schema) * _CELLS[kind] // cells
    clean = {name: pl.String() if _is_text(dtype) else dtype for name, dtype in schema.items()}
    clean |= {name: pl.Int64() for name, dtype in schema.items() if isinstance(dtype, pl.Duration)}
    return AuditedTable(lazy, clean, label, max(1, width), tuple(missing), kind, scan, whole_lines=scan is not None)


def _then(scan: TextScan, changed: list[pl.Expr]) -> TextScan:
    """A text file anew, with some columns changed before they become dictionaries."""
    return lambda texts: scan(()).with_columns(changed).cast(dict.fromkeys(texts, pl.Categorical()))


def _owned(
    path: Path, columns: Sequence[str], missing: Sequence[str], care: str | None, layout: Mapping[str, Any]
) -> tuple[pl.LazyFrame, int, TextScan | None, str] | None:
    """A file as its owner keeps it; None: a plain one."""
    label = f"the file '{path.name}'"
    if not path.is_file():
        return None
    if path.suffix.lower() in FOREIGN:
        try:
            if path.suffix.lower() in WORKBOOKS:
                return read_workbook(path, columns, skip_rows=layout.get("skip_rows", ())).lazy(), 0, None, label
            return FOREIGN[path.suffix.lower()](path, columns).lazy(), 0, None, label
        except (PolarsError, OSError, ValueError):
            raise unreadable(label) from None
    if not is_text_file(path) or (care is None and not layout and _is_plain(path, columns)):
        return None
    frame = read_text(path, columns, decimal=care or ".", **layout)
    frame = frame.with_columns(pl.when(~pl.all().is_in(list(missing))).then(pl.all()).name.keep())
    return frame.lazy(), 0, lambda texts: frame.lazy().cast(dict.fromkeys(texts, pl.Categorical())), label


def _is_plain(path: Path, columns: Sequence[str]) -> bool:
    """Whether the first line of a text file has the names of the columns."""
    try:
        return set(columns) <= set(_scan(path, (), stripped=False)[0].collect_schema())
    except (DataError, PolarsError, OSError):
        return path.suffix.lower() == ".zst"


def is_text_file(data: object) -> bool:
    """Whether this is a path of a text file."""
    known = format_of(Path(data)) if isinstance(data, (str, Path)) else None
    return isinstance(data, ReleasedText) or (known is not None and known.scan is None)


def _begin(label: str) -> str:
    """A label at the beginning of a sentence."""
    return label[0].upper() + label[1:]


def _is_text(dtype: pl.DataType) -> bool:
    return dtype in (pl.Null, pl.Binary, pl.String)


def _clean(series: pl.Series, missing: Sequence[str]) -> pl.Series:
    """A column with every kind of missing as null; text is plain strings or, if it was, in a dictionary."""
    if series.dtype.is_float():
        return series.fill_nan(None)
    if isinstance(series.dtype, pl.Duration):
        return series.cast(pl.Duration("us")).to_physical()
    if series.dtype == pl.Binary:
        series = series.bin.encode("hex")
    if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        known = series.dtype.categories  # some may occur in no row
        known = known if isinstance(known, pl.Series) else known.to_series()
        if not known.is_in(list(missing)).any():
            return series
        series = series.cast(pl.String)
    if not _is_text(series.dtype):
        return series
    series = series.cast(pl.String)
    lost = series == missing[0] if len(missing) == 1 else series.is_in(list(missing))
    return pl.select(pl.when(~lost).then(series).alias(series.name)).to_series() if lost.any() else series


def _schema(lazy: pl.LazyFrame, label: str) -> dict[str, pl.DataType]:
    try:
        schema = dict(lazy.collect_schema())
    except (PolarsError, OSError):
        raise unreadable(label) from None
    refuse_patterns(schema)
    return schema


def _collected(lazy: pl.LazyFrame, label: str, *, whole_lines: bool = False) -> pl.DataFrame:
    try:
        return lazy.collect(engine="streaming", optimizations=reading_options(whole_lines=whole_lines))
    except (PolarsError, OSError):  # their text may quote a record
        raise unreadable(label) from None


def reading_options(*, whole_lines: bool) -> pl.QueryOptFlags:
    """How a table is read: a reader that is told which columns are wanted does not see a field too many in a line."""
    return pl.QueryOptFlags(projection_pushdown=not whole_lines)


def unreadable(label: str) -> DataError:
    """A table that cannot be read."""
    return DataError(
        f"{label} cannot be read: it is empty, cut short, not UTF-8 text, or not of the kind its name says."
    )


def _scan(path: Path, missing: Sequence[str], *, stripped: bool) -> tuple[pl.LazyFrame, int, TextScan | None, str]:
    """A file or the files of a pattern: lazily, its cells, how a text file is scanned with dictionaries, its name."""
    label = f"the file '{path.name or path}'"
    paths = [path] if path.is_file() else sorted(path.parent.glob(path.name)) if "*" in path.name else []
    if not paths:
        raise DataError(f"{_begin(label)} does not exist or is not a file.")
    kind = format_of(path)
    if kind is None and path.suffix.lower() not in FOREIGN:
        raise DataError(f"{_begin(label)} is none of {', '.join(endings()[:-1])} and {endings()[-1]}.")
    if kind is not None and kind.scan is None:
        size = sum(part.stat().st_size for part in paths) * (5 if path.suffix.lower() in PACKED else 1)
        sign = _delimiter(paths[0], label)

        def scan(texts: Iterable[str]) -> pl.LazyFrame:
            types: dict[Any, Any] = dict.fromkeys(texts, pl.Categorical())
            if not stripped:
                return _lines(paths, sign, missing, types)
            bare = pl.all().str.strip_chars(" ")
            bare = pl.when(~bare.is_in(list(missing))).then(bare).name.keep()
            return _lines(paths, sign, missing).select(bare).cast(types)

        return scan(()), size // _BYTES_PER_CELL, scan, label
    try:
        lazy = ((kind and kind.scan) or foreign_rows)(paths)
    except (PolarsError, OSError, ValueError):
        raise unreadable(label) from None
    rows = int(_collected(lazy.select(pl.len()), label).item())
    return lazy, rows * len(_schema(lazy, label)), None, label


def _delimiter(path: Path, label: str) -> str:
    """The sign that cuts the first lines into the most columns of equal number."""
    if path.suffix.lower() in PACKED:
        head = pl.scan_csv(
            path, separator="\x1f", has_header=False, quote_char=None, infer_schema=False, n_rows=20, glob=False
        )
        lines = [line or "" for line in _collected(head, label).to_series().to_list()] if _schema(head, label) else []
    else:
        with path.open("rb") as file:
            lines = file.read(1 << 16).decode("utf-8-sig", errors="replace").splitlines()[:20]
    if not lines:
        raise unreadable(label)

    def rank(delimiter: str) -> tuple[int, int]:
        widths = [len(fields) for fields in csv.reader(lines, delimiter=delimiter)]
        return (sum(width == widths[0] for width in widths) if widths[0] > 1 else 0), widths[0]

    return max(DELIMITERS, key=rank)


def _frame(data: object, label: str) -> pl.DataFrame:
    """Any frame as a polars frame; the index of a pandas frame is no column."""
    if isinstance(data, pl.DataFrame | pl.LazyFrame):
        return _collected(data, label) if isinstance(data, pl.LazyFrame) else data
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
        return _from_pandas(data, label)
    if hasattr(data, "__arrow_c_stream__"):
        return pl.DataFrame(data)
    kind = type(data).__name__
    raise DataError(f"{_begin(label)} must be a path or a polars, pandas or Arrow frame, not {kind}.")


def _from_pandas(data: Any, label: str) -> pl.DataFrame:
    names = [str(name) for name in data.columns]
    if len(set(names)) < len(names):
        raise DataError(f"Two columns of {label} have the same name.")
    columns = []
    for position, name in enumerate(names):
        column = data.iloc[:, position].reset_index(drop=True)
        try:
            series: Any = pl.from_pandas(column)
        except Exception:  # errors of pyarrow: values of several types in one column are compared as texts
            lost = column.isna()
            series = pl.Series([None if gone else str(value) for value, gone in zip(column, lost, strict=True)])
        columns.append(series.alias(name))
    return pl.DataFrame(columns)
