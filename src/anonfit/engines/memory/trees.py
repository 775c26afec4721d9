# SPDX-License-Identifier: Apache-2.0
"""From nodes in the order they were grown to a tree in breadth-first order, the same for any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.memory.growing import BEFORE, BEGIN, BUFFER, CHILD, CHILDREN, COLUMN, END, SET, START
from anonfit.engines.tree import Tree
from anonfit.runtime.compiling import kernel


@kernel
def _breadth_first_order(nodes: Any) -> Any:
    order = np.empty(nodes.shape[0], np.int64)
    order[0] = 0
    found = 1
    for index in range(nodes.shape[0]):
        node = order[index]
        for child in range(nodes[node, CHILDREN]):
            order[found] = nodes[node, CHILD] + child
            found += 1
    return order


@kernel
def settle(nodes: Any, first: Any, second: Any) -> None:
    """Bring the rows of all regions into the first buffer, each run to its own place. first, second: (row, word)."""
    for node in range(nodes.shape[0]):
        if nodes[node, COLUMN] < 0 and nodes[node, BUFFER] == 1:
            for row in range(nodes[node, BEGIN], nodes[node, END]):
                for word in range(first.shape[1]):
                    first[row, word] = second[row, word]


def begins_of(nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first rows of the regions that have any, ascending."""
    has_rows = (nodes[:, COLUMN] < 0) & (nodes[:, END] > nodes[:, BEGIN])
    found: NDArray[np.int64] = np.sort(nodes[has_rows, BEGIN])
    return found


def breadth_first(nodes: NDArray[np.int64], members: NDArray[np.int64]) -> Tree:
    """The tree of these nodes; `members` has the codes of their sets."""
    facts = nodes[_breadth_first_order(nodes)]
    by_set = facts[:, SET] >= 0
    places = facts[by_set, SET]
    set_of = np.full(len(facts), -1, np.int32)
    set_of[by_set] = np.arange(len(places))
    codes = members.astype(np.int32)
    ends = (places + 1 + members[places]).tolist() if len(places) else []
    return Tree(
        column=facts[:, COLUMN].astype(np.int32),
        children=facts[:, CHILDREN].astype(np.int32),
        start=facts[:, START].astype(np.int32),
        before=facts[:, BEFORE].astype(np.int32),
        set_of=set_of,
        sets=tuple(codes[begin + 1 : end] for begin, end in zip(places.tolist(), ends, strict=True)),
    )


def region_sizes(nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of each node that is a region, 0 for others, in the order of the tree."""
    facts = nodes[_breadth_first_order(nodes)]
    return np.where(facts[:, COLUMN] < 0, facts[:, END] - facts[:, BEGIN], 0)
