# SPDX-License-Identifier: Apache-2.0
"""A recoding as one SQL query. Values become numbers; tables of constants say by which bounds a row goes from a node of
the tree to one further down, some levels at a time, and what each region says. So a database joins tables, which it
does well, and reads no large expression, which some plan or compile without end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import heappop, heappush
from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.tree import LEAF, Grid, Tree
from anonfit.errors import RecodingError, did_you_mean
from anonfit.recoding.columns import NominalCells, OrderedCells, RecodedColumn
from anonfit.recoding.values import Values, region_values
from anonfit.tables.scales import Cut, Scale
from anonfit.tables.schema import ColumnType

if TYPE_CHECKING:
    from anonfit.recoding.recoding import Recoding


DialectName = Literal["postgresql", "duckdb", "sqlite", "mysql", "mariadb", "mssql"]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = {
    "postgresql": "CAST(EXTRACT(EPOCH FROM CAST({} AS TIMESTAMP)) * 1000000 AS DOUBLE PRECISION)",
    "duckdb": "CAST(epoch_us(CAST({} AS TIMESTAMP)) AS DOUBLE PRECISION)",
    "sqlite": "(strftime('%s', {0}) * 1000000e0 + substr(strftime('%f', {0}), 4) * 1000e0)",
    "mysql": "CAST(TIMESTAMPDIFF(MICROSECOND, TIMESTAMP '1970-01-01 00:00:00', {}) AS DOUBLE)",
    "mariadb": "CAST(TIMESTAMPDIFF(MICROSECOND, TIMESTAMP '1970-01-01 00:00:00', {}) AS DOUBLE)",
    "mssql": "CAST(DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2), CAST({} AS DATETIME2)) AS FLOAT)",
}
"""Microseconds since 1970."""


def number(value: float) -> str:
    """A number as floating point in every dialect: others take one without an exponent for an exact one."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def edge(cut: Cut, scale: Scale) -> float:
    """A cut on the line of numbers that values of its scale are put on: of dates and moments, microseconds."""
    if scale.is_number:
        return float(cut)
    moment = datetime.fromisoformat(str(cut))
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return float((moment - EPOCH) // datetime.resolution)


@dataclass(frozen=True, slots=True)
class SqlDialect:
    """One of the kinds of SQL."""

    name: DialectName

    @property
    def is_mysql(self) -> bool:
        """Whether it is MySQL or its sister."""
        return self.name in ("mysql", "mariadb")

    @property
    def recursive(self) -> bool:
        """Whether it walks down a tree by recursion; SQL Server does so a row at a time."""
        return self.name != "mssql"

    @property
    def double(self) -> str:
        """The type of floating point numbers."""
        return "DOUBLE" if self.is_mysql else "FLOAT" if self.name == "mssql" else "DOUBLE PRECISION"

    def quoted(self, name: str) -> str:
        """A name."""
        if self.is_mysql:
            return "`" + name.replace("`", "``") + "`"
        return f"[{name.replace(']', ']]')}]" if self.name == "mssql" else '"' + name.replace('"', '""') + '"'

    def text(self, text: str) -> str:
        """A text; one with signs that a setting of MySQL would change, by its bytes."""
        if self.is_mysql and "\\" in text:
            return f"CONVERT(X'{text.encode().hex()}' USING utf8mb4)"
        return ("N'" if self.name == "mssql" else "'") + text.replace("'", "''") + "'"

    def constant(self, value: object) -> str:
        """A value of any kind that is released."""
        if value is None:
            return "NULL"
        return repr(value) if isinstance(value, int | float) else self.text(str(value))

    def key(self, name: str) -> str:
        """A text that is compared: with every sign of it, its case and the blanks at its end."""
        if self.is_mysql:
            return f"X'{name.encode().hex()}'"
        return self.text(f"{name}.") if self.name == "mssql" else self.text(name)

    def key_of(self, value: str) -> str:
        """The expression that is compared with such texts."""
        if self.is_mysql:
            return f"CAST(CONVERT({value} USING utf8mb4) AS BINARY)"
        if self.name == "mssql":
            return f"CONCAT(CAST({value} AS NVARCHAR(3999)), N'.') COLLATE Latin1_General_BIN2"
        return f"CAST({value} AS TEXT)"

    def number_of(self, value: str, scale: Scale) -> str:
        """The expression of a value on the line of numbers."""
        return f"CAST({value} AS {self.double})" if scale.is_number else MOMENTS[self.name].format(value)

    def table(self, name: str, columns: Sequence[str], rows: Sequence[str], *, numbers: Sequence[str] = ()) -> str:
        """A table of constants that stands before a query; each row is what is between its brackets."""
        word = "ROW" if self.name == "mysql" else ""
        listed = ",\n  ".join(f"{word}({row})" for row in rows)
        named = ", ".join(columns)
        if self.name in ("postgresql", "mssql"):  # the first takes constants for exact numbers
            once = " MATERIALIZED" if self.name == "postgresql" else ""
            chosen = ", ".join(
                f"CAST({column} AS {self.double}) AS {column}" if column in numbers else column for column in columns
            )
            return f"{name} AS{once} (\n SELECT {chosen} FROM (VALUES\n  {listed}\n ) AS listed({named})\n)"  # noqa: S608
        return f"{name}({named}) AS (\n VALUES\n  {listed}\n)"


LOWEST, KNOWN, HIGHEST = -9e307, -8e307, 9e307
"""The number of a missing value, one below all known values, and one above them."""
AT_ONCE = 16  # bounds by which a row goes on from a node: few, and the way is long; many, and each step is
ROW, NODE, VALUE = "anonfit_rows", "anonfit_node", "anonfit_value"  # what names of ours begin with

Run: TypeAlias = tuple[int, int]  # cells from one up to, not including, another
Box: TypeAlias = Mapping[int, NDArray[np.bool_]]  # of columns that are restricted, the cells


# --- values -----------------------------------------------------------------------------------------------------


def _edges(column: RecodedColumn) -> list[float]:
    """Where cells begin on the line of numbers, and where the last one ends."""
    if not isinstance(column, OrderedCells):
        return [LOWEST, *(float(cell) for cell in range(1, column.size)), HIGHEST]
    cuts = [edge(cut, column.scale) for cut in column.cuts]
    return [LOWEST, *([KNOWN] if column.has_missing else []), *cuts, HIGHEST]


def _ordered_value(column: OrderedCells, value: str, dialect: SqlDialect) -> str:
    on_line = dialect.number_of(value, column.scale)
    cases = []
    if column.domain:
        low, high = (number(edge(end, column.scale)) for end in column.domain)
        cases.append(f"WHEN {on_line} < {low} OR {on_line} > {high} THEN NULL")
    elif column.scale.is_number:  # endless numbers, too, lie in the first and last cells
        cases.append(f"WHEN {on_line} < {number(KNOWN)} THEN {number(KNOWN)}")
        cases.append(f"WHEN {on_line} >= {number(HIGHEST)} THEN {number(-KNOWN)}")
    return f"CASE {' '.join(cases)} ELSE {on_line} END" if cases else on_line


def _names(column: RecodedColumn, place: int, dialect: SqlDialect) -> str:
    """The table of a column's names and their cells."""
    names = column.taxonomy.leaves if isinstance(column, NominalCells) else column.order  # type: ignore[union-attr]
    other = column.other_cell if isinstance(column, NominalCells) else -1
    rows = []
    for cell, name in enumerate(names, start=int(column.has_missing)):
        if cell == other:
            continue
        try:
            key = number(float(name)) if column.type == ColumnType.CONTINUOUS else dialect.key(name)
        except ValueError:
            raise RecodingError(
                f"column '{column.name}': its leaf {name!r} is no number, so SQL cannot match it."
            ) from None
        rows.append(f"{key}, {number(cell)}")
    nothing = [f"NULL, {number(0)}"]  # a column of other values only
    return dialect.table(f"anonfit_names{place}", ("name", "cell"), rows or nothing, numbers=("cell",))


def _valued(recoding: Recoding, table: str, kept: Sequence[str], dialect: SqlDialect) -> list[str]:
    """The tables before all others: names of nominal columns, and the rows with the number of each value; NULL is one
    that the recoding does not know.
    """
    tables, values, joins = [], [], []
    for place, column in enumerate(recoding.columns):
        if column.date_format is not None:
            raise RecodingError(
                f"column '{column.name}': its dates are texts of a format, which SQL cannot read; store them as dates."
            )
        if isinstance(column, NominalCells) and column.type == ColumnType.DATE:
            raise RecodingError(f"column '{column.name}': a taxonomy over dates cannot be written as SQL.")
        value = f"source.{dialect.quoted(column.name)}"
        if isinstance(column, OrderedCells):
            known = _ordered_value(column, value, dialect)
        else:
            tables.append(_names(column, place, dialect))
            is_number = column.type == ColumnType.CONTINUOUS
            key = f"CAST({value} AS {dialect.double})" if is_number else dialect.key_of(value)
            joins.append(f" LEFT JOIN anonfit_names{place} ON anonfit_names{place}.name = {key}")
            known = f"anonfit_names{place}.cell"
            if isinstance(column, NominalCells) and column.other_cell >= 0:
                known = f"COALESCE({known}, {number(column.other_cell)})"
        missing = number(LOWEST) if column.has_missing else "NULL"
        values.append(f"CASE WHEN {value} IS NULL THEN {missing} ELSE {known} END AS {VALUE}{place}")
    chosen = ",\n  ".join([*values, *(f"source.{name}" for name in kept)])
    lines = [f" SELECT\n  {chosen}\n FROM {table} AS source", *joins]
    return [*tables, f"{ROW} AS (\n" + "\n".join(lines) + "\n)"]


# --- the tree ---------------------------------------------------------------------------------------------------


def _runs(cells: NDArray[np.bool_]) -> list[Run]:
    """The runs of cells that a set is made of."""
    changes = np.flatnonzero(np.diff(np.concatenate([[False], cells, [False]])))
    return list(zip(changes[::2].tolist(), changes[1::2].tolist(), strict=True))


def _children(tree: Tree, node: int, first: int, box: Box, sizes: Sequence[int]) -> list[tuple[int, Box]]:
    """The parts of a node's split, each with what restricts it beside what restricts the node."""
    column = int(tree.column[node])
    held = box.get(column, np.ones(sizes[column], np.bool_))
    if tree.set_of[node] >= 0:
        inside = np.zeros(sizes[column], np.bool_)
        inside[tree.sets[int(tree.set_of[node])]] = True
        parts = [inside, ~inside]
    else:
        count = int(tree.children[node])
        starts = [0, *(int(tree.start[child]) for child in range(first + 1, first + count)), sizes[column]]
        cells = np.arange(sizes[column])
        parts = [(cells >= low) & (cells < high) for low, high in pairwise(starts)]
    return [(first + number, {**box, column: held & part}) for number, part in enumerate(parts)]


def _weights(tree: Tree, first: NDArray[np.int32]) -> NDArray[np.int64]:
    """How many regions are under each node."""
    weights: NDArray[np.int64] = (tree.column == LEAF).astype(np.int64)
    for node in range(len(weights) - 1, -1, -1):
        if tree.column[node] != LEAF:
            weights[node] = weights[first[node] : first[node] + tree.children[node]].sum()
    return weights


def _steps(tree: Tree, sizes: Sequence[int]) -> list[tuple[int, int, Box]]:
    """Ways from nodes to nodes further down, the bounds of each: from a node on, the part with the most regions is
    divided until there are many parts. So a row needs few steps however deep the tree is.
    """
    first = tree.first_child
    weights = _weights(tree, first)
    steps: list[tuple[int, int, Box]] = []
    waiting = [0]
    while waiting:
        begin = waiting.pop()
        parts: list[tuple[int, int, Box]] = [(-int(weights[begin]), begin, {})]
        bounds = 0
        while parts and tree.column[parts[0][1]] != LEAF and bounds < AT_ONCE:
            _, node, box = heappop(parts)
            for child, narrower in _children(tree, node, int(first[node]), box, sizes):
                heappush(parts, (-int(weights[child]), child, narrower))
            bounds = sum(prod(len(_runs(cells)) for cells in part.values()) for _, _, part in parts)
        steps += [(begin, node, box) for _, node, box in parts]
        waiting += [node for _, node, _ in parts if tree.column[node] != LEAF]
    return steps


def _bounds(box: Box, edges: Sequence[Sequence[float]]) -> list[str]:
    """The bounds of all columns, as often as a box has several runs."""
    runs = [_runs(box[place]) if place in box else [(0, len(own) - 1)] for place, own in enumerate(edges)]
    return [
        ", ".join(f"{number(own[low])}, {number(own[high])}" for own, (low, high) in zip(edges, chosen, strict=True))
        for chosen in product(*runs)
    ]


def _tree_query(recoding: Recoding, tree: Tree, kept: Sequence[str], values: Values, dialect: SqlDialect) -> list[str]:
    """The tables of a tree, and the answer."""
    places = range(len(recoding.columns))
    edges = [_edges(column) for column in recoding.columns]
    steps = _steps(tree, [column.size for column in recoding.columns])
    regions = np.flatnonzero(tree.column == LEAF).astype(np.int32)
    if not dialect.recursive:
        steps += [(int(node), int(node), {}) for node in regions if len(tree.column) > 1]
    lines = [f"{begin}, {end}, {bounds}" for begin, end, box in steps for bounds in _bounds(box, edges)]
    ends = [f"{side}{place}" for place in places for side in ("low", "high")]
    tables = []
    if lines and len(tree.column) > 1:
        tables.append(dialect.table("anonfit_steps", ("node", "child", *ends), lines, numbers=ends))
    written = [part for parts in region_values(recoding, regions, values).values() for part in parts]
    rows = [
        ", ".join(map(dialect.constant, row))
        for row in zip(regions.tolist(), *(part.to_list() for part in written), strict=True)
    ]
    tables.append(dialect.table("anonfit_regions", ("region", *(f"said{n}" for n in range(len(written)))), rows))
    depth = {0: 0}  # how many steps a row takes at most
    for begin, end, _ in sorted(steps, key=lambda step: step[:2]):
        depth.setdefault(end, depth[begin] + 1)
    walk, last = _walk(len(places), kept, dialect, max(depth.values()) if tables[1:] else 0)
    shown = [f"anonfit_regions.said{place} AS {dialect.quoted(part.name)}" for place, part in enumerate(written)]
    shown += [f"{last}.{name}" for name in kept]
    answer = f"SELECT {', '.join(shown)}\nFROM {last} JOIN anonfit_regions ON {last}.{NODE} = anonfit_regions.region"
    return [*tables, *walk, answer]


def _walk(columns: int, kept: Sequence[str], dialect: SqlDialect, longest: int) -> tuple[list[str], str]:
    """The tables in which rows go down the tree, and the name of the last one."""
    values = [f"{VALUE}{place}" for place in range(columns)]
    known = " AND ".join(f"{value} IS NOT NULL" for value in values)
    start = f"SELECT 0 AS {NODE}, {', '.join([*values, *kept])} FROM {ROW} WHERE {known}"  # noqa: S608
    within = " AND ".join(
        f"walked.{value} >= steps.low{place} AND walked.{value} < steps.high{place}"
        for place, value in enumerate(values)
    )
    carried = ", ".join([f"steps.child AS {NODE}", *(f"walked.{name}" for name in (*values, *kept))])

    def step(table: str, join: str) -> str:
        return (
            f"SELECT {carried}\n FROM {table} AS walked {join} anonfit_steps AS steps\n"  # noqa: S608
            f" ON steps.node = walked.{NODE} AND {within}"
        )

    if not longest:
        return [f"anonfit_walk AS (\n {start}\n)"], "anonfit_walk"
    if dialect.recursive:
        fields = ", ".join([NODE, *values, *kept])
        further = step("anonfit_walk", "JOIN")
        return [f"anonfit_walk({fields}) AS (\n {start}\n UNION ALL\n {further}\n)"], "anonfit_walk"
    steps = [step(f"anonfit_walk{place}", "INNER HASH JOIN") for place in range(longest)]
    tables = [f"anonfit_walk{place} AS (\n {rows}\n)" for place, rows in enumerate([start, *steps])]
    return tables, f"anonfit_walk{longest}"


# --- a grid -----------------------------------------------------------------------------------------------------


def _grid_query(recoding: Recoding, grid: Grid, kept: Sequence[str], dialect: SqlDialect) -> list[str]:
    """The tables of columns that are divided by themselves, and the answer."""
    tables, joins, labels = [], [], []
    for place, (column, parts) in enumerate(zip(recoding.columns, grid.columns, strict=True)):
        edges, rows = _edges(column), []
        for part in range(parts.parts):
            cells = parts.part_of == part
            label = dialect.text(column.label(np.flatnonzero(cells).tolist()))
            rows += [f"{number(edges[low])}, {number(edges[high])}, {label}" for low, high in _runs(cells)]
        own, value = f"anonfit_parts{place}", f"{ROW}.{VALUE}{place}"
        tables.append(dialect.table(own, ("low", "high", "said"), rows, numbers=("low", "high")))
        joins.append(f"JOIN {own} ON {value} >= {own}.low AND {value} < {own}.high")
        labels.append(f"{own}.said AS {dialect.quoted(column.name)}")
    chosen = ", ".join([*labels, *(f"{ROW}.{name}" for name in kept)])
    return [*tables, f"SELECT {chosen}\nFROM {ROW}\n" + "\n".join(joins)]


def recoding_query(recoding: Recoding, table: str, *, keep: Sequence[str], values: Values, dialect: DialectName) -> str:
    """The query of `Recoding.to_sql`; a grid is written with labels only."""
    if dialect not in get_args(DialectName):
        raise RecodingError(f"dialect = '{dialect}' is not known; {did_you_mean(dialect, get_args(DialectName))}")
    written = SqlDialect(dialect)
    kept = [written.quoted(name) for name in keep]
    before = _valued(recoding, table, kept, written)
    if isinstance(recoding.shape, Grid):
        if values != Values.LABELS:
            raise RecodingError("A grid of regions is written as SQL with labels only.")
        *tables, answer = _grid_query(recoding, recoding.shape, kept, written)
    else:
        *tables, answer = _tree_query(recoding, recoding.tree, kept, values, written)
    word = "WITH" if dialect == "mssql" else "WITH RECURSIVE"
    return f"{word} " + ",\n".join([*before, *tables]) + f"\n{answer}\n"
