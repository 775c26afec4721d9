# SPDX-License-Identifier: Apache-2.0
"""What a text file of a table looks like: delimiter, header, decimal comma, and the type of each column, from samples
of it.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from anonfit.errors import DataError

__all__ = ["CsvShape", "sniff"]

DELIMITERS = ",;\t|"
SAMPLE = 1 << 16
# Only texts that are written back as they were read may become numbers: 007 stays a text.
WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
LEADING_ZERO = re.compile(r"-?0\d")
COMMA_NUMBER = re.compile(r"-?\d+,\d+")
DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class CsvShape:
    """How to read a text table. `types` has 'whole', 'number', 'date' or 'text' for each name."""

    delimiter: str
    has_header: bool
    padded: bool
    decimal_comma: bool
    names: tuple[str, ...]
    types: tuple[str, ...]


def _open(path: Path) -> io.BufferedIOBase:
    if path.suffix == ".gz":
        return gzip.open(path, "rb")
    return path.open("rb")


def _samples(path: Path) -> tuple[bytes, list[bytes]]:
    """The beginning of the file, and stretches of whole lines from its middle and end where they can be reached."""
    if path.suffix == ".zst":
        return _zstd_head(path), []
    with _open(path) as file:
        head = file.read(SAMPLE)
        more = []
        size = path.stat().st_size
        if path.suffix != ".gz" and size > 4 * SAMPLE:
            for place in (size // 2, size - SAMPLE):
                file.seek(place)
                lines = file.read(SAMPLE).split(b"\n")
                more.append(b"\n".join(lines[1:-1]))
    return head, more


def _zstd_head(path: Path) -> bytes:
    """The beginning of a zstd file, through polars, which brings its own decompressor."""
    import polars as pl

    lines = pl.read_csv(
        path,
        has_header=False,
        separator="\x01",
        quote_char=None,
        n_rows=500,
        new_columns=["line"],
        infer_schema=False,
    )
    return "\n".join(line or "" for line in lines["line"]).encode()


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            return
        if row:
            yield row


def _delimiter(text: str) -> str:
    """The delimiter that divides the first lines into the most, and equally many, fields."""
    best, best_score = ",", (0.0, 0)
    for candidate in DELIMITERS:
        widths = [len(row) for _, row in zip(range(50), _rows(text, candidate), strict=False)]
        if not widths or widths[0] < 2:
            continue
        same = sum(width == widths[0] for width in widths) / len(widths)
        if (same, widths[0]) > best_score:
            best, best_score = candidate, (same, widths[0])
    return best


def _type(texts: Sequence[str], missing: frozenset[str], comma: bool) -> str:
    found = [text.strip() for text in texts]
    found = [text for text in found if text and text not in missing]
    if not found:
        return "text"
    if all(WHOLE.fullmatch(text) for text in found):
        return "whole"
    numbers = [text.replace(",", ".") for text in found] if comma else found
    if all(NUMBER.fullmatch(text) for text in numbers) and not any(LEADING_ZERO.match(text) for text in found):
        return "number"
    if all(DAY.fullmatch(text) for text in found):
        return "date"
    return "text"


def _looks_like_header(first: Sequence[str], types: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """A header is a line of different names, not numbers, above values of which some column's are otherwise."""
    names = [name.strip() for name in first]
    if len(set(names)) < len(names) or any(not name or NUMBER.fullmatch(name) for name in names):
        return False
    if not below or any(kind != "text" for kind in types):
        return True
    # All text: a first line that stands in the data again is no header.
    return not any(
        name in {row[index].strip() for row in below if index < len(row)} for index, name in enumerate(names)
    )


def sniff(path: Path, *, delimiter: str | None, has_header: bool | None, missing: Sequence[str]) -> CsvShape:
    """Find the shape of a text file; what is given is not searched for."""
    found = path.stat()
    return _sniff(path, delimiter, has_header, tuple(missing), (found.st_size, found.st_mtime_ns))


@lru_cache(maxsize=8)
def _sniff(
    path: Path,
    delimiter: str | None,
    has_header: bool | None,
    missing: tuple[str, ...],
    _state: tuple[int, int],
) -> CsvShape:
    """The shape of a file in a given state: names are asked for before rows, and need not be searched twice."""
    head, more = _samples(path)
    if not head.strip():
        raise DataError(f"{path.name} is empty; a table needs at least one row.")
    try:
        text = head.decode("utf-8-sig", errors="strict" if len(head) < SAMPLE else "ignore")
        rest = [part.decode("utf-8") for part in more]
    except UnicodeDecodeError:
        raise DataError(f"{path.name} is not UTF-8 text; convert it first, for example with iconv -t UTF-8.") from None
    if len(head) >= SAMPLE:
        text = text.rsplit("\n", 1)[0]
    delimiter = delimiter or _delimiter(text)
    rows = list(_rows(text, delimiter))
    first, below = rows[0], rows[1:]
    for part in rest:
        below.extend(row for row in _rows(part, delimiter) if len(row) == len(first))
    comma = delimiter != "," and any(COMMA_NUMBER.fullmatch(field.strip()) for row in below[:200] for field in row)
    known = frozenset(missing)
    columns = [[row[index] for row in below if index < len(row)] for index in range(len(first))]
    types = [_type(column, known, comma) for column in columns]
    header = has_header if has_header is not None else _looks_like_header(first, types, below)
    if not header:
        types = [_type([first[index], *column], known, comma) for index, column in enumerate(columns)]
    padded = any(field != field.strip(" ") for row in rows[:50] for field in row)
    names = (
        tuple(name.strip() for name in first) if header else tuple(f"column_{index + 1}" for index in range(len(first)))
    )
    return CsvShape(delimiter, header, padded, comma, names, tuple(types))
