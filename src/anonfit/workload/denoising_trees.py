# SPDX-License-Identifier: Apache-2.0
"""The trees of scikit-learn's gradient boosting, read so that rows need not be sent down each of them. How they are
kept is scikit-learn's own matter, so what is read must say what scikit-learn says; else it is asked itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.memory.boosting import MOST_LEAVES, BoostedTrees, Feature, make_trees
from anonfit.tables.schema import Codes
from anonfit.workload.denoising_models import Constant, FoldFeatures, Matrix, Model

_TRIED = 256  # examples that are predicted both ways
_CATEGORIES = np.append(np.arange(256.0), np.nan)


@dataclass(frozen=True, slots=True)
class FoldModel:
    """The model of a fold, which predicts rows of this fold; `trees` are its own, where they could be read."""

    model: Model
    features: FoldFeatures
    trees: BoostedTrees | None = None

    def __call__(self, codes: Sequence[Codes], rows: int) -> Matrix:
        """Shares of classes, or one column of numbers. # (row, class)"""
        if self.trees is None or isinstance(self.model, Constant):
            return self.model(self.features.matrix(codes, np.full(rows, self.features.fold)))
        return self.model.of_sums(self.trees.sums(codes))


def fold_model(model: Model, features: FoldFeatures, codes: Sequence[Codes]) -> FoldModel:
    """A model with its trees, if these say the same as it does of some of the codes."""
    asked = FoldModel(model, features)
    if isinstance(model, Constant):
        return asked
    try:
        trees = _read(model.fitted, features)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):  # another scikit-learn keeps them otherwise
        return asked
    by_trees = FoldModel(model, features, trees)
    tried = [own[:_TRIED] for own in codes]
    rows = len(tried[0])
    return by_trees if trees is not None and np.array_equal(by_trees(tried, rows), asked(tried, rows)) else asked


def _read(fitted: Any, features: FoldFeatures) -> BoostedTrees | None:
    """The trees of a model; None where they have no splits, or too many leaves."""
    outputs = int(fitted.n_trees_per_iteration_)
    trees = [iteration[output] for output in range(outputs) for iteration in fitted._predictors]
    nodes = np.concatenate([tree.nodes for tree in trees])
    sizes = [len(tree.nodes) for tree in trees]
    tree_of = np.repeat(np.arange(len(trees)), sizes)
    is_leaf = nodes["is_leaf"] == 1
    # Nodes stand before those below them, on the left first, so leaves are met from left to right.
    begins = np.cumsum([0, *sizes[:-1]])
    rank = np.cumsum(is_leaf) - is_leaf
    rank -= rank[begins][tree_of]
    if rank.max() >= MOST_LEAVES or is_leaf.all():
        return None
    leaves = np.zeros((len(trees), MOST_LEAVES))
    leaves[tree_of[is_leaf], rank[is_leaf]] = nodes["value"][is_leaf]
    first, last = (rank[nodes[side] + begins[tree_of]] for side in ("left", "right"))
    split = _Splits(
        nodes[~is_leaf],
        tree_of[~is_leaf],
        (~((1 << last) - (1 << first)))[~is_leaf].astype(np.uint16),
        np.concatenate([tree.raw_left_cat_bitsets for tree in trees]),
        np.cumsum([0, *(len(tree.raw_left_cat_bitsets) for tree in trees)]),
    )
    read = list(_features(fitted, features, split, len(trees)))
    return make_trees(read, leaves, np.asarray(fitted._baseline_prediction, np.float64).ravel())


@dataclass(frozen=True, slots=True)
class _Splits:
    """The nodes of all trees that are split, the tree of each, the leaves that its right side leaves, and the sets of
    categories that go left, which begin at a place for each tree.
    """

    nodes: NDArray[Any]
    tree: NDArray[np.int64]
    right: NDArray[np.uint16]
    categories: NDArray[np.uint32]
    begins: NDArray[np.int64]

    def of(self, feature: int) -> _Splits:
        """Those by one feature."""
        chosen = self.nodes["feature_idx"] == feature
        return _Splits(self.nodes[chosen], self.tree[chosen], self.right[chosen], self.categories, self.begins)

    def goes_left(self, bins: NDArray[np.int64], thresholds: NDArray[np.float64] | None) -> NDArray[np.bool_]:
        """Whether each bin goes left at each node: of categories, or of numbers up to thresholds. # (node, bin)"""
        if thresholds is not None:
            return bins <= np.searchsorted(thresholds, self.nodes["num_threshold"])[:, None]
        sets = self.categories[self.nodes["bitset_idx"] + self.begins[self.tree]]
        return np.asarray((sets[:, bins >> 5] >> (bins & 31).astype(np.uint32)) & 1 == 1)


def _features(fitted: Any, features: FoldFeatures, splits: _Splits, trees: int) -> Iterator[Feature]:
    """The features that trees split by: categories first, as scikit-learn puts them."""
    numbers = [*features.plain]
    numbers += [(column, own) for column, means in features.wide for own in means[features.fold].T]
    are_categories = np.array(features.categorical, np.bool_)
    given = np.repeat(_CATEGORIES[:, None], len(numbers), axis=1)
    encoded = fitted._preprocess_X(given, reset=False)
    for place, index in enumerate(np.argsort(~are_categories, kind="stable").tolist()):
        own = splits.of(place)
        if not len(own.nodes):
            continue
        column, values = numbers[index]
        thresholds = None if are_categories[index] else np.unique(own.nodes["num_threshold"])
        if thresholds is None:
            values = encoded[np.where(np.isnan(values), len(_CATEGORIES) - 1, values).astype(np.int64), place]
            known = np.arange(int(np.nanmax(values)) + 1)
            bins = values
        else:
            known = np.arange(len(thresholds) + 1)
            bins = np.searchsorted(thresholds, values).astype(np.float64)
        bins = np.where(np.isnan(values), len(known), np.nan_to_num(bins)).astype(np.int64)
        missing = own.nodes["missing_go_to_left"][:, None] == 1
        left = np.concatenate([own.goes_left(known, thresholds), missing], axis=1)
        masks = np.where(left, np.uint16(0xFFFF), own.right[:, None])
        kept = np.full((trees, left.shape[1]), 0xFFFF, np.uint16)
        changed = np.flatnonzero(np.diff(own.tree, prepend=-1))
        kept[own.tree[changed]] = np.bitwise_and.reduceat(masks, changed, axis=0)
        yield Feature(column, bins, kept)
