# SPDX-License-Identifier: Apache-2.0
"""The models of denoising: gradient boosting, or plain shares and means where there is nothing to learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Model", "Training", "learn_classes", "learn_numbers"]

Matrix: TypeAlias = NDArray[np.float64]
Model: TypeAlias = Callable[[Matrix], Matrix]
"""From features to shares of classes, or to one column of numbers."""


@dataclass(frozen=True, slots=True)
class _Pace:
    """How many trees follow each other, how much of each is believed, and how many leaves each has."""

    iterations: int
    step: float
    leaves: int


# Measured on Adult, ACS wages and Agrawal data: slow steps for small tables, fast ones where rows are many.
_SLOW = _Pace(100, 0.1, 15)
_FAST = _Pace(60, 0.2, 31)
_MANY_ROWS = 50_000
_TREES = 200  # a class has its own trees: with more classes there are fewer iterations, of longer steps
_FEWEST_ITERATIONS = 20
_LONGEST_STEP = 0.3
_MOST_CLASSES = 16  # of a model; the others are one class, divided by their shares
_PENALTY = 5.0
_CHECKED = 10  # every so many-th row is not learned from but tells when to stop
_FEWEST_ROWS = 2 * _CHECKED


@dataclass(frozen=True, slots=True)
class Training:
    """What a model learns from: features (row, feature), which of them are categories, and the weight of each row."""

    features: Matrix
    categorical: tuple[bool, ...]
    weights: NDArray[np.float64]


def learn_classes(training: Training, classes: NDArray[np.int64], width: int) -> Model:
    """A model of the shares of classes 0 … width - 1."""
    shares = _shares(classes, training.weights, width)
    named = np.flatnonzero(shares)
    if len(named) > _MOST_CLASSES:
        # A stable sort, so that of equally common classes the lower comes first.
        named = np.sort(np.argsort(-shares, kind="stable")[: _MOST_CLASSES - 1])
    if len(named) < 2 or not _teaches(training):
        return lambda features: np.tile(shares, (len(features), 1))

    rest = shares.copy()
    rest[named] = 0.0
    label = np.full(width, len(named), dtype=np.int64)
    label[named] = np.arange(len(named))
    labels = label[classes]
    fitted = _fit(_classifier(len(named) + bool(rest.any()), len(labels), training.categorical), training, labels)

    def model(features: Matrix) -> Matrix:
        found = fitted.predict_proba(features)
        result = np.zeros((len(features), width))
        result[:, named] = found[:, : len(named)]
        if found.shape[1] > len(named):
            result += found[:, len(named) :] * (rest / rest.sum())
        return result

    return model


def learn_numbers(training: Training, numbers: NDArray[np.float64]) -> Model:
    """A model of a number; it never says less than the least, or more than the most, it has seen."""
    if not len(numbers):
        return lambda features: np.zeros((len(features), 1))
    low, high = float(numbers.min()), float(numbers.max())
    # In steps: the square of a very large number is none.
    spread = (numbers - low) / (high - low) if high > low else np.zeros(len(numbers))
    centre = float(np.average(spread, weights=training.weights))
    scale = float(spread.std())
    if scale == 0 or not _teaches(training):
        mean = min(max(low + centre * (high - low), low), high)
        return lambda features: np.full((len(features), 1), mean)
    fitted = _fit(_regressor(len(numbers), training.categorical), training, (spread - centre) / scale)

    def model(features: Matrix) -> Matrix:
        found: Matrix = (fitted.predict(features) * scale + centre) * (high - low) + low
        return np.clip(found, low, high).reshape(-1, 1)

    return model


def _shares(classes: NDArray[np.int64], weights: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """The share of each class; equal ones if there are no rows."""
    if not len(classes):
        return np.full(width, 1 / width)
    sums = np.bincount(classes, weights, minlength=width)
    shares: NDArray[np.float64] = sums / sums.sum()
    return shares


def _teaches(training: Training) -> bool:
    """Whether there are rows and features enough for more than a mean."""
    return training.features.shape[1] > 0 and len(training.features) >= _FEWEST_ROWS


def _classifier(classes: int, rows: int, categorical: tuple[bool, ...]) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    pace = _pace(rows)
    if classes > 2:
        iterations = min(pace.iterations, max(_FEWEST_ITERATIONS, _TREES // classes))
        pace = _Pace(iterations, min(_LONGEST_STEP, pace.step * pace.iterations / iterations), pace.leaves)
    return HistGradientBoostingClassifier(**_settings(pace, categorical))


def _regressor(rows: int, categorical: tuple[bool, ...]) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(**_settings(_pace(rows), categorical))


def _pace(rows: int) -> _Pace:
    return _FAST if rows >= _MANY_ROWS else _SLOW


def _settings(pace: _Pace, categorical: tuple[bool, ...]) -> dict[str, Any]:
    return {
        "max_iter": pace.iterations,
        "learning_rate": pace.step,
        "max_leaf_nodes": pace.leaves,
        "l2_regularization": _PENALTY,
        "categorical_features": np.array(categorical, dtype=np.bool_),
        "early_stopping": True,
        "random_state": 0,
    }


def _fit(estimator: Any, training: Training, target: NDArray[Any]) -> Any:
    """Fit until rows that are not learned from gain no more."""
    checked = np.arange(len(target)) % _CHECKED == _CHECKED - 1
    if target.dtype.kind == "i":
        # A class must be learned before it can be checked.
        learned = np.bincount(target[~checked], minlength=int(target.max()) + 1) > 0
        checked &= learned[target]
    features, weights = training.features, training.weights
    estimator.fit(
        features[~checked],
        target[~checked],
        sample_weight=weights[~checked],
        X_val=features[checked],
        y_val=target[checked],
        sample_weight_val=weights[checked],
    )
    return estimator
