# SPDX-License-Identifier: Apache-2.0
"""The models of denoising: which rows a model learns from and which it predicts, coded columns as the numbers it is
given, and gradient boosting, or plain shares and means where there is nothing to learn. Rows are divided by what they
hold and never by where they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.tables.schema import MISSING, CodedColumn, Codes, SplitMode

Places: TypeAlias = NDArray[np.int64]

_MOST_LEARNED = 100_000  # more rows make models slower and hardly better
_MOST_KEYS = 1 << 63


@dataclass(frozen=True, slots=True)
class Folds:
    """Rows in an order of their own: a row's *place*. Rows with equal codes (a *cell*) have neighbouring places.

    `order` has the row, `cells` the number of the cell and `folds` the fold of each place; `learned` are the places
    that models learn from, in order; `ties` the first place of each run of rows with equal codes and equal target.
    """

    order: Places
    cells: Places
    folds: NDArray[np.int64]
    learned: Places
    ties: Places

    def training(self, fold: int) -> Places:
        """The places from which the model of a fold learns: none is in the fold."""
        places: Places = self.learned[self.folds[self.learned] != fold]
        return places

    def predicted(self, fold: int) -> Places:
        """The places that the model of a fold predicts."""
        return np.flatnonzero(self.folds == fold)


def divide(
    columns: Sequence[CodedColumn],
    codes: Sequence[Codes],
    target: NDArray[Any],
    *,
    known: NDArray[np.bool_],
    weights: NDArray[np.float64] | None,
    seed: int,
    folds: int,
) -> Folds:
    """Divide rows into folds of equal size.

    The order of cells is a hash of their codes; within a cell rows are ordered by target, then weight. Places are
    dealt to the folds in turn. So each cell, and each class in it, is spread over the folds as evenly as it can be:
    were all rows of a cell in one fold, or all of its rows of one class, their model could only guess what it was not
    shown. The fold of a row that is alone in its cell does not depend on its target.

    Rows that tie in all of this cannot be told apart, so whichever of them comes first, the models are the same.
    """
    start = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    hashes = mixed(_cell_keys(columns, codes, len(target)) ^ start)
    # Unknown targets come first and are one value.
    sorting = np.where(known, target, -np.inf if target.dtype.kind == "f" else -1)
    keys = (sorting, hashes) if weights is None else (weights, sorting, hashes)
    order = np.lexsort(keys).astype(np.int64, copy=False)
    hashes, sorting = hashes[order], sorting[order]

    new_cell = _changes(hashes)
    learnable = np.flatnonzero(known[order] if weights is None else (known & (weights > 0))[order])
    # Every n-th place: a sample that is even over cells and classes.
    sample = min(_MOST_LEARNED, len(learnable))
    learned = learnable[np.arange(sample) * len(learnable) // max(sample, 1)]
    fold_of = np.empty(len(order), dtype=np.int64)
    others = np.ones(len(order), dtype=np.bool_)
    others[learned] = False
    fold_of[learned] = np.arange(sample) % folds
    fold_of[others] = np.arange(len(order) - sample) % folds
    ties = np.flatnonzero(new_cell | _changes(sorting))
    return Folds(order, np.cumsum(new_cell), fold_of, learned, ties)


def first_of_runs(numbers: NDArray[Any]) -> tuple[Places, Places]:
    """Where each run of equal numbers begins, and the run of each entry."""
    new = _changes(numbers)
    return np.flatnonzero(new), np.cumsum(new) - 1


def _changes(numbers: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether an entry differs from the one before; the first does."""
    changes = np.ones(len(numbers), dtype=np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=changes[1:])
    return changes


def _cell_keys(columns: Sequence[CodedColumn], codes: Sequence[Codes], rows: int) -> NDArray[np.uint64]:
    """A number for each row, the same for equal codes only."""
    keys = np.zeros(rows, dtype=np.uint64)
    room = 1
    for column, own in zip(columns, codes, strict=True):
        if room * column.size > _MOST_KEYS:
            # The ranks of the numbers so far need less room and keep apart what was apart.
            distinct, ranks = np.unique(keys, return_inverse=True)
            keys, room = ranks.astype(np.uint64), len(distinct)
        keys = keys * np.uint64(column.size) + own.astype(np.uint64)
        room *= column.size
    return keys


def mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The mixing steps of splitmix64: every bit hangs on every bit of the key. Each step can be undone, so different
    keys stay different.
    """
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


_MOST_CATEGORIES = 255  # of scikit-learn's histograms
_PRIOR_ROWS = 10.0  # a category's mean counts as much as the table's when it has so many rows


@dataclass(frozen=True, slots=True)
class _Plain:
    """A column with one number for each code: a position on its scale, or a category."""

    codes: Codes
    numbers: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Wide:
    """A nominal column with too many categories for the model: a category stands as the mean target of its rows.

    `sums` holds for each fold and code the weighted sums of the signals, and the weight itself at the end.
    """

    codes: Codes
    sums: NDArray[np.float64]  # (fold, code, signal + 1)


@dataclass(frozen=True, slots=True)
class ModelFeatures:
    """The features of a table; `categorical` says which are categories."""

    folds: Folds
    plain: tuple[_Plain, ...]
    wide: tuple[_Wide, ...]
    categorical: tuple[bool, ...]

    def matrix(self, places: Places, fold: int) -> NDArray[np.float64]:
        """What the model of a fold is shown of these places. # (place, feature)"""
        rows = self.folds.order[places]
        parts = [column.numbers[column.codes[rows]][:, None] for column in self.plain]
        parts += [_means(column, fold)[self.folds.folds[places], column.codes[rows]] for column in self.wide]
        return np.concatenate(parts, axis=1) if parts else np.empty((len(places), 0))


def make_features(
    columns: Sequence[CodedColumn],
    codes: Sequence[Codes],
    folds: Folds,
    *,
    signals: NDArray[np.float64],  # (learned place, signal)
    weights: NDArray[np.float64],  # (learned place,)
) -> ModelFeatures:
    """The features of columns: ordered ones are positions on their scale, nominal ones categories, missing is NaN.

    A nominal column with more than 255 categories is given as the mean target of each category (one mean for each of
    the most common classes) and, if it has a taxonomy, as the place in its order of leaves. A column in which all rows
    are alike is left out.
    """
    plain, wide, categorical = [], [], []
    signal_count = 0
    for column, own in zip(columns, codes, strict=True):
        present = np.flatnonzero(np.bincount(own, minlength=column.size))
        if len(present) < 2:
            continue
        values = present[present != MISSING] if column.has_missing else present
        numbers = np.full(column.size, np.nan)
        if column.mode is SplitMode.ORDERED:
            numbers[values] = column.positions[values]
        elif len(values) <= _MOST_CATEGORIES:
            numbers[values] = np.arange(len(values))
        else:
            wide.append(_Wide(own, _sums(own, column.size, folds, signals, weights)))
            signal_count += signals.shape[1]
            if column.taxonomy is None or column.taxonomy.height < 2:
                continue
            # Neighbours in a taxonomy are alike, so the order of its leaves tells something too.
            numbers[values] = values
        plain.append(_Plain(own, numbers))
        categorical.append(column.mode is not SplitMode.ORDERED and len(values) <= _MOST_CATEGORIES)
    return ModelFeatures(folds, tuple(plain), tuple(wide), (*categorical, *[False] * signal_count))


def _sums(
    codes: Codes, size: int, folds: Folds, signals: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The sums of `_Wide`, over the places that are learned from."""
    fold_of = folds.folds[folds.learned]
    count = int(folds.folds.max()) + 1
    cells = fold_of * size + codes[folds.order[folds.learned]]
    summed = [weights * signal for signal in signals.T] + [weights]
    sums = np.empty((count * size, len(summed)))
    for position, numbers in enumerate(summed):
        sums[:, position] = np.bincount(cells, numbers, minlength=count * size)
    return sums.reshape(count, size, -1)


def _means(column: _Wide, fold: int) -> NDArray[np.float64]:
    """The mean of each signal by category, as the model of a fold may know it. # (a row's own fold, code, signal)

    No row of the fold is in it. For the rows it learns from, those of the row's own fold are left out too: otherwise
    the model would trust the mean of a rare category, which is nearly the row's own target. The mean of few rows is
    drawn to that of all.
    """
    count = len(column.sums)
    everyone = column.sums[[other for other in range(count) if other != fold]].sum(axis=(0, 1))
    prior = everyone[:-1] / everyone[-1] if everyone[-1] > 0 else np.zeros(len(everyone) - 1)
    means = []
    for own in range(count):
        sums = column.sums[[other for other in range(count) if other not in (fold, own)]].sum(axis=0)
        means.append((sums[:, :-1] + _PRIOR_ROWS * prior) / (sums[:, -1:] + _PRIOR_ROWS))
    return np.stack(means)


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
class TrainingRows:
    """What a model learns from: features (row, feature), which of them are categories, and the weight of each row."""

    features: Matrix
    categorical: tuple[bool, ...]
    weights: NDArray[np.float64]


def learn_classes(training: TrainingRows, classes: NDArray[np.int64], width: int) -> Model:
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
        predicted = fitted.predict_proba(features)  # (row, named class; at the end perhaps all others)
        result = np.zeros((len(features), width))
        result[:, named] = predicted[:, : len(named)]
        if predicted.shape[1] > len(named):
            result += predicted[:, len(named) :] * (rest / rest.sum())
        return result

    return model


def learn_numbers(training: TrainingRows, numbers: NDArray[np.float64]) -> Model:
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
    from sklearn.ensemble import HistGradientBoostingRegressor

    regressor = HistGradientBoostingRegressor(**_settings(_pace(len(numbers)), training.categorical))
    fitted = _fit(regressor, training, (spread - centre) / scale)

    def model(features: Matrix) -> Matrix:
        expected: Matrix = (fitted.predict(features) * scale + centre) * (high - low) + low
        return np.clip(expected, low, high).reshape(-1, 1)

    return model


def _shares(classes: NDArray[np.int64], weights: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """The share of each class; equal ones if there are no rows."""
    if not len(classes):
        return np.full(width, 1 / width)
    sums = np.bincount(classes, weights, minlength=width)
    shares: NDArray[np.float64] = sums / sums.sum()
    return shares


def _teaches(training: TrainingRows) -> bool:
    """Whether there are rows and features enough for more than a mean."""
    return training.features.shape[1] > 0 and len(training.features) >= _FEWEST_ROWS


def _classifier(classes: int, rows: int, categorical: tuple[bool, ...]) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    pace = _pace(rows)
    if classes > 2:
        iterations = min(pace.iterations, max(_FEWEST_ITERATIONS, _TREES // classes))
        pace = _Pace(iterations, min(_LONGEST_STEP, pace.step * pace.iterations / iterations), pace.leaves)
    return HistGradientBoostingClassifier(**_settings(pace, categorical))


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


def _fit(estimator: Any, training: TrainingRows, target: NDArray[Any]) -> Any:
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
