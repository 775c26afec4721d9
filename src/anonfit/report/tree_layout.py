# SPDX-License-Identifier: Apache-2.0
"""What a drawing of a tree says: every node with the test that leads to it, what it tests itself, and what is told of
its persons. The same for text and picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anonfit.algorithms.trees.released import Populations, ReleasedTree
from anonfit.engines.tree import LEAF

__all__ = ["DrawnNode", "drawn_nodes", "number"]


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node of a drawing."""

    number: int
    depth: int
    answer: str
    """What the parent's test comes out as: a label of its column."""
    tested: str | None
    """The column it tests, None for a leaf."""
    is_public: bool
    predicts: str
    shares: tuple[float, ...]
    """Of each class; nothing where only the most frequent one is told."""
    told: str
    """Of a leaf: what is told of its persons."""
    children: tuple[DrawnNode, ...] = ()

    @property
    def leaves(self) -> int:
        """The leaves below it, or itself."""
        return sum(child.leaves for child in self.children) if self.children else 1


def number(value: float) -> str:
    """A number of persons or a share as it is written."""
    return f"{value:,.0f}" if value == int(value) and value >= 1 else f"{value:.3f}".rstrip("0").rstrip(".")


def drawn_nodes(tree: ReleasedTree) -> DrawnNode:
    """The root of the drawing of a tree."""
    nodes, boxes = tree.nodes, tree.tiling.boxes
    first, regions = nodes.first_child.tolist(), nodes.region_of.tolist()
    made: dict[int, DrawnNode] = {}
    parents = tree.tiling.parents.tolist()
    depth = [0] * len(parents)
    for node in range(1, len(parents)):
        depth[node] = depth[parents[node]] + 1
    for node in range(len(parents) - 1, -1, -1):
        column = int(nodes.column[node])
        answer = ""
        if node:
            above = int(nodes.column[parents[node]])
            answer = tree.tiling.columns[above].label(boxes.cells(node, above))
        tested = None if column == LEAF else tree.columns[column]
        below = range(first[node], first[node] + int(nodes.children[node]))
        leaf = _leaf(tree, regions[node]) if tested is None else ("", (), "")
        children = tuple(made.pop(child) for child in below)
        made[node] = DrawnNode(node, depth[node], answer, tested, tested in tree.public, *leaf, children)
    return made[0]


def _leaf(tree: ReleasedTree, leaf: int) -> tuple[str, tuple[float, ...], str]:
    """The class that a leaf predicts, the shares of its classes, and what is told of its persons."""
    names = [str(one) for one in tree.classes]
    predicts = names[int(tree.predicts[leaf])]
    if tree.bins is None:
        return predicts, (), ""
    held = tree.bins[leaf]
    total = float(held.sum())
    if total == 0:
        return predicts, tuple(np.zeros(len(names)).tolist()), "nobody"
    parts = [f"{name} {number(value)}" for name, value in zip(names, held.tolist(), strict=True) if value]
    words = ", ".join(parts)
    told = f"{number(total)}: {words}" if tree.populations == Populations.EXACT else words
    return predicts, tuple((held / total).tolist()), told
