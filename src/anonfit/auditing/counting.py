# SPDX-License-Identifier: Apache-2.0
"""The sizes of groups, and what groups tell of the columns that are released as they are: certain and likely values, k
together with the column, and whether every group meets the demands on the column.

Of rows that come in several batches, only pairs of a group and a value are kept, with the persons of each. A pair then
counts like a row that stands for several persons."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import polars as pl

from anonfit.auditing import coding
from anonfit.auditing.coding import BoolArray, Coded, Evidence, IntArray, RowGroups, RowPersons
from anonfit.auditing.hashing import HashShards
from anonfit.auditing.models import measure_demands, unmeasured
from anonfit.auditing.released import Released
from anonfit.auditing.request import DiversityDemand, Request
from anonfit.auditing.result import Bin, CountedFigure, Diversity, FrequentLabels, GroupSizes, RawColumn, Share
from anonfit.auditing.values import RawValues
from anonfit.errors import DataError

_HEAD = 4096  # rows that show whether texts are measurements
_GENERALIZED = "Nothing is asked of it: the target is a quasi-identifier, so the file does not hold its values."
_MANY_PAIRS = 1 << 22  # of more, groups that are complete are measured before the file's end
_SEED = 0x2545F491
_NONE = np.empty(0, np.int64)
_Measured = list[tuple[RawColumn, list[Diversity]]]


_BINS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)


def share_of(sizes: IntArray, chosen: BoolArray) -> Share:
    """The persons in the chosen groups, of all persons."""
    return Share(int(sizes[chosen].sum()), int(sizes.sum()))


def group_sizes(sizes: IntArray, k: int | None) -> GroupSizes:
    """Smallest, quartiles, largest, and what is below k."""
    below = persons_below = None
    if k is not None:
        persons_below = share_of(sizes, sizes < k)
        below = CountedFigure(int(np.count_nonzero(sizes < k)), persons_below.persons)
    if not len(sizes):
        return GroupSizes(0, None, None, None, None, None, None, below, persons_below, histogram=())
    low, first, middle, third, high = map(int, np.percentile(sizes, [0, 25, 50, 75, 100], method="inverted_cdf"))
    of_size = dict(zip(*(part.tolist() for part in np.unique(sizes, return_counts=True)), strict=True))
    bins = []
    for begin, after in zip(_BINS, (*_BINS[1:], None), strict=True):
        inside = (sizes >= begin) & (sizes < (high + 1 if after is None else after))
        if inside.any():
            persons = share_of(sizes, inside)
            groups = CountedFigure(int(np.count_nonzero(inside)), persons.persons)
            bins.append(Bin(begin, None if after is None else after - 1, groups, persons))
    mean, histogram = float(sizes.mean()), tuple(bins)
    return GroupSizes(len(sizes), low, first, middle, third, high, mean, below, persons_below, histogram, of_size)


def frequent_labels(heads: pl.DataFrame, sizes: IntArray) -> dict[str, FrequentLabels]:
    """The labels of every column that most persons have; heads: (group) what a group says."""
    of_column = {}
    for name in heads.columns:
        held = pl.DataFrame({"label": heads[name], "persons": sizes}).group_by("label").agg(pl.col("persons").sum())
        most = int(held["persons"].max() or 0)  # type: ignore[arg-type]
        frequent = held.filter(pl.col("persons") == most)["label"].to_list()
        of_column[name] = FrequentLabels(len(held), most, frozenset(frequent))
    return of_column


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Pairs of a group and a value, in the order of the file, and the persons of each; a pair may come twice."""

    group: IntArray
    value: pl.Series
    persons: RowPersons

    def where(self, chosen: BoolArray) -> _Pairs:
        """Some of them."""
        return _Pairs(self.group[chosen], self.value.filter(pl.Series(chosen)), self.persons.only(chosen))


class ColumnCounts:
    """The counts of one raw column. Rows that are all in one batch are kept as they are. Of several batches, where
    nothing is asked of the column and groups stand together in the file, those that are complete are measured on the
    way, and no more is kept of them than hashes of their values.
    """

    def __init__(
        self, head: pl.Series, *, demands: Sequence[DiversityDemand], sensitive: bool, text_file: bool, together: bool
    ) -> None:
        """A column, of which `head` are the first rows; `together` says that the rows of every group stand together."""
        self.name, self.demands, self.sensitive, self.text_file = head.name, tuple(demands), sensitive, text_file
        self.measured = coding.is_text(head) and coding.many_values(head)
        self.at_end = bool(self.demands) or not together or self.measured
        self.pairs = [_Pairs(_NONE, _plain(head[:0]), RowPersons(_NONE))]
        self.rows = self.held = 0
        self.complete: list[RawColumn] = []
        self.values: HashShards | None = None

    def add(self, groups: IntArray, series: pl.Series, persons: RowPersons) -> None:
        """The next rows of several batches."""
        if not len(series):
            return
        self.rows += len(series)
        column = coding.coded(series).narrow()
        least = int(groups.min())
        grouping = RowGroups(groups - least, int(groups.max()) - least + 1, _NONE)
        counts = coding.count_values(persons, grouping, column, sizes=_NONE)
        first = np.empty(column.bound, np.int64)
        first[column.codes[::-1]] = np.arange(len(series) - 1, -1, -1)  # the last write to a place stays
        # Values with codes of their own are told by one row each.
        values = _plain(series.gather(first[counts.value]))
        self.pairs.append(_Pairs(counts.group + least, values, RowPersons(counts.persons)))
        self.held += len(counts.group)
        if self.held > _MANY_PAIRS and not self.at_end:
            self._measure_complete()

    def measure(self, evidence: Evidence, sets: Sequence[SetGroups]) -> tuple[RawColumn, list[Diversity]]:
        """All figures of the column, once all rows were counted; `evidence` knows the groups and their persons."""
        if self.values is not None:
            self._measure_complete(everything=True)
            different_values = sum(len(np.unique(hashes)) for (hashes,) in self.values.each())
            everyone = sum(column.certain.of for column in self.complete)
            together = RawColumn(
                self.name,
                self.sensitive,
                certain=Share(sum(column.certain.persons for column in self.complete), everyone),
                likely=Share(sum(column.likely.persons for column in self.complete), everyone),
                smallest=min((part.smallest for part in self.complete if part.smallest is not None), default=None),
                distinct=CountedFigure(different_values / self.rows if self.rows else 0.0, self.rows),
            )
            return together, []
        pairs = self._all()
        column = coding.coded_values(pairs.value, measured=self.measured)
        held = replace(evidence, grouping=replace(evidence.grouping, of_row=pairs.group), persons=pairs.persons)
        inferred = self._inferred(self.rows, held, column)
        raw = RawValues(pairs.value, column, self.text_file)
        if not self.demands:
            return inferred, []
        if not sets:
            counts = coding.count_values(held.persons, held.grouping, column, sizes=held.sizes)
            return inferred, measure_demands(self.demands, raw, counts=counts, evidence=held)
        return inferred, [diversity for of_set in sets for diversity in self._within(of_set, held, raw)]

    def _within(self, of_set: SetGroups, evidence: Evidence, raw: RawValues) -> list[Diversity]:
        """What is asked of the column, in the groups of one of several quasi-identifiers."""
        coarse = RowGroups(of_set.of_group[evidence.grouping.of_row], len(of_set.sizes), _NONE)
        held = replace(evidence, grouping=coarse, sizes=of_set.sizes)
        counts = coding.count_values(held.persons, coarse, raw.column, sizes=held.sizes)
        return [
            replace(diversity, settings=diversity.settings | {"quasi_identifier": list(of_set.columns)})
            for diversity in measure_demands(self.demands, raw, counts=counts, evidence=held)
        ]

    def _inferred(self, rows: int, evidence: Evidence, column: Coded) -> RawColumn:
        """What groups tell of so many rows of the column; with entities a value counts for everyone who has it."""
        sizes = evidence.sizes
        found = coding.frequencies(evidence.persons, evidence.grouping, column, sizes=sizes)
        filled = sizes > 0
        return RawColumn(
            self.name,
            self.sensitive,
            certain=share_of(sizes, filled & (found.most >= sizes)),
            likely=share_of(sizes, filled & (10 * found.most >= 9 * sizes)),
            smallest=found.least if rows else None,
            distinct=CountedFigure(found.different / rows if rows else 0.0, rows),
        )

    def _all(self) -> _Pairs:
        if len(self.pairs) == 1:
            return self.pairs[0]
        return _Pairs(
            np.concatenate([pairs.group for pairs in self.pairs]),
            pl.concat([pairs.value for pairs in self.pairs]),
            RowPersons(np.concatenate([pairs.persons.numbers for pairs in self.pairs])),
        )

    def _measure_complete(self, *, everything: bool = False) -> None:
        """Measure all groups but the last, whose rows may go on in the next batch; `everything`: the last, too."""
        every = self._all()
        is_complete = every.group < (every.group.max(initial=-1) + everything)
        complete = every.where(is_complete)
        if self.values is None:
            self.values = HashShards()
        if len(complete.group):
            groups = complete.group - int(complete.group.min())
            sizes = np.bincount(groups, weights=complete.persons.numbers).astype(np.int64)
            column = coding.coded_values(complete.value, measured=self.measured)
            held = Evidence(RowGroups(groups, len(sizes), _NONE), complete.persons, sizes)
            self.complete.append(self._inferred(len(groups), held, column))
            self.values.add(complete.value.hash(seed=_SEED).to_numpy())
        self.pairs = [every.where(~is_complete)]
        self.held = len(self.pairs[0].group)


def _plain(series: pl.Series) -> pl.Series:
    """Texts as such: batches have dictionaries of their own."""
    return series.cast(pl.String) if isinstance(series.dtype, (pl.Categorical, pl.Enum)) else series


@dataclass(frozen=True, slots=True)
class CountedRows:
    """Rows that persons are counted on: those of the file, or the source's where only it has the entities."""

    groups: IntArray
    persons: RowPersons
    columns: Callable[[Sequence[str]], Iterator[list[pl.Series]]]

    def without(self, left_out: BoolArray | None) -> CountedRows:
        """The same without the rows of some groups."""
        if left_out is None:
            return self
        keep = ~left_out[self.groups]
        mask = pl.Series(keep)

        def columns(names: Sequence[str]) -> Iterator[list[pl.Series]]:
            for chunk in self.columns(names):
                yield [series.filter(mask) for series in chunk]

        return CountedRows(self.groups[keep], self.persons.only(keep), columns)


@dataclass(frozen=True, slots=True)
class SetGroups:
    """The coarser groups of one of several quasi-identifiers."""

    columns: tuple[str, ...]
    of_group: IntArray  # (group of all quasi-identifiers)
    sizes: IntArray  # (coarser group) persons


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """The persons of the groups, and what these tell of raw columns."""

    evidence: Evidence
    raw_columns: tuple[RawColumn, ...]
    diversity: tuple[Diversity, ...]

    def everyone(self) -> int:
        """All persons; one with rows in several groups counts once."""
        evidence = self.evidence
        if evidence.persons.entities is None:
            return int(evidence.sizes.sum())
        return int(coding.persons_in_groups(evidence.persons, np.zeros_like(evidence.grouping.of_row), 1).sum())


@dataclass(frozen=True, slots=True)
class GroupCounter:
    """Counts the persons of a table in its groups, and what these tell of raw columns."""

    request: Request
    released: Released
    left_out: BoolArray | None  # (group) without which raw columns are measured

    def count(self, batches: Iterable[CountedRows], names: Sequence[str]) -> GroupCounts:
        """Count persons in groups, and measure raw columns."""
        counts_of = self._counters(names)
        count = self._count_whole if self.released.is_whole else self._count_in_batches
        evidence, measured = count(batches, names, counts_of)
        diversity = [figures for _, of_column in measured for figures in of_column]
        diversity += [
            unmeasured(replace(demand, is_asked=False), _GENERALIZED)
            for demand in self.request.targets
            if demand.column in self.request.quasi_identifiers
        ]
        return GroupCounts(evidence, tuple(inferred for inferred, _ in measured), tuple(diversity))

    def _counters(self, names: Sequence[str]) -> Callable[[pl.Series], ColumnCounts]:
        """What makes the counts of a raw column, empty, from its first rows."""
        request, released = self.request, self.released
        asked = list(request.diversity)
        plain = [name for name in request.sensitive if name not in {demand.column for demand in asked}]
        # Of a sensitive column without demands, the different values are counted.
        asked += [DiversityDemand(name, "distinct-l", {"l": 1}, is_asked=False) for name in plain]
        sensitive = {demand.column for demand in asked}
        raw_targets = (demand for demand in request.targets if demand.column not in request.quasi_identifiers)
        demands = [*asked, *raw_targets]
        together = not released.is_whole and released.runs.are_groups
        unknown = [demand.column for demand in demands if demand.column not in names]
        if unknown:
            raise DataError(f"Something is asked of '{unknown[0]}', which is no raw column of the data and the source.")
        return lambda head: ColumnCounts(
            head,
            demands=[demand for demand in demands if demand.column == head.name],
            sensitive=head.name in sensitive,
            text_file=released.table.is_text,
            together=together,
        )

    def _count_whole(
        self, batches: Iterable[CountedRows], names: Sequence[str], counts_of: Callable[[pl.Series], ColumnCounts]
    ) -> tuple[Evidence, _Measured]:
        """One batch: some columns at a time, on all cores."""
        rest = iter(batches)
        batch, measured = next(rest), _Measured()
        evidence, rows = self._evidence(batch.persons, batch.groups), batch.without(self.left_out)
        kept = evidence.without(self.left_out)
        sets = self.sets(kept)

        def measure(series: pl.Series) -> tuple[RawColumn, list[Diversity]]:
            counts = counts_of(series)
            counts.rows, counts.pairs = len(series), [_Pairs(rows.groups, series, rows.persons)]
            return counts.measure(kept, sets)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for chunk in rows.columns(names):
                measured.extend(pool.map(measure, chunk))
        list(rest)  # there are no others; whoever gives the batch looks at it until it is asked for the next
        return evidence, measured

    def _count_in_batches(
        self, batches: Iterable[CountedRows], names: Sequence[str], counts_of: Callable[[pl.Series], ColumnCounts]
    ) -> tuple[Evidence, _Measured]:
        """Several batches: columns one after the other, since their counts may be many."""
        table, sizes = self.released.table, np.zeros(self.released.groups, np.int64)
        columns = [counts_of(series) for series in replace(table, lazy=table.lazy.head(_HEAD)).frame(names)]
        for batch in batches:
            sizes += coding.persons_in_groups(batch.persons, batch.groups, len(sizes))
            rows = batch.without(self.left_out)
            for counts, series in zip(columns, chain.from_iterable(rows.columns(names)), strict=True):
                counts.add(rows.groups, series, rows.persons)
        evidence = self._evidence(RowPersons(sizes), np.arange(len(sizes)))
        kept = evidence.without(self.left_out)
        sets = self.sets(kept)
        return evidence, [columns.pop(0).measure(kept, sets) for _ in names]

    def _evidence(self, persons: RowPersons, groups: IntArray) -> Evidence:
        """The persons in groups; rows were counted if nothing says which of them are one person's."""
        count, request = self.released.groups, self.request
        unknown = request.entities_lost or (request.entity is not None and persons.entities is None)
        return Evidence(
            RowGroups(groups, count, _NONE), persons, coding.persons_in_groups(persons, groups, count), unknown
        )

    def sets(self, evidence: Evidence) -> list[SetGroups]:
        """The groups of every one of several quasi-identifiers."""
        sets = []
        for demand in self.request.sets:
            names = [column for name in demand.columns for column in self.released.columns[name]]
            coarse = coding.group_rows(self.released.heads.select(names), self.released.groups)
            sizes = coding.persons_in_groups(evidence.persons, coarse.of_row[evidence.grouping.of_row], coarse.count)
            sets.append(SetGroups(demand.columns, coarse.of_row, sizes))
        return sets
