# SPDX-License-Identifier: Apache-2.0
"""Kernels that choose a node's split by Median Mondrian: the widest column that has a legal cut, cut at its median."""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.compiling import kernel
from anonfit.engines.memory.counting import persons_beside, persons_within, present, read
from anonfit.engines.memory.layout import (
    AFTER,
    BIN,
    CODES,
    FIELD,
    FIRST,
    LAST,
    LEFT,
    MISSING,
    MODE,
    OWN,
    PARTS,
    PERSONS,
    PLACE,
    RIGHT,
    ROOT,
    SIZE,
    SIZES,
    STARTS,
    WIDTH,
    Columns,
    Int,
    Rows,
    Scratch,
)
from anonfit.tables.coded import SplitMode

__all__ = ["FROM", "GAP", "HIGH", "LOW", "SPAN", "TO", "choose_split", "inner_range", "tighten"]

# A node's span, one row per fact and one entry per column: the codes its tile holds (FROM..TO), the lowest and
# highest code its
# rows have beside the missing one (LOW > HIGH where all are missing), and whether there are missing values among them
# (GAP).
FROM, TO, LOW, HIGH, GAP, SPAN = 0, 1, 2, 3, 4, 5

ORDERED = int(SplitMode.ORDERED)
SUBSET = int(SplitMode.SUBSET)
BINARY = int(SplitMode.BINARY)
MULTIWAY = int(SplitMode.MULTIWAY)
TIE = 1e-9


@kernel
def tighten(rows: Rows, columns: Columns, column: Int, start: Int, stop: Int, histogram: Any, span: Any) -> None:
    """Bring LOW, HIGH and GAP of a column to what the node's rows have; an empty histogram means: look at the rows."""
    low, high = span[LOW, column], span[HIGH, column]
    missing = columns.facts[MISSING, column]
    first = columns.facts[BIN, column]
    if first >= 0 and histogram.shape[0] > 0:
        span[GAP, column] = 1 if missing == 1 and histogram[first] != 0 else 0
        while low <= high and histogram[first + low] == 0:
            low += 1
        while high >= low and histogram[first + high] == 0:
            high -= 1
        span[LOW, column], span[HIGH, column] = low, high
        return
    if low == high and span[GAP, column] == 0:
        return
    width, field = columns.facts[WIDTH, column], columns.facts[FIELD, column]
    low, high, gap = columns.facts[SIZE, column], np.int64(-1), np.int64(0)
    for row in range(start, stop):
        code = read(rows, width, field, row)
        if missing == 1 and code == 0:
            gap = np.int64(1)
        else:
            low = min(low, code)
            high = max(high, code)
    span[LOW, column], span[HIGH, column], span[GAP, column] = low, high, gap


@kernel
def inner_range(columns: Columns, column: Int, span: Any) -> Any:
    """What a free descent in the taxonomy leaves of a node's tile: first code, last code, the taxonomy node.

    Missing is the lowest code, so a taxonomy node and missing are one run of codes only along first children.
    """
    taxonomy = columns.taxonomy
    node = columns.facts[ROOT, column]
    low, high, gap = span[LOW, column], span[HIGH, column], span[GAP, column]
    if low > high:
        return np.int64(0), np.int64(0), node
    lowest = taxonomy[FIRST, node]
    found = True
    while found:
        found = False
        child = node + 1
        while child < taxonomy[AFTER, node]:
            if taxonomy[FIRST, child] <= low and taxonomy[LAST, child] >= high:
                if gap == 0 or taxonomy[FIRST, child] == lowest:
                    node = child
                    found = True
                break
            child = taxonomy[AFTER, child]
    first = np.int64(0) if gap == 1 else max(taxonomy[FIRST, node], span[FROM, column])
    return first, min(taxonomy[LAST, node], span[TO, column]), node


@kernel
def _spread(
    rows: Rows,
    columns: Columns,
    column: Int,
    start: Int,
    stop: Int,
    histogram: Any,
    span: Any,
    scratch: Scratch,
) -> Any:
    """The normalized range of a column in a node; -1 where there is nothing to split."""
    low, high, gap = span[LOW, column], span[HIGH, column], span[GAP, column]
    if low > high or (low == high and gap == 0):
        return -1.0
    mode = columns.facts[MODE, column]
    if mode == ORDERED:
        place = columns.facts[PLACE, column]
        return (columns.positions[place + high] - columns.positions[place + low]) * columns.scale[column]
    if mode == SUBSET:
        first = columns.facts[BIN, column]
        if first < 0:
            known = present(rows, columns, column, start, stop, histogram, span[FROM, column], high, scratch) - gap
            return (known - 1) * columns.scale[column]
        known = np.int64(0)
        for code in range(low, high + 1):
            known += np.int64(histogram[first + code] != 0)
        return (known - 1) * columns.scale[column]
    first, last, node = inner_range(columns, column, span)
    return (last - max(first, columns.taxonomy[FIRST, node])) * columns.scale[column]


@kernel
def _children(columns: Columns, column: Int, found: Int, span: Any, lists: Any) -> Any:
    """Fill the lists STARTS and OWN with missing (if any) and the children of the taxonomy node over the rows; how
    many.

    Two-way cuts pass over empty children; a multiway split keeps them.
    """
    taxonomy = columns.taxonomy
    mode = columns.facts[MODE, column]
    low, high, node = inner_range(columns, column, span)
    elements, index = np.int64(0), np.int64(0)
    if span[GAP, column] == 1:
        lists[STARTS, 0], lists[OWN, 0] = 0, lists[PERSONS, 0]
        elements, index = np.int64(1), np.int64(1)
    child = node + 1
    if taxonomy[AFTER, node] == child:
        child = node
    while child < taxonomy[AFTER, node]:
        if taxonomy[FIRST, child] >= low and taxonomy[LAST, child] <= high:
            persons = np.int64(0)
            while index < found and lists[CODES, index] <= taxonomy[LAST, child]:
                persons += lists[PERSONS, index]
                index += 1
            if persons > 0 or mode == MULTIWAY:
                lists[STARTS, elements], lists[OWN, elements] = taxonomy[FIRST, child], persons
                elements += 1
        child = taxonomy[AFTER, child]
    return elements


@kernel
def _elements(
    rows: Rows,
    columns: Columns,
    column: Int,
    start: Int,
    stop: Int,
    histogram: Any,
    span: Any,
    scratch: Scratch,
) -> Any:
    """Fill the lists STARTS and OWN with the pieces that a cut may part: codes, or children of a taxonomy node; how
    many.
    """
    low = np.int64(0) if span[GAP, column] == 1 else span[LOW, column]
    found = present(rows, columns, column, start, stop, histogram, low, span[HIGH, column], scratch)
    lists = scratch.lists
    if columns.facts[MODE, column] >= BINARY:
        return _children(columns, column, found, span, lists)
    for index in range(found):
        lists[STARTS, index], lists[OWN, index] = lists[CODES, index], lists[PERSONS, index]
    return found


@kernel
def _median_cut(elements: Int, k: Int, lists: Any) -> Any:
    """The element after which to cut: the lower median's if that is legal, else the nearest legal one, lower first;
    or -1.
    """
    total = np.int64(0)
    for element in range(elements):
        total += lists[OWN, element]
    half = (total + 1) // 2
    below = np.int64(0)
    best, best_distance = np.int64(-1), total + 1
    for element in range(elements - 1):
        above_half = below >= half
        below += lists[OWN, element]
        if lists[LEFT, element] >= k and lists[RIGHT, element] >= k:
            if below >= half and not above_half:
                return np.int64(element)
            if abs(below - half) < best_distance:
                best, best_distance = np.int64(element), abs(below - half)
    return best


@kernel
def _all_legal(elements: Int, k: Int, lists: Any) -> Any:
    """Whether at least two elements have persons, and each that has any has enough."""
    filled = 0
    for element in range(elements):
        if lists[LEFT, element] > 0:
            filled += 1
            if lists[LEFT, element] < k:
                return False
    return filled > 1


@kernel
def _multiway(
    rows: Rows,
    columns: Columns,
    column: Int,
    start: Int,
    stop: Int,
    elements: Int,
    gap: Int,
    k: Int,
    lists: Any,
) -> Any:
    """Fill the lists PARTS and SIZES with the parts of a legal multiway split; how many, or 0.

    Missing values stand alone if they may; otherwise they are tried together with the first child.
    """
    persons_within(rows, columns, column, start, stop, elements, lists)
    legal = _all_legal(elements, k, lists)
    if not legal and gap == 1 and elements > 2:
        lists[OWN, 0] += lists[OWN, 1]
        for element in range(2, elements):
            lists[STARTS, element - 1], lists[OWN, element - 1] = lists[STARTS, element], lists[OWN, element]
        elements -= 1
        persons_within(rows, columns, column, start, stop, elements, lists)
        legal = _all_legal(elements, k, lists)
    if not legal:
        return np.int64(0)
    for element in range(elements):
        lists[PARTS, element], lists[SIZES, element] = lists[STARTS, element], lists[OWN, element]
    return np.int64(elements)


@kernel
def _two_way(
    rows: Rows,
    columns: Columns,
    column: Int,
    start: Int,
    stop: Int,
    elements: Int,
    first: Int,
    k: Int,
    lists: Any,
) -> Any:
    """Fill the lists PARTS and SIZES with the two parts of a legal cut; the number of parts (0: none) and the code
    below the cut.
    """
    persons_beside(rows, columns, column, start, stop, elements, lists)
    cut = _median_cut(elements, k, lists)
    if cut < 0:
        return np.int64(0), np.int64(-1)
    lists[PARTS, 0], lists[PARTS, 1] = first, lists[STARTS, cut + 1]
    lists[SIZES, 0], lists[SIZES, 1] = 0, 0
    for element in range(elements):
        lists[SIZES, 0 if element <= cut else 1] += lists[OWN, element]
    return np.int64(2), lists[STARTS, cut]


@kernel
def choose_split(
    rows: Rows, columns: Columns, start: Int, stop: Int, histogram: Any, k: Int, span: Any, scratch: Scratch
) -> Any:
    """A node's split: column (-1: none is legal), number of parts, code below an ordered cut; PARTS has the parts'
    first codes.
    """
    width = columns.facts.shape[1]
    spread = scratch.spread
    for column in range(width):
        tighten(rows, columns, column, start, stop, histogram, span)
        spread[column] = _spread(rows, columns, column, start, stop, histogram, span, scratch)
    while True:
        best = np.int64(-1)
        for column in range(width):
            if spread[column] >= 0 and (best < 0 or spread[column] > spread[best] + TIE):
                best = np.int64(column)
        if best < 0:
            return np.int64(-1), np.int64(0), np.int64(-1)
        elements = _elements(rows, columns, best, start, stop, histogram, span, scratch)
        mode = columns.facts[MODE, best]
        if mode == MULTIWAY:
            parts = _multiway(rows, columns, best, start, stop, elements, span[GAP, best], k, scratch.lists)
            below = np.int64(-1)
        else:
            first = span[FROM, best] if mode != BINARY else inner_range(columns, best, span)[0]
            parts, below = _two_way(rows, columns, best, start, stop, elements, first, k, scratch.lists)
        if parts > 0:
            return best, parts, below if mode == ORDERED else np.int64(-1)
        spread[best] = -1.0
