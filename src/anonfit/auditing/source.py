# SPDX-License-Identifier: Apache-2.0
"""The released table against the raw rows it was made from: every label must hold exactly the rows it was given.

Rows of one group with equal raw values have one key, and multisets of keys are compared by their number and sum; only
if these differ, key by key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from anonfit.auditing.boxes import LabelBoxes, Located, locate_source
from anonfit.auditing.coding import BoolArray, Hashes, IntArray
from anonfit.auditing.hashing import (
    Align,
    ComparedColumn,
    HashShards,
    add_hashes,
    aligned,
    aligned_texts,
    differing,
    mixed,
    parts_of,
    plain_values,
    side_of,
)
from anonfit.auditing.observed import ObservedValues, ReleasedRegions, withholding_of
from anonfit.auditing.reading import AuditedTable
from anonfit.auditing.request import Request
from anonfit.auditing.result import CountedFigure, Share, SourceCheck
from anonfit.auditing.rows import Released, batches_of

_GROUP = np.uint64(0xD6E8FEB86659FD93)
_SEED = 0x3C6EF372


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


# --- hashes of raw values -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The different values of a column, told by hashes, and what each is where both tables have one type."""

    keys: Hashes  # (value) rising
    values: pl.Series  # (value)

    def side(self, column: ComparedColumn) -> ComparedColumn:
        """A column with its values replaced; missing ones are among those that are known."""
        places = np.searchsorted(self.keys, column.values.hash(seed=_SEED).to_numpy())
        return replace(column, values=self.values.gather(places))


@dataclass(frozen=True, slots=True)
class Hashers:
    """How rows of the file and of the source are hashed, so that equal raw values have equal hashes."""

    file: Callable[[AuditedTable], Hashes]
    source: Callable[[AuditedTable], Hashes]

    @classmethod
    def of(cls, released: Released, source: AuditedTable, *, align: Align = aligned) -> Hashers:
        """Values of types that differ, and texts of numbers, are made alike: in two whole tables row by row, else once
        for each different value.
        """
        names = [name for name in released.raw if name in source.schema]
        if released.is_whole:
            file_hashes, source_hashes = _whole_hashes(released.table, source, names, align)
            return cls(lambda _: file_hashes, lambda _: source_hashes)
        lookups: tuple[dict[str, _Lookup], dict[str, _Lookup]] = {}, {}
        for name in names:
            kinds = [plain_values(pl.Series([], dtype=table.schema[name])).dtype for table in (released.table, source)]
            if kinds[0] == kinds[1] and (align is aligned or kinds[0] != pl.String):
                continue
            different = [_different(table, name) for table in (released.table, source)]
            for lookup, values, alike in zip(lookups, different, align(different[0], different[1]), strict=True):
                keys = values.hash(seed=_SEED).to_numpy()
                order = np.argsort(keys)
                lookup[name] = _Lookup(keys[order], alike.gather(order))
        file, raw = lookups
        return cls(lambda batch: _hashes(batch, names, file), lambda batch: _hashes(batch, names, raw))


def _hashes(batch: AuditedTable, names: Sequence[str], lookups: dict[str, _Lookup]) -> Hashes:
    """A hash of the raw values of every row of a batch."""
    hashes = np.zeros(batch.height(), np.uint64)
    for place, series in enumerate(batch.frame(names).get_columns(), 1):
        side, lookup = side_of(series), lookups.get(series.name)
        known = replace(side, values=plain_values(side.values)) if lookup is None else lookup.side(side)
        add_hashes(hashes, known, place)
    return hashes


def _whole_hashes(
    file: AuditedTable, source: AuditedTable, names: Sequence[str], align: Align
) -> tuple[Hashes, Hashes]:
    """The same of every row of both tables, read some columns at a time."""
    hashes = np.zeros(file.height(), np.uint64), np.zeros(source.height(), np.uint64)
    width = min(file.width, source.width)
    with ThreadPoolExecutor(2) as pool:
        for begin in range(0, len(names), width):
            at_once = names[begin : begin + width]
            pairs = zip(file.frame(at_once).get_columns(), source.frame(at_once).get_columns(), strict=True)
            for place, pair in enumerate(pairs, begin + 1):
                sides = list(pool.map(side_of, pair))
                values = align(sides[0].values, sides[1].values)
                sides = [replace(side, values=series) for side, series in zip(sides, values, strict=True)]
                list(pool.map(add_hashes, hashes, sides, (place, place)))
    return hashes


def _different(table: AuditedTable, name: str) -> pl.Series:
    """The different values of a column and a missing one."""
    values = replace(table, lazy=table.lazy.select(pl.col(name).unique())).frame([name]).to_series()
    if isinstance(values.dtype, (pl.Categorical, pl.Enum)):
        values = values.cast(pl.String)
    return values.extend(pl.Series([None], dtype=values.dtype)).unique()


# --- multisets of rows --------------------------------------------------------------------------------------------


class KeyTally:
    """The number and the sum of the keys of rows, and, if they are to be compared one by one, the keys."""

    def __init__(self, *, keep: bool = False) -> None:
        self.rows = self.total = 0
        self.keys = HashShards() if keep else None

    def add(self, groups: IntArray, hashes: Hashes) -> None:
        """The next rows: their groups and the hashes of their values; those of no group (-1) are left out."""
        for part in parts_of(groups) if self.keys is None else [slice(None)]:
            keys = _row_keys(groups[part], hashes[part])
            self.rows += len(keys)
            self.total = (self.total + int(keys.sum(dtype=np.uint64))) % 2**64
            if self.keys is not None:
                self.keys.add(keys)

    def equals(self, other: KeyTally) -> bool:
        """Whether both are of equal multisets."""
        return (self.rows, self.total) == (other.rows, other.total)

    def differences(self, other: KeyTally) -> tuple[int, int]:
        """How many members of each multiset the other has not; both were kept."""
        assert self.keys is not None
        assert other.keys is not None
        return (0, 0) if self.equals(other) else differing(self.keys, other.keys)


def _row_keys(groups: IntArray, hashes: Hashes) -> Hashes:
    """A hash of every row that is in some group, out of its group and the hash of its values."""
    if groups.min(initial=0) < 0:
        groups, hashes = groups[groups >= 0], hashes[groups >= 0]
    return mixed(groups.astype(np.uint64) * _GROUP ^ hashes)


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
    known, numbers = np.unique(_row_keys(released[kept], released_hashes[kept]), return_counts=True)
    keys = mixed(inside.astype(np.uint64) * _GROUP ^ raw_hashes)
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
