# SPDX-License-Identifier: Apache-2.0
"""The groups of a query: a predicate for each, and the group of each raw row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.tables.schema import ColumnType
from anonfit.workload.predicates import ColumnKind, Condition, Holding, Predicate, Relation, Value, all_of
from anonfit.workload.truth import ColumnValues, Rows

__all__ = ["MOST", "Grouping", "grouping_of"]

MOST = 100
"""Groups; a query with more is judged as a whole."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """Groups of rows: without predicates, all rows are one."""

    predicates: tuple[Predicate, ...]
    group_of: NDArray[np.int64]  # (row,)

    def sums(
        self, meant: NDArray[np.bool_], known: NDArray[np.float64], values: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Over the rows that are meant, for each group: what they count, and the sum of their values."""
        size, groups = max(len(self.predicates), 1), self.group_of[meant]
        counts: Any = np.bincount(groups, weights=known[meant], minlength=size)
        if values is None:
            return counts, np.zeros(size)
        sums: Any = np.bincount(groups, weights=(known * values)[meant], minlength=size)
        return counts, sums


def grouping_of(names: Sequence[str], kinds: Mapping[str, ColumnKind], rows: Rows) -> Grouping:
    """The groups of rows by columns; all rows together where these have too many values, or none that can be named."""
    whole = Grouping((), np.zeros(len(rows.frame), np.int64))
    columns = [rows.column(kinds[name]) for name in dict.fromkeys(names)]
    if not columns or not all(_can_be_named(column) for column in columns):
        return whole
    combined = np.zeros(len(rows.frame), np.int64)
    for column in columns:
        combined = combined * (len(column.distinct) + 1) + column.places
    keys, group_of = np.unique(combined, return_inverse=True)
    if len(keys) > MOST:
        return whole
    predicates = []
    for key in keys.tolist():
        parts = []
        for column in reversed(columns):
            key, place = divmod(key, len(column.distinct) + 1)
            parts.append(_equal(column, place))
        predicates.append(all_of(reversed(parts)))
    return Grouping(tuple(predicates), group_of.astype(np.int64))


def _can_be_named(column: ColumnValues) -> bool:
    """Whether there is a predicate for each value: not for numbers between which there are always others, and not for
    names of a taxonomy, which may be intervals.
    """
    import polars as pl

    kind, dtype = column.kind, column.distinct.dtype
    if len(column.distinct) > MOST:
        return False
    if kind.holding == Holding.TEXTS:
        return True
    if kind.declared.taxonomy is not None or kind.type == ColumnType.ORDINAL:
        return False
    return dtype.is_integer() or dtype == pl.Date or kind.holding == Holding.TRUTHS


def _equal(column: ColumnValues, place: int) -> Condition:
    name, kind = column.kind.declared.name, column.kind
    if place == len(column.distinct):
        return Condition(name, Relation.MISSING, kind=kind)
    if kind.holding in (Holding.TEXTS, Holding.TRUTHS):
        return Condition(name, Relation.IN, (column.names[place],), kind=kind)
    return Condition(name, Relation.IN, (_value(column.distinct[place]),), kind=kind)


def _value(value: Any) -> Value:
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else Fraction(value)
