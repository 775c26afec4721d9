# SPDX-License-Identifier: Apache-2.0
"""A release before it is published: the table, what it was made from, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_UP, Decimal
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.result import SelectionAnswers
from anonfit.engines.contract import Written
from anonfit.errors import Infeasible
from anonfit.privacy.disclosure import Disclosure
from anonfit.recoding.recoding import Recoding
from anonfit.release.engine import batches_of
from anonfit.spec.learning import Asked
from anonfit.spec.model import Spec
from anonfit.tables.schema import Schema

if TYPE_CHECKING:
    import polars as pl

    from anonfit.workload.objectives import LearnedWeights

Held = TypeVar("Held")

MANY_ROWS = 1 << 22
"""A table that is not in memory and has more rows is never read as a whole."""


@dataclass(frozen=True, slots=True)
class RowCounts:
    """What became of the input's rows."""

    read: int
    dropped: int
    withheld: int
    unknown: int = 0
    """Of the withheld rows, those with a value that the recoding does not know."""
    dropped_persons: int = 0
    withheld_persons: int = 0

    @property
    def released(self) -> int:
        """Rows of the released table."""
        return self.read - self.dropped - self.withheld


def within_limit(spec: Spec, rows: RowCounts) -> RowCounts:
    """The same counts, refused if more rows are withheld than `suppression_limit` allows of those not dropped."""
    of, limit, least = rows.read - rows.dropped, Decimal(repr(spec.privacy.suppression_limit)), spec.privacy.least
    most = int(limit * of)
    if rows.withheld <= most:
        return rows
    withheld = Disclosure(least).rows(rows.withheld, rows.withheld_persons)
    # A limit that allows fewer than k tells no more than that they are fewer.
    needed = rows.withheld if isinstance(withheld, int) else min(least, of)
    enough = (Decimal(needed) / of).quantize(Decimal("0.0001"), ROUND_UP).normalize()
    raise Infeasible(
        f"{withheld} of {of} rows lie in regions that do not hold what is asked, or in none, and would be withheld; "
        f"suppression_limit = {limit:f} allows {most}. Allow more where that is meant: --suppression-limit {enough:f} "
        f"for apply, suppression_limit={enough:f} in Python; or wait for more data, or make a release of its own."
    )


class Lazy(Generic[Held]):
    """Something that is made when it is first asked for: a table that may not fit in memory."""

    def __init__(self, make: Callable[[], Held]) -> None:
        self._make = make
        self._value: Held | None = None
        self._lock = Lock()

    def get(self) -> Held:
        """What it is."""
        with self._lock:
            if self._value is None:
                self._value = self._make()
            return self._value


def _get(held: Held | Lazy[Held]) -> Held:
    return held.get() if isinstance(held, Lazy) else held


@dataclass(frozen=True, slots=True)
class Draft:
    """A release before it is published: the table, what it was made from, and how. Tables that are not in memory are
    read when they are asked for; `stored` is then the released table's file.
    """

    spec: Spec
    schema: Schema
    held_table: pl.DataFrame | Lazy[pl.DataFrame] = field(repr=False)
    recoding: Recoding = field(repr=False)
    rows: RowCounts
    held_source: pl.DataFrame | Lazy[pl.DataFrame] | None = field(default=None, repr=False)
    answers: SelectionAnswers | None = None
    held_nodes: NDArray[np.int32] | Lazy[NDArray[np.int32]] | None = field(default=None, repr=False)
    extends: bool = False
    """Whether the recoding is that of an earlier release."""
    steered: Mapping[str, bool] | None = None
    """The targets that steered splits, and whether each did as a number; None where that is not known."""
    refinements: Mapping[str, Any] | None = field(default=None, repr=False)
    """How top-down refinement came to the recoding, where it did just now."""
    asked: tuple[Asked, ...] = field(default=(), repr=False)
    """The questions of the query log, those of most queries first."""
    learned: LearnedWeights | None = field(default=None, repr=False)
    """The weights of columns, where they were found from the rows."""
    exploration: Mapping[str, Any] | None = field(default=None, repr=False)
    """All that was tried, where the use is not known; the spec then asks for what was chosen."""
    engine: str = "memory"
    """The engine that counted the rows."""
    engine_reason: str | None = None
    """Why it was this one, where that was left to us."""
    notices: tuple[str, ...] = field(default=(), repr=False)
    """What was guessed when the source was read, and what is doubtful about its values: for its owner only."""
    stored: Written | None = field(default=None, repr=False)
    scan: pl.LazyFrame | None = field(default=None, repr=False)
    """The raw rows, where they are not in memory."""
    discard: Callable[[], object] = field(default=lambda: None, repr=False)
    """Removes the stored file at once, and not only when nobody refers to it any more."""

    @property
    def is_large(self) -> bool:
        """Whether the table is only read some rows at a time."""
        return self.scan is not None and self.rows.read > MANY_ROWS

    @property
    def table(self) -> pl.DataFrame:
        """The released table."""
        return _get(self.held_table)

    @property
    def source(self) -> pl.DataFrame | None:
        """The raw rows that could have been released, where they are at hand: the audit compares with them."""
        return None if self.held_source is None else _get(self.held_source)

    @property
    def raw_rows(self) -> pl.DataFrame:
        """The source of a draft that was made, not loaded."""
        assert self.source is not None
        return self.source

    @property
    def nodes(self) -> NDArray[np.int32] | None:
        """(row,) The node of the recoding's tree that each row of the source was released in, -1 if it was withheld."""
        return None if self.held_nodes is None else _get(self.held_nodes)

    @property
    def node_of_row(self) -> NDArray[np.int32]:
        """The nodes of a draft that was made, not loaded."""
        assert self.nodes is not None
        return self.nodes

    @property
    def dtypes(self) -> Mapping[str, pl.DataType]:
        """The columns of the released table and their types."""
        return self.table.schema if self.stored is None else self.stored.schema

    @property
    def released(self) -> int:
        """How many rows the released table has."""
        return len(self.table) if self.stored is None else self.stored.rows


def raw_batches(draft: Draft) -> Iterator[tuple[pl.DataFrame, NDArray[np.int32]]]:
    """The raw rows of a table that is not in memory, some at a time, and the node of each."""
    assert draft.scan is not None
    for frame in batches_of(draft.scan):
        yield frame, draft.recoding.nodes(draft.recoding.cells(frame))
