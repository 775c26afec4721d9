# SPDX-License-Identifier: Apache-2.0
"""A taxonomy of a sensitive column as the audit reads it: which node is above each value at every depth, and how high
every node is above its deepest leaf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonfit.auditing.coding import IntArray
from anonfit.errors import TaxonomyError

__all__ = ["Hierarchy", "Nodes", "hierarchy_of", "read_nodes"]


@dataclass(frozen=True, slots=True)
class Nodes:
    """A tree, parents before children: node 0 is the root. Leaves are in depth-first order."""

    parents: tuple[int, ...]
    leaves: tuple[str, ...]
    leaf_nodes: tuple[int, ...]  # (leaf)


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The nodes above the values of a column, level by level."""

    nodes: tuple[IntArray, ...]  # (depth)(value) the node above a value, or its leaf; -1: below its leaf
    heights: IntArray  # (node) steps down to its deepest leaf


def read_nodes(tree: object, *, column: str) -> Nodes:
    """The nodes of nested mappings with a name and children; an only child with its parent's name is only padding."""
    parents: list[int] = []
    leaves: dict[str, int] = {}
    stack: list[tuple[object, int]] = [(tree, -1)]
    while stack:
        part, parent = stack.pop()
        name, children = _part(part, column)
        while len(children) == 1 and _part(children[0], column)[0] == name:
            children = _part(children[0], column)[1]
        if not children and leaves.setdefault(name, len(parents)) != len(parents):
            raise TaxonomyError(f"The taxonomy of column '{column}' has the leaf '{name}' twice: keep one.")
        stack.extend((child, len(parents)) for child in reversed(children))
        parents.append(parent)
    return Nodes(tuple(parents), tuple(leaves), tuple(leaves.values()))


def _part(part: object, column: str) -> tuple[str, Sequence[Any]]:
    """The name and the children of a node."""
    if isinstance(part, Mapping) and set(part) <= {"name", "children"} and isinstance(part.get("name"), str):
        children = part.get("children") or ()
        if isinstance(children, (list, tuple)):
            return part["name"], children
    raise TaxonomyError(f"The taxonomy of column '{column}' is not made of nodes with a name and a list of children.")


def hierarchy_of(nodes: Nodes, leaves: Sequence[int], *, missing: bool) -> Hierarchy:
    """The hierarchy over some leaves, in their order, after the missing value, which is a leaf under the root.

    A taxonomy that is one leaf only gets a root, which the missing value can be under, too.
    """
    parents = list(nodes.parents) if len(nodes.parents) > 1 else [-1, 0]
    ends = [nodes.leaf_nodes[leaf] if len(nodes.parents) > 1 else 1 for leaf in leaves]
    if missing:
        ends.insert(0, len(parents))
        parents.append(0)
    heights = np.zeros(len(parents), np.int64)
    for node in range(len(parents) - 1, 0, -1):
        heights[parents[node]] = max(heights[parents[node]], heights[node] + 1)
    paths = [_path(parents, end) for end in ends]
    levels = np.full((int(heights[0]) + 1, len(ends)), -1, np.int64)
    for place, path in enumerate(paths):
        levels[: len(path), place] = path
    return Hierarchy(tuple(levels), heights)


def _path(parents: Sequence[int], node: int) -> list[int]:
    """The nodes from the root to a node."""
    path = [node]
    while parents[path[-1]] >= 0:
        path.append(parents[path[-1]])
    return path[::-1]
