# SPDX-License-Identifier: Apache-2.0
"""Groups of rows with equal quasi-identifiers, the persons in them, and how these are spread over the values of a
column. Every figure of the audit starts here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing.coding import BoolArray, Coded, FloatArray, IntArray, coded, dense, join_codes, numbered
from anonfit.auditing.result import Bin, CountedFigure, FrequentLabels, GroupSizes, Share
from anonfit.errors import DataError

_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class RowGroups:
    """The group of every row, the number of groups, and the position of one row of each."""

    of_row: IntArray
    count: int
    first: IntArray


@dataclass(frozen=True, slots=True)
class RowPersons:
    """Whom the rows stand for: one person each; `numbers[row]` persons; or the person `entities[row]`."""

    numbers: IntArray | None = None
    entities: Coded | None = None

    @property
    def counted(self) -> str:
        """What a person is here."""
        return "entities" if self.entities is not None else "count column" if self.numbers is not None else "rows"

    def only(self, chosen: BoolArray) -> RowPersons:
        """Those of some rows."""
        numbers = None if self.numbers is None else self.numbers[chosen]
        return RowPersons(numbers, self.entities and Coded(self.entities.codes[chosen], self.entities.bound))


@dataclass(frozen=True, slots=True)
class Evidence:
    """What persons are counted on: rows of a table, pairs of a group and a value, or groups that stand for their
    persons."""

    grouping: RowGroups
    persons: RowPersons
    sizes: IntArray  # (group) persons
    persons_unknown: bool = False  # rows were counted though persons are entities

    def without(self, left_out: BoolArray | None) -> Evidence:
        """The same persons and groups without the rows of some groups."""
        if left_out is None:
            return self
        keep = ~left_out[self.grouping.of_row]
        return replace(
            self,
            grouping=replace(self.grouping, of_row=self.grouping.of_row[keep]),
            persons=self.persons.only(keep),
            sizes=np.where(left_out, 0, self.sizes),
        )


@dataclass(frozen=True, slots=True)
class SetGroups:
    """The coarser groups of one of several quasi-identifiers."""

    columns: tuple[str, ...]
    of_group: IntArray  # (group of all quasi-identifiers)
    sizes: IntArray  # (coarser group) persons


@dataclass(frozen=True, slots=True)
class ValueCounts:
    """Persons per group and per (group, value) of one column; what diversity models and inference are computed from."""

    sizes: IntArray  # (group)
    group: IntArray  # (pair) of group and value, groups in rising order
    value: IntArray  # (pair)
    persons: IntArray  # (pair)


def group_rows(frame: pl.DataFrame, rows: int) -> RowGroups:
    """Group by all columns; without columns all rows are one group. Neighbours that are equal are coded only once."""
    if not frame.width or not rows:
        return RowGroups(np.zeros(rows, np.int64), min(1, rows), np.zeros(min(1, rows), np.int64))
    columns = pl.all().to_physical()
    changed = frame.select(pl.any_horizontal(columns.ne_missing(columns.shift(1)))).to_series().to_numpy().copy()
    changed[0] = True
    heads = np.flatnonzero(changed)
    if 2 * len(heads) > rows:
        heads = np.arange(rows)
    short = frame if len(heads) == rows else frame[heads]
    # Groups are numbered as they appear: in a sorted file numbers rise.
    codes, first = numbered(join_codes([coded(column) for column in short.get_columns()], len(heads))[0])
    of_row = codes - 1 if len(heads) == rows else np.repeat(codes - 1, np.diff(np.append(heads, rows)))
    return RowGroups(of_row, len(first), heads[first])


def persons_in_groups(persons: RowPersons, groups: IntArray, count: int) -> IntArray:
    """Persons per group: a person with several rows in a group counts there once."""
    if persons.entities is not None:
        pairs, _ = join_codes([Coded(groups, max(1, count)), persons.entities], len(groups))
        groups = groups[numbered(pairs)[1]]
    weights = persons.numbers if persons.entities is None else None
    return np.bincount(groups, weights=weights, minlength=count).astype(np.int64)


def count_values(persons: RowPersons, grouping: RowGroups, column: Coded, *, sizes: IntArray) -> ValueCounts:
    """Persons per group and value of a column."""
    if grouping.count << _bits(column.bound) > _table_size(len(grouping.of_row)):
        column = column.narrow()
    bits = _bits(column.bound)
    if persons.counted == "rows":
        parts = [_count_pairs(grouping.of_row[part], column.codes[part], bits) for part in _parts(grouping.of_row)]
        pairs, numbers = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    else:
        keys = (grouping.of_row << bits) | column.codes
        codes, first = dense(keys)
        pairs, numbers = keys[first], persons_in_groups(persons, codes, len(first))
    return ValueCounts(sizes, pairs >> bits, pairs & ((1 << bits) - 1), numbers)


def _bits(bound: int) -> int:
    """The bits that codes below a bound need."""
    return (bound - 1).bit_length()


def _table_size(rows: int) -> int:
    """The largest table that is worth its room for so many rows."""
    return max(4 * rows, 2**16)


def _parts(groups: IntArray) -> list[slice]:
    """Parts of the rows that have no group in common; where groups stand together, parts are small and count fast."""
    if not len(groups) or not bool((groups[1:] >= groups[:-1]).all()):
        return [slice(0, len(groups))]
    begins = np.unique(np.searchsorted(groups, groups[::_ROWS_AT_ONCE])).tolist()
    return [slice(begin, end) for begin, end in pairwise([*begins, len(groups)])]


def _count_pairs(groups: IntArray, codes: IntArray, bits: int) -> tuple[IntArray, IntArray]:
    """The different pairs of a group and a code, each as one number, in rising order, and how often each occurs."""
    least, most = (int(groups.min()), int(groups.max())) if len(groups) else (0, 0)
    keys = groups - least
    keys <<= bits
    keys |= codes
    if (most - least + 1) << bits > _table_size(len(groups)):
        pairs, numbers = _runs(keys)
    else:
        table = np.bincount(keys)
        pairs = np.flatnonzero(table != 0)  # of truth values it is several times faster
        numbers = table[pairs]
    pairs += least << bits
    return pairs, numbers


def _runs(keys: IntArray) -> tuple[IntArray, IntArray]:
    """The different keys, in rising order, and how often each occurs; rows of a sorted file may be in order already."""
    if not bool((keys[1:] >= keys[:-1]).all()):
        keys = np.sort(keys)
    begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.empty(0, np.int64)
    return keys[begins], np.diff(np.append(begins, len(keys)))


def most_frequent(counts: ValueCounts) -> IntArray:
    """Per group, the persons who have its most frequent value."""
    most = np.zeros(len(counts.sizes), np.int64)
    if len(counts.group):
        begins = np.flatnonzero(np.append(True, counts.group[1:] != counts.group[:-1]))
        most[counts.group[begins]] = np.maximum.reduceat(counts.persons, begins)
    return most


def read_persons(frame: pl.DataFrame, *, entity: str | None, count: str | None) -> RowPersons:
    """Whom the rows of a frame stand for; rows without an entity are taken for one person together."""
    if entity is not None:
        return RowPersons(entities=coded(frame[entity]))
    if count is None:
        return RowPersons()
    values = frame[count]
    if isinstance(values.dtype, pl.Categorical | pl.Enum):  # texts of a file are read as categories
        values = values.cast(pl.String)
    numbers = values.cast(pl.Float64, strict=False)
    whole = numbers.cast(pl.Int64, strict=False)
    if whole.null_count() or not bool((whole >= 1).all()) or not bool((whole == numbers).all()):
        raise DataError(f"The count column '{count}' must hold a whole number of at least 1 in every row.")
    return RowPersons(numbers=whole.to_numpy())


@dataclass(frozen=True, slots=True)
class ValueSpread:
    """Persons per group and value. Values are called by their place among all values of the table, in rising order."""

    groups: IntArray  # (group) its number in the grouping; groups without persons are left out
    begin: IntArray  # (group) its first pair
    total: IntArray  # (group) the sum of its counts
    group: IntArray  # (pair) rising
    value: IntArray  # (pair) the value's place, rising within a group
    count: IntArray  # (pair)
    table: IntArray  # (value) persons of the whole table

    def sums(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The sum of something of the pairs, per group."""
        return np.add.reduceat(values, self.begin)

    def most(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The largest of something of the pairs, per group."""
        return np.maximum.reduceat(values, self.begin)

    @property
    def distinct(self) -> IntArray:
        """The number of different values, per group."""
        return np.diff(np.append(self.begin, len(self.group)))

    @property
    def share(self) -> FloatArray:
        """The share that each pair's value has in its group."""
        return self.count / self.total[self.group]

    @property
    def table_share(self) -> FloatArray:
        """The share that each value has in the whole table."""
        shares: FloatArray = self.table / self.table.sum()
        return shares


def value_places(column: Coded) -> tuple[IntArray, int]:
    """The place of every row's value among the different ones, in the order of their codes, and how many they are."""
    if column.bound > max(4 * len(column.codes), 2**16):
        places, first = dense(column.codes)
        return places, len(first)
    seen = np.bincount(column.codes, minlength=column.bound) > 0
    return (np.cumsum(seen) - 1)[column.codes], int(np.count_nonzero(seen))


def spread_of(persons: RowPersons, column: Coded, *, counts: ValueCounts) -> ValueSpread:
    """The spread of a column whose values were counted. In the whole table, too, a person has a value once."""
    begin = np.flatnonzero(np.diff(counts.group, prepend=-1))
    groups = counts.group[begin]
    group = np.repeat(np.arange(len(begin)), np.diff(np.append(begin, len(counts.group))))
    place, different = value_places(Coded(counts.value, int(counts.value.max(initial=0)) + 1))
    if persons.entities is None:
        table = np.bincount(place, weights=counts.persons, minlength=different).astype(np.int64)
    else:
        table = persons_in_groups(persons, value_places(column)[0], different)
    total = np.add.reduceat(counts.persons, begin) if len(begin) else begin
    return ValueSpread(groups, begin, total, group, place, counts.persons, table)


# --- sizes --------------------------------------------------------------------------------------------------------


_BINS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)


def share_of(sizes: IntArray, chosen: BoolArray) -> Share:
    """The persons in the chosen groups, of all persons."""
    return Share(int(sizes[chosen].sum()), int(sizes.sum()))


def group_sizes(sizes: IntArray, k: int | None) -> GroupSizes:
    """Smallest, quartiles, largest, and what is below k."""
    if not len(sizes):
        below, share = (CountedFigure(0, 0), Share(0, 0)) if k else (None, None)
        return GroupSizes(0, None, None, None, None, None, None, below, share, histogram=())
    low, first, middle, third, high = (
        int(size) for size in np.percentile(sizes, [0, 25, 50, 75, 100], method="inverted_cdf")
    )
    below = persons_below = None
    if k is not None:
        persons_below = share_of(sizes, sizes < k)
        below = CountedFigure(int(np.count_nonzero(sizes < k)), persons_below.persons)
    return GroupSizes(
        len(sizes),
        low,
        first,
        middle,
        third,
        high,
        float(sizes.mean()),
        below,
        persons_below,
        _histogram(sizes),
        dict(zip(*(part.tolist() for part in np.unique(sizes, return_counts=True)), strict=True)),
    )


def _histogram(sizes: IntArray) -> tuple[Bin, ...]:
    """Groups and persons by size, bins without groups left out."""
    bins = []
    for low, after in zip(_BINS, (*_BINS[1:], None), strict=True):
        inside = (sizes >= low) if after is None else (sizes >= low) & (sizes < after)
        if inside.any():
            persons = share_of(sizes, inside)
            groups = CountedFigure(int(np.count_nonzero(inside)), persons.persons)
            bins.append(Bin(low, None if after is None else after - 1, groups, persons))
    return tuple(bins)


def frequent_labels(heads: pl.DataFrame, sizes: IntArray) -> dict[str, FrequentLabels]:
    """The labels of every column that most persons have; heads: (group) what a group says."""
    of_column = {}
    for name in heads.columns:
        labels = pl.DataFrame({"label": heads[name], "persons": sizes})
        held = labels.group_by("label").agg(pl.col("persons").sum())
        most = int(held["persons"].max() or 0)  # type: ignore[arg-type]
        frequent = held.filter(pl.col("persons") == most)["label"].to_list()
        of_column[name] = FrequentLabels(len(held), most, frozenset(frequent))
    return of_column
