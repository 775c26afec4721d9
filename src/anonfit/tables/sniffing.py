# SPDX-License-Identifier: Apache-2.0
"""What a text file of a table looks like, from samples of it: encoding, header, what stands above and below the table,
decimal signs, and the type of each column. What cannot be told is refused, with the line and the key.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from anonfit.errors import DataError
from anonfit.tables import dialects
from anonfit.tables.dialects import Records, TextDialect
from anonfit.tables.layout import (
    BLANKS,
    FileLayout,
    found_encoding,
    given_layout,
    line_of_fault,
    pieces_of,
    refuse_encoding,
    samples_of,
    spoiled_signs,
)
from anonfit.tables.number_signs import NUMBER, Signs, type_of, types_of

EXCEL_MARK = re.compile(r"sep=(.)\s*", re.IGNORECASE)
SOME_COLUMNS = 1000  # columns by which a header is known; there may be very many
FORMULA = re.compile(r'="[^"]*"')
LINE_END = re.compile(r"\r\n|\r|\n")
INNER_MARK = re.compile("(^|[\r\n])\ufeff+")
NO_TABLES = {
    r"PK\x03\x04": "a workbook, or packed; give it its own ending (.xlsx, .ods), or unpack it",
    r"\x1f\x8b": "packed; give it the ending .csv.gz",
    r"%PDF-|\{\\rtf": "a document; save the table in it as CSV",
    r"\s*<(!doctype|html|head|body|table|\?xml)\b": "HTML or XML; open it in a spreadsheet program and save it as CSV",
    r'\s*(\[\s*)?\{\s*"[^"\n]*"\s*:': "JSON; write one object a line and name it .jsonl",
}
"""What begins like this is no text file of a table."""


@dataclass(frozen=True, slots=True)
class CsvShape:
    """How to read a text table. `types` has 'whole', 'number', 'date' or 'text' for each name, `signs` those of its
    numbers; `skipped` lines come before its first record. A file that `is_plain` needs no mending.
    """

    dialect: TextDialect
    skipped: int
    padded: bool
    names: tuple[str, ...]
    types: tuple[str, ...]
    signs: tuple[Signs, ...]
    encoding: str
    comment: str
    trailing: bool
    has_formulas: bool
    is_plain: bool
    header_line: int | None
    notices: tuple[str, ...]

    @property
    def delimiter(self) -> str:
        """The sign between fields."""
        return self.dialect.delimiter

    @property
    def decimal_comma(self) -> bool:
        """Whether numbers have a comma before their decimals."""
        return any(
            kind == "number" and signs.decimal == "," for kind, signs in zip(self.types, self.signs, strict=True)
        )

    @property
    def by_texts(self) -> bool:
        """Whether values are texts first, because a reader of numbers does not know how they are written."""
        numbers = [signs for kind, signs in zip(self.types, self.signs, strict=True) if kind == "number"]
        return self.padded or len(set(numbers)) > 1 or any(signs.thousands for signs in self.signs)


# --- the shape of a file ------------------------------------------------------------------------------------------


def sniff(path: Path, layout: FileLayout, *, missing: Mapping[str, Sequence[str]]) -> CsvShape:
    """Find the shape of a text file; what is given is not searched for. `missing` are the texts that mean missing,
    under the empty name in all columns and under others in theirs.
    """
    status = path.stat()
    given = FileLayout(**given_layout(layout))
    known = tuple((name, tuple(texts)) for name, texts in missing.items())
    try:
        return _sniff(path, given, known, (status.st_size, status.st_mtime_ns))
    except DataError as error:
        raise DataError(f"{path.name}: {str(error).removeprefix(f'{path.name}: ')}") from None


@lru_cache(maxsize=8)
def _sniff(
    path: Path, layout: FileLayout, missing: tuple[tuple[str, tuple[str, ...]], ...], _state: tuple[int, int]
) -> CsvShape:
    """The shape of a file in a given state: names are asked for before rows, and need not be searched twice."""
    head, is_whole, more = samples_of(path)
    if not head.strip():
        raise DataError("it is empty; a table needs at least one row.")
    _refuse_other_kinds(head)
    encoding, notice = _encoding(path, head, more, layout)
    raw = _decoded(head, encoding, is_whole=is_whole)
    text = INNER_MARK.sub(r"\1", raw).rstrip("\x1a")  # DOS ended files with a sign
    if marked := EXCEL_MARK.match(text):  # Excel's own note of the delimiter is a line of its own
        skipped = (1,) if layout.skip_rows in (None, 0) else layout.skip_rows
        layout = replace(layout, delimiter=layout.delimiter or marked[1], skip_rows=skipped)
    comment = _comment(text, layout)
    dialect, records = dialects.found_dialect(text, layout, comment, is_whole=is_whole)
    if not records:
        raise DataError(
            "line 1 cannot be read: a quote in it is not closed or blanks divide its fields, or a field is too long; "
            'mend it, or write quote = "" or delimiter = " " in [data].'
        )
    stretches = [] if encoding.startswith("utf-16") else [part.decode(encoding, "replace") for part in more]
    sniffing = _Sniffing(layout, dialect, records, comment, raw, stretches, is_whole, dict(missing))
    shape = sniffing.shape(encoding, [*filter(None, [notice]), *spoiled_signs("\n".join([text, *stretches]))])
    if stretches:  # the end of a long file
        rows = [row for row in sniffing.from_stretch(stretches[-1]) if any(field.strip() for field in row)]
        if len(rows) > 1 and len(rows[-1]) == len(shape.names):
            last = sum(piece.count(b"\n") for piece in pieces_of(path)) + (not more[-1].endswith(b"\n"))
            dialects.refuse_total([(last, rows[-1])], rows[:-1], layout)
    return shape


def _refuse_other_kinds(head: bytes) -> None:
    """Refuse what is no text file of a table, whatever its ending says."""
    start = head[:1000].removeprefix(codecs.BOM_UTF8).decode("latin-1")
    for pattern, what in NO_TABLES.items():
        if re.match(pattern, start, re.IGNORECASE):
            raise DataError(f"from line 1 on it is no text file of a table but {what}.")


def _encoding(path: Path, head: bytes, more: Sequence[bytes], layout: FileLayout) -> tuple[str, str | None]:
    """The encoding, given or found, and a notice where it is a guess."""
    if layout.encoding is not None:
        return codecs.lookup(layout.encoding).name.replace("utf-8-sig", "utf-8"), None
    encoding, notice = found_encoding(head)
    for part in more if encoding == "utf-8" else ():
        if line_of_fault(part.split(b"\n"), "utf-8"):
            encoding, notice = found_encoding(part)
            if not head.isascii():
                encoding, notice = None, "utf-8 with lines of another encoding"
            head = part if encoding is None else head
    if encoding is None:
        raise refuse_encoding(path.name, head, notice)
    return encoding, notice


def _decoded(head: bytes, encoding: str, *, is_whole: bool) -> str:
    """The sample as text, without a byte order mark and without what follows its last whole line."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head, final=is_whole)
    except UnicodeError:
        line = line_of_fault(head.split(b"\n"), encoding) if not encoding.startswith("utf-16") else 1
        raise DataError(
            f'line {line or 1} is not {encoding.upper()} text; write data.encoding, such as encoding = "cp1252".'
        ) from None
    text = text.lstrip("\ufeff")
    if "\0" in text.partition("\n")[0]:
        raise DataError("line 1 holds NUL bytes: it is no text; save it anew, or write data.encoding.")
    if "\n" not in text and not is_whole and "\r" not in text:
        raise DataError("line 1 does not end, or is too long; save it with line feeds.")
    return text if is_whole else text[: max(text.rfind("\n"), text.rfind("\r")) + 1]


def _comment(text: str, layout: FileLayout) -> str:
    """What lines begin with that are no records: a sign that the first line has, too."""
    if layout.comment is not None:
        return layout.comment
    lines = [line for line in LINE_END.split(text) if line.strip()]
    marked = [line for line in lines if line.startswith("#")]
    if len(marked) < 2 or marked[0] != lines[0]:
        return ""
    # Where all comments but the last have two signs, the last one has the names.
    twice = [line.startswith("##") for line in marked]
    return "##" if marked == lines[: len(marked)] and all(twice[:-1]) and not twice[-1] else "#"


@dataclass(frozen=True, slots=True)
class _Sniffing:
    """All that was found of a file before its columns are looked at."""

    layout: FileLayout
    dialect: TextDialect
    records: Records
    comment: str
    text: str
    stretches: Sequence[str]
    is_whole: bool
    missing: Mapping[str, tuple[str, ...]]

    def shape(self, encoding: str, notices: list[str]) -> CsvShape:
        """The shape of the file."""
        width = dialects.usual_width(self.records)
        records = dialects.without_titles(self.records, width, self.layout)
        first_line, first = records[0]
        below = records[1:]
        if self._lacks_name(first, below, width):
            if not self._has_row_names(first_line, below):
                raise dialects.refuse_without_name(first_line, len(first))
            first = ["", *first]
            records[0] = first_line, first
        trailing = self._trailing(first, below, width)
        if trailing and not first[-1].strip() and len(first) == width:
            first = first[:-1]
        expected = width - trailing if below else len(first)
        # A record that is like the first one is a header again; rows of values may be alike.
        may_repeat = self.layout.header is not False and len(first) > 1
        may_repeat = may_repeat and not any(dialects.is_value(name.strip()) for name in first[:SOME_COLUMNS])
        again = [line for line, row in below if row == records[0][1]] if may_repeat else []
        if again:
            notices.append(f"line {again[0]} is the header again, and left out.")
            below = [(line, row) for line, row in below if line not in again]
        for line, row in records:
            if len(row) != expected and not (trailing and len(row) == expected + 1 and not row[-1].strip()):
                raise dialects.uneven(line, len(row), expected)
        if below and dialects.is_rule(below[0][1]):
            notices.append(f"line {below[0][0]} is a rule, and left out.")
            below = below[1:]
        if expected == 1 and self.layout.delimiter is None:
            _refuse_blanks(records)
            _refuse_strange_sign(records)
        rows = [row[:expected] for _, row in below]
        rows += self._from_stretches(expected)
        header, names = self._names(first, first_line, rows, expected)
        if not header:
            self._refuse_marked_names(first_line, expected)
            rows = [list(first[:expected]), *rows]
            below = [records[0], *below]
        if len(records) > 1 and self.is_whole:
            dialects.refuse_total(records, [row for _, row in records[1:-1]], self.layout)
        known = {name: frozenset(texts) for name, texts in self.missing.items()}
        types, signs = types_of(rows, names, known, self.layout, (below or records)[0][0])
        if header and self.layout.header is None and self.layout.header_row is None:
            dialects.refuse_second_header(below, types, known[""])
        start = below[0][0] if below else first_line + 1
        if header and self.layout.header_row is None and self._has_words_above(first_line):
            notices.append(f"the names of its columns are taken from line {first_line}; what stands above is left out.")
        sample = [row for _, row in records[:50]]
        formulas = any(FORMULA.fullmatch(field) for row in sample for field in row)
        return CsvShape(
            dialect=self.dialect,
            skipped=start - 1,
            padded=self.dialect.padded or any(field != field.strip(BLANKS) for row in sample for field in row),
            names=names,
            types=types,
            signs=signs,
            encoding=encoding,
            comment=self.comment,
            trailing=trailing,
            has_formulas=formulas,
            is_plain=self._is_plain(encoding, start, records, trailing=trailing) and not (formulas or again),
            header_line=first_line if header else None,
            notices=tuple(notices),
        )

    def _has_words_above(self, line: int) -> bool:
        lines = [part for part in LINE_END.split(self.text)[: line - 1] if part.strip() and not EXCEL_MARK.match(part)]
        return any(not (self.comment and part.startswith(self.comment)) for part in lines)

    def _lacks_name(self, first: Sequence[str], below: Records, width: int) -> bool:
        """Whether the header has a name less than there are fields that are not always empty."""
        rows = [row for _, row in below if len(row) == width]
        is_short = len(first) == width - 1 and self.layout.header is not False and all(name.strip() for name in first)
        return is_short and len(rows) > 1 and any(row[-1].strip() for row in rows)

    def _has_row_names(self, line: int, below: Records) -> bool:
        """Whether the name of the first column is lacking, as R writes row names: numbers that rise, all in quotes. It
        is told, or sure only so: fields with the delimiter within, such as 1,72, make as many fields.
        """
        if self.layout.header:
            return True
        lines = LINE_END.split(self.text)
        if not all(lines[number - 1].startswith('"') for number in (line, *(number for number, _ in below))):
            return False
        ids = [row[0].strip() for _, row in below]
        numbers = [int(text) for text in ids if text.isdigit()]
        return len(numbers) == len(ids) and numbers == sorted(set(numbers))

    def _refuse_marked_names(self, first_line: int, expected: int) -> None:
        """Refuse a table without names below a comment that has as many words."""
        if not self.comment or self.layout.comment is not None or self.layout.header is False or expected < 2:
            return
        lines = LINE_END.split(self.text)[: first_line - 1]
        line = max((place for place, text in enumerate(lines, 1) if text.startswith(self.comment)), default=0)
        if line and len(lines[line - 1].split(self.dialect.delimiter)) == expected:
            raise DataError(
                f'line {line} may have the names of the columns; write comment = "" and header_row = {line} in [data] '
                "if so, or header = false."
            )

    def _trailing(self, first: Sequence[str], below: Records, width: int) -> bool:
        """Whether every line ends in a delimiter: a field after the last one that is always empty."""
        if width < 2 or not below or len(first) not in (width, width - 1):
            return False
        is_named = bool(first[-1].strip()) if len(first) == width else not all(name.strip() for name in first)
        return not is_named and not any(row[-1].strip() for _, row in below if len(row) == width)

    def _from_stretches(self, expected: int) -> list[list[str]]:
        """Records from the middle and the end of a long file."""
        records: list[list[str]] = []
        for part in self.stretches:
            records += [row[:expected] for row in self.from_stretch(part) if len(row) >= expected]
        return records

    def from_stretch(self, part: str) -> list[list[str]]:
        """The records of a stretch of a long file; none where its quotes cannot be told."""
        with suppress(csv.Error):
            return [row for _, row in dialects.records_of(part, self.dialect)]
        return []

    def _names(
        self, first: Sequence[str], line: int, rows: Sequence[Sequence[str]], expected: int
    ) -> tuple[bool, tuple[str, ...]]:
        """Whether the first record has the names of the columns, and these."""
        plain = frozenset(self.missing[""])
        types = [
            type_of([row[index] for row in rows if index < len(row)], plain, self.layout)[0]
            for index in range(min(expected, SOME_COLUMNS))
        ]
        header = self.layout.header if self.layout.header_row is None else True
        if header is None:
            header = dialects.has_header(first, rows, types, line)
            # The first name may be empty: so pandas writes its index.
            if header and not all(name.strip() for name in first[1:]):
                raise DataError(
                    f"line {line} looks like a header, and a name in it is empty; mend it, or say where the names "
                    "stand: header_row = N, or header = false, in [data]."
                )
        if not header:
            return False, tuple(f"column_{index}" for index in range(1, expected + 1))
        names = [name.strip() for name in first]
        names[0] = names[0].lstrip("#").strip() if names[0].startswith("#") and len(names) > 1 else names[0]
        dialects.refuse_same_names(names, line)
        return True, tuple(names)

    def _is_plain(self, encoding: str, start: int, records: Records, *, trailing: bool) -> bool:
        """Whether a plain reader reads the file rightly."""
        text, dialect, skipped = self.text, self.dialect, self.layout.skip_rows
        # A record of nothing at the end is none.
        last = self.stretches[-1].rstrip("\r\n").rpartition("\n")[2] if self.stretches else ""
        ends_empty = bool(last.strip()) and not last.strip("\r " + dialect.delimiter)
        ends_empty = ends_empty or not any(field.strip() for field in records[-1][1])
        return (
            encoding == "utf-8"
            and not (dialect.escape or dialect.padded or trailing or self.comment or ends_empty)
            and (dialect.quote == '"' or (not dialect.quote and '"' not in text))
            and not re.search(r"\r(?!\n|\Z)", text)
            and not {"\ufeff", "\x1a"} & set(text)
            and (not isinstance(skipped, tuple) or all(line < start for line in skipped))
        )


def _refuse_blanks(records: Records) -> None:
    """Refuse lines of one field that blanks divide into columns with numbers."""
    parts = [row[0].split() for _, row in records if row]
    if len(parts) < 3 or len(parts[0]) < 2 or len({len(part) for part in parts}) > 1:
        return
    if any(all(NUMBER.fullmatch(part[index]) for part in parts[1:]) for index in range(len(parts[0]))):
        raise DataError(
            f'line {records[0][0]} seems to be divided by blanks; write delimiter = " " in [data] if one blank divides '
            "fields, or save the file with commas."
        )


def _refuse_strange_sign(records: Records) -> None:
    """Refuse lines of one field in which a sign that is seldom one of words stands equally often in every line."""
    texts = [row[0] for _, row in records if row]
    for sign in dict.fromkeys(texts[0]) if len(texts) > 2 else ():
        if sign.isalnum() or sign.isspace() or sign in "._-/@()[]'\":,":
            continue
        if all(text.count(sign) == texts[0].count(sign) for text in texts):
            is_possible = sign.isprintable() and sign.isascii()
            how = f'write delimiter = "{sign}" in [data]' if is_possible else "save the file with commas"
            raise DataError(
                f'line {records[0][0]} may be divided by {sign!r}; {how} if so, or write delimiter = "," if it has one '
                "column."
            )
