# SPDX-License-Identifier: Apache-2.0
"""The formats of files for the audit: how they end, how their rows are read, and what the file of a release holds
beside its rows. A new format is one more entry in FORMATS, and no other module of the audit changes but the one that
reads its bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import polars as pl
from polars.exceptions import PanicException, PolarsError

from anonfit.auditing.arrow_messages import UNKNOWN
from anonfit.auditing.file_bytes import ReadForm, arrow_faults, csv_faults
from anonfit.auditing.meanings import JsonObject
from anonfit.auditing.parquet_bytes import parquet_faults
from anonfit.auditing.program_bytes import statistics_faults, workbook_faults
from anonfit.auditing.result import BYTES, Finding
from anonfit.auditing.source_files import FOREIGN
from anonfit.errors import DataError, ReleaseError

DELIMITERS = (",", ";", "\t", "|")
PACKED = (".gz", ".zst")
"""What the name of a packed text file ends with."""
PLAIN = ReadForm()
_NOT_UNDERSTOOD = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError, struct.error),
    *(PolarsError, PanicException, BadZipFile, zlib.error, RuntimeError, ArithmeticError, DataError),
)


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format of files. `scan` reads files that know the types of their columns; None: a text file, which does not.
    `faults` says in words what the file of a release holds beside its rows; of a text file, it is told which columns
    hold texts (None: not known).
    """

    suffixes: tuple[str, ...]
    scan: Callable[[Sequence[Path]], pl.LazyFrame] | None
    faults: Callable[[Path, Collection[str] | None, ReadForm], set[str]]


def foreign_rows(paths: Sequence[Path]) -> pl.LazyFrame:
    """The rows of files of other programs, whose first line names the columns."""
    return pl.concat(FOREIGN[path.suffix.lower()](path, ()) for path in paths).lazy()


def _statistics_faults(path: Path, _texts: Collection[str] | None, form: ReadForm) -> set[str]:
    return statistics_faults(path, dict(form.titles))


FORMATS: Mapping[str, FileFormat] = {
    "csv": FileFormat((".csv", ".tsv", ".txt", ".data"), None, csv_faults),
    "parquet": FileFormat(
        (".parquet", ".pq"),
        lambda paths: pl.scan_parquet(list(paths), glob=False),
        lambda path, _texts, _form: parquet_faults(path),
    ),
    "arrow": FileFormat(
        (".arrow", ".feather", ".ipc"),
        lambda paths: pl.scan_ipc(list(paths), glob=False),
        lambda path, _texts, _form: arrow_faults(path),
    ),
    "xlsx": FileFormat(
        (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), foreign_rows, lambda path, _texts, _form: workbook_faults(path)
    ),
    "sav": FileFormat((".sav", ".zsav", ".por"), foreign_rows, _statistics_faults),
    "dta": FileFormat((".dta",), foreign_rows, _statistics_faults),
}
"""All formats by name, which is also how the data file of a release ends."""


def format_of(path: Path) -> FileFormat | None:
    """The format of a file, by its ending; None if it is not known."""
    name = path.name.lower()
    for known in FORMATS.values():
        packed = [suffix + end for suffix in known.suffixes for end in PACKED] if known.scan is None else []
        if name.endswith((*known.suffixes, *packed)):
            return known
    return None


def endings() -> list[str]:
    """How files end that the audit reads, in short."""
    packed = {name: [f".{name}{end}" for end in PACKED] for name, known in FORMATS.items() if known.scan is None}
    return [ending for name in FORMATS for ending in (f".{name}", *packed.get(name, ()))]


def check_bytes(path: Path, texts: Collection[str] | None = None, form: ReadForm = PLAIN) -> Finding:
    """The file of a release holds its rows and what its format needs, and nothing else; what cannot be understood is
    not taken for good. In a text file, columns that are none of the `texts` (None: not known) hold numbers, dates or
    truth values, each in its one spelling, and signs are as the `form` says.
    """
    faults = {"a link to another file"} if path.is_symlink() else set()
    try:
        faults |= FORMATS[path.suffix.removeprefix(".")].faults(path, texts, form)
    except _NOT_UNDERSTOOD:
        faults.add(UNKNOWN)
    good = "The file holds nothing but its rows and what its format needs."
    bad = f"The file holds more than its rows: {', '.join(sorted(faults))}."
    return Finding(BYTES, [], sorted(faults), not faults, bad if faults else good)


def read_form(output: JsonObject, columns: JsonObject) -> ReadForm:
    """How the data file of a release is laid out; a sign between fields cannot be that before decimals, too."""
    is_titled = FORMATS[output.word("format", tuple(FORMATS), "parquet")].faults is _statistics_faults
    titles = [(name, columns.part(name).get("title", str, None)) for name in columns.entries if is_titled]
    delimiter, decimal = output.word("delimiter", DELIMITERS, ","), output.word("decimal", (".", ","), ".")
    if delimiter == decimal:
        raise ReleaseError("The spec of the manifest has one sign between fields and before decimals.")
    return ReadForm(delimiter, decimal, output.get("bom", bool, False), tuple(title for title in titles if title[1]))
