# SPDX-License-Identifier: Apache-2.0
"""Kernels that spread rows over the values they have: counted in a table where values are few, sorted where they are
many.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.compiling import inner
from anonfit.trees.kernels import at

__all__ = ["compact", "holds", "place_of", "spread", "wide"]

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
def compact(
    codes: Any,
    labels: Any,
    order: Any,
    first: Any,
    stop: Any,
    low: Any,
    size: Any,
    classes: Any,
    values: Any,
    table: Any,
    hist: Any,
    keys: Any,
) -> Any:
    """The values of some rows, ascending, with their persons by class; how many values. table: (value, class)"""
    count = np.int64(0)
    if _is_few(size, stop - first):
        for place in range(first, stop):
            row = at(order[at(place)])
            hist[at((np.int64(codes[row]) - low) * classes + labels[row])] += 1
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
    for place in range(first, stop):
        row = at(order[at(place)])
        keys[at(place - first)] = np.int64(codes[row]) * classes + labels[row]
    found = keys[: stop - first]
    found.sort()
    for place in range(stop - first):
        code = found[at(place)] // classes
        if count == 0 or values[at(count - 1)] != code:
            values[at(count)] = code
            for one in range(classes):
                table[at(count * classes + one)] = 0
            count += 1
        table[at((count - 1) * classes + found[at(place)] % classes)] += 1
    return count


@inner
def wide(codes: Any, order: Any, segments: Any, low: Any, size: Any, values: Any, hist: Any, keys: Any) -> Any:
    """The values of the rows of some segments, ascending; how many."""
    rows, count = np.int64(0), np.int64(0)
    for segment in range(segments.shape[0]):
        rows += segments[segment, 1] - segments[segment, 0]
    is_few = _is_few(size, rows)
    held = np.int64(0)
    for segment in range(segments.shape[0]):
        for place in range(segments[segment, 0], segments[segment, 1]):
            code = np.int64(codes[at(order[at(place)])])
            if is_few:
                hist[at(code - low)] = 1
            else:
                keys[at(held)] = code
                held += 1
    if is_few:
        for place in range(size):
            if hist[at(place)] > 0:
                hist[at(place)] = 0
                values[at(count)] = low + place
                count += 1
        return count
    found = keys[:held]
    found.sort()
    for place in range(held):
        if count == 0 or values[at(count - 1)] != found[at(place)]:
            values[at(count)] = found[at(place)]
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
def spread(
    codes: Any,
    labels: Any,
    order: Any,
    first: Any,
    stop: Any,
    classes: Any,
    values: Any,
    count: Any,
    table: Any,
) -> None:
    """Count rows by class over values that hold theirs. table: (value, class)"""
    for place in range(count * classes):
        table[at(place)] = 0
    for place in range(first, stop):
        row = at(order[at(place)])
        table[at(place_of(values, count, codes[row]) * classes + labels[row])] += 1
