# SPDX-License-Identifier: Apache-2.0
"""A released table and its source, both read some rows at a time, and the group of every row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from anonfit.auditing.batches import Runs, batches_of
from anonfit.auditing.boxes import Boxes
from anonfit.auditing.coding import IntArray
from anonfit.auditing.observed import Seen
from anonfit.auditing.reading import Table
from anonfit.auditing.released import Released
from anonfit.auditing.request import Request
from anonfit.auditing.source import locate_source
from anonfit.auditing.withholding import Judged

__all__ = ["Tables"]


@dataclass(slots=True)
class Place:
    """Where the raw rows lie."""

    rows: int = 0
    beyond: int = 0
    unknown: int = 0
    dropped: int = 0
    several: int = 0
    outside: int = 0  # in no group
    withheld: int = 0  # and not left out on purpose


@dataclass(slots=True)
class Tables:
    """What is audited: the file, its groups, and its source."""

    request: Request
    released: Released
    runs: Runs
    rows_at_once: int
    raw: tuple[str, ...]
    source: Table | None
    boxes: Boxes | None = None
    seen: Seen | None = None
    judged: Judged | None = None
    place: Place = field(default_factory=Place)

    @property
    def compared(self) -> tuple[str, ...]:
        """The raw columns that the source has, too."""
        return () if self.source is None else tuple(name for name in self.raw if name in self.source.schema)

    def file_batches(self) -> Iterator[tuple[Table, IntArray]]:
        """The raw columns of the file, and the group of every row."""
        begin, table = 0, self.released.table
        names = [*self.raw, *(() if self.raw else table.names[:1])]
        for batch in batches_of(table, names, self.rows_at_once):
            end = begin + batch.height()
            yield batch.shortened(), self.runs.of_rows(begin, end)
            begin = end

    def source_batches(self) -> Iterator[tuple[Table, IntArray]]:
        """The source, and the group of every row (-1: none); without labels that can be read all are in one."""
        assert self.source is not None
        self.place = place = Place()
        for batch in batches_of(self.source, self.source.names, self.rows_at_once):
            rows = batch.height()
            place.rows += rows
            groups = np.zeros(rows, np.int64)
            if self.boxes is not None:
                located = locate_source(
                    self.boxes,
                    batch,
                    quasi_identifiers=list(self.released.columns),
                    seen=self.seen,
                    **self.request.left_out,
                )
                groups = located.found.group
                place.withheld += located.outside
                if self.judged is not None:
                    groups[~self.judged.mask(batch, self.request)] = -1
                place.beyond += located.beyond
                place.unknown += located.unknown
                place.dropped += located.dropped
                place.several += int(np.count_nonzero(located.found.others))
            place.outside += int(np.count_nonzero(groups < 0))
            yield batch.shortened(), groups
