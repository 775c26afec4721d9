# SPDX-License-Identifier: Apache-2.0
"""The learners by name: scikit-learn's, each with the matrix it needs, plain ID3, and Weka's as the papers used them.

Features are a frame of numbers and texts; each model makes of texts what it needs, accepts values that it was not
taught with, and numbers that are missing. It learns on one thread, so that equal seeds give equal models.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import MissingPackage, RequestError, did_you_mean
from anonfit.estimators.features import LINEAR, Encoding

MOST_BINS = 20
"""A column of numbers with more different values than this is cut into so many parts of about as many rows."""


@dataclass(frozen=True, slots=True)
class WeightedRows:
    """Different rows: their features, the code of their label, and how many rows each stands for."""

    features: pl.DataFrame
    codes: NDArray[np.int64]
    counts: NDArray[np.float64]


def together(features: pl.DataFrame, codes: NDArray[np.int64]) -> WeightedRows:
    """Rows of equal features and labels as one: in a release there are few different ones."""
    rows = pl.DataFrame({"features": features.to_struct(), "label": codes})
    groups = rows.group_by("features", "label", maintain_order=True).len("rows")
    counts = groups["rows"].cast(pl.Float64).to_numpy()
    return WeightedRows(groups["features"].struct.unnest(), groups["label"].to_numpy(), counts)


def once_for_each(
    predict: Callable[[pl.DataFrame], NDArray[np.float64]], features: pl.DataFrame
) -> NDArray[np.float64]:
    """What is predicted of each row; rows that are alike are asked for once."""
    rows = pl.DataFrame({"features": features.to_struct()}).with_row_index("row")
    groups = rows.group_by("features", maintain_order=True).agg("row")
    expected = np.repeat(predict(groups["features"].struct.unnest()), groups["row"].list.len().to_numpy(), axis=0)
    predicted = np.empty((len(features), *expected.shape[1:]))
    predicted[groups["row"].explode().to_numpy()] = expected
    return predicted


def codes_of(values: pl.Series, known: pl.Series) -> NDArray[np.int64]:
    """The place of each value among the known ones, one more than the last where it is not known."""
    lookup = pl.DataFrame({"value": known, "place": np.arange(len(known))})
    asked = pl.DataFrame({"value": values.cast(known.dtype)})
    joined = asked.join(lookup, on="value", how="left", maintain_order="left", nulls_equal=True)["place"]
    places: NDArray[np.int64] = joined.fill_null(len(known)).to_numpy().astype(np.int64)
    return places


def _known_texts(features: pl.DataFrame) -> dict[str, pl.Series]:
    """The different texts of each column that is not one of numbers."""
    return {column.name: column.cast(pl.String).unique().sort() for column in features if not column.dtype.is_numeric()}


def _numbers(column: pl.Series) -> NDArray[np.float64]:
    numbers: NDArray[np.float64] = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return numbers


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
    """Columns in which all numbers are missing: nothing can be learned from them, and not every learner takes them."""
    may_be_missing: bool

    @classmethod
    def of(cls, features: pl.DataFrame, counts: NDArray[np.float64], *, may_be_missing: bool) -> NumberMatrix:
        """The matrix of training rows, each standing for so many."""
        texts = _known_texts(features)
        numbers = {column.name: _numbers(column) for column in features if column.name not in texts}
        known = {name: ~np.isnan(values) for name, values in numbers.items()}
        means = {
            name: float(np.average(numbers[name][some], weights=counts[some])) if some.any() else 0.0
            for name, some in known.items()
        }
        gaps = tuple(name for name, some in known.items() if some.any() and not some.all())
        unknown = tuple(name for name, some in known.items() if not some.any())
        return cls(texts, means, gaps, unknown, may_be_missing)

    @property
    def places(self) -> dict[str, range]:
        """The columns of the matrix that come from each feature."""
        widths = {name: 1 + (not self.may_be_missing and name in self.gaps) for name in self.means}
        widths |= {name: len(known) for name, known in self.texts.items()}
        ends = np.cumsum([0, *widths.values()]).tolist()
        return {name: range(*pair) for name, pair in zip(widths, pairwise(ends), strict=True)}

    @property
    def places_of_texts(self) -> list[range]:
        """The columns of each feature of texts."""
        return [self.places[name] for name in self.texts]

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
            parts.append(np.eye(len(known) + 1)[codes_of(features[name], known), :-1])
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
        texts = _known_texts(features)
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
        parts += [codes_of(features[name], known) for name, known in self.texts.items()]
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
    edges: NDArray[np.float64] = middles[np.unique(np.minimum(np.searchsorted(rows, wanted), len(middles) - 1))]
    return edges


LEAF = 20
LEAVES = 1000
"""A leaf of a tree has at least LEAF rows, and at least one in LEAVES of all."""
FOREST_LEAF = 5


@dataclass(frozen=True, slots=True)
class _Way:
    """How an estimator of scikit-learn is made, and what it is given."""

    estimator: str
    """Its module and class."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    is_tree: bool = False
    """Whether the least rows of a leaf depend on how many rows there are."""
    alike_together: bool = False
    """Whether rows that are alike can be one row of that weight without changing what is learned."""
    categories: bool = False
    scaled: bool = False
    """Whether features have mean 0 and deviation 1 over the training rows."""
    may_be_missing: bool = False

    @property
    def encoding(self) -> Encoding:
        """How regions become numbers that suit it; it is known without scikit-learn."""
        return Encoding.SMOOTH if self.estimator.partition(".")[0] in LINEAR else Encoding.EXPECTED

    def make(self, seed: int, rows: int) -> Any:
        """An estimator for so many rows."""
        module, _, name = self.estimator.rpartition(".")
        estimator = getattr(import_module(f"sklearn.{module}"), name)(**self.settings)
        settings = {"random_state": seed} if "random_state" in estimator.get_params() else {}
        return estimator.set_params(
            **settings, **({"min_samples_leaf": max(LEAF, rows // LEAVES)} if self.is_tree else {})
        )


@contextmanager
def _alone() -> Iterator[None]:
    """One thread, and no words about steps that are left."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@dataclass(frozen=True, slots=True)
class ClassShares:
    """How likely a model takes each of some classes to be. shares: (row, class)"""

    classes: pl.Series
    shares: NDArray[np.float64]

    def measures(self, truth: pl.Series) -> dict[str, float]:
        """How well rows of a class are told from others (AUC, the mean over classes), and how far shares are from what
        is true (the Brier score: half the squared distance).
        """
        from sklearn.metrics import roc_auc_score

        held = (codes_of(truth, self.classes)[:, None] == np.arange(len(self.classes))).astype(np.float64)
        some = held.any(axis=0) & ~held.all(axis=0)
        # A class that was not learned from is a mistake in whatever was expected.
        unknown = 1.0 - held.sum(axis=1)
        scores = {"brier": float(((self.shares - held) ** 2).sum(axis=1).mean() + unknown.mean()) / 2}
        if some.any():
            scores["auc"] = float(roc_auc_score(held[:, some], self.shares[:, some], average="macro"))
        return scores


class _MatrixModel:
    """A model of scikit-learn. Without features, or with one class only, it predicts the most frequent class, or the
    mean number.
    """

    def __init__(self, name: str, seed: int) -> None:
        self.way, self.seed = _WAYS[name], seed
        self.has_classes = name in CLASSIFIERS

    def fit(self, features: pl.DataFrame, labels: pl.Series) -> _MatrixModel:
        """Learn from rows."""
        self.estimator: Any = None
        self.classes = labels.unique().sort() if self.has_classes else labels.head(0)
        answers: NDArray[Any]
        if self.has_classes:
            answers = codes_of(labels, self.classes)
            self.likely = float(np.bincount(answers).argmax())
        else:
            answers = labels.cast(pl.Float64).to_numpy()
            self.likely = float(answers.mean())
        if features.width and not (self.has_classes and len(self.classes) < 2):
            with _alone():
                self._teach(features, answers)
        return self

    def _teach(self, features: pl.DataFrame, answers: NDArray[Any]) -> None:
        way, estimator = self.way, self.way.make(self.seed, len(answers))
        rows, weights = WeightedRows(features, answers, np.ones(len(answers))), {}
        if way.alike_together:
            rows = together(features, answers)
            weights = {"sample_weight": rows.counts}
        self.matrix: CategoryMatrix | NumberMatrix
        if way.categories:
            self.matrix = CategoryMatrix.of(rows.features, rows.counts)
            estimator.set_params(min_categories=self.matrix.sizes)
        else:
            self.matrix = NumberMatrix.of(rows.features, rows.counts, may_be_missing=way.may_be_missing)
        if way.scaled:
            matrix = self.matrix.matrix(rows.features)
            self.mean = np.average(matrix, axis=0, weights=rows.counts)
            deviation = np.sqrt(np.average((matrix - self.mean) ** 2, axis=0, weights=rows.counts))
            self.deviation = np.where(deviation > 0, deviation, 1.0)
        self.estimator = estimator.fit(self._seen(rows.features), rows.codes, **weights)

    def _seen(self, features: pl.DataFrame) -> NDArray[Any]:
        """What the estimator sees of rows. # (row, feature)"""
        matrix = self.matrix.matrix(features)
        return (matrix - self.mean) / self.deviation if self.way.scaled else matrix

    def predict(self, features: pl.DataFrame) -> pl.Series:
        """The most likely class, or the expected number, of each row."""
        predicted = np.full(len(features), self.likely)
        if self.estimator is not None:
            with _alone():
                predicted = once_for_each(lambda rows: self.estimator.predict(self._seen(rows)), features)
        if self.has_classes:
            return self.classes.gather(predicted.astype(np.int64))
        return pl.Series("predicted", predicted)

    def shares(self, features: pl.DataFrame) -> ClassShares | None:
        """How likely each class is in each row; None where the learner does not say, or there is one class."""
        expects = getattr(self.estimator, "predict_proba", None)
        if expects is None or not self.has_classes:
            return None
        with _alone():
            return ClassShares(self.classes, once_for_each(lambda rows: expects(self._seen(rows)), features))


_WAYS = {
    "tree": _Way("tree.DecisionTreeClassifier", is_tree=True, may_be_missing=True),
    "naive-bayes": _Way("naive_bayes.CategoricalNB", alike_together=True, categories=True),
    "random-forest": _Way(
        "ensemble.RandomForestClassifier", {"min_samples_leaf": FOREST_LEAF, "n_jobs": 1}, may_be_missing=True
    ),
    "linear-svm": _Way("svm.LinearSVC", {"dual": False}, alike_together=True, scaled=True),
    "logistic-regression": _Way("linear_model.LogisticRegression", {"max_iter": 500}, alike_together=True, scaled=True),
    "gradient-boosting": _Way("ensemble.HistGradientBoostingClassifier", may_be_missing=True),
    "linear-regression": _Way("linear_model.LinearRegression", scaled=True),
    "tree-regression": _Way("tree.DecisionTreeRegressor", is_tree=True, scaled=True, may_be_missing=True),
    "forest-regression": _Way(
        "ensemble.RandomForestRegressor", {"min_samples_leaf": FOREST_LEAF, "n_jobs": 1}, may_be_missing=True
    ),
    "boosting-regression": _Way("ensemble.HistGradientBoostingRegressor", may_be_missing=True),
}
CLASSIFIERS = ("tree", "naive-bayes", "random-forest", "linear-svm", "logistic-regression", "gradient-boosting")
"""The learners of classes that are used if none are named."""
REGRESSORS = ("linear-regression", "tree-regression", "forest-regression", "boosting-regression")
"""The learners of numbers that are used if none are named."""
ID3 = "id3"
WEKA_CLASSIFIERS = ("j48", "weka-naive-bayes", "weka-random-forest", "smo")
WEKA_REGRESSORS = ("weka-linear-regression", "m5p")
LEARNERS = (*CLASSIFIERS, *REGRESSORS, ID3, *WEKA_CLASSIFIERS, *WEKA_REGRESSORS)


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
    encoding: str = Encoding.EXPECTED
    """How regions become numbers where it is not said: what suits it."""

    def make(self, seed: int) -> Model:
        """An untaught model."""
        return self.maker(self.name, seed)


def _matrix_model(name: str, seed: int) -> Model:
    try:
        import sklearn  # noqa: F401 - asked for before anything is counted
    except ModuleNotFoundError:
        raise MissingPackage("scikit-learn", "learn", f"The learner '{name}'") from None
    return _MatrixModel(name, seed)


def _weka_model(name: str, seed: int) -> Model:
    from anonfit.evaluation.weka import WekaModel

    return WekaModel(name, seed)


def _id3_model(_name: str, _seed: int) -> Model:
    from anonfit.evaluation.plain_id3 import PlainId3

    return PlainId3()


def learner(name: str) -> Learner:
    """The learner of a name of LEARNERS; what it needs is loaded when its first model learns.

    Example:
        >>> learner("tree").predicts
        'classes'
    """
    if name not in LEARNERS:
        raise RequestError(f"there is no learner '{name}'; {did_you_mean(name, LEARNERS)}")
    predicts: Predicts = "numbers" if name in (*REGRESSORS, *WEKA_REGRESSORS) else "classes"
    if name in (*WEKA_CLASSIFIERS, *WEKA_REGRESSORS):
        return Learner(name, predicts, _weka_model, Encoding.ENDS)  # as in the papers
    if name == ID3:
        return Learner(name, predicts, _id3_model, Encoding.ENDS)  # as well
    return Learner(name, predicts, _matrix_model, _WAYS[name].encoding)
