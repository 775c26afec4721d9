# SPDX-License-Identifier: Apache-2.0
"""The anonymous table that a tree stands for: every record says of its public columns what the tree can make of them,
whatever its private values are. Persons of one span get the same, so every group is a span.

A record's own path would say less of some columns and more of others: the leaf it ends in depends on private values,
and may hold fewer than k persons. A span does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.trees.tree import DecisionTree
from anonfit.engines.tree import LEAF, Tree
from anonfit.recoding.recoding import Recoding

__all__ = ["public_recoding"]

Box = tuple[tuple[int, int], ...]
"""The first and last cell of every public column."""


@dataclass(slots=True)
class _Part:
    """A part of the public domain: its box, the rows in it, and the nodes of the tree that it can still come to."""

    box: Box
    rows: NDArray[np.int64]
    waiting: list[int]
    column: int = LEAF
    parts: list[_Part] = field(default_factory=list)


def public_recoding(tree: DecisionTree, cells: Sequence[NDArray[np.int32]]) -> tuple[Recoding, NDArray[np.int32]]:
    """The tiling of the public domain by the spans of a tree, and the node of each training row in it.

    Parts of the domain that no training row is in are not divided further.

    Args:
        tree: The tree.
        cells: For each of its columns, the cell of each training row.

    Returns:
        The recoding of the public columns, and the rows' nodes.
    """
    nodes = tree.nodes
    assert not (nodes.set_of >= 0).any(), "a tree divides columns by runs of cells"
    places = [index for index, name in enumerate(tree.columns) if name in tree.public]
    columns = tuple(tree.tiling.columns[index] for index in places)
    public_cells = [cells[index] for index in places]
    place_of = {index: place for place, index in enumerate(places)}
    rows = len(cells[0]) if cells else 0
    root = _Part(tuple((0, column.size - 1) for column in columns), np.arange(rows), [0])
    order = [root]
    for part in order:
        _divide(part, nodes, place_of, public_cells)
        order.extend(part.parts)
    return Recoding(columns, _tree_of(order)), _nodes_of(order, rows)


def _divide(part: _Part, nodes: Tree, place_of: dict[int, int], cells: Sequence[NDArray[np.int32]]) -> None:
    """Divide a part by the first public test whose answer it does not know."""
    first_child = nodes.first_child
    while part.waiting and len(part.rows):
        node = part.waiting.pop()
        column, count, first = int(nodes.column[node]), int(nodes.children[node]), int(first_child[node])
        if column == LEAF:
            continue
        if column not in place_of:
            part.waiting.extend(range(first + count - 1, first - 1, -1))
            continue
        place = place_of[column]
        starts = nodes.start[first + 1 : first + count]
        low, high = part.box[place]
        least, most = (int(np.searchsorted(starts, cell, side="right")) for cell in (low, high))
        if least == most:
            part.waiting.append(first + least)
            continue
        goes = np.searchsorted(starts, cells[place][part.rows], side="right")
        edges = [low, *starts[least:most].tolist(), high + 1]
        for number, child in enumerate(range(least, most + 1)):
            box = (*part.box[:place], (edges[number], edges[number + 1] - 1), *part.box[place + 1 :])
            part.parts.append(_Part(box, part.rows[goes == child], [*part.waiting, first + child]))
        part.column = place
        return


def _tree_of(order: Sequence[_Part]) -> Tree:
    """The parts, which stand in breadth-first order, as a tree of splits."""
    start = np.zeros(len(order), np.int32)
    number = 0
    for part in order:
        for child in part.parts:
            number += 1
            start[number] = child.box[part.column][0]
    none = np.full(len(order), -1, np.int32)
    return Tree(
        np.array([part.column for part in order], np.int32),
        np.array([len(part.parts) for part in order], np.int32),
        start,
        none,
        none,
    )


def _nodes_of(order: Sequence[_Part], rows: int) -> NDArray[np.int32]:
    found = np.full(rows, -1, np.int32)
    for number, part in enumerate(order):
        if not part.parts:
            found[part.rows] = number
    return found
