# SPDX-License-Identifier: Apache-2.0
"""Greedy single-dimensional searches by the metrics of Iyengar (KDD 2002): loss metric and classification metric.

They stand in for his genetic algorithm: from whole columns down, the refinement that lowers the metric most is made as
long as k allows one. The experiments of TKDE 2007 compare top-down refinement with the two metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.tables.taxonomy import Taxonomy

Metric: TypeAlias = Literal["LM", "CM"]
Codes: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Axis:
    """A column in codes: leaves of a taxonomy, or the ranks of its values."""

    name: str
    values: Sequence[Any]
    codes: Codes
    taxonomy: Taxonomy | None

    @property
    def size(self) -> int:
        return len(self.values)


Part: TypeAlias = tuple[int, int, int]
"""First code, the code after the last, and the taxonomy node (-1 in a column of numbers)."""


@dataclass
class MetricSearch:
    """Learns parts of every column from rows, and recodes any rows by them."""

    metric: Metric
    k: int
    taxonomies: Mapping[str, Any]
    parts: dict[str, list[Part]] = field(default_factory=dict, init=False)
    _axes: list[_Axis] = field(default_factory=list, init=False, repr=False)

    def fit(self, frame: pl.DataFrame, labels: pl.Series) -> MetricSearch:
        """Refine whole columns as long as every combination keeps k rows."""
        self._axes = [self._axis(frame[name]) for name in frame.columns]
        classes = labels.rank("dense").to_numpy().astype(np.int64) - 1
        parts = {axis.name: [(0, axis.size, 0 if axis.taxonomy else -1)] for axis in self._axes}
        groups = np.zeros(len(frame), np.int64)
        waiting = [(axis, part) for axis in self._axes for part in parts[axis.name]]
        while waiting:
            tried = [(axis, part, self._best(axis, part, groups, classes)) for axis, part in waiting]
            waiting = [(axis, part) for axis, part, best in tried if best is not None]
            choices = [(best[0], axis, part, best[1]) for axis, part, best in tried if best is not None]
            if not choices:
                break
            _, axis, part, pieces = max(choices, key=lambda choice: choice[0])
            place = parts[axis.name].index(part)
            parts[axis.name][place : place + 1] = pieces
            groups = _divided(groups, axis.codes, pieces)
            waiting = [candidate for candidate in waiting if candidate != (axis, part)] + [
                (axis, piece) for piece in pieces
            ]
        self.parts = parts
        return self

    def apply(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Recode rows: the name of each value's part."""
        columns = []
        for axis in self._axes:
            starts = np.array([part[0] for part in self.parts[axis.name]])
            places = np.searchsorted(starts, self._codes(axis, frame[axis.name]), side="right") - 1
            columns.append(pl.Series(axis.name, [f"part {place}" for place in places.tolist()]))
        return pl.DataFrame(columns)

    def _axis(self, values: pl.Series) -> _Axis:
        tree = self.taxonomies.get(values.name)
        taxonomy = None if tree is None else Taxonomy.from_tree(tree)
        known = values.unique().sort().to_list() if taxonomy is None else list(taxonomy.leaves)
        empty = _Axis(values.name, known, np.zeros(0, np.int64), taxonomy)
        return _Axis(values.name, known, self._codes(empty, values), taxonomy)

    def _codes(self, axis: _Axis, values: pl.Series) -> Codes:
        if axis.taxonomy is None:
            numbers = np.searchsorted(np.array(axis.values, np.float64), values.to_numpy(), side="right") - 1
            return np.maximum(numbers, 0).astype(np.int64)
        return np.array([axis.taxonomy.leaf_position[value] for value in values.to_list()], np.int64)

    def _best(self, axis: _Axis, part: Part, groups: Codes, classes: Codes) -> tuple[float, list[Part]] | None:
        """How much the best refinement of a part that k allows lowers the metric, and its pieces."""
        tried = [
            (self._lowered(axis, part, pieces, groups, classes), pieces)
            for pieces in _refinements(axis, part)
            if _smallest(_divided(groups, axis.codes, pieces)) >= self.k
        ]
        return max(tried, key=lambda choice: choice[0], default=None)

    def _lowered(self, axis: _Axis, part: Part, pieces: list[Part], groups: Codes, classes: Codes) -> float:
        rows = (axis.codes >= part[0]) & (axis.codes < part[1])
        loss = _loss(axis, part) * rows.sum()
        loss -= sum(_loss(axis, piece) * ((axis.codes >= piece[0]) & (axis.codes < piece[1])).sum() for piece in pieces)
        if self.metric == "LM":
            return float(loss)
        # Among refinements that tell no more of the classes, the loss decides.
        return _wrong(groups, classes) - _wrong(_divided(groups, axis.codes, pieces), classes) + float(loss) / 1e9


def _refinements(axis: _Axis, part: Part) -> list[list[Part]]:
    """The children of a node, or two intervals around the quantiles of an interval's rows."""
    first, stop, node = part
    if axis.taxonomy is not None:
        children = axis.taxonomy.children(node)
        pieces = [(axis.taxonomy.first_leaf[child], axis.taxonomy.last_leaf[child] + 1, child) for child in children]
        return [pieces] if pieces else []
    held = axis.codes[(axis.codes >= first) & (axis.codes < stop)]
    if not len(held):
        return []
    cuts = {int(cut) for cut in np.quantile(held, np.linspace(0.1, 0.9, 9), method="higher")} - {first}
    return [[(first, cut, -1), (cut, stop, -1)] for cut in sorted(cuts) if first < cut < stop]


def _divided(groups: Codes, codes: Codes, pieces: list[Part]) -> Codes:
    """The groups of rows once a part is refined into pieces."""
    place = np.zeros(len(codes), np.int64)
    for number, (first, stop, _) in enumerate(pieces, 1):
        place[(codes >= first) & (codes < stop)] = number
    divided: Codes = np.unique(groups * (len(pieces) + 1) + place, return_inverse=True)[1]
    return divided


def _smallest(groups: Codes) -> int:
    return int(np.bincount(groups).min())


def _loss(axis: _Axis, part: Part) -> float:
    """What a row of this part has lost: the share of the column's other values that it may be."""
    if axis.taxonomy is not None:
        return (part[1] - part[0] - 1) / max(axis.size - 1, 1)
    values = axis.values
    return float(values[part[1] - 1] - values[part[0]]) / max(float(values[-1] - values[0]), 1e-12)


def _wrong(groups: Codes, classes: Codes) -> float:
    """Rows whose class is not that of most rows of their group."""
    width = int(classes.max()) + 1
    counts = np.bincount(groups * width + classes, minlength=(int(groups.max()) + 1) * width).reshape(-1, width)
    return float(len(groups) - counts.max(axis=1).sum())
