# SPDX-License-Identifier: Apache-2.0
"""Releases as files of Excel, SPSS and Stata: byte for byte the same for the same rows, without authors and dates.

A workbook has one sheet, "data", whose first row names the columns. In files of SPSS and Stata, texts are codes from 1
on with their labels, in the order of the numbers in them.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from anonfit.errors import DataError, MissingPackage, listed

if TYPE_CHECKING:
    import polars as pl

    from anonfit.tables.sources import FileForm

PROGRAMS: Final = {"xlsx": "Excel", "sav": "SPSS", "dta": "Stata"}
ROWS_OF_SHEET, COLUMNS_OF_SHEET = 1_048_576, 16_384
LONGEST: Final = {"xlsx": 32_767, "sav": 2045, "dta": 2045}
"""Signs of a cell, and bytes of a text."""
LABELS, BYTES_OF_LABEL = 1000, 120
"""How many different texts a column has, and how long they are, that are written as codes with labels; others stay
texts."""
EXACT = 2**53
LONGEST_TITLE = 80
_UNSEEN: Final = r"[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]|_x[0-9A-Fa-f]{4}_"
"""What a text of a workbook cannot hold: signs that are not shown, and what stands for them."""
_NAMES: Final = {
    "xlsx": (rf"(?!\s)(?:(?!{_UNSEEN})[\s\S])+(?<!\s)", 255, ""),
    "sav": (r"[^\W\d_][\w.@#$]*(?<![._])", 64, "all and by eq ge gt le lt ne not or to with"),
    "dta": (
        r"[^\W\d]\w*",
        32,
        "_all _b _coef _cons _n _pi _pred _rc _skip _weight byte double float if in int long strl using with",
    ),
}
"""How a column may be called, in how many bytes, and what is taken."""
_BOOK: Final = {
    "[Content_Types].xml": '<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType="{application}'
    'package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="{application}officedocument.'
    'spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="{application}'
    'officedocument.spreadsheetml.worksheet+xml"/><Override PartName="/xl/styles.xml" ContentType="{application}'
    'officedocument.spreadsheetml.styles+xml"/></Types>',
    "_rels/.rels": '<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" Type="{office}/'
    'officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": '<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet name="data" sheetId="1" '
    'r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": '<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" '
    'Type="{office}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="{office}/styles" '
    'Target="styles.xml"/></Relationships>',
    "xl/styles.xml": '<styleSheet xmlns="{main}"><fonts count="1"><font/></fonts><fills count="1"><fill/></fills>'
    '<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="3"><xf/>'
    '<xf numFmtId="14" applyNumberFormat="1"/><xf numFmtId="22" applyNumberFormat="1"/></cellXfs></styleSheet>',
    "xl/worksheets/sheet1.xml": '<worksheet xmlns="{main}"><sheetData>',
}
_URLS: Final = {
    "package": "http://schemas.openxmlformats.org/package/2006",
    "application": "application/vnd.openxmlformats-",
    "office": "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    "main": "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
}


def refuse_columns(names: Collection[str], kind: str) -> None:
    """Refuse columns that a file of a program cannot have, and a package that is missing to write and read it."""
    package, extra = ("fastexcel", "excel") if kind == "xlsx" else ("pyreadstat", "statistics")
    if find_spec(package) is None:
        raise MissingPackage(package, extra, f"output.format = '{kind}'")
    if kind == "xlsx" and len(names) > COLUMNS_OF_SHEET:
        raise DataError(f"a sheet of Excel has at most {COLUMNS_OF_SHEET:,} columns; use the format csv or parquet.")
    pattern, most, taken = _NAMES[kind]
    alike = [name.lower() if kind == "sav" else name for name in names]
    wrong = [
        name
        for name, small in zip(names, alike, strict=True)
        if not re.fullmatch(pattern, name)
        or len(name.encode()) > most
        or small in taken.split()
        or alike.count(small) > 1
    ]
    if wrong:
        raise DataError(
            f"{PROGRAMS[kind]} knows no columns of such names: {listed(wrong)}; rename them in the source, or use the "
            "format csv or parquet."
        )


def _holdable(frame: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Values as programs know them: texts, floats, truths and moments; those that would be changed are refused."""
    import polars as pl

    changed, first = [], datetime(1900, 3, 1) if kind == "xlsx" else datetime(1600, 1, 1)
    for column in frame:
        dtype, what = column.dtype, ""
        if isinstance(dtype, pl.Categorical | pl.Enum | pl.String | pl.Null):
            column = column.cast(pl.String).replace("", None)
            lengths = column.str.len_chars() if kind == "xlsx" else column.str.len_bytes()
            bare = column if kind == "xlsx" else column.str.strip_chars()
            fault = (lengths > LONGEST[kind]) | column.str.contains(_UNSEEN) | (bare != column)
            what = (
                f"texts that are longer than {LONGEST[kind]:,}, or have signs that are not shown or blanks around them"
            )
        elif dtype.is_numeric():
            column = column.cast(pl.Float64).fill_nan(None) + 0.0  # no negative zero
            is_exact = column.is_finite() if dtype.is_float() else column.abs() < EXACT
            fault, what = ~is_exact & column.is_not_null(), "infinite numbers, or whole ones of more than 15 digits"
            fault |= column.abs() >= 2.0**1023
        elif dtype.is_temporal():
            zone = getattr(dtype, "time_zone", None)
            moments = column.cast(pl.Datetime("us"))
            fault = (moments < first) | (moments.dt.truncate("1s") != moments) | pl.Series([zone is not None])
            what = f"moments before {first:%Y-%m-%d}, with parts of seconds, or of a time zone"
        if what and fault.any():
            raise DataError(
                f"column '{column.name}' has {what}, which a file of {PROGRAMS[kind]} does not hold; use the format "
                "csv or parquet, or change it in the source."
            )
        changed.append(column)
    return pl.DataFrame(changed)


def _cells(column: pl.Series) -> pl.Expr:
    """The cells of a sheet that hold a column of a frame, as XML."""
    import polars as pl

    value, dtype = pl.col(column.name), column.dtype
    before, after, text = "<c><v>", "</v></c>", value.cast(pl.String).str.strip_suffix(".0")
    if dtype == pl.String:
        before, after = '<c t="inlineStr"><is><t xml:space="preserve">', "</t></is></c>"
        text = value.str.replace_many(["&", "<", ">"], ["&amp;", "&lt;", "&gt;"])
    elif dtype == pl.Boolean:
        before, text = '<c t="b"><v>', value.cast(pl.Int8).cast(pl.String)
    elif dtype.is_temporal():
        passed = value.cast(pl.Datetime("ms")).dt.epoch("ms") / 86_400_000 + 25_569.0
        # Days and moments look different.
        before, text = '<c s="', pl.when(passed % 1 == 0).then(pl.lit('1"><v>')).otherwise(pl.lit('2"><v>'))
        text += passed.cast(pl.String).str.strip_suffix(".0")
    return pl.concat_str(pl.lit(before), text, pl.lit(after)).fill_null("<c/>")


def sink_workbook(rows: pl.LazyFrame, path: Path, _: Any = None) -> None:
    """Write rows as the sheet "data" of a workbook."""
    import polars as pl

    header = pl.DataFrame({str(place): [name] for place, name in enumerate(rows.collect_schema().names())})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in _BOOK.items():
            part = zipfile.ZipInfo(name)  # of the year 1980
            part.compress_type, part.create_system = zipfile.ZIP_DEFLATED, 0
            with book.open(part, "w") as file:
                begin = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n' + text.format(**_URLS)
                file.write(begin.encode())
                if not name.endswith("sheet1.xml"):
                    continue
                file.write(_sheet_rows(header))
                written, last = 1, header
                for frame in rows.collect_batches(chunk_size=1 << 16, maintain_order=True):
                    written += len(frame)
                    if written > ROWS_OF_SHEET:
                        raise DataError(f"a sheet of Excel has at most {ROWS_OF_SHEET - 1:,} rows; use csv or parquet.")
                    last = _holdable(frame, "xlsx")
                    file.write(_sheet_rows(last))
                if last.tail(1).null_count().sum_horizontal().item() == last.width:
                    raise DataError(
                        "the last row has no value, and programs that read a sheet of Excel leave such rows out; use "
                        "csv or parquet."
                    )
                file.write(b"</sheetData></worksheet>")


def _sheet_rows(frame: pl.DataFrame) -> bytes:
    import polars as pl

    row = pl.concat_str(pl.lit("<row>"), *(_cells(column) for column in frame), pl.lit("</row>"))
    return "".join(frame.select(row.alias("row")).to_series()).encode()


def natural_key(text: str) -> tuple[list[Any], str]:
    """Texts in the order of the numbers in them; those with the same numbers ("1", "01") as texts."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return [float(part) if place % 2 else part for place, part in enumerate(parts)], text


def _coded(frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Texts and truths as codes with labels, where these are few and short."""
    import polars as pl

    labels: dict[str, Any] = {}
    changed = []
    for column in frame:
        texts = column.cast(pl.String) if column.dtype in (pl.Boolean, pl.String) else None
        words = [] if texts is None else sorted(texts.drop_nulls().unique(), key=natural_key)
        if (
            texts is not None
            and 0 < len(words) <= LABELS
            and all(len(word.encode()) <= BYTES_OF_LABEL for word in words)
        ):
            column = texts.replace_strict(words, list(range(1, len(words) + 1)), return_dtype=pl.Int32)
            labels[column.name] = dict(enumerate(words, start=1))
        changed.append(column)
    return pl.DataFrame(changed), labels


def sink_statistics(kind: str, rows: pl.LazyFrame, path: Path, form: FileForm) -> None:
    """Write rows as a file of SPSS or Stata; all of them are in memory for that."""
    import pyreadstat

    titles: Any = {name: title[:LONGEST_TITLE] for name, title in form.titles}
    frame, labels = _coded(_holdable(rows.collect(), kind))
    try:
        if kind == "sav":
            pyreadstat.write_sav(frame, path, column_labels=titles, variable_value_labels=labels, row_compress=True)
        else:
            pyreadstat.write_dta(frame, path, column_labels=titles, variable_value_labels=labels, version=14)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError):
        raise DataError(f"the table cannot be written as a file of {PROGRAMS[kind]}; use csv or parquet.") from None
    with path.open("r+b") as file:  # the moment of writing
        place = 92 if kind == "sav" else file.read(1024).index(b"<timestamp>") + 12
        file.seek(place)
        file.write(b"01 Jan 7000:00:00" if kind == "sav" else b"01 Jan 1970 00:00")
