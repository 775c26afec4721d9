# SPDX-License-Identifier: Apache-2.0
"""The signs that divide the lines of a text file into fields, and those that make the best table of it."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from anonfit.tables.layout import Layout
from anonfit.tables.number_signs import readings_of

DELIMITERS, RARE = ",;\t|", ":^~\x1f"
"""The signs that divide lines, and those that do where none of the first does."""
DATES = re.compile(r"[\d./:T -]+")
MOST_RECORDS = 2000
"""Records of a sample by which delimiters are weighed."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The signs by which lines are divided into fields."""

    delimiter: str = ","
    quote: str = '"'
    """Empty: no sign is around texts."""
    escape: str | None = None
    padded: bool = False
    """Whether blanks may stand before a quote."""

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


Records = list[tuple[int, list[str]]]
"""Records, each with the number of its first line."""


def records_of(text: str, dialect: Dialect, first: int = 1) -> Iterator[tuple[int, list[str]]]:
    """The records of a text that are no empty lines; a fault ends them, and is raised."""
    reader = dialect.reader(io.StringIO(text, newline=""))
    line = first
    for row in reader:
        if row and (len(row) > 1 or row[0].strip()):
            yield line, row
        line = first + reader.line_num


def _whole_records(text: str, dialect: Dialect, layout: Layout, comment: str, *, is_whole: bool) -> Records:
    """The records of a sample up to its first fault, without lines that are left out; the last one may be cut."""
    records: Records = []
    try:
        for line, row in records_of(text, dialect):
            if not (layout.left_out(line) or (comment and row[0].lstrip().startswith(comment))):
                records.append((line, row))
    except csv.Error:
        return records
    return records if is_whole else records[:-1]


def _score(records: Records, dialect: Dialect) -> tuple[float, int]:
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


def found_dialect(text: str, layout: Layout, comment: str, *, is_whole: bool) -> tuple[Dialect, Records]:
    """The signs that make the best table of a text, and its records."""
    best: tuple[tuple[int, float, int], Dialect, Records] | None = None
    tiers = [layout.delimiter] if layout.delimiter is not None else [DELIMITERS, RARE]
    for tier in tiers:
        for sign in tier:
            for dialect in _dialects(text, sign, layout):
                records = _whole_records(text, dialect, layout, comment, is_whole=is_whole)
                covered = records[-1][0] if records else 0
                rank = (covered, *_score(records, dialect))
                # A sign that reads far more of the lines is right, whatever they look like.
                key = (int(rank[1] > 0), rank[1] * covered, rank[2])
                if best is None or key > best[0]:
                    best = key, dialect, records
        if best is not None and best[0][0]:
            break
    assert best is not None
    if not best[0][0]:
        plain = Dialect(layout.delimiter or ",", '"' if layout.quote is None else layout.quote)
        return plain, _whole_records(text, plain, layout, comment, is_whole=is_whole)
    return best[1], best[2]


def _dialects(text: str, sign: str, layout: Layout) -> Iterator[Dialect]:
    """The ways in which texts may be quoted between such delimiters."""
    edge = re.escape(sign)
    quotes = ['"'] if layout.quote is None else [layout.quote]
    if layout.quote is None and '"' not in text and re.search(rf"(^|{edge})'[^'\n]*'({edge}|\r|\n|$)", text, re.M):
        quotes.append("'")
    for quote in quotes:
        yield Dialect(sign, quote)
        if quote and sign != " " and re.search(rf"{edge} +{quote}", text):
            yield Dialect(sign, quote, padded=True)
        if quote and "\\" + quote in text:
            yield Dialect(sign, quote, escape="\\")
