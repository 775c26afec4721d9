# SPDX-License-Identifier: Apache-2.0
"""Error-based pruning as in C4.5, by replacing subtrees with leaves only.

A leaf in place of a subtree joins bins, and may join spans, so every span is as large as before or larger. Raising a
branch in place of its parent would make other spans, and is not done.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.trees.growing import GrownTree
from anonfit.engines.tree import LEAF, Tree

__all__ = ["expected_errors", "prune", "pruned_at"]

GAIN_OF_COLLAPSE = 1e-3
"""A subtree that saves fewer errors on the training rows is not kept."""
SLACK = 0.1
"""A leaf may have so many more expected errors than the subtree it replaces."""


def expected_errors(persons: NDArray[np.int64], errors: NDArray[np.int64], confidence: float) -> NDArray[np.float64]:
    """The upper end of the errors to expect in leaves with so many persons, of which so many are errors.

    Quinlan: C4.5, 1993, section 4.2; for fewer than one error exactly, else by the normal approximation with a
    correction for continuity.
    """
    size = np.maximum(persons, 1).astype(np.float64)
    none = size * (1.0 - confidence ** (1.0 / size))
    score = NormalDist().inv_cdf(1.0 - confidence)
    share = (errors + 0.5) / size
    spread = np.sqrt(np.maximum(share / size - share**2 / size + score**2 / (4 * size**2), 0.0))
    bound = (share + score**2 / (2 * size) + score * spread) / (1 + score**2 / size)
    more = np.where(errors + 0.5 >= size, np.maximum(size - errors, 0.0), bound * size - errors)
    found: NDArray[np.float64] = np.where(persons == 0, 0.0, np.where(errors == 0, none, errors + more))
    return found


def prune(grown: GrownTree, confidence: float) -> GrownTree:
    """Replace every subtree by a leaf that is expected to err no more."""
    tree, counts = grown.tree, grown.counts
    persons = counts.sum(axis=1)
    errors = persons - counts.max(axis=1, initial=0)
    first = tree.first_child.tolist()
    children = tree.children.tolist()
    column = tree.column.tolist()
    made, seen = errors.tolist(), errors.tolist()
    is_leaf = [one == LEAF for one in column]
    for node in range(len(column) - 1, -1, -1):
        if is_leaf[node]:
            continue
        below = sum(made[first[node] : first[node] + children[node]])
        if below >= seen[node] - GAIN_OF_COLLAPSE:
            is_leaf[node] = True
        else:
            made[node] = below
    expected = expected_errors(persons, errors, confidence).tolist()
    best = list(expected)
    for node in range(len(column) - 1, -1, -1):
        if is_leaf[node]:
            continue
        below = sum(best[first[node] : first[node] + children[node]])
        if expected[node] <= below + SLACK:
            is_leaf[node] = True
        else:
            best[node] = below
    return pruned_at(grown, np.array(is_leaf, bool))


def pruned_at(grown: GrownTree, is_leaf: NDArray[np.bool_]) -> GrownTree:
    """The tree in which these nodes are leaves, whatever was below them."""
    tree = grown.tree
    parent = np.append(-1, np.repeat(np.arange(len(tree.column)), tree.children))
    kept = np.ones(len(tree.column), bool)
    ends = is_leaf | (tree.column == LEAF)
    for node in range(1, len(kept)):
        kept[node] = kept[parent[node]] and not ends[parent[node]]
    stays = ~ends[kept]
    column = np.where(stays, tree.column[kept], LEAF).astype(np.int32)
    children = np.where(stays, tree.children[kept], 0).astype(np.int32)
    set_of = np.where(stays, tree.set_of[kept], -1).astype(np.int32)
    pruned = Tree(column, children, tree.start[kept], tree.before[kept], set_of, tree.sets)
    return GrownTree(pruned, grown.counts[kept])
