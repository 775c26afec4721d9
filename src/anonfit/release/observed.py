# SPDX-License-Identifier: Apache-2.0
"""Labels of what the records of each region really have, instead of the region itself: only on consent, since they
are record values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.bits import bits_of_pairs, different_sets
from anonfit.recoding.columns import MISSING, NominalCells, OrderedCells, OrdinalCells, interval_label, with_missing
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import label_series
from anonfit.tables.scales import cut_text, on_axis, on_axis_text

if TYPE_CHECKING:
    import polars as pl

__all__ = ["observed_labels"]

Groups = NDArray[np.int32]
"""The group of each row."""

Texts = tuple[list[str], NDArray[np.int64]]
"""Labels, and which of them each group has."""


def _ordered(values: pl.Series, groups: Groups, count: int) -> Texts:
    """The closed range of the values of each group."""
    known = values.is_not_null().to_numpy()
    axis, of_group = on_axis(values.drop_nulls()), groups[known]
    low = np.full(count, axis.max(initial=0), axis.dtype)
    high = np.full(count, axis.min(initial=0), axis.dtype)
    np.minimum.at(low, of_group, axis)
    np.maximum.at(high, of_group, axis)
    filled = np.bincount(of_group, minlength=count) > 0
    gaps = np.bincount(groups[~known], minlength=count) > 0
    dtype: pl.DataType = values.dtype
    ends, end_of = np.unique(np.concatenate([low, high]), return_inverse=True)
    texts = [cut_text(on_axis_text(end, dtype)) for end in ends]
    found = []
    for group, (first, last) in enumerate(zip(end_of[:count].tolist(), end_of[count:].tolist(), strict=True)):
        label = interval_label(texts[first], texts[last], closed=True) if filled[group] else MISSING
        found.append(with_missing(label) if gaps[group] and filled[group] else label)
    return found, np.arange(count)


def _ordinal(column: OrdinalCells, cells: NDArray[np.int32], groups: Groups, count: int) -> Texts:
    """The words from the lowest to the highest of each group, and missing if it is there."""
    shift = int(column.has_missing)
    known = cells >= shift
    low, high = np.full(count, column.size, np.int64), np.full(count, -1, np.int64)
    np.minimum.at(low, groups[known], cells[known])
    np.maximum.at(high, groups[known], cells[known])
    gaps = np.bincount(groups[~known], minlength=count) > 0
    parts, which = np.unique(np.stack([gaps, low, high]), axis=1, return_inverse=True)
    found = [column.label([*range(gap), *range(first, last + 1)]) for gap, first, last in parts.T.tolist()]
    return found, which.ravel()


def _nominal(column: NominalCells, cells: NDArray[np.int32], groups: Groups, count: int) -> Texts:
    """The names of the values of each group; the rows stand in the order of their groups."""
    sets, which = different_sets(bits_of_pairs(groups, cells, count, column.size))
    return column.labels(sets), which


def observed_labels(recoding: Recoding, frame: pl.DataFrame, groups: Groups, count: int) -> dict[str, list[pl.Series]]:
    """For each quasi-identifier the labels of what each group's records have; every group has some."""
    cells = recoding.cells(frame)
    order = np.argsort(groups, kind="stable")
    found = {}
    for column, of_rows in zip(recoding.columns, cells, strict=True):
        if isinstance(column, NominalCells):
            texts = _nominal(column, of_rows[order], groups[order], count)
        elif isinstance(column, OrdinalCells):
            texts = _ordinal(column, of_rows, groups, count)
        else:
            assert isinstance(column, OrderedCells)
            texts = _ordered(recoding.typed(frame, column.name), groups, count)
        found[column.name] = [label_series(column.name, *texts)]
    return found
