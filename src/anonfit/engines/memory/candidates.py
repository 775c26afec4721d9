# SPDX-License-Identifier: Apache-2.0
"""The split candidates of a node's columns: the runs or sets of codes between which a column may be divided."""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.engines.memory.constraint_kernels import sweep
from anonfit.engines.memory.count import at, persons_beside, persons_of, present, read
from anonfit.engines.memory.forms import (
    CODES,
    ENDS,
    ITSELF,
    KIND,
    LEAN,
    LEFT,
    LEGAL,
    NUMBER,
    ORDER,
    OWN,
    PERSONS,
    RANK,
    RIGHT,
    SLOT,
    SLOTS,
    SPARE,
    STARTS,
    KernelConstraints,
    KernelObjective,
    Scratch,
)
from anonfit.engines.memory.impurity import classes_of, mean_of
from anonfit.engines.memory.layout import (
    AFTER,
    BIN,
    BIT,
    FIRST,
    FROM,
    GAP,
    HIGH,
    LAST,
    LOW,
    MASK,
    MISSING,
    MODE,
    PLACE,
    ROOT,
    SIZE,
    TILE,
    TO,
    Columns,
    Int,
    Rows,
)
from anonfit.runtime.compiling import inner, kernel
from anonfit.tables.schema import SplitMode

ORDERED = int(SplitMode.ORDERED)
SUBSET = int(SplitMode.SUBSET)
BINARY = int(SplitMode.BINARY)
MULTIWAY = int(SplitMode.MULTIWAY)


@kernel
def tighten(
    rows: Rows,
    columns: Columns,
    objective: KernelObjective,
    column: Int,
    start: Int,
    stop: Int,
    histogram: Any,
    span: Any,
) -> None:
    """Bring LOW, HIGH and GAP of a column to what the node's rows have; an empty histogram means: look at the rows."""
    low, high = span[LOW, column], span[HIGH, column]
    facts, settings = columns.facts, objective.settings
    missing = facts[MISSING, column]
    first, slots, lean = facts[BIN, column], settings[SLOTS], settings[LEAN]
    if first >= 0 and histogram.shape[0] > 0:
        span[GAP, column] = 1 if missing == 1 and persons_of(lean, histogram, first * slots) != 0 else 0
        while low <= high and persons_of(lean, histogram, (first + low) * slots) == 0:
            low += 1
        while high >= low and persons_of(lean, histogram, (first + high) * slots) == 0:
            high -= 1
        span[LOW, column], span[HIGH, column] = low, high
        return
    if low == high and span[GAP, column] == 0:
        return
    words, bit, mask = rows.words, facts[BIT, column], facts[MASK, column]
    low, high, gap = facts[SIZE, column], np.int64(-1), np.int64(0)
    for row in range(start, stop):
        code = read(words, bit, mask, row)
        if missing == 1 and code == 0:
            gap = np.int64(1)
        else:
            low = min(low, code)
            high = max(high, code)
    span[LOW, column], span[HIGH, column], span[GAP, column] = low, high, gap


@kernel
def inner_range(columns: Columns, column: Int, span: Any, tile: Any) -> Any:
    """What a free descent in the taxonomy leaves of a node's tile: first code, last code, the taxonomy node.

    Missing is the lowest code, so a taxonomy node and missing are one run of codes only along first children.
    """
    taxonomy = columns.taxonomy
    node = columns.facts[ROOT, column]
    low, high, gap = span[LOW, column], span[HIGH, column], span[GAP, column]
    if low > high:
        return np.int64(0), np.int64(0), node
    lowest = taxonomy[FIRST, node]
    descended = True
    while descended:
        descended = False
        child = node + 1
        while child < taxonomy[AFTER, node]:
            if taxonomy[FIRST, child] <= low and taxonomy[LAST, child] >= high:
                if gap == 0 or taxonomy[FIRST, child] == lowest:
                    node = child
                    descended = True
                break
            child = taxonomy[AFTER, child]
    first = np.int64(0) if gap == 1 else max(taxonomy[FIRST, node], span[FROM, column])
    last = min(taxonomy[LAST, node], span[TO, column])
    held = columns.facts[TILE, column]
    if held >= 0:
        while tile[held + first] == 0:
            first += 1
        while tile[held + last] == 0:
            last -= 1
    return first, last, node


@kernel
def spread_of(
    rows: Rows,
    columns: Columns,
    objective: KernelObjective,
    column: Int,
    start: Int,
    stop: Int,
    histogram: Any,
    span: Any,
    tile: Any,
    scratch: Scratch,
) -> Any:
    """The normalized range of a column in a node; -1 where there is nothing to split."""
    low, high, gap = span[LOW, column], span[HIGH, column], span[GAP, column]
    if low > high or (low == high and gap == 0) or objective.weights[column] < 0:
        return -1.0
    mode = columns.facts[MODE, column]
    if mode == ORDERED:
        place = columns.facts[PLACE, column]
        return (columns.positions[place + high] - columns.positions[place + low]) * columns.scale[column]
    if mode == SUBSET:
        settings = objective.settings
        first, slots, lean = columns.facts[BIN, column], settings[SLOTS], settings[LEAN]
        if first < 0:
            codes, own = scratch.lists[CODES], scratch.lists[PERSONS]
            zero = np.int64(0)
            count = present(rows, columns, objective, column, start, stop, histogram, zero, high, codes, own, scratch)
            return (count - gap - 1) * columns.scale[column]
        known = np.int64(0)
        for code in range(low, high + 1):
            known += np.int64(persons_of(lean, histogram, (first + code) * slots) != 0)
        return (known - 1) * columns.scale[column]
    first, last, node = inner_range(columns, column, span, tile)
    held = columns.facts[TILE, column]
    first = max(first, columns.taxonomy[FIRST, node])
    if held < 0:
        return (last - first) * columns.scale[column]
    known = np.int64(0)
    for code in range(first, last + 1):
        known += np.int64(tile[held + code])
    return (known - 1) * columns.scale[column]


@inner
def _children(
    columns: Columns, slots: Int, column: Int, codes: Int, span: Any, tile: Any, lists: Any, sums: Any, base: Int
) -> Any:
    """Fill the lists STARTS, ENDS and OWN and the sums of elements, which begin at `base`, with missing (if any) and
    the children of the taxonomy node over the rows; how many.

    Two-way cuts pass over empty children; a multiway split keeps them.
    """
    taxonomy, mode = columns.taxonomy, columns.facts[MODE, column]
    low, high, node = inner_range(columns, column, span, tile)
    elements, index = np.int64(0), np.int64(0)
    if span[GAP, column] == 1:
        lists[STARTS, 0], lists[ENDS, 0], lists[OWN, 0] = 0, 0, lists[PERSONS, 0]
        for slot in range(slots):
            sums[base + slot] = sums[slot]
        elements, index = np.int64(1), np.int64(1)
    child = node + 1
    if taxonomy[AFTER, node] == child:
        child = node
    while child < taxonomy[AFTER, node]:
        if taxonomy[FIRST, child] >= low and taxonomy[LAST, child] <= high:
            persons = np.int64(0)
            place = base + elements * slots
            for slot in range(slots):
                sums[place + slot] = 0
            while index < codes and lists[CODES, index] <= taxonomy[LAST, child]:
                persons += lists[PERSONS, index]
                for slot in range(slots):
                    sums[place + slot] += sums[index * slots + slot]
                index += 1
            if persons > 0 or mode == MULTIWAY:
                lists[STARTS, elements], lists[ENDS, elements] = taxonomy[FIRST, child], taxonomy[LAST, child]
                lists[OWN, elements] = persons
                elements += 1
        child = taxonomy[AFTER, child]
    return elements


@inner
def find_elements(
    rows: Rows,
    columns: Columns,
    objective: KernelObjective,
    column: Int,
    start: Int,
    stop: Int,
    histogram: Any,
    span: Any,
    tile: Any,
    scratch: Scratch,
) -> Any:
    """Fill the lists STARTS and OWN with the pieces that a split may part: codes, or children of a taxonomy node, of
    which the list ENDS has the last code; how many, and where their sums begin.
    """
    low, high = np.int64(0) if span[GAP, column] == 1 else span[LOW, column], span[HIGH, column]
    lists = scratch.lists
    if columns.facts[MODE, column] < BINARY:
        codes, own = lists[STARTS], lists[OWN]
        count = present(rows, columns, objective, column, start, stop, histogram, low, high, codes, own, scratch)
        return count, np.int64(0)
    codes, own = lists[CODES], lists[PERSONS]
    count = present(rows, columns, objective, column, start, stop, histogram, low, high, codes, own, scratch)
    slots, sums = objective.settings[SLOTS], scratch.sums
    base = sums.shape[0] // 2
    return _children(columns, slots, column, count, span, tile, lists, sums, base), base


BY_CODE = 1 << 30
"""The order that no target gives."""

SHORT = 16
"""Runs of so many elements are sorted by insertion."""


@inner
def next_way(objective: KernelObjective, columns: Columns, column: Int, way: Int) -> Any:
    """The next order of elements after `way` (-1: the first one), or -1: one per target that the column itself is not,
    BY_CODE for ordered columns and where there is no such target.
    """
    targets = objective.targets.shape[1]
    if way == BY_CODE:
        return np.int64(-1)
    if columns.facts[MODE, column] != ORDERED:
        for target in range(way + 1, targets):
            if objective.targets[ITSELF, target] != column:
                return np.int64(target)
    return np.int64(BY_CODE) if way < 0 else np.int64(-1)


@inner
def _sort_elements(elements: Int, means: Any, lists: Any) -> None:
    """Sort ORDER by mean, equal ones as they stand: short runs by insertion, then runs of growing length are merged."""
    begin: Int = np.int64(0)
    while begin < elements:
        end = min(begin + SHORT, elements)
        for place in range(begin + 1, end):
            element = lists[ORDER, at(place)]
            mean, hole = means[at(element)], np.int64(place)
            while hole > begin and means[at(lists[ORDER, at(hole - 1)])] > mean:
                lists[ORDER, at(hole)] = lists[ORDER, at(hole - 1)]
                hole -= 1
            lists[ORDER, at(hole)] = element
        begin = end
    width = np.int64(SHORT)
    while width < elements:
        begin = np.int64(0)
        while begin < elements:
            middle, end = min(begin + width, elements), min(begin + 2 * width, elements)
            left, right = begin, middle
            for place in range(begin, end):
                if left < middle and (right >= end or means[lists[ORDER, left]] <= means[lists[ORDER, right]]):
                    lists[SPARE, place] = lists[ORDER, left]
                    left += 1
                else:
                    lists[SPARE, place] = lists[ORDER, right]
                    right += 1
            begin = end
        for place in range(elements):
            lists[ORDER, place] = lists[SPARE, place]
        width *= 2


@inner
def put_in_order(objective: KernelObjective, way: Int, elements: Int, base: Int, scratch: Scratch) -> None:
    """Fill the lists ORDER and RANK: by code, or by the mean of the target `way`."""
    lists, settings, targets = scratch.lists, objective.settings, objective.targets
    for element in range(elements):
        lists[ORDER, element] = element
    if way != BY_CODE:
        sums, means, slots = scratch.sums, scratch.means, settings[SLOTS]
        chosen = np.int64(0)
        if targets[KIND, way] != NUMBER:
            whole, first = scratch.whole, targets[SLOT, way]
            for label in range(classes_of(targets, way)):
                if whole[first + label] > whole[first + chosen]:
                    chosen = np.int64(label)
        for element in range(elements):
            means[element] = mean_of(settings, targets, way, chosen, sums, base + element * slots)
        _sort_elements(elements, means, lists)
    for place in range(elements):
        lists[RANK, lists[ORDER, place]] = place


@inner
def mark_legal(
    rows: Rows,
    columns: Columns,
    k: Int,
    constraints: KernelConstraints | None,
    column: Int,
    start: Int,
    stop: Int,
    elements: Int,
    swept: bool,
    scratch: Scratch,
) -> None:
    """Fill the list LEGAL: cuts with k persons on both sides; if `swept`, those that the models allow, too."""
    lists = scratch.lists
    if columns.entity < 0:
        total, below = np.int64(0), np.int64(0)
        for element in range(elements):
            total += lists[OWN, element]
        for place in range(elements - 1):
            below += lists[OWN, at(lists[ORDER, place])]
            lists[LEGAL, place] = np.int64(below >= k and total - below >= k)
    else:
        persons_beside(rows, columns, column, start, stop, elements, lists)
        for place in range(elements - 1):
            lists[LEGAL, place] = np.int64(lists[LEFT, place] >= k and lists[RIGHT, place] >= k)
    if constraints is not None and swept:
        sweep(rows, columns, constraints, column, start, stop, elements, scratch)
