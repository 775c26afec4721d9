# SPDX-License-Identifier: Apache-2.0
"""The bytes of an Arrow file: every one belongs to a buffer of a column, to the description of these or to what fills
them up, buffers are as long as the values of their rows need, and nothing lies beneath missing values.

Buffers stay compressed: each says how long it is unpacked, and one of exactly that length has no room for more."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

_MAGIC = b"ARROW1"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SCHEMA, _DICTIONARY, _RECORDS = 1, 2, 3  # kinds of messages
_TEXT, _LARGE_TEXT = (4, 5), (19, 20)  # binary and text, with offsets of 32 and 64 bits
_NULL, _BOOLEAN, _TIMESTAMP = 1, 6, 10


def frame_end(frame: bytes) -> int:
    """Where a frame of Zstandard ends, by the sizes of its blocks; -1 where none begins."""
    if frame[:4] != _ZSTD:
        return -1
    described = frame[4]
    single = described >> 5 & 1
    place = 5 + (1 - single) + (0, 1, 2, 4)[described & 3] + (single, 2, 4, 8)[described >> 6]
    last = 0
    while not last and place < len(frame):
        block = int.from_bytes(frame[place : place + 3], "little")
        last, place = block & 1, place + 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
    return place + 4 * (described >> 2 & 1)


class _Flat:
    """A FlatBuffer that knows which of its bytes were read."""

    def __init__(self, data: bytes) -> None:
        self.data, self.seen = data, bytearray(len(data))
        self.root = _Table(self, self.number(0, "<I"))

    def number(self, place: int, form: str) -> int:
        size = struct.calcsize(form)
        self.mark(place, size)
        return int(struct.unpack_from(form, self.data, place)[0])

    def mark(self, place: int, size: int) -> None:
        self.seen[place : place + size] = b"\x01" * size

    def has_rest(self) -> bool:
        """Whether bytes that were not read are more than fillings."""
        data, seen = np.frombuffer(self.data, np.uint8), np.frombuffer(self.seen, np.uint8)
        return bool(data[seen == 0].any())


class _Table:
    """A table in a FlatBuffer; fields are asked for by their number."""

    def __init__(self, flat: _Flat, place: int) -> None:
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
        place = self._at(field)
        return 0 if place is None else self.flat.number(place, form)

    def table(self, field: int) -> _Table | None:
        place = self._at(field)
        return None if place is None else _Table(self.flat, place + self.flat.number(place, "<I"))

    def vector(self, field: int, width: int) -> tuple[int, int]:
        """Where the entries of a vector begin, and how many there are."""
        place = self._at(field)
        if place is None:
            return 0, 0
        begin = place + self.flat.number(place, "<I")
        count = self.flat.number(begin, "<I")
        self.flat.mark(begin + 4, count * width)
        return begin + 4, count

    def text(self, field: int) -> str | None:
        begin, length = self.vector(field, 1)
        return self.flat.data[begin : begin + length].decode() if begin else None

    def tables(self, field: int) -> list[_Table]:
        begin, count = self.vector(field, 4)
        places = range(begin, begin + 4 * count, 4)
        return [_Table(self.flat, place + self.flat.number(place, "<I")) for place in places]

    def structs(self, field: int, form: str) -> list[tuple[int, ...]]:
        width = struct.calcsize(form)
        begin, count = self.vector(field, width)
        return list(struct.iter_unpack(form, self.flat.data[begin : begin + count * width]))


@dataclass(frozen=True, slots=True)
class _Field:
    """A column as it is laid out: its type by Arrow's number, how many bytes a value has, and the number of its
    dictionary, of which values are then places.
    """

    kind: int
    width: int
    dictionary: int | None = None


def _read_schema(schema: _Table, types: Mapping[str, pl.DataType], faults: set[str]) -> list[_Field]:
    """The columns of a schema, whose names, zones and notes must be those of these types."""
    columns = []
    fields = schema.tables(1)
    if [field.text(0) for field in fields] != list(types) or schema.tables(2):
        faults.add("metadata")
    for field, dtype in zip(fields, types.values(), strict=True):
        kind, layout, dictionary = field.number(2, "<B"), field.table(3), field.table(4)
        zone = layout.text(1) if layout is not None and kind == _TIMESTAMP else None
        notes = {note.text(0): note.text(1) for note in field.tables(6)}
        if zone != getattr(dtype, "time_zone", None) or notes not in ({}, _notes(dtype)) or field.tables(5):
            faults.add("metadata")
        if dictionary is None:
            columns.append(_Field(kind, _width(dtype)))
        else:
            places = dictionary.table(1)
            columns.append(_Field(kind, places.number(0, "<i") // 8 if places else 4, dictionary.number(0, "<q")))
    return columns


def _width(dtype: pl.DataType) -> int:
    """The bytes of a value, as the name of the type that holds it says; 0 for texts and truths."""
    physical = pl.Series([], dtype=dtype).to_physical().dtype
    return int("".join(filter(str.isdigit, str(physical))) or 0) // 8 if physical.is_numeric() else 0


def _notes(dtype: pl.DataType) -> dict[str, str]:
    """What polars writes beside a column of a type."""
    if isinstance(dtype, pl.Enum):
        return {"_PL_ENUM_VALUES2": "".join(f"{len(level.encode())};{level}" for level in dtype.categories)}
    return {"_PL_CATEGORICAL2": "0;0;u32;"} if isinstance(dtype, pl.Categorical) else {}


def _message(data: bytes | mmap, place: int) -> tuple[_Flat, int]:
    """The description of a message, and where what it describes begins."""
    if data[place : place + 4] != b"\xff\xff\xff\xff":  # polars writes the first of a file without its length
        return _Flat(bytes(data[place:])), len(data)
    size = int.from_bytes(data[place + 4 : place + 8], "little")
    return _Flat(bytes(data[place + 8 : place + 8 + size])), place + 8 + size


def message_faults(data: bytes, types: Mapping[str, pl.DataType]) -> set[str]:
    """What a message that describes columns tells beside their types."""
    faults: set[str] = set()
    flat, end = _message(data, 0)
    schema = flat.root.table(2)
    if schema is None or flat.root.number(1, "<B") != _SCHEMA or flat.root.tables(4):
        return {"metadata"}
    _read_schema(schema, types, faults)
    if flat.has_rest() or any(data[end:].strip(b"\x00\xff")):
        faults.add("metadata")
    return faults


def arrow_faults(path: Path) -> set[str]:
    """What a file holds beside its rows, in words."""
    faults: set[str] = set()
    types = pl.scan_ipc(path, glob=False).collect_schema()
    with path.open("rb") as file, mmap(file.fileno(), 0, access=1) as data:
        end = len(data) - 10 - int.from_bytes(data[-10:-6], "little")
        footer = _Flat(bytes(data[end:-10]))
        schema = footer.root.table(1)
        if schema is None or data[:8] != _MAGIC + b"\0\0" or data[-6:] != _MAGIC or footer.root.tables(4):
            return {"metadata"}
        fields = _read_schema(schema, types, faults)
        blocks = [block for field in (2, 3) for block in footer.root.structs(field, "<qi4xq")]
        place = min((block[0] for block in blocks), default=end)
        faults |= message_faults(bytes(data[8:place]), types)
        layout = _Layout(data, fields, faults)
        for begin, described, body in sorted(blocks):
            if begin != place:
                faults.add("bytes that nothing refers to")
            layout.add(begin, described, body)
            place = begin + described + body
        if bytes(data[place:end]).strip(b"\x00\xff") or footer.has_rest() or end - place > 16:
            faults.add("bytes that nothing refers to")
    if faults:  # reading rows by lengths that are wrong could end in no memory
        return faults
    for place, name in enumerate(types):
        column = pl.scan_ipc(path, glob=False).select(name).collect().to_series()
        faults |= _column_faults(column, fields[place], [texts[place] for texts in layout.texts], layout)
    return faults


def _column_faults(column: pl.Series, field: _Field, texts: list[int | None], layout: _Layout) -> set[str]:
    """Buffers and dictionaries are as long as a column's values, and there is nothing beneath missing ones."""
    faults = set()
    if field.dictionary is not None:
        used = column.drop_nulls().unique().cast(pl.String)
        entries = layout.entries.get(field.dictionary, [])
        lengths = (sum(count for count, _ in entries), sum(size for _, size in entries))
        levels = set(column.dtype.categories) if isinstance(column.dtype, pl.Enum) else set(used)
        if lengths != (len(used), _bytes_of(used)) or levels != set(used):
            faults.add("dictionary entries that no row has")
    elif field.kind in _TEXT + _LARGE_TEXT:
        begin = 0
        for rows, length in zip(layout.rows, texts, strict=True):
            if _bytes_of(column[begin : begin + rows]) != length:
                faults.add("texts that no row has")
            begin += rows
    elif field.kind != _NULL and _has_beneath(column, field.width):
        faults.add("values beneath missing ones")
    return faults


def _bytes_of(texts: pl.Series) -> int:
    """How long texts are together."""
    return int((texts.str.len_bytes() if texts.dtype == pl.String else texts.bin.size()).sum())


class _Array(ctypes.Structure):
    """An array as Arrow hands it from one library to another."""


_Array._fields_ = [
    *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    *((name, ctypes.c_void_p) for name in ("children", "dictionary")),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))),
    ("private", ctypes.c_void_p),
]


class _Stream(ctypes.Structure):
    """Arrays one after the other; it lives as long as what gave it."""

    _fields_ = [
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Array))),
        *((name, ctypes.c_void_p) for name in ("get_last_error", "release", "private")),
    ]


def _has_beneath(column: pl.Series, width: int) -> bool:
    """Whether the buffer of a column of numbers (or of truths: width 0) has something where values are missing."""
    if not column.null_count():
        return False
    capsule = column.__arrow_c_stream__(None)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    place = pointer(capsule, b"arrow_array_stream")
    stream, something = _Stream.from_address(place), False
    while True:
        array = _Array()
        if stream.get_next(place, ctypes.byref(array)) or not array.release:
            return something
        if array.null_count:
            known = _bits(array, 0)
            values = _bits(array, 1) if width == 0 else _values(array, width)
            something |= bool(values[known == 0].any())
        array.release(ctypes.byref(array))


def _bits(array: _Array, buffer: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A buffer of bits, one for each row."""
    end = array.offset + array.length
    content = (ctypes.c_uint8 * ((end + 7) // 8)).from_address(array.buffers[buffer])
    return np.unpackbits(np.frombuffer(content, np.uint8), bitorder="little")[array.offset : end]


def _values(array: _Array, width: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A buffer of values of so many bytes. (row, byte)"""
    end = array.offset + array.length
    content = (ctypes.c_uint8 * (end * width)).from_address(array.buffers[1])
    return np.frombuffer(content, np.uint8).reshape(-1, width)[array.offset :]


class _Layout:
    """The lengths that the buffers of a file have, unpacked."""

    def __init__(self, data: mmap, fields: list[_Field], faults: set[str]) -> None:
        self.data, self.fields, self.faults = data, fields, faults
        self.entries: dict[int, list[tuple[int, int]]] = {}  # of dictionaries: how many entries, how long together
        self.rows: list[int] = []  # of batches
        self.texts: list[list[int | None]] = []  # of batches, of columns: how long their texts are together

    def add(self, begin: int, described: int, body: int) -> None:
        """One message."""
        flat, place = _message(self.data, begin)
        kind, about = flat.root.number(1, "<B"), flat.root.table(2)
        assert about is not None
        number = about.number(0, "<q") if kind == _DICTIONARY else 0
        batch = about.table(1) if kind == _DICTIONARY else about
        if batch is None or kind not in (_DICTIONARY, _RECORDS) or flat.root.tables(4) or place > begin + described:
            self.faults.add("a structure that this audit does not know")
            return
        rows = batch.number(0, "<q")
        if any(length != rows for length, _ in batch.structs(1, "<qq")):
            self.faults.add("buffers of another length than their rows need")
        packed = batch.table(3)
        if packed is not None and packed.number(0) != 1:
            self.faults.add("a structure that this audit does not know")
        buffers = self._buffers(batch, begin + described, body)
        lengths = iter([self._length(*buffer) if packed else buffer[1] for buffer in buffers])
        if kind == _DICTIONARY:
            texts = self._column(lengths, _Field(_LARGE_TEXT[1], 0), rows)
            self.entries.setdefault(number, []).append((rows, texts or 0))
        else:
            self.rows.append(rows)
            self.texts.append([self._column(lengths, field, rows) for field in self.fields])
        if next(lengths, None) is not None or flat.has_rest():
            self.faults.add("bytes that nothing refers to")

    def _buffers(self, batch: _Table, begin: int, body: int) -> list[tuple[int, int]]:
        """Where the buffers of a message are, and their lengths; between them is nothing but zeros."""
        place, buffers = begin, []
        for offset, length in [*batch.structs(2, "<qq"), (body, 0)]:
            if begin + offset < place or any(self.data[place : begin + offset]):
                self.faults.add("bytes that nothing refers to")
            buffers.append((begin + offset, length))
            place = begin + offset + length
        return buffers[:-1]

    def _length(self, place: int, length: int) -> int:
        """How long a buffer is, unpacked."""
        if length == 0:
            return 0
        content = self.data[place : place + length]
        unpacked = int.from_bytes(content[:8], "little", signed=True)
        if unpacked == -1:
            return length - 8
        if frame_end(content[8:]) != length - 8:
            self.faults.add("bytes that nothing refers to")
        return unpacked

    def _column(self, lengths: Iterator[int], field: _Field, rows: int) -> int | None:
        """Takes the buffers of a column, and gives the length of its texts."""
        if field.kind == _NULL:
            return None
        bits = (rows + 7) // 8
        known, values = next(lengths, -1), next(lengths, -1)
        texts = None
        if field.dictionary is None and field.kind in _TEXT + _LARGE_TEXT:
            width = 4 if field.kind in _TEXT else 8
            fits, texts = values in (0, (rows + 1) * width), next(lengths, -1)
        elif field.dictionary is None and field.kind == _BOOLEAN:
            fits = values == bits
        else:
            fits = values == rows * field.width
        if known not in (0, bits) or not fits:
            self.faults.add("buffers of another length than their rows need")
        return texts
