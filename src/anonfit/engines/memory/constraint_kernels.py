# SPDX-License-Identifier: Apache-2.0
"""Whether the parts of a split hold what privacy models ask of sensitive columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.engines.memory.count import read, run_of
from anonfit.engines.memory.forms import (
    LEGAL,
    PARTS,
    RANK,
    SENSITIVE_BIT,
    SENSITIVE_MASK,
    SPARE,
    STARTS,
    VALUE,
    KernelConstraints,
    Scratch,
)
from anonfit.engines.memory.layout import BIT, MASK, QUARTER, Columns, Int, Rows
from anonfit.engines.memory.model_kernels import add, allowed, clear, sum_up
from anonfit.runtime.compiling import inner


@inner
def _rows_of(constraints: KernelConstraints, column: Int, start: Int, stop: Int) -> Any:
    """The rows that models read of a column: those of the node, or what stands for them."""
    if constraints.taken[0, column] >= 0:
        return constraints.taken[0, column], constraints.taken[1, column]
    return np.int64(start), np.int64(stop)


@inner
def _bucket(
    rows: Rows, columns: Columns, column: Int, start: Int, stop: Int, places: Int, by_set: Int, scratch: Scratch
) -> None:
    """Fill the second row of keys with a node's rows (counted from its start) by place; the list SPARE says where each
    place ends.

    A row's place is that of its element in the order (by_set -1), its part by runs (0) or by the set (1).
    """
    words, bit, mask = rows.words, columns.facts[BIT, column], columns.facts[MASK, column]
    lists, keys, side = scratch.lists, scratch.keys, scratch.side
    for place in range(places + 1):
        lists[SPARE, place] = 0
    for row in range(start, stop):
        place = _place(lists, side, places, read(words, bit, mask, row), by_set)
        keys[0, row - start] = np.uint64(place)
        lists[SPARE, place + 1] += 1
    for place in range(1, places + 1):
        lists[SPARE, place] += lists[SPARE, place - 1]
    for index in range(stop - start):
        bucket = np.int64(keys[0, index])
        keys[1, lists[SPARE, bucket]] = np.uint64(index)
        lists[SPARE, bucket] += 1


@inner
def _place(lists: Any, side: Any, places: Int, code: Int, by_set: Int) -> Any:
    if by_set == 1:
        return np.int64(side[code])
    if by_set == 0:
        return run_of(lists[PARTS], places, code)
    return lists[RANK, run_of(lists[STARTS], places, code)]


@inner
def _value(words: Any, sensitive: Any, attribute: Int, row: Int) -> Any:
    """What a row has of a sensitive column."""
    return read(words, sensitive[SENSITIVE_BIT, attribute], sensitive[SENSITIVE_MASK, attribute], row)


@inner
def _first_of_pair(
    words: Any, entity: Int, sensitive: Any, attribute: Int, start: Int, stop: Int, row: Int, keys: Any, sign: Int
) -> Any:
    """Whether no other row of this row's person has its value of a sensitive column in a lower place (sign 1), or in a
    higher one (sign -1); of rows in the same place the first counts.
    """
    if entity < 0:
        return True
    person = read(words, entity, QUARTER, row)
    bit, mask = sensitive[SENSITIVE_BIT, attribute], sensitive[SENSITIVE_MASK, attribute]
    value = read(words, bit, mask, row)
    place = sign * np.int64(keys[0, row - start])
    other = row - 1
    while other >= start and read(words, entity, QUARTER, other) == person:
        if sign * np.int64(keys[0, other - start]) <= place and read(words, bit, mask, other) == value:
            return False
        other -= 1
    other = row + 1
    while other < stop and read(words, entity, QUARTER, other) == person:
        if sign * np.int64(keys[0, other - start]) < place and read(words, bit, mask, other) == value:
            return False
        other += 1
    return True


@inner
def _first_in_place(words: Any, entity: Int, sensitive: Any, attribute: Int, start: Int, row: Int, keys: Any) -> Any:
    """Whether no earlier row of this row's person has its value of a sensitive column in the same place."""
    if entity < 0:
        return True
    person = read(words, entity, QUARTER, row)
    bit, mask = sensitive[SENSITIVE_BIT, attribute], sensitive[SENSITIVE_MASK, attribute]
    value = read(words, bit, mask, row)
    other = row - 1
    while other >= start and read(words, entity, QUARTER, other) == person:
        if keys[0, other - start] == keys[0, row - start] and read(words, bit, mask, other) == value:
            return False
        other -= 1
    return True


@inner
def _persons(words: Any, counts: Int, row: Int) -> Any:
    return np.int64(1) if counts < 0 else read(words, counts, QUARTER, row)


@inner
def _sides_allowed(
    rows: Rows,
    columns: Columns,
    constraints: KernelConstraints,
    column: Int,
    start: Int,
    stop: Int,
    by_set: Int,
    scratch: Scratch,
) -> Any:
    """Whether the models allow both parts of a two-way split, where rows need only be counted."""
    words, bit, mask, counts = rows.words, columns.facts[BIT, column], columns.facts[MASK, column], columns.counts
    sensitive, tallies, sides = constraints.sensitive, scratch.tallies, scratch.side
    second = scratch.lists[PARTS, 1]
    for attribute in range(sensitive.shape[1]):
        where, what = sensitive[SENSITIVE_BIT, attribute], sensitive[SENSITIVE_MASK, attribute]
        first = sensitive[VALUE, attribute]
        for row in range(start, stop):
            code = read(words, bit, mask, row)
            side = np.int64(sides[code]) if by_set == 1 else np.int64(code >= second)
            tallies[side, first + read(words, where, what, row)] += _persons(words, counts, row)
    fine = True
    for part in range(2):
        sum_up(constraints, np.int64(part), scratch)
        fine = fine and allowed(constraints, np.int64(part), scratch)
        clear(np.int64(part), scratch)
    return fine


@inner
def parts_allowed(
    rows: Rows,
    columns: Columns,
    constraints: KernelConstraints,
    column: Int,
    start: Int,
    stop: Int,
    parts: Int,
    by_set: Int,
    scratch: Scratch,
) -> Any:
    """Whether the models allow every part of the chosen split that has rows."""
    start, stop = _rows_of(constraints, column, start, stop)
    if parts == 2 and columns.entity < 0:
        return _sides_allowed(rows, columns, constraints, column, start, stop, by_set, scratch)
    _bucket(rows, columns, column, start, stop, parts, by_set, scratch)
    words, counts, entity, sensitive = rows.words, columns.counts, columns.entity, constraints.sensitive
    keys, tallies, lists = scratch.keys, scratch.tallies, scratch.lists
    begin = np.int64(0)
    for part in range(parts):
        end = lists[SPARE, part]
        if end > begin:
            for index in range(begin, end):
                row = start + np.int64(keys[1, index])
                for attribute in range(sensitive.shape[1]):
                    if _first_in_place(words, entity, sensitive, np.int64(attribute), start, row, keys):
                        value = _value(words, sensitive, np.int64(attribute), row)
                        tallies[0, sensitive[VALUE, attribute] + value] += _persons(words, counts, row)
            sum_up(constraints, np.int64(0), scratch)
            fine = allowed(constraints, np.int64(0), scratch)
            clear(np.int64(0), scratch)
            if not fine:
                return False
        begin = end
    return True


@inner
def sweep(
    rows: Rows,
    columns: Columns,
    constraints: KernelConstraints,
    column: Int,
    start: Int,
    stop: Int,
    elements: Int,
    scratch: Scratch,
) -> None:
    """Make cuts of an order illegal (the list LEGAL) that leave a side which the models do not allow."""
    start, stop = _rows_of(constraints, column, start, stop)
    lists, keys, tallies, totals, near = scratch.lists, scratch.keys, scratch.tallies, scratch.totals, scratch.logs
    words, counts, entity, sensitive = rows.words, columns.counts, columns.entity, constraints.sensitive
    numbers, logs = constraints.numbers, constraints.logs
    left, right = np.int64(0), np.int64(1)
    _bucket(rows, columns, column, start, stop, elements, np.int64(-1), scratch)
    for row in range(start, stop):
        persons = _persons(words, counts, row)
        for attribute in range(sensitive.shape[1]):
            if _first_of_pair(words, entity, sensitive, np.int64(attribute), start, stop, row, keys, np.int64(-1)):
                value = _value(words, sensitive, np.int64(attribute), row)
                tallies[1, sensitive[VALUE, attribute] + value] += persons
    sum_up(constraints, right, scratch)
    begin = np.int64(0)
    for place in range(elements - 1):
        end = lists[SPARE, place]
        for index in range(begin, end):
            moved = start + np.int64(keys[1, index])
            persons = _persons(words, counts, moved)
            for attribute in range(sensitive.shape[1]):
                value = _value(words, sensitive, np.int64(attribute), moved)
                if _first_of_pair(words, entity, sensitive, np.int64(attribute), start, stop, moved, keys, np.int64(1)):
                    add(sensitive, numbers, logs, left, np.int64(attribute), value, persons, tallies, totals, near)
                if _first_of_pair(
                    words, entity, sensitive, np.int64(attribute), start, stop, moved, keys, np.int64(-1)
                ):
                    add(sensitive, numbers, logs, right, np.int64(attribute), value, -persons, tallies, totals, near)
        begin = end
        if lists[LEGAL, place] == 1:
            fine = allowed(constraints, left, scratch) and allowed(constraints, right, scratch)
            lists[LEGAL, place] = np.int64(fine)
    clear(left, scratch)
    clear(right, scratch)
