# SPDX-License-Identifier: Apache-2.0
"""Kernels that weigh groups by their targets: the cost of a group with given sums, in the order of criteria.targets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anonfit.compiling import inner
from anonfit.engines.memory.counting import persons_of
from anonfit.engines.memory.guide import (
    ALL_CUTS,
    CLASS,
    CLASSES,
    FACTOR,
    ITSELF,
    KIND,
    MASS,
    NUMBER,
    SLOT,
    UNIT,
    Guide,
)
from anonfit.engines.memory.layout import Int
from anonfit.engines.memory.scratch import BELOW, WHOLE

NOBODY = -2
"""No column: no target is left out."""

__all__ = ["NOBODY", "cost_between", "cost_of", "is_boundary", "mass_of", "mean_of", "own_cost"]


@inner
def mass_of(guide: Guide, sums: Any) -> Any:
    """The mass of a group."""
    return sums[1] if guide.settings[MASS] >= 0 else persons_of(guide, sums, np.int64(0))


@inner
def _x_log_x(guide: Guide, count: Int, unit: float) -> Any:
    if unit == 1.0 and count < guide.logs.shape[0]:
        return guide.logs[count]
    x = np.float64(count) * unit
    return x * math.log(x) if x > 0.0 else 0.0


@inner
def _impurity(guide: Guide, target: Int, sums: Any, less: Any, minus: Int) -> Any:
    """The impurity of a target in a group with `sums` (minus 0) or with sums - less (minus 1)."""
    first, unit = guide.targets[SLOT, target], guide.factors[UNIT, target]
    if guide.targets[KIND, target] == NUMBER:
        number = np.float64(mass_of(guide, sums) - minus * mass_of(guide, less))
        if number == 0.0:
            return 0.0
        total = np.float64(sums[first] - minus * less[first])
        squares = np.float64(sums[first + 1] - minus * less[first + 1])
        return max(squares - total * total / number, 0.0) * unit
    classes = guide.targets[CLASSES, target]
    count = np.int64(0)
    for one in range(first, first + classes):
        count += sums[one] - minus * less[one]
    found = _x_log_x(guide, count, unit)
    for one in range(first, first + classes):
        found -= _x_log_x(guide, sums[one] - minus * less[one], unit)
    return found


@inner
def _cost(guide: Guide, sums: Any, less: Any, minus: Int, own: Int) -> Any:
    found = 0.0
    for target in range(guide.targets.shape[1]):
        if guide.targets[ITSELF, target] != own:
            found += guide.factors[FACTOR, target] * _impurity(guide, np.int64(target), sums, less, minus)
    return found


@inner
def cost_of(guide: Guide, sums: Any, own: Int) -> Any:
    """The cost of a group; what the column `own` itself is as a target is left out (NOBODY: nothing is)."""
    return _cost(guide, sums, sums, np.int64(0), own)


@inner
def own_cost(guide: Guide, sums: Any, own: Int) -> Any:
    """The cost of a group by what a column itself is as a target."""
    found = 0.0
    for target in range(guide.targets.shape[1]):
        if guide.targets[ITSELF, target] == own:
            found += guide.factors[FACTOR, target] * _impurity(guide, np.int64(target), sums, sums, np.int64(0))
    return found


@inner
def cost_between(guide: Guide, vectors: Any, own: Int) -> Any:
    """The cost of a group with the sums BELOW and of one with the rest of WHOLE, for a split of the column `own`."""
    below, whole = vectors[BELOW], vectors[WHOLE]
    targets = guide.targets
    if targets.shape[1] == 1 and targets[CLASSES, 0] == 2 and targets[KIND, 0] == CLASS and targets[ITSELF, 0] != own:
        # What is nearly always asked: one target of two classes.
        unit, factor, slot = guide.factors[UNIT, 0], guide.factors[FACTOR, 0], guide.targets[SLOT, 0]
        a, b = below[slot], below[slot + 1]
        c, d = whole[slot] - a, whole[slot + 1] - b
        left = _x_log_x(guide, a + b, unit) - _x_log_x(guide, a, unit) - _x_log_x(guide, b, unit)
        right = _x_log_x(guide, c + d, unit) - _x_log_x(guide, c, unit) - _x_log_x(guide, d, unit)
        return factor * left + factor * right
    return _cost(guide, below, below, np.int64(0), own) + _cost(guide, whole, below, np.int64(1), own)


@inner
def is_boundary(guide: Guide, one: Any, other: Any, own: Int) -> Any:
    """Whether a cut between two groups may be the best one: not if both are pure and of one class for every target."""
    for target in range(guide.targets.shape[1]):
        if guide.targets[ITSELF, target] == own:
            continue
        if guide.settings[ALL_CUTS] == 1 or guide.targets[KIND, target] != CLASS:
            return True
        first = guide.targets[SLOT, target]
        filled = np.int64(0)
        for slot in range(first, first + guide.targets[CLASSES, target]):
            filled += np.int64(one[slot] != 0 or other[slot] != 0)
        if filled > 1:
            return True
    return False


@inner
def mean_of(guide: Guide, target: Int, chosen: Int, sums: Any) -> Any:
    """The mean of a target in a group: of its numbers, or of belonging to the chosen class."""
    first = guide.targets[SLOT, target]
    if guide.targets[KIND, target] == NUMBER:
        return np.float64(sums[first]) / np.float64(mass_of(guide, sums))
    count = np.int64(0)
    for one in range(first, first + guide.targets[CLASSES, target]):
        count += sums[one]
    return np.float64(sums[first + chosen]) / np.float64(count)
