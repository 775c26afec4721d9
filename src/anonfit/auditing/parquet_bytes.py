# SPDX-License-Identifier: Apache-2.0
"""The bytes of a Parquet file, and the messages of Arrow that it holds: every byte belongs to a page, to the footer or
to what these must have, and dictionaries, statistics and metadata tell nothing but what the rows tell. A dictionary of
exactly the values of its rows has room for no other; pages of rows are unpacked, and end where these do."""

from __future__ import annotations

import base64
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

Struct = Mapping[int, Any]  # from a field's number to its value
Spans = list[tuple[int, int]]
UNREFERRED, UNKNOWN = "bytes that nothing refers to", "a structure that this audit does not know"
UNUSED = "dictionary entries that no row has"
_SCHEMA, _TIMESTAMP = 1, 10  # Arrow's numbers of a kind of messages and of a type
_ZSTANDARD = b"\x28\xb5\x2f\xfd"


def frame_end(frame: bytes) -> int:
    """Where a frame of Zstandard ends, by the sizes of its blocks; -1 where none begins."""
    if frame[:4] != _ZSTANDARD:
        return -1
    described = frame[4]
    single = described >> 5 & 1
    place = 5 + (1 - single) + (0, 1, 2, 4)[described & 3] + (single, 2, 4, 8)[described >> 6]
    last = 0
    while not last and place < len(frame):
        block = int.from_bytes(frame[place : place + 3], "little")
        last, place = block & 1, place + 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
    return place + 4 * (described >> 2 & 1)


class FlatBuffer:
    """A FlatBuffer that knows which of its bytes were read."""

    def __init__(self, data: bytes) -> None:
        self.data, self.seen = data, bytearray(len(data))
        self.root = FlatTable(self, self.number(0, "<I"))

    def number(self, place: int, form: str) -> int:
        """A number at a place."""
        self.mark(place, struct.calcsize(form))
        return int(struct.unpack_from(form, self.data, place)[0])

    def mark(self, place: int, size: int) -> None:
        """Note that bytes were read."""
        self.seen[place : place + size] = b"\x01" * size

    def has_rest(self) -> bool:
        """Whether bytes that were not read are more than fillings."""
        data, seen = np.frombuffer(self.data, np.uint8), np.frombuffer(self.seen, np.uint8)
        return bool(data[seen == 0].any())


class FlatTable:
    """A table in a FlatBuffer; fields are asked for by their number."""

    def __init__(self, flat: FlatBuffer, place: int) -> None:
        self.flat, self.place = flat, place
        self.fields = place - flat.number(place, "<i")
        self.size = flat.number(self.fields, "<H")
        flat.mark(self.fields, self.size)
        flat.mark(place, flat.number(self.fields + 2, "<H"))

    def _at(self, field: int) -> int | None:
        entry = 4 + 2 * field
        offset = self.flat.number(self.fields + entry, "<H") if entry < self.size else 0
        return self.place + offset if offset else None

    def number(self, field: int, form: str = "<b") -> int:
        """A field that is a number."""
        place = self._at(field)
        return 0 if place is None else self.flat.number(place, form)

    def table(self, field: int) -> FlatTable | None:
        """A field that is a table."""
        place = self._at(field)
        return None if place is None else FlatTable(self.flat, place + self.flat.number(place, "<I"))

    def vector(self, field: int, width: int) -> tuple[int, int]:
        """Where the entries of a vector begin, and how many there are."""
        place = self._at(field)
        if place is None:
            return 0, 0
        begin = place + self.flat.number(place, "<I")
        count = self.flat.number(begin, "<I")
        self.flat.mark(begin + 4, count * width)
        return begin + 4, count

    def structs(self, field: int, form: str) -> list[tuple[int, ...]]:
        """A field that is a list of numbers of a form."""
        width = struct.calcsize(form)
        begin, count = self.vector(field, width)
        return list(struct.iter_unpack(form, self.flat.data[begin : begin + count * width]))

    def text(self, field: int) -> str | None:
        """A field that is a text."""
        begin, length = self.vector(field, 1)
        return self.flat.data[begin : begin + length].decode() if begin else None

    def tables(self, field: int) -> list[FlatTable]:
        """A field that is a list of tables."""
        begin, count = self.vector(field, 4)
        places = range(begin, begin + 4 * count, 4)
        return [FlatTable(self.flat, place + self.flat.number(place, "<I")) for place in places]


def schema_faults(schema: FlatTable, types: Mapping[str, pl.DataType]) -> set[str]:
    """The names, zones and notes of the columns of a schema must be those of these types."""
    fields = schema.tables(1)
    is_known = [column.text(0) for column in fields] == list(types) and not schema.tables(2)
    for column, dtype in zip(fields, types.values(), strict=True):
        layout, notes = column.table(3), {note.text(0): note.text(1) for note in column.tables(6)}
        zone = layout.text(1) if layout is not None and column.number(2, "<B") == _TIMESTAMP else None
        written = {"_PL_CATEGORICAL2": "0;0;u32;"} if isinstance(dtype, pl.Categorical) else {}
        if isinstance(dtype, pl.Enum):
            written = {"_PL_ENUM_VALUES2": "".join(f"{len(level.encode())};{level}" for level in dtype.categories)}
        if (dictionary := column.table(4)) is not None:
            dictionary.table(1)  # what is looked at counts as read
        is_known &= zone == getattr(dtype, "time_zone", None) and notes in ({}, written) and not column.tables(5)
    return set() if is_known else {"metadata"}


def read_message(data: bytes | mmap, place: int) -> tuple[FlatBuffer, int]:
    """The description of a message, and where what it describes begins."""
    if data[place : place + 4] != b"\xff\xff\xff\xff":  # polars writes the first of a file without its length
        return FlatBuffer(bytes(data[place:])), len(data)
    size = int.from_bytes(data[place + 4 : place + 8], "little")
    return FlatBuffer(bytes(data[place + 8 : place + 8 + size])), place + 8 + size


def message_faults(data: bytes, types: Mapping[str, pl.DataType]) -> set[str]:
    """What a message that describes columns tells beside their types."""
    flat, end = read_message(data, 0)
    schema = flat.root.table(2)
    if schema is None or flat.root.number(1, "<B") != _SCHEMA or flat.root.tables(4):
        return {"metadata"}
    faults = schema_faults(schema, types)
    return faults | {"metadata"} if flat.has_rest() or any(data[end:].strip(b"\x00\xff")) else faults


_MAGIC = b"PAR1"
_MAKER = re.compile(rb"[Pp]olars[\w .()+-]{0,120}")
_TRUTH, _BYTES, _FIXED = 0, 6, 7  # physical types
_WIDTHS = {1: 4, 2: 8, 4: 4, 5: 8}  # of whole and floating point numbers
_ROWS_PAGE, _DICTIONARY_PAGE, _ZSTD, _PLAIN, _BY_DICTIONARY = 0, 2, 6, 0, 8
_STATISTICS = 12  # the number of this field of a column's description


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


@dataclass(slots=True)
class _Chunk:
    """A column's part of a row group. Rows are given as the first of them and the one after the last."""

    name: str
    rows: tuple[int, int]
    kind: int
    width: int  # of values of a fixed size
    is_packed: bool
    pages: Spans = field(default_factory=list)  # their rows
    bodies: list[tuple[int, int, int, int]] = field(default_factory=list)  # place, length, length unpacked, encoding
    statistics: list[tuple[tuple[int, int], Struct]] = field(default_factory=list)  # of which rows
    dictionary: tuple[bytes, int, int] | None = None  # its entries, their number and their length


def parquet_faults(path: Path) -> set[str]:
    """What a file holds beside its rows, in words."""
    with path.open("rb") as file, mmap(file.fileno(), 0, access=1) as data:
        begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        reader = _ThriftReader(data, begin)
        footer, schema = reader.struct(), pl.scan_parquet(path, glob=False).collect_schema()
        faults = _metadata_faults(footer, schema)
        parts = [(0, 4)]
        chunks = list(_chunks(data, footer, list(schema), parts, faults))
        is_whole = data[:4] == data[-4:] == _MAGIC and reader.place == len(data) - 8
    if not is_whole or any(part[1] != following[0] for part, following in pairwise(sorted([*parts, (begin, begin)]))):
        faults.add(UNREFERRED)
    if faults:  # reading rows by lengths that are wrong could end in no memory
        return faults
    with ThreadPoolExecutor() as pool:
        of_columns = ([chunk for chunk in chunks if chunk.name == name] for name in schema if chunks)
        return faults.union(*pool.map(lambda of_column: _column_faults(path, of_column), of_columns))


def _metadata_faults(footer: dict[int, Any], schema: pl.Schema) -> set[str]:
    """The footer's texts are names of columns, the name of the writer, and the columns' types in Arrow's words."""
    notes = footer.pop(5, [])
    if [note.get(1) for note in notes] not in ([], [b"ARROW:schema"]):
        return {"metadata"}
    faults = message_faults(base64.b64decode(notes[0][2], validate=True), schema) if notes else set()
    parts, orders = [part for group in footer[4] for part in group[1]], [dict[int, Any]({1: {}})] * len(schema)
    is_known = (
        _texts([footer.get(number) for number in (2, 4, 7)]) <= {b"root", b"schema", *map(str.encode, schema)}
        and _only(footer[2], 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
        and _only(footer[4], 1, 2, 3, 5, 6, 7)
        and _only(parts, 2, 3, 4, 5, 6, 7)
        and _only([part[3] for part in parts], 1, 2, 3, 4, 5, 6, 7, 9, 11, _STATISTICS)
        and all(len(set(part[3][2])) == len(part[3][2]) for part in parts)
        and footer.get(7, orders) == orders
        and _MAKER.fullmatch(footer.pop(6, b"polars"))
        and set(footer) <= {1, 2, 3, 4, 7}
    )
    return faults if is_known else faults | {"metadata"}


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
            if 4 in written:  # where pages are
                places = part(written[4])
                if set(places) != {1} or len(places[1]) != len(chunk.pages) or not _only(places[1], 1, 2, 3):
                    faults.add("metadata")
            if 6 in written:  # the least and the greatest values of pages; one without values has none
                index = part(written[6])
                ends = zip(chunk.pages, index[2], index[3], strict=True)
                chunk.statistics += [(of_page, {5: high, 6: low}) for of_page, low, high in ends if low or high]
                lengths = {len(index[1]), len(index.get(5, index[1]))}
                if not _only([index], 1, 2, 3, 4, 5) or lengths != {len(chunk.pages)} or max(index[1]) > 2:
                    faults.add("metadata")
            yield chunk


def _read_pages(data: mmap, chunk: _Chunk, about: Struct, parts: Spans, faults: set[str]) -> None:
    """All pages of a part, one after the other."""
    begin = place = min(about[9], about.get(11, about[9]))
    row = chunk.rows[0]
    while place < begin + about[7]:
        reader = _ThriftReader(data, place)
        header = reader.struct()
        place = reader.place + header[3]
        if chunk.is_packed and header[3] and frame_end(data[reader.place : place]) != header[3]:
            faults.add(UNREFERRED)
        if header[1] == _DICTIONARY_PAGE:
            chunk.dictionary = bytes(data[reader.place : place]), header[7][1], header[2]
            if not (_only([header], 1, 2, 3, 7) and _only([header[7]], 1, 2, 3)):
                faults.add("metadata")
            continue
        page = header[5]
        if header[1] != _ROWS_PAGE or not (_only([header], 1, 2, 3, 5) and _only([page], 1, 2, 3, 4, 5)):
            faults.add("metadata")
        chunk.pages.append((row, row + page[1]))
        chunk.bodies.append((reader.place, header[3], header[2], page[2]))
        row += page[1]
        if 5 in page:
            chunk.statistics.append((chunk.pages[-1], page[5]))
    if _STATISTICS in about:
        chunk.statistics.append((chunk.rows, about[_STATISTICS]))
    parts.append((begin, place))
    if place != begin + about[7] or row != chunk.rows[1] or about[4] not in (0, _ZSTD):
        faults.add(UNKNOWN)


def _column_faults(path: Path, chunks: Sequence[_Chunk]) -> set[str]:
    """Dictionaries have the values of the rows that use them, and statistics are of their rows."""
    faults = set()
    column = pl.scan_parquet(path, glob=False).select(chunks[0].name).collect().to_series()
    held: dict[bytes, list[tuple[_Chunk, int, int, pl.Series]]] = {}
    for chunk in chunks:
        short = chunk.dictionary is not None or isinstance(column.dtype, pl.Enum | pl.Categorical)
        # The rows of a part are often those of its one page.
        values = {rows: _plain(column[rows[0] : rows[1]], short=short) for rows in {chunk.rows, *chunk.pages}}
        ends = {rows: (series.min(), series.max()) for rows, series in values.items()}
        stated = ((ends[rows], entry) for rows, statistics in chunk.statistics for entry in statistics.items())
        if not all(_tells(*entry, of_rows, chunk.kind) for of_rows, entry in stated):
            faults.add("statistics of other rows")
        if chunk.dictionary is not None:
            content, entries, size = chunk.dictionary
            held.setdefault(content, []).append((chunk, entries, size, values[chunk.rows]))
        if not all(_ends_with_rows(path, chunk, page, column) for page in range(len(chunk.pages))):
            faults.add(UNREFERRED)
    # Parts with the same dictionary use it together.
    for users in held.values():
        used = pl.concat([rows for *_, rows in users]).drop_nulls().unique()
        if any((entries, size) != (len(used), _size(used, chunk)) for chunk, entries, size, _ in users):
            faults.add(UNUSED)
    if isinstance(column.dtype, pl.Enum) and set(column.dtype.categories) != set(column.unique().drop_nulls()):
        faults.add(UNUSED)
    return faults


def _ends_with_rows(path: Path, chunk: _Chunk, page: int, column: pl.Series) -> bool:
    """Whether a page of rows holds which of them are missing, the values of the others, and nothing more."""
    from anonfit.auditing.kernels import runs_end  # compiled code, which other audits do not need

    place, length, unpacked, encoding = chunk.bodies[page]
    body = np.fromfile(path, np.uint8, length, offset=place).tobytes()
    body = _unpacked(body, unpacked) if chunk.is_packed and length else body
    rows = column[slice(*chunk.pages[page])]
    known = rows.drop_nulls()
    begin = 4 + int.from_bytes(body[:4], "little")
    content = np.frombuffer(body, np.uint8)
    if len(body) != unpacked or runs_end(content, 4, begin, 1, len(rows)) != begin:
        return False
    if encoding == _BY_DICTIONARY:
        return bool(runs_end(content, begin + 1, len(body), body[begin], len(known)) == len(body))
    if chunk.kind == _TRUTH:
        size, rest = -(-len(known) // 8), -len(known) % 8
        return len(body) == begin + size and (not size or body[-1] >> (8 - rest) == 0 or not rest)
    return encoding == _PLAIN and len(body) == begin + _size(_plain(known, short=False), chunk)


def _unpacked(frame: bytes, size: int) -> bytes:
    """What a Zstandard frame holds, by polars' decompressor: as the one value of a Parquet file written around it."""

    def whole(number: int) -> bytes:
        digits = [2 * number >> shift & 127 | 128 for shift in range(0, (2 * number).bit_length() or 1, 7)]
        return bytes([*digits[:-1], digits[-1] & 127])

    long = whole(size)
    header = b"\x15\x00\x15" + long + b"\x15" + whole(len(frame)) + b"\x2c\x15\x02\x15\x00\x15\x06\x15\x06\x00\x00"
    packed = whole(len(header) + len(frame))
    part = b"\x15\x0e\x19\x15\x00\x19\x18\x01v\x15\x0c\x16\x02\x16" + long + b"\x16" + packed + b"\x26\x08\x00"
    schema = b"\x19\x2c\x48\x01s\x15\x02\x00\x15\x0e\x15" + long + b"\x15\x00\x18\x01v\x00"
    group = b"\x19\x1c\x19\x1c\x26\x08\x1c" + part + b"\x00\x16" + packed + b"\x16\x02\x00"
    footer = b"\x15\x02" + schema + b"\x16\x02" + group + b"\x00"
    file = (_MAGIC, header, frame, footer, len(footer).to_bytes(4, "little"), _MAGIC)
    value = pl.read_parquet(BytesIO(b"".join(file))).item()
    assert isinstance(value, bytes)
    return value


def _plain(rows: pl.Series, *, short: bool) -> pl.Series:
    """The values of rows as the file has them; in short, each once."""
    values = rows.unique() if short else rows
    return values.cast(pl.String) if isinstance(rows.dtype, pl.Enum | pl.Categorical) else values.to_physical()


def _size(values: pl.Series, chunk: _Chunk) -> int:
    """How long values are: texts have their lengths before them."""
    return bytes_of(values) + 4 * len(values) if chunk.kind == _BYTES else len(values) * chunk.width


def bytes_of(texts: pl.Series) -> int:
    """How long texts are together."""
    return int((texts.str.len_bytes() if texts.dtype == pl.String else texts.bin.size()).sum())


def _tells(number: int, entry: Any, ends: tuple[Any, Any], kind: int) -> bool:
    """Whether an entry of statistics is an end of rows (of a long text its beginning, rounded up), or just a number."""
    if number not in (1, 2, 5, 6):
        return not isinstance(entry, bytes | list | dict)
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
