# SPDX-License-Identifier: Apache-2.0
"""Kernels that choose a node's split: the best cut of every column by the targets, or without any the widest column,
cut at its median.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.compiling import inner, kernel
from anonfit.engines.memory.counting import persons_within
from anonfit.engines.memory.elements import (
    BINARY,
    FROM,
    GAP,
    MULTIWAY,
    ORDERED,
    find_elements,
    inner_range,
    spread_of,
    tighten,
)
from anonfit.engines.memory.guard import Guard
from anonfit.engines.memory.guarding import parts_allowed
from anonfit.engines.memory.guide import ALPHA, LARGEST, MIN_GAIN, PER_MASS, RULE, SLOTS, Guide
from anonfit.engines.memory.layout import MODE, SIZE, TILE, Columns, Int, Rows
from anonfit.engines.memory.ordering_elements import mark_legal, next_way, put_in_order
from anonfit.engines.memory.scratch import (
    BELOW,
    COST,
    CUT,
    ENDS,
    LEFT,
    LEGAL,
    ORDER,
    OWN,
    PARTS,
    RANK,
    SIZES,
    SPREAD,
    STARTS,
    STATE,
    WAY,
    WHOLE,
    Scratch,
)
from anonfit.engines.memory.weighing import NOBODY, cost_between, cost_of, is_boundary, mass_of, own_cost

__all__ = ["choose_split"]

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
def _sum_whole(guide: Guide, elements: Int, plane: Int, scratch: Scratch) -> None:
    """Fill the vector WHOLE with the sums of all elements."""
    whole, sums = scratch.vectors[WHOLE], scratch.sums
    for slot in range(guide.settings[SLOTS]):
        whole[slot] = 0
    for element in range(elements):
        for slot in range(guide.settings[SLOTS]):
            whole[slot] += sums[plane, element, slot]


@inner
def _cost_at(guide: Guide, plane: Int, cut: Int, own: Int, scratch: Scratch) -> Any:
    """The cost of a cut after a place of the order."""
    below, sums = scratch.vectors[BELOW], scratch.sums
    for slot in range(guide.settings[SLOTS]):
        below[slot] = 0
    for place in range(cut + 1):
        for slot in range(guide.settings[SLOTS]):
            below[slot] += sums[plane, scratch.lists[ORDER, place], slot]
    return cost_between(guide, scratch.vectors, own)


@inner
def _best_cut(
    guide: Guide, elements: Int, plane: Int, own: Int, size: float, least: float, every: bool, scratch: Scratch
) -> Any:
    """The cheapest legal candidate of an order (or of every cut) that is cheaper than `least`, its cost, and whether it
    is a candidate; or -1.
    """
    lists, sums, below = scratch.lists, scratch.sums, scratch.vectors[BELOW]
    slots = guide.settings[SLOTS]
    for slot in range(slots):
        below[slot] = 0
    best, is_candidate = np.int64(-1), False
    for place in range(elements - 1):
        here = lists[ORDER, place]
        for slot in range(slots):
            below[slot] += sums[plane, here, slot]
        if lists[LEGAL, place] == 0:
            continue
        boundary = is_boundary(guide, sums[plane, here], sums[plane, lists[ORDER, place + 1]], own)
        if boundary or every:
            cost = cost_between(guide, scratch.vectors, own) / size
            if cost < least - TIE:
                best, least, is_candidate = np.int64(place), cost, boundary
    return best, least, is_candidate


@inner
def _weigh_two_way(
    rows: Rows,
    columns: Columns,
    guide: Guide,
    k: Int,
    guard: Guard | None,
    column: Int,
    start: Int,
    stop: Int,
    elements: Int,
    plane: Int,
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
        put_in_order(guide, way, elements, plane, scratch)
        mark_legal(rows, columns, k, guard, column, start, stop, elements, swept, scratch)
        if by_median:
            cut = _median_cut(elements, scratch.lists)
            if cut >= 0:
                cost = _cost_at(guide, plane, cut, column, scratch) / size if guided else 0.0
                found[COST, column], found[CUT, column], found[WAY, column] = cost, cut, first
            return
        cut, cost, is_candidate = _best_cut(guide, elements, plane, column, size, found[COST, column], every, scratch)
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
def _join_missing(guide: Guide, elements: Int, plane: Int, scratch: Scratch) -> Any:
    """Put missing and the first child together; how many elements are left."""
    lists, sums, slots = scratch.lists, scratch.sums, guide.settings[SLOTS]
    lists[OWN, 0] += lists[OWN, 1]
    lists[ENDS, 0] = lists[ENDS, 1]
    if guide.targets.shape[1] > 0:
        for slot in range(slots):
            sums[plane, 0, slot] += sums[plane, 1, slot]
    for element in range(2, elements):
        for fact in (STARTS, ENDS, OWN):
            lists[fact, element - 1] = lists[fact, element]
        if guide.targets.shape[1] > 0:
            for slot in range(slots):
                sums[plane, element - 1, slot] = sums[plane, element, slot]
    return elements - 1


@inner
def _weigh_multiway(
    rows: Rows,
    columns: Columns,
    guide: Guide,
    k: Int,
    column: Int,
    start: Int,
    stop: Int,
    elements: Int,
    plane: Int,
    gap: Int,
    size: float,
    scratch: Scratch,
) -> None:
    """Find the legal multiway split of a column: missing values alone if they may be, otherwise with the first child
    (CUT 1), as also after the split without them was not allowed (STATE 1).
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
        elements = _join_missing(guide, elements, plane, scratch)
        persons_within(rows, columns, column, start, stop, elements, lists)
        legal = _all_legal(elements, k, lists)
    if not legal:
        return
    cost = 0.0
    if guide.targets.shape[1] > 0:
        for element in range(elements):
            if lists[OWN, element] > 0:
                cost += cost_of(guide, scratch.sums[plane, element], column)
        cost /= size
    found[COST, column], found[CUT, column], found[STATE, column] = cost, joined, joined


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
    """Find a column's best legal split; returns the node's cost per person (0 without targets)."""
    elements, plane = find_elements(rows, columns, guide, column, start, stop, histogram, span, tile, scratch)
    size, node, mine = 1.0, 0.0, 0.0
    if guide.targets.shape[1] > 0:
        _sum_whole(guide, elements, plane, scratch)
        whole = scratch.vectors[WHOLE]
        size = np.float64(mass_of(guide, whole)) * guide.numbers[PER_MASS]
        node, mine = cost_of(guide, whole, np.int64(NOBODY)), own_cost(guide, whole, column)
    if columns.facts[MODE, column] == MULTIWAY:
        gap = span[GAP, column]
        _weigh_multiway(rows, columns, guide, k, column, start, stop, elements, plane, gap, size, scratch)
    else:
        _weigh_two_way(rows, columns, guide, k, guard, column, start, stop, elements, plane, size, scratch)
    if scratch.found[CUT, column] < 0:
        scratch.found[SPREAD, column] = -1.0
    else:
        scratch.found[COST, column] += mine / size
    return node / size


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
def _write_parts(
    rows: Rows,
    columns: Columns,
    guide: Guide,
    column: Int,
    start: Int,
    stop: Int,
    histogram: Any,
    span: Any,
    tile: Any,
    scratch: Scratch,
) -> Any:
    """Fill the lists PARTS and SIZES, and `side` for a set, with a column's best split: its parts, the code below an
    ordered cut (or -1), and 1 for a set.
    """
    elements, plane = find_elements(rows, columns, guide, column, start, stop, histogram, span, tile, scratch)
    lists = scratch.lists
    mode, cut = columns.facts[MODE, column], np.int64(scratch.found[CUT, column])
    if mode == MULTIWAY:
        if cut == 1:
            elements = _join_missing(guide, elements, plane, scratch)
        for element in range(elements):
            lists[PARTS, element], lists[SIZES, element] = lists[STARTS, element], lists[OWN, element]
        return elements, np.int64(-1), np.int64(0)
    if guide.targets.shape[1] > 0:
        _sum_whole(guide, elements, plane, scratch)
    way = np.int64(scratch.found[WAY, column])
    put_in_order(guide, way, elements, plane, scratch)
    by_set = np.int64(mode != ORDERED and guide.targets.shape[1] > 0)
    lists[SIZES, 0], lists[SIZES, 1] = 0, 0
    for element in range(elements):
        lists[SIZES, 0 if lists[RANK, element] <= cut else 1] += lists[OWN, element]
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
    blind = guide.targets.shape[1] == 0
    nothing = (np.int64(-1), np.int64(0), np.int64(-1), np.int64(0))
    for column in range(found.shape[1]):
        tighten(rows, columns, guide, column, start, stop, histogram, span)
        found[SPREAD, column] = spread_of(rows, columns, guide, column, start, stop, histogram, span, tile, scratch)
        found[STATE, column], found[CUT, column] = 0.0, -1.0
    parts, before, by_set = np.int64(0), np.int64(-1), np.int64(0)
    # With targets every column is weighed before the best is chosen, without any only the one that is preferred.
    turn = found.shape[1] if blind else 0
    while True:
        best = np.int64(turn)
        if turn < found.shape[1]:
            turn += 1
            if found[SPREAD, best] < 0:
                continue
        else:
            best = _preferred(guide, node, found)
            if best < 0:
                return nothing
            if found[CUT, best] >= 0 and found[STATE, best] != HOPED:
                parts, before, by_set = _write_parts(
                    rows, columns, guide, best, start, stop, histogram, span, tile, scratch
                )
                if guard is None or (found[STATE, best] == 1.0 and columns.facts[MODE, best] != MULTIWAY):
                    break
                if parts_allowed(rows, columns, guard, best, start, stop, parts, by_set, scratch):
                    break
            # The best split is not allowed, or not weighed yet: find the best of this column, and compare anew.
            if found[CUT, best] >= 0:
                found[STATE, best] = np.floor(found[STATE, best]) + 1.0
        node = _weigh(rows, columns, guide, k, guard, best, start, stop, histogram, span, tile, scratch)
    if not blind and guide.numbers[MIN_GAIN] > 0.0:
        size = np.float64(mass_of(guide, scratch.vectors[WHOLE])) * guide.numbers[PER_MASS]
        if (node - found[COST, best]) * size < guide.numbers[MIN_GAIN]:
            return nothing
    return best, parts, before, by_set
