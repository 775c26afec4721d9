# SPDX-License-Identifier: Apache-2.0
"""The learners of scikit-learn: each with the matrix it needs, on one thread, so that equal seeds give equal models."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import MissingPackage
from anonfit.evaluation.learners import Model
from anonfit.evaluation.matrices import CategoryMatrix, NumberMatrix, codes_of, once_for_each, together

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

__all__ = ["matrix_model"]

LEAF = 20
LEAVES = 1000
"""A leaf of a tree has at least LEAF rows, and at least one in LEAVES of all."""
FOREST_LEAF = 5

Matrix = CategoryMatrix | NumberMatrix


@dataclass(frozen=True, slots=True)
class _Way:
    """How a learner is made for so many rows, and what it is given."""

    make: Callable[[int, int], Any]
    """From a seed and a number of rows to an estimator."""
    alike_together: bool = False
    """Whether rows that are alike can be one row of that weight without changing what is learned."""
    categories: bool = False
    may_be_missing: bool = False


@contextmanager
def _alone() -> Iterator[None]:
    """One thread, and no words about steps that are left."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def matrix_model(name: str, seed: int) -> Model:
    """An untaught model of scikit-learn's learner of that name."""
    try:
        import sklearn  # noqa: F401 - asked for before anything is counted
    except ModuleNotFoundError:
        raise MissingPackage("scikit-learn", "learn", f"The learner '{name}'") from None
    if name in _CLASSIFIERS:
        return _Classifier(_CLASSIFIERS[name], seed)
    return _Regressor(_REGRESSORS[name], seed)


class _Classifier:
    """Learns classes; where there is one class only, that is what it predicts."""

    def __init__(self, way: _Way, seed: int) -> None:
        self.way = way
        self.seed = seed

    def fit(self, features: pl.DataFrame, labels: pl.Series) -> _Classifier:
        """Learn from rows."""
        self.classes = labels.unique().sort()
        self.estimator: Any = None
        codes = codes_of(labels, self.classes)
        if len(self.classes) < 2 or features.width == 0:
            self.likely = int(np.bincount(codes).argmax())
            return self
        with _alone():
            self.estimator = self.way.make(self.seed, len(labels))
            self.matrix, self.estimator = _taught(self.way, self.estimator, features, codes)
        return self

    def predict(self, features: pl.DataFrame) -> pl.Series:
        """The most likely class of each row."""
        if self.estimator is None:
            return self.classes.gather(np.full(len(features), self.likely))
        with _alone():
            found = once_for_each(lambda rows: self.estimator.predict(self.matrix.matrix(rows)), features)
        return self.classes.gather(found.astype(np.int64))


def _taught(way: _Way, estimator: Any, features: pl.DataFrame, codes: NDArray[np.int64]) -> tuple[Matrix, Any]:
    """The matrix of training rows, and the estimator fitted with it."""
    if not way.alike_together:
        matrix = NumberMatrix.of(features, np.ones(len(codes)), may_be_missing=way.may_be_missing)
        return matrix, estimator.fit(matrix.matrix(features), codes)
    rows = together(features, codes)
    found: Matrix
    if way.categories:
        found = CategoryMatrix.of(rows.features, rows.counts)
        estimator.set_params(min_categories=found.sizes)
        return found, estimator.fit(found.matrix(rows.features), rows.codes, sample_weight=rows.counts)
    found = NumberMatrix.of(rows.features, rows.counts, may_be_missing=way.may_be_missing)
    scaled = _Scaled(found.matrix(rows.features), rows.counts, estimator)
    scaled.estimator.fit(scaled.of(found.matrix(rows.features)), rows.codes, sample_weight=rows.counts)
    return found, scaled


class _Scaled:
    """An estimator of features that have mean 0 and deviation 1 over the training rows."""

    def __init__(self, matrix: NDArray[np.float64], counts: NDArray[np.float64], estimator: Any) -> None:
        self.mean = np.average(matrix, axis=0, weights=counts)
        deviation = np.sqrt(np.average((matrix - self.mean) ** 2, axis=0, weights=counts))
        self.deviation = np.where(deviation > 0, deviation, 1.0)
        self.estimator = estimator

    def of(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """The features on that scale."""
        found: NDArray[np.float64] = (matrix - self.mean) / self.deviation
        return found

    def predict(self, matrix: NDArray[np.float64]) -> Any:
        """What the estimator predicts of features as they are."""
        return self.estimator.predict(self.of(matrix))


class _Regressor:
    """Learns numbers; without features, their mean."""

    def __init__(self, way: _Way, seed: int) -> None:
        self.way = way
        self.seed = seed

    def fit(self, features: pl.DataFrame, labels: pl.Series) -> _Regressor:
        """Learn from rows."""
        import polars as pl

        numbers = labels.cast(pl.Float64).to_numpy()
        self.mean, self.estimator = float(numbers.mean()), None
        if features.width == 0:
            return self
        self.matrix = NumberMatrix.of(features, np.ones(len(numbers)), may_be_missing=self.way.may_be_missing)
        with _alone():
            matrix = self.matrix.matrix(features)
            self.estimator = _Scaled(matrix, np.ones(len(numbers)), self.way.make(self.seed, len(numbers)))
            self.estimator.estimator.fit(self.estimator.of(matrix), numbers)
        return self

    def predict(self, features: pl.DataFrame) -> pl.Series:
        """The expected number of each row."""
        import polars as pl

        if self.estimator is None:
            return pl.Series("predicted", np.full(len(features), self.mean))
        estimator = self.estimator
        with _alone():
            found = once_for_each(lambda rows: estimator.predict(self.matrix.matrix(rows)), features)
        return pl.Series("predicted", found)


def _leaf(rows: int) -> int:
    return max(LEAF, rows // LEAVES)


def _tree(seed: int, rows: int) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(min_samples_leaf=_leaf(rows), random_state=seed)


def _naive_bayes(_seed: int, _rows: int) -> Any:
    from sklearn.naive_bayes import CategoricalNB

    return CategoricalNB()


def _random_forest(seed: int, _rows: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(min_samples_leaf=FOREST_LEAF, random_state=seed, n_jobs=1)


def _linear_svm(seed: int, _rows: int) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(dual=False, random_state=seed)


def _logistic_regression(_seed: int, _rows: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=500)


def _gradient_boosting(seed: int, _rows: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed)


def _linear_regression(_seed: int, _rows: int) -> Any:
    from sklearn.linear_model import LinearRegression

    return LinearRegression()


def _tree_regression(seed: int, rows: int) -> Any:
    from sklearn.tree import DecisionTreeRegressor

    return DecisionTreeRegressor(min_samples_leaf=_leaf(rows), random_state=seed)


_CLASSIFIERS = {
    "tree": _Way(_tree, may_be_missing=True),
    "naive-bayes": _Way(_naive_bayes, alike_together=True, categories=True),
    "random-forest": _Way(_random_forest, may_be_missing=True),
    "linear-svm": _Way(_linear_svm, alike_together=True),
    "logistic-regression": _Way(_logistic_regression, alike_together=True),
    "gradient-boosting": _Way(_gradient_boosting, may_be_missing=True),
}
_REGRESSORS = {
    "linear-regression": _Way(_linear_regression),
    "tree-regression": _Way(_tree_regression, may_be_missing=True),
}
