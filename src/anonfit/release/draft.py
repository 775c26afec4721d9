# SPDX-License-Identifier: Apache-2.0
"""A release before it is published: the table, what it was made from, and how; and what reports need of a table that is
too large to be read as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_UP, Decimal
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.result import SelectionAnswers
from anonfit.engines.contract import Written
from anonfit.errors import Infeasible
from anonfit.metrics.arrays import Flags, Integers
from anonfit.metrics.attack import CombinationCounter, InitialRisk
from anonfit.privacy.disclosure import Disclosure
from anonfit.recoding.recoding import Recoding
from anonfit.release.engine import batches_of
from anonfit.spec.learning import Asked
from anonfit.spec.model import Spec
from anonfit.tables.codebook import code_column
from anonfit.tables.ingesting import RawColumns, ScannedColumns
from anonfit.tables.schema import Domain, Persons, Role, Schema

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
    def released_table(self) -> pl.DataFrame | pl.LazyFrame:
        """The released table; a large one is read from its file by who needs it."""
        return self.stored.scan() if self.stored is not None and self.is_large else self.table

    @property
    def source(self) -> pl.DataFrame:
        """The raw rows that could have been released, of a draft that was made, not loaded."""
        assert self.held_source is not None
        return _get(self.held_source)

    @property
    def raw_columns(self) -> RawColumns:
        """The raw columns; of a large table each is read only when it is asked for."""
        return ScannedColumns(self.scan) if self.scan is not None and self.is_large else self.source

    @property
    def nodes(self) -> NDArray[np.int32]:
        """(row,) The node of the recoding's tree that each row of the source was released in, -1 if it was withheld."""
        assert self.held_nodes is not None
        return _get(self.held_nodes)

    @property
    def dtypes(self) -> Mapping[str, pl.DataType]:
        """The columns of the released table and their types."""
        return self.table.schema if self.stored is None else self.stored.schema

    @property
    def released(self) -> int:
        """How many rows the released table has."""
        return len(self.table) if self.stored is None else self.stored.rows

    def raw_batches(self) -> Iterator[tuple[pl.DataFrame, NDArray[np.int32]]]:
        """The raw rows of a table that is not in memory, some at a time, and the node of each."""
        assert self.scan is not None
        for frame in batches_of(self.scan):
            yield frame, self.recoding.nodes(self.recoding.cells(frame))

    def released_rows(self) -> tuple[pl.DataFrame, NDArray[np.int32]]:
        """The raw rows that were released and their nodes: figures of the others would tell how many these are."""
        kept = self.nodes >= 0
        return self.source if bool(kept.all()) else self.source[np.flatnonzero(kept)], self.nodes[kept]

    def region_sizes(self) -> tuple[Integers, Integers]:
        """The nodes that hold released rows, and how many: rows, or the persons they stand for."""
        count = self.schema.name_of(Role.COUNT)
        rows, nodes = self.released_rows()
        sizes = np.bincount(nodes, weights=None if count is None else rows[count].cast(int).to_numpy()).astype(np.int64)
        used = np.flatnonzero(sizes)
        return used, sizes[used]

    def total(self) -> int:
        """All that selections count: rows, or persons where rows stand for several."""
        count = self.schema.name_of(Role.COUNT)
        if not self.is_large:
            return len(self.source) if count is None else int(self.source[count].sum())
        if count is None:
            return self.rows.released
        import polars as pl

        assert self.scan is not None
        return int(self.scan.select(pl.col(count).cast(pl.Int64).sum()).collect(engine="streaming").item())


# --- a table that is too large to be read as a whole ------------------------------------------------------------

DRAWN = 1 << 20
"""About how many rows the drawn regions have."""
HUGE = 1 << 16
"""A region of more persons is not drawn as a whole."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class LargeTable:
    """What one reading of all rows gives. `drawn` is the same release with the rows of some regions only."""

    used: Integers
    sizes: Integers
    initial: InitialRisk
    drawn: Draft


def drawn_content(rows: int, of: int) -> dict[str, Any]:
    """What a report says of figures that rest on some regions, as plain data."""
    sentence = (
        "The table is large: predictions, the attack, rules, clusters, answers to queries and the comparison were "
        f"measured on rows of regions that were drawn at random, {rows:,} of {of:,} rows. All other figures are of "
        "all rows."
    )
    return {"rows": rows, "of": of, "sentence": sentence}


def whole_domains(draft: Draft) -> list[Domain]:
    """What codes of the quasi-identifiers stand for, by the values of all rows: those that were drawn lack some."""
    import polars as pl

    assert draft.scan is not None
    count = draft.schema.name_of(Role.COUNT)
    domains = []
    for column in draft.schema.quasi_identifiers:
        counted = draft.scan.select(
            pl.col(column.name).alias("value"),
            (pl.lit(1) if count is None else pl.col(count)).cast(pl.Int64).alias("persons"),
        )
        groups = counted.group_by("value").agg(pl.col("persons").sum()).collect(engine="streaming")
        persons = Persons(len(groups), groups["persons"].to_numpy())
        values = groups["value"].alias(column.name)
        domains.append(code_column(column, values, persons=persons.of_groups, k=draft.spec.privacy.k).domain)
    return domains


def drawn_regions(nodes: NDArray[np.integer[Any]], share: float, seed: int) -> Flags:
    """Whether rows are of regions that are drawn: about this share of all regions, the same for every row of one."""
    keys = (nodes.astype(np.uint64) + np.uint64(seed) + np.uint64(1)) * _MIX
    keys ^= keys >> np.uint64(32)
    keys *= _MIX
    drawn: Flags = (keys >> np.uint64(11)) < np.uint64(int(share * 2**53))
    return drawn


def read_large(draft: Draft, largest: int) -> LargeTable:
    """Read all rows once; twice if the largest region, of so many persons, is too large to be drawn as a whole, or if
    chance drew no region.
    """
    import polars as pl

    count, seed = draft.schema.name_of(Role.COUNT), draft.spec.method.seed
    share = min(1.0, DRAWN / max(1, draft.rows.released))
    counter = CombinationCounter(has_counts=count is not None)
    sizes = np.zeros(draft.recoding.node_count, np.int64)
    drawn: list[tuple[pl.DataFrame, NDArray[np.int32]]] = []
    for frame, nodes in draft.raw_batches():
        persons = None if count is None else frame[count].cast(pl.Int64).to_numpy()
        sizes += np.bincount(nodes, weights=persons, minlength=len(sizes)).astype(np.int64)
        counter.add(frame.select(draft.recoding.quasi_identifiers), persons)
        if largest <= HUGE:
            chosen = np.flatnonzero(drawn_regions(nodes, share, seed))
            drawn.append((frame[chosen], nodes[chosen]))
    if not any(len(nodes) for _, nodes in drawn):
        by_row = (sizes > HUGE) | (largest <= HUGE)  # (node,) of these regions some of the rows are drawn
        drawn, seen = [], 0
        for frame, nodes in draft.raw_batches():
            rows = seen + np.arange(len(nodes))
            chosen = np.flatnonzero(drawn_regions(np.where(by_row[nodes], rows, nodes), share, seed))
            drawn.append((frame[chosen], nodes[chosen]))
            seen += len(nodes)
    used = np.flatnonzero(sizes)
    frames, node_parts = zip(*drawn, strict=True)
    drawn_draft = replace(draft, held_source=pl.concat(frames), held_nodes=np.concatenate(node_parts), scan=None)
    return LargeTable(used, sizes[used], counter.risk(draft.spec.privacy.k), drawn_draft)
