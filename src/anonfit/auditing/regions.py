# SPDX-License-Identifier: Apache-2.0
"""The parts that the regions of a recoding are made of, column by column: runs of cells, and the values in them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from anonfit.auditing.axes import Axis, Cells, axis_of, distinct_texts
from anonfit.auditing.boxes import LabelBoxes, box_space, locate_rows
from anonfit.auditing.coding import Coded, IntArray, join_codes
from anonfit.auditing.labels import (
    Interval,
    Run,
    ValueSet,
    cell_reader,
    joined,
    leaf_interval,
    read_label,
)
from anonfit.auditing.meanings import LabelMeaning, moment, number
from anonfit.auditing.recoding import RegionGrid, RegionTree
from anonfit.auditing.result import LabelCheck
from anonfit.auditing.rows import Released
from anonfit.auditing.spelling import speller

Part = tuple[Run, ...]
_NONE = np.empty(0, np.int64)
_DAY = 86400


def parts_of(tree: RegionTree | RegionGrid, name: str) -> tuple[list[Part], IntArray]:
    """The different parts of a column, and the part of every region of a tree."""
    if isinstance(tree, RegionGrid):
        return sorted(tree.parts[name]), _NONE
    place = tree.columns.index(name)
    if place not in tree.sets:
        size = int(tree.last[:, place].max(initial=0)) + 1
        ends, of_region = np.unique(
            tree.first[:, place].astype(np.int64) * size + tree.last[:, place], return_inverse=True
        )
        return [(divmod(key, size),) for key in ends.tolist()], of_region
    rows, of_region = np.unique(tree.sets[place], axis=0, return_inverse=True)
    cells = (np.flatnonzero(np.unpackbits(bits)).tolist() for bits in rows)
    return [tuple(joined((cell, cell) for cell in of_part)) for of_part in cells], of_region.reshape(-1)


def ends_of(low: int, high: int, meaning: LabelMeaning) -> tuple[Decimal | None, Decimal | None]:
    """The ends of a run of cells between cuts."""
    cuts = sorted(meaning.cuts or ())
    return (
        cuts[low - 1] if low else meaning.domain[0],
        cuts[high] if high < len(cuts) else meaning.domain[1],
    )


def value_set(part: Part, meaning: LabelMeaning) -> ValueSet:
    """The values of some cells of a recoding."""
    shift = int(bool(meaning.missing))
    missing = shift == 1 and part[0][0] == 0
    runs = [(max(low, shift) - shift, high - shift) for low, high in part if high >= shift]
    if runs == [(0, meaning.cells - shift - 1)]:
        return ValueSet(missing, everything=True)
    if meaning.tree is not None:
        leaves = [meaning.tree.leaves[cell] for low, high in runs for cell in range(low, high + 1)]
        if meaning.type == "nominal":
            return ValueSet(missing, names=tuple(leaves))
        return ValueSet(missing, intervals=_known(leaf_interval(leaf, meaning) for leaf in leaves))
    if meaning.type == "ordinal":
        return ValueSet(missing, intervals=tuple(Interval(Decimal(low), Decimal(high), True) for low, high in runs))
    return ValueSet(missing, intervals=_known(_interval(low, high, meaning) for low, high in runs))


def _known(intervals: Iterable[Interval | None]) -> tuple[Interval, ...]:
    return tuple(interval for interval in intervals if interval is not None)


def _interval(low: int, high: int, meaning: LabelMeaning) -> Interval:
    first, last = ends_of(low, high, meaning)
    return Interval(first, last, closed=high == len(meaning.cuts or ()) and last is not None)


@dataclass(frozen=True, slots=True)
class RegionSpace:
    """The regions of a recoding as places of cells: a region is a part of every column."""

    axes: tuple[Axis, ...]
    sets: tuple[list[ValueSet], ...]  # (column, part)
    parts: IntArray  # (region, column) of a tree
    boxes: LabelBoxes | None  # None: of a grid, where every combination of parts is a region
    tables: tuple[IntArray, ...]  # (column, cell) the part, of a grid

    def parts_at(self, cells: list[Cells], rows: int) -> IntArray:
        """The parts of the region that holds each row, -1 where there is none."""
        if self.boxes is None:
            return np.stack([table[column] for table, column in zip(self.tables, cells, strict=True)], axis=1)
        region, _ = locate_rows(self.boxes, cells, rows=rows)
        parts: IntArray = np.where(region[:, None] < 0, -1, self.parts[region])
        return parts


def region_space(
    meanings: Mapping[str, LabelMeaning],
    tree: RegionTree | RegionGrid,
    beside: Mapping[str, Iterable[ValueSet]] | None = None,
) -> RegionSpace:
    """The space of these columns; cells tell apart what regions do, and what the sets `beside` them do."""
    parts_of_column = {name: parts_of(tree, name) for name in meanings}
    sets = tuple([value_set(part, meanings[name]) for part in parts] for name, (parts, _) in parts_of_column.items())
    more = beside or {}
    axes = tuple(
        axis_of(meaning, [*of_column, *more.get(name, ())])
        for (name, meaning), of_column in zip(meanings.items(), sets, strict=True)
    )
    if isinstance(tree, RegionGrid):
        tables = tuple(axis.numbers(of_column) for axis, of_column in zip(axes, sets, strict=True))
        return RegionSpace(axes, sets, np.empty((0, len(axes)), np.int64), None, tables)
    parts = np.stack([of_region for _, of_region in parts_of_column.values()], axis=1)
    return RegionSpace(axes, sets, parts, box_space(axes, sets, parts), ())


@dataclass(frozen=True, slots=True)
class _RegionColumn:
    """A column of regions: the values of its parts, the part of every region, and the value of every part and group
    (-1: one that no region has).
    """

    sets: list[ValueSet]  # (part)
    part_of_region: IntArray
    value_of_part: IntArray
    value_of_group: IntArray
    values: int
    strangers: int  # different released values that no region has


def read_representatives(
    released: Released, meanings: Mapping[str, LabelMeaning], tree: RegionTree | RegionGrid
) -> tuple[LabelCheck, LabelBoxes | None]:
    """Whether every released value follows from a region, and all of a group from one; and the regions as boxes, each
    in the group that has its representatives.
    """
    if not tree.fits or set(meanings) != set(released.columns):
        count = max(1, released.groups)
        return LabelCheck(dict.fromkeys(released.columns, 0), {}, overlapping=None, no_region=count), None
    columns = {name: _column(released, meanings[name], parts_of(tree, name)) for name in released.columns}
    groups = np.stack([column.value_of_group for column in columns.values()], axis=1)
    if isinstance(tree, RegionGrid):  # every combination of parts is a region
        sets = [_by_value(column) for column in columns.values()]
        known = (groups >= 0).all(axis=1)
        labels, group_of_region = groups[known], np.flatnonzero(known)
        strange = int(np.count_nonzero(~known))
        several = [np.bincount(column.value_of_part, minlength=column.values) > 1 for column in columns.values()]
        shared = known & np.any([is_shared[value] for is_shared, value in zip(several, groups.T, strict=True)], axis=0)
    else:
        sets = [column.sets for column in columns.values()]
        labels = np.stack([column.part_of_region for column in columns.values()], axis=1)
        values = np.stack([column.value_of_part[column.part_of_region] for column in columns.values()], axis=1)
        group_of_region = _group_of(values, groups, [column.values for column in columns.values()])
        held = group_of_region[group_of_region >= 0]
        strange = released.groups - len(np.unique(held))
        shared = np.bincount(held, minlength=released.groups) > 1
    axes = [axis_of(meanings[name], of_column) for name, of_column in zip(columns, sets, strict=True)]
    boxes = box_space(axes, sets, labels)
    boxes = replace(boxes, group_of_box=group_of_region[boxes.group_of_box], shared=shared)
    unreadable = {name: column.strangers for name, column in columns.items()}
    return LabelCheck(unreadable, {}, overlapping=0, no_region=strange), boxes


def _column(released: Released, meaning: LabelMeaning, parts_of_column: tuple[list[Part], IntArray]) -> _RegionColumn:
    """A column of regions beside the released values of it."""
    parts, part_of_region = parts_of_column
    keys = [_key(part, meaning) for part in parts]
    number_of = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    codes, texts = distinct_texts(released.heads[released.columns[meaning.name][0]])
    numbers = np.array([number_of.get(_read(text, meaning), -1) for text in (None, *texts)], np.int64)
    used = numbers[np.unique(codes)]
    return _RegionColumn(
        [value_set(part, meaning) for part in parts],
        part_of_region,
        np.array([number_of[key] for key in keys], np.int64),
        numbers[codes],
        len(number_of),
        int(np.count_nonzero(used < 0)),
    )


def _by_value(column: _RegionColumn) -> list[ValueSet]:
    """The values of all parts that have the same representative."""
    sets = [ValueSet() for _ in range(column.values)]
    for place, values in zip(column.value_of_part.tolist(), column.sets, strict=True):
        known = sets[place]
        sets[place] = ValueSet(
            known.missing or values.missing,
            known.everything or values.everything,
            known.intervals + values.intervals,
            known.names + values.names,
        )
    return sets


def _group_of(regions: IntArray, groups: IntArray, bounds: Iterable[int]) -> IntArray:
    """The group that has the values of each region, -1 for none."""
    together = np.concatenate([groups, regions])
    codes = [Coded(column + 1, bound + 1) for column, bound in zip(together.T, bounds, strict=True)]
    keys, _ = join_codes(codes, len(together))
    order = np.argsort(keys[: len(groups)])
    place = np.minimum(np.searchsorted(keys[: len(groups)], keys[len(groups) :], sorter=order), max(0, len(groups) - 1))
    if not len(groups):
        return np.full(len(regions), -1)
    at = order[place]
    known = (keys[at] == keys[len(groups) :]) & (groups[at] >= 0).all(axis=1)
    group_of_region: IntArray = np.where(known, at, -1)
    return group_of_region


def _read(text: str | None, meaning: LabelMeaning) -> Hashable:
    """A released value in the form of `_key`; a text that is no value of the column equals no key."""
    if meaning.is_named:
        label = None if text is None else read_label(text, meaning)
        if text is None or label is None or not speller(meaning, observed=False)(text, label):
            return "none"
        cells = cell_reader(meaning)(label)
        return "none" if cells is None else tuple(cells)
    if text is None or meaning.type == "ordinal":
        return text
    place = moment(text) if meaning.type == "date" else number(text)
    return "none" if place is None else float(place) if meaning.type != "date" else place


def _key(part: Part, meaning: LabelMeaning) -> Hashable:
    """What is released of a part: its cells where labels are kept, else its representative, None where it is empty."""
    if meaning.is_named:
        return part
    shift = int(bool(meaning.missing))
    low, high = part[0][0], part[-1][1]
    if shift and low == 0:
        return None
    if meaning.type == "ordinal":
        return meaning.order[(low + high) // 2 - shift]
    first, last = ends_of(low - shift, high - shift, meaning)
    if first is None or last is None:
        end = last if first is None else first
        return end if end is None or meaning.type == "date" else float(end)
    return _middle_moment(first, last, meaning) if meaning.type == "date" else _middle(float(first), float(last))


def _middle(low: float, high: float) -> float:
    half = low / 2 + high / 2
    return half if low <= half < high else low


def _middle_moment(low: Decimal, high: Decimal, meaning: LabelMeaning) -> Decimal:
    """The middle of two moments: of dates, the day it is in; of times, to the microsecond."""
    if meaning.scale != "time":
        return low + (high - low) // (2 * _DAY) * _DAY
    return low + (((high - low) / 2 * 10**6).quantize(Decimal(1))) / 10**6
