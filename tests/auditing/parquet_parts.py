# SPDX-License-Identifier: Apache-2.0
"""Parquet files taken apart and put together again with something more in them. Structs of Thrift's compact protocol are
lists of a field's number, type and value; numbers stay as they are written, twice as large."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

Struct = list[list[Any]]
TEXT, STRUCT, LIST = 8, 12, 9


class Parts:
    """Reads a struct at a place."""

    def __init__(self, data: bytes, place: int) -> None:
        self.data, self.place = data, place

    def number(self) -> int:
        number = shift = 0
        while True:
            byte = self.data[self.place]
            self.place += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    def value(self, kind: int) -> Any:
        if kind in (1, 2):
            return None
        if kind in (4, 5, 6):
            return self.number()
        if kind == TEXT:
            length = self.number()
            self.place += length
            return self.data[self.place - length : self.place]
        if kind == LIST:
            head = self.data[self.place]
            self.place += 1
            return [head & 15, [self.value(head & 15) for _ in range(head >> 4 if head < 240 else self.number())]]
        assert kind == STRUCT
        return self.struct()

    def struct(self) -> Struct:
        fields: Struct = []
        number = 0
        while head := self.data[self.place]:
            self.place += 1
            number = number + (head >> 4) if head >> 4 else self.number() // 2
            fields.append([number, head & 15, self.value(head & 15)])
        self.place += 1
        return fields


def digits(number: int) -> bytes:
    """A number as Thrift writes it."""
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])


def written(kind: int, value: Any) -> bytes:
    """A value as Thrift writes it."""
    if kind in (1, 2):
        return b""
    if kind in (4, 5, 6):
        return digits(value)
    if kind == TEXT:
        return digits(len(value)) + bytes(value)
    if kind == LIST:
        inner, values = value
        head = bytes([len(values) << 4 | inner]) if len(values) < 15 else bytes([240 | inner]) + digits(len(values))
        return head + b"".join(written(inner, one) for one in values)
    return b"".join(bytes([kind]) + digits(2 * number) + written(kind, inner) for number, kind, inner in value) + b"\0"


def at(fields: Struct, number: int) -> list[Any]:
    """A field of a struct."""
    return next(field for field in fields if field[0] == number)


def has(fields: Struct, number: int) -> bool:
    return any(field[0] == number for field in fields)


def rebuild(
    frame: pl.DataFrame,
    path: Path,
    *,
    page: Callable[[Struct, bytes], bytes] = lambda header, body: body,
    footer: Callable[[Struct], object] = lambda fields: None,
) -> None:
    """Write a table as a Parquet file whose pages (a header and a body, which is given back) and footer are changed."""
    plain = io.BytesIO()
    frame.write_parquet(plain, compression="uncompressed")
    data, out = plain.getvalue(), bytearray(b"PAR1")
    fields = Parts(data, len(data) - 8 - int.from_bytes(data[-8:-4], "little")).struct()
    for group in at(fields, 4)[2][1]:
        for chunk in at(group, 1)[2][1]:
            about = at(chunk, 3)[2]
            begins = [number for number in (9, 11) if has(about, number)]
            place, first = min(at(about, number)[2] for number in begins) // 2, len(out)
            end = place + at(about, 7)[2] // 2
            while place < end:
                parts = Parts(data, place)
                header = parts.struct()
                place = parts.place + at(header, 3)[2] // 2
                body = page(header, data[parts.place : place])
                at(header, 2)[2] = at(header, 3)[2] = 2 * len(body)
                at(about, 11 if has(header, 7) else 9)[2] = 2 * len(out)
                out += written(STRUCT, header) + body
            at(about, 6)[2] = at(about, 7)[2] = 2 * (len(out) - first)
            at(chunk, 2)[2] = at(about, 9)[2] + at(about, 7)[2]
            chunk[:] = [field for field in chunk if field[0] in (2, 3)]  # without indexes of pages
        abouts = [at(chunk, 3)[2] for chunk in at(group, 1)[2][1]]
        at(group, 2)[2], at(group, 6)[2] = (sum(at(about, number)[2] for about in abouts) for number in (6, 7))
    footer(fields)
    end_of_file = written(STRUCT, fields)
    path.write_bytes(out + end_of_file + len(end_of_file).to_bytes(4, "little") + b"PAR1")
