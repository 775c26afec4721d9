# SPDX-License-Identifier: Apache-2.0
"""Which rows a model learns from and which it predicts, decided by what rows hold and never by where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.tables.coded import CodedColumn, Codes

__all__ = ["Folds", "Places", "divide", "first_of_runs"]

Places: TypeAlias = NDArray[np.int64]

_MOST_LEARNED = 100_000  # more rows make models slower and hardly better
_MOST_KEYS = 1 << 63


@dataclass(frozen=True, slots=True)
class Folds:
    """Rows in an order of their own: a row's *place*. Rows with equal codes (a *cell*) have neighbouring places.

    `order` has the row, `cells` the number of the cell and `folds` the fold of each place; `learned` are the places
    that models learn from, in order; `ties` the first place of each run of rows with equal codes and equal target.
    """

    order: Places
    cells: Places
    folds: NDArray[np.int64]
    learned: Places
    ties: Places

    def training(self, fold: int) -> Places:
        """The places from which the model of a fold learns: none is in the fold."""
        places: Places = self.learned[self.folds[self.learned] != fold]
        return places

    def predicted(self, fold: int) -> Places:
        """The places that the model of a fold predicts."""
        return np.flatnonzero(self.folds == fold)


def divide(
    columns: Sequence[CodedColumn],
    codes: Sequence[Codes],
    target: NDArray[Any],
    *,
    known: NDArray[np.bool_],
    weights: NDArray[np.float64] | None,
    seed: int,
    folds: int,
) -> Folds:
    """Divide rows into folds of equal size.

    The order of cells is a hash of their codes; within a cell rows are ordered by target, then weight. Places are
    dealt to the folds in turn. So each cell, and each class in it, is spread over the folds as evenly as it can be:
    were all rows of a cell in one fold, or all of its rows of one class, their model could only guess what it was not
    shown. The fold of a row that is alone in its cell does not depend on its target.

    Rows that tie in all of this cannot be told apart, so whichever of them comes first, the models are the same.
    """
    hashes = _hashes(_cell_keys(columns, codes, len(target)), seed)
    # Unknown targets come first and are one value.
    sorting = np.where(known, target, -np.inf if target.dtype.kind == "f" else -1)
    keys = (sorting, hashes) if weights is None else (weights, sorting, hashes)
    order = np.lexsort(keys).astype(np.int64, copy=False)
    hashes, sorting = hashes[order], sorting[order]

    new_cell = _changes(hashes)
    learnable = np.flatnonzero(known[order] if weights is None else (known & (weights > 0))[order])
    # Every n-th place: a sample that is even over cells and classes.
    sample = min(_MOST_LEARNED, len(learnable))
    learned = learnable[np.arange(sample) * len(learnable) // max(sample, 1)]
    fold_of = np.empty(len(order), dtype=np.int64)
    others = np.ones(len(order), dtype=np.bool_)
    others[learned] = False
    fold_of[learned] = np.arange(sample) % folds
    fold_of[others] = np.arange(len(order) - sample) % folds
    ties = np.flatnonzero(new_cell | _changes(sorting))
    return Folds(order, np.cumsum(new_cell), fold_of, learned, ties)


def first_of_runs(numbers: NDArray[Any]) -> tuple[Places, Places]:
    """Where each run of equal numbers begins, and the run of each entry."""
    new = _changes(numbers)
    return np.flatnonzero(new), np.cumsum(new) - 1


def _changes(numbers: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether an entry differs from the one before; the first does."""
    changes = np.ones(len(numbers), dtype=np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=changes[1:])
    return changes


def _cell_keys(columns: Sequence[CodedColumn], codes: Sequence[Codes], rows: int) -> NDArray[np.uint64]:
    """A number for each row, the same for equal codes only."""
    keys = np.zeros(rows, dtype=np.uint64)
    room = 1
    for column, found in zip(columns, codes, strict=True):
        if room * column.size > _MOST_KEYS:
            # The ranks of the numbers so far need less room and keep apart what was apart.
            distinct, ranks = np.unique(keys, return_inverse=True)
            keys, room = ranks.astype(np.uint64), len(distinct)
        keys = keys * np.uint64(column.size) + found.astype(np.uint64)
        room *= column.size
    return keys


def _hashes(keys: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """The mixing steps of splitmix64. Each can be undone, so different keys stay different."""
    start = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    mixed: NDArray[np.uint64] = keys ^ start
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed
