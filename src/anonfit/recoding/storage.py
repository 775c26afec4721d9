# SPDX-License-Identifier: Apache-2.0
"""recoding.json: cuts, taxonomies and the tree of splits or the parts of a grid, with a version; no counts and no
observed values.
"""

from __future__ import annotations

import json
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.tree import LEAF, Tree
from anonfit.errors import AnonfitError, RecodingError, RequestError
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.grid import Grid, GridColumn, grid_column
from anonfit.recoding.recoding import Recoding
from anonfit.tables.reading import refuse_endless
from anonfit.tables.scales import Scale, parse_cut
from anonfit.tables.schema import ColumnType
from anonfit.tables.taxonomy import Taxonomy

__all__ = ["FORMAT", "VERSION", "from_json", "read_recoding", "to_json"]

FORMAT = "anonfit recoding"
VERSION = 1
"""Of a tree of splits."""
GRID_VERSION = 2
"""Of a grid: in place of nodes it has the part of every cell of every column."""
NOT_DISCLOSED = -1
"""What stands for the part of a cell that is not disclosed."""


def _column_json(column: RecodedColumn) -> dict[str, Any]:
    found: dict[str, Any] = {"name": column.name}
    if isinstance(column, OrderedCells):
        found |= {"type": str(column.type), "scale": str(column.scale), "missing": column.has_missing}
        found |= {"domain": list(column.domain) or None, "cuts": list(column.cuts)}
    elif isinstance(column, OrdinalCells):
        found |= {"type": "ordinal", "missing": column.has_missing, "order": list(column.order)}
    elif isinstance(column, NominalCells):
        found |= {"type": str(column.type), "missing": column.has_missing, "other": column.other}
        found |= {"taxonomy": column.taxonomy.to_tree()}
    if column.type == ColumnType.DATE:
        found["date_format"] = column.date_format
    return found


def to_json(recoding: Recoding) -> str:
    """The text of recoding.json: one line per column and per list of the tree, so that it can be read and compared."""
    is_grid = isinstance(recoding.shape, Grid)
    version, entry, lists = (GRID_VERSION, "parts", _grid_lists) if is_grid else (VERSION, "nodes", _tree_lists)
    lines = ["{", f' "format": {json.dumps(FORMAT)},', f' "version": {version},', ' "columns": [']
    lines.append(",\n".join("  " + json.dumps(_column_json(column), ensure_ascii=False) for column in recoding.columns))
    lines += [" ],", f' "{entry}": {{']
    lines.append(
        ",\n".join(
            f"  {json.dumps(name, ensure_ascii=False)}: {json.dumps(entries, separators=(',', ':'))}"
            for name, entries in lists(recoding).items()
        )
    )
    lines += [" }", "}", ""]
    return "\n".join(lines)


def _grid_lists(recoding: Recoding) -> dict[str, list[int]]:
    """For each column, the part of each cell."""
    assert isinstance(recoding.shape, Grid)
    return {
        column.name: np.where(cells.part_of == cells.rest, NOT_DISCLOSED, cells.part_of).tolist()
        for column, cells in zip(recoding.columns, recoding.shape.columns, strict=True)
    }


def _tree_lists(recoding: Recoding) -> dict[str, Any]:
    """The facts of each node."""
    tree = recoding.tree
    return {
        "column": tree.column.tolist(),
        "children": tree.children.tolist(),
        "start": tree.start.tolist(),
        "set": tree.set_of.tolist() if tree.sets else [],
        "sets": [cells.tolist() for cells in tree.sets],
    }


def _require(holds: bool, fault: str) -> None:
    if not holds:
        raise ValueError(fault)


def _column(entry: dict[str, Any]) -> RecodedColumn:
    name, kind, has_missing = entry["name"], entry["type"], entry["missing"]
    _require(
        isinstance(name, str) and isinstance(has_missing, bool), "a column's name or 'missing' is of the wrong kind"
    )
    date_format = entry["date_format"] if kind == "date" else None
    _require(date_format is None or isinstance(date_format, str), f"column '{name}': its date format is no text")
    if kind == "ordinal":
        order = tuple(entry["order"])
        _require(
            all(isinstance(word, str) for word in order), f"column '{name}': its order holds other things than words"
        )
        _require(0 < len(set(order)) == len(order), f"column '{name}': its order is empty or has a word twice")
        return OrdinalCells(name, order, has_missing)
    if "taxonomy" in entry:
        taxonomy = Taxonomy.from_tree(entry["taxonomy"], column=name)
        other = entry["other"]
        _require(other is None or other in taxonomy.leaf_position, f"column '{name}': its unnamed leaf is no leaf")
        return NominalCells(name, taxonomy, has_missing, other, ColumnType(kind), date_format)
    scale = Scale(entry["scale"])
    _require((kind == "continuous") == (scale == Scale.NUMBER), f"column '{name}': its type and scale differ")
    cuts = tuple(parse_cut(cut, scale) for cut in entry["cuts"])
    domain = tuple(parse_cut(end, scale) for end in entry["domain"] or ())
    _require(len(domain) in (0, 2), f"column '{name}': a domain has two ends")
    ends = (*domain[:1], *cuts, *domain[1:])
    ascending = all(low < high for low, high in pairwise(ends))  # type: ignore[operator]
    _require(ascending, f"column '{name}': its cuts are not in ascending order within its domain")
    return OrderedCells(name, ColumnType(kind), scale, cuts, has_missing, domain, date_format)


def _array(entries: Any, length: int, name: str) -> NDArray[np.int32]:
    _require(set(map(type, entries)) <= {int}, f"list '{name}' holds other things than whole numbers")
    found = np.array(entries, dtype=np.int32)
    _require(found.shape == (length,), f"list '{name}' has not one entry per node or cell")
    return found


def _sets(entries: Any) -> tuple[NDArray[np.int32], ...]:
    """The cells of each set; all are read as one list, since there may be many."""
    _require(
        isinstance(entries, list) and set(map(type, entries)) <= {list}, "list 'sets' holds other things than lists"
    )
    lengths = [len(cells) for cells in entries]
    cells = _array(list(chain.from_iterable(entries)), sum(lengths), "sets")
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    return tuple(cells[end - length : end] for end, length in zip(ends, lengths, strict=True))


def _tree(entry: dict[str, Any], columns: tuple[RecodedColumn, ...]) -> Tree:
    length = len(entry["column"])
    column, children = _array(entry["column"], length, "column"), _array(entry["children"], length, "children")
    set_of = _array(entry["set"], length, "set") if entry["set"] else np.full(length, -1, np.int32)
    sets = _sets(entry["sets"])
    tree = Tree(column, children, _array(entry["start"], length, "start"), np.full(length, -1, np.int32), set_of, sets)
    is_leaf = column == LEAF
    holds = (
        length > 0
        and 1 + int(children.sum(dtype=np.int64)) == length
        and bool((children >= 0).all())
        and bool(((children > 0) == ~is_leaf).all())
        and bool((column[~is_leaf] >= 0).all())
        and bool((column < len(columns)).all())
        and bool((tree.first_child[~is_leaf] > np.flatnonzero(~is_leaf)).all())
        and bool((set_of >= -1).all() and (set_of < len(sets)).all())
        and bool((children[set_of >= 0] == 2).all())
    )
    _require(holds, "its nodes are not a tree")
    _check_sets(tree, columns)
    return tree


def _grid(entry: dict[str, Any], columns: tuple[RecodedColumn, ...]) -> Grid:
    names = [column.name for column in columns]
    _require(isinstance(entry, dict) and list(entry) == names, "its parts are not those of its columns, in their order")
    return Grid(tuple(_grid_column(entry[column.name], column) for column in columns))


def _grid_column(entries: Any, column: RecodedColumn) -> GridColumn:
    """The parts of a column, under any numbers: who edits the file need not number them anew."""
    where = f"the parts of column '{column.name}'"
    part_of = _array(entries, column.size, where)
    _require(bool((part_of >= NOT_DISCLOSED).all()), f"{where} have a number below {NOT_DISCLOSED}")
    found = grid_column(part_of, NOT_DISCLOSED)
    if not isinstance(column, NominalCells):
        _require(found.rest < 0, f"{where}: only nominal values can be suppressed")
        _require(bool((np.diff(found.part_of) >= 0).all()), f"{where} are not runs of its cells")
    return found


def _check_sets(tree: Tree, columns: tuple[RecodedColumn, ...]) -> None:
    """A set divides a nominal column, and holds cells of it and of no other."""
    divided = np.flatnonzero(tree.set_of >= 0)
    for index in np.unique(tree.column[divided]).tolist():
        _require(
            isinstance(columns[index], NominalCells),
            f"a set divides column '{columns[index].name}', whose cells are in order",
        )
    lengths = np.fromiter(map(len, tree.sets), np.int64, len(tree.sets))
    cells = np.concatenate([np.zeros(0, np.int32), *tree.sets])
    sizes = np.array([column.size for column in columns], np.int64)
    limit = np.full(len(tree.sets), np.iinfo(np.int32).max, np.int64)
    np.minimum.at(limit, tree.set_of[divided], sizes[tree.column[divided]])
    known = (cells >= 0) & (cells < np.repeat(limit, lengths))
    _require(bool(known.all()), "a set holds cells that its column has not")


def _check_tiling(recoding: Recoding) -> None:
    """Every child must take a part of its parent's run, in ascending order: then the regions tile the domain."""
    tree, boxes = recoding.tree, recoding.boxes
    parent = np.repeat(np.arange(len(tree.column)), tree.children)
    below = np.arange(1, len(tree.column))
    column = tree.column[parent]
    first, last = boxes.first[below, column], boxes.last[below, column]
    by_run = tree.set_of[parent] < 0
    is_first = np.append(True, parent[1:] != parent[:-1]) if len(parent) else np.zeros(0, bool)
    begins = np.where(is_first, boxes.first[parent, column], tree.start[below])
    if not ((first <= last) & ((first == begins) | ~by_run)).all():
        raise ValueError("its regions do not tile the domain")


def read_recoding(path: str | Path) -> Recoding:
    """The recoding of a file."""
    refuse_endless(Path(path))
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"{path} cannot be read as a recoding: {type(error).__name__}.") from None
    return from_json(text)


def from_json(text: str) -> Recoding:
    """Read recoding.json; anything that is not a whole recoding of a known version is an error."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise RecodingError(
            f"the recoding is not JSON (line {error.lineno}); it was cut short or edited by hand."
        ) from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise RecodingError(f"this is no recoding: its format is not '{FORMAT}'.")
    version = found.get("version")
    if version not in (VERSION, GRID_VERSION):
        raise RecodingError(
            f"the recoding has version {version!r}; this anonfit reads versions {VERSION} and {GRID_VERSION}. Install "
            "the anonfit that wrote it."
        )
    try:
        columns = tuple(_column(entry) for entry in found["columns"])
        names = [column.name for column in columns]
        _require(len(set(names)) == len(names), "a column stands in it twice")
        if version == GRID_VERSION:
            return Recoding(columns, _grid(found["parts"], columns))
        recoding = Recoding(columns, _tree(found["nodes"], columns))
        _check_tiling(recoding)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise RecodingError(f"the recoding is damaged: {error}.") from None
    except AnonfitError as error:
        raise RecodingError(f"the recoding is damaged: {error}") from None
    return recoding
