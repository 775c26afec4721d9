# SPDX-License-Identifier: Apache-2.0
"""Decision trees as the audit sees them, whoever made them: read from the arrays of scikit-learn's, which is not needed
itself, or from model.json of a tree's folder, and the ways that rows take through them.

Values of a column that no test of the tree tells apart are one *cell*; a test sends every cell of its column to one of
its children.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing.boxes import axis_of, leaf_placer, placed_on_line
from anonfit.auditing.coding import BoolArray, Coded, FloatArray, IntArray, is_text, join_codes, numbered
from anonfit.auditing.meanings import JsonObject, LabelMeaning, object_of, read_meaning, text_of
from anonfit.auditing.recoding import RegionNodes, read_nodes
from anonfit.errors import DataError, ReleaseError, listed

NOWHERE = -1
"""The cell of a value that the tree does not know, and the child of a cell that cannot come to a test."""
Ways = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class TestedColumn:
    """The cells of a column, and how values find theirs."""

    name: str
    size: int
    place: Callable[[pl.Series], IntArray]


@dataclass(frozen=True, slots=True)
class ModelTree:
    """Nodes by number, the root is 0."""

    columns: tuple[TestedColumn, ...]
    tested: tuple[int, ...]  # (node) the column it tests, -1 for a leaf
    ways: tuple[Ways | None, ...]  # (node)(cell) the number of the child that the cell is sent to
    children: tuple[tuple[int, ...], ...]  # (node)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that the tree may test."""
        return tuple(column.name for column in self.columns)

    @property
    def leaves(self) -> list[int]:
        """The nodes that test nothing."""
        return [node for node, column in enumerate(self.tested) if column < 0]


def points_of(tree: ModelTree, frame: pl.DataFrame, names: Sequence[str]) -> tuple[IntArray, int, dict[int, IntArray]]:
    """Rows with the same cells in those of these columns that are tested somewhere are one point: the point of every
    row, how many there are, and the cells of each by the number of the column.
    """
    tested = [number for number in sorted(set(tree.tested) - {-1}) if tree.columns[number].name in names]
    cells = {number: tree.columns[number].place(frame[tree.columns[number].name]) for number in tested}
    columns = [Coded(of_row - NOWHERE, tree.columns[number].size - NOWHERE) for number, of_row in cells.items()]
    codes, first = numbered(join_codes(columns, len(frame))[0])
    return codes - 1, len(first), {number: of_row[first] for number, of_row in cells.items()}


def route(tree: ModelTree, cells: Mapping[int, IntArray], points: int) -> Iterator[tuple[int, IntArray]]:
    """The leaves, each with the points that can come there. `cells` has the cell of every point in the columns that
    are known; a test of any other column may come out as its earlier tests on the path allow.
    """
    stack: list[tuple[int, IntArray, dict[int, BoolArray]]] = [(0, np.arange(points), {})]
    while stack:
        node, here, left = stack.pop()
        ways, column = tree.ways[node], tree.tested[node]
        if ways is None:
            yield node, here
        elif column in cells:
            goes = ways[cells[column][here]]
            if ((goes < 0) | (cells[column][here] < 0)).any():
                raise DataError(
                    f"Some values of column '{tree.columns[column].name}' are missing or are not known to the tree, so "
                    "it sends them nowhere; leave these rows out."
                )
            for number, child in enumerate(tree.children[node]):
                there = here[goes == number]
                if len(there):
                    stack.append((child, there, left))
        else:
            before = left.get(column, True)
            for number, child in enumerate(tree.children[node]):
                after = before & (ways == number)
                if after.any():
                    stack.append((child, here, {**left, column: after}))


def leaf_of_rows(tree: ModelTree, frame: pl.DataFrame) -> IntArray:
    """The leaf that every row really comes to."""
    point_of_row, points, cells = points_of(tree, frame, tree.names)
    leaf_of_point = np.full(points, NOWHERE, np.int64)
    for leaf, here in route(tree, cells, points):
        leaf_of_point[here] = leaf
    return leaf_of_point[point_of_row]


@dataclass(frozen=True, slots=True)
class FittedTrees:
    """The trees of a fitted model, and how many training rows each node had of a single tree, which saw all rows."""

    trees: tuple[ModelTree, ...]
    rows: IntArray | None  # (node)


def feature_names(model: object, given: Sequence[str] | None) -> tuple[str, ...] | None:
    """The columns that a model reads, in its order; None if nobody says."""
    known = getattr(model, "feature_names_in_", None)
    if given is not None and known is not None and list(given) != list(known):
        raise DataError("The features given are not those that the model was fitted with; leave them out.")
    names = known if given is None else given
    return None if names is None else tuple(str(name) for name in names)


def read_fitted(model: Any, features: Sequence[str]) -> FittedTrees:
    """The trees of a fitted model over these columns."""
    arrays = tree_arrays(model)
    if getattr(model, "n_features_in_", len(features)) != len(features):
        raise DataError(f"The model reads {model.n_features_in_} columns, and {len(features)} are named.")
    chosen = getattr(model, "estimators_features_", None) or [range(len(features))] * len(arrays)
    trees = tuple(_read(tree, [features[i] for i in places]) for tree, places in zip(arrays, chosen, strict=True))
    is_single = len(arrays) == 1 and hasattr(model, "tree_")
    return FittedTrees(trees, np.asarray(arrays[0].n_node_samples, np.int64) if is_single else None)


def tree_arrays(model: Any) -> list[Any]:
    """The arrays of the trees of a fitted model; none if it has not only such."""
    inner = getattr(model, "tree_", None)
    parts = [model] if inner is not None else getattr(model, "estimators_", None)
    if parts is None or hasattr(model, "named_estimators_"):  # different models under different names
        return []
    trees = [getattr(part, "tree_", None) for part in np.asarray(parts, object).ravel()]
    return trees if all(hasattr(part, "children_left") for part in trees) else []


def _read(arrays: Any, features: Sequence[str]) -> ModelTree:
    """One tree: a number goes left if it, in single precision, is at most the threshold."""
    left, right, feature = (np.asarray(part) for part in (arrays.children_left, arrays.children_right, arrays.feature))
    threshold = np.asarray(arrays.threshold, np.float64)
    tested = np.where(left < 0, -1, feature)
    points = [np.unique(threshold[tested == number]) for number in range(len(features))]
    go_left = np.asarray(getattr(arrays, "missing_go_to_left", np.zeros(len(left))), bool)
    ways: list[Ways | None] = [None] * len(left)
    for node in np.flatnonzero(left >= 0).tolist():
        cuts = points[feature[node]]
        # Cell i is between the thresholds i - 1 and i; missing is the cell after the last.
        way = (np.arange(len(cuts) + 2) > np.searchsorted(cuts, threshold[node])).astype(np.int32)
        way[-1] = 0 if go_left[node] else 1
        ways[node] = way
    return ModelTree(
        tuple(_column(name, cuts) for name, cuts in zip(features, points, strict=True)),
        tuple(tested.tolist()),
        tuple(ways),
        tuple(() if low < 0 else (low, high) for low, high in zip(left.tolist(), right.tolist(), strict=True)),
    )


def _column(name: str, cuts: FloatArray) -> TestedColumn:
    """A column that is compared with numbers; missing ones are in the cell after the last."""

    def place(series: pl.Series) -> IntArray:
        numbers = series.cast(pl.String) if is_text(series) else series
        if not (numbers.dtype.is_numeric() or numbers.dtype in (pl.Boolean, pl.String)):
            numbers = pl.Series([None] * len(series), dtype=pl.Float64)
        numbers = numbers.cast(pl.Float64, strict=False)
        if numbers.null_count() > series.null_count():
            raise DataError(f"The tree compares column '{name}' with numbers, and it holds other values.")
        values = numbers.fill_null(float("nan")).to_numpy()
        cells = np.searchsorted(cuts, values.astype(np.float32).astype(np.float64)).astype(np.int64)
        cells[np.isnan(values)] = len(cuts) + 1
        return cells

    return TestedColumn(name, len(cuts) + 2, place)


FORMAT = "anonfit tree"
VERSION = 1
MODEL = "model.json"
MOST = 1 << 53  # persons of a bin
ENTRIES = {
    *("format", "version", "target", "classes", "class_is_public", "public", "populations", "columns", "nodes"),
    *("bins", "predicts"),
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


def saved_tree_of(model: Any) -> SavedTree | None:
    """The tree that a path or an object of anonfit holds; None for anything else."""
    if isinstance(model, (str, Path)):
        file = Path(model) / MODEL if Path(model).is_dir() else Path(model)
        try:
            return read_saved_tree(text_of(file), str(file))
        except (OSError, ValueError) as error:
            raise ReleaseError(f"{file} cannot be read as a tree: {type(error).__name__}.") from None
    for holder in (model, getattr(model, "tree_", None)):
        writes = getattr(holder, "to_model_json", None)
        if callable(writes):
            return read_saved_tree(writes(), "the tree")
    return None


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
    settings = JsonObject(entries, label, ReleaseError)
    columns = settings.parts("columns")
    meanings = {column.get("name", str): read_meaning(column.get("name", str), column.entries) for column in columns}
    tree = _tree(settings.get("nodes", dict), meanings)
    saved = SavedTree(
        tree,
        settings.texts("public"),
        settings.get("target", str),
        tuple(settings.get("classes", list)),
        settings.get("class_is_public", bool),
        settings.word("populations", ("exact", "relative", "majority")),
        settings.get("bins", list, None),
        settings.get("predicts", list),
    )
    if len(meanings) < len(columns) or not set(saved.public) <= set(meanings) or not _whole(saved):
        raise ReleaseError(f"{label} is damaged; make the tree again.")
    return saved


def _whole(saved: SavedTree) -> bool:
    """Whether every leaf has a class, and bins where the release says so."""
    leaves, classes = len(saved.tree.leaves), len(saved.classes)
    if not all(isinstance(value, (str, int, float)) for value in saved.classes) or len(saved.predicts) != leaves:
        return False
    if not all(type(value) is int and 0 <= value < classes for value in saved.predicts):
        return False
    if saved.bins is None or saved.populations == "majority":
        return saved.bins is None and saved.populations == "majority"
    if len(saved.bins) != leaves or not all(isinstance(leaf, list) and len(leaf) == classes for leaf in saved.bins):
        return False
    return all(type(value) in (int, float) and 0 <= value < MOST for leaf in saved.bins for value in leaf)


def _tree(nodes: object, meanings: Mapping[str, LabelMeaning]) -> ModelTree:
    """The tree over the cells of its columns."""
    read = read_nodes(nodes, meanings)
    columns = tuple(TestedColumn(name, meaning.cells, _placer(meaning)) for name, meaning in meanings.items())
    tested = tuple(read.column.tolist())
    ends = (1 + np.cumsum(read.children)).tolist()
    children = tuple(tuple(range(end - count, end)) for end, count in zip(ends, read.children.tolist(), strict=True))
    ways = tuple(
        None if column < 0 else _ways(read, node, children[node], columns[column].size)
        for node, column in enumerate(tested)
    )
    return ModelTree(columns, tested, ways, children)


def _ways(nodes: RegionNodes, node: int, children: Sequence[int], size: int) -> Ways:
    """The child of every cell; cells that cannot come to the node are sent somewhere, too."""
    if nodes.set_of[node] >= 0:
        ways = np.ones(size, np.int32)
        ways[nodes.cells_of(nodes.set_of[[node]])[0]] = 0
        return ways
    starts = nodes.start[list(children[1:])]
    return np.searchsorted(starts, np.arange(size), side="right").astype(np.int32)


def _placer(meaning: LabelMeaning) -> Callable[[pl.Series], IntArray]:
    """How raw values find the cells that the nodes count: missing is cell 0 of a column that has missing values."""
    axis = axis_of(meaning, ())
    of_leaf = leaf_placer(meaning.tree.leaves, meaning) if meaning.tree is not None else None
    words = [Decimal(place) for place in range(1, len(meaning.order))]
    ends = words if meaning.type == "ordinal" else sorted(meaning.cuts or ())

    def place(series: pl.Series) -> IntArray:
        places: Any  # 0: missing, 1 …: the other cells
        if meaning.type == "nominal":
            cells = axis.place(series).cells
            places = np.where(cells == axis.cells - 1, NOWHERE, cells)
        elif of_leaf is not None:
            places = of_leaf(series)
        else:
            # On the line, cells are missing, below the first end, that end, between it and the next, …
            cells = placed_on_line(series, meaning, ends=ends).cells
            places = np.where(cells == 0, 0, np.where(cells == 2 * len(ends) + 2, NOWHERE, cells // 2 + 1))
        return np.where(places < 0, NOWHERE, places - 1 + bool(meaning.missing)).astype(np.int64)

    return place
