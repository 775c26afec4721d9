# SPDX-License-Identifier: Apache-2.0
"""Released groups as boxes (a set of cells per quasi-identifier), the tree of cuts that parts them, which overlap, and
the way of raw rows down the tree to the boxes that hold them.

Arrays for `kernels.py`: `labels` (box, axis) holds label numbers, unique over all axes; label i means the runs
`runs[starts[i]:starts[i + 1]]`, each (first cell, last cell), and reaches from `hulls[i, 0]` to `hulls[i, 1]`.

For `kernels.locate`, a node is the step (axis, offset, child) to `child + sides[offset + cell]`; that of a leaf leads
to itself, and its boxes are the places from `leaves[node, 0]` to `leaves[node, 1]`. A place is (box, its first test),
and a test (axis, first run, end of the runs) asks whether a row's cell is in one of these runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing.axes import Axis, Cells, PlacedColumn
from anonfit.auditing.coding import BoolArray, IntArray
from anonfit.auditing.labels import ValueSet
from anonfit.auditing.reading import AuditedTable, require_columns

Int32 = npt.NDArray[np.int32]
_LARGEST_SET_AXIS = 512  # an axis of intervals, some with missing, is cut in order only if it has more cells
_LARGEST_HALVES = 1 << 28  # bytes; beyond that all axes are cut in order only


@dataclass(frozen=True, slots=True)
class LabelBoxes:
    """The boxes of a release and the tree of cuts that finds them."""

    axes: tuple[Axis, ...]
    group_of_box: IntArray
    labels: Int32
    starts: Int32
    runs: Int32
    hulls: Int32
    nodes: Int32
    leaves: Int32
    halves: npt.NDArray[np.uint8]
    shared: BoolArray | None = None
    """Groups that several regions have in common; of these some may be withheld and others not. None: there is none."""


def box_space(axes: Sequence[Axis], sets: Sequence[Sequence[ValueSet | None]], label_of_group: IntArray) -> LabelBoxes:
    """The boxes of groups: `label_of_group` (group, axis) points into `sets[axis]`; an unread label makes no box."""
    starts, runs, offsets = [0], [], []
    for axis, of_axis in zip(axes, sets, strict=True):
        offsets.append(len(starts) - 1)
        for values in of_axis:
            runs.extend([] if values is None else axis.runs(values))
            starts.append(len(runs))
    start_array = np.array(starts, np.int32)
    run_array = np.array(runs, np.int32).reshape(-1, 2)
    labels = (label_of_group + np.array(offsets, np.int64)).astype(np.int32)
    filled = (np.diff(start_array) > 0)[labels].all(axis=1) if len(axes) else np.ones(len(labels), np.bool_)
    labels = np.ascontiguousarray(labels[filled])
    hulls = np.zeros((len(start_array), 2), np.int32)
    read = np.flatnonzero(np.diff(start_array))  # labels that have runs
    hulls[read, 0], hulls[read, 1] = run_array[start_array[read], 0], run_array[start_array[read + 1] - 1, 1]
    nodes, leaves, halves = _grown(axes, labels, starts=start_array, runs=run_array, hulls=hulls)
    return LabelBoxes(tuple(axes), np.flatnonzero(filled), labels, start_array, run_array, hulls, nodes, leaves, halves)


def _grown(
    axes: Sequence[Axis], labels: Int32, *, starts: Int32, runs: Int32, hulls: Int32
) -> tuple[Int32, Int32, npt.NDArray[np.uint8]]:
    """Grow the tree of cuts; the arrays it works on are made here so that little must be compiled."""
    from anonfit.auditing import kernels

    count = len(labels)
    cells = np.array([axis.cells for axis in axes], np.int32)
    width = int(cells.max(initial=1))
    most = np.array([np.diff(starts)[column].max(initial=0) for column in labels.T], np.int64)  # runs of a label
    sets = ((most > 2) | ((most == 2) & (cells <= _LARGEST_SET_AXIS))).astype(np.uint8)
    budget = kernels.COPIES * count
    room = count + budget + 1
    state = np.array([1, 1, count, 0, 0, budget, 0], np.int64)
    stack, leaves, spare = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(count + 1, np.int32)
    stack[:count] = np.arange(count)
    nodes, waiting = np.zeros((2 * room + 1, 4), np.int32), np.zeros((2 * room + 1, 2), np.int64)
    widest = int(cells[sets > 0].max(initial=1))
    scratch = np.zeros((6, width), np.int32), np.zeros((2, widest), np.uint8), np.zeros(len(starts), np.int64)
    halves = np.zeros((64, -(-widest // 8)), np.uint8)
    geometry = (labels, starts, runs, hulls, cells, sets)
    while not kernels.grow(geometry, scratch, state, waiting, stack, spare, (nodes, leaves, halves)):
        if halves.size > _LARGEST_HALVES:
            sets[:] = 0
        halves = np.concatenate([halves, np.zeros_like(halves)])
    return nodes[: state[1]].copy(), leaves[: state[3]].copy(), halves[: state[4] + 1].copy()


def overlapping_boxes(boxes: LabelBoxes) -> int:
    """How many boxes have a point in common with another one."""
    from anonfit.auditing import kernels

    flags = np.zeros(len(boxes.labels), np.uint8)
    kernels.overlapping(boxes.nodes, boxes.leaves, boxes.labels, boxes.starts, boxes.runs, flags)
    return int(flags.sum())


UInt32 = npt.NDArray[np.uint32]
Ways = tuple[UInt32, npt.NDArray[np.uint8]]
Places = tuple[UInt32, UInt32, UInt32, UInt32]
_ROWS_AT_ONCE = 1 << 14
_AXIS, _CUT, _LEFT, _RIGHT = range(4)  # of a node that is no leaf


def locate_rows(boxes: LabelBoxes, columns: Sequence[Cells], *, rows: int) -> tuple[IntArray, npt.NDArray[np.uint8]]:
    """For every row, from its cell in every column: the group whose box holds it (-1: none), and how many further boxes
    do (at most 255).
    """
    from anonfit.auditing import kernels

    ways, places = _ways(boxes), _places(boxes, columns if rows else ())
    group, others = np.empty(rows, np.int64), np.empty(rows, np.uint8)
    group_of_box = np.append(boxes.group_of_box, -1)

    def part(begin: int) -> None:
        end = min(rows, begin + _ROWS_AT_ONCE)
        cells = np.zeros((max(1, len(columns)), end - begin), np.uint32)
        for axis, column in enumerate(columns):
            cells[axis] = column[begin:end]
        box_of_row = np.empty(end - begin, np.uint32)
        kernels.locate(cells, ways, places, box_of_row, others[begin:end])
        group[begin:end] = group_of_box[box_of_row]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(part, range(0, rows, _ROWS_AT_ONCE)))
    return group, others


def _ways(boxes: LabelBoxes) -> Ways:
    """Every node as one look into a list of bits, so that the kernel need not ask what kind of node it is at: a cut is
    an offset into a staircase of zeros and ones, halves are a row of their own.
    """
    nodes, width = boxes.nodes.astype(np.int64), max((axis.cells for axis in boxes.axes), default=1)
    stairs = np.packbits(np.repeat(np.array([0, 1], np.uint8), width), bitorder="little")
    leaf, halved, bits = nodes[:, _AXIS] < 0, nodes[:, _CUT] < 0, 8 * boxes.halves.size
    row = (-1 - nodes[:, _CUT]) * 8 * boxes.halves.shape[1]
    cut = bits + width - nodes[:, _CUT]
    steps = np.empty((len(nodes), 3), np.uint32)
    steps[:, 0] = np.where(leaf, 0, nodes[:, _AXIS])
    steps[:, 1] = np.where(leaf, bits, np.where(halved, row, cut))
    steps[:, 2] = np.where(leaf, np.arange(len(nodes)), nodes[:, _LEFT])  # the right child comes next
    return steps, np.concatenate([boxes.halves.ravel(), stairs])


def _places(boxes: LabelBoxes, columns: Sequence[Cells]) -> Places:
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
    arrays = (np.ascontiguousarray(array, np.uint32) for array in (of_leaf, places, tests, boxes.runs))
    return tuple(arrays)  # type: ignore[return-value]


def _reach(boxes: LabelBoxes, columns: Sequence[Cells]) -> tuple[Cells, Cells]:
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


# --- raw rows -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Located:
    """Where the raw rows lie in a release, and what was strange about them."""

    group: IntArray  # (row) the group whose box holds it, -1: none
    others: npt.NDArray[np.uint8]  # (row) how many further boxes hold it
    cells: list[Cells]  # (column)(row)
    beyond: int
    unknown: int
    dropped: int  # rows that were left out for a missing value
    outside: int  # rows that are in no group, though they were not left out


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """The cells of raw rows, column by column, and which rows were left out on purpose (None: none)."""

    cells: list[Cells]
    rows: int
    lost: BoolArray | None
    beyond: int
    unknown: int
    dropped: int


def locate_source(
    boxes: LabelBoxes, source: AuditedTable, *, quasi_identifiers: Sequence[str], **left_out: Any
) -> Located:
    """Find the group of every raw row by the labels alone. Rows that were left out (see `place_rows`) are in no group,
    though some labels would hold them.
    """
    placed = place_rows(boxes.axes, source, quasi_identifiers=quasi_identifiers, **left_out)
    group, others = locate_rows(boxes, placed.cells, rows=placed.rows)
    lost = 0
    if placed.lost is not None:
        group[placed.lost] = -1
        lost = int(np.count_nonzero(placed.lost))
    outside = int(np.count_nonzero(group < 0)) - lost
    return Located(group, others, placed.cells, placed.beyond, placed.unknown, placed.dropped, outside)


def place_rows(
    axes: Sequence[Axis],
    source: AuditedTable,
    *,
    quasi_identifiers: Sequence[str],
    drops_missing: bool = False,
    complete: Sequence[str] = (),
    leaves_out_unknown: bool = False,
) -> PlacedRows:
    """The cells of every raw row. Rows with a missing value, or with one that the recoding does not know (a category,
    or a number beyond the declared domain), may be left out on purpose; `complete` are columns beside the
    quasi-identifiers that a row with a missing value was left out for, too.
    """
    require_columns(source, quasi_identifiers, purpose="a quasi-identifier")
    series = source.frame(quasi_identifiers).get_columns()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(axis.place, column) for axis, column in zip(axes, series, strict=True)]
        placed: list[PlacedColumn] = [job.result() for job in jobs]
    rows = len(series[0]) if series else source.height()
    strange = [column.strangers for column in placed if column.strangers is not None] if leaves_out_unknown else []
    lost = np.any(strange, axis=0) if strange else None
    dropped = 0
    if drops_missing and placed:
        lacking = [column.cells == 0 for column in placed]
        lacking += [is_missing(column) for column in source.frame(complete).get_columns()] if complete else []
        missing = np.any(lacking, axis=0)
        lost = missing if lost is None else lost | missing
        dropped = int(np.count_nonzero(missing))
    beyond, unknown = sum(column.beyond for column in placed), sum(column.unknown for column in placed)
    return PlacedRows([column.cells for column in placed], rows, lost, beyond, unknown, dropped)


def is_missing(column: pl.Series) -> BoolArray:
    """Which rows have no value, NaN being none."""
    missing = column.is_null() | column.is_nan().fill_null(value=False) if column.dtype.is_float() else column.is_null()
    return missing.to_numpy()
