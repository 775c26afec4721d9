# SPDX-License-Identifier: Apache-2.0
"""Kernels that count rows: node histograms, the codes present in a node with their sums, and the persons on each side
of a cut.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.compiling import inner, kernel
from anonfit.engines.memory.guide import (
    BYTES,
    CLASS,
    CLASSES,
    KIND,
    LEAN,
    MASS,
    NUMBER,
    SLOT,
    SLOTS,
    Guide,
)
from anonfit.engines.memory.guide import PLACE as TARGET_PLACE
from anonfit.engines.memory.layout import BIN, FIELD, SIZE, WIDTH, Columns, Int, Rows
from anonfit.engines.memory.scratch import (
    CODES,
    LEFT,
    ORDER,
    OWN,
    PERSONS,
    RANK,
    RIGHT,
    STARTS,
    VALUE,
    Scratch,
)
from anonfit.engines.memory.scratch import (
    SLOT as SLOT_VECTOR,
)

__all__ = ["count_rows", "persons_beside", "persons_of", "persons_within", "present", "read", "run_of"]


@inner
def read(rows: Rows, width: Int, field: Int, row: Int) -> Any:
    """The code in a row's field of so many bytes."""
    if width == 1:
        return np.int64(rows.bytes[row, field])
    if width == 2:
        return np.int64(rows.halves[row, field])
    return np.int64(rows.quarters[row, field])


@inner
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


@inner
def persons_of(guide: Guide, sums: Any, first: Int) -> Any:
    """The persons among sums that begin at an entry: a sum of their own, or what the first target's classes add up
    to.
    """
    if guide.settings[LEAN] == 0:
        return sums[first]
    persons = np.int64(0)
    for one in range(guide.targets[CLASSES, 0]):
        persons += sums[first + one]
    return persons


@inner
def _additions(rows: Rows, columns: Columns, guide: Guide, row: Int, vectors: Any) -> Any:
    """Fill the vectors SLOT and VALUE with what a row adds to which sums; how many."""
    settings, targets = guide.settings, guide.targets
    persons = np.int64(1)
    if columns.counts >= 0:
        persons = np.int64(rows.quarters[row, columns.counts])
    mass = persons
    count = np.int64(0)
    if settings[LEAN] == 0:
        vectors[SLOT_VECTOR, 0], vectors[VALUE, 0] = 0, persons
        count = np.int64(1)
        if settings[MASS] >= 0:
            mass = np.int64(rows.quarters[row, settings[MASS]])
            vectors[SLOT_VECTOR, 1], vectors[VALUE, 1] = 1, mass
            count = np.int64(2)
    for target in range(targets.shape[1]):
        kind, slot, place = targets[KIND, target], targets[SLOT, target], targets[TARGET_PLACE, target]
        if kind == CLASS:
            vectors[SLOT_VECTOR, count] = slot + read(rows, targets[BYTES, target], place, row)
            vectors[VALUE, count] = mass
            count += 1
        elif kind == NUMBER:
            value = np.int64(rows.quarters[row, place])
            if value >= 1 << 31:
                value -= 1 << 32
            vectors[SLOT_VECTOR, count], vectors[VALUE, count] = slot, mass * value
            vectors[SLOT_VECTOR, count + 1], vectors[VALUE, count + 1] = slot + 1, mass * value * value
            count += 2
        else:
            for one in range(targets[CLASSES, target]):
                vectors[SLOT_VECTOR, count] = slot + one
                vectors[VALUE, count] = mass * np.int64(rows.halves[row, place + one])
                count += 1
    return count


@kernel
def count_rows(
    rows: Rows, columns: Columns, guide: Guide, start: Int, stop: Int, sign: Int, histogram: Any, vectors: Any
) -> None:
    """Add (sign 1) or take away (sign -1) the sums of rows start..stop in the histogram of the narrow columns."""
    bins, codes, first = columns.narrow, rows.bytes, columns.byte
    width, slots = bins.shape[0], guide.settings[SLOTS]
    targets = guide.targets
    if columns.counts < 0 and slots == 1:
        for row in range(start, stop):
            for index in range(width):
                histogram[bins[index] + codes[row, first + index]] += sign
        return
    if columns.counts < 0 and guide.settings[LEAN] == 1 and targets.shape[1] == 1 and targets[BYTES, 0] == 1:
        place = targets[TARGET_PLACE, 0]
        for row in range(start, stop):
            slot = np.int64(codes[row, place])
            for index in range(width):
                histogram[(bins[index] + codes[row, first + index]) * slots + slot] += sign
        return
    for row in range(start, stop):
        count = _additions(rows, columns, guide, row, vectors)
        for index in range(width):
            bin_ = (bins[index] + codes[row, first + index]) * slots
            for entry in range(count):
                histogram[bin_ + vectors[SLOT_VECTOR, entry]] += sign * vectors[VALUE, entry]


@inner
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


@inner
def _present_dense(guide: Guide, histogram: Any, first: Int, low: Int, high: Int, scratch: Scratch) -> Any:
    """The codes low..high that somebody has."""
    lists, sums, slots = scratch.lists, scratch.sums, guide.settings[SLOTS]
    found = np.int64(0)
    for code in range(low, high + 1):
        place = (first + code) * slots
        persons = persons_of(guide, histogram, place)
        if persons != 0:
            lists[CODES, found] = code
            lists[PERSONS, found] = persons
            if guide.targets.shape[1] > 0:
                for slot in range(slots):
                    sums[0, found, slot] = histogram[place + slot]
            found += 1
    return found


@inner
def _present_sorted(
    rows: Rows, columns: Columns, guide: Guide, start: Int, source: Int, count: Int, scratch: Scratch
) -> Any:
    """The distinct codes of sorted keys, each a code and the row that has it."""
    lists, sums, keys, vectors = scratch.lists, scratch.sums, scratch.keys, scratch.vectors
    slots = guide.settings[SLOTS]
    found = np.int64(0)
    last = np.int64(-1)
    for index in range(count):
        code = np.int64(keys[source, index] >> np.uint64(32))
        row = start + np.int64(keys[source, index] & np.uint64(0xFFFFFFFF))
        if code != last:
            lists[CODES, found], lists[PERSONS, found] = code, 0
            if guide.targets.shape[1] > 0:
                for slot in range(slots):
                    sums[0, found, slot] = 0
            found += 1
            last = code
        persons = np.int64(1)
        if columns.counts >= 0:
            persons = np.int64(rows.quarters[row, columns.counts])
        lists[PERSONS, found - 1] += persons
        if guide.targets.shape[1] > 0:
            for entry in range(_additions(rows, columns, guide, row, vectors)):
                sums[0, found - 1, vectors[SLOT_VECTOR, entry]] += vectors[VALUE, entry]
    return found


@inner
def present(
    rows: Rows,
    columns: Columns,
    guide: Guide,
    column: Int,
    start: Int,
    stop: Int,
    histogram: Any,
    low: Int,
    high: Int,
    scratch: Scratch,
) -> Any:
    """Fill the lists CODES and PERSONS, and the sums of codes, with the codes between low and high that the node's
    rows have; how many.
    """
    if columns.facts[BIN, column] >= 0:
        return _present_dense(guide, histogram, columns.facts[BIN, column], low, high, scratch)
    width, field = columns.facts[WIDTH, column], columns.facts[FIELD, column]
    count = stop - start
    dense, keys, vectors, slots = scratch.dense, scratch.keys, scratch.vectors, guide.settings[SLOTS]
    if count * 4 > (high - low) * slots or count > keys.shape[1]:
        for row in range(start, stop):
            place = read(rows, width, field, row) * slots
            for entry in range(_additions(rows, columns, guide, row, vectors)):
                dense[place + vectors[SLOT_VECTOR, entry]] += vectors[VALUE, entry]
        found = _present_dense(guide, dense, np.int64(0), low, high, scratch)
        for place in range(low * slots, (high + 1) * slots):
            dense[place] = 0
        return found
    for row in range(start, stop):
        keys[0, row - start] = np.uint64(read(rows, width, field, row) << 32 | (row - start))
    source = _sort_keys(keys, count, columns.facts[SIZE, column])
    return _present_sorted(rows, columns, guide, start, source, count, scratch)


@inner
def persons_beside(rows: Rows, columns: Columns, column: Int, start: Int, stop: Int, elements: Int, lists: Any) -> None:
    """Fill the lists LEFT and RIGHT: the persons with a row in elements up to each place of the order, and above it.

    Persons are not additive where a person has several rows: one may stand on both sides. The rows of a person are
    together, so its lowest and highest place are found in one pass, and counting those is additive.
    """
    if columns.entity < 0:
        total = np.int64(0)
        for place in range(elements):
            total += lists[OWN, lists[ORDER, place]]
            lists[LEFT, place] = total
        for place in range(elements):
            lists[RIGHT, place] = total - lists[LEFT, place]
        return
    width, field = columns.facts[WIDTH, column], columns.facts[FIELD, column]
    for place in range(elements):
        lists[LEFT, place] = 0
        lists[RIGHT, place] = 0
    row = np.int64(start)
    while row < stop:
        person = rows.quarters[row, columns.entity]
        lowest, highest = np.int64(elements), np.int64(-1)
        while row < stop and rows.quarters[row, columns.entity] == person:
            place = lists[RANK, run_of(lists[STARTS], elements, read(rows, width, field, row))]
            lowest = min(lowest, place)
            highest = max(highest, place)
            row += 1
        lists[LEFT, lowest] += 1
        lists[RIGHT, highest] += 1
    for place in range(1, elements):
        lists[LEFT, place] += lists[LEFT, place - 1]
    above = np.int64(0)
    for place in range(elements - 1, -1, -1):
        here = lists[RIGHT, place]
        lists[RIGHT, place] = above
        above += here


@inner
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
