# SPDX-License-Identifier: Apache-2.0
"""The released table: regions for quasi-identifiers, raw columns as they were, in an order that tells nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.result import Anonymized
from anonfit.engines.contract import Placing
from anonfit.engines.memory.layout import code_name
from anonfit.engines.memory.route import RankedRegions
from anonfit.engines.memory.write import sort_keys
from anonfit.engines.tree import Grid, bits_of_pairs, different_sets
from anonfit.recoding.columns import MISSING, OR_MISSING, NominalCells, OrderedCells, OrdinalCells
from anonfit.recoding.recoding import Recoding, cells_of_codes
from anonfit.recoding.values import Values, label_series, region_values
from anonfit.runtime.process import thread_count
from anonfit.tables.frames import enumerated, rebuilt, reordered
from anonfit.tables.scales import on_axis, on_axis_text

if TYPE_CHECKING:
    import polars as pl

NUMBER = r"^[+-]\s?[\d.,]*(?:[eE][+-]?\d+)?\s?%?$"
"""A text with a sign that is a number, or the sign alone."""

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
        labels.append(OR_MISSING + label if gaps[group] and filled[group] else label)
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


def observed_labels(recoding: Recoding, frame: pl.DataFrame, groups: Groups, count: int) -> dict[str, list[pl.Series]]:
    """For each quasi-identifier the labels of what each group's records have; every group has some."""
    cells = recoding.cells(frame)
    order = np.argsort(groups, kind="stable")
    labels = {}
    for column, of_rows in zip(recoding.columns, cells, strict=True):
        if isinstance(column, NominalCells):
            sets, which = different_sets(bits_of_pairs(groups[order], of_rows[order], count, column.size))
            texts = column.labels(sets), which
        elif isinstance(column, OrdinalCells):
            texts = _ordinal(column, of_rows, groups, count)
        else:
            assert isinstance(column, OrderedCells)
            texts = _ordered(column, recoding.typed(frame, column.name), groups, count)
        labels[column.name] = [label_series(column.name, *texts)]
    return labels


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

    nodes, numbers = result.nodes, result.numbers
    begins = np.append(0, np.flatnonzero(nodes[1:] != nodes[:-1]) + 1)[: len(nodes)]  # of runs of equal nodes
    is_used = np.zeros(result.recoding.node_count, bool)
    is_used[nodes] = True
    used = np.flatnonzero(is_used).astype(np.int32)
    groups = (np.cumsum(is_used, dtype=np.int32) - 1)[nodes[begins]]
    if len(numbers) < len(frame) or order == "original":
        kept = np.sort(numbers)
        frame, numbers = frame[kept], np.searchsorted(kept, numbers).astype(np.uint32)
    if observed:
        written = observed_labels(result.recoding, frame, _by_row(groups, begins, numbers), len(used))
    else:
        written = region_values(result.recoding, used, values)
    regions = pl.DataFrame([part for name in names for part in written.get(name, [])])
    raw = frame.select([name for name in names if name not in written])
    # An Enum brings all its categories into the file, also those of nobody who is released.
    raw = raw.with_columns(pl.col(pl.Enum).cast(pl.String))
    if order == "original":
        regions, raw = regions[_by_row(groups, begins, numbers)], rebuilt(raw)
    else:
        rank, of_rank = region_ranks(regions)
        with ThreadPoolExecutor(thread_count()) as pool:
            raw = pl.DataFrame(list(pool.map(enumerated, raw)))
        keys = sort_keys(raw.get_columns())
        numbers, edges = order_rows(rank[groups], begins, numbers, len(of_rank), keys, threads=threads)
        regions = _repeated(regions[of_rank], np.diff(edges))
        raw = reordered(raw, numbers)
    regions = rebuilt(regions)
    columns = [
        column
        for name in names
        for column in ([regions[part.name] for part in written[name]] if name in written else [raw[name]])
    ]
    return pl.DataFrame(columns)


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


def formula_columns(table: pl.DataFrame | pl.LazyFrame) -> list[str]:
    """The columns of a table with a name or a text that a spreadsheet takes for a formula; numbers are none."""
    import polars as pl

    def runs(texts: pl.Expr) -> pl.Expr:
        return (~texts.filter(texts.str.contains(r"^[=+\-@\t\r]")).str.contains(NUMBER)).any()

    dictionary = pl.Categorical | pl.Enum
    schema = table.collect_schema()
    asked = [
        runs((pl.col(name).unique() if isinstance(dtype, dictionary) else pl.col(name)).cast(pl.String)).alias(name)
        for name, dtype in schema.items()
        if isinstance(dtype, pl.String | dictionary)
    ]
    of_texts = table.lazy().select(asked).collect(engine="streaming").row(0, named=True) if asked else {}
    of_names = pl.select(runs(pl.lit(name)).alias(name) for name in schema).row(0, named=True)
    return [name for name in schema if of_texts.get(name) or of_names[name]]


def different_labels(table: pl.DataFrame | pl.LazyFrame, name: str) -> int | None:
    """How many different labels a released column has; None where it is released as bounds."""
    import polars as pl

    dtype = table.collect_schema().get(name)
    if dtype is None:
        return None
    if isinstance(dtype, pl.Enum):
        return len(dtype.categories)
    if isinstance(table, pl.DataFrame):
        return table[name].n_unique()
    return int(table.select(pl.col(name).n_unique()).collect(engine="streaming").item())
