# SPDX-License-Identifier: Apache-2.0
"""Kernels that count rows: node histograms, the codes present in a node, and the persons on each side of a cut."""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.compiling import kernel
from anonfit.engines.memory.layout import (
    BIN,
    CODES,
    FIELD,
    LEFT,
    OWN,
    PERSONS,
    RIGHT,
    SIZE,
    STARTS,
    WIDTH,
    Columns,
    Int,
    Rows,
    Scratch,
)

__all__ = ["count_rows", "persons_beside", "persons_within", "present", "read", "run_of"]


@kernel
def read(rows: Rows, width: Int, field: Int, row: Int) -> Any:
    """The code in a row's field of so many bytes."""
    if width == 1:
        return np.int64(rows.bytes[row, field])
    if width == 2:
        return np.int64(rows.halves[row, field])
    return np.int64(rows.quarters[row, field])


@kernel
def run_of(starts: Any, runs: Int, code: Int) -> Any:
    """The run that holds a code: the last one that starts at or below it."""
    low, high = np.int64(0), np.int64(runs - 1)
    while low < high:
        middle = (low + high + 1) >> 1
        if starts[middle] <= code:
            low = middle
        else:
            high = middle - 1
    return low


@kernel
def count_rows(rows: Rows, columns: Columns, start: Int, stop: Int, sign: Int, histogram: Any) -> None:
    """Add (sign 1) or take away (sign -1) the persons of rows start..stop in the histogram of the narrow columns."""
    bins, codes, first = columns.narrow, rows.bytes, columns.byte
    width = bins.shape[0]
    if columns.counts < 0:
        for row in range(start, stop):
            for index in range(width):
                histogram[bins[index] + codes[row, first + index]] += sign
        return
    for row in range(start, stop):
        persons = np.int64(rows.quarters[row, columns.counts]) * sign
        for index in range(width):
            histogram[bins[index] + codes[row, first + index]] += persons


@kernel
def _sort_keys(keys: Any, count: Int, size: Int) -> Any:
    """Sort keys by their upper half (codes below size), least digit first; returns the row of `keys` that holds
    them.
    """
    source = np.int64(0)
    place = np.zeros(257, np.int64)
    shift = np.int64(0)
    while (size - 1) >> shift > 0:
        for digit in range(257):
            place[digit] = 0
        for index in range(count):
            place[(np.int64(keys[source, index] >> np.uint64(32)) >> shift & 255) + 1] += 1
        for digit in range(256):
            place[digit + 1] += place[digit]
        for index in range(count):
            here = np.int64(keys[source, index] >> np.uint64(32)) >> shift & 255
            keys[1 - source, place[here]] = keys[source, index]
            place[here] += 1
        source = 1 - source
        shift += 8
    return source


@kernel
def _present_dense(histogram: Any, first: Int, low: Int, high: Int, lists: Any) -> Any:
    """The non-empty counters of codes low..high."""
    found = np.int64(0)
    for code in range(low, high + 1):
        if histogram[first + code] != 0:
            lists[CODES, found] = code
            lists[PERSONS, found] = histogram[first + code]
            found += 1
    return found


@kernel
def _present_sorted(keys: Any, source: Int, count: Int, lists: Any) -> Any:
    """The distinct codes of sorted keys."""
    found = np.int64(0)
    last = np.int64(-1)
    for index in range(count):
        code = np.int64(keys[source, index] >> np.uint64(32))
        if code != last:
            lists[CODES, found], lists[PERSONS, found] = code, 0
            found += 1
            last = code
        lists[PERSONS, found - 1] += np.int64(keys[source, index] & np.uint64(0xFFFFFFFF))
    return found


@kernel
def present(
    rows: Rows,
    columns: Columns,
    column: Int,
    start: Int,
    stop: Int,
    histogram: Any,
    low: Int,
    high: Int,
    scratch: Scratch,
) -> Any:
    """Fill the lists CODES and PERSONS with the codes between low and high that the node's rows have; how many."""
    if columns.facts[BIN, column] >= 0:
        return _present_dense(histogram, columns.facts[BIN, column], low, high, scratch.lists)
    width, field = columns.facts[WIDTH, column], columns.facts[FIELD, column]
    count = stop - start
    dense, keys = scratch.dense, scratch.keys
    if count * 4 > high - low or count > keys.shape[1]:
        for row in range(start, stop):
            persons = np.int64(1)
            if columns.counts >= 0:
                persons = np.int64(rows.quarters[row, columns.counts])
            dense[read(rows, width, field, row)] += persons
        found = _present_dense(dense, np.int64(0), low, high, scratch.lists)
        for code in range(low, high + 1):
            dense[code] = 0
        return found
    for row in range(start, stop):
        persons = np.int64(1)
        if columns.counts >= 0:
            persons = np.int64(rows.quarters[row, columns.counts])
        keys[0, row - start] = np.uint64(read(rows, width, field, row) << 32 | persons)
    source = _sort_keys(keys, count, columns.facts[SIZE, column])
    return _present_sorted(keys, source, count, scratch.lists)


@kernel
def persons_beside(rows: Rows, columns: Columns, column: Int, start: Int, stop: Int, elements: Int, lists: Any) -> None:
    """Fill the lists LEFT and RIGHT: the persons with a row in elements up to each one, and above it.

    Persons are not additive where a person has several rows: one may stand on both sides. The rows of a person are
    together, so its
    lowest and highest element are found in one pass, and counting those is additive.
    """
    if columns.entity < 0:
        total = np.int64(0)
        for element in range(elements):
            total += lists[OWN, element]
            lists[LEFT, element] = total
        for element in range(elements):
            lists[RIGHT, element] = total - lists[LEFT, element]
        return
    width, field = columns.facts[WIDTH, column], columns.facts[FIELD, column]
    for element in range(elements):
        lists[LEFT, element] = 0
        lists[RIGHT, element] = 0
    row = np.int64(start)
    while row < stop:
        person = rows.quarters[row, columns.entity]
        lowest, highest = np.int64(elements), np.int64(-1)
        while row < stop and rows.quarters[row, columns.entity] == person:
            element = run_of(lists[STARTS], elements, read(rows, width, field, row))
            lowest = min(lowest, element)
            highest = max(highest, element)
            row += 1
        lists[LEFT, lowest] += 1
        lists[RIGHT, highest] += 1
    for element in range(1, elements):
        lists[LEFT, element] += lists[LEFT, element - 1]
    above = np.int64(0)
    for element in range(elements - 1, -1, -1):
        here = lists[RIGHT, element]
        lists[RIGHT, element] = above
        above += here


@kernel
def persons_within(rows: Rows, columns: Columns, column: Int, start: Int, stop: Int, elements: Int, lists: Any) -> None:
    """Fill the list LEFT with the persons of each element alone (RIGHT remembers the last person seen there)."""
    for element in range(elements):
        lists[LEFT, element] = lists[OWN, element] if columns.entity < 0 else 0
        lists[RIGHT, element] = -1
    if columns.entity < 0:
        return
    width, field = columns.facts[WIDTH, column], columns.facts[FIELD, column]
    for row in range(start, stop):
        person = np.int64(rows.quarters[row, columns.entity])
        element = run_of(lists[STARTS], elements, read(rows, width, field, row))
        if lists[RIGHT, element] != person:
            lists[RIGHT, element] = person
            lists[LEFT, element] += 1
