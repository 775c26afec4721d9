# SPDX-License-Identifier: Apache-2.0
"""What learners see of rows: regions as numbers, raw values as they are or as regions of one value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.estimators.features import (
    ALWAYS,
    NEVER,
    Encoding,
    Intervals,
    Leaves,
    Numbers,
    feature_column,
    parts_of_nodes,
)
from anonfit.estimators.reading import RawReader, is_raw
from anonfit.recoding.columns import NominalCells, OrdinalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Unseen
from anonfit.tables.codebook import typed
from anonfit.tables.schema import Column, ColumnType

ENCODINGS = tuple(map(str, Encoding))
NOTHING = "nothing"
"""The feature of rows that no column says anything of: the same for all."""


@dataclass(frozen=True, slots=True)
class FeatureColumns:
    """The features of some rows, by the column they come from."""

    rows: int
    columns: Mapping[str, tuple[pl.Series, ...]]

    def frame(self, using: Iterable[str] | None = None) -> pl.DataFrame:
        """The features of some columns side by side; all if none are named."""
        names = self.columns if using is None else [name for name in using if name in self.columns]
        features = [series for name in names for series in self.columns[name]]
        return pl.DataFrame(features or [pl.Series(NOTHING, np.zeros(self.rows))])

    def beside(self, other: FeatureColumns) -> FeatureColumns:
        """These features and others of the same rows."""
        return FeatureColumns(self.rows, {**self.columns, **other.columns})

    def taken(self, rows: NDArray[np.integer]) -> FeatureColumns:
        """The features of some of the rows."""
        return FeatureColumns(
            len(rows),
            {name: tuple(series.gather(rows) for series in features) for name, features in self.columns.items()},
        )


def recoded_features(recoding: Recoding, nodes: NDArray[np.int32], encoding: str) -> FeatureColumns:
    """The features of every quasi-identifier of rows that end in these nodes (row,), without the detour over labels."""
    used, places = np.unique(nodes, return_inverse=True)
    columns = {}
    for index, column in enumerate(recoding.columns):
        parts, which = parts_of_nodes(recoding, used.astype(np.int32), index)
        numbers = feature_column(column).numbers(parts, Encoding(encoding))[which]
        columns[column.name] = _series(column, numbers.take(places, axis=0), encoding)
    return FeatureColumns(len(nodes), columns)


def one_value_features(recoding: Recoding, frame: pl.DataFrame, encoding: str) -> FeatureColumns:
    """The features of raw rows beside those of regions: a value is the region that holds nothing else, and a name that
    the recoding does not know may be any.
    """
    columns = {}
    for column in recoding.columns:
        numbers = _one_value_numbers(column, recoding.typed(frame, column.name), Encoding(encoding))
        columns[column.name] = _series(column, numbers, encoding)
    return FeatureColumns(len(frame), columns)


def plain_features(columns: Iterable[Column], frame: pl.DataFrame) -> FeatureColumns:
    """The features of raw values: numbers and dates as numbers, ranks of ordinal words, names as texts."""
    return FeatureColumns(len(frame), {column.name: (_plain(column, frame[column.name]),) for column in columns})


def _series(column: RecodedColumn, numbers: Numbers, encoding: str) -> tuple[pl.Series, ...]:
    names = feature_column(column).features(Encoding(encoding), column.name)
    return tuple(pl.Series(name, np.ascontiguousarray(numbers[:, place])) for place, name in enumerate(names))


def _one_value_numbers(column: RecodedColumn, values: pl.Series, encoding: Encoding) -> Numbers:
    """The features of regions of one value. # (row, feature)"""
    shape = feature_column(column)
    missing = values.is_null().to_numpy()
    if isinstance(column, NominalCells):
        places = _places(column, values, missing)
        size = len(column.taxonomy.leaves)
        # One part for each leaf, one for a value that is not known and may be any, one for a missing one.
        leaves = [[leaf] for leaf in range(size)]
        parts = Leaves([*leaves, range(size), []], np.arange(size + 2) > size)
        return shape.numbers(parts, encoding).take(places, axis=0)
    if isinstance(column, OrdinalCells):
        places = _places(column, values, missing)
        numbers = np.where(places < len(column.order), places, np.nan)
    else:
        numbers = RawReader(column.name).numbers(values.to_frame(column.name), encoding)[:, 0]
    return shape.numbers(Intervals(numbers, numbers, np.where(missing, ALWAYS, NEVER)), encoding)


def _places(column: NominalCells | OrdinalCells, values: pl.Series, missing: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The place of each value among the leaves or words; one more than the last where it is not known, two more where
    it is missing and may be.
    """
    shift = int(column.has_missing)
    size = column.size - shift
    places = np.full(len(values), size + shift)  # without a missing value, such a one is not known
    cells = column.cells_of(values.drop_nulls()).astype(np.int64) - shift
    other = column.other_cell - shift if isinstance(column, NominalCells) else -1
    places[~missing] = np.where(cells >= 0, cells, other if other >= 0 else size)
    return places


def _plain(column: Column, values: pl.Series) -> pl.Series:
    if column.order:
        ranks = {word: rank for rank, word in enumerate(column.order)}
        return values.cast(pl.String).replace_strict(ranks, default=None, return_dtype=pl.Float64)
    if column.type != ColumnType.NOMINAL and column.taxonomy is None:
        if column.type is not None:
            values = typed(column, values)
        if is_raw(values.dtype):
            numbers = RawReader(values.name).numbers(values.to_frame(), Encoding.ENDS)[:, 0]
            return pl.Series(values.name, numbers)
    return values.cast(pl.String)


def nodes_of(recoding: Recoding, frame: pl.DataFrame) -> NDArray[np.int32]:
    """The node that each raw row ends in; one with a value that the recoding does not know, in an inner node."""
    return recoding.nodes(recoding.cells(frame, unseen=Unseen.ANCESTOR), threads=1)
