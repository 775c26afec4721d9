# SPDX-License-Identifier: Apache-2.0
"""The bytes of a Parquet file: each belongs to a page, to the footer or to what these must have, and dictionaries,
statistics and metadata tell nothing but what the rows tell.

Pages of rows are unpacked, and the numbers in them are read one by one: they end where the rows do. Of a dictionary,
they show one row of every entry that is used. If that is every entry, and the values that polars reads in these rows
differ and are as long as the dictionary, it has room for no other value; and the least and the greatest of them are
those of all rows, so that no other row has to be looked at."""

from __future__ import annotations

import base64
import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from io import BytesIO
from itertools import pairwise
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anonfit.auditing.arrow_messages import (
    UNKNOWN,
    UNREFERRED,
    UNUSED,
    ZSTANDARD,
    bytes_of,
    frame_end,
    message_faults,
)

Struct = Mapping[int, Any]  # from a field's number to its value
Spans = list[tuple[int, int]]
_MAGIC = b"PAR1"
_MAKER = re.compile(
    rb"[Pp]olars( \(python\))?( version \d{1,3}(\.\d{1,3}){1,3}(-?(a|alpha|b|beta|rc)\.?\d{1,2})?)?"
    rb"( \(build ([0-9a-f]{7,40}|unknown)\))?"
)
_TRUTH, _BYTES, _FIXED = 0, 6, 7  # physical types
_WIDTHS = {1: 4, 2: 8, 4: 4, 5: 8}  # of whole and floating point numbers
_ROWS_PAGE, _DICTIONARY_PAGE, _ZSTD, _PLAIN, _BY_DICTIONARY = 0, 2, 6, 0, 8
_RUNS = 3  # how it is encoded which values are missing
_ENCODINGS = {_PLAIN, 2, _RUNS, _BY_DICTIONARY}
_STATISTICS = 12  # the number of this field of a column's description
_ENDS = (1, 2, 5, 6)  # of statistics: the greatest and the least value
_CELLS = 1 << 24  # that are read at once


@dataclass(slots=True)
class _ThriftReader:
    """Reads what Thrift's compact protocol writes: structs as dictionaries from a field's number to its value."""

    data: bytes | mmap
    place: int

    def varint(self) -> int:
        number = 0
        for shift in range(0, 70, 7):
            byte = self.data[self.place]
            self.place += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise ValueError("a number too long")

    def whole(self) -> int:
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def text(self) -> bytes:
        length = self.varint()
        self.place += length
        return bytes(self.data[self.place - length : self.place])

    def value(self, kind: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            self.place += 1
            return self.data[self.place - 1]
        reads = {4: self.whole, 5: self.whole, 6: self.whole, 8: self.text, 9: self.many, 10: self.many}
        return self.struct() if kind == 12 else reads[kind]()

    def many(self) -> list[Any]:
        self.place += 1
        head = self.data[self.place - 1]
        kind = head & 15
        count = head >> 4 if head >> 4 < 15 else self.varint()
        # A truth in a list is a byte of its own.
        return [self.value(3 if kind in (1, 2) else kind) for _ in range(count)]

    def struct(self) -> dict[int, Any]:
        entries, number = dict[int, Any](), 0
        while head := self.data[self.place]:
            self.place += 1
            number = number + (head >> 4) if head >> 4 else self.whole()
            if number in entries:  # readers see one of both
                raise ValueError("a field twice")
            entries[number] = self.value(head & 15)
        self.place += 1
        return entries


@dataclass(frozen=True, slots=True)
class _Page:
    """A page of rows: which they are, where its body is, how long, how long unpacked, and how values are encoded."""

    rows: tuple[int, int]  # the first and the one after the last
    place: int
    length: int
    unpacked: int
    encoding: int
    is_packed: bool


@dataclass(slots=True)
class _Chunk:
    """A column's part of a row group."""

    name: str
    rows: tuple[int, int]
    kind: int
    width: int  # of values of a fixed size
    is_packed: bool
    pages: list[_Page] = field(default_factory=list)
    places: list[dict[int, int]] = field(default_factory=list)  # of pages of rows, as an index has them
    statistics: list[tuple[tuple[int, int], Struct]] = field(default_factory=list)  # of which rows
    dictionary: tuple[bytes, int, int] | None = None  # its entries, their number and their length


def parquet_faults(path: Path) -> set[str]:
    """What a file holds beside its rows, in words."""
    with path.open("rb") as file, mmap(file.fileno(), 0, access=1) as data:
        begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        reader = _ThriftReader(data, begin)
        footer, rows = reader.struct(), pl.scan_parquet(path, glob=False)
        schema = rows.collect_schema()
        faults = _metadata_faults(footer, schema)
        parts = [(0, 4)]
        chunks = list(_chunks(data, footer, list(schema), parts, faults))
        is_whole = data[:4] == data[-4:] == _MAGIC and reader.place == len(data) - 8
    if not is_whole or any(part[1] != following[0] for part, following in pairwise(sorted([*parts, (begin, begin)]))):
        faults.add(UNREFERRED)
    if faults:  # reading rows by lengths that are wrong could end in no memory
        return faults
    of_column: dict[str, list[_Chunk]] = {}
    for chunk in chunks:
        of_column.setdefault(chunk.name, []).append(chunk)
    names, width = list(of_column), max(os.cpu_count() or 1, _CELLS // max(1, footer[3]))
    with ThreadPoolExecutor() as pool:
        for begin in range(0, len(names), width):
            columns = rows.select(names[begin : begin + width]).collect().get_columns()
            checked = pool.map(lambda column: _column_faults(path, column, of_column[column.name]), columns)
            faults = faults.union(*checked)
    return faults


def _metadata_faults(footer: dict[int, Any], schema: pl.Schema) -> set[str]:
    """The footer's texts are names of columns, the name of the writer, and the columns' types in Arrow's words."""
    notes = footer.pop(5, [])
    if [note.get(1) for note in notes] not in ([], [b"ARROW:schema"]):
        return {"metadata"}
    faults = message_faults(base64.b64decode(notes[0][2], validate=True), schema) if notes else set()
    parts, orders = [part for group in footer[4] for part in group[1]], [dict[int, Any]({1: {}})] * len(schema)
    is_known = (
        _texts([footer.get(number) for number in (2, 4, 7)]) <= {b"root", b"schema", *map(str.encode, schema)}
        and footer[2] == _written_schema(schema)
        and footer[1] in (1, 2)
        and _groups_fit(footer)
        and _only(footer[4], 1, 2, 3, 5, 6, 7)
        and _only(parts, 2, 3, 4, 5, 6, 7)
        and _only([part[3] for part in parts], 1, 2, 3, 4, 5, 6, 7, 9, 11, _STATISTICS)
        and all(len(set(part[3][2])) == len(part[3][2]) and set(part[3][2]) <= _ENCODINGS for part in parts)
        and footer.get(7, orders) == orders
        and _MAKER.fullmatch(footer.pop(6, b"polars"))
        and set(footer) <= {1, 2, 3, 4, 7}
    )
    return faults if is_known else faults | {"metadata"}


def _written_schema(schema: pl.Schema) -> Any:
    """The description of columns that polars writes of their types."""
    file = BytesIO()
    pl.DataFrame(schema=schema).write_parquet(file)
    content = file.getvalue()
    return _ThriftReader(content, len(content) - 8 - int.from_bytes(content[-8:-4], "little")).struct()[2]


def _groups_fit(footer: Struct) -> bool:
    """Whether the numbers of row groups are those that follow from their parts; so are those of the file."""
    for place, group in enumerate(footer[4]):
        parts = [part[3] for part in group[1]]
        first = min((parts[0][number] for number in (9, 11) if number in parts[0]), default=0) if parts else 0
        follows = {2: sum(part[6] for part in parts), 5: first, 6: sum(part[7] for part in parts), 7: place}
        if any(group.get(number, value) != value for number, value in follows.items()):
            return False
    return bool(footer[3] == sum(group[3] for group in footer[4]))


def _only(structs: Sequence[Struct], *numbers: int) -> bool:
    """Whether structs have these fields only."""
    return all(set(entries) <= set(numbers) for entries in structs)


def _texts(value: Any) -> set[bytes]:
    """All texts in what was read, but for statistics, which are looked at with the rows they are of."""
    if isinstance(value, dict):
        value = [inner for number, inner in value.items() if number != _STATISTICS]
    if isinstance(value, list):
        return set().union(*map(_texts, value))
    return {value} if isinstance(value, bytes) else set()


def _chunks(data: mmap, footer: Struct, names: Sequence[str], parts: Spans, faults: set[str]) -> Iterator[_Chunk]:
    """The parts of columns; `parts` gets where their bytes are."""

    def part(place: int) -> dict[int, Any]:
        reader = _ThriftReader(data, place)
        written = reader.struct()
        parts.append((place, reader.place))
        return written

    first = 0
    for group in footer[4]:
        rows = (first, first + group[3])
        first = rows[1]
        for name, described, written in zip(names, footer[2][1:], group[1], strict=True):
            kind = written[3][1]
            chunk = _Chunk(name, rows, kind, _WIDTHS.get(kind) or described.get(2, 0), written[3][4] == _ZSTD)
            _read_pages(data, chunk, written[3], parts, faults)
            again = _ThriftReader(data, parts[-1][1])
            if again.struct() == written[3]:  # polars writes it behind the pages, too
                parts.append((parts[-1][1], again.place))
            known = {2: written[3][9] + written[3][7]}
            if 4 in written:  # where pages are
                if part(written[4]) != {1: chunk.places}:
                    faults.add("metadata")
                known[5] = parts[-1][1] - parts[-1][0]
            if 6 in written:  # the least and the greatest values of pages; one without values has none
                _read_index(chunk, part(written[6]), faults)
                known[7] = parts[-1][1] - parts[-1][0]
            if any(written.get(number, known.get(number)) != known.get(number) for number in (2, 5, 7)):
                faults.add("metadata")
            if kind != described[1] or written[3][3] != [name.encode()]:
                faults.add("metadata")
            yield chunk


def _read_index(chunk: _Chunk, index: Struct, faults: set[str]) -> None:
    """The least and the greatest values of pages, how many are missing, and whether all are (1; else 2)."""
    counts = index.get(5, [None] * len(chunk.pages))
    for page, lost, low, high, count in zip(chunk.pages, index[1], index[2], index[3], counts, strict=True):
        missing = page.rows[1] - page.rows[0] if lost == 1 else count
        chunk.statistics += [(page.rows, {5: high, 6: low})] if low or high else []
        chunk.statistics += [(page.rows, {3: number}) for number in (missing, count) if number is not None]
        if lost not in (1, 2):
            faults.add("metadata")
    if not _only([index], 1, 2, 3, 4, 5) or index[4] != 0:
        faults.add("metadata")


def _read_pages(data: mmap, chunk: _Chunk, about: Struct, parts: Spans, faults: set[str]) -> None:
    """All pages of a part, one after the other."""
    begin = place = min(about[9], about.get(11, about[9]))
    row, unpacked = chunk.rows[0], 0
    starts = dict[int, int]()  # of the first rows and of the dictionary, by their fields
    while place < begin + about[7]:
        reader = _ThriftReader(data, start := place)
        header = reader.struct()
        place = reader.place + header[3]
        if header[3] < 0:
            raise ValueError("a page of a negative length")
        unpacked += reader.place - start + header[2]
        starts.setdefault(11 if header[1] == _DICTIONARY_PAGE else 9, start)
        if chunk.is_packed and header[3] and frame_end(data[reader.place : place]) != header[3]:
            faults.add(UNREFERRED)
        if header[1] == _DICTIONARY_PAGE:
            chunk.dictionary = bytes(data[reader.place : place]), header[7][1], header[2]
            if not (_only([header], 1, 2, 3, 7) and _only([header[7]], 1, 2) and header[7][2] in (_PLAIN, 2)):
                faults.add("metadata")
            continue
        page = header[5]
        is_known = header[1] == _ROWS_PAGE and _only([header], 1, 2, 3, 5) and _only([page], 1, 2, 3, 4, 5)
        faults |= set() if is_known and page[3] == page[4] == _RUNS else {"metadata"}
        chunk.places.append({1: start, 2: place - start, 3: row - chunk.rows[0]})
        rows, row = (row, row + page[1]), row + page[1]
        is_packed = chunk.is_packed and header[3] > 0
        chunk.pages.append(_Page(rows, reader.place, header[3], header[2], page[2], is_packed))
        if 5 in page:
            chunk.statistics.append((rows, page[5]))
    if _STATISTICS in about:
        chunk.statistics.append((chunk.rows, about[_STATISTICS]))
    parts.append((begin, place))
    starts |= {5: chunk.rows[1] - chunk.rows[0], 6: unpacked}
    if starts != {number: about[number] for number in (5, 6, 9, 11) if number in about}:
        faults.add("metadata")
    if place != begin + about[7] or row != chunk.rows[1] or about[4] not in (0, _ZSTD):
        faults.add(UNKNOWN)


def _column_faults(path: Path, column: pl.Series, chunks: Sequence[_Chunk]) -> set[str]:
    """Dictionaries have the values of the rows that use them, and statistics are of their rows."""
    faults = set[str]()
    bodies = iter(_bodies(path, [page for chunk in chunks for page in chunk.pages]))
    every = [_plain(column[:0])]
    users_of: dict[bytes, list[tuple[tuple[int, int], pl.Series]]] = {}
    for chunk in chunks:
        held = {page.rows: _held(chunk, page, next(bodies), column, faults) for page in chunk.pages}
        held[chunk.rows] = pl.concat([every[0], *held.values()])
        ends = {rows: (values.min(), values.max(), column[slice(*rows)].null_count()) for rows, values in held.items()}
        stated = [(ends[rows], entry) for rows, statistics in chunk.statistics for entry in statistics.items()]
        # Of pages with a dictionary, polars also states an end of the whole part.
        by_part = _ENDS if chunk.dictionary is not None else ()
        if not all(
            _tells(*entry, of_rows, chunk.kind)
            or (entry[0] in by_part and _tells(*entry, ends[chunk.rows], chunk.kind))
            for of_rows, entry in stated
        ):
            faults.add("statistics of other rows")
        if chunk.dictionary is not None:
            content, entries, size = chunk.dictionary
            users_of.setdefault(content, []).append(((entries, size), held[chunk.rows]))
        every.append(held[chunk.rows])
    # Parts with the same dictionary use it together.
    for users in users_of.values():
        used = pl.concat([values for _, values in users]).unique()
        if {numbers for numbers, _ in users} != {(len(used), _size(used, chunk))}:
            faults.add(UNUSED)
    if isinstance(column.dtype, pl.Enum) and set(column.dtype.categories) != set(pl.concat(every)):
        faults.add(UNUSED)
    return faults


def _bodies(path: Path, pages: Sequence[_Page]) -> list[bytes]:
    """The bodies of pages, unpacked."""
    bodies = []
    with path.open("rb") as file:
        for page in pages:
            file.seek(page.place)
            bodies.append(file.read(page.length))
    packed = [(body, page.unpacked) for body, page in zip(bodies, pages, strict=True) if page.is_packed]
    unpacked = iter(_unpacked(packed))
    return [next(unpacked) if page.is_packed else body for body, page in zip(bodies, pages, strict=True)]


def _held(chunk: _Chunk, page: _Page, body: bytes, column: pl.Series, faults: set[str]) -> pl.Series:
    """The values of a page of rows, those of a dictionary once each. The page has which rows are missing, the values of
    the others, and nothing more.
    """
    from anonfit.auditing.kernels import numbers_end  # compiled code, which other audits do not need

    rows = column[slice(*page.rows)]
    known, content = rows.drop_nulls(), np.frombuffer(body, np.uint8)
    begin = 4 + int.from_bytes(body[:4], "little")
    is_good = (
        len(body) == page.unpacked and numbers_end(content, 4, begin, 1, len(rows), np.empty(2, np.int64)) == begin
    )
    if page.encoding == _BY_DICTIONARY and chunk.dictionary is not None:
        row_of = np.full(min(chunk.dictionary[1], len(column)), -1)
        end = numbers_end(content, begin + 1, len(body), body[begin], len(known), row_of)
        values = _plain(known[row_of[row_of >= 0]])
    else:
        values = _plain(known)
        end = begin + _size(values, chunk)
        if chunk.kind == _TRUTH:  # bits, the last of which are zero
            end = begin + -(-len(known) // 8)
            is_good &= not len(known) % 8 or body[-1] >> len(known) % 8 == 0
        is_good &= page.encoding == _PLAIN
    if not is_good or end != len(body):
        faults.add(UNREFERRED)
    return values


def _unpacked(frames: Sequence[tuple[bytes, int]]) -> list[bytes]:
    """What frames of Zstandard of these lengths hold, by polars' decompressor: as the values of a Parquet file written
    around them. Each is a page of its own, in which a frame that holds the value's length stands before it.
    """

    def whole(number: int) -> bytes:
        digits = [2 * number >> shift & 127 | 128 for shift in range(0, (2 * number).bit_length() or 1, 7)]
        return bytes([*digits[:-1], digits[-1] & 127])

    file, held = bytearray(_MAGIC), 0
    for frame, size in frames:
        length = ZSTANDARD + b"\x20\x04\x21\x00\x00" + size.to_bytes(4, "little")
        sizes = whole(size + 4) + b"\x15" + whole(len(length) + len(frame))
        header = b"\x15\x00\x15" + sizes + b"\x2c\x15\x02\x15\x00\x15\x06\x15\x06\x00\x00"
        file += header + length + frame
        held += len(header) + size + 4
    rows, packed = whole(len(frames)), whole(len(file) - 4)
    sizes = b"\x16" + rows + b"\x16" + whole(held) + b"\x16" + packed
    part = b"\x15\x0c\x19\x15\x00\x19\x18\x01v\x15\x0c" + sizes + b"\x26\x08\x00"
    schema = b"\x19\x2c\x48\x01s\x15\x02\x00\x15\x0c\x25\x00\x18\x01v\x00"
    group = b"\x19\x1c\x19\x1c\x26\x08\x1c" + part + b"\x00\x16" + packed + b"\x16" + rows + b"\x00"
    footer = b"\x15\x02" + schema + b"\x16" + rows + group + b"\x00"
    file += footer + len(footer).to_bytes(4, "little") + _MAGIC
    return pl.read_parquet(BytesIO(file)).to_series().to_list()


def _plain(values: pl.Series) -> pl.Series:
    """Values as the file has them."""
    is_label = isinstance(values.dtype, pl.Enum | pl.Categorical)
    return values.cast(pl.String) if is_label else values.to_physical()


def _size(values: pl.Series, chunk: _Chunk) -> int:
    """How long values are: texts have their lengths before them."""
    return bytes_of(values) + 4 * len(values) if chunk.kind == _BYTES else len(values) * chunk.width


def _tells(number: int, entry: Any, ends: tuple[Any, Any, int], kind: int) -> bool:
    """Whether an entry of statistics is an end of rows (of a long text its beginning, rounded up), whether it is one,
    how many values are missing, or how many truths there are.
    """
    if number in (3, 4):
        return bool(entry == ends[2] if number == 3 else kind == _TRUTH and entry == len({*ends[:2]} - {None}))
    if number not in _ENDS:
        return number in (7, 8) and isinstance(entry, bool)
    raw, is_greatest = entry, number in (1, 5)
    value = ends[is_greatest]
    if isinstance(value, str | bytes):
        text = value.encode() if isinstance(value, str) else value
        shortened = len(raw) <= len(text) + 3 and raw > text and any(text.startswith(raw[:-n]) for n in range(1, 5))
        return raw == text or (shortened if is_greatest else text.startswith(raw))
    if isinstance(value, float):
        form = {2: "<e", 4: "<f", 8: "<d"}.get(len(raw))
        return form is not None and struct.unpack(form, raw)[0] == value
    whole = int.from_bytes(raw, "big" if kind == _FIXED else "little")
    return isinstance(value, int) and whole == value % 256 ** len(raw)
