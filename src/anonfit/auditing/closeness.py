# SPDX-License-Identifier: Apache-2.0
"""The distance between the values of each group and those of the whole table: the least work that turns one into the
other (earth mover's distance), for values that are equally far apart, in an order, or in a taxonomy."""

from __future__ import annotations

import numpy as np

from anonfit.auditing.coding import IntArray
from anonfit.auditing.hierarchy import Hierarchy
from anonfit.auditing.spread import FloatArray, Spread
from anonfit.auditing.values import Values

__all__ = ["closeness"]


def closeness(spread: Spread, values: Values) -> FloatArray:
    """The distance of every group, by the ground that the values stand on."""
    if values.hierarchy is not None:
        return _hierarchical(spread, values.hierarchy)
    return _ordered(spread) if values.distance == "ordered" else _equal(spread)


def _equal(spread: Spread) -> FloatArray:
    """What the group's values have too much is what all others lack, so only values in the group count."""
    surplus = np.maximum(spread.share - spread.table_share[spread.value], 0)
    found: FloatArray = spread.sums(surplus)
    return found


def _ordered(spread: Spread) -> FloatArray:
    """The area between the two cumulated distributions.

    The group's is a staircase: from one of its values to the next it stays at one height, and the table's rises. So
    the area over a step is found from running sums of the table's, parted where the table's passes the height.
    """
    steps = len(spread.table) - 1
    if steps < 1:
        return np.zeros(len(spread.begin))
    table = np.cumsum(spread.table_share)[:-1]  # (value) all but the last, where both are 1
    area = np.append(0.0, np.cumsum(table))
    cumulated = np.append(0, np.cumsum(spread.count))
    height = (cumulated[1:] - cumulated[spread.begin][spread.group]) / spread.total[spread.group]
    last = np.append(spread.begin[1:], len(spread.group)) - 1
    after = np.append(spread.value[1:], 0)
    after[last] = steps
    start = np.minimum(spread.value, steps)
    passed = np.clip(np.searchsorted(table, height, "right"), start, after)
    below = height * (passed - start) - (area[passed] - area[start])
    above = (area[after] - area[passed]) - height * (after - passed)
    before = area[spread.value[spread.begin]]  # where the group's is still 0
    found: FloatArray = np.maximum(spread.sums(below + above) + before, 0) / steps  # rounding may leave less than 0
    return found


def _hierarchical(spread: Spread, hierarchy: Hierarchy) -> FloatArray:
    """What is moved between the children of a node costs by the node's height (Li, Li, Venkatasubramanian 2007).

    Of a node's children, some have more persons of the group than by the table and some fewer; the smaller sum is
    moved between them. Both sums differ by what the node itself has more, so children that no person of the group is
    below need not be looked at.
    """
    found, share = np.zeros(len(spread.begin)), spread.share
    wanted = _shares_of_nodes(spread, hierarchy)
    for level, below in zip(hierarchy.nodes[-2::-1], hierarchy.nodes[:0:-1], strict=True):
        pairs = np.flatnonzero(below[spread.value] >= 0)
        if not len(pairs):
            continue
        group, node, child = spread.group[pairs], level[spread.value[pairs]], below[spread.value[pairs]]
        first = _runs(group, child)
        held = np.add.reduceat(share[pairs], first)
        more = np.maximum(held - wanted[child[first]], 0)
        group, node = group[first], node[first]
        first = _runs(group, node)
        group, node = group[first], node[first]
        more = np.add.reduceat(more, first)
        fewer = more - (np.add.reduceat(held, first) - wanted[node])
        cost = hierarchy.heights[node] / hierarchy.heights[0] * np.maximum(np.minimum(more, fewer), 0)
        found += np.bincount(group, weights=cost, minlength=len(found))
    return found


def _shares_of_nodes(spread: Spread, hierarchy: Hierarchy) -> FloatArray:
    """The share of the whole table that is below each node."""
    shares = np.zeros(len(hierarchy.heights))
    for level in hierarchy.nodes:
        there = level >= 0
        shares += np.bincount(level[there], weights=spread.table_share[there], minlength=len(shares))
    return shares


def _runs(group: IntArray, node: IntArray) -> IntArray:
    """Where each run of equal groups and nodes begins."""
    return np.flatnonzero((np.diff(group, prepend=-1) != 0) | (np.diff(node, prepend=-1) != 0))
