# SPDX-License-Identifier: Apache-2.0
"""Released groups as boxes: a set of cells per quasi-identifier, the tree of cuts that parts them, and which overlap.

Arrays for `kernels.py`: `labels` (box, axis) holds label numbers, unique over all axes; label i means the runs
`runs[starts[i]:starts[i + 1]]`, each (first cell, last cell), and reaches from `hulls[i, 0]` to `hulls[i, 1]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anonfit.auditing.axes import Axis
from anonfit.auditing.coding import IntArray
from anonfit.auditing.labels import ValueSet

__all__ = ["Boxes", "Int32", "box_space", "overlapping_boxes"]

Int32 = npt.NDArray[np.int32]
_LARGEST_SET_AXIS = 512  # an ordered axis with more cells is cut in order only


@dataclass(frozen=True, slots=True)
class Boxes:
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
    shared: npt.NDArray[np.bool_] | None = None
    """Groups that several regions have in common; of these some may be withheld and others not. None: there is none."""


def box_space(axes: Sequence[Axis], sets: Sequence[Sequence[ValueSet | None]], label_of_group: IntArray) -> Boxes:
    """The boxes of groups: `label_of_group` (group, axis) points into `sets[axis]`; an unread label makes no box."""
    starts, runs, offsets = [0], [], []
    for axis, of_axis in zip(axes, sets, strict=True):
        offsets.append(len(starts) - 1)
        for found in of_axis:
            runs.extend([] if found is None else axis.runs(found))
            starts.append(len(runs))
    start_array = np.array(starts, np.int32)
    run_array = np.array(runs, np.int32).reshape(-1, 2)
    labels = (label_of_group + np.array(offsets, np.int64)).astype(np.int32)
    filled = (np.diff(start_array) > 0)[labels].all(axis=1) if len(axes) else np.ones(len(labels), np.bool_)
    labels = np.ascontiguousarray(labels[filled])
    hulls = np.zeros((len(start_array), 2), np.int32)
    some = np.flatnonzero(np.diff(start_array))
    hulls[some, 0], hulls[some, 1] = run_array[start_array[some], 0], run_array[start_array[some + 1] - 1, 1]
    nodes, leaves, halves = _grown(axes, labels, starts=start_array, runs=run_array, hulls=hulls)
    return Boxes(tuple(axes), np.flatnonzero(filled), labels, start_array, run_array, hulls, nodes, leaves, halves)


def _grown(
    axes: Sequence[Axis], labels: Int32, *, starts: Int32, runs: Int32, hulls: Int32
) -> tuple[Int32, Int32, npt.NDArray[np.uint8]]:
    """Grow the tree of cuts; the arrays it works on are made here so that little must be compiled."""
    from anonfit.auditing import kernels

    count = len(labels)
    cells = np.array([axis.cells for axis in axes], np.int32)
    width = int(cells.max(initial=1))
    several = np.diff(starts) > 1  # labels that are no single run
    sets = np.array([several[column].any() for column in labels.T], np.bool_) & (cells <= _LARGEST_SET_AXIS)
    budget = kernels.COPIES * count
    room = count + budget + 1
    state = np.array([1, 1, count, 0, 0, budget], np.int64)
    stack, leaves, spare = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(count + 1, np.int32)
    stack[:count] = np.arange(count)
    nodes, waiting = np.zeros((2 * room + 1, 4), np.int32), np.zeros((2 * room + 1, 2), np.int64)
    widest = int(cells[sets].max(initial=1))
    scratch, side = np.zeros((4, width), np.int32), np.zeros((2, widest), np.uint8)
    halves = np.empty((64, widest), np.uint8)
    geometry = (labels, starts, runs, hulls, cells, sets.astype(np.uint8))
    while not kernels.grow(geometry, (scratch, side), state, waiting, stack, spare, (nodes, leaves, halves)):
        halves = np.concatenate([halves, np.empty_like(halves)])
    return nodes[: state[1]].copy(), leaves[: state[3]].copy(), halves[: state[4] + 1].copy()


def overlapping_boxes(boxes: Boxes) -> int:
    """How many boxes have a point in common with another one."""
    from anonfit.auditing import kernels

    flags = np.zeros(len(boxes.labels), np.uint8)
    kernels.overlapping(boxes.nodes, boxes.leaves, boxes.labels, boxes.starts, boxes.runs, flags)
    return int(flags.sum())
