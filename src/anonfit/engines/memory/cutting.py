# SPDX-License-Identifier: Apache-2.0
"""Kernels that weigh the splits of one column: the best cut of its elements in any of their orders, or the split of a
taxonomy node into its children.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.engines.memory.candidates import mark_legal, next_way, put_in_order
from anonfit.engines.memory.count import at, persons_within
from anonfit.engines.memory.forms import (
    ALL_CUTS,
    CLASS,
    CLASSES,
    COST,
    CUT,
    ENDS,
    FACTOR,
    ITSELF,
    KIND,
    LEFT,
    LEGAL,
    MEASURED,
    ORDER,
    OWN,
    SLOT,
    SLOTS,
    STARTS,
    STATE,
    UNIT,
    WAY,
    KernelConstraints,
    KernelObjective,
    Scratch,
)
from anonfit.engines.memory.impurity import ENTROPY, cost_of, is_boundary, x_log_x
from anonfit.engines.memory.layout import Columns, Int, Rows
from anonfit.runtime.compiling import inner
from anonfit.tables.schema import SplitMode

MULTIWAY = int(SplitMode.MULTIWAY)
TIE = 1e-9
HOPED = 0.5
"""The state of a column whose best cut is no candidate: what models leave of it may be worse, never better."""


@inner
def _median_cut(elements: Int, lists: Any) -> Any:
    """The place to cut after: the lower median's if that is legal, else the nearest legal one, lower first; or -1."""
    total = np.int64(0)
    for element in range(elements):
        total += lists[OWN, element]
    half = (total + 1) // 2
    below = np.int64(0)
    best, best_distance = np.int64(-1), total + 1
    for place in range(elements - 1):
        above_half = below >= half
        below += lists[OWN, lists[ORDER, place]]
        if lists[LEGAL, place] == 1:
            if below >= half and not above_half:
                return np.int64(place)
            if abs(below - half) < best_distance:
                best, best_distance = np.int64(place), abs(below - half)
    return best


@inner
def sum_whole(slots: Int, elements: Int, base: Int, sums: Any, whole: Any) -> None:
    """Fill `whole` with the sums of all elements."""
    for slot in range(slots):
        whole[slot] = 0
    for element in range(elements):
        for slot in range(slots):
            whole[slot] += sums[at(base + element * slots + slot)]


@inner
def _move_below(slots: Int, first: Int, sums: Any, below: Any, above: Any) -> None:
    """Move an element, whose sums begin at an entry, to the lower side of the cut."""
    for slot in range(slots):
        moved = sums[at(first + slot)]
        below[slot] += moved
        above[slot] -= moved


@inner
def _all_above(slots: Int, whole: Any, below: Any, above: Any) -> None:
    """Begin with a cut below all elements."""
    for slot in range(slots):
        below[slot], above[slot] = 0, whole[slot]


@inner
def _cost_at(objective: KernelObjective, base: Int, cut: Int, own: Int, scratch: Scratch) -> Any:
    """The cost of a cut after a place of the order."""
    lists, below, above, sums = scratch.lists, scratch.below, scratch.above, scratch.sums
    settings, targets, factors, logs = objective.settings, objective.targets, objective.factors, objective.logs
    slots, zero = settings[SLOTS], np.int64(0)
    _all_above(slots, scratch.whole, below, above)
    for place in range(cut + 1):
        _move_below(slots, base + lists[ORDER, place] * slots, sums, below, above)
    left = cost_of(settings, targets, factors, logs, below, zero, own)
    return left + cost_of(settings, targets, factors, logs, above, zero, own)


@inner
def _best_of_two(
    objective: KernelObjective, elements: Int, base: Int, size: float, least: float, every: bool, scratch: Scratch
) -> Any:
    """What `_best_cut` finds where there is one target, of two classes: what is nearly always asked."""
    lists, sums, whole, logs = scratch.lists, scratch.sums, scratch.whole, objective.logs
    slots, all_cuts = objective.settings[SLOTS], objective.settings[ALL_CUTS] == 1
    unit, factor, slot = objective.factors[UNIT, 0], objective.factors[FACTOR, 0], objective.targets[SLOT, 0]
    a, b = np.int64(0), np.int64(0)
    best, is_candidate = np.int64(-1), False
    here = base + lists[ORDER, 0] * slots + slot
    for place in range(elements - 1):
        after = base + lists[ORDER, at(place + 1)] * slots + slot
        a += sums[at(here)]
        b += sums[at(here + 1)]
        if lists[LEGAL, place] == 1:
            boundary = all_cuts or (
                (sums[at(here)] != 0 or sums[at(after)] != 0) and (sums[at(here + 1)] != 0 or sums[at(after + 1)] != 0)
            )
            if boundary or every:
                c, d = whole[slot] - a, whole[slot + 1] - b
                left = x_log_x(logs, a + b, unit) - x_log_x(logs, a, unit) - x_log_x(logs, b, unit)
                right = x_log_x(logs, c + d, unit) - x_log_x(logs, c, unit) - x_log_x(logs, d, unit)
                cost = (factor * left + factor * right) / size
                if cost < least - TIE:
                    best, least, is_candidate = np.int64(place), cost, boundary
        here = after
    return best, least, is_candidate


@inner
def _best_cut(
    objective: KernelObjective,
    elements: Int,
    base: Int,
    own: Int,
    size: float,
    least: float,
    every: bool,
    scratch: Scratch,
) -> Any:
    """The cheapest legal candidate of an order (or of every cut) that is cheaper than `least`, its cost, and whether it
    is a candidate; or -1.
    """
    settings, targets, factors, logs = objective.settings, objective.targets, objective.factors, objective.logs
    has_two = targets.shape[1] == 1 and targets[CLASSES, 0] == 2 and targets[KIND, 0] == CLASS
    if has_two and targets[MEASURED, 0] == ENTROPY and targets[ITSELF, 0] != own:
        return _best_of_two(objective, elements, base, size, least, every, scratch)
    lists, sums, below, above = scratch.lists, scratch.sums, scratch.below, scratch.above
    slots, zero = settings[SLOTS], np.int64(0)
    _all_above(slots, scratch.whole, below, above)
    best, is_candidate = np.int64(-1), False
    for place in range(elements - 1):
        here = base + lists[ORDER, place] * slots
        _move_below(slots, here, sums, below, above)
        if lists[LEGAL, place] == 0:
            continue
        boundary = is_boundary(settings, targets, sums, here, base + lists[ORDER, at(place + 1)] * slots, own)
        if boundary or every:
            cost = cost_of(settings, targets, factors, logs, below, zero, own)
            cost = (cost + cost_of(settings, targets, factors, logs, above, zero, own)) / size
            if cost < least - TIE:
                best, least, is_candidate = np.int64(place), cost, boundary
    return best, least, is_candidate


@inner
def weigh_two_way(
    rows: Rows,
    columns: Columns,
    objective: KernelObjective,
    k: Int,
    constraints: KernelConstraints | None,
    column: Int,
    start: Int,
    stop: Int,
    elements: Int,
    base: Int,
    size: float,
    scratch: Scratch,
) -> None:
    """Find the best legal cut of a column in any of its orders, else the median's in the first.

    Before models have their say (STATE below 1) every cut is taken for a candidate: what they leave of a column is
    never cheaper than that, whatever they forbid. STATE is then HOPED where the best cut is none.
    """
    splits, has_targets = scratch.splits, objective.targets.shape[1] > 0
    swept = splits[STATE, column] == 1.0
    splits[COST, column], splits[CUT, column], splits[WAY, column] = np.inf, -1.0, 0.0
    first = next_way(objective, columns, column, np.int64(-1))
    way, by_median = first, not has_targets
    every = constraints is not None and not swept
    while way >= 0:
        put_in_order(objective, way, elements, base, scratch)
        mark_legal(rows, columns, k, constraints, column, start, stop, elements, swept, scratch)
        if by_median:
            cut = _median_cut(elements, scratch.lists)
            if cut >= 0:
                cost = _cost_at(objective, base, cut, column, scratch) / size if has_targets else 0.0
                splits[COST, column], splits[CUT, column], splits[WAY, column] = cost, cut, first
            return
        cut, cost, is_candidate = _best_cut(
            objective, elements, base, column, size, splits[COST, column], every, scratch
        )
        if cut >= 0:
            splits[COST, column], splits[CUT, column], splits[WAY, column] = cost, cut, way
            if every:
                splits[STATE, column] = 0.0 if is_candidate else HOPED
        way = next_way(objective, columns, column, way)
        if way < 0 and splits[CUT, column] < 0 and not every:
            way, by_median = first, True


@inner
def _all_legal(elements: Int, k: Int, lists: Any) -> Any:
    """Whether at least two elements have persons, and each that has any has enough."""
    filled = 0
    for element in range(elements):
        if lists[LEFT, element] > 0:
            filled += 1
            if lists[LEFT, element] < k:
                return False
    return filled > 1


@inner
def _join_missing(slots: Int, elements: Int, base: Int, lists: Any, sums: Any) -> Any:
    """Put missing and the first child together; how many elements are left."""
    lists[OWN, 0] += lists[OWN, 1]
    lists[ENDS, 0] = lists[ENDS, 1]
    for slot in range(slots):
        sums[base + slot] += sums[base + slots + slot]
    for element in range(2, elements):
        for fact in (STARTS, ENDS, OWN):
            lists[fact, element - 1] = lists[fact, element]
        for slot in range(slots):
            sums[base + (element - 1) * slots + slot] = sums[base + element * slots + slot]
    return elements - 1


@inner
def weigh_multiway(
    rows: Rows,
    columns: Columns,
    objective: KernelObjective,
    k: Int,
    column: Int,
    start: Int,
    stop: Int,
    elements: Int,
    base: Int,
    gap: Int,
    size: float,
    scratch: Scratch,
) -> Any:
    """Find the legal multiway split of a column: missing values alone if they may be, otherwise with the first child
    (CUT 1), as also after the split without them was not allowed (STATE 1). Returns its elements.
    """
    splits, lists = scratch.splits, scratch.lists
    joined = np.int64(0)
    splits[COST, column], splits[CUT, column] = np.inf, -1.0
    legal = False
    if splits[STATE, column] == 0.0:
        persons_within(rows, columns, column, start, stop, elements, lists)
        legal = _all_legal(elements, k, lists)
    if not legal and gap == 1 and elements > 2 and splits[STATE, column] < 2.0:
        joined = np.int64(1)
        elements = _join_missing(objective.settings[SLOTS], elements, base, lists, scratch.sums)
        persons_within(rows, columns, column, start, stop, elements, lists)
        legal = _all_legal(elements, k, lists)
    if not legal:
        return elements
    cost = 0.0
    settings, targets, factors, logs = objective.settings, objective.targets, objective.factors, objective.logs
    if targets.shape[1] > 0:
        for element in range(elements):
            if lists[OWN, element] > 0:
                first = base + element * settings[SLOTS]
                cost += cost_of(settings, targets, factors, logs, scratch.sums, first, column)
        cost /= size
    splits[COST, column], splits[CUT, column], splits[STATE, column] = cost, joined, joined
    return elements


@inner
def together_after(
    objective: KernelObjective, mode: Int, column: Int, elements: Int, base: Int, scratch: Scratch
) -> Any:
    """The share of all pairs of rows that the best split of the column that was weighed last leaves together."""
    lists, cut = scratch.lists, np.int64(scratch.splits[CUT, column])
    if mode != MULTIWAY:
        put_in_order(objective, np.int64(scratch.splits[WAY, column]), elements, base, scratch)
    total, below, squares = 0.0, 0.0, 0.0
    for place in range(elements):
        if mode == MULTIWAY:
            size = np.float64(lists[OWN, place])
            squares += size * size
        else:
            size = np.float64(lists[OWN, lists[ORDER, place]])
            below += size if place <= cut else 0.0
        total += size
    if mode != MULTIWAY:
        squares = below * below + (total - below) * (total - below)
    return squares / (total * total)
