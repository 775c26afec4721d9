# SPDX-License-Identifier: Apache-2.0
"""Denoising: what a model expects of a row takes the place of the row's own target.

A label is one draw; a criterion that counts labels follows the luck of the draw. Here gradient boosting models on the
quasi-identifiers, each fitted without the rows it predicts, say how likely each class is, or which number to expect.
The pipeline calls this where a workload says `denoise`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import MissingPackage
from anonfit.runtime.threads import thread_count
from anonfit.tables.schema import CodedColumn, Codes
from anonfit.workload.denoising_models import (
    Folds,
    Model,
    ModelFeatures,
    TrainingRows,
    divide,
    first_of_runs,
    learn_classes,
    learn_numbers,
    make_features,
)

_MOST_SIGNALS = 8  # classes whose means stand for the categories of a very wide column
_BATCH = 1 << 18  # rows predicted or rounded at once
_MOST_BITS = 40

Learn = Callable[[TrainingRows, NDArray[Any]], Model]


def cross_fitted_shares(
    columns: Sequence[CodedColumn],
    codes: Sequence[Codes],
    classes: NDArray[np.int64],
    width: int,
    *,
    weights: NDArray[np.float64] | None = None,
    seed: int = 0,
    folds: int = 5,
    threads: int | None = None,
) -> NDArray[np.float64]:
    """How likely each class is for each row, by models that have not seen the row.

    Permuting rows permutes the result and changes no bit of it; neither does the number of threads.

    Args:
        columns: The quasi-identifiers to predict from.
        codes: Their codes, one array per column.
        classes: The class of each row, 0 to width - 1; a row of class -1 is predicted and not learned from.
        width: How many classes there are.
        weights: How much each row counts, not negative.
        seed: Another seed divides the rows into other folds.
        folds: How many models share the work, at least 2.
        threads: How many models are fitted at once; by default as many as there are cores.

    Returns:
        Shares, (row, width); each row sums to 1.
    """
    _check(columns, codes, classes, weights, folds)
    if width < 1 or (len(classes) and not -1 <= classes.min() <= classes.max() < width):
        raise ValueError("classes must be -1, or 0 to width - 1")
    divided, weight = _divided(columns, codes, classes, classes >= 0, weights=weights, seed=seed, folds=folds)
    learned = classes[divided.order[divided.learned]]
    # (learned place, signal) whether a row is of the class, for the classes whose means tell most
    common = np.argsort(-np.bincount(learned, minlength=width), kind="stable")[:_MOST_SIGNALS]
    signals = (learned[:, None] == (np.array([1]) if width == 2 else np.sort(common))).astype(np.float64)
    features = make_features(columns, codes, divided, signals=signals, weights=weight[divided.learned])
    shares = _cross_fitted(features, classes, weight, partial(learn_classes, width=width), width, threads=threads)
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def cross_fitted_numbers(
    columns: Sequence[CodedColumn],
    codes: Sequence[Codes],
    numbers: NDArray[np.float64],
    *,
    weights: NDArray[np.float64] | None = None,
    seed: int = 0,
    folds: int = 5,
    threads: int | None = None,
) -> NDArray[np.float64]:
    """The number to expect for each row, by models that have not seen the row: between the least and the most of the
    known ones, or 0 where there is no other row to learn from. A row whose number is NaN is predicted and not learned
    from. Arguments and order of rows are as for `cross_fitted_shares`.
    """
    _check(columns, codes, numbers, weights, folds)
    if np.isinf(numbers).any():
        raise ValueError("numbers must be finite, or NaN where they are missing")
    divided, weight = _divided(columns, codes, numbers, ~np.isnan(numbers), weights=weights, seed=seed, folds=folds)
    learned = numbers[divided.order[divided.learned]]
    features = make_features(columns, codes, divided, signals=learned[:, None], weights=weight[divided.learned])
    return _cross_fitted(features, numbers, weight, learn_numbers, 1, threads=threads)[:, 0]


def fixed_shares(shares: NDArray[np.float64], bits: int = 16) -> NDArray[np.int64]:
    """Shares as whole numbers whose rows sum to exactly 2**bits.

    What is left after rounding down goes to the largest remainders, of equal ones to the lower classes.

    Args:
        shares: Shares, (row, width): finite, not negative, not all 0 in a row.
        bits: How fine they are, 1 to 40.

    Returns:
        Whole numbers, (row, width).

    Example:
        >>> fixed_shares(np.array([[0.5, 0.25, 0.25], [1 / 3, 1 / 3, 1 / 3]]), bits=2).tolist()
        [[2, 1, 1], [2, 1, 1]]
    """
    if not 1 <= bits <= _MOST_BITS:
        raise ValueError(f"bits must be 1 to {_MOST_BITS}")
    if not (np.isfinite(shares).all() and (shares >= 0).all() and shares.any(axis=1).all()):
        raise ValueError("shares must be finite, not negative, and not all 0 in a row")
    whole = np.empty(shares.shape, dtype=np.int64)
    for start in range(0, len(shares), _BATCH):
        whole[start : start + _BATCH] = _rounded(shares[start : start + _BATCH], 1 << bits)
    return whole


def _rounded(shares: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    scaled = shares / shares.sum(axis=1, keepdims=True) * total
    whole: NDArray[np.int64] = np.floor(scaled).astype(np.int64)
    left = total - whole.sum(axis=1, keepdims=True)
    by_remainder = np.argsort(whole - scaled, axis=1, kind="stable")
    extra = (np.arange(shares.shape[1]) < left).astype(np.int64)
    np.put_along_axis(whole, by_remainder, np.take_along_axis(whole, by_remainder, axis=1) + extra, axis=1)
    return whole


def _divided(
    columns: Sequence[CodedColumn],
    codes: Sequence[Codes],
    target: NDArray[Any],
    known: NDArray[np.bool_],
    *,
    weights: NDArray[np.float64] | None,
    seed: int,
    folds: int,
) -> tuple[Folds, NDArray[np.float64]]:
    """The folds, and the weight of each place: 1 on average over those that are learned from."""
    divided = divide(columns, codes, target, known=known, weights=weights, seed=seed, folds=folds)
    if weights is None:
        return divided, np.ones(len(target))
    placed = weights[divided.order]
    learned = placed[divided.learned]
    return divided, placed / learned.mean() if len(learned) else placed


def _cross_fitted(
    features: ModelFeatures,
    target: NDArray[Any],
    weights: NDArray[np.float64],
    learn: Learn,
    width: int,
    *,
    threads: int | None,
) -> NDArray[np.float64]:
    """What the models of all folds say of the rows, (row, width)."""
    from threadpoolctl import threadpool_limits

    folds = features.folds
    predictions = np.empty((len(target), width))  # (place, width)

    def fit_and_predict(fold: int) -> None:
        # Models are fitted side by side, each by one thread: sums made by several could differ in the last bit.
        with threadpool_limits(limits=1, user_api="openmp"):
            places = folds.training(fold)
            training = TrainingRows(features.matrix(places, fold), features.categorical, weights[places])
            model = learn(training, target[folds.order[places]])
            predicted = folds.predicted(fold)
            for start in range(0, len(predicted), _BATCH):
                part = predicted[start : start + _BATCH]
                # Rows of a cell are alike to the model: one is asked for all.
                first, run = first_of_runs(folds.cells[part])
                predictions[part] = model(features.matrix(part[first], fold))[run]

    used = range(int(folds.folds.max()) + 1 if len(folds.folds) else 0)
    with ThreadPoolExecutor(max_workers=min(max(len(used), 1), thread_count(threads))) as pool:
        list(pool.map(fit_and_predict, used))
    result = np.empty_like(predictions)
    result[folds.order] = _tied(predictions, weights, folds)
    return result


def _tied(predicted: NDArray[np.float64], weights: NDArray[np.float64], folds: Folds) -> NDArray[np.float64]:
    """Rows with equal codes and equal target get their mean, since nothing says which of them is in which fold.

    Sums over a cell stay what they were. Each model in the mean has missed at least one of the rows.
    """
    if len(folds.ties) == len(predicted):
        return predicted
    sizes = np.diff(folds.ties, append=len(predicted))
    totals = np.add.reduceat(weights, folds.ties)
    weights = np.where(np.repeat(totals, sizes) > 0, weights, 1.0)
    totals = np.add.reduceat(weights, folds.ties)
    means = np.add.reduceat(predicted * weights[:, None], folds.ties, axis=0) / totals[:, None]
    return np.where(np.repeat(sizes, sizes)[:, None] > 1, np.repeat(means, sizes, axis=0), predicted)


def _check(
    columns: Sequence[CodedColumn],
    codes: Sequence[Codes],
    target: NDArray[Any],
    weights: NDArray[np.float64] | None,
    folds: int,
) -> None:
    try:
        import sklearn.ensemble  # noqa: F401
    except ImportError:
        raise MissingPackage("scikit-learn", "learn", "Denoising") from None
    if folds < 2:
        raise ValueError("at least 2 folds are needed: a model must not have seen the rows it predicts")
    if len(columns) != len(codes) or any(len(own) != len(target) for own in codes):
        raise ValueError("every column needs one code for each row of the target")
    if weights is not None and (len(weights) != len(target) or not (np.isfinite(weights) & (weights >= 0)).all()):
        raise ValueError("weights must be one for each row, finite and not negative")
