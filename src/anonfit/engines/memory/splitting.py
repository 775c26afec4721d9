# SPDX-License-Identifier: Apache-2.0
"""Kernels that choose a node's split: by the targets the best cut of every column, else the widest one's median."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anonfit.criteria import objectives
from anonfit.engines.memory import forms, layout
from anonfit.engines.memory.candidates import BY_CODE, find_elements, find_spreads, inner_range, put_in_order
from anonfit.engines.memory.constraint_kernels import parts_allowed
from anonfit.engines.memory.cutting import HOPED, TIE, sum_whole, together_after, weigh_multiway, weigh_two_way
from anonfit.engines.memory.forms import KernelConstraints, KernelObjective, NodeView
from anonfit.engines.memory.impurity import NOBODY, cost_of, mass_of, may_gain_joined
from anonfit.engines.memory.layout import Int
from anonfit.engines.memory.two_classes import find_quick_cut, has_quick_cuts, sum_two
from anonfit.engines.memory.wide import find_wide_cut
from anonfit.runtime.compiling import inner, kernel

FIRST, NAIVE, PRODUCT, BY_CHANCE, COMBINED = 1, 2, 3, 5, 6  # the numbers of criteria.objectives.WeightRule


@inner
def _mixed(word: Any) -> Any:
    word = word + np.uint64(objectives.GOLDEN)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(objectives.FIRST)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(objectives.SECOND)
    return word ^ (word >> np.uint64(31))


@inner
def part_key(key: Int, part: Int) -> Any:
    """The key of a part of a node's split."""
    return np.int64(_mixed(np.uint64(key) ^ np.uint64(part + 1)))


@inner
def draw(key: Int, splits: Any) -> None:
    """Fill the row CHANCE of the columns' splits with the numbers of the node of a key."""
    for column in range(splits.shape[1]):
        word = _mixed(np.uint64(key) ^ (np.uint64(column + 1) << np.uint64(32)))
        splits[forms.CHANCE, column] = -math.log((np.float64(word >> np.uint64(11)) + 0.5) * 2.0**-53)


def signed_key(key: int) -> int:
    """The bits of a key as kernels hold whole numbers."""
    return key - objectives.WORD - 1 if key > objectives.WORD >> 1 else key


@inner
def _weigh(node: NodeView, constraints: KernelConstraints | None, column: Int, is_first: bool) -> Any:
    """Find a column's best legal split; returns its elements, where their sums begin, and the node's cost per person
    (0 without targets). The first column of a node that is weighed gives the node's own sums.
    """
    objective, splits, whole = node.objective, node.scratch.splits, node.scratch.whole
    elements, base, is_sorted = np.int64(2), np.int64(0), node.columns.sorted == column
    if is_sorted:
        find_wide_cut(node, column, is_first)
    else:
        elements, base = find_elements(node, column)
    size, cost, own_cost = 1.0, 0.0, 0.0
    if objective.targets.shape[1] > 0:
        if is_first and not is_sorted:
            sum_whole(node, elements, base)
        size = _persons(objective, whole)
        settings, targets, factors, logs = objective.settings, objective.targets, objective.factors, objective.logs
        cost = cost_of(settings, targets, factors, logs, whole, np.int64(0), np.int64(NOBODY))
        own_cost = cost_of(settings, targets, factors, logs, whole, np.int64(0), column, True)
    if node.columns.facts[layout.MODE, column] == layout.MULTIWAY:
        elements = weigh_multiway(node, column, elements, base, size)
    elif not is_sorted:
        weigh_two_way(node, constraints, column, elements, base, size)
    if splits[forms.CUT, column] < 0:
        splits[forms.SPREAD, column] = -1.0
    else:
        splits[forms.COST, column] += own_cost / size
        if objective.settings[forms.RULE] == COMBINED:
            splits[forms.TOGETHER, column] = together_after(node, column, elements, base)
    return elements, base, cost / size


@inner
def _persons(objective: KernelObjective, whole: Any) -> Any:
    """How many persons a node's mass stands for."""
    return np.float64(mass_of(objective.settings, whole, np.int64(0))) * objective.numbers[forms.PER_MASS]


@inner
def _merit(objective: KernelObjective, column: Int, value: float, splits: Any) -> Any:
    """How much a column's split is preferred by a rule that mixes weight and value."""
    rule, numbers = objective.settings[forms.RULE], objective.numbers
    if rule == PRODUCT:
        return objective.weights[column] * value
    weight = objective.weights[column] / numbers[forms.LARGEST] if numbers[forms.LARGEST] > 0 else 0.0
    if rule == BY_CHANCE:
        return weight * value / splits[forms.CHANCE, column]
    if rule == COMBINED:
        wide = numbers[forms.BETA] * weight * splits[forms.SPREAD, column]
        return numbers[forms.ALPHA] * value + wide - numbers[forms.GAMMA] * splits[forms.TOGETHER, column]
    return numbers[forms.ALPHA] * weight + (1.0 - numbers[forms.ALPHA]) * value


@inner
def _gain(cost: float, column: Int, splits: Any) -> Any:
    """The share of a node's cost that a column's split takes away."""
    return max(cost - splits[forms.COST, column], 0.0) / cost if cost > 0.0 else 0.0


@inner
def _is_better(objective: KernelObjective, cost: float, column: Int, best: Int, splits: Any) -> Any:
    """Whether a column's split is to be preferred to the best one before it, in a node of some cost."""
    rule = objective.settings[forms.RULE]
    if FIRST <= rule <= NAIVE and objective.weights[column] != objective.weights[best]:
        return objective.weights[column] > objective.weights[best]
    wider = splits[forms.SPREAD, column] > splits[forms.SPREAD, best] + TIE
    blind = objective.targets.shape[1] == 0
    if rule == NAIVE or (blind and rule < PRODUCT):
        return wider
    if rule >= PRODUCT:
        value = splits[forms.SPREAD, column] if blind else _gain(cost, column, splits)
        best_value = splits[forms.SPREAD, best] if blind else _gain(cost, best, splits)
        more = _merit(objective, column, value, splits) - _merit(objective, best, best_value, splits)
    else:
        more = splits[forms.COST, best] - splits[forms.COST, column]
    return more > TIE or (more >= -TIE and wider)


@inner
def _preferred(objective: KernelObjective, cost: float, splits: Any) -> Any:
    """The column whose split is best, or -1."""
    best = np.int64(-1)
    for each in range(splits.shape[1]):
        column = np.int64(each)
        if splits[forms.SPREAD, column] >= 0 and (best < 0 or _is_better(objective, cost, column, best, splits)):
            best = column
    return best


@inner
def _write_set(node: NodeView, column: Int, cut: Int) -> None:
    """Fill `side`: 0 for the codes of elements up to the cut (of the tile), 1 for all others."""
    facts, lists, side = node.columns.facts, node.scratch.lists, node.scratch.side
    held, ends = facts[layout.TILE, column], forms.ENDS if facts[layout.MODE, column] == layout.BINARY else forms.STARTS
    for code in range(facts[layout.SIZE, column]):
        side[code] = 1
    for place in range(cut + 1):
        element = lists[forms.ORDER, place]
        for code in range(lists[forms.STARTS, element], lists[ends, element] + 1):
            if held < 0 or node.tile[held + code] == 1:
                side[code] = 0


@inner
def write_parts(node: NodeView, column: Int, elements: Int, base: Int) -> Any:
    """Fill the lists PARTS and SIZES, and `side` for a set, with the best split of the column that was weighed last:
    its parts, the code below an ordered cut (or -1), and 1 for a set.
    """
    lists, splits, mode = node.scratch.lists, node.scratch.splits, node.columns.facts[layout.MODE, column]
    cut = np.int64(splits[forms.CUT, column])
    if mode == layout.MULTIWAY:
        for element in range(elements):
            lists[forms.PARTS, element] = lists[forms.STARTS, element]
            lists[forms.SIZES, element] = lists[forms.OWN, element]
        return elements, np.int64(-1), np.int64(0)
    if mode != layout.ORDERED:
        put_in_order(node, np.int64(splits[forms.WAY, column]), elements, base)
    by_set = np.int64(mode != layout.ORDERED and node.objective.targets.shape[1] > 0)
    lists[forms.SIZES, 0], lists[forms.SIZES, 1] = 0, 0
    for place in range(elements):
        lists[forms.SIZES, 0 if place <= cut else 1] += lists[forms.OWN, lists[forms.ORDER, place]]
    if by_set == 1:
        _write_set(node, column, cut)
        return np.int64(2), np.int64(-1), by_set
    first = node.span[layout.FROM, column] if mode != layout.BINARY else inner_range(node, column)[0]
    lists[forms.PARTS, 0], lists[forms.PARTS, 1] = first, lists[forms.STARTS, cut + 1]
    return np.int64(2), lists[forms.STARTS, cut] if mode == layout.ORDERED else np.int64(-1), by_set


@inner
def _is_absent(constraints: KernelConstraints | None, column: Int) -> Any:
    """Whether the rows that models must be asked of are elsewhere."""
    if constraints is None:
        return False
    return constraints.taken[0, column] == forms.ABSENT


@inner
def _weigh_quickly(node: NodeView, column: Int, is_first: bool) -> Any:
    """Find a column's best legal split straight from the histogram, if that can be done; whether it was."""
    splits = node.scratch.splits
    if not has_quick_cuts(node, column) or node.objective.settings[forms.RULE] == COMBINED:
        return False
    if is_first:
        sum_two(node, column)
    find_quick_cut(node, column, _persons(node.objective, node.scratch.whole))
    if splits[forms.CUT, column] < 0:
        splits[forms.SPREAD, column] = -1.0
    return True


@inner
def _gains_enough(node: NodeView, cost: float, column: Int) -> Any:
    """Whether a column's split takes as much of the node's cost per person away as is asked for."""
    objective, least = node.objective, node.objective.numbers[forms.MIN_GAIN]
    gained = (cost - node.scratch.splits[forms.COST, column]) * _persons(objective, node.scratch.whole)
    return objective.targets.shape[1] == 0 or least <= 0.0 or gained >= least


@inner
def _choose_freely(node: NodeView, constraints: KernelConstraints | None) -> Any:
    """What `choose_split` finds by targets where there are no models. Of columns that are weighed quickly only the best
    one's split is written.
    """
    objective, splits, whole = node.objective, node.scratch.splits, node.scratch.whole
    settings, targets, factors, logs = objective.settings, objective.targets, objective.factors, objective.logs
    best, written, cost, is_first = np.int64(-1), np.int64(-1), 0.0, True
    parts, before, by_set = np.int64(0), np.int64(-1), np.int64(0)
    for each in range(splits.shape[1]):
        column, elements, base = np.int64(each), np.int64(0), np.int64(0)
        if splits[forms.SPREAD, column] < 0:
            continue
        quick = _weigh_quickly(node, column, is_first)
        if not quick:
            elements, base, cost = _weigh(node, constraints, column, is_first)
        elif is_first:
            cost = cost_of(settings, targets, factors, logs, whole, np.int64(0), np.int64(NOBODY))
            cost /= _persons(objective, whole)
        is_first = False
        if splits[forms.CUT, column] < 0 or (best >= 0 and not _is_better(objective, cost, column, best, splits)):
            continue
        best = column
        if not quick:
            parts, before, by_set = write_parts(node, column, elements, base)
            written = column
    if best >= 0 and written != best:
        elements, base = find_elements(node, best)
        if node.columns.facts[layout.MODE, best] == layout.ORDERED:  # that of others comes with writing
            put_in_order(node, np.int64(BY_CODE), elements, base)
        parts, before, by_set = write_parts(node, best, elements, base)
    if best >= 0 and not _gains_enough(node, cost, best):
        best = np.int64(-1)
    return best, parts, before, by_set


@kernel
def choose_split(node: NodeView, constraints: KernelConstraints | None) -> Any:
    """A node's split: column (-1: none is legal), number of parts, code below an ordered cut, whether it is by a set;
    PARTS has the parts' first codes, `side` a set.

    Where models must be asked of a column whose rows are absent, it is not chosen: -2 and below stand for that column.
    """
    objective, facts, splits = node.objective, node.columns.facts, node.scratch.splits
    cost, width, blind = 0.0, splits.shape[1], objective.targets.shape[1] == 0
    parts, before, by_set = np.int64(0), np.int64(-1), np.int64(0)
    find_spreads(node, splits[forms.SPREAD])
    for each in range(width):
        # What models leave of a column may be more even than its best cut: a rule that asks for that holds every cut
        # against them at once.
        at_once = objective.settings[forms.RULE] == COMBINED and facts[layout.MODE, each] != layout.MULTIWAY
        splits[forms.STATE, each], splits[forms.CUT, each] = 1.0 if at_once else 0.0, -1.0
    if constraints is None and not blind:
        return _choose_freely(node, constraints)
    # With targets every column is weighed before the best is chosen, without any only the one that is preferred.
    turn = width if blind else 0
    written = np.int64(-1)  # the column whose split is in PARTS and `side`
    is_first = True
    while True:
        column, first_round = np.int64(turn), turn < width
        if first_round:
            turn += 1
            if splits[forms.SPREAD, column] < 0:
                continue
        else:
            column = _preferred(objective, cost, splits)
            if column < 0:
                return column, parts, before, by_set
            state, multiway = splits[forms.STATE, column], facts[layout.MODE, column] == layout.MULTIWAY
            if splits[forms.CUT, column] >= 0 and (state == HOPED or written == column):
                if constraints is None or (state == 1.0 and not multiway):
                    break
                if _is_absent(constraints, column):
                    return forms.ABSENT - column, parts, before, by_set
                if state != HOPED and parts_allowed(node, constraints, column, parts, by_set):
                    break
                # Not allowed, or not among the candidates: find the best of what is left of this column.
                splits[forms.STATE, column] = np.floor(state) + 1.0
        multiway = facts[layout.MODE, column] == layout.MULTIWAY
        if splits[forms.STATE, column] == 1.0 and not multiway and _is_absent(constraints, column):
            return forms.ABSENT - column, parts, before, by_set
        elements, base, cost = _weigh(node, constraints, column, is_first)
        is_first = False
        alone = multiway and splits[forms.CUT, column] == 0.0 and node.span[layout.GAP, column] == 1
        if first_round and alone and constraints is not None and may_gain_joined(objective.targets):
            # Models may leave a cheaper split, that with missing values joined: they are asked before columns compete.
            if _is_absent(constraints, column):
                return forms.ABSENT - column, parts, before, by_set
            parts, before, by_set = write_parts(node, column, elements, base)
            written = np.int64(-1)
            if not parts_allowed(node, constraints, column, parts, by_set):
                splits[forms.STATE, column], turn = 1.0, turn - 1
                continue
        if splits[forms.CUT, column] >= 0 and (
            not first_round or written < 0 or _is_better(objective, cost, column, written, splits)
        ):
            parts, before, by_set = write_parts(node, column, elements, base)
            written = column
    if not _gains_enough(node, cost, column):
        column = np.int64(-1)
    return column, parts, before, by_set
