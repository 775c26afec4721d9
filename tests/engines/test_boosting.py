# SPDX-License-Identifier: Apache-2.0
"""Boosted trees are, to the last bit, those of scikit-learn's HistGradientBoosting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from anonfit.engines.memory.boosting import Feature, make_trees
from anonfit.engines.memory.boosting_fitting import BoostingExamples, BoostingSettings, GrownTrees, fit
from anonfit.engines.memory.boosting_losses import Loss, ManyShares, SquaredError, TwoShares

ITERATIONS = 25


def _table(rng: np.random.Generator, rows: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Numbers, all of them from 0 to some size in the first rows, and which columns are categories: these come first."""
    columns = int(rng.integers(1, 6))
    sizes = np.minimum(rng.integers(2, rng.choice([4, 20, 250]), columns), rows // 2)
    table = np.stack([np.append(np.arange(size), rng.integers(0, size, rows - size)) for size in sizes], 1).astype(
        float
    )
    if rng.random() < 0.5:
        table[rows // 2 :][rng.random((rows - rows // 2, columns)) < 0.1] = np.nan
    return table, np.arange(columns) < int(rng.integers(0, columns + 1))


def _trees(grown: GrownTrees, sizes: NDArray[np.int64]) -> Any:
    left = grown.left.reshape(-1, grown.left.shape[-1])
    begins = np.cumsum([0, *(sizes + 1)])
    features = [Feature(i, np.arange(size + 1), left[:, begins[i] : begins[i + 1]]) for i, size in enumerate(sizes)]
    return make_trees(features, grown.leaves.reshape(len(left), -1), grown.start)


@pytest.mark.parametrize("case", range(24))
def test_trees_are_those_of_scikit_learn(case: int) -> None:
    rng = np.random.default_rng(case)
    rows = int(rng.integers(60, 1200))
    table, nominal = _table(rng, rows)
    luck = rng.random(rows) * rng.choice([0.1, 1, 3])
    score = np.nan_to_num(table[:, 0]) / np.nanmax(table[:, 0]) + np.nan_to_num(table[:, -1] % 3) / 3 + luck
    classes = [2, 3, 5, 0][case % 4]
    target = score if not classes else np.argsort(np.argsort(score)) * classes // rows * 1.0
    weights = rng.integers(1, 4, rows) * rng.choice([1.0, 0.7321])
    learned = (np.arange(rows) < rows // 2) | (rng.random(rows) < 0.7)  # all values and classes are among these
    checked = ~learned if case % 5 else np.zeros(rows, np.bool_)
    leaf = int(rng.choice([1, 5, 20]))
    settings = BoostingSettings(ITERATIONS, 0.1, 15, leaf, 5.0, patience=4)

    sizes = np.nanmax(table[learned], axis=0).astype(np.int64) + 1
    bins = np.where(np.isnan(table), sizes, np.nan_to_num(table)).astype(np.uint8)
    assert set(target[learned]) == set(target) or not classes
    loss: Loss = SquaredError() if not classes else TwoShares() if classes == 2 else ManyShares(classes)
    shown, held = (BoostingExamples(bins[part], target[part], weights[part]) for part in (learned, checked))
    trees = _trees(fit(shown, held if checked.any() else None, sizes, nominal, loss, settings), sizes)

    learner = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    model = learner(
        max_iter=ITERATIONS,
        learning_rate=0.1,
        max_leaf_nodes=15,
        min_samples_leaf=leaf,
        l2_regularization=5.0,
        categorical_features=nominal,
        early_stopping=bool(checked.any()),
        n_iter_no_change=4,
    )
    words = {"X_val": table[checked], "y_val": target[checked], "sample_weight_val": weights[checked]}
    with threadpool_limits(1):
        model.fit(table[learned], target[learned], weights[learned], **words if checked.any() else {})
        expected = model.predict_proba(table) if classes else model.predict(table)[:, None]
    assert np.array_equal(loss.expected(trees.sums(list(bins.T))), expected)


def test_of_what_cannot_be_split_only_the_start_is_known() -> None:
    examples = BoostingExamples(np.zeros((3, 1), np.uint8), np.array([1.0, 2.0, 6.0]), np.ones(3))
    grown = fit(examples, None, [1], [False], SquaredError(), BoostingSettings(4, 0.1, 15, 1, 5.0, 10))
    assert not grown.leaves.any()
    assert _trees(grown, np.array([1])).sums([np.zeros(2, np.int64)]).tolist() == [[3.0], [3.0]]
