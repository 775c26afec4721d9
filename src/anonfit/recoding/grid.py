# SPDX-License-Identifier: Apache-2.0
"""A recoding in which every column is generalized by itself: its regions are all combinations of the columns' parts.

There may be more of them than could ever be listed, so nodes are given only to those that rows were found in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.bits import bits_of_pairs, bounds_of
from anonfit.recoding.boxes import Boxes, ColumnSets

__all__ = ["Grid", "GridColumn", "combined", "grid_column"]

ROOT = 0
"""The node that holds everything; the regions are below it."""

_NUMBERING = Lock()


@dataclass(frozen=True, slots=True)
class GridColumn:
    """The parts of a column, numbered by their first cells."""

    part_of: NDArray[np.int32]  # (cell,)
    rest: int = -1
    """The part of the values of a suppressed column that are not disclosed, -1 without one."""

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return int(self.part_of.max(initial=-1)) + 1

    @property
    def unknown(self) -> int:
        """What holds a value that the recoding does not know: the rest, or the whole column."""
        return self.parts if self.rest < 0 else self.rest


def grid_column(part_of: Sequence[int] | NDArray[np.integer], rest: int = -1) -> GridColumn:
    """A column whose parts have any numbers; `rest` is that of the rest."""
    given = np.asarray(part_of, np.int64)
    numbers, first, which = np.unique(given, return_index=True, return_inverse=True)
    rank = np.empty(len(numbers), np.int32)
    rank[np.argsort(first)] = np.arange(len(numbers), dtype=np.int32)
    place = np.flatnonzero(numbers == rest)
    return GridColumn(rank[which], int(rank[place[0]]) if len(place) else -1)


@dataclass(frozen=True)
class Grid:
    """The parts of every column, and the nodes of the combinations that were met so far."""

    columns: tuple[GridColumn, ...]
    _met: list[NDArray[np.int32]] = field(default_factory=list, repr=False, compare=False)
    _boxes: list[Boxes] = field(default_factory=list, repr=False, compare=False)

    @property
    def regions(self) -> int:
        """How many regions tile the domain, empty ones included."""
        return prod(column.parts for column in self.columns)

    @property
    def met(self) -> NDArray[np.int32]:
        """(node, column) the part of each node; the number of parts stands for a whole column. The first is the
        root.
        """
        return self._met[0] if self._met else np.array([[column.parts for column in self.columns]], np.int32)

    def nodes(self, cells: Sequence[NDArray[np.integer]]) -> NDArray[np.int32]:
        """The node of each row, from its cells; -1 is a value that the recoding does not know."""
        parts = [
            np.append(column.part_of, np.int32(column.unknown))[found]
            for column, found in zip(self.columns, cells, strict=True)
        ]
        return self.number(parts)

    def number(self, parts: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
        """The node of each row, from its parts: a combination that was never met gets the next number."""
        with _NUMBERING:
            met = self.met
            both = [np.concatenate([met[:, index], found]) for index, found in enumerate(parts)]
            which = combined(both, [column.parts + 1 for column in self.columns])
            known, of_row = which[: len(met)], which[len(met) :]
            node_of = np.full(int(which.max(initial=0)) + 1, -1, np.int32)
            node_of[known] = np.arange(len(met), dtype=np.int32)
            new, first = np.unique(of_row, return_index=True)
            is_new = node_of[new] < 0
            node_of[new[is_new]] = np.arange(len(met), len(met) + np.count_nonzero(is_new), dtype=np.int32)
            if is_new.any():
                rows = np.stack([found[first[is_new]] for found in parts], axis=1)
                self._met[:] = [np.concatenate([met, rows])]
            found: NDArray[np.int32] = node_of[of_row]
            return found

    def boxes(self) -> Boxes:
        """The cells of the nodes that were met so far."""
        met = self.met
        if self._boxes and len(self._boxes[0].first) == len(met):
            return self._boxes[0]
        boxes = Boxes(np.zeros(met.shape, np.int32), np.zeros(met.shape, np.int32), {})
        for index, column in enumerate(self.columns):
            size, parts = len(column.part_of), column.parts
            order = np.argsort(column.part_of, kind="stable")
            bits = bits_of_pairs(column.part_of[order], order, parts, size)
            first, last, counts = bounds_of(bits)
            first, last = np.append(first, 0), np.append(last, size - 1)
            boxes.first[:, index], boxes.last[:, index] = first[met[:, index]], last[met[:, index]]
            is_set = np.append(last[:-1] - first[:-1] + 1 != counts, False)
            if is_set.any():
                number = np.where(is_set, np.cumsum(is_set) - 1, -1).astype(np.int32)
                boxes.sets_of[index] = ColumnSets(number[met[:, index]], bits[is_set[:-1]])
        self._boxes[:] = [boxes]
        return boxes


def combined(codes: Sequence[NDArray[np.integer]], sizes: Sequence[int]) -> NDArray[np.int64]:
    """A number for each different combination of codes, from 0 on."""
    found, count = np.zeros(len(codes[0]) if codes else 0, np.int64), 1
    for column, size in zip(codes, sizes, strict=True):
        if count * size >= 1 << 62:
            _, found = np.unique(found, return_inverse=True)
            count = int(found.max(initial=0)) + 1
        found, count = found * size + column, count * size
    return np.unique(found, return_inverse=True)[1]
