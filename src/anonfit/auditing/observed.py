# SPDX-License-Identifier: Apache-2.0
"""Labels that tell what the records of a group have (regions = "observed"), held against the recoding and the source:
each lies in one region, no two in the same, and it tells no more and no less than what the records have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing.axes import Axis, Cells
from anonfit.auditing.boxes import LabelBoxes, box_space, place_rows
from anonfit.auditing.coding import BoolArray, Coded, IntArray, coded, coded_values, join_codes, numbered
from anonfit.auditing.counting import groups_that_miss
from anonfit.auditing.groups import Evidence, RowGroups, RowPersons, persons_in_groups, read_persons
from anonfit.auditing.hashing import mixed
from anonfit.auditing.labels import Interval, Run, ValueSet, leaf_interval
from anonfit.auditing.meanings import LabelMeaning
from anonfit.auditing.reading import AuditedTable
from anonfit.auditing.recoding import RegionGrid, RegionTree
from anonfit.auditing.regions import RegionSpace, region_space
from anonfit.auditing.released import ReleasedLabels
from anonfit.auditing.request import Request
from anonfit.auditing.spelling import whole_ends
from anonfit.auditing.values import RawValues

_MISSING = ValueSet(missing=True)


def observed_groups(
    columns: Mapping[str, ReleasedLabels], tree: RegionTree | RegionGrid, groups: int
) -> tuple[int, LabelBoxes | None, ObservedValues | None]:
    """How many groups lie in no region or share one with others; the regions of all other groups as boxes; and what
    takes in the records of the groups.
    """
    if not tree.fits or not columns:
        return max(1, groups), None, None
    meanings = {name: column.meaning for name, column in columns.items()}
    labels = {name: [_plain_set(values, column.meaning) for values in column.sets] for name, column in columns.items()}
    units = {name: _units(meaning) for name, meaning in meanings.items()}
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
        unread = np.array([values is None or code == column.empty for code, values in enumerate(column.sets)], np.bool_)
        known &= ~unread[column.of_group] & _inside(runs[place], space, place, column.of_group, parts[:, place])
    _, region, count = np.unique(parts[known], axis=0, return_inverse=True, return_counts=True)
    known[np.flatnonzero(known)[count[region.reshape(-1)] > 1]] = False
    observed = [
        _ObservedColumn.of(axis, of_column, units[name], column.of_group)
        for axis, of_column, (name, column) in zip(space.axes, runs, columns.items(), strict=True)
    ]
    seen = ObservedValues(groups, observed, [meaning.tree is None for meaning in meanings.values()])
    return groups - int(known.sum()), _boxes(space, parts, known), seen


def _plain_set(values: ValueSet | None, meaning: LabelMeaning) -> ValueSet:
    """A label's values in one form: a star in a column without missing values does not hold them, and an interval of
    words or whole numbers goes from its first to its last. What is no label holds anything, here missing.
    """
    if values is None:
        return _MISSING
    if meaning.is_whole and values.intervals:
        return replace(values, intervals=(Interval(*whole_ends(values.intervals[0]), closed=True),))
    if meaning.type == "ordinal" and meaning.tree is None and values.intervals:
        words = [_words(interval, len(meaning.order)) for interval in values.intervals]
        return replace(values, intervals=tuple(words))
    return replace(values, missing=False) if values.everything and not meaning.missing else values


def _words(interval: Interval, count: int) -> Interval:
    first = Decimal(0) if interval.lower is None else interval.lower
    last = Decimal(count - 1) if interval.upper is None else interval.upper - (0 if interval.closed else 1)
    return Interval(first, last, closed=True)


def _units(meaning: LabelMeaning) -> list[ValueSet]:
    """The leaves or words of a column; numbers and dates have none."""
    if meaning.tree is not None:
        if meaning.type == "nominal":
            return [ValueSet(names=(leaf,)) for leaf in meaning.tree.leaves]
        intervals = [leaf_interval(leaf, meaning) for leaf in meaning.tree.leaves]
        return [ValueSet(intervals=(interval,)) for interval in intervals if interval is not None]
    return [ValueSet(intervals=(Interval(Decimal(i), Decimal(i), closed=True),)) for i in range(len(meaning.order))]


def _inside(runs: Sequence[list[Run]], space: RegionSpace, place: int, labels: IntArray, parts: IntArray) -> BoolArray:
    """Whether the label of each group lies in the part of the region that its corner is in."""
    held = [space.axes[place].runs(values) for values in space.sets[place]]
    pairs, of_pair = np.unique(np.stack([labels, parts], axis=1), axis=0, return_inverse=True)
    inside = np.array([part >= 0 and _within(runs[label], held[part]) for label, part in pairs.tolist()], np.bool_)
    return inside[of_pair.reshape(-1)]


def _within(runs: list[Run], held: list[Run]) -> bool:
    return all(any(low <= first and last <= high for low, high in held) for first, last in runs)


def _boxes(space: RegionSpace, parts: IntArray, known: BoolArray) -> LabelBoxes:
    """The regions that groups lie in, as boxes."""
    boxes = box_space(space.axes, space.sets, parts[known])
    return replace(boxes, group_of_box=np.flatnonzero(known)[boxes.group_of_box])


@dataclass(slots=True)
class _ObservedColumn:
    """What a column's labels say, and what the records of every group have: of numbers and dates the cells they reach
    from and to, of leaves and words which there are, as one sum.
    """

    table: IntArray | None  # (cell) the leaf or word, -1: none; None: numbers and dates
    low: IntArray  # (group) as the label says
    high: IntArray
    missing: BoolArray
    signs: npt.NDArray[np.uint64]
    seen_low: IntArray
    seen_high: IntArray
    seen_missing: BoolArray
    pairs: IntArray  # of a group and a leaf or word, as one number

    @classmethod
    def of(cls, axis: Axis, runs: Sequence[list[Run]], units: Sequence[ValueSet], of_group: IntArray) -> Self:
        groups = len(of_group)
        table = axis.numbers(units) if units else None
        present = [[(max(1, low), high) for low, high in label if high > 0] for label in runs]
        low = np.array([label[0][0] if label else axis.cells for label in present], np.int64)
        high = np.array([label[-1][1] if label else -1 for label in present], np.int64)
        signs = np.zeros(len(runs), np.uint64)
        if table is not None:
            for place, label in enumerate(present):
                held = [table[first : last + 1] for first, last in label]
                numbers = np.unique(np.concatenate(held)) if held else np.empty(0, np.int64)
                numbers = numbers[numbers >= 0]
                signs[place] = mixed(numbers.astype(np.uint64) + np.uint64(1)).sum(dtype=np.uint64)
                low[place], high[place] = (numbers[0], numbers[-1]) if len(numbers) else (axis.cells, -1)
        missing = np.array([bool(label) and label[0][0] == 0 for label in runs], np.bool_)
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
        groups, places = groups[~lost], cells[~lost].astype(np.int64)
        if self.table is not None:
            places = self.table[places]
            self.pairs = np.union1d(self.pairs, groups * len(self.table) + places)
        np.minimum.at(self.seen_low, groups, places)
        np.maximum.at(self.seen_high, groups, places)

    def wrong(self, *, by_ends: bool) -> BoolArray:
        """The groups whose label is not what their records have."""
        same = (self.seen_low == self.low) & (self.seen_high == self.high) & (self.seen_missing == self.missing)
        if self.table is not None and not by_ends:
            signs = np.zeros(len(self.low), np.uint64)
            numbers = mixed((self.pairs % len(self.table)).astype(np.uint64) + np.uint64(1))
            np.add.at(signs, self.pairs // len(self.table), numbers)
            same &= signs == self.signs
        wrong: BoolArray = ~same
        return wrong


@dataclass(frozen=True, slots=True)
class ObservedValues:
    """What the records of every group have, taken in as they are found."""

    groups: int
    columns: list[_ObservedColumn]
    by_ends: Sequence[bool] = ()

    def add(self, groups: IntArray, cells: Sequence[Cells]) -> None:
        """The groups of more records (-1: none) and their cells."""
        inside = groups >= 0
        for column, places in zip(self.columns, cells, strict=True):
            column.add(groups[inside], places[inside])

    def wrong(self) -> int:
        """How many groups have a label that is not what their records have; those without any are told elsewhere."""
        bad = np.zeros(self.groups, np.bool_)
        for column, by_ends in zip(self.columns, self.by_ends, strict=True):
            bad |= column.wrong(by_ends=by_ends)
        held = (self.columns[0].seen_high >= 0) | self.columns[0].seen_missing
        return int(np.count_nonzero(bad & held))


_ROWS, _PERSONS, _ENTITY, _GROUP = "rows", "persons", "entity", "group"


@dataclass(frozen=True, slots=True)
class ReleasedRegions:
    """The regions whose rows are to be released, and rows of these that are in no group."""

    space: RegionSpace
    names: tuple[str, ...]  # quasi-identifiers
    released: pl.DataFrame  # (region) its part of every column
    missed: int

    def mask(self, batch: AuditedTable, request: Request) -> BoolArray:
        """Which rows are to be released."""
        parts = _parts(self.space, self.names, batch, request)
        keys = _frame(parts).with_row_index("row")
        known = keys.join(self.released, on=self.released.columns, how="semi")["row"].to_numpy()
        chosen = np.zeros(len(parts), np.bool_)
        chosen[known] = True
        return chosen


@dataclass(slots=True)
class Withholding:
    """Collects the rows of the source, to find out which regions had to be withheld."""

    request: Request
    names: tuple[str, ...]  # quasi-identifiers
    space: RegionSpace
    asked: tuple[str, ...]  # raw columns
    text_file: bool
    kinds: list[pl.DataFrame] = field(default_factory=list)

    def add(self, batch: AuditedTable, groups: IntArray) -> None:
        """More rows, and the groups that they are in (-1: none)."""
        parts = _parts(self.space, self.names, batch, self.request)
        entity, count = self.request.entity, self.request.count
        raw = [series.alias(f"raw {place}") for place, series in enumerate(batch.frame(self.asked).get_columns())]
        columns = [*_frame(parts).get_columns(), pl.Series(_GROUP, groups), *raw]
        if entity is not None and entity in batch.schema:
            columns.append(batch.frame([entity]).to_series().alias(_ENTITY))
        numbers = np.ones(len(parts), np.int64)
        if count is not None and count in batch.schema:
            places = read_persons(batch.frame([count]), entity=None, count=count).numbers
            numbers = numbers if places is None else places
        frame = pl.DataFrame(columns).with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
        frame = frame.with_columns(pl.lit(1, pl.Int64).alias(_ROWS), pl.Series(_PERSONS, numbers))
        self.kinds.append(_summed(frame.filter(pl.Series((parts >= 0).all(axis=1)))))

    def judged(self) -> ReleasedRegions:
        """What is to be released of all rows taken in."""
        frame = _summed(pl.concat(self.kinds, how="vertical_relaxed"))
        left = np.ones(len(frame), np.bool_)
        while len(missed := self._missed(frame, left)):
            left[missed] = False
        kept = frame.filter(pl.Series(left))
        outside = int(kept.filter(pl.col(_GROUP) < 0)[_ROWS].sum())
        return ReleasedRegions(self.space, self.names, kept.select(_part_names(len(self.names))).unique(), outside)

    def _missed(self, frame: pl.DataFrame, left: BoolArray) -> IntArray:
        """The rows, of those left, in groups that miss a demand."""
        rows = np.flatnonzero(left)
        table = frame[rows]
        entities = coded(table[_ENTITY]) if _ENTITY in table.columns else None
        persons = RowPersons(entities=entities) if entities is not None else RowPersons(table[_PERSONS].to_numpy())
        bad = np.zeros(len(rows), np.bool_)
        request = self.request
        for names, k in [(demand.columns, demand.k) for demand in request.sets] or [(self.names, request.k)]:
            keys = [table[f"part {self.names.index(name)}"].to_numpy() for name in names]
            codes, _ = join_codes([Coded(key, int(key.max(initial=0)) + 1) for key in keys], len(rows))
            group, first = numbered(codes)
            grouping = RowGroups(group - 1, len(first), first)
            sizes = persons_in_groups(persons, grouping.of_row, grouping.count)
            failing = sizes < (k or 0)
            evidence = Evidence(grouping, persons, sizes)
            for demand in (*request.diversity, *request.targets):
                if demand.is_asked and demand.column in self.asked:
                    series = table[f"raw {self.asked.index(demand.column)}"].alias(demand.column)
                    raw = RawValues(series, coded_values(series), self.text_file)
                    failing[groups_that_miss(demand, raw, evidence=evidence)] = True
            bad |= failing[grouping.of_row]
        return rows[bad]


def withholding_of(request: Request, names: Sequence[str], source: AuditedTable) -> Withholding | None:
    """What judges the rows of a source; None where the recoding is not known, or is not of these columns."""
    if request.tree is None or not request.tree.fits or request.meanings is None:
        return None
    space = region_space({name: request.meanings[name] for name in names}, request.tree)
    columns = (demand.column for demand in (*request.diversity, *request.targets))
    asked = dict.fromkeys(name for name in columns if name in source.schema and name not in names)
    return Withholding(request, tuple(names), space, tuple(asked), source.is_text)


def _parts(space: RegionSpace, names: Sequence[str], batch: AuditedTable, request: Request) -> IntArray:
    """The parts of every row's region, -1 where it has none."""
    placed = place_rows(space.axes, batch, quasi_identifiers=names, **request.left_out)
    parts = space.parts_at(placed.cells, placed.rows)
    if placed.lost is not None:
        parts[placed.lost] = -1
    return parts


def _part_names(count: int) -> list[str]:
    return [f"part {place}" for place in range(count)]


def _frame(parts: IntArray) -> pl.DataFrame:
    return pl.DataFrame(parts, schema=dict.fromkeys(_part_names(parts.shape[1]), pl.Int64))


def _summed(frame: pl.DataFrame) -> pl.DataFrame:
    """Every kind of row once, with the numbers of all."""
    kinds = [name for name in frame.columns if name not in (_ROWS, _PERSONS)]
    return frame.group_by(kinds, maintain_order=True).agg(pl.col(_ROWS, _PERSONS).sum())
