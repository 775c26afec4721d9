# SPDX-License-Identifier: Apache-2.0
"""The learners by name: scikit-learn's, and Weka's as the papers used them.

Features are a frame of numbers and texts; each model makes of texts what it needs, accepts values that it was not
taught with, and numbers that are missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from anonfit.errors import RequestError, did_you_mean

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CLASSIFIERS", "LEARNERS", "REGRESSORS", "Learner", "Model", "learner"]

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
    from anonfit.evaluation.matrix_models import matrix_model

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
