# SPDX-License-Identifier: Apache-2.0
"""Kernels that choose a node's split: the best cut of every column by the targets, or without any the widest column,
cut at its median.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anonfit.criteria.objectives import FIRST as ONCE
from anonfit.criteria.objectives import GOLDEN, WORD
from anonfit.criteria.objectives import SECOND as TWICE
from anonfit.engines.memory.candidates import (
    BINARY,
    MULTIWAY,
    ORDERED,
    find_elements,
    inner_range,
    put_in_order,
    spread_of,
    tighten,
)
from anonfit.engines.memory.constraint_kernels import parts_allowed
from anonfit.engines.memory.cutting import HOPED, TIE, sum_whole, together_after, weigh_multiway, weigh_two_way
from anonfit.engines.memory.forms import (
    ABSENT,
    ALPHA,
    BETA,
    CHANCE,
    COST,
    CUT,
    ENDS,
    GAMMA,
    LARGEST,
    MIN_GAIN,
    ORDER,
    OWN,
    PARTS,
    PER_MASS,
    RULE,
    SIZES,
    SLOTS,
    SPREAD,
    STARTS,
    STATE,
    TOGETHER,
    WAY,
    KernelConstraints,
    KernelObjective,
    Scratch,
)
from anonfit.engines.memory.impurity import NOBODY, cost_of, mass_of, may_gain_joined, own_cost
from anonfit.engines.memory.layout import FROM, GAP, MODE, SIZE, TILE, Columns, Int, Rows
from anonfit.runtime.compiling import inner, kernel

FIRST, NAIVE, PRODUCT, BY_CHANCE, COMBINED = 1, 2, 3, 5, 6  # the numbers of criteria.objectives.WeightRule


@inner
def _mixed(word: Any) -> Any:
    word = word + np.uint64(GOLDEN)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(ONCE)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(TWICE)
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
        splits[CHANCE, column] = -math.log((np.float64(word >> np.uint64(11)) + 0.5) * 2.0**-53)


def signed_key(key: int) -> int:
    """The bits of a key as kernels hold whole numbers."""
    return key - WORD - 1 if key > WORD >> 1 else key


@inner
def _weigh(
    rows: Rows,
    columns: Columns,
    objective: KernelObjective,
    k: Int,
    constraints: KernelConstraints | None,
    column: Int,
    start: Int,
    stop: Int,
    histogram: Any,
    span: Any,
    tile: Any,
    is_first: bool,
    scratch: Scratch,
) -> Any:
    """Find a column's best legal split; returns its elements, where their sums begin, and the node's cost per person
    (0 without targets). The first column of a node that is weighed gives the node's own sums.
    """
    elements, base = find_elements(rows, columns, objective, column, start, stop, histogram, span, tile, scratch)
    size, node, mine = 1.0, 0.0, 0.0
    targets = objective.targets
    if targets.shape[1] > 0:
        settings, factors, logs, whole = objective.settings, objective.factors, objective.logs, scratch.whole
        if is_first:
            sum_whole(settings[SLOTS], elements, base, scratch.sums, whole)
        size = np.float64(mass_of(settings, whole, np.int64(0))) * objective.numbers[PER_MASS]
        node = cost_of(settings, targets, factors, logs, whole, np.int64(0), np.int64(NOBODY))
        mine = own_cost(settings, targets, factors, logs, whole, column)
    if columns.facts[MODE, column] == MULTIWAY:
        gap = span[GAP, column]
        elements = weigh_multiway(rows, columns, objective, k, column, start, stop, elements, base, gap, size, scratch)
    else:
        weigh_two_way(rows, columns, objective, k, constraints, column, start, stop, elements, base, size, scratch)
    if scratch.splits[CUT, column] < 0:
        scratch.splits[SPREAD, column] = -1.0
    else:
        scratch.splits[COST, column] += mine / size
        if objective.settings[RULE] == COMBINED:
            mode = columns.facts[MODE, column]
            scratch.splits[TOGETHER, column] = together_after(objective, mode, column, elements, base, scratch)
    return elements, base, node / size


@inner
def _merit(objective: KernelObjective, column: Int, value: float, splits: Any) -> Any:
    """How much a column's split is preferred by a rule that mixes weight and value."""
    rule, numbers = objective.settings[RULE], objective.numbers
    if rule == PRODUCT:
        return objective.weights[column] * value
    weight = objective.weights[column] / numbers[LARGEST] if numbers[LARGEST] > 0 else 0.0
    if rule == BY_CHANCE:
        return weight * value / splits[CHANCE, column]
    if rule == COMBINED:
        wide = numbers[BETA] * weight * splits[SPREAD, column]
        return numbers[ALPHA] * value + wide - numbers[GAMMA] * splits[TOGETHER, column]
    return numbers[ALPHA] * weight + (1.0 - numbers[ALPHA]) * value


@inner
def _is_better(objective: KernelObjective, node: float, column: Int, best: Int, splits: Any) -> Any:
    """Whether a column's split is to be preferred to the best one before it."""
    rule = objective.settings[RULE]
    if FIRST <= rule <= NAIVE and objective.weights[column] != objective.weights[best]:
        return objective.weights[column] > objective.weights[best]
    wider = splits[SPREAD, column] > splits[SPREAD, best] + TIE
    blind = objective.targets.shape[1] == 0
    if rule == NAIVE:
        return wider
    if rule >= PRODUCT:
        values = (splits[SPREAD, column], splits[SPREAD, best])
        if not blind:
            values = (0.0, 0.0)
            if node > 0.0:
                values = (max(node - splits[COST, column], 0.0) / node, max(node - splits[COST, best], 0.0) / node)
        more = _merit(objective, column, values[0], splits) - _merit(objective, best, values[1], splits)
        return more > TIE or (more >= -TIE and wider)
    if blind:
        return wider
    less = splits[COST, best] - splits[COST, column]
    return less > TIE or (less >= -TIE and wider)


@inner
def _preferred(objective: KernelObjective, node: float, splits: Any) -> Any:
    """The column whose split is best, or -1."""
    best = np.int64(-1)
    for column in range(splits.shape[1]):
        if splits[SPREAD, column] >= 0 and (best < 0 or _is_better(objective, node, np.int64(column), best, splits)):
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
        last = lists[ENDS, element] if columns.facts[MODE, column] == BINARY else lists[STARTS, element]
        for code in range(lists[STARTS, element], last + 1):
            if held < 0 or tile[held + code] == 1:
                side[code] = 0


@inner
def write_parts(
    columns: Columns,
    objective: KernelObjective,
    column: Int,
    elements: Int,
    base: Int,
    span: Any,
    tile: Any,
    scratch: Scratch,
) -> Any:
    """Fill the lists PARTS and SIZES, and `side` for a set, with the best split of the column that was weighed last:
    its parts, the code below an ordered cut (or -1), and 1 for a set.
    """
    lists = scratch.lists
    mode, cut = columns.facts[MODE, column], np.int64(scratch.splits[CUT, column])
    if mode == MULTIWAY:
        for element in range(elements):
            lists[PARTS, element], lists[SIZES, element] = lists[STARTS, element], lists[OWN, element]
        return elements, np.int64(-1), np.int64(0)
    if mode != ORDERED:
        put_in_order(objective, np.int64(scratch.splits[WAY, column]), elements, base, scratch)
    by_set = np.int64(mode != ORDERED and objective.targets.shape[1] > 0)
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
    objective: KernelObjective,
    k: Int,
    constraints: KernelConstraints | None,
    start: Int,
    stop: Int,
    histogram: Any,
    span: Any,
    tile: Any,
    scratch: Scratch,
) -> Any:
    """A node's split: column (-1: none is legal), number of parts, code below an ordered cut, whether it is by a set;
    PARTS has the parts' first codes, `side` a set.

    Where models must be asked of a column whose rows are absent, it is not chosen: -2 and below stand for that column.
    """
    splits = scratch.splits
    node = 0.0
    width, blind = splits.shape[1], objective.targets.shape[1] == 0
    nothing = (np.int64(-1), np.int64(0), np.int64(-1), np.int64(0))
    for each in range(width):
        tighten(rows, columns, objective, each, start, stop, histogram, span)
        splits[SPREAD, each] = spread_of(rows, columns, objective, each, start, stop, histogram, span, tile, scratch)
        # What models leave of a column may be more even than its best cut: a rule that asks for that holds every cut
        # against them at once.
        at_once = objective.settings[RULE] == COMBINED and columns.facts[MODE, each] != MULTIWAY
        splits[STATE, each], splits[CUT, each] = 1.0 if at_once else 0.0, -1.0
    parts, before, by_set = np.int64(0), np.int64(-1), np.int64(0)
    # With targets every column is weighed before the best is chosen, without any only the one that is preferred.
    turn = width if blind else 0
    written = np.int64(-1)  # the column whose split is in PARTS and `side`
    is_first = True
    while True:
        column, first_round = np.int64(turn), turn < width
        if first_round:
            turn += 1
            if splits[SPREAD, column] < 0:
                continue
        else:
            column = _preferred(objective, node, splits)
            if column < 0:
                return nothing
            if splits[CUT, column] >= 0 and (splits[STATE, column] == HOPED or written == column):
                if splits[STATE, column] != HOPED:
                    if constraints is None or (
                        splits[STATE, column] == 1.0 and columns.facts[MODE, column] != MULTIWAY
                    ):
                        break
                    if constraints.taken[0, column] == ABSENT:
                        return ABSENT - column, np.int64(0), np.int64(-1), np.int64(0)
                    if parts_allowed(rows, columns, constraints, column, start, stop, parts, by_set, scratch):
                        break
                elif constraints is not None and constraints.taken[0, column] == ABSENT:
                    return ABSENT - column, np.int64(0), np.int64(-1), np.int64(0)
                # Not allowed, or not among the candidates: find the best of what is left of this column.
                splits[STATE, column] = np.floor(splits[STATE, column]) + 1.0
        asks = splits[STATE, column] == 1.0 and columns.facts[MODE, column] != MULTIWAY
        if asks and constraints is not None and constraints.taken[0, column] == ABSENT:
            return ABSENT - column, np.int64(0), np.int64(-1), np.int64(0)
        elements, base, node = _weigh(
            rows, columns, objective, k, constraints, column, start, stop, histogram, span, tile, is_first, scratch
        )
        is_first = False
        alone = splits[CUT, column] == 0.0 and columns.facts[MODE, column] == MULTIWAY and span[GAP, column] == 1
        if first_round and alone and constraints is not None and may_gain_joined(objective.targets):
            # Models may leave a cheaper split, that with missing values joined: they are asked before columns compete.
            if constraints.taken[0, column] == ABSENT:
                return ABSENT - column, np.int64(0), np.int64(-1), np.int64(0)
            parts, before, by_set = write_parts(columns, objective, column, elements, base, span, tile, scratch)
            written = np.int64(-1)
            if not parts_allowed(rows, columns, constraints, column, start, stop, parts, by_set, scratch):
                splits[STATE, column], turn = 1.0, turn - 1
                continue
        if splits[CUT, column] >= 0 and (
            not first_round or written < 0 or _is_better(objective, node, column, written, splits)
        ):
            parts, before, by_set = write_parts(columns, objective, column, elements, base, span, tile, scratch)
            written = column
    if not blind and objective.numbers[MIN_GAIN] > 0.0:
        size = np.float64(mass_of(objective.settings, scratch.whole, np.int64(0))) * objective.numbers[PER_MASS]
        if (node - splits[COST, column]) * size < objective.numbers[MIN_GAIN]:
            return nothing
    return column, parts, before, by_set
