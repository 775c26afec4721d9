# SPDX-License-Identifier: Apache-2.0
"""Kernels that spread rows over the values they have: counted in a table where values are few, sorted where they are
many. And the one that says whether a span may exist.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.algorithms.trees.forms import Reach, Rows, Scratch
from anonfit.algorithms.trees.kernels import at
from anonfit.runtime.compiling import inner

__all__ = ["compact", "fill", "holds", "place_of", "reached_values", "spread"]

TIE = 1e-9
# The numbers of a demand.
K, BITS, CONFIDENCE = 0, 1, 2


@inner
def holds(sums: Any, first: Any, classes: Any, demand: Any) -> Any:
    """Whether a span with these persons by class may exist; one that nobody has may."""
    persons, most = np.int64(0), np.int64(0)
    for one in range(first, first + classes):
        persons += sums[at(one)]
        most = max(most, sums[at(one)])
    if persons == 0:
        return True
    if persons < demand[K]:
        return False
    if demand[CONFIDENCE] < 1.0 and most > (demand[CONFIDENCE] + TIE) * persons:
        return False
    if demand[BITS] > 0.0:
        entropy = np.log2(persons)
        for one in range(first, first + classes):
            if sums[at(one)] > 0:
                entropy -= sums[at(one)] * np.log2(sums[at(one)]) / persons
        return entropy >= demand[BITS] - TIE
    return True


@inner
def _is_few(size: Any, rows: Any) -> Any:
    """Whether a table of so many values is cheaper than sorting the rows."""
    return size <= 4 * rows + 64


@inner
def _sort(keys: Any, count: Any) -> None:
    """Sort the first keys; in one place, for it takes long to compile."""
    keys[:count].sort()


@inner
def compact(rows: Rows, low: Any, size: Any, classes: Any, values: Any, table: Any, scratch: Scratch) -> Any:
    """The values of some rows, ascending, with their persons by class; how many values. table: (value, class)"""
    if _is_few(size, rows.stop - rows.first):
        return _compact_few(rows, low, size, classes, values, table, scratch.hist)
    if rows.persons.shape[0] > 0:
        return _compact_weighted(rows, classes, values, table, scratch.keys)
    return _compact_many(rows, classes, values, table, scratch.keys)


@inner
def fill(rows: Rows, low: Any, classes: Any, hist: Any) -> None:
    """Add the persons of some rows to a table of codes from `low` on. hist: (code, class)"""
    if rows.persons.shape[0] > 0:
        for place in range(rows.first, rows.stop):
            row = at(rows.order[at(place)])
            hist[at((np.int64(rows.codes[row]) - low) * classes + rows.labels[row])] += rows.persons[row]
        return
    for place in range(rows.first, rows.stop):
        row = at(rows.order[at(place)])
        hist[at((np.int64(rows.codes[row]) - low) * classes + rows.labels[row])] += 1


@inner
def _compact_few(rows: Rows, low: Any, size: Any, classes: Any, values: Any, table: Any, hist: Any) -> Any:
    fill(rows, low, classes, hist)
    count = np.int64(0)
    for code in range(size):
        persons = np.int64(0)
        for one in range(classes):
            persons += hist[at(code * classes + one)]
        if persons > 0:
            values[at(count)] = low + code
            for one in range(classes):
                table[at(count * classes + one)] = hist[at(code * classes + one)]
                hist[at(code * classes + one)] = 0
            count += 1
    return count


@inner
def _compact_many(rows: Rows, classes: Any, values: Any, table: Any, keys: Any) -> Any:
    held = rows.stop - rows.first
    for place in range(held):
        row = at(rows.order[at(rows.first + place)])
        keys[at(place)] = np.int64(rows.codes[row]) * classes + rows.labels[row]
    _sort(keys, held)
    count = np.int64(0)
    for place in range(held):
        code = keys[at(place)] // classes
        if count == 0 or values[at(count - 1)] != code:
            values[at(count)] = code
            for one in range(classes):
                table[at(count * classes + one)] = 0
            count += 1
        table[at((count - 1) * classes + keys[at(place)] % classes)] += 1
    return count


@inner
def _compact_weighted(rows: Rows, classes: Any, values: Any, table: Any, keys: Any) -> Any:
    held = rows.stop - rows.first
    for place in range(held):
        keys[at(place)] = np.int64(rows.codes[at(rows.order[at(rows.first + place)])])
    _sort(keys, held)
    count = _distinct(keys, held, values)
    spread(rows, classes, values, count, table)
    return count


@inner
def _distinct(keys: Any, held: Any, values: Any) -> Any:
    """The different ones of sorted keys; how many."""
    count = np.int64(0)
    for place in range(held):
        if count == 0 or values[at(count - 1)] != keys[at(place)]:
            values[at(count)] = keys[at(place)]
            count += 1
    return count


@inner
def reached_values(codes: Any, reach: Reach, low: Any, size: Any, scratch: Scratch) -> Any:
    """The values of the rows that can reach a node, ascending, to `scratch.values`; how many."""
    hist, keys, values, segments = scratch.hist, scratch.keys, scratch.values, reach.segments
    rows, held, count = np.int64(0), np.int64(0), np.int64(0)
    for segment in range(segments.shape[0]):
        rows += segments[segment, 1] - segments[segment, 0]
    is_few = _is_few(size, rows)
    for segment in range(segments.shape[0]):
        for place in range(segments[segment, 0], segments[segment, 1]):
            code = np.int64(codes[at(reach.order[at(place)])])
            if is_few:
                hist[at(code - low)] = 1
            else:
                keys[at(held)] = code
                held += 1
    if not is_few:
        _sort(keys, held)
        return _distinct(keys, held, values)
    for place in range(size):
        if hist[at(place)] > 0:
            hist[at(place)] = 0
            values[at(count)] = low + place
            count += 1
    return count


@inner
def place_of(values: Any, count: Any, code: Any) -> Any:
    """The place of a code among ascending values that hold it."""
    low, high = np.int64(0), count - 1
    while low < high:
        middle = (low + high) >> 1
        if values[at(middle)] < code:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def spread(rows: Rows, classes: Any, values: Any, count: Any, table: Any) -> None:
    """Count persons by class over values that hold theirs. table: (value, class)"""
    for place in range(count * classes):
        table[at(place)] = 0
    if rows.persons.shape[0] > 0:
        for place in range(rows.first, rows.stop):
            row = at(rows.order[at(place)])
            entry = place_of(values, count, rows.codes[row]) * classes + rows.labels[row]
            table[at(entry)] += rows.persons[row]
        return
    for place in range(rows.first, rows.stop):
        row = at(rows.order[at(place)])
        table[at(place_of(values, count, rows.codes[row]) * classes + rows.labels[row])] += 1
