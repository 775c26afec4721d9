# SPDX-License-Identifier: Apache-2.0
"""Impurities of groups from their sums, and what a split costs by them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anonfit.criteria.targets import Impurity
from anonfit.engines.memory import forms
from anonfit.engines.memory.count import at, persons_of
from anonfit.engines.memory.layout import Int
from anonfit.runtime.compiling import inner

# All there are: one more needs a branch in `_impurity`.
ENTROPY, GINI, SURPRISE = (int(impurity) for impurity in Impurity)
NOBODY = -2
"""No column: no target is left out."""


@inner
def mass_of(settings: Any, sums: Any, first: Int) -> Any:
    """The mass of a group whose sums begin at an entry."""
    return sums[first + 1] if settings[forms.MASS] >= 0 else persons_of(settings[forms.LEAN], sums, first)


@inner
def x_log_x(logs: Any, count: Int, unit: float) -> Any:
    """x ln x of so many units."""
    if unit == 1.0 and count < logs.shape[0]:
        return logs[at(count)]
    x = np.float64(count) * unit
    return x * math.log(x) if x > 0.0 else 0.0


@inner
def is_of_two(targets: Any, own: Int) -> Any:
    """Whether splits of a column are weighed by the entropy of one target of two classes, which it is not itself: what
    is nearly always asked.
    """
    has_two = targets.shape[1] == 1 and targets[forms.CLASSES, 0] == 2 and targets[forms.KIND, 0] == forms.CLASS
    return has_two and targets[forms.MEASURED, 0] == ENTROPY and targets[forms.ITSELF, 0] != own


@inner
def cost_of_two(factors: Any, logs: Any, a: Int, b: Int, c: Int, d: Int, size: float) -> Any:
    """The cost per person of a cut with so much of both classes on each side, where `is_of_two` holds."""
    unit, factor = factors[forms.UNIT, 0], factors[forms.FACTOR, 0]
    left = x_log_x(logs, a + b, unit) - x_log_x(logs, a, unit) - x_log_x(logs, b, unit)
    right = x_log_x(logs, c + d, unit) - x_log_x(logs, c, unit) - x_log_x(logs, d, unit)
    return (factor * left + factor * right) / size


@inner
def _surprise(classes: Int, unit: float, sums: Any, begin: Int) -> Any:
    """What own classes do not tell of the expected ones, whose sums begin at an entry."""
    even = 1.0 / np.float64(classes)
    expected, own = np.int64(0), np.int64(0)
    for place in range(begin, begin + classes):
        expected += sums[at(place)]
        own += sums[at(place + classes)]
    total = np.float64(expected) * unit * math.log(np.float64(own) * unit + 1.0)
    for place in range(begin, begin + classes):
        total -= np.float64(sums[at(place)]) * unit * math.log(np.float64(sums[at(place + classes)]) * unit + even)
    return total


@inner
def classes_of(targets: Any, target: Int) -> Any:
    """How many classes a target has, whatever else is summed of it."""
    return targets[forms.CLASSES, target] // (2 if targets[forms.MEASURED, target] == SURPRISE else 1)


@inner
def _impurity(targets: Any, unit: float, logs: Any, target: Int, mass: Int, sums: Any, first: Int) -> Any:
    """The impurity of a target in a group of so much mass whose sums begin at an entry."""
    begin = first + targets[forms.SLOT, target]
    kind, measured = targets[forms.KIND, target], targets[forms.MEASURED, target]
    if kind == forms.NUMBER:
        number = np.float64(mass)
        if number == 0.0:
            return 0.0
        total = np.float64(sums[at(begin)])
        deviations = max(np.float64(sums[at(begin + 1)]) - total * total / number, 0.0)
        if measured == SURPRISE:
            missed = np.float64(sums[at(begin)] - sums[at(begin + 2)])
            deviations += missed * missed / number
        return deviations * unit
    if measured == SURPRISE:
        return _surprise(classes_of(targets, target), unit, sums, begin)
    end = begin + targets[forms.CLASSES, target]
    count = mass
    if kind == forms.SHARE:
        count = np.int64(0)
        for place in range(begin, end):
            count += sums[at(place)]
    if measured == GINI:
        number, squares = np.float64(count), 0.0
        for place in range(begin, end):
            squares += np.float64(sums[at(place)]) * np.float64(sums[at(place)])
        return max(number - squares / number, 0.0) * unit if count > 0 else 0.0
    entropy = x_log_x(logs, count, unit)
    for place in range(begin, end):
        entropy -= x_log_x(logs, sums[at(place)], unit)
    return entropy


@inner
def cost_of(
    settings: Any, targets: Any, factors: Any, logs: Any, sums: Any, first: Int, own: Int, of_own: bool = False
) -> Any:
    """The cost of a group whose sums begin at an entry; what the column `own` itself is as a target is left out
    (NOBODY: nothing is), or (`of_own`) all else is.
    """
    mass = mass_of(settings, sums, first)
    cost = 0.0
    for target in range(targets.shape[1]):
        if (targets[forms.ITSELF, target] == own) == of_own:
            impurity = _impurity(targets, factors[forms.UNIT, target], logs, np.int64(target), mass, sums, first)
            cost += factors[forms.FACTOR, target] * impurity
    return cost


@inner
def may_gain_joined(targets: Any) -> Any:
    """Whether two groups may cost less together than apart: not where only a group's own mixture counts."""
    return (targets[forms.MEASURED] == SURPRISE).any()


@inner
def is_boundary(settings: Any, targets: Any, sums: Any, here: Int, other: Int, own: Int) -> Any:
    """Whether a cut between two groups, whose sums begin at two entries, may be the best one: not if both are pure and
    of one class for every target.
    """
    for target in range(targets.shape[1]):
        if targets[forms.ITSELF, target] == own:
            continue
        by_classes = targets[forms.KIND, target] == forms.CLASS and targets[forms.MEASURED, target] == ENTROPY
        if settings[forms.ALL_CUTS] == 1 or not by_classes:
            return True
        first = targets[forms.SLOT, target]
        filled = np.int64(0)
        for slot in range(first, first + targets[forms.CLASSES, target]):
            filled += np.int64(sums[at(here + slot)] != 0 or sums[at(other + slot)] != 0)
        if filled > 1:
            return True
    return False


@inner
def mean_of(settings: Any, targets: Any, target: Int, chosen: Int, sums: Any, first: Int) -> Any:
    """The mean of a target in a group: of its numbers, or of belonging to the chosen class."""
    slot = first + targets[forms.SLOT, target]
    if targets[forms.KIND, target] == forms.NUMBER:
        return np.float64(sums[at(slot)]) / np.float64(mass_of(settings, sums, first))
    count = np.int64(0)
    for label in range(targets[forms.CLASSES, target]):
        count += sums[at(slot + label)]
    return np.float64(sums[at(slot + chosen)]) / np.float64(count)
