# SPDX-License-Identifier: Apache-2.0
"""The released table: regions for quasi-identifiers, raw columns as they were, in an order that tells nothing; and what
reports need of a table that is too large to be read as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.result import Anonymized
from anonfit.engines.contract import Placing
from anonfit.engines.levels.shape import RankedRegions, code_name
from anonfit.engines.memory.write import sort_keys
from anonfit.engines.tree import bits_of_pairs, different_sets
from anonfit.metrics.groups import CombinationCounter, InitialRisk
from anonfit.recoding.boxes import Grid
from anonfit.recoding.columns import MISSING, NominalCells, OrderedCells, OrdinalCells, with_missing
from anonfit.recoding.recoding import Recoding, cells_of_codes
from anonfit.recoding.values import Values, label_series, region_values
from anonfit.release.result import Draft, raw_batches
from anonfit.runtime.threads import thread_count
from anonfit.tables.codebook import code_column
from anonfit.tables.frames import rebuilt
from anonfit.tables.ingesting import RawColumns, ScannedColumns
from anonfit.tables.scales import on_axis, on_axis_text
from anonfit.tables.schema import Domain, Role

if TYPE_CHECKING:
    import polars as pl

Groups = NDArray[np.int32]
"""The group of each row."""

Texts = tuple[list[str], NDArray[np.int64]]
"""Labels, and which of them each group has."""


def _ordered(column: OrderedCells, values: pl.Series, groups: Groups, count: int) -> Texts:
    """The closed range of the values of each group."""
    known = values.is_not_null().to_numpy()
    axis, of_group = on_axis(values.drop_nulls()), groups[known]
    low = np.full(count, axis.max(initial=0), axis.dtype)
    high = np.full(count, axis.min(initial=0), axis.dtype)
    np.minimum.at(low, of_group, axis)
    np.maximum.at(high, of_group, axis)
    filled = np.bincount(of_group, minlength=count) > 0
    gaps = np.bincount(groups[~known], minlength=count) > 0
    dtype: pl.DataType = values.dtype
    ends, end_of = np.unique(np.concatenate([low, high]), return_inverse=True)
    values_of = [on_axis_text(end, dtype) for end in ends]
    labels = []
    for group, (first, last) in enumerate(zip(end_of[:count].tolist(), end_of[count:].tolist(), strict=True)):
        label = column.interval(values_of[first], values_of[last], closed=True) if filled[group] else MISSING
        labels.append(with_missing(label) if gaps[group] and filled[group] else label)
    return labels, np.arange(count)


def _ordinal(column: OrdinalCells, cells: NDArray[np.int32], groups: Groups, count: int) -> Texts:
    """The words from the lowest to the highest of each group, and missing if it is there."""
    shift = int(column.has_missing)
    known = cells >= shift
    low, high = np.full(count, column.size, np.int64), np.full(count, -1, np.int64)
    np.minimum.at(low, groups[known], cells[known])
    np.maximum.at(high, groups[known], cells[known])
    gaps = np.bincount(groups[~known], minlength=count) > 0
    parts, which = np.unique(np.stack([gaps, low, high]), axis=1, return_inverse=True)
    labels = [column.label([*range(gap), *range(first, last + 1)]) for gap, first, last in parts.T.tolist()]
    return labels, which.ravel()


def _nominal(column: NominalCells, cells: NDArray[np.int32], groups: Groups, count: int) -> Texts:
    """The names of the values of each group; the rows stand in the order of their groups."""
    sets, which = different_sets(bits_of_pairs(groups, cells, count, column.size))
    return column.labels(sets), which


def observed_labels(recoding: Recoding, frame: pl.DataFrame, groups: Groups, count: int) -> dict[str, list[pl.Series]]:
    """For each quasi-identifier the labels of what each group's records have; every group has some."""
    cells = recoding.cells(frame)
    order = np.argsort(groups, kind="stable")
    labels = {}
    for column, of_rows in zip(recoding.columns, cells, strict=True):
        if isinstance(column, NominalCells):
            texts = _nominal(column, of_rows[order], groups[order], count)
        elif isinstance(column, OrdinalCells):
            texts = _ordinal(column, of_rows, groups, count)
        else:
            assert isinstance(column, OrderedCells)
            texts = _ordered(column, recoding.typed(frame, column.name), groups, count)
        labels[column.name] = [label_series(column.name, *texts)]
    return labels


def _used(nodes: NDArray[np.int32], count: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The nodes there are among these, and the place of each among them."""
    is_used = np.zeros(count, bool)
    is_used[nodes] = True
    used = np.flatnonzero(is_used).astype(np.int32)
    place = np.cumsum(is_used, dtype=np.int32) - 1
    return used, place[nodes]


def _begins(nodes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Where runs of equal nodes begin."""
    return np.append(0, np.flatnonzero(nodes[1:] != nodes[:-1]) + 1)[: len(nodes)]


def _by_row(groups: NDArray[np.int32], begins: NDArray[np.int64], numbers: NDArray[np.uint32]) -> NDArray[np.int32]:
    """The groups of runs in the order of row numbers."""
    by_row = np.empty(len(numbers), np.int32)
    by_row[numbers] = np.repeat(groups, np.diff(np.append(begins, len(numbers))))
    return by_row


def region_ranks(regions: pl.DataFrame) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The rank of each region by what it says, equal ones alike, and one region of each rank.

    Texts are ordered by code point, numbers by value, empty first.
    """
    import polars as pl

    index = "row" + max(regions.columns, key=len, default="")  # longer than any name that is there
    ordered = regions.with_row_index(index).sort(regions.columns, nulls_last=False)
    differs = [pl.col(name).ne_missing(pl.col(name).shift(1)) for name in regions.columns]
    is_new = ordered.select(pl.any_horizontal(differs)).to_series().to_numpy().copy()
    is_new[:1] = True
    places = ordered[index].to_numpy().astype(np.int32)
    rank = np.empty(len(places), np.int32)
    rank[places] = np.cumsum(is_new) - 1
    return rank, places[is_new]


def _repeated(regions: pl.DataFrame, times: NDArray[np.int64]) -> pl.DataFrame:
    """Each row so many times."""
    import polars as pl

    def repeated(column: pl.Series) -> pl.Series:
        if isinstance(column.dtype, pl.Enum):
            return pl.Series(column.name, np.repeat(column.to_physical().to_numpy(), times)).cat.to(column.dtype)
        return column.gather(np.repeat(np.arange(len(column)), times))

    with ThreadPoolExecutor(thread_count()) as pool:
        return pl.DataFrame(list(pool.map(repeated, regions)))


def released_table(
    result: Anonymized,
    frame: pl.DataFrame,
    *,
    names: Sequence[str],
    values: Values,
    observed: bool = False,
    order: str = "sorted",
    threads: int | None = None,
) -> pl.DataFrame:
    """The table to release: the columns `names` of the input, in that order, its rows sorted or as they came.

    Sorted rows are ordered by the quasi-identifiers first, then by the other columns, both in the order of `names`.
    """
    import polars as pl

    from anonfit.engines.memory.write import order_rows

    begins = _begins(result.nodes)
    used, groups = _used(result.nodes[begins], result.recoding.node_count)
    numbers = result.numbers
    if len(numbers) < len(frame) or order == "original":
        kept = np.sort(numbers)
        frame, numbers = frame[kept], np.searchsorted(kept, numbers).astype(np.uint32)
    written = (
        observed_labels(result.recoding, frame, _by_row(groups, begins, numbers), len(used))
        if observed
        else region_values(result.recoding, used, values)
    )
    regions = pl.DataFrame([part for name in names for part in written.get(name, [])])
    raw = frame.select([name for name in names if name not in written])
    # An Enum brings all its categories into the file, also those of nobody who is released.
    raw = raw.with_columns(pl.col(pl.Enum).cast(pl.String))
    if order == "original":
        regions = regions[_by_row(groups, begins, numbers)]
    else:
        rank, of_rank = region_ranks(regions)
        keys = sort_keys(raw.get_columns())
        numbers, edges, words = order_rows(rank[groups], begins, numbers, len(of_rank), keys.words, threads=threads)
        regions = _repeated(regions[of_rank], np.diff(edges))
        raw = pl.DataFrame(keys.in_order(words, numbers))
    columns = [
        column
        for name in names
        for column in ([regions[part.name] for part in written[name]] if name in written else [raw[name]])
    ]
    return rebuilt(pl.DataFrame(columns))


@dataclass(frozen=True, slots=True)
class RankedGrid:
    """The parts of codes, and the rank of each combination of parts that rows have."""

    grid: Grid
    cells: tuple[NDArray[np.int32], ...]
    rank_of_node: NDArray[np.int64]  # (node,)
    regions: pl.DataFrame

    @property
    def fields(self) -> Sequence[str]:
        """The fields that ranks are found from."""
        return [code_name(column) for column in range(len(self.cells))]

    def ranks(self, codes: Mapping[str, NDArray[Any]]) -> NDArray[np.uint32]:
        """The rank of each row, from its codes."""
        nodes = self.grid.nodes([cells[codes[name]] for cells, name in zip(self.cells, self.fields, strict=True)])
        ranks: NDArray[np.uint32] = self.rank_of_node[nodes].astype(np.uint32)
        return ranks


def placing_of(result: Anonymized, names: Sequence[str], values: Values) -> tuple[Placing, tuple[str, ...]]:
    """The ranks of regions by what they say, and the names of the released table's columns in the order of `names`."""
    import polars as pl

    from anonfit.engines.memory.route import make_routes

    recoding, used = result.recoding, result.used
    written = region_values(recoding, used, values)
    regions = pl.DataFrame([part for name in names for part in written.get(name, [])])
    rank, of_rank = region_ranks(regions)
    rank_of_node = np.full(recoding.node_count, -1, np.int64)
    rank_of_node[used] = rank
    cells = cells_of_codes(recoding, result.domains)
    final = [part for name in names for part in ([part.name for part in written[name]] if name in written else [name])]
    if isinstance(recoding.shape, Grid):
        return RankedGrid(recoding.shape, tuple(cells), rank_of_node, regions[of_rank]), tuple(final)
    routes = make_routes(recoding.tree, cells, [column.size for column in recoding.columns])
    return RankedRegions(result.columns, routes, rank_of_node, regions[of_rank]), tuple(final)


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


def drafted_table(draft: Draft) -> pl.DataFrame | pl.LazyFrame:
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
    """Read all rows once; twice if the largest region, of so many persons, is too large to be drawn as a whole, or if
    chance drew no region.
    """
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
    if drawing is None or not any(map(len, drawing.nodes)):
        drawing = _Drawing(draft, (sizes > HUGE) | (drawing is not None))
        for frame, nodes in raw_batches(draft):
            drawing.add(frame, nodes)
    used = np.flatnonzero(sizes)
    return LargeTable(used, sizes[used], counter.risk(draft.spec.privacy.k), drawing.release())
