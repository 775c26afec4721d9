# SPDX-License-Identifier: Apache-2.0
"""A decision tree as something that is released: its tests, its bins with their training persons, and its spans.

Trees that are grown here and trees that others have grown are both of this form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.trees.spans import Spans
from anonfit.engines.tree import LEAF, Tree
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Unseen

if TYPE_CHECKING:
    import polars as pl

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
        classes: NDArray[np.int64] = self.counts[self.counted_node].argmax(axis=1)
        return classes

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """(node, class) the share of each class."""
        counts = self.counts[self.counted_node]
        shares: NDArray[np.float64] = counts / counts.sum(axis=1, keepdims=True)
        return shares

    def to_model_json(self) -> str:
        """The tree as the text of model.json, with the exact number of persons in every bin."""
        from anonfit.algorithms.trees.released import release_tree

        return release_tree(self).to_model_json()
