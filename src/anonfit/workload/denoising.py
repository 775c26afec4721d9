# SPDX-License-Identifier: Apache-2.0
"""Denoising: what models expect of a row takes the place of the row's own target.

A label is one draw; a criterion that counts labels follows the luck of the draw. Here gradient boosting models on the
quasi-identifiers say how likely each class is, or which number to expect. Rows with the same codes, a cell, are in one
fold, and the model that predicts them has learned from the cells of other folds. Where cells have many rows and tell
more than the models do, their own rows count as well. What is expected of a row follows from its codes alone, so that
every engine finds the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.runtime.process import thread_count
from anonfit.tables.schema import CodedColumn, Codes
from anonfit.workload import denoising_models
from anonfit.workload.denoising_models import FOLDS, Examples, Matrix, Model, TrainingRows, fold_of

_MOST_SIGNALS = 8  # classes whose means stand for the categories of a very wide column
_BATCH = 1 << 18  # rows rounded at once
_MOST_BITS = 40
_MOST_DEALS = 5
_DEALT_ROWS = 20_000  # all deals together
_STRENGTHS = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0)


@dataclass(frozen=True, slots=True)
class KnownCells:
    """Cells of which all rows are known: their keys, ascending, what is summed of the target (of classes their rows,
    of numbers the numbers), and their rows. What models expect counts as much as `strength` rows.
    """

    keys: NDArray[np.uint64]  # (cell,)
    sums: Matrix  # (cell, class), or (cell, 1)
    rows: NDArray[np.float64]  # (cell,)
    strength: float = float("inf")

    def improved(self, keys: NDArray[np.uint64], expected: Matrix) -> Matrix:
        """What is expected of cells by models and by their own rows."""
        if np.isinf(self.strength):
            return expected
        places, known = self._places(keys)
        sums, rows = self.sums[places], self.rows[places, None]
        both = (self.strength * expected + sums) / (self.strength + rows)
        return np.where(known[:, None], both, expected)

    def apart(self, keys: NDArray[np.uint64], improved: Matrix, own: NDArray[np.float64]) -> NDArray[np.float64]:
        """Own numbers of rows, as far from what is expected as chance has dealt them: those that were used to improve
        it are nearer to it than those of others would be. # (row,)
        """
        if np.isinf(self.strength):
            return own
        places, known = self._places(keys)
        rows, expected = self.rows[places], improved[:, 0]
        missed = (self.sums[places, 0] / rows - expected) * np.sqrt(1 + rows / self.strength)
        return np.where(known, expected + missed, own)

    def _places(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Where cells are among the known ones, and whether they are."""
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return places, self.keys[places] == keys


@dataclass(frozen=True, slots=True)
class Deal:
    """Cells dealt to folds by a seed, and the model that predicts each fold."""

    models: tuple[Model, ...]
    seed: int

    def of_cells(self, keys: NDArray[np.uint64], codes: Sequence[Codes], threads: int | None) -> Matrix:
        """What to expect of cells with these keys. # (cell, class)"""
        folds = fold_of(keys, self.seed)

        def predict(fold: int) -> tuple[NDArray[np.int64], Matrix]:
            chosen = np.flatnonzero(folds == fold)
            return chosen, self.models[fold]([own[chosen] for own in codes], len(chosen))

        parts = _side_by_side(predict, threads)
        expected = np.empty((len(keys), parts[0][1].shape[1]))
        for chosen, predicted in parts:
            expected[chosen] = predicted
        return expected


@dataclass(frozen=True, slots=True)
class Predictor:
    """Says of any row what to expect, by its codes: the mean over deals. `noise` is the variance of numbers that models
    cannot tell, and `explained` what they tell of a row that they have not learned from, on average: of classes how
    much likelier it is than by the shares of all rows, in nats, of numbers the variance. It is below 0 where they took
    luck for a rule.
    """

    columns: tuple[CodedColumn, ...]
    deals: tuple[Deal, ...]
    known: KnownCells | None = None
    noise: float = 0.0
    explained: float = 0.0

    def __call__(self, codes: Sequence[Codes], rows: int, threads: int | None = 1) -> Matrix:
        """Shares of classes, or one column of numbers. # (row, class)"""
        return self.of_cells(denoising_models.cell_keys(self.columns, codes, rows), codes, threads)

    def beside_own(
        self, codes: Sequence[Codes], own: NDArray[np.float64], threads: int | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Which number to expect of each row, and its own one."""
        keys = denoising_models.cell_keys(self.columns, codes, len(own))
        expected = self.of_cells(keys, codes, threads)
        return expected[:, 0], own if self.known is None else self.known.apart(keys, expected, own)

    def of_cells(self, keys: NDArray[np.uint64], codes: Sequence[Codes], threads: int | None) -> Matrix:
        """The same of rows, or cells, with these keys."""
        expected = self.deals[0].of_cells(keys, codes, threads)
        for deal in self.deals[1:]:
            expected = expected + deal.of_cells(keys, codes, threads)
        if len(self.deals) > 1:
            expected = expected / len(self.deals)
        return expected if self.known is None else self.known.improved(keys, expected)


def fit_shares(
    columns: Sequence[CodedColumn],
    examples: Examples,
    width: int,
    *,
    complete: bool = True,
    seed: int = 0,
    deals: int = 1,
    threads: int | None = None,
) -> Predictor:
    """Models of how likely each of `width` classes is, which learn from the codes of examples: all rows of a cell, if
    these are `complete`. Another seed deals cells to other folds; `deals` says how often they are dealt.
    """
    counts = np.bincount(examples.target, examples.rows, minlength=width)
    common = np.sort(np.argsort(-counts, kind="stable")[:_MOST_SIGNALS])
    signals = (examples.target[:, None] == (np.array([1]) if width == 2 else common)).astype(np.float64)
    learn = partial(denoising_models.learn_classes, width=width)
    fitted = _fitted(columns, examples, signals, learn, _seeds(seed, deals), threads)
    each = (examples.target[:, None] == np.arange(width)).astype(np.float64)
    known, expected = _known(fitted, examples, each, threads)
    likelier = np.log(_possible(expected)) - np.log(_possible(known.sums.sum(axis=0) / known.rows.sum()))
    fitted = replace(fitted, explained=float((known.sums * likelier).sum() / known.rows.sum()))
    if not complete or not _is_dense(examples):
        return fitted
    return replace(fitted, known=replace(known, strength=_strength_of_shares(known, expected)))


def fit_numbers(
    columns: Sequence[CodedColumn],
    examples: Examples,
    *,
    complete: bool = True,
    seed: int = 0,
    deals: int = 1,
    threads: int | None = None,
) -> Predictor:
    """Models of which number to expect: between the least and the most of the examples' targets."""
    numbers = examples.target.astype(np.float64)
    seeds = _seeds(seed, deals)
    fitted = _fitted(columns, examples, numbers[:, None], denoising_models.learn_numbers, seeds, threads)
    known, expected = _known(fitted, examples, numbers[:, None], threads)
    places = np.searchsorted(known.keys, examples.cells)
    misses = numbers - expected[places, 0]
    sums, squares = (np.bincount(places, examples.weights * misses**power).astype(np.float64) for power in (1, 2))
    noise = float(squares.sum() / examples.weights.sum())
    around = numbers - np.average(numbers, weights=examples.weights)
    explained = float(np.average(around**2, weights=examples.weights)) - noise
    fitted = replace(fitted, noise=noise, explained=explained)
    if not complete or not _is_dense(examples):
        return fitted
    return replace(fitted, known=replace(known, strength=_strength_of_numbers(known.rows, sums, squares)))


def _fitted(
    columns: Sequence[CodedColumn],
    examples: Examples,
    signals: Matrix,
    learn: Callable[[TrainingRows], Model],
    seeds: Sequence[int],
    threads: int | None,
) -> Predictor:
    """Models of cells that are dealt to folds by each of some seeds."""
    deals = (_dealt(columns, examples, signals, learn, seed, threads) for seed in seeds)
    return Predictor(tuple(columns), tuple(deals))


def deals_of(rows: int) -> int:
    """Of few rows models know much by luck, so these are dealt several times: as often as costs little."""
    return max(1, min(_MOST_DEALS, _DEALT_ROWS // max(rows, 1)))


def _seeds(seed: int, deals: int) -> list[int]:
    """A seed for each deal."""
    return [seed + (number << 32) for number in range(deals)]


def _dealt(
    columns: Sequence[CodedColumn],
    examples: Examples,
    signals: Matrix,
    learn: Callable[[TrainingRows], Model],
    seed: int,
    threads: int | None,
) -> Deal:
    """A model for each fold of cells."""
    folds = fold_of(examples.cells, seed)
    features = denoising_models.make_features(columns, examples, folds, signals)

    def fit(fold: int) -> Model:
        return learn(TrainingRows.of_fold(fold, features, examples, folds, seed))

    return Deal(tuple(_side_by_side(fit, threads)), seed)


def _side_by_side(work: Callable[[int], Any], threads: int | None) -> list[Any]:
    """What some work gives for each fold."""
    with ThreadPoolExecutor(max_workers=min(FOLDS, thread_count(threads))) as pool:
        return list(pool.map(work, range(FOLDS)))


def _possible(shares: Matrix) -> Matrix:
    """Shares of which none is 0: no model is so sure."""
    return np.maximum(shares, 1e-6)


def _is_dense(examples: Examples) -> bool:
    """Whether cells have rows enough to tell something of their own."""
    return bool(examples.rows.sum() > 1.2 * len(np.unique(examples.cells)))


def _known(fitted: Predictor, examples: Examples, signals: Matrix, threads: int | None) -> tuple[KnownCells, Matrix]:
    """The cells of examples, each of which adds its signals, and what models expect of them."""
    keys, first, which = np.unique(examples.cells, return_index=True, return_inverse=True)
    sums = [np.bincount(which, examples.weights * signal, minlength=len(keys)) for signal in signals.T]
    rows = np.bincount(which, examples.weights, minlength=len(keys)).astype(np.float64)
    expected = fitted.of_cells(keys, [own[first] for own in examples.codes], threads)
    return KnownCells(keys, np.stack(sums, axis=1), rows), expected


def _likeliest(by_models: float, likelihood: Callable[[float], float]) -> float:
    """The strength that makes what cells have likeliest, if any is clearly better than models alone."""
    best, strength = by_models, float("inf")
    for tried in _STRENGTHS:
        if (reached := likelihood(tried)) > best + 1.0:
            best, strength = reached, tried
    return strength


def _strength_of_shares(known: KnownCells, expected: Matrix) -> float:
    """The parameter of a Dirichlet-multinomial distribution that makes the classes that cells have the likeliest."""
    from scipy.special import gammaln

    def likelihood(strength: float) -> float:
        prior = strength * _possible(expected)
        total = prior.sum(axis=1)
        gained = gammaln(total) - gammaln(total + known.rows)
        gained += (gammaln(prior + known.sums) - gammaln(prior)).sum(axis=1)
        return float(gained.sum())

    return _likeliest(float((known.sums * np.log(_possible(expected))).sum()), likelihood)


def _strength_of_numbers(rows: NDArray[np.float64], misses: NDArray[np.float64], squares: NDArray[np.float64]) -> float:
    """The same for numbers, from the sums by cell of how far models miss, and of its square: the strength by which
    models and the other rows of its cell miss a row least. A likelihood would take a few very large numbers for what
    all cells know of themselves.
    """

    def missed(strength: float) -> float:
        both = strength + rows
        return float(((both**2 * squares + (rows - 2 * both) * misses**2) / (both - 1) ** 2).sum())

    noise = float(squares.sum()) / float(rows.sum())
    if noise == 0:
        return float("inf")
    misses, squares = misses / np.sqrt(noise), squares / noise
    return _likeliest(-float(squares.sum()) / 2, lambda strength: -missed(strength) / 2)


def fixed_shares(shares: Matrix, bits: int = 16) -> NDArray[np.int64]:
    """Shares (row, width) as whole numbers whose rows sum to exactly 2**bits. What is left after rounding down goes to
    the largest remainders, of equal ones to the lower classes.

    Example:
        >>> fixed_shares(np.array([[0.5, 0.25, 0.25], [1 / 3, 1 / 3, 1 / 3]]), bits=2).tolist()
        [[2, 1, 1], [2, 1, 1]]
    """
    if not 1 <= bits <= _MOST_BITS:
        raise ValueError(f"bits must be 1 to {_MOST_BITS}")
    sums = shares.sum(axis=1)
    if not (np.isfinite(shares).all() and (shares >= 0).all() and (sums > 0).all()):
        raise ValueError("shares must be finite, not negative, and not all 0 in a row")
    whole = np.empty(shares.shape, dtype=np.int64)
    for start in range(0, len(shares), _BATCH):
        batch = slice(start, start + _BATCH)
        whole[batch] = _rounded(shares[batch] / sums[batch, None] * (1 << bits), 1 << bits)
    return whole


def _rounded(scaled: Matrix, total: int) -> NDArray[np.int64]:
    whole: NDArray[np.int64] = np.floor(scaled).astype(np.int64)
    left = total - whole.sum(axis=1)
    gaps = np.ascontiguousarray((whole - scaled).T)  # (class, row) the lowest has the largest remainder
    for place, own in enumerate(gaps):
        # Sorting each row would take ten times as long: there are few classes, and most often two.
        before = sum(gap <= own for gap in gaps[:place]) + sum(gap < own for gap in gaps[place + 1 :])
        whole[:, place] += before < left
    return whole
