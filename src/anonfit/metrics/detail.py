# SPDX-License-Identifier: Apache-2.0
"""What regions leave of the quasi-identifiers, found from what is released: regions, and how many persons are in them.

The label of a person rules out all others who do not fit it. How many fit a label is not said by a release whose
labels overlap; what is likeliest is found by rounds of expectation and maximization over the column's cells. The
picture of two columns is a slice through the tiling, at one cell of all others: it is drawn from the recoding alone,
cuts and cells, never from records; the persons of a region are those of a group of the released file.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.tree import LEAF, Boxes, Grid, blocks_of, unpacked
from anonfit.metrics.arrays import AnyIntegers, Floats, Integers
from anonfit.metrics.workload import depths
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding
from anonfit.tables.scales import cut_text

ROUNDS = 30
SPANS = (0.05, 0.25, 0.5, 1.0)
"""Labels are sorted by the share of all persons that fit them: up to each of these; everybody fits the last sort."""
EVERYBODY = 1 - 1e-9
SMALLEST = 1e-300
MANY = 1 << 23
"""More pairs of a set and a cell are not kept, and looked at in fewer rounds."""
FEW_ROUNDS = 3
DENSE = 1 << 22
"""With more possible keys, or many more than there are, keys are sorted instead of counted."""


@dataclass(frozen=True, slots=True)
class Detail:
    """What is left of a column."""

    name: str
    labels: int
    ruled_out: float
    """The share of all persons that the label of a person rules out, on average."""
    at_most: float
    """The same if every cell stood alone: for numbers and dates, if everybody's value were known exactly."""
    spans: tuple[int, ...]
    """How many persons have a label of each sort of `SPANS`, and at last those of whom nothing is said."""
    frequent_label: str
    frequent_persons: int
    shares: Floats
    """(cell,) the likely share of all persons in each cell of the column."""

    @property
    def kept(self) -> float:
        """The part of the column's detail that is left."""
        return min(self.ruled_out / self.at_most, 1.0) if self.at_most > 0 else 1.0


def details(recoding: Recoding, nodes: AnyIntegers, persons: Integers) -> tuple[Detail, ...]:
    """What is left of each quasi-identifier by regions, the nodes (region,), that hold persons (region,)."""
    return tuple(
        _detail(column, labels_of(recoding.boxes, nodes, index, column.size, persons))
        for index, column in enumerate(recoding.columns)
    )


@dataclass(frozen=True, slots=True)
class ColumnLabels:
    """The different parts of a column that regions hold, runs before sets, and how many persons have each."""

    first: Integers  # (run,)
    last: Integers  # (run,)
    sets: NDArray[np.uint8]  # (set, byte)
    persons: Integers  # (label,) of the runs, then of the sets; or (class, label)

    def cells(self, label: int, size: int) -> Sequence[int]:
        """The cells of a label."""
        if label < len(self.first):
            return range(int(self.first[label]), int(self.last[label]) + 1)
        bits = self.sets[label - len(self.first)]
        return [int(cell) for cell in np.flatnonzero(unpacked(bits[None, :], size)[0])]


def labels_of(boxes: Boxes, nodes: AnyIntegers, column: int, size: int, persons: Integers) -> ColumnLabels:
    """The labels of a column, and the persons of each, of which regions hold so many: (region,), or (class, region)."""
    keys = boxes.first[nodes, column].astype(np.int64) * size + boxes.last[nodes, column]
    column_sets = boxes.sets_of.get(column)
    number = np.full(len(nodes), -1) if column_sets is None else column_sets.of_node[nodes]
    runs, by_set = number < 0, number >= 0
    keys, held = _counted(keys[runs], persons[..., runs], size * size)
    sets, held_by_set = _counted(number[by_set].astype(np.int64), persons[..., by_set], DENSE)
    bits = np.zeros((0, 1), np.uint8) if column_sets is None else column_sets.bits[sets]
    return ColumnLabels(keys // size, keys % size, bits, np.concatenate([held, held_by_set], axis=-1))


def _counted(keys: Integers, persons: Integers, size: int) -> tuple[Integers, Integers]:
    """The different keys, all below `size`, and the persons of each. They are counted, not sorted, where there are few
    possible ones.
    """
    if size <= min(DENSE, 16 * len(keys)):
        different = np.flatnonzero(np.bincount(keys))
        place = np.empty(size, np.int64)
        place[different] = np.arange(len(different))
        which = place[keys]
    else:
        different, which = np.unique(keys, return_inverse=True)
    return different, _binned(which, persons, len(different)).astype(np.int64)


def _binned(places: Integers, weights: NDArray[Any], size: int) -> Floats:
    """The sum of weights, (…, item), in each of `size` places, of which every item has one: (…, place)."""
    rows = weights.reshape(math.prod(weights.shape[:-1]), -1)
    if len(rows) > 1:
        places = (np.arange(len(rows))[:, None] * size + places).ravel()
    sums = np.bincount(places, weights=rows.ravel(), minlength=len(rows) * size)
    return sums.reshape(*weights.shape[:-1], size).astype(np.float64, copy=False)


def _detail(column: RecodedColumn, labels: ColumnLabels) -> Detail:
    held = labels.persons
    shares = cell_shares(labels, column.size)
    fitting = np.minimum(_Fit(labels, column.size).sums(shares), 1.0)
    sort = np.where(fitting >= EVERYBODY, len(SPANS), np.searchsorted(SPANS, fitting - 1e-12))
    frequent = int(held.argmax())
    # Numbers and values that are not named are more than there are cells.
    is_finer = isinstance(column, OrderedCells) or (isinstance(column, NominalCells) and column.names_nothing)
    return Detail(
        name=column.name,
        labels=len(held),
        ruled_out=max(0.0, 1 - float((held * fitting).sum()) / max(int(held.sum()), 1)),
        at_most=1.0 if is_finer else 1 - float((shares * shares).sum()),
        spans=tuple(np.bincount(sort, weights=held, minlength=len(SPANS) + 1).astype(np.int64).tolist()),
        frequent_label=column.label(labels.cells(frequent, column.size)),
        frequent_persons=int(held[frequent]),
        shares=shares,
    )


def cell_shares(labels: ColumnLabels, size: int) -> Floats:
    """The likeliest share of all persons, or of those of each class, in each cell of a column. (…, cell)"""
    total = labels.persons.sum(axis=-1, keepdims=True, dtype=np.float64)
    uniform = shares = np.full((*labels.persons.shape[:-1], size), 1 / size)
    if size == 1 or not total.any():
        return shares
    fit = _Fit(labels, size)
    for _ in range(fit.rounds):
        fitting = fit.sums(shares)
        shares = shares * fit.spread(labels.persons / np.maximum(fitting, SMALLEST)) / np.maximum(total, 1.0)
    return shares if total.all() else np.where(total > 0, shares, uniform)


class _Fit:
    """Which cells each label of a column holds: runs by their ends, sets as pairs of a set and a cell of it."""

    def __init__(self, labels: ColumnLabels, size: int) -> None:
        self.labels, self.size = labels, size
        pairs = len(labels.sets) * size
        self.rounds = ROUNDS if pairs <= MANY else FEW_ROUNDS
        self._kept: list[tuple[NDArray[np.intp], NDArray[np.intp]]] | None = None
        self._kept = list(self._pairs()) if pairs <= MANY else None

    def _pairs(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Pairs of a set and a cell, of as many sets at a time as fit."""
        if self._kept is not None:
            yield from self._kept
            return
        for block in blocks_of(len(self.labels.sets), self.size):
            number, cell = np.nonzero(unpacked(self.labels.sets[block], self.size))
            yield number + block.start, cell

    def sums(self, of_cell: Floats) -> Floats:
        """The sum over the cells of each label, of (…, cell): (…, label)."""
        labels = self.labels
        before = np.zeros((*of_cell.shape[:-1], self.size + 1))
        np.cumsum(of_cell, axis=-1, out=before[..., 1:])
        runs = before[..., labels.last + 1] - before[..., labels.first]
        sets = np.zeros((*of_cell.shape[:-1], len(labels.sets)))
        for number, cell in self._pairs():
            sets += _binned(number, of_cell[..., cell], len(labels.sets))
        return np.concatenate([runs, sets], axis=-1)

    def spread(self, of_label: Floats) -> Floats:
        """The sum over the labels that hold each cell, of (…, label): (…, cell)."""
        labels = self.labels
        of_run, of_set = of_label[..., : len(labels.first)], of_label[..., len(labels.first) :]
        steps = _binned(labels.first, of_run, self.size + 1) - _binned(labels.last + 1, of_run, self.size + 1)
        sums: Floats = np.cumsum(steps, axis=-1)[..., : self.size]
        for number, cell in self._pairs():
            sums = sums + _binned(cell, of_set[..., number], self.size)
        return np.maximum(sums, 0.0)


def detail_content(details: Sequence[Detail], counted: Literal["persons", "records"]) -> list[dict[str, Any]]:
    """One line per quasi-identifier. Who has a label is counted in records where a person may have several."""
    return [
        {
            "column": detail.name,
            "kept": round(detail.kept, 3),
            "ruled_out": round(detail.ruled_out, 3),
            "at_most": round(detail.at_most, 3),
            "labels": detail.labels,
            f"{counted}_by_span": [
                {"up_to": up_to, counted: number} for up_to, number in zip((*SPANS, None), detail.spans, strict=True)
            ],
            "frequent_label": detail.frequent_label,
            f"frequent_{counted}": detail.frequent_persons,
        }
        for detail in details
    ]


MOST = 240
"""More rectangles are not drawn; regions beyond are drawn as one."""


@dataclass(frozen=True, slots=True)
class _Slice:
    """The tree of regions as one sees it who holds all columns but two at a cell."""

    recoding: Recoding
    drawn: tuple[int, int]  # the columns across and up
    held: Mapping[int, int]  # column -> cell
    persons: Integers  # (node,) in it and all below
    first_child: NDArray[np.int32]  # (node,)

    def descend(self, node: int) -> int:
        """The next node that divides one of the two columns, or a region."""
        tree = self.recoding.tree
        while tree.column[node] != LEAF and int(tree.column[node]) in self.held:
            cell, first = self.held[int(tree.column[node])], int(self.first_child[node])
            if tree.set_of[node] >= 0:
                node = first if bool((tree.sets[tree.set_of[node]] == cell).any()) else first + 1
            else:
                starts = tree.start[first : first + tree.children[node]]
                node = first + max(0, int(np.searchsorted(starts, cell, side="right")) - 1)
        return node

    def children(self, node: int) -> Sequence[int]:
        """The parts of a node that divides one of the two columns."""
        first = int(self.first_child[node])
        return [self.descend(child) for child in range(first, first + int(self.recoding.tree.children[node]))]

    def box(self, node: int) -> tuple[int, ...]:
        """The first and last cell of a node in the one column and in the other."""
        boxes = self.recoding.boxes
        return tuple(int(ends[node, column]) for column in self.drawn for ends in (boxes.first, boxes.last))


def partition_content(
    recoding: Recoding, nodes: AnyIntegers, persons: Integers, shares: Sequence[Floats]
) -> dict[str, Any] | None:
    """The rectangles of the two ordered quasi-identifiers that are divided most; None if fewer than two are divided.

    A rectangle is the edges it lies between across and up, and the persons of its region: 0 of an empty one, None where
    it is divided further than is drawn. nodes, persons: (region,) those that hold somebody, and how many. shares: for
    each quasi-identifier, the likely share of all persons in each cell. (cell,)
    """
    if isinstance(recoding.shape, Grid):
        return _grid_content(recoding, recoding.shape, nodes, persons)
    tree = recoding.tree
    chosen = _most_divided(recoding, np.bincount(tree.column[tree.column != LEAF], minlength=len(recoding.columns)))
    if chosen is None:
        return None
    own = np.zeros(len(tree.column), np.int64)
    own[nodes] = persons
    whole = _with_all_below(recoding, own)
    held = _held(recoding, chosen, whole, shares)
    boxes, sizes = _rectangles(_Slice(recoding, chosen, held, whole, tree.first_child))
    return _picture(recoding, chosen, {index: [cell] for index, cell in held.items()}, boxes, sizes, len(nodes))


def _grid_content(recoding: Recoding, grid: Grid, nodes: AnyIntegers, persons: Integers) -> dict[str, Any] | None:
    """The rectangles of a grid: all columns but two are held at the parts where most persons are."""
    chosen = _most_divided(recoding, [column.parts - 1 for column in grid.columns])
    if chosen is None:
        return None
    across, up = chosen
    parts = grid.met[nodes]
    others = [index for index in range(len(grid.columns)) if index not in chosen]
    slices, of_node = np.unique(parts[:, others], axis=0, return_inverse=True)
    most = int(np.bincount(of_node.ravel(), weights=persons, minlength=len(slices)).argmax())
    inside = of_node.ravel() == most
    counts = np.zeros((grid.columns[across].parts, grid.columns[up].parts), np.int64)
    np.add.at(counts, (parts[inside, across], parts[inside, up]), persons[inside])
    # Where parts begin, and in the end how many cells there are.
    edges = [np.flatnonzero(np.diff(grid.columns[index].part_of, prepend=-1, append=-1)).tolist() for index in chosen]
    blocks = list(product(*_blocks([len(begins) - 1 for begins in edges])))
    ends = [
        [end for begins, part in zip(edges, block, strict=True) for end in (begins[part.start], begins[part.stop] - 1)]
        for block in blocks
    ]
    boxes = np.array(ends, np.int64)
    sizes = [int(counts[block].sum()) if counts[block].size == 1 else None for block in blocks]
    held = {index: recoding.boxes.cells(int(nodes[inside][0]), index) for index in others}
    return _picture(recoding, chosen, held, boxes, sizes, len(nodes))


def _picture(
    recoding: Recoding,
    chosen: tuple[int, int],
    held: Mapping[int, Sequence[int]],
    boxes: Integers,
    sizes: Sequence[int | None],
    regions: int,
) -> dict[str, Any]:
    """Rectangles as plain data. held: the cells at which other columns are held; boxes: (rectangle, end)"""
    left, right, across = _axis(recoding, chosen[0], boxes[:, 0], boxes[:, 1])
    bottom, top, up = _axis(recoding, chosen[1], boxes[:, 2], boxes[:, 3])
    columns = recoding.columns
    return {
        "across": across,
        "up": up,
        "held": [
            {"column": columns[index].name, "label": columns[index].label(cells)} for index, cells in held.items()
        ],
        # A rectangle of missing values alone has no place between the edges.
        "rectangles": [
            [*edges, persons]
            for *edges, persons in zip(left, right, bottom, top, sizes, strict=True)
            if edges[0] < edges[1] and edges[2] < edges[3]
        ],
        "cut_short": None in sizes,
        "regions": regions,
    }


def _blocks(counts: Sequence[int]) -> list[list[slice]]:
    """Neighbouring parts of two columns that are drawn as one, so that there are not too many rectangles."""
    steps = [1, 1]
    while -(-counts[0] // steps[0]) * -(-counts[1] // steps[1]) > MOST:
        wider = 0 if counts[0] / steps[0] >= counts[1] / steps[1] else 1
        steps[wider] += 1
    return [
        [slice(start, min(start + step, count)) for start in range(0, count, step)]
        for count, step in zip(counts, steps, strict=True)
    ]


def _most_divided(recoding: Recoding, times: Sequence[int] | Integers) -> tuple[int, int] | None:
    """The two ordered columns that are divided most often, in their order. times: how often each is divided"""
    ordered = [index for index, column in enumerate(recoding.columns) if not isinstance(column, NominalCells)]
    divided = sorted((index for index in ordered if times[index] > 0), key=lambda index: -int(times[index]))
    return (min(divided[:2]), max(divided[:2])) if len(divided) > 1 else None


def _held(recoding: Recoding, chosen: tuple[int, int], persons: Integers, shares: Sequence[Floats]) -> dict[int, int]:
    """Where the other columns are held: in a region on the way to which most persons are told apart by the two."""
    tree = recoding.tree
    divided = np.where(np.isin(tree.column, chosen), persons, 0)
    below, first = _with_all_below(recoding, divided) + persons, tree.first_child
    node = 0
    while tree.column[node] != LEAF:
        start = int(first[node])
        node = start + int(below[start : start + int(tree.children[node])].argmax())
    held = {}
    for index, column in enumerate(recoding.columns):
        if index not in chosen:
            cells = recoding.boxes.cells(node, index)
            known = [cell for cell in cells if cell > 0 or not column.has_missing] or list(cells)
            held[index] = max(known, key=lambda cell: float(shares[index][cell]))
    return held


def _with_all_below(recoding: Recoding, own: Integers) -> Integers:
    """What each node has, together with all nodes below it. (node,)"""
    sums, parent = own.copy(), recoding.parents
    for depth in reversed(depths(parent)[1:]):
        np.add.at(sums, parent[depth], sums[depth])
    return sums


def _rectangles(seen: _Slice) -> tuple[Integers, list[int | None]]:
    """The boxes of a slice and the persons of each; the node with most persons is divided next, up to `MOST` boxes."""
    tree = seen.recoding.tree
    root = seen.descend(0)
    waiting = [(-int(seen.persons[root]), root)]
    done: list[int] = []
    while waiting and len(waiting) + len(done) < MOST:
        _, node = heapq.heappop(waiting)
        if tree.column[node] == LEAF:
            done.append(node)
            continue
        for child in seen.children(node):
            heapq.heappush(waiting, (-int(seen.persons[child]), child))
    nodes = sorted([*done, *(node for _, node in waiting)], key=seen.box)
    persons = [int(seen.persons[node]) if tree.column[node] == LEAF else None for node in nodes]
    return np.array([seen.box(node) for node in nodes], np.int64), persons


def _axis(
    recoding: Recoding, index: int, first: Integers, last: Integers
) -> tuple[list[int], list[int], dict[str, Any]]:
    """The edges between which boxes lie, as places in the list of all edges that any of them has, and that list."""
    column = recoding.columns[index]
    shift = int(column.has_missing)
    low, high = np.maximum(first - shift, 0), np.maximum(last - shift + 1, 0)
    used = np.unique(np.concatenate([low, high]))
    if isinstance(column, OrdinalCells):
        texts: list[str | None] = [*column.order, None]
        axis: dict[str, Any] = {"column": column.name, "scale": "order", "places": used.tolist()}
    else:
        assert isinstance(column, OrderedCells)
        ends = tuple(cut_text(end) for end in column.domain) or (None, None)
        texts = [ends[0], *map(cut_text, column.cuts), ends[1]]
        axis = {"column": column.name, "scale": "number" if column.scale.is_number else str(column.scale)}
    axis["edges"] = [texts[edge] for edge in used.tolist()]
    return np.searchsorted(used, low).tolist(), np.searchsorted(used, high).tolist(), axis
