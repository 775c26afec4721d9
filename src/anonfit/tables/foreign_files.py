# SPDX-License-Identifier: Apache-2.0
"""Files of other programs as tables: workbooks, files of SPSS, Stata and SAS, JSON lines, Avro and ORC.

Value labels become the names of values, codes that a file declares missing are missing, and dates are dates.
"""

from __future__ import annotations

import logging
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.errors import DataError, MissingPackage, listed
from anonfit.runtime.process import available_memory
from anonfit.tables.layout import FOUND, FileLayout, given_layout

if TYPE_CHECKING:
    import polars as pl

WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
STATISTICS = (".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt")
ABOVE = 100  # rows of a sheet among which its header is sought
BYTES_OF_CELL = 32
_FAR = re.compile(rb"""[\s"']r\s*=\s*["'](?:([A-Z]{2,3})|[A-Z])?(\d{6,7}|(?<=[A-Z]{2})\d+)["']""")
"""Where a row or cell is, if its column has several letters or its row at least six digits."""


# --- workbooks ----------------------------------------------------------------------------------------------------


def _refuse_far_cells(path: Path) -> None:
    """Refuse a sheet whose last cell lies so far out that the cells before it, though empty, fill the memory."""
    if path.suffix.lower() not in (".xlsx", ".xlsm"):
        return
    with suppress(OSError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error):
        with zipfile.ZipFile(path) as book:
            sheets = [name for name in book.namelist() if name.startswith("xl/worksheets/") and name.endswith(".xml")]
            cells = max((_reach(book, name) for name in sheets), default=0)
        if cells * BYTES_OF_CELL > available_memory():
            raise DataError(
                f"{path.name}: a sheet reaches so far out that its {cells:,} cells, empty ones too, do not fit into "
                "the memory that is free; copy its table to a new workbook, or save it as CSV."
            )


def _reach(book: zipfile.ZipFile, name: str) -> int:
    """The cells of a sheet up to the last row and column that have one; small ones are taken as large as may be."""
    width, height, rest = 26, 99_999, b""
    with book.open(name) as sheet:
        while piece := sheet.read(1 << 20):
            content = rest + piece
            for letters, number in set(_FAR.findall(content)):
                height = max(height, int(number or 0))
                width = max(width, reduce(lambda place, sign: place * 26 + sign - 64, letters, 0))
            rest = content[-24:]
    return width * height


def _read_once(read: Callable[[Path, FileLayout], pl.DataFrame]) -> Callable[..., pl.LazyFrame]:
    """Keep the table that was read last: names are asked for before rows, and no file is read twice."""

    @lru_cache(maxsize=1)
    def held(path: Path, layout: FileLayout, _changed: int, _size: int) -> pl.DataFrame:
        return read(path, layout)

    def scan(path: Path, layout: FileLayout = FOUND) -> pl.LazyFrame:
        state = path.stat()
        return held(path, FileLayout(**given_layout(layout)), state.st_mtime_ns, state.st_size).lazy()

    return scan


@_read_once
def scan_workbook(path: Path, layout: FileLayout) -> pl.DataFrame:
    """The table of a sheet of a workbook."""
    try:
        import fastexcel
    except ModuleNotFoundError:
        raise MissingPackage("fastexcel", "excel", f"{path.name}: a workbook") from None
    logging.getLogger("fastexcel").addHandler(logging.NullHandler())  # it tells of columns without values
    _refuse_far_cells(path)
    try:
        book = fastexcel.read_excel(path)
        name = _sheet(path, book, layout.sheet)
        cells = book.load_sheet(name, header_row=None, skip_rows=0, dtypes="string").to_polars()
    except fastexcel.FastExcelError:
        raise _no_workbook(path) from None
    header, first, last = _rows(path, cells, layout)
    rows = _records(book, name, range(first, last), _left_out(cells, layout), layout.skip_rows)
    named = 0 if header is None else 1
    used = [name for name in cells.columns if cells[name][first - named : last].null_count() < last - first + named]
    names = [f"column_{place}" for place in range(1, len(used) + 1)]
    if header is not None:
        names = [str(cells[column][header] or "").strip() for column in used]
    _check_names(path, names, first if header is None else header + 1)
    return plain_values(rows.select(used).rename(dict(zip(used, names, strict=True))))


def _records(
    book: Any, name: str, lines: range, left_out: Sequence[int], skipped: int | tuple[int, ...] | None
) -> pl.DataFrame:
    """The records of a sheet with their types, which lines that are left out have no part in."""
    import polars as pl

    ends = sorted({*(line - 1 for line in (skipped if isinstance(skipped, tuple) else ()) if line - 1 in lines)})
    parts: list[pl.DataFrame] = []
    dropped = frozenset(left_out)
    for start, end in zip([lines.start, *(end + 1 for end in ends)], [*ends, lines.stop], strict=True):
        if end > start:
            part = book.load_sheet(name, header_row=None, skip_rows=start, n_rows=end - start, schema_sample_rows=None)
            kept = pl.Series([row not in dropped for row in range(start, end)], dtype=pl.Boolean)
            parts.append(part.to_polars().filter(kept) if left_out else part.to_polars())
    if len(parts) == 1:
        return parts[0]
    alike = []
    for column in parts[0].columns if parts else ():
        known = [part[column] for part in parts]
        kinds = {values.dtype for values in known if values.null_count() < len(values)}
        is_mixed = len(kinds) > 1 and not all(kind.is_numeric() for kind in kinds)
        dtype = pl.String() if is_mixed or not kinds else pl.Float64() if len(kinds) > 1 else next(iter(kinds))
        alike.append(pl.concat([values.cast(dtype) for values in known]))
    return pl.DataFrame(alike)


def _no_workbook(path: Path) -> DataError:
    """What a file is that has the ending of a workbook and is none."""
    with path.open("rb") as file:
        start = file.read(1000)
    if start.lstrip(b"\xef\xbb\xbf \r\n\t").lower().startswith((b"<html", b"<table", b"<!doctype", b"<?xml", b"<head")):
        return DataError(f"{path.name} is no workbook but a web page; open it in Excel and save it as .xlsx or .csv.")
    if start and b"\0" not in start:
        return DataError(
            f"{path.name} is no workbook but text; name it .csv, or open it in Excel and save it as .xlsx."
        )
    return DataError(f"{path.name} cannot be read as a workbook: it is broken, protected, or none.")


def _left_out(cells: pl.DataFrame, layout: FileLayout) -> list[int]:
    """Rows of a sheet that are no records, counted from 0: those that are empty, and those that are left out. Where it
    is told how many lines come first, as of releases, all others are records.
    """
    import polars as pl

    if isinstance(layout.skip_rows, int) or not cells.width:
        return []
    is_filled = pl.any_horizontal((pl.all().str.strip_chars() != "").fill_null(value=False))
    empty = cells.select((~is_filled).arg_true()).to_series().to_list()
    return sorted({*empty, *(line - 1 for line in layout.skip_rows or ())})


def _sheet(path: Path, book: Any, wanted: str | None) -> str:
    """The sheet that is asked for, or the only one that has a table."""
    names: list[str] = list(book.sheet_names)
    if wanted is not None:
        if wanted not in names:
            raise DataError(f"{path.name} has no sheet {wanted!r}; it has {listed(names)}.")
        return wanted
    sizes = {name: book.load_sheet(name, header_row=None, skip_rows=0, n_rows=3) for name in names}
    tables = [name for name, rows in sizes.items() if rows.total_height > 1 and rows.width > 1]
    tables = tables or [name for name, rows in sizes.items() if rows.total_height > 0]
    if not tables:
        raise DataError(f"{path.name} is empty; a table needs at least one row.")
    if len(tables) > 1:
        raise DataError(f'{path.name} has several sheets with tables: {listed(tables)}; write sheet = "…" in [data].')
    return tables[0]


def _rows(path: Path, cells: pl.DataFrame, layout: FileLayout) -> tuple[int | None, int, int]:
    """Where names stand, where the records begin, and where they end, counted from 0; refused if not sure."""
    from anonfit.tables.dialects import header_of, refuse_second_header, refuse_total
    from anonfit.tables.number_signs import type_of

    left_out = set(_left_out(cells, layout))
    filled = [[str(cell or "").strip() for cell in row] for row in cells.head(ABOVE).iter_rows()]
    width = sum(cells[name].null_count() < len(cells) for name in cells.columns)
    start = layout.skip_rows if isinstance(layout.skip_rows, int) else 0
    while start in left_out and start < len(filled) - 1:
        start += 1
    if layout.header_row is not None:
        start = layout.header_row - 1
    elif layout.header is None and layout.skip_rows is None:
        while start < len(filled) - 1 and sum(map(bool, filled[start])) < max(2, (width + 1) // 2) <= width:
            start += 1
    if start >= len(filled):
        raise DataError(f"{path.name}: there is no row {start + 1} of names; mend data.header_row or data.skip_rows.")
    last = len(cells)
    while last > start + 1 and not any(cells.row(last - 1)):
        last -= 1
    has_header = layout.header_row is not None or layout.header
    lines = [(place + 1, row) for place, row in enumerate(filled) if place > start and place not in left_out]
    below = [row for _, row in lines]
    try:
        if has_header is None:
            has_header = header_of(filled[start], below, start + 1)
            if has_header and below:
                kinds = [
                    type_of([row[index] for row in below], frozenset(), layout)[0] for index in range(len(below[0]))
                ]
                refuse_second_header(lines, kinds, frozenset())
        if last - start > 2:
            others = [row for place, row in enumerate(filled) if start < place < last - 1]
            refuse_total([(last, [str(cell or "") for cell in cells.row(last - 1)])], others, layout)
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from None
    return (start if has_header else None), start + bool(has_header), last


def _check_names(path: Path, names: Sequence[str], line: int) -> None:
    from anonfit.tables.dialects import refuse_same_names

    if not all(names[1:]):
        raise DataError(
            f"{path.name}: line {line} looks like a header, and a name in it is empty; mend it, or say where the names "
            "stand: header_row = N in [data]."
        )
    try:
        refuse_same_names(names, line)
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from None


def plain_values(frame: pl.DataFrame) -> pl.DataFrame:
    """Whole numbers and days as such: these programs know only numbers and moments."""
    import polars as pl

    changed = []
    for column in frame:
        dtype = column.dtype
        if dtype.is_float():
            column = column.fill_nan(None)
            known = column.drop_nulls()
            dtype = pl.Int64() if len(known) and ((known % 1 == 0) & (known.abs() < 2**53)).all() else dtype
        elif isinstance(dtype, pl.Datetime):
            known = column.drop_nulls()
            dtype = pl.Date() if len(known) and (known.dt.truncate("1d") == known).all() else dtype
        elif dtype == pl.Null:
            dtype = pl.String()
        elif dtype == pl.String:  # these programs know no other missing texts
            column = column.replace("", None)
        changed.append(column.cast(dtype))
    return pl.DataFrame(changed)


# --- SPSS, Stata, SAS ---------------------------------------------------------------------------------------------


def _read_statistics(path: Path, encoding: str | None, **options: Any) -> tuple[Any, Any]:
    """The rows of a file of a statistics program, and what it says of its columns."""
    try:
        import pyreadstat
    except ModuleNotFoundError:
        raise MissingPackage("pyreadstat", "statistics", f"{path.name}: a file of SPSS, Stata or SAS") from None
    suffix = path.suffix.lower()
    reader = {".zsav": "sav", ".xpt": "xport"}.get(suffix, suffix.removeprefix("."))
    if suffix != ".por":  # its signs are ASCII
        options["encoding"] = encoding
    try:
        frame, meta = getattr(pyreadstat, f"read_{reader}")(str(path), output_format="polars", **options)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, ValueError, OverflowError, UnicodeDecodeError):
        raise DataError(
            f"{path.name} cannot be read: it is broken, cut short, or of another encoding; write data.encoding, or "
            "save it anew."
        ) from None
    return frame, meta


@_read_once
def scan_statistics(path: Path, layout: FileLayout) -> pl.DataFrame:
    """The table of a file of SPSS, Stata or SAS, with labels as the names of values."""
    frame, meta = _read_statistics(path, layout.encoding)
    frame = plain_values(frame)
    labels = {} if layout.value_labels is False else meta.variable_value_labels
    return frame.with_columns(
        _labelled(frame[name], labels[name], every=layout.value_labels is None)
        for name in frame.columns
        if labels.get(name)
    )


def _labelled(column: pl.Series, labels: Mapping[Any, str], *, every: bool) -> pl.Series:
    """A column with labels in place of codes; as it is where codes have none (if `every` one must) or share one."""
    import polars as pl

    named = {
        str(int(code) if isinstance(code, float) and code.is_integer() else code): str(label).strip()
        for code, label in labels.items()
    }
    codes = column.cast(pl.String)
    if len(set(named.values())) < len(named) or (every and not codes.drop_nulls().is_in(list(named)).all()):
        return column
    return codes.replace(list(named), list(named.values())).alias(column.name)


def variable_labels(path: Path, encoding: str | None = None) -> dict[str, str]:
    """What a file of SPSS, Stata or SAS says of its columns."""
    if path.suffix.lower() not in STATISTICS:
        return {}
    _, meta = _read_statistics(path, encoding, metadataonly=True)
    return {name: label for name, label in meta.column_names_to_labels.items() if label}


# --- others -------------------------------------------------------------------------------------------------------


def scan_orc(path: Path, _: FileLayout = FOUND) -> pl.LazyFrame:
    """The table of an ORC file."""
    import polars as pl

    try:
        from pyarrow import ArrowException, orc
    except ModuleNotFoundError:
        raise MissingPackage("pyarrow", "arrow", f"{path.name}: an ORC file") from None
    try:
        frame = pl.from_arrow(orc.read_table(path))
    except (ArrowException, OSError):
        raise DataError(f"{path.name} cannot be read as ORC: it is broken, or none.") from None
    assert isinstance(frame, pl.DataFrame)
    return frame.lazy()
