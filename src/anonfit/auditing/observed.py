# SPDX-License-Identifier: Apache-2.0
"""Labels of what the records of a group have (regions = "observed") against the recoding and the source: each lies in
one region, no two in the same, and it says no more and no less than what the records have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from anonfit.auditing.axes import Axis, Cells
from anonfit.auditing.boxes import Boxes, box_space
from anonfit.auditing.coding import IntArray
from anonfit.auditing.hashing import mixed
from anonfit.auditing.labels import Interval, Run, ValueSet, leaf_interval
from anonfit.auditing.meanings import Meaning
from anonfit.auditing.recoding import RegionGrid, RegionTree
from anonfit.auditing.region_parts import RegionSpace, region_space
from anonfit.auditing.released import ColumnLabels

__all__ = ["Seen", "observed_groups"]

_MISSING = ValueSet(missing=True)


def observed_groups(
    columns: Mapping[str, ColumnLabels], tree: RegionTree | RegionGrid, groups: int
) -> tuple[int, Boxes | None, Seen | None]:
    """How many groups lie in no region, or in one with others; the regions as boxes, each of the group in it; and what
    takes in the records of the groups.
    """
    if not tree.fits or not columns:
        return max(1, groups), None, None
    meanings = {name: column.meaning for name, column in columns.items()}
    labels = {name: [_said(found, column.meaning) for found in column.sets] for name, column in columns.items()}
    units = {name: _units(meaning) for name, meaning in meanings.items()}
    space = region_space(meanings, tree, {name: [*labels[name], *units[name]] for name in columns})
    runs = [[axis.runs(one) for one in some] for axis, some in zip(space.axes, labels.values(), strict=True)]
    of_group = np.stack([column.of_group for column in columns.values()], axis=1)
    corners = [
        np.array([one[0][0] for one in some], np.int32)[codes] for some, codes in zip(runs, of_group.T, strict=True)
    ]
    parts = space.parts_at(corners, groups)
    known: npt.NDArray[np.bool_] = np.all(parts >= 0, axis=1)
    for place, column in enumerate(columns.values()):
        unread = np.array([found is None or code == column.empty for code, found in enumerate(column.sets)], np.bool_)
        known &= ~unread[column.of_group] & _inside(runs[place], space, place, column.of_group, parts[:, place])
    _, first, count = np.unique(parts[known], axis=0, return_inverse=True, return_counts=True)
    known[np.flatnonzero(known)[count[first.reshape(-1)] > 1]] = False
    made = [
        _Column.of(axis, some, units[name], column.of_group)
        for axis, some, (name, column) in zip(space.axes, runs, columns.items(), strict=True)
    ]
    seen = Seen(groups, made, [meaning.tree is None for meaning in meanings.values()])
    return groups - int(known.sum()), _boxes(space, parts, known), seen


def _said(found: ValueSet | None, meaning: Meaning) -> ValueSet:
    """What a label says: of a column without missing values a star says nothing of these, and an interval of words is
    that of its first and last; no label is any.
    """
    if found is None:
        return _MISSING
    if meaning.type == "ordinal" and meaning.tree is None and found.intervals:
        words = [_words(one, len(meaning.order)) for one in found.intervals]
        return replace(found, intervals=tuple(words))
    return replace(found, missing=False) if found.everything and not meaning.missing else found


def _words(one: Interval, count: int) -> Interval:
    first = Decimal(0) if one.lower is None else one.lower
    last = Decimal(count - 1) if one.upper is None else one.upper - (0 if one.closed else 1)
    return Interval(first, last, closed=True)


def _units(meaning: Meaning) -> list[ValueSet]:
    """The leaves or words of a column; numbers and dates have none."""
    if meaning.tree is not None:
        if meaning.type == "nominal":
            return [ValueSet(names=(leaf,)) for leaf in meaning.tree.leaves]
        found = [leaf_interval(leaf, meaning) for leaf in meaning.tree.leaves]
        return [ValueSet(intervals=(one,)) for one in found if one is not None]
    return [ValueSet(intervals=(Interval(Decimal(i), Decimal(i), closed=True),)) for i in range(len(meaning.order))]


def _inside(
    runs: Sequence[list[Run]], space: RegionSpace, place: int, labels: IntArray, parts: IntArray
) -> npt.NDArray[np.bool_]:
    """Whether the label of each group lies in the part of the region that its corner is in."""
    held = [space.axes[place].runs(one) for one in space.sets[place]]
    pairs, of_pair = np.unique(np.stack([labels, parts], axis=1), axis=0, return_inverse=True)
    found = np.array([part >= 0 and _within(runs[label], held[part]) for label, part in pairs.tolist()], np.bool_)
    return found[of_pair.reshape(-1)]


def _within(runs: list[Run], held: list[Run]) -> bool:
    return all(any(low <= first and last <= high for low, high in held) for first, last in runs)


def _boxes(space: RegionSpace, parts: IntArray, known: npt.NDArray[np.bool_]) -> Boxes:
    """The regions that groups lie in, as boxes."""
    boxes = box_space(space.axes, space.sets, parts[known])
    return replace(boxes, group_of_box=np.flatnonzero(known)[boxes.group_of_box])


@dataclass(slots=True)
class _Column:
    """What a column's labels say, and what the records of every group have: of numbers and dates the cells they reach
    from and to, of leaves and words which there are, as one sum.
    """

    table: IntArray | None  # (cell) the leaf or word, -1: none; None: numbers and dates
    low: IntArray  # (group) as the label says
    high: IntArray
    missing: npt.NDArray[np.bool_]
    signs: npt.NDArray[np.uint64]
    seen_low: IntArray
    seen_high: IntArray
    seen_missing: npt.NDArray[np.bool_]
    pairs: IntArray  # of a group and a leaf or word, as one number

    @classmethod
    def of(cls, axis: Axis, runs: Sequence[list[Run]], units: Sequence[ValueSet], of_group: IntArray) -> _Column:
        groups = len(of_group)
        table = None
        if units:
            table = np.full(axis.cells, -1, np.int64)
            for number, one in enumerate(units):
                for first, last in axis.runs(one):
                    table[first : last + 1] = number
        present = [[(max(1, low), high) for low, high in some if high > 0] for some in runs]
        low = np.array([some[0][0] if some else axis.cells for some in present], np.int64)
        high = np.array([some[-1][1] if some else -1 for some in present], np.int64)
        signs = np.zeros(len(runs), np.uint64)
        if table is not None:
            for place, some in enumerate(present):
                held = [table[first : last + 1] for first, last in some]
                numbers = np.unique(np.concatenate(held)) if held else np.empty(0, np.int64)
                numbers = numbers[numbers >= 0]
                signs[place] = mixed(numbers.astype(np.uint64) + np.uint64(1)).sum(dtype=np.uint64)
                low[place], high[place] = (numbers[0], numbers[-1]) if len(numbers) else (axis.cells, -1)
        missing = np.array([bool(some) and some[0][0] == 0 for some in runs], np.bool_)
        return cls(
            table,
            low[of_group],
            high[of_group],
            missing[of_group],
            signs[of_group],
            np.full(groups, axis.cells, np.int64),
            np.full(groups, -1, np.int64),
            np.zeros(groups, np.bool_),
            np.empty(0, np.int64),
        )

    def add(self, groups: IntArray, cells: Cells) -> None:
        """More records."""
        lost = cells == 0
        self.seen_missing[groups[lost]] = True
        groups, found = groups[~lost], cells[~lost].astype(np.int64)
        if self.table is not None:
            found = self.table[found]
            self.pairs = np.union1d(self.pairs, groups * len(self.table) + found)
        np.minimum.at(self.seen_low, groups, found)
        np.maximum.at(self.seen_high, groups, found)

    def wrong(self, *, by_ends: bool) -> npt.NDArray[np.bool_]:
        """The groups whose label is not what their records have."""
        same = (self.seen_low == self.low) & (self.seen_high == self.high) & (self.seen_missing == self.missing)
        if self.table is not None and not by_ends:
            signs = np.zeros(len(self.low), np.uint64)
            numbers = mixed((self.pairs % len(self.table)).astype(np.uint64) + np.uint64(1))
            np.add.at(signs, self.pairs // len(self.table), numbers)
            same &= signs == self.signs
        wrong: npt.NDArray[np.bool_] = ~same
        return wrong


@dataclass(frozen=True, slots=True)
class Seen:
    """What the records of every group have, taken in as they are found."""

    groups: int
    columns: list[_Column]
    by_ends: Sequence[bool] = ()

    def add(self, groups: IntArray, cells: Sequence[Cells]) -> None:
        """The groups of more records (-1: none) and their cells."""
        inside = groups >= 0
        for column, found in zip(self.columns, cells, strict=True):
            column.add(groups[inside], found[inside])

    def wrong(self) -> int:
        """How many groups have a label that is not what their records have; those without any are told elsewhere."""
        found = np.zeros(self.groups, np.bool_)
        for column, by_ends in zip(self.columns, self.by_ends, strict=True):
            found |= column.wrong(by_ends=by_ends)
        held = (self.columns[0].seen_high >= 0) | self.columns[0].seen_missing
        return int(np.count_nonzero(found & held))
