# SPDX-License-Identifier: Apache-2.0
"""The released table against the raw rows it was made from: every label must hold exactly the rows it was given.

Rows of one group with equal raw values have one key, and multisets of keys are compared by their number and sum; only
if these differ, key by key."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing.boxes import Axis, Cells, LabelBoxes, PlacedColumn, locate_rows
from anonfit.auditing.coding import (
    BoolArray,
    Coded,
    Evidence,
    Hashes,
    IntArray,
    RowGroups,
    RowPersons,
    coded,
    coded_values,
    join_codes,
    numbered,
    persons_in_groups,
    read_persons,
)
from anonfit.auditing.hashing import Hashers, KeyTally, aligned_texts, row_keys
from anonfit.auditing.models import groups_that_miss
from anonfit.auditing.reading import AuditedTable, require_columns
from anonfit.auditing.regions import ObservedValues, RegionSpace, region_space
from anonfit.auditing.released import Released, batches_of
from anonfit.auditing.request import Request
from anonfit.auditing.result import CountedFigure, Share, SourceCheck
from anonfit.auditing.values import RawValues

# --- raw rows -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Located:
    """Where the raw rows lie in a release, and what was strange about them."""

    group: IntArray  # (row) the group whose box holds it, -1: none
    others: npt.NDArray[np.uint8]  # (row) how many further boxes hold it
    cells: list[Cells]  # (column)(row)
    beyond: int
    unknown: int
    dropped: int  # rows that were left out for a missing value
    outside: int  # rows that are in no group, though they were not left out


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """The cells of raw rows, column by column, and which rows were left out on purpose (None: none)."""

    cells: list[Cells]
    rows: int
    lost: BoolArray | None
    beyond: int
    unknown: int
    dropped: int


def locate_source(
    boxes: LabelBoxes, source: AuditedTable, *, quasi_identifiers: Sequence[str], **left_out: Any
) -> Located:
    """Find the group of every raw row by the labels alone. Rows that were left out (see `place_rows`) are in no group,
    though some labels would hold them.
    """
    placed = place_rows(boxes.axes, source, quasi_identifiers=quasi_identifiers, **left_out)
    group, others = locate_rows(boxes, placed.cells, rows=placed.rows)
    lost = 0
    if placed.lost is not None:
        group[placed.lost] = -1
        lost = int(np.count_nonzero(placed.lost))
    outside = int(np.count_nonzero(group < 0)) - lost
    return Located(group, others, placed.cells, placed.beyond, placed.unknown, placed.dropped, outside)


def place_rows(
    axes: Sequence[Axis],
    source: AuditedTable,
    *,
    quasi_identifiers: Sequence[str],
    drops_missing: bool = False,
    complete: Sequence[str] = (),
    leaves_out_unknown: bool = False,
) -> PlacedRows:
    """The cells of every raw row. Rows with a missing value, or with one that the recoding does not know (a category,
    or a number beyond the declared domain), may be left out on purpose; `complete` are columns beside the
    quasi-identifiers that a row with a missing value was left out for, too.
    """
    require_columns(source, quasi_identifiers, purpose="a quasi-identifier")
    series = source.frame(quasi_identifiers).get_columns()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(axis.place, column) for axis, column in zip(axes, series, strict=True)]
        placed: list[PlacedColumn] = [job.result() for job in jobs]
    rows = len(series[0]) if series else source.height()
    strange = [column.strangers for column in placed if column.strangers is not None] if leaves_out_unknown else []
    lost = np.any(strange, axis=0) if strange else None
    dropped = 0
    if drops_missing and placed:
        lacking = [column.cells == 0 for column in placed]
        lacking += [column.is_null().to_numpy() for column in source.frame(complete)] if complete else []
        missing = np.any(lacking, axis=0)
        lost = missing if lost is None else lost | missing
        dropped = int(np.count_nonzero(missing))
    beyond, unknown = sum(column.beyond for column in placed), sum(column.unknown for column in placed)
    return PlacedRows([column.cells for column in placed], rows, lost, beyond, unknown, dropped)


# --- regions that had to be withheld ------------------------------------------------------------------------------

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


# --- where raw rows lie -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class SourcePlaces:
    """Where the raw rows lie."""

    rows: int = 0
    beyond: int = 0
    unknown: int = 0
    dropped: int = 0
    several: int = 0  # in more than one group
    withheld: int = 0  # in no group, and not left out on purpose


@dataclass(slots=True)
class SourceRows:
    """The source, read as the released table is, and the group of every row."""

    table: AuditedTable
    request: Request
    names: tuple[str, ...]  # quasi-identifiers
    rows_at_once: int | None  # None: the table is one batch
    boxes: LabelBoxes | None = None
    seen: ObservedValues | None = None  # takes in what the rows of groups have, at the first reading
    judged: ReleasedRegions | None = None
    place: SourcePlaces = field(default_factory=SourcePlaces)
    located: Located | None = None  # of a table that is one batch

    @property
    def is_whole(self) -> bool:
        """Whether the table is one batch."""
        return self.rows_at_once is None

    def batches(self) -> Iterator[tuple[AuditedTable, IntArray]]:
        """The source, and the group of every row (-1: none); where labels cannot be read, all rows are in group 0."""
        self.place = place = SourcePlaces()
        for batch in batches_of(self.table, self.table.names, self.rows_at_once):
            rows = batch.height()
            place.rows += rows
            groups = np.zeros(rows, np.int64)
            if self.boxes is not None:
                located = self._locate(batch, self.boxes)
                groups = located.group
                place.withheld += located.outside
                place.beyond += located.beyond
                place.unknown += located.unknown
                place.dropped += located.dropped
                place.several += int(np.count_nonzero(located.others))
            yield (batch if self.is_whole else batch.shortened()), groups

    def _locate(self, batch: AuditedTable, boxes: LabelBoxes) -> Located:
        """The groups of a batch; those that had to be withheld are in none, once that is known."""
        if self.located is None:
            located = locate_source(boxes, batch, quasi_identifiers=self.names, **self.request.left_out)
            if self.seen is not None:
                self.seen.add(located.group, located.cells)
            self.located = replace(located, cells=[]) if self.is_whole else None
        else:
            located = self.located
        if self.judged is not None and not self.is_whole:
            located.group[~self.judged.mask(batch, self.request)] = -1
        return located

    def locate(self, boxes: LabelBoxes | None, seen: ObservedValues | None) -> None:
        """Take the boxes of the released groups, and find in them the rows of a table that is one batch."""
        self.boxes, self.seen = boxes, seen
        if self.is_whole:
            self.groups()
            self.judge()

    def groups(self) -> IntArray:
        """The group of every row of a table that is one batch."""
        ((_, groups),) = self.batches()
        return groups

    def judge(self) -> None:
        """Find out which rows had to be withheld, though the label of a group may hold them; these are in no group from
        now on. All rows were located before.
        """
        shared = None if self.boxes is None else self.boxes.shared
        if self.judged is not None or not (self.place.withheld or (shared is not None and shared.any())):
            return
        withholding = withholding_of(self.request, self.names, self.table)
        if withholding is None:
            return
        self.seen, seen = None, self.seen
        for batch, groups in self.batches():
            withholding.add(batch, groups)
        self.seen, self.judged = seen, withholding.judged()
        if self.located is not None:
            self.located.group[~self.judged.mask(self.table, self.request)] = -1


# --- multisets of rows --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Multisets:
    """Released and raw rows as multisets of keys. A row of a `suppressed` group may be any raw row that is in no other
    group; both tables are whole where there are such groups.
    """

    released: Released
    source: SourceRows
    hashers: Hashers
    suppressed: BoolArray | None

    def of_file(self, *, keep: bool = False) -> KeyTally:
        """The released rows; without labels that can be read all are in one group."""
        tally = KeyTally(keep=keep)
        for batch, groups in self.released.batches():
            tally.add(groups if self.source.boxes is not None else np.zeros_like(groups), self.hashers.file(batch))
        return tally

    def of_source(self, *, keep: bool = False) -> KeyTally:
        """The raw rows."""
        tally = KeyTally(keep=keep)
        for batch, groups in self.source.batches():
            hashes = self.hashers.source(batch)
            if self.suppressed is not None and self.source.boxes is not None:
                file = self.released.of_row, self.hashers.file(self.released.table)
                groups = _with_suppressed(*file, groups, hashes, self.suppressed)
            tally.add(groups, hashes)
        return tally


def compare_rows(
    released: Released, source: SourceRows, hashers: Hashers, *, tally: KeyTally | None, suppressed: BoolArray | None
) -> SourceCheck:
    """Compare (group, raw values) of released and raw rows as multisets; raw values alone without labels. `tally` is
    that of the file, if it was read already.
    """
    sets = _Multisets(released, source, hashers, suppressed)
    file, raw = sets.of_file() if tally is None else tally, sets.of_source()
    not_observed, source.seen = 0 if source.seen is None else source.seen.wrong(), None
    if not source.is_whole:
        source.judge()
        raw = raw if source.judged is None else sets.of_source()
    unmatched = absent_inside = 0
    if not file.equals(raw):
        if released.table.is_text or source.table.is_text:  # texts that differ may still be the same numbers
            sets = replace(sets, hashers=Hashers.of(released, source.table, align=aligned_texts))
        file, raw = sets.of_file(keep=True), sets.of_source(keep=True)
        unmatched, absent_inside = file.differences(raw)
    place = source.place
    absent = absent_inside + place.rows - raw.rows
    return SourceCheck(
        by_labels=source.boxes is not None,
        compared=tuple(name for name in released.raw if name in source.table.schema),
        not_in_source=tuple(name for name in released.raw if name not in source.table.schema),
        rows=CountedFigure(place.rows, place.rows, rest=absent),
        unmatched=Share(unmatched, released.rows),
        absent=Share(absent, place.rows),
        absent_inside=Share(absent_inside, place.rows),
        in_several=Share(place.several, place.rows),
        beyond_domain=place.beyond,
        unknown_values=place.unknown,
        dropped=place.dropped,
        in_vain=0 if source.judged is None else source.judged.missed,
        not_observed=not_observed,
    )


def _with_suppressed(
    released: IntArray, released_hashes: Hashes, raw: IntArray, raw_hashes: Hashes, suppressed: BoolArray
) -> IntArray:
    """The groups of raw rows; one that no released row of its group explains goes to a suppressed group that has its
    values. Which of several equal rows it is makes no difference.
    """
    inside = raw.copy()
    kept = ~suppressed[released]
    known, numbers = np.unique(row_keys(released[kept], released_hashes[kept]), return_counts=True)
    keys = row_keys(inside, raw_hashes)
    free = np.flatnonzero(_left(keys, known, numbers) | (inside < 0))
    for group in np.flatnonzero(suppressed):
        wanted, numbers = np.unique(released_hashes[released == group], return_counts=True)
        rest = _left(raw_hashes[free], wanted, numbers)
        inside[free[~rest]] = group
        free = free[rest]
    return inside


def _left(keys: Hashes, known: Hashes, numbers: IntArray) -> BoolArray:
    """Which rows are left when of every known key so many are taken."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(ordered) else np.empty(0, np.int64)
    rank = np.arange(len(ordered)) - np.repeat(begins, np.diff(np.append(begins, len(ordered))))
    place = np.minimum(np.searchsorted(known, ordered), max(0, len(known) - 1))
    allowed = np.where(known[place] == ordered, numbers[place], 0) if len(known) else np.zeros(len(ordered), np.int64)
    left = np.empty(len(keys), np.bool_)
    left[order] = rank >= allowed
    return left
