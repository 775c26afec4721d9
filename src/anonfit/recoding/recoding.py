# SPDX-License-Identifier: Apache-2.0
"""The recoding φ: sends any record to its region and writes what the region says. Made from a tree over a table's
codes: cuts are put between values, and the values are left behind. Saved as recoding.json, applied to any frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.engines.tree import Boxes, Grid, GridColumn, Tree, boxes_of, grid_column
from anonfit.errors import DataError, RecodingError, counted, listed
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.sql import DialectName, recoding_query
from anonfit.recoding.values import Unseen, Values, recode_frame
from anonfit.tables import schema
from anonfit.tables.codebook import typed
from anonfit.tables.scales import Cut, CutPoints, Scale, cuts_between, parse_cut, scale_of, thresholds
from anonfit.tables.schema import Domain, NominalDomain, OrderedDomain, OrdinalDomain


@dataclass(frozen=True)
class Recoding:
    """A tiling of the domain of the quasi-identifiers: every point lies in exactly one region.

    Its shape is a tree of splits, where a column may be divided differently in different places, or a grid, where
    every column is divided by itself.
    """

    columns: tuple[RecodedColumn, ...]
    shape: Tree | Grid

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """The names of the recoded columns."""
        return tuple(column.name for column in self.columns)

    @property
    def regions(self) -> int:
        """How many regions tile the domain, empty ones included."""
        return self.shape.regions

    @property
    def tree(self) -> Tree:
        """The tree of splits of a recoding that has one."""
        assert isinstance(self.shape, Tree)
        return self.shape

    @property
    def parents(self) -> NDArray[np.int64]:
        """(node,) the node that each was cut from, -1 for the root, which is the first. A grid has nodes for the
        regions that rows were found in, and no others; it may have more when more rows are routed.
        """
        if isinstance(self.shape, Grid):
            return np.append(-1, np.zeros(len(self.shape.met) - 1, np.int64))
        children = self.shape.children
        return np.append(-1, np.repeat(np.arange(len(children)), children))

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return len(self.shape.met if isinstance(self.shape, Grid) else self.shape.column)

    @property
    def boxes(self) -> Boxes:
        """The cells of each node."""
        return self.shape.boxes() if isinstance(self.shape, Grid) else self._tree_boxes

    @cached_property
    def _tree_boxes(self) -> Boxes:
        return boxes_of(self.tree, [column.size for column in self.columns])

    def cells(self, frame: pl.DataFrame, *, unseen: Unseen = Unseen.ERROR) -> list[NDArray[np.int32]]:
        """The cells of a frame's rows, an array per quasi-identifier; -1 for values the recoding does not know."""
        absent = [name for name in self.quasi_identifiers if name not in frame.columns]
        if absent:
            raise DataError(
                f"the table has no column {listed(absent)}; the recoding needs every quasi-identifier it was made with."
            )
        return [_cells(column, frame[column.name], unseen) for column in self.columns]

    def typed(self, frame: pl.DataFrame, name: str) -> pl.Series:
        """A quasi-identifier of a frame in the type that its cells are found by."""
        column = next(column for column in self.columns if column.name == name)
        return typed(_declared(column), frame[name])

    def nodes(self, cells: Sequence[NDArray[np.int32]], *, threads: int | None = None) -> NDArray[np.int32]:
        """The node that each row ends in: its region, or one that holds several where a value is not known."""
        if isinstance(self.shape, Grid):
            return self.shape.nodes(cells)
        from anonfit.engines.memory.route import route_table

        sizes = [column.size for column in self.columns]
        rows = len(cells[0]) if cells else 0
        # The last code of each column stands for a value that is not known.
        codes = tuple(
            np.where(own < 0, size, own).astype(schema.code_dtype(size + 1))
            for own, size in zip(cells, sizes, strict=True)
        )
        coded = tuple(
            schema.CodedColumn(column.name, size + 1, schema.SplitMode.ORDERED, column.has_missing, np.zeros(size + 1))
            for column, size in zip(self.columns, sizes, strict=True)
        )
        routes = [np.append(np.arange(size, dtype=np.int32), np.int32(-1)) for size in sizes]
        return route_table(schema.CodedTable(coded, codes, rows), self.tree, routes, sizes, threads=threads)

    def apply(self, frame: Any, *, unseen: str = "error", values: str = "labels") -> Any:
        """Recode a frame row for row: same kind of frame, same order, same other columns. Working data, not a release.

        Args:
            frame: A polars, pandas or Arrow frame with all quasi-identifiers.
            unseen: What becomes of a category that the recoding does not know: `error`, `ancestor` (the row is
                generalized as far as its value does not matter) or `suppress` (every quasi-identifier becomes `*`).
            values: `labels`, `bounds` or `representative`.

        Returns:
            The frame with its quasi-identifiers recoded.
        """
        return recode_frame(self, frame, unseen=unseen, values=values)

    @property
    def has_whole_numbers(self) -> bool:
        """Whether some column is of whole numbers between cuts."""
        return any(isinstance(column, OrderedCells) and column.is_whole for column in self.columns)

    def written(self, *, closed: bool) -> Recoding:
        """The same recoding, whose labels write intervals of whole numbers with both ends (38–42), or not."""
        columns = (
            replace(column, closed=closed) if isinstance(column, OrderedCells) and column.is_whole else column
            for column in self.columns
        )
        return replace(self, columns=tuple(columns))

    def to_json(self) -> str:
        """The recoding as the text of recoding.json."""
        return self._json

    @cached_property
    def _json(self) -> str:
        """Made once: the file is written from it, and the audit reads it."""
        from anonfit.recoding.storage import to_json

        return to_json(self)

    def to_sql(
        self, table: str, *, keep: Sequence[str] = (), values: str = "labels", dialect: DialectName = "postgresql"
    ) -> str:
        """The recoding as a query of a database. Its result is working data, no release: nothing is withheld or sorted.

        Args:
            table: The table to recode, as SQL writes its name.
            keep: Other columns to be selected as they are.
            values: `labels`, `bounds` or `representative`.
            dialect: The kind of database that is to understand it.

        Returns:
            The query; rows with a value that the recoding does not know are not in its result.
        """
        return recoding_query(self, table, keep=keep, values=Values(values), dialect=dialect)

    @classmethod
    def from_json(cls, text: str) -> Recoding:
        """Read the text of recoding.json."""
        from anonfit.recoding.storage import from_json

        return from_json(text)


def _declared(column: RecodedColumn) -> schema.Column:
    """What a recoding knows of a column, in the form in which values are typed."""
    return schema.Column(column.name, schema.Role.QUASI_IDENTIFIER, column.type, date_format=column.date_format)


def _cells(column: RecodedColumn, values: pl.Series, unseen: Unseen) -> NDArray[np.int32]:
    """The cells of a column's values, missing ones included."""
    values = typed(_declared(column), values)
    known = values.is_not_null().to_numpy()
    cells = np.full(len(values), 0 if column.has_missing else -1, np.int32)
    cells[known] = column.cells_of(values.drop_nulls())
    if isinstance(column, NominalCells) and column.other is not None:
        # Values that are not named are told apart from the named ones, and from each other by nothing.
        cells[known & (cells < 0)] = column.other_cell
    if unseen == Unseen.ERROR and not column.has_missing and not known.all():
        raise RecodingError(
            f"column '{column.name}': {counted(int((~known).sum()), 'value is', 'values are')} missing, but none was "
            "when the recoding was made; ask for unseen = 'suppress' or 'ancestor', or fill them."
        )
    if unseen == Unseen.ERROR and (cells < 0).any():
        raise RecodingError(
            f"column '{column.name}': {counted(int((cells < 0).sum()), 'row has', 'rows have')} a value that the "
            "recoding does not know; ask for unseen = 'suppress' or 'ancestor', or mend the data."
        )
    return cells


def _ordered(
    domain: OrderedDomain, starts: NDArray[np.int32], before: NDArray[np.int32], points: CutPoints
) -> tuple[OrderedCells, NDArray[np.int32]]:
    """The cells of an ordered column, and the cell at which each split's upper part starts."""
    shift = int(domain.has_missing)
    between = before >= shift  # the others part missing from all values: no cut is needed
    pairs, pair_of = np.unique(np.stack([before[between], starts[between]]), axis=1, return_inverse=True)
    placed = _cuts(domain, pairs - shift, points)
    is_whole = _is_whole(domain)
    # Of whole numbers as on their axis, also where these are floats.
    on_axis = np.ceil(thresholds(placed, domain.dtype)) if is_whole else thresholds(placed, domain.dtype)
    # Two texts may be one number on the axis of whole numbers (37.5 and 38): the first text is kept for both.
    axis_cuts, first, cut_of = np.unique(on_axis, return_index=True, return_inverse=True)
    cuts: tuple[Cut, ...] = tuple(placed[index] for index in first)
    scale = scale_of(domain.dtype)
    assert scale is not None
    ends = tuple(parse_cut(end, scale) for end in domain.declared)
    scale = Scale.WHOLE if is_whole else scale
    cells = OrderedCells(domain.name, domain.type, scale, cuts, domain.has_missing, ends, domain.date_format)
    at = np.full(len(starts), shift, np.int32)
    if len(axis_cuts):
        at[between] = cut_of[pair_of.ravel()] + 1 + shift
    return cells, at


def _is_whole(domain: OrderedDomain) -> bool:
    """Whether all values, and the ends of a declared domain, are whole numbers (as floats, exact ones)."""
    if scale_of(domain.dtype) != Scale.NUMBER or isinstance(domain.dtype, pl.Decimal):
        return False
    values = domain.values
    exact = domain.dtype.is_integer() or bool(((np.abs(values) < 2**53) & (values % 1 == 0)).all())
    return exact and all(float(str(end)).is_integer() for end in domain.declared)


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
    """The recoding of columns that are divided each by itself. For each column there are the part of each code (of
    ordered columns, parts are runs), the part of values that are suppressed (-1 without one), its domain, and cuts that
    are `given` already and stay where they are.
    """
    cuts = given or [()] * len(domains)
    pairs = [_grid_column(*column, points) for column in zip(parts, rests, domains, cuts, strict=True)]
    return Recoding(tuple(column for column, _ in pairs), Grid(tuple(cells for _, cells in pairs)))


def _grid_column(
    part_of: NDArray[np.int32], rest: int, domain: Domain, given: tuple[Cut, ...], points: CutPoints
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
        parts_whole = len(np.unique(np.ceil(thresholds(cuts, domain.dtype)))) == len(cuts)
        scale = cells.scale if parts_whole or cells.scale != Scale.WHOLE else Scale.NUMBER
        cells = replace(cells, cuts=tuple(cuts), scale=scale)
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
    return np.where(starts > shift, upper - lower, 0)


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
