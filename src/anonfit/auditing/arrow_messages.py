# SPDX-License-Identifier: Apache-2.0
"""What Arrow and Parquet files have in common: frames of Zstandard, and messages of Arrow that describe columns; and
what may be beside the rows of a file, in words."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from mmap import mmap

import numpy as np
import polars as pl

UNREFERRED, UNKNOWN = "bytes that nothing refers to", "a structure that this audit does not know"
UNUSED = "dictionary entries that no row has"
ZSTANDARD = b"\x28\xb5\x2f\xfd"
"""What a frame begins with."""
_SCHEMA, _TIMESTAMP = 1, 10  # Arrow's numbers of a kind of messages and of a type


def bytes_of(texts: pl.Series) -> int:
    """How long texts are together."""
    return int((texts.str.len_bytes() if texts.dtype == pl.String else texts.bin.size()).sum())


def frame_end(frame: bytes) -> int:
    """Where a frame of Zstandard ends, by the sizes of its blocks; -1 where none begins, or where bits or blocks of it
    are for nothing: an unpacker passes over them without a word.
    """
    if frame[:4] != ZSTANDARD or frame[4] >> 3 & 3:
        return -1
    described = frame[4]
    single = described >> 5 & 1
    place = 5 + (1 - single) + (0, 1, 2, 4)[described & 3] + (single, 2, 4, 8)[described >> 6]
    last = 0
    while not last and place < len(frame):
        block = int.from_bytes(frame[place : place + 3], "little")
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        place += 3
        if (size == 0 and (kind or not last)) or (kind == 2 and _is_hollow(frame[place : place + 4])):
            return -1
        place += 1 if kind == 1 else size
    return place + 4 * (described >> 2 & 1)


def _is_hollow(block: bytes) -> bool:
    """Whether a packed block repeats a byte no times, or has neither bytes of its own nor copies of earlier ones."""
    kind, length = block[0] & 3, (1, 2, 1, 3)[block[0] >> 2 & 3]  # of what stands in the block, and of its head
    size = int.from_bytes(block[:length], "little") >> (3 if length == 1 else 4)
    return kind < 2 and size == 0 and (kind == 1 or block[length : length + 1] == b"\0")


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
        if place < 0 or place + size > len(self.data):
            raise ValueError("a place behind the end")
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
