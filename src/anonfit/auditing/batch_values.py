# SPDX-License-Identifier: Apache-2.0
"""Raw columns of a table that is read some rows at a time: pairs of a group and a value, and the persons of each. From
these all figures of a column are made, as from rows that stand for several persons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from anonfit.auditing.coding import IntArray, coded, coded_values, is_text, many_values
from anonfit.auditing.diversity import measure_demands
from anonfit.auditing.evidence import Evidence
from anonfit.auditing.groups import Grouping, Persons, count_values
from anonfit.auditing.hashing import Shards, distinct_hashes
from anonfit.auditing.measuring import diversity_within, evidence_of_sets
from anonfit.auditing.raw_columns import different, measure_raw_column
from anonfit.auditing.released import Released
from anonfit.auditing.request import DiversityDemand, Request
from anonfit.auditing.result import Diversity, Figure, RawColumn, Share
from anonfit.auditing.values import RawValues

__all__ = ["HEAD", "ColumnCounts"]

HEAD = 4096  # rows that show whether texts are measurements
_MANY_PAIRS = 1 << 22  # of more, groups that are complete are measured before the file's end
_SEED = 0x2545F491
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Pairs of a group and a value, in the order of the file, and the persons of each; one may come twice."""

    group: IntArray
    value: pl.Series
    persons: IntArray

    def where(self, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> _Pairs:
        """Some of them."""
        return _Pairs(self.group[chosen], self.value.filter(pl.Series(chosen)), self.persons[chosen])


class ColumnCounts:
    """The counts of one raw column. Where nothing is asked of it and groups stand together in the file, those that are
    complete are measured on the way, and no more is kept of them than hashes of their values.
    """

    def __init__(
        self, head: pl.Series, *, demands: Sequence[DiversityDemand], together: bool, sensitive: bool, text_file: bool
    ) -> None:
        """A column, of which `head` are the first rows; `together` says that the rows of every group stand together."""
        self.name, self.demands, self.sensitive, self.text_file = head.name, tuple(demands), sensitive, text_file
        self.measured = is_text(head) and many_values(head)
        self.at_end = bool(self.demands) or not together or self.measured
        self.pairs = [_Pairs(_NONE, _plain(head[:0]), _NONE)]
        self.rows = self.held = 0
        self.complete: list[RawColumn] = []
        self.values: Shards | None = None

    def add(self, groups: IntArray, series: pl.Series, persons: Persons) -> None:
        """The next rows: their groups, values and persons."""
        if not len(series):
            return
        self.rows += len(series)
        column = coded(series).narrow()
        least = int(groups.min())
        counts = count_values(
            persons, Grouping(groups - least, int(groups.max()) - least + 1, _NONE), column, sizes=_NONE
        )
        first = np.empty(column.bound, np.int64)
        first[column.codes[::-1]] = np.arange(len(series) - 1, -1, -1)  # the last write to a place stays
        # Values with codes of their own are told by one row each.
        self.pairs.append(_Pairs(counts.group + least, _plain(series.gather(first[counts.value])), counts.persons))
        self.held += len(counts.group)
        if self.held > _MANY_PAIRS and not self.at_end:
            self._measure_complete()

    def _all(self) -> _Pairs:
        return _Pairs(
            np.concatenate([one.group for one in self.pairs]),
            pl.concat([one.value for one in self.pairs]),
            np.concatenate([one.persons for one in self.pairs]),
        )

    def _measure_complete(self, *, everything: bool = False) -> None:
        """Measure all groups but the last, which may go on."""
        every = self._all()
        is_complete = every.group < (every.group.max(initial=-1) + everything)
        some = every.where(is_complete)
        if self.values is None:
            self.values = Shards()
        if len(some.group):
            self.complete.append(self._inferred(some, some.group - int(some.group.min())))
            self.values.add(some.value.hash(seed=_SEED).to_numpy())
        self.pairs = [every.where(~is_complete)]
        self.held = len(self.pairs[0].group)

    def _inferred(self, pairs: _Pairs, groups: IntArray) -> RawColumn:
        """What groups tell of the column."""
        column = coded_values(pairs.value, measured=self.measured)
        sizes = np.bincount(groups, weights=pairs.persons).astype(np.int64)
        grouping = Grouping(groups, len(sizes), _NONE)
        counts = count_values(Persons(pairs.persons), grouping, column, sizes=sizes)
        return measure_raw_column(self.name, len(groups), counts=counts, sensitive=self.sensitive)

    def measure(self, evidence: Evidence, request: Request, released: Released) -> tuple[RawColumn, list[Diversity]]:
        """All figures of the column, once all rows were counted; `evidence` knows the groups and their persons."""
        if self.values is not None:
            self._measure_complete(everything=True)
            return self._together(distinct_hashes(self.values)), []
        pairs = self._all()
        column = coded_values(pairs.value, measured=self.measured)
        persons = Persons(pairs.persons)
        held = replace(evidence, grouping=replace(evidence.grouping, of_row=pairs.group), persons=persons)
        counts = count_values(persons, held.grouping, column, sizes=held.sizes)
        found = measure_raw_column(self.name, len(pairs.group), counts=counts, sensitive=self.sensitive)
        found = replace(found, distinct=self._distinct(different(counts.value)))
        raw = RawValues(pairs.value, column, self.text_file)
        if not request.sets:
            return found, measure_demands(self.demands, raw, counts=counts, evidence=held)
        several = evidence_of_sets(held, request, released)
        return found, [
            one for columns, of_set in several for one in diversity_within(columns, of_set, self.demands, raw)
        ]

    def _together(self, different: int) -> RawColumn:
        """The figures of all complete groups as one."""
        of = sum(one.certain.of for one in self.complete)
        certain, likely = (
            Share(sum(getattr(one, name).persons for one in self.complete), of) for name in ("certain", "likely")
        )
        smallest = min((one.smallest for one in self.complete if one.smallest is not None), default=None)
        return RawColumn(self.name, self.sensitive, certain, likely, smallest, self._distinct(different))

    def _distinct(self, different: int) -> Figure:
        return Figure(different / self.rows if self.rows else 0.0, self.rows)


def _plain(series: pl.Series) -> pl.Series:
    """Texts as such: batches have dictionaries of their own."""
    return series.cast(pl.String) if isinstance(series.dtype, (pl.Categorical, pl.Enum)) else series
