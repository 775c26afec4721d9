# SPDX-License-Identifier: Apache-2.0
"""Whether the parts of a split hold what privacy models ask of sensitive columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anonfit.engines.memory.constraints import BEGIN, COLUMN, END, KIND, LEAST, SIZE, UNKNOWN, VALUE, KernelConstraints
from anonfit.engines.memory.constraints import BIT as SENSITIVE_BIT
from anonfit.engines.memory.constraints import MASK as SENSITIVE_MASK
from anonfit.engines.memory.count import read, run_of
from anonfit.engines.memory.layout import BIT, MASK, QUARTER, Columns, Int, Rows
from anonfit.engines.memory.scratch import LEGAL, PARTS, RANK, SPARE, STARTS, Scratch
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
def add(
    sensitive: Any,
    numbers: Any,
    logs: Any,
    side: Int,
    attribute: Int,
    value: Int,
    persons: Int,
    tallies: Any,
    totals: Any,
    near: Any,
) -> None:
    """Add persons with a value of a sensitive column to a side's tally (or take them away)."""
    place = sensitive[VALUE, attribute] + value
    before = tallies[side, place]
    after = before + persons
    tallies[side, place] = after
    totals[side, PERSONS, attribute] += persons
    totals[side, VALUES, attribute] += np.int64(before == 0) - np.int64(after == 0)
    near[side, attribute] += _log(logs, after) - _log(logs, before)
    if sensitive[UNKNOWN, attribute] == 0 or value > 0:
        number = numbers[place]
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
def _recursive_allowed(counts: Any, persons: Int, least: Int, limit: float) -> Any:
    """The most frequent value against those from the l-th most frequent on."""
    rest, most = persons, np.int64(0)
    bound, above = np.int64(-1), np.int64(0)
    # Values are taken off from the most frequent down; equal ones one at a time.
    for turn in range(least - 1):
        if above > 0:
            above -= 1
            rest -= bound
            continue
        best, equal = np.int64(-1), np.int64(0)
        for value in range(counts.shape[0]):
            count = counts[value]
            if bound < 0 or count < bound:
                if count > best:
                    best, equal = count, np.int64(1)
                elif count == best:
                    equal += 1
        if best <= 0:
            return False
        if turn == 0:
            most = best
        bound, above = best, equal - 1
        rest -= best
    if least <= 1:
        for value in range(counts.shape[0]):
            most = max(most, counts[value])
    return np.float64(most) < limit * np.float64(rest)


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
        kind, attribute, limit = models[KIND, model], models[COLUMN, model], constraints.limits[model]
        persons = totals[PERSONS, attribute]
        place, size = sensitive[VALUE, attribute], sensitive[SIZE, attribute]
        counts = scratch.tallies[side, place : place + size]
        whole = np.float64(persons)
        fine = True
        if kind == DISTINCT:
            fine = totals[VALUES, attribute] >= models[LEAST, model]
        elif kind == ENTROPY:
            fine = _entropy_allowed(constraints.logs, counts, whole, scratch.logs[side, attribute], limit)
        elif kind == RECURSIVE:
            fine = _recursive_allowed(counts, persons, models[LEAST, model], limit)
        elif kind == CLOSENESS:
            shares = constraints.shares[place : place + size]
            first, last = models[BEGIN, model], models[END, model]
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
        first, unknown = sensitive[VALUE, attribute], sensitive[UNKNOWN, attribute]
        persons, values, known, total, squares = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        logs = 0.0
        for value in range(sensitive[SIZE, attribute]):
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
        totals[side, PERSONS, attribute], totals[side, VALUES, attribute], totals[side, KNOWN, attribute] = (
            persons,
            values,
            known,
        )
        totals[side, FIRST, attribute], totals[side, SECOND, attribute] = total, squares
        scratch.logs[side, attribute] = logs


@inner
def _rows_of(constraints: KernelConstraints, column: Int, start: Int, stop: Int) -> Any:
    """The rows that models read of a column: those of the node, or what stands for them."""
    if constraints.taken[0, column] >= 0:
        return constraints.taken[0, column], constraints.taken[1, column]
    return np.int64(start), np.int64(stop)


@inner
def _bucket(
    rows: Rows, columns: Columns, column: Int, start: Int, stop: Int, places: Int, by_set: Int, scratch: Scratch
) -> None:
    """Fill the second row of keys with a node's rows (counted from its start) by place; the list SPARE says where each
    place ends.

    A row's place is that of its element in the order (by_set -1), its part by runs (0) or by the set (1).
    """
    words, bit, mask = rows.words, columns.facts[BIT, column], columns.facts[MASK, column]
    lists, keys, side = scratch.lists, scratch.keys, scratch.side
    for place in range(places + 1):
        lists[SPARE, place] = 0
    for row in range(start, stop):
        place = _place(lists, side, places, read(words, bit, mask, row), by_set)
        keys[0, row - start] = np.uint64(place)
        lists[SPARE, place + 1] += 1
    for place in range(1, places + 1):
        lists[SPARE, place] += lists[SPARE, place - 1]
    for index in range(stop - start):
        bucket = np.int64(keys[0, index])
        keys[1, lists[SPARE, bucket]] = np.uint64(index)
        lists[SPARE, bucket] += 1


@inner
def _place(lists: Any, side: Any, places: Int, code: Int, by_set: Int) -> Any:
    if by_set == 1:
        return np.int64(side[code])
    if by_set == 0:
        return run_of(lists[PARTS], places, code)
    return lists[RANK, run_of(lists[STARTS], places, code)]


@inner
def _value(words: Any, sensitive: Any, attribute: Int, row: Int) -> Any:
    """What a row has of a sensitive column."""
    return read(words, sensitive[SENSITIVE_BIT, attribute], sensitive[SENSITIVE_MASK, attribute], row)


@inner
def _first_of_pair(
    words: Any, entity: Int, sensitive: Any, attribute: Int, start: Int, stop: Int, row: Int, keys: Any, sign: Int
) -> Any:
    """Whether no other row of this row's person has its value of a sensitive column in a lower place (sign 1), or in a
    higher one (sign -1); of rows in the same place the first counts.
    """
    if entity < 0:
        return True
    person = read(words, entity, QUARTER, row)
    bit, mask = sensitive[SENSITIVE_BIT, attribute], sensitive[SENSITIVE_MASK, attribute]
    value = read(words, bit, mask, row)
    place = sign * np.int64(keys[0, row - start])
    other = row - 1
    while other >= start and read(words, entity, QUARTER, other) == person:
        if sign * np.int64(keys[0, other - start]) <= place and read(words, bit, mask, other) == value:
            return False
        other -= 1
    other = row + 1
    while other < stop and read(words, entity, QUARTER, other) == person:
        if sign * np.int64(keys[0, other - start]) < place and read(words, bit, mask, other) == value:
            return False
        other += 1
    return True


@inner
def _first_in_place(words: Any, entity: Int, sensitive: Any, attribute: Int, start: Int, row: Int, keys: Any) -> Any:
    """Whether no earlier row of this row's person has its value of a sensitive column in the same place."""
    if entity < 0:
        return True
    person = read(words, entity, QUARTER, row)
    bit, mask = sensitive[SENSITIVE_BIT, attribute], sensitive[SENSITIVE_MASK, attribute]
    value = read(words, bit, mask, row)
    other = row - 1
    while other >= start and read(words, entity, QUARTER, other) == person:
        if keys[0, other - start] == keys[0, row - start] and read(words, bit, mask, other) == value:
            return False
        other -= 1
    return True


@inner
def _persons(words: Any, counts: Int, row: Int) -> Any:
    return np.int64(1) if counts < 0 else read(words, counts, QUARTER, row)


@inner
def _sides_allowed(
    rows: Rows,
    columns: Columns,
    constraints: KernelConstraints,
    column: Int,
    start: Int,
    stop: Int,
    by_set: Int,
    scratch: Scratch,
) -> Any:
    """Whether the models allow both parts of a two-way split, where rows need only be counted."""
    words, bit, mask, counts = rows.words, columns.facts[BIT, column], columns.facts[MASK, column], columns.counts
    sensitive, tallies, sides = constraints.sensitive, scratch.tallies, scratch.side
    second = scratch.lists[PARTS, 1]
    for attribute in range(sensitive.shape[1]):
        where, what = sensitive[SENSITIVE_BIT, attribute], sensitive[SENSITIVE_MASK, attribute]
        first = sensitive[VALUE, attribute]
        for row in range(start, stop):
            code = read(words, bit, mask, row)
            side = np.int64(sides[code]) if by_set == 1 else np.int64(code >= second)
            tallies[side, first + read(words, where, what, row)] += _persons(words, counts, row)
    fine = True
    for part in range(2):
        sum_up(constraints, np.int64(part), scratch)
        fine = fine and allowed(constraints, np.int64(part), scratch)
        clear(np.int64(part), scratch)
    return fine


@inner
def parts_allowed(
    rows: Rows,
    columns: Columns,
    constraints: KernelConstraints,
    column: Int,
    start: Int,
    stop: Int,
    parts: Int,
    by_set: Int,
    scratch: Scratch,
) -> Any:
    """Whether the models allow every part of the chosen split that has rows."""
    start, stop = _rows_of(constraints, column, start, stop)
    if parts == 2 and columns.entity < 0:
        return _sides_allowed(rows, columns, constraints, column, start, stop, by_set, scratch)
    _bucket(rows, columns, column, start, stop, parts, by_set, scratch)
    words, counts, entity, sensitive = rows.words, columns.counts, columns.entity, constraints.sensitive
    keys, tallies, lists = scratch.keys, scratch.tallies, scratch.lists
    begin = np.int64(0)
    for part in range(parts):
        end = lists[SPARE, part]
        if end > begin:
            for index in range(begin, end):
                row = start + np.int64(keys[1, index])
                for attribute in range(sensitive.shape[1]):
                    if _first_in_place(words, entity, sensitive, np.int64(attribute), start, row, keys):
                        value = _value(words, sensitive, np.int64(attribute), row)
                        tallies[0, sensitive[VALUE, attribute] + value] += _persons(words, counts, row)
            sum_up(constraints, np.int64(0), scratch)
            fine = allowed(constraints, np.int64(0), scratch)
            clear(np.int64(0), scratch)
            if not fine:
                return False
        begin = end
    return True


@inner
def sweep(
    rows: Rows,
    columns: Columns,
    constraints: KernelConstraints,
    column: Int,
    start: Int,
    stop: Int,
    elements: Int,
    scratch: Scratch,
) -> None:
    """Make cuts of an order illegal (the list LEGAL) that leave a side which the models do not allow."""
    start, stop = _rows_of(constraints, column, start, stop)
    lists, keys, tallies, totals, near = scratch.lists, scratch.keys, scratch.tallies, scratch.totals, scratch.logs
    words, counts, entity, sensitive = rows.words, columns.counts, columns.entity, constraints.sensitive
    numbers, logs = constraints.numbers, constraints.logs
    left, right = np.int64(0), np.int64(1)
    _bucket(rows, columns, column, start, stop, elements, np.int64(-1), scratch)
    for row in range(start, stop):
        persons = _persons(words, counts, row)
        for attribute in range(sensitive.shape[1]):
            if _first_of_pair(words, entity, sensitive, np.int64(attribute), start, stop, row, keys, np.int64(-1)):
                value = _value(words, sensitive, np.int64(attribute), row)
                tallies[1, sensitive[VALUE, attribute] + value] += persons
    sum_up(constraints, right, scratch)
    begin = np.int64(0)
    for place in range(elements - 1):
        end = lists[SPARE, place]
        for index in range(begin, end):
            moved = start + np.int64(keys[1, index])
            persons = _persons(words, counts, moved)
            for attribute in range(sensitive.shape[1]):
                value = _value(words, sensitive, np.int64(attribute), moved)
                if _first_of_pair(words, entity, sensitive, np.int64(attribute), start, stop, moved, keys, np.int64(1)):
                    add(sensitive, numbers, logs, left, np.int64(attribute), value, persons, tallies, totals, near)
                if _first_of_pair(
                    words, entity, sensitive, np.int64(attribute), start, stop, moved, keys, np.int64(-1)
                ):
                    add(sensitive, numbers, logs, right, np.int64(attribute), value, -persons, tallies, totals, near)
        begin = end
        if lists[LEGAL, place] == 1:
            fine = allowed(constraints, left, scratch) and allowed(constraints, right, scratch)
            lists[LEGAL, place] = np.int64(fine)
    clear(left, scratch)
    clear(right, scratch)
