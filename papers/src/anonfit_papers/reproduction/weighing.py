# SPDX-License-Identifier: Apache-2.0
"""What the experiments on weights share: releases of a table by weights, their figures, and a naive Bayes of what is
released.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.algorithms.demands import Demands
from anonfit.algorithms.mondrian import anonymize
from anonfit.engines.memory.engine import MemoryEngine
from anonfit.evaluation.learners import learner
from anonfit.metrics.groups import group_figures, sizes_of
from anonfit.metrics.losses import Discernibility, Losses, losses, observed_extents, weighted_discernibility
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Unseen, Values, recoded_columns
from anonfit.release.bind import schema_of, workload_of
from anonfit.spec.keywords import spec_of_keywords
from anonfit.tables.schema import Schema
from anonfit_papers.reproduction.learning import folds


@dataclass(frozen=True)
class Released:
    """Rows and the regions that were made of them."""

    frame: pl.DataFrame
    recoding: Recoding
    nodes: NDArray[np.int32]  # (row,)
    schema: Schema
    k: int
    weights: Mapping[str, float]
    """The weights by which it was made, given or found."""

    def losses(self) -> Losses:
        """What each column lost, by the range of the rows."""
        return losses(self.recoding, self.nodes, extents=observed_extents(self.recoding, self.frame))

    def wdm(self, weights: Mapping[str, float] | None = None) -> Discernibility:
        """The discernibility of each column alone."""
        return weighted_discernibility(self.recoding, self.nodes, weights=weights)

    def discernibility(self) -> float:
        """That of all columns together."""
        return float(group_figures(sizes_of(self.nodes), k=1).discernibility)

    def labels(self, frame: pl.DataFrame | None = None) -> pl.DataFrame:
        """What is released of each column, as texts, of these rows or of others."""
        return pl.DataFrame(self._recoded(frame, Values.LABELS)).select(pl.all().cast(pl.String))

    def middles(self, frame: pl.DataFrame | None = None) -> pl.DataFrame:
        """One number of each region in place of its numbers."""
        return pl.DataFrame(self._recoded(frame, Values.REPRESENTATIVE))

    def _recoded(self, frame: pl.DataFrame | None, values: Values) -> Sequence[pl.Series]:
        nodes = self.nodes
        if frame is not None:
            nodes = self.recoding.nodes(self.recoding.cells(frame, unseen=Unseen.ANCESTOR), threads=1)
        return [series for columns in recoded_columns(self.recoding, nodes, values).values() for series in columns]


def released(frame: pl.DataFrame, quasi_identifiers: Sequence[str], k: int, **words: Any) -> Released:
    """A release of a table.

    Args:
        frame: The rows; columns that have no part are not looked at.
        quasi_identifiers: The columns that are generalized.
        k: How many rows must share every region.
        words: More words of `anonymize`.

    Returns:
        The rows with their regions.
    """
    targets = list(words.get("targets", ()))
    rows = frame.select(*quasi_identifiers, *targets)
    domains = {
        name: (rows[name].min(), rows[name].max()) for name in quasi_identifiers if rows[name].dtype.is_numeric()
    }
    spec = spec_of_keywords(None, {"quasi_identifiers": list(quasi_identifiers), "k": k, "domains": domains, **words})
    schema = schema_of(spec, rows.columns)
    result = anonymize(
        MemoryEngine(rows),
        schema,
        demands=Demands(k),
        workload=workload_of(spec),
        cut_points=spec.method.cut_points,
        threads=1,
    )
    nodes = np.empty(len(rows), np.int32)
    nodes[result.numbers] = result.nodes
    weights = spec.weights if result.learned is None else result.learned.weights
    return Released(rows, result.recoding, nodes, schema, k, weights)


def weights_of(order: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    """The weights 3, 2 and 1 of the first three of an order, 0 of all others."""
    ranked = dict(zip(order, (3.0, 2.0, 1.0), strict=False))
    return {name: ranked.get(name, 0.0) for name in names}


def crossed_accuracy(features: pl.DataFrame, target: pl.Series, *, divisions: int, count: int = 10) -> float:
    """How well naive Bayes predicts a column from features of the same rows, cross-validated, in percent.

    Args:
        features: Texts are taken as names; numbers as normally distributed in each class.
        target: The classes, as texts.
        divisions: How often the rows are divided into folds.
        count: How many folds.

    Returns:
        The mean over divisions and folds.
    """
    accuracies = []
    for number in range(divisions):
        right = 0
        for training, test in folds(len(features), count, seed=number):
            predicted = _predicted(features[training], target[training], features[test])
            right += int((predicted == target[test].to_numpy()).sum())
        accuracies.append(100 * right / len(features))
    return sum(accuracies) / len(accuracies)


def _predicted(training: pl.DataFrame, labels: pl.Series, test: pl.DataFrame) -> NDArray[Any]:
    if labels.n_unique() < 2 or all(column.n_unique() < 2 for column in training):
        return np.full(len(test), labels.mode().sort()[0])  # there is nothing to tell them apart by
    if all(dtype.is_numeric() for dtype in training.dtypes):
        from sklearn.naive_bayes import GaussianNB

        model = GaussianNB(var_smoothing=1e-6).fit(training.to_numpy(), labels.to_numpy())
        predicted: NDArray[Any] = model.predict(test.to_numpy())
        return predicted
    return learner("naive-bayes").make(0).fit(training, labels).predict(test).to_numpy()
