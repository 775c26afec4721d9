# SPDX-License-Identifier: Apache-2.0
"""What a text or Arrow file holds beside its rows: bytes are looked at, not only the values that a reader makes of
them.

Every byte of an Arrow file belongs to a buffer of a column, to the description of these or to what fills them up,
buffers are as long as the values of their rows need, and nothing lies beneath missing values. Buffers stay compressed:
each says how long it is unpacked, and one of exactly that length has no room for more."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import accumulate, pairwise
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anonfit.auditing import arrow_messages
from anonfit.auditing.arrow_messages import UNKNOWN, UNREFERRED, UNUSED, FlatBuffer, FlatTable, bytes_of
from anonfit.auditing.text_fields import NO_WHOLE, columns_of_fields

_ROWS_AT_ONCE = 1 << 18
_MOMENT = r"^(-?\d{4,}-\d\d-\d\d)?T?(\d\d:\d\d:\d\d(\.\d+)?)?([+-]\d{4})?$"


def unquoted(names: list[str]) -> list[str]:
    """The names of a header as they were before they were written: polars leaves the quotes in them doubled."""
    return [name.replace('""', '"') for name in names]


@dataclass(frozen=True, slots=True)
class ReadForm:
    """How the file of a release is laid out, as its manifest says: of texts the signs and the byte order mark, of
    statistics programs the titles of columns.
    """

    delimiter: str = ","
    decimal: str = "."
    bom: bool = False
    titles: tuple[tuple[str, str], ...] = ()


def csv_faults(path: Path, texts: Collection[str] | None, form: ReadForm) -> set[str]:
    """A text file is, byte for byte, what is written of its own fields."""
    fault = {"lines that are no rows of the table"}
    lazy = pl.scan_csv(path, separator=form.delimiter, infer_schema=False, glob=False, with_column_names=unquoted)
    header = BytesIO()
    lazy.head(0).collect().write_csv(header, separator=form.delimiter, include_bom=form.bom)
    spellings: dict[str, set[str]] = {}
    with path.open("rb") as file:
        if file.read(header.tell()) != header.getvalue():
            return fault
        columns = lazy.collect_schema().names()
        values = [] if texts is None else [name for name in columns if name not in texts]
        found = columns_of_fields(path, header.tell(), form.delimiter, len(columns))
        if found is not None:  # all is written as it must be, and whole numbers in their one spelling
            values = [name for name, what in zip(columns, found, strict=True) if name in values and what & NO_WHOLE]
            lazy = lazy.select(values)
        rows = lazy.collect_batches(chunk_size=_ROWS_AT_ONCE, maintain_order=True, engine="streaming")
        for batch in rows if values or found is None else ():
            if found is None:
                written = BytesIO()
                batch.write_csv(written, separator=form.delimiter, include_header=False)
                if file.read(written.tell()) != written.getvalue():
                    return fault
            for series in batch.select(values).get_columns():
                if series.null_count() < len(series):
                    plain = series if form.decimal == "." else _with_points(series)
                    spellings.setdefault(series.name, set()).add(_spelling(plain))
        if found is None and file.read(1):
            return fault
    several = [name for name, ways in spellings.items() if len(ways) > 1 or "" in ways]
    return {"values that are spelled in several ways"} if several else set()


def _with_points(texts: pl.Series) -> pl.Series:
    """Texts with points and commas swapped, so that a number that had a point is none; moments always have points."""
    swapped = texts.str.replace_many([",", "."], [".", ","])
    return pl.select(pl.when(texts.str.contains(_MOMENT)).then(texts).otherwise(swapped)).to_series()


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


# --- Arrow --------------------------------------------------------------------------------------------------------

_MAGIC = b"ARROW1"
_DICTIONARY, _RECORDS = 2, 3  # kinds of messages
_TEXT, _LARGE_TEXT = (4, 5), (19, 20)  # binary and text, with offsets of 32 and 64 bits
_NULL, _BOOLEAN = 1, 6
_LENGTH = "buffers of another length than their rows need"


@dataclass(frozen=True, slots=True)
class _Field:
    """How a column is laid out: its type by Arrow's number, the bytes of a value, and the number of its dictionary."""

    kind: int
    width: int
    dictionary: int | None = None

    @classmethod
    def of(cls, column: FlatTable, dtype: pl.DataType) -> _Field:
        """The column of a schema; a value's bytes are told by the name of the type that holds it, 0 of texts."""
        kind, dictionary = column.number(2, "<B"), column.table(4)
        if dictionary is not None:
            places = dictionary.table(1)
            return cls(kind, places.number(0, "<i") // 8 if places else 4, dictionary.number(0, "<q"))
        physical = pl.Series([], dtype=dtype).to_physical().dtype
        digits = "".join(filter(str.isdigit, str(physical))) if physical.is_numeric() else ""
        return cls(kind, int(digits or 0) // 8)


def arrow_faults(path: Path) -> set[str]:
    """What a file holds beside its rows, in words."""
    types = pl.scan_ipc(path, glob=False).collect_schema()
    with path.open("rb") as file, mmap(file.fileno(), 0, access=1) as data:
        end = len(data) - 10 - int.from_bytes(data[-10:-6], "little")
        footer = FlatBuffer(bytes(data[end:-10]))
        schema = footer.root.table(1)
        if schema is None or data[:8] != _MAGIC + b"\0\0" or data[-6:] != _MAGIC or footer.root.tables(4):
            return {"metadata"}
        faults = arrow_messages.schema_faults(schema, types)
        fields = [_Field.of(column, dtype) for column, dtype in zip(schema.tables(1), types.values(), strict=True)]
        blocks = [block for number in (2, 3) for block in footer.root.structs(number, "<qi4xq")]
        place = min((block[0] for block in blocks), default=end)
        faults |= arrow_messages.message_faults(bytes(data[8:place]), types)
        layout = _ArrowBuffers(data, fields, faults)
        for begin, described, body in sorted(blocks):
            faults |= {UNREFERRED} if begin != place else set()
            layout.add(begin, described, body)
            place = begin + described + body
        if bytes(data[place:end]).strip(b"\x00\xff") or footer.has_rest() or end - place > 16:
            faults.add(UNREFERRED)
    if faults:  # reading rows by lengths that are wrong could end in no memory
        return faults
    for place, name in enumerate(types):
        column = pl.scan_ipc(path, glob=False).select(name).collect().to_series()
        faults |= _column_faults(column, fields[place], [texts[place] for texts in layout.texts], layout)
    return faults


def _column_faults(column: pl.Series, field: _Field, texts: list[int | None], layout: _ArrowBuffers) -> set[str]:
    """Buffers and dictionaries are as long as a column's values, and there is nothing beneath missing ones."""
    if field.dictionary is not None:
        used = column.drop_nulls().unique().cast(pl.String)
        entries = layout.entries.get(field.dictionary, [])
        lengths = (sum(count for count, _ in entries), sum(size for _, size in entries))
        levels = set(column.dtype.categories) if isinstance(column.dtype, pl.Enum) else set(used)
        same = lengths == (len(used), bytes_of(used)) and levels == set(used)
        return set() if same else {UNUSED}
    if field.kind in _TEXT + _LARGE_TEXT:
        ends = [0, *accumulate(layout.rows)]
        held = [bytes_of(column[begin:end]) for begin, end in pairwise(ends)]
        return set() if held == texts else {"texts that no row has"}
    return {"values beneath missing ones"} if field.kind != _NULL and _has_beneath(column, field.width) else set()


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
            known = _buffer(array, 0, 0)[:, 0]
            something |= bool(_buffer(array, 1, width)[known == 0].any())
        array.release(ctypes.byref(array))


def _buffer(array: _Array, number: int, width: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A buffer of values of so many bytes (0: of bits). (row, byte)"""
    end = array.offset + array.length
    content = (ctypes.c_uint8 * (end * width or (end + 7) // 8)).from_address(array.buffers[number])
    held = np.frombuffer(content, np.uint8)
    held = held if width else np.unpackbits(held, count=end, bitorder="little")
    return held.reshape(-1, width or 1)[array.offset :]


class _ArrowBuffers:
    """The lengths that the buffers of a file have, unpacked."""

    def __init__(self, data: mmap, fields: list[_Field], faults: set[str]) -> None:
        self.data, self.fields, self.faults = data, fields, faults
        self.entries: dict[int, list[tuple[int, int]]] = {}  # of dictionaries: how many entries, how long together
        self.rows: list[int] = []  # of batches
        self.texts: list[list[int | None]] = []  # of batches, of columns: how long their texts are together

    def add(self, begin: int, described: int, body: int) -> None:
        """One message."""
        flat, place = arrow_messages.read_message(self.data, begin)
        kind, about = flat.root.number(1, "<B"), flat.root.table(2)
        assert about is not None
        number = about.number(0, "<q") if kind == _DICTIONARY else 0
        batch = about.table(1) if kind == _DICTIONARY else about
        if batch is None or kind not in (_DICTIONARY, _RECORDS) or flat.root.tables(4) or place > begin + described:
            self.faults.add(UNKNOWN)
            return
        rows = batch.number(0, "<q")
        if any(length != rows for length, _ in batch.structs(1, "<qq")):
            self.faults.add(_LENGTH)
        packed = batch.table(3)
        if packed is not None and packed.number(0) != 1:
            self.faults.add(UNKNOWN)
        buffers = self._buffers(batch, begin + described, body)
        lengths = iter([self._length(*buffer) if packed else buffer[1] for buffer in buffers])
        if kind == _DICTIONARY:
            texts = self._column(lengths, _Field(_LARGE_TEXT[1], 0), rows)
            self.entries.setdefault(number, []).append((rows, texts or 0))
        else:
            self.rows.append(rows)
            self.texts.append([self._column(lengths, field, rows) for field in self.fields])
        if next(lengths, None) is not None or flat.has_rest():
            self.faults.add(UNREFERRED)

    def _buffers(self, batch: FlatTable, begin: int, body: int) -> list[tuple[int, int]]:
        """Where the buffers of a message are, and their lengths; between them is nothing but zeros."""
        place, buffers = begin, []
        for offset, length in [*batch.structs(2, "<qq"), (body, 0)]:
            if begin + offset < place or any(self.data[place : begin + offset]):
                self.faults.add(UNREFERRED)
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
        if arrow_messages.frame_end(content[8:]) != length - 8:
            self.faults.add(UNREFERRED)
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
            self.faults.add(_LENGTH)
        return texts
