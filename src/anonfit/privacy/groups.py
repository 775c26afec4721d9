# SPDX-License-Identifier: Apache-2.0
"""Diversity models asked about all groups of a table at once, block by block, so that memory stays bounded whatever the
number of groups and values. Used where groups are given: a release of new data by a saved recoding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from anonfit.privacy.coding import persons_by_code
from anonfit.privacy.models import DiversityModel
from anonfit.privacy.sensitive import SensitiveColumn

__all__ = ["groups_allowed"]

CELLS = 1 << 21
"""Pairs of a group and a value that are counted at a time: 16 MB, and a model needs a few times as much."""

ROWS = 1 << 20
"""Rows that are counted at a time, unless a single group has more."""


def groups_allowed(
    models: Sequence[DiversityModel],
    groups: NDArray[np.int64],
    codes: Mapping[str, NDArray[np.uint32]],
    *,
    count: int,
    weights: NDArray[np.int64] | None = None,
    entities: NDArray[np.uint32] | None = None,
) -> NDArray[np.bool_]:
    """Which groups of rows all models allow.

    Args:
        models: The models, each with the column of this very table: its whole is what groups are compared with.
        groups: The group of each row.
        codes: For every column of a model, by name, the code of each row.
        count: The number of groups.
        weights: The persons of each row; one if not given.
        entities: The person of each row, where persons have several: each is then counted once for a value in a
            group, and `weights` not at all.

    Returns:
        One answer per group; a group of nobody reveals nothing and is allowed.
    """
    allowed = np.ones(count, np.bool_)
    columns = {model.column.name: model.column for model in models}
    order = np.argsort(groups, kind="stable") if columns else np.zeros(0, np.int64)
    ends = np.cumsum(np.bincount(groups, minlength=count))
    for name, column in columns.items():
        asked = [model for model in models if model.column.name == name]
        for block, rows in _blocks(column, order, ends):
            # cells: the pair of a group of the block and a value, for each of the block's rows.
            cells = np.searchsorted(block, groups[rows]) * column.size + codes[name][rows]
            counts = persons_by_code(
                cells,
                len(block) * column.size,
                weights=None if weights is None else weights[rows],
                entities=None if entities is None else entities[rows],
            ).reshape(len(block), column.size)
            for model in asked:
                allowed[block] &= model.allows(counts)
    return allowed


def _blocks(
    column: SensitiveColumn, order: NDArray[np.int64], ends: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Groups that have rows, as many at a time as may be counted together, and their rows.

    order: the rows, by group; ends: where the rows of each group end in it.
    """
    filled = np.flatnonzero(np.diff(ends, prepend=0))
    stops = ends[filled]
    most = max(CELLS // max(column.size, 1), 1)
    first = start = 0
    while first < len(filled):
        within_rows = int(np.searchsorted(stops, start + ROWS, side="right"))
        after = max(min(first + most, within_rows), first + 1)
        end = int(stops[after - 1])
        yield filled[first:after], order[start:end]
        first, start = after, end
