# SPDX-License-Identifier: Apache-2.0
"""A tree under way: what growers of all engines share, and how nodes in the order they were grown become a tree in
breadth-first order, the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.objectives import WORD, exponential
from anonfit.engines.memory import growing
from anonfit.engines.memory.count import count_rows
from anonfit.engines.memory.growing import (
    BEFORE,
    BEGIN,
    BUFFER,
    CHILD,
    CHILDREN,
    COLUMN,
    END,
    SET,
    START,
    child_span,
    child_tile,
)
from anonfit.engines.memory.layout import FROM, GAP, HIGH, LOW, MISSING, SIZE, SPAN, TO, Columns, Rows, shared
from anonfit.engines.memory.objective import RULE, SLOTS
from anonfit.engines.memory.scratch import CHANCE, KernelForms, make_scratch
from anonfit.engines.memory.selecting import Split
from anonfit.engines.memory.splitting import BY_CHANCE, choose_split
from anonfit.engines.tree import Tree
from anonfit.runtime.compiling import kernel


def root_span(columns: Columns) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The span and the tile of all rows."""
    facts = columns.facts
    span = np.zeros((SPAN, facts.shape[1]), np.int64)
    span[FROM], span[TO] = 0, facts[SIZE] - 1
    span[LOW], span[HIGH], span[GAP] = facts[MISSING], facts[SIZE] - 1, facts[MISSING]
    return span, np.ones(columns.tile, np.uint8)


def count_run(rows: Rows, forms: KernelForms, given: KernelForms, start: int, stop: int) -> NDArray[np.int64]:
    """The histogram of a run of rows, which are shared with the kernel as the forms `given` are."""
    histogram = np.zeros(forms.columns.bins * int(forms.objective.settings[SLOTS]), np.int64)
    places = np.zeros(max(1, len(forms.columns.narrow)), np.int64)
    count_rows(rows, given.columns, given.objective, start, stop, 1, histogram, places)
    return histogram


@dataclass(slots=True)
class OpenNode:
    """A node that is not split yet."""

    number: int
    span: NDArray[np.int64]
    tile: NDArray[np.uint8]
    key: int
    """What chance depends on."""
    selecting: bool
    """Whether it is still split for selections, where that gains."""


class TreeGrower:
    """A tree under way as kernels write it, and the working memory in which its splits are chosen."""

    def __init__(self, forms: KernelForms, k: int) -> None:
        self.forms, self.k = forms, k
        self.columns, self.objective, self.constraints = forms
        self.shared_forms = forms.shared()
        self.shared_columns, self.shared_objective, self.shared_constraints = self.shared_forms
        self.by_chance = self.objective.settings[RULE] == BY_CHANCE
        self.nodes, self.used = growing.new_nodes(), 1
        self.members, self.filled = np.empty(64, np.int64), 0

    def make_scratch(self, rows: int) -> None:
        """Make working memory for nodes of so many rows."""
        self.scratch = make_scratch(self.forms, rows)
        self.shared_scratch = shared(self.scratch)

    def best_split(self, node: OpenNode, rows: Rows, start: int, stop: int, histogram: NDArray[np.int64]) -> Split:
        """A node's split by the targets or the median."""
        if self.by_chance:
            numbers = [exponential(node.key, column) for column in range(self.scratch.splits.shape[1])]
            self.scratch.splits[CHANCE] = numbers
        chosen: Split = choose_split(
            rows,
            self.shared_columns,
            self.shared_objective,
            self.k,
            self.shared_constraints,
            start,
            stop,
            histogram,
            node.span,
            node.tile,
            self.shared_scratch,
        )
        return chosen

    def make_region(
        self, node: OpenNode, rows: Rows, start: int, stop: int, buffer: int, histogram: NDArray[np.int64]
    ) -> None:
        """Make a node a region."""
        self.nodes, self.used = growing.finish(
            self.nodes,
            self.used,
            node.number,
            rows,
            self.shared_columns,
            self.shared_objective,
            start,
            stop,
            buffer,
            histogram,
            node.span,
            node.tile,
        )

    def write_split(self, node: OpenNode, split: Split) -> int:
        """Write a chosen split into the tree; the number of its first part."""
        column, parts, before, by_set = split
        self.nodes, self.used, first, self.members, self.filled = growing.attach(
            self.nodes,
            self.used,
            node.number,
            self.shared_columns,
            column,
            parts,
            before,
            by_set,
            self.members,
            self.filled,
            node.span,
            node.tile,
            self.shared_scratch,
        )
        return int(first)

    def part_of(self, node: OpenNode, split: Split, part: int) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """The span and the tile of a part of a split."""
        column, parts, _, by_set = split
        span, tile = np.empty_like(node.span), node.tile.copy()
        given = self.shared_columns, node.span, node.tile, column, part
        if by_set:
            child_tile(*given, self.scratch.side, span, tile)
        else:
            child_span(*given, parts, self.scratch.lists, span, tile)
        return span, tile


Subtree = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Nodes, and the members of their sets."""


def join_subtrees(
    top: NDArray[np.int64], members: NDArray[np.int64], numbers: Sequence[int], subtrees: Sequence[Subtree]
) -> Subtree:
    """Hang subtrees on the nodes of the top that they grew from; all nodes and the members of their sets."""
    blocks, sets = [top], [members]
    used, filled = len(top), len(members)
    for number, (subtree, own) in zip(numbers, subtrees, strict=True):
        subtree[subtree[:, CHILDREN] > 0, CHILD] += used - 1
        subtree[subtree[:, SET] >= 0, SET] += filled
        kept = top[number, [START, BEFORE]]
        top[number] = subtree[0]
        top[number, [START, BEFORE]] = kept
        blocks.append(subtree[1:])
        sets.append(own)
        used += len(subtree) - 1
        filled += len(own)
    return np.concatenate(blocks), np.concatenate(sets)


def signed_key(key: int) -> int:
    """The bits of a key as kernels hold whole numbers."""
    return key - WORD - 1 if key > WORD >> 1 else key


@kernel
def _breadth_first_order(nodes: Any) -> Any:
    order = np.empty(nodes.shape[0], np.int64)
    order[0] = 0
    used = 1
    for index in range(nodes.shape[0]):
        node = order[index]
        for child in range(nodes[node, CHILDREN]):
            order[used] = nodes[node, CHILD] + child
            used += 1
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
    return np.sort(nodes[has_rows, BEGIN])


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
