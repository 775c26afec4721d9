# SPDX-License-Identifier: Apache-2.0
"""The order of a released table's rows, by their regions, then by what their raw columns say; and the one data file of
a release, also from sorted rows that out-of-core engines give a few at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import DataError, ReleaseError
from anonfit.runtime.compiling import kernel
from anonfit.runtime.process import thread_count
from anonfit.tables.frames import categorized, rebuilt
from anonfit.tables.sources import FORMATS, PLAIN, FileForm


@kernel
def _by_group(groups: Any, edges: Any, numbers: Any, places: Any, order: Any) -> None:
    """Counting sort of runs of row numbers by group; `places` holds the first place of each group and is moved on."""
    for run in range(groups.shape[0]):
        group = groups[run]
        place = places[group]
        for index in range(edges[run], edges[run + 1]):
            order[place] = numbers[index]
            place += 1
        places[group] = place


@kernel
def _before(near: Any, row: int, other: int) -> Any:
    """Whether a row's keys come before, or are the same as, another's."""
    for word in range(near.shape[1]):
        if near[row, word] != near[other, word]:
            return near[row, word] < near[other, word]
    return True


@kernel
def _sort_groups(keys: Any, edges: Any, order: Any, near: Any, places: Any, spare: Any) -> None:
    """Sort the row numbers of some groups by their keys: insertion in short runs, then merging.

    What is compared and moved stays near: copies of the keys in the order of the groups, and places among them. Indices
    have no sign, since numba would look whether they are negative.
    """
    step, short, base = np.uint64(1), np.uint64(16), np.uint64(edges[0])
    for group in range(edges.shape[0] - 1):
        start, stop = np.uint64(edges[group]) - base, np.uint64(edges[group + 1]) - base
        for place in range(start, stop):
            places[place] = place
            for word in range(keys.shape[0]):
                near[place, word] = keys[word, order[base + place]]
        begin = start
        while begin < stop:
            for index in range(begin + step, min(begin + short, stop)):
                moved, hole = places[index], np.uint64(index)
                while hole > begin and not _before(near, places[hole - step], moved):
                    places[hole] = places[hole - step]
                    hole -= step
                places[hole] = moved
            begin += short
        width = short
        while width < stop - start:
            begin = start
            while begin < stop:
                middle, end = min(begin + width, stop), min(begin + width + width, stop)
                left, right = begin, middle
                for place in range(begin, end):
                    if left < middle and (right >= end or _before(near, places[left], places[right])):
                        spare[place] = places[left]
                        left += step
                    else:
                        spare[place] = places[right]
                        right += step
                begin = end
            for place in range(start, stop):
                places[place] = spare[place]
            width += width
        for place in range(start, stop):
            spare[place] = order[base + places[place]]
        for place in range(start, stop):
            order[base + place] = spare[place]


def order_rows(
    groups: NDArray[np.int32],
    begins: NDArray[np.int64],
    numbers: NDArray[np.uint32],
    count: int,
    keys: NDArray[np.uint64],
    *,
    threads: int | None = None,
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Row numbers by group (0..count), within a group by their keys; and the first place of each group.

    groups: (run,) of the rows `numbers`, which stand in runs that begin at `begins`, the first at 0; keys: (word, row
    number), compared word by word.
    """
    runs = np.append(begins, len(numbers))
    edges = np.zeros(count + 1, np.int64)
    np.add.at(edges, groups + 1, np.diff(runs))
    np.cumsum(edges, out=edges)
    order = np.empty(len(numbers), np.uint32)
    _by_group(groups, runs, numbers, edges[:-1].copy(), order)
    if keys.shape[0]:
        workers = thread_count(threads)
        cuts = np.searchsorted(edges, np.linspace(0, len(order), 4 * workers + 1)).tolist()
        cuts[0], cuts[-1] = 0, count

        def sort(first: int, last: int) -> None:
            rows = int(edges[last] - edges[first])
            near = np.empty((rows, keys.shape[0]), np.uint64)
            places, spare = np.empty((2, rows), np.uint32)
            _sort_groups(keys, edges[first : last + 1], order, near, places, spare)

        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(sort, cuts[:-1], cuts[1:]))
    return order, edges


CHUNK = 1 << 15
"""Rows that are worked on at a time: what is computed of them stays near the processor."""

Words = NDArray[np.uint64]


class Key(NamedTuple):
    """A column as one number per row that orders rows as its values do, missing lowest: how many bits the numbers need,
    and how those of some rows are made.
    """

    bits: int
    numbers: Callable[[slice], Words]


def _of_integers(numbers: NDArray[Any], missing: NDArray[np.bool_] | None) -> Key:
    """Distances from the smallest number; one more where missing values need the zero."""
    known = numbers if missing is None else numbers[~missing]
    if not len(known):
        return NOTHING
    low, high = int(known.min()), int(known.max())
    bits = (high - low + (missing is not None)).bit_length()
    if bits > 64:
        return _of_integers(np.unique(numbers, return_inverse=True)[1].astype(np.int64), missing)
    first = np.uint64((low - (missing is not None)) % 2**64)

    def keys(rows: slice) -> Words:
        # Differences of 64-bit integers are right modulo 2^64, also where the subtraction itself overflows.
        distances: Words = numbers[rows].astype(np.int64).view(np.uint64)
        distances -= first
        if missing is not None:
            distances[missing[rows]] = 0
        return distances

    return Key(bits, keys)


def _of_floats(numbers: NDArray[np.float64], missing: NDArray[np.bool_] | None) -> Key:
    """The bits of a float, turned so that they order as the floats do; NaN comes last."""

    def keys(rows: slice) -> Words:
        part = numbers[rows]
        bits = (np.where(np.isnan(part), np.nan, part) + 0.0).view(np.uint64)  # -0.0 is 0.0
        turned: Words = np.where(bits >> np.uint64(63) != 0, ~bits, bits | np.uint64(1 << 63))
        if missing is not None:
            # No float but -NaN has the lowest keys, and NaN was made positive above.
            turned[missing[rows]] = 0
        return turned

    return Key(64, keys)


def _of_texts(texts: pl.Series) -> Key:
    """Ranks of texts among the distinct ones, by code point."""
    distinct, places = categorized(texts)
    first = int(texts.null_count() > 0)  # missing needs the zero
    ranks = np.zeros(len(distinct) + 1, np.uint64)
    ranks[distinct.arg_sort().to_numpy()] = np.arange(first, len(distinct) + first)
    return Key(max(0, len(distinct) + first - 1).bit_length(), lambda rows: ranks.take(places[rows]))


NOTHING = Key(0, lambda rows: np.zeros(rows.stop - rows.start, np.uint64))
"""A column that tells no rows apart."""


def _key(values: pl.Series) -> Key:
    dtype = values.dtype
    if dtype.is_nested() or dtype == pl.Object:
        raise DataError(f"column '{values.name}' is of type {dtype}; only plain values can be released.")
    if len(values) == 0 or dtype == pl.Null:
        return NOTHING
    if isinstance(dtype, pl.Enum) and dtype.categories.is_sorted():
        values = values.to_physical()
        dtype = values.dtype
    elif isinstance(dtype, (pl.String, pl.Categorical, pl.Enum)):
        return _of_texts(values)
    missing = values.is_null().to_numpy() if values.null_count() else None
    if dtype.is_float():
        return _of_floats(values.cast(pl.Float64).fill_null(0.0).to_numpy(), missing)
    if dtype == pl.Boolean:
        return _of_integers(values.fill_null(value=False).to_numpy().astype(np.int8), missing)
    if (dtype.is_integer() and dtype not in (pl.UInt64, pl.Int128)) or dtype.is_temporal():
        return _of_integers(values.to_physical().fill_null(0).to_numpy(), missing)
    return _of_integers(values.rank("dense").fill_null(0).cast(pl.Int64).to_numpy(), missing)


def _signs(values: pl.Series) -> Key:
    """Which zeros are not negative: the last thing to order rows by, since -0.0 equals 0.0 but looks different."""
    numbers = values.cast(pl.Float64).fill_null(1.0).to_numpy()
    negative = (numbers == 0) & np.signbit(numbers)
    return Key(int(negative.any()), lambda rows: (~negative[rows]).astype(np.uint64))


def sort_keys(columns: Sequence[pl.Series]) -> Words:
    """Words that order rows by the columns' values, the first column first: its numbers are the highest. (word, row)"""
    rows = len(columns[0]) if columns else 0
    with ThreadPoolExecutor(thread_count()) as pool:
        keys = [*pool.map(_key, columns), *(_signs(values) for values in columns if values.dtype.is_float())]
        places: list[tuple[Key, int, np.uint64]] = []
        word, free = -1, 0
        for key in keys:
            if key.bits > free:
                word, free = word + 1, 64
            free -= key.bits
            if key.bits:
                places.append((key, word, np.uint64(free)))
        words = np.zeros((word + 1, rows), np.uint64)

        def fill(start: int) -> None:
            part = slice(start, min(start + CHUNK, rows))
            for key, place, shift in places:
                words[place, part] |= key.numbers(part) << shift

        list(pool.map(fill, range(0, rows, CHUNK)))
    return words


def plain(dtype: pl.DataType) -> pl.DataType:
    """The type of a column as engines tell it: texts are texts."""
    return pl.String() if isinstance(dtype, pl.Categorical | pl.Enum) else dtype


def released(dtype: pl.DataType) -> pl.DataType:
    """The type of a raw column in the release: an Enum would bring all its categories into the file, and categories
    that have a name would bring that.
    """
    if isinstance(dtype, pl.Enum):
        return pl.String()
    return pl.Categorical() if isinstance(dtype, pl.Categorical) else dtype


def in_batches(nodes: Mapping[int, int], most: int) -> Iterator[list[int]]:
    """Nodes, given with their sizes, in batches of at most so many rows; a larger node is a batch by itself."""
    batch: list[int] = []
    rows = 0
    for node in sorted(nodes):
        if batch and rows + nodes[node] > most:
            yield batch
            batch, rows = [], 0
        batch.append(node)
        rows += nodes[node]
    if batch:
        yield batch


def sink(
    parts: Callable[[], Iterator[tuple[pl.Series, dict[str, pl.Series]]]],
    regions: pl.DataFrame,
    names: Sequence[str],
    schema: Mapping[str, pl.DataType],
    path: Path,
    kind: str,
) -> None:
    """Write a file of columns `names` from parts: the ranks of rows, and their raw columns by name."""
    from polars.io.plugins import register_io_source

    def frames(
        with_columns: list[str] | None, predicate: Any, n_rows: int | None, _batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        assert predicate is None
        assert n_rows is None
        for ranks, raw in parts():
            of_region = regions[ranks.to_numpy().astype(np.int64)]
            frame = pl.DataFrame([raw[name] if name in raw else of_region[name] for name in with_columns or names])
            yield rebuilt(frame)

    write_table(register_io_source(frames, schema=pl.Schema(schema)), path, kind)


def check_writable(types: Mapping[str, pl.DataType], kind: str) -> None:
    """Refuse columns of types that a format cannot hold."""
    for name, dtype in types.items():
        if str(dtype.base_type()) in FORMATS[kind].lacks:
            able = [other.name for other in FORMATS.values() if str(dtype.base_type()) not in other.lacks]
            raise DataError(
                f"column '{name}' is of type {dtype}, which a {kind.upper()} file cannot hold; use the format "
                f"{' or '.join(able)}, or cast it."
            )


def write_table(table: pl.DataFrame | pl.LazyFrame, path: Path, kind: str, form: FileForm = PLAIN) -> None:
    """Write a table as a file of a format, laid out in a form."""
    rows = table.lazy()
    types = rows.collect_schema()
    check_writable(types, kind)
    FORMATS[kind].refuse(types.names())
    try:
        FORMATS[kind].sink(rows, path, form)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ReleaseError(f"the data file could not be written ({type(error).__name__}): is the disk full?") from None
