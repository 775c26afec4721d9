# SPDX-License-Identifier: Apache-2.0
"""The columns of a recoding: how a value finds its cell, and how a run of cells is written. Cells are what a recoding
tells apart.

Cell 0 is the missing value in a column that has missing values; the others follow the order of the values or of the
leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.bits import Bits, bits_of_pairs, blocks_of, unpacked
from anonfit.recoding import labels
from anonfit.recoding.covers import Covers
from anonfit.tables.domains import name_positions, texts_of
from anonfit.tables.frames import categorized
from anonfit.tables.scales import Axis, Cut, Scale, cut_text, on_axis, parse_cut, thresholds
from anonfit.tables.schema import ColumnType
from anonfit.tables.taxonomy import Taxonomy
from anonfit.tables.taxonomy_leaves import leaf_positions

if TYPE_CHECKING:
    import polars as pl

__all__ = ["NominalCells", "OrderedCells", "OrdinalCells", "RecodedColumn", "declared_ends"]

Cells = NDArray[np.int32]


class RecodedColumn(Protocol):
    """One quasi-identifier of a recoding."""

    @property
    def name(self) -> str:
        """The column's name."""

    @property
    def has_missing(self) -> bool:
        """Whether cell 0 is the missing value."""

    @property
    def type(self) -> ColumnType:
        """How its values are ordered or matched."""

    @property
    def date_format(self) -> str | None:
        """How its dates are written where they are texts."""

    @property
    def size(self) -> int:
        """How many cells there are."""

    def cells_of(self, values: pl.Series) -> Cells:
        """The cell of each value that is not missing; -1 where the recoding does not know it."""

    def label(self, cells: Sequence[int]) -> str:
        """The label of some cells, given in ascending order."""


def _label(column: RecodedColumn, cells: Sequence[int], known_label: str) -> str:
    """The label of cells whose known values have `known_label`."""
    if len(cells) == column.size:
        return labels.EVERYTHING
    if not column.has_missing or cells[0] > 0:
        return known_label
    return labels.MISSING if len(cells) == 1 else labels.with_missing(known_label)


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

    @property
    def size(self) -> int:
        """Intervals between the cuts, and missing."""
        return len(self.cuts) + 1 + int(self.has_missing)

    def cells_of(self, values: pl.Series) -> Cells:
        """The interval of each value: beyond open ends the end interval; beyond a declared domain there is none."""
        return self.cells_on_axis(on_axis(values), values.dtype)

    def cells_on_axis(self, numbers: Axis, dtype: pl.DataType) -> Cells:
        """The interval of each number on the axis of a column type."""
        found = np.searchsorted(thresholds(self.cuts, dtype), numbers, side="right") + int(self.has_missing)
        if self.domain:
            low = thresholds(self.domain[:1], dtype)[0]
            high = thresholds(self.domain[1:], dtype, rounding=ROUND_FLOOR)[0]
            found = np.where((numbers < low) | (numbers > high), -1, found)
        return found.astype(np.int32)

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
        low, high = self.ends(cells)
        known = labels.interval_label(
            None if low is None else cut_text(low),
            None if high is None else cut_text(high),
            closed=bool(self.domain) and self.is_last(cells),
        )
        return _label(self, cells, known)


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
        found = name_positions(self.order, values)
        return np.where(found < 0, -1, found + int(self.has_missing)).astype(np.int32)

    def ends(self, cells: Sequence[int]) -> tuple[str | None, str | None]:
        """The first word of a run of cells and the word after its last, None where the run reaches the end of the
        order.
        """
        first = max(cells[0] - int(self.has_missing), 0)
        last = cells[-1] - int(self.has_missing)
        return (
            self.order[first] if first > 0 else None,
            self.order[last + 1] if last + 1 < len(self.order) else None,
        )

    def label(self, cells: Sequence[int]) -> str:
        """One word, or an interval of the order."""
        known = [cell for cell in cells if cell >= int(self.has_missing)]
        if len(known) == 1:
            return _label(self, cells, labels.name_label(self.order[known[0] - int(self.has_missing)]))
        low, high = self.ends(known) if known else (None, None)
        ends = (None if end is None else labels.name_label(end) for end in (low, high))
        text = labels.interval_label(*ends)
        return _label(self, cells, text)


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
        import polars as pl

        if self.type == ColumnType.NOMINAL and values.dtype != pl.Boolean:
            distinct, places = categorized(texts_of(values))
        else:
            distinct = values.unique()
            places = _places(values, distinct)
        if self.other is None:
            found = leaf_positions(self.taxonomy, distinct, column=self.name)
        else:
            found = name_positions(self.taxonomy.leaves, distinct)
            # A value that happens to be written as the leaf of unnamed values is itself not named.
            found[found == self.taxonomy.leaf_position[self.other]] = -1
        cells = np.where(found < 0, -1, found + int(self.has_missing)).astype(np.int32)
        located: Cells = cells[places]
        return located

    @property
    def other_cell(self) -> int:
        """The cell of values that are not named, -1 without one."""
        return -1 if self.other is None else self.taxonomy.leaf_position[self.other] + int(self.has_missing)

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
        found = []
        for block in blocks_of(len(sets), self.size):
            held = unpacked(sets[block], self.size)
            texts = self._covers.labels(held[:, shift:])
            missing = held[:, 0].tolist() if self.has_missing else [False] * len(held)
            counts = held[:, shift:].sum(axis=1).tolist()
            found += [self._label(*one) for one in zip(texts, missing, counts, strict=True)]
        return found

    def _label(self, names: str, missing: bool, known: int) -> str:
        """The label of so many known cells, whose names are given, and perhaps of missing."""
        if known == self.size - int(self.has_missing):
            return labels.EVERYTHING if missing or not self.has_missing else labels.NOT_MISSING
        if not missing:
            return names
        return labels.with_missing(names) if known else labels.MISSING


def _places(values: pl.Series, distinct: pl.Series) -> NDArray[Any]:
    """The place of each value among the distinct ones."""
    import polars as pl

    lookup = pl.DataFrame({"value": distinct, "place": np.arange(len(distinct), dtype=np.int64)})
    joined = pl.DataFrame({"value": values}).join(
        lookup, on="value", how="left", maintain_order="left", nulls_equal=True
    )
    found: NDArray[Any] = joined["place"].to_numpy()
    return found


def declared_ends(domain: tuple[object, ...], scale: Scale) -> tuple[Cut, ...]:
    """A declared domain as the two ends of an ordered column."""
    return tuple(parse_cut(end, scale) for end in domain)
