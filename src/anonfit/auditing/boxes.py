# SPDX-License-Identifier: Apache-2.0
"""Released groups as boxes in the space of raw values, the tree of cuts that parts them, which overlap, and the way of
rows down the tree to the boxes that hold them.

On the axis of a column, values that no label tells apart are one cell, and a label is runs of cells. Cell 0 is missing;
the last cell holds values that the column's meaning does not know. A box is a set of cells per quasi-identifier.

Arrays for `kernels.py`: `labels` (box, axis) holds label numbers, unique over all axes; label i means the runs
`runs[starts[i]:starts[i + 1]]`, each (first cell, last cell), and reaches from `hulls[i, 0]` to `hulls[i, 1]`.

For `kernels.locate`, a node is the step (axis, offset, child) to `child + sides[offset + cell]`; that of a leaf leads
to itself, and its boxes are the places from `leaves[node, 0]` to `leaves[node, 1]`. A place is (box, its first test),
and a test (axis, first run, end of the runs) asks whether a row's cell is in one of these runs."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing.coding import BoolArray, FloatArray, IntArray, dictionary, integers, is_text
from anonfit.auditing.labels import Interval, Run, ValueSet, joined, leaf_interval
from anonfit.auditing.meanings import LabelMeaning

Cells = npt.NDArray[np.int32]
_EXACT = 2**52  # below this, integers and halves are exact as floating point numbers
_UNITS = {"ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True, slots=True)
class PlacedColumn:
    """The cell of every row, how many rows lie beyond the declared domain, and how many are not understood."""

    cells: Cells
    beyond: int
    unknown: int
    strangers: BoolArray | None = None  # (row) whether either is so; None: of no row


def placed_on_line(series: pl.Series, meaning: LabelMeaning, *, ends: list[Decimal]) -> PlacedColumn:
    """The cells of an ordered column (see `_line_axis`); values beyond a declared domain go to its end intervals."""
    numbers, scale = on_line(series, meaning)
    whole = integers(numbers)
    values: Any = numbers.cast(pl.Float64).fill_null(0.0).to_numpy() if whole is None else whole
    inward: Any = (float, float) if whole is None else (math.ceil, math.floor)
    domain = zip(inward, meaning.domain, strict=True)
    low, high = (None if end is None else rounded(Fraction(end) * scale) for rounded, end in domain)
    inside = values if low is None and high is None else np.clip(values, low, high)
    beyond = np.zeros(len(values), np.bool_) if inside is values else inside != values
    scaled = [Fraction(end) * scale for end in ends]
    cells = _cells_of_floats(inside, scaled) if whole is None else _cells_of_integers(inside, scaled)
    if not numbers.null_count():
        return PlacedColumn(cells, int(np.count_nonzero(beyond)), 0, beyond if beyond.any() else None)
    missing = series.is_null().to_numpy()
    strange = numbers.is_null().to_numpy() & ~missing
    cells[strange] = 2 * len(ends) + 2
    cells[missing] = 0
    beyond &= ~(strange | missing)
    return PlacedColumn(cells, int(np.count_nonzero(beyond)), int(np.count_nonzero(strange)), strange | beyond)


def distinct_texts(series: pl.Series) -> tuple[IntArray, list[str]]:
    """The different texts of a column, and the number of every row's text, counted from 1 (0: missing)."""
    different = dictionary(series if is_text(series) else series.cast(pl.String))
    return different.codes, different.values.to_list()


def as_moments(series: pl.Series, date_format: str | None = None) -> pl.Series:
    """Texts as times; null where a text is none."""
    texts = series.cast(pl.String)
    if texts.null_count() == len(texts):
        return texts.cast(pl.Datetime("us"))
    if date_format is not None:
        return texts.str.to_datetime(date_format, strict=False, time_unit="us")
    day = texts.str.to_date("%Y-%m-%d", strict=False)
    if day.null_count() == texts.null_count():
        return day.cast(pl.Datetime("us"))
    swapped = texts.str.replace(" ", "T", literal=True)
    unit: Literal["ns", "us"] = "ns" if swapped.str.contains(r"\.\d{6}\d*[1-9]").any() else "us"
    moments = [
        swapped.str.to_datetime(f"%Y-%m-%dT{clock}", strict=False, time_unit=unit) for clock in ("%H:%M:%S%.f", "%H:%M")
    ]
    zoned = swapped.str.to_datetime("%+", strict=False, time_unit=unit, time_zone="UTC").dt.replace_time_zone(None)
    return pl.select(pl.coalesce(day.cast(pl.Datetime(unit), strict=False), *moments, zoned)).to_series()


def on_line(series: pl.Series, meaning: LabelMeaning) -> tuple[pl.Series, Fraction]:
    """A column as numbers (null: not understood), and how many of them make one unit of the labels' ends."""
    kind = series.dtype
    if meaning.type == "ordinal":
        codes, words = distinct_texts(series)
        place = {word: position for position, word in enumerate(meaning.order)}
        known = (place.get(text, place.get(text.removesuffix(".0"))) for text in words)
        return pl.Series([None, *known], dtype=pl.Int64).gather(codes), Fraction(1)
    if meaning.type == "date":
        moments = series if kind.is_temporal() else as_moments(series, meaning.date_format)
        if moments.dtype == pl.Date:
            return moments, Fraction(1, 86400)
        if isinstance(moments.dtype, pl.Datetime):
            return moments, Fraction(_UNITS[moments.dtype.time_unit])
    elif isinstance(kind, pl.Decimal):
        return series.to_physical(), Fraction(10**kind.scale)
    elif kind.is_numeric() or kind == pl.Boolean:
        return (series.cast(pl.UInt8) if kind == pl.Boolean else series), Fraction(1)
    elif not kind.is_temporal():
        texts = series.cast(pl.String)
        whole = texts.cast(pl.Int64, strict=False)
        is_whole = whole.null_count() == texts.null_count()
        return whole if is_whole else texts.cast(pl.Float64, strict=False).fill_nan(None), Fraction(1)
    return pl.Series([None] * len(series), dtype=pl.Float64), Fraction(1)


def _cells_of_integers(values: IntArray, ends: list[Fraction]) -> Cells:
    """Exact for every 64-bit integer: narrow ranges by a table, wide ones as floats where these are exact."""
    if not len(values):
        return np.empty(0, np.int32)
    low, high = int(values.min()), int(values.max())
    if high - low <= max(len(values), 2**16):
        return _cells_by_steps(np.arange(low, high + 1, dtype=np.int64), ends)[values - low]
    if max([abs(low), abs(high), *(abs(math.ceil(end)) for end in ends)]) < _EXACT:
        return _cells_of_floats(values.astype(np.float64), ends)
    return _cells_by_steps(values, ends)


def _cells_by_steps(values: IntArray, ends: list[Fraction]) -> Cells:
    """Count the ends not above a value, and those below it: an end between two integers counts for both at once."""
    limit = 2**63 - 1
    at_least, above = (
        np.array([min(max(end, -limit), limit) for end in whole], np.int64)
        for whole in (map(math.ceil, ends), [math.floor(end) + 1 for end in ends])
    )
    cells = 1 + np.searchsorted(at_least, values, "right") + np.searchsorted(above, values, "right")
    return cells.astype(np.int32)


def _cells_of_floats(values: FloatArray, ends: list[Fraction]) -> Cells:
    line = np.array([*map(float, ends), np.nan])
    below = np.searchsorted(line[:-1], values, "left")
    cells: Cells = (1 + 2 * below + (line[below] == values)).astype(np.int32)
    return cells


@dataclass(frozen=True, slots=True)
class Axis:
    """The cells of one column: how many, the runs of cells of a label's set, and the cells of raw values."""

    cells: int
    runs: Callable[[ValueSet], list[Run]]
    place: Callable[[pl.Series], PlacedColumn]

    def numbers(self, sets: Iterable[ValueSet]) -> IntArray:
        """The number of the set that holds each cell, -1 of those in none."""
        numbers = np.full(self.cells, -1, np.int64)
        for number, values in enumerate(sets):
            for low, high in self.runs(values):
                numbers[low : high + 1] = number
        return numbers


def axis_of(meaning: LabelMeaning, sets: Sequence[ValueSet]) -> Axis:
    """The axis that tells apart what these sets of one column tell apart."""
    axis = _name_axis(meaning, sets) if meaning.type == "nominal" else _line_axis(meaning, sets)

    def place(series: pl.Series) -> PlacedColumn:
        known = axis.place(series)
        if not series.null_count():
            return known
        lost = known.cells == 0
        return replace(known, strangers=lost if known.strangers is None else lost | known.strangers)

    # Where a recoding has no missing values in a column, one is as strange as an unknown name.
    return replace(axis, place=place) if meaning.missing is False else axis


def _name_axis(meaning: LabelMeaning, sets: Sequence[ValueSet]) -> Axis:
    """A nominal column: a cell per leaf; without a taxonomy, per name that some label uses."""
    if meaning.tree is not None:
        leaves, below = meaning.tree.leaves, meaning.tree.below
    else:
        named = {name for values in sets for name in values.names}
        leaves = tuple(sorted(named if meaning.other is None else named | {meaning.other}))
        below = {leaf: (position, position) for position, leaf in enumerate(leaves)}
    cell_of = {leaf: position + 1 for position, leaf in enumerate(leaves)}
    unknown = len(leaves) + 1
    rest = unknown if meaning.other is None else cell_of.get(meaning.other, unknown)

    def runs(values: ValueSet) -> list[Run]:
        return _cells(values, unknown, [(below[name][0] + 1, below[name][1] + 1) for name in values.names])

    def place(series: pl.Series) -> PlacedColumn:
        codes, texts = distinct_texts(series)
        if series.dtype.is_numeric() or series.dtype == pl.Boolean:
            # As a name, a number or truth value may be written in several ways.
            ways = [(text, text.removesuffix(".0"), text.capitalize(), text.upper()) for text in texts]
            texts = [next((spelled for spelled in way if spelled in cell_of), way[0]) for way in ways]
        cells = np.array([0, *(cell_of.get(text, rest) for text in texts)], np.int32).take(codes)
        strange = cells == unknown
        return PlacedColumn(cells, 0, int(np.count_nonzero(strange)), strange if strange.any() else None)

    return Axis(unknown + 1, runs, place)


def _line_axis(meaning: LabelMeaning, sets: Sequence[ValueSet]) -> Axis:
    """An ordered column: with ends b1 < b2 < …, cells are missing, below b1, b1, between b1 and b2, b2, …"""
    intervals = [interval for values in sets for interval in values.intervals]
    ends = sorted({end for interval in intervals for end in (interval.lower, interval.upper) if end is not None})
    position = {end: i for i, end in enumerate(ends)}
    unknown = 2 * len(ends) + 2

    def run(interval: Interval) -> Run:
        low = 1 if interval.lower is None else 2 * position[interval.lower] + 2
        if interval.upper is None:
            return low, unknown - 1
        return low, 2 * position[interval.upper] + (2 if interval.closed else 1)

    return Axis(
        unknown + 1,
        lambda values: _cells(values, unknown, map(run, values.intervals)),
        lambda series: placed_on_line(series, meaning, ends=ends),
    )


def _cells(values: ValueSet, last: int, runs: Iterable[Run]) -> list[Run]:
    """The cells of a set as separate runs in rising order."""
    every = [(1, last)] if values.everything else list(runs)
    return joined([*every, (0, 0)] if values.missing else every)


def leaf_placer(leaves: Sequence[str], meaning: LabelMeaning) -> Callable[[pl.Series], IntArray]:
    """What finds the leaf of every value by the intervals that leaves name: from 1 on, 0: missing, -1: in none."""
    intervals = [leaf_interval(leaf, meaning) for leaf in leaves]
    sets = [ValueSet(intervals=() if interval is None else (interval,)) for interval in intervals]
    axis = axis_of(meaning, sets)
    numbers = axis.numbers(sets)
    leaf_of = np.where(numbers < 0, -1, numbers + 1)
    leaf_of[0] = 0
    return lambda series: leaf_of[axis.place(series).cells]


# --- boxes --------------------------------------------------------------------------------------------------------

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


Runs = tuple[IntArray, IntArray]
"""(run, end) The first and last cells of the runs of some sets; (set) where the runs of each begin, and those of the
last end."""


def box_space(axes: Sequence[Axis], sets: Sequence[Sequence[ValueSet | None]], label_of_group: IntArray) -> LabelBoxes:
    """The boxes of groups: `label_of_group` (group, axis) points into `sets[axis]`; an unread label makes no box."""
    runs_of_axis = []
    for axis, of_axis in zip(axes, sets, strict=True):
        runs: list[Run] = []
        begins = [0]
        for values in of_axis:
            runs.extend([] if values is None else axis.runs(values))
            begins.append(len(runs))
        runs_of_axis.append((np.array(runs, np.int64).reshape(-1, 2), np.array(begins, np.int64)))
    return boxes_of_runs(axes, runs_of_axis, label_of_group)


def boxes_of_runs(axes: Sequence[Axis], runs_of_axis: Sequence[Runs], label_of_group: IntArray) -> LabelBoxes:
    """The boxes of groups: `label_of_group` (group, axis) points into the sets of cells of each axis; an empty one
    makes no box.
    """
    starts, offsets, total = [np.zeros(1, np.int64)], [], 0
    for runs, begins in runs_of_axis:
        offsets.append(sum(map(len, starts)) - 1)
        starts.append(begins[1:] + total)
        total += len(runs)
    start_array = np.concatenate(starts).astype(np.int32)
    every = np.concatenate([np.empty((0, 2), np.int64), *(runs for runs, _ in runs_of_axis)])
    run_array = np.ascontiguousarray(every, np.int32)
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
Places = tuple[UInt32, ...]  # leaves, places, tests, runs
_ROWS_AT_ONCE = 1 << 14
_AXIS, _CUT, _LEFT = range(3)  # of a node that is no leaf


def locate_rows(boxes: LabelBoxes, columns: Sequence[Cells], *, rows: int) -> tuple[IntArray, npt.NDArray[np.uint8]]:
    """The group whose box holds each row, by its cell in each column (-1: none), and how many others do (up to 255)."""
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
    labels = boxes.labels[boxes.leaves]
    place, axis = np.nonzero(_doubts(boxes, columns))
    held = labels[place, axis]
    tests = np.stack([axis, boxes.starts[held], boxes.starts[held + 1]], axis=1)
    begin = np.searchsorted(place, np.arange(len(labels) + 1))
    places = np.stack([np.append(boxes.leaves, len(boxes.labels)), begin], axis=1)
    of_leaf = np.where(boxes.nodes[:, :1] < 0, boxes.nodes[:, 2:], 0)
    return tuple(np.ascontiguousarray(array, np.uint32) for array in (of_leaf, places, tests, boxes.runs))


def _doubts(boxes: LabelBoxes, columns: Sequence[Cells]) -> npt.NDArray[np.uint8]:
    """For every place and axis, whether the leaf may have one of these rows where its box has no cell."""
    from anonfit.auditing import kernels

    words = -(-max((axis.cells for axis in boxes.axes), default=1) // 64)
    reach = np.zeros((len(boxes.axes), 64 * words), np.uint8)
    for held, column in zip(reach, columns, strict=False):  # without rows there are no columns
        held[column.min() : column.max() + 1] = 1
    doubts = np.empty((len(boxes.leaves), len(boxes.axes)), np.uint8)
    height = _height(boxes.nodes)
    path = np.empty((height, 2), np.int64), np.empty((height, words), np.uint64)
    halves = np.pad(boxes.halves, ((0, 0), (0, -boxes.halves.shape[1] % 8))).view(np.uint64)
    geometry = boxes.labels, boxes.starts, boxes.runs
    bits = np.packbits(reach, axis=1, bitorder="little").view(np.uint64)
    kernels.doubtful((boxes.nodes, boxes.leaves), halves, geometry, bits, path, doubts)
    return doubts


def _height(nodes: Int32) -> int:
    """How many nodes the longest way down a tree has."""
    level, height = np.zeros(1, np.int64), 0
    while len(level):
        level, height = level[nodes[level, _AXIS] >= 0], height + 1
        level = nodes[level, _LEFT:].ravel().astype(np.int64)
    return height
