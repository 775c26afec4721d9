# SPDX-License-Identifier: Apache-2.0
"""Kernels that put the elements of a column in the order in which they are cut, and mark the cuts that leave enough
persons on both sides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.engines.memory.counting import at, persons_beside
from anonfit.engines.memory.guard import Guard
from anonfit.engines.memory.guarding import sweep
from anonfit.engines.memory.guide import CLASSES, ITSELF, KIND, NUMBER, SLOT, SLOTS, Guide
from anonfit.engines.memory.layout import MODE, Columns, Int, Rows
from anonfit.engines.memory.scratch import LEFT, LEGAL, ORDER, OWN, RANK, RIGHT, SPARE, Scratch
from anonfit.engines.memory.weighing import mean_of
from anonfit.runtime.compiling import inner
from anonfit.tables.schema import SplitMode

__all__ = ["mark_legal", "next_way", "put_in_order"]

ORDERED = int(SplitMode.ORDERED)
BY_CODE = 1 << 30
"""The order that no target gives."""

SHORT = 16
"""Runs of so many elements are sorted by insertion."""


@inner
def next_way(guide: Guide, columns: Columns, column: Int, way: Int) -> Any:
    """The next order of elements after `way` (-1: the first one), or -1: one per target that the column itself is not,
    BY_CODE for ordered columns and where there is no such target.
    """
    targets = guide.targets.shape[1]
    if way == BY_CODE:
        return np.int64(-1)
    if columns.facts[MODE, column] != ORDERED:
        for target in range(way + 1, targets):
            if guide.targets[ITSELF, target] != column:
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
def put_in_order(guide: Guide, way: Int, elements: Int, base: Int, scratch: Scratch) -> None:
    """Fill the lists ORDER and RANK: by code, or by the mean of the target `way`."""
    lists, settings, targets = scratch.lists, guide.settings, guide.targets
    for element in range(elements):
        lists[ORDER, element] = element
    if way != BY_CODE:
        sums, means, slots = scratch.sums, scratch.means, settings[SLOTS]
        chosen = np.int64(0)
        if targets[KIND, way] != NUMBER:
            whole, first = scratch.whole, targets[SLOT, way]
            for one in range(targets[CLASSES, way]):
                if whole[first + one] > whole[first + chosen]:
                    chosen = np.int64(one)
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
    guard: Guard | None,
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
    if guard is not None and swept:
        sweep(rows, columns, guard, column, start, stop, elements, scratch)
