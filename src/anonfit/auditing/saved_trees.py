# SPDX-License-Identifier: Apache-2.0
"""Trees of anonfit as the audit sees them: read from model.json of a tree's folder, with code of the audit's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anonfit.auditing.axes import axis_of
from anonfit.auditing.branches import NOWHERE, ModelTree, TestedColumn, Ways
from anonfit.auditing.coding import IntArray
from anonfit.auditing.labels import ValueSet, leaf_interval
from anonfit.auditing.meanings import Meaning, read_meaning
from anonfit.auditing.placing import placed_on_line
from anonfit.auditing.region_cells import cell_count
from anonfit.auditing.region_tree import RegionNodes, read_nodes
from anonfit.auditing.settings import Settings, object_of, text_of
from anonfit.errors import ReleaseError, listed

__all__ = ["SavedTree", "read_saved_tree", "saved_tree_of"]

FORMAT = "anonfit tree"
VERSION = 1
MODEL = "model.json"
MOST = 1 << 53  # persons of a bin
ENTRIES = {
    "format",
    "version",
    "target",
    "classes",
    "class_is_public",
    "public",
    "populations",
    "columns",
    "nodes",
    "bins",
    "predicts",
}


@dataclass(frozen=True, slots=True)
class SavedTree:
    """A tree and what its release says of it."""

    tree: ModelTree
    public: tuple[str, ...]
    target: str
    classes: tuple[Any, ...]
    class_is_public: bool
    populations: str
    bins: Sequence[Sequence[float]] | None  # (leaf, class) persons or shares, as `populations` says
    predicts: Sequence[int]  # (leaf) a class

    @property
    def private(self) -> tuple[str, ...]:
        """The columns that are not public."""
        return tuple(name for name in self.tree.names if name not in self.public)


def saved_tree_of(model: Any) -> SavedTree | None:
    """The tree that a path or an object of anonfit holds; None for anything else."""
    if isinstance(model, (str, Path)):
        return _from_path(Path(model))
    for one in (model, getattr(model, "tree_", None)):
        writes = getattr(one, "to_model_json", None)
        if callable(writes):
            return read_saved_tree(writes(), "the tree")
    return None


def _from_path(path: Path) -> SavedTree:
    file = path / MODEL if path.is_dir() else path
    try:
        return read_saved_tree(text_of(file), str(file))
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{file} cannot be read as a tree: {type(error).__name__}.") from None


def read_saved_tree(text: str, label: str) -> SavedTree:
    """The tree of a text of model.json."""
    try:
        entries = object_of(text)
    except ValueError:
        raise ReleaseError(f"{label} is not JSON; it was cut short or edited by hand.") from None
    if entries.get("format") != FORMAT or entries.get("version") != VERSION:
        raise ReleaseError(f"{label} is no tree of anonfit: its format is not '{FORMAT}' version {VERSION}.")
    if strange := sorted(set(entries) - ENTRIES):
        raise ReleaseError(f"{label} holds what no tree of anonfit holds: {listed(strange)}; make the tree again.")
    found = Settings(entries, label, ReleaseError)
    columns = found.parts("columns")
    meanings = {column.get("name", str): read_meaning(column.get("name", str), column.entries) for column in columns}
    tree = _tree(found.get("nodes", dict), meanings)
    saved = SavedTree(
        tree,
        found.texts("public"),
        found.get("target", str),
        tuple(found.get("classes", list)),
        found.get("class_is_public", bool),
        found.word("populations", ("exact", "relative", "majority")),
        found.get("bins", list, None),
        found.get("predicts", list),
    )
    if len(meanings) < len(columns) or not set(saved.public) <= set(meanings) or not _whole(saved):
        raise ReleaseError(f"{label} is damaged; make the tree again.")
    return saved


def _whole(saved: SavedTree) -> bool:
    """Whether every leaf has a class, and bins where the release says so."""
    leaves, classes = len(saved.tree.leaves), len(saved.classes)
    if not all(isinstance(one, (str, int, float)) for one in saved.classes) or len(saved.predicts) != leaves:
        return False
    if not all(type(one) is int and 0 <= one < classes for one in saved.predicts):
        return False
    if saved.bins is None or saved.populations == "majority":
        return saved.bins is None and saved.populations == "majority"
    rows = all(isinstance(leaf, list) and len(leaf) == classes for leaf in saved.bins)
    return (
        rows
        and len(saved.bins) == leaves
        and all(type(one) in (int, float) and 0 <= one < MOST for leaf in saved.bins for one in leaf)
    )


def _tree(nodes: object, meanings: Mapping[str, Meaning]) -> ModelTree:
    """The tree over the cells of its columns."""
    sizes = np.array([cell_count(meaning) for meaning in meanings.values()], np.int64)
    read = read_nodes(nodes, meanings)
    first = 1 + np.cumsum(read.children) - read.children
    children = [
        tuple(range(start, start + count)) for start, count in zip(first.tolist(), read.children.tolist(), strict=True)
    ]
    ways = [
        None if column < 0 else _ways(read, node, children[node], int(sizes[column]))
        for node, column in enumerate(read.column.tolist())
    ]
    columns = tuple(
        TestedColumn(name, int(size), _placer(meaning))
        for (name, meaning), size in zip(meanings.items(), sizes.tolist(), strict=True)
    )
    return ModelTree(columns, tuple(read.column.tolist()), tuple(ways), tuple(children))


def _ways(nodes: RegionNodes, node: int, children: Sequence[int], size: int) -> Ways:
    """The child of every cell; cells that cannot come to the node are sent somewhere, too."""
    if nodes.set_of[node] >= 0:
        ways = np.ones(size, np.int32)
        ways[nodes.sets[nodes.set_of[node]]] = 0
        return ways
    starts = nodes.start[list(children[1:])]
    return np.searchsorted(starts, np.arange(size), side="right").astype(np.int32)


def _placer(meaning: Meaning) -> Callable[[pl.Series], IntArray]:
    """How raw values find the cells that the nodes count: missing is cell 0 of a column that has missing values."""
    shift = int(bool(meaning.missing))
    of_axis = _names(meaning) if meaning.type == "nominal" else _line(meaning)

    def place(series: pl.Series) -> IntArray:
        found = of_axis(series)  # 0: missing, 1 …: the other cells
        cells = np.where(found > 0, found - 1 + shift, found)
        if not shift:
            cells[found == 0] = NOWHERE
        return cells

    return place


def _names(meaning: Meaning) -> Callable[[pl.Series], IntArray]:
    axis = axis_of(meaning, ())

    def place(series: pl.Series) -> IntArray:
        cells = axis.place(series).cells.astype(np.int64)
        return np.where(cells == axis.cells - 1, NOWHERE, cells)

    return place


def _line(meaning: Meaning) -> Callable[[pl.Series], IntArray]:
    """Of ordered columns: what is between two cuts, a word, or a leaf of a taxonomy over values."""
    if meaning.tree is not None:
        return _leaves(meaning)
    ordinal = meaning.type == "ordinal"
    ends = [Decimal(place) for place in range(1, len(meaning.order))] if ordinal else sorted(meaning.cuts or ())

    def place(series: pl.Series) -> IntArray:
        cells = placed_on_line(series, meaning, ends=ends).cells.astype(np.int64)
        # On the line, cells are missing, below the first end, that end, between it and the next, …
        return np.where(cells == 0, 0, np.where(cells == 2 * len(ends) + 2, NOWHERE, cells // 2 + 1))

    return place


def _leaves(meaning: Meaning) -> Callable[[pl.Series], IntArray]:
    assert meaning.tree is not None
    intervals = [leaf_interval(leaf, meaning) for leaf in meaning.tree.leaves]
    sets = [ValueSet(intervals=() if one is None else (one,)) for one in intervals]
    axis = axis_of(meaning, sets)
    leaf_of = np.full(axis.cells, NOWHERE, np.int64)
    leaf_of[0] = 0
    for number, one in enumerate(sets):
        for low, high in axis.runs(one):
            leaf_of[low : high + 1] = number + 1
    return lambda series: leaf_of[axis.place(series).cells]
