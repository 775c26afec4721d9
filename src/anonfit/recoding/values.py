# SPDX-License-Identifier: Apache-2.0
"""What regions say of each quasi-identifier: labels, bounds or representatives, with one row per region; and a frame
recoded row for row: any kind in, the same kind out, with its order and other columns kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.engines.tree import Parts
from anonfit.errors import RequestError, did_you_mean
from anonfit.recoding.columns import EVERYTHING, NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.tables.frames import from_frame, like
from anonfit.tables.scales import Cut, Scale

if TYPE_CHECKING:
    from anonfit.recoding.recoding import Recoding


class Unseen(StrEnum):
    """What becomes of a record with a category that the recoding does not know."""

    ERROR = "error"
    ANCESTOR = "ancestor"
    SUPPRESS = "suppress"


SUPPRESSED = -1  # the node of a record that is not recoded


class Values(StrEnum):
    """How a generalized value is written."""

    LABELS = "labels"
    BOUNDS = "bounds"
    REPRESENTATIVE = "representative"


def label_series(name: str, texts: Sequence[str], which: NDArray[Any]) -> pl.Series:
    """A column of labels, kept as categories in the order of their texts (by code point, as UTF-8 orders bytes)."""
    distinct = sorted(set(texts))
    position = {text: index for index, text in enumerate(distinct)}
    lookup = np.array([position[text] for text in texts], dtype=np.uint32)
    return pl.Series(name, lookup[which]).cat.to(pl.Enum(distinct))


def _by_node(name: str, of_parts: list[Any], parts: Parts, dtype: Any) -> pl.Series:
    """A column with one row per node, from a value for each part."""
    return pl.Series(name, of_parts, dtype=dtype, strict=False).gather(parts.of_node)


def _labels(column: RecodedColumn, parts: Parts) -> list[pl.Series]:
    if isinstance(column, NominalCells):
        texts = column.labels(parts.bits(column.size))
    else:
        texts = [column.label(part) for part in parts.cells()]
    return [label_series(column.name, texts, parts.of_node)]


def _moment(cut: Cut | None, scale: Scale) -> Any:
    if cut is None or scale.is_number:
        return cut
    return date.fromisoformat(str(cut)[:10]) if scale == Scale.DATE else datetime.fromisoformat(str(cut))


def _dtype(column: OrderedCells | OrdinalCells) -> Any:
    if isinstance(column, OrdinalCells):
        return pl.String
    if column.scale.is_number:
        whole = all(isinstance(end, int) and abs(end) < 2**63 for end in (*column.cuts, *column.domain))
        return pl.Int64 if whole else pl.Float64
    return pl.Date if column.scale == Scale.DATE else pl.Datetime("us")


def _bounds(column: RecodedColumn, parts: Parts) -> list[pl.Series]:
    """Lower (inclusive) and upper (exclusive) ends, and what is known of missing values."""
    if isinstance(column, NominalCells):
        return _labels(column, parts)
    _require_clear_bounds(column, parts)
    scale = column.scale if isinstance(column, OrderedCells) else Scale.NUMBER
    cells = parts.cells()
    ends = [(None, None) if column.has_missing and part[-1] == 0 else column.ends(part) for part in cells]
    series = [
        _by_node(f"{column.name}_{word}", [_moment(pair[side], scale) for pair in ends], parts, _dtype(column))
        for side, word in enumerate(("lower", "upper"))
    ]
    if column.has_missing:
        words = ["no" if part[0] > 0 else "only" if part[-1] == 0 else "possible" for part in cells]
        series.append(_by_node(f"{column.name}_missing", words, parts, pl.String))
    return series


def _require_clear_bounds(column: RecodedColumn, parts: Parts) -> None:
    """Refuse bounds that two different intervals would have: up to a cut, and up to and with a domain's end there."""
    is_cut = isinstance(column, OrderedCells) and column.domain and column.domain[1:] == column.cuts[-1:]
    reaches = (parts.last == column.size - 1) & (parts.first < column.size - 1)
    if is_cut and reaches.any():
        raise RequestError(
            f"column '{column.name}': bounds cannot say which intervals hold the end of its declared domain, since a "
            "cut is there, too; release labels, or declare a domain that ends above its values."
        )


def _representatives(column: RecodedColumn, parts: Parts) -> list[pl.Series]:
    """The middle of each region; empty where missing values may be in it."""
    if isinstance(column, NominalCells):
        return _labels(column, parts)

    def middle(part: Sequence[int]) -> Any:
        if column.has_missing and part[0] == 0:
            return None
        if isinstance(column, OrdinalCells):
            return column.order[part[(len(part) - 1) // 2] - int(column.has_missing)]
        low, high = (_moment(end, column.scale) for end in column.ends(part))
        if low is None or high is None:
            return high if low is None else low
        if not column.scale.is_number:
            return low + (high - low) / 2
        half = low / 2 + high / 2
        return half if low <= half < high else low

    is_number = isinstance(column, OrderedCells) and column.scale.is_number
    dtype = pl.Float64 if is_number else _dtype(column)
    return [_by_node(column.name, [middle(part) for part in parts.cells()], parts, dtype)]


def region_values(recoding: Recoding, nodes: NDArray[np.int32], values: Values) -> dict[str, list[pl.Series]]:
    """For each quasi-identifier the columns that are released in its place, with one row per node."""
    make = {Values.LABELS: _labels, Values.BOUNDS: _bounds, Values.REPRESENTATIVE: _representatives}[values]
    return {
        column.name: make(column, recoding.boxes.parts(nodes, index)) for index, column in enumerate(recoding.columns)
    }


def recoded_columns(recoding: Recoding, nodes: NDArray[np.int32], values: Values) -> dict[str, list[pl.Series]]:
    """The released columns of rows that end in these nodes; suppressed rows are `*` in labels, else empty."""
    used, which = np.unique(nodes, return_inverse=True)
    has_suppressed = len(used) > 0 and used[0] == SUPPRESSED
    known = used[used != SUPPRESSED].astype(np.int32)
    return {
        name: [(_with_suppressed(column) if has_suppressed else column).gather(pl.Series(which)) for column in series]
        for name, series in region_values(recoding, known, values).items()
    }


def _with_suppressed(series: pl.Series) -> pl.Series:
    """A column with one more row in front, for rows that say nothing."""
    if isinstance(series.dtype, pl.Enum):
        texts = series.cast(pl.String).to_list()
        return label_series(series.name, [EVERYTHING, *texts], np.arange(len(texts) + 1))
    return pl.concat([pl.Series(series.name, [None], dtype=series.dtype), series])


def recode_frame(recoding: Recoding, frame: Any, *, unseen: str, values: str) -> Any:
    """Recode a frame's quasi-identifiers, row for row."""
    for name, word, known in (("values", values, Values), ("unseen", unseen, Unseen)):
        if word not in set(known):
            raise RequestError(f"{name} = '{word}' is not known; {did_you_mean(word, list(known))}")
    table = from_frame(frame)
    cells = recoding.cells(table, unseen=Unseen(unseen))
    nodes = recoding.nodes(cells)
    if unseen == Unseen.SUPPRESS:
        unknown = np.any(np.stack([own < 0 for own in cells]), axis=0) if cells else np.zeros(len(nodes), bool)
        nodes = np.where(unknown, SUPPRESSED, nodes).astype(np.int32)
    recoded = recoded_columns(recoding, nodes, Values(values))
    columns = [column for name in table.columns for column in recoded.get(name, [table[name]])]
    return like(frame, pl.DataFrame(columns))
