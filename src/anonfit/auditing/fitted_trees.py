# SPDX-License-Identifier: Apache-2.0
"""Decision trees and forests that scikit-learn has fitted, as the audit sees them. Only their arrays are read; the
library itself is not needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from anonfit.auditing.branches import ModelTree, TestedColumn
from anonfit.auditing.coding import IntArray, is_text
from anonfit.errors import DataError

__all__ = ["FittedTrees", "feature_names", "is_fitted_tree", "read_fitted"]


@dataclass(frozen=True, slots=True)
class FittedTrees:
    """The trees of a fitted model, and how many training rows each of its nodes had where all trees saw every row."""

    trees: tuple[ModelTree, ...]
    rows: tuple[IntArray, ...] | None  # (tree)(node)


def is_fitted_tree(model: object) -> bool:
    """Whether a model is a fitted tree, or is made of such."""
    return bool(_arrays(model))


def feature_names(model: object, given: Sequence[str] | None) -> tuple[str, ...] | None:
    """The columns that a model reads, in its order; None if nobody says."""
    known = getattr(model, "feature_names_in_", None)
    if given is not None and known is not None and list(given) != list(known):
        raise DataError("The features given are not those that the model was fitted with; leave them out.")
    names = known if given is None else given
    return None if names is None else tuple(str(name) for name in names)


def read_fitted(model: Any, features: Sequence[str]) -> FittedTrees:
    """The trees of a fitted model over these columns."""
    arrays = _arrays(model)
    if getattr(model, "n_features_in_", len(features)) != len(features):
        raise DataError(f"The model reads {model.n_features_in_} columns, and {len(features)} are named.")
    chosen = getattr(model, "estimators_features_", None) or [range(len(features))] * len(arrays)
    trees = tuple(_read(one, [features[i] for i in some]) for one, some in zip(arrays, chosen, strict=True))
    is_whole = len(arrays) == 1 and hasattr(model, "tree_")
    return FittedTrees(trees, tuple(np.asarray(one.n_node_samples, np.int64) for one in arrays) if is_whole else None)


def _arrays(model: Any) -> list[Any]:
    """The arrays of the trees of a model; none if it has not only such."""
    inner = getattr(model, "tree_", None)
    if inner is not None:
        return [inner] if hasattr(inner, "children_left") else []
    parts = getattr(model, "estimators_", None)
    if parts is None or hasattr(model, "named_estimators_"):  # different models under different names
        return []
    found = [getattr(one, "tree_", None) for one in np.asarray(parts, object).ravel()]
    return found if all(hasattr(one, "children_left") for one in found) else []


def _read(arrays: Any, features: Sequence[str]) -> ModelTree:
    """One tree: a number goes left if it, in single precision, is at most the threshold."""
    left, right = np.asarray(arrays.children_left), np.asarray(arrays.children_right)
    is_leaf = left < 0
    feature, threshold = np.asarray(arrays.feature), np.asarray(arrays.threshold, np.float64)
    points = [np.unique(threshold[~is_leaf & (feature == number)]) for number in range(len(features))]
    go_left = np.asarray(getattr(arrays, "missing_go_to_left", np.zeros(len(left))), bool)
    ways: list[np.ndarray[Any, np.dtype[np.int32]] | None] = []
    for node in range(len(left)):
        if is_leaf[node]:
            ways.append(None)
            continue
        cuts = points[feature[node]]
        # Cell i is between the thresholds i - 1 and i; missing is the cell after the last.
        way = (np.arange(len(cuts) + 2) > np.searchsorted(cuts, threshold[node])).astype(np.int32)
        way[-1] = 0 if go_left[node] else 1
        ways.append(way)
    return ModelTree(
        tuple(_column(name, cuts) for name, cuts in zip(features, points, strict=True)),
        tuple(-1 if is_leaf[node] else int(feature[node]) for node in range(len(left))),
        tuple(ways),
        tuple(() if is_leaf[node] else (int(left[node]), int(right[node])) for node in range(len(left))),
    )


def _column(name: str, cuts: np.ndarray[Any, np.dtype[np.float64]]) -> TestedColumn:
    def place(series: pl.Series) -> IntArray:
        values = _numbers(series)
        found = np.searchsorted(cuts, values.astype(np.float32).astype(np.float64)).astype(np.int64)
        found[np.isnan(values)] = len(cuts) + 1
        return found

    return TestedColumn(name, len(cuts) + 2, place)


def _numbers(series: pl.Series) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A column as numbers, missing ones as not-a-number."""
    numbers = series
    if is_text(series):
        numbers = series.cast(pl.String).cast(pl.Float64, strict=False)
    elif not (series.dtype.is_numeric() or series.dtype == pl.Boolean):
        numbers = pl.Series([None] * len(series), dtype=pl.Float64)
    if numbers.null_count() > series.null_count():
        raise DataError(f"The tree compares column '{series.name}' with numbers, and it holds other values.")
    found: np.ndarray[Any, np.dtype[np.float64]] = numbers.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return found
