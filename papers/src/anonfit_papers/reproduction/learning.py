# SPDX-License-Identifier: Apache-2.0
"""What all experiments with models do: recode training rows, recode test rows alike, learn, and test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.algorithms.demands import Demands
from anonfit.algorithms.mondrian import anonymize
from anonfit.algorithms.refining import Refining
from anonfit.algorithms.top_down import anonymize_top_down
from anonfit.engines.memory.engine import MemoryEngine
from anonfit.evaluation.learners import Model, learner
from anonfit.evaluation.models import nodes_of, one_value_features, plain_features, recoded_features
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Values, recoded_columns
from anonfit.release.bind import schema_of, workload_of
from anonfit.spec.keywords import spec_of_keywords
from anonfit.spec.model import Regions, Spec
from anonfit.tables.schema import Schema
from anonfit_papers.agrawal import taxonomies
from anonfit_papers.purpose_tables import Task

ORIGINAL, INFOGAIN, TDS, MEDIAN, LSD = "original", "InfoGain", "TDS", "Median", "LSD"
LEARNER_NAMES = {
    "j48": "J48",
    "weka-naive-bayes": "naive Bayes",
    "weka-random-forest": "random forest",
    "smo": "SVM",
    "m5p": "M5P",
    "weka-linear-regression": "linear regression",
}
"""How learners are called in tables and figures."""
_CRITERIA = {INFOGAIN: "infogain", MEDIAN: "median", LSD: "lsd"}


@dataclass(frozen=True, slots=True)
class Tested:
    """A model that was taught with training rows, and how well it predicts."""

    model: Model | None
    """None: all training rows have the same label, and every row is predicted to have it."""
    training: tuple[pl.DataFrame, pl.Series]
    test: tuple[pl.DataFrame, pl.Series]

    @property
    def accuracy(self) -> float:
        """The share of test rows that are predicted rightly, in percent."""
        return self._accuracy(*self.test)

    @property
    def training_accuracy(self) -> float:
        """The same of the training rows."""
        return self._accuracy(*self.training)

    @property
    def absolute_error(self) -> float:
        """The mean absolute error of numbers in the test rows."""
        features, true = self.test
        return float(np.abs(self._predicted(features).to_numpy() - true.to_numpy()).mean())

    def _accuracy(self, features: pl.DataFrame, true: pl.Series) -> float:
        return 100 * float((self._predicted(features) == true).sum()) / max(len(true), 1)

    def _predicted(self, features: pl.DataFrame) -> pl.Series:
        if self.model is None:
            return self.training[1].new_from_index(0, len(features))
        return self.model.predict(features)


@dataclass(frozen=True)
class Holdout:
    """Rows that are recoded and learned from, and rows that models are tested on; every column but the targets is a
    quasi-identifier.

    Where numbers begin and end (`domains`) is taken to be known: the ends of outer regions are there, as in the paper.
    """

    training: pl.DataFrame
    test: pl.DataFrame
    targets: tuple[str, ...]
    taxonomies: Mapping[str, Any]
    domains: Mapping[str, tuple[Any, Any]]

    @classmethod
    def of(cls, task: Task, training: NDArray[np.int64], test: NDArray[np.int64]) -> Holdout:
        """Two parts of a table."""
        domains = _domains(task.frame.drop(task.target))
        return cls(task.frame[training], task.frame[test], (task.target,), task.taxonomies, domains)

    @classmethod
    def synthetic(cls, training: pl.DataFrame, test: pl.DataFrame, targets: Sequence[str]) -> Holdout:
        """Two tables of the people of Agrawal."""
        domains = _domains(pl.concat([training, test]).drop(targets, *taxonomies()))
        return cls(training, test, tuple(targets), taxonomies(), domains)

    def part(self, training: NDArray[np.int64], test: NDArray[np.int64]) -> Holdout:
        """Some of the rows."""
        return replace(self, training=self.training[training], test=self.test[test])

    @cached_property
    def spec(self) -> Spec:
        """What the columns are. k and the criterion come with each method."""
        names = [name for name in self.training.columns if name not in self.targets]
        words = {
            "quasi_identifiers": names,
            "targets": list(self.targets),
            "k": 2,
            "taxonomies": self.taxonomies,
            "splits": dict.fromkeys(self.taxonomies, "multiway"),
            "domains": self.domains,
        }
        return spec_of_keywords(None, words)

    @cached_property
    def schema(self) -> Schema:
        """The columns with their taxonomies."""
        return schema_of(self.spec, self.training.columns)

    def recoded(
        self, method: str, k: int, targets: Sequence[str] | None = None, *, regions: Regions = "domain"
    ) -> Recoded:
        """The rows as a method shows them; the original as it is. With `observed` regions, models see the bounding box
        of the training rows of a region in place of all that belongs to it.
        """
        recoding = None if method == ORIGINAL else recode(self, method, k, targets)
        return Recoded(self, method, recoding, regions)


@dataclass(frozen=True)
class Recoded:
    """Training and test rows, recoded alike."""

    holdout: Holdout
    method: str
    recoding: Recoding | None
    regions: Regions = "domain"

    @cached_property
    def training(self) -> Mapping[str, tuple[pl.Series, ...]]:
        """The features of each column, for the training rows."""
        return self._features(self.holdout.training)

    @cached_property
    def test(self) -> Mapping[str, tuple[pl.Series, ...]]:
        """The same for the test rows."""
        return self._features(self.holdout.test)

    @cached_property
    def nodes(self) -> NDArray[np.int32]:
        """The region of each training row."""
        assert self.recoding is not None
        return nodes_of(self.recoding, self.holdout.training)

    def tested(self, name: str, target: str, using: Sequence[str] | None = None, seed: int = 0) -> Tested:
        """Learn and test.

        Args:
            name: The learner.
            target: What is predicted.
            using: The columns that the model sees; all if not given.
            seed: The seed of the learner.

        Returns:
            What was predicted.
        """
        training = _beside(self.training, using), _labels(self.holdout.training[target])
        test = _beside(self.test, using), _labels(self.holdout.test[target])
        if training[1].n_unique() < 2:
            return Tested(None, training, test)
        return Tested(learner(name).make(seed).fit(*training), training, test)

    def _features(self, frame: pl.DataFrame) -> Mapping[str, tuple[pl.Series, ...]]:
        if self.recoding is None:
            return plain_features(self.holdout.schema.quasi_identifiers, frame).columns
        nodes = nodes_of(self.recoding, frame)
        if self.method == TDS:  # one column's intervals do not overlap: learners take them as names
            return {
                name: tuple(columns) for name, columns in recoded_columns(self.recoding, nodes, Values.LABELS).items()
            }
        told = recoded_features(self.recoding, nodes, "ends").columns
        return told if self.regions == "domain" else self._bounded(told, nodes)

    def _bounded(
        self, told: Mapping[str, tuple[pl.Series, ...]], nodes: NDArray[np.int32]
    ) -> Mapping[str, tuple[pl.Series, ...]]:
        """The smallest and largest value that training rows of each row's region have; where the region has none, all
        that belongs to it.
        """
        assert self.recoding is not None
        own = one_value_features(self.recoding, self.holdout.training, "ends").columns
        asked = pl.DataFrame({"node": nodes})
        bounded = {}
        for name, (low, high) in told.items():
            first, last = own[name]
            rows = pl.DataFrame({"node": self.nodes, "low": first, "high": last})
            boxes = rows.group_by("node").agg(pl.col("low").min(), pl.col("high").max())
            ends = asked.join(boxes, on="node", how="left", maintain_order="left")
            bounded[name] = (
                ends["low"].fill_null(low).alias(low.name),
                ends["high"].fill_null(high).alias(high.name),
            )
        return bounded


def recode(holdout: Holdout, method: str, k: int, targets: Sequence[str] | None = None, **words: Any) -> Recoding:
    """The recoding of the training rows, as in the papers: taxonomies are split one level down, in all their children.

    Args:
        holdout: The rows.
        method: InfoGain, LSD, Median or TDS, which is top-down refinement for one quasi-identifier.
        k: How many rows must share every region.
        targets: The targets that are asked for; all if not given.
        words: More words of `anonymize`.

    Returns:
        The recoding.
    """
    asked = list(holdout.targets if targets is None else targets)
    frame = holdout.training.drop([name for name in holdout.targets if name not in asked])
    schema = Schema(tuple(column for column in holdout.schema.columns if column.name in frame.columns))
    names = [column.name for column in schema.quasi_identifiers]
    how = {"algorithm": "tdr"} if method == TDS else {"criterion": words.pop("criterion", None) or _CRITERIA[method]}
    spec = spec_of_keywords(None, {"quasi_identifiers": names, "targets": asked, "k": k, **how, **words})
    given: dict[str, Any] = {
        "demands": Demands(k),
        "workload": workload_of(spec),
        "cut_points": spec.method.cut_points,
        "threads": 1,
    }
    if method == TDS:
        return anonymize_top_down(MemoryEngine(frame), schema, refining=Refining(), **given).recoding
    return anonymize(MemoryEngine(frame), schema, **given).recoding


def folds(
    rows: int, count: int, *, seed: int = 0, sample: int | None = None
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The training and test rows of each fold.

    Args:
        rows: How many rows the table has.
        count: How many folds.
        seed: Another seed divides rows otherwise.
        sample: How many rows are used, drawn at random; all if not given.

    Yields:
        The numbers of training and test rows.
    """
    order = np.random.default_rng(seed).permutation(rows)[:sample]
    parts = np.array_split(order, count)
    for number, test in enumerate(parts):
        yield np.concatenate([part for other, part in enumerate(parts) if other != number]), test


def _domains(frame: pl.DataFrame) -> dict[str, tuple[Any, Any]]:
    """The smallest and the largest number of each column of numbers."""
    return {
        column.name: (column.min(), column.max())
        for column in frame
        if column.dtype.is_numeric() and column.n_unique() > 1
    }


def _beside(features: Mapping[str, tuple[pl.Series, ...]], using: Sequence[str] | None) -> pl.DataFrame:
    names = features if using is None else using
    return pl.DataFrame([series for name in names for series in features[name]])


def _labels(values: pl.Series) -> pl.Series:
    """Classes as texts, numbers as they are."""
    return values if values.dtype.is_numeric() else values.cast(pl.String)
