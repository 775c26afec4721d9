# SPDX-License-Identifier: Apache-2.0
"""recoding.json as the audit reads it, with code of its own: what the labels of columns mean, and the regions.

In version 1 they are the leaves of a tree. Its nodes stand in breadth-first order, the children of one together. A node
divides its cells of `column` (-1: it is a region) into runs, one for each of its `children`, from the child's `start`
up to the next child's; or, where `set` is not -1, into the cells of `sets[set]` and the others.

In version 2 every column is divided by itself: its list in "parts" has, for each of its cells, the number of the part
it is in. Cells with the same number are released as one value; -1 is the number of those that are not disclosed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing.coding import BoolArray, IntArray, group_rows
from anonfit.auditing.labels import Run, joined
from anonfit.auditing.meanings import JsonObject, LabelMeaning, read_meaning
from anonfit.errors import RecodingError

Bits = npt.NDArray[np.uint8]  # (region, byte) a bit for every cell
Int32 = npt.NDArray[np.int32]
_LISTS = ("column", "children", "start", "set", "sets")


@dataclass(frozen=True, slots=True)
class RegionTree:
    """The regions of a recoding: for every column a run of its cells or, if some split was by a set, their bits."""

    columns: tuple[str, ...]
    first: Int32  # (region, column)
    last: Int32  # (region, column)
    sets: Mapping[int, Bits]  # column -> cells
    fits: bool  # False: the tree speaks of cells that the columns have not, and regions are left out


@dataclass(frozen=True, slots=True)
class RegionNodes:
    """The lists of a tree, checked to be of one."""

    column: IntArray
    children: IntArray
    start: IntArray
    set_of: IntArray
    cells: IntArray  # of all sets, one set after the other
    begins: IntArray  # (set) where its cells begin, and where those of the last end
    parent: IntArray  # of the nodes 1, 2, …

    def cells_of(self, sets: IntArray) -> tuple[IntArray, IntArray]:
        """The cells of some sets, and the place among these of the set that each is of."""
        lengths = np.diff(self.begins)[sets]
        of_cell = np.repeat(np.arange(len(sets)), lengths)
        before = self.begins[sets] - np.cumsum(lengths) + lengths
        return self.cells[np.arange(len(of_cell)) + before[of_cell]], of_cell


def read_region_tree(nodes: object, meanings: Mapping[str, LabelMeaning]) -> RegionTree:
    """The regions of a tree over the cells of these columns, given in the order in which the tree counts them."""
    sizes = np.array([meaning.cells for meaning in meanings.values()], np.int64)
    tree = _lists_of(nodes, len(sizes))
    if not _fits(tree, sizes):
        none = np.empty((0, len(sizes)), np.int32)
        return RegionTree(tuple(meanings), none, none, {}, fits=False)
    regions = RegionTree(tuple(meanings), *_regions(tree, sizes), fits=True)
    starts, column = _starts(tree), tree.column[tree.parent]
    for place, meaning in enumerate(meanings.values()):  # a cut that parts no two regions would tell something else
        used = np.unique(tree.start[1:][starts & (column == place)])
        if len(used[used > bool(meaning.missing)]) < meaning.cut_count:
            raise _damaged(f"column '{meaning.name}' has cuts that part no regions")
    return regions


def read_nodes(nodes: object, meanings: Mapping[str, LabelMeaning]) -> RegionNodes:
    """The lists of a tree that tiles the space of these columns; anything else is an error."""
    sizes = np.array([meaning.cells for meaning in meanings.values()], np.int64)
    tree = _lists_of(nodes, len(sizes))
    if not _fits(tree, sizes):
        raise _damaged("it speaks of cells that its columns have not")
    _regions(tree, sizes)
    return tree


def _damaged(fault: str) -> RecodingError:
    return RecodingError(f"The tree of regions in the recoding is damaged: {fault}.")


def _lists_of(nodes: object, columns: int) -> RegionNodes:
    """The lists of a tree; they are checked to be one, whatever cells there are."""
    if not isinstance(nodes, Mapping) or set(nodes) != set(_LISTS):
        raise _damaged(f"it is not made of the lists {', '.join(_LISTS)}")
    column, children, start, set_of = (_integers(nodes[name], name) for name in _LISTS[:-1])
    if not len(set_of):
        set_of = np.full(len(column), -1)
    cells, begins = _sets(nodes["sets"])
    if not len(column) == len(children) == len(start) == len(set_of) > 0:
        raise _damaged("its lists have not one entry for every node")
    split, by_set = column >= 0, set_of >= 0
    if (column < -1).any() or (column >= columns).any() or ((children > 0) != split).any() or (children < 0).any():
        raise _damaged("a node has a column that there is not, or children without a column")
    if (children > len(column)).any() or int(children.sum()) + 1 != len(column):
        raise _damaged("it has not as many nodes as children")
    if (set_of < -1).any() or (set_of >= len(begins) - 1).any() or (children[by_set] != 2).any():
        raise _damaged("a node has a set that there is not, or not two children to divide by it")
    parent = np.repeat(np.arange(len(column)), children)
    if (parent > np.arange(len(parent))).any():
        raise _damaged("a node stands before its parent")
    return RegionNodes(column, children, start, set_of, cells, begins, parent)


def _integers(value: Any, name: str) -> IntArray:
    """A list of whole numbers, or an array of them, as an array."""
    if isinstance(value, np.ndarray) and value.ndim == 1 and np.issubdtype(value.dtype, np.integer):
        return value.astype(np.int64)
    if isinstance(value, (list, tuple)) and set(map(type, value)) <= {int}:
        try:
            return np.fromiter(value, np.int64, len(value))
        except OverflowError:
            pass
    raise _damaged(f"'{name}' is no list of whole numbers")


def _sets(value: Any) -> tuple[IntArray, IntArray]:
    """The cells of all sets as one list, since there may be many, and where each begins."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(part, (list, tuple, np.ndarray)) for part in value):
        raise _damaged("'sets' is no list of lists")
    lists = (part.tolist() if isinstance(part, np.ndarray) else part for part in value)
    cells = _integers(list(chain.from_iterable(lists)), "sets")
    lengths = [len(part) for part in value]
    if (cells < 0).any() or 0 in lengths:
        raise _damaged("a set is empty or holds something that is no cell")
    return cells, np.array([0, *accumulate(lengths)], np.int64)


def _starts(tree: RegionNodes) -> BoolArray:
    """Of the nodes 1, 2, …, those whose start is a cut: later children of splits by runs."""
    later = np.append(False, tree.parent[1:] == tree.parent[:-1]) if len(tree.parent) else np.zeros(0, np.bool_)
    return later & (tree.set_of[tree.parent] < 0)


def _fits(tree: RegionNodes, sizes: IntArray) -> bool:
    """Whether the columns have all the cells that the tree speaks of."""
    cut = _starts(tree)
    if (tree.start[1:][cut] >= sizes[tree.column[tree.parent[cut]]]).any():
        return False
    divided = np.flatnonzero(tree.set_of >= 0)
    cells, of_cell = tree.cells_of(tree.set_of[divided])
    return bool((cells < sizes[tree.column[divided]][of_cell]).all())


def _regions(tree: RegionNodes, sizes: IntArray) -> tuple[Int32, Int32, dict[int, Bits]]:
    """Divide the whole space level by level; what is not divided further is a region."""
    masks: dict[int, Bits] = {}  # of columns that are divided by sets, a row of bits for each node that has one
    for column in np.unique(tree.column[tree.set_of >= 0]).tolist():
        divided = tree.set_of[(tree.column == column) & (tree.set_of >= 0)]
        table = np.zeros((len(divided), sizes[column]), np.bool_)
        cells, of_cell = tree.cells_of(divided)
        table[of_cell, cells] = True
        masks[column] = np.packbits(table, axis=1)
    first, last = np.zeros((1, len(sizes)), np.int32), (sizes[None] - 1).astype(np.int32)
    sets = {column: np.packbits(np.ones((1, sizes[column]), np.bool_), axis=1) for column in masks}
    begin, end = 0, 1
    levels: list[tuple[Int32, Int32, dict[int, Bits]]] = []
    while begin < end:
        region = tree.column[begin:end] < 0
        levels.append((first[region], last[region], {column: bits[region] for column, bits in sets.items()}))
        begin, end, above = end, end + int(tree.children[begin:end].sum()), begin
        level = np.arange(begin, end)
        parent = tree.parent[level - 1]
        low, high = _runs(tree, level, first[parent - above], last[parent - above])
        sets = {column: bits[parent - above] for column, bits in sets.items()}
        for column, bits in sets.items():
            rows = np.flatnonzero(tree.column[parent] == column)
            bits[rows] &= _taken(tree, level[rows], masks[column], low[rows, column], high[rows, column], sizes[column])
            if not bits[rows].any(axis=1).all():
                raise _damaged("a part of a split has no cells")
        first, last = low, high
    whole = {column: np.concatenate([bits[column] for *_, bits in levels]) for column in masks}
    return np.concatenate([low for low, *_ in levels]), np.concatenate([high for _, high, _ in levels]), whole


def _runs(tree: RegionNodes, level: IntArray, low: Int32, high: Int32) -> tuple[Int32, Int32]:
    """The reach of the nodes of a level, out of copies of their parents'; splits by runs narrow it."""
    parent = tree.parent[level - 1]
    rows = np.flatnonzero(tree.set_of[parent] < 0)
    first_child = np.append(True, parent[1:] != parent[:-1])
    last_child = np.append(first_child[1:], True)
    column = tree.column[parent]
    start, upto = tree.start[level], np.append(tree.start[level[1:]], 0) - 1
    at = rows, column[rows]
    begins = np.where(first_child[rows], low[at], start[rows])
    ends = np.where(last_child[rows], high[at], upto[rows])
    gap = first_child[rows] & (start[rows] > low[at])
    if len(tree.cells):  # of a set, the first part may begin later than the reach of its parent
        gap &= ~np.isin(column[rows], tree.column[tree.set_of >= 0])
    if (begins > ends).any() or (begins < low[at]).any() or gap.any():
        raise _damaged("its regions do not tile the space")
    low[at], high[at] = begins, ends
    return low, high


def _taken(tree: RegionNodes, level: IntArray, masks: Bits, low: Int32, high: Int32, size: int) -> Bits:
    """Which cells of a column the children of its splits take, as bits."""
    parent = tree.parent[level - 1]
    by_set = tree.set_of[parent] >= 0
    cells = np.arange(size, dtype=np.int32)
    taken = np.packbits((cells >= low[:, None]) & (cells <= high[:, None]), axis=1)
    if by_set.any():
        column = tree.column[parent[0]]
        divided = np.flatnonzero((tree.column == column) & (tree.set_of >= 0))
        chosen = masks[np.searchsorted(divided, parent[by_set])]
        chosen[1::2] = ~chosen[1::2]  # the second of two children takes the other cells
        taken[by_set] = chosen
    return taken


@dataclass(frozen=True, slots=True)
class RegionGrid:
    """For every column, its parts: the runs of cells of each."""

    parts: Mapping[str, frozenset[tuple[Run, ...]]]
    fits: bool  # False: some column has other cells than its list


def read_region_grid(parts: object, meanings: Mapping[str, LabelMeaning]) -> RegionGrid:
    """The parts of columns, given in the order in which the recoding has them."""

    def damaged(fault: str) -> RecodingError:
        return RecodingError(f"The parts of columns in the recoding are damaged: {fault}.")

    if not isinstance(parts, Mapping) or list(parts) != list(meanings):
        raise damaged("they are not those of its columns, in their order")
    fits = True
    parts_of_column = {}
    for name, meaning in meanings.items():
        numbers = parts[name]
        if not isinstance(numbers, (list, tuple)) or set(map(type, numbers)) - {int} or min(numbers, default=-1) < -1:
            raise damaged(f"those of column '{name}' are no list of whole numbers from -1 on")
        fits &= len(numbers) == meaning.cells
        runs_of_part: dict[int, list[Run]] = {}
        for cell, number in enumerate(numbers):
            runs_of_part.setdefault(number, []).append((cell, cell))
        parts_of_column[name] = frozenset(tuple(joined(runs)) for runs in runs_of_part.values())
        if not meaning.is_named and any(len(runs) > 1 for runs in parts_of_column[name]):
            raise damaged(f"those of column '{name}' are not runs of its cells")
        present = pairwise(numbers[bool(meaning.missing) :])
        if meaning.cut_count and len(numbers) == meaning.cells and any(number == after for number, after in present):
            raise damaged(f"column '{name}' has cuts that part no regions")
    return RegionGrid(parts_of_column, fits)


Part = tuple[Run, ...]
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class ColumnParts:
    """The different parts of a column as runs of its cells, one part after the other."""

    runs: IntArray  # (run, end) the first and the last cell
    begins: IntArray  # (part) where its runs begin, and where those of the last end
    of_region: IntArray  # the part of every region of a tree; of a grid there are none

    @property
    def count(self) -> int:
        """How many parts there are."""
        return len(self.begins) - 1

    def listed(self) -> list[Part]:
        """The runs of every part."""
        runs = list(zip(*self.runs.T.tolist(), strict=True))
        return [tuple(runs[begin:end]) for begin, end in pairwise(self.begins.tolist())]


def parts_of(tree: RegionTree | RegionGrid, name: str) -> ColumnParts:
    """The different parts of a column."""
    if isinstance(tree, RegionGrid):
        parts = sorted(tree.parts[name])
        runs = np.array([run for part in parts for run in part], np.int64).reshape(-1, 2)
        return ColumnParts(runs, np.array([0, *accumulate(map(len, parts))], np.int64), _NONE)
    place = tree.columns.index(name)
    if place not in tree.sets:
        size = int(tree.last[:, place].max(initial=0)) + 1
        ends, of_region = np.unique(
            tree.first[:, place].astype(np.int64) * size + tree.last[:, place], return_inverse=True
        )
        return ColumnParts(np.stack(np.divmod(ends, size), axis=1), np.arange(len(ends) + 1), of_region)
    bits = tree.sets[place]
    words = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8))).view(np.int64)
    grouping = group_rows(pl.DataFrame(words), len(words))
    rows = bits[grouping.first]
    held = np.zeros((len(rows), 8 * rows.shape[1] + 2), np.uint8)
    held[:, 1:-1] = np.unpackbits(rows, axis=1)
    part, edge = np.nonzero(held[:, 1:] != held[:, :-1])  # one before the first cell of a run, then its last
    runs = np.stack([edge[::2], edge[1::2] - 1], axis=1)
    return ColumnParts(runs, np.searchsorted(part[::2], np.arange(len(rows) + 1)), grouping.of_row)


_COLUMN = ("name", "type", "scale", "missing", "domain", "cuts", "intervals", "order", "other", "taxonomy")


def read_recoding(
    recoding: object, date_formats: Mapping[str, str | None]
) -> tuple[dict[str, LabelMeaning], RegionTree | RegionGrid]:
    """The columns of recoding.json, in the order of the file, and its regions; `date_formats` is how the spec says that
    dates are written, where it is silent.
    """
    if not isinstance(recoding, Mapping):
        raise RecodingError("The recoding is not an object.")
    settings = JsonObject(recoding, "the recoding", RecodingError)
    if settings.entries.get("format") != "anonfit recoding":
        raise RecodingError("The recoding is not one of anonfit: its format is another.")
    version = settings.get("version", int)
    if version not in (1, 2):
        raise RecodingError("The recoding is of a version this audit does not know: use a newer anonfit.")
    settings.known(("format", "version", "columns", "nodes" if version == 1 else "parts"))
    meanings = read_meanings(settings, date_formats)
    if version == 2:
        return meanings, read_region_grid(settings.entries.get("parts"), meanings)
    return meanings, read_region_tree(settings.entries.get("nodes"), meanings)


def read_meanings(recoding: JsonObject, date_formats: Mapping[str, str | None]) -> dict[str, LabelMeaning]:
    """What the labels of the columns mean."""
    meanings: dict[str, LabelMeaning] = {}
    for column in recoding.parts("columns"):
        name = column.get("name", str)
        column.known((*_COLUMN, "date_format")).get("missing", bool)
        written = column.get("date_format", str, None) or date_formats.get(name)
        meaning = read_meaning(name, {**column.entries, "date_format": written})
        if name in meanings:
            raise RecodingError(f"The recoding has the column '{name}' twice.")
        meanings[name] = meaning
    return meanings
