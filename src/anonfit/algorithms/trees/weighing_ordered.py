# SPDX-License-Identifier: Apache-2.0
"""Kernels that weigh the cuts of an ordered column: the one that gains most of those that breach no span."""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.algorithms.trees.forms import BEFORE, GAIN, HIGH, INFO, LOW, PLACE, Reach, Rows, Rule, Scratch
from anonfit.algorithms.trees.kernels import at, n_log_n
from anonfit.algorithms.trees.spread import compact, holds, place_of, reached_values, spread
from anonfit.runtime.compiling import inner

__all__ = ["weigh_ordered"]

MOST = 25
"""C4.5 asks for a tenth of the persons of a class on each side of a cut, but for no more than so many."""


@inner
def weigh_ordered(rows: Rows, reach: Reach, is_public: Any, box: Any, rule: Rule, scratch: Scratch, found: Any) -> None:
    """Find the best cut that breaches nothing, and what it gains."""
    low, size = np.int64(box[LOW]), np.int64(box[HIGH]) - np.int64(box[LOW])
    classes, bad = rule.classes, scratch.bad
    if not is_public or reach.is_shared:
        count = compact(rows, low, size, classes, scratch.values, scratch.table, scratch)
        for place in range(count + 1):
            bad[at(place)] = 0
    else:
        # A cut between values that no own row has parts spans differently from its neighbours.
        count = reached_values(rows.codes, reach, low, size, scratch)
        for place in range(count + 1):
            bad[at(place)] = 0
        spread(rows, classes, scratch.values, count, scratch.table)
        _bar(rows, reach, low, size, count, rule, scratch)
    _choose(count, is_public and reach.is_shared, rule, scratch, found)


@inner
def _bar(rows: Rows, reach: Reach, low: Any, size: Any, count: Any, rule: Rule, scratch: Scratch) -> None:
    """Mark the cuts that part a span badly: from the i-th value on, bad[i] more forbid it."""
    values, bad, held_values, table = scratch.values, scratch.bad, scratch.span_values, scratch.span_table
    for segment in range(reach.segments.shape[0]):
        place = reach.segments[segment, 0]
        while place < reach.segments[segment, 1]:
            end = np.int64(reach.ends[at(place)])
            span = Rows(rows.codes, rows.labels, rows.persons, reach.order, place, end)
            held = compact(span, low, size, rule.classes, held_values, table, scratch)
            _start(table, held, rule.classes, scratch.sums)
            for entry in range(held - 1):
                _pass(table, entry, rule.classes, scratch.sums)
                if not _both_hold(rule, scratch.sums):
                    bad[at(place_of(values, count, held_values[at(entry)]) + 1)] += 1
                    bad[at(place_of(values, count, held_values[at(entry + 1)]) + 1)] -= 1
            place = end


@inner
def _start(table: Any, count: Any, classes: Any, sums: Any) -> None:
    """Put everything to the right of a cut. sums: (side, class)"""
    for one in range(classes):
        sums[at(one)] = 0
        sums[at(classes + one)] = 0
    for place in range(count):
        for one in range(classes):
            sums[at(classes + one)] += table[at(place * classes + one)]


@inner
def _pass(table: Any, place: Any, classes: Any, sums: Any) -> Any:
    """Move the persons of a value to the left; how many."""
    moved = np.int64(0)
    for one in range(classes):
        number = table[at(place * classes + one)]
        sums[at(one)] += number
        sums[at(classes + one)] -= number
        moved += number
    return moved


@inner
def _both_hold(rule: Rule, sums: Any) -> Any:
    return holds(sums, 0, rule.classes, rule.demand) and holds(sums, rule.classes, rule.classes, rule.demand)


@inner
def _choose(count: Any, is_bound: Any, rule: Rule, scratch: Scratch, found: Any) -> None:
    """The cut that gains most; of equal ones the lowest. `is_bound`: the sides are spans themselves."""
    classes, sums, logs, total = rule.classes, scratch.sums, rule.logs, rule.total
    least = max(rule.least, min(total // (10 * classes), np.int64(MOST)))
    left, tried, last, barred = np.int64(0), np.int64(0), np.int64(-1), np.int64(0)
    _start(scratch.table, count, classes, sums)
    for place in range(1, count):
        left += _pass(scratch.table, place - 1, classes, sums)
        barred += scratch.bad[at(place)]
        if left < least or total - left < least:
            continue
        # Cuts that breach are counted too: what a node's best cut pays must not depend on spans, which others part.
        if left != last:
            tried += 1
            last = left
        if barred > 0 or (is_bound and not _both_hold(rule, sums)):
            continue
        parts = n_log_n(logs, left) + n_log_n(logs, total - left)
        after = parts
        for one in range(2 * classes):
            after -= n_log_n(logs, sums[at(one)])
        gain = (rule.before - after) / total
        if gain > found[GAIN] + 1e-12:
            found[GAIN] = gain
            found[INFO] = (n_log_n(logs, total) - parts) / total
            found[PLACE] = scratch.values[at(place)]
            found[BEFORE] = scratch.values[at(place - 1)]
    if tried > 0 and rule.penalty > 0:
        found[GAIN] -= np.log2(tried) / total
