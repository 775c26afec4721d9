# SPDX-License-Identifier: Apache-2.0
"""What a text file of a table looks like: delimiter, header, decimal comma, and the type of each column, from samples
of it.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import IO

import polars as pl

from anonfit.errors import DataError

DELIMITERS = ",;\t|"
PIECE = 1 << 24
"""Bytes of a file that are looked at in one go."""
SAMPLE = 1 << 16
SAMPLE_LINES = 20
LONGEST_HEAD = 1 << 25
"""Bytes that are read to see whole lines, however long they are."""
EXCEL_MARK = re.compile(r"sep=.?", re.IGNORECASE)
UNPACKED = {".gz": 1032, ".zst": 1 << 15}
"""Bytes that a packed byte can become at most."""
# Only texts that are written back as they were read may become numbers: 007 stays a text.
WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
LEADING_ZERO = re.compile(r"-?0\d")
COMMA_NUMBER = re.compile(r"-?\d+,\d+")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
EMPTY_LINES = re.compile(rb"(\r?\n)(?:[ \t]*\r?\n)+")


@dataclass(frozen=True, slots=True)
class CsvShape:
    """How to read a text table. `types` has 'whole', 'number', 'date' or 'text' for each name; `skipped` lines come
    before its first record.
    """

    delimiter: str
    skipped: int
    padded: bool
    decimal_comma: bool
    names: tuple[str, ...]
    types: tuple[str, ...]


def _samples(path: Path) -> tuple[bytes, bool, list[bytes]]:
    """The beginning of the file and whether that is all of it, and stretches of whole lines from its middle and end
    where they can be reached.
    """
    try:
        if path.suffix == ".zst":
            head = _zstd_head(path)
            return head, len(head) < SAMPLE, []
        with _unpacked(path) as file:
            head, is_whole = _head(file)
            more = []
            size = path.stat().st_size
            if path.suffix != ".gz" and size > 4 * SAMPLE:
                for place in (size // 2, size - SAMPLE):
                    file.seek(place)
                    lines = file.read(SAMPLE).split(b"\n")
                    more.append(b"\n".join(lines[1:-1]))
        return head, is_whole, more
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{path.name} cannot be unpacked: it is cut short, or not what its ending says.") from None


def _head(file: IO[bytes]) -> tuple[bytes, bool]:
    """The beginning of a file, as much of it as some lines need, and whether that is all of it."""
    head = file.read(SAMPLE)
    while head.count(b"\n") < SAMPLE_LINES and len(head) < LONGEST_HEAD:
        more = file.read(len(head))
        if not more:
            return head, True
        head += more
    return head, False


def _zstd_head(path: Path) -> bytes:
    """The beginning of a zstd file, through polars, which brings its own decompressor."""
    try:
        lines = pl.read_csv(
            path,
            has_header=False,
            separator="\x01",
            quote_char=None,
            n_rows=500,
            new_columns=["line"],
            infer_schema=False,
        )
    except pl.exceptions.NoDataError:
        return b""
    except pl.exceptions.PolarsError:
        raise DataError(f"{path.name} cannot be unpacked, or is not UTF-8 text.") from None
    return "\n".join(line or "" for line in lines["line"]).encode()


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Records that are no empty lines, each with the number of lines up to its end."""
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    while True:
        try:
            row = next(reader)
        except (StopIteration, csv.Error):
            return
        if row:
            yield reader.line_num, row


def _delimiter(text: str) -> str:
    """The delimiter that divides the first lines into the most, and equally many, fields."""
    best, best_score = ",", (0.0, 0)
    for candidate in DELIMITERS:
        widths = [len(row) for _, (_, row) in zip(range(50), _rows(text, candidate), strict=False)]
        if not widths or widths[0] < 2:
            continue
        same = sum(width == widths[0] for width in widths) / len(widths)
        if (same, widths[0]) > best_score:
            best, best_score = candidate, (same, widths[0])
    return best


def _is_number(text: str) -> bool:
    """Whether a float can hold the number as it is written; longer ones stay texts, so that no digit is lost."""
    if not NUMBER.fullmatch(text):
        return False
    return len(text) <= 15 or Decimal(text) == Decimal(repr(float(text)))


def _type(texts: Sequence[str], missing: frozenset[str], comma: bool) -> str:
    stripped = [text.strip() for text in texts]
    stripped = [text for text in stripped if text and text not in missing]
    if not stripped:
        return "text"
    if all(WHOLE.fullmatch(text) for text in stripped):
        return "whole"
    numbers = [text.replace(",", ".") for text in stripped] if comma else stripped
    if all(_is_number(text) for text in numbers) and not any(LEADING_ZERO.match(text) for text in stripped):
        return "number"
    if all(DAY.fullmatch(text) for text in stripped):
        return "date"
    return "text"


def _looks_like_header(first: Sequence[str], types: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """A header is a line of different names, not numbers, above values of which some column's are otherwise."""
    names = [name.strip() for name in first]
    if any(NUMBER.fullmatch(name) for name in names):
        return False
    if not below or any(kind != "text" for kind in types):
        return True
    if len(set(names)) < len(names):
        return False
    # All text: a first line that stands in the data again is no header.
    return not any(
        name and name in {row[index].strip() for row in below if index < len(row)} for index, name in enumerate(names)
    )


def _faults_of_first_lines(
    text: str, records: Sequence[tuple[int, list[str]]], is_whole: bool, delimiter: str | None
) -> str | None:
    """What of the first lines would make the rest be misread, with the number of the line; None if nothing does.
    `delimiter` is the one that was given.
    """
    if "\0" in text.partition("\n")[0]:
        return "line 1 holds NUL bytes: it is no text, or UTF-16; convert it to UTF-8."
    if not records or (len(records) == 1 and text.count('"') % 2):
        return "line 1 cannot be read: a quote in it is not closed, or a field is too long; mend it."
    number, first = records[0]
    if EXCEL_MARK.fullmatch(text.lstrip().splitlines()[0]):
        return f"line {number} is a note for Excel, not a header; remove it."
    width = len(first)
    if width > 1:
        whole = records if is_whole else records[:-1]
        uneven = next(((line, len(row)) for line, row in whole if len(row) != width), None)
        return uneven and _uneven(uneven[0], uneven[1], width)
    for candidate in DELIMITERS if delimiter is None else ():
        widths = [len(row) for _, row in _rows(text, candidate)][1 : None if is_whole else -1]
        if len(widths) > 1 and widths[0] > 1 and len(set(widths)) == 1:
            return (
                f"line {number} is one field, and those below it have {widths[0]} ({candidate!r} between them): remove "
                "it if it is a title, or declare data.delimiter."
            )
    return None


def _uneven(line: int, fields: int, expected: int) -> str:
    uneven = f"up to line {line} there are {fields}, in the first line {expected}"
    return f"its lines do not have equally many fields: {uneven}."


def sniff(path: Path, *, delimiter: str | None, has_header: bool | None, missing: Sequence[str]) -> CsvShape:
    """Find the shape of a text file; what is given is not searched for."""
    status = path.stat()
    return _sniff(path, delimiter, has_header, tuple(missing), (status.st_size, status.st_mtime_ns))


@lru_cache(maxsize=8)
def _sniff(
    path: Path,
    delimiter: str | None,
    has_header: bool | None,
    missing: tuple[str, ...],
    _state: tuple[int, int],
) -> CsvShape:
    """The shape of a file in a given state: names are asked for before rows, and need not be searched twice."""
    head, is_whole, more = _samples(path)
    if not head.strip():
        raise DataError(f"{path.name} is empty; a table needs at least one row.")
    if b"\n" not in head and (b"\r" in head or not is_whole):
        raise DataError(
            f"{path.name}: line 1 does not end: lines end in carriage returns, or are too long; save it with line "
            "feeds."
        )
    try:
        # A sample may end within a sign: what follows its last line is not needed.
        text = (head if is_whole else head.rpartition(b"\n")[0] + b"\n").decode("utf-8-sig")
        rest = [part.decode("utf-8") for part in more]
    except UnicodeDecodeError:
        raise DataError(f"{path.name} is not UTF-8 text; convert it first, for example with iconv -t UTF-8.") from None
    given, delimiter = delimiter, delimiter or _delimiter(text)
    records = list(_rows(text, delimiter))
    if fault := _faults_of_first_lines(text, records, is_whole, given):
        raise DataError(f"{path.name}: {fault}")
    lines, first = records[0]
    rows = [row for _, row in records]
    below = rows[1:]
    for part in rest:
        below.extend(row for _, row in _rows(part, delimiter) if len(row) == len(first))
    comma = delimiter != "," and any(COMMA_NUMBER.fullmatch(field.strip()) for row in below[:200] for field in row)
    known = frozenset(missing)
    columns = [[row[index] for row in below if index < len(row)] for index in range(len(first))]
    types = [_type(column, known, comma) for column in columns]
    header = has_header if has_header is not None else _looks_like_header(first, types, below)
    # The first name may be empty: so pandas writes its index.
    if header and has_header is None and not all(name.strip() for name in first[1:]):
        raise DataError(
            f"{path.name}: line {lines} looks like a header, and a name in it is empty; mend it (does it end in a "
            "delimiter?), or say data.header = true or false."
        )
    if not header:
        types = [_type([first[index], *column], known, comma) for index, column in enumerate(columns)]
    padded = any(field != field.strip(" ") for row in rows[:50] for field in row)
    names = tuple(name.strip() if header else f"column_{index}" for index, name in enumerate(first, start=1))
    # Lines before the first record of values: the header, and empty ones.
    start, values = records[1] if header and below else records[0]
    skipped = lines if header and len(records) == 1 else start - 1 - sum(field.count("\n") for field in values)
    return CsvShape(delimiter, skipped, padded, comma, names, tuple(types))


def without_empty_lines(path: Path, shape: CsvShape, records: int) -> bytes | None:
    """The file's records without empty lines, if it has any; refuses a file with lines of too few fields. `records` is
    how many it was read as, empty lines included.
    """
    with _unpacked(path) as file:
        for _ in range(shape.skipped):
            file.readline()
        content = file.read()
    outside = content.split(b'"')[::2]  # what is not between quotes
    delimiters = sum(part.count(shape.delimiter.encode()) for part in outside)
    if delimiters == records * (len(shape.names) - 1):
        return None
    kept = [EMPTY_LINES.sub(b"\n", part) for part in outside]
    parts = content.split(b'"')
    parts[::2] = kept
    cleaned = b'"'.join(parts).lstrip(b"\r\n")
    ends = sum(part.count(b"\n") for part in kept) - (cleaned != b'"'.join(parts))
    lines = ends + (not cleaned.endswith(b"\n"))
    if delimiters != lines * (len(shape.names) - 1):
        raise DataError(f"{path.name}: {uneven_line(path, shape)}")
    return cleaned


def uneven_line(path: Path, shape: CsvShape) -> str:
    """The fault of the first line that has not as many fields as it must."""
    expected = len(shape.names)
    if path.suffix != ".zst":
        with _unpacked(path) as file, io.TextIOWrapper(file, "utf-8", errors="replace", newline="") as lines:
            reader = csv.reader(lines, delimiter=shape.delimiter)
            with suppress(csv.Error):
                for row in reader:
                    if row and len(row) != expected:
                        return _uneven(reader.line_num, len(row), expected)
    return "its lines do not have equally many fields, or a carriage return or quote stands within a field."


def has_even_lines(path: Path, shape: CsvShape, records: int) -> bool:
    """Whether a file that was read as so many records has as many delimiters as these need, read piece by piece."""
    if path.suffix == ".zst":
        return True
    delimiters, is_quoted = 0, False
    with _unpacked(path) as file:
        for _ in range(shape.skipped):
            file.readline()
        while piece := file.read(PIECE):
            parts = piece.split(b'"')
            delimiters += sum(part.count(shape.delimiter.encode()) for part in parts[int(is_quoted) :: 2])
            is_quoted ^= len(parts) % 2 == 0
    return delimiters == records * (len(shape.names) - 1)


def unpacked_size(path: Path, most: int) -> int:
    """Bytes of a file when it is unpacked, counted until they are more than `most`: a few may become very many."""
    size = path.stat().st_size
    if size * UNPACKED.get(path.suffix, 1) <= most or path.suffix not in UNPACKED:
        return size
    if path.suffix == ".zst":
        try:
            from pyarrow import CompressedInputStream, OSFile
        except ModuleNotFoundError:
            return size
        opened: IO[bytes] = CompressedInputStream(OSFile(str(path)), "zstd")
    else:
        opened = _unpacked(path)
    size = 0
    try:
        with opened as file:
            while size <= most and (piece := file.read(PIECE)):
                size += len(piece)
    except (OSError, EOFError, zlib.error):
        pass  # whoever reads it tells what is wrong
    return size


def _unpacked(path: Path) -> IO[bytes]:
    """A file, unpacked if it is packed."""
    if path.suffix == ".zst":
        raise DataError(f"{path.name}: lines are empty or too short; unpack it to have them mended.")
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]
