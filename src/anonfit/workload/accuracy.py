# SPDX-License-Identifier: Apache-2.0
"""Weights of quasi-identifiers from how well each of them alone predicts the targets (Case III of the paper on weighted
anonymization): numbers are put into ranges of equally many persons, a person's class is guessed by the commonest one
among the others of the same range or name, and the best three columns get the weights 3, 2 and 1.

Each person is guessed from the others only, so that a column of many names does not win by knowing them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.median import TIE
from anonfit.errors import SpecError
from anonfit.tables.coded import MISSING, CodedColumn, SplitMode
from anonfit.tables.schema import Column
from anonfit.workload.request import Workload
from anonfit.workload.targets import classes_of, is_numeric

if TYPE_CHECKING:
    import polars as pl

__all__ = ["RANGES", "LearnedWeights", "class_targets", "guessed", "in_ranges", "ranked"]

RANGES = 10
"""Ordered columns are put into so many ranges."""
WEIGHTS = (3.0, 2.0, 1.0)
"""Of the best columns; all others get 0."""


@dataclass(frozen=True, slots=True)
class LearnedWeights:
    """The weight of each quasi-identifier, and the share of persons whose class it tells, on average over targets.

    What is told of the shares is for the owner of the data.
    """

    weights: Mapping[str, float]
    accuracies: Mapping[str, float]


def class_targets(
    workload: Workload, columns: Sequence[Column], values: Callable[[str], pl.Series]
) -> dict[str, tuple[NDArray[np.int64], int]]:
    """The class of each of a target's values, and how many classes there are, for all targets that have classes."""
    declared = {column.name: column for column in columns}
    classes = {
        request.column: classes_of(request, declared[request.column], values(request.column))
        for request in workload.targets
        if not is_numeric(request, declared[request.column], values(request.column), workload.criterion)
    }
    if not classes:
        raise SpecError(["workload.weights_from = 'accuracy' needs a target with classes, and the workload has none."])
    return classes


def ranked(accuracies: Mapping[str, float], targets: set[str]) -> LearnedWeights:
    """Weights by rank; of equally good columns the first ones rank higher."""
    order = sorted(
        (name for name in accuracies if name not in targets), key=lambda name: -round(accuracies[name] / TIE)
    )
    weights = dict(zip(order, WEIGHTS, strict=False))
    return LearnedWeights({name: weights.get(name, 0.0) for name in accuracies}, accuracies)


def in_ranges(column: CodedColumn, codes: NDArray[np.int64], persons: NDArray[np.int64]) -> NDArray[np.int64]:
    """The range of each row: of an ordered column, ranges of equally many persons and missing for itself; of any other
    its code.
    """
    if column.mode != SplitMode.ORDERED:
        return codes
    counts = np.zeros(column.size, np.int64)
    np.add.at(counts, codes, persons)
    if column.has_missing:
        counts[MISSING] = 0
    total = int(counts.sum())
    # The middle person of a code decides, so that equal values stay together.
    middles = 2 * (np.cumsum(counts) - counts) + counts
    found: NDArray[np.int64] = np.minimum(middles * RANGES // max(2 * total, 1), RANGES - 1) + 1
    if column.has_missing:
        found[MISSING] = 0
    return found[codes]


def guessed(places: NDArray[np.int64], classes: NDArray[np.int64], width: int, persons: NDArray[np.int64]) -> float:
    """The share of persons whose class is the commonest among the others of their place; where several are, or nobody
    else is there, the one that is commoner in the whole table.

    Args:
        places: (row,) where each row is.
        classes: (row,) its class.
        width: How many classes there are.
        persons: (row,) how many persons it stands for.
    """
    used, where = np.unique(places, return_inverse=True)
    table = np.zeros(width, np.int64)
    np.add.at(table, classes, persons)
    counts = np.zeros((len(used), width), np.int64)
    np.add.at(counts, (where, classes), persons)
    right = 0
    for own in range(width):
        held = counts[:, own]
        others, rest = counts.copy(), table.copy()
        others[:, own] -= 1
        rest[own] -= 1
        # The rank in the whole table decides between equal counts; of equal ranks the first class.
        rank = np.empty(width, np.int64)
        rank[np.lexsort((-np.arange(width), rest))] = np.arange(width)
        likely = np.argmax(others * width + rank, axis=1)
        right += int(held[likely == own].sum())
    return right / max(int(table.sum()), 1)
