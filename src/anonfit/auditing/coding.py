# SPDX-License-Identifier: Apache-2.0
"""Columns as integer codes (equal values have equal codes, missing is 0), groups of rows with equal quasi-identifiers,
the persons in them, and how these are spread over the values of a column. Every figure of the audit starts here.

Texts are told apart by 64-bit hashes: two different texts of a column get one code with a chance of
(number of texts)² / 2**65."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.errors import DataError

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]
_FEW_ROWS = 1 << 15  # of so many, keys are sorted: nothing has to be compiled
_FEW_VALUES = 1 << 12
_SEED = 0x5DEECE66D


@dataclass(frozen=True, slots=True)
class Dictionary:
    """A column as pointers to its different values: 0 is missing, 1 the first of them."""

    codes: IntArray
    values: pl.Series


def numbered(keys: IntArray | Hashes) -> tuple[IntArray, IntArray]:
    """The number of every row's key, counted from 1 as keys appear, and the first row of each key."""
    numbers = numbered_few(keys, len(keys))
    assert numbers is not None
    return numbers


def numbered_few(keys: IntArray | Hashes, most: int) -> tuple[IntArray, IntArray] | None:
    """As `numbered`; None if there are more than `most` different keys."""
    if len(keys) >= _FEW_ROWS:
        return _by_table(keys, most)
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return (np.argsort(order)[places] + 1, first[order]) if len(first) <= most else None


def _by_table(keys: IntArray | Hashes, most: int) -> tuple[IntArray, IntArray] | None:
    from anonfit.auditing.kernels import number

    codes, room, plain = np.empty(len(keys), np.int64), _FEW_VALUES, np.ascontiguousarray(keys).view(np.uint64)
    while True:
        first = np.empty(room, np.int64)
        count = number(plain, codes, np.zeros(2 * room, np.uint32), first)
        if count >= 0:
            return (codes, first[:count]) if count <= most else None
        if room > most:
            return None
        room *= 16


def dictionary(texts: pl.Series) -> Dictionary:
    """The different values of a column of texts."""
    different = few_texts(texts, len(texts))
    assert different is not None
    return different


def few_texts(texts: pl.Series, most: int) -> Dictionary | None:
    """As `dictionary`; None if there are more than `most` values in a column that is not in a dictionary already."""
    if isinstance(texts.dtype, (pl.Categorical, pl.Enum)):
        return _of_pointers(texts)
    numbers = numbered_few(texts.hash(seed=_SEED).to_numpy(), most)
    if numbers is None:
        return None
    codes, first = numbers
    # A few are picked one by one, since gathering puts all rows into one piece first.
    few = [texts[row] for row in first.tolist()] if len(first) <= _FEW_VALUES else None
    values = texts.gather(first) if few is None else pl.Series(texts.name, few, dtype=pl.String)
    if values.null_count():
        known = values.is_not_null().to_numpy()
        codes, values = np.append(0, np.where(known, np.cumsum(known), 0)).take(codes), values.drop_nulls()
    return Dictionary(codes, values)


def _of_pointers(texts: pl.Series) -> Dictionary:
    """A column that is in a dictionary already, with those of its values that some row has."""
    narrow = texts.to_physical()
    narrow = narrow.cast(pl.Int64).fill_null(-1) if narrow.null_count() else narrow
    places: IntArray = narrow.to_numpy().astype(np.int64, copy=False)
    seen = np.zeros(int(places.max(initial=-1)) + 2, np.bool_)  # missing, -1, is the place after the last
    seen[places] = True
    seen[-1] = False
    present = pl.Series(texts.name, np.flatnonzero(seen).astype(np.uint32)).cat.to(texts.dtype).cast(pl.String)
    if seen[:-1].all() and not texts.null_count():
        return Dictionary(places + 1, present)
    return Dictionary(np.where(seen, np.cumsum(seen), 0)[places], present)


def as_pointers(texts: Dictionary, name: str) -> pl.Series:
    """A column in a dictionary as polars has it."""
    places = texts.codes.astype(np.min_scalar_type(len(texts.values)))
    places -= places.dtype.type(1)
    pointers = pl.Series(name, places)
    if not texts.codes.all():
        pointers = pl.select(pl.when(pl.Series(texts.codes > 0)).then(pointers).alias(name)).to_series()
    return pointers.cat.to(pl.Enum(texts.values))


_KEY_LIMIT = 2**62
_SAMPLE = 4096
_WIDE = 2**40  # integers of a wider range are replaced by their ranks


@dataclass(frozen=True, slots=True)
class Coded:
    """A column's codes, all below `bound`."""

    codes: IntArray
    bound: int

    def narrow(self) -> Coded:
        """The same column with codes in the same order and without gaps; 0 is kept even if nothing is missing."""
        places, different = value_places(Coded(np.append(0, self.codes), self.bound))
        return Coded(places[1:], different)


def coded(series: pl.Series) -> Coded:
    """The codes of a column of any plain type; texts are equal if all their signs are."""
    if is_text(series):
        texts = dictionary(series)
        return Coded(texts.codes, len(texts.values) + 1)
    if series.dtype.is_float():
        return _ranked(series)
    series = series.cast(pl.UInt8) if series.dtype == pl.Boolean else series
    whole = integers(series)
    return coded(series.cast(pl.String)) if whole is None else _offset(whole, series)


def coded_in_order(series: pl.Series) -> Coded:
    """The codes of a column of numbers, dates or times, in their order."""
    whole = None if series.dtype.is_float() else integers(series)
    return _ranked(series) if whole is None else _offset(whole, series)


def coded_values(series: pl.Series, *, measured: bool | None = None) -> Coded:
    """The codes of a raw column. Texts of many different numbers are equal if the numbers are; `measured` says whether
    they are many, which is otherwise seen from the first ones.
    """
    if is_text(series):
        texts = dictionary(series)
        numbers = as_numbers(texts.values) if measured or (measured is None and many_values(series)) else texts.values
        if is_text(numbers):
            return Coded(texts.codes, len(numbers) + 1)
        known = coded_values(numbers)
        return Coded(np.append(0, known.codes)[texts.codes], known.bound)
    cents = _as_cents(series) if series.dtype.is_float() else None
    return coded(series if cents is None else cents)


def is_text(series: pl.Series) -> bool:
    """Whether a column holds texts, in a dictionary or not."""
    return isinstance(series.dtype, (pl.String, pl.Categorical, pl.Enum))


def _as_cents(series: pl.Series) -> pl.Series | None:
    """Numbers with at most two decimals as whole numbers: they need no sorting to be coded. None if some have more."""
    values = series.cast(pl.Float64).fill_null(0.0).to_numpy()
    with np.errstate(over="ignore"):  # an infinite one is too wide
        cents = np.round(values * 100)
    if not (np.abs(cents) < _WIDE).all() or not (cents / 100 == values).all():
        return None
    return pl.select(pl.when(series.is_not_null()).then(pl.Series(cents.astype(np.int64)))).to_series()


def _offset(values: IntArray, series: pl.Series) -> Coded:
    """Codes by distance from the smallest value where the range is not too wide, else by rank."""
    missing = series.is_null().to_numpy() if series.null_count() else None
    present = values if missing is None else values[~missing]
    low, high = (int(present.min()), int(present.max())) if len(present) else (0, -1)
    if high - low > _WIDE:
        return _ranked(series.to_physical())
    codes = values - (low - 1)
    if missing is not None:
        codes[missing] = 0
    return Coded(codes, high - low + 2)


def _ranked(series: pl.Series) -> Coded:
    codes: IntArray = series.rank("dense").cast(pl.Int64).fill_null(0).to_numpy()
    return Coded(codes, int(codes.max(initial=0)) + 1)


def integers(series: pl.Series) -> IntArray | None:
    """The whole numbers behind integers, decimals, dates, times and texts in a dictionary (missing: 0)."""
    physical: Any = series.to_physical()
    if not physical.dtype.is_integer():
        return None
    narrow = physical.cast(pl.Int64, strict=False)
    whole: IntArray = (narrow.fill_null(0) if narrow.null_count() else narrow).to_numpy()
    return None if narrow.null_count() > physical.null_count() else whole


def many_values(series: pl.Series) -> bool:
    """Whether a text column seems to hold so many values that they are measurements rather than names."""
    head = series.head(_SAMPLE)
    return len(head) == _SAMPLE and head.n_unique() > _SAMPLE // 2


def as_numbers(series: pl.Series) -> pl.Series:
    """A text column as numbers if all its texts are, without codes such as 007; else as it is."""
    if (series.str.starts_with("0") & (series.str.len_bytes() > 1) & ~series.str.starts_with("0.")).any():
        return series
    for dtype in (pl.Int64, pl.Float64):
        numbers = series.cast(dtype, strict=False)
        if numbers.null_count() == series.null_count() and not (dtype == pl.Float64 and numbers.is_nan().any()):
            return numbers
    return series


def dense(keys: IntArray) -> tuple[IntArray, IntArray]:
    """Keys as 0, 1, 2 … in their order, and the position of the first row of each."""
    codes = _ranked(pl.Series(keys)).codes - 1
    first = np.empty(int(codes.max(initial=-1)) + 1, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # the last write to a place stays: that of the first row
    return codes, first


def join_codes(columns: list[Coded], rows: int) -> tuple[IntArray, int]:
    """One key per combination of codes, and its bound; keys are made dense whenever they would grow too long."""
    keys, bound = np.zeros(rows, np.int64), 1
    for column in columns:
        if bound * column.bound >= _KEY_LIMIT:
            keys, first = numbered(keys)
            bound = len(first) + 1
        keys = keys * column.bound + column.codes
        bound *= column.bound
    return keys, bound


def different(codes: IntArray) -> int:
    """How many different codes there are."""
    bound = int(codes.max(initial=0)) + 1
    if bound > _table_size(len(codes)):
        return len(dense(codes)[1])
    return int(np.count_nonzero(np.bincount(codes, minlength=bound)))


def value_places(column: Coded) -> tuple[IntArray, int]:
    """The place of every row's value among the different ones, in the order of their codes, and how many they are."""
    if column.bound > _table_size(len(column.codes)):
        places, first = dense(column.codes)
        return places, len(first)
    seen = np.bincount(column.codes, minlength=column.bound) > 0
    return (np.cumsum(seen) - 1)[column.codes], int(np.count_nonzero(seen))


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

    def only(self, chosen: BoolArray) -> RowPersons:
        """Those of some rows."""
        numbers = None if self.numbers is None else self.numbers[chosen]
        return RowPersons(numbers, self.entities and Coded(self.entities.codes[chosen], self.entities.bound))


@dataclass(frozen=True, slots=True)
class Evidence:
    """What persons are counted on: rows, pairs of a group and a value, or groups that stand for their persons."""

    grouping: RowGroups
    persons: RowPersons
    sizes: IntArray  # (group) persons
    persons_unknown: bool = False  # rows were counted though persons are entities

    def without(self, left_out: BoolArray | None) -> Evidence:
        """The same persons and groups without the rows of some groups."""
        if left_out is None:
            return self
        keep = ~left_out[self.grouping.of_row]
        grouping, sizes = replace(self.grouping, of_row=self.grouping.of_row[keep]), np.where(left_out, 0, self.sizes)
        return replace(self, grouping=grouping, persons=self.persons.only(keep), sizes=sizes)


@dataclass(frozen=True, slots=True)
class ValueCounts:
    """Persons per group and per (group, value) of one column; what diversity models and inference are computed from."""

    sizes: IntArray  # (group)
    group: IntArray  # (pair) of group and value, groups in rising order
    value: IntArray  # (pair)
    persons: IntArray  # (pair)


@dataclass(frozen=True, slots=True)
class Frequencies:
    """How often values of a column occur in groups."""

    most: IntArray  # (group) the persons who have its most frequent value
    least: int  # the fewest persons of a group who have one value
    different: int  # how many different values there are


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
    groups = grouping.of_row
    are_rows = persons.numbers is None and persons.entities is None
    if are_rows and _are_many_in_order(groups):
        return ValueCounts(sizes, *_count_in_order(groups, column))
    if grouping.count << _bits(column.bound) > _table_size(len(groups)):
        column = column.narrow()
    bits = _bits(column.bound)
    if are_rows:
        pairs, numbers = _count_pairs(groups, column.codes, bits)
    else:
        keys = (groups << bits) | column.codes
        codes, first = dense(keys)
        pairs, numbers = keys[first], persons_in_groups(persons, codes, len(first))
    return ValueCounts(sizes, pairs >> bits, pairs & ((1 << bits) - 1), numbers)


def frequencies(persons: RowPersons, grouping: RowGroups, column: Coded, *, sizes: IntArray) -> Frequencies:
    """How often values of a column occur in groups: less than `count_values` finds, in less time."""
    from anonfit.auditing.kernels import frequent

    groups, most = grouping.of_row, np.zeros(len(sizes), np.int64)
    if persons.numbers is None and persons.entities is None and _are_many_in_order(groups):
        column = column if column.bound <= _table_size(len(groups)) else column.narrow()
        held, seen = np.zeros(column.bound, np.uint32), np.zeros(column.bound, np.uint8)
        least = frequent(groups, column.codes, held, seen, most)
        return Frequencies(most, least, int(np.count_nonzero(seen)))
    counts = count_values(persons, grouping, column, sizes=sizes)
    np.maximum.at(most, counts.group, counts.persons)
    return Frequencies(most, int(counts.persons.min()) if len(counts.persons) else 0, different(counts.value))


def _are_many_in_order(groups: IntArray) -> bool:
    """Whether it is worth it, and possible, to go over rows group by group."""
    return len(groups) >= _FEW_ROWS and bool((groups[1:] >= groups[:-1]).all())


def _count_in_order(groups: IntArray, column: Coded) -> tuple[IntArray, IntArray, IntArray]:
    """The group and the code of every different pair, in rising order, and how often it occurs, where groups rise."""
    from anonfit.auditing.kernels import count_pairs

    column = column if column.bound <= _table_size(len(groups)) else column.narrow()
    group, value, number = (np.empty(len(groups), np.int64) for _ in range(3))
    count = count_pairs(groups, column.codes, np.zeros(column.bound, np.uint32), group, value, number)
    return group[:count], value[:count], number[:count]


def _bits(bound: int) -> int:
    """The bits that codes below a bound need."""
    return (bound - 1).bit_length()


def _table_size(rows: int) -> int:
    """The largest table that is worth its room for so many rows."""
    return max(4 * rows, 2**16)


def _count_pairs(groups: IntArray, codes: IntArray, bits: int) -> tuple[IntArray, IntArray]:
    """The different pairs of a group and a code, each as one number, in rising order, and how often each occurs."""
    keys = groups << bits
    keys |= codes
    if (int(groups.max(initial=0)) + 1) << bits > _table_size(len(groups)):
        return np.unique(keys, return_counts=True)
    table = np.bincount(keys)
    pairs = np.flatnonzero(table != 0)  # of truth values it is several times faster
    return pairs, table[pairs]


def read_persons(frame: pl.DataFrame, *, entity: str | None, count: str | None) -> RowPersons:
    """Whom the rows of a frame stand for; rows without an entity are taken for one person together."""
    if entity is not None:
        return RowPersons(entities=coded(frame[entity]))
    if count is None:
        return RowPersons()
    # Texts of a file may be read as categories.
    values = frame[count].cast(pl.String) if is_text(frame[count]) else frame[count]
    numbers = values.cast(pl.Float64, strict=False)
    whole = numbers.cast(pl.Int64, strict=False)
    if whole.null_count() or not bool((whole >= 1).all()) or not bool((whole == numbers).all()):
        raise DataError(f"The count column '{count}' must hold a whole number of at least 1 in every row.")
    return RowPersons(numbers=whole.to_numpy())
