# SPDX-License-Identifier: Apache-2.0
"""Which rows of a raw table satisfy a predicate, exactly. Conditions are tried on the distinct values of a column."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import DataError
from anonfit.tables.codebook import typed
from anonfit.tables.frames import categorized
from anonfit.tables.scales import Axis, on_axis
from anonfit.tables.schema import ColumnType, name_positions, require_known, texts_of
from anonfit.tables.taxonomy_leaves import leaf_positions
from anonfit.workload.literals import compared
from anonfit.workload.predicates import (
    And,
    ColumnKind,
    Condition,
    Holding,
    Predicate,
    Relation,
    column_of,
    conditions_of,
    evaluated,
)


def holds(predicate: Predicate, frame: pl.DataFrame) -> NDArray[np.bool_]:
    """Whether each row of a raw table satisfies a predicate; missing values satisfy no comparison."""
    return RawTable(frame).holds(predicate)


class ColumnValues:
    """The distinct values of a column, and each row's place among them; missing rows have the place after the last."""

    def __init__(self, kind: ColumnKind, values: pl.Series) -> None:
        values = typed(kind.declared, values)
        self.kind = kind
        self.missing_rows = values.null_count()
        if kind.holding in (Holding.TEXTS, Holding.TRUTHS):
            self.distinct, self.places = categorized(texts_of(values))
        else:
            self.distinct, self.places = _numbered(values)

    @cached_property
    def axis(self) -> Axis:
        """The distinct values as numbers."""
        return _axis(self.distinct)

    @cached_property
    def names(self) -> list[str]:
        """The name of each distinct value: its leaf where it is a number or date in a taxonomy, else its text."""
        taxonomy = self.kind.declared.taxonomy
        if taxonomy is None or self.kind.holding in (Holding.TEXTS, Holding.TRUTHS):
            texts: list[str] = texts_of(self.distinct).to_list()
            return texts
        positions = leaf_positions(taxonomy, self.distinct, column=self.kind.declared.name)
        return [taxonomy.leaves[position] if position >= 0 else "" for position in positions.tolist()]

    @cached_property
    def ranks(self) -> NDArray[np.int32]:
        """The rank of each distinct value in the declared order."""
        ranks = name_positions(self.kind.declared.order, self.distinct)
        require_known(ranks, self.distinct, self.places, where="its order", error=DataError)
        return ranks

    def truth(self, condition: Condition) -> NDArray[np.bool_]:
        """Whether each distinct value satisfies a condition, and at the end whether a missing one does."""
        if condition.relation in (Relation.MISSING, Relation.NOT_MISSING):
            is_missing = condition.relation == Relation.MISSING
            return np.append(np.full(len(self.distinct), not is_missing), is_missing)
        return np.append(self._compared(condition), False)

    def _compared(self, condition: Condition) -> NDArray[np.bool_]:
        relation, values = condition.relation, condition.values
        if self.kind.is_ordered:
            return compared(self.axis, relation, values, self.distinct.dtype)
        if self.kind.type == ColumnType.ORDINAL:
            return ranked(self.ranks, condition)
        names = {value for value in values if isinstance(value, str)}
        plain = tuple(value for value in values if not isinstance(value, str))
        named = np.array([name in names for name in self.names], dtype=np.bool_) if names else np.False_
        if plain:
            named = named | compared(self.axis, Relation.IN, plain, self.distinct.dtype)
        met = np.broadcast_to(named, len(self.distinct))
        return ~met if relation == Relation.NOT_IN else met


def ranked(ranks: NDArray[Any], condition: Condition) -> NDArray[np.bool_]:
    """Which ranks of a declared order satisfy a condition."""
    wanted = [condition.kind.declared.order.index(str(value)) for value in condition.values]
    relation = condition.relation
    if relation in (Relation.IN, Relation.NOT_IN):
        return np.isin(ranks, wanted, invert=relation == Relation.NOT_IN)
    comparison = {
        Relation.LESS: np.less,
        Relation.AT_MOST: np.less_equal,
        Relation.MORE: np.greater,
        Relation.AT_LEAST: np.greater_equal,
    }[relation]
    holds: NDArray[np.bool_] = comparison(ranks, wanted[0])
    return holds


def _axis(values: pl.Series) -> Axis:
    """As `on_axis`, but a raw column may hold infinite numbers."""
    return values.to_numpy().astype(np.float64) + 0.0 if values.dtype.is_float() else on_axis(values)


def _numbered(values: pl.Series) -> tuple[pl.Series, NDArray[Any]]:
    """The distinct numbers, dates or times, ascending, and each row's place among them."""
    present = values.is_not_null().to_numpy()
    known = values.drop_nulls()
    _, first, ranks = np.unique(_axis(known), return_index=True, return_inverse=True)
    places = np.full(len(values), len(first), np.int64)
    places[present] = ranks
    return known.gather(first), places


class TableValues(Protocol):
    """The values of a table's columns."""

    def column(self, kind: ColumnKind) -> ColumnValues:
        """The values of a column."""


class RawTable:
    """The rows of a raw table, asked about many predicates: each column is looked at once."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self._columns: dict[str, ColumnValues] = {}

    def column(self, kind: ColumnKind) -> ColumnValues:
        """The values of a column."""
        name = kind.declared.name
        if name not in self._columns:
            self._columns[name] = ColumnValues(kind, self.frame[name])
        return self._columns[name]

    def holds(self, predicate: Predicate) -> NDArray[np.bool_]:
        """Whether each row satisfies a predicate."""
        of_one = self._of_one_column(predicate)
        if of_one is not None:
            column, truth = of_one
            met: NDArray[np.bool_] = truth[column.places]
            return met
        assert not isinstance(predicate, Condition)
        is_and = isinstance(predicate, And)
        combined = np.full(len(self.frame), is_and)
        for part in predicate.parts:
            combined = combined & self.holds(part) if is_and else combined | self.holds(part)
        return combined

    def count(
        self,
        predicates: Iterable[Predicate],
        *,
        counts: NDArray[Any] | None = None,
        among: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.int64]:
        """How many rows satisfy each predicate, each row counted `counts` times; only those `among` some rows."""
        weights = np.ones(len(self.frame), np.int64) if counts is None else np.asarray(counts, dtype=np.int64)
        if among is not None:
            weights = weights * among
        by_value: dict[str, NDArray[Any]] = {}
        totals = []
        for predicate in predicates:
            of_one = self._of_one_column(predicate)
            if of_one is None:
                totals.append(int(weights[self.holds(predicate)].sum()))
                continue
            column, truth = of_one
            name = column.kind.declared.name
            if name not in by_value:
                by_value[name] = np.bincount(column.places, weights=weights, minlength=len(truth))
            totals.append(round(by_value[name][truth].sum()))
        return np.array(totals, dtype=np.int64)

    def _of_one_column(self, predicate: Predicate) -> tuple[ColumnValues, NDArray[np.bool_]] | None:
        """The truth of each distinct value, for a predicate over a single column."""
        if column_of(predicate) is None:
            return None
        column = self.column(next(conditions_of(predicate)).kind)
        return column, truth_of(predicate, column)


def truth_of(predicate: Predicate, column: ColumnValues) -> NDArray[np.bool_]:
    """Whether each distinct value of a column, and a missing one, satisfies a predicate over that column alone."""
    return evaluated(predicate, column.truth)
