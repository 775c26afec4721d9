# SPDX-License-Identifier: Apache-2.0
"""The rows of a released file: read as a whole or in batches, the group of every row, and whether rows are sorted.

A table in memory is one batch. Of a larger one an audit keeps groups and counts, never all rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from polars.exceptions import PolarsError

from anonfit.auditing.coding import BoolArray, IntArray, as_numbers, coded_in_order, dictionary
from anonfit.auditing.groups import group_rows
from anonfit.auditing.reading import AuditedTable, reading_options, require_columns, unreadable

Ordered = npt.NDArray[Any] | pl.Series


def batches_of(table: AuditedTable, names: Sequence[str], rows_at_once: int | None) -> Iterator[AuditedTable]:
    """Some columns of a table, `rows_at_once` rows at a time, in file order; None: the whole table is one batch. There
    is at least one batch, also of a table without rows.
    """
    if rows_at_once is None:
        yield table
        return
    options = reading_options(whole_lines=table.whole_lines)
    frames = table.lazy.select(names).collect_batches(
        chunk_size=rows_at_once, maintain_order=True, engine="streaming", optimizations=options
    )
    is_first = True
    while True:
        try:
            frame = next(frames, None)
            if frame is None and is_first:
                frame = table.lazy.select(names).head(0).collect()
        except (PolarsError, OSError):  # their text may quote a record
            raise unreadable(table.label) from None
        if frame is None:
            return
        is_first = False
        batch = replace(table.only(names), lazy=frame.lazy(), width=max(1, len(names)))
        yield replace(batch, lazy=batch.frame(names).lazy(), kind="clean")


@dataclass(frozen=True, slots=True)
class GroupRuns:
    """The group of every row as runs of rows in one group, in file order; neighbours are never in one group."""

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


@dataclass(frozen=True, slots=True)
class Released:
    """A table, its quasi-identifiers with the columns that hold them, its groups, and one row of each group."""

    table: AuditedTable
    columns: Mapping[str, tuple[str, ...]]  # quasi-identifier -> columns of the file
    groups: int
    heads: pl.DataFrame  # (group) the quasi-identifiers' columns
    runs: GroupRuns
    raw: tuple[str, ...]  # the columns that are released as they are
    rows_at_once: int | None  # None: the table is one batch

    @property
    def is_whole(self) -> bool:
        """Whether the table is one batch."""
        return self.rows_at_once is None

    @property
    def rows(self) -> int:
        """The number of rows of the file."""
        return self.runs.rows

    @property
    def of_row(self) -> IntArray:
        """The group of every row."""
        return self.runs.of_rows(0, self.rows)

    @property
    def rows_of_group(self) -> IntArray:
        """The number of rows of every group."""
        rows = np.diff(self.runs.ends, prepend=0)
        return np.bincount(self.runs.group, weights=rows, minlength=self.groups).astype(np.int64)

    @property
    def suppressed(self) -> BoolArray:
        """The groups with a star in every quasi-identifier, as other tools write rows that they suppress."""
        if not self.heads.width:
            return np.zeros(self.groups, np.bool_)
        stars = pl.all_horizontal(pl.all().cast(pl.String).eq_missing("*"))
        return self.heads.select(stars).to_series().to_numpy()

    def batches(self) -> Iterator[tuple[AuditedTable, IntArray]]:
        """The raw columns of the file, and the group of every row."""
        if self.is_whole:
            yield self.table, self.of_row
            return
        begin = 0
        for batch in batches_of(self.table, self.raw or self.table.names[:1], self.rows_at_once):
            end = begin + batch.height()
            yield batch.shortened(), self.runs.of_rows(begin, end)
            begin = end


def physical_columns(table: AuditedTable, name: str) -> tuple[str, ...]:
    """The columns of a file that hold a quasi-identifier: itself, or its bounds."""
    if name not in table.schema and f"{name}_lower" in table.schema and f"{name}_upper" in table.schema:
        return tuple(f"{name}_{end}" for end in ("lower", "upper", "missing") if f"{name}_{end}" in table.schema)
    require_columns(table, [name], purpose="a quasi-identifier")
    return (name,)


def open_released(table: AuditedTable, quasi_identifiers: Sequence[str], rows_at_once: int | None = None) -> Released:
    """Read the quasi-identifiers of a table and group its rows; groups are numbered as they appear."""
    columns = {name: physical_columns(table, name) for name in quasi_identifiers}
    names = [column for held in columns.values() for column in held]
    keys = frozenset(names)  # a file may have very many columns
    raw = tuple(name for name in table.names if name not in keys)
    if rows_at_once is None:
        table = table.loaded(names).shortened()
    heads: list[pl.DataFrame] = []
    begins, places = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    rows = seen_heads = 0
    for batch in batches_of(table, names, rows_at_once):
        frame = batch.frame(names)
        height = frame.height if names else batch.height()
        grouping = group_rows(frame, height)
        changed = np.flatnonzero(np.append(True, grouping.of_row[1:] != grouping.of_row[:-1]))[:height]
        begins.append(rows + changed)
        places.append(seen_heads + grouping.of_row[changed])
        heads.append(frame[grouping.first] if names else frame)
        rows, seen_heads = rows + height, seen_heads + grouping.count
    group, edges = np.concatenate(places), np.append(np.concatenate(begins), rows)
    if len(heads) == 1:
        return Released(table, columns, seen_heads, heads[0], GroupRuns(group, edges[1:]), raw, rows_at_once)
    every = pl.concat(heads) if heads else table.frame(names)
    merged = group_rows(every, len(every))
    group = merged.of_row[group]
    last = np.append(group[1:] != group[:-1], True)[: len(group)]
    runs = GroupRuns(group[last], edges[1:][last])
    return Released(table, columns, merged.count, every[merged.first], runs, raw, rows_at_once)


# --- the order of rows --------------------------------------------------------------------------------------------


class RowOrder:
    """Rows held against the order of their columns, batch after batch: by the quasi-identifiers, then by the others, in
    file order; texts by UTF-8 bytes, missing first.

    Texts of numbers may be in either order, but in one of them from the first row to the last.
    """

    def __init__(self, released: Released) -> None:
        self.released = released
        self.sorted_as = {name: [True, True] for name in released.raw}
        self.last: pl.DataFrame | None = None
        self.last_group = -1
        self._heads_are_sorted: bool | None = None

    def add(self, batch: AuditedTable, groups: IntArray) -> None:
        """The next rows, and their groups."""
        if not self.is_sorted or not len(groups) or not self.released.raw:
            return
        if not self.released.is_whole:
            frame = batch.frame(self.released.raw)
            first, last = (frame[row].cast({pl.Enum: pl.String, pl.Categorical: pl.String}) for row in (0, -1))
            if self.last is not None and self.last_group == groups[0]:
                self._compare([pl.concat([self.last, first]).get_columns()], np.ones(1, np.bool_))
            self.last, self.last_group = last, int(groups[-1])
        chunks = batch.columns(self.released.raw)
        self._compare(chunks, groups[1:] == groups[:-1], whole=self.released.is_whole)

    @property
    def is_sorted(self) -> bool:
        """Whether groups and columns are in one of their orders, as far as rows were seen."""
        if self._heads_are_sorted is None:
            heads, held = self.released.heads, frozenset(self.released.heads.columns)
            keys = [heads[name] for name in self.released.table.names if name in held]
            # Groups are numbered as they appear: one of several runs appears again, after others.
            neighbours = np.ones(max(0, self.released.groups - 1), np.bool_)
            self._heads_are_sorted = self.released.runs.are_groups and self._compare([keys], neighbours, whole=True)
        return self._heads_are_sorted and all(any(readings) for readings in self.sorted_as.values())

    def _compare(self, chunks: Iterable[list[pl.Series]], tied: BoolArray, *, whole: bool = False) -> bool:
        """Whether rows are sorted by columns; `tied` are the rows that only these columns tell from the next row. Of
        `whole` columns one order is enough.
        """
        rows: IntArray | None = None  # the tied rows, once they are few
        for series in (column for chunk in chunks for column in chunk):
            if rows is None and np.count_nonzero(tied) * 4 < len(tied):
                rows = np.flatnonzero(tied)
            if rows is None:
                here, after, known = slice(0, -1), slice(1, None), tied
            else:
                here, after, known = slice(0, len(rows)), slice(len(rows), None), np.ones(len(rows), np.bool_)
                series = series.gather(np.concatenate([rows, rows + 1]))
            good, equal = [False, False], known
            for place, order in enumerate(_orders(series)):
                equal = _equal_neighbours(order[here], order[after]) if place == 0 else equal
                good[place] = not (_falling(order[here], order[after]) & known).any()
                if good[place] and whole:
                    break
            before = self.sorted_as.get(series.name, [True, True])
            self.sorted_as[series.name] = [held and now for held, now in zip(before, good, strict=True)]
            if not any(self.sorted_as[series.name]):
                return False
            tied, rows = (tied & equal, None) if rows is None else (tied, rows[equal])
        return True


def _orders(series: pl.Series) -> Iterator[Ordered]:
    """A column as something that has an order, missing being the lowest; texts of numbers may be in either order."""
    if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        texts = dictionary(series)
        for values in _readings(texts.values):
            yield np.append(0, values.rank("dense").to_numpy()).astype(np.int64).take(texts.codes)
    else:
        for values in _readings(series):
            yield values if values.dtype == pl.String else _on_line(values)


def _readings(series: pl.Series) -> Iterator[pl.Series]:
    """A column as it is and, if its texts are numbers, as these."""
    yield series
    if series.dtype == pl.String and (numbers := as_numbers(series)).dtype != pl.String:
        yield numbers


def _on_line(series: pl.Series) -> npt.NDArray[Any]:
    """Numbers, dates, times or truth values as numbers."""
    if series.dtype == pl.Boolean:
        series = series.cast(pl.UInt8)
    plain = isinstance(series.dtype, (pl.Int64, pl.Int32, pl.Float64)) and not series.null_count()
    return series.to_numpy() if plain else coded_in_order(series).codes


def _falling(here: Any, after: Any) -> BoolArray:
    """Where a value is below its forerunner."""
    falls = after < here
    if not isinstance(here, np.ndarray):
        falls = (falls.fill_null(value=False) | (after.is_null() & here.is_not_null())).to_numpy()
    falling: BoolArray = falls
    return falling


def _equal_neighbours(here: Any, after: Any) -> BoolArray:
    """Where a value equals its forerunner."""
    equal: BoolArray = here == after if isinstance(here, np.ndarray) else here.eq_missing(after).to_numpy()
    return equal
