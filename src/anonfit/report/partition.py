# SPDX-License-Identifier: Apache-2.0
"""The regions over two quasi-identifiers as rectangles: a slice through the tiling, at one cell of all others.

It is drawn from the recoding alone, cuts and cells, never from records; the persons of a region are those of a group
of the released file.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.tree import LEAF
from anonfit.metrics.held_out import depths
from anonfit.recoding.boxes import Grid
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells
from anonfit.recoding.recoding import Recoding
from anonfit.tables.scales import cut_text

__all__ = ["MOST", "partition_content"]

MOST = 240
"""More rectangles are not drawn; regions beyond are drawn as one."""

Box = tuple[int, int, int, int]  # first and last cell of the one column and of the other


@dataclass(frozen=True, slots=True)
class _Slice:
    """The tree of regions as one sees it who holds all columns but two at a cell."""

    recoding: Recoding
    across: int
    up: int
    held: Mapping[int, int]  # column -> cell
    persons: NDArray[np.int64]  # (node,) in it and all below
    first_child: NDArray[np.int32]  # (node,)

    def descend(self, node: int) -> int:
        """The next node that divides one of the two columns, or a region."""
        tree = self.recoding.tree
        while tree.column[node] != LEAF and int(tree.column[node]) in self.held:
            node = self._child(node, int(tree.column[node]))
        return node

    def _child(self, node: int, column: int) -> int:
        """The child that has the cell at which a column is held."""
        tree, cell, first = self.recoding.tree, self.held[column], int(self.first_child[node])
        if tree.set_of[node] >= 0:
            return first if bool((tree.sets[tree.set_of[node]] == cell).any()) else first + 1
        starts = tree.start[first : first + tree.children[node]]
        return first + max(0, int(np.searchsorted(starts, cell, side="right")) - 1)

    def children(self, node: int) -> Sequence[int]:
        """The parts of a node that divides one of the two columns."""
        first = int(self.first_child[node])
        return [self.descend(child) for child in range(first, first + int(self.recoding.tree.children[node]))]

    def box(self, node: int) -> Box:
        """The cells of a node."""
        boxes = self.recoding.boxes
        return (
            int(boxes.first[node, self.across]),
            int(boxes.last[node, self.across]),
            int(boxes.first[node, self.up]),
            int(boxes.last[node, self.up]),
        )


def partition_content(
    recoding: Recoding,
    nodes: NDArray[np.integer[Any]],
    persons: NDArray[np.int64],
    shares: Sequence[NDArray[np.float64]],
) -> dict[str, Any] | None:
    """The rectangles of the two ordered quasi-identifiers that are divided most; None if fewer than two are divided.

    Args:
        recoding: The regions.
        nodes: (region,) the regions that hold somebody.
        persons: (region,) how many persons each holds.
        shares: For each quasi-identifier, the likely share of all persons in each cell. (cell,)

    Returns:
        Plain data. A rectangle is the edges it lies between across and up, and the persons of its region: 0 of an
        empty one, None where it is divided further than is drawn.
    """
    if isinstance(recoding.shape, Grid):
        return _grid_content(recoding, recoding.shape, nodes, persons)
    chosen = _most_divided(recoding)
    if chosen is None:
        return None
    across, up = chosen
    own = np.zeros(len(recoding.tree.column), np.int64)
    own[nodes] = persons
    whole = _with_all_below(recoding, own)
    held = _held(recoding, chosen, whole, shares)
    seen = _Slice(recoding, across, up, held, whole, recoding.tree.first_child)
    boxes, told = _rectangles(seen)
    left, right, across_axis = _axis(recoding, across, boxes[:, 0], boxes[:, 1])
    bottom, top, up_axis = _axis(recoding, up, boxes[:, 2], boxes[:, 3])
    # A rectangle of missing values alone has no place between the edges.
    rectangles = [
        [*edges, one]
        for *edges, one in zip(left, right, bottom, top, told, strict=True)
        if edges[0] < edges[1] and edges[2] < edges[3]
    ]
    return {
        "across": across_axis,
        "up": up_axis,
        "held": [
            {"column": recoding.columns[index].name, "label": recoding.columns[index].label([cell])}
            for index, cell in held.items()
        ],
        "rectangles": rectangles,
        "cut_short": None in told,
        "regions": len(nodes),
    }


def _grid_content(
    recoding: Recoding, grid: Grid, nodes: NDArray[np.integer[Any]], persons: NDArray[np.int64]
) -> dict[str, Any] | None:
    """The rectangles of a grid: all columns but two are held at the parts where most persons are."""
    times = [
        0 if isinstance(column, NominalCells) else cells.parts - 1
        for column, cells in zip(recoding.columns, grid.columns, strict=True)
    ]
    chosen = _two_most(times)
    if chosen is None:
        return None
    across, up = chosen
    parts = grid.met[nodes]
    others = [index for index in range(len(times)) if index not in chosen]
    slices, of_node = np.unique(parts[:, others], axis=0, return_inverse=True)
    most = int(np.bincount(of_node.ravel(), weights=persons, minlength=len(slices)).argmax())
    inside = of_node.ravel() == most
    held = np.zeros((grid.columns[across].parts, grid.columns[up].parts), np.int64)
    np.add.at(held, (parts[inside, across], parts[inside, up]), persons[inside])
    runs = [_runs(grid.columns[index].part_of) for index in chosen]
    blocks = _blocks(len(runs[0]), len(runs[1]))
    drawn = [(*_joined(runs[0], one), *_joined(runs[1], other)) for one in blocks[0] for other in blocks[1]]
    boxes = np.array(drawn, np.int64)
    told = [
        int(held[one, other].sum()) if held[one, other].size == 1 else None for one in blocks[0] for other in blocks[1]
    ]
    left, right, across_axis = _axis(recoding, across, boxes[:, 0], boxes[:, 1])
    bottom, top, up_axis = _axis(recoding, up, boxes[:, 2], boxes[:, 3])
    labels = recoding.boxes
    return {
        "across": across_axis,
        "up": up_axis,
        "held": [
            {
                "column": recoding.columns[index].name,
                "label": recoding.columns[index].label(labels.cells(int(nodes[inside][0]), index)),
            }
            for index in others
        ],
        "rectangles": [
            [*edges, one]
            for *edges, one in zip(left, right, bottom, top, told, strict=True)
            if edges[0] < edges[1] and edges[2] < edges[3]
        ],
        "cut_short": None in told,
        "regions": len(nodes),
    }


def _blocks(across: int, up: int) -> tuple[list[slice], list[slice]]:
    """Neighbouring parts of two columns that are drawn as one, so that there are not too many rectangles."""
    counts, steps = [across, up], [1, 1]
    while -(-counts[0] // steps[0]) * -(-counts[1] // steps[1]) > MOST:
        wider = 0 if counts[0] / steps[0] >= counts[1] / steps[1] else 1
        steps[wider] += 1
    first, second = (
        [slice(start, min(start + step, count)) for start in range(0, count, step)]
        for count, step in zip(counts, steps, strict=True)
    )
    return first, second


def _joined(runs: list[tuple[int, int]], block: slice) -> tuple[int, int]:
    """The first and last cell of neighbouring parts."""
    return runs[block.start][0], runs[block.stop - 1][1]


def _runs(part_of: NDArray[np.int32]) -> list[tuple[int, int]]:
    """The first and last cell of each part."""
    starts = np.flatnonzero(np.diff(part_of, prepend=-1))
    return list(zip(starts.tolist(), [*(starts[1:] - 1).tolist(), len(part_of) - 1], strict=True))


def _most_divided(recoding: Recoding) -> tuple[int, int] | None:
    """The two ordered columns that are divided most often, in their order."""
    times = np.bincount(recoding.tree.column[recoding.tree.column != LEAF], minlength=len(recoding.columns))
    return _two_most(
        [0 if isinstance(column, NominalCells) else int(times[index]) for index, column in enumerate(recoding.columns)]
    )


def _two_most(times: Sequence[int]) -> tuple[int, int] | None:
    """The two columns that are divided most often, in their order."""
    ordered = [index for index, number in enumerate(times) if number > 0]
    first, second = [*sorted(ordered, key=lambda index: -int(times[index]))[:2], -1, -1][:2]
    return None if second < 0 else (min(first, second), max(first, second))


def _held(
    recoding: Recoding,
    chosen: tuple[int, int],
    persons: NDArray[np.int64],
    shares: Sequence[NDArray[np.float64]],
) -> dict[int, int]:
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


def _with_all_below(recoding: Recoding, own: NDArray[np.int64]) -> NDArray[np.int64]:
    """What each node has, together with all nodes below it. (node,)"""
    children = recoding.tree.children
    found = own.copy()
    parent = np.append(-1, np.repeat(np.arange(len(children)), children))
    for depth in reversed(depths(parent)[1:]):
        np.add.at(found, parent[depth], found[depth])
    return found


def _rectangles(seen: _Slice) -> tuple[NDArray[np.int64], list[int | None]]:
    """The boxes of a slice, and the persons of each; the node with most persons is divided next, until there are too
    many.
    """
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
    recoding: Recoding, index: int, first: NDArray[np.int64], last: NDArray[np.int64]
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
        axis = {"column": column.name, "scale": str(column.scale)}
    axis["edges"] = [texts[edge] for edge in used.tolist()]
    return np.searchsorted(used, low).tolist(), np.searchsorted(used, high).tolist(), axis
