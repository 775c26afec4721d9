# SPDX-License-Identifier: Apache-2.0
"""Compiled loops of the audit: a tree of cuts over released boxes, and the way of a row down that tree.
Called by `boxes.py` only, which explains the arrays; the one module of the audit that loads numba."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from anonfit.compiling import kernel

__all__ = ["grow", "locate", "overlapping"]

BUCKET = 4  # a node with so few boxes is not cut further
COPIES = 4  # boxes standing on both sides of a cut may add this many times the number of boxes, no more
GEOMETRY = (
    "Tuple((i4[:, ::1], i4[::1], i4[:, ::1], i4[:, ::1], i4[::1], u1[::1]))"  # labels starts runs hulls cells sets
)
SCRATCH = "Tuple((i4[:, ::1], u1[:, ::1]))"  # work, side
TREE = "Tuple((i4[:, ::1], i4[::1], u1[:, ::1]))"  # nodes leaves halves


def _compiled(signature: str) -> Callable[[Any], Any]:
    """Compile at import."""
    return lambda function: kernel(function, signature)


@_compiled("UniTuple(i8, 2)(i8, i4[::1], i8, i8, i4[:, ::1], i4[:, ::1], i4[:, ::1], i8)")
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


@_compiled("i4(i4[::1], i4)")
def _root(parent, cell):
    """The representative of a cell's component."""
    while parent[cell] != cell:
        parent[cell] = parent[parent[cell]]
        cell = parent[cell]
    return cell


@_compiled("i8(i8, i4[::1], i8, i8, i4[:, ::1], i4[::1], i4[:, ::1], i8, i4[:, ::1], u1[::1])")
def _best_halves(axis, stack, begin, end, labels, starts, runs, cells, scratch, side):
    """Part the cells of an axis in two halves that no box straddles; the boxes in the larger half (all: no such)."""
    parent, boxes = scratch[2], scratch[3]
    for cell in range(cells):
        parent[cell], boxes[cell] = cell, 0
    for i in range(begin, end):
        label = labels[stack[i], axis]
        root = _root(parent, runs[starts[label], 0])
        for run in range(starts[label], starts[label + 1]):
            for cell in range(runs[run, 0], runs[run, 1] + 1):
                parent[_root(parent, np.int32(cell))] = root
    for i in range(begin, end):
        boxes[_root(parent, runs[starts[labels[stack[i], axis]], 0])] += 1
    lefts, rights = 0, 0
    for cell in range(cells):
        if parent[cell] == cell and lefts <= rights:
            lefts += boxes[cell]
            boxes[cell] = 0
        elif parent[cell] == cell:
            rights += boxes[cell]
            boxes[cell] = 1
    for cell in range(cells):
        side[cell] = boxes[_root(parent, np.int32(cell))]
    return max(lefts, rights)


@_compiled(f"UniTuple(i8, 2)(i4[::1], i8, i8, {GEOMETRY}, {SCRATCH}, i8)")
def _choose(stack, begin, end, geometry, scratch, budget):
    """Where to cut a node: (axis, cut), (axis, -1) for the halves left in `side[0]`, or (-1, -1) to stop."""
    labels, starts, runs, hulls, cells, sets = geometry
    work, side = scratch
    score, axis, cut = end - begin, -1, -1
    if end - begin <= BUCKET:
        return axis, cut
    for here in range(labels.shape[1]):
        if sets[here]:
            larger = _best_halves(here, stack, begin, end, labels, starts, runs, cells[here], work, side[1])
            if larger < score:
                score, axis, cut = larger, here, -1
                for cell in range(cells[here]):
                    side[0, cell] = side[1, cell]
        larger, place = _best_cut(here, stack, begin, end, labels, hulls, work, budget)
        if larger < score:
            score, axis, cut = larger, here, place
    return axis, cut


@_compiled("UniTuple(i8, 2)(i4[::1], i8, i8, i8, i8, u1[:, ::1], i4[:, ::1], i4[:, ::1], i4[::1])")
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


@_compiled(f"b1({GEOMETRY}, {SCRATCH}, i8[::1], i8[:, ::1], i4[::1], i4[::1], {TREE})")
def grow(geometry, scratch, state, waiting, stack, spare, tree):
    """Grow the tree of cuts until it is done (True) or its halves are full (False: call again with more room).

    A node is (axis, cut, left, right): cells below `cut` go left; with a negative cut, cells with 0 in row -1 - cut of
    `halves`. A leaf is (-1, 0, begin, end) into `leaves`. State: nodes waiting, nodes, height of the stack, length of
    `leaves`, of `halves`, copies still allowed.
    """
    labels, hulls, cells, side = geometry[0], geometry[3], geometry[4], scratch[1]
    nodes, leaves, halves = tree
    while state[0] > 0:
        if state[4] == len(halves):
            return False
        state[0] -= 1
        node, begin, end = waiting[state[0], 0], waiting[state[0], 1], state[2]
        axis, cut = _choose(stack, begin, end, geometry, scratch, state[5])
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
                halves[state[4], cell] = side[0, cell]
            state[4] += 1
            cut = -state[4]
        nodes[node, 0], nodes[node, 1], nodes[node, 2], nodes[node, 3] = axis, cut, state[1], state[1] + 1
        for child in range(2):
            waiting[state[0], 0], waiting[state[0], 1] = state[1], middle if child else begin
            state[0] += 1
            state[1] += 1
    return True


@_compiled("b1(i4, i4[:, ::1], i8, i4[:, ::1], i4[:, :, ::1])")
def _inside(box, rows, row, runs, spans):
    """Whether a box holds a row: each cell within the reach of its label and, if that has gaps, in one of its runs."""
    for axis in range(rows.shape[1]):
        cell = rows[row, axis]
        if cell < spans[box, axis, 0] or cell > spans[box, axis, 1]:
            return False
        run = spans[box, axis, 2]
        if run < 0:
            continue
        while runs[run, 1] < cell:  # the last run ends with the reach
            run += 1
        if runs[run, 0] > cell:
            return False
    return True


@_compiled(f"void(i4[:, ::1], {TREE}, i4[:, ::1], i4[:, :, ::1], i4[::1], u1[::1])")
def locate(rows, tree, runs, spans, found, others):
    """For every row of cells the first box that holds it (-1: none) and how many others do (at most 255)."""
    nodes, leaves, halves = tree
    for row in range(len(rows)):
        node = 0
        while nodes[node, 0] >= 0:
            cell, cut = rows[row, nodes[node, 0]], nodes[node, 1]
            to_right = cell >= cut if cut >= 0 else halves[-1 - cut, cell] == 1
            node = nodes[node, 3] if to_right else nodes[node, 2]
        found[row], others[row] = -1, 0
        for i in range(nodes[node, 2], nodes[node, 3]):
            if not _inside(leaves[i], rows, row, runs, spans):
                continue
            if found[row] < 0:
                found[row] = leaves[i]
            else:
                others[row] = min(255, others[row] + 1)


@_compiled("b1(i4, i4, i4[::1], i4[:, ::1])")
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


@_compiled("void(i4[:, ::1], i4[::1], i4[:, ::1], i4[::1], i4[:, ::1], u1[::1])")
def overlapping(nodes, leaves, labels, starts, runs, flags):
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
