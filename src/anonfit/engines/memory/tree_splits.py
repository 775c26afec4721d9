# SPDX-License-Identifier: Apache-2.0
"""The best split of a decision tree's node, over ordered and nominal columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.engines.memory.count import at, run_of
from anonfit.engines.memory.tree_kernels import (
    BEFORE,
    DEPTH,
    GAIN,
    HIGH,
    INFO,
    LOW,
    PLACE,
    Reach,
    RowRun,
    Rule,
    TreeScratch,
    compact,
    fill,
    holds,
    n_log_n,
    reached_values,
    spread,
)
from anonfit.runtime.compiling import inner, kernel

MOST = 25
"""C4.5 asks for a tenth of the persons of a class on each side of a cut, but for no more than so many."""


@inner
def weigh_ordered(
    rows: RowRun, reach: Reach, is_public: Any, box: Any, rule: Rule, scratch: TreeScratch, best: Any
) -> None:
    """Find the best cut that breaches nothing, and what it gains."""
    low, size = np.int64(box[LOW]), np.int64(box[HIGH]) - np.int64(box[LOW])
    classes, bad = rule.classes, scratch.bad
    if not is_public or reach.is_shared:
        count = compact(rows, low, size, classes, scratch.values, scratch.table, scratch)
        _clear(bad, count + 1)
    else:
        # A cut between values that no own row has parts spans differently from its neighbours.
        count = reached_values(rows.codes, reach, low, size, scratch)
        _clear(bad, count + 1)
        spread(rows, classes, scratch.values, count, scratch.table)
        _bar(rows, reach, low, size, count, rule, scratch)
    _choose(count, is_public and reach.is_shared, rule, scratch, best)


@inner
def _bar(rows: RowRun, reach: Reach, low: Any, size: Any, count: Any, rule: Rule, scratch: TreeScratch) -> None:
    """Mark the cuts that part a span badly: from the i-th value on, bad[i] more forbid it."""
    values, bad, held_values, table = scratch.values, scratch.bad, scratch.span_values, scratch.span_table
    for segment in range(reach.segments.shape[0]):
        place = reach.segments[segment, 0]
        while place < reach.segments[segment, 1]:
            end = np.int64(reach.ends[at(place)])
            span = RowRun(rows.codes, rows.labels, rows.persons, reach.order, place, end)
            held = compact(span, low, size, rule.classes, held_values, table, scratch)
            _start(table, held, rule.classes, scratch.sums)
            for entry in range(held - 1):
                _pass(table, entry, rule.classes, scratch.sums)
                if not _both_hold(rule, scratch.sums):
                    bad[at(run_of(values, count, held_values[at(entry)]) + 1)] += 1
                    bad[at(run_of(values, count, held_values[at(entry + 1)]) + 1)] -= 1
            place = end


@inner
def _start(table: Any, count: Any, classes: Any, sums: Any) -> None:
    """Put everything to the right of a cut. sums: (side, class)"""
    _clear(sums, 2 * classes)
    for place in range(count):
        for label in range(classes):
            sums[at(classes + label)] += table[at(place * classes + label)]


@inner
def _pass(table: Any, place: Any, classes: Any, sums: Any) -> Any:
    """Move the persons of a value to the left; how many."""
    moved = np.int64(0)
    for label in range(classes):
        number = table[at(place * classes + label)]
        sums[at(label)] += number
        sums[at(classes + label)] -= number
        moved += number
    return moved


@inner
def _both_hold(rule: Rule, sums: Any) -> Any:
    return holds(sums, 0, rule.classes, rule.demand) and holds(sums, rule.classes, rule.classes, rule.demand)


@inner
def _choose(count: Any, is_bound: Any, rule: Rule, scratch: TreeScratch, best: Any) -> None:
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
        for entry in range(2 * classes):
            after -= n_log_n(logs, sums[at(entry)])
        gain = (rule.before - after) / total
        if gain > best[GAIN] + 1e-12:
            best[GAIN] = gain
            best[INFO] = (n_log_n(logs, total) - parts) / total
            best[PLACE] = scratch.values[at(place)]
            best[BEFORE] = scratch.values[at(place - 1)]
    if tried > 0 and rule.penalty > 0:
        best[GAIN] -= np.log2(tried) / total


@inner
def weigh_nominal(
    rows: RowRun, reach: Reach, is_public: Any, box: Any, breaks: Any, rule: Rule, scratch: TreeScratch, best: Any
) -> None:
    """Find the deepest division that breaches nothing, and what it gains. breaks: (code,) of the column"""
    low, size, top = np.int64(box[LOW]), np.int64(box[HIGH]) - np.int64(box[LOW]), np.int64(box[DEPTH])
    within = breaks[low : low + size]
    depth = top
    for code in range(1, size):
        depth = max(depth, np.int64(within[at(code)]))
    if is_public and not reach.is_shared:
        depth = _allowed_depth(rows, reach, low, size, within, depth, top, rule, scratch)
    if depth <= top:
        return
    fill(rows, low, rule.classes, scratch.hist)
    while is_public and reach.is_shared and depth > top and _is_bad(size, within, depth, rule, scratch):
        depth -= 1
    if depth > top:
        _gain(size, within, depth, rule, scratch, best)
    _clear(scratch.hist, size * rule.classes)


@inner
def _allowed_depth(
    rows: RowRun, reach: Reach, low: Any, size: Any, breaks: Any, depth: Any, top: Any, rule: Rule, scratch: TreeScratch
) -> Any:
    """The deepest division that no span of a node forbids; a division that is allowed is so at any lesser depth."""
    for segment in range(reach.segments.shape[0]):
        place = reach.segments[segment, 0]
        while place < reach.segments[segment, 1] and depth > top:
            end = np.int64(reach.ends[at(place)])
            span = RowRun(rows.codes, rows.labels, rows.persons, reach.order, place, end)
            fill(span, low, rule.classes, scratch.hist)
            while depth > top and _is_bad(size, breaks, depth, rule, scratch):
                depth -= 1
            _clear(scratch.hist, size * rule.classes)
            place = end
    return depth


@inner
def _is_bad(size: Any, breaks: Any, depth: Any, rule: Rule, scratch: TreeScratch) -> Any:
    """Whether a part of a division may not exist. hist: (code, class) of a span"""
    classes, sums = rule.classes, scratch.sums
    _clear(sums, classes)
    for code in range(size):
        if code > 0 and breaks[at(code)] <= depth:
            if not holds(sums, 0, classes, rule.demand):
                return True
            _clear(sums, classes)
        for label in range(classes):
            sums[at(label)] += scratch.hist[at(code * classes + label)]
    return not holds(sums, 0, classes, rule.demand)


@inner
def _clear(hist: Any, stop: Any) -> None:
    for place in range(stop):
        hist[at(place)] = 0


@inner
def _gain(size: Any, breaks: Any, depth: Any, rule: Rule, scratch: TreeScratch, best: Any) -> None:
    """What a division gains of which at least two parts have enough persons. hist: (code, class) of a node"""
    classes, sums, logs = rule.classes, scratch.sums, rule.logs
    after, info, large = 0.0, 0.0, np.int64(0)
    total, persons = np.int64(0), np.int64(0)
    _clear(sums, classes)
    for code in range(size + 1):
        if code == size or (code > 0 and breaks[at(code)] <= depth):
            own = n_log_n(logs, persons)
            info += own
            after += own
            for label in range(classes):
                after -= n_log_n(logs, sums[at(label)])
                sums[at(label)] = 0
            large += persons >= rule.least
            total += persons
            persons = np.int64(0)
        if code < size:
            for label in range(classes):
                number = scratch.hist[at(code * classes + label)]
                sums[at(label)] += number
                persons += number
    if large >= 2:
        best[GAIN] = (rule.before - after) / total
        best[INFO] = (n_log_n(logs, total) - info) / total
        best[PLACE] = depth


# RowRun of the facts of columns: whether it is ordered, whether it is public, where its breaks begin.
ORDERED, PUBLIC, OFFSET = 0, 1, 2


@kernel
def weigh(
    codes: Any,
    labels: Any,
    persons: Any,
    own: Any,
    first: Any,
    stop: Any,
    reach: Any,
    ends: Any,
    segments: Any,
    is_shared: Any,
    box: Any,
    facts: Any,
    breaks: Any,
    counts: Any,
    demand: Any,
    settings: Any,
    logs: Any,
    lists: Any,
    best: Any,
) -> None:
    """Find the best split of each column of a node.

    codes: (column, row); persons: (row,) or none: one each; own, reach: lists of rows; box: (fact, column); facts:
    (fact, column); counts: (class,); settings: the fewest persons of two sons, 1 where cuts pay for their number;
    lists: the fields of TreeScratch; found: (column, FACTS)
    """
    classes, total = np.int64(counts.shape[0]), counts.sum()
    before = n_log_n(logs, total)
    for label in range(classes):
        before -= n_log_n(logs, counts[at(label)])
    rule = Rule(classes, demand, total, logs, before, np.int64(settings[0]), np.int64(settings[1]))
    scratch = TreeScratch(lists[0], lists[1], lists[2], lists[3], lists[4], lists[5], lists[6], lists[7])
    spans = Reach(reach, ends, segments, is_shared)
    for column in range(codes.shape[0]):
        best[column, :] = 0.0
        if box[HIGH, column] - box[LOW, column] < 2:
            continue
        rows = RowRun(codes[column], labels, persons, own, first, stop)
        is_public = facts[PUBLIC, column] == 1
        if facts[ORDERED, column] == 1:
            weigh_ordered(rows, spans, is_public, box[:, column], rule, scratch, best[column])
        else:
            of_column = breaks[facts[OFFSET, column] :]
            weigh_nominal(rows, spans, is_public, box[:, column], of_column, rule, scratch, best[column])
