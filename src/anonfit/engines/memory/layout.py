# SPDX-License-Identifier: Apache-2.0
"""How rows and columns are laid out for the kernels: packed rows, and plain arrays that describe the columns.

Kernels compile faster the fewer arrays they are given, so facts of one kind share an array, one row per fact.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.tables.coded import CodedColumn, CodedTable, SplitMode, code_dtype
from anonfit.tables.taxonomy import Taxonomy

__all__ = ["Columns", "Int", "Rows", "Scratch", "describe", "make_scratch", "pack", "rows_of"]

Int: TypeAlias = int | np.int64
"""A whole number of a kernel: what Python calls int, compiled code has in 64 bits."""

NARROW = 256
"""Columns of at most so many codes are counted in one histogram per node; wider ones when they are needed."""

BLOCK = 1 << 14
"""Rows packed at once."""

# Rows of Columns.facts, one entry per column.
SIZE = 0
MODE = 1
MISSING = 2  # 1 where code 0 is the missing value
WIDTH = 3  # bytes of a code
FIELD = 4  # its place in the row, in units of its width
BIN = 5  # first bin in a node's histogram, -1 for wide columns
PLACE = 6  # first entry in Columns.positions
ROOT = 7  # first entry in Columns.taxonomy, -1 without one

# Rows of Columns.taxonomy, one entry per taxonomy node, depth first.
FIRST = 0  # first code below the node
LAST = 1
AFTER = 2  # the next node that is not below it

# Rows of Scratch.lists.
CODES = 0  # codes present in the node, ascending
PERSONS = 1  # persons of each
STARTS = 2  # first code of each element that may be cut off
OWN = 3  # persons of each element, every row counted on its own
LEFT = 4  # persons of this and lower elements
RIGHT = 5  # persons of higher elements
PARTS = 6  # first code of each part of the chosen split
SIZES = 7  # persons of each part, every row counted on its own


class Rows(NamedTuple):
    """Packed rows, one memory block seen as words of four widths; every row is as many 8-byte words as it needs."""

    words: NDArray[np.uint64]  # (row, word)
    bytes: NDArray[np.uint8]  # (row, byte)
    halves: NDArray[np.uint16]  # (row, half)
    quarters: NDArray[np.uint32]  # (row, quarter)


class Columns(NamedTuple):
    """What the kernels know of the columns.

    `counts`, `entity` and `number` are fields of 4 bytes: how many persons a row stands for (-1: one), whose row it
    is (-1: each row
    is another person's), and the row's number.
    """

    facts: NDArray[np.int64]  # (fact, column)
    scale: NDArray[np.float64]  # (column,) 1 / range over the table, 0 where there is none
    positions: NDArray[np.float64]  # (code of any column,)
    taxonomy: NDArray[np.int64]  # (fact, taxonomy node of any column)
    narrow: NDArray[np.int64]  # (narrow column,) first bin; their codes are bytes that stand together
    byte: int  # the first of these bytes
    bins: int
    counts: int
    entity: int
    number: int


class Scratch(NamedTuple):
    """Working memory of one thread, so that no node allocates any."""

    lists: NDArray[np.int64]  # (list, entry)
    dense: NDArray[np.int64]  # one counter per code of the widest column; all zero between uses
    keys: NDArray[np.uint64]  # (2, row) keys and their sorted copy
    spread: NDArray[np.float64]  # (column,) normalized range in the node, -1 where it cannot be split


def rows_of(words: NDArray[np.uint64]) -> Rows:
    """The views of a block of words."""
    return Rows(words, words.view(np.uint8), words.view(np.uint16), words.view(np.uint32))


def make_scratch(columns: Columns, rows: int) -> Scratch:
    """Working memory for nodes of at most `rows` rows."""
    size = columns.facts[SIZE]
    wide = size[columns.facts[BIN] < 0]
    return Scratch(
        lists=np.zeros((8, int(size.max(initial=1)) + 2), np.int64),
        dense=np.zeros(int(wide.max(initial=1)), np.int64),
        keys=np.empty((2, max(1, min(rows, 1 << 20)) if len(wide) else 1), np.uint64),
        spread=np.empty(size.shape[0], np.float64),
    )


def _normalizer(column: CodedColumn) -> float:
    """What turns a spread within a node into a share of the column's whole spread."""
    known = column.size - int(column.has_missing)
    spread = float(known - 1)
    if column.mode == SplitMode.ORDERED:
        values = column.positions[int(column.has_missing) :]
        spread = float(values[-1] - values[0]) if known else 0.0
    return 1.0 / spread if spread > 0 else 0.0


def _taxonomy_facts(taxonomy: Taxonomy, shift: int, before: int) -> NDArray[np.int64]:
    """The kernels' form of a taxonomy whose first leaf has code `shift`, with `before` nodes standing in front of
    it.
    """
    first = np.asarray(taxonomy.first_leaf, dtype=np.int64)
    after = np.arange(1, len(first) + 1, dtype=np.int64)
    for node in range(len(first) - 1, 0, -1):
        parent = taxonomy.parents[node]
        after[parent] = max(after[parent], after[node])
    return np.stack([first + shift, np.asarray(taxonomy.last_leaf, dtype=np.int64) + shift, after + before])


def describe(table: CodedTable) -> tuple[Columns, int]:
    """The kernels' description of a table's columns, and the words a packed row needs."""
    extra = 1 + (table.counts is not None) + (table.entities is not None)
    facts = np.full((8, len(table.columns)), -1, dtype=np.int64)
    for index, column in enumerate(table.columns):
        width = code_dtype(column.size).itemsize
        facts[[SIZE, MODE, MISSING, WIDTH], index] = column.size, column.mode, column.has_missing, width
    facts[PLACE] = np.cumsum(facts[SIZE]) - facts[SIZE]
    used = 4 * extra
    # Widest first, so that every field is aligned.
    for index in np.argsort(-facts[WIDTH], kind="stable"):
        facts[FIELD, index] = used // facts[WIDTH, index]
        used += int(facts[WIDTH, index])
    narrow = facts[SIZE] <= NARROW
    facts[BIN, narrow] = np.cumsum(facts[SIZE, narrow]) - facts[SIZE, narrow]
    trees = [np.zeros((3, 1), np.int64)]
    nodes = 1
    for index, column in enumerate(table.columns):
        if column.mode in (SplitMode.BINARY, SplitMode.MULTIWAY):
            assert column.taxonomy is not None
            facts[ROOT, index] = nodes
            trees.append(_taxonomy_facts(column.taxonomy, int(column.has_missing), nodes))
            nodes += trees[-1].shape[1]
    described = Columns(
        facts=facts,
        scale=np.array([_normalizer(column) for column in table.columns], dtype=np.float64),
        positions=np.concatenate([np.zeros(0), *(_positions(column) for column in table.columns)]),
        taxonomy=np.concatenate(trees, axis=1),
        narrow=facts[BIN, narrow],
        byte=int(facts[FIELD, narrow].min() if narrow.any() else 0),
        bins=int(facts[SIZE, narrow].sum()),
        counts=1 if table.counts is not None else -1,
        entity=extra - 1 if table.entities is not None else -1,
        number=0,
    )
    return described, max(1, -(-used // 8))


def _positions(column: CodedColumn) -> NDArray[np.float64]:
    if column.mode == SplitMode.ORDERED:
        return column.positions
    return np.zeros(column.size, dtype=np.float64)


def pack(table: CodedTable, columns: Columns, words: int, *, threads: int = 1) -> Rows:
    """The table's rows, packed; rows of one person stand together."""
    rows = rows_of(np.empty((table.rows, words), dtype=np.uint64))
    order = None if table.entities is None else np.argsort(table.entities, kind="stable")
    views: dict[int, NDArray[Any]] = {1: rows.bytes, 2: rows.halves, 4: rows.quarters}

    def fill(start: int) -> None:
        """Pack a block of rows: small enough to stay in the cache while its fields are written."""
        stop = min(start + BLOCK, table.rows)
        wanted: Any = slice(start, stop) if order is None else order[start:stop]
        rows.words[start:stop] = 0
        rows.quarters[start:stop, columns.number] = np.arange(start, stop) if order is None else wanted
        if table.entities is not None:
            rows.quarters[start:stop, columns.entity] = table.entities[wanted]
        if table.counts is not None:
            rows.quarters[start:stop, columns.counts] = table.counts[wanted]
        for index, codes in enumerate(table.codes):
            views[int(columns.facts[WIDTH, index])][start:stop, columns.facts[FIELD, index]] = codes[wanted]

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, range(0, table.rows, BLOCK)))
    return rows
