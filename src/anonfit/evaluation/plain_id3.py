# SPDX-License-Identifier: Apache-2.0
"""Quinlan's ID3 as it was before C4.5: names only, the highest information gain, a branch for each value, no pruning.

It is the baseline of PKDD 2006 that knows no privacy, written apart from the k-anonymous trees that it is held against.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.evaluation.learners import codes_of

Codes: TypeAlias = NDArray[np.int64]


@dataclass(slots=True)
class _Node:
    """A node: the most frequent class of its rows, and the column and sons it is divided by, if it is."""

    label: int
    column: int = -1
    sons: dict[int, _Node] = field(default_factory=dict)


@dataclass
class PlainId3:
    """A model of classes. A row with a value that its node has not seen gets the most frequent class of that node."""

    _names: dict[str, pl.Series] = field(default_factory=dict, init=False, repr=False)
    _classes: pl.Series = field(default_factory=pl.Series, init=False, repr=False)
    _root: _Node = field(default_factory=lambda: _Node(0), init=False, repr=False)

    def fit(self, features: pl.DataFrame, labels: pl.Series) -> PlainId3:
        """Learn from rows; every column is taken as names."""
        self._names = {column.name: column.cast(pl.String).unique().sort() for column in features}
        self._classes = labels.unique().sort()
        codes, classes = self._codes(features), codes_of(labels, self._classes)
        self._root = _Node(0)
        waiting = [(self._root, np.arange(len(codes)), frozenset(range(features.width)))]
        while waiting:
            node, rows, columns = waiting.pop()
            counts = np.bincount(classes[rows], minlength=len(self._classes))
            node.label = int(counts.argmax())
            gains = {column: _gain(codes[rows, column], classes[rows], counts) for column in sorted(columns)}
            best = max(gains, key=lambda column: gains[column], default=-1)
            if counts.max() == len(rows) or best < 0 or gains[best] <= 1e-12:
                continue
            node.column = best
            own = codes[rows, best]
            for value in np.unique(own).tolist():
                node.sons[value] = _Node(node.label)
                waiting.append((node.sons[value], rows[own == value], columns - {best}))
        return self

    def predict(self, features: pl.DataFrame) -> pl.Series:
        """The class of the node in which each row ends."""
        return self._classes.gather([node.label for node in self._ends(features)])

    def undecided(self, features: pl.DataFrame) -> NDArray[np.bool_]:
        """Rows that end in an inner node, because its column has a value that was not seen there; Weka's Id3 does not
        classify them.
        """
        return np.array([node.column >= 0 for node in self._ends(features)])

    def _codes(self, features: pl.DataFrame) -> Codes:
        codes = [codes_of(features[name].cast(pl.String), known) for name, known in self._names.items()]
        return np.stack(codes, 1) if codes else np.zeros((len(features), 0), np.int64)

    def _ends(self, features: pl.DataFrame) -> list[_Node]:
        ends = []
        for row in self._codes(features).tolist():
            node = self._root
            while node.column >= 0 and row[node.column] in node.sons:
                node = node.sons[row[node.column]]
            ends.append(node)
        return ends


def _gain(values: Codes, classes: Codes, counts: Codes) -> float:
    """The information gain of dividing rows by a column, in bits a row."""
    table = np.zeros((int(values.max()) + 1, len(counts)))
    np.add.at(table, (values, classes), 1)
    return (_bits(counts) - sum(_bits(row) for row in table)) / len(values)


def _bits(counts: NDArray[np.number]) -> float:
    """The entropy of rows with these counts of classes, times their number."""
    known = counts[counts > 0]
    return float(-(known * np.log2(known / known.sum())).sum())
