# SPDX-License-Identifier: Apache-2.0
"""Whether privacy models allow a group, from the tally of its values of sensitive columns: a branch for each model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anonfit.engines.memory import forms
from anonfit.engines.memory.forms import KernelConstraints, Scratch
from anonfit.engines.memory.layout import Int
from anonfit.privacy.diversity import DistinctL, EntropyL, RecursiveCL, SquaredError, Variance
from anonfit.privacy.likeness import AlphaK, BetaLikeness, DeltaDisclosure, TCloseness
from anonfit.runtime.compiling import inner

# Rows of Scratch.totals: persons, values that occur, sum and sum of squares of the known numbers' multiples, and how
# many are known.
PERSONS, VALUES, FIRST, SECOND, KNOWN = 0, 1, 2, 3, 4

# The numbers of the models' kernels.
DISTINCT, ENTROPY, RECURSIVE, CLOSENESS = DistinctL.kernel, EntropyL.kernel, RecursiveCL.kernel, TCloseness.kernel
ALPHA, BETA, DELTA = AlphaK.kernel, BetaLikeness.kernel, DeltaDisclosure.kernel
ERROR, VARIANCE = SquaredError.kernel, Variance.kernel

TIE = 1e-9
NEARLY = 1e-7
"""A running sum of logarithms may be this far off; nearer to a limit it is summed anew."""


@inner
def _log(logs: Any, count: Int) -> Any:
    if count < logs.shape[0]:
        return logs[count]
    x = np.float64(count)
    return x * math.log(x)


@inner
def add(constraints: KernelConstraints, side: Int, attribute: Int, value: Int, persons: Int, scratch: Scratch) -> None:
    """Add persons with a value of a sensitive column to a side's tally (or take them away)."""
    sensitive, tallies, totals, logs = constraints.sensitive, scratch.tallies, scratch.totals, constraints.logs
    place = sensitive[forms.VALUE, attribute] + value
    before = tallies[side, place]
    after = before + persons
    tallies[side, place] = after
    totals[side, PERSONS, attribute] += persons
    totals[side, VALUES, attribute] += np.int64(before == 0) - np.int64(after == 0)
    scratch.logs[side, attribute] += _log(logs, after) - _log(logs, before)
    if sensitive[forms.UNKNOWN, attribute] == 0 or value > 0:
        number = constraints.numbers[place]
        totals[side, FIRST, attribute] += persons * number
        totals[side, SECOND, attribute] += persons * number * number
        totals[side, KNOWN, attribute] += persons


@inner
def clear(side: Int, scratch: Scratch) -> None:
    """Forget a side's tallies."""
    tallies, totals, near = scratch.tallies, scratch.totals, scratch.logs
    for place in range(tallies.shape[1]):
        tallies[side, place] = 0
    for attribute in range(near.shape[1]):
        for fact in range(totals.shape[1]):
            totals[side, fact, attribute] = 0
        near[side, attribute] = 0.0


@inner
def _entropy_allowed(logs: Any, counts: Any, persons: float, near: float, limit: float) -> Any:
    entropy = math.log(persons) - near / persons
    if abs(entropy - limit) > NEARLY:
        return entropy >= limit
    exact = 0.0
    for value in range(counts.shape[0]):
        exact += _log(logs, counts[value])
    return math.log(persons) - exact / persons >= limit


@inner
def _recursive_allowed(counts: Any, least: Int, limit: float) -> Any:
    """The most frequent value against those from the l-th most frequent on."""
    ascending = np.sort(counts)
    rest = np.int64(0)
    for place in range(counts.shape[0] - least + 1):
        rest += ascending[place]
    return np.float64(ascending[counts.shape[0] - 1]) < limit * np.float64(rest)


@inner
def _close(counts: Any, shares: Any, persons: float, runs: Any, charges: Any, first: Int, last: Int) -> Any:
    """The distance of a distribution from the whole table's, run by run."""
    distance = 0.0
    for run in range(first, last):
        excess = 0.0
        for value in range(runs[0, run], runs[1, run] + 1):
            excess += np.float64(counts[value]) / persons - shares[value]
        distance += abs(excess) * charges[run]
    return distance


@inner
def _close_along(counts: Any, shares: Any, persons: float, charge: float) -> Any:
    """The same where the runs are all that begin with the first value: each is the last and one value more."""
    distance, excess = 0.0, 0.0
    for value in range(counts.shape[0] - 1):
        excess += np.float64(counts[value]) / persons - shares[value]
        distance += abs(excess) * charge
    return distance


@inner
def _squares(totals: Any, attribute: Int) -> Any:
    """Squared deviations from the mean, in squared multiples; see privacy.diversity.squared_deviations."""
    known, first, second = totals[KNOWN, attribute], totals[FIRST, attribute], totals[SECOND, attribute]
    if known == 0:
        return 0.0
    middle = np.int64(np.rint(np.float64(first) / np.float64(known)))
    moved = np.float64(first - known * middle)
    deviations = np.float64(second - middle * (2 * first - known * middle)) - moved * moved / np.float64(known)
    return max(deviations, 0.0)


@inner
def allowed(constraints: KernelConstraints, side: Int, scratch: Scratch) -> Any:
    """Whether every model allows a side's tally."""
    models, sensitive, totals = constraints.models, constraints.sensitive, scratch.totals[side]
    for model in range(models.shape[1]):
        kind, attribute, limit = models[forms.KERNEL, model], models[forms.ATTRIBUTE, model], constraints.limits[model]
        persons = totals[PERSONS, attribute]
        place, size = sensitive[forms.VALUE, attribute], sensitive[forms.SENSITIVE_SIZE, attribute]
        counts = scratch.tallies[side, place : place + size]
        whole = np.float64(persons)
        fine = True
        if kind == DISTINCT:
            fine = totals[VALUES, attribute] >= models[forms.LEAST, model]
        elif kind == ENTROPY:
            fine = _entropy_allowed(constraints.logs, counts, whole, scratch.logs[side, attribute], limit)
        elif kind == RECURSIVE:
            fine = _recursive_allowed(counts, models[forms.LEAST, model], limit)
        elif kind == CLOSENESS:
            shares = constraints.shares[place : place + size]
            first, last = models[forms.BEGIN, model], models[forms.END, model]
            along = last - first == size - 1 and size > 2 and constraints.runs[1, last - 1] == size - 2
            if along and constraints.runs[0, last - 1] == 0:
                fine = _close_along(counts, shares, whole, constraints.charges[first]) <= limit
            else:
                fine = _close(counts, shares, whole, constraints.runs, constraints.charges, first, last) <= limit
        elif kind == ALPHA:
            for value in range(size):
                fine = fine and np.float64(counts[value]) / whole <= limit
        elif kind == BETA:
            for value in range(size):
                share = constraints.shares[place + value]
                growth = (np.float64(counts[value]) / whole - share) / share
                fine = fine and growth <= constraints.bounds[model, place + value]
        elif kind == DELTA:
            for value in range(size):
                ratio = np.float64(counts[value]) / whole / constraints.shares[place + value]
                fine = fine and counts[value] > 0 and abs(math.log(ratio)) < limit
        elif kind == ERROR:
            least = limit + math.sqrt(np.float64(totals[KNOWN, attribute])) * constraints.units[1, attribute]
            fine = _squares(totals, attribute) * constraints.units[0, attribute] >= least * least * (1 - TIE)
        elif kind == VARIANCE:
            known = np.float64(max(totals[KNOWN, attribute], np.int64(1)))
            fine = _squares(totals, attribute) * constraints.units[0, attribute] / known >= limit
        else:
            raise ValueError("a privacy model has no branch in its kernel")
        if not fine:
            return False
    return True


@inner
def sum_up(constraints: KernelConstraints, side: Int, scratch: Scratch) -> None:
    """Fill a side's totals from its tallies."""
    tallies, totals = scratch.tallies, scratch.totals
    sensitive, numbers, table = constraints.sensitive, constraints.numbers, constraints.logs
    for attribute in range(sensitive.shape[1]):
        first, unknown = sensitive[forms.VALUE, attribute], sensitive[forms.UNKNOWN, attribute]
        persons, values, known, total, squares = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        logs = 0.0
        for value in range(sensitive[forms.SENSITIVE_SIZE, attribute]):
            count = tallies[side, first + value]
            if count == 0:
                continue
            persons += count
            values += 1
            logs += _log(table, count)
            if value >= unknown:
                number = numbers[first + value]
                known += count
                total += count * number
                squares += count * number * number
        totals[side, PERSONS, attribute], totals[side, VALUES, attribute] = persons, values
        totals[side, FIRST, attribute], totals[side, SECOND, attribute] = total, squares
        totals[side, KNOWN, attribute] = known
        scratch.logs[side, attribute] = logs
