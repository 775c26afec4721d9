# SPDX-License-Identifier: Apache-2.0
"""Raw columns of two files made comparable by value, and hashes of their rows: a text in one may be a number or a date
in the other. Nothing is rounded: a number that the other type cannot hold is equal to none of its numbers.

Rows of one group with equal raw values have one key, and multisets of keys are compared by their number and sum. More
hashes than memory should hold are kept in files without a name, parted by their first bits: equal ones are in one file,
so that each file can be looked at alone (`HashShards`)."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from anonfit.auditing.boxes import as_moments
from anonfit.auditing.coding import Hashes, IntArray, as_numbers, dictionary, is_text
from anonfit.auditing.reading import AuditedTable
from anonfit.auditing.released import Released
from anonfit.errors import DataError

Pair = tuple[pl.Series, pl.Series]
Align = Callable[[pl.Series, pl.Series], Pair]
_GROUP = np.uint64(0xD6E8FEB86659FD93)
_LOOKUP_SEED = 0x3C6EF372
_MIX = np.uint64(0x9E3779B97F4A7C15)
_EXACT = 2**53  # whole numbers up to this are exact as floating point numbers
_DIGITS = 38  # of a decimal number
_ROWS_AT_ONCE = 1 << 15
_LONG = r"^(?:\d\.?){18}"  # 17 digits tell every floating point number
_LONG_WHOLE = r"^-?\d{16,}$"  # 15 digits are exact in every one


def aligned(left: pl.Series, right: pl.Series) -> Pair:
    """Two columns with the same type, so that equal values are equal; texts are equal if all their signs are."""
    left, right = plain_values(left), plain_values(right)
    if left.dtype == pl.String and right.dtype != pl.String:
        left, right = _read_like(left, right)
    elif right.dtype == pl.String and left.dtype != pl.String:
        right, left = _read_like(right, left)
    return _same_type(left, right)


def aligned_texts(left: pl.Series, right: pl.Series) -> Pair:
    """As `aligned`, but texts that are all numbers are equal if the numbers are: text files have no types."""
    pair = (plain_values(left), plain_values(right))
    if pair[0].dtype != pl.String or pair[1].dtype != pl.String:
        return aligned(*pair)
    numbers = (as_numbers(pair[0]), as_numbers(pair[1]))
    kinds = {series.dtype for series in numbers}
    if pl.String in kinds:
        return pair
    return numbers if kinds == {pl.Int64} else (_written(pair[0], numbers[0]), _written(pair[1], numbers[1]))


def _written(text: pl.Series, numbers: pl.Series) -> pl.Series:
    """Numbers in one spelling each; one with more digits than a floating point number has is kept as it is written."""
    text = text.str.replace(r"(\.\d*?)0+$", "$1").str.strip_chars_end(".")
    long = text.str.strip_chars_start("-0.").str.contains(_LONG) | text.str.contains(_LONG_WHOLE)
    spelled = pl.when(long).then(text).otherwise(numbers.cast(pl.Float64).cast(pl.String).replace("-0.0", "0.0"))
    return pl.select(spelled).to_series()


def plain_values(series: pl.Series) -> pl.Series:
    """Few types instead of many: text, truth value, number, time."""
    kind = series.dtype
    if isinstance(kind, (pl.Categorical, pl.Enum)):
        return series.cast(pl.String)
    if kind == pl.Date:
        return series.cast(pl.Datetime("us"))
    if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
        return series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return series


def _read_like(text: pl.Series, typed: pl.Series) -> Pair:
    """A text column read as what the other is, and the other; unchanged if some text cannot be read so."""
    kind = typed.dtype
    if kind == pl.Boolean:
        words = {"true": True, "false": False, "1": True, "0": False}
        read = text.str.to_lowercase().replace_strict(words, default=None, return_dtype=pl.Boolean)
    elif isinstance(kind, pl.Decimal):
        read = _decimals(text)
    elif kind.is_numeric():
        read = _numbers(text, typed)
        if kind == pl.Float32:  # of the numbers that it may stand for, texts hold the shortest
            typed = typed.cast(pl.String).cast(pl.Float64)
    elif isinstance(kind, pl.Datetime):
        read = as_moments(text)
    elif kind == pl.Time:
        read = text.str.to_time("%H:%M:%S%.f", strict=False)
    else:
        return text, typed
    return (read, typed) if read.null_count() == text.null_count() else (text, typed)


def _numbers(text: pl.Series, typed: pl.Series) -> pl.Series:
    """Texts as whole numbers if all are, else as floating point numbers; null: no number."""
    wide = typed.dtype if typed.dtype in (pl.UInt64, pl.Int128) else pl.Int64()
    read = text.cast(wide, strict=False)
    if read.null_count() > text.null_count() and typed.dtype.is_integer():
        read = text.str.replace(r"\.0+$", "").cast(wide, strict=False)
    return read if read.null_count() == text.null_count() else text.cast(pl.Float64, strict=False)


def _decimals(text: pl.Series) -> pl.Series:
    """Texts as decimal numbers with as many decimals as they have; null: no such number."""
    if text.str.contains("[eE]").any():
        return text.cast(pl.Float64, strict=False)
    decimals: Any = (text.str.len_bytes() - text.str.find(".", literal=True)).max()
    return text.cast(pl.Decimal(_DIGITS, min(_DIGITS, decimals - 1 if decimals else 0)), strict=False)


def _same_type(left: pl.Series, right: pl.Series) -> Pair:
    """Two columns in a type that holds the values of both, else as texts."""
    kinds = (left.dtype, right.dtype)
    if kinds[0] == kinds[1]:
        return left, right
    try:
        if all(isinstance(kind, pl.Datetime) for kind in kinds):
            common = pl.Datetime("ns" if pl.Datetime("ns") in kinds else "us")
            return left.cast(common), right.cast(common)
        if all(kind.is_numeric() or kind == pl.Boolean for kind in kinds):
            return _same_numbers(left, right)
    except pl.exceptions.PolarsError:  # a value that the common type cannot hold
        pass
    return left.cast(pl.String), right.cast(pl.String)


def _same_numbers(left: pl.Series, right: pl.Series) -> Pair:
    """Numbers of two types in a type that holds both."""
    pair = (left, right)
    scales = [series.dtype.scale for series in pair if isinstance(series.dtype, pl.Decimal)]
    whole = [series for series in pair if not series.dtype.is_float()]
    if scales:
        return _as_decimals(left, max(scales)), _as_decimals(right, max(scales))
    ends = [abs(int(end)) for series in whole for end in (series.min(), series.max()) if end is not None]  # type: ignore[arg-type]
    if len(whole) < 2 and max(ends, default=0) <= _EXACT:
        return left.cast(pl.Float64), right.cast(pl.Float64)
    if any(series.dtype.is_float() and not (series == series.floor()).all() for series in pair):
        raise pl.exceptions.InvalidOperationError
    return left.cast(pl.Int64), right.cast(pl.Int64)


def _as_decimals(series: pl.Series, scale: int) -> pl.Series:
    """Numbers as decimal ones; a floating point number is the shortest that it may stand for."""
    if not series.dtype.is_float():
        return series.cast(pl.Decimal(_DIGITS, scale))
    decimals = series.cast(pl.String).cast(pl.Decimal(_DIGITS, scale))
    if not (decimals.cast(pl.String).cast(series.dtype) == series).all():
        raise pl.exceptions.InvalidOperationError
    return decimals


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column to be compared: its values, or its different texts and the pointers of all rows to them (0: missing).

    Whether texts can be read as what the other column is does not depend on how often each occurs.
    """

    values: pl.Series
    pointers: IntArray | None = None

    def hashes(self, seed: int) -> Callable[[slice], Hashes]:
        """The hashes of some rows' values."""
        hashes: Hashes = self.values.hash(seed=seed).to_numpy()
        pointers = self.pointers
        if pointers is None:
            return lambda part: hashes[part]
        missing = pl.Series([None], dtype=self.values.dtype).hash(seed=seed).to_numpy()
        every = np.append(missing, hashes)
        return lambda part: every.take(pointers[part])


def side_of(series: pl.Series) -> ComparedColumn:
    """A column as it is compared."""
    if not isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        return ComparedColumn(series)
    texts = dictionary(series)
    return ComparedColumn(texts.values, texts.codes)


def add_hashes(hashes: Hashes, side: ComparedColumn, seed: int) -> None:
    """Fold one more column into hashes of rows; a changed value goes unseen with a chance of 1 / 2**64."""
    column = side.hashes(seed)
    for part in parts_of(hashes):
        rows = hashes[part]
        rows ^= column(part)
        rows *= _MIX
        rows ^= rows >> np.uint64(29)


def mixed(hashes: Hashes) -> Hashes:
    """Hashes whose sum tells multisets apart: nothing linear is left, so that values swapped by two rows change it."""
    hashes = hashes ^ (hashes >> np.uint64(30))
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    hashes ^= hashes >> np.uint64(27)
    hashes *= np.uint64(0x94D049BB133111EB)
    hashes ^= hashes >> np.uint64(31)
    return hashes


def parts_of(rows: Sized) -> list[slice]:
    """Rows in parts that a core can keep near while it goes over them several times."""
    return [slice(begin, begin + _ROWS_AT_ONCE) for begin in range(0, len(rows), _ROWS_AT_ONCE)]


_BITS = 4
_FEW_BYTES = 1 << 20  # of one file, which stay in memory


class HashShards:
    """Hashes in files, which are gone with this object; each may have other numbers beside it."""

    def __init__(self, width: int = 1) -> None:
        """Of each hash, `width` numbers are kept, itself included."""
        self.width = width
        stack = ExitStack()
        self.files = [stack.enter_context(tempfile.SpooledTemporaryFile(_FEW_BYTES)) for _ in range(1 << _BITS)]  # noqa: SIM115 - closed below
        weakref.finalize(self, stack.close)

    def add(self, hashes: Hashes, *beside: Hashes) -> None:
        """Some more hashes, and the numbers beside them."""
        place = (hashes >> np.uint64(64 - _BITS)).astype(np.uint8)
        ordered = np.stack([hashes, *beside], axis=1)[np.argsort(place, kind="stable")]
        ends = np.cumsum(np.bincount(place, minlength=1 << _BITS))
        try:
            for file, begin, end in zip(self.files, np.append(0, ends[:-1]), ends, strict=True):
                file.write(ordered[begin:end].tobytes())
        except OSError as error:
            raise DataError(
                f"The audit could not write to the folder for temporary files ({error.strerror}): is the disk full?"
            ) from None

    def each(self) -> Iterator[tuple[Hashes, ...]]:
        """The hashes of one file after the other, and the numbers beside them."""
        for file in self.files:
            file.seek(0)
            yield tuple(np.frombuffer(file.read(), np.uint64).reshape(-1, self.width).T)


_Replace = Callable[[pl.Series], pl.Series]


def _replacement(values: pl.Series, alike: pl.Series) -> _Replace:
    """What replaces values (told by hashes; missing is one) by what each is where both tables have one type."""
    keys = values.hash(seed=_LOOKUP_SEED).to_numpy()
    order = np.argsort(keys)
    keys, alike = keys[order], alike.gather(order)
    return lambda series: alike.gather(np.searchsorted(keys, series.hash(seed=_LOOKUP_SEED).to_numpy()))


@dataclass(frozen=True, slots=True)
class Hashers:
    """How rows of the file and of the source are hashed, so that equal raw values have equal hashes."""

    file: Callable[[AuditedTable], Hashes]
    source: Callable[[AuditedTable], Hashes]

    @classmethod
    def of(cls, released: Released, source: AuditedTable, *, align: Align = aligned) -> Hashers:
        """Values of types that differ are made alike: in whole tables row by row, else once for each of them."""
        names = [name for name in released.raw if name in source.schema]
        if released.is_whole:
            file_hashes, source_hashes = _whole_hashes(released.table, source, names, align)
            return cls(lambda _: file_hashes, lambda _: source_hashes)
        file: dict[str, _Replace] = {}
        raw: dict[str, _Replace] = {}
        for name in names:
            kinds = [plain_values(pl.Series([], dtype=table.schema[name])).dtype for table in (released.table, source)]
            if kinds[0] == kinds[1] and (align is aligned or kinds[0] != pl.String):
                continue
            of_file, of_source = _different(released.table, name), _different(source, name)
            alike = align(of_file, of_source)
            file[name], raw[name] = _replacement(of_file, alike[0]), _replacement(of_source, alike[1])
        return cls(lambda batch: _hashes(batch, names, file), lambda batch: _hashes(batch, names, raw))


def _hashes(batch: AuditedTable, names: Sequence[str], replacements: dict[str, _Replace]) -> Hashes:
    """A hash of the raw values of every row of a batch."""
    hashes = np.zeros(batch.height(), np.uint64)
    for place, series in enumerate(batch.frame(names).get_columns(), 1):
        side = side_of(series)
        alike = replacements.get(series.name, plain_values)(side.values)
        add_hashes(hashes, replace(side, values=alike), place)
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
    values = values.cast(pl.String) if is_text(values) else values
    return values.extend(pl.Series([None], dtype=values.dtype)).unique()


class KeyTally:
    """The number and the sum of the keys of rows, and, if they are to be compared one by one, the keys."""

    def __init__(self, *, keep: bool = False) -> None:
        self.rows = self.total = 0
        self.keys = HashShards() if keep else None

    def add(self, groups: IntArray, hashes: Hashes) -> None:
        """The next rows: their groups and the hashes of their values; those of no group (-1) are left out."""
        for part in parts_of(groups) if self.keys is None else [slice(None)]:
            keys = row_keys(groups[part], hashes[part])
            if groups[part].min(initial=0) < 0:
                keys = keys[groups[part] >= 0]
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
        common = 0
        for pair in zip(self.keys.each(), other.keys.each(), strict=True):
            (left, of_left), (right, of_right) = (np.unique(hashes, return_counts=True) for (hashes,) in pair)
            _, in_left, in_right = np.intersect1d(left, right, assume_unique=True, return_indices=True)
            common += int(np.minimum(of_left[in_left], of_right[in_right]).sum())
        return self.rows - common, other.rows - common


def row_keys(groups: IntArray, hashes: Hashes) -> Hashes:
    """A key of every row, out of its group and the hash of its values."""
    return mixed(groups.astype(np.uint64) * _GROUP ^ hashes)
