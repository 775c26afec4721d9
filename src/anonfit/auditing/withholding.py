# SPDX-License-Identifier: Apache-2.0
"""Which rows of the source had to be withheld (docs/release-folder.md): those of groups that miss a demand; the demands
are then looked at again with the table that is left, until every group of every set meets all of them.

Rows are taken in some at a time and kept as how many there are of each kind: of one region, with the same values in the
columns that something is asked of, and of one person where persons are told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing.coding import Coded, IntArray, coded, coded_values, join_codes, numbered
from anonfit.auditing.diversity import groups_that_miss
from anonfit.auditing.evidence import Evidence
from anonfit.auditing.groups import Grouping, Persons, persons_in_groups, read_persons
from anonfit.auditing.reading import Table
from anonfit.auditing.region_parts import RegionSpace, region_space
from anonfit.auditing.request import Request
from anonfit.auditing.source import place_rows
from anonfit.auditing.values import RawValues

__all__ = ["Judged", "withholding_of"]

_ROWS, _PERSONS, _ENTITY, _GROUP = "rows", "persons", "entity", "group"
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Judged:
    """The regions whose rows are to be released, and rows of these that are in no group."""

    space: RegionSpace
    names: tuple[str, ...]  # quasi-identifiers
    released: pl.DataFrame  # (region) its part of every column
    missed: int

    def mask(self, batch: Table, request: Request) -> BoolArray:
        """Which rows are to be released."""
        parts = _parts(self.space, self.names, batch, request)
        keys = _frame(parts).with_row_index("row")
        known = keys.join(self.released, on=self.released.columns, how="semi")["row"].to_numpy()
        found = np.zeros(len(parts), np.bool_)
        found[known] = True
        return found


@dataclass(slots=True)
class Withholding:
    """The rows of the source, as they are taken in."""

    request: Request
    names: tuple[str, ...]  # quasi-identifiers
    space: RegionSpace
    asked: tuple[str, ...]  # raw columns
    text_file: bool
    kinds: list[pl.DataFrame] = field(default_factory=list)

    def add(self, batch: Table, groups: IntArray) -> None:
        """More rows, and the groups that they are in (-1: none)."""
        parts = _parts(self.space, self.names, batch, self.request)
        entity, count = self.request.entity, self.request.count
        raw = [series.alias(f"raw {place}") for place, series in enumerate(batch.frame(self.asked).get_columns())]
        columns = [*_frame(parts).get_columns(), pl.Series(_GROUP, groups), *raw]
        if entity is not None and entity in batch.schema:
            columns.append(batch.frame([entity]).to_series().alias(_ENTITY))
        numbers = np.ones(len(parts), np.int64)
        if count is not None and count in batch.schema:
            found = read_persons(batch.frame([count]), entity=None, count=count).numbers
            numbers = numbers if found is None else found
        frame = pl.DataFrame(columns).with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
        frame = frame.with_columns(pl.lit(1, pl.Int64).alias(_ROWS), pl.Series(_PERSONS, numbers))
        self.kinds.append(_summed(frame.filter(pl.Series((parts >= 0).all(axis=1)))))

    def judged(self) -> Judged:
        """What is to be released of all rows taken in."""
        frame = _summed(pl.concat(self.kinds, how="vertical_relaxed"))
        left = np.ones(len(frame), np.bool_)
        while len(missed := self._missed(frame, left)):
            left[missed] = False
        kept = frame.filter(pl.Series(left))
        outside = int(kept.filter(pl.col(_GROUP) < 0)[_ROWS].sum())
        return Judged(self.space, self.names, kept.select(_part_names(len(self.names))).unique(), outside)

    def _missed(self, frame: pl.DataFrame, left: BoolArray) -> IntArray:
        """The rows, of those left, in groups that miss a demand."""
        rows = np.flatnonzero(left)
        table = frame[rows]
        entities = coded(table[_ENTITY]) if _ENTITY in table.columns else None
        persons = Persons(entities=entities) if entities is not None else Persons(table[_PERSONS].to_numpy())
        bad = np.zeros(len(rows), np.bool_)
        request = self.request
        for names, k in [(one.columns, one.k) for one in request.sets] or [(self.names, request.k)]:
            keys = [table[f"part {self.names.index(name)}"].to_numpy() for name in names]
            codes, _ = join_codes([Coded(key, int(key.max(initial=0)) + 1) for key in keys], len(rows))
            group, first = numbered(codes)
            grouping = Grouping(group - 1, len(first), first)
            sizes = persons_in_groups(persons, grouping.of_row, grouping.count)
            failing = sizes < (k or 0)
            evidence = Evidence(grouping, persons, sizes, (), lambda _: iter(()), self.text_file)
            for demand in (*request.diversity, *request.targets):
                if demand.is_asked and demand.column in self.asked:
                    series = table[f"raw {self.asked.index(demand.column)}"].alias(demand.column)
                    raw = RawValues(series, coded_values(series), self.text_file)
                    failing[groups_that_miss(demand, raw, evidence=evidence)] = True
            bad |= failing[grouping.of_row]
        return rows[bad]


def withholding_of(request: Request, names: Sequence[str], source: Table) -> Withholding | None:
    """What judges the rows of a source; None where the recoding is not known, or is not of these columns."""
    if request.tree is None or not request.tree.fits or request.meanings is None:
        return None
    space = region_space({name: request.meanings[name] for name in names}, request.tree)
    demands = [*request.diversity, *request.targets]
    asked = dict.fromkeys(one.column for one in demands if one.column in source.schema and one.column not in names)
    return Withholding(request, tuple(names), space, tuple(asked), source.is_text)


def _parts(space: RegionSpace, names: Sequence[str], batch: Table, request: Request) -> IntArray:
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
