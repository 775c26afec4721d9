# SPDX-License-Identifier: Apache-2.0
"""The nearest safe tree: a fitted tree of scikit-learn, pruned until it is k-anonymous."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.trees.building import Training, finish_tree, pruned_at
from anonfit.algorithms.trees.growing import Demand, GrownTree, demand_of, require_demand
from anonfit.algorithms.trees.making import classes_of_target
from anonfit.algorithms.trees.released import ReleasedTree, release_tree
from anonfit.engines.tree import LEAF, Tree
from anonfit.errors import AuditFailed, DataError, RequestError, did_you_mean, listed
from anonfit.tables.codebook import code_column
from anonfit.tables.frames import from_frame
from anonfit.tables.reading import ReadOptions, read_table
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import Codes, Column, ColumnType, OrderedDomain, Persons, Role
from anonfit.workload.targets import TargetRequest

if TYPE_CHECKING:
    import polars as pl

OTHER_ROWS = "these are not the rows it was taught with, and these are the ones to protect."


@dataclass(frozen=True, slots=True)
class FittedTree:
    """The tests of a fitted tree, in breadth-first order, and the columns that they are of."""

    tree: Tree
    domains: tuple[OrderedDomain, ...]
    codes: tuple[Codes, ...]  # (column)(row)
    taught: NDArray[np.int64]  # (node,) the rows it had when it was fitted; of a tree of a forest, those drawn for it


def features_of(model: Any, features: Sequence[str] | None) -> tuple[str, ...]:
    """The columns that a fitted tree reads, in its order."""
    if not hasattr(getattr(model, "tree_", None), "children_left"):
        raise RequestError(
            f"a {type(model).__name__} is no fitted decision tree of scikit-learn; of a forest, give one of its "
            "'estimators_'."
        )
    if not hasattr(model, "classes_"):
        raise RequestError(f"a {type(model).__name__} tells numbers and not classes; only trees of classes are pruned.")
    known = getattr(model, "feature_names_in_", None)
    if features is not None and known is not None and list(features) != list(known):
        raise RequestError("the features given are not those that the tree was fitted with; leave them out.")
    names = features if features is not None else known
    if names is None:
        raise RequestError("the tree does not know the names of its columns: give them as 'features', in its order.")
    if len(names) != model.tree_.n_features:
        raise RequestError(f"the tree reads {model.tree_.n_features} columns, and {len(names)} are named.")
    return tuple(str(name) for name in names)


def read_fitted_tree(model: Any, frame: pl.DataFrame, features: Sequence[str]) -> FittedTree:
    """A fitted tree over the codes of rows; a cut stands between the values that its threshold parts, so that it need
    not be the threshold itself, which lies halfway between those of two rows.
    """
    arrays = model.tree_
    coded = [_coded(name, frame) for name in features]
    # Thresholds are compared with numbers in single precision.
    single = [np.asarray(domain.values).astype(np.float32).astype(np.float64) for domain, _ in coded]
    order = [0]  # breadth first
    for node in order:
        if arrays.children_left[node] >= 0:
            order += [int(arrays.children_left[node]), int(arrays.children_right[node])]
    count = len(order)
    place = {node: number for number, node in enumerate(order)}
    column, width = np.full(count, LEAF, np.int32), np.zeros(count, np.int32)
    start, before = np.zeros(count, np.int32), np.full(count, -1, np.int32)
    for number, node in enumerate(order):
        right = int(arrays.children_right[node])
        if right < 0:
            continue
        feature = int(arrays.feature[node])
        column[number], width[number] = feature, 2
        cut = int(np.searchsorted(single[feature], float(arrays.threshold[node]), side="right"))
        if not 0 < cut < len(single[feature]):
            raise DataError(f"no value of column '{features[feature]}' is beyond a threshold of the tree: {OTHER_ROWS}")
        start[place[right]], before[place[right]] = cut, cut - 1
    tree = Tree(column, width, start, before, np.full(count, -1, np.int32))
    taught = np.asarray(arrays.n_node_samples, np.int64)[order]
    return FittedTree(tree, tuple(domain for domain, _ in coded), tuple(codes for _, codes in coded), taught)


def _coded(name: str, frame: pl.DataFrame) -> tuple[OrderedDomain, Codes]:
    """A column of numbers."""
    import polars as pl

    if name not in frame.columns:
        raise DataError(f"the data has no column '{name}', which the tree reads.")
    values = frame[name]
    values = values.cast(pl.Int8) if values.dtype == pl.Boolean else values
    if not values.dtype.is_numeric():
        raise DataError(f"the tree compares column '{name}' with numbers, and it holds other values.")
    if values.is_null().any() or (values.dtype.is_float() and values.is_nan().any()):
        raise DataError(
            f"column '{name}' has missing values: what a missing value tells of a person is not modelled for trees; "
            "leave those rows out, or fill them."
        )
    coded = code_column(
        Column(name, Role.QUASI_IDENTIFIER, ColumnType.CONTINUOUS), values, persons=Persons(len(values)).of_groups, k=1
    )
    assert isinstance(coded.domain, OrderedDomain)
    return coded.domain, coded.codes


def nearest_safe_tree(
    model: Any,
    data: Any,
    *,
    public: Sequence[str],
    private: Sequence[str],
    k: int,
    target: str | None = None,
    entropy_l: float = 1.0,
    max_confidence: float = 1.0,
    features: Sequence[str] | None = None,
    populations: str = "exact",
) -> ReleasedTree:
    """Prune a fitted scikit-learn decision tree until it is k-anonymous with respect to its training rows.

    Args:
        model: The fitted tree.
        data: The rows it was taught with, and their class: a path, or a polars, pandas or Arrow frame.
        public: Columns an attacker may know of a person.
        private: Columns nobody else knows. The class is one of them, or of the public ones.
        k: The individuals asked of the smallest span.
        target: The column of the class; not needed where all other columns named are read by the tree.
        entropy_l: At least the entropy of so many equally frequent classes is in every span.
        max_confidence: The highest share that a class may have in a span.
        features: The columns that the tree reads, in its order, where it does not know their names.
        populations: What is told of the leaves: `exact`, `relative` or `majority`.

    Returns:
        The tree as far as it is safe; it predicts, and can be saved, drawn and audited. Cuts are not the thresholds of
        the fitted tree, but the simplest numbers that part the same rows.
    """
    demand, names = demand_of(k, entropy_l, max_confidence), features_of(model, features)
    target = _target(target, names, public, private)
    frame = read_table(Path(data), ReadOptions()) if isinstance(data, str | Path) else from_frame(data)
    if target not in frame.columns:
        raise DataError(f"the data has no column '{target}', which is the class; {did_you_mean(target, frame.columns)}")
    classes = classes_of_target(TargetRequest(target), Column(target, Role.TARGET, ColumnType.NOMINAL), frame[target])
    is_known = target in public
    counts = np.bincount(classes.of_row, minlength=len(classes.names))
    require_demand(demand, counts, class_is_public=is_known)
    fitted = read_fitted_tree(model, frame, names)
    is_public = [name in public for name in names]
    grown = GrownTree(fitted.tree, _counts(fitted, classes.of_row, len(classes.names)))
    if (grown.counts.sum(axis=1) < fitted.taught).any():
        raise DataError(f"some nodes of the tree were taught with more rows than the data has: {OTHER_ROWS}")
    kept = safe_tests(fitted, is_public, classes.of_row, demand, grown.counts, class_is_public=is_known)
    training = Training(fitted.domains, fitted.codes, classes.of_row, public, target, classes.names, is_known)
    tree = finish_tree(pruned_at(grown, ~kept), training, CutPoints.SIMPLEST).tree
    if not demand.allows(tree.spans.counts).all():
        raise AuditFailed("a span of the pruned tree does not hold what was asked; this is a fault of anonfit.")
    return release_tree(tree, populations)


def _target(target: str | None, names: Sequence[str], public: Sequence[str], private: Sequence[str]) -> str:
    """The class: the one column named that the tree does not read."""
    if isinstance(public, str) or isinstance(private, str):
        raise RequestError("'public' and 'private' are lists of columns.")
    if both := sorted(set(public) & set(private)):
        raise RequestError(f"both public and private: {listed(both)}; a column is one of these.")
    if absent := [name for name in names if name not in (*public, *private)]:
        raise RequestError(f"the tree reads {listed(absent)}; name it as a public or as a private column.")
    rest = [name for name in (*public, *private) if name not in names]
    if target is None and len(rest) == 1:
        return rest[0]
    if target is None or target not in rest:
        raise RequestError(
            "name the class as 'target', and among the public or private columns; the tree does not read it."
        )
    return target


def _counts(fitted: FittedTree, classes: NDArray[np.int32], width: int) -> NDArray[np.int64]:
    """(node, class) the rows that come to each node."""
    tree = fitted.tree
    counts = np.zeros((len(tree.column), width), np.int64)
    reach = {0: np.arange(len(classes))}
    for node, (column, first) in enumerate(zip(tree.column.tolist(), tree.first_child.tolist(), strict=True)):
        rows = reach.pop(node)
        counts[node] = np.bincount(classes[rows], minlength=width)
        if column != LEAF:
            goes = fitted.codes[column][rows] >= tree.start[first + 1]
            reach[first], reach[first + 1] = rows[~goes], rows[goes]
    return counts


def safe_tests(
    fitted: FittedTree,
    public: Sequence[bool],
    classes: NDArray[np.int32],
    demand: Demand,
    counts: NDArray[np.int64],
    *,
    class_is_public: bool,
) -> NDArray[np.bool_]:
    """Which nodes may keep their test: the best ones are put back first. counts: (node, class)"""
    tree, width = fitted.tree, counts.shape[1]
    kept = np.zeros(len(tree.column), bool)
    spans = classes.astype(np.int64) if class_is_public else np.zeros(len(classes), np.int64)  # (row,)
    used = width
    reach = {0: np.arange(len(classes))}  # the rows that can come to each node that waits
    gains = _gains(tree, counts)
    queue = [(-gains[0], 0)]
    while queue:
        _, node = heapq.heappop(queue)
        column, first = int(tree.column[node]), int(tree.first_child[node])
        rows = reach.pop(node)
        if column == LEAF:
            continue
        left = right = rows
        if public[column]:
            goes = fitted.codes[column][rows] >= tree.start[first + 1]
            _, part = np.unique(2 * spans[rows] + goes, return_inverse=True)
            parts = int(part.max(initial=-1)) + 1
            of_parts = np.bincount(part * width + classes[rows], minlength=parts * width).reshape(parts, width)
            if not demand.allows(of_parts).all():
                continue
            spans[rows] = used + part
            used += parts
            left, right = rows[~goes], rows[goes]
        kept[node] = True
        for child, coming in ((first, left), (first + 1, right)):
            reach[child] = coming
            heapq.heappush(queue, (-gains[child], child))
    return kept


def _gains(tree: Tree, counts: NDArray[np.int64]) -> list[float]:
    """(node,) the information gain of each test: bits, over all persons of its node."""
    persons = counts.sum(axis=1)
    bits = persons * np.log2(np.maximum(persons, 1)) - (counts * np.log2(np.maximum(counts, 1))).sum(axis=1)
    first = tree.first_child
    gains = np.zeros(len(bits))
    split = np.flatnonzero(tree.column != LEAF)
    gains[split] = bits[split] - bits[first[split]] - bits[first[split] + 1]
    # Equal gains are equal whatever rounding does to them: then the earlier node comes first.
    return [round(gain, 6) for gain in gains.tolist()]
