# SPDX-License-Identifier: Apache-2.0
"""The raw rows that a log is held against, all at once or some at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.workload.predicates import Predicate, conditions_of
from anonfit.workload.truth import Rows

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Batch", "PersonsOf", "RawRows", "columns_named", "rows_of_frame"]

PersonsOf = Callable[[NDArray[np.int64], int], NDArray[np.int64]]
"""From the group of each row and the number of groups, how many persons each group has."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows, and whom they stand for."""

    frame: pl.DataFrame
    persons: PersonsOf


@dataclass(frozen=True, slots=True)
class RawRows:
    """The rows of a table. A person's rows are all in one batch, so that persons of batches can be added up."""

    schema: Mapping[str, pl.DataType]
    count: int
    read: Callable[[Sequence[str]], Iterable[Batch]]
    """All rows with at least these columns, each time from the beginning."""

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """All rows with at least these columns; no batch is empty."""
        return (batch for batch in self.read(names) if len(batch.frame))

    def without_rows(self) -> pl.DataFrame:
        """The columns alone."""
        import polars as pl

        return pl.DataFrame(schema=dict(self.schema))

    def persons(self, predicates: Sequence[Predicate]) -> NDArray[np.int64]:
        """How many persons each predicate selects."""
        found = np.zeros(len(predicates), np.int64)
        for batch in self.batches(columns_named(predicates)) if predicates else ():
            rows = Rows(batch.frame)
            found += [batch.persons(rows.holds(one).astype(np.int64), 2)[1] for one in predicates]
        return found


def rows_of_frame(frame: pl.DataFrame, persons: PersonsOf) -> RawRows:
    """Rows that are in memory."""
    return RawRows(frame.schema, len(frame), lambda _: (Batch(frame, persons),))


def columns_named(predicates: Iterable[Predicate]) -> list[str]:
    """The columns that predicates are about, in the order of their names."""
    return sorted({condition.column for one in predicates for condition in conditions_of(one)})
