# SPDX-License-Identifier: Apache-2.0
"""From a recoding to features: what its columns are, and what its nodes hold of each."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from anonfit.auditing import LabelMeaning, LabelTree
from anonfit.estimators.features import (
    ALWAYS,
    NEVER,
    POSSIBLE,
    FeatureColumn,
    LeafColumn,
    Leaves,
    LineColumn,
    Numbers,
    Parts,
    Spans,
    closed_ends,
)
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding
from anonfit.tables.scales import Cut, cut_text
from anonfit.tables.schema import ColumnType
from anonfit.tables.taxonomy import Taxonomy

__all__ = ["feature_column", "meaning_of", "on_line", "parts_of_nodes", "tree_of"]

SECONDS_A_DAY = 86400


def on_line(place: Decimal, *, is_date: bool) -> float:
    """Where a value stands as a feature: numbers as they are, dates and times in days since 1970."""
    return float(place / SECONDS_A_DAY if is_date else place)


def tree_of(taxonomy: Taxonomy) -> LabelTree:
    """A taxonomy as labels are read by it."""
    runs = zip(taxonomy.first_leaf, taxonomy.last_leaf, strict=True)
    return LabelTree(taxonomy.leaves, dict(zip(taxonomy.names, runs, strict=True)))


def meaning_of(column: RecodedColumn) -> LabelMeaning:
    """How the labels of a recoded column are read. A taxonomy over numbers or dates is one of names."""
    if isinstance(column, NominalCells):
        return LabelMeaning(column.name, "nominal", tree=tree_of(column.taxonomy))
    if isinstance(column, OrdinalCells):
        return LabelMeaning(column.name, "ordinal", order=column.order)
    return LabelMeaning(column.name, "date" if column.type == ColumnType.DATE else "continuous")


def _cuts_on_line(column: OrderedCells, cuts: tuple[Cut, ...]) -> Numbers:
    meaning = meaning_of(column)
    places = [meaning.scalar(cut_text(cut)) for cut in cuts]
    is_date = column.type == ColumnType.DATE
    return np.array([on_line(place, is_date=is_date) for place in places if place is not None], dtype=np.float64)


def feature_column(column: RecodedColumn) -> FeatureColumn:
    """What becomes of a recoded column."""
    if isinstance(column, NominalCells):
        return LeafColumn(column.name, column.has_missing, column.taxonomy.leaves)
    if isinstance(column, OrdinalCells):
        return LineColumn(column.name, column.has_missing, 0.0, len(column.order) - 1.0)
    assert isinstance(column, OrderedCells)
    ends = _cuts_on_line(column, column.domain)
    domain = (float(ends[0]), float(ends[1])) if len(ends) else (None, None)
    is_date = column.type == ColumnType.DATE
    low, high = closed_ends(_cuts_on_line(column, column.cuts), domain, is_date=is_date)
    return LineColumn(column.name, column.has_missing, low, high)


def parts_of_nodes(recoding: Recoding, nodes: NDArray[np.int32], index: int) -> tuple[Parts, NDArray[np.int64] | slice]:
    """Parts of a column, and which of them each node holds."""
    column = recoding.columns[index]
    if isinstance(column, NominalCells):
        return _leaves(recoding, nodes, index)
    first, last = recoding.boxes.first[nodes, index], recoding.boxes.last[nodes, index]
    shift = int(column.has_missing)
    only_missing = last < shift
    missing = np.where(first < shift, np.where(only_missing, ALWAYS, POSSIBLE), NEVER)
    low, high = np.maximum(first - shift, 0), np.maximum(last - shift, 0)
    if isinstance(column, OrderedCells):
        # NaN is open: below the first cut and above the last.
        cuts = np.concatenate([[np.nan], _cuts_on_line(column, column.cuts), [np.nan]])
        low, high = cuts[low], cuts[high + 1]
    spans = Spans(np.where(only_missing, np.nan, low), np.where(only_missing, np.nan, high), missing)
    return spans, slice(None)


def _leaves(recoding: Recoding, nodes: NDArray[np.int32], index: int) -> tuple[Leaves, NDArray[np.int64]]:
    """The different sets of leaves that nodes have of a nominal column, and which of them each has."""
    found, shift = recoding.boxes.parts(nodes, index), int(recoding.columns[index].has_missing)
    cells = found.cells()
    missing = np.array([part[0] < shift for part in cells], dtype=bool)
    known = [part[1:] if is_missing else part for part, is_missing in zip(cells, missing.tolist(), strict=True)]
    return Leaves([_moved(part, -shift) for part in known], missing), found.of_node


def _moved(cells: Sequence[int], by: int) -> Sequence[int]:
    if isinstance(cells, range):
        return range(cells.start + by, cells.stop + by)
    return [cell + by for cell in cells]
