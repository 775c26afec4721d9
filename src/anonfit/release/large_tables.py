# SPDX-License-Identifier: Apache-2.0
"""Tables that are too large to be read as a whole, as reports need them: the sizes of all regions, the raw combinations
of all persons, and all rows of some regions that were drawn at random."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.metrics.groups import CombinationCounter, InitialRisk
from anonfit.release.result import Draft, raw_batches
from anonfit.tables.codebook import code_column
from anonfit.tables.ingesting import RawColumns, ScannedColumns
from anonfit.tables.schema import Domain, Role

if TYPE_CHECKING:
    import polars as pl

DRAWN = 1 << 20
"""About how many rows the drawn regions have."""
HUGE = 1 << 16
"""A region of more persons is not drawn as a whole."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class LargeTable:
    """What one reading of all rows gives. `drawn` is the same release with the rows of some regions only."""

    used: NDArray[np.int64]
    sizes: NDArray[np.int64]
    initial: InitialRisk
    drawn: Draft

    @property
    def drawn_rows(self) -> int:
        """The rows of the regions that were drawn."""
        return len(self.drawn.raw_rows)


def drawn_content(rows: int, of: int) -> dict[str, Any]:
    """What a report says of figures that rest on some regions, as plain data."""
    sentence = (
        "The table is large: predictions, the attack, rules, clusters, answers to queries and the comparison were "
        f"measured on rows of regions that were drawn at random, {rows:,} of {of:,} rows. All other figures are of "
        "all rows."
    )
    return {"rows": rows, "of": of, "sentence": sentence}


def released_table(draft: Draft) -> pl.DataFrame | pl.LazyFrame:
    """The released table; a large one is read from its file by who needs it."""
    if not draft.is_large:
        return draft.table
    assert draft.stored is not None
    return draft.stored.scan()


def raw_columns(draft: Draft) -> RawColumns:
    """The raw columns; of a large table each is read only when it is asked for."""
    if draft.is_large:
        assert draft.scan is not None
        return ScannedColumns(draft.scan)
    return draft.raw_rows


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
        each = groups["persons"].to_numpy()

        def persons(of_row: NDArray[np.int64], size: int, each: NDArray[np.int64] = each) -> NDArray[np.int64]:
            sums = np.zeros(size, np.int64)
            np.add.at(sums, of_row, each)
            return sums

        values = groups["value"].alias(column.name)
        domains.append(code_column(column, values, persons=persons, k=draft.spec.privacy.k).domain)
    return domains


def drawn_regions(nodes: NDArray[np.integer[Any]], share: float, seed: int) -> NDArray[np.bool_]:
    """Whether rows are of regions that are drawn: about this share of all regions, the same for every row of one."""
    keys = (nodes.astype(np.uint64) + np.uint64(seed) + np.uint64(1)) * _MIX
    keys ^= keys >> np.uint64(32)
    keys *= _MIX
    drawn: NDArray[np.bool_] = (keys >> np.uint64(11)) < np.uint64(int(share * 2**53))
    return drawn


class _Drawing:
    """Draws rows: all rows of some regions; of regions that are too large for that, some of the rows."""

    def __init__(self, draft: Draft, is_huge: NDArray[np.bool_] | None = None) -> None:
        """`is_huge` says of every node whether its region is too large; None: none is."""
        self.draft, self.is_huge = draft, is_huge
        self.share = min(1.0, DRAWN / max(1, draft.rows.released))
        self.seen = 0
        self.frames: list[pl.DataFrame] = []
        self.nodes: list[NDArray[np.int32]] = []

    def add(self, frame: pl.DataFrame, nodes: NDArray[np.int32]) -> None:
        """Some more rows."""
        seed = self.draft.spec.method.seed
        drawn = drawn_regions(nodes, self.share, seed)
        if self.is_huge is not None:
            rows = np.arange(self.seen, self.seen + len(nodes))
            drawn = np.where(self.is_huge[nodes], drawn_regions(rows, self.share, seed), drawn)
        self.seen += len(nodes)
        chosen = np.flatnonzero(drawn)
        self.frames.append(frame[chosen])
        self.nodes.append(nodes[chosen])

    def release(self) -> Draft:
        """The same release with the rows that were drawn only."""
        import polars as pl

        rows, nodes = pl.concat(self.frames), np.concatenate(self.nodes)
        return replace(self.draft, held_source=rows, held_nodes=nodes, scan=None)


def read_large(draft: Draft, largest: int) -> LargeTable:
    """Read all rows once; twice if the largest region, of so many persons, is too large to be drawn as a whole."""
    import polars as pl

    count = draft.schema.name_of(Role.COUNT)
    counter = CombinationCounter(has_counts=count is not None)
    sizes = np.zeros(draft.recoding.node_count, np.int64)
    drawing = _Drawing(draft) if largest <= HUGE else None
    for frame, nodes in raw_batches(draft):
        persons = None if count is None else frame[count].cast(pl.Int64).to_numpy()
        sizes += np.bincount(nodes, weights=persons, minlength=len(sizes)).astype(np.int64)
        counter.add(frame.select(draft.recoding.quasi_identifiers), persons)
        if drawing is not None:
            drawing.add(frame, nodes)
    if drawing is None:
        drawing = _Drawing(draft, sizes > HUGE)
        for frame, nodes in raw_batches(draft):
            drawing.add(frame, nodes)
    used = np.flatnonzero(sizes)
    return LargeTable(used, sizes[used], counter.risk(draft.spec.privacy.k), drawing.release())
