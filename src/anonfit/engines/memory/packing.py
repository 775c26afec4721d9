# SPDX-License-Identifier: Apache-2.0
"""Kernels that pack rows, field by field, and put packed rows into the order of a column."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.memory.count import at
from anonfit.engines.memory.layout import Columns, Int, Packing, Rows, describe, rows_of, table_fields
from anonfit.runtime.compiling import DirectCalls, kernel, shared
from anonfit.runtime.process import side_by_side
from anonfit.tables.schema import CodedTable

BLOCK = 1 << 17
"""Rows packed at once: so many that the kernel, not Python, takes the time."""


class Field(NamedTuple):
    """What is packed into a field, as bytes."""

    values: NDArray[np.uint8]
    size: int
    """Bytes of a value, of which the lowest ones are packed."""
    order: NDArray[np.int64]  # (row,) which row of the values a packed one is; empty where they stand as they are
    place: int
    """The first byte of the field."""
    width: int


def _fields(packing: Packing, order: NDArray[np.int64]) -> list[Field]:
    """The fields as the kernel is given them."""
    fields = []
    for name, (values, width) in packing.fields.items():
        as_they_are = values.dtype.kind in "iub" and values.itemsize >= width
        own = np.ascontiguousarray(values if as_they_are else values.astype(f"i{width}"))
        fields.append(shared(Field(own.view(np.uint8), own.itemsize, order, packing.places[name], width)))
    return fields


@kernel
def _fill(field: Field, packed: Rows, start: Int, stop: Int) -> None:
    """Write a field of rows start..stop."""
    values, order, size, width = field.values, field.order, field.size, field.width
    place, target = field.place, packed.bytes
    for row in range(start, stop):
        begin = size * (order[at(row)] if order.shape[0] > 0 else row)
        if width == 1:
            target[at(row), at(place)] = values[at(begin)]
        elif width == 2:
            first, second = values[at(begin)], values[at(begin + 1)]
            target[at(row), at(place)], target[at(row), at(place + 1)] = first, second
        else:
            first, second = values[at(begin)], values[at(begin + 1)]
            third, fourth = values[at(begin + 2)], values[at(begin + 3)]
            target[at(row), at(place)], target[at(row), at(place + 1)] = first, second
            target[at(row), at(place + 2)], target[at(row), at(place + 3)] = third, fourth


def each(threads: int, task: Callable[..., object], *arguments: Iterable[Any]) -> None:
    """Do a task for each of its arguments with so many threads."""
    with ThreadPoolExecutor(max(1, threads - 1)) as pool:  # has no thread before one is needed
        side_by_side(pool, threads, task, *arguments)


def pack(packing: Packing, rows: int, *, entities: NDArray[np.uint32] | None = None, threads: int = 1) -> Rows:
    """The rows, packed; rows of one person stand together."""
    packed = rows_of(np.empty((rows, packing.words), dtype=np.uint64))
    order = np.empty(0, np.int64) if entities is None else np.argsort(entities, kind="stable")
    fields, given, call = _fields(packing, order), shared(packed), DirectCalls()

    def fill(start: int) -> None:
        stop = min(start + BLOCK, rows)
        packed.words[start:stop] = 0
        for field in fields:
            call(_fill, field, given, start, stop)

    each(threads, fill, range(0, rows, BLOCK))
    return packed


def pack_table(table: CodedTable, *, threads: int = 1) -> tuple[Rows, Columns]:
    """A table's rows, packed, and what kernels know of its columns."""
    packing = Packing(table_fields(table))
    return pack(packing, table.rows, entities=table.entities, threads=threads), describe(table, packing)


@kernel
def _count_codes(words: Any, field: Any, start: Int, stop: Int, counts: Any) -> None:
    """Count the rows of each code of a field."""
    word, shift, mask = field
    for row in range(start, stop):
        counts[(words[at(row), word] >> shift) & mask] += 1


@kernel
def _move_by_code(words: Any, field: Any, start: Int, stop: Int, places: Any, target: Any) -> None:
    """Move rows to the next free places of their codes."""
    word, shift, mask = field
    for row in range(start, stop):
        code = (words[at(row), word] >> shift) & mask
        place = at(places[code])
        for index in range(words.shape[1]):
            target[place, at(index)] = words[at(row), at(index)]
        places[code] += 1


def in_order_of(rows: Rows, bit: int, mask: int, size: int, *, threads: int = 1) -> Rows:
    """The rows in the order of a field with codes below a size; those of one code as they stand."""
    field = at(bit >> 6), at(bit & 63), at(mask)
    edges = np.linspace(0, len(rows.words), threads + 1).astype(int).tolist()
    runs = edges[:-1], edges[1:]
    counts = np.zeros((threads, size), np.int64)
    each(threads, partial(_count_codes, rows.words, field), *runs, counts)
    ends = np.cumsum(counts.T).reshape(size, threads).T  # of a code the rows of earlier threads come first
    target = np.empty_like(rows.words)

    def move(start: int, stop: int, places: NDArray[np.int64]) -> None:
        _move_by_code(rows.words, field, start, stop, places, target)

    each(threads, move, *runs, np.ascontiguousarray(ends - counts))
    return rows_of(target)
