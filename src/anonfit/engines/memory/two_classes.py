# SPDX-License-Identifier: Apache-2.0
"""Kernels that find the best cut of a column for one target of two classes, which is what is nearly always asked,
straight from the node's histogram: nothing is written down of the columns that are not chosen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.engines.memory import forms, layout
from anonfit.engines.memory.candidates import BY_CODE
from anonfit.engines.memory.count import at
from anonfit.engines.memory.cutting import TIE
from anonfit.engines.memory.forms import KernelObjective, NodeView
from anonfit.engines.memory.impurity import NOBODY, cost_of_two, is_of_two
from anonfit.engines.memory.layout import Int
from anonfit.runtime.compiling import inner


@inner
def has_quick_cuts(node: NodeView, column: Int) -> Any:
    """Whether `find_quick_cut` knows what to do with a column, where no model forbids a split."""
    settings, targets, facts = node.objective.settings, node.objective.targets, node.columns.facts
    if targets.shape[1] != 1 or not is_of_two(targets, NOBODY) or targets[forms.ITSELF, 0] >= 0:
        return False
    in_two = settings[forms.SLOTS] == 2 and settings[forms.LEAN] == 2 and node.columns.entity < 0
    counted = facts[layout.BIN, column] >= 0 and facts[layout.SIZE, column] <= layout.NARROW
    return in_two and counted and facts[layout.MODE, column] <= layout.SUBSET


@inner
def _first_code(node: NodeView, column: Int) -> Any:
    """The lowest code that the node's rows may have."""
    return np.int64(0) if node.span[layout.GAP, column] == 1 else node.span[layout.LOW, column]


@inner
def sum_two(node: NodeView, column: Int) -> None:
    """Fill `whole` with the sums of all codes of a column that is counted."""
    histogram, first = node.histogram, 2 * node.columns.facts[layout.BIN, column]
    a, b = np.int64(0), np.int64(0)
    for code in range(_first_code(node, column), node.span[layout.HIGH, column] + 1):
        a += histogram[at(first + 2 * code)]
        b += histogram[at(first + 2 * code + 1)]
    node.scratch.whole[0], node.scratch.whole[1] = a, b


@inner
def _put_in_order(node: NodeView, column: Int) -> Any:
    """Fill the list ORDER with the codes that the node's rows have, ordered by the share of the larger class, equal
    ones as they stand; how many.
    """
    histogram, first = node.histogram, 2 * node.columns.facts[layout.BIN, column]
    order, means = node.scratch.lists[forms.ORDER], node.scratch.means
    chosen = np.int64(node.scratch.whole[1] > node.scratch.whole[0])
    count = np.int64(0)
    for code in range(_first_code(node, column), node.span[layout.HIGH, column] + 1):
        here = first + 2 * code
        persons = histogram[at(here)] + histogram[at(here + 1)]
        if persons == 0:
            continue
        mean = np.float64(histogram[at(here + chosen)]) / np.float64(persons)
        place = count
        while place > 0 and means[at(place - 1)] > mean:
            means[at(place)], order[at(place)] = means[at(place - 1)], order[at(place - 1)]
            place -= 1
        means[at(place)], order[at(place)] = mean, code
        count += 1
    return count


@inner
def _place_of(by_code: bool, order: Any, first: Int, entry: Int) -> Any:
    """Where the sums of an entry of the order begin in the histogram."""
    return first + 2 * (entry if by_code else order[at(entry)])


@inner
def _median_cut(node: NodeView, entries: Any, first: Int, by_code: bool) -> Any:
    """The legal cut that is the lower median's or nearest to it, lower first, and the sums below it."""
    histogram, order, whole, k = node.histogram, node.scratch.lists[forms.ORDER], node.scratch.whole, node.k
    total, a, b, place = whole[0] + whole[1], np.int64(0), np.int64(0), np.int64(-1)
    half, before, distance, best = (total + 1) // 2, np.int64(0), total + 1, (np.int64(-1), a, b)
    for entry in range(*entries):
        here = _place_of(by_code, order, first, entry)
        persons = histogram[at(here)] + histogram[at(here + 1)]
        if persons == 0:
            continue
        below = a + b
        if below >= k and total - below >= k:
            if before < half <= below:
                return place, a, b
            if abs(below - half) < distance:
                best, distance = (place, a, b), abs(below - half)
        a, b, before, place = a + histogram[at(here)], b + histogram[at(here + 1)], below, place + 1
    return best


@inner
def _cost_of_cut(objective: KernelObjective, known: bool, a: Int, b: Int, c: Int, d: Int, size: float) -> Any:
    """The same as `cost_of_two`; `known`: x ln x of all numbers is in the table."""
    if not known:
        return cost_of_two(objective.factors, objective.logs, a, b, c, d, size)
    logs, factor = objective.logs, objective.factors[forms.FACTOR, 0]
    left = logs[at(a + b)] - logs[at(a)] - logs[at(b)]
    right = logs[at(c + d)] - logs[at(c)] - logs[at(d)]
    return (factor * left + factor * right) / size


@inner
def _best_cut(node: NodeView, entries: Any, first: Int, by_code: bool, size: float) -> Any:
    """The cheapest legal candidate and its cost; and whether any cut is legal."""
    objective, scratch, histogram, k = node.objective, node.scratch, node.histogram, node.k
    order, whole, all_cuts = scratch.lists[forms.ORDER], scratch.whole, objective.settings[forms.ALL_CUTS] == 1
    all_first, all_second = whole[0], whole[1]
    total = all_first + all_second
    known = objective.factors[forms.UNIT, 0] == 1.0 and total < objective.logs.shape[0]
    place, best, least, is_legal = np.int64(-1), np.int64(-1), np.inf, False
    a, b, x, y = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for entry in range(*entries):
        here = _place_of(by_code, order, first, entry)
        p, q = histogram[at(here)], histogram[at(here + 1)]
        if p + q == 0:
            continue
        if a + b >= k and total - a - b >= k:
            is_legal = True
            if all_cuts or ((x != 0 or p != 0) and (y != 0 or q != 0)):
                cost = _cost_of_cut(objective, known, a, b, all_first - a, all_second - b, size)
                if cost < least - TIE:
                    best, least = place, cost
        a, b, x, y, place = a + p, b + q, p, q, place + 1
    return best, least, is_legal


@inner
def find_quick_cut(node: NodeView, column: Int, size: float) -> None:
    """Find the best legal cut of a column, else that of the median."""
    objective, splits, whole = node.objective, node.scratch.splits, node.scratch.whole
    by_code = node.columns.facts[layout.MODE, column] == layout.ORDERED
    entries = _first_code(node, column), node.span[layout.HIGH, column] + 1
    if not by_code:
        entries = np.int64(0), _put_in_order(node, column)
    first = 2 * node.columns.facts[layout.BIN, column]
    best, least, is_legal = np.int64(-1), np.inf, True
    if objective.settings[forms.ALL_CUTS] == 1 or (whole[0] > 0 and whole[1] > 0):  # else none is a candidate
        best, least, is_legal = _best_cut(node, entries, first, by_code, size)
    if best < 0 and is_legal:
        best, a, b = _median_cut(node, entries, first, by_code)
        if best >= 0:
            least = cost_of_two(objective.factors, objective.logs, a, b, whole[0] - a, whole[1] - b, size)
    splits[forms.COST, column], splits[forms.CUT, column] = least, best
    splits[forms.WAY, column] = BY_CODE if by_code else 0
