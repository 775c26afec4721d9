# SPDX-License-Identifier: Apache-2.0
"""How large columns are where a recoding does not say it: from where to where an ordered column reaches whose outermost
intervals are open, and how many values are in the leaf of those that are not named.

The range of the data may not be told, and a figure that is measured by it tells it. So public figures are measured by
what the recoding says: its declared domain, or its outermost cuts and beyond each as much as the interval next to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.recoding.columns import NominalCells, OrderedCells
from anonfit.recoding.recoding import Recoding
from anonfit.tables.scales import Cut, Scale

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Extent",
    "Extents",
    "common_extents",
    "numbers_on_line",
    "observed_extents",
    "places",
    "stated_extents",
    "unnamed_values",
]

YEAR = 365.0
"""Days beyond a single cut between dates."""
LARGEST = np.finfo(np.float64).max / 4
"""Ends are not farther away, so that no extent is infinite."""
MICROSECONDS_A_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Extent:
    """The ends of an ordered column, as numbers or as days since 1970."""

    low: float
    high: float


Extents = dict[str, Extent]
"""Of the ordered columns with cuts, or a declared domain, by name."""


def places(cuts: Sequence[Cut], scale: Scale) -> NDArray[np.float64]:
    """Where cuts stand: numbers as they are, dates and times in days since 1970."""
    if scale == Scale.NUMBER:
        return np.array([float(cut) for cut in cuts], dtype=np.float64)
    moments = [datetime.fromisoformat(str(cut)).replace(tzinfo=UTC).timestamp() / 86400 for cut in cuts]
    return np.array(moments, dtype=np.float64)


def _stated(column: OrderedCells) -> Extent | None:
    if column.domain:
        low, high = places(column.domain, column.scale).tolist()
        return Extent(low, high)
    cuts = places(column.cuts, column.scale)
    if not len(cuts):
        return None
    cuts = np.clip(cuts, -LARGEST, LARGEST)  # so that no difference is infinite
    if len(cuts) > 1:
        below, above = cuts[1] - cuts[0], cuts[-1] - cuts[-2]
    else:
        below = above = YEAR if column.scale != Scale.NUMBER else abs(cuts[0]) or 1.0
    low, high = np.clip([cuts[0] - below, cuts[-1] + above], -LARGEST, LARGEST).tolist()
    return Extent(low, high)


def stated_extents(recoding: Recoding) -> Extents:
    """What a recoding says of its ordered columns: all that a public figure may use."""
    found = {column.name: _stated(column) for column in recoding.columns if isinstance(column, OrderedCells)}
    return {name: extent for name, extent in found.items() if extent is not None}


def common_extents(recodings: Sequence[Recoding]) -> Extents:
    """From the lowest to the highest end that one of several recodings says, so that all are measured alike."""
    found: Extents = {}
    for recoding in recodings:
        for name, extent in stated_extents(recoding).items():
            other = found.get(name, extent)
            found[name] = Extent(min(extent.low, other.low), max(extent.high, other.high))
    return found


def unnamed_values(recodings: Sequence[Recoding]) -> list[dict[str, int]]:
    """For each recoding and nominal column, how many values are in the leaf of those that it does not name, as far as
    the others name them.

    Values that no recoding names are one value, if every one of them has such a leaf.
    """
    columns: dict[str, list[NominalCells]] = {}
    for recoding in recodings:
        for column in recoding.columns:
            if isinstance(column, NominalCells):
                columns.setdefault(column.name, []).append(column)
    named = {name: {leaf for one in found for leaf in _named(one)} for name, found in columns.items()}
    rest = {name: int(all(one.other is not None for one in found)) for name, found in columns.items()}
    return [
        {
            column.name: max(len(named[column.name] - _named(column)) + rest[column.name], 1)
            for column in recoding.columns
            if isinstance(column, NominalCells) and column.other is not None
        }
        for recoding in recodings
    ]


def _named(column: NominalCells) -> set[str]:
    return {leaf for leaf in column.taxonomy.leaves if leaf != column.other}


def observed_extents(recoding: Recoding, frame: pl.DataFrame) -> Extents:
    """From the smallest to the largest value of raw rows, or as declared. Not for public figures."""
    found: Extents = {}
    for column in recoding.columns:
        if not isinstance(column, OrderedCells):
            continue
        stated = _stated(column)
        if column.domain and stated is not None:
            found[column.name] = stated
            continue
        values = numbers_on_line(recoding.typed(frame, column.name).drop_nulls())
        if len(values):
            found[column.name] = Extent(float(values.min()), float(values.max()))
    return found


def numbers_on_line(values: pl.Series) -> NDArray[np.float64]:
    """Values of an ordered column as numbers, dates and times in days since 1970; NaN where one is missing."""
    import polars as pl

    found: Any = values
    if values.dtype == pl.Date:
        found = values.to_physical()
    elif values.dtype == pl.Datetime:
        found = values.dt.epoch("us") / MICROSECONDS_A_DAY
    numbers: NDArray[np.float64] = found.cast(pl.Float64).to_numpy()
    return numbers
