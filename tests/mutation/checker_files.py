# SPDX-License-Identifier: Apache-2.0
"""The rows of a data file, from docs/release-folder.md alone. Part of the independent checker: nothing of the package."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from io import StringIO
from pathlib import Path
from typing import Any

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
