# SPDX-License-Identifier: Apache-2.0
"""The kernel that weighs a node's splits: for each column the best one that breaches no span, and what it gains.

Only splits of public columns can breach a span.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.algorithms.trees.forms import FOUND, HIGH, LOW, Reach, Rows, Rule, Scratch
from anonfit.algorithms.trees.kernels import at, n_log_n
from anonfit.algorithms.trees.weighing_nominal import weigh_nominal
from anonfit.algorithms.trees.weighing_ordered import weigh_ordered
from anonfit.runtime.compiling import kernel

__all__ = ["weigh"]

# Rows of the facts of columns: whether it is ordered, whether it is public, where its breaks begin.
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
    found: Any,
) -> None:
    """Find the best split of each column of a node.

    codes: (column, row); persons: (row,) or none: one each; own, reach: lists of rows; box: (fact, column); facts:
    (fact, column); counts: (class,); settings: the fewest persons of two sons, 1 where cuts pay for their number;
    lists: the fields of Scratch; found: (column, FOUND)
    """
    classes = np.int64(counts.shape[0])
    total = np.int64(0)
    for one in range(classes):
        total += counts[at(one)]
    before = n_log_n(logs, total)
    for one in range(classes):
        before -= n_log_n(logs, counts[at(one)])
    rule = Rule(classes, demand, total, logs, before, np.int64(settings[0]), np.int64(settings[1]))
    scratch = Scratch(lists[0], lists[1], lists[2], lists[3], lists[4], lists[5], lists[6], lists[7])
    spans = Reach(reach, ends, segments, is_shared)
    for column in range(codes.shape[0]):
        for fact in range(FOUND):
            found[column, fact] = 0.0
        if box[HIGH, column] - box[LOW, column] < 2:
            continue
        rows = Rows(codes[column], labels, persons, own, first, stop)
        is_public = facts[PUBLIC, column] == 1
        if facts[ORDERED, column] == 1:
            weigh_ordered(rows, spans, is_public, box[:, column], rule, scratch, found[column])
        else:
            of_column = breaks[facts[OFFSET, column] :]
            weigh_nominal(rows, spans, is_public, box[:, column], of_column, rule, scratch, found[column])
