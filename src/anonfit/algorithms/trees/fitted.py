# SPDX-License-Identifier: Apache-2.0
"""A decision tree that scikit-learn has fitted, over the codes of its training rows. Only its arrays are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.tree import LEAF, Tree
from anonfit.errors import DataError, RequestError
from anonfit.tables.codebook import code_column
from anonfit.tables.schema import Column, ColumnType, OrderedDomain, Role

if TYPE_CHECKING:
    import polars as pl

__all__ = ["OTHER_ROWS", "FittedTree", "features_of", "read_fitted_tree"]


OTHER_ROWS = "these are not the rows it was taught with, and these are the ones to protect."


@dataclass(frozen=True, slots=True)
class FittedTree:
    """The tests of a fitted tree, in breadth-first order, and the columns that they are of."""

    tree: Tree
    domains: tuple[OrderedDomain, ...]
    codes: tuple[NDArray[np.int32], ...]  # (column)(row)
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
    order, children = [0], {0: (int(arrays.children_left[0]), int(arrays.children_right[0]))}
    for node in order:
        left, right = int(arrays.children_left[node]), int(arrays.children_right[node])
        children[node] = (left, right)
        if left >= 0:
            order.extend((left, right))
    count = len(order)
    place = {node: number for number, node in enumerate(order)}
    column, width = np.full(count, LEAF, np.int32), np.zeros(count, np.int32)
    start, before = np.zeros(count, np.int32), np.full(count, -1, np.int32)
    for number, node in enumerate(order):
        left, right = children[node]
        if left < 0:
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


def _coded(name: str, frame: pl.DataFrame) -> tuple[OrderedDomain, NDArray[np.int32]]:
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
    found = code_column(
        Column(name, Role.QUASI_IDENTIFIER, ColumnType.CONTINUOUS),
        values,
        persons=lambda groups, count: np.bincount(groups, minlength=count),
        k=1,
    )
    assert isinstance(found.domain, OrderedDomain)
    return found.domain, found.codes.astype(np.int32)
