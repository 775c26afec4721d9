# SPDX-License-Identifier: Apache-2.0
"""A recoding as one SQL query: values become cells, cells a region, and a region what it says. Understood by DuckDB,
PostgreSQL and SQLite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from anonfit.engines.tree import LEAF, Tree
from anonfit.errors import RecodingError
from anonfit.recoding.boxes import Grid, GridColumn
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.values import Values, region_values
from anonfit.tables.scales import Cut, Scale
from anonfit.tables.schema import ColumnType

if TYPE_CHECKING:
    from anonfit.recoding.recoding import Recoding

DEEPEST = 8
"""Conditions within conditions; SQLite reads about a dozen."""


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _cut(cut: Cut, scale: Scale) -> str:
    """A cut as SQL writes it."""
    if scale.is_number:
        return repr(cut)
    kind = "DATE" if scale == Scale.DATE and len(str(cut)) <= 10 else "TIMESTAMP"
    return f"{kind} {_text(str(cut).replace('T', ' '))}"


def _search(value: str, bounds: Sequence[str], results: Sequence[str]) -> str:
    """The result of the run that a value lies in, by binary search: run i begins at bounds[i - 1]."""
    if len(results) == 1:
        return results[0]
    middle = len(results) // 2
    low = _search(value, bounds[: middle - 1], results[:middle])
    high = _search(value, bounds[middle:], results[middle:])
    return f"CASE WHEN {value} < {bounds[middle - 1]} THEN {low} ELSE {high} END"


def _ordered_cell(column: OrderedCells, value: str) -> str:
    shift = int(column.has_missing)
    if column.scale.is_number:
        value = f"CAST({value} AS DOUBLE PRECISION)"  # or cuts would be rounded to shorter numbers
    cuts = [_cut(cut, column.scale) for cut in column.cuts]
    cell_of_value = _search(value, cuts, [str(cell + shift) for cell in range(len(cuts) + 1)])
    if not column.domain:
        return cell_of_value
    low, high = (_cut(end, column.scale) for end in column.domain)
    return f"CASE WHEN {value} < {low} OR {value} > {high} THEN NULL ELSE {cell_of_value} END"


def _named_cell(column: NominalCells | OrdinalCells, value: str) -> str:
    """The cell of a name; that of values without a name is left to ELSE."""
    shift = int(column.has_missing)
    if isinstance(column, NominalCells):
        names, other = column.taxonomy.leaves, column.other_cell
    else:
        names, other = column.order, -1
    if column.type == ColumnType.CONTINUOUS:
        pairs = [f"WHEN {value} = {_number(column, name)} THEN {cell + shift}" for cell, name in enumerate(names)]
        return f"CASE {' '.join(pairs)} ELSE NULL END"
    pairs = [f"WHEN {_text(name)} THEN {cell + shift}" for cell, name in enumerate(names) if cell + shift != other]
    rest = "NULL" if other < 0 else str(other)
    return f"CASE CAST({value} AS TEXT) {' '.join(pairs)} ELSE {rest} END" if pairs else rest


def _number(column: RecodedColumn, name: str) -> str:
    try:
        return repr(float(name))
    except ValueError:
        raise RecodingError(
            f"column '{column.name}': its leaf {name!r} is no number, so SQL cannot match it."
        ) from None


def _cell(column: RecodedColumn) -> str:
    """The expression for the cell of a value; NULL where the recoding does not know it."""
    if column.date_format is not None:
        raise RecodingError(
            f"column '{column.name}': its dates are texts of a format, which SQL cannot read; store them as dates."
        )
    if isinstance(column, NominalCells) and column.type == ColumnType.DATE:
        raise RecodingError(f"column '{column.name}': a taxonomy over dates cannot be written as SQL.")
    value = _name(column.name)
    known = _ordered_cell(column, value) if isinstance(column, OrderedCells) else _named_cell(column, value)
    return f"CASE WHEN {value} IS NULL THEN {'0' if column.has_missing else 'NULL'} ELSE {known} END"


def _regions_of_cells(tree: Tree) -> list[str]:
    """Expressions for the region of a row's cells, each going on from where the one before it ended: the first from the
    root, the others from `region`. They are made from the regions up, and none is nested deeper than SQLite reads.
    """
    texts, first = [""] * len(tree.column), tree.first_child
    depth, stage = [0] * len(texts), [0] * len(texts)
    later: dict[int, list[str]] = {}
    for node in range(len(texts) - 1, -1, -1):
        column = int(tree.column[node])
        if column == LEAF:
            texts[node] = str(node)
            continue
        children = range(int(first[node]), int(first[node]) + int(tree.children[node]))
        added = (len(children) - 1).bit_length()
        stage[node] = max(stage[child] for child in children)
        depth[node] = max(depth[child] for child in children) + added
        if depth[node] > DEEPEST:
            stage[node] += 1
            depth[node] = added
            for child in children:
                if depth[child]:
                    later.setdefault(stage[child], []).append(f"WHEN {child} THEN {texts[child]}")
                    texts[child] = str(child)
        texts[node] = _divided(tree, node, [texts[child] for child in children])
        for child in children:
            texts[child] = ""
    return [
        texts[0],
        *(f"CASE region {' '.join(later[number])} ELSE region END" for number in sorted(later, reverse=True)),
    ]


def _divided(tree: Tree, node: int, parts: Sequence[str]) -> str:
    """The expression for the part of a node's split that a row's cells are in."""
    cell = f"cell{int(tree.column[node])}"
    if tree.set_of[node] >= 0:
        members = ", ".join(map(str, tree.sets[int(tree.set_of[node])].tolist()))
        return f"CASE WHEN {cell} IN ({members}) THEN {parts[0]} ELSE {parts[1]} END"
    begin = int(tree.first_child[node])
    return _search(cell, [str(int(tree.start[child])) for child in range(begin + 1, begin + len(parts))], parts)


def _constant(value: object) -> str:
    if value is None:
        return "NULL"
    return repr(value) if isinstance(value, int | float) else _text(str(value))


def _tree_query(recoding: Recoding, tree: Tree, kept: Sequence[str], values: Values) -> tuple[str, str]:
    """The tables that come before the answer, and the answer."""
    regions = np.flatnonzero(tree.column == LEAF).astype(np.int32)
    written = [part for parts in region_values(recoding, regions, values).values() for part in parts]
    names = [_name(part.name) for part in written]
    rows = zip(regions.tolist(), *(part.to_list() for part in written), strict=True)
    listed = ",\n  ".join(f"({', '.join(map(_constant, row))})" for row in rows)
    fields = ", ".join(["region", *(f"said{place}" for place in range(len(names)))])
    cells = [f"cell{place}" for place in range(len(recoding.columns))]
    region, *others = _regions_of_cells(tree)
    placed = f"placed AS (\n SELECT {', '.join([f'{region} AS region', *cells, *kept])}\n FROM cells\n"  # noqa: S608
    placed += f" WHERE {_known(recoding)}\n),\n"
    last = "placed"
    for number, further in enumerate(others):
        chosen = ", ".join([f"{further} AS region", *cells, *kept])
        placed += f"placed{number} AS (\n SELECT {chosen}\n FROM {last}\n),\n"  # noqa: S608
        last = f"placed{number}"
    tables = f"{placed}regions({fields}) AS (\n VALUES\n  {listed}\n)"
    shown = [f"regions.said{place} AS {name}" for place, name in enumerate(names)]
    shown += [f"{last}.{name}" for name in kept]
    return tables, f"SELECT {', '.join(shown)}\nFROM {last} JOIN regions ON {last}.region = regions.region"


def _known(recoding: Recoding) -> str:
    return " AND ".join(f"cell{place} IS NOT NULL" for place in range(len(recoding.columns)))


def _part_label(column: RecodedColumn, parts: GridColumn, place: int) -> str:
    """The expression for the label of a column that is divided by itself."""
    cells = [np.flatnonzero(parts.part_of == part).tolist() for part in range(parts.parts)]
    pairs = [
        f"WHEN cell{place} IN ({', '.join(map(str, some))}) THEN {_text(column.label(some))}" for some in cells if some
    ]
    return f"CASE {' '.join(pairs)} END AS {_name(column.name)}"


def recoding_query(recoding: Recoding, table: str, *, keep: Sequence[str], values: Values) -> str:
    """The query of `Recoding.to_sql`; a grid is written with labels only."""
    kept = [_name(name) for name in keep]
    cells = ",\n  ".join([*(f"{_cell(column)} AS cell{place}" for place, column in enumerate(recoding.columns)), *kept])
    before = f"WITH cells AS (\n SELECT\n  {cells}\n FROM {table}\n)"
    if isinstance(recoding.shape, Grid):
        if values != Values.LABELS:
            raise RecodingError("A grid of regions is written as SQL with labels only.")
        labels = [
            _part_label(column, parts, place)
            for place, (column, parts) in enumerate(zip(recoding.columns, recoding.shape.columns, strict=True))
        ]
        return f"{before}\nSELECT {', '.join([*labels, *kept])}\nFROM cells\nWHERE {_known(recoding)}\n"
    tables, answer = _tree_query(recoding, recoding.tree, kept, values)
    return f"{before},\n{tables}\n{answer}\n"
