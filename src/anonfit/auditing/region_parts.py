# SPDX-License-Identifier: Apache-2.0
"""The parts that the regions of a recoding are made of, column by column: runs of cells, and the values in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from anonfit.auditing.axes import Axis, Cells, axis_of
from anonfit.auditing.boxes import Boxes, box_space, locate_rows
from anonfit.auditing.coding import IntArray
from anonfit.auditing.labels import Interval, Run, ValueSet, cell_count, joined, leaf_interval
from anonfit.auditing.meanings import Meaning
from anonfit.auditing.recoding import RegionGrid, RegionTree

__all__ = ["Part", "RegionSpace", "ends_of", "parts_of", "region_space", "value_set"]

Part = tuple[Run, ...]
_NONE = np.empty(0, np.int64)


def parts_of(tree: RegionTree | RegionGrid, name: str) -> tuple[list[Part], IntArray]:
    """The different parts of a column, and the part of every region of a tree."""
    if isinstance(tree, RegionGrid):
        return sorted(tree.parts[name]), _NONE
    place = tree.columns.index(name)
    if place not in tree.sets:
        ends, of_region = np.unique(
            np.stack([tree.first[:, place], tree.last[:, place]], axis=1), axis=0, return_inverse=True
        )
        return [((int(low), int(high)),) for low, high in ends], of_region.reshape(-1)
    rows, of_region = np.unique(tree.sets[place], axis=0, return_inverse=True)
    cells = (np.flatnonzero(np.unpackbits(bits)).tolist() for bits in rows)
    return [tuple(joined((cell, cell) for cell in some)) for some in cells], of_region.reshape(-1)


def ends_of(low: int, high: int, meaning: Meaning) -> tuple[Decimal | None, Decimal | None]:
    """The ends of a run of cells between cuts."""
    cuts = sorted(meaning.cuts or ())
    return (
        cuts[low - 1] if low else meaning.domain[0],
        cuts[high] if high < len(cuts) else meaning.domain[1],
    )


def value_set(part: Part, meaning: Meaning) -> ValueSet:
    """The values of some cells of a recoding."""
    shift = int(bool(meaning.missing))
    missing = shift == 1 and part[0][0] == 0
    runs = [(max(low, shift) - shift, high - shift) for low, high in part if high >= shift]
    if runs == [(0, cell_count(meaning) - shift - 1)]:
        return ValueSet(missing, everything=True)
    if meaning.tree is not None:
        leaves = [meaning.tree.leaves[cell] for low, high in runs for cell in range(low, high + 1)]
        if meaning.type == "nominal":
            return ValueSet(missing, names=tuple(leaves))
        return ValueSet(missing, intervals=_known(leaf_interval(leaf, meaning) for leaf in leaves))
    if meaning.type == "ordinal":
        return ValueSet(missing, intervals=tuple(Interval(Decimal(low), Decimal(high), True) for low, high in runs))
    return ValueSet(missing, intervals=_known(_interval(low, high, meaning) for low, high in runs))


def _known(found: Iterable[Interval | None]) -> tuple[Interval, ...]:
    return tuple(one for one in found if one is not None)


def _interval(low: int, high: int, meaning: Meaning) -> Interval:
    first, last = ends_of(low, high, meaning)
    return Interval(first, last, closed=high == len(meaning.cuts or ()) and last is not None)


@dataclass(frozen=True, slots=True)
class RegionSpace:
    """The regions of a recoding as places of cells: a region is a part of every column."""

    axes: tuple[Axis, ...]
    sets: tuple[list[ValueSet], ...]  # (column, part)
    parts: IntArray  # (region, column) of a tree
    boxes: Boxes | None  # None: of a grid, where every combination of parts is a region
    tables: tuple[IntArray, ...]  # (column, cell) the part, of a grid

    def parts_at(self, cells: list[Cells], rows: int) -> IntArray:
        """The parts of the region that holds each row, -1 where there is none."""
        if self.boxes is None:
            return np.stack([table[column] for table, column in zip(self.tables, cells, strict=True)], axis=1)
        region = locate_rows(self.boxes, cells, rows=rows).group
        found: IntArray = np.where(region[:, None] < 0, -1, self.parts[region])
        return found


def region_space(
    meanings: Mapping[str, Meaning],
    tree: RegionTree | RegionGrid,
    told: Mapping[str, Iterable[ValueSet]] | None = None,
) -> RegionSpace:
    """The space of these columns; cells tell apart what regions tell apart, and the sets `told` of a column beside."""
    found = {name: parts_of(tree, name) for name in meanings}
    sets = tuple([value_set(part, meanings[name]) for part in parts] for name, (parts, _) in found.items())
    more = told or {}
    axes = tuple(
        axis_of(meaning, [*some, *more.get(name, ())])
        for (name, meaning), some in zip(meanings.items(), sets, strict=True)
    )
    if isinstance(tree, RegionGrid):
        tables = tuple(_table(axis, some) for axis, some in zip(axes, sets, strict=True))
        return RegionSpace(axes, sets, np.empty((0, len(axes)), np.int64), None, tables)
    parts = np.stack([of_region for _, of_region in found.values()], axis=1)
    return RegionSpace(axes, sets, parts, box_space(axes, sets, parts), ())


def _table(axis: Axis, sets: Iterable[ValueSet]) -> IntArray:
    """The part of every cell, -1 of those in none."""
    table = np.full(axis.cells, -1, np.int64)
    for number, one in enumerate(sets):
        for low, high in axis.runs(one):
            table[low : high + 1] = number
    return table
