# SPDX-License-Identifier: Apache-2.0
"""The split candidates of a node's columns: the runs or sets of codes between which a column may be divided."""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.engines.memory import forms, layout
from anonfit.engines.memory.constraint_kernels import sweep
from anonfit.engines.memory.count import at, persons_beside, persons_of, present, read
from anonfit.engines.memory.forms import KernelConstraints, NodeView
from anonfit.engines.memory.impurity import classes_of, mean_of
from anonfit.engines.memory.layout import Int
from anonfit.runtime.compiling import inner, kernel


@kernel
def tighten(node: NodeView, column: Int) -> None:
    """Bring LOW, HIGH and GAP of a column to what the node's rows have; an empty histogram means: look at the rows."""
    facts, settings, span, histogram = node.columns.facts, node.objective.settings, node.span, node.histogram
    low, high = span[layout.LOW, column], span[layout.HIGH, column]
    missing = facts[layout.MISSING, column]
    first, slots, lean = facts[layout.BIN, column], settings[forms.SLOTS], settings[forms.LEAN]
    if first >= 0 and histogram.shape[0] > 0:
        span[layout.GAP, column] = 1 if missing == 1 and persons_of(lean, histogram, first * slots) != 0 else 0
        while low <= high and persons_of(lean, histogram, (first + low) * slots) == 0:
            low += 1
        while high >= low and persons_of(lean, histogram, (first + high) * slots) == 0:
            high -= 1
        span[layout.LOW, column], span[layout.HIGH, column] = low, high
        return
    if low == high and span[layout.GAP, column] == 0:
        return
    words, bit, mask = node.rows.words, facts[layout.BIT, column], facts[layout.MASK, column]
    low, high, gap = facts[layout.SIZE, column], np.int64(-1), np.int64(0)
    row = np.int64(node.start)
    while row < node.stop:
        code = read(words, bit, mask, row)
        if missing == 1 and code == 0:
            gap = np.int64(1)
        else:
            low = min(low, code)
            high = max(high, code)
            if node.columns.sorted == column:  # the highest code is the last one
                row = max(row, np.int64(node.stop - 2))
        row += 1
    span[layout.LOW, column], span[layout.HIGH, column], span[layout.GAP, column] = low, high, gap


@kernel
def inner_range(node: NodeView, column: Int) -> Any:
    """What a free descent in the taxonomy leaves of a node's tile: first code, last code, the taxonomy node.

    Missing is the lowest code, so a taxonomy node and missing are one run of codes only along first children.
    """
    taxonomy, span, tile = node.columns.taxonomy, node.span, node.tile
    top = node.columns.facts[layout.ROOT, column]
    low, high, gap = span[layout.LOW, column], span[layout.HIGH, column], span[layout.GAP, column]
    if low > high:
        return np.int64(0), np.int64(0), top
    lowest = taxonomy[layout.FIRST, top]
    descended = True
    while descended:
        descended = False
        child = top + 1
        while child < taxonomy[layout.AFTER, top]:
            if taxonomy[layout.FIRST, child] <= low and taxonomy[layout.LAST, child] >= high:
                if gap == 0 or taxonomy[layout.FIRST, child] == lowest:
                    top = child
                    descended = True
                break
            child = taxonomy[layout.AFTER, child]
    first = np.int64(0) if gap == 1 else max(taxonomy[layout.FIRST, top], span[layout.FROM, column])
    last = min(taxonomy[layout.LAST, top], span[layout.TO, column])
    held = node.columns.facts[layout.TILE, column]
    if held >= 0:
        while tile[held + first] == 0:
            first += 1
        while tile[held + last] == 0:
            last -= 1
    return first, last, top


@inner
def _different(node: NodeView, column: Int) -> Any:
    """How many codes of a column the node's rows have. They are marked in `side`, which no split is written to yet."""
    words, marks = node.rows.words, node.scratch.side
    bit, mask = node.columns.facts[layout.BIT, column], node.columns.facts[layout.MASK, column]
    for row in range(node.start, node.stop):
        marks[at(read(words, bit, mask, row))] = 0
    count = np.int64(0)
    for row in range(node.start, node.stop):
        code = at(read(words, bit, mask, row))
        count += np.int64(1) - np.int64(marks[code])
        marks[code] = 1
    return count


@inner
def spread_of(node: NodeView, column: Int) -> Any:
    """The normalized range of a column in a node; -1 where there is nothing to split."""
    columns, span = node.columns, node.span
    low, high, gap = span[layout.LOW, column], span[layout.HIGH, column], span[layout.GAP, column]
    if low > high or (low == high and gap == 0) or node.objective.weights[column] < 0:
        return -1.0
    mode, known = columns.facts[layout.MODE, column], np.int64(0)
    if mode == layout.ORDERED:
        place = columns.facts[layout.PLACE, column]
        return (columns.positions[place + high] - columns.positions[place + low]) * columns.scale[column]
    if mode == layout.SUBSET:
        slots, lean = node.objective.settings[forms.SLOTS], node.objective.settings[forms.LEAN]
        first = columns.facts[layout.BIN, column]
        if first < 0:
            known = _different(node, column) - gap
        else:
            for code in range(low, high + 1):
                known += np.int64(persons_of(lean, node.histogram, (first + code) * slots) != 0)
        return (known - 1) * columns.scale[column]
    first, last, top = inner_range(node, column)
    held = columns.facts[layout.TILE, column]
    first = max(first, columns.taxonomy[layout.FIRST, top])
    if held < 0:
        return (last - first) * columns.scale[column]
    for code in range(first, last + 1):
        known += np.int64(node.tile[held + code])
    return (known - 1) * columns.scale[column]


@kernel
def find_spreads(node: NodeView, spreads: Any) -> None:
    """Fill `spreads` with the normalized range of every column, once its span is that of the node's rows."""
    for column in range(spreads.shape[0]):
        tighten(node, column)
        spreads[column] = spread_of(node, column)


@inner
def _children(node: NodeView, column: Int, codes: Int, base: Int) -> Any:
    """Fill the lists STARTS, ENDS and OWN and the sums of elements, which begin at `base`, with missing (if any) and
    the children of the taxonomy node over the rows; how many.

    Two-way cuts pass over empty children; a multiway split keeps them.
    """
    taxonomy, mode = node.columns.taxonomy, node.columns.facts[layout.MODE, column]
    slots, lists, sums = node.objective.settings[forms.SLOTS], node.scratch.lists, node.scratch.sums
    low, high, top = inner_range(node, column)
    elements, index = np.int64(0), np.int64(0)
    if node.span[layout.GAP, column] == 1:
        lists[forms.STARTS, 0], lists[forms.ENDS, 0], lists[forms.OWN, 0] = 0, 0, lists[forms.PERSONS, 0]
        for slot in range(slots):
            sums[base + slot] = sums[slot]
        elements, index = np.int64(1), np.int64(1)
    child = top + 1
    if taxonomy[layout.AFTER, top] == child:
        child = top
    while child < taxonomy[layout.AFTER, top]:
        first, last = taxonomy[layout.FIRST, child], taxonomy[layout.LAST, child]
        if first >= low and last <= high:
            persons = np.int64(0)
            place = base + elements * slots
            for slot in range(slots):
                sums[place + slot] = 0
            while index < codes and lists[forms.CODES, index] <= last:
                persons += lists[forms.PERSONS, index]
                for slot in range(slots):
                    sums[place + slot] += sums[index * slots + slot]
                index += 1
            if persons > 0 or mode == layout.MULTIWAY:
                lists[forms.STARTS, elements], lists[forms.ENDS, elements] = first, last
                lists[forms.OWN, elements] = persons
                elements += 1
        child = taxonomy[layout.AFTER, child]
    return elements


@inner
def find_elements(node: NodeView, column: Int) -> Any:
    """Fill the lists STARTS and OWN with the pieces that a split may part: codes, or children of a taxonomy node, of
    which the list ENDS has the last code; how many, and where their sums begin.
    """
    lists, high = node.scratch.lists, node.span[layout.HIGH, column]
    low = np.int64(0) if node.span[layout.GAP, column] == 1 else node.span[layout.LOW, column]
    if node.columns.facts[layout.MODE, column] < layout.BINARY:
        return present(node, column, low, high, lists[forms.STARTS], lists[forms.OWN]), np.int64(0)
    count = present(node, column, low, high, lists[forms.CODES], lists[forms.PERSONS])
    base = node.scratch.sums.shape[0] // 2
    return _children(node, column, count, base), base


BY_CODE = 1 << 30
"""The order that no target gives."""


@inner
def next_way(node: NodeView, column: Int, way: Int) -> Any:
    """The next order of elements after `way` (-1: the first one), or -1: one per target that the column itself is not,
    BY_CODE for ordered columns and where there is no such target.
    """
    targets = node.objective.targets
    if way == BY_CODE:
        return np.int64(-1)
    if node.columns.facts[layout.MODE, column] != layout.ORDERED:
        for target in range(way + 1, targets.shape[1]):
            if targets[forms.ITSELF, target] != column:
                return np.int64(target)
    return np.int64(BY_CODE) if way < 0 else np.int64(-1)


FEW = 64
"""So few elements are sooner sorted where they stand."""


@inner
def _sort_by_means(elements: Int, means: Any, order: Any) -> None:
    """Put elements, which stand as they are numbered, into the order of their means; equal ones as they stand."""
    if elements > FEW:
        sorted_ones = np.argsort(means[:elements], kind="mergesort")
        for turn in range(elements):
            order[turn] = sorted_ones[turn]
        return
    for turn in range(1, elements):
        element = np.int64(turn)
        place, mean = element, means[element]
        while place > 0 and means[at(order[at(place - 1)])] > mean:
            order[at(place)] = order[at(place - 1)]
            place -= 1
        order[at(place)] = element


@inner
def put_in_order(node: NodeView, way: Int, elements: Int, base: Int) -> None:
    """Fill the lists ORDER and RANK: by code, or by the mean of the target `way`."""
    settings, targets, scratch = node.objective.settings, node.objective.targets, node.scratch
    lists = scratch.lists
    for element in range(elements):
        lists[forms.ORDER, element] = element
    if way != BY_CODE:
        sums, means, slots = scratch.sums, scratch.means, settings[forms.SLOTS]
        chosen = np.int64(0)
        if targets[forms.KIND, way] != forms.NUMBER:
            whole, first = scratch.whole, targets[forms.SLOT, way]
            for label in range(classes_of(targets, way)):
                if whole[first + label] > whole[first + chosen]:
                    chosen = np.int64(label)
        for element in range(elements):
            means[element] = mean_of(settings, targets, way, chosen, sums, base + element * slots)
        _sort_by_means(elements, means, lists[forms.ORDER])
    for place in range(elements):
        lists[forms.RANK, lists[forms.ORDER, place]] = place


@inner
def mark_legal(node: NodeView, constraints: KernelConstraints | None, column: Int, elements: Int, swept: bool) -> None:
    """Fill the list LEGAL: cuts with k persons on both sides; if `swept`, those that the models allow, too."""
    lists, k = node.scratch.lists, node.k
    if node.columns.entity < 0:
        total, below = np.int64(0), np.int64(0)
        for element in range(elements):
            total += lists[forms.OWN, element]
        for place in range(elements - 1):
            below += lists[forms.OWN, at(lists[forms.ORDER, place])]
            lists[forms.LEGAL, place] = np.int64(below >= k and total - below >= k)
    else:
        persons_beside(node, column, elements)
        for place in range(elements - 1):
            lists[forms.LEGAL, place] = np.int64(lists[forms.LEFT, place] >= k and lists[forms.RIGHT, place] >= k)
    if constraints is not None and swept:
        sweep(node, constraints, column, elements)
