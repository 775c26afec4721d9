# SPDX-License-Identifier: Apache-2.0
"""Labels of what the records of each region really have, instead of the region itself: only on consent, since they
are record values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.recoding.columns import OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.labels import MISSING, interval_label, with_missing
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import label_series
from anonfit.tables.scales import cut_text, on_axis, on_axis_text

if TYPE_CHECKING:
    import polars as pl

__all__ = ["observed_labels"]


def _ordered(values: pl.Series, groups: NDArray[np.int32], count: int) -> list[str]:
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
    found = []
    for group in range(count):
        ends = (cut_text(on_axis_text(end, dtype)) for end in (low[group], high[group]))
        label = interval_label(*ends, closed=True) if filled[group] else MISSING
        found.append(with_missing(label) if gaps[group] and filled[group] else label)
    return found


def _nominal(column: RecodedColumn, cells: NDArray[np.int32], groups: NDArray[np.int32], count: int) -> list[str]:
    """The names of the values of each group."""
    pairs = np.unique(groups.astype(np.int64) << 32 | cells)
    members: list[list[int]] = [[] for _ in range(count)]
    for pair in pairs.tolist():
        members[pair >> 32].append(pair & 0xFFFFFFFF)
    if isinstance(column, OrdinalCells):
        members = [_run(cells, int(column.has_missing)) for cells in members]
    return [column.label(cells) for cells in members]


def _run(cells: list[int], first: int) -> list[int]:
    """The words from the lowest to the highest that is there, and missing if it is."""
    known = [cell for cell in cells if cell >= first]
    return cells[: len(cells) - len(known)] + (list(range(known[0], known[-1] + 1)) if known else [])


def observed_labels(
    recoding: Recoding, frame: pl.DataFrame, groups: NDArray[np.int32], count: int
) -> dict[str, list[pl.Series]]:
    """For each quasi-identifier the labels of what each group's records have. groups: (row of the frame,)."""
    cells = recoding.cells(frame)
    found = {}
    for column, of_rows in zip(recoding.columns, cells, strict=True):
        if isinstance(column, OrderedCells):
            texts = _ordered(recoding.typed(frame, column.name), groups, count)
        else:
            texts = _nominal(column, of_rows, groups, count)
        found[column.name] = [label_series(column.name, texts, np.arange(count))]
    return found
