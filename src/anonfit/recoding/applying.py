# SPDX-License-Identifier: Apache-2.0
"""Recoding a frame row for row: any kind of frame in, the same kind out, with its order and other columns kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import RequestError, did_you_mean
from anonfit.recoding.columns import EVERYTHING
from anonfit.recoding.recoding import SUPPRESSED, Recoding, Unseen
from anonfit.recoding.values import Values, label_series, region_values
from anonfit.tables.frames import from_frame, like

if TYPE_CHECKING:
    import polars as pl

__all__ = ["recode_frame", "recoded_columns"]


def recoded_columns(recoding: Recoding, nodes: NDArray[np.int32], values: Values) -> dict[str, list[pl.Series]]:
    """The released columns of rows that end in these nodes; suppressed rows are `*`, or empty where values are no
    labels.
    """
    import polars as pl

    used, which = np.unique(nodes, return_inverse=True)
    has_suppressed = len(used) > 0 and used[0] == SUPPRESSED
    known = used[used != SUPPRESSED].astype(np.int32)
    found = {}
    for name, series in region_values(recoding, known, values).items():
        if has_suppressed:
            series = [_with_suppressed(column) for column in series]
        found[name] = [column.gather(pl.Series(which)) for column in series]
    return found


def _with_suppressed(series: pl.Series) -> pl.Series:
    """A column with one more row in front, for rows that say nothing."""
    import polars as pl

    if isinstance(series.dtype, pl.Enum):
        texts = series.cast(pl.String).to_list()
        return label_series(series.name, [EVERYTHING, *texts], np.arange(len(texts) + 1))
    return pl.concat([pl.Series(series.name, [None], dtype=series.dtype), series])


def recode_frame(recoding: Recoding, frame: Any, *, unseen: str, values: str) -> Any:
    """Recode a frame's quasi-identifiers, row for row."""
    import polars as pl

    for name, word, known in (("values", values, Values), ("unseen", unseen, Unseen)):
        if word not in set(known):
            raise RequestError(f"{name} = '{word}' is not known; {did_you_mean(word, list(known))}")
    table = from_frame(frame)
    cells = recoding.cells(table, unseen=Unseen(unseen))
    nodes = recoding.nodes(cells)
    if unseen == Unseen.SUPPRESS:
        unknown = np.any(np.stack([found < 0 for found in cells]), axis=0) if cells else np.zeros(len(nodes), bool)
        nodes = np.where(unknown, SUPPRESSED, nodes).astype(np.int32)
    recoded = recoded_columns(recoding, nodes, Values(values))
    columns: list[pl.Series] = []
    for name in table.columns:
        columns.extend(recoded.get(name, [table[name]]))
    return like(frame, pl.DataFrame(columns))
