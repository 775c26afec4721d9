# SPDX-License-Identifier: Apache-2.0
"""Whether the parts of a split hold what privacy models ask of sensitive columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.engines.memory import forms, layout
from anonfit.engines.memory.count import persons_in, read, run_of
from anonfit.engines.memory.forms import KernelConstraints, NodeView
from anonfit.engines.memory.layout import QUARTER, Int
from anonfit.engines.memory.model_kernels import add, allowed, clear, sum_up
from anonfit.runtime.compiling import inner


@inner
def _rows_of(node: NodeView, constraints: KernelConstraints, column: Int) -> Any:
    """The rows that models read of a column: those of the node, or what stands for them."""
    if constraints.taken[0, column] >= 0:
        return constraints.taken[0, column], constraints.taken[1, column]
    return np.int64(node.start), np.int64(node.stop)


@inner
def _bucket(node: NodeView, column: Int, start: Int, stop: Int, places: Int, by_set: Int) -> None:
    """Fill the second row of keys with a node's rows (counted from its start) by place; the list SPARE says where each
    place ends.

    A row's place is that of its element in the order (by_set -1), its part by runs (0) or by the set (1).
    """
    words, facts = node.rows.words, node.columns.facts
    bit, mask = facts[layout.BIT, column], facts[layout.MASK, column]
    lists, keys, side = node.scratch.lists, node.scratch.keys, node.scratch.side
    for place in range(places + 1):
        lists[forms.SPARE, place] = 0
    for row in range(start, stop):
        place = _place(lists, side, places, read(words, bit, mask, row), by_set)
        keys[0, row - start] = np.uint64(place)
        lists[forms.SPARE, place + 1] += 1
    for place in range(1, places + 1):
        lists[forms.SPARE, place] += lists[forms.SPARE, place - 1]
    for index in range(stop - start):
        bucket = np.int64(keys[0, index])
        keys[1, lists[forms.SPARE, bucket]] = np.uint64(index)
        lists[forms.SPARE, bucket] += 1


@inner
def _place(lists: Any, side: Any, places: Int, code: Int, by_set: Int) -> Any:
    if by_set == 1:
        return np.int64(side[code])
    if by_set == 0:
        return run_of(lists[forms.PARTS], places, code)
    return lists[forms.RANK, run_of(lists[forms.STARTS], places, code)]


@inner
def _value(words: Any, sensitive: Any, attribute: Int, row: Int) -> Any:
    """What a row has of a sensitive column."""
    return read(words, sensitive[forms.SENSITIVE_BIT, attribute], sensitive[forms.SENSITIVE_MASK, attribute], row)


@inner
def _is_counted(
    words: Any, entity: Int, sensitive: Any, attribute: Int, start: Int, stop: Int, row: Int, keys: Any, sign: Int
) -> Any:
    """Whether no other row of this row's person has its value of a sensitive column in the same place (sign 0), in this
    or a lower place (1), or in this or a higher one (-1); of rows in the same place the first counts.
    """
    if entity < 0:
        return True
    person, value = read(words, entity, QUARTER, row), _value(words, sensitive, attribute, row)
    place, other = np.int64(keys[0, row - start]), row
    while other > start and read(words, entity, QUARTER, other - 1) == person:
        other -= 1
    while other < stop and read(words, entity, QUARTER, other) == person:
        further = np.int64(keys[0, other - start]) - place
        is_before = sign * further < 0 or (further == 0 and other < row)
        if is_before and _value(words, sensitive, attribute, other) == value:
            return False
        other += 1
    return True


@inner
def _sides_allowed(node: NodeView, constraints: KernelConstraints, column: Int, by_set: Int) -> Any:
    """Whether the models allow both parts of a two-way split, where rows need only be counted."""
    start, stop = _rows_of(node, constraints, column)
    words, facts, counts = node.rows.words, node.columns.facts, node.columns.counts
    bit, mask = facts[layout.BIT, column], facts[layout.MASK, column]
    sensitive, tallies, sides = constraints.sensitive, node.scratch.tallies, node.scratch.side
    second = node.scratch.lists[forms.PARTS, 1]
    for attribute in range(sensitive.shape[1]):
        where, what = sensitive[forms.SENSITIVE_BIT, attribute], sensitive[forms.SENSITIVE_MASK, attribute]
        first = sensitive[forms.VALUE, attribute]
        for row in range(start, stop):
            code = read(words, bit, mask, row)
            side = np.int64(sides[code]) if by_set == 1 else np.int64(code >= second)
            tallies[side, first + read(words, where, what, row)] += persons_in(words, counts, row)
    fine = True
    for part in range(2):
        fine = _tally_allowed(node, constraints, np.int64(part)) and fine
    return fine


@inner
def _tally_allowed(node: NodeView, constraints: KernelConstraints, side: Int) -> Any:
    """Whether the models allow what was tallied of a side, which is then forgotten."""
    sum_up(constraints, side, node.scratch)
    fine = allowed(constraints, side, node.scratch)
    clear(side, node.scratch)
    return fine


@inner
def parts_allowed(node: NodeView, constraints: KernelConstraints, column: Int, parts: Int, by_set: Int) -> Any:
    """Whether the models allow every part of the chosen split that has rows."""
    words, counts, entity, sensitive = node.rows.words, node.columns.counts, node.columns.entity, constraints.sensitive
    if parts == 2 and entity < 0:
        return _sides_allowed(node, constraints, column, by_set)
    start, stop = _rows_of(node, constraints, column)
    _bucket(node, column, start, stop, parts, by_set)
    keys, tallies, lists = node.scratch.keys, node.scratch.tallies, node.scratch.lists
    begin, same = np.int64(0), np.int64(0)
    for part in range(parts):
        end = lists[forms.SPARE, part]
        if end > begin:
            for index in range(begin, end):
                row = start + np.int64(keys[1, index])
                for each in range(sensitive.shape[1]):
                    attribute = np.int64(each)
                    if _is_counted(words, entity, sensitive, attribute, start, stop, row, keys, same):
                        value = _value(words, sensitive, attribute, row)
                        tallies[0, sensitive[forms.VALUE, attribute] + value] += persons_in(words, counts, row)
            if not _tally_allowed(node, constraints, np.int64(0)):
                return False
        begin = end
    return True


@inner
def sweep(node: NodeView, constraints: KernelConstraints, column: Int, elements: Int) -> None:
    """Make cuts of an order illegal (the list LEGAL) that leave a side which the models do not allow."""
    start, stop = _rows_of(node, constraints, column)
    scratch, words, counts, entity = node.scratch, node.rows.words, node.columns.counts, node.columns.entity
    lists, keys, tallies, sensitive = scratch.lists, scratch.keys, scratch.tallies, constraints.sensitive
    left, right, up, down = np.int64(0), np.int64(1), np.int64(1), np.int64(-1)
    _bucket(node, column, start, stop, elements, down)
    for row in range(start, stop):
        persons = persons_in(words, counts, row)
        for each in range(sensitive.shape[1]):
            attribute = np.int64(each)
            if _is_counted(words, entity, sensitive, attribute, start, stop, row, keys, down):
                value = _value(words, sensitive, attribute, row)
                tallies[1, sensitive[forms.VALUE, attribute] + value] += persons
    sum_up(constraints, right, scratch)
    begin = np.int64(0)
    for place in range(elements - 1):
        end = lists[forms.SPARE, place]
        for index in range(begin, end):
            moved = start + np.int64(keys[1, index])
            persons = persons_in(words, counts, moved)
            for each in range(sensitive.shape[1]):
                attribute = np.int64(each)
                value = _value(words, sensitive, attribute, moved)
                if _is_counted(words, entity, sensitive, attribute, start, stop, moved, keys, up):
                    add(constraints, left, attribute, value, persons, scratch)
                if _is_counted(words, entity, sensitive, attribute, start, stop, moved, keys, down):
                    add(constraints, right, attribute, value, -persons, scratch)
        begin = end
        if lists[forms.LEGAL, place] == 1:
            fine = allowed(constraints, left, scratch) and allowed(constraints, right, scratch)
            lists[forms.LEGAL, place] = np.int64(fine)
    clear(left, scratch)
    clear(right, scratch)
