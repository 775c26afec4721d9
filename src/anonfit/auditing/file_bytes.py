# SPDX-License-Identifier: Apache-2.0
"""What a text or Parquet file holds beside its rows: bytes are looked at, not only the values that a reader makes of
them.

Every byte of a Parquet file belongs to a page, to the footer or to what these must have, and dictionaries, statistics
and metadata tell nothing but what the rows tell. Headers say how many entries a dictionary has and how long it is, and
one of exactly the values of its rows has room for no other; pages of rows are unpacked, and end where these do."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from io import BytesIO
from itertools import chain, pairwise
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anonfit.auditing.arrow_bytes import frame_end, message_faults

_ROWS_AT_ONCE = 1 << 18
_MOMENT = r"^(-?\d{4,}-\d\d-\d\d)?T?(\d\d:\d\d:\d\d(\.\d+)?)?([+-]\d{4})?$"


def unquoted(names: list[str]) -> list[str]:
    """The names of a header as they were before they were written: polars leaves the quotes in them doubled."""
    return [name.replace('""', '"') for name in names]


def csv_faults(path: Path, texts: Collection[str] | None) -> set[str]:
    """A text file is, byte for byte, what is written of its own fields."""
    fault = {"lines that are no rows of the table"}
    lazy = pl.scan_csv(path, infer_schema=False, glob=False, with_column_names=unquoted)
    rows = lazy.collect_batches(chunk_size=_ROWS_AT_ONCE, maintain_order=True, engine="streaming")
    spellings: dict[str, set[str]] = {}
    with path.open("rb") as file:
        for place, batch in enumerate(chain([lazy.head(0).collect()], rows)):
            written = BytesIO()
            batch.write_csv(written, include_header=place == 0)
            if file.read(written.tell()) != written.getvalue():
                return fault
            values = [] if texts is None else [series for series in batch.get_columns() if series.name not in texts]
            for series in values:
                if series.null_count() < len(series):
                    spellings.setdefault(series.name, set()).add(_spelling(series))
        if file.read(1):
            return fault
    several = [name for name, ways in spellings.items() if len(ways) > 1 or "" in ways]
    return {"values that are spelled in several ways"} if several else set()


def _spelling(texts: pl.Series) -> str:
    """What all texts of a column are, in the spelling in which it is written; empty where they are nothing of that."""
    for kind in (pl.Int64, pl.UInt64, pl.Int128, pl.Float64, pl.Float32):
        values = texts.cast(kind, strict=False)
        if values.null_count() == texts.null_count() and bool((values.cast(pl.String) == texts).all()):
            return "whole" if kind.is_integer() else "number"
    if bool(texts.is_in(["true", "false"]).all()):
        return "truth"
    lengths = texts.str.len_bytes()
    if bool(texts.str.contains(r"^-?\d+\.\d+$").all()):  # decimal numbers have the same number of decimals
        decimals = (lengths - texts.str.find(".", literal=True)).drop_nulls().unique().to_list()
        return f"decimal {decimals[0]}" if len(decimals) == 1 else ""
    widths = lengths.drop_nulls().unique().to_list()
    return f"moment {widths[0]}" if len(widths) == 1 and bool(texts.str.contains(_MOMENT).all()) else ""


_MAGIC = b"PAR1"
_MAKER = re.compile(rb"[Pp]olars[\w .()+-]{0,120}")
_FLOAT, _DOUBLE, _BYTES, _FIXED = 4, 5, 6, 7  # physical types
_TRUTH = 0
_WIDTHS = {1: 4, 2: 8, _FLOAT: 4, _DOUBLE: 8}
_ROWS_PAGE, _DICTIONARY_PAGE, _ZSTD = 0, 2, 6
_PLAIN, _BY_DICTIONARY = 0, 8
_STATISTICS = 12  # the number of this field of a column's description


@dataclass(slots=True)
class _ThriftReader:
    """Reads what Thrift's compact protocol writes: structs as dictionaries from a field's number to its value."""

    data: bytes | mmap
    place: int

    def varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.data[self.place]
            self.place += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number
            if shift > 63:
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
        if kind in (4, 5, 6):
            return self.whole()
        if kind == 7:
            self.place += 8
            return struct.unpack("<d", self.data[self.place - 8 : self.place])[0]
        reads = {8: self.text, 9: self.many, 10: self.many, 12: self.struct}
        return reads[kind]()

    def many(self) -> list[Any]:
        self.place += 1
        head = self.data[self.place - 1]
        kind = head & 15
        count = head >> 4 if head >> 4 < 15 else self.varint()
        # A truth in a list is a byte of its own.
        return [self.value(3 if kind in (1, 2) else kind) for _ in range(count)]

    def struct(self) -> dict[int, Any]:
        entries: dict[int, Any] = {}
        number = 0
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
    pages: list[tuple[int, int]] = field(default_factory=list)  # their rows
    bodies: list[tuple[int, int, int, int]] = field(default_factory=list)  # place, length, length unpacked, encoding
    statistics: list[tuple[tuple[int, int], Mapping[int, Any]]] = field(default_factory=list)  # of which rows
    dictionary: bytes | None = None
    entries: int = 0
    size: int = 0


def parquet_faults(path: Path) -> set[str]:
    """What a file holds beside its rows, in words."""
    faults: set[str] = set()
    with path.open("rb") as file, mmap(file.fileno(), 0, access=1) as data:
        length = int.from_bytes(data[-8:-4], "little")
        begin = len(data) - 8 - length
        reader = _ThriftReader(data, begin)
        footer = reader.struct()
        if data[:4] != _MAGIC or data[-4:] != _MAGIC or reader.place != len(data) - 8:
            faults.add("bytes that nothing refers to")
        schema = pl.scan_parquet(path, glob=False).collect_schema()
        faults |= _metadata_faults(footer, schema)
        parts = [(0, 4)]
        chunks = list(_chunks(data, footer, list(schema), parts, faults))
    parts = sorted([*parts, (begin, begin)])
    if any(part[1] != following[0] for part, following in pairwise(parts)):
        faults.add("bytes that nothing refers to")
    if faults:  # reading rows by lengths that are wrong could end in no memory
        return faults
    with ThreadPoolExecutor() as pool:
        of_columns = ([chunk for chunk in chunks if chunk.name == name] for name in schema)
        return faults.union(*pool.map(lambda of_column: _column_faults(path, of_column), of_columns))


def _metadata_faults(footer: dict[int, Any], schema: pl.Schema) -> set[str]:
    """The footer's texts are names of columns, the name of the writer, and the columns' types in Arrow's words."""
    faults = set()
    notes = footer.pop(5, [])
    if [note.get(1) for note in notes] not in ([], [b"ARROW:schema"]):
        faults.add("metadata")
    elif notes:
        faults |= message_faults(base64.b64decode(notes[0][2], validate=True), schema)
    known = {b"root", b"schema", *(name.encode() for name in schema)}
    texts = _texts([footer.get(2), footer.get(4), footer.get(7)])
    parts = [part for group in footer[4] for part in group[1]]
    knows = (
        _only(footer[2], 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
        and _only(footer[4], 1, 2, 3, 5, 6, 7)
        and _only(parts, 2, 3, 4, 5, 6, 7)
        and _only([part[3] for part in parts], 1, 2, 3, 4, 5, 6, 7, 9, 11, _STATISTICS)
        and all(len(set(part[3][2])) == len(part[3][2]) for part in parts)
        and footer.get(7, [{1: {}}] * len(schema)) == [{1: {}}] * len(schema)
    )
    maker = footer.pop(6, b"polars")
    if not texts <= known or not knows or not _MAKER.fullmatch(maker) or set(footer) - {1, 2, 3, 4, 7}:
        faults.add("metadata")
    return faults


def _only(structs: Sequence[Mapping[int, Any]], *numbers: int) -> bool:
    """Whether structs have these fields only."""
    return all(set(entries) <= set(numbers) for entries in structs)


def _texts(value: Any) -> set[bytes]:
    """All texts in what was read, but for statistics, which are looked at with the rows they are of."""
    if isinstance(value, bytes):
        return {value}
    if isinstance(value, dict):
        return set().union(*(_texts(inner) for number, inner in value.items() if number != _STATISTICS))
    return set().union(*(_texts(inner) for inner in value)) if isinstance(value, list) else set()


def _chunks(
    data: mmap, footer: Mapping[int, Any], names: Sequence[str], parts: list[tuple[int, int]], faults: set[str]
) -> Iterator[_Chunk]:
    """The parts of columns; `parts` gets where their bytes are."""
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
                places = _part(data, written[4], parts)
                if set(places) != {1} or len(places[1]) != len(chunk.pages) or not _only(places[1], 1, 2, 3):
                    faults.add("metadata")
            if 6 in written:  # the least and the greatest values of pages
                _read_index(_part(data, written[6], parts), chunk, faults)
            yield chunk


def _part(data: mmap, place: int, parts: list[tuple[int, int]]) -> dict[int, Any]:
    """What is written at a place."""
    reader = _ThriftReader(data, place)
    written = reader.struct()
    parts.append((place, reader.place))
    return written


def _read_index(index: Mapping[int, Any], chunk: _Chunk, faults: set[str]) -> None:
    """The ends of pages; one without values has none."""
    for rows, lowest, highest in zip(chunk.pages, index[2], index[3], strict=True):
        if lowest or highest:
            chunk.statistics.append((rows, {5: highest, 6: lowest}))
    lists = [index[1], index.get(5, index[1])]
    if not _only([index], 1, 2, 3, 4, 5) or any(len(one) != len(chunk.pages) for one in lists) or max(index[1]) > 2:
        faults.add("metadata")


def _read_pages(
    data: mmap, chunk: _Chunk, about: Mapping[int, Any], parts: list[tuple[int, int]], faults: set[str]
) -> None:
    """All pages of a part, one after the other."""
    begin = place = min(about[9], about.get(11, about[9]))
    row = chunk.rows[0]
    while place < begin + about[7]:
        reader = _ThriftReader(data, place)
        header = reader.struct()
        place = reader.place + header[3]
        if chunk.is_packed and header[3] and frame_end(data[reader.place : place]) != header[3]:
            faults.add("bytes that nothing refers to")
        if header[1] == _DICTIONARY_PAGE:
            chunk.dictionary = bytes(data[reader.place : place])
            chunk.entries, chunk.size = header[7][1], header[2]
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
        faults.add("a structure that this audit does not know")


def _column_faults(path: Path, chunks: Sequence[_Chunk]) -> set[str]:
    """Dictionaries have the values of the rows that use them, and statistics are of their rows."""
    if not chunks:
        return set()
    faults = set()
    column = pl.scan_parquet(path, glob=False).select(chunks[0].name).collect().to_series()
    held: dict[bytes, list[tuple[_Chunk, pl.Series]]] = {}
    for chunk in chunks:
        short = chunk.dictionary is not None or isinstance(column.dtype, pl.Enum | pl.Categorical)
        # The rows of a part are often those of its one page.
        values = {rows: _plain(column[rows[0] : rows[1]], short=short) for rows in {chunk.rows, *chunk.pages}}
        ends = {rows: (series.min(), series.max()) for rows, series in values.items()}
        if not all(_is_of(statistics, *ends[rows], chunk.kind) for rows, statistics in chunk.statistics):
            faults.add("statistics of other rows")
        if chunk.dictionary is not None:
            held.setdefault(chunk.dictionary, []).append((chunk, values[chunk.rows]))
        if not all(_ends_with_rows(path, chunk, page, column) for page in range(len(chunk.pages))):
            faults.add("bytes that nothing refers to")
    # Parts with the same dictionary use it together.
    for users in held.values():
        used = pl.concat([rows for _, rows in users]).drop_nulls().unique()
        if any((chunk.entries, chunk.size) != (len(used), _size(used, chunk)) for chunk, _ in users):
            faults.add("dictionary entries that no row has")
    if isinstance(column.dtype, pl.Enum) and set(column.dtype.categories) != set(column.unique().drop_nulls()):
        faults.add("dictionary entries that no row has")
    return faults


def _ends_with_rows(path: Path, chunk: _Chunk, page: int, column: pl.Series) -> bool:
    """Whether a page of rows holds which of them are missing, the values of the others, and nothing more."""
    from anonfit.auditing.numbering_kernel import runs_end  # compiled code, which other audits do not need

    place, length, unpacked, encoding = chunk.bodies[page]
    with path.open("rb") as file:
        file.seek(place)
        body = file.read(length)
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
    """What a frame of Zstandard holds, through polars, which brings its own decompressor: as the one value, of a fixed
    size, of a Parquet file that is written around it.
    """

    def whole(number: int) -> bytes:
        digits = bytearray()
        number *= 2
        while number > 127:
            digits.append(number & 127 | 128)
            number >>= 7
        return bytes([*digits, number])

    long = whole(size)
    header = b"\x15\x00\x15" + long + b"\x15" + whole(len(frame)) + b"\x2c\x15\x02\x15\x00\x15\x06\x15\x06\x00\x00"
    packed = whole(len(header) + len(frame))
    part = b"\x15\x0e\x19\x15\x00\x19\x18\x01v\x15\x0c\x16\x02\x16" + long + b"\x16" + packed + b"\x26\x08\x00"
    schema = b"\x19\x2c\x48\x01s\x15\x02\x00\x15\x0e\x15" + long + b"\x15\x00\x18\x01v\x00"
    group = b"\x19\x1c\x19\x1c\x26\x08\x1c" + part + b"\x00\x16" + packed + b"\x16\x02\x00"
    footer = b"\x15\x02" + schema + b"\x16\x02" + group + b"\x00"
    ends = len(footer).to_bytes(4, "little")
    value = pl.read_parquet(BytesIO(b"".join((_MAGIC, header, frame, footer, ends, _MAGIC)))).item()
    assert isinstance(value, bytes)
    return value


def _plain(rows: pl.Series, *, short: bool) -> pl.Series:
    """The values of rows as the file has them; in short, each once."""
    values = rows.unique() if short else rows
    return values.cast(pl.String) if isinstance(rows.dtype, pl.Enum | pl.Categorical) else values.to_physical()


def _size(values: pl.Series, chunk: _Chunk) -> int:
    """How long values are: texts have their lengths before them."""
    if chunk.kind != _BYTES:
        return len(values) * chunk.width
    lengths = values.str.len_bytes() if values.dtype == pl.String else values.bin.size()
    return int(lengths.sum()) + 4 * len(values)


def _is_of(statistics: Mapping[int, Any], least: Any, greatest: Any, kind: int) -> bool:
    """Whether statistics tell these ends; their other entries are numbers and truths."""
    ends = {number: statistics[number] for number in (1, 2, 5, 6) if number in statistics}
    if any(isinstance(value, bytes | list | dict) for number, value in statistics.items() if number not in ends):
        return False
    return all(
        _equals(raw, greatest, kind, is_greatest=True) if number in (1, 5) else _equals(raw, least, kind)
        for number, raw in ends.items()
    )


def _equals(raw: bytes, value: Any, kind: int, *, is_greatest: bool = False) -> bool:
    """Whether bytes of a physical type are a value; of a long text its beginning, rounded up if it is the greatest."""
    if isinstance(value, str | bytes):
        text = value.encode() if isinstance(value, str) else value
        shortened = len(raw) <= len(text) + 3 and raw > text and any(text.startswith(raw[:-n]) for n in range(1, 5))
        return raw == text or (shortened if is_greatest else text.startswith(raw))
    if isinstance(value, float):
        form = {2: "<e", 4: "<f", 8: "<d"}.get(len(raw))
        return form is not None and struct.unpack(form, raw)[0] == value
    number = int.from_bytes(raw, "big" if kind == _FIXED else "little")
    return isinstance(value, int) and number == value % 256 ** len(raw)
