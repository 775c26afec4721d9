# SPDX-License-Identifier: Apache-2.0
"""Kernels that weigh a node's splits: for each column the best one that breaches no span, and what it gains.

A nominal column is divided at a depth of its taxonomy, the deepest that breaches nothing; an ordered one at the cut
that gains most of those that breach nothing. Only the spans of public columns can be breached.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.compiling import inner, kernel
from anonfit.trees.kernels import at
from anonfit.trees.spread import compact, holds, place_of, spread, wide

__all__ = ["BEFORE", "DEPTH", "FOUND", "GAIN", "HIGH", "INFO", "LOW", "PLACE", "weigh"]

# Rows of the facts of columns.
ORDERED, PUBLIC, OFFSET = 0, 1, 2

# Rows of a node's box: the first code, the code after the last one, the depth of the taxonomy at which it stands.
LOW, HIGH, DEPTH = 0, 1, 2

# What is found of a column: bits gained a person, bits of the split itself, where (the code above a cut, or the depth),
# and the highest code below a cut. No gain: nothing was found.
GAIN, INFO, PLACE, BEFORE, FOUND = 0, 1, 2, 3, 4

MOST = 25
"""C4.5 asks for a tenth of the persons of a class on each side of a cut, but for no more than so many."""


@inner
def _is_bad(hist: Any, size: Any, breaks: Any, offset: Any, depth: Any, classes: Any, sums: Any, demand: Any) -> Any:
    """Whether a part of a division at a depth may not exist. hist: (code, class) of a span"""
    for one in range(classes):
        sums[one] = 0
    for code in range(size):
        if code > 0 and breaks[at(offset + code)] <= depth:
            if not holds(sums, 0, classes, demand):
                return True
            for one in range(classes):
                sums[one] = 0
        for one in range(classes):
            sums[one] += hist[at(code * classes + one)]
    return not holds(sums, 0, classes, demand)


@inner
def _fill(codes: Any, labels: Any, order: Any, first: Any, stop: Any, low: Any, classes: Any, hist: Any) -> None:
    for place in range(first, stop):
        row = at(order[at(place)])
        hist[at((np.int64(codes[row]) - low) * classes + labels[row])] += 1


@inner
def _gain_of_depth(
    hist: Any,
    size: Any,
    breaks: Any,
    offset: Any,
    depth: Any,
    classes: Any,
    sums: Any,
    logs: Any,
    before: Any,
    least: Any,
    found: Any,
) -> None:
    """What a division at a depth gains. `before`: the persons' and the classes' part of the node's own entropy"""
    after, info, large = 0.0, 0.0, np.int64(0)
    total, persons = np.int64(0), np.int64(0)
    for one in range(classes):
        sums[one] = 0
    for code in range(size + 1):
        if code == size or (code > 0 and breaks[at(offset + code)] <= depth):
            info += logs[at(persons)]
            after += logs[at(persons)]
            for one in range(classes):
                after -= logs[at(sums[one])]
                sums[one] = 0
            large += persons >= least
            total += persons
            persons = np.int64(0)
        if code < size:
            for one in range(classes):
                number = hist[at(code * classes + one)]
                sums[one] += number
                persons += number
    if large >= 2 and total > 0:
        found[GAIN] = (before - after) / total
        found[INFO] = (logs[at(total)] - info) / total
        found[PLACE] = depth


@inner
def _clear(hist: Any, stop: Any) -> None:
    for place in range(stop):
        hist[at(place)] = 0


@inner
def _weigh_nominal(
    codes: Any,
    labels: Any,
    own: Any,
    first: Any,
    stop: Any,
    reach: Any,
    ends: Any,
    segments: Any,
    is_shared: Any,
    is_public: Any,
    box: Any,
    breaks: Any,
    offset: Any,
    classes: Any,
    demand: Any,
    logs: Any,
    before: Any,
    least: Any,
    hist: Any,
    sums: Any,
    found: Any,
) -> None:
    low, size, top = np.int64(box[LOW]), np.int64(box[HIGH]) - np.int64(box[LOW]), np.int64(box[DEPTH])
    offset = offset + low
    depth = top
    for code in range(1, size):
        depth = max(depth, np.int64(breaks[at(offset + code)]))
    if is_public and not is_shared:
        for segment in range(segments.shape[0]):
            place = segments[segment, 0]
            while place < segments[segment, 1] and depth > top:
                end = np.int64(ends[at(place)])
                _fill(codes, labels, reach, place, end, low, classes, hist)
                while depth > top and _is_bad(hist, size, breaks, offset, depth, classes, sums, demand):
                    depth -= 1
                _clear(hist, size * classes)
                place = end
    if depth <= top:
        return
    _fill(codes, labels, own, first, stop, low, classes, hist)
    if is_public and is_shared:
        while depth > top and _is_bad(hist, size, breaks, offset, depth, classes, sums, demand):
            depth -= 1
    if depth > top:
        _gain_of_depth(hist, size, breaks, offset, depth, classes, sums, logs, before, least, found)
    _clear(hist, size * classes)


@inner
def _best_cut(
    values: Any,
    table: Any,
    count: Any,
    bad: Any,
    is_bound: Any,
    classes: Any,
    demand: Any,
    logs: Any,
    before: Any,
    total: Any,
    least: Any,
    penalty: Any,
    sums: Any,
    found: Any,
) -> None:
    """The cut that gains most. `sums` has room for both sides; `is_bound`: the sides are spans themselves."""
    for one in range(classes):
        sums[one] = 0
        sums[classes + one] = 0
    for place in range(count):
        for one in range(classes):
            sums[classes + one] += table[at(place * classes + one)]
    left, tried, last = np.int64(0), np.int64(0), np.int64(-1)
    barred = np.int64(0)
    for place in range(1, count):
        for one in range(classes):
            number = table[at((place - 1) * classes + one)]
            sums[one] += number
            sums[classes + one] -= number
            left += number
        barred += bad[at(place)]
        if left < least or total - left < least:
            continue
        # Cuts that breach are counted too: what a node's best cut pays must not depend on spans, which others part.
        if left != last:
            tried += 1
            last = left
        if barred > 0:
            continue
        if is_bound and not (holds(sums, 0, classes, demand) and holds(sums, classes, classes, demand)):
            continue
        after = logs[at(left)] + logs[at(total - left)]
        for one in range(2 * classes):
            after -= logs[at(sums[one])]
        gain = (before - after) / total
        if gain > found[GAIN] + 1e-12:
            found[GAIN] = gain
            found[INFO] = (logs[at(total)] - logs[at(left)] - logs[at(total - left)]) / total
            found[PLACE] = values[at(place)]
            found[BEFORE] = values[at(place - 1)]
    if tried > 0 and penalty > 0:
        found[GAIN] -= np.log2(tried) / total


@inner
def _bar_cuts(
    codes: Any,
    labels: Any,
    reach: Any,
    ends: Any,
    segments: Any,
    low: Any,
    size: Any,
    classes: Any,
    demand: Any,
    values: Any,
    count: Any,
    bad: Any,
    span_values: Any,
    span_table: Any,
    hist: Any,
    keys: Any,
    sums: Any,
) -> None:
    """Mark the cuts that part a span of a node badly: bad[i] more are barred from the i-th value on."""
    for segment in range(segments.shape[0]):
        place = segments[segment, 0]
        while place < segments[segment, 1]:
            end = np.int64(ends[at(place)])
            held = compact(codes, labels, reach, place, end, low, size, classes, span_values, span_table, hist, keys)
            for one in range(classes):
                sums[one] = 0
                sums[classes + one] = 0
            for entry in range(held):
                for one in range(classes):
                    sums[classes + one] += span_table[at(entry * classes + one)]
            for entry in range(held - 1):
                for one in range(classes):
                    number = span_table[at(entry * classes + one)]
                    sums[one] += number
                    sums[classes + one] -= number
                if not (holds(sums, 0, classes, demand) and holds(sums, classes, classes, demand)):
                    bad[at(place_of(values, count, span_values[at(entry)]) + 1)] += 1
                    bad[at(place_of(values, count, span_values[at(entry + 1)]) + 1)] -= 1
            place = end


@inner
def _weigh_ordered(
    codes: Any,
    labels: Any,
    own: Any,
    first: Any,
    stop: Any,
    reach: Any,
    ends: Any,
    segments: Any,
    is_shared: Any,
    is_public: Any,
    box: Any,
    classes: Any,
    demand: Any,
    logs: Any,
    before: Any,
    least: Any,
    penalty: Any,
    hist: Any,
    keys: Any,
    values: Any,
    table: Any,
    bad: Any,
    span_values: Any,
    span_table: Any,
    sums: Any,
    found: Any,
) -> None:
    low, size = np.int64(box[LOW]), np.int64(box[HIGH]) - np.int64(box[LOW])
    total = stop - first
    # C4.5: enough persons on both sides.
    share = total // (10 * classes)
    least = max(least, min(share, np.int64(MOST)))
    is_bound = is_public and is_shared
    if not is_public or is_shared:
        count = compact(codes, labels, own, first, stop, low, size, classes, values, table, hist, keys)
        for place in range(count + 1):
            bad[at(place)] = 0
    else:
        count = wide(codes, reach, segments, low, size, values, hist, keys)
        for place in range(count + 1):
            bad[at(place)] = 0
        spread(codes, labels, own, first, stop, classes, values, count, table)
        _bar_cuts(
            codes,
            labels,
            reach,
            ends,
            segments,
            low,
            size,
            classes,
            demand,
            values,
            count,
            bad,
            span_values,
            span_table,
            hist,
            keys,
            sums,
        )
    _best_cut(
        values,
        table,
        count,
        bad,
        is_bound,
        classes,
        demand,
        logs,
        before,
        total,
        least,
        penalty,
        sums,
        found,
    )


@kernel
def weigh(
    codes: Any,
    labels: Any,
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
    hist: Any,
    keys: Any,
    lists: Any,
    found: Any,
) -> None:
    """Find the best split of each column of a node. box: (fact, column); found: (column, FOUND)

    settings: the fewest persons of two sons, and 1 where cuts pay for their number. lists: (4, …) scratch for values
    and sums.
    """
    classes = np.int64(counts.shape[0])
    sums = np.zeros(2 * classes, np.int64)
    before = logs[at(stop - first)]
    for one in range(classes):
        before -= logs[at(counts[one])]
    values, span_values, table, span_table, bad = lists
    for column in range(codes.shape[0]):
        for fact in range(FOUND):
            found[column, fact] = 0.0
        if box[HIGH, column] - box[LOW, column] < 2:
            continue
        is_public = facts[PUBLIC, column] == 1
        if facts[ORDERED, column] == 1:
            _weigh_ordered(
                codes[column],
                labels,
                own,
                first,
                stop,
                reach,
                ends,
                segments,
                is_shared,
                is_public,
                box[:, column],
                classes,
                demand,
                logs,
                before,
                np.int64(settings[0]),
                np.int64(settings[1]),
                hist,
                keys,
                values,
                table,
                bad,
                span_values,
                span_table,
                sums,
                found[column],
            )
        else:
            _weigh_nominal(
                codes[column],
                labels,
                own,
                first,
                stop,
                reach,
                ends,
                segments,
                is_shared,
                is_public,
                box[:, column],
                breaks,
                np.int64(facts[OFFSET, column]),
                classes,
                demand,
                logs,
                before,
                np.int64(settings[0]),
                hist,
                sums,
                found[column],
            )
