# SPDX-License-Identifier: Apache-2.0
"""The way of raw rows down the tree of cuts to the boxes that hold them.

Arrays for `kernels.locate`: a node is the step (axis, offset, child) to `child + sides[offset + cell]`; that of a leaf
leads to itself, and its boxes are the places from `leaves[node, 0]` to `leaves[node, 1]`. A place is (box, its first
test), and a test (axis, first run, end of the runs) asks whether a row's cell is in one of these runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anonfit.auditing.boxes import Boxes
from anonfit.auditing.coding import IntArray
from anonfit.auditing.placing import Cells

__all__ = ["Found", "locate_rows"]

UInt32 = npt.NDArray[np.uint32]
Ways = tuple[UInt32, npt.NDArray[np.uint8]]
Places = tuple[UInt32, UInt32, UInt32, UInt32]
_ROWS_AT_ONCE = 1 << 14
_AXIS, _CUT, _LEFT, _RIGHT = range(4)  # of a node that is no leaf


@dataclass(frozen=True, slots=True)
class Found:
    """For every raw row the group whose box holds it (-1: none), and the number of further boxes that do."""

    group: IntArray
    others: npt.NDArray[np.uint8]


def locate_rows(boxes: Boxes, columns: Sequence[Cells], *, rows: int) -> Found:
    """The box of every row, from its cell in every column."""
    from anonfit.auditing import kernels

    ways, places = _ways(boxes), _places(boxes, columns if rows else ())
    group, others = np.empty(rows, np.int64), np.empty(rows, np.uint8)
    group_of_box = np.append(boxes.group_of_box, -1)

    def part(begin: int) -> None:
        end = min(rows, begin + _ROWS_AT_ONCE)
        cells = np.zeros((max(1, len(columns)), end - begin), np.uint32)
        for axis, column in enumerate(columns):
            cells[axis] = column[begin:end]
        found = np.empty(end - begin, np.uint32)
        kernels.locate(cells, ways, places, found, others[begin:end])
        group[begin:end] = group_of_box[found]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(part, range(0, rows, _ROWS_AT_ONCE)))
    return Found(group, others)


def _ways(boxes: Boxes) -> Ways:
    """Every node as a step without a choice: a cut is a place in a staircase, halves are a row of sides."""
    nodes, width = boxes.nodes, max((axis.cells for axis in boxes.axes), default=1)
    stairs = np.repeat(np.array([0, 1], np.uint8), width)
    leaf, halved = nodes[:, _AXIS] < 0, nodes[:, _CUT] < 0
    row = (-1 - nodes[:, _CUT]) * boxes.halves.shape[1]
    cut = boxes.halves.size + width - nodes[:, _CUT]
    steps = np.empty((len(nodes), 3), np.uint32)
    steps[:, 0] = np.where(leaf, 0, nodes[:, _AXIS])
    steps[:, 1] = np.where(leaf, boxes.halves.size, np.where(halved, row, cut))
    steps[:, 2] = np.where(leaf, np.arange(len(nodes)), nodes[:, _LEFT])  # the right child comes next
    return steps, np.concatenate([boxes.halves.ravel(), stairs])


def _places(boxes: Boxes, columns: Sequence[Cells]) -> Places:
    """The boxes of leaves, with a test for every axis on which some of these rows might be in the leaf but not in the
    box: most leaves are no larger than their box.
    """
    low, high = _reach(boxes, columns)
    leaf = np.flatnonzero(boxes.nodes[:, _AXIS] < 0)
    leaf = leaf[np.argsort(boxes.nodes[leaf, 2])]
    of_place = np.repeat(leaf, boxes.nodes[leaf, 3] - boxes.nodes[leaf, 2])
    labels = boxes.labels[boxes.leaves]
    hulls = boxes.hulls[labels]
    runs = np.stack([boxes.starts[labels], boxes.starts[labels + 1]])
    within = (hulls[:, :, 0] <= low[of_place]) & (high[of_place] <= hulls[:, :, 1]) & (runs[1] - runs[0] == 1)
    place, axis = np.nonzero(~within)
    tests = np.stack([axis, runs[0, place, axis], runs[1, place, axis]], axis=1)
    begin = np.searchsorted(place, np.arange(len(of_place) + 1))
    places = np.stack([np.append(boxes.leaves, len(boxes.labels)), begin], axis=1)
    of_leaf = np.where(boxes.nodes[:, :1] < 0, boxes.nodes[:, 2:], 0)
    found = (np.ascontiguousarray(array, np.uint32) for array in (of_leaf, places, tests, boxes.runs))
    return tuple(found)  # type: ignore[return-value]


def _reach(boxes: Boxes, columns: Sequence[Cells]) -> tuple[Cells, Cells]:
    """From which cell to which these rows can be at every node and axis; halves are taken for all of both."""
    nodes = boxes.nodes
    low, high = np.zeros((2, len(nodes), len(boxes.axes)), np.int32)
    for axis, column in enumerate(columns):
        low[0, axis], high[0, axis] = column.min(), column.max()
    level = np.zeros(1, np.int64)
    while len(level := level[nodes[level, _AXIS] >= 0]):
        left, right = nodes[level, _LEFT], nodes[level, _RIGHT]
        for child in (left, right):
            low[child], high[child] = low[level], high[level]
        cut, axis = nodes[level, _CUT], nodes[level, _AXIS]
        at = left, axis
        high[at] = np.where(cut < 0, high[at], np.minimum(high[at], cut - 1))
        at = right, axis
        low[at] = np.where(cut < 0, low[at], np.maximum(low[at], cut))
        level = np.concatenate([left, right])
    return low, high
