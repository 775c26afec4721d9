# SPDX-License-Identifier: Apache-2.0
"""Whether the rows of a file are sorted by its own columns, so that their order tells nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing.coding import as_numbers
from anonfit.auditing.released import Released

__all__ = ["rows_are_sorted"]


def rows_are_sorted(released: Released) -> bool:
    """Sorted by the quasi-identifiers, then by the others, in file order; texts by UTF-8 bytes, missing first."""
    table, groups = released.table, released.grouping.of_row
    if not bool((groups[1:] >= groups[:-1]).all()):  # groups are numbered as they appear: this one appears again
        return False
    keys = [name for name in table.names if name in released.heads.columns]
    others = [name for name in table.names if name not in keys]
    if not _sorted_rows(
        [[released.heads[name] for name in keys]], np.ones(max(0, released.grouping.count - 1), np.bool_)
    ):
        return False
    return _sorted_rows(table.columns(others), groups[1:] == groups[:-1])


def _sorted_rows(chunks: Iterable[list[pl.Series]], tied: npt.NDArray[np.bool_]) -> bool:
    """Whether rows are sorted by columns; `tied` are the rows that only these columns tell from the next row."""
    rows: npt.NDArray[np.int64] | None = None  # the tied rows, once they are few
    for series in itertools.chain.from_iterable(chunks):
        if rows is None and np.count_nonzero(tied) * 4 < len(tied):
            rows = np.flatnonzero(tied)
        here, after = (series[:-1], series[1:]) if rows is None else (series.gather(rows), series.gather(rows + 1))
        known = tied if rows is None else np.ones(len(rows), np.bool_)
        if not _rising(here, after, known):
            return False
        equal = here.eq_missing(after).to_numpy()
        tied, rows = (tied & equal, None) if rows is None else (tied, rows[equal])
    return True


def _rising(here: pl.Series, after: pl.Series, known: npt.NDArray[np.bool_]) -> bool:
    """Whether no value of the known rows is below its forerunner; texts of numbers may be in either order."""
    if isinstance(here.dtype, (pl.Categorical, pl.Enum)):
        here, after = here.cast(pl.String), after.cast(pl.String)
    if here.dtype == pl.Boolean:
        here, after = here.cast(pl.UInt8), after.cast(pl.UInt8)
    falls = (after < here).fill_null(value=False) | (after.is_null() & here.is_not_null())
    if not (falls.to_numpy() & known).any():
        return True
    if here.dtype != pl.String:
        return False
    numbers = as_numbers(here), as_numbers(after)
    return all(series.dtype != pl.String for series in numbers) and _rising(*numbers, known)
