# SPDX-License-Identifier: Apache-2.0
"""Kernels that weigh the divisions of a nominal column: the deepest of its taxonomy that breaches no span."""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.algorithms.trees.forms import DEPTH, GAIN, HIGH, INFO, LOW, PLACE, Reach, Rows, Rule, Scratch
from anonfit.algorithms.trees.kernels import at, n_log_n
from anonfit.algorithms.trees.spread import fill, holds
from anonfit.runtime.compiling import inner

__all__ = ["weigh_nominal"]


@inner
def weigh_nominal(
    rows: Rows, reach: Reach, is_public: Any, box: Any, breaks: Any, rule: Rule, scratch: Scratch, found: Any
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
        _gain(size, within, depth, rule, scratch, found)
    _clear(scratch.hist, size * rule.classes)


@inner
def _allowed_depth(
    rows: Rows,
    reach: Reach,
    low: Any,
    size: Any,
    breaks: Any,
    depth: Any,
    top: Any,
    rule: Rule,
    scratch: Scratch,
) -> Any:
    """The deepest division that no span of a node forbids; a division that is allowed is so at any lesser depth."""
    for segment in range(reach.segments.shape[0]):
        place = reach.segments[segment, 0]
        while place < reach.segments[segment, 1] and depth > top:
            end = np.int64(reach.ends[at(place)])
            span = Rows(rows.codes, rows.labels, rows.persons, reach.order, place, end)
            fill(span, low, rule.classes, scratch.hist)
            while depth > top and _is_bad(size, breaks, depth, rule, scratch):
                depth -= 1
            _clear(scratch.hist, size * rule.classes)
            place = end
    return depth


@inner
def _is_bad(size: Any, breaks: Any, depth: Any, rule: Rule, scratch: Scratch) -> Any:
    """Whether a part of a division may not exist. hist: (code, class) of a span"""
    classes, sums = rule.classes, scratch.sums
    for one in range(classes):
        sums[at(one)] = 0
    for code in range(size):
        if code > 0 and breaks[at(code)] <= depth:
            if not holds(sums, 0, classes, rule.demand):
                return True
            for one in range(classes):
                sums[at(one)] = 0
        for one in range(classes):
            sums[at(one)] += scratch.hist[at(code * classes + one)]
    return not holds(sums, 0, classes, rule.demand)


@inner
def _clear(hist: Any, stop: Any) -> None:
    for place in range(stop):
        hist[at(place)] = 0


@inner
def _gain(size: Any, breaks: Any, depth: Any, rule: Rule, scratch: Scratch, found: Any) -> None:
    """What a division gains of which at least two parts have enough persons. hist: (code, class) of a node"""
    classes, sums, logs = rule.classes, scratch.sums, rule.logs
    after, info, large = 0.0, 0.0, np.int64(0)
    total, persons = np.int64(0), np.int64(0)
    for one in range(classes):
        sums[at(one)] = 0
    for code in range(size + 1):
        if code == size or (code > 0 and breaks[at(code)] <= depth):
            own = n_log_n(logs, persons)
            info += own
            after += own
            for one in range(classes):
                after -= n_log_n(logs, sums[at(one)])
                sums[at(one)] = 0
            large += persons >= rule.least
            total += persons
            persons = np.int64(0)
        if code < size:
            for one in range(classes):
                number = scratch.hist[at(code * classes + one)]
                sums[at(one)] += number
                persons += number
    if large >= 2:
        found[GAIN] = (rule.before - after) / total
        found[INFO] = (n_log_n(logs, total) - info) / total
        found[PLACE] = depth
