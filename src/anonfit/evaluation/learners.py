# SPDX-License-Identifier: Apache-2.0
"""From a frame of features to the matrix that scikit-learn needs, and rows that are alike taken together.

The learners of scikit-learn: each with the matrix it needs, on one thread, so that equal seeds give equal models.

The learners by name: scikit-learn's, and Weka's as the papers used them.

Features are a frame of numbers and texts; each model makes of texts what it needs, accepts values that it was not
taught with, and numbers that are missing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import MissingPackage, RequestError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

__all__ = [
    "CLASSIFIERS",
    "LEARNERS",
    "REGRESSORS",
    "CategoryMatrix",
    "Learner",
    "Model",
    "NumberMatrix",
    "Rows",
    "codes_of",
    "learner",
    "matrix_model",
    "once_for_each",
    "together",
]

MOST_BINS = 20
"""A column of numbers with more different values than this is cut into so many parts of about as many rows."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Different rows: their features, the code of their label, and how many rows each stands for."""

    features: pl.DataFrame
    codes: NDArray[np.int64]
    counts: NDArray[np.float64]


def together(features: pl.DataFrame, codes: NDArray[np.int64]) -> Rows:
    """Rows of equal features and labels as one: in a release there are few different ones."""
    import polars as pl

    names = [str(number) for number in range(features.width)]
    table = pl.DataFrame([column.alias(name) for name, column in zip(names, features, strict=True)])
    table = table.with_columns(pl.Series("label", codes))
    found = table.group_by([*names, "label"], maintain_order=True).agg(pl.len().alias("rows"))
    different = found.select(names)
    different.columns = features.columns
    return Rows(different, found["label"].to_numpy(), found["rows"].cast(pl.Float64).to_numpy())


def once_for_each(
    predict: Callable[[pl.DataFrame], NDArray[np.float64]], features: pl.DataFrame
) -> NDArray[np.float64]:
    """What is predicted of each row; rows that are alike are asked for once."""
    import polars as pl

    names = [str(number) for number in range(features.width)]
    table = pl.DataFrame([column.alias(name) for name, column in zip(names, features, strict=True)])
    found = table.with_row_index("row").group_by(names, maintain_order=True).agg("row")
    different = found.select(names)
    different.columns = features.columns
    rows = found["row"].explode().to_numpy()
    predicted = np.empty(len(features))
    predicted[rows] = np.repeat(predict(different), found["row"].list.len().to_numpy())
    return predicted


def codes_of(values: pl.Series, known: pl.Series) -> NDArray[np.int64]:
    """The place of each value among the known ones, one more than the last where it is not known."""
    import polars as pl

    lookup = pl.DataFrame({"value": known, "place": np.arange(len(known))})
    asked = pl.DataFrame({"value": values.cast(known.dtype)})
    found = asked.join(lookup, on="value", how="left", maintain_order="left", nulls_equal=True)["place"]
    places: NDArray[np.int64] = found.fill_null(len(known)).to_numpy().astype(np.int64)
    return places


def _is_text(column: pl.Series) -> bool:
    return not column.dtype.is_numeric()


def _texts(column: pl.Series) -> pl.Series:
    import polars as pl

    return column.cast(pl.String)


def _numbers(column: pl.Series) -> NDArray[np.float64]:
    import polars as pl

    found: NDArray[np.float64] = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return found


@dataclass(frozen=True)
class NumberMatrix:
    """Numbers as they are and one column for each text. Where numbers may not be missing they stand at the mean, and
    a further column says so.
    """

    texts: dict[str, pl.Series]
    means: dict[str, float]
    gaps: tuple[str, ...]
    """Columns of numbers of which some are missing."""
    unknown: tuple[str, ...]
    """Columns of numbers of which all are missing: they tell nothing, and not every learner takes them."""
    may_be_missing: bool

    @classmethod
    def of(cls, features: pl.DataFrame, counts: NDArray[np.float64], *, may_be_missing: bool) -> NumberMatrix:
        """The matrix of training rows, each standing for so many."""
        texts = {column.name: _texts(column).unique().sort() for column in features if _is_text(column)}
        means, gaps, unknown = {}, [], []
        for column in features:
            if column.name in texts:
                continue
            numbers = _numbers(column)
            known = ~np.isnan(numbers)
            means[column.name] = float(np.average(numbers[known], weights=counts[known])) if known.any() else 0.0
            if not known.any():
                unknown.append(column.name)
            elif not known.all():
                gaps.append(column.name)
        return cls(texts, means, tuple(gaps), tuple(unknown), may_be_missing)

    def matrix(self, features: pl.DataFrame) -> NDArray[np.float64]:
        """The matrix of rows. # (row, feature)"""
        parts = []
        for name, mean in self.means.items():
            numbers = _numbers(features[name])
            if name in self.unknown:
                numbers = np.zeros(len(numbers))
            elif not self.may_be_missing:
                missing = np.isnan(numbers)
                numbers = np.where(missing, mean, numbers)
                if name in self.gaps:
                    parts.append(missing[:, None].astype(np.float64))
            parts.append(numbers[:, None])
        for name, known in self.texts.items():
            parts.append(np.eye(len(known) + 1)[codes_of(_texts(features[name]), known), :-1])
        return np.concatenate(parts, axis=1) if parts else np.zeros((len(features), 0))


@dataclass(frozen=True)
class CategoryMatrix:
    """Every column as categories: texts as they are, numbers by the part they lie in; the last is for what is missing
    or was not there in training.
    """

    texts: dict[str, pl.Series]
    edges: dict[str, NDArray[np.float64]]

    @classmethod
    def of(cls, features: pl.DataFrame, counts: NDArray[np.float64]) -> CategoryMatrix:
        """The matrix of training rows, each standing for so many."""
        texts = {column.name: _texts(column).unique().sort() for column in features if _is_text(column)}
        edges = {column.name: _edges(_numbers(column), counts) for column in features if column.name not in texts}
        return cls(texts, edges)

    @property
    def sizes(self) -> list[int]:
        """How many categories each column has."""
        return [len(edges) + 2 for edges in self.edges.values()] + [len(known) + 1 for known in self.texts.values()]

    def matrix(self, features: pl.DataFrame) -> NDArray[np.int64]:
        """The matrix of rows. # (row, column)"""
        parts = []
        for name, edges in self.edges.items():
            numbers = _numbers(features[name])
            parts.append(np.where(np.isnan(numbers), len(edges) + 1, np.searchsorted(edges, numbers, side="right")))
        parts += [codes_of(_texts(features[name]), known) for name, known in self.texts.items()]
        return np.stack(parts, axis=1) if parts else np.zeros((len(features), 0), np.int64)


def _edges(numbers: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where the parts of a column meet: between values that follow each other."""
    known = ~np.isnan(numbers)
    values, which = np.unique(numbers[known], return_inverse=True)
    middles: NDArray[np.float64] = values[:-1] / 2 + values[1:] / 2
    if len(values) <= MOST_BINS:
        return middles
    rows = np.cumsum(np.bincount(which, counts[known]))[:-1]
    wanted = np.arange(1, MOST_BINS) * counts[known].sum() / MOST_BINS
    found: NDArray[np.float64] = middles[np.unique(np.minimum(np.searchsorted(rows, wanted), len(middles) - 1))]
    return found


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


CLASSIFIERS = ("tree", "naive-bayes", "random-forest", "linear-svm", "logistic-regression", "gradient-boosting")
"""The learners of classes that are used if none are named."""
REGRESSORS = ("linear-regression", "tree-regression")
"""The learners of numbers that are used if none are named."""
WEKA_CLASSIFIERS = ("j48", "weka-naive-bayes", "weka-random-forest", "smo")
WEKA_REGRESSORS = ("weka-linear-regression", "m5p")
LEARNERS = (*CLASSIFIERS, *REGRESSORS, *WEKA_CLASSIFIERS, *WEKA_REGRESSORS)


class Model(Protocol):
    """Something that learns to predict a column."""

    def fit(self, features: pl.DataFrame, labels: pl.Series) -> Model:
        """Learn from rows; none of the labels is missing."""

    def predict(self, features: pl.DataFrame) -> pl.Series:
        """The predicted label of each row."""


Predicts = Literal["classes", "numbers"]


@dataclass(frozen=True)
class Learner:
    """A way to learn: makes untaught models. Equal seeds and rows give equal models."""

    name: str
    predicts: Predicts
    maker: Callable[[str, int], Model] = field(repr=False, compare=False)

    def make(self, seed: int) -> Model:
        """An untaught model."""
        return self.maker(self.name, seed)


def _matrix_model(name: str, seed: int) -> Model:

    return matrix_model(name, seed)


def _weka_model(name: str, seed: int) -> Model:
    from anonfit.evaluation.weka import weka_model

    return weka_model(name, seed)


def learner(name: str) -> Learner:
    """The learner of a name.

    Args:
        name: One of LEARNERS.

    Returns:
        The learner. What it needs is loaded when its first model learns.

    Example:
        >>> learner("tree").predicts
        'classes'
    """
    if name not in LEARNERS:
        raise RequestError(f"there is no learner '{name}'; {did_you_mean(name, LEARNERS)}")
    predicts: Predicts = "numbers" if name in (*REGRESSORS, *WEKA_REGRESSORS) else "classes"
    return Learner(name, predicts, _weka_model if name in (*WEKA_CLASSIFIERS, *WEKA_REGRESSORS) else _matrix_model)
