# SPDX-License-Identifier: Apache-2.0
"""Whether the rows of a file are sorted by its own columns, so that their order tells nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing.coding import IntArray, as_numbers, coded_in_order, dictionary
from anonfit.auditing.released import Released

__all__ = ["Truths", "equal_neighbours", "falling", "orders", "rows_are_sorted", "sorted_by"]

Truths = npt.NDArray[np.bool_]
Order = npt.NDArray[Any] | pl.Series


def rows_are_sorted(released: Released) -> bool:
    """Sorted by the quasi-identifiers, then by the others, in file order; texts by UTF-8 bytes, missing first."""
    table, groups = released.table, released.grouping.of_row
    if not bool((groups[1:] >= groups[:-1]).all()):  # groups are numbered as they appear: this one appears again
        return False
    keys = [name for name in table.names if name in released.heads.columns]
    others = [name for name in table.names if name not in keys]
    if not sorted_by([[released.heads[name] for name in keys]], np.ones(max(0, released.grouping.count - 1), np.bool_)):
        return False
    return sorted_by(table.columns(others), groups[1:] == groups[:-1])


def sorted_by(chunks: Iterable[list[pl.Series]], tied: Truths) -> bool:
    """Whether rows are sorted by columns; `tied` are the rows that only these columns tell from the next row."""
    rows: IntArray | None = None  # the tied rows, once they are few
    for series in itertools.chain.from_iterable(chunks):
        if rows is None and np.count_nonzero(tied) * 4 < len(tied):
            rows = np.flatnonzero(tied)
        if rows is None:
            here, after, known = slice(0, -1), slice(1, None), tied
        else:
            here, after, known = slice(0, len(rows)), slice(len(rows), None), np.ones(len(rows), np.bool_)
            series = series.gather(np.concatenate([rows, rows + 1]))
        equal: Truths | None = None
        for order in orders(series):
            equal = equal_neighbours(order[here], order[after]) if equal is None else equal
            if not (falling(order[here], order[after]) & known).any():
                break
        else:
            return False
        tied, rows = (tied & equal, None) if rows is None else (tied, rows[equal])
    return True


def orders(series: pl.Series) -> Iterator[Order]:
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


def falling(here: Any, after: Any) -> Truths:
    """Where a value is below its forerunner."""
    falls = after < here
    if not isinstance(here, np.ndarray):
        falls = (falls.fill_null(value=False) | (after.is_null() & here.is_not_null())).to_numpy()
    found: Truths = falls
    return found


def equal_neighbours(here: Any, after: Any) -> Truths:
    """Where a value equals its forerunner."""
    equal: Truths = here == after if isinstance(here, np.ndarray) else here.eq_missing(after).to_numpy()
    return equal
