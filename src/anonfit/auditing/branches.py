# SPDX-License-Identifier: Apache-2.0
"""A decision tree as the audit sees it, whoever made it, and the ways that rows take through it.

Values of a column that no test of the tree tells apart are one *cell*; a test sends every cell of its column to one of
its children.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing.coding import Coded, IntArray, join_codes
from anonfit.auditing.numbering import numbered
from anonfit.errors import DataError

__all__ = ["NOWHERE", "ModelTree", "TestedColumn", "cells_of", "leaf_of_rows", "points_of", "route"]

NOWHERE = -1
"""The cell of a value that the tree does not know, and the child of a cell that cannot come to a test."""
Ways = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class TestedColumn:
    """The cells of a column, and how values find theirs."""

    name: str
    size: int
    place: Callable[[pl.Series], IntArray]


@dataclass(frozen=True, slots=True)
class ModelTree:
    """Nodes by number, the root is 0."""

    columns: tuple[TestedColumn, ...]
    tested: tuple[int, ...]  # (node) the column it tests, -1 for a leaf
    ways: tuple[Ways | None, ...]  # (node)(cell) the number of the child that the cell is sent to
    children: tuple[tuple[int, ...], ...]  # (node)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that the tree may test."""
        return tuple(column.name for column in self.columns)

    @property
    def leaves(self) -> list[int]:
        """The nodes that test nothing."""
        return [node for node, column in enumerate(self.tested) if column < 0]


def cells_of(tree: ModelTree, frame: pl.DataFrame, names: Sequence[str]) -> dict[int, IntArray]:
    """The cell of every row, for those of these columns that are tested somewhere."""
    return {
        number: tree.columns[number].place(frame[tree.columns[number].name])
        for number in sorted(set(tree.tested) - {-1})
        if tree.columns[number].name in names
    }


def points_of(tree: ModelTree, cells: Mapping[int, IntArray], rows: int) -> tuple[IntArray, IntArray]:
    """Rows with the same cells are one point: the point of every row, and the first row of each."""
    columns = [Coded(of_row - NOWHERE, tree.columns[number].size - NOWHERE) for number, of_row in cells.items()]
    codes, first = numbered(join_codes(columns, rows)[0])
    return codes - 1, first


def route(tree: ModelTree, cells: Mapping[int, IntArray], points: int) -> Iterator[tuple[int, IntArray]]:
    """The leaves, each with the points that can come there. `cells` has the cell of every point in the columns that
    are known; a test of any other column may come out as its earlier tests on the path allow.
    """
    stack: list[tuple[int, IntArray, dict[int, npt.NDArray[np.bool_]]]] = [(0, np.arange(points), {})]
    while stack:
        node, here, left = stack.pop()
        ways, column = tree.ways[node], tree.tested[node]
        if ways is None:
            yield node, here
        elif column in cells:
            goes = ways[cells[column][here]]
            _check_ways(goes, cells[column][here], tree.columns[column].name)
            for number, child in enumerate(tree.children[node]):
                there = here[goes == number]
                if len(there):
                    stack.append((child, there, left))
        else:
            before = left.get(column, True)
            for number, child in enumerate(tree.children[node]):
                after = before & (ways == number)
                if after.any():
                    stack.append((child, here, {**left, column: after}))


def _check_ways(goes: Ways, cells: IntArray, name: str) -> None:
    if ((goes < 0) | (cells < 0)).any():
        raise DataError(
            f"Some values of column '{name}' are missing or are not known to the tree, so it sends them nowhere; "
            "leave these rows out."
        )


def leaf_of_rows(tree: ModelTree, frame: pl.DataFrame) -> IntArray:
    """The leaf that every row really comes to."""
    cells = cells_of(tree, frame, tree.names)
    of_row, first = points_of(tree, cells, len(frame))
    found = np.full(len(first), NOWHERE, np.int64)
    for leaf, here in route(tree, {number: of_column[first] for number, of_column in cells.items()}, len(first)):
        found[here] = leaf
    return found[of_row]
