# SPDX-License-Identifier: Apache-2.0
"""The joint heuristic of the report on weighted anonymization (sections 4.3 and 5.1), written plainly: Mondrian whose
splits are chosen by one score of information gain, precision of selection, attribute weight and evenness.

The engines know gain, weight and evenness together (`weight_rule = "combined"`) and do selections first; here all four
are weighed at every split, so that the two can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.tables.taxonomy import Taxonomy

Codes: TypeAlias = NDArray[np.int64]
Run: TypeAlias = tuple[int, int]
"""First code, and the code after the last."""
CUTS = 16
"""Places between numbers that are tried at a node, beside the ends of selections: after equally many rows."""


@dataclass(frozen=True, slots=True)
class Score:
    """How much each heuristic counts; each is scaled to lie between 0 and 1.

    `gain`: the share of the entropy of the classes that a split takes away. `precision`: the share of the rows that are
    answered and not asked for which it takes away. `weight`: the weight of the column, as a share of the largest, times
    its width. `evenness`: the share of pairs of rows that it parts. With `by_best` each of them is a share of the most
    that any allowed split of the node has, so that none is small by its nature.
    """

    gain: float = 0.0
    precision: float = 0.0
    weight: float = 0.0
    evenness: float = 0.0
    by_best: bool = False

    def chosen(self, merits: NDArray[np.float64]) -> int:
        """The best of some splits, one a row, by what each heuristic gives it; of equal ones the first."""
        if self.by_best:
            merits = merits / np.maximum(merits.max(axis=0), 1e-12)
        sums = merits @ np.array([self.gain, self.precision, self.weight, self.evenness])
        return int((sums > sums.max() - 1e-12).argmax())


@dataclass(frozen=True, slots=True)
class Column:
    """A column in codes: ranks of numbers, or leaves of a taxonomy in their order."""

    name: str
    codes: Codes
    size: int
    taxonomy: Taxonomy | None

    @classmethod
    def of(cls, values: pl.Series, tree: Any | None) -> Column:
        """A column of rows."""
        if tree is None:
            codes = values.rank("dense").to_numpy().astype(np.int64) - 1
            return cls(values.name, codes, int(codes.max()) + 1, None)
        taxonomy = Taxonomy.from_tree(tree)
        codes = np.array([taxonomy.leaf_position[value] for value in values.to_list()], np.int64)
        return cls(values.name, codes, len(taxonomy.leaves), taxonomy)


@dataclass(frozen=True, slots=True)
class Region:
    """Rows, and for each column the run of codes they are in, with its taxonomy node (-1 for numbers)."""

    rows: Codes
    runs: tuple[Run, ...]
    nodes: tuple[int, ...]


Selection: TypeAlias = Mapping[int, Run]
"""Columns by number, and the codes that are asked for."""


@dataclass
class JointMondrian:
    """Grows regions of at least k rows by one score."""

    score: Score
    k: int
    weights: Mapping[str, float]
    taxonomies: Mapping[str, Any]
    regions: list[Region] = field(default_factory=list, init=False, repr=False)
    columns: list[Column] = field(default_factory=list, init=False, repr=False)

    def fit(self, frame: pl.DataFrame, classes: pl.Series, selections: Sequence[Mapping[str, Run]]) -> JointMondrian:
        """Divide rows as long as some split leaves k of them in every part.

        Args:
            frame: The quasi-identifiers.
            classes: What is to be predicted of each row.
            selections: What is asked for: columns, and runs of codes.
        """
        self.columns = [Column.of(frame[name], self.taxonomies.get(name)) for name in frame.columns]
        places = {column.name: place for place, column in enumerate(self.columns)}
        self._asked = [{places[name]: run for name, run in one.items()} for one in selections]
        self._labels = classes.rank("dense").to_numpy().astype(np.int64) - 1
        self._wanted = np.array([self._holds(one) for one in self._asked]).reshape(len(selections), len(frame))
        largest = max(self.weights.values(), default=0.0) or 1.0
        self._shares = [self.weights.get(column.name, 0.0) / largest for column in self.columns]
        runs = tuple((0, column.size) for column in self.columns)
        nodes = tuple(-1 if column.taxonomy is None else 0 for column in self.columns)
        waiting, self.regions = [Region(np.arange(len(frame)), runs, nodes)], []
        while waiting:
            region = waiting.pop()
            parts = self._best(region)
            if parts is None:
                self.regions.append(region)
            else:
                waiting.extend(parts)
        return self

    def answered(self) -> tuple[int, int]:
        """How many rows all selections ask for, and how many the regions answer with."""
        returned = sum(
            len(region.rows) for region in self.regions for one in self._asked if _overlaps(region.runs, one)
        )
        return int(self._wanted.sum()), returned

    def labels(self) -> pl.DataFrame:
        """What is told of each row: the run of codes of each column."""
        parts = np.empty((len(self._labels), len(self.columns)), object)
        for region in self.regions:
            parts[region.rows] = [f"{first}-{stop}" for first, stop in region.runs]
        return pl.DataFrame({column.name: parts[:, place].astype(str) for place, column in enumerate(self.columns)})

    def nodes(self) -> Codes:
        """The number of each row's region."""
        numbers = np.empty(len(self._labels), np.int64)
        for number, region in enumerate(self.regions):
            numbers[region.rows] = number
        return numbers

    def _holds(self, selection: Selection) -> NDArray[np.bool_]:
        held = np.ones(len(self._labels), bool)
        for place, (first, stop) in selection.items():
            codes = self.columns[place].codes
            held &= (codes >= first) & (codes < stop)
        return held

    def _best(self, region: Region) -> list[Region] | None:
        """The parts of the best allowed split; of equal ones the first in the order of columns and codes."""
        if len(region.rows) < 2 * self.k:
            return None
        splits = [(place, parts) for place in range(len(self.columns)) for parts in self._splits(region, place)]
        if not splits:
            return None
        entropy, wrong = self._entropy(region.rows), self._wrong(region)
        merits = np.array([self._merits(region, place, parts, entropy, wrong) for place, parts in splits])
        return splits[self.score.chosen(merits)][1]

    def _merits(
        self, region: Region, place: int, parts: list[Region], entropy: float, wrong: int
    ) -> tuple[float, float, float, float]:
        """What each heuristic gives a split, in the order of the score; 0 where it does not count."""
        gain = precision = weight = evenness = 0.0
        if self.score.gain and entropy > 0:
            gain = 1 - sum(self._entropy(part.rows) for part in parts) / entropy
        if self.score.precision and wrong:
            precision = 1 - sum(self._wrong(part) for part in parts) / wrong
        if self.score.weight:
            weight = self._shares[place] * self._width(region, place)
        if self.score.evenness:
            evenness = 1 - sum(len(part.rows) ** 2 for part in parts) / len(region.rows) ** 2
        return gain, precision, weight, evenness

    def _splits(self, region: Region, place: int) -> list[list[Region]]:
        """All splits of a column that leave k rows in every part; parts without rows are left out."""
        column = self.columns[place]
        codes = column.codes[region.rows]
        if column.taxonomy is not None:
            node, taxonomy = region.nodes[place], column.taxonomy
            pieces = [
                (taxonomy.first_leaf[child], taxonomy.last_leaf[child] + 1, child) for child in taxonomy.children(node)
            ]
            divisions = [pieces] if pieces else []
        else:
            divisions = [
                [(region.runs[place][0], cut, -1), (cut, region.runs[place][1], -1)]
                for cut in self._cuts(codes, place, region.runs[place])
            ]
        allowed = []
        for pieces in divisions:
            parts = [self._part(region, place, codes, piece) for piece in pieces]
            held = [part for part in parts if len(part.rows)]
            if all(len(part.rows) >= self.k for part in held):
                allowed.append(held)
        return allowed

    def _cuts(self, codes: Codes, place: int, run: Run) -> list[int]:
        shares = np.linspace(0, 1, CUTS + 2)[1:-1]
        cuts = {int(cut) for cut in np.quantile(codes, shares, method="higher")}
        if self.score.precision:
            cuts |= {end for one in self._asked if place in one for end in one[place]}
        return sorted(cut for cut in cuts if run[0] < cut < run[1])

    def _part(self, region: Region, place: int, codes: Codes, piece: tuple[int, int, int]) -> Region:
        first, stop, node = piece
        runs = (*region.runs[:place], (first, stop), *region.runs[place + 1 :])
        nodes = (*region.nodes[:place], node, *region.nodes[place + 1 :])
        return Region(region.rows[(codes >= first) & (codes < stop)], runs, nodes)

    def _entropy(self, rows: Codes) -> float:
        """The entropy of the classes, times the rows."""
        counts = np.bincount(self._labels[rows])
        known = counts[counts > 0]
        return float(-(known * np.log2(known / len(rows))).sum())

    def _wrong(self, region: Region) -> int:
        """Rows that are answered and not asked for, over all selections."""
        touched = [number for number, one in enumerate(self._asked) if _overlaps(region.runs, one)]
        return len(touched) * len(region.rows) - int(self._wanted[touched][:, region.rows].sum())

    def _width(self, region: Region, place: int) -> float:
        """How much of the column the rows of a region span."""
        codes = self.columns[place].codes[region.rows]
        return float(codes.max() - codes.min()) / max(self.columns[place].size - 1, 1)


def _overlaps(runs: Sequence[Run], selection: Selection) -> bool:
    return all(runs[place][0] < stop and first < runs[place][1] for place, (first, stop) in selection.items())
