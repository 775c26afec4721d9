# SPDX-License-Identifier: Apache-2.0
"""What a file of Excel, SPSS or Stata holds beside its rows: it is, byte for byte, what is written of its values."""

from __future__ import annotations

import hashlib
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from anonfit.auditing.arrow_messages import UNKNOWN, UNREFERRED, UNUSED
from anonfit.auditing.source_files import read_statistics

_PARTS = [
    "[Content_Types].xml",
    "_rels/.rels",
    "xl/workbook.xml",
    "xl/_rels/workbook.xml.rels",
    "xl/styles.xml",
    "xl/worksheets/sheet1.xml",
]
_FRAME = "0500203e01e927744ca2ac89a1d3c9e0dd082676bd48b819cfe67e3c420eb386"
"""The hash of all parts of a workbook but its sheet."""
_BEGIN = (
    b'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
    b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
)
_END = b"</sheetData></worksheet>"
_WHOLE = ("F8.0", "%12.0g")
"""How files of SPSS and Stata show whole numbers."""
_WRITING = "the moment of writing"


def workbook_faults(path: Path) -> set[str]:
    """Parts lie one behind the other, all but the sheet are always the same, and that is made of its own cells."""
    content, written, directory, texts = path.read_bytes(), b"", b"", []
    with zipfile.ZipFile(path) as book:
        parts = book.infolist()
    for part in parts:
        name, begin = part.filename.encode(), len(written)
        # Packed, without a date, and as long as it says
        about = struct.pack("<5H3L2H", 20, 0, 8, 0, 33, part.CRC, part.compress_size, part.file_size, len(name), 0)
        first = begin + 30 + len(name)
        packed = content[first : first + part.compress_size]
        reader = zlib.decompressobj(-15)
        texts.append(reader.decompress(packed, part.file_size + 1))
        if not reader.eof or reader.unused_data or len(texts[-1]) != part.file_size:
            return {UNREFERRED}
        written += b"PK\3\4" + about + name + packed
        directory += (
            b"PK\1\2" + struct.pack("<H", 20) + about + struct.pack("<3H2L", 0, 0, 0, 0o600 << 16, begin) + name
        )
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(parts), len(parts), len(directory), len(written), 0)
    if content != written + directory + end:
        return {UNREFERRED}
    if [part.filename for part in parts] != _PARTS or hashlib.sha256(b"".join(texts[:-1])).hexdigest() != _FRAME:
        return {"other parts than its sheet"}
    library: Any = import_module("fastexcel")
    try:
        frame = library.read_excel(path).load_sheet(0, schema_sample_rows=None).to_polars()
    except library.FastExcelError:
        return {UNKNOWN}
    header = pl.DataFrame([[name] for name in frame.columns], orient="col")
    spelled = _BEGIN + _spelled(header) + _spelled(frame) + _END
    return set() if texts[-1] == spelled else {"cells that are no values of the table"}


def _spelled(frame: pl.DataFrame) -> bytes:
    """Rows of a sheet, each value in its one spelling."""
    cells = []
    for column in frame:
        kind, text = "<c><v>", column.cast(pl.String)
        if column.dtype == pl.String:
            kind = '<c t="inlineStr"><is><t xml:space="preserve">'
            for sign, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
                text = text.str.replace_all(sign, name, literal=True)
        elif column.dtype == pl.Boolean:
            kind, text = '<c t="b"><v>', column.cast(pl.UInt8).cast(pl.String)
        elif column.dtype.is_temporal():
            days = column.cast(pl.Datetime("ms")).dt.epoch("ms") / 86_400_000 + 25_569
            style = (days != days.round()).cast(pl.Int8).cast(pl.String).replace(["0", "1"], ["1", "2"])
            kind, text = '<c s="', style + '"><v>' + days.cast(pl.String).str.replace(r"\.0$", "")
        else:
            text = text.str.replace(r"\.0$", "")
        end = "</t></is></c>" if column.dtype == pl.String else "</v></c>"
        cells.append(pl.select((kind + pl.lit(text) + end).fill_null("<c/>").alias(column.name)).to_series())
    rows = pl.select(pl.concat_str(pl.lit("<row>"), *cells, pl.lit("</row>"))) if cells else pl.DataFrame()
    return "".join(rows.to_series()).encode() if rows.width else b""


def statistics_faults(path: Path, titles: Mapping[str, str]) -> set[str]:
    """The library that wrote the file writes it once more; codes count from 1 on, and every one stands in a row."""
    library: Any = import_module("pyreadstat")
    kind = path.suffix.removeprefix(".")
    frame, about = read_statistics(path)
    labels = {name: {int(code): str(word) for code, word in words.items()} for name, words in _labels(about).items()}
    faults = set()
    for name, words in labels.items():
        ordered = sorted(words.values(), key=_in_order)
        if set(frame[name].drop_nulls()) != set(words) or list(words.items()) != list(enumerate(ordered, start=1)):
            faults.add(UNUSED)
    frame = frame.with_columns(pl.col(list(labels)).cast(pl.Int32)) if labels else frame
    # Of numbers that are all missing, the library reads no type, but writes one.
    empty = [column.name for column in frame if column.dtype == pl.Null]
    frame = frame.with_columns(
        pl.col(name).cast(pl.Int32 if about.original_variable_types[name] in _WHOLE else pl.Float64) for name in empty
    )
    options: dict[str, Any] = {"row_compress": True} if kind == "sav" else {"version": 14}
    options["column_labels"] = {name: title[:80] for name, title in titles.items()}
    with TemporaryDirectory() as place:
        again = Path(place) / path.name
        try:
            getattr(library, f"write_{kind}")(frame, str(again), variable_value_labels=labels, **options)
        except (library.ReadstatError, library.PyreadstatError):
            return {UNKNOWN}
        expected = again.read_bytes()
    content = path.read_bytes()
    begin = 92 if kind == "sav" else expected.index(b"<timestamp>") + 12
    end = begin + 17
    if content[begin:end] not in (b"01 Jan 7000:00:00", b"01 Jan 1970 00:00"):
        faults.add(_WRITING)
    if content[:begin] + content[end:] != expected[:begin] + expected[end:]:
        faults.add(f"bytes that pyreadstat {version('pyreadstat')} does not write of its values")
    return faults


def _labels(about: Any) -> dict[str, dict[Any, str]]:
    return {name: words for name, words in about.variable_value_labels.items() if words}


def _in_order(text: str) -> tuple[list[tuple[str, float]], str]:
    """Texts by the numbers in them, and those with the same numbers as texts."""
    return [(word, float(number or -1)) for word, number in re.findall(r"(\D*)(\d+(?:\.\d+)?|$)", text)], text
