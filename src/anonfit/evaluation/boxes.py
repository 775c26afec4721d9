# SPDX-License-Identifier: Apache-2.0
"""What learners see of releases with observed labels: of each region the box of what its own training rows have."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.estimators.features import Encoding, Intervals, Leaves, Numbers, Parts, feature_column, missing_share
from anonfit.estimators.reading import RawReader
from anonfit.evaluation.models import FeatureColumns, places_of, recoded_features
from anonfit.recoding.columns import NominalCells, OrdinalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding


def box_features(
    recoding: Recoding, training: pl.DataFrame, own: NDArray[np.int32], nodes: NDArray[np.int32], encoding: str
) -> FeatureColumns:
    """The features of rows that end in these nodes, by the training rows that do; where there are none, those of all
    that belongs to the node: a test row may have fallen where nobody was.

    Args:
        recoding: Learned from the training rows.
        training: Raw rows.
        own: The node of each training row.
        nodes: (row,)
        encoding: How boxes become numbers.
    """
    used, group_of = np.unique(own, return_inverse=True)
    box_of = np.minimum(np.searchsorted(used, nodes), len(used) - 1)
    is_known = used[box_of] == nodes
    told = recoded_features(recoding, nodes, encoding)
    columns = {}
    for column in recoding.columns:
        parts = _boxes(column, recoding.typed(training, column.name), group_of, len(used))
        numbers = feature_column(column).numbers(parts, Encoding(encoding)).take(box_of, axis=0)
        columns[column.name] = tuple(
            pl.Series(whole.name, np.where(is_known, numbers[:, place], whole.to_numpy()))
            for place, whole in enumerate(told.columns[column.name])
        )
    return FeatureColumns(len(nodes), columns)


def _boxes(column: RecodedColumn, values: pl.Series, group_of: NDArray[np.int64], groups: int) -> Parts:
    """What the rows of each group have of a column."""
    missing = values.is_null().to_numpy()
    has_missing = np.bincount(group_of[missing], minlength=groups) > 0
    if isinstance(column, NominalCells):
        pairs = np.unique(np.stack([group_of, places_of(column, values, missing)])[:, ~missing], axis=1)
        # The leaves of each group, ascending, lie one after the other.
        ends = np.searchsorted(pairs[0], np.arange(groups + 1))
        leaves = [pairs[1, begin:end].tolist() for begin, end in pairwise(ends)]
        return Leaves(leaves, has_missing)
    if isinstance(column, OrdinalCells):
        numbers: Numbers = places_of(column, values, missing).astype(np.float64)
    else:
        numbers = RawReader(column.name).numbers(values.to_frame(column.name), Encoding.ENDS)[:, 0]
    has_known = np.bincount(group_of[~missing], minlength=groups) > 0
    low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(low, group_of[~missing], numbers[~missing])
    np.maximum.at(high, group_of[~missing], numbers[~missing])
    # Nothing but missing values: the whole column, as elsewhere.
    low, high = (np.where(has_known, end, np.nan) for end in (low, high))
    return Intervals(low, high, missing_share(has_known, has_missing))
