# SPDX-License-Identifier: Apache-2.0
"""The released table against the raw rows it was made from: every label must hold exactly the rows it was given.

Rows of one group with equal raw values have one key, and multisets of keys are compared by their number and sum; only
if these differ, key by key."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from anonfit.auditing import coding
from anonfit.auditing.boxes import Axis, Cells, LabelBoxes, locate_rows
from anonfit.auditing.coding import BoolArray, Coded, Evidence, Hashes, IntArray, RowGroups, RowPersons
from anonfit.auditing.hashing import Hashers, KeyTally, aligned_texts, row_keys
from anonfit.auditing.models import groups_that_miss
from anonfit.auditing.reading import AuditedTable, require_columns
from anonfit.auditing.regions import ObservedValues, RegionSpace, region_space
from anonfit.auditing.released import Released, batches_of
from anonfit.auditing.request import Request
from anonfit.auditing.result import CountedFigure, Share, SourceCheck
from anonfit.auditing.values import RawValues


@dataclass(frozen=True, slots=True)
class Located:
    """Where the raw rows lie in a release, and how many are as `place_rows` says, in `several` groups, or `withheld`:
    in none, though they were not left out.
    """

    group: IntArray  # (row) the group whose box holds it, -1: none
    cells: list[Cells]  # (column)(row)
    numbers: Counter[str]


def locate_source(
    boxes: LabelBoxes, source: AuditedTable, *, quasi_identifiers: Sequence[str], **left_out: Any
) -> Located:
    """The group of every raw row by the labels alone; rows that were left out (see `place_rows`) are in none."""
    cells, lost, numbers = place_rows(boxes.axes, source, quasi_identifiers=quasi_identifiers, **left_out)
    group, others = locate_rows(boxes, cells, rows=len(lost))
    group[lost] = -1
    withheld = int(np.count_nonzero(group < 0) - np.count_nonzero(lost))
    return Located(group, cells, numbers + Counter(several=int(np.count_nonzero(others)), withheld=withheld))


def place_rows(
    axes: Sequence[Axis],
    source: AuditedTable,
    *,
    quasi_identifiers: Sequence[str],
    drops_missing: bool = False,
    complete: Sequence[str] = (),
    leaves_out_unknown: bool = False,
) -> tuple[list[Cells], BoolArray, Counter[str]]:
    """The cells of raw rows, column by column, which rows were left out on purpose, and how many are `beyond` the
    declared domain, have an `unknown` value, or were `dropped`. Left out may be rows with a missing value (`complete`
    are further columns that must have one) and those with one that the recoding does not know.
    """
    require_columns(source, quasi_identifiers, purpose="a quasi-identifier")
    series = source.frame(quasi_identifiers).get_columns()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        placed = list(pool.map(lambda axis, column: axis.place(column), axes, series))
    rows = len(series[0]) if series else source.height()
    unknown, missing = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)
    for column in placed:
        if leaves_out_unknown and column.strangers is not None:
            unknown |= column.strangers
        if drops_missing:
            missing |= column.cells == 0
    for lacking in source.frame(complete) if drops_missing and complete else ():
        missing |= lacking.is_null().to_numpy()
    numbers = Counter(dropped=int(np.count_nonzero(missing)))
    numbers.update(beyond=sum(column.beyond for column in placed), unknown=sum(column.unknown for column in placed))
    return [column.cells for column in placed], unknown | missing, numbers


_ROWS, _PERSONS, _ENTITY, _GROUP = "rows", "persons", "entity", "group"


@dataclass(slots=True)
class Withholding:
    """Collects the rows of the source, to find out which regions had to be withheld."""

    request: Request
    names: tuple[str, ...]  # quasi-identifiers
    space: RegionSpace
    asked: tuple[str, ...]  # raw columns
    text_file: bool
    kinds: list[pl.DataFrame] = field(default_factory=list)
    released: pl.DataFrame = field(default_factory=pl.DataFrame)  # (region) its part of every column, once judged
    in_vain: int = 0  # rows of these regions that are in no group

    def add(self, batch: AuditedTable, groups: IntArray) -> None:
        """More rows, and the groups that they are in (-1: none)."""
        parts, entity, count = self._parts(batch), self.request.entity, self.request.count
        raw = [series.alias(f"raw {place}") for place, series in enumerate(batch.frame(self.asked).get_columns())]
        columns = [*_frame(parts).get_columns(), pl.Series(_GROUP, groups), *raw]
        if entity is not None and entity in batch.schema:
            columns.append(batch.frame([entity]).to_series().alias(_ENTITY))
        numbers = None
        if count is not None and count in batch.schema:
            numbers = coding.read_persons(batch.frame([count]), entity=None, count=count).numbers
        frame = pl.DataFrame(columns).with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
        persons = pl.lit(1, pl.Int64) if numbers is None else pl.Series(numbers)
        frame = frame.with_columns(pl.lit(1, pl.Int64).alias(_ROWS), persons.alias(_PERSONS))
        self.kinds.append(_summed(frame.filter(pl.Series((parts >= 0).all(axis=1)))))

    def judge(self) -> None:
        """Find out what is to be released of all rows taken in."""
        frame = _summed(pl.concat(self.kinds, how="vertical_relaxed"))
        left = np.ones(len(frame), np.bool_)
        while len(missed := self._missed(frame, left)):
            left[missed] = False
        kept = frame.filter(pl.Series(left))
        self.in_vain = int(kept.filter(pl.col(_GROUP) < 0)[_ROWS].sum())
        self.released = kept.select(f"part {place}" for place in range(len(self.names))).unique()

    def withheld(self, batch: AuditedTable) -> BoolArray:
        """Which rows are in no region that is to be released."""
        keys = _frame(self._parts(batch)).with_row_index("row")
        withheld = np.ones(len(keys), np.bool_)
        withheld[keys.join(self.released, on=self.released.columns, how="semi")["row"].to_numpy()] = False
        return withheld

    def _parts(self, batch: AuditedTable) -> IntArray:
        """The parts of every row's region, -1 where it has none."""
        cells, lost, _ = place_rows(self.space.axes, batch, quasi_identifiers=self.names, **self.request.left_out)
        parts = self.space.parts_at(cells, len(lost))
        parts[lost] = -1
        return parts

    def _missed(self, frame: pl.DataFrame, left: BoolArray) -> IntArray:
        """The rows, of those left, in groups that miss a demand."""
        rows = np.flatnonzero(left)
        table = frame[rows]
        entities = coding.coded(table[_ENTITY]) if _ENTITY in table.columns else None
        persons = RowPersons(entities=entities) if entities is not None else RowPersons(table[_PERSONS].to_numpy())
        bad = np.zeros(len(rows), np.bool_)
        request = self.request
        for names, k in [(demand.columns, demand.k) for demand in request.sets] or [(self.names, request.k)]:
            keys = [table[f"part {self.names.index(name)}"].to_numpy() for name in names]
            codes, _ = coding.join_codes([Coded(key, int(key.max(initial=0)) + 1) for key in keys], len(rows))
            group, first = coding.numbered(codes)
            grouping = RowGroups(group - 1, len(first), first)
            sizes = coding.persons_in_groups(persons, grouping.of_row, grouping.count)
            failing = sizes < (k or 0)
            evidence = Evidence(grouping, persons, sizes)
            for demand in (*request.diversity, *request.targets):
                if demand.is_asked and demand.column in self.asked:
                    series = table[f"raw {self.asked.index(demand.column)}"].alias(demand.column)
                    raw = RawValues(series, coding.coded_values(series), self.text_file)
                    failing[groups_that_miss(demand, raw, evidence=evidence)] = True
            bad |= failing[grouping.of_row]
        return rows[bad]


def _frame(parts: IntArray) -> pl.DataFrame:
    return pl.DataFrame(parts, schema={f"part {place}": pl.Int64 for place in range(parts.shape[1])})


def _summed(frame: pl.DataFrame) -> pl.DataFrame:
    """Every kind of row once, with the numbers of all."""
    kinds = [name for name in frame.columns if name not in (_ROWS, _PERSONS)]
    return frame.group_by(kinds, maintain_order=True).agg(pl.col(_ROWS, _PERSONS).sum())


@dataclass(slots=True)
class SourceRows:
    """The source, read as the released table is, and the group of every row."""

    table: AuditedTable
    request: Request
    names: tuple[str, ...]  # quasi-identifiers
    rows_at_once: int | None  # None: the table is one batch
    boxes: LabelBoxes | None = None
    seen: ObservedValues | None = None  # takes in what the rows of groups have, at the first reading
    judged: Withholding | None = None
    numbers: Counter[str] = field(default_factory=Counter)  # of `rows`, and as `Located` has them
    located: Located | None = None  # of a table that is one batch

    @property
    def is_whole(self) -> bool:
        """Whether the table is one batch."""
        return self.rows_at_once is None

    def batches(self) -> Iterator[tuple[AuditedTable, IntArray]]:
        """The source, and the group of every row (-1: none); where labels cannot be read, all rows are in group 0. Once
        it is known which rows had to be withheld, these are in no group.
        """
        self.numbers = Counter()
        for batch in batches_of(self.table, self.table.names, self.rows_at_once):
            rows = batch.height()
            self.numbers["rows"] += rows
            located = self.located or Located(np.zeros(rows, np.int64), [], Counter())
            if self.boxes is not None and self.located is None:
                located = locate_source(self.boxes, batch, quasi_identifiers=self.names, **self.request.left_out)
                if self.seen is not None:
                    self.seen.add(located.group, located.cells)
                self.located = replace(located, cells=[]) if self.is_whole else None
                if self.judged is not None:
                    located.group[self.judged.withheld(batch)] = -1
            self.numbers.update(located.numbers)
            yield (batch if self.is_whole else batch.shortened()), located.group

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
        """Find out which of the rows had to be withheld, though labels may hold them: they lose their group."""
        shared = None if self.boxes is None else self.boxes.shared
        if self.judged is not None or not (self.numbers["withheld"] or (shared is not None and shared.any())):
            return
        request, names, table = self.request, self.names, self.table
        if request.tree is None or not request.tree.fits or request.meanings is None:
            return  # the recoding is not known, or is not of these columns
        space = region_space({name: request.meanings[name] for name in names}, request.tree)
        columns = (demand.column for demand in (*request.diversity, *request.targets))
        asked = dict.fromkeys(name for name in columns if name in table.schema and name not in names)
        withholding = Withholding(request, names, space, tuple(asked), table.is_text)
        self.seen, seen = None, self.seen
        for batch, groups in self.batches():
            withholding.add(batch, groups)
        withholding.judge()
        self.seen, self.judged = seen, withholding
        if self.located is not None:
            self.located.group[withholding.withheld(table)] = -1


def _of_file(released: Released, source: SourceRows, hashers: Hashers, *, keep: bool = False) -> KeyTally:
    """The released rows as a multiset of keys; without labels that can be read all are in one group."""
    tally = KeyTally(keep=keep)
    for batch, groups in released.batches():
        tally.add(groups if source.boxes is not None else np.zeros_like(groups), hashers.file(batch))
    return tally


def _of_source(
    released: Released, source: SourceRows, hashers: Hashers, suppressed: BoolArray | None, *, keep: bool = False
) -> KeyTally:
    """The raw rows as a multiset of keys. A row of a `suppressed` group may be any raw row that is in no other group;
    both tables are whole where there are such groups.
    """
    tally = KeyTally(keep=keep)
    for batch, groups in source.batches():
        hashes = hashers.source(batch)
        if suppressed is not None and source.boxes is not None:
            groups = _with_suppressed(released.of_row, hashers.file(released.table), groups, hashes, suppressed)
        tally.add(groups, hashes)
    return tally


def compare_rows(
    released: Released, source: SourceRows, hashers: Hashers, *, tally: KeyTally | None, suppressed: BoolArray | None
) -> SourceCheck:
    """Compare (group, raw values) as multisets, values alone without labels; `tally`: the file's, if known."""
    file = _of_file(released, source, hashers) if tally is None else tally
    raw = _of_source(released, source, hashers, suppressed)
    not_observed, source.seen = 0 if source.seen is None else source.seen.wrong(), None
    if not source.is_whole:
        source.judge()
        raw = raw if source.judged is None else _of_source(released, source, hashers, suppressed)
    unmatched = absent_inside = 0
    if not file.equals(raw):
        if released.table.is_text or source.table.is_text:  # texts that differ may still be the same numbers
            hashers = Hashers.of(released, source.table, align=aligned_texts)
        file = _of_file(released, source, hashers, keep=True)
        raw = _of_source(released, source, hashers, suppressed, keep=True)
        unmatched, absent_inside = file.differences(raw)
    numbers = source.numbers
    rows = numbers["rows"]
    absent = absent_inside + rows - raw.rows
    return SourceCheck(
        by_labels=source.boxes is not None,
        compared=tuple(name for name in released.raw if name in source.table.schema),
        not_in_source=tuple(name for name in released.raw if name not in source.table.schema),
        rows=CountedFigure(rows, rows, rest=absent),
        unmatched=Share(unmatched, released.rows),
        absent=Share(absent, rows),
        absent_inside=Share(absent_inside, rows),
        in_several=Share(numbers["several"], rows),
        beyond_domain=numbers["beyond"],
        unknown_values=numbers["unknown"],
        dropped=numbers["dropped"],
        in_vain=0 if source.judged is None else source.judged.in_vain,
        not_observed=not_observed,
    )


def _with_suppressed(
    released: IntArray, released_hashes: Hashes, raw: IntArray, raw_hashes: Hashes, suppressed: BoolArray
) -> IntArray:
    """The groups of raw rows; what no released row of its group explains goes to a suppressed group with its values."""
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
    rank = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    place = np.searchsorted(known, ordered)
    is_known = np.append(known, np.uint64(0))[place] == ordered
    is_known &= place < len(known)
    left = np.empty(len(keys), np.bool_)
    left[order] = rank >= np.where(is_known, np.append(numbers, 0)[place], 0)
    return left
