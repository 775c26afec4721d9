# SPDX-License-Identifier: Apache-2.0
"""Whom rows stand for: one person each, several by a count column, or persons with several rows by an entity column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import DataError
from anonfit.tables.schema import Role, Schema


@dataclass(frozen=True, slots=True)
class Persons:
    """Whom rows stand for: a person each, by `counts` several, or by `entities` a person with several rows."""

    rows: int
    counts: NDArray[Any] | None = None
    entities: NDArray[np.uint32] | None = None

    def total(self) -> int:
        """How many persons the table is about."""
        if self.entities is not None:
            return len(np.unique(self.entities))
        return self.rows if self.counts is None else int(self.counts.sum(dtype=np.int64))

    def of_groups(self, groups: NDArray[np.integer[Any]], count: int) -> NDArray[np.int64]:
        """How many persons each group of rows has."""
        if self.entities is not None:
            pairs = np.unique(groups.astype(np.int64) << 32 | self.entities)
            return np.bincount(pairs >> 32, minlength=count)
        if self.counts is None:
            return np.bincount(groups, minlength=count)
        return np.bincount(groups, weights=self.counts, minlength=count).astype(np.int64)

    def of_rows(self) -> NDArray[np.int64]:
        """How many persons each row stands for, a person with several rows once with each of them."""
        return np.ones(self.rows, np.int64) if self.counts is None else self.counts.astype(np.int64)


@dataclass(frozen=True, slots=True)
class KnownValues:
    """What is known of the values of some columns: those of every row, or each combination of values once and how many
    rows have it (`times`).
    """

    frame: pl.DataFrame
    times: NDArray[np.int64] | None
    persons: Persons
    """Of each row, or of all rows that have a combination."""

    @property
    def rows(self) -> NDArray[np.int64]:
        """How many rows have each combination."""
        return np.ones(len(self.frame), np.int64) if self.times is None else self.times


def persons_of(rows: int, counts: pl.Series | None, entities: pl.Series | None) -> Persons:
    """Who the rows of a table stand for, from its count or entity column."""
    if counts is not None:
        whole = counts.cast(pl.Int64, strict=False)
        bad = int(
            (whole.is_null() | (whole.cast(pl.Float64) != counts.cast(pl.Float64, strict=False)) | (whole < 1))
            .fill_null(value=True)
            .sum()
        )
        if bad:
            raise DataError(
                f"count column '{counts.name}': {bad} value(s) are not whole numbers of at least 1; mend them."
            )
        if rows and int(whole.to_numpy().max()) >= 2**32:
            raise DataError(f"count column '{counts.name}': a row cannot stand for more than four billion persons.")
        return Persons(rows, counts=whole.to_numpy().astype(np.uint32))
    if entities is not None:
        if entities.null_count():
            raise DataError(
                f"entity column '{entities.name}': {entities.null_count()} value(s) are missing; every row needs "
                "its person."
            )
        ranks = entities.rank("dense") - 1
        return Persons(rows, entities=ranks.to_numpy().astype(np.uint32))
    return Persons(rows)


def persons_in(schema: Schema, frame: pl.DataFrame) -> Persons:
    """Who the rows of a frame stand for."""
    count, entity = schema.name_of(Role.COUNT), schema.name_of(Role.ENTITY)
    return persons_of(len(frame), frame[count] if count else None, frame[entity] if entity else None)
