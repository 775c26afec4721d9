# SPDX-License-Identifier: Apache-2.0
"""The models of denoising: which examples a model learns from and which cells it predicts, coded columns as the numbers
it is given, and gradient boosting, or plain shares and means where there is nothing to learn. Everything follows from
what examples hold, never from where they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.tables.schema import MISSING, CodedColumn, Codes, SplitMode

FOLDS = 5
Matrix: TypeAlias = NDArray[np.float64]

_MOST_KEYS = 1 << 63
_CHECKED = 8  # one in so many cells tells when to stop
_MOST_CATEGORIES = 255  # of scikit-learn's histograms
_MOST_BINNED = 200_000  # of more, scikit-learn draws examples to find bins of
_PRIOR_ROWS = 10.0  # a category's mean counts as much as the table's when it has so many rows


@dataclass(frozen=True, slots=True)
class Examples:
    """Rows that are alike in all codes (those of a *cell*) and in the target, each combination once, in an order of
    their own: how many rows it stands for, and how much they count, 1 a row on average.
    """

    codes: tuple[Codes, ...]  # of each column (combination,)
    target: NDArray[Any]  # (combination,) classes or numbers
    rows: NDArray[np.int64]  # (combination,)
    weights: NDArray[np.float64]  # (combination,)
    cells: NDArray[np.uint64]  # (combination,) the key of its cell


def make_examples(
    columns: Sequence[CodedColumn],
    codes: Sequence[Codes],
    target: NDArray[Any],
    rows: NDArray[np.int64],
    masses: NDArray[np.int64],
) -> Examples:
    """Examples of combinations in any order; a combination may stand there several times."""
    keys = cell_keys(columns, codes, len(target))
    order = np.lexsort((target, keys))
    keys, target = keys[order], target[order]
    begins = np.flatnonzero(_changes(keys) | _changes(target))
    rows, masses = rows[order], masses[order]
    if len(begins):
        rows, masses = np.add.reduceat(rows, begins), np.add.reduceat(masses, begins)
    weights = masses * (float(rows.sum()) / max(float(masses.sum()), 1.0))
    return Examples(
        tuple(own[order[begins]] for own in codes), target[begins], rows, weights.astype(np.float64), keys[begins]
    )


def _changes(numbers: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether an entry differs from the one before; the first does."""
    changes = np.ones(len(numbers), dtype=np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=changes[1:])
    return changes


def cell_keys(columns: Sequence[CodedColumn], codes: Sequence[Codes], rows: int) -> NDArray[np.uint64]:
    """A number for each row, the same for equal codes: codes in mixed radix, which are mixed to a hash where a number
    of 64 bits has no room for more.
    """
    keys = np.zeros(rows, dtype=np.uint64)
    room = 1
    for column, own in zip(columns, codes, strict=True):
        if room * column.size > _MOST_KEYS:
            keys, room = mixed(keys), _MOST_KEYS
        keys = keys * np.uint64(column.size) + own.astype(np.uint64)
        room *= column.size
    return keys


def mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The mixing steps of splitmix64. Each can be undone, so different keys stay different."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def fold_of(cells: NDArray[np.uint64], seed: int) -> NDArray[np.int64]:
    """The fold of each cell: all of its rows are in one, so that no model has seen the cells that it predicts."""
    return (_hashes(cells, seed) % np.uint64(FOLDS)).astype(np.int64)


def are_checked(cells: NDArray[np.uint64], seed: int) -> NDArray[np.bool_]:
    """Which cells are not learned from but tell when to stop."""
    return np.asarray(_hashes(cells, seed) // np.uint64(FOLDS) % np.uint64(_CHECKED) == 0)


def _hashes(cells: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    start = np.random.SeedSequence(seed % (1 << 64)).generate_state(1, np.uint64)[0]
    return mixed(cells ^ start)


# --- features ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelFeatures:
    """From codes to what models are given: of plain columns one number for each code (a position on a scale, or a
    category), of nominal ones with too many categories the mean target of each category's rows, as each fold's model
    may know it for rows of each fold; `categorical` says which features are categories.
    """

    plain: tuple[tuple[int, NDArray[np.float64]], ...]  # (code,)
    wide: tuple[tuple[int, NDArray[np.float64]], ...]  # (fold, a row's fold, code, signal)
    categorical: tuple[bool, ...]

    def of_fold(self, fold: int) -> FoldFeatures:
        """What the model of a fold is given."""
        wide = tuple((column, means[fold]) for column, means in self.wide)
        return FoldFeatures(fold, self.plain, wide, self.categorical)


@dataclass(frozen=True, slots=True)
class FoldFeatures:
    """What the model of one fold is given."""

    fold: int
    plain: tuple[tuple[int, NDArray[np.float64]], ...]  # (code,)
    wide: tuple[tuple[int, NDArray[np.float64]], ...]  # (a row's fold, code, signal)
    categorical: tuple[bool, ...]

    def matrix(self, codes: Sequence[Codes], folds: NDArray[np.int64]) -> Matrix:
        """What it is shown of rows that are in these folds. # (row, feature)"""
        parts = [numbers[codes[column]][:, None] for column, numbers in self.plain]
        parts += [means[folds, codes[column]] for column, means in self.wide]
        return np.concatenate(parts, axis=1) if parts else np.empty((len(folds), 0))

    def binned(self, learned: Matrix, weights: NDArray[np.float64]) -> FoldFeatures:
        """The same with bins in place of numbers that are too many for a model to tell apart. Scikit-learn would find
        the same bins of the examples that are learned from, (example, feature), but sorts them for every bin.
        """
        count = len(self.plain)
        edges = [None if nominal else _edges(learned[:, i], weights) for i, nominal in enumerate(self.categorical)]
        if all(edge is None for edge in edges):
            return self
        plain = tuple((column, _bins(own, edges[i])) for i, (column, own) in enumerate(self.plain))
        wide = []
        for place, (column, means) in enumerate(self.wide):
            begin = count + place * means.shape[-1]
            signals = [_bins(means[..., i], edges[begin + i]) for i in range(means.shape[-1])]
            wide.append((column, np.stack(signals, axis=-1)))
        return FoldFeatures(self.fold, plain, tuple(wide), self.categorical)


def _edges(numbers: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Where bins end, each inclusive: weighted percentiles; None where a model tells all numbers apart, or where a
    missing number could be told from one that is greater than all.
    """
    known = ~np.isnan(numbers) & (weights != 0)
    order = np.argsort(numbers[known])
    values, masses = numbers[known][order], weights[known][order]
    if len(numbers) > _MOST_BINNED or len(np.unique(values)) <= _MOST_CATEGORIES:
        return None
    order = np.argsort(values)
    shares = np.cumsum(masses[order])
    asked = np.linspace(0, 100, num=_MOST_CATEGORIES + 1)[1:-1] / 100 * shares[-1]
    places = np.clip(np.searchsorted(shares, asked), 0, len(values) - 1)
    following = np.clip(places + 1, 0, len(values) - 1)
    at, after = values[order][places], values[order][following]
    edges = np.unique(np.where(shares[places] - asked > np.finfo(np.float64).eps, at, (at + after) / 2))
    return None if edges[-1] >= values[-1] and np.isnan(numbers).any() else edges


def _bins(numbers: NDArray[np.float64], edges: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """The bin of each number."""
    if edges is None:
        return numbers
    return np.where(np.isnan(numbers), np.nan, np.searchsorted(edges, numbers).astype(np.float64))


def make_features(
    columns: Sequence[CodedColumn], examples: Examples, folds: NDArray[np.int64], signals: Matrix
) -> ModelFeatures:
    """The features of columns: ordered ones are positions on their scale, nominal ones categories, missing is NaN.

    A nominal column with more than 255 categories is given as the mean target of each category (one mean for each of
    the most common classes) and, if it has a taxonomy, as the place in its order of leaves. A column in which all
    examples are alike is left out.
    """
    plain, wide, categorical = [], [], []
    for index, (column, own) in enumerate(zip(columns, examples.codes, strict=True)):
        present = np.flatnonzero(np.bincount(own, minlength=column.size))
        if len(present) < 2:
            continue
        values = present[present != MISSING] if column.has_missing else present
        numbers = np.full(column.size, np.nan)
        if column.mode is SplitMode.ORDERED:
            first = int(column.has_missing)
            numbers[first:] = column.positions[first:]
        elif len(values) <= _MOST_CATEGORIES:
            numbers[values] = np.arange(len(values))
        else:
            wide.append((index, _means(own, column.size, folds, signals, examples.weights)))
            if column.taxonomy is None or column.taxonomy.height < 2:
                continue
            # Neighbours in a taxonomy are alike, so the order of its leaves tells something too.
            numbers[values] = values
        plain.append((index, numbers))
        categorical.append(column.mode is not SplitMode.ORDERED and len(values) <= _MOST_CATEGORIES)
    return ModelFeatures(tuple(plain), tuple(wide), (*categorical, *[False] * (len(wide) * signals.shape[1])))


def _means(
    codes: Codes, size: int, folds: NDArray[np.int64], signals: Matrix, weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The mean of each signal by category, as the model of a fold may know it for a row of a fold. # (fold, a row's
    fold, code, signal)

    No example of the model's fold is in it. For those it learns from, the others of their own fold are left out too:
    otherwise it would trust the mean of a rare category, which is nearly the example's own target. The mean of few
    rows is drawn to that of all.
    """
    cells = folds * size + codes
    summed = [weights * signal for signal in signals.T] + [weights]
    sums = np.stack([np.bincount(cells, own, minlength=FOLDS * size) for own in summed], axis=1)
    sums = sums.reshape(FOLDS, size, -1)
    means = np.empty((FOLDS, FOLDS, size, signals.shape[1]))
    for fold in range(FOLDS):
        everyone = sums[[other for other in range(FOLDS) if other != fold]].sum(axis=(0, 1))
        prior = everyone[:-1] / everyone[-1] if everyone[-1] > 0 else np.zeros(len(everyone) - 1)
        for own in range(FOLDS):
            kept = sums[[other for other in range(FOLDS) if other not in (fold, own)]].sum(axis=0)
            means[fold, own] = (kept[:, :-1] + _PRIOR_ROWS * prior) / (kept[:, -1:] + _PRIOR_ROWS)
    return means


# --- models -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """What is expected of every row alike, where there is nothing to learn. # (class,) or one number"""

    expected: NDArray[np.float64]

    def __call__(self, features: Matrix) -> Matrix:
        """The same for each."""
        return np.tile(self.expected, (len(features), 1))


@dataclass(frozen=True, slots=True)
class Classifier:
    """A fitted classifier of those of some classes that it could learn."""

    fitted: Any
    learned: NDArray[np.int64]
    width: int

    def __call__(self, features: Matrix) -> Matrix:
        """The shares of all classes."""
        return self._of_all(self.fitted.predict_proba(features) if len(features) else np.zeros((0, len(self.learned))))

    def of_sums(self, sums: Matrix) -> Matrix:
        """The same from what the trees of each output add up to."""
        return self._of_all(self.fitted._loss.predict_proba(sums))

    def _of_all(self, shares: Matrix) -> Matrix:
        result = np.zeros((len(shares), self.width))
        result[:, self.learned] = shares
        return result


@dataclass(frozen=True, slots=True)
class Regressor:
    """A fitted regressor of numbers that were put on a scale of their own; it never says less than the least, or more
    than the most, it has seen.
    """

    fitted: Any
    low: float
    high: float
    centre: float
    scale: float

    def __call__(self, features: Matrix) -> Matrix:
        """One column of numbers."""
        return self._restored(self.fitted.predict(features) if len(features) else np.zeros(0))

    def of_sums(self, sums: Matrix) -> Matrix:
        """The same from what the trees add up to."""
        return self._restored(self.fitted._loss.link.inverse(sums[:, 0]))

    def _restored(self, numbers: NDArray[np.float64]) -> Matrix:
        spread = numbers * self.scale + self.centre
        return np.clip(spread * (self.high - self.low) + self.low, self.low, self.high).reshape(-1, 1)


Model: TypeAlias = Constant | Classifier | Regressor


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """What a model is given: features (example, feature), which of them are categories, targets, weights, which
    examples are learned from and which tell when to stop, and how many rows an example stands for on average.
    """

    features: Matrix
    categorical: tuple[bool, ...]
    target: NDArray[Any]
    weights: NDArray[np.float64]
    learned: NDArray[np.bool_]
    checked: NDArray[np.bool_]
    rows: float

    @property
    def teaches(self) -> bool:
        """Whether there are rows and features enough for more than a mean."""
        learned = int(self.learned.sum())
        return self.features.shape[1] > 0 and learned * self.rows >= _FEWEST_ROWS and learned > 1


# Slow steps gain a little over fast ones; where rows are many, or classes, time counts.
_STEP, _LONGEST_STEP = 0.1, 0.3
_LEAVES = 15
_ITERATIONS, _FEWEST_ITERATIONS = 200, 20
_TREES = 400  # a class has its own trees: with more classes there are fewer iterations, of longer steps
_MANY_EXAMPLES = 40_000
_FASTER = 3  # so many times fewer and longer steps where examples are many
_PENALTY = 5.0
_PATIENCE = 10
_FEWEST_ROWS = 20
_LEAF_ROWS = 20


def learn_classes(training: TrainingRows, width: int) -> Model:
    """A model of the shares of classes 0 … width - 1."""
    classes = training.target[training.learned]
    # A class must be learned before it can be checked.
    known = np.bincount(classes, minlength=width) > 0
    if known.sum() < 2 or not training.teaches:
        sums = np.bincount(classes, training.weights[training.learned], minlength=width)
        return Constant(sums / sums.sum() if len(classes) else np.full(width, 1 / width))
    from sklearn.ensemble import HistGradientBoostingClassifier

    classifier = HistGradientBoostingClassifier(**_settings(training, int(known.sum())))
    fitted = _fit(classifier, training, training.target, training.checked & known[training.target])
    return Classifier(fitted, np.flatnonzero(known), width)


def learn_numbers(training: TrainingRows) -> Model:
    """A model of a number."""
    learned = training.learned
    numbers = training.target[learned]
    if not len(numbers):
        return Constant(np.zeros(1))
    low, high = float(numbers.min()), float(numbers.max())
    # In steps: the square of a very large number is none.
    spread = (training.target - low) / (high - low) if high > low else np.zeros(len(training.target))
    centre = float(np.average(spread[learned], weights=training.weights[learned]))
    scale = float(spread[learned].std())
    if scale == 0 or not training.teaches:
        return Constant(np.array([min(max(low + centre * (high - low), low), high)]))
    from sklearn.ensemble import HistGradientBoostingRegressor

    regressor = HistGradientBoostingRegressor(**_settings(training, 2))
    fitted = _fit(regressor, training, (spread - centre) / scale, training.checked)
    return Regressor(fitted, low, high, centre, scale)


def _settings(training: TrainingRows, classes: int) -> dict[str, Any]:
    trees = _TREES // (_FASTER if training.learned.sum() >= _MANY_EXAMPLES else 1)
    iterations = max(_FEWEST_ITERATIONS, min(_ITERATIONS, trees // classes))
    return {
        "max_iter": iterations,
        "learning_rate": min(_LONGEST_STEP, _STEP * _ITERATIONS / iterations),
        "max_leaf_nodes": _LEAVES,
        "min_samples_leaf": max(1, round(_LEAF_ROWS / training.rows)),
        "l2_regularization": _PENALTY,
        "categorical_features": np.array(training.categorical, dtype=np.bool_),
        "early_stopping": True,
        "n_iter_no_change": _PATIENCE,
        "random_state": 0,
    }


def _fit(estimator: Any, training: TrainingRows, target: NDArray[Any], checked: NDArray[np.bool_]) -> Any:
    """Fit until examples that are not learned from gain no more; where none is, as long as it may."""
    learned, features, weights = training.learned, training.features, training.weights
    words = {"sample_weight": weights[learned]}
    if checked.any():
        words |= {"X_val": features[checked], "y_val": target[checked], "sample_weight_val": weights[checked]}
    else:
        estimator.set_params(early_stopping=False)
    return estimator.fit(features[learned], target[learned], **words)
