# SPDX-License-Identifier: Apache-2.0
"""Tables that are too large to be read as a whole, as reports need them: the sizes of all regions, the raw combinations
of all persons, and all rows of some regions that were drawn at random."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.made import Made
from anonfit.report.initial import CombinationCounter, InitialRisk
from anonfit.tables.scanned import RawColumns, ScannedColumns
from anonfit.tables.schema import Role

if TYPE_CHECKING:
    import polars as pl

__all__ = ["LargeTable", "drawn_content", "drawn_regions", "raw_columns", "read_large", "released_table"]

BATCH = 1 << 20
"""Rows that are read at once."""
DRAWN = 1 << 20
"""Rows of the regions that are drawn, about."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class LargeTable:
    """What one reading of all rows gives. `drawn` is the same release with the rows of some regions only."""

    used: NDArray[np.int64]
    sizes: NDArray[np.int64]
    initial: InitialRisk
    drawn: Made

    @property
    def drawn_rows(self) -> int:
        """The rows of the regions that were drawn."""
        assert self.drawn.source is not None
        return len(self.drawn.source)


def drawn_content(rows: int, of: int) -> dict[str, Any]:
    """What a report says of figures that rest on some regions, as plain data."""
    sentence = (
        "The table is large: predictions, the attack, rules, clusters and the comparison were measured on all rows of "
        f"regions that were drawn at random, {rows:,} of {of:,} rows. All other figures are of all rows."
    )
    return {"rows": rows, "of": of, "sentence": sentence}


def released_table(made: Made) -> pl.DataFrame | pl.LazyFrame:
    """The released table; a large one is read from its file by who needs it."""
    if not made.is_large:
        return made.table
    assert made.stored is not None
    return made.stored.scan()


def raw_columns(made: Made) -> RawColumns:
    """The raw columns, as far as it takes to know what they hold."""
    if made.is_large:
        assert made.scan is not None
        return ScannedColumns(made.scan)
    assert made.source is not None
    return made.source


def _batches(rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    yield from rows.collect_batches(chunk_size=BATCH, maintain_order=True, engine="streaming")


def drawn_regions(nodes: NDArray[np.integer[Any]], share: float, seed: int) -> NDArray[np.bool_]:
    """Whether rows are of regions that are drawn: about this share of all regions, the same for every row of one."""
    keys = (nodes.astype(np.uint64) + np.uint64(seed) + np.uint64(1)) * _MIX
    keys ^= keys >> np.uint64(32)
    keys *= _MIX
    drawn: NDArray[np.bool_] = (keys >> np.uint64(11)) < np.uint64(int(share * 2**53))
    return drawn


def read_large(made: Made) -> LargeTable:
    """Read all rows once."""
    import polars as pl

    assert made.scan is not None
    recoding = made.recoding
    count = next((column.name for column in made.schema.of_role(Role.COUNT)), None)
    counter = CombinationCounter(has_counts=count is not None)
    sizes = np.zeros(recoding.node_count, np.int64)
    kept: list[pl.DataFrame] = []
    kept_nodes: list[NDArray[np.int32]] = []
    share = min(1.0, DRAWN / max(1, made.rows.released))
    for frame in _batches(made.scan):
        nodes = recoding.nodes(recoding.cells(frame))
        persons = None if count is None else frame[count].cast(pl.Int64).to_numpy()
        sizes += np.bincount(nodes, weights=persons, minlength=len(sizes)).astype(np.int64)
        counter.add(frame.select(recoding.quasi_identifiers), persons)
        drawn = np.flatnonzero(drawn_regions(nodes, share, made.spec.method.seed))
        kept.append(frame[drawn])
        kept_nodes.append(nodes[drawn])
    used = np.flatnonzero(sizes)
    some = replace(
        made,
        held_source=pl.concat(kept),
        held_nodes=np.concatenate(kept_nodes),
        scan=None,
    )
    return LargeTable(used, sizes[used], counter.risk(made.spec.privacy.k), some)
