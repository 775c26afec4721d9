# SPDX-License-Identifier: Apache-2.0
"""Whether the rows of a file are sorted by its own columns, so that their order tells nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from anonfit.audit.coding import as_numbers
from anonfit.audit.reading import Table

__all__ = ["rows_are_sorted"]


def rows_are_sorted(table: Table, first: Sequence[str]) -> bool:
    """Sorted by the columns `first`, then by the others, each in file order; texts by UTF-8 bytes, missing before all."""
    names = [name for name in table.names if name in first] + [name for name in table.names if name not in first]
    tied: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None  # rows equal to the next row so far; None: all
    for chunk in table.columns(names):
        for series in chunk:
            if tied is not None and not len(tied):
                return True
            here, after = (series[:-1], series[1:]) if tied is None else (series.gather(tied), series.gather(tied + 1))
            if not _rising(here, after):
                return False
            equal = np.flatnonzero(here.eq_missing(after).to_numpy())
            tied = equal if tied is None else tied[equal]
    return True


def _rising(here: pl.Series, after: pl.Series) -> bool:
    """Whether no value is below its forerunner; texts that are numbers may be in the order of numbers or of texts."""
    if isinstance(here.dtype, pl.Categorical):
        here, after = here.cast(pl.String), after.cast(pl.String)
    if here.dtype == pl.Boolean:
        here, after = here.cast(pl.UInt8), after.cast(pl.UInt8)
    falls = (after < here).fill_null(value=False) | (after.is_null() & here.is_not_null())
    if not falls.any():
        return True
    if here.dtype != pl.String:
        return False
    numbers = as_numbers(here), as_numbers(after)
    return all(series.dtype != pl.String for series in numbers) and _rising(*numbers)
