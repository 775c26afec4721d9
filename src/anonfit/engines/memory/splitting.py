# SPDX-License-Identifier: Apache-2.0
"""Kernels that choose a node's split: the best cut of every column by the targets, or without any the widest column,
cut at its median.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.compiling import inner, kernel
from anonfit.engines.memory.counting import at, persons_within
from anonfit.engines.memory.elements import BINARY, MULTIWAY, ORDERED, find_elements, inner_range, spread_of, tighten
from anonfit.engines.memory.guard import Guard
from anonfit.engines.memory.guarding import parts_allowed
from anonfit.engines.memory.guide import (
    ALL_CUTS,
    ALPHA,
    CLASS,
    CLASSES,
    FACTOR,
    ITSELF,
    KIND,
    LARGEST,
    MIN_GAIN,
    PER_MASS,
    RULE,
    SLOT,
    SLOTS,
    UNIT,
    Guide,
)
from anonfit.engines.memory.layout import FROM, GAP, MODE, SIZE, TILE, Columns, Int, Rows
from anonfit.engines.memory.ordering_elements import mark_legal, next_way, put_in_order
from anonfit.engines.memory.scratch import (
    COST,
    CUT,
    ENDS,
    LEFT,
    LEGAL,
    ORDER,
    OWN,
    PARTS,
    SIZES,
    SPREAD,
    STARTS,
    STATE,
    WAY,
    Scratch,
)
from anonfit.engines.memory.weighing import NOBODY, cost_of, is_boundary, mass_of, own_cost, x_log_x

__all__ = ["choose_split", "weigh_multiway", "weigh_two_way", "write_parts"]

TIE = 1e-9
FIRST, PRODUCT, BLEND = 1, 2, 3  # weight rules, as in criteria.purpose
HOPED = 0.5


@inner
def _median_cut(elements: Int, lists: Any) -> Any:
    """The place after which to cut: the lower median's if that is legal, else the nearest legal one, lower first;
    or -1.
    """
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
def _sum_whole(slots: Int, elements: Int, base: Int, sums: Any, whole: Any) -> None:
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
def _cost_at(guide: Guide, base: Int, cut: Int, own: Int, scratch: Scratch) -> Any:
    """The cost of a cut after a place of the order."""
    lists, below, above, sums = scratch.lists, scratch.below, scratch.above, scratch.sums
    settings, targets, factors, logs = guide.settings, guide.targets, guide.factors, guide.logs
    slots, zero = settings[SLOTS], np.int64(0)
    _all_above(slots, scratch.whole, below, above)
    for place in range(cut + 1):
        _move_below(slots, base + lists[ORDER, place] * slots, sums, below, above)
    left = cost_of(settings, targets, factors, logs, below, zero, own)
    return left + cost_of(settings, targets, factors, logs, above, zero, own)


@inner
def _best_of_two(
    guide: Guide, elements: Int, base: Int, size: float, least: float, every: bool, scratch: Scratch
) -> Any:
    """What `_best_cut` finds where there is one target, of two classes: what is nearly always asked."""
    lists, sums, whole, logs = scratch.lists, scratch.sums, scratch.whole, guide.logs
    slots, all_cuts = guide.settings[SLOTS], guide.settings[ALL_CUTS] == 1
    unit, factor, slot = guide.factors[UNIT, 0], guide.factors[FACTOR, 0], guide.targets[SLOT, 0]
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
    guide: Guide, elements: Int, base: Int, own: Int, size: float, least: float, every: bool, scratch: Scratch
) -> Any:
    """The cheapest legal candidate of an order (or of every cut) that is cheaper than `least`, its cost, and whether it
    is a candidate; or -1.
    """
    settings, targets, factors, logs = guide.settings, guide.targets, guide.factors, guide.logs
    if targets.shape[1] == 1 and targets[CLASSES, 0] == 2 and targets[KIND, 0] == CLASS and targets[ITSELF, 0] != own:
        return _best_of_two(guide, elements, base, size, least, every, scratch)
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
    guide: Guide,
    k: Int,
    guard: Guard | None,
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
    found, guided = scratch.found, guide.targets.shape[1] > 0
    swept = found[STATE, column] == 1.0
    found[COST, column], found[CUT, column], found[WAY, column] = np.inf, -1.0, 0.0
    first = next_way(guide, columns, column, np.int64(-1))
    way, by_median = first, not guided
    every = guard is not None and not swept
    while way >= 0:
        put_in_order(guide, way, elements, base, scratch)
        mark_legal(rows, columns, k, guard, column, start, stop, elements, swept, scratch)
        if by_median:
            cut = _median_cut(elements, scratch.lists)
            if cut >= 0:
                cost = _cost_at(guide, base, cut, column, scratch) / size if guided else 0.0
                found[COST, column], found[CUT, column], found[WAY, column] = cost, cut, first
            return
        cut, cost, is_candidate = _best_cut(guide, elements, base, column, size, found[COST, column], every, scratch)
        if cut >= 0:
            found[COST, column], found[CUT, column], found[WAY, column] = cost, cut, way
            if every:
                found[STATE, column] = 0.0 if is_candidate else HOPED
        way = next_way(guide, columns, column, way)
        if way < 0 and found[CUT, column] < 0 and not every:
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
    guide: Guide,
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
    found, lists = scratch.found, scratch.lists
    joined = np.int64(0)
    found[COST, column], found[CUT, column] = np.inf, -1.0
    legal = False
    if found[STATE, column] == 0.0:
        persons_within(rows, columns, column, start, stop, elements, lists)
        legal = _all_legal(elements, k, lists)
    if not legal and gap == 1 and elements > 2 and found[STATE, column] < 2.0:
        joined = np.int64(1)
        elements = _join_missing(guide.settings[SLOTS], elements, base, lists, scratch.sums)
        persons_within(rows, columns, column, start, stop, elements, lists)
        legal = _all_legal(elements, k, lists)
    if not legal:
        return elements
    cost = 0.0
    settings, targets, factors, logs = guide.settings, guide.targets, guide.factors, guide.logs
    if targets.shape[1] > 0:
        for element in range(elements):
            if lists[OWN, element] > 0:
                first = base + element * settings[SLOTS]
                cost += cost_of(settings, targets, factors, logs, scratch.sums, first, column)
        cost /= size
    found[COST, column], found[CUT, column], found[STATE, column] = cost, joined, joined
    return elements


@inner
def _weigh(
    rows: Rows,
    columns: Columns,
    guide: Guide,
    k: Int,
    guard: Guard | None,
    column: Int,
    start: Int,
    stop: Int,
    histogram: Any,
    span: Any,
    tile: Any,
    scratch: Scratch,
) -> Any:
    """Find a column's best legal split; returns its elements, where their sums begin, and the node's cost per person
    (0 without targets).
    """
    elements, base = find_elements(rows, columns, guide, column, start, stop, histogram, span, tile, scratch)
    size, node, mine = 1.0, 0.0, 0.0
    targets = guide.targets
    if targets.shape[1] > 0:
        settings, factors, logs, whole = guide.settings, guide.factors, guide.logs, scratch.whole
        _sum_whole(settings[SLOTS], elements, base, scratch.sums, whole)
        size = np.float64(mass_of(settings, whole, np.int64(0))) * guide.numbers[PER_MASS]
        node = cost_of(settings, targets, factors, logs, whole, np.int64(0), np.int64(NOBODY))
        mine = own_cost(settings, targets, factors, logs, whole, column)
    if columns.facts[MODE, column] == MULTIWAY:
        gap = span[GAP, column]
        elements = weigh_multiway(rows, columns, guide, k, column, start, stop, elements, base, gap, size, scratch)
    else:
        weigh_two_way(rows, columns, guide, k, guard, column, start, stop, elements, base, size, scratch)
    if scratch.found[CUT, column] < 0:
        scratch.found[SPREAD, column] = -1.0
    else:
        scratch.found[COST, column] += mine / size
    return elements, base, node / size


@inner
def _merit(guide: Guide, column: Int, value: float) -> Any:
    """How much a column's split is preferred by a rule that mixes weight and value."""
    if guide.settings[RULE] == PRODUCT:
        return guide.weights[column] * value
    largest = guide.numbers[LARGEST]
    weight = guide.weights[column] / largest if largest > 0 else 0.0
    return guide.numbers[ALPHA] * weight + (1.0 - guide.numbers[ALPHA]) * value


@inner
def _is_better(guide: Guide, node: float, column: Int, best: Int, found: Any) -> Any:
    """Whether a column's split is to be preferred to the best one before it."""
    rule = guide.settings[RULE]
    if rule == FIRST and guide.weights[column] != guide.weights[best]:
        return guide.weights[column] > guide.weights[best]
    wider = found[SPREAD, column] > found[SPREAD, best] + TIE
    blind = guide.targets.shape[1] == 0
    if rule >= PRODUCT:
        values = (found[SPREAD, column], found[SPREAD, best])
        if not blind:
            values = (0.0, 0.0)
            if node > 0.0:
                values = (
                    max(node - found[COST, column], 0.0) / node,
                    max(node - found[COST, best], 0.0) / node,
                )
        more = _merit(guide, column, values[0]) - _merit(guide, best, values[1])
        return more > TIE or (more >= -TIE and wider)
    if blind:
        return wider
    less = found[COST, best] - found[COST, column]
    return less > TIE or (less >= -TIE and wider)


@inner
def _preferred(guide: Guide, node: float, found: Any) -> Any:
    """The column whose split is best, or -1."""
    best = np.int64(-1)
    for column in range(found.shape[1]):
        if found[SPREAD, column] >= 0 and (best < 0 or _is_better(guide, node, np.int64(column), best, found)):
            best = np.int64(column)
    return best


@inner
def _write_set(columns: Columns, column: Int, cut: Int, tile: Any, scratch: Scratch) -> None:
    """Fill `side`: 0 for the codes of elements up to the cut (of the tile), 1 for all others."""
    lists, side, held = scratch.lists, scratch.side, columns.facts[TILE, column]
    for code in range(columns.facts[SIZE, column]):
        side[code] = 1
    for place in range(cut + 1):
        element = lists[ORDER, place]
        for code in range(lists[STARTS, element], lists[ENDS, element] + 1):
            if held < 0 or tile[held + code] == 1:
                side[code] = 0


@inner
def write_parts(
    columns: Columns, guide: Guide, column: Int, elements: Int, base: Int, span: Any, tile: Any, scratch: Scratch
) -> Any:
    """Fill the lists PARTS and SIZES, and `side` for a set, with the best split of the column that was weighed last:
    its parts, the code below an ordered cut (or -1), and 1 for a set.
    """
    lists = scratch.lists
    mode, cut = columns.facts[MODE, column], np.int64(scratch.found[CUT, column])
    if mode == MULTIWAY:
        for element in range(elements):
            lists[PARTS, element], lists[SIZES, element] = lists[STARTS, element], lists[OWN, element]
        return elements, np.int64(-1), np.int64(0)
    if mode != ORDERED:
        put_in_order(guide, np.int64(scratch.found[WAY, column]), elements, base, scratch)
    by_set = np.int64(mode != ORDERED and guide.targets.shape[1] > 0)
    lists[SIZES, 0], lists[SIZES, 1] = 0, 0
    for place in range(elements):
        lists[SIZES, 0 if place <= cut else 1] += lists[OWN, lists[ORDER, place]]
    if by_set == 1:
        _write_set(columns, column, cut, tile, scratch)
        return np.int64(2), np.int64(-1), by_set
    first = span[FROM, column] if mode != BINARY else inner_range(columns, column, span, tile)[0]
    lists[PARTS, 0], lists[PARTS, 1] = first, lists[STARTS, cut + 1]
    return np.int64(2), lists[STARTS, cut] if mode == ORDERED else np.int64(-1), by_set


@kernel
def choose_split(
    rows: Rows,
    columns: Columns,
    guide: Guide,
    k: Int,
    guard: Guard | None,
    start: Int,
    stop: Int,
    histogram: Any,
    span: Any,
    tile: Any,
    scratch: Scratch,
) -> Any:
    """A node's split: column (-1: none is legal), number of parts, code below an ordered cut, whether it is by a set;
    PARTS has the parts' first codes, `side` a set.
    """
    found = scratch.found
    node = 0.0
    width, blind = found.shape[1], guide.targets.shape[1] == 0
    nothing = (np.int64(-1), np.int64(0), np.int64(-1), np.int64(0))
    for one in range(width):
        tighten(rows, columns, guide, one, start, stop, histogram, span)
        found[SPREAD, one] = spread_of(rows, columns, guide, one, start, stop, histogram, span, tile, scratch)
        found[STATE, one], found[CUT, one] = 0.0, -1.0
    parts, before, by_set = np.int64(0), np.int64(-1), np.int64(0)
    # With targets every column is weighed before the best is chosen, without any only the one that is preferred.
    turn = width if blind else 0
    written = np.int64(-1)  # the column whose split is in PARTS and `side`
    while True:
        column, first_round = np.int64(turn), turn < width
        if first_round:
            turn += 1
            if found[SPREAD, column] < 0:
                continue
        else:
            column = _preferred(guide, node, found)
            if column < 0:
                return nothing
            if found[CUT, column] >= 0 and (found[STATE, column] == HOPED or written == column):
                if found[STATE, column] != HOPED:
                    if guard is None or (found[STATE, column] == 1.0 and columns.facts[MODE, column] != MULTIWAY):
                        break
                    if parts_allowed(rows, columns, guard, column, start, stop, parts, by_set, scratch):
                        break
                # Not allowed, or not among the candidates: find the best of what is left of this column.
                found[STATE, column] = np.floor(found[STATE, column]) + 1.0
        elements, base, node = _weigh(
            rows, columns, guide, k, guard, column, start, stop, histogram, span, tile, scratch
        )
        if found[CUT, column] >= 0 and (
            not first_round or written < 0 or _is_better(guide, node, column, written, found)
        ):
            parts, before, by_set = write_parts(columns, guide, column, elements, base, span, tile, scratch)
            written = column
    if not blind and guide.numbers[MIN_GAIN] > 0.0:
        size = np.float64(mass_of(guide.settings, scratch.whole, np.int64(0))) * guide.numbers[PER_MASS]
        if (node - found[COST, column]) * size < guide.numbers[MIN_GAIN]:
            return nothing
    return column, parts, before, by_set
