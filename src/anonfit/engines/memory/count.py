# SPDX-License-Identifier: Apache-2.0
"""Histograms of a node's rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.criteria.targets import Impurity
from anonfit.engines.memory import forms, layout
from anonfit.engines.memory.forms import KernelObjective, NodeView
from anonfit.engines.memory.layout import Columns, Int, Rows
from anonfit.runtime.compiling import inner, kernel

SURPRISE = int(Impurity.SURPRISE)
HALF = 0xFFFF
"""The bits of a share."""

at: Any = np.uint64
"""Marks an index of a hot loop: of an unsigned one the compiler knows that it does not count from the end."""


@inner
def read(words: Any, bit: Int, mask: Int, row: Int) -> Any:
    """The field of a row that begins at a bit."""
    return np.int64(words[at(row), at(bit >> 6)] >> np.uint64(bit & 63)) & np.int64(mask)


@inner
def number_of(words: Any, bit: Int, row: Int) -> Any:
    """The number of a row, which may be negative, that begins at a bit."""
    value = read(words, bit, layout.QUARTER, row)
    return value - (1 << 32) if value >= 1 << 31 else value


@inner
def persons_in(words: Any, counts: Int, row: Int) -> Any:
    """How many persons a row stands for."""
    return np.int64(1) if counts < 0 else read(words, counts, layout.QUARTER, row)


@inner
def persons_at(persons: Any, row: Int) -> Any:
    """How many persons a row stands for, from a list; of an empty one, one."""
    return np.int64(persons[at(row)]) if persons.shape[0] > 0 else np.int64(1)


@inner
def run_of(starts: Any, runs: Int, code: Int) -> Any:
    """The run that holds a code: the last one that starts at or below it."""
    low, high = np.int64(0), np.int64(runs - 1)
    while low < high:
        middle = (low + high + 1) >> 1
        if starts[at(middle)] <= code:
            low = middle
        else:
            high = middle - 1
    return low


@inner
def persons_of(lean: Int, sums: Any, first: Int) -> Any:
    """The persons among sums that begin at an entry: a sum of their own (lean 0), or what so many classes add up to."""
    if lean == 0:
        return sums[at(first)]
    persons = np.int64(0)
    for label in range(lean):
        persons += sums[at(first + label)]
    return persons


@inner
def _add_row(
    words: Any, settings: Any, targets: Any, counts: Int, row: Int, sign: Int, places: Any, width: Int, sums: Any
) -> None:
    """Add what a row adds (times the sign) to the sums that begin at each of the places."""
    mass = sign * persons_in(words, counts, row)
    if settings[forms.LEAN] == 0:
        for index in range(width):
            sums[at(places[index])] += mass
        if settings[forms.MASS] >= 0:
            mass = sign * read(words, settings[forms.MASS], layout.QUARTER, row)
            for index in range(width):
                sums[at(places[index] + 1)] += mass
    for target in range(targets.shape[1]):
        kind, slot, bit = targets[forms.KIND, target], targets[forms.SLOT, target], targets[forms.TARGET_BIT, target]
        if kind == forms.CLASS:
            slot += read(words, bit, targets[forms.TARGET_MASK, target], row)
            for index in range(width):
                sums[at(places[index] + slot)] += mass
        elif kind == forms.NUMBER:
            value = number_of(words, bit, row)
            first, second = mass * value, mass * value * value
            for index in range(width):
                sums[at(places[index] + slot)] += first
                sums[at(places[index] + slot + 1)] += second
            if targets[forms.MEASURED, target] == SURPRISE:
                own = mass * number_of(words, bit + 32, row)
                for index in range(width):
                    sums[at(places[index] + slot + 2)] += own
        else:
            for label in range(targets[forms.CLASSES, target]):
                share = mass * read(words, bit + 16 * label, HALF, row)
                for index in range(width):
                    sums[at(places[index] + slot + label)] += share


@kernel
def count_rows(
    rows: Rows, columns: Columns, objective: KernelObjective, start: Int, stop: Int, sign: Int, histogram: Any
) -> None:
    """Add (sign 1) or take away (sign -1) the sums of rows start..stop in the histogram of the narrow columns."""
    bins, codes, words, first, counts = columns.narrow, rows.bytes, rows.words, columns.byte, columns.counts
    settings, targets = objective.settings, objective.targets
    width, slots = bins.shape[0], settings[forms.SLOTS]
    if counts < 0 and slots == 1:
        for row in range(start, stop):
            for index in range(width):
                histogram[at(bins[index] + codes[at(row), at(first + index)])] += sign
        return
    if counts < 0 and settings[forms.LEAN] > 0 and targets.shape[1] == 1 and targets[forms.TARGET_MASK, 0] == 255:
        place = targets[forms.TARGET_BIT, 0] >> 3
        for row in range(start, stop):
            slot = np.int64(codes[at(row), at(place)])
            for index in range(width):
                histogram[at((bins[index] + codes[at(row), at(first + index)]) * slots + slot)] += sign
        return
    if counts < 0 and slots == 3 and targets.shape[1] == 1 and targets[forms.KIND, 0] == forms.NUMBER:
        for row in range(start, stop):
            value = number_of(words, targets[forms.TARGET_BIT, 0], row)
            for index in range(width):
                place = (bins[index] + codes[at(row), at(first + index)]) * 3
                histogram[at(place)] += sign
                histogram[at(place + 1)] += sign * value
                histogram[at(place + 2)] += sign * value * value
        return
    places = np.empty(width, np.int64)
    for row in range(start, stop):
        for index in range(width):
            places[index] = (bins[index] + codes[at(row), at(first + index)]) * slots
        _add_row(words, settings, targets, counts, row, sign, places, width, histogram)


@inner
def _sort_keys(keys: Any, count: Int, size: Int) -> Any:
    """Sort keys by their upper half (codes below size), least digit first; the row of `keys` that holds them."""
    source = np.int64(0)
    place = np.zeros(257, np.int64)
    shift = np.int64(0)
    while (size - 1) >> shift > 0:
        for digit in range(257):
            place[digit] = 0
        for index in range(count):
            place[at((np.int64(keys[source, at(index)] >> np.uint64(32)) >> shift & 255) + 1)] += 1
        for digit in range(256):
            place[digit + 1] += place[digit]
        for index in range(count):
            here = at(np.int64(keys[source, at(index)] >> np.uint64(32)) >> shift & 255)
            keys[1 - source, at(place[here])] = keys[source, at(index)]
            place[here] += 1
        source = 1 - source
        shift += 8
    return source


@inner
def _present_dense(node: NodeView, histogram: Any, first: Int, low: Int, high: Int, codes: Any, own: Any) -> Any:
    """The codes low..high that somebody has."""
    settings, sums = node.objective.settings, node.scratch.sums
    slots, lean = settings[forms.SLOTS], settings[forms.LEAN]
    count = np.int64(0)
    for code in range(low, high + 1):
        place = (first + code) * slots
        persons = persons_of(lean, histogram, place)
        if persons != 0:
            codes[at(count)], own[at(count)] = code, persons
            for slot in range(slots):
                sums[at(count * slots + slot)] = histogram[at(place + slot)]
            count += 1
    return count


@inner
def _present_sorted(node: NodeView, keys: Any, plain: bool, codes: Any, own: Any) -> Any:
    """The distinct codes of sorted keys: each is a code, and the row that has it or (if `plain`) its class."""
    words, sums, places = node.rows.words, node.scratch.sums, node.scratch.places
    settings, targets, counts = node.objective.settings, node.objective.targets, node.columns.counts
    slots, start, count = settings[forms.SLOTS], node.start, node.stop - node.start
    used = np.int64(0)
    index = np.int64(0)
    while index < count:
        code = keys[at(index)] >> np.uint64(32)
        place = used * slots
        places[0] = place
        for slot in range(slots):
            sums[at(place + slot)] = 0
        while index < count and keys[at(index)] >> np.uint64(32) == code:
            what = np.int64(keys[at(index)] & np.uint64(layout.QUARTER))
            if plain:
                sums[at(place + what)] += 1
            else:
                _add_row(words, settings, targets, counts, start + what, np.int64(1), places, np.int64(1), sums)
            index += 1
        codes[at(used)], own[at(used)] = np.int64(code), persons_of(settings[forms.LEAN], sums, place)
        used += 1
    return used


@inner
def present(node: NodeView, column: Int, low: Int, high: Int, codes: Any, own: Any) -> Any:
    """Fill `codes`, `own` and the sums of codes with the codes between low and high that the node's rows have, and the
    persons of each; how many.
    """
    facts, settings, targets = node.columns.facts, node.objective.settings, node.objective.targets
    slots, counts, start, stop = settings[forms.SLOTS], node.columns.counts, node.start, node.stop
    if facts[layout.BIN, column] >= 0:
        return _present_dense(node, node.histogram, facts[layout.BIN, column], low, high, codes, own)
    words, bit, mask = node.rows.words, facts[layout.BIT, column], facts[layout.MASK, column]
    # Whether all that a row adds is one person to one class.
    plain = counts < 0 and settings[forms.LEAN] > 0 and targets.shape[1] == 1
    dense, keys, places, count = node.scratch.dense, node.scratch.keys, node.scratch.places, stop - start
    if count * 4 > (high - low) * slots or count > keys.shape[1]:
        for row in range(start, stop):
            place = read(words, bit, mask, row) * slots
            if plain:
                label = read(words, targets[forms.TARGET_BIT, 0], targets[forms.TARGET_MASK, 0], row)
                dense[at(place + label)] += 1
            else:
                places[0] = place
                _add_row(words, settings, targets, counts, row, np.int64(1), places, np.int64(1), dense)
        used = _present_dense(node, dense, np.int64(0), low, high, codes, own)
        for place in range(low * slots, (high + 1) * slots):
            dense[at(place)] = 0
        return used
    for row in range(start, stop):
        what = row - start
        if plain:
            what = read(words, targets[forms.TARGET_BIT, 0], targets[forms.TARGET_MASK, 0], row)
        keys[0, at(row - start)] = np.uint64(read(words, bit, mask, row) << 32 | what)
    source = _sort_keys(keys, count, facts[layout.SIZE, column])
    return _present_sorted(node, keys[source], plain, codes, own)


@inner
def persons_beside(node: NodeView, column: Int, elements: Int) -> None:
    """Fill the lists LEFT and RIGHT: the persons with a row in elements up to each place of the order, and above it.

    Persons are not additive where a person has several rows: one may stand on both sides. The rows of a person are
    together, so its lowest and highest place are found in one pass, and counting those is additive.
    """
    words, columns, lists = node.rows.words, node.columns, node.scratch.lists
    bit, mask = columns.facts[layout.BIT, column], columns.facts[layout.MASK, column]
    for place in range(elements):
        lists[forms.LEFT, place] = 0
        lists[forms.RIGHT, place] = 0
    row = np.int64(node.start)
    while row < node.stop:
        person = read(words, columns.entity, layout.QUARTER, row)
        lowest, highest = np.int64(elements), np.int64(-1)
        while row < node.stop and read(words, columns.entity, layout.QUARTER, row) == person:
            place = lists[forms.RANK, run_of(lists[forms.STARTS], elements, read(words, bit, mask, row))]
            lowest = min(lowest, place)
            highest = max(highest, place)
            row += 1
        lists[forms.LEFT, lowest] += 1
        lists[forms.RIGHT, highest] += 1
    for place in range(1, elements):
        lists[forms.LEFT, place] += lists[forms.LEFT, place - 1]
    above = np.int64(0)
    for place in range(elements - 1, -1, -1):
        here = lists[forms.RIGHT, place]
        lists[forms.RIGHT, place] = above
        above += here


@inner
def persons_within(node: NodeView, column: Int, elements: Int) -> None:
    """Fill the list LEFT with the persons of each element alone (RIGHT remembers the last person seen there)."""
    words, columns, lists = node.rows.words, node.columns, node.scratch.lists
    for element in range(elements):
        lists[forms.LEFT, element] = lists[forms.OWN, element] if columns.entity < 0 else 0
        lists[forms.RIGHT, element] = -1
    bit, mask = columns.facts[layout.BIT, column], columns.facts[layout.MASK, column]
    for row in range(node.start, node.stop if columns.entity >= 0 else node.start):
        person = read(words, columns.entity, layout.QUARTER, row)
        element = run_of(lists[forms.STARTS], elements, read(words, bit, mask, row))
        if lists[forms.RIGHT, element] != person:
            lists[forms.RIGHT, element] = person
            lists[forms.LEFT, element] += 1
