# SPDX-License-Identifier: Apache-2.0
"""The rows of a data file, from docs/release-folder.md alone. Part of the independent checker: nothing of the package."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from checker_labels import Wrong, canon, need

Row = tuple[Any, ...]


def read_csv(path: Path, texts: Sequence[str], output: Mapping[str, Any]) -> tuple[list[str], list[Row]]:
    """A CSV file: the columns in `texts` are texts, empty where missing; the others numbers, dates or truth values."""
    delimiter, decimal, bom = output.get("delimiter", ","), output.get("decimal", "."), output.get("bom", False)
    need(delimiter in (",", ";", "\t", "|") and decimal in (".", ",") and delimiter != decimal, "signs that are none")
    need(bom in (True, False), "a mark that is none")
    try:
        text = path.read_bytes().decode("utf-8")
        need(text.startswith("\ufeff") or not bom, "the data file has no byte order mark")
        text = text.removeprefix("\ufeff" if bom else "")
        lines = list(csv.reader(StringIO(text, newline=""), strict=True, delimiter=delimiter))
    except (OSError, UnicodeDecodeError, csv.Error):
        raise Wrong("the data file cannot be read") from None
    need(lines and text.endswith("\n"), "the data file is empty, or cut short")
    header, *rows = lines
    if len(header) == 1:  # a missing value alone is an empty line
        rows = [row or [""] for row in rows]
    need(all(len(row) == len(header) for row in rows), "rows have more fields than there are columns, or fewer")
    named = [name in texts for name in header]
    return header, [tuple(plain(v, t, decimal) for v, t in zip(row, named, strict=True)) for row in rows]


def plain(text: str, is_text: bool, decimal: str = ".") -> Any:
    """A field of a CSV file."""
    if text == "" or is_text:
        return ("t", text) if text else None
    if decimal == ",":
        need(":" in text or "." not in text, "a number with a point in place of a comma")
        text = text.replace(",", ".")
    if text in ("true", "false"):
        return ("b", text == "true")
    for kind, read in (("n", Decimal), ("d", date.fromisoformat), ("m", datetime.fromisoformat)):
        try:
            return (kind, read(text))  # type: ignore[operator]
        except (ValueError, InvalidOperation):
            continue
    return ("t", text)


def read_typed(path: Path, _: Sequence[str], __: Mapping[str, Any]) -> tuple[list[str], list[Row]]:
    """A Parquet or Arrow file; beside the released values it holds nothing."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        if path.suffix == ".parquet":
            need(not set(parquet.read_metadata(path).metadata or {}) - {b"ARROW:schema"}, "the file has metadata")
            table = parquet.read_table(path)
        else:
            table = pa.ipc.open_file(pa.BufferReader(path.read_bytes())).read_all()
        table.validate(full=True)
    except (OSError, pa.ArrowException):
        raise Wrong("the data file cannot be read") from None
    need(not table.schema.metadata, "the schema has metadata")
    columns = []
    for entry, column in zip(table.schema, table.columns, strict=True):
        values = column.to_pylist()
        check_words(entry, column, values)
        columns.append([canon(value) for value in values])
    need(len(set(table.column_names)) == len(table.column_names), "a column stands twice in the file")
    return table.column_names, list(zip(*columns, strict=True))


def read_program(path: Path, texts: Sequence[str], _: Mapping[str, Any]) -> tuple[list[str], list[Row]]:
    """A file of Excel, SPSS or Stata: texts of the last two are codes from 1 on, and every code stands in a row."""
    try:
        names, columns = _sheet(path) if path.suffix == ".xlsx" else _labelled(path)
    except (OSError, ValueError, KeyError, ElementTree.ParseError, zipfile.BadZipFile):
        raise Wrong("the data file cannot be read") from None
    words = {"true": True, "false": False}
    for place, name in enumerate(names):
        if name not in texts:
            columns[place] = [words.get(value, value) if isinstance(value, str) else value for value in columns[place]]
    return names, list(zip(*([canon(value) for value in column] for column in columns), strict=True))


def _sheet(path: Path) -> tuple[list[str], list[list[Any]]]:
    with zipfile.ZipFile(path) as book:
        need(len(book.namelist()) == 6 and not book.comment, "the workbook has other parts than it should")
        need(all(part.date_time == (1980, 1, 1, 0, 0, 0) and not part.extra for part in book.infolist()), "a date")
        sheet = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    first = datetime(1899, 12, 30)

    def value(cell: ElementTree.Element) -> Any:
        text = "".join(cell.itertext())
        if cell.get("t") == "inlineStr" or not text:
            return text or None
        if cell.get("t") == "b":
            return text == "1"
        moment = first + timedelta(seconds=round(float(text) * 86_400)) if cell.get("s") else None
        return Decimal(text) if moment is None else moment.date() if cell.get("s") == "1" else moment

    header, *rows = [[value(cell) for cell in row] for row in sheet[0]]
    need(len(sheet) == 1 and all(len(row) == len(header) for row in rows), "rows have more fields or fewer")
    return header, [list(column) for column in zip(*rows, strict=True)] or [[] for _ in header]


def _labelled(path: Path) -> tuple[list[str], list[list[Any]]]:
    import pyreadstat

    read = pyreadstat.read_sav if path.suffix == ".sav" else pyreadstat.read_dta
    frame, about = read(str(path), output_format="polars")
    need(not about.notes and not about.file_label and about.creation_time.year == 1970, "the file has metadata")
    columns = []
    for name in frame.columns:
        words, values = about.variable_value_labels.get(name), frame[name].to_list()
        if words:
            need({value for value in values if value is not None} == set(range(1, len(words) + 1)), "unused labels")
            values = [None if value is None else words[value] for value in values]
        columns.append([None if value == "" else value for value in values])
    return frame.columns, columns


def check_words(entry: Any, column: Any, values: Sequence[Any]) -> None:
    """Dictionaries, and what a column's metadata lists, hold released values only."""
    import pyarrow as pa

    known = set(values)
    if pa.types.is_dictionary(column.type):
        for chunk in column.chunks:
            need(known.issuperset(chunk.dictionary.to_pylist()), "a dictionary holds what is not released")
    for key, text in (entry.metadata or {}).items():
        need(key in (b"_PL_ENUM_VALUES2", b"_PL_CATEGORICAL2"), "a column has metadata")
        rest = text.decode()
        while rest and key == b"_PL_ENUM_VALUES2":
            length, _, rest = rest.partition(";")
            word = rest.encode()[: int(length)].decode()
            need(word in known, "the metadata of a column lists what is not released")
            rest = rest[len(word) :]
