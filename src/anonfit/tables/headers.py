# SPDX-License-Identifier: Apache-2.0
"""Where the names of columns stand, and what stands above and below a table: of text files and of sheets."""

from __future__ import annotations

import re
from collections.abc import Sequence

from anonfit.errors import DataError
from anonfit.tables.dialects import DATES, Records
from anonfit.tables.layout import Layout
from anonfit.tables.number_signs import DAY, readings_of, type_of
from anonfit.tables.profile_names import meaning_of

WORD = re.compile(r"[^\W\d][\w.]*")
TOTAL = re.compile(
    r"(grand |sub)?total|sum|summe|gesamt\w*|insgesamt|zusammen|average|mean|mittelwert|source:.*|quelle:.*|somme"
    r"|\(?\d+ (rows?|records?)( affected)?\)?",
    re.IGNORECASE,
)


def _filled(row: Sequence[str]) -> int:
    return sum(bool(field.strip()) for field in row)


def without_titles(records: Records, width: int, layout: Layout) -> Records:
    """The records from the header on."""
    if layout.header_row is not None:
        records = [(line, row) for line, row in records if line >= layout.header_row]
        if not records or records[0][0] != layout.header_row:
            raise DataError(f"line {layout.header_row} is no record of names; mend data.header_row.")
        return records
    if layout.header is not None or isinstance(layout.skip_rows, int) or width < 2:
        return records
    start = 0
    while start < len(records) - 1:
        row = records[start][1]
        is_short = len(row) not in (width, width - 1) or (len(row) == width - 1 and width > 2 and _filled(row) < 2)
        if _is_title(records, start, width):
            start += 1
            continue
        if is_short and _filled(row) > max(1, width // 2):
            raise uneven(records[start][0], len(row), width)
        if not is_short and not (_filled(row) == 1 < width - 1):
            break
        start += 1
    return records[start:]


def _is_title(records: Records, place: int, width: int) -> bool:
    """Whether a line of fewer fields stands above a line of names: words only, above numbers."""
    if len(records[place][1]) >= width or len(records) < place + 3 or len(records[place + 1][1]) != width:
        return False
    names, rows = records[place + 1][1], [row for _, row in records[place + 2 :] if len(row) == width]
    has_values = any(all(is_value(row[index].strip()) for row in rows) for index in range(width))
    return has_values and all(name.strip() and not is_value(name.strip()) for name in names)


def uneven(line: int, found: int, expected: int) -> DataError:
    """A line that has not as many fields as it must."""
    return DataError(
        f"line {line} has {found} field(s), and the table {expected}; mend it, or leave it out with skip_rows = "
        f"[{line}] in [data]."
    )


def has_header(first: Sequence[str], below: Sequence[Sequence[str]], types: Sequence[str], line: int) -> bool:
    """Whether a line is a header: names, not numbers, above values of which some column's are otherwise."""
    names = [name.strip() for name in first]
    if any(readings_of([name]) or DAY.fullmatch(name) for name in names):
        return False
    if not below or any(kind != "text" for kind in types):
        return True
    names = names[: len(types)]
    columns = [[row[index].strip() for row in below if index < len(row)] for index in range(len(names))]
    if any(name and name in column for name, column in zip(names, columns, strict=True)):
        return False  # a first line that stands in the data again is no header
    for name, column in zip(names, columns, strict=True):
        repeated = len(set(column)) <= len(column) / 2
        lengths = {len(text) for text in column}
        if meaning_of(name) or repeated or (len(column) > 2 and len(lengths) == 1 and len(name) not in lengths):
            return True
    if all(map(_is_plain_word, filter(None, names))) and not all(
        _is_plain_word(text) for column in columns for text in column
    ):
        return True
    raise DataError(f"line {line} may be a header or a record; write header = true or header = false in [data].")


def _is_plain_word(text: str) -> bool:
    """Whether a text could be a name in a program: a small word of letters and digits."""
    return text == text.lower() and WORD.fullmatch(text) is not None


def refuse_second_header(below: Records, types: Sequence[str], missing: frozenset[str]) -> None:
    """Refuse a table whose first record alone keeps a column from being numbers or dates: a second header, or units."""
    if len(below) < 3:
        return
    line, first = below[0]
    for index, kind in enumerate(types):
        if kind == "text" and index < len(first) and first[index].strip() not in ("", *missing):
            rest = [row[index] for _, row in below[1:] if index < len(row)]
            if not is_value(first[index].strip()) and type_of(rest, missing, Layout())[0] != "text":
                raise DataError(
                    f"line {line} reads like a second header; write header_row = {line} in [data] if the names stand "
                    f"there, or skip_rows = [{line}] to leave it out, or header = true if it is a record."
                )


def is_value(text: str) -> bool:
    """Whether a text is a number, a date or a time."""
    return bool(DATES.fullmatch(text) or readings_of([text]))


def header_of(first: Sequence[str], below: Sequence[Sequence[str]], line: int) -> bool:
    """Whether the first row of a sheet is a header."""
    columns = [[row[index] for row in below] for index in range(len(first))]
    return has_header(first, below, [type_of(column, frozenset(), Layout())[0] for column in columns], line)


def refuse_total(last: Records, others: Sequence[Sequence[str]], layout: Layout) -> None:
    """Refuse a last line that sums the others up."""
    line, row = last[-1]
    words = [field.strip() for field in row if field.strip()]
    if layout.skip_rows is not None or len(others) < 2 or not words or not TOTAL.fullmatch(words[0].rstrip(":")):
        return
    if not any(words[0] == field.strip() for other in others for field in other):
        raise DataError(
            f"line {line} looks like a total or a note below the table; leave it out with skip_rows = [{line}] in "
            "[data], or write skip_rows = 0 if it is a record."
        )
