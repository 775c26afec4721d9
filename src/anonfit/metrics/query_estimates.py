# SPDX-License-Identifier: Apache-2.0
"""What queries are expected to give over regions, and over columns that are released as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.targets import CodedSelections
from anonfit.metrics.spreading import Ends, Spread, spread_of
from anonfit.recoding.recoding import Recoding
from anonfit.tables.schema import Domain
from anonfit.workload.predicates import ColumnKind, Holding, Predicate
from anonfit.workload.selections import code_predicates
from anonfit.workload.truth import Rows

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Estimator", "Table"]

RECTANGLES = 128
"""Rectangles whose shares are found together."""


@dataclass(frozen=True, slots=True)
class Table:
    """Raw rows, and the regions in which they were released.

    `kinds` are of all columns, `domains` of the quasi-identifiers; `nodes` is -1 for rows that are withheld; `counts`
    are the persons that rows stand for.
    """

    recoding: Recoding
    kinds: Mapping[str, ColumnKind]
    domains: Sequence[Domain]
    frame: pl.DataFrame
    nodes: NDArray[np.integer[Any]]  # (row,)
    counts: NDArray[np.int64] | None = None  # (row,)


class Estimator:
    """Estimates what predicates are met by, from regions and from columns that are released as they are."""

    def __init__(self, table: Table, rows: Rows, predicates: Sequence[Predicate], ends: Ends | None) -> None:
        self.table = table
        self.spread: Spread = spread_of(table.recoding, table.domains, predicates, ends)
        self.coded: CodedSelections = code_predicates(predicates, self.spread.domains, rows)
        self.released = table.nodes >= 0
        self.nodes, place = np.unique(table.nodes[self.released], return_inverse=True)
        keys, self.group_of = np.unique(
            place * len(self.coded.applies) + self.coded.signatures[self.released], return_inverse=True
        )
        self.node, self.signature = keys // len(self.coded.applies), keys % len(self.coded.applies)
        self.own = {name: at for at, name in enumerate(table.recoding.quasi_identifiers)}

    def counts(self, place: slice) -> NDArray[np.float64]:
        """How many rows are expected to meet each of some predicates."""
        return self.sums(place, None, with_values=False)[0]

    def known(self, column: str | None) -> NDArray[np.float64]:
        """(row,) What each raw row counts: nothing where its value is missing."""
        counts = self.table.counts
        found = np.ones(len(self.table.frame)) if counts is None else counts.astype(np.float64)
        return found if column is None else found * self.table.frame[column].is_not_null().to_numpy()

    def values(self, column: str | None) -> NDArray[np.float64] | None:
        """(row,) The numbers of a column, 0 where they are missing; None if it holds none."""
        import polars as pl

        if column is None or self.table.kinds[column].holding != Holding.NUMBERS:
            return None
        series = self.table.frame[column]
        return series.cast(pl.Float64, strict=False).fill_nan(None).fill_null(0.0).to_numpy()

    def sums(
        self, place: slice, column: str | None, *, with_values: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """For each of some predicates how many rows with a value of the column are expected, and its sum over them."""
        selection = self.coded.selection
        first, last = np.searchsorted(selection, [place.start, place.stop])
        counts, sums = np.zeros(place.stop - place.start), np.zeros(place.stop - place.start)
        own = None if column is None else self.own.get(column)
        for begin in range(int(first), int(last), RECTANGLES):
            chunk = slice(begin, min(begin + RECTANGLES, int(last)))
            applies = self.coded.applies[self.signature, chunk].astype(np.float64)  # (group, rectangle)
            masks, at = self.coded.rectangles[chunk], selection[chunk] - place.start
            shares = (
                self.spread.shares(self.nodes, masks)
                if own is None
                else self.spread.known_shares(self.nodes, masks, own)
            )
            weights = self._of_groups(self.known(column) if own is None else self.known(None))
            np.add.at(counts, at, weights @ (shares[self.node] * applies))
            if with_values and own is not None:
                by_value = self.spread.shares(self.nodes, masks, number=own)
                np.add.at(sums, at, weights @ (by_value[self.node] * applies))
            elif with_values:
                values = self.values(column)
                assert values is not None
                np.add.at(sums, at, self._of_groups(values * self.known(column)) @ (shares[self.node] * applies))
        return counts, sums

    def _of_groups(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """(group,) The sum of numbers of raw rows."""
        found: Any = np.bincount(self.group_of, weights=numbers[self.released], minlength=len(self.node))
        sums: NDArray[np.float64] = found
        return sums
