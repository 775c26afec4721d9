# SPDX-License-Identifier: Apache-2.0
"""What groups tell of the columns that are released as they are: certain and likely values, k together with the column,
and whether every group meets the demands on the column.

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

from anonfit.auditing.coding import BoolArray, IntArray, coded, coded_values, is_text, many_values
from anonfit.auditing.groups import (
    Evidence,
    RowGroups,
    RowPersons,
    SetGroups,
    ValueCounts,
    ValueSpread,
    count_values,
    group_rows,
    most_frequent,
    persons_in_groups,
    share_of,
    spread_of,
)
from anonfit.auditing.hashing import HashShards, distinct_hashes
from anonfit.auditing.request import DiversityDemand, Request
from anonfit.auditing.result import CountedFigure, Diversity, RawColumn, Share
from anonfit.auditing.rows import Released
from anonfit.auditing.values import RawValues, Reading, Reads, ReadValues, read_values, type_of
from anonfit.errors import DataError

_HEAD = 4096  # rows that show whether texts are measurements
PERSONS_UNKNOWN = "Not checked: persons are told apart by their entities, which are only in the source."
_NO_ROWS = "Not checked: there are no rows."
_NOT_ASKED = "Nothing was asked."
_NO_CLASSES = (
    "Not checked: the target holds numbers or dates, and no classes of them are stated; give classes, equal_width or "
    "type = 'nominal'."
)
_GENERALIZED = "Nothing is asked of it: the target is a quasi-identifier, so the file does not hold its values."
_MANY_PAIRS = 1 << 22  # of more, groups that are complete are measured before the file's end
_SEED = 0x2545F491
_NONE = np.empty(0, np.int64)
_Measured = list[tuple[RawColumn, list[Diversity]]]


# --- inference ----------------------------------------------------------------------------------------------------


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
        self.measured = is_text(head) and many_values(head)
        self.at_end = bool(self.demands) or not together or self.measured
        self.pairs = [_Pairs(_NONE, _plain(head[:0]), RowPersons(_NONE))]
        self.rows = self.held = 0
        self.complete: list[RawColumn] = []
        self.values: HashShards | None = None

    def take(self, groups: IntArray, series: pl.Series, persons: RowPersons) -> None:
        """All rows: their groups, values and persons."""
        self.rows, self.pairs = len(series), [_Pairs(groups, series, persons)]

    def add(self, groups: IntArray, series: pl.Series, persons: RowPersons) -> None:
        """The next rows of several batches."""
        if not len(series):
            return
        self.rows += len(series)
        column = coded(series).narrow()
        least = int(groups.min())
        grouping = RowGroups(groups - least, int(groups.max()) - least + 1, _NONE)
        counts = count_values(persons, grouping, column, sizes=_NONE)
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
            return self._together(distinct_hashes(self.values)), []
        pairs = self._all()
        column = coded_values(pairs.value, measured=self.measured)
        held = replace(evidence, grouping=replace(evidence.grouping, of_row=pairs.group), persons=pairs.persons)
        counts = count_values(held.persons, held.grouping, column, sizes=held.sizes)
        inferred = _inferred(self.name, self.rows, counts=counts, sensitive=self.sensitive)
        raw = RawValues(pairs.value, column, self.text_file)
        if not sets:
            return inferred, _measure_demands(self.demands, raw, counts=counts, evidence=held)
        return inferred, [diversity for of_set in sets for diversity in self._within(of_set, held, raw)]

    def _within(self, of_set: SetGroups, evidence: Evidence, raw: RawValues) -> list[Diversity]:
        """What is asked of the column, in the groups of one of several quasi-identifiers."""
        coarse = RowGroups(of_set.of_group[evidence.grouping.of_row], len(of_set.sizes), _NONE)
        held = replace(evidence, grouping=coarse, sizes=of_set.sizes)
        counts = count_values(held.persons, coarse, raw.column, sizes=held.sizes)
        return [
            replace(diversity, settings=diversity.settings | {"quasi_identifier": list(of_set.columns)})
            for diversity in _measure_demands(self.demands, raw, counts=counts, evidence=held)
        ]

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
            column = coded_values(complete.value, measured=self.measured)
            counts = count_values(complete.persons, RowGroups(groups, len(sizes), _NONE), column, sizes=sizes)
            self.complete.append(_inferred(self.name, len(groups), counts=counts, sensitive=self.sensitive))
            self.values.add(complete.value.hash(seed=_SEED).to_numpy())
        self.pairs = [every.where(~is_complete)]
        self.held = len(self.pairs[0].group)

    def _together(self, values: int) -> RawColumn:
        """The figures of all complete groups as one."""
        of = sum(column.certain.of for column in self.complete)
        certain, likely = (
            Share(sum(getattr(column, name).persons for column in self.complete), of) for name in ("certain", "likely")
        )
        smallest = min((column.smallest for column in self.complete if column.smallest is not None), default=None)
        distinct = CountedFigure(values / self.rows if self.rows else 0.0, self.rows)
        return RawColumn(self.name, self.sensitive, certain, likely, smallest, distinct)


def _plain(series: pl.Series) -> pl.Series:
    """Texts as such: batches have dictionaries of their own."""
    return series.cast(pl.String) if isinstance(series.dtype, (pl.Categorical, pl.Enum)) else series


def _inferred(name: str, rows: int, *, counts: ValueCounts, sensitive: bool) -> RawColumn:
    """What groups tell of a column of so many rows; with entities a value counts for everyone who has it."""
    most = most_frequent(counts)
    filled = counts.sizes > 0
    return RawColumn(
        name,
        sensitive,
        certain=share_of(counts.sizes, filled & (most >= counts.sizes)),
        likely=share_of(counts.sizes, filled & (10 * most >= 9 * counts.sizes)),
        smallest=int(counts.persons.min()) if rows else None,
        distinct=CountedFigure(different(counts.value) / rows if rows else 0.0, rows),
    )


def different(values: IntArray) -> int:
    """How many different values there are."""
    if values.max(initial=0) > max(4 * len(values), 2**16):
        return pl.Series(values).n_unique()
    seen = np.zeros(int(values.max(initial=0)) + 1, np.bool_)
    seen[values] = True
    return int(np.count_nonzero(seen))


# --- demands ------------------------------------------------------------------------------------------------------


def _measure_demands(
    demands: Sequence[DiversityDemand], raw: RawValues, *, counts: ValueCounts, evidence: Evidence
) -> list[Diversity]:
    """Every demand on one column, whose values are counted as they stand; demands that read them otherwise count anew,
    once for each way.
    """
    shared: dict[tuple[Reads, Reading], tuple[ValueSpread, ReadValues]] = {}
    measured = []
    for demand in demands:
        reason = _reason(demand, raw, evidence)
        if reason is not None:
            measured.append(_unmeasured(demand, reason))
            continue
        key = (demand.measure.reads, demand.reading)
        if key not in shared:
            shared[key] = _spread(key, raw, counts=counts, evidence=evidence)
        measured.append(_measured(demand, *shared[key], evidence=evidence))
    return measured


def groups_that_miss(demand: DiversityDemand, raw: RawValues, *, evidence: Evidence) -> IntArray:
    """The groups that are not as a demand on a column asks."""
    if _reason(demand, raw, evidence) is not None:
        return np.empty(0, np.int64)
    counts = count_values(evidence.persons, evidence.grouping, raw.column, sizes=evidence.sizes)
    spread, values = _spread((demand.measure.reads, demand.reading), raw, counts=counts, evidence=evidence)
    _, met = demand.measure.measure(spread, values, demand.parameters)
    return spread.groups[~met]


def _reason(demand: DiversityDemand, raw: RawValues, evidence: Evidence) -> str | None:
    """Why a demand cannot be checked; None if it can."""
    if not len(raw.series):
        return _NO_ROWS
    if evidence.persons_unknown and not demand.measure.by_rows:
        return PERSONS_UNKNOWN
    reading = demand.reading
    if demand.model == "max_confidence" and reading.classes is None and reading.equal_width is None:
        return _NO_CLASSES if type_of(raw, reading) in ("continuous", "date") else None
    return None


def _spread(
    key: tuple[Reads, Reading], raw: RawValues, *, counts: ValueCounts, evidence: Evidence
) -> tuple[ValueSpread, ReadValues]:
    """The spread of a column's values, read in one way."""
    column, values = read_values(raw, key[1], reads=key[0])
    if column is not raw.column:
        counts = count_values(evidence.persons, evidence.grouping, column, sizes=evidence.sizes)
    return spread_of(evidence.persons, column, counts=counts), values


def _measured(demand: DiversityDemand, spread: ValueSpread, values: ReadValues, *, evidence: Evidence) -> Diversity:
    """The worst group's figure, and whether all groups are as asked."""
    model = demand.measure
    figures, met = model.measure(spread, values, demand.parameters)
    worst = int(np.argmin(figures) if model.worst == "smallest" else np.argmax(figures))
    figure = CountedFigure(figures[worst].item(), int(evidence.sizes[spread.groups[worst]]))
    if not demand.is_asked:
        return replace(_unmeasured(demand, _NOT_ASKED), found=figure)
    good = bool(met.all())
    diversity = replace(_unmeasured(demand, model.good if good else model.bad), found=figure, met=good)
    if model.reads != "distance":
        return diversity
    return replace(diversity, settings=diversity.settings | {"distance": values.distance})


def _unmeasured(demand: DiversityDemand, sentence: str) -> Diversity:
    """A demand that nothing was found about."""
    reading = demand.reading
    settings = {name: value for name, value in demand.parameters.items() if name != demand.measure.asked}
    if reading.classes is not None:
        settings["classes"] = [float(begin) for begin in reading.classes]
    if reading.equal_width is not None:
        settings["equal_width"] = reading.equal_width
    return Diversity(demand.column, demand.model, None, demand.asked, None, sentence, settings, demand.measure.by_rows)


# --- all of them --------------------------------------------------------------------------------------------------


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
        return int(persons_in_groups(evidence.persons, np.zeros_like(evidence.grouping.of_row), 1).sum())


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
            _unmeasured(replace(demand, is_asked=False), _GENERALIZED)
            for demand in self.request.targets
            if demand.column in self.request.quasi_identifiers
        ]
        return GroupCounts(evidence, tuple(inferred for inferred, _ in measured), tuple(diversity))

    def _counters(self, names: Sequence[str]) -> Callable[[pl.Series], ColumnCounts]:
        """What makes the counts of a raw column, empty, from its first rows."""
        request, released = self.request, self.released
        asked = _sensitive_demands(request)
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
            counts.take(rows.groups, series, rows.persons)
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
            sizes += persons_in_groups(batch.persons, batch.groups, len(sizes))
            rows = batch.without(self.left_out)
            for counts, series in zip(columns, chain.from_iterable(rows.columns(names)), strict=True):
                counts.add(rows.groups, series, rows.persons)
        evidence = self._evidence(RowPersons(sizes), np.arange(len(sizes)))
        kept = evidence.without(self.left_out)
        sets, measured = self.sets(kept), _Measured()
        while columns:
            measured.append(columns.pop(0).measure(kept, sets))
        return evidence, measured

    def _evidence(self, persons: RowPersons, groups: IntArray) -> Evidence:
        """The persons in groups; rows were counted if nothing says which of them are one person's."""
        count, request = self.released.groups, self.request
        unknown = request.entities_lost or (request.entity is not None and persons.entities is None)
        return Evidence(RowGroups(groups, count, _NONE), persons, persons_in_groups(persons, groups, count), unknown)

    def sets(self, evidence: Evidence) -> list[SetGroups]:
        """The groups of every one of several quasi-identifiers."""
        sets = []
        for demand in self.request.sets:
            names = [column for name in demand.columns for column in self.released.columns[name]]
            coarse = group_rows(self.released.heads.select(names), self.released.groups)
            sizes = persons_in_groups(evidence.persons, coarse.of_row[evidence.grouping.of_row], coarse.count)
            sets.append(SetGroups(demand.columns, coarse.of_row, sizes))
        return sets


def _sensitive_demands(request: Request) -> list[DiversityDemand]:
    """The demands on sensitive columns; of one without any, the different values are counted."""
    asked = {demand.column for demand in request.diversity}
    plain = [name for name in request.sensitive if name not in asked]
    return [*request.diversity, *(DiversityDemand(name, "distinct-l", {"l": 1}, is_asked=False) for name in plain)]
