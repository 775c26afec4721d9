# SPDX-License-Identifier: Apache-2.0
"""The columns of a recoding: how a value finds its cell, and the label of a run or a set of cells (docs/labels.md).
Only writing: the audit reads labels with a parser of its own.

Cells are what a recoding tells apart. Cell 0 is the missing value in a column that has missing values; the others
follow the order of the values or of the leaves.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.engines.tree import Bits, bits_of_pairs, blocks_of, unpacked
from anonfit.tables.frames import categorized
from anonfit.tables.scales import Axis, Cut, Scale, cut_text, on_axis, thresholds
from anonfit.tables.schema import ColumnType, name_positions, texts_of
from anonfit.tables.taxonomy import Taxonomy
from anonfit.tables.taxonomy_leaves import leaf_positions

EVERYTHING = "*"
MISSING = "missing"
NOT_MISSING = "not missing"
OR_MISSING = "missing or "

_UNSAFE = re.compile(r'^$|^\s|\s$|[,"{}\x00-\x1f\x7f-\x9f\u2028\u2029]|^[\[<≥*]|^missing or ')

_INTERVAL = re.compile(r'(\[[^,"{}\x00-\x1f]+, [^,"{}\x00-\x1f]+[)\]])|([<≥] [^,"{}\x00-\x1f]*[^,"{}\s\x00-\x1f])')


def name_label(name: str) -> str:
    """A name as it is, or as a JSON string where it could be misread."""
    if _UNSAFE.search(name) or name in (MISSING, NOT_MISSING):
        return json.dumps(name, ensure_ascii=False)
    return name


def interval_label(low: str | None, high: str | None, *, closed: bool = False) -> str:
    """A range of ordered values; None is an open end, and a closed range holds its upper end."""
    if low is None:
        return NOT_MISSING if high is None else f"< {high}"
    if high is None:
        return f"≥ {low}"
    if closed and low == high:
        return low
    return f"[{low}, {high}{']' if closed else ')'}"


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
        largest = is_whole.copy()
        largest[:, 1:] &= ~is_whole[:, np.array(self.taxonomy.parents[1:], dtype=np.int64)]
        return largest

    def labels(self, sets: NDArray[np.bool_]) -> list[str]:
        """The label of each set of leaves; that of an empty set has no meaning. sets: (set, leaf)."""
        rows, nodes = np.nonzero(self._nodes(sets))
        ends = np.cumsum(np.bincount(rows, minlength=len(sets))).tolist()
        listed = nodes.tolist()
        return [self._label(listed[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]

    def _label(self, nodes: list[int]) -> str:
        if len(nodes) != 1:
            return "{" + ", ".join(map(self._texts.__getitem__, nodes)) + "}"
        # A name alone that is an interval stands as it is: no other nominal label begins like it.
        name = self._names[nodes[0]]
        return name if _INTERVAL.fullmatch(name) else self._texts[nodes[0]]


Cells = NDArray[np.int32]


def _label(column: RecodedColumn, known: int, missing: bool, text: str) -> str:
    """The label of so many known cells, which have this text, and perhaps of missing."""
    if known + missing == column.size:
        return EVERYTHING
    if not missing:
        return text
    return OR_MISSING + text if known else MISSING


@dataclass(frozen=True)
class OrderedCells:
    """Numbers or dates between cuts. `domain` is the declared range, or empty where the ends are open."""

    name: str
    type: ColumnType
    scale: Scale
    cuts: tuple[Cut, ...]
    has_missing: bool
    domain: tuple[Cut, ...] = ()
    date_format: str | None = None
    closed: bool = False
    """Whether intervals of whole numbers are written with both ends, 38–42 in place of [38, 43)."""

    @property
    def is_whole(self) -> bool:
        """Whether its values are whole numbers."""
        return self.scale == Scale.WHOLE

    @property
    def size(self) -> int:
        """Intervals between the cuts, and missing."""
        return len(self.cuts) + 1 + int(self.has_missing)

    def cells_of(self, values: pl.Series) -> Cells:
        """The interval of each value: beyond open ends the end interval; beyond a declared domain there is none."""
        return self.cells_on_axis(on_axis(values), values.dtype)

    def cells_on_axis(self, numbers: Axis, dtype: pl.DataType) -> Cells:
        """The interval of each number on the axis of a column type."""
        cells = np.searchsorted(thresholds(self.cuts, dtype), numbers, side="right") + int(self.has_missing)
        if self.domain:
            low = thresholds(self.domain[:1], dtype)[0]
            high = thresholds(self.domain[1:], dtype, rounding=ROUND_FLOOR)[0]
            cells = np.where((numbers < low) | (numbers > high), -1, cells)
        return cells.astype(np.int32)

    def ends(self, cells: Sequence[int]) -> tuple[Cut | None, Cut | None]:
        """Lower and upper end of the intervals of a run of cells, None where it is open."""
        first = max(cells[0] - int(self.has_missing), 0)
        last = max(cells[-1] - int(self.has_missing), 0)
        low = self.cuts[first - 1] if first > 0 else (self.domain[0] if self.domain else None)
        high = self.cuts[last] if last < len(self.cuts) else (self.domain[1] if self.domain else None)
        return low, high

    def is_last(self, cells: Sequence[int]) -> bool:
        """Whether the run reaches the upper end of the column."""
        return cells[-1] == self.size - 1

    def label(self, cells: Sequence[int]) -> str:
        """The interval of a run of cells."""
        missing = self.has_missing and cells[0] == 0
        text = self.interval(*self.ends(cells), closed=bool(self.domain) and self.is_last(cells))
        return _label(self, len(cells) - missing, missing, text)

    def interval(self, low: Any, high: Any, *, closed: bool) -> str:
        """The label of the values between two ends; of whole numbers, one alone is that number."""
        low_text, high_text = (None if end is None else cut_text(end) for end in (low, high))
        if self.scale != Scale.WHOLE:
            return interval_label(low_text, high_text, closed=closed)
        first = None if low is None else math.ceil(low)
        last = None if high is None else math.floor(high) if closed else math.ceil(high) - 1
        if first is not None and first == last:
            return str(first)
        if not self.closed or (first is None and last is None):
            return interval_label(low_text, high_text, closed=closed)
        if first is None or last is None:
            return f"≥ {first}" if last is None else f"≤ {last}"
        return f"{first}–{last}"


@dataclass(frozen=True)
class OrdinalCells:
    """Words of a declared order."""

    name: str
    order: tuple[str, ...]
    has_missing: bool
    type: ColumnType = ColumnType.ORDINAL
    date_format: str | None = None

    @property
    def size(self) -> int:
        """The words, and missing."""
        return len(self.order) + int(self.has_missing)

    def cells_of(self, values: pl.Series) -> Cells:
        """The rank of each word."""
        positions = name_positions(self.order, values)
        return np.where(positions < 0, -1, positions + int(self.has_missing)).astype(np.int32)

    def ends(self, cells: Sequence[int]) -> tuple[str | None, str | None]:
        """The first word of a run of cells and the word after its last; None where the order begins or ends."""
        first = max(cells[0] - int(self.has_missing), 0)
        last = cells[-1] - int(self.has_missing)
        return (self.order[first] if first > 0 else None, self.order[last + 1] if last + 1 < len(self.order) else None)

    def label(self, cells: Sequence[int]) -> str:
        """One word, or an interval of the order."""
        known = [cell for cell in cells if cell >= int(self.has_missing)]
        if len(known) == 1:
            text = name_label(self.order[known[0] - int(self.has_missing)])
        else:
            ends = self.ends(known) if known else (None, None)
            text = interval_label(*(None if end is None else name_label(end) for end in ends))
        return _label(self, len(known), len(known) < len(cells), text)


@dataclass(frozen=True)
class NominalCells:
    """Leaves of a taxonomy, matched by name, or by value in a column of numbers or dates (`type`).

    `other` is the leaf of values that are not named.
    """

    name: str
    taxonomy: Taxonomy
    has_missing: bool
    other: str | None = None
    type: ColumnType = ColumnType.NOMINAL
    date_format: str | None = None

    @property
    def size(self) -> int:
        """The leaves, and missing."""
        return len(self.taxonomy.leaves) + int(self.has_missing)

    def cells_of(self, values: pl.Series) -> Cells:
        """The leaf of each value."""
        if self.type == ColumnType.NOMINAL and values.dtype != pl.Boolean:
            distinct, places = categorized(texts_of(values))
        else:
            distinct = values.unique()
            lookup = pl.DataFrame({"value": distinct, "place": np.arange(len(distinct), dtype=np.int64)})
            joined = values.to_frame("value").join(
                lookup, on="value", how="left", maintain_order="left", nulls_equal=True
            )
            places = joined["place"].to_numpy()
        if self.other is None and distinct.dtype != pl.String:
            positions = leaf_positions(self.taxonomy, distinct, column=self.name)
        else:
            positions = name_positions(self.taxonomy.leaves, distinct)
        if self.other is not None:
            # A value that happens to be written as the leaf of unnamed values is itself not named.
            positions[positions == self.taxonomy.leaf_position[self.other]] = -1
        cells: Cells = np.where(positions < 0, -1, positions + int(self.has_missing)).astype(np.int32)[places]
        return cells

    @property
    def other_cell(self) -> int:
        """The cell of values that are not named, -1 without one."""
        return -1 if self.other is None else self.taxonomy.leaf_position[self.other] + int(self.has_missing)

    @property
    def names_nothing(self) -> bool:
        """Whether all values are among those that are not named, so that a label tells nothing."""
        return self.other is not None and len(self.taxonomy.leaves) == 1

    @cached_property
    def _covers(self) -> Covers:
        return Covers(self.taxonomy)

    def label(self, cells: Sequence[int]) -> str:
        """The names of the cells."""
        none = np.zeros(len(cells), np.int64)
        return self.labels(bits_of_pairs(none, np.array(cells, np.int64), 1, self.size))[0]

    def labels(self, sets: Bits) -> list[str]:
        """The labels of many sets of cells, none of them empty. sets: (set, byte)."""
        shift = int(self.has_missing)
        labels: list[str] = []
        for block in blocks_of(len(sets), self.size):
            held = unpacked(sets[block], self.size)
            texts = self._covers.labels(held[:, shift:])
            missing = held[:, 0].tolist() if self.has_missing else [False] * len(held)
            counts = held[:, shift:].sum(axis=1).tolist()
            labels += [
                _label(self, known, is_missing, NOT_MISSING if known == self.size - shift else text)
                for text, is_missing, known in zip(texts, missing, counts, strict=True)
            ]
        return labels


RecodedColumn: TypeAlias = OrderedCells | OrdinalCells | NominalCells
"""One quasi-identifier of a recoding. `cells_of` gives -1 where the recoding does not know a value, and is asked of
values that are not missing; `label` is given cells in ascending order.
"""
