# SPDX-License-Identifier: Apache-2.0
"""Coded columns as the numbers a gradient boosting model is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonfit.tables.coded import MISSING, CodedColumn, Codes, SplitMode
from anonfit.workload.denoising_folds import Folds, Places

__all__ = ["Features", "make_features"]

_MOST_CATEGORIES = 255  # of scikit-learn's histograms
_PRIOR_ROWS = 10.0  # a category's mean counts as much as the table's when it has so many rows


@dataclass(frozen=True, slots=True)
class _Plain:
    """A column with one number for each code: a position on its scale, or a category."""

    codes: Codes
    numbers: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Wide:
    """A nominal column with too many categories for the model: a category stands as the mean target of its rows.

    `sums` holds for each fold and code the weighted sums of the signals, and the weight itself at the end.
    """

    codes: Codes
    sums: NDArray[np.float64]  # (fold, code, signal + 1)


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a table; `categorical` says which are categories."""

    folds: Folds
    plain: tuple[_Plain, ...]
    wide: tuple[_Wide, ...]
    categorical: tuple[bool, ...]

    def matrix(self, places: Places, fold: int) -> NDArray[np.float64]:
        """What the model of a fold is shown of these places. # (place, feature)"""
        rows = self.folds.order[places]
        parts = [column.numbers[column.codes[rows]][:, None] for column in self.plain]
        parts += [_means(column, fold)[self.folds.folds[places], column.codes[rows]] for column in self.wide]
        return np.concatenate(parts, axis=1) if parts else np.empty((len(places), 0))


def make_features(
    columns: Sequence[CodedColumn],
    codes: Sequence[Codes],
    folds: Folds,
    *,
    signals: NDArray[np.float64],  # (learned place, signal)
    weights: NDArray[np.float64],  # (learned place,)
) -> Features:
    """The features of columns: ordered ones are positions on their scale, nominal ones categories, missing is NaN.

    A nominal column with more than 255 categories is given as the mean target of each category (one mean for each of
    the most common classes) and, if it has a taxonomy, as the place in its order of leaves. A column in which all rows
    are alike is left out.
    """
    plain, wide, categorical = [], [], []
    signal_count = 0
    for column, found in zip(columns, codes, strict=True):
        present = np.flatnonzero(np.bincount(found, minlength=column.size))
        if len(present) < 2:
            continue
        values = present[present != MISSING] if column.has_missing else present
        numbers = np.full(column.size, np.nan)
        if column.mode is SplitMode.ORDERED:
            numbers[values] = column.positions[values]
        elif len(values) <= _MOST_CATEGORIES:
            numbers[values] = np.arange(len(values))
        else:
            wide.append(_Wide(found, _sums(found, column.size, folds, signals, weights)))
            signal_count += signals.shape[1]
            if column.taxonomy is None or column.taxonomy.height < 2:
                continue
            # Neighbours in a taxonomy are alike, so the order of its leaves tells something too.
            numbers[values] = values
        plain.append(_Plain(found, numbers))
        categorical.append(column.mode is not SplitMode.ORDERED and len(values) <= _MOST_CATEGORIES)
    return Features(folds, tuple(plain), tuple(wide), (*categorical, *[False] * signal_count))


def _sums(
    codes: Codes, size: int, folds: Folds, signals: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The sums of `_Wide`, over the places that are learned from."""
    fold_of = folds.folds[folds.learned]
    count = int(folds.folds.max()) + 1
    cells = fold_of * size + codes[folds.order[folds.learned]]
    summed = [weights * signal for signal in signals.T] + [weights]
    sums = np.empty((count * size, len(summed)))
    for position, numbers in enumerate(summed):
        sums[:, position] = np.bincount(cells, numbers, minlength=count * size)
    return sums.reshape(count, size, -1)


def _means(column: _Wide, fold: int) -> NDArray[np.float64]:
    """The mean of each signal by category, as the model of a fold may know it. # (a row's own fold, code, signal)

    No row of the fold is in it. For the rows it learns from, those of the row's own fold are left out too: otherwise
    the model would trust the mean of a rare category, which is nearly the row's own target. The mean of few rows is
    drawn to that of all.
    """
    count = len(column.sums)
    everyone = column.sums[[other for other in range(count) if other != fold]].sum(axis=(0, 1))
    prior = everyone[:-1] / everyone[-1] if everyone[-1] > 0 else np.zeros(len(everyone) - 1)
    means = []
    for own in range(count):
        sums = column.sums[[other for other in range(count) if other not in (fold, own)]].sum(axis=0)
        means.append((sums[:, :-1] + _PRIOR_ROWS * prior) / (sums[:, -1:] + _PRIOR_ROWS))
    return np.stack(means)
