# SPDX-License-Identifier: Apache-2.0
"""Which region each row of a released table is in, by what it says: for tables that are read back from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.tree import LEAF
from anonfit.errors import DataError
from anonfit.recoding.boxes import Grid
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Values, region_values

if TYPE_CHECKING:
    import polars as pl

__all__ = ["alike", "released_nodes"]

GROUP = "group of rows"
"""A name that is added to those of a frame; longer ones are tried until it is free."""


def released_nodes(recoding: Recoding, table: pl.DataFrame, values: Values) -> NDArray[np.int32] | None:
    """The node of each row of a released table; None where several regions say the same, as representatives may.

    Args:
        recoding: The recoding of the release.
        table: Its rows; regions are told in full (`regions = "domain"`).
        values: How they are written.

    Returns:
        (row,) nodes of the recoding's tree.
    """
    import polars as pl

    if isinstance(recoding.shape, Grid):
        return _grid_nodes(recoding, table, values)
    leaves = np.flatnonzero(recoding.tree.column == LEAF).astype(np.int32)
    said = pl.DataFrame([part for parts in region_values(recoding, leaves, values).values() for part in parts])
    absent = [name for name in said.columns if name not in table.columns]
    if absent:
        raise DataError(f"the table has no column '{absent[0]}', which the recoding would have written.")
    return _found(table, said, leaves)


def _found(table: pl.DataFrame, said: pl.DataFrame, numbers: NDArray[np.int32]) -> NDArray[np.int32] | None:
    """The number of what each row says; None where several say the same."""
    import polars as pl

    own, keys = alike(table.select(said.columns), said)
    node = GROUP
    while node in keys.columns:
        node += " "
    if keys.is_duplicated().any():
        return None
    joined = own.join(
        keys.with_columns(pl.Series(node, numbers)),
        on=said.columns,
        how="left",
        maintain_order="left",
        nulls_equal=True,
    )
    found = joined[node]
    if found.null_count():
        raise DataError(
            f"{found.null_count()} row(s) of the table say what no region of the recoding says; the table and the "
            "recoding are not of one release."
        )
    return found.to_numpy().astype(np.int32)


def _grid_nodes(recoding: Recoding, table: pl.DataFrame, values: Values) -> NDArray[np.int32] | None:
    """The node of each row of a released table, found column by column."""
    import polars as pl

    grid = recoding.shape
    assert isinstance(grid, Grid)
    found = []
    for index, (column, cells) in enumerate(zip(recoding.columns, grid.columns, strict=True)):
        # A node for each part of this column, with the first part of every other.
        parts = [np.zeros(cells.parts, np.int32) for _ in grid.columns]
        parts[index] = np.arange(cells.parts, dtype=np.int32)
        alone = Recoding(recoding.columns, Grid(grid.columns))
        assert isinstance(alone.shape, Grid)
        said = pl.DataFrame(region_values(alone, alone.shape.number(parts), values)[column.name])
        absent = [name for name in said.columns if name not in table.columns]
        if absent:
            raise DataError(f"the table has no column '{absent[0]}', which the recoding would have written.")
        part = _found(table, said, parts[index])
        if part is None:
            return None
        found.append(part)
    return grid.number(found)


def alike(table: pl.DataFrame, said: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Two frames of the same columns in types that can be compared: a CSV file has lost those of labels and dates."""
    import polars as pl

    left, right = [], []
    for name in said.columns:
        here, there = table[name], said[name]
        if here.dtype == pl.String and there.dtype == pl.Date:
            here = here.str.to_date(strict=False)
        elif here.dtype == pl.String and there.dtype == pl.Datetime:
            here = here.str.to_datetime(time_unit="us", strict=False)
        elif here.dtype.is_numeric() and there.dtype.is_numeric():
            here, there = here.cast(pl.Float64), there.cast(pl.Float64)
        elif here.dtype != there.dtype:
            here, there = here.cast(pl.String), there.cast(pl.String)
        left.append(here)
        right.append(there)
    return pl.DataFrame(left), pl.DataFrame(right)
