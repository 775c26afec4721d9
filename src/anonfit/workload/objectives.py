# SPDX-License-Identifier: Apache-2.0
"""From a workload to the objective that engines read, once a table's quasi-identifiers are coded: its targets, the
features that clusters are made of, and weights of quasi-identifiers from how well each of them alone predicts the
targets (Case III of the paper on weighted anonymization).

Of features, numbers, dates and ranks count by their squared distance in standard deviations, names by whether they are
the same. Unlike a target, a feature also counts for the splits of its own column: dividing it makes the rows alike.

For weights by prediction, numbers are put into ranges of equally many persons, a person's class is guessed by the
commonest one among the others of the same range or name, and the best three columns get the weights 3, 2 and 1. Each
person is guessed from the others only, so that a column of many names does not win by knowing them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.criteria.objectives import MEDIAN, TIE, SplitObjective, WeightRule
from anonfit.criteria.targets import ClassTarget, Impurity, Target
from anonfit.errors import DataError, SpecError
from anonfit.tables.schema import MISSING, CodedColumn, Column, SplitMode
from anonfit.workload.targets import Workload, classes_of, is_numeric, rounded_sum

MOST_NAMES = 64
"""A column with more names is taken by its commonest ones, and all others as one."""


def feature_weights(workload: Workload, quasi_identifiers: Sequence[str]) -> dict[str, float]:
    """The features among the quasi-identifiers (all if none is named) that count, and how much each does."""
    named = [name for name in quasi_identifiers if not workload.features or name in workload.features]
    weights = {name: float(workload.weights.get(name, 1.0)) for name in named}
    return {name: weight for name, weight in weights.items() if weight > 0}


def feature_numbers(column: CodedColumn, codes: NDArray[np.int64], values: pl.Series) -> NDArray[np.float64] | None:
    """The numbers behind a column of numbers, dates or ranks, NaN where one is missing; None of names."""
    if column.mode == SplitMode.ORDERED:
        missing = column.has_missing & (codes == MISSING)
        return np.where(missing, np.nan, np.asarray(column.positions, np.float64)[codes])
    if values.dtype.is_numeric():
        numbers: NDArray[np.float64] = values.cast(pl.Float64).fill_null(float("nan")).to_numpy().astype(np.float64)
        return np.where(np.isfinite(numbers), numbers, np.nan)
    return None


def name_target(column: CodedColumn, codes: NDArray[np.int64], weight: float, masses: NDArray[np.int64]) -> ClassTarget:
    """The names of a column; of many, the commonest, of equally common ones the first."""
    if column.size <= MOST_NAMES:
        return ClassTarget(column.name, codes, column.size, weight, measured_by=Impurity.GINI)
    counts = np.zeros(column.size, np.int64)
    np.add.at(counts, codes, masses)
    common = np.argsort(-counts, kind="stable")[: MOST_NAMES - 1]
    place = np.full(column.size, MOST_NAMES - 1)
    place[common] = np.arange(MOST_NAMES - 1)
    return ClassTarget(column.name, place[codes], MOST_NAMES, weight, measured_by=Impurity.GINI)


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
        if not is_numeric(request, declared[request.column], values(request.column), workload.objective)
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
    """The range of each row: ranges of equally many persons, and missing apart; of a nominal column the code."""
    if column.mode != SplitMode.ORDERED:
        return codes
    counts = np.zeros(column.size, np.int64)
    np.add.at(counts, codes, persons)
    if column.has_missing:
        counts[MISSING] = 0
    total = int(counts.sum())
    # The middle person of a code decides, so that equal values stay together.
    middles = 2 * (np.cumsum(counts) - counts) + counts
    ranges: NDArray[np.int64] = np.minimum(middles * RANGES // max(2 * total, 1), RANGES - 1) + 1
    if column.has_missing:
        ranges[MISSING] = 0
    return ranges[codes]


def guessed(places: NDArray[np.int64], classes: NDArray[np.int64], width: int, persons: NDArray[np.int64]) -> float:
    """The share of persons whose class is the commonest among the others of their place; where several are, or nobody
    else is there, the one that is commoner in the whole table. places, classes and persons: (row,)
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


RULES = {
    "first": WeightRule.FIRST,
    "product": WeightRule.PRODUCT,
    "blend": WeightRule.BLEND,
    "naive": WeightRule.NAIVE,
    "probabilistic": WeightRule.CHANCE,
    "combined": WeightRule.COMBINED,
}
MASS_BITS = 10
"""The mean sample weight is a whole number of about so many bits."""

LARGEST_WEIGHT = 1e150
"""Of a sample weight: sums of larger ones may be more than a number can hold."""


def unit_masses(
    weights: pl.Series, counts: NDArray[np.int64], times: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], float]:
    """What each row counts in criteria, in whole units of so many persons; every row counts at least one unit. `times`
    says how often each row stands in the table, if not once.
    """
    numbers = weights.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    if not ((numbers >= 0).all() and (numbers <= LARGEST_WEIGHT).all() and (numbers > 0).any()):
        raise DataError(
            f"sample-weight column '{weights.name}': weights must be numbers of at most {LARGEST_WEIGHT:g}, none of "
            "them missing or negative, and not all 0; mend them."
        )
    # Rounded once, so that the unit does not depend on the order of rows.
    often = np.ones(len(numbers), np.int64) if times is None else times
    mean = rounded_sum(numbers * counts, often) / int((counts * often).sum())
    unit = float(2.0 ** (np.floor(np.log2(mean)) - MASS_BITS))
    masses = np.clip(np.rint(numbers * counts / unit), 1, 2**32 - 1)
    return masses.astype(np.int64), unit


def objective_of(
    workload: Workload,
    names: Sequence[str],
    targets: tuple[Target, ...] = (),
    masses: NDArray[np.int64] | None = None,
    unit: float = 1.0,
) -> SplitObjective:
    """The purpose of a workload over quasi-identifiers of these names, given what was coded for it."""
    split_on = frozenset(names.index(name) for name in workload.split_on) if workload.split_on else None
    if workload.is_blind:
        return MEDIAN if split_on is None else SplitObjective(split_on=split_on)
    objective = SplitObjective(
        targets=targets, min_gain=workload.min_gain or 0.0, split_on=split_on, masses=masses, unit=unit
    )
    if workload.objective.clusters:
        features = feature_weights(workload, names)
        # Dividing another column makes rows alike too, but no label of a feature tells it: features come first.
        return replace(objective, weights=tuple(float(name in features) for name in names), rule=WeightRule.FIRST)
    return replace(
        objective,
        all_cuts=workload.candidates == "all",
        weights=tuple(float(workload.weights.get(name, 1.0)) for name in names) if workload.weights else (),
        rule=RULES[workload.weight_rule] if workload.weights else WeightRule.NONE,
        alpha=workload.alpha,
        beta=workload.beta,
        gamma=workload.gamma,
        seed=workload.seed,
    )
