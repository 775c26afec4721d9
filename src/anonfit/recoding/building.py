# SPDX-License-Identifier: Apache-2.0
"""From a tree over a table's codes to a recoding over cells: cuts are put between values, and the values are left
behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.tree import Tree
from anonfit.recoding.boxes import Grid, GridColumn, grid_column
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding
from anonfit.tables.scales import Cut, CutPoints, cuts_between, parse_cut, scale_of, thresholds
from anonfit.tables.schema import Domain, NominalDomain, OrderedDomain, OrdinalDomain


def _ordered(
    domain: OrderedDomain, starts: NDArray[np.int32], before: NDArray[np.int32], points: CutPoints
) -> tuple[OrderedCells, NDArray[np.int32]]:
    """The cells of an ordered column, and the cell at which each split's upper part starts."""
    shift = int(domain.has_missing)
    between = before >= shift  # the others part missing from all values: no cut is needed
    pairs, pair_of = np.unique(np.stack([before[between], starts[between]]), axis=1, return_inverse=True)
    placed = _cuts(domain, pairs - shift, points)
    on_axis = thresholds(placed, domain.dtype)
    # Two texts may be one number on the axis of whole numbers (37.5 and 38): the first text is kept for both.
    axis_cuts, first, cut_of = np.unique(on_axis, return_index=True, return_inverse=True)
    cuts: tuple[Cut, ...] = tuple(placed[index] for index in first)
    scale = scale_of(domain.dtype)
    assert scale is not None
    ends = tuple(parse_cut(end, scale) for end in domain.declared)
    cells = OrderedCells(domain.name, domain.type, scale, cuts, domain.has_missing, ends, domain.date_format)
    at = np.full(len(starts), shift, np.int32)
    if len(axis_cuts):
        at[between] = cut_of[pair_of.ravel()] + 1 + shift
    return cells, at


def _cuts(domain: OrderedDomain, pairs: NDArray[np.int32], points: CutPoints) -> list[Cut]:
    """A cut for each pair of places among the values: above the first and at most the second, or exactly at both."""
    cut_of_pair: list[Cut] = [""] * pairs.shape[1]
    exact = pairs[0] == pairs[1]
    for chosen, taken in ((exact, CutPoints.VALUE), (~exact, points)):
        places = np.flatnonzero(chosen)
        if len(places):
            lower, upper = domain.values[pairs[0, places]], domain.values[pairs[1, places]]
            cuts = cuts_between(lower, upper, domain.dtype, points=taken, values=domain.values)
            for place, cut in zip(places.tolist(), cuts, strict=True):
                cut_of_pair[place] = cut
    return cut_of_pair


def _named(domain: NominalDomain | OrdinalDomain) -> RecodedColumn:
    """The cells of a column whose every name is one."""
    if isinstance(domain, OrdinalDomain):
        return OrdinalCells(domain.name, domain.order, domain.has_missing)
    return NominalCells(domain.name, domain.taxonomy, domain.has_missing, domain.other, domain.type, domain.date_format)


def build_recoding(tree: Tree, domains: Sequence[Domain], *, points: CutPoints) -> Recoding:
    """The recoding of a grown tree."""
    start = tree.start.copy()
    columns: list[RecodedColumn] = []
    parent = np.repeat(np.arange(len(tree.column)), tree.children)
    below = np.arange(1, len(tree.column))
    for index, domain in enumerate(domains):
        if isinstance(domain, OrderedDomain):
            upper = below[(tree.column[parent] == index) & (tree.before[below] >= 0)]  # upper children of its splits
            cells, start[upper] = _ordered(domain, tree.start[upper], tree.before[upper], points)
            columns.append(cells)
        else:
            columns.append(_named(domain))
    built = Tree(tree.column, tree.children, start, np.full_like(tree.before, -1), tree.set_of, tree.sets)
    recoding = Recoding(tuple(columns), built)
    _start_first_parts(recoding, parent)
    return recoding


def _start_first_parts(recoding: Recoding, parent: NDArray[np.int64]) -> None:
    """Let each first part start where its parent does, in cells: only for people who read the file."""
    tree = recoding.tree
    below = np.arange(1, len(tree.column))
    is_first = np.append(True, parent[1:] != parent[:-1]) if len(parent) else np.zeros(0, bool)
    ordered = np.array([isinstance(column, OrderedCells) for column in recoding.columns])
    chosen = below[is_first & ordered[tree.column[parent]]] if len(below) else below
    tree.start[chosen] = 0
    if len(chosen):
        tree.start[chosen] = recoding.boxes.first[parent[chosen - 1], tree.column[parent[chosen - 1]]]


def build_grid(
    parts: Sequence[NDArray[np.int32]],
    rests: Sequence[int],
    domains: Sequence[Domain],
    *,
    points: CutPoints,
    given: Sequence[tuple[Cut, ...]] | None = None,
) -> Recoding:
    """The recoding of columns that are divided each by itself.

    Args:
        parts: For each column, the part of each code; of ordered columns, parts are runs.
        rests: For each column, the part of values that are suppressed, -1 without one.
        domains: The columns' domains.
        points: Where cuts are put.
        given: For each column, cuts that are there already, and stay where they are.

    Returns:
        The recoding.
    """
    columns, grid = [], []
    for part_of, rest, domain, cuts in zip(parts, rests, domains, given or [()] * len(domains), strict=True):
        column, cells = _grid_column(part_of, rest, domain, points, cuts)
        columns.append(column)
        grid.append(cells)
    return Recoding(tuple(columns), Grid(tuple(grid)))


def _grid_column(
    part_of: NDArray[np.int32], rest: int, domain: Domain, points: CutPoints, given: tuple[Cut, ...]
) -> tuple[RecodedColumn, GridColumn]:
    """A column's cells and their parts."""
    if not isinstance(domain, OrderedDomain):
        return _named(domain), grid_column(part_of, rest)
    starts = (np.flatnonzero(part_of[1:] != part_of[:-1]) + 1).astype(np.int32)
    if given:
        starts = starts[_between(domain, starts, given) == 0]
    cells, at = _ordered(domain, starts, starts - 1, points)
    if given:
        cuts = sorted({*cells.cuts, *given})
        cells = replace(cells, cuts=tuple(cuts))
        at = np.arange(1, len(cuts) + 1, dtype=np.int32) + np.int32(domain.has_missing)
        if domain.has_missing and len(part_of) > 1 and part_of[0] != part_of[1]:
            at = np.append(at, np.int32(1))  # missing stands alone
    begins = np.zeros(cells.size, np.int32)
    begins[at] = 1
    return cells, grid_column(np.cumsum(begins))


def _between(domain: OrderedDomain, starts: NDArray[np.int32], given: tuple[Cut, ...]) -> NDArray[np.int64]:
    """How many cuts lie above the value before each start and not above the one at it; none before the first value."""
    on_axis = np.sort(thresholds(given, domain.dtype))
    shift = int(domain.has_missing)
    upper = np.searchsorted(on_axis, domain.values[starts - shift], side="right")
    lower = np.searchsorted(on_axis, domain.values[np.maximum(starts - 1 - shift, 0)], side="right")
    gaps: NDArray[np.int64] = np.where(starts > shift, upper - lower, 0)
    return gaps


def cells_of_codes(recoding: Recoding, domains: Sequence[Domain]) -> list[NDArray[np.int32]]:
    """The cell of each code of each column, found from the values the codes stand for as it is for any other value."""
    by_column = []
    for column, domain in zip(recoding.columns, domains, strict=True):
        if isinstance(domain, OrderedDomain) and isinstance(column, OrderedCells):
            cells = column.cells_on_axis(domain.values, domain.dtype)
            by_column.append(np.concatenate([np.zeros(int(domain.has_missing), np.int32), cells]))
        else:
            by_column.append(np.arange(column.size, dtype=np.int32))
    return by_column
