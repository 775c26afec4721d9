# SPDX-License-Identifier: Apache-2.0
"""Whether rows that are read some at a time are sorted by the columns of their file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from anonfit.auditing.coding import IntArray
from anonfit.auditing.released import Released
from anonfit.auditing.row_order import Truths, equal_neighbours, falling, orders, sorted_by

__all__ = ["Order", "heads_are_sorted"]


def heads_are_sorted(released: Released) -> bool:
    """Whether groups are sorted by the quasi-identifiers' columns in file order."""
    keys = [name for name in released.table.names if name in released.heads.columns]
    tied = np.ones(max(0, released.grouping.count - 1), np.bool_)
    return sorted_by([[released.heads[name] for name in keys]], tied)


class Order:
    """Rows of groups that stand together, held against the order of their other columns, batch after batch.

    Texts of numbers may be in either order, but in one of them from the first row to the last.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.sorted_as = {name: [True, True] for name in names}
        self.last: pl.DataFrame | None = None
        self.last_group = -1

    def add(self, groups: IntArray, frame: pl.DataFrame) -> None:
        """The next rows."""
        if not len(groups) or not self.names:
            return
        frame = frame.select(self.names)
        first, last = (frame[row].cast({pl.Enum: pl.String, pl.Categorical: pl.String}) for row in (0, -1))
        if self.last is not None and self.last_group == groups[0]:
            self._compare(np.ones(1, np.bool_), pl.concat([self.last, first]))
        self.last, self.last_group = last, int(groups[-1])
        self._compare(groups[1:] == groups[:-1], frame)

    def _compare(self, tied: Truths, frame: pl.DataFrame) -> None:
        """Hold rows against the next ones; `tied` are those that only these columns tell from them."""
        for name in self.names:
            if not tied.any():
                return
            tied = tied & self._look(frame[name], tied)

    def _look(self, series: pl.Series, tied: Truths) -> Truths:
        """Note in which orders one more column is; the rows that equal the next one in it."""
        found = list(orders(series))
        for place, good in enumerate(self.sorted_as[series.name]):
            fits = place < len(found) and not (falling(found[place][:-1], found[place][1:]) & tied).any()
            self.sorted_as[series.name][place] = good and bool(fits)
        return equal_neighbours(found[0][:-1], found[0][1:])

    @property
    def is_sorted(self) -> bool:
        """Whether every column is in one of its orders."""
        return all(any(readings) for readings in self.sorted_as.values())
