# SPDX-License-Identifier: Apache-2.0
"""What top-down refinement begins with when it is given a recoding: its parts in the codes of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.refining_columns import ColumnPart
from anonfit.errors import Infeasible, RequestError
from anonfit.recoding.boxes import Grid, GridColumn
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding
from anonfit.tables.scales import Cut, parse_cut, scale_of
from anonfit.tables.schema import MISSING, Domain, NominalDomain, NominalSplit, OrderedDomain, OrdinalDomain


@dataclass(frozen=True, slots=True)
class Start:
    """The parts of every column to begin with, and the cuts between them: they stay where they are, also where no row
    is on one side.
    """

    parts: tuple[tuple[ColumnPart, ...], ...]
    cuts: tuple[tuple[Cut, ...], ...]


def start_of(recoding: Recoding, domains: Sequence[Domain]) -> Start:
    """The parts of a recoding in which every column is divided by itself, in the codes of a table."""
    if not isinstance(recoding.shape, Grid):
        raise RequestError(
            "the recoding to start from divides columns together; top-down refinement starts from one that it made "
            "itself (version 2 in docs/recoding.md)."
        )
    known = dict(
        zip(recoding.quasi_identifiers, zip(recoding.columns, recoding.shape.columns, strict=True), strict=True)
    )
    if known.keys() != {domain.name for domain in domains}:
        raise RequestError("the recoding to start from is one of other quasi-identifiers than the table has.")
    parts, cuts = zip(*(_column(domain, *known[domain.name]) for domain in domains), strict=True)
    return Start(parts, cuts)


def _column(domain: Domain, column: RecodedColumn, grid: GridColumn) -> tuple[tuple[ColumnPart, ...], tuple[Cut, ...]]:
    """A column's parts in codes, and the cuts between them."""
    if isinstance(domain, OrderedDomain) and isinstance(column, OrderedCells):
        cuts = _cuts(domain, column, grid)
        cells = column.cells_on_axis(domain.values, domain.dtype)
        if (cells < 0).any():
            raise _misfit(domain, "has values outside the domain that it declares")
        return _runs(_with_missing(domain, column, cells), grid), cuts
    if isinstance(domain, OrdinalDomain) and isinstance(column, OrdinalCells):
        if domain.order != column.order:
            raise _misfit(domain, "has another order there")
        cells = np.arange(len(domain.order), dtype=np.int32) + int(column.has_missing)
        return _runs(_with_missing(domain, column, cells), grid), ()
    if isinstance(domain, NominalDomain) and isinstance(column, NominalCells):
        named = _disclosed if domain.split == NominalSplit.SUBSET else _nodes
        return named(domain, column, grid), ()
    raise _misfit(domain, "is of another kind there (numbers, dates, words in an order, or names)")


def _misfit(domain: Domain, why: str) -> RequestError:
    return RequestError(
        f"the recoding to start from does not fit: column '{domain.name}' {why}; mend it, or start without it."
    )


def _cuts(domain: OrderedDomain, column: OrderedCells, grid: GridColumn) -> tuple[Cut, ...]:
    """The cuts between parts; one between cells of the same part is none."""
    scale, shift = scale_of(domain.dtype), int(column.has_missing)
    if scale != column.scale:
        raise _misfit(domain, "has cuts of another kind there")
    cuts = tuple(cut for cut, parts in zip(column.cuts, np.diff(grid.part_of[shift:]).tolist(), strict=True) if parts)
    if domain.declared:
        low, high = (parse_cut(end, scale) for end in domain.declared)
        if not all(low < cut <= high for cut in cuts):  # type: ignore[operator]
            raise _misfit(domain, "has cuts outside its domain")
    return cuts


def _with_missing(
    domain: OrderedDomain | OrdinalDomain, column: RecodedColumn, cells: NDArray[np.int32]
) -> NDArray[np.int32]:
    """The cell of each code, from those of codes that are not missing."""
    if not domain.has_missing:
        return cells
    if not column.has_missing:
        raise _misfit(domain, "has missing values, which it does not know")
    return np.append(np.int32(MISSING), cells)


def _runs(cells: NDArray[np.int32], grid: GridColumn) -> tuple[ColumnPart, ...]:
    """Runs of codes that lie in one part."""
    parts = grid.part_of[cells]
    edges = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(parts)]
    return tuple(ColumnPart(range(first, stop)) for first, stop in pairwise(edges) if stop > first)


def _nodes(domain: NominalDomain, column: NominalCells, grid: GridColumn) -> tuple[ColumnPart, ...]:
    """Nodes of the table's taxonomy, each one of the recoding's parts."""
    taxonomy, shift = domain.taxonomy, int(domain.has_missing)
    places = [column.taxonomy.leaf_position.get(leaf) for leaf in taxonomy.leaves]
    if None in places:
        raise _misfit(domain, "has a taxonomy with other leaves than there")
    cells = np.array([place + int(column.has_missing) for place in places if place is not None], np.int32)
    parts = grid.part_of[cells]
    if shift:
        parts = np.append(grid.part_of[MISSING] if column.has_missing else -1, parts)
    if (parts == parts[0]).all():
        return (ColumnPart(range(len(parts)), 0),)
    top: dict[tuple[int, int], int] = {}  # the topmost node over each run of leaves
    for node, run in enumerate(zip(taxonomy.first_leaf, taxonomy.last_leaf, strict=True)):
        top.setdefault(run, node)
    nodes = []
    for first, *rest in (np.flatnonzero(parts == number).tolist() for number in dict.fromkeys(parts.tolist())):
        last = rest[-1] if rest else first
        over = top.get((first - shift, last - shift))
        is_missing = bool(shift) and first == last == MISSING
        if last - first != len(rest) or (over is None and not is_missing):
            raise _misfit(domain, "has a part there that is no node of its taxonomy")
        nodes.append(ColumnPart(range(first, last + 1), None if is_missing else over))
    return tuple(sorted(nodes, key=lambda part: part.codes[0]))


def _disclosed(domain: NominalDomain, column: NominalCells, grid: GridColumn) -> tuple[ColumnPart, ...]:
    """The values that are disclosed, and the rest. Those that the recoding has no name for are in the rest."""
    if (np.delete(np.bincount(grid.part_of), [] if grid.rest < 0 else [grid.rest]) > 1).any():
        raise _misfit(domain, "has several values in one part there, and no taxonomy that names them")

    def is_shown(leaf: str) -> bool:
        cell = column.taxonomy.leaf_position[leaf] + int(column.has_missing)
        return int(grid.part_of[cell]) != grid.rest

    shift, places = int(domain.has_missing), domain.taxonomy.leaf_position
    named = [leaf for leaf in column.taxonomy.leaves if leaf != column.other and is_shown(leaf)]
    absent = [leaf for leaf in named if leaf not in places or leaf == domain.other]
    if absent:
        raise Infeasible(
            f"the recoding to start from discloses {len(absent)} value(s) of column '{domain.name}' that too few "
            "persons have, or none; suppress them there (-1), or start without it."
        )
    codes = [places[leaf] + shift for leaf in named]
    if domain.other is not None and column.other is not None and is_shown(column.other):
        codes.append(places[domain.other] + shift)
    if shift and column.has_missing and int(grid.part_of[MISSING]) != grid.rest:
        codes.append(MISSING)
    shown = tuple(ColumnPart(range(code, code + 1)) for code in sorted(codes))
    rest = tuple(sorted(set(range(len(places) + shift)) - set(codes)))
    return (*shown, ColumnPart(rest, is_rest=True)) if rest else shown
