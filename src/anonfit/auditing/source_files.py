# SPDX-License-Identifier: Apache-2.0
"""Raw tables as their owners keep them, read for the audit by code of its own: text files of any encoding and layout,
workbooks, files of statistics programs, and others.

What the package's own reader finds out, the audit knows: the names of columns that a release was made of. The line that
has them is the header, the sign between them the delimiter, and what stands above it is no part of the table.
"""

from __future__ import annotations

import gzip
import io
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from anonfit.errors import DataError, MissingPackage

_DELIMITERS = ",;\t|:^~\x1f\x01 "
WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_STATISTICS = {".sav": "sav", ".zsav": "sav", ".por": "por", ".dta": "dta", ".sas7bdat": "sas7bdat", ".xpt": "xport"}
_SECOND = ("cp1251", "cp1253", "koi8_r", "cp866", "cp932", "gb18030", "big5", "cp949", "cp850", "mac_roman", "cp1250")
_POINT = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"
_COMMA = r"^[-+]?(\d+|[1-9]\d{0,2}(\.\d{3})+)(,\d+)?$"
_GROUPED = r"^[-+]?([1-9]\d{0,2}([,' ’\u00a0\u202f]\d{3})+|\d{1,3})(\.\d+)?$"
_THOUSANDS = r"^[-+]?([1-9]\d{0,2}(,\d{3})+|\d{1,3})$"
_RULE = re.compile(r"[ |,;\t]*[-=+_*:]{2,}[ |,;\t]+[-=+_*:|,; \t]*")
_PARTED = "\x1e"  # stands for the end of a line within a name
_CODES = (r"^\+\d{7,}$", r"^\d{1,3}(\.\d{1,3}){3}$")
_GROUPS_OF_DIGITS = r"^[1-9]\d{0,2}([ \u00a0\u202f]\d{3}){2,}$"
_SPACED = r"^[-+]?([1-9]\d{0,2}([ \u00a0\u202f]\d{3})+|\d{1,3})(,\d+)?$"


# --- text files ---------------------------------------------------------------------------------------------------


def read_text(
    path: Path,
    names: Sequence[str],
    *,
    decimal: str | None = None,
    encoding: str | None = None,
    skip_rows: int | Sequence[int] = (),
) -> pl.DataFrame:
    """The rows of any text file as texts; numbers are written with a decimal point. Lines that are left out are given
    by their numbers, or by how many come first.
    """
    text = _decoded(path, names, encoding)
    left_out = range(1, skip_rows + 1) if isinstance(skip_rows, int) else skip_rows
    if left_out:
        parts = re.split("(\r\n|\r|\n)", text)  # lines, and their ends
        text = "".join(part for place, part in enumerate(parts) if place // 2 + 1 not in left_out)
    text = text.rstrip("\x1a")  # DOS ended files with a sign
    text = text if "\n" in text else text.replace("\r", "\n")
    text = re.sub("(^|\n)\ufeff+", r"\1", text)  # files that were put together have their marks within
    text, header, delimiter = _from_header(path, _outside_quotes(text, "\r+\n|\r", "\n"), names)
    text = re.sub(r'="([^"\n]*)"', r'"\1"', text.replace('\\"', '""'))
    edge = rf"(^|{re.escape(delimiter)}) *"
    quote = next((sign for sign in "\"'" if re.search(rf"{edge}{sign}[^{sign}]*{sign}", text, re.M)), None)
    if delimiter != " ":
        text = re.sub(rf'^([^"\n]*{re.escape(delimiter)}) +"', r'\1"', text, flags=re.M)
        text = _outside_quotes(text, rf"{re.escape(delimiter)} +$", delimiter)
    text = _outside_quotes(text, r"\n(?:[ \t]*\n)+", "\n").strip("\n")
    text = re.sub(rf"(\n[{re.escape(delimiter)} ]*)+$", "", text) if len(header) > 1 else text
    header, text = _without_last(header, text, delimiter, quote)
    try:
        frame = pl.read_csv(
            io.BytesIO(text.encode()),
            separator=delimiter,
            has_header=False,
            new_columns=header,
            infer_schema=False,
            quote_char=quote,
        )
    except PolarsError:
        raise DataError(f"The lines of the file '{path.name}' do not have equally many fields.") from None
    fields = sum(part.count(delimiter) for part in (text.split(quote)[::2] if quote else [text]))
    if frame.width != len(header) or fields != len(frame) * (len(header) - 1):
        raise DataError(f"The lines of the file '{path.name}' do not have equally many fields.")
    frame = frame.with_columns(pl.all().str.strip_chars(" \u00a0"))
    return frame.with_columns(_plain_numbers(frame, decimal))


def _outside_quotes(text: str, pattern: str, by: str) -> str:
    """A text with a pattern replaced where it does not stand between quotes."""
    parts = text.split('"')
    parts[::2] = [re.sub(pattern, by, part) for part in parts[::2]]
    return '"'.join(parts)


def _decoded(path: Path, names: Sequence[str], given: str | None) -> str:
    """The signs of a file, in the first encoding that gives it the names of the columns."""
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix.lower() == ".gz" else content
    except (OSError, EOFError):
        raise DataError(f"The file '{path.name}' cannot be read: it is cut short.") from None
    if given is not None:
        try:
            return content.decode(given).removeprefix("\ufeff")
        except (UnicodeError, LookupError):
            raise DataError(f"The file '{path.name}' is not in the encoding {given}.") from None
    encodings = ["utf-8-sig"]
    if content.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        encodings = ["utf-32"]
    elif content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings = ["utf-16"]
    elif b"\0" in content[:4096]:
        encodings = ["utf-16-le", "utf-16-be"]
    fitting = []
    for encoding in [*encodings, "cp1252", *_SECOND]:
        try:
            text = content.decode(encoding)
        except UnicodeError:
            continue
        if _are_numbered(names) or all(name in text for name in names):
            fitting.append((encoding, text))
    letters = [sign for sign in fitting[0][1][: 1 << 16] if sign.isalpha()] if fitting else []
    # A third of the letters are none of English: what no Western language has.
    if fitting and fitting[0][0] == "cp1252" and sum(not sign.isascii() for sign in letters) > len(letters) / 3:
        from charset_normalizer import from_bytes

        best = from_bytes(content[: 1 << 16], cp_isolation=list(_SECOND)).best()
        fitting = [pair for pair in fitting if best is not None and pair[0] == best.encoding] or fitting
    if not fitting:
        raise DataError(f"The file '{path.name}' is in no encoding in which it has the columns of the release.")
    return fitting[0][1]


def _are_numbered(names: Sequence[str]) -> bool:
    """Whether columns have no names of their own."""
    return all(re.fullmatch(r"column_\d+", name) for name in names)


def _from_header(path: Path, text: str, names: Sequence[str]) -> tuple[str, list[str], str]:
    """What follows the line of names, these, and the sign between them. Columns that are only numbered had no names."""
    parted = {re.sub(r"\s*\n\s*", _PARTED, name): name for name in names if "\n" in name}
    for marked_name, name in parted.items():  # names that have ends of lines within
        text = text.replace(name, marked_name, 1)
    lines = text.split("\n")
    marked = lines[0].startswith("#")
    for place, line in enumerate(lines):
        for sign in _DELIMITERS:
            fields = [field.strip().strip("\"'").strip() for field in line.split(sign)]
            fields[0] = fields[0].lstrip("#").strip() if len(fields) > 1 else fields[0]
            fields = [parted.get(field, field) for field in fields]
            if set(names) <= set(fields):
                kept = [row for row in lines[place + 1 :] if row != line and not (marked and row.startswith("#"))]
                if kept and _RULE.fullmatch(kept[0]):
                    del kept[0]
                if len(fields) == 1 and not any(row.startswith('"') for row in kept):
                    sign = next((sign for sign in _DELIMITERS if not any(sign in row for row in kept)), sign)
                return "\n".join(kept), fields, sign
    if _are_numbered(names):
        start = next((place for place, line in enumerate(lines) if line.strip()), 0)
        most = max(int(name[7:]) for name in names)
        first = [line for line in lines[start : start + 20] if line.strip()] or [""]
        widths = [(sign, {line.count(sign) + 1 for line in first}) for sign in _DELIMITERS]
        alike = [(min(width), sign) for sign, width in widths if len(width) == 1 and min(width) >= most]
        if alike:
            number, sign = min(alike, key=lambda pair: pair[0])
            return "\n".join(lines[start:]), [f"column_{place}" for place in range(1, number + 1)], sign
    raise DataError(f"The file '{path.name}' has no line with the columns of the release.")


def _without_last(header: list[str], text: str, delimiter: str, quote: str | None) -> tuple[list[str], str]:
    """Names and lines without the delimiter that every line ends in, if they do."""
    first = text.partition("\n")[0]
    fields = sum(part.count(delimiter) for part in (first.split(quote)[::2] if quote else [first])) + 1
    ends = fields == len(header) and not header[-1] and len(header) > 1
    if ends:
        header = header[:-1]
    if ends or (fields == len(header) + 1 and first.rstrip().endswith(delimiter)):
        return header, re.sub(rf"{re.escape(delimiter)}[ ]*(\n|$)", r"\1", text)
    # R has no name for the column of row names.
    return (["", *header] if fields == len(header) + 1 else header), text


def _plain_numbers(frame: pl.DataFrame, decimal: str | None) -> list[pl.Expr]:
    """Columns of numbers that are written otherwise than in Python, as Python writes them."""
    known = {column.name: column.drop_nulls().unique() for column in frame}
    known = {name: values.filter(values != "") for name, values in known.items()}

    def all_fit(name: str, pattern: str) -> bool:
        values = known[name]
        return len(values) > 0 and bool(values.str.contains(pattern).all())

    changed = []
    for name in known:
        column = pl.col(name)
        if known[name].str.contains(r"^[-+]?0\d").any() or any(all_fit(name, codes) for codes in _CODES):
            continue
        if all_fit(name, _GROUPS_OF_DIGITS) and known[name].str.len_chars().n_unique() == 1:
            continue
        is_point, is_comma = all_fit(name, _POINT), all_fit(name, _COMMA)
        if decimal == "." and not is_point and all_fit(name, _THOUSANDS):
            plain = column.str.replace_all(",", "", literal=True)
        elif is_comma and (not is_point or (decimal == "," and all_fit(name, r"^[-+]?\d{1,3}(\.\d{3})*$"))):
            plain = column.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
        elif not is_point and all_fit(name, _GROUPED):
            plain = column.str.replace_all("[,' ’\u00a0\u202f]", "")
        elif not is_point and all_fit(name, _SPACED):
            plain = column.str.replace_all("[ \u00a0\u202f]", "").str.replace(",", ".", literal=True)
        else:
            continue
        changed.append(plain.alias(name))
    return changed


# --- files of other programs --------------------------------------------------------------------------------------


def _brought(module: str, package: str, extra: str, path: Path) -> Any:
    """A module of a package that comes with an extra, which reading a file needs."""
    try:
        return import_module(module)
    except ModuleNotFoundError:
        raise MissingPackage(package, extra, f"The file '{path.name}'") from None


def read_workbook(path: Path, names: Sequence[str], *, skip_rows: int | Sequence[int] = ()) -> pl.DataFrame:
    """The first sheet that has the columns, below the row that names them."""
    fastexcel = _brought("fastexcel", "fastexcel", "excel", path)
    logging.getLogger("fastexcel").addHandler(logging.NullHandler())  # it tells of columns without values
    try:
        left_out = () if isinstance(skip_rows, int) else skip_rows
        return _sheet(fastexcel.read_excel(path), path, names, [line - 1 for line in left_out])
    except fastexcel.FastExcelError:
        raise DataError(f"The file '{path.name}' cannot be read as a workbook: it is broken, or none.") from None


def _sheet(book: Any, path: Path, names: Sequence[str], left_out: Sequence[int]) -> pl.DataFrame:
    numbered = _are_numbered(names)
    for sheet in book.sheet_names:
        cells = book.load_sheet(sheet, header_row=None, skip_rows=0, dtypes="string").to_polars()
        rows = ([str(cell or "").strip() for cell in row] for row in cells.iter_rows())
        place = next((place for place, row in enumerate(rows) if set(names) <= set(row)), None)
        if place is None and not (numbered and cells.width):
            continue
        first = 0 if place is None else place + 1
        typed = _typed(book, sheet, first, [row for row in left_out if first <= row < len(cells)], len(cells))
        used = [
            name
            for name in typed.columns
            if typed[name].null_count() < len(typed) or (place is not None and cells[name][place])
        ]
        header = [
            f"column_{number}" if place is None else str(cells[name][place] or "").strip()
            for number, name in enumerate(used, start=1)
        ]
        frame = typed.select(used).rename(dict(zip(used, header, strict=True)))
        filled = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
        if names:  # an empty row among those of an owner is no record
            return _simple(frame.filter(filled))
        last = int(filled.arg_true()[-1]) if filled.any() else 0
        return _simple(frame.head(last + 1))
    raise DataError(f"The file '{path.name}' has no sheet with the columns of the release.")


def _typed(book: Any, sheet: str, first: int, left_out: Sequence[int], height: int) -> pl.DataFrame:
    """The rows of a sheet from one on; what is left out says nothing of their types."""
    parts: list[pl.DataFrame] = []
    start = first
    for end in (*sorted(left_out), height):
        if end > start:
            rows = {"skip_rows": start, "n_rows": end - start, "schema_sample_rows": None}
            parts.append(book.load_sheet(sheet, header_row=None, **rows).to_polars())
        start = end + 1
    if len(parts) == 1:
        return parts[0]
    parts = [
        part.with_columns(pl.col(name).cast(pl.Null) for name in part.columns if part[name].is_null().all())
        for part in parts
    ]
    try:
        return pl.concat(parts, how="vertical_relaxed")
    except PolarsError:
        return pl.concat([part.cast(pl.String) for part in parts])


def _simple(frame: pl.DataFrame) -> pl.DataFrame:
    """Numbers that are whole, and moments that are days, as such."""
    columns: list[pl.Series] = []
    for column in frame:
        column = column.fill_nan(None) if column.dtype.is_float() else column
        present = column.drop_nulls()
        if column.dtype.is_float() and len(present):
            is_whole = (present == present.round()).all() and (present.abs() < 2**53).all()
            column = column.cast(pl.Int64) if is_whole else column
        elif column.dtype == pl.Datetime and len(present) and (present == present.dt.date()).all():
            column = column.dt.date()
        elif column.dtype == pl.String:
            column = column.replace("", None)
        columns.append(column.cast(pl.String) if column.dtype == pl.Null else column)
    return pl.DataFrame(columns)


def read_statistics(path: Path) -> tuple[pl.DataFrame, Any]:
    """A file of SPSS, Stata or SAS: its rows as they are stored, and what it says of its columns."""
    pyreadstat = _brought("pyreadstat", "pyreadstat", "statistics", path)
    read: Any = getattr(pyreadstat, f"read_{_STATISTICS[path.suffix.lower()]}")
    try:
        frame, about = read(str(path), output_format="polars")
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, ValueError, OverflowError, PolarsError):
        raise DataError(f"The file '{path.name}' cannot be read: it is cut short, or not of its kind.") from None
    return frame, about


def _statistics(path: Path, _: Sequence[str]) -> pl.DataFrame:
    """A file of SPSS, Stata or SAS; codes of which each has a label of its own are labels."""
    frame, meta = read_statistics(path)
    frame = _simple(frame)
    labels: Mapping[str, Mapping[Any, str]] = meta.variable_value_labels
    columns = []
    for column in frame:
        words = {_word(code): label.strip() for code, label in labels.get(column.name, {}).items()}
        present = [_word(code) for code in column.drop_nulls().unique()]
        if words and set(present) <= set(words) and len(set(words.values())) == len(words):
            named = [None if code is None else words[_word(code)] for code in column]
            column = pl.Series(column.name, named, pl.String)
        columns.append(column)
    return pl.DataFrame(columns)


def _word(code: Any) -> str:
    return f"{code:.0f}" if isinstance(code, float) and code == round(code) else str(code)


FOREIGN: Mapping[str, Callable[[Path, Sequence[str]], pl.DataFrame]] = {
    **dict.fromkeys(WORKBOOKS, read_workbook),
    **dict.fromkeys(_STATISTICS, _statistics),
    **dict.fromkeys((".jsonl", ".ndjson"), lambda path, _: pl.read_ndjson(path, infer_schema_length=None)),
    ".avro": lambda path, _: pl.read_avro(path),
    ".orc": lambda path, _: pl.DataFrame(_brought("pyarrow.orc", "pyarrow", "arrow", path).read_table(path)),
}
"""How files of an ending are read that are neither text nor Parquet nor Arrow, given the columns of a release."""


def without_codes(schema: Mapping[str, pl.DataType], codes: Mapping[str, Sequence[str]]) -> list[pl.Expr]:
    """Columns in which some values mean missing, with these as missing."""
    changed = []
    for name, texts in codes.items():
        if name not in schema:
            continue
        numbers = [float(text) for text in texts if re.fullmatch(r"[-+]?\d+(\.\d+)?", text)]
        value = pl.col(name)
        is_code = value.cast(pl.Float64, strict=False).is_in(numbers).fill_null(value=False)
        if not schema[name].is_numeric():
            is_code = is_code | value.cast(pl.String).is_in(list(texts)).fill_null(value=False)
        changed.append(pl.when(~is_code).then(value).alias(name))
    return changed
