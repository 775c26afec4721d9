# SPDX-License-Identifier: Apache-2.0
"""How well selections can be answered from a release: a recipient must take every row whose region may hold what is
asked for, so those that do not are taken too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.targets import CodedSelections
from anonfit.engines.tree import Boxes, unpacked

TOGETHER = 256  # rectangles that are held against all regions at once
BLOCK = 1 << 25  # pairs of a group of rows and a rectangle that are looked at together


@dataclass(frozen=True, slots=True)
class Answers:
    """What selections ask for and what they get, in rows (or persons, where rows stand for several)."""

    true: NDArray[np.int64]  # (selection,) that satisfy it
    kept: NDArray[np.int64]  # (selection,) of these, those that are released
    answered: NDArray[np.int64]  # (selection,) released, and in a region that overlaps it
    weights: NDArray[np.float64]  # (selection,)

    @property
    def imprecision(self) -> NDArray[np.int64]:
        """Rows of the answer that do not satisfy the selection."""
        return self.answered - self.kept

    @property
    def precision(self) -> NDArray[np.float64]:
        """The share of the answer that satisfies the selection; 1 for an empty answer."""
        return np.where(self.answered > 0, self.kept / np.maximum(self.answered, 1), 1.0)

    @property
    def recall(self) -> NDArray[np.float64]:
        """The share of the rows asked for that the answer has; below 1 only where rows are withheld."""
        return np.where(self.true > 0, self.kept / np.maximum(self.true, 1), 1.0)

    @property
    def total(self) -> float:
        """The imprecision of all selections, each by its weight."""
        return float(self.weights @ self.imprecision)


def answer(
    selections: CodedSelections,
    boxes: Boxes,
    nodes: NDArray[np.integer[Any]],
    *,
    cells: Sequence[NDArray[np.integer[Any]]],
    true: NDArray[np.int64],
    kept: NDArray[np.int64] | None = None,
    counts: NDArray[Any] | None = None,
) -> Answers:
    """What each selection over codes asks for and gets from regions.

    boxes: what every node of the tree holds of each quasi-identifier, runs or sets of cells; nodes: (row,) the node of
    each row, -1 for a row that is withheld; cells: for each quasi-identifier the cell of each code (the codes
    themselves if the boxes are over codes); true: (selection,) how many rows satisfy each selection; kept: (selection,)
    how many of these are released, None for all; counts: (row,) how many persons each row stands for, None for one.
    """
    released = np.flatnonzero(nodes >= 0)
    different, place = np.unique(nodes[released], return_inverse=True)
    # Released rows of the same node and signature are a group: they are answered alike.
    count = len(selections.applies)
    keys, which = np.unique(place * count + selections.signatures[released], return_inverse=True)
    node, signature = keys // count, keys % count  # (group,)
    persons = None if counts is None else counts[released]
    sizes = np.bincount(which, weights=persons, minlength=len(keys)).astype(np.int64)  # (group,)
    answered = np.zeros(len(selections.weights), np.int64)
    for chunk, overlaps, numbers, starts in _overlapping(selections, boxes, different, cells):
        for block in _blocks(len(sizes), overlaps.shape[1]):
            hits = overlaps[node[block]] & selections.applies[signature[block], chunk].view(np.bool_)
            answered[numbers] += sizes[block] @ np.logical_or.reduceat(hits, starts, axis=1)
    return Answers(true, true if kept is None else kept, answered, selections.weights)


def overlapping(
    selections: CodedSelections,
    boxes: Boxes,
    nodes: NDArray[np.integer[Any]],
    *,
    cells: Sequence[NDArray[np.integer[Any]]],
) -> NDArray[np.bool_]:
    """(row, selection) Which rows each selection is answered with: those whose region may hold what is asked for.
    Arguments are as for `answer`, but that no row is withheld.
    """
    different, place = np.unique(nodes, return_inverse=True)
    meets = np.zeros((len(nodes), len(selections.weights)), np.bool_)
    for chunk, overlaps, numbers, starts in _overlapping(selections, boxes, different, cells):
        hits = overlaps[place] & selections.applies[selections.signatures, chunk].view(np.bool_)
        meets[:, numbers] = np.logical_or.reduceat(hits, starts, axis=1)
    return meets


def _overlapping(
    selections: CodedSelections, boxes: Boxes, nodes: NDArray[Any], cells: Sequence[NDArray[np.integer[Any]]]
) -> Iterator[tuple[slice, NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]]:
    """For some rectangles at a time: which nodes each overlaps, (node, rectangle), the selections that they are of, and
    at which rectangle each of these begins.
    """
    for chunk in _chunks(selections.selection):
        overlaps = _overlaps(boxes, nodes, _on_cells(selections.rectangles[chunk], cells, boxes))
        yield chunk, overlaps, *np.unique(selections.selection[chunk], return_index=True)


def _chunks(selection: NDArray[np.int64]) -> Iterator[slice]:
    """Rectangles by the hundred; those of one selection stay together."""
    start = last = 0
    for end in np.cumsum(np.bincount(selection)).tolist():
        if end - start > TOGETHER and last > start:
            yield slice(start, last)
            start = last
        last = end
    if last > start:
        yield slice(start, last)


def _blocks(groups: int, rectangles: int) -> Iterator[slice]:
    step = max(1, BLOCK // max(1, rectangles))
    return (slice(start, start + step) for start in range(0, groups, step))


def _on_cells(
    rectangles: NDArray[np.uint8], cells: Sequence[NDArray[np.integer[Any]]], boxes: Boxes
) -> Iterator[NDArray[np.uint8]]:
    """For each quasi-identifier which cells have a code of each rectangle. (rectangle, cell)"""
    first = 0
    for column, cell in enumerate(cells):
        masks = rectangles[:, first : first + len(cell)]
        first += len(cell)
        size = 1 + max(int(cell.max(initial=0)), int(boxes.last[:, column].max(initial=0)))
        order = np.argsort(cell, kind="stable")
        held, starts = np.unique(cell[order], return_index=True)
        reduced = np.zeros((len(masks), size), np.uint8)
        reduced[:, held] = np.maximum.reduceat(masks[:, order], starts, axis=1)
        yield reduced


def _overlaps(boxes: Boxes, nodes: NDArray[Any], masks: Iterator[NDArray[np.uint8]]) -> NDArray[np.bool_]:
    """Whether each node shares a cell with each rectangle in every column. (node, rectangle)"""
    sharing: NDArray[np.bool_] | None = None
    for column, mask in enumerate(masks):
        if sharing is None:
            sharing = np.ones((len(nodes), len(mask)), np.bool_)
        restricted = np.flatnonzero(~mask.all(axis=1))
        if len(restricted):
            sharing[:, restricted] &= _shares(boxes, nodes, column, mask[restricted])
    assert sharing is not None
    return sharing


def _shares(boxes: Boxes, nodes: NDArray[Any], column: int, mask: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether each node shares a cell of one column with each rectangle. (node, rectangle)"""
    parts = boxes.parts(nodes, column)
    before = np.zeros((mask.shape[1] + 1, len(mask)), np.int32)  # cells of the rectangle before each cell
    np.cumsum(mask.T, axis=0, out=before[1:])
    of_part: NDArray[np.bool_] = before[parts.last + 1] > before[parts.first]
    sets = np.flatnonzero(parts.set_of >= 0)
    within = mask.T.astype(np.float32)
    for block in _blocks(len(sets), mask.shape[1]):
        held = unpacked(parts.sets[parts.set_of[sets[block]]], mask.shape[1]).astype(np.float32)
        of_part[sets[block]] = held @ within > 0
    shared: NDArray[np.bool_] = of_part[parts.of_node]
    return shared
