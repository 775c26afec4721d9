# SPDX-License-Identifier: Apache-2.0
"""Kernels that move rows: a node's rows go from one buffer to the other, part by part, so that every part is a run of
rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.engines.memory.counting import at, read, run_of
from anonfit.engines.memory.layout import BIT, MASK, QUARTER, Columns, Int, Rows
from anonfit.engines.memory.scratch import PARTS, SIZES, Scratch
from anonfit.runtime.compiling import inner, kernel

__all__ = ["count_parts", "divide", "persons_between", "scatter"]


@kernel
def count_parts(
    rows: Rows,
    columns: Columns,
    column: Int,
    parts: Int,
    by_set: Int,
    start: Int,
    stop: Int,
    scratch: Scratch,
    sizes: Any,
) -> None:
    """Count the rows start..stop that go to each part."""
    words, bit, mask = rows.words, columns.facts[BIT, column], columns.facts[MASK, column]
    side, firsts = scratch.side, scratch.lists[PARTS]
    for part in range(parts):
        sizes[part] = 0
    for row in range(start, stop):
        code = read(words, bit, mask, row)
        if by_set == 1:
            sizes[np.int64(side[code])] += 1
        else:
            sizes[run_of(firsts, parts, code)] += 1


@kernel
def scatter(
    source: Rows,
    target: Rows,
    columns: Columns,
    column: Int,
    parts: Int,
    by_set: Int,
    start: Int,
    stop: Int,
    step: Int,
    scratch: Scratch,
    places: Any,
) -> None:
    """Move rows start, start + step, … before stop to their parts; `places` holds the next free row of each part.

    Two threads can share a node: one goes forward from its first row, the other backward from its last, and they meet
    within every part, whose rows keep their order.
    """
    bit, mask = columns.facts[BIT, column], columns.facts[MASK, column]
    old, new, side, firsts = source.words, target.words, scratch.side, scratch.lists[PARTS]
    words = old.shape[1]
    if parts > 2:
        for row in range(start, stop, step):
            part = run_of(firsts, parts, read(old, bit, mask, row))
            for word in range(words):
                new[places[part], word] = old[row, word]
            places[part] += step
        return
    second = firsts[1]
    low, high = places[0], places[1]
    for row in range(start, stop, step):
        code = read(old, bit, mask, row)
        below = side[at(code)] == 0 if by_set == 1 else code < second
        place = low if below else high
        if words == 2:  # most tables need two or three words
            new[at(place), 0], new[at(place), 1] = old[at(row), 0], old[at(row), 1]
        elif words == 3:
            new[at(place), 0], new[at(place), 1] = old[at(row), 0], old[at(row), 1]
            new[at(place), 2] = old[at(row), 2]
        else:
            for word in range(words):
                new[at(place), word] = old[at(row), word]
        low += step if below else 0
        high += 0 if below else step
    places[0], places[1] = low, high


@inner
def persons_between(rows: Rows, columns: Columns, start: Int, stop: Int) -> Any:
    """Persons of rows start..stop, each row counted on its own."""
    if columns.counts < 0:
        return stop - start
    persons = np.int64(0)
    words, counts = rows.words, columns.counts
    for row in range(start, stop):
        persons += read(words, counts, QUARTER, row)
    return persons


@inner
def divide(
    source: Rows,
    target: Rows,
    columns: Columns,
    column: Int,
    parts: Int,
    by_set: Int,
    start: Int,
    stop: Int,
    scratch: Scratch,
    edges: Any,
) -> Any:
    """Move a node's rows to their parts; fills `edges` (part, first row and row after the last) and returns the
    largest part.
    """
    lists = scratch.lists
    if columns.counts >= 0:
        count_parts(source, columns, column, parts, by_set, start, stop, scratch, lists[SIZES])
    place, largest = start, np.int64(0)
    for part in range(parts):
        edges[0, part], edges[1, part] = place, place
        place += lists[SIZES, part]
        if lists[SIZES, part] > lists[SIZES, largest]:
            largest = np.int64(part)
    scatter(source, target, columns, column, parts, by_set, start, stop, np.int64(1), scratch, edges[1])
    return largest
