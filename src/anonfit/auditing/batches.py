# SPDX-License-Identifier: Apache-2.0
"""Tables that are read some rows at a time: an audit of these keeps groups and counts, never all rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from anonfit.auditing.coding import IntArray
from anonfit.auditing.groups import Grouping, Persons, group_rows, read_persons
from anonfit.auditing.reading import Table, reading_options, unreadable
from anonfit.auditing.released import Released, physical_columns

__all__ = ["Runs", "batches_of", "group_batches", "persons_of"]


@dataclass(frozen=True, slots=True)
class Runs:
    """The group of every row as runs of rows in one group, in file order."""

    group: IntArray  # (run)
    ends: IntArray  # (run) the row after its last

    @property
    def rows(self) -> int:
        """The rows of all runs."""
        return int(self.ends[-1]) if len(self.ends) else 0

    @property
    def are_groups(self) -> bool:
        """Whether every group is one run: its rows stand together."""
        return len(self.group) == len(np.unique(self.group))

    def of_rows(self, begin: int, end: int) -> IntArray:
        """The groups of some rows."""
        first, last = np.searchsorted(self.ends, [begin, end - 1], "right")
        edges = np.clip(np.append(begin, self.ends[first : last + 1]), begin, end)
        return np.repeat(self.group[first : last + 1], np.diff(edges))

    def sizes(self, count: int) -> IntArray:
        """The rows of every group."""
        return np.bincount(self.group, weights=np.diff(self.ends, prepend=0), minlength=count).astype(np.int64)


def batches_of(table: Table, names: Sequence[str], rows: int) -> Iterator[Table]:
    """Some columns of a table, so many rows at a time, in file order; no rows at all are one batch."""
    options = reading_options(whole_lines=table.whole_lines)
    found = table.lazy.select(names).collect_batches(
        chunk_size=rows, maintain_order=True, engine="streaming", optimizations=options
    )
    while True:
        try:
            batch = next(found, None)
        except (PolarsError, OSError):  # their text may quote a record
            raise unreadable(table.label) from None
        if batch is None:
            return
        short = replace(table.only(names), lazy=batch.lazy(), width=max(1, len(names)))
        yield replace(short, lazy=short.frame(names).lazy(), kind="clean")


def persons_of(batch: Table, count: str | None) -> Persons:
    """Whom the rows of a batch stand for."""
    return read_persons(batch.frame([] if count is None else [count]), entity=None, count=count)


def group_batches(table: Table, quasi_identifiers: Sequence[str], rows: int) -> tuple[Released, Runs]:
    """The groups of a table, numbered as they appear, one row of each, and the runs of rows that are in them.

    The rows of what is returned are the groups themselves, each once.
    """
    columns = {name: physical_columns(table, name) for name in quasi_identifiers}
    names = [column for held in columns.values() for column in held]
    heads: list[pl.DataFrame] = []
    begins: list[IntArray] = []
    places: list[IntArray] = []
    seen = seen_heads = 0
    for batch in batches_of(table, names, rows):
        frame = batch.frame(names)
        found = group_rows(frame, len(frame))
        changed = np.flatnonzero(np.append(True, found.of_row[1:] != found.of_row[:-1]))[: len(frame)]
        begins.append(seen + changed)
        places.append(seen_heads + found.of_row[changed])
        heads.append(frame[found.first])
        seen, seen_heads = seen + len(frame), seen_heads + found.count
    every = pl.concat(heads) if heads else table.frame(names)
    merged = group_rows(every, len(every))
    runs = _joined(merged.of_row[_concatenated(places)], np.append(_concatenated(begins), seen))
    count = np.arange(merged.count)
    return Released(table, columns, Grouping(count, merged.count, count), every[merged.first]), runs


def _concatenated(parts: Sequence[IntArray]) -> IntArray:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _joined(groups: IntArray, edges: IntArray) -> Runs:
    """Runs, of which neighbours are never in one group."""
    last = np.append(groups[1:] != groups[:-1], True)[: len(groups)]
    return Runs(groups[last], edges[1:][last])
