# SPDX-License-Identifier: Apache-2.0
"""Compiled loops of the audit: the numbers of equal keys, how often values occur in groups (`coding.py`), a tree of
cuts over released boxes and the way of rows down that tree (`boxes.py`, which explains the arrays). Those over pages of
Parquet are in `page_kernels.py`, over fields of a text file in `field_kernels.py`. Each is compiled when it is first
asked for: a table without a source needs only some of them."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from threading import RLock
from typing import Any

import numba
import numpy as np

from anonfit.auditing.field_kernels import fields_end as _fields_end
from anonfit.auditing.page_kernels import numbers_end as _numbers_end
from anonfit.runtime.compiling import inner, kernel

BLOCK = 128  # rows that go down the tree together
COPIES = 4  # boxes standing on both sides of a cut may add this many times the number of boxes, no more
GEOMETRY = (
    "Tuple((i4[:, ::1], i4[::1], i4[:, ::1], i4[:, ::1], i4[::1], u1[::1]))"  # labels starts runs hulls cells sets
)
SCRATCH = "Tuple((i4[:, ::1], u1[:, ::1], i8[::1]))"  # work side seen
TREE = "Tuple((i4[:, ::1], i4[::1], u1[:, ::1]))"  # nodes leaves halves
WAYS = "Tuple((u4[:, ::1], u1[::1]))"  # steps sides
PLACES = "Tuple((u4[:, ::1], u4[:, ::1], u4[:, ::1], u4[:, ::1]))"  # leaves places tests runs


@inner
def _best_cut(axis, stack, begin, end, labels, hulls, scratch, budget):
    """The cut along an axis with the smallest larger side, copies counted double: (score, first cell of the right)."""
    opens, closes = scratch[0], scratch[1]
    low, high = hulls[labels[stack[begin], axis], 0], hulls[labels[stack[begin], axis], 1]
    for i in range(begin, end):
        label = labels[stack[i], axis]
        opens[hulls[label, 0]] += 1
        closes[hulls[label, 1]] += 1
        low, high = min(low, hulls[label, 0]), max(high, hulls[label, 1])
    size, score, cut = end - begin, end - begin, -1
    begun, ended = 0, 0
    for cell in range(low + 1, high + 1):
        begun += opens[cell - 1]
        ended += closes[cell - 1]
        if ended > 0 and begun < size and begun - ended <= budget:
            here = max(begun, size - ended) + 2 * (begun - ended)
            if here < score:
                score, cut = here, cell
    for cell in range(low, high + 1):
        opens[cell] = closes[cell] = 0
    return score, cut


@inner
def _root(parent, cell):
    """The representative of a cell's component."""
    while parent[cell] != cell:
        parent[cell] = parent[parent[cell]]
        cell = parent[cell]
    return cell


@inner
def _join_cells(axis, stack, begin, end, geometry, scratch, tick):
    """Make one component of the cells of every label of an axis, each label once; how many cells there are, which are
    listed in `touched`. What was marked at an earlier tick is not.
    """
    labels, starts, runs = geometry[0], geometry[1], geometry[2]
    (work, _, seen) = scratch
    parent, boxes, touched, marks = work[2], work[3], work[4], work[5]
    count = 0
    for i in range(begin, end):
        label = labels[stack[i], axis]
        if seen[label] == tick:
            continue
        seen[label] = tick
        joined = -1
        for run in range(starts[label], starts[label + 1]):
            for cell in range(runs[run, 0], runs[run, 1] + 1):
                if marks[cell] != tick:
                    marks[cell], parent[cell], boxes[cell] = tick, cell, 0
                    touched[count] = cell
                    count += 1
                root = _root(parent, np.int32(cell))
                if joined < 0:
                    joined = root
                parent[root] = joined
    return count


@inner
def _best_halves(axis, stack, begin, end, geometry, scratch, tick):
    """Part the cells of an axis in two halves that no box straddles; the boxes in the larger half (all: no such)."""
    labels, starts, runs = geometry[0], geometry[1], geometry[2]
    work, side = scratch[0], scratch[1]
    parent, boxes, touched = work[2], work[3], work[4]
    count = _join_cells(axis, stack, begin, end, geometry, scratch, tick)
    for i in range(begin, end):
        boxes[_root(parent, runs[starts[labels[stack[i], axis]], 0])] += 1
    lefts, rights = 0, 0
    for i in range(count):
        cell = touched[i]
        if parent[cell] == cell and lefts <= rights:
            lefts += boxes[cell]
            boxes[cell] = 0
        elif parent[cell] == cell:
            rights += boxes[cell]
            boxes[cell] = 1
    for i in range(count):
        side[1, touched[i]] = boxes[_root(parent, touched[i])]
    return max(lefts, rights)


@inner
def _choose(stack, begin, end, geometry, scratch, state):
    """Where to cut a node: (axis, cut), (axis, -1) for the halves left in `side[0]`, or (-1, -1) to stop."""
    labels, _, _, hulls, cells, sets = geometry
    work, side, _ = scratch
    score, axis, cut = end - begin, -1, -1
    if end - begin <= 1:
        return axis, cut
    for here in range(labels.shape[1]):
        other = begin + 1
        while other < end and labels[stack[other], here] == labels[stack[begin], here]:
            other += 1
        if other == end:  # one label cannot be parted
            continue
        if sets[here]:
            state[6] += 1
            larger = _best_halves(here, stack, begin, end, geometry, scratch, state[6])
            if larger < score:
                score, axis, cut = larger, here, -1
                for cell in range(cells[here]):
                    side[0, cell] = side[1, cell]
        larger, place = _best_cut(here, stack, begin, end, labels, hulls, work, state[5])
        if larger < score:
            score, axis, cut = larger, here, place
    return axis, cut


@inner
def _part(stack, begin, end, axis, cut, side, labels, hulls, spare):
    """Put the boxes of the left side first, then those of the right, boxes on both sides twice: (middle, end)."""
    middle, rights = begin, 0
    for i in range(begin, end):
        box = stack[i]
        low, high = hulls[labels[box, axis], 0], hulls[labels[box, axis], 1]
        if low < cut if cut >= 0 else side[0, low] == 0:  # a box is in one half with all its cells
            stack[middle] = box
            middle += 1
        if high >= cut if cut >= 0 else side[0, low] == 1:
            spare[rights] = box
            rights += 1
    for i in range(rights):
        stack[middle + i] = spare[i]
    return middle, middle + rights


def _grow(geometry, scratch, state, waiting, stack, spare, tree):
    """Grow the tree of cuts until it is done (True) or its halves are full (False: call again with more room).

    A node is (axis, cut, left, right): cells below `cut` go left; with a negative cut, cells with bit 0 in row -1 - cut
    of `halves`. A leaf is (-1, 0, begin, end) into `leaves`. State: nodes waiting, nodes, height of the stack, length
    of `leaves`, of `halves`, copies still allowed, and a number that is new for each search for halves.
    """
    labels, hulls, cells, side = geometry[0], geometry[3], geometry[4], scratch[1]
    nodes, leaves, halves = tree
    while state[0] > 0:
        if state[4] == len(halves):
            return False
        state[0] -= 1
        node, begin, end = waiting[state[0], 0], waiting[state[0], 1], state[2]
        axis, cut = _choose(stack, begin, end, geometry, scratch, state)
        if axis < 0:
            nodes[node, 0], nodes[node, 2], nodes[node, 3] = -1, state[3], state[3] + end - begin
            for i in range(begin, end):
                leaves[state[3] + i - begin] = stack[i]
            state[3] += end - begin
            state[2] = begin
            continue
        middle, state[2] = _part(stack, begin, end, axis, cut, side, labels, hulls, spare)
        state[5] -= state[2] - end
        if cut < 0:
            for cell in range(cells[axis]):
                halves[state[4], cell >> 3] |= side[0, cell] << (cell & 7)
            state[4] += 1
            cut = -state[4]
        nodes[node, 0], nodes[node, 1], nodes[node, 2], nodes[node, 3] = axis, cut, state[1], state[1] + 1
        for child in range(2):
            waiting[state[0], 0], waiting[state[0], 1] = state[1], middle if child else begin
            state[0] += 1
            state[1] += 1
    return True


def _locate(cells, ways, boxes, box_of_row, others):
    """For every row the first box that holds it (the number of boxes: none), and how many others do (at most 255).

    Rows go down the tree together: the step of one does not wait for that of another; meanwhile `box_of_row` holds the
    node of each. Indices have no sign, since numba would look whether they are negative.
    """
    steps, sides = ways
    leaves, places, tests, runs = boxes
    one, three, seven, none = np.uint64(1), np.uint64(3), np.uint64(7), places[len(places) - 1, 0]
    begin, end = np.uint64(0), np.uint64(len(box_of_row))
    while begin < end:
        stop = min(end, begin + np.uint64(BLOCK))
        for row in range(begin, stop):
            box_of_row[row] = 0
        moved = np.uint32(1)
        while moved != 0:
            moved = np.uint32(0)
            for row in range(begin, stop):
                node = box_of_row[row]
                bit = steps[node, 1] + cells[steps[node, 0], row]
                after = np.uint32(steps[node, 2] + ((sides[bit >> three] >> (bit & seven)) & one))
                moved |= after ^ node
                box_of_row[row] = after
        for row in range(begin, stop):
            node = box_of_row[row]
            box_of_row[row], others[row] = none, 0
            for place in range(np.uint64(leaves[node, 0]), np.uint64(leaves[node, 1])):
                inside = True
                for test in range(np.uint64(places[place, 1]), np.uint64(places[place + one, 1])):
                    cell = cells[tests[test, 0], row]
                    run, last = np.uint64(tests[test, 1]), np.uint64(tests[test, 2])
                    while run < last:  # the first run that does not end before the cell
                        middle = (run + last) >> one
                        if runs[middle, 1] < cell:
                            run = middle + one
                        else:
                            last = middle
                    inside = inside and run < tests[test, 2] and runs[run, 0] <= cell
                if inside and box_of_row[row] == none:
                    box_of_row[row] = places[place, 0]
                elif inside:
                    others[row] = min(255, others[row] + 1)
        begin = stop


@inner
def _narrow(reach, cut, halves, is_right):
    """Leave of the cells in `reach`, as bits, those that a side of a node has."""
    one, all_bits = np.uint64(1), ~np.uint64(0)
    for word in range(len(reach) if cut >= 0 else halves.shape[1]):
        if cut < 0:
            right = halves[-1 - cut, word]
        elif cut >= 64 * (word + 1):
            right = np.uint64(0)
        else:
            right = all_bits ^ ((one << np.uint64(cut - 64 * word)) - one) if cut > 64 * word else all_bits
        reach[word] &= right if is_right else ~right


@inner
def _is_covered(reach, first, last, runs, spare):
    """Whether all cells in `reach` are in some runs."""
    all_bits = ~np.uint64(0)
    spare[:] = reach
    for run in range(first, last):
        low, high = runs[run, 0], runs[run, 1]
        for word in range(low >> 6, (high >> 6) + 1):
            held = all_bits
            if word == low >> 6:
                held = (held >> np.uint64(low & 63)) << np.uint64(low & 63)
            if word == high >> 6:
                held &= all_bits >> np.uint64(63 - (high & 63))
            spare[word] &= ~held
    return not spare.any()


def _doubtful(tree, halves, geometry, reach, path, doubts):
    """Go down the tree with the cells that rows have on every axis, and note of every place at a leaf the axes on which
    some row there might be outside of the box.
    """
    (nodes, leaves), (labels, starts, runs), (steps, saved) = tree, geometry, path
    depth, spare = 0, np.empty_like(reach[0])
    steps[0, 0] = steps[0, 1] = 0
    while depth >= 0:
        node, stage = steps[depth, 0], steps[depth, 1]
        axis = nodes[node, 0]
        if axis < 0:
            for place in range(nodes[node, 2], nodes[node, 3]):
                for here in range(len(reach)):
                    label = labels[leaves[place], here]
                    doubts[place, here] = not _is_covered(reach[here], starts[label], starts[label + 1], runs, spare)
            depth -= 1
            continue
        if stage == 0:
            saved[depth] = reach[axis]
        else:
            reach[axis] = saved[depth]
        if stage == 2:
            depth -= 1
            continue
        _narrow(reach[axis], nodes[node, 1], halves, stage == 1)
        steps[depth, 1] = stage + 1
        depth += 1
        steps[depth, 0], steps[depth, 1] = nodes[node, 2 + stage], 0


@inner
def _meet(label, other, starts, runs):
    """Whether the sets of two labels of one axis have a cell in common."""
    i, j = starts[label], starts[other]
    while i < starts[label + 1] and j < starts[other + 1]:
        if runs[i, 1] < runs[j, 0]:
            i += 1
        elif runs[j, 1] < runs[i, 0]:
            j += 1
        else:
            return True
    return False


def _overlapping(nodes, leaves, labels, starts, runs, flags):
    """Flag the boxes that have a point in common with another box; such a pair stands together at some leaf."""
    for node in range(len(nodes)):
        if nodes[node, 0] >= 0:
            continue
        for i in range(nodes[node, 2], nodes[node, 3]):
            for j in range(i + 1, nodes[node, 3]):
                axis = 0
                while axis < labels.shape[1] and _meet(labels[leaves[i], axis], labels[leaves[j], axis], starts, runs):
                    axis += 1
                if axis == labels.shape[1]:
                    flags[leaves[i]] = flags[leaves[j]] = 1


def _number(keys, codes, slots, first):
    """Number different keys 1, 2, … as they appear, and note the first row of each; returns how many there are, or -1
    if `first` has no room for so many. `slots` is a table of twice that room, a power of two, all 0.
    """
    count, mask, one = 0, np.uint64(len(slots) - 1), np.uint64(1)
    for row in range(len(keys)):
        key = keys[row]
        slot = ((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
        while slots[slot] != 0 and keys[first[slots[slot] - one]] != key:
            slot = (slot + one) & mask
        if slots[slot] == 0:
            if count == len(first):
                return -1
            first[count] = row
            count += 1
            slots[slot] = count
        codes[row] = slots[slot]
    return count


def _count_pairs(groups, codes, held, group_of, value_of, number_of):
    """List the different pairs of a group and a code in rising order, and how often each occurs, where groups rise;
    returns how many pairs there are. `held` has room for every code, all 0.
    """
    row, count = 0, 0
    while row < len(groups):
        group, begin = groups[row], count
        while row < len(groups) and groups[row] == group:
            code = codes[row]
            if held[code] == 0:
                group_of[count], value_of[count] = group, code
                count += 1
            held[code] += 1
            row += 1
        value_of[begin:count].sort()
        for pair in range(begin, count):
            number_of[pair] = held[value_of[pair]]
            held[value_of[pair]] = 0
    return count


def _frequent(groups, codes, held, seen, most):
    """Note for every group how often its most frequent code occurs, and which codes there are, where groups rise;
    returns how often the rarest pair of a group and a code does. `held` and `seen` have room for every code, all 0.
    """
    row, least = 0, np.int64(len(groups))
    while row < len(groups):
        group, begin = groups[row], row
        while row < len(groups) and groups[row] == group:
            held[codes[row]] += 1
            row += 1
        for place in range(begin, row):
            code = codes[place]
            number = np.int64(held[code])
            if number > 0:
                most[group] = max(most[group], number)
                least = number if number < least else least
                held[code], seen[code] = 0, 1
    return least


_types: Any = numba
# polars lends its memory, and nobody may write there.
_KEYS, _BODY = (_types.types.Array(kind, 1, "C", readonly=True) for kind in (_types.uint64, _types.uint8))
_LOCK = RLock()
_KERNELS: dict[str, Any] = {
    "grow": (_grow, f"b1({GEOMETRY}, {SCRATCH}, i8[::1], i8[:, ::1], i4[::1], i4[::1], {TREE})"),
    "locate": (_locate, f"void(u4[:, ::1], {WAYS}, {PLACES}, u4[::1], u1[::1])"),
    "doubtful": (
        _doubtful,
        "void(Tuple((i4[:, ::1], i4[::1])), u8[:, ::1], Tuple((i4[:, ::1], i4[::1], i4[:, ::1])), u8[:, ::1], "
        "Tuple((i8[:, ::1], u8[:, ::1])), u1[:, ::1])",
    ),
    "overlapping": (_overlapping, "void(i4[:, ::1], i4[::1], i4[:, ::1], i4[::1], i4[:, ::1], u1[::1])"),
    "number": (_number, _types.int64(_KEYS, _types.int64[::1], _types.uint32[::1], _types.int64[::1])),
    "count_pairs": (_count_pairs, "i8(i8[::1], i8[::1], u4[::1], i8[::1], i8[::1], i8[::1])"),
    "frequent": (_frequent, "i8(i8[::1], i8[::1], u4[::1], u1[::1], i8[::1])"),
    "fields_end": (_fields_end, _types.int64(_BODY, *[_types.int64] * 3, _types.uint8[::1])),
    "numbers_end": (_numbers_end, _types.int64(_BODY, *[_types.int64] * 4, _types.int64[::1])),
}


def compile_all() -> None:
    """Compile all kernels."""
    for name in _KERNELS:
        __getattr__(name)


def __getattr__(name: str) -> Any:
    """Compile a kernel when it is first asked for."""
    if name not in _KERNELS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _LOCK:  # several threads may ask at once
        if name not in globals():
            globals()[name] = kernel(*_KERNELS[name])
    return globals()[name]
