# SPDX-License-Identifier: Apache-2.0
"""Text files that a plain reader would misread, rewritten record by record: in UTF-8, quoted where needed, without what
is no record. A line that is not like the others is refused by its number.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from anonfit.errors import DataError
from anonfit.tables.dialects import TextDialect, uneven
from anonfit.tables.layout import FileLayout, line_of_fault, unpacked
from anonfit.tables.sniffing import FORMULA, CsvShape

BATCH = 1 << 16  # records that are rewritten in one go


def line_of(path: Path, shape: CsvShape, layout: FileLayout, record: int) -> int:
    """The line at which a record begins; the first record is 0."""
    numbers = (line for line, row in _lines(path, shape) if any(row) and not layout.left_out(line))
    return next(islice(numbers, record, None), shape.skipped + 1 + record)


def plain(shape: CsvShape) -> CsvShape:
    """The shape of a file that was mended."""
    return replace(shape, dialect=TextDialect(shape.delimiter), skipped=0, is_plain=True, encoding="utf-8")


def mended(path: Path, shape: CsvShape, layout: FileLayout) -> Iterator[bytes]:
    """The records of a text file in pieces of a plain one, with the same delimiter and no header."""
    try:
        buffer = io.StringIO(newline="")
        writer = csv.writer(buffer, delimiter=shape.delimiter, lineterminator="\n")
        for number, row in enumerate(_records(path, shape, layout), start=1):
            writer.writerow(row)
            if number % BATCH == 0:
                yield buffer.getvalue().encode()
                buffer.seek(0)
                buffer.truncate()
        yield buffer.getvalue().encode()
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from None
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{path.name} cannot be read: it is cut short, or not what its ending says.") from None


def _records(path: Path, shape: CsvShape, layout: FileLayout) -> Iterator[list[str]]:
    """The records, each with as many fields as there are names."""
    expected, empty = len(shape.names), 0
    for line, row in _lines(path, shape):
        if not row or (len(row) == 1 < expected and not row[0].strip().strip("\x1a")) or layout.left_out(line):
            continue
        if shape.comment and row[0].lstrip().startswith(shape.comment):
            continue
        if len(row) == expected + 1 and shape.trailing and not row[-1].strip():
            del row[-1]
        if len(row) != expected:
            raise uneven(line, len(row), expected)
        if shape.header_line is not None and expected > 1 and tuple(field.strip() for field in row) == shape.names:
            continue  # files that were put together have their header again
        if expected > 1 and not any(field and not field.isspace() for field in row):
            empty += 1  # records of nothing at the end of a file are no records
            continue
        for _ in range(empty):
            yield [""] * expected
        empty = 0
        yield [field[2:-1] if FORMULA.fullmatch(field) else field for field in row] if shape.has_formulas else row


def _lines(path: Path, shape: CsvShape) -> Iterator[tuple[int, list[str]]]:
    """The records of a file, each with the number of its first line."""
    with unpacked(path) as file, io.TextIOWrapper(file, shape.encoding, newline="") as lines:
        line = 0
        try:
            for _ in range(shape.skipped):
                lines.readline()
            line = shape.skipped + 1
            reader = shape.dialect.reader(_without_mark(lines))
            for row in reader:
                yield line, row
                line = shape.skipped + reader.line_num + 1
        except UnicodeError:
            if not shape.encoding.startswith(("utf-16", "utf-32")):  # their lines do not end in a byte
                with unpacked(path) as again:
                    line = line_of_fault(again, shape.encoding) or line
            raise DataError(
                f"line {line} is not {shape.encoding.upper()} text as those above it are; write data.encoding, or "
                "mend it."
            ) from None
        except csv.Error as error:
            what = (
                "a quote is not closed, or stands within a field"
                if "expected" in str(error) or "end" in str(error)
                else "a field is too long, or a sign is none of text"
            )
            raise DataError(
                f'line {line} cannot be read: {what}; mend it, or say how texts are quoted: quote = "\'" or quote = '
                '"" in [data].'
            ) from None


def _without_mark(lines: Iterator[str]) -> Iterator[str]:
    """Lines without byte order marks before them: files that were put together have them within."""
    for line in lines:
        yield line.lstrip("\ufeff") if line.startswith("\ufeff") else line
