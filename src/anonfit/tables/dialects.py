# SPDX-License-Identifier: Apache-2.0
"""The signs that divide the lines of a text file into fields, those that make the best table of it, where the names of
columns stand, and what stands above and below a table: of text files and of sheets.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any

from anonfit.errors import DataError, counted
from anonfit.tables.layout import FileLayout
from anonfit.tables.number_signs import DAY, readings_of, type_of
from anonfit.tables.profile_columns import meaning_of

DELIMITERS, RARE = ",;\t|", ":^~\x1f\x01"  # the signs that divide lines, and those that do where none of the first does
DATES = re.compile(r"[\d./:T -]+")
MOST_RECORDS = 2000  # records of a sample by which delimiters are weighed


@dataclass(frozen=True, slots=True)
class TextDialect:
    """The signs by which lines are divided into fields."""

    delimiter: str = ","
    quote: str = '"'  # empty: no sign is around texts
    escape: str | None = None
    padded: bool = False  # whether blanks may stand before a quote

    def reader(self, lines: Iterator[str] | io.StringIO) -> Any:
        """The records of lines; `line_num` of it says how many lines were read."""
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quote or None,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            escapechar=self.escape,
            doublequote=self.escape is None,
            skipinitialspace=self.padded,
            strict=True,
        )


Records = list[tuple[int, list[str]]]  # records, each with the number of its first line


def records_of(text: str, dialect: TextDialect) -> Iterator[tuple[int, list[str]]]:
    """The records of a text that are no empty lines; a fault ends them, and is raised."""
    reader = dialect.reader(io.StringIO(text, newline=""))
    line = 1
    for row in reader:
        if row and (len(row) > 1 or row[0].strip()):
            yield line, row
        line = 1 + reader.line_num


def _whole_records(text: str, dialect: TextDialect, layout: FileLayout, comment: str, *, is_whole: bool) -> Records:
    """The records of a sample up to its first fault, without lines that are left out; the last one may be cut."""
    records: Records = []
    try:
        for line, row in records_of(text, dialect):
            if not (layout.left_out(line) or (comment and row[0].lstrip().startswith(comment))):
                records.append((line, row))
    except csv.Error:
        return records
    return records if is_whole else records[:-1]


def _score(records: Records, dialect: TextDialect) -> tuple[float, int]:
    """How much of a table a delimiter makes of lines: as many fields in each, and fields that are values."""
    some = records[:MOST_RECORDS]
    width = usual_width(some)
    if width < 2:
        return 0.0, width
    body = [row for _, row in some if len(row) == width]
    fields_of = [field.strip() for row in body[:200] for field in row[:500]]
    others = set(DELIMITERS) - {dialect.delimiter}
    simple = sum(
        not others & set(field) or bool(DATES.fullmatch(field)) or bool(readings_of([field])) for field in fields_of
    )
    return round(len(body) / len(some) * simple / len(fields_of), 6), width


def usual_width(records: Records) -> int:
    """The number of fields that most records have; of equally frequent ones the larger."""
    widths = Counter(len(row) for _, row in records)
    return max(widths, key=lambda width: (widths[width], width), default=0)


def found_dialect(text: str, layout: FileLayout, comment: str, *, is_whole: bool) -> tuple[TextDialect, Records]:
    """The signs that make the best table of a text, and its records."""

    def weighed(dialect: TextDialect) -> tuple[tuple[float, int], TextDialect, Records]:
        records = _whole_records(text, dialect, layout, comment, is_whole=is_whole)
        score, width = _score(records, dialect)
        # A sign that reads far more of the lines is right, whatever they look like.
        return (score * (records[-1][0] if records else 0), width), dialect, records

    common = [" "] if BLANKS_AND_QUOTES.match(text) else [DELIMITERS, RARE]
    for signs in common if layout.delimiter is None else [layout.delimiter]:
        dialects = (dialect for sign in signs for dialect in _dialects(text, sign, layout))
        all_weighed = list(map(weighed, dialects))
        (score, width), dialect, records = max(all_weighed, key=itemgetter(0))
        if score > 0:
            for _, other, read in all_weighed if signs == DELIMITERS else ():
                _refuse_either(dialect, records, width, other, read)
            if layout.delimiter is None and width == 2 and _has_one_column(records, dialect.delimiter):
                break
            return dialect, records
    nowhere = next((sign for sign in (",", *RARE) if sign not in text), ",")
    plain = TextDialect(layout.delimiter or nowhere, '"' if layout.quote is None else layout.quote)
    return plain, _whole_records(text, plain, layout, comment, is_whole=is_whole)


def _has_one_column(records: Records, sign: str) -> bool:
    """Whether two fields below one name are one: a number with decimals, or a list with blanks in it."""
    (_, names), *below = records
    pairs = [row for _, row in below if len(row) == 2]
    if len(names) != 1 or len(pairs) < max(len(below), 2):
        return False
    are_lists = all(second.startswith(" ") and not is_value(first) for first, second in pairs)
    return are_lists or (sign == "," and all(re.fullmatch(r"-?\d+,\d+", ",".join(row)) for row in pairs))


def _refuse_either(best: TextDialect, records: Records, width: int, other: TextDialect, read: Records) -> None:
    """Refuse lines that another sign divides as evenly, names and all, and into no fewer fields."""
    widths = {len(row) for _, row in read}
    names = [name for name in records[0][1] if other.delimiter in name]
    if other.delimiter == best.delimiter or len(widths) != 1 or min(widths) < width or len(read) < len(records):
        return
    if names and not any(is_value(name.strip()) or f"{other.delimiter} " in name for name in names):
        raise DataError(
            f"line {records[0][0]} may be divided by {best.delimiter!r} or by {other.delimiter!r}; write delimiter = "
            f'"{best.delimiter}" or another in [data].'.replace("\t", "\\t")
        )


def _dialects(text: str, sign: str, layout: FileLayout) -> Iterator[TextDialect]:
    """The ways in which texts may be quoted between such delimiters."""
    edge = re.escape(sign)
    quotes = ['"'] if layout.quote is None else [layout.quote]
    if layout.quote is None and '"' not in text and re.search(rf"(^|{edge})'[^'\n]*'({edge}|\r|\n|$)", text, re.M):
        quotes.append("'")
    for quote in quotes:
        yield TextDialect(sign, quote)
        if quote and sign != " " and re.search(rf"{edge} +{quote}", text):
            yield TextDialect(sign, quote, padded=True)
        if quote and "\\" + quote in text:
            yield TextDialect(sign, quote, escape="\\")


WORD = re.compile(r"[^\W\d][\w.]*")
BLANKS_AND_QUOTES = re.compile(r'"[^"\n]*"( "[^"\n]*")+[\r\n]')
RULE = re.compile(r":?[-=+_*]{2,}:?")
YEARS = range(1900, 2101)
TOTAL = re.compile(
    r"(grand |sub)?total|sum|summe|gesamt\w*|insgesamt|zusammen|average|mean|mittelwert|source:.*|quelle:.*|somme"
    r"|\(?\d+ (rows?|records?)( affected)?\)?",
    re.IGNORECASE,
)


def without_titles(records: Records, width: int, layout: FileLayout) -> Records:
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
        line, row = records[start]
        filled = sum(bool(field.strip()) for field in row)
        is_short = len(row) not in (width, width - 1) or (len(row) == width - 1 and width > 2 and filled < 2)
        if not _is_title(records, start, width):
            if is_short and filled > max(1, width // 2):
                raise uneven(line, len(row), width)
            if not is_short and not (filled == 1 < width - 1):
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
        f"line {line} has {counted(found, 'field')}, and the table {expected}; mend it, or leave it out with "
        f"skip_rows = [{line}] in [data]."
    )


def refuse_without_name(line: int, found: int) -> DataError:
    """A header that has a name less than there are fields: row names, or fields that have the delimiter within."""
    if found == 1:
        return DataError(
            f"line {line} has one name, and the lines below it have two fields; write a delimiter that is not in them, "
            'such as delimiter = "~", in [data] if the table has one column, or header = true if row names come first.'
        )
    return DataError(
        f"line {line} has {found} names, and the lines below it have {found + 1} fields; write header = true in [data] "
        "if the first of them is the name of a row, else mend fields that have the delimiter within."
    )


def has_header(first: Sequence[str], below: Sequence[Sequence[str]], types: Sequence[str], line: int) -> bool:
    """Whether a line is a header: names, not numbers, above values of which some column's are otherwise."""
    names = [name.strip() for name in first]
    if any(readings_of([name]) or DAY.fullmatch(name) for name in names):
        if _may_name_years(names, below):
            raise _either_header(line)
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
    texts = [text for column in columns for text in column]
    if all(map(_is_plain_word, filter(None, names))) and not all(map(_is_plain_word, texts)):
        return True
    raise _either_header(line)


def _either_header(line: int) -> DataError:
    return DataError(f"line {line} may be a header or a record; write header = true or header = false in [data].")


def _may_name_years(names: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether numbers of a first line are years that name columns: what stands below them is not of years."""
    places = [place for place, name in enumerate(names) if is_value(name)]
    if not all(names[place].isdigit() and int(names[place]) in YEARS for place in places):
        return False
    columns = [[row[place].strip() for row in below if place < len(row)] for place in places]
    is_other = all(not any(text.isdigit() and int(text) in YEARS for text in column) for column in columns)
    is_known = len({names[place] for place in places}) > 1 or any(meaning_of(name) for name in names)
    return bool(below) and is_other and is_known


def _is_plain_word(text: str) -> bool:
    """Whether a text could be a name in a program: a small word of letters and digits."""
    return text == text.lower() and WORD.fullmatch(text) is not None


def is_rule(row: Sequence[str]) -> bool:
    """Whether a record is a rule between lines: dashes, and nothing else."""
    fields = [field.strip() for field in row if field.strip()]
    return len(fields) > 1 and all(map(RULE.fullmatch, fields))


def refuse_same_names(names: Sequence[str], line: int) -> None:
    """Refuse columns of one name. They are counted, not named: a line that is taken for a header may be a record."""
    times = Counter(names)
    twice = [str(place) for place, name in enumerate(names, start=1) if times[name] > 1]
    if twice:
        more = f" and {len(twice) - 6} more" if len(twice) > 6 else ""
        raise DataError(
            f"in line {line}, column names stand twice: those of columns {', '.join(twice[:6])}{more}; rename them, or "
            f"write header = false and skip_rows = {line} in [data]."
        )


def refuse_second_header(below: Records, types: Sequence[str], missing: frozenset[str]) -> None:
    """Refuse a table whose first record alone keeps a column from being numbers or dates: a second header, or units;
    and one with a line of words below an empty line, where what stands above it are numbers: another table.
    """
    _refuse_second_table(below, missing)
    if len(below) < 3:
        return
    line, first = below[0]
    for index, kind in enumerate(types):
        if kind == "text" and index < len(first) and first[index].strip() not in ("", *missing):
            rest = [row[index] for _, row in below[1:] if index < len(row)]
            if not is_value(first[index].strip()) and type_of(rest, missing, FileLayout())[0] != "text":
                raise DataError(
                    f"line {line} reads like a second header; write header_row = {line} in [data] if the names stand "
                    f"there, or skip_rows = [{line}] to leave it out, or header = true if it is a record."
                )


def _refuse_second_table(below: Records, missing: frozenset[str]) -> None:
    numbers = set(range(len(below[0][1]))) if below else set()  # columns that had values only
    for (above, before), (line, row) in pairwise(below):
        fields = [field.strip() for field in row]
        numbers &= {place for place, field in enumerate(before) if is_value(field.strip()) or field.strip() in missing}
        is_words = all(field and field not in missing and not is_value(field) for field in fields)
        if line > above + 1 + sum(field.count("\n") for field in before) and numbers and is_words:
            raise DataError(
                f"line {line} reads like the header of another table; make a file of each, or write header = true in "
                "[data] if it is a record."
            )


def is_value(text: str) -> bool:
    """Whether a text is a number, a date or a time."""
    return bool(DATES.fullmatch(text) or readings_of([text]))


def header_of(first: Sequence[str], below: Sequence[Sequence[str]], line: int) -> bool:
    """Whether the first row of a sheet is a header."""
    columns = [[row[index] for row in below] for index in range(len(first))]
    return has_header(first, below, [type_of(column, frozenset(), FileLayout())[0] for column in columns], line)


def refuse_total(last: Records, others: Sequence[Sequence[str]], layout: FileLayout) -> None:
    """Refuse a last line that sums the others up."""
    line, row = last[-1]
    words = [field.strip() for field in row if field.strip()]
    if layout.skip_rows is not None or len(others) < 2 or not words:
        return
    has_gap = len(words) < len(row) and TOTAL.fullmatch(words[0].split()[0].rstrip(":")) is not None
    if not (has_gap or TOTAL.fullmatch(words[0].rstrip(":")) or _is_sum(row, others)):
        return
    if not any(words[0] == field.strip() for other in others for field in other):
        raise DataError(
            f"line {line} looks like a total or a note below the table; leave it out with skip_rows = [{line}] in "
            "[data], or write skip_rows = 0 if it is a record."
        )


def _is_sum(row: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Whether a line has nothing but the sum of a column of whole numbers above it."""
    places = [place for place, field in enumerate(row) if field.strip()]
    if len(places) != 1 or len(row) < 3 or len(others) < 3:
        return False
    above = [other[places[0]].strip() for other in others if places[0] < len(other)]
    whole = [text for text in (*above, row[places[0]].strip()) if re.fullmatch(r"\d{1,15}", text)]
    return len(whole) == len(above) + 1 and sum(map(int, whole[:-1])) == int(whole[-1])
