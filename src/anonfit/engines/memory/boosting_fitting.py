# SPDX-License-Identifier: Apache-2.0
"""Gradient boosting: tree after tree is grown of what those before it leave, until examples that are not learned from
gain no more. The trees are, to the last bit, those of scikit-learn's HistGradientBoosting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.memory.boosting import MOST_LEAVES
from anonfit.engines.memory.boosting_growth import SUMS, add_leaves, grow_tree
from anonfit.engines.memory.boosting_losses import Loss, Numbers

Bins = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class BoostingExamples:
    """Examples of a model: the bin of each feature, the target, and how much each counts."""

    bins: Bins  # (example, feature)
    target: Numbers
    weights: Numbers


@dataclass(frozen=True, slots=True)
class BoostingSettings:
    """How models learn: how many times trees are grown, how far each step goes, what a tree and its leaves may be, and
    after how many trees that do not help it ends.
    """

    iterations: int
    step: float
    leaves: int
    leaf_examples: int
    penalty: float
    patience: int


@dataclass(frozen=True, slots=True)
class GrownTrees:
    """The trees of a model: which of its leaves each bin leaves, a bit each, and what leaves say."""

    left: NDArray[np.uint16]  # (output, tree, bin of any feature)
    leaves: Numbers  # (output, tree, leaf)
    start: Numbers  # (output,)


_TOLERANCE = 1e-7  # of a loss that is no lower than another


def fit(
    learned: BoostingExamples,
    checked: BoostingExamples | None,
    sizes: Sequence[int],
    nominal: Sequence[bool],
    loss: Loss,
    settings: BoostingSettings,
) -> GrownTrees:
    """Learn from examples until those that are checked gain no more; where none are, as long as it may. `sizes` are
    the bins of each feature, without that of missing values.
    """
    begins = np.concatenate([[0], np.cumsum(np.array(sizes, np.int64) + 1)])
    missing = (learned.bins == np.array(sizes)).any(axis=0)
    features = begins, missing, np.array(nominal, np.bool_)
    limits = float(settings.leaf_examples), settings.penalty, settings.leaves
    count = len(learned.bins)
    scratch = np.empty((2, count), np.int32), np.empty((settings.leaves, int(begins[-1]), SUMS))
    start = loss.start(learned.target, learned.weights)
    totals = np.repeat(start[:, None], count, axis=1)
    slopes = np.empty((loss.outputs, 2, count), np.float32)
    left = np.empty((loss.outputs, settings.iterations, int(begins[-1])), np.uint16)
    leaves = np.zeros((loss.outputs, settings.iterations, MOST_LEAVES))
    stopping = None if checked is None else _Stopping(checked, loss, start, settings.patience)
    trees = 0
    while trees < settings.iterations:
        loss.find_slopes(learned.target, learned.weights, totals, slopes)
        for output in range(loss.outputs):
            tree = left[output, trees], leaves[output, trees]
            grow_tree(learned.bins, slopes[output], features, limits, settings.step, scratch, *tree, totals[output])
        trees += 1
        if stopping is not None and stopping.after(begins, left[:, trees - 1], leaves[:, trees - 1]):
            break
    return GrownTrees(left[:, :trees], leaves[:, :trees], start)


class _Stopping:
    """Says when trees no longer help with examples that are not learned from."""

    def __init__(self, checked: BoostingExamples, loss: Loss, start: Numbers, patience: int) -> None:
        self.checked, self.loss, self.patience = checked, loss, patience
        self.totals = np.repeat(start[:, None], len(checked.bins), axis=1)
        self.losses = [self._loss()]

    def _loss(self) -> float:
        return float(np.average(self.loss.errors(self.checked.target, self.totals), weights=self.checked.weights))

    def after(self, begins: NDArray[np.int64], left: NDArray[np.uint16], leaves: Numbers) -> bool:
        """Whether to stop after one more tree for each output."""
        for output, totals in enumerate(self.totals):
            add_leaves(self.checked.bins, begins, left[output], leaves[output], totals)
        self.losses.append(self._loss())
        if len(self.losses) <= self.patience:
            return False
        before, *recent = self.losses[-self.patience - 1 :]
        return not any(-found > -before + _TOLERANCE for found in recent)
