# SPDX-License-Identifier: Apache-2.0
"""A decision tree as others get it: its tests, and of its bins what the owner of the data tells. It predicts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.trees.tree import ClassName, DecisionTree
from anonfit.engines.tree import LEAF, Tree
from anonfit.errors import DataError, RequestError, did_you_mean, listed
from anonfit.recoding.recoding import Recoding, Unseen
from anonfit.tables.frames import from_frame

__all__ = ["PLACES", "Populations", "ReleasedTree", "release_tree"]

PLACES = 3
"""Decimal places of the shares that are told in place of persons."""


class Populations(StrEnum):
    """What is told of the training persons in every leaf."""

    EXACT = "exact"
    RELATIVE = "relative"
    MAJORITY = "majority"


@dataclass(frozen=True)
class ReleasedTree:
    """A tree that can be saved, drawn, asked and loaded again.

    `bins` has for every leaf and class the training persons (`exact`), the share of the class (`relative`), or
    nothing (`majority`); `predicts` has the class that each leaf tells. Both tell of an empty leaf, but for exact
    populations, what the nearest node above with any persons holds. With `majority`, classes that no leaf tells are
    not among `classes`.
    """

    tiling: Recoding
    public: tuple[str, ...]
    target: str
    classes: tuple[ClassName, ...]
    class_is_public: bool
    populations: Populations
    bins: NDArray[np.float64] | None  # (leaf, class)
    predicts: NDArray[np.int64]  # (leaf,)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it may test."""
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
        return len(self.predicts)

    def __repr__(self) -> str:
        """What it is, in short."""
        return f"ReleasedTree(target={self.target!r}, leaves={self.leaves}, populations='{self.populations}')"

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        """(node, class) what is told of every node; of one that is no leaf, what is told of its leaves together."""
        found = np.zeros((len(self.nodes.column), len(self.classes)))
        told = np.eye(len(self.classes))[self.predicts] if self.bins is None else self.bins
        found[self.nodes.column == LEAF] = told
        first = self.nodes.first_child
        for node in range(len(found) - 1, -1, -1):
            count = int(self.nodes.children[node])
            if count:
                found[node] = found[first[node] : first[node] + count].sum(axis=0)
        for node, parent in enumerate(self.tiling.parents.tolist()):
            if node and not found[node].any():
                found[node] = found[parent]
        return found

    @cached_property
    def _class_of(self) -> NDArray[np.int64]:
        """(node,) the class that is predicted."""
        found: NDArray[np.int64] = self._weights.argmax(axis=1)
        found[self.nodes.column == LEAF] = self.predicts
        return found

    def predict(self, data: Any) -> NDArray[Any]:
        """The class of every row.

        Args:
            data: A polars, pandas or Arrow frame with the columns of the tree. A row with a name that is not known, or
                without a value, is predicted by the node that would have to test it.

        Returns:
            The classes.
        """
        names = np.array(self.classes, dtype=object if len({type(one) for one in self.classes}) > 1 else None)
        found: NDArray[Any] = names[self._class_of[self._ends(data)]]
        return found

    def predict_shares(self, data: Any) -> NDArray[np.float64]:
        """The share of every class where each row ends, in the order of `classes`: 0 or 1 where only the most frequent
        class is told.
        """
        weights = self._weights[self._ends(data)]
        found: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
        return found

    def leaf_of(self, data: Any) -> NDArray[np.int64]:
        """The leaf of every row, -1 for one that ends earlier."""
        found: NDArray[np.int64] = self.nodes.region_of[self._ends(data)].astype(np.int64)
        return found

    def _ends(self, data: Any) -> NDArray[np.int32]:
        frame = from_frame(data)
        if absent := [name for name in self.columns if name not in frame.columns]:
            raise DataError(f"the data has no column {listed(absent)}; the tree needs every column it was grown with.")
        return self.tiling.nodes(self.tiling.cells(frame, unseen=Unseen.ANCESTOR))

    def to_model_json(self) -> str:
        """The tree as the text of model.json."""
        from anonfit.algorithms.trees.storage import to_json

        return to_json(self)

    @classmethod
    def from_model_json(cls, text: str) -> ReleasedTree:
        """Read the text of model.json."""
        from anonfit.algorithms.trees.storage import from_json

        return from_json(text)


def release_tree(tree: DecisionTree, populations: str = Populations.EXACT) -> ReleasedTree:
    """What is told of a tree.

    Args:
        tree: The tree.
        populations: `exact` tells the training persons of every class in every leaf, `relative` their shares, rounded,
            and `majority` only the most frequent class. What k-anonymity says of the tree holds for all three.

    Returns:
        The tree in the form in which it may be given away.
    """
    if populations not in set(Populations):
        raise RequestError(f"populations = '{populations}' is not known; {did_you_mean(populations, Populations)}")
    kind = Populations(populations)
    leaves = tree.leaf_nodes
    predicts, classes = tree.majority[leaves], tree.classes
    bins: NDArray[np.float64] | None = None
    if kind == Populations.MAJORITY:
        # A class that no leaf tells would still say that somebody has it.
        told, predicts = np.unique(predicts, return_inverse=True)
        classes = tuple(classes[one] for one in told.tolist())
    elif kind == Populations.EXACT:
        bins = tree.bins.astype(np.float64)
    else:
        bins = np.round(tree.shares[leaves], PLACES)
    return ReleasedTree(
        tree.tiling,
        tree.public,
        tree.target,
        classes,
        tree.class_is_public,
        kind,
        bins,
        predicts,
    )
