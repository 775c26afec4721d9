# SPDX-License-Identifier: Apache-2.0
"""The models of denoising: which examples a model learns from and which cells it predicts, coded columns as the bins
it is given, and gradient boosting, or plain shares and means where there is nothing to learn. Everything follows from
what examples hold, never from where they stand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.memory.boosting import ALL_LEAVES, BoostedTrees, Feature, make_trees
from anonfit.engines.memory.boosting_fitting import BoostingExamples, BoostingSettings, fit
from anonfit.engines.memory.boosting_losses import Loss, ManyShares, SquaredError, TwoShares
from anonfit.tables.schema import MISSING, CodedColumn, Codes, SplitMode

FOLDS = 5
Matrix: TypeAlias = NDArray[np.float64]

_MOST_KEYS = 1 << 63
_CHECKED = 8  # one in so many cells tells when to stop
_MOST_BINS = 255  # of a feature, beside that of missing values
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
class ModelFeature:
    """A feature of models: a number for each code of a column (a position on a scale, or a category). Where a nominal
    column has too many categories, it is the mean target of a category's rows, as the model of a fold may know it for
    rows of a fold.
    """

    column: int
    numbers: NDArray[np.float64]  # (code,) or (fold, a row's fold, code)
    nominal: bool = False

    def binned(
        self, fold: int, examples: Examples, folds: NDArray[np.int64], learned: NDArray[np.bool_]
    ) -> BinnedFeature:
        """The feature as the model of a fold is given it, which learns from some of the examples."""
        by_fold = self.numbers.ndim > 1
        numbers, size = (self.numbers[fold].ravel(), self.numbers.shape[-1]) if by_fold else (self.numbers, 0)
        places = (folds * size + examples.codes[self.column])[learned]
        if self.nominal:
            return BinnedFeature(self.column, *_category_bins(numbers, _distinct(numbers, places)), nominal=True)
        counts = examples.weights[learned] != 0
        has_missing = bool(np.isnan(numbers[places]).any())
        places, weights, edges = places[counts], examples.weights[learned][counts], None
        values = _distinct(numbers, places)
        if len(values) > _MOST_BINS:
            edges = _edges(numbers[places], weights)
            if edges[-1] < values[-1] or not has_missing:
                numbers, edges = _bins(numbers, edges), None
        if edges is None:
            values = _distinct(numbers, places)
            edges = np.unique((values[1:] + values[:-1]) / 2)
        missing = len(edges) + 1
        bins = np.where(np.isnan(numbers), missing, np.nan_to_num(_bins(numbers, edges))).astype(np.uint8)
        return BinnedFeature(self.column, bins, missing, size)


@dataclass(frozen=True, slots=True)
class BinnedFeature:
    """A feature as one model is given it: the bin of each code, the last for missing values and unknown categories.
    Where `codes` are not 0, there are so many, and each has a bin for rows of each fold.
    """

    column: int
    bins: NDArray[np.uint8]  # (code,) or (a row's fold and code,)
    missing: int
    codes: int = 0
    nominal: bool = False

    def of_examples(self, examples: Examples, folds: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The bins of examples that are in these folds."""
        return np.asarray(self.bins[folds * self.codes + examples.codes[self.column]])

    def of_fold(self, fold: int) -> NDArray[np.uint8]:
        """The bin of each code for rows of a fold."""
        return self.bins[fold * self.codes :][: self.codes or None]


def _distinct(numbers: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.float64]:
    """The different numbers that stand at some places, ascending, without missing ones."""
    found = np.unique(numbers[np.bincount(places, minlength=len(numbers)) > 0])
    return found[~np.isnan(found)]


def _category_bins(numbers: NDArray[np.float64], known: NDArray[np.float64]) -> tuple[NDArray[np.uint8], int]:
    """The bin of each category, and that of missing and unknown ones."""
    if not len(known):
        return np.zeros(len(numbers), np.uint8), 0
    places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    return np.where(known[places] == numbers, places, len(known)).astype(np.uint8), len(known)


def _edges(numbers: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where bins of too many numbers end, each inclusive: weighted percentiles."""
    known = ~np.isnan(numbers)
    order = np.argsort(numbers[known])
    values, masses = numbers[known][order], weights[known][order]
    order = np.argsort(values)
    shares = np.cumsum(masses[order])
    asked = np.linspace(0, 100, num=_MOST_BINS + 1)[1:-1] / 100 * shares[-1]
    places = np.clip(np.searchsorted(shares, asked), 0, len(values) - 1)
    following = np.clip(places + 1, 0, len(values) - 1)
    at, after = values[order][places], values[order][following]
    return np.unique(np.where(shares[places] - asked > np.finfo(np.float64).eps, at, (at + after) / 2))


def _bins(numbers: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """The bin of each number, missing where the number is."""
    return np.where(np.isnan(numbers), np.nan, np.searchsorted(edges, numbers).astype(np.float64))


def make_features(
    columns: Sequence[CodedColumn], examples: Examples, folds: NDArray[np.int64], signals: Matrix
) -> list[ModelFeature]:
    """The features of columns, categories first: ordered columns are positions on their scale, nominal ones categories,
    missing is NaN.

    A nominal column with more than 255 categories is given as the mean target of each category (one mean for each of
    the most common classes) and, if it has a taxonomy, as the place in its order of leaves. A column in which all
    examples are alike is left out.
    """
    plain, wide = [], []
    for index, (column, own) in enumerate(zip(columns, examples.codes, strict=True)):
        present = np.flatnonzero(np.bincount(own, minlength=column.size))
        if len(present) < 2:
            continue
        values = present[present != MISSING] if column.has_missing else present
        numbers, nominal = np.full(column.size, np.nan), False
        if column.mode is SplitMode.ORDERED:
            first = int(column.has_missing)
            numbers[first:] = column.positions[first:]
        elif len(values) <= _MOST_BINS:
            numbers[values], nominal = np.arange(len(values)), True
        else:
            means = _means(own, column.size, folds, signals, examples.weights)
            wide += [ModelFeature(index, means[..., signal]) for signal in range(signals.shape[1])]
            if column.taxonomy is None or column.taxonomy.height < 2:
                continue
            # Neighbours in a taxonomy are alike, so the order of its leaves tells something too.
            numbers[values] = values
        plain.append(ModelFeature(index, numbers, nominal))
    return sorted([*plain, *wide], key=lambda feature: not feature.nominal)


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


class Model(ABC):
    """A fitted model of the rows of a fold."""

    @abstractmethod
    def __call__(self, codes: Sequence[Codes], rows: int) -> Matrix:
        """What to expect of rows: shares of classes, or one column of numbers. # (row, class)"""


@dataclass(frozen=True, slots=True)
class Constant(Model):
    """What is expected of every row alike, where there is nothing to learn. # (class,) or one number"""

    expected: NDArray[np.float64]

    def __call__(self, codes: Sequence[Codes], rows: int) -> Matrix:  # noqa: ARG002  nothing is looked at
        """The same for each."""
        return np.tile(self.expected, (rows, 1))


@dataclass(frozen=True, slots=True)
class Classifier(Model):
    """Trees of those of some classes that could be learned."""

    trees: BoostedTrees
    loss: Loss
    learned: NDArray[np.int64]
    width: int

    def __call__(self, codes: Sequence[Codes], rows: int) -> Matrix:
        """The shares of all classes."""
        shares = np.zeros((rows, self.width))
        shares[:, self.learned] = self.loss.expected(self.trees.sums(codes))
        return shares


@dataclass(frozen=True, slots=True)
class Regressor(Model):
    """Trees of numbers that were put on a scale of their own; it never says less than the least, or more than the most,
    that it has seen.
    """

    trees: BoostedTrees
    low: float
    high: float
    centre: float
    scale: float

    def __call__(self, codes: Sequence[Codes], rows: int) -> Matrix:  # noqa: ARG002  codes have as many
        """One column of numbers."""
        spread = self.trees.sums(codes) * self.scale + self.centre
        return np.clip(spread * (self.high - self.low) + self.low, self.low, self.high)


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """What the model of a fold is given: features, their bins (example, feature), targets, weights, which examples are
    learned from and which tell when to stop, and how many rows an example stands for on average.
    """

    fold: int
    features: tuple[BinnedFeature, ...]
    bins: NDArray[np.uint8]
    target: NDArray[Any]
    weights: NDArray[np.float64]
    learned: NDArray[np.bool_]
    checked: NDArray[np.bool_]
    rows: float

    @classmethod
    def of_fold(
        cls, fold: int, features: Sequence[ModelFeature], examples: Examples, folds: NDArray[np.int64], seed: int
    ) -> TrainingRows:
        """For the model of a fold: it learns from the others, but for a few cells that tell when to stop."""
        others, checked = folds != fold, are_checked(examples.cells, seed)
        if not others.any():  # the only cells there are
            others = ~others
        learned = others & ~checked if (others & ~checked).any() else others
        binned = tuple(feature.binned(fold, examples, folds, learned) for feature in features)
        bins = np.empty((len(folds), len(binned)), np.uint8)
        for place, feature in enumerate(binned):
            bins[:, place] = feature.of_examples(examples, folds)
        rows = float(examples.rows.sum()) / max(len(examples.rows), 1)
        given = examples.target, examples.weights, learned, others & checked & ~learned
        return cls(fold, binned, bins, *given, max(rows, 1.0))

    @property
    def teaches(self) -> bool:
        """Whether there are rows and features enough for more than a mean."""
        learned = int(self.learned.sum())
        return len(self.features) > 0 and learned * self.rows >= _FEWEST_ROWS and learned > 1

    def examples(self, chosen: NDArray[np.bool_], target: NDArray[np.float64]) -> BoostingExamples | None:
        """Some of the examples with a target; None if there are none."""
        if not chosen.any():
            return None
        return BoostingExamples(self.bins[chosen], target[chosen], self.weights[chosen])


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
    count = int(known.sum())
    loss = TwoShares() if count == 2 else ManyShares(count)
    target = (np.cumsum(known) - 1)[training.target].astype(np.float64)
    trees = _boosted(training, target, training.checked & known[training.target], loss, count)
    return Classifier(trees, loss, np.flatnonzero(known), width)


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
    trees = _boosted(training, (spread - centre) / scale, training.checked, SquaredError(), 2)
    return Regressor(trees, low, high, centre, scale)


def _boosted(
    training: TrainingRows, target: NDArray[np.float64], checked: NDArray[np.bool_], loss: Loss, classes: int
) -> BoostedTrees:
    """Trees that are grown until examples that are not learned from gain no more; where none is, as long as may be."""
    features = training.features
    learned = training.examples(training.learned, target)
    assert learned is not None
    shapes = [feature.missing for feature in features], [feature.nominal for feature in features]
    grown = fit(learned, training.examples(checked, target), *shapes, loss, _settings(training, classes))
    left = grown.left.reshape(-1, grown.left.shape[-1])
    begins = np.cumsum([0, *(feature.missing + 1 for feature in features)])
    read = [
        Feature(feature.column, feature.of_fold(training.fold).astype(np.int64), left[:, begin:end])
        for feature, begin, end in zip(features, begins, begins[1:], strict=False)
    ]
    # Those that no tree is split by tell nothing; make_trees needs one.
    used = [feature for feature in read if (feature.left != ALL_LEAVES).any()] or read[:1]
    return make_trees(used, grown.leaves.reshape(len(left), -1), grown.start)


def _settings(training: TrainingRows, classes: int) -> BoostingSettings:
    trees = _TREES // (_FASTER if training.learned.sum() >= _MANY_EXAMPLES else 1)
    iterations = max(_FEWEST_ITERATIONS, min(_ITERATIONS, trees // classes))
    return BoostingSettings(
        iterations=iterations,
        step=min(_LONGEST_STEP, _STEP * _ITERATIONS / iterations),
        leaves=_LEAVES,
        leaf_examples=max(1, round(_LEAF_ROWS / training.rows)),
        penalty=_PENALTY,
        patience=_PATIENCE,
    )
