# SPDX-License-Identifier: Apache-2.0
"""Weka's learners, set as in the papers: J48, naive Bayes, random forest, SMO, linear regression and M5P.

Each process has a Java machine of its own, started with the first model. Texts are nominal attributes; what is missing
or was not there in training is Weka's missing value.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import MissingPackage, RequestError
from anonfit.evaluation.learners import codes_of, once_for_each

_SETTINGS = {
    "j48": ("weka.classifiers.trees.J48", "-C 0.25 -M 2"),
    "weka-naive-bayes": ("weka.classifiers.bayes.NaiveBayes", "-D"),  # supervised discretization
    "weka-random-forest": ("weka.classifiers.trees.RandomForest", "-I 40 -num-slots 1 -S {seed}"),
    "smo": ("weka.classifiers.functions.SMO", ""),
    "weka-linear-regression": ("weka.classifiers.functions.LinearRegression", ""),
    "m5p": ("weka.classifiers.trees.M5P", ""),
}
_NUMBERS = ("weka-linear-regression", "m5p")

LABEL = "label"
LARGEST_SEED = sys.maxsize >> 32
"""Of Java's integers."""


@cache
def _java() -> Any:
    """The Java machine of this process, with Weka's classes."""
    jpype: Any = import_module("jpype")
    if not jpype.isJVMStarted():
        jars = [str(path) for path in _jars()]
        # Signals stay with Python (-Xrs): Ctrl-C must reach it.
        settings = ["-Xrs", "-XX:+UseSerialGC", "-Djava.awt.headless=true", "-Dweka.packageManager.loadPackages=false"]
        try:
            jpype.startJVM(*settings, classpath=jars)
        except (jpype.JVMNotFoundException, OSError):
            raise _no_java("The learners of Weka need") from None
        # Weka's linear algebra says in the log which native libraries it did not find.
        jpype.JClass("java.util.logging.LogManager").getLogManager().reset()
    return jpype


def _no_java(who_need: str) -> RequestError:
    return RequestError(f"{who_need} Java, and none was found: install Java 17 or later, or set JAVA_HOME.")


def require_weka(who: str) -> None:
    """Refuse what would stop later because Weka or Java is not there; starts nothing.

    Args:
        who: Who learns with Weka, for the message.
    """
    _jars(f"Weka, with which {who} learn,")
    jpype: Any = import_module("jpype")
    if jpype.isJVMStarted():
        return
    try:
        jpype.getDefaultJVMPath()
    except (jpype.JVMNotFoundException, OSError):
        raise _no_java(f"Weka, with which {who} learn, needs") from None


def _jars(purpose: str = "A learner of Weka") -> list[Path]:
    """Weka's classes, as its package brings them."""
    package = find_spec("weka")
    if package is None or find_spec("jpype") is None:
        raise MissingPackage("python-weka-wrapper3", "weka", purpose)
    jars = [path for folder in package.submodule_search_locations or () for path in Path(folder).glob("lib/*.jar")]
    return sorted(path for path in jars if not path.stem.endswith("-src"))


class WekaModel:
    """A classifier of Weka, which learns classes or numbers."""

    def __init__(self, name: str, seed: int) -> None:
        _jars()  # refused before anything is learned
        self.name, self.seed = name, seed

    def fit(self, features: pl.DataFrame, labels: pl.Series) -> WekaModel:
        """Learn from rows."""
        self.classes = None if self.name in _NUMBERS else labels.unique().sort()
        self.texts = {
            column.name: column.cast(pl.String).drop_nulls().unique().sort()
            for column in features
            if not column.dtype.is_numeric()
        }
        if self.classes is not None and len(self.classes) == 1:
            return self  # what Weka would not learn
        answers = labels.cast(pl.Float64).to_numpy() if self.classes is None else codes_of(labels, self.classes)
        self.header = self._header(features.columns)
        kind, words = _SETTINGS[self.name]
        java = _java()
        self.classifier = java.JClass(kind)()
        self.classifier.setOptions(java.JArray(java.JString)(words.format(seed=self.seed % LARGEST_SEED).split()))
        self.classifier.buildClassifier(self._instances(features, answers))
        return self

    def predict(self, features: pl.DataFrame) -> pl.Series:
        """The most likely class, or the expected number, of each row."""
        if self.classes is not None and len(self.classes) == 1:
            return self.classes.gather(np.zeros(len(features), np.int64))
        predicted = once_for_each(self._predicted, features)
        if self.classes is None:
            return pl.Series("predicted", predicted)
        return self.classes.gather(predicted.astype(np.int64))

    def _predicted(self, features: pl.DataFrame) -> NDArray[np.float64]:
        unknown = np.full(len(features), np.nan)
        rows = self._instances(features, unknown)
        shares = np.array(self.classifier.distributionsForInstances(rows), dtype=np.float64).reshape(len(features), -1)
        return shares[:, 0] if self.classes is None else shares.argmax(axis=1).astype(np.float64)

    def _header(self, names: list[str]) -> Any:
        """A table of Weka without rows: names of attributes only, so values are numbers of their texts."""
        java = _java()
        attribute, texts = java.JClass("weka.core.Attribute"), java.JClass("java.util.ArrayList")

        def nominal(name: str, size: int) -> Any:
            values = texts()
            for number in range(max(size, 1)):
                values.add(str(number))
            return attribute(name, values)

        attributes = texts()
        for number, name in enumerate(names):
            title = f"{number} {name}"  # so that no two are alike
            attributes.add(nominal(title, len(self.texts[name])) if name in self.texts else attribute(title))
        attributes.add(attribute(LABEL) if self.classes is None else nominal(LABEL, len(self.classes)))
        header = java.JClass("weka.core.Instances")("rows", attributes, 0)
        header.setClassIndex(attributes.size() - 1)
        return header

    def _instances(self, features: pl.DataFrame, answers: NDArray[Any]) -> Any:
        """Rows as a table of Weka."""
        java = _java()
        columns = [*(self._values(column) for column in features), np.asarray(answers, dtype=np.float64)]
        matrix = java.JArray.of(np.ascontiguousarray(np.stack(columns, axis=1)))
        instances = java.JClass("weka.core.Instances")(self.header, len(features))
        instance = java.JClass("weka.core.DenseInstance")
        for row in matrix:
            instances.add(instance(1.0, row))
        return instances

    def _values(self, column: pl.Series) -> NDArray[np.float64]:
        """The numbers of a column, NaN where Weka has a missing value."""
        if column.name not in self.texts:
            numbers: NDArray[np.float64] = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
            return numbers
        known = self.texts[column.name]
        codes = codes_of(column.cast(pl.String), known)
        return np.where(codes < len(known), codes, np.nan)
