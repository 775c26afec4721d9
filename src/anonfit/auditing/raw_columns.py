# SPDX-License-Identifier: Apache-2.0
"""What groups reveal of a column that is released as it is: certain and likely values, and k together with it."""

from __future__ import annotations

import numpy as np
import polars as pl

from anonfit.auditing.coding import IntArray
from anonfit.auditing.groups import ValueCounts, most_frequent
from anonfit.auditing.result import Figure, RawColumn
from anonfit.auditing.sizes import share_of

__all__ = ["different", "measure_raw_column"]


def measure_raw_column(name: str, rows: int, *, counts: ValueCounts, sensitive: bool) -> RawColumn:
    """One raw column of so many rows from its counts; with entities a value counts for everyone who has it."""
    most = most_frequent(counts)
    filled = counts.sizes > 0
    return RawColumn(
        name,
        sensitive,
        certain=share_of(counts.sizes, filled & (most >= counts.sizes)),
        likely=share_of(counts.sizes, filled & (10 * most >= 9 * counts.sizes)),
        smallest=int(counts.persons.min()) if rows else None,
        distinct=Figure(different(counts.value) / rows if rows else 0.0, rows),
    )


def different(values: IntArray) -> int:
    """How many different values there are."""
    if values.max(initial=0) > max(4 * len(values), 2**16):
        return pl.Series(values).n_unique()
    seen = np.zeros(int(values.max(initial=0)) + 1, np.bool_)
    seen[values] = True
    return int(np.count_nonzero(seen))
