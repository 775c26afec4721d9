# SPDX-License-Identifier: Apache-2.0
"""Kernels that find the best cut of a column of many values for one target of two classes, which is what is nearly
always asked, without weighing most of them.

Rows are packed in the order of that column, which they keep in every node, since moving them to parts does. A node's
rows are taken a chunk at a time. No cut within a chunk is cheaper than the cheapest of four corners, where all or none
of its rows of each class are below: impurity is concave in what is below. So chunks that cannot bring a better cut than
those before them are passed over.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anonfit.engines.memory import forms, layout
from anonfit.engines.memory.candidates import BY_CODE
from anonfit.engines.memory.count import at, read
from anonfit.engines.memory.cutting import TIE
from anonfit.engines.memory.forms import NodeView
from anonfit.engines.memory.impurity import cost_of_two
from anonfit.engines.memory.layout import Int
from anonfit.runtime.compiling import inner

CHUNK = 8
"""Rows of the smallest chunk."""


@inner
def _chunk_end(words: Any, bit: Int, mask: Int, begin: Int, stop: Int, rows: Int) -> Any:
    """The end of a chunk of so many rows, and of those after them that have the last one's code."""
    end = begin + rows
    if end >= stop:
        return stop
    code = read(words, bit, mask, end - 1)
    while end < stop and read(words, bit, mask, end) == code:
        end += 1
    return end


@inner
def _of_second(node: NodeView, begin: Int, end: Int) -> Any:
    """How many of some rows are of the second class."""
    codes, place, count = node.rows.bytes, node.objective.targets[forms.TARGET_BIT, 0] >> 3, np.int64(0)
    for row in range(begin, end):
        count += codes[at(row), at(place)]
    return count


@inner
def _least_of_corners(node: NodeView, of: Any, x: Int, y: Int, edges: float, size: float) -> Any:
    """The cost that no cut within a chunk is cheaper than, given the cheaper one of its edges: more rows of one class
    below make a cut cheaper only beyond the point where the classes are mixed below as above.
    """
    (a, b), whole, least = of, node.scratch.whole, edges
    if (a + x) * whole[1] > b * whole[0]:
        least = min(least, _cost_below(node, a + x, b, size))
    if (b + y) * whole[0] > a * whole[1]:
        least = min(least, _cost_below(node, a, b + y, size))
    return least


@inner
def _cost_below(node: NodeView, a: Int, b: Int, size: float) -> Any:
    """The cost of a cut with so many rows of each class below it."""
    objective, whole = node.objective, node.scratch.whole
    return cost_of_two(objective.factors, objective.logs, a, b, whole[0] - a, whole[1] - b, size)


@inner
def _cut_chunk(node: NodeView, column: Int, begin: Int, end: Int, of: Any, last: Any, best: Any, size: float) -> Any:
    """The best cut so far, after those of a chunk: its cost, the codes on its two sides, and what is below it; and
    the last code of the chunk with its sums. `of` is what is below the chunk, `last` the code there, -1 where nobody
    looked.
    """
    words, facts, targets, whole = node.rows.words, node.columns.facts, node.objective.targets, node.scratch.whole
    bit, mask = facts[layout.BIT, column], facts[layout.MASK, column]
    codes, place = node.rows.bytes, targets[forms.TARGET_BIT, 0] >> 3
    k, total, all_cuts = node.k, whole[0] + whole[1], node.objective.settings[forms.ALL_CUTS] == 1
    a, b = of
    code, first, second = last
    least, before, after, low, high = best
    row = begin
    while row < end:
        here, x, y = read(words, bit, mask, row), np.int64(0), np.int64(0)
        while row < end and read(words, bit, mask, row) == here:
            y += codes[at(row), at(place)]
            x += 1
            row += 1
        x -= y
        boundary = all_cuts or ((first != 0 or x != 0) and (second != 0 or y != 0))
        if code >= 0 and boundary and a + b >= k and total - a - b >= k:
            cost = _cost_below(node, a, b, size)
            if cost < least - TIE:
                least, before, after, low, high = cost, code, here, a, b
        a += x
        b += y
        code, first, second = here, x, y
    return (least, before, after, low, high), (code, first, second)


@inner
def _best_of_chunks(node: NodeView, column: Int, size: float) -> Any:
    """The best of all cuts: its cost, the codes on its two sides (-1: there is none), and what is below it."""
    words, facts, start, stop, k = node.rows.words, node.columns.facts, node.start, node.stop, node.k
    bit, mask = facts[layout.BIT, column], facts[layout.MASK, column]
    rows = CHUNK + np.int64(math.sqrt(stop - start)) // 4  # the corners are as far off as chance is
    none, a, b, end = np.int64(-1), np.int64(0), np.int64(0), np.int64(start)
    best, last = (np.inf, none, none, none, none), (none, none, none)
    edge = _cost_below(node, a, b, size)
    while end < stop:
        begin, end = end, _chunk_end(words, bit, mask, end, stop, rows)
        y = _of_second(node, begin, end)
        x = end - begin - y
        edge, before = _cost_below(node, a + x, b + y, size), edge
        least = _least_of_corners(node, (a, b), x, y, min(before, edge), size)
        # A cut at the edge of a chunk that is passed over is a corner of that one, too.
        if end - start >= k and stop - begin >= k and least < best[0] - TIE / 2:
            best, last = _cut_chunk(node, column, begin, end, (a, b), last, best, size)
        else:
            last = (none, none, none)
        a += x
        b += y
    return best


@inner
def _median_of_rows(node: NodeView, column: Int) -> Any:
    """The legal cut that is the lower median's or nearest to it, lower first, as `_best_of_chunks` gives one."""
    words, facts, start, stop, k = node.rows.words, node.columns.facts, node.start, node.stop, node.k
    bit, mask = facts[layout.BIT, column], facts[layout.MASK, column]
    middle = start + (stop - start + 1) // 2 - 1
    code, cut = read(words, bit, mask, middle), np.int64(middle + 1)
    while cut < stop and read(words, bit, mask, cut) == code:
        cut += 1
    if stop - cut < max(k, 1):  # those above are no more legal
        cut = np.int64(middle)
        while cut > start and read(words, bit, mask, cut - 1) == code:
            cut -= 1
    none = np.int64(-1)
    if cut - start < max(k, 1) or stop - cut < k:
        return np.inf, none, none, none, none
    second = _of_second(node, start, cut)
    return 0.0, read(words, bit, mask, cut - 1), read(words, bit, mask, cut), cut - start - second, second


@inner
def find_wide_cut(node: NodeView, column: Int, is_first: bool) -> None:
    """Find the best legal cut of the column in whose order rows stand, else that of the median, and make the two
    elements that it parts. The first column of a node that is weighed gives the node's own sums.
    """
    scratch, rows = node.scratch, node.stop - node.start
    lists, sums, whole, splits = scratch.lists, scratch.sums, scratch.whole, scratch.splits
    if is_first:
        whole[1] = _of_second(node, node.start, node.stop)
        whole[0] = rows - whole[1]
    size = np.float64(rows) * node.objective.numbers[forms.PER_MASS]
    cut = np.inf, np.int64(-1), np.int64(-1), np.int64(-1), np.int64(-1)
    if node.objective.settings[forms.ALL_CUTS] == 1 or (whole[0] > 0 and whole[1] > 0):  # else none is a candidate
        cut = _best_of_chunks(node, column, size)
    if cut[1] < 0:
        cut = _median_of_rows(node, column)
    _, before, after, first, second = cut
    splits[forms.COST, column], splits[forms.CUT, column], splits[forms.WAY, column] = np.inf, -1.0, BY_CODE
    if before < 0:
        return
    lists[forms.STARTS, 0], lists[forms.STARTS, 1] = before, after
    lists[forms.OWN, 0], lists[forms.OWN, 1] = first + second, rows - first - second
    for place in range(2):
        lists[forms.ORDER, place], lists[forms.RANK, place] = place, place
    sums[0], sums[1], sums[2], sums[3] = first, second, whole[0] - first, whole[1] - second
    splits[forms.COST, column], splits[forms.CUT, column] = _cost_below(node, first, second, size), 0.0
