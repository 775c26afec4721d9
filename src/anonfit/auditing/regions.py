# SPDX-License-Identifier: Apache-2.0
"""The regions of a recoding in the space of raw values: its representatives, which follow from regions; and labels that
tell what the records of a group have (regions = "observed"), held against the recoding and the source: each lies in one
region, no two in the same, and it tells no more and no less than what the records have."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from anonfit.auditing.boxes import (
    Axis,
    Cells,
    LabelBoxes,
    axis_of,
    box_space,
    distinct_texts,
    locate_rows,
)
from anonfit.auditing.coding import BoolArray, Coded, IntArray, join_codes
from anonfit.auditing.hashing import mixed
from anonfit.auditing.labels import (
    Interval,
    Run,
    ValueSet,
    cell_reader,
    leaf_interval,
    read_label,
    speller,
    whole_ends,
    word_ends,
)
from anonfit.auditing.meanings import LabelMeaning
from anonfit.auditing.recoding import Part, RegionGrid, RegionTree, parts_of
from anonfit.auditing.released import Released, ReleasedLabels
from anonfit.auditing.result import LabelCheck

_DAY = 86400


def ends_of(low: int, high: int, meaning: LabelMeaning) -> tuple[Decimal | None, Decimal | None]:
    """The ends of a run of cells between cuts."""
    cuts = meaning.rising_cuts
    return (cuts[low - 1] if low else meaning.domain[0]), (cuts[high] if high < len(cuts) else meaning.domain[1])


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
        intervals = (leaf_interval(leaf, meaning) for leaf in leaves)
        return ValueSet(missing, intervals=tuple(interval for interval in intervals if interval is not None))
    if meaning.type == "ordinal":
        return ValueSet(missing, intervals=tuple(Interval(Decimal(low), Decimal(high), True) for low, high in runs))
    ends = [(*ends_of(low, high, meaning), high == len(meaning.cuts or ())) for low, high in runs]
    return ValueSet(
        missing, intervals=tuple(Interval(low, high, is_last and high is not None) for low, high, is_last in ends)
    )


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
    sets = tuple(
        [value_set(part, meanings[name]) for part in parts.listed()] for name, parts in parts_of_column.items()
    )
    more = beside or {}
    axes = tuple(
        axis_of(meaning, [*of_column, *more.get(name, ())])
        for (name, meaning), of_column in zip(meanings.items(), sets, strict=True)
    )
    if isinstance(tree, RegionGrid):
        tables = tuple(axis.numbers(of_column) for axis, of_column in zip(axes, sets, strict=True))
        return RegionSpace(axes, sets, np.empty((0, len(axes)), np.int64), None, tables)
    parts = np.stack([parts.of_region for parts in parts_of_column.values()], axis=1)
    return RegionSpace(axes, sets, parts, box_space(axes, sets, parts), ())


class _RegionColumn:
    """A column of regions: the values of its parts, and the value of every part and group (-1: no region has it)."""

    def __init__(self, released: Released, meaning: LabelMeaning, tree: RegionTree | RegionGrid) -> None:
        held = parts_of(tree, meaning.name)
        parts, self.part_of_region = held.listed(), held.of_region
        self.sets = [value_set(part, meaning) for part in parts]
        keys = [_key(part, meaning) for part in parts]
        number_of = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        codes, texts = distinct_texts(released.heads[released.columns[meaning.name][0]])
        numbers = np.array([number_of.get(_read(text, meaning), -1) for text in (None, *texts)], np.int64)
        self.value_of_part, self.values = np.array([number_of[key] for key in keys], np.int64), len(number_of)
        self.value_of_group = numbers[codes]
        self.strangers = int(np.count_nonzero(numbers[np.unique(codes)] < 0))  # different values that no region has

    def by_value(self) -> list[ValueSet]:
        """The values of all parts that have the same representative."""
        of_value: list[list[ValueSet]] = [[] for _ in range(self.values)]
        for value, part in zip(self.value_of_part.tolist(), self.sets, strict=True):
            of_value[value].append(part)
        return [
            ValueSet(
                any(part.missing for part in parts),
                any(part.everything for part in parts),
                tuple(interval for part in parts for interval in part.intervals),
                tuple(name for part in parts for name in part.names),
            )
            for parts in of_value
        ]


def read_representatives(
    released: Released, meanings: Mapping[str, LabelMeaning], tree: RegionTree | RegionGrid
) -> tuple[LabelCheck, LabelBoxes | None]:
    """Whether the released values of each group follow from one region; and the regions as boxes of these groups."""
    if not tree.fits or set(meanings) != set(released.columns):
        count = max(1, released.groups)
        return LabelCheck(dict.fromkeys(released.columns, 0), {}, overlapping=None, no_region=count), None
    columns = {name: _RegionColumn(released, meanings[name], tree) for name in released.columns}
    groups = np.stack([column.value_of_group for column in columns.values()], axis=1)
    if isinstance(tree, RegionGrid):  # every combination of parts is a region
        sets = [column.by_value() for column in columns.values()]
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


def _group_of(regions: IntArray, groups: IntArray, bounds: Iterable[int]) -> IntArray:
    """The group that has the values of each region, -1 for none."""
    if not len(groups):
        return np.full(len(regions), -1)
    together = np.concatenate([groups, regions])
    codes = [Coded(column + 1, bound + 1) for column, bound in zip(together.T, bounds, strict=True)]
    keys, wanted = np.split(join_codes(codes, len(together))[0], [len(groups)])
    order = np.argsort(keys)
    at = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(groups) - 1)]
    known = (keys[at] == wanted) & (groups[at] >= 0).all(axis=1)
    return np.where(known, at, -1)


def _read(text: str | None, meaning: LabelMeaning) -> Hashable:
    """A released value in the form of `_key`; a text that is no value of the column equals no key."""
    if meaning.is_named:
        label = None if text is None else read_label(text, meaning)
        cells = None if label is None else cell_reader(meaning)(label)
        if text is None or label is None or cells is None or not speller(meaning, observed=False)(text, label, cells):
            return "none"
        return tuple(cells)
    if text is None or meaning.type == "ordinal":
        return text
    place = meaning.scalar(text)
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
    if meaning.type == "date":  # of dates, the day that the middle is in; of times, it to the microsecond
        if meaning.scale != "time":
            return first + (last - first) // (2 * _DAY) * _DAY
        return first + (((last - first) / 2 * 10**6).quantize(Decimal(1))) / 10**6
    low_end, high_end = float(first), float(last)
    half = low_end / 2 + high_end / 2
    return half if low_end <= half < high_end else low_end


_MISSING = ValueSet(missing=True)


def observed_groups(
    columns: Mapping[str, ReleasedLabels], tree: RegionTree | RegionGrid, groups: int
) -> tuple[int, LabelBoxes | None, ObservedValues | None]:
    """How many groups lie in no region of their own, the regions of the others, and what takes in their records."""
    if not tree.fits or not columns:
        return max(1, groups), None, None
    meanings = {name: column.meaning for name, column in columns.items()}
    labels = {name: [_plain_set(values, column.meaning) for values in column.sets] for name, column in columns.items()}
    units = {name: units_of(meaning) for name, meaning in meanings.items()}
    space = region_space(meanings, tree, {name: [*labels[name], *units[name]] for name in columns})
    # runs: (column, label)
    runs = [[axis.runs(values) for values in sets] for axis, sets in zip(space.axes, labels.values(), strict=True)]
    corners = [
        np.array([label[0][0] for label in of_column], np.int32)[column.of_group]
        for of_column, column in zip(runs, columns.values(), strict=True)
    ]
    parts = space.parts_at(corners, groups)
    known: BoolArray = np.all(parts >= 0, axis=1)
    for place, column in enumerate(columns.values()):
        unread = np.array([values is None for values in column.without_empty], np.bool_)
        known &= ~unread[column.of_group] & _inside(runs[place], space, place, column.of_group, parts[:, place])
    _, region, count = np.unique(parts[known], axis=0, return_inverse=True, return_counts=True)
    known[np.flatnonzero(known)[count[region.reshape(-1)] > 1]] = False
    observed = [
        _ObservedColumn(axis, of_column, units[name], column)
        for axis, of_column, (name, column) in zip(space.axes, runs, columns.items(), strict=True)
    ]
    boxes = box_space(space.axes, space.sets, parts[known])
    boxes = replace(boxes, group_of_box=np.flatnonzero(known)[boxes.group_of_box])
    return groups - int(known.sum()), boxes, ObservedValues(observed)


def _plain_set(values: ValueSet | None, meaning: LabelMeaning) -> ValueSet:
    """A label's values in one form: a star in a column without missing values does not hold them, and an interval of
    words or whole numbers goes from its first to its last. What is no label holds anything, here missing.
    """
    if values is None:
        return _MISSING
    if meaning.is_whole and values.intervals:
        return replace(values, intervals=(Interval(*whole_ends(values.intervals[0]), closed=True),))
    if meaning.type == "ordinal" and meaning.tree is None and values.intervals:
        words = (word_ends(interval, len(meaning.order)) for interval in values.intervals)
        return replace(values, intervals=tuple(Interval(Decimal(low), Decimal(high), True) for low, high in words))
    return replace(values, missing=False) if values.everything and not meaning.missing else values


def units_of(meaning: LabelMeaning) -> list[ValueSet]:
    """The leaves or words of a column; numbers and dates have none."""
    is_line = meaning.tree is None and meaning.type != "ordinal"
    return (
        [] if is_line else [value_set(((cell, cell),), meaning) for cell in range(bool(meaning.missing), meaning.cells)]
    )


def _inside(runs: Sequence[list[Run]], space: RegionSpace, place: int, labels: IntArray, parts: IntArray) -> BoolArray:
    """Whether the label of each group lies in the part of the region that its corner is in."""
    runs_of_part = [space.axes[place].runs(values) for values in space.sets[place]]

    def lies(label: int, part: int) -> bool:
        held = runs_of_part[part]
        return all(any(low <= first and last <= high for low, high in held) for first, last in runs[label])

    pairs, of_pair = np.unique(np.stack([labels, parts], axis=1), axis=0, return_inverse=True)
    inside = np.array([part >= 0 and lies(label, part) for label, part in pairs.tolist()], np.bool_)
    return inside[of_pair.reshape(-1)]


class _ObservedColumn:
    """What a column's labels say, and what the records of every group have: of numbers and dates the cells they reach
    from and to, of leaves and words which there are, as one sum.
    """

    def __init__(
        self, axis: Axis, runs: Sequence[list[Run]], units: Sequence[ValueSet], labels: ReleasedLabels
    ) -> None:
        groups = len(labels.of_group)
        self.by_ends = labels.meaning.tree is None  # a label tells only the first and the last value
        self.table = axis.numbers(units) if units else None  # (cell) the leaf or word; None: numbers and dates
        present = [[(max(1, low), high) for low, high in label if high > 0] for label in runs]
        low = np.array([label[0][0] if label else axis.cells for label in present], np.int64)
        high = np.array([label[-1][1] if label else -1 for label in present], np.int64)
        signs = np.zeros(len(runs), np.uint64)
        for place, label in enumerate(present if self.table is not None else ()):
            held = [self.table[first : last + 1] for first, last in label if self.table is not None]
            numbers = np.unique(np.concatenate([np.empty(0, np.int64), *held]))
            numbers = numbers[numbers >= 0]
            signs[place] = mixed(numbers.astype(np.uint64) + np.uint64(1)).sum(dtype=np.uint64)
            low[place], high[place] = (numbers[0], numbers[-1]) if len(numbers) else (axis.cells, -1)
        missing = np.array([bool(label) and label[0][0] == 0 for label in runs], np.bool_)
        # (group) as the label says, and as was seen
        self.low, self.high, self.signs = low[labels.of_group], high[labels.of_group], signs[labels.of_group]
        self.missing, self.seen_missing = missing[labels.of_group], np.zeros(groups, np.bool_)
        self.seen_low, self.seen_high = np.full(groups, axis.cells, np.int64), np.full(groups, -1, np.int64)
        self.pairs = np.empty(0, np.int64)  # of a group and a leaf or word, as one number

    def add(self, groups: IntArray, cells: Cells) -> None:
        """More records."""
        lost = cells == 0
        self.seen_missing[groups[lost]] = True
        groups, places = groups[~lost], cells[~lost].astype(np.int64)
        if self.table is not None:
            places = self.table[places]
            self.pairs = np.union1d(self.pairs, groups * len(self.table) + places)
        np.minimum.at(self.seen_low, groups, places)
        np.maximum.at(self.seen_high, groups, places)

    def wrong(self) -> BoolArray:
        """The groups whose label is not what their records have."""
        wrong: BoolArray = self.seen_missing != self.missing
        wrong |= (self.seen_low != self.low) | (self.seen_high != self.high)
        if self.table is not None and not self.by_ends:
            signs = np.zeros(len(self.low), np.uint64)
            numbers = mixed((self.pairs % len(self.table)).astype(np.uint64) + np.uint64(1))
            np.add.at(signs, self.pairs // len(self.table), numbers)
            wrong |= signs != self.signs
        return wrong


@dataclass(frozen=True, slots=True)
class ObservedValues:
    """What the records of every group have, taken in as they are found."""

    columns: list[_ObservedColumn]

    def add(self, groups: IntArray, cells: Sequence[Cells]) -> None:
        """The groups of more records (-1: none) and their cells."""
        inside = groups >= 0
        for column, places in zip(self.columns, cells, strict=True):
            column.add(groups[inside], places[inside])

    def wrong(self) -> int:
        """How many groups have a label that is not what their records have; those without any are told elsewhere."""
        held = (self.columns[0].seen_high >= 0) | self.columns[0].seen_missing
        return int(np.count_nonzero(np.any([column.wrong() for column in self.columns], axis=0) & held))
