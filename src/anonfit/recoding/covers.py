# SPDX-License-Identifier: Apache-2.0
"""The names over sets of a taxonomy's leaves: the fewest nodes that together are exactly a set, in leaf order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from anonfit.recoding.labels import name_label, only_name_label, set_label
from anonfit.tables.taxonomy import Taxonomy

__all__ = ["Covers"]


@dataclass(frozen=True)
class Covers:
    """Writes sets of leaves, many at once."""

    taxonomy: Taxonomy

    @cached_property
    def _names(self) -> list[str]:
        """The name by which each node is written: that of the deepest node over its leaves."""
        taxonomy = self.taxonomy
        runs = list(zip(taxonomy.first_leaf, taxonomy.last_leaf, strict=True))
        deepest = dict(zip(runs, taxonomy.names, strict=True))
        return [deepest[run] for run in runs]

    @cached_property
    def _texts(self) -> list[str]:
        """Each node as it is written in a set of names."""
        return [name_label(name) for name in self._names]

    @cached_property
    def _inner(self) -> NDArray[np.int64]:
        return np.setdiff1d(np.arange(len(self.taxonomy.names)), self.taxonomy.leaf_nodes)

    def _nodes(self, sets: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(set, node) the largest nodes all of whose leaves are in the set."""
        inner = self._inner
        first, last = np.array(self.taxonomy.first_leaf)[inner], np.array(self.taxonomy.last_leaf)[inner]
        before = np.zeros((len(sets), sets.shape[1] + 1), np.int32)
        np.cumsum(sets, axis=1, out=before[:, 1:])
        is_whole = np.empty((len(sets), len(self.taxonomy.names)), np.bool_)
        is_whole[:, self.taxonomy.leaf_nodes] = sets
        is_whole[:, inner] = before[:, last + 1] - before[:, first] == last - first + 1
        found = is_whole.copy()
        found[:, 1:] &= ~is_whole[:, np.array(self.taxonomy.parents[1:], dtype=np.int64)]
        return found

    def labels(self, sets: NDArray[np.bool_]) -> list[str]:
        """The label of each set of leaves; of an empty one there is none, and its text has no meaning. sets: (set,
        leaf).
        """
        rows, nodes = np.nonzero(self._nodes(sets))
        ends = np.cumsum(np.bincount(rows, minlength=len(sets))).tolist()
        listed = nodes.tolist()
        return [self._label(listed[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]

    def _label(self, nodes: list[int]) -> str:
        if len(nodes) == 1:
            return only_name_label(self._names[nodes[0]])
        return set_label(map(self._texts.__getitem__, nodes))
