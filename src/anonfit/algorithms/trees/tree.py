# SPDX-License-Identifier: Apache-2.0
"""A decision tree as something that is released: its tests, its bins with their training persons, and its spans, the
bins that a person can be in, for all that someone knows who has only the person's public values.

Friedman, Schuster, Wolff: k-Anonymous Decision Tree Induction, PKDD 2006, Definitions 5 to 7. Trees that are grown here
and trees that others have grown are both of this form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.tree import LEAF, Tree
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Unseen
from anonfit.tables.schema import CodedColumn, CodedTable, Persons, SplitMode, code_dtype

if TYPE_CHECKING:
    import polars as pl


ANY_CLASS = -1
"""The class of a span where the class is private: its bins are those of all classes."""


@dataclass(frozen=True, slots=True)
class Spans:
    """The spans that training persons have, in the order of their leaves.

    Span s has the leaves `leaves[first[s]:first[s + 1]]`, ascending. Its bins are those of all classes in these leaves,
    or of the one class `classes[s]` where the class is public. Spans that nobody has are left out.
    """

    first: NDArray[np.int64]  # (span + 1,)
    leaves: NDArray[np.int32]  # leaf numbers of all spans, one span after the other
    classes: NDArray[np.int32]  # (span,)
    counts: NDArray[np.int64]  # (span, class) training persons

    def __len__(self) -> int:
        """How many spans there are."""
        return len(self.classes)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(span,) how many training persons have each."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def smallest(self) -> int:
        """The k for which a tree with these spans is k-anonymous."""
        return int(self.sizes.min(initial=np.iinfo(np.int64).max)) if len(self) else 0

    def leaves_of(self, span: int) -> NDArray[np.int32]:
        """The leaves of a span."""
        return self.leaves[self.first[span] : self.first[span + 1]]


def find_spans(
    tree: Tree,
    public: Sequence[bool],
    cells: Sequence[NDArray[np.int32]],
    classes: NDArray[np.int32],
    *,
    class_count: int,
    class_is_public: bool,
    persons: NDArray[np.int64] | None = None,
) -> tuple[Spans, NDArray[np.int32]]:
    """The spans of rows in a tree over cells, in the order of their leaves, then of their class; and (row,) the span of
    each row.

    `public` says of each column whether it is public, and `cells` has the cell of each row. The class of a row is known
    like a public column if `class_is_public`; a row stands for one person, or for as many as `persons` says.
    """
    rows = len(classes)
    if all(public[column] for column in np.unique(tree.column[tree.column != LEAF]).tolist()):
        # Every person's leaf is known.
        leaf = _leaves_of(tree, cells, rows).astype(np.int64)
        used, of_row = np.unique(leaf * class_count + classes if class_is_public else leaf, return_inverse=True)
        pairs = np.stack([np.arange(len(used)), used // class_count if class_is_public else used], axis=1)
    else:
        span = classes.astype(np.int64) if class_is_public else np.zeros(rows, np.int64)
        reached = _reached(tree, public, cells, span)
        used, of_row = np.unique(span, return_inverse=True)
        reaching = [np.unique(of_row[reached[node]]) for node in np.flatnonzero(tree.column == LEAF).tolist()]
        leaves = np.repeat(np.arange(len(reaching)), [len(spans) for spans in reaching])
        pairs = np.stack([np.concatenate(reaching), leaves], axis=1)
    counts = Persons(rows, persons).of_groups(of_row * class_count + classes, len(used) * class_count)
    return _in_order(pairs, of_row, counts.reshape(-1, class_count), class_is_public)


def _leaves_of(tree: Tree, cells: Sequence[NDArray[np.int32]], rows: int) -> NDArray[np.int32]:
    """The leaf of each row."""
    from anonfit.engines.memory.route import route_table

    sizes = [int(column.max(initial=0)) + 1 for column in cells]
    coded = tuple(CodedColumn("", size, SplitMode.ORDERED, False, np.zeros(size)) for size in sizes)
    codes = tuple(column.astype(code_dtype(size)) for column, size in zip(cells, sizes, strict=True))
    routes = [np.arange(size, dtype=np.int32) for size in sizes]
    return tree.region_of[route_table(CodedTable(coded, codes, rows), tree, routes, sizes)]


def _reached(
    tree: Tree, public: Sequence[bool], cells: Sequence[NDArray[np.int32]], span: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """The rows that can reach each node under some private values. `span` is changed: rows of one span that a public
    test tells apart get spans of their own.
    """
    reached: list[NDArray[np.int64]] = [np.zeros(0, np.int64)] * len(tree.column)
    reached[0] = np.arange(len(span))
    first_child = tree.first_child
    used = int(span.max(initial=0)) + 1
    for node in np.flatnonzero(tree.column != LEAF).tolist():
        column, first, count = int(tree.column[node]), int(first_child[node]), int(tree.children[node])
        rows = reached[node]
        if not public[column]:
            reached[first : first + count] = [rows] * count
            continue
        child = np.searchsorted(tree.start[first + 1 : first + count], cells[column][rows], side="right")
        for number in range(count):
            reached[first + number] = rows[child == number]
        keys, place = np.unique(span[rows] * count + child, return_inverse=True)
        span[rows] = used + place
        used += len(keys)
    return reached


def _in_order(
    pairs: NDArray[np.int64], of_row: NDArray[np.int64], counts: NDArray[np.int64], class_is_public: bool
) -> tuple[Spans, NDArray[np.int32]]:
    """The spans by their leaves, so that the order of rows tells nothing. pairs: (span, leaf); counts: (span, class)"""
    spans = len(counts)
    own = counts.argmax(axis=1).astype(np.int32) if class_is_public else np.full(spans, ANY_CLASS, np.int32)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    first = np.searchsorted(pairs[:, 0], np.arange(spans + 1))
    leaves = [tuple(pairs[start:stop, 1].tolist()) for start, stop in pairwise(first)]
    order = sorted(range(spans), key=lambda span: (leaves[span], int(own[span])))
    place = np.empty(spans, np.int32)
    place[order] = np.arange(spans)
    sizes = np.diff(first)[order]
    in_order = Spans(
        np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
        np.array([leaf for span in order for leaf in leaves[span]], np.int32),
        own[order],
        counts[order],
    )
    return in_order, place[of_row]


ClassName: TypeAlias = str | int | float | bool


@dataclass(frozen=True)
class TiledTree:
    """The tests of a tree on public and private columns, and its class.

    The regions of `tiling` are the leaves, numbered alike; a son that no training row comes to is one of them.
    """

    tiling: Recoding
    public: tuple[str, ...]
    target: str
    classes: tuple[ClassName, ...]
    class_is_public: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that may be tested, public and private."""
        return self.tiling.quasi_identifiers

    @property
    def private(self) -> tuple[str, ...]:
        """The columns that only the owner of the data knows."""
        return tuple(name for name in self.columns if name not in self.public)

    @property
    def nodes(self) -> Tree:
        """The nodes, as flat arrays."""
        return self.tiling.tree

    @property
    def leaves(self) -> int:
        """How many leaves there are, empty ones included."""
        return self.nodes.regions

    def nodes_of(self, frame: pl.DataFrame) -> NDArray[np.int32]:
        """The node that each row ends in: its leaf, or a node above where a nominal value is not known."""
        return self.tiling.nodes(self.tiling.cells(frame, unseen=Unseen.ANCESTOR))


@dataclass(frozen=True)
class DecisionTree(TiledTree):
    """A tree, and who of the training persons is where.

    A *bin* is a leaf together with a class. `counts` has every node's training persons by class, so that rows which end
    early, at a value that is not known, are predicted too.
    """

    counts: NDArray[np.int64]  # (node, class)
    spans: Spans

    @property
    def leaf_nodes(self) -> NDArray[np.int64]:
        """(leaf,) the node of each leaf."""
        return np.flatnonzero(self.nodes.column == LEAF)

    @property
    def bins(self) -> NDArray[np.int64]:
        """(leaf, class) the training persons of each bin."""
        return self.counts[self.leaf_nodes]

    @property
    def k(self) -> int:
        """The number of persons that every training person shares a span with, itself included."""
        return self.spans.smallest

    @cached_property
    def counted_node(self) -> NDArray[np.int64]:
        """(node,) the node whose persons tell the class: itself, or the nearest above it that has any."""
        nodes = np.arange(len(self.counts))
        for node, parent in enumerate(self.tiling.parents.tolist()):
            if node and not self.counts[node].any():
                nodes[node] = nodes[parent]
        return nodes

    @cached_property
    def majority(self) -> NDArray[np.int64]:
        """(node,) the class with the largest bin; of equal ones the first."""
        return np.asarray(self.counts[self.counted_node].argmax(axis=1))

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """(node, class) the share of each class."""
        counts = self.counts[self.counted_node]
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))

    def to_model_json(self) -> str:
        """The text of model.json, with the exact number of persons in every bin."""
        from anonfit.algorithms.trees.released import release_tree

        return release_tree(self).to_model_json()
