# SPDX-License-Identifier: Apache-2.0
"""Kernels that weigh the splits of one column: the best cut of its elements in any of their orders, or the split of a
taxonomy node into its children.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.engines.memory import forms, layout
from anonfit.engines.memory.candidates import mark_legal, next_way, put_in_order
from anonfit.engines.memory.count import at, persons_within
from anonfit.engines.memory.forms import KernelConstraints, NodeView
from anonfit.engines.memory.impurity import cost_of, cost_of_two, is_boundary, is_of_two
from anonfit.engines.memory.layout import Int
from anonfit.runtime.compiling import inner

TIE = 1e-9
HOPED = 0.5
"""The state of a column whose best cut is no candidate: what models leave of it may be worse, never better."""


@inner
def _median_cut(elements: Int, lists: Any) -> Any:
    """The place to cut after: the lower median's if that is legal, else the nearest legal one, lower first; or -1."""
    total = np.int64(0)
    for element in range(elements):
        total += lists[forms.OWN, element]
    half = (total + 1) // 2
    below = np.int64(0)
    best, best_distance = np.int64(-1), total + 1
    for place in range(elements - 1):
        above_half = below >= half
        below += lists[forms.OWN, lists[forms.ORDER, place]]
        if lists[forms.LEGAL, place] == 1:
            if below >= half and not above_half:
                return np.int64(place)
            if abs(below - half) < best_distance:
                best, best_distance = np.int64(place), abs(below - half)
    return best


@inner
def sum_whole(node: NodeView, elements: Int, base: Int) -> None:
    """Fill `whole` with the sums of all elements."""
    slots, sums, whole = node.objective.settings[forms.SLOTS], node.scratch.sums, node.scratch.whole
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
def _cost_at(node: NodeView, base: Int, cut: Int, own: Int) -> Any:
    """The cost of a cut after a place of the order."""
    lists, below, above, sums = node.scratch.lists, node.scratch.below, node.scratch.above, node.scratch.sums
    objective, zero = node.objective, np.int64(0)
    settings, targets, factors, logs = objective.settings, objective.targets, objective.factors, objective.logs
    _all_above(settings[forms.SLOTS], node.scratch.whole, below, above)
    for place in range(cut + 1):
        first = base + lists[forms.ORDER, place] * settings[forms.SLOTS]
        _move_below(settings[forms.SLOTS], first, sums, below, above)
    left = cost_of(settings, targets, factors, logs, below, zero, own)
    return left + cost_of(settings, targets, factors, logs, above, zero, own)


@inner
def _best_of_two(node: NodeView, elements: Int, base: Int, size: float, least: float, every: bool) -> Any:
    """What `_best_cut` finds where `is_of_two` holds."""
    objective, lists, sums, whole = node.objective, node.scratch.lists, node.scratch.sums, node.scratch.whole
    slots, all_cuts = objective.settings[forms.SLOTS], objective.settings[forms.ALL_CUTS] == 1
    slot = objective.targets[forms.SLOT, 0]
    a, b = np.int64(0), np.int64(0)
    best, is_candidate = np.int64(-1), False
    here = base + lists[forms.ORDER, 0] * slots + slot
    for place in range(elements - 1):
        after = base + lists[forms.ORDER, at(place + 1)] * slots + slot
        a += sums[at(here)]
        b += sums[at(here + 1)]
        if lists[forms.LEGAL, place] == 1:
            boundary = all_cuts or (
                (sums[at(here)] != 0 or sums[at(after)] != 0) and (sums[at(here + 1)] != 0 or sums[at(after + 1)] != 0)
            )
            if boundary or every:
                c, d = whole[slot] - a, whole[slot + 1] - b
                cost = cost_of_two(objective.factors, objective.logs, a, b, c, d, size)
                if cost < least - TIE:
                    best, least, is_candidate = np.int64(place), cost, boundary
        here = after
    return best, least, is_candidate


@inner
def _best_cut(node: NodeView, elements: Int, base: Int, own: Int, size: float, least: float, every: bool) -> Any:
    """The cheapest legal candidate of an order (or of every cut) that is cheaper than `least`, its cost, and whether it
    is a candidate; or -1.
    """
    objective = node.objective
    settings, targets, factors, logs = objective.settings, objective.targets, objective.factors, objective.logs
    if is_of_two(targets, own):
        return _best_of_two(node, elements, base, size, least, every)
    lists, sums, below, above = node.scratch.lists, node.scratch.sums, node.scratch.below, node.scratch.above
    slots, zero = settings[forms.SLOTS], np.int64(0)
    _all_above(slots, node.scratch.whole, below, above)
    best, is_candidate = np.int64(-1), False
    for place in range(elements - 1):
        here = base + lists[forms.ORDER, place] * slots
        _move_below(slots, here, sums, below, above)
        if lists[forms.LEGAL, place] == 0:
            continue
        boundary = is_boundary(settings, targets, sums, here, base + lists[forms.ORDER, at(place + 1)] * slots, own)
        if boundary or every:
            cost = cost_of(settings, targets, factors, logs, below, zero, own)
            cost = (cost + cost_of(settings, targets, factors, logs, above, zero, own)) / size
            if cost < least - TIE:
                best, least, is_candidate = np.int64(place), cost, boundary
    return best, least, is_candidate


@inner
def weigh_two_way(
    node: NodeView, constraints: KernelConstraints | None, column: Int, elements: Int, base: Int, size: float
) -> None:
    """Find the best legal cut of a column in any of its orders, else the median's in the first.

    Before models have their say (STATE below 1) every cut is taken for a candidate: what they leave of a column is
    never cheaper than that, whatever they forbid. STATE is then HOPED where the best cut is none.
    """
    splits, has_targets = node.scratch.splits, node.objective.targets.shape[1] > 0
    swept = splits[forms.STATE, column] == 1.0
    splits[forms.COST, column], splits[forms.CUT, column], splits[forms.WAY, column] = np.inf, -1.0, 0.0
    first = next_way(node, column, np.int64(-1))
    way, by_median = first, not has_targets
    every = constraints is not None and not swept
    while way >= 0:
        put_in_order(node, way, elements, base)
        mark_legal(node, constraints, column, elements, swept)
        if by_median:
            cut = _median_cut(elements, node.scratch.lists)
            if cut >= 0:
                cost = _cost_at(node, base, cut, column) / size if has_targets else 0.0
                splits[forms.COST, column], splits[forms.CUT, column], splits[forms.WAY, column] = cost, cut, first
            return
        cut, cost, is_candidate = _best_cut(node, elements, base, column, size, splits[forms.COST, column], every)
        if cut >= 0:
            splits[forms.COST, column], splits[forms.CUT, column], splits[forms.WAY, column] = cost, cut, way
            if every:
                splits[forms.STATE, column] = 0.0 if is_candidate else HOPED
        way = next_way(node, column, way)
        if way < 0 and splits[forms.CUT, column] < 0 and not every:
            way, by_median = first, True


@inner
def _all_legal(elements: Int, k: Int, lists: Any) -> Any:
    """Whether at least two elements have persons, and each that has any has enough."""
    filled = 0
    for element in range(elements):
        if lists[forms.LEFT, element] > 0:
            filled += 1
            if lists[forms.LEFT, element] < k:
                return False
    return filled > 1


@inner
def _join_missing(slots: Int, elements: Int, base: Int, lists: Any, sums: Any) -> Any:
    """Put missing and the first child together; how many elements are left."""
    lists[forms.OWN, 0] += lists[forms.OWN, 1]
    lists[forms.ENDS, 0] = lists[forms.ENDS, 1]
    for slot in range(slots):
        sums[base + slot] += sums[base + slots + slot]
    for element in range(2, elements):
        for fact in (forms.STARTS, forms.ENDS, forms.OWN):
            lists[fact, element - 1] = lists[fact, element]
        for slot in range(slots):
            sums[base + (element - 1) * slots + slot] = sums[base + element * slots + slot]
    return elements - 1


@inner
def weigh_multiway(node: NodeView, column: Int, elements: Int, base: Int, size: float) -> Any:
    """Find the legal multiway split of a column: missing values alone if they may be, otherwise with the first child
    (CUT 1), as also after the split without them was not allowed (STATE 1). Returns its elements.
    """
    splits, lists, sums = node.scratch.splits, node.scratch.lists, node.scratch.sums
    slots = node.objective.settings[forms.SLOTS]
    joined = np.int64(0)
    splits[forms.COST, column], splits[forms.CUT, column] = np.inf, -1.0
    legal = False
    if splits[forms.STATE, column] == 0.0:
        persons_within(node, column, elements)
        legal = _all_legal(elements, node.k, lists)
    if not legal and node.span[layout.GAP, column] == 1 and elements > 2 and splits[forms.STATE, column] < 2.0:
        joined = np.int64(1)
        elements = _join_missing(slots, elements, base, lists, sums)
        persons_within(node, column, elements)
        legal = _all_legal(elements, node.k, lists)
    if not legal:
        return elements
    cost, objective = 0.0, node.objective
    settings, targets, factors, logs = objective.settings, objective.targets, objective.factors, objective.logs
    if targets.shape[1] > 0:
        for element in range(elements):
            if lists[forms.OWN, element] > 0:
                cost += cost_of(settings, targets, factors, logs, sums, base + element * slots, column)
        cost /= size
    splits[forms.COST, column], splits[forms.CUT, column], splits[forms.STATE, column] = cost, joined, joined
    return elements


@inner
def together_after(node: NodeView, column: Int, elements: Int, base: Int) -> Any:
    """The share of all pairs of rows that the best split of the column that was weighed last leaves together."""
    lists, splits, mode = node.scratch.lists, node.scratch.splits, node.columns.facts[layout.MODE, column]
    cut = np.int64(splits[forms.CUT, column])
    if mode != layout.MULTIWAY:
        put_in_order(node, np.int64(splits[forms.WAY, column]), elements, base)
    total, below, squares = 0.0, 0.0, 0.0
    for place in range(elements):
        if mode == layout.MULTIWAY:
            size = np.float64(lists[forms.OWN, place])
            squares += size * size
        else:
            size = np.float64(lists[forms.OWN, lists[forms.ORDER, place]])
            below += size if place <= cut else 0.0
        total += size
    if mode != layout.MULTIWAY:
        squares = below * below + (total - below) * (total - below)
    return squares / (total * total)
