# SPDX-License-Identifier: Apache-2.0
"""The recoding φ: sends any record to its region and writes what the region says. Saved as recoding.json, applied to
any frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.engines.tree import Tree
from anonfit.errors import DataError, RecodingError, listed
from anonfit.recoding.boxes import Boxes, Grid, boxes_of
from anonfit.recoding.columns import NominalCells, RecodedColumn
from anonfit.recoding.sql import recoding_query
from anonfit.recoding.values import Unseen, Values, recode_frame
from anonfit.tables.codebook import typed
from anonfit.tables.schema import CodedColumn, CodedTable, Column, Role, SplitMode, code_dtype


@dataclass(frozen=True)
class Recoding:
    """A tiling of the domain of the quasi-identifiers: every point lies in exactly one region.

    Its shape is a tree of splits, where a column may be divided differently in different places, or a grid, where
    every column is divided by itself.
    """

    columns: tuple[RecodedColumn, ...]
    shape: Tree | Grid

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """The names of the recoded columns."""
        return tuple(column.name for column in self.columns)

    @property
    def regions(self) -> int:
        """How many regions tile the domain, empty ones included."""
        return self.shape.regions

    @property
    def tree(self) -> Tree:
        """The tree of splits of a recoding that has one."""
        assert isinstance(self.shape, Tree)
        return self.shape

    @property
    def parents(self) -> NDArray[np.int64]:
        """(node,) the node that each was cut from, -1 for the root, which is the first. A grid has nodes for the
        regions that rows were found in, and no others; it may have more when more rows are routed.
        """
        if isinstance(self.shape, Grid):
            return np.append(-1, np.zeros(len(self.shape.met) - 1, np.int64))
        children = self.shape.children
        return np.append(-1, np.repeat(np.arange(len(children)), children))

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return len(self.shape.met if isinstance(self.shape, Grid) else self.shape.column)

    @property
    def boxes(self) -> Boxes:
        """The cells of each node."""
        if isinstance(self.shape, Grid):
            return self.shape.boxes()
        return self._tree_boxes

    @cached_property
    def _tree_boxes(self) -> Boxes:
        return boxes_of(self.tree, [column.size for column in self.columns])

    def cells(self, frame: pl.DataFrame, *, unseen: Unseen = Unseen.ERROR) -> list[NDArray[np.int32]]:
        """The cells of a frame's rows, an array per quasi-identifier; -1 for values the recoding does not know."""
        absent = [name for name in self.quasi_identifiers if name not in frame.columns]
        if absent:
            raise DataError(
                f"the table has no column {listed(absent)}; the recoding needs every quasi-identifier it was made with."
            )
        return [_cells(column, frame[column.name], unseen) for column in self.columns]

    def typed(self, frame: pl.DataFrame, name: str) -> pl.Series:
        """A quasi-identifier of a frame in the type that its cells are found by."""
        column = next(column for column in self.columns if column.name == name)
        return typed(_declared(column), frame[name])

    def nodes(self, cells: Sequence[NDArray[np.int32]], *, threads: int | None = None) -> NDArray[np.int32]:
        """The node that each row ends in: its region, or one that holds several where a value is not known."""
        if isinstance(self.shape, Grid):
            return self.shape.nodes(cells)
        from anonfit.engines.memory.route import route_table

        sizes = [column.size for column in self.columns]
        rows = len(cells[0]) if cells else 0
        # The last code of each column stands for a value that is not known.
        codes = tuple(
            np.where(own < 0, size, own).astype(code_dtype(size + 1)) for own, size in zip(cells, sizes, strict=True)
        )
        coded = tuple(
            CodedColumn(column.name, size + 1, SplitMode.ORDERED, column.has_missing, np.zeros(size + 1))
            for column, size in zip(self.columns, sizes, strict=True)
        )
        routes = [np.append(np.arange(size, dtype=np.int32), np.int32(-1)) for size in sizes]
        return route_table(CodedTable(coded, codes, rows), self.tree, routes, sizes, threads=threads)

    def apply(self, frame: Any, *, unseen: str = "error", values: str = "labels") -> Any:
        """Recode a frame row for row: same kind of frame, same order, same other columns. Working data, not a release.

        Args:
            frame: A polars, pandas or Arrow frame with all quasi-identifiers.
            unseen: What becomes of a category that the recoding does not know: `error`, `ancestor` (the row is
                generalized as far as its value does not matter) or `suppress` (every quasi-identifier becomes `*`).
            values: `labels`, `bounds` or `representative`.

        Returns:
            The frame with its quasi-identifiers recoded.
        """
        return recode_frame(self, frame, unseen=unseen, values=values)

    def to_json(self) -> str:
        """The recoding as the text of recoding.json."""
        return self._json

    @cached_property
    def _json(self) -> str:
        """Made once: the file is written from it, and the audit reads it."""
        from anonfit.recoding.storage import to_json

        return to_json(self)

    def to_sql(self, table: str, *, keep: Sequence[str] = (), values: str = "labels") -> str:
        """The recoding as a query that DuckDB, PostgreSQL and SQLite understand. Its result is working data, no
        release: nothing is withheld or sorted.

        Args:
            table: The table to recode, as SQL writes its name.
            keep: Other columns to be selected as they are.
            values: `labels`, `bounds` or `representative`.

        Returns:
            The query; rows with a value that the recoding does not know are not in its result.
        """
        return recoding_query(self, table, keep=keep, values=Values(values))

    @classmethod
    def from_json(cls, text: str) -> Recoding:
        """Read the text of recoding.json."""
        from anonfit.recoding.storage import from_json

        return from_json(text)


def _declared(column: RecodedColumn) -> Column:
    """What a recoding knows of a column, in the form in which values are typed."""
    return Column(column.name, Role.QUASI_IDENTIFIER, column.type, date_format=column.date_format)


def _cells(column: RecodedColumn, values: pl.Series, unseen: Unseen) -> NDArray[np.int32]:
    """The cells of a column's values, missing ones included."""
    values = typed(_declared(column), values)
    missing = values.is_null().to_numpy()
    cells = np.zeros(len(values), np.int32)
    cells[~missing] = column.cells_of(values.drop_nulls())
    if missing.any() and not column.has_missing:
        if unseen == Unseen.ERROR:
            raise RecodingError(
                f"column '{column.name}': {int(missing.sum())} value(s) are missing, but none was when the "
                "recoding was made; "
                "ask for unseen = 'suppress' or 'ancestor', or fill them."
            )
        cells[missing] = -1
    if (cells < 0).any() and isinstance(column, NominalCells) and column.other is not None:
        # Values that are not named are told apart from the named ones, and from each other by nothing.
        known_rare = cells < 0
        if not column.has_missing:
            known_rare &= ~missing
        cells[known_rare] = column.other_cell
    if unseen == Unseen.ERROR and (cells < 0).any():
        raise RecodingError(
            f"column '{column.name}': {int((cells < 0).sum())} row(s) have a value that the recoding does not "
            "know; ask for "
            "unseen = 'suppress' or 'ancestor', or mend the data."
        )
    return cells
