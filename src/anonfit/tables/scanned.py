# SPDX-License-Identifier: Apache-2.0
"""The columns of rows that do not fit in memory: of each, values that show what all of them are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import polars as pl

__all__ = ["RawColumns", "ScannedColumns"]

HEAD = 1 << 20
"""Rows that show whether a column has many different values."""
MANY = 1 << 12
"""Different values that are many."""


class RawColumns(Protocol):
    """Columns by their names: those of a frame, or of rows that are elsewhere."""

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The type of every column."""

    def __getitem__(self, name: str, /) -> pl.Series:
        """The values of a column; what holds of these holds of all."""


class ScannedColumns:
    """The columns of a lazy frame. Of one with few different values all are given; of others, those of many rows, and a
    number that is not whole, if there is one.
    """

    def __init__(self, rows: pl.LazyFrame) -> None:
        self.rows = rows
        self.schema: Mapping[str, pl.DataType] = rows.collect_schema()
        self._found: dict[str, pl.Series] = {}

    def __getitem__(self, name: str, /) -> pl.Series:
        """The different values of a column, or many of them."""
        if name not in self._found:
            self._found[name] = self._values(name)
        return self._found[name]

    def _values(self, name: str) -> pl.Series:
        import polars as pl

        head = self.rows.select(name).head(HEAD).collect().to_series().unique()
        if len(head) <= MANY:
            return self.rows.select(pl.col(name).unique()).collect(engine="streaming").to_series()
        if not self.schema[name].is_float():
            return head
        parts = self.rows.select(name).filter(pl.col(name) % 1 != 0).head(1).collect().to_series()
        return head.append(parts)
