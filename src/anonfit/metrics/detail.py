# SPDX-License-Identifier: Apache-2.0
"""How much detail regions leave of each quasi-identifier, found from what is released: regions and how many are in
them.

The label of a person rules out all others who do not fit it. How many fit a label is not said by a release whose
labels overlap; what is likeliest is found by rounds of expectation and maximization over the column's cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.bits import blocks_of, unpacked
from anonfit.recoding.boxes import Boxes
from anonfit.recoding.columns import OrderedCells, RecodedColumn
from anonfit.recoding.recoding import Recoding

__all__ = ["SPANS", "Detail", "cell_shares", "details", "labels_of"]

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
    shares: NDArray[np.float64]
    """(cell,) the likely share of all persons in each cell of the column."""

    @property
    def kept(self) -> float:
        """The part of the column's detail that is left."""
        return min(self.ruled_out / self.at_most, 1.0) if self.at_most > 0 else 1.0


def details(recoding: Recoding, nodes: NDArray[np.integer], persons: NDArray[np.int64]) -> tuple[Detail, ...]:
    """What is left of each quasi-identifier.

    Args:
        recoding: The regions.
        nodes: (region,) the regions that hold somebody.
        persons: (region,) how many each holds.

    Returns:
        One entry per quasi-identifier, in their order.
    """
    held = [
        labels_of(recoding.boxes, nodes, index, column.size, persons) for index, column in enumerate(recoding.columns)
    ]
    return tuple(_detail(column, labels) for column, labels in zip(recoding.columns, held, strict=True))


@dataclass(frozen=True, slots=True)
class Labels:
    """The different parts of a column that regions hold, runs before sets, and how many persons have each."""

    first: NDArray[np.int64]  # (run,)
    last: NDArray[np.int64]  # (run,)
    sets: NDArray[np.uint8]  # (set, byte)
    persons: NDArray[np.int64]  # (label,) of the runs, then of the sets

    def cells(self, label: int, size: int) -> Sequence[int]:
        """The cells of a label."""
        if label < len(self.first):
            return range(int(self.first[label]), int(self.last[label]) + 1)
        bits = self.sets[label - len(self.first)]
        return [int(cell) for cell in np.flatnonzero(unpacked(bits[None, :], size)[0])]


def labels_of(boxes: Boxes, nodes: NDArray[np.integer], column: int, size: int, persons: NDArray[np.int64]) -> Labels:
    """The labels of a column. Keys are counted, not sorted, where there are few possible ones."""
    keys = boxes.first[nodes, column].astype(np.int64) * size + boxes.last[nodes, column]
    found = boxes.sets_of.get(column)
    number = np.full(len(nodes), -1) if found is None else found.of_node[nodes]
    runs, by_set = number < 0, number >= 0
    keys, held = _counted(keys[runs], persons[runs], size * size)
    sets, held_by_set = _counted(number[by_set].astype(np.int64), persons[by_set], DENSE)
    bits = np.zeros((0, 1), np.uint8) if found is None else found.bits[sets]
    return Labels(keys // size, keys % size, bits, np.concatenate([held, held_by_set]))


def _counted(
    keys: NDArray[np.int64], persons: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different keys, all below `size`, and the persons of each."""
    if size <= min(DENSE, 16 * len(keys)):
        total = np.bincount(keys, weights=persons).astype(np.int64)
        found = np.flatnonzero(total)
        return found, total[found]
    found, which = np.unique(keys, return_inverse=True)
    return found, np.bincount(which, weights=persons, minlength=len(found)).astype(np.int64)


def _detail(column: RecodedColumn, labels: Labels) -> Detail:
    held = labels.persons
    shares = cell_shares(labels, column.size)
    fitting = np.minimum(_Fit(labels, column.size).sums(shares), 1.0)
    sort = np.where(fitting >= EVERYBODY, len(SPANS), np.searchsorted(SPANS, fitting - 1e-12))
    frequent = int(held.argmax())
    return Detail(
        name=column.name,
        labels=len(held),
        ruled_out=max(0.0, 1 - float(held @ fitting) / max(int(held.sum()), 1)),
        at_most=1.0 if isinstance(column, OrderedCells) else 1 - float(shares @ shares),
        spans=tuple(np.bincount(sort, weights=held, minlength=len(SPANS) + 1).astype(np.int64).tolist()),
        frequent_label=column.label(labels.cells(frequent, column.size)),
        frequent_persons=int(held[frequent]),
        shares=shares,
    )


def cell_shares(labels: Labels, size: int) -> NDArray[np.float64]:
    """The likeliest share of all persons in each cell of a column. (cell,)"""
    shares = np.full(size, 1 / size)
    total = float(labels.persons.sum())
    if size == 1 or total == 0:
        return shares
    fit = _Fit(labels, size)
    for _ in range(fit.rounds):
        fitting = fit.sums(shares)
        shares = shares * fit.spread(labels.persons / np.maximum(fitting, SMALLEST)) / total
    return shares


class _Fit:
    """Which cells each label of a column holds: runs by their ends, sets cell by cell."""

    def __init__(self, labels: Labels, size: int) -> None:
        self.labels, self.size = labels, size
        pairs = len(labels.sets) * size
        self.rounds = ROUNDS if pairs <= MANY else FEW_ROUNDS
        self._unpacked = unpacked(labels.sets, size).astype(np.float32) if 0 < pairs <= MANY else None

    def _blocks(self) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """The sets, as many at a time as fit, with the cells of each. (set, cell)"""
        sets = self.labels.sets
        if self._unpacked is not None:
            yield slice(0, len(sets)), self._unpacked
            return
        for block in blocks_of(len(sets), self.size):
            yield block, unpacked(sets[block], self.size).astype(np.float32)

    def sums(self, of_cell: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum over the cells of each label. (label,)"""
        before = np.append(0.0, np.cumsum(of_cell))
        runs = before[self.labels.last + 1] - before[self.labels.first]
        return np.concatenate([runs, *(cells @ of_cell for _, cells in self._blocks())])

    def spread(self, of_label: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum over the labels that hold each cell. (cell,)"""
        labels = self.labels
        of_run, of_set = of_label[: len(labels.first)], of_label[len(labels.first) :]
        steps = np.bincount(labels.first, weights=of_run, minlength=self.size + 1)
        steps = steps - np.bincount(labels.last + 1, weights=of_run, minlength=self.size + 1)
        found: NDArray[np.float64] = np.cumsum(steps, dtype=np.float64)[: self.size]
        for block, cells in self._blocks():
            found = found + of_set[block] @ cells
        return np.maximum(found, 0.0)
