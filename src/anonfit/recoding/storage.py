# SPDX-License-Identifier: Apache-2.0
"""recoding.json: cuts, taxonomies and the tree of splits or the parts of a grid, with a version; no counts and no
observed values.
"""

from __future__ import annotations

import json
import math
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.tree import LEAF, Grid, GridColumn, Tree, grid_column
from anonfit.errors import AnonfitError, RecodingError, RequestError
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding
from anonfit.runtime.strict_json import Damaged, JsonPart, parse_json, read_text
from anonfit.tables.scales import Cut, Scale, parse_cut
from anonfit.tables.schema import ColumnType
from anonfit.tables.taxonomy import Taxonomy

FORMAT = "anonfit recoding"
VERSION = 1  # of a tree of splits
GRID_VERSION = 2  # of a grid: in place of nodes it has the part of every cell of every column
NOT_DISCLOSED = -1  # what stands for the part of a cell that is not disclosed
MOST = 2**31 - 1  # the largest number of a cell or part


def _column_json(column: RecodedColumn) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": column.name}
    if isinstance(column, OrderedCells):
        entry |= {"type": str(column.type), "scale": str(column.scale), "missing": column.has_missing}
        entry |= {"domain": list(column.domain) or None, "cuts": list(column.cuts)}
        if column.scale == Scale.WHOLE:
            entry["intervals"] = "closed" if column.closed else "half-open"
    elif isinstance(column, OrdinalCells):
        entry |= {"type": "ordinal", "missing": column.has_missing, "order": list(column.order)}
    else:
        entry |= {"type": str(column.type), "missing": column.has_missing, "other": column.other}
        entry |= {"taxonomy": column.taxonomy.to_tree()}
    if column.type == ColumnType.DATE:
        entry["date_format"] = column.date_format
    return entry


def to_json(recoding: Recoding) -> str:
    """The text of recoding.json: one line per column and per list of the tree, so that it can be read and compared."""
    version, entry = VERSION, "nodes"
    if isinstance(recoding.shape, Grid):
        version, entry = GRID_VERSION, "parts"
        lists = {  # the part of each cell
            column.name: np.where(cells.part_of == cells.rest, NOT_DISCLOSED, cells.part_of).tolist()
            for column, cells in zip(recoding.columns, recoding.shape.columns, strict=True)
        }
    else:
        tree = recoding.shape
        lists = {name: getattr(tree, name).tolist() for name in ("column", "children", "start")}
        lists["set"] = tree.set_of.tolist() if tree.sets else []
        lists["sets"] = [cells.tolist() for cells in tree.sets]
    lines = ["{", f' "format": {json.dumps(FORMAT)},', f' "version": {version},', ' "columns": [']
    lines.append(",\n".join("  " + json.dumps(_column_json(column), ensure_ascii=False) for column in recoding.columns))
    lines += [" ],", f' "{entry}": {{']
    lines.append(
        ",\n".join(
            f"  {json.dumps(name, ensure_ascii=False)}: {json.dumps(entries, separators=(',', ':'))}"
            for name, entries in lists.items()
        )
    )
    lines += [" }", "}", ""]
    return "\n".join(lines)


def _column(entry: JsonPart) -> RecodedColumn:
    kind = entry.named().get("type", JsonPart(None, f"{entry.place}.type")).word(ColumnType)
    dated = ("date_format",) if kind == ColumnType.DATE else ()
    if kind == ColumnType.ORDINAL:
        fields = entry.table(("name", "type", "missing", "order"))
        order = tuple(fields["order"].texts())
        if not order:
            raise fields["order"].refused("is empty")
        return OrdinalCells(fields["name"].text(), order, fields["missing"].flag())
    if "taxonomy" not in entry.named():
        names = ("name", "type", "scale", "missing", "domain", "cuts", *dated)
        return _ordered(entry.table(names, ("intervals",)), ColumnType(kind))
    fields = entry.table(("name", "type", "missing", "other", "taxonomy", *dated))
    name = fields["name"].text()
    taxonomy = Taxonomy.from_tree(fields["taxonomy"].value, column=name)
    other = fields["other"].value
    if other is not None and fields["other"].text() not in taxonomy.leaf_position:
        raise fields["other"].refused("is no leaf of the taxonomy")
    return NominalCells(name, taxonomy, fields["missing"].flag(), other, ColumnType(kind), _date_format(fields))


def _date_format(fields: dict[str, JsonPart]) -> str | None:
    given = fields.get("date_format")
    return None if given is None or given.value is None else given.text()


def _ordered(fields: dict[str, JsonPart], kind: ColumnType) -> OrderedCells:
    name, scale = fields["name"].text(), Scale(fields["scale"].word(Scale))
    if (kind == ColumnType.CONTINUOUS) != scale.is_number or kind == ColumnType.NOMINAL:
        raise fields["type"].refused(f"is '{kind}', which its scale is not")
    if ("intervals" in fields) != (scale == Scale.WHOLE):
        raise fields["scale"].refused(f"is '{scale}', and only columns of whole numbers say how intervals are written")
    closed = "intervals" in fields and fields["intervals"].word(("half-open", "closed")) == "closed"
    cuts = tuple(_cut(cut, scale) for cut in fields["cuts"].items())
    domain = () if fields["domain"].value is None else tuple(_cut(end, scale) for end in fields["domain"].items())
    if len(domain) not in (0, 2):
        raise fields["domain"].refused("has not two ends")
    # The domain is closed: a cut may be its upper end, and leaves that one value above it.
    ascending = all(low < high for low, high in pairwise((*domain[:1], *cuts)))  # type: ignore[operator]
    below = not domain or (domain[0] < domain[1] and (not cuts or cuts[-1] <= domain[1]))  # type: ignore[operator]
    if not ascending or not below:
        raise fields["cuts"].refused("are not in ascending order within the domain")
    numbers: tuple[Any, ...] = cuts if scale == Scale.WHOLE else ()
    is_parted = len({math.ceil(cut) for cut in numbers}) == len(numbers)  # each interval holds some whole number
    if scale == Scale.WHOLE and not (is_parted and all(float(end).is_integer() for end in domain)):
        raise fields["cuts"].refused("are two between the same whole numbers, or the domain ends at a fraction")
    return OrderedCells(name, kind, scale, cuts, fields["missing"].flag(), domain, _date_format(fields), closed)


def _cut(part: JsonPart, scale: Scale) -> Cut:
    try:
        return parse_cut(part.value, scale)
    except (ValueError, OverflowError):
        raise part.refused(f"is no {scale}") from None


def _array(part: JsonPart, length: int, least: int, most: int) -> NDArray[np.int32]:
    return np.array(part.wholes(length, least, most), dtype=np.int32)


def _sets(part: JsonPart) -> tuple[NDArray[np.int32], ...]:
    """The cells of each set; all are read as one list, since there may be many."""
    entries = part.lists()
    lengths = [len(entry) for entry in entries]
    every = JsonPart(list(chain.from_iterable(entries)), part.place)
    cells = _array(every, sum(lengths), 0, MOST)
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    return tuple(cells[end - length : end] for end, length in zip(ends, lengths, strict=True))


def _tree(part: JsonPart, columns: tuple[RecodedColumn, ...]) -> Tree:
    entry = part.table(("column", "children", "start", "set", "sets"))
    length = entry["column"].length()
    column = _array(entry["column"], length, LEAF, len(columns) - 1)
    children = _array(entry["children"], length, 0, length)
    sets = _sets(entry["sets"])
    set_of = np.full(length, -1, np.int32)
    if entry["set"].value != []:
        set_of = _array(entry["set"], length, -1, len(sets) - 1)
    start = _array(entry["start"], length, 0, MOST)
    tree = Tree(column, children, start, np.full(length, -1, np.int32), set_of, sets)
    is_leaf = column == LEAF
    holds = (
        length > 0
        and 1 + int(children.sum(dtype=np.int64)) == length
        and bool(((children > 0) == ~is_leaf).all())
        and bool((tree.first_child[~is_leaf] > np.flatnonzero(~is_leaf)).all())
        and bool((children[set_of >= 0] == 2).all())
    )
    if not holds:
        raise part.refused("are not a tree")
    _check_sets(tree, columns)
    return tree


def _grid_column(part: JsonPart, column: RecodedColumn) -> GridColumn:
    """The parts of a column, under any numbers: who edits the file need not number them anew."""
    parts = grid_column(_array(part, column.size, NOT_DISCLOSED, MOST), NOT_DISCLOSED)
    if not isinstance(column, NominalCells):
        if parts.rest >= 0:
            raise part.refused("suppresses some cells, which only those of nominal columns can be")
        if (np.diff(parts.part_of) < 0).any():
            raise part.refused("has a part that is no run of cells")
    return parts


def _check_sets(tree: Tree, columns: tuple[RecodedColumn, ...]) -> None:
    """A set divides a nominal column, and holds cells of it and of no other."""
    divided = np.flatnonzero(tree.set_of >= 0)
    for index in np.unique(tree.column[divided]).tolist():
        if not isinstance(columns[index], NominalCells):
            raise Damaged(f"a set divides column '{columns[index].name}', whose cells are in order")
    lengths = np.fromiter(map(len, tree.sets), np.int64, len(tree.sets))
    cells = np.concatenate([np.zeros(0, np.int32), *tree.sets])
    sizes = np.array([column.size for column in columns], np.int64)
    limit = np.full(len(tree.sets), MOST, np.int64)
    np.minimum.at(limit, tree.set_of[divided], sizes[tree.column[divided]])
    if (cells >= np.repeat(limit, lengths)).any():
        raise Damaged("a set holds cells that its column has not")


def _check_tiling(recoding: Recoding) -> None:
    """The parts of a node must all have cells, and the first of a split by runs those from its parent's first on:
    then the regions tile the domain. A later part may begin at a cell that sets above it have taken away.
    """
    tree, boxes = recoding.tree, recoding.boxes
    parent = np.repeat(np.arange(len(tree.column)), tree.children)
    below = np.arange(1, len(tree.column))
    column = tree.column[parent]
    first, last = boxes.first[below, column], boxes.last[below, column]
    by_run = tree.set_of[parent] < 0
    is_first = np.append(True, parent[1:] != parent[:-1]) if len(parent) else np.zeros(0, bool)
    begins = first == boxes.first[parent, column]
    if not ((first <= last) & (begins | ~by_run | ~is_first)).all():
        raise Damaged("its regions do not tile the domain")


def read_recoding(path: str | Path) -> Recoding:
    """The recoding of a file."""
    return from_json(read_text(Path(path), "recoding", RequestError, megabytes=512))


def from_json(text: str) -> Recoding:
    """Read recoding.json; anything that is not a whole recoding of a known version is an error."""
    try:
        content = parse_json(text)
    except Damaged as error:
        raise RecodingError(f"the recoding is damaged: {error}; it was cut short or edited by hand.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise RecodingError(f"this is no recoding: its format is not '{FORMAT}'.")
    version = content.get("version")
    if version not in (VERSION, GRID_VERSION) or type(version) is not int:
        raise RecodingError(
            f"the recoding has version {version!r:.20}; this anonfit reads versions {VERSION} and {GRID_VERSION}. "
            "Install the anonfit that wrote it."
        )
    try:
        is_grid = version == GRID_VERSION
        shape = "parts" if is_grid else "nodes"
        entries = JsonPart(content).table(("format", "version", "columns", shape))
        return recoding_of(entries["columns"], entries[shape], is_grid=is_grid)
    except (Damaged, AnonfitError) as error:
        raise RecodingError(f"the recoding is damaged: {str(error).removesuffix('.')}.") from None


def recoding_of(columns: JsonPart, shape: JsonPart, *, is_grid: bool = False) -> Recoding:
    """The recoding of its columns and the nodes of its tree, or the parts of a grid."""
    read = tuple(_column(entry) for entry in columns.items())
    if len({column.name for column in read}) < len(read):
        raise columns.refused("has a name twice")
    if is_grid:
        names = [column.name for column in read]
        entry = shape.table(names)
        if list(entry) != names:
            raise shape.refused("are not those of its columns, in their order")
        return Recoding(read, Grid(tuple(_grid_column(entry[column.name], column) for column in read)))
    recoding = Recoding(read, _tree(shape, read))
    _check_tiling(recoding)
    return recoding
