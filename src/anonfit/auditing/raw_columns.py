# SPDX-License-Identifier: Apache-2.0
"""What groups reveal of a column that is released as it is: certain and likely values, and k together with it."""

from __future__ import annotations

from anonfit.auditing.coding import Coded
from anonfit.auditing.figures import Figure
from anonfit.auditing.groups import ValueCounts, most_frequent
from anonfit.auditing.result import RawColumn
from anonfit.auditing.sizes import share_of

__all__ = ["measure_raw_column"]


def measure_raw_column(name: str, column: Coded, *, counts: ValueCounts, sensitive: bool) -> RawColumn:
    """One raw column from its counts; with entities a value counts for everyone who has it."""
    most = most_frequent(counts)
    rows = len(column.codes)
    filled = counts.sizes > 0
    return RawColumn(
        name,
        sensitive,
        certain=share_of(counts.sizes, filled & (most >= counts.sizes)),
        likely=share_of(counts.sizes, filled & (10 * most >= 9 * counts.sizes)),
        smallest=int(counts.persons.min()) if rows else None,
        distinct=Figure(column.distinct() / rows if rows else 0.0, rows),
    )
