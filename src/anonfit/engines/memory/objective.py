# SPDX-License-Identifier: Apache-2.0
"""A purpose in the form that kernels read: which sums a row adds to, and how groups with these sums are weighed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.objectives import SplitObjective, WeightRule
from anonfit.criteria.targets import (
    SHARE_BITS,
    ClassTarget,
    Impurity,
    NumberTarget,
    ShareTarget,
    Sums,
    Target,
    by_entropy,
)
from anonfit.engines.memory.layout import Packing
from anonfit.tables.schema import CodedTable, code_dtype

# Entries of KernelObjective.settings.
SLOTS = 0  # sums that are kept of every code
LEAN = 1  # classes of the first target where they add up to the persons, which are then no sum of their own; else 0
ALL_CUTS = 2
RULE = 3
MASS = 4  # the first bit of a row's mass, -1 where it is its persons

# Rows of KernelObjective.targets, one entry per target.
KIND = 0
SLOT = 1  # its first sum
CLASSES = 2  # how many classes it has
BIT = 3  # where it begins in the row
MASK = 4
ITSELF = 5  # the quasi-identifier it is, or -1
MEASURED = 6  # the Impurity of its classes
CLASS, SHARE, NUMBER = 0, 1, 2

# Rows of KernelObjective.factors.
FACTOR, UNIT = 0, 1

# Entries of KernelObjective.numbers.
ALPHA, MIN_GAIN, LARGEST, PER_MASS, BETA, GAMMA = 0, 1, 2, 3, 4, 5

LOGS = 1 << 20
"""Entries of the table of x ln x."""


class KernelObjective(NamedTuple):
    """What steers splits. With no targets there is one sum, persons, and columns are preferred by their spread."""

    settings: NDArray[np.int64]
    targets: NDArray[np.int64]  # (fact, target)
    factors: NDArray[np.float64]  # (fact, target)
    weights: NDArray[np.float64]  # (column,) below 0: may not be split
    numbers: NDArray[np.float64]
    logs: NDArray[np.float64]  # x ln x of whole numbers


class ObjectiveFields(NamedTuple):
    """The numbers of the fields that a purpose adds to packed rows."""

    mass: int
    targets: tuple[int, ...]


def _target_fields(target: Target, packing: Packing) -> int:
    """Add a target's fields; the first one's number."""
    if isinstance(target, ClassTarget):
        return packing.add(target.classes, code_dtype(target.width).itemsize)
    if isinstance(target, NumberTarget):
        return packing.add(target.multiples.astype(np.int32).view(np.uint32), 4)
    assert isinstance(target, ShareTarget)
    fields = [packing.add(target.shares[:, label], 2) for label in range(target.shares.shape[1])]
    return fields[0]


def add_objective_fields(purpose: SplitObjective, packing: Packing) -> ObjectiveFields:
    """Add what a purpose knows of rows to a packing."""
    mass = -1 if purpose.masses is None else packing.add(purpose.masses, 4)
    return ObjectiveFields(mass, tuple(_target_fields(target, packing) for target in purpose.targets))


def _masses(purpose: SplitObjective, table: CodedTable) -> NDArray[np.int64]:
    if purpose.masses is not None:
        return purpose.masses.astype(np.int64)
    return np.ones(table.rows, np.int64) if table.counts is None else table.counts.astype(np.int64)


def _whole(target: Target, masses: NDArray[np.int64]) -> Sums:
    """The sums of a target over the table."""
    if isinstance(target, ClassTarget):
        return np.bincount(target.classes, weights=masses, minlength=target.width).astype(np.int64)
    if isinstance(target, ShareTarget):
        return masses @ target.shares
    assert isinstance(target, NumberTarget)
    values = target.multiples
    return np.array([masses.sum(), masses @ values, masses @ (values * values)], dtype=np.int64)


class Whole(NamedTuple):
    """What a purpose must know of the whole table: its columns and rows, their mass, and the sums of each target."""

    columns: int
    rows: int
    mass: int
    sums: tuple[Sums, ...]


def whole_of(purpose: SplitObjective, table: CodedTable) -> Whole:
    """What a purpose must know of a table."""
    masses = _masses(purpose, table) if purpose.targets else np.zeros(0, np.int64)
    sums = tuple(_whole(target, masses) for target in purpose.targets)
    return Whole(len(table.columns), table.rows, int(masses.sum()), sums)


def make_objective(purpose: SplitObjective, whole: Whole, packing: Packing, fields: ObjectiveFields) -> KernelObjective:
    """The kernels' form of a purpose, once the packing is settled."""
    targets = purpose.targets
    lean = purpose.masses is None and bool(targets) and by_entropy(targets[0])
    slots = 0 if lean else 1 + (purpose.masses is not None)
    facts = np.zeros((7, len(targets)), np.int64)
    units = np.zeros(len(targets))
    for index, target in enumerate(targets):
        field = fields.targets[index]
        facts[BIT, index], facts[MASK, index] = packing.bit(field), packing.mask(field)
        facts[SLOT, index], facts[ITSELF, index] = slots, target.column
        facts[MEASURED, index] = getattr(target, "measured_by", Impurity.ENTROPY)
        facts[KIND, index], facts[CLASSES, index], units[index] = _shape(target, purpose.unit)
        slots += facts[CLASSES, index] if facts[KIND, index] != NUMBER else 2
    weights = np.ones(whole.columns)
    if purpose.weights:
        weights[:] = purpose.weights
    largest = float(weights.max(initial=0.0))
    for column in range(len(weights)):
        if not purpose.may_split(column):
            weights[column] = -1.0
    factors = purpose.factors(whole.sums, whole.mass) if targets else ()
    rule = purpose.rule if purpose.weights else WeightRule.NONE
    mass_field = packing.bit(fields.mass)
    return KernelObjective(
        settings=np.array([slots, facts[CLASSES, 0] if lean else 0, purpose.all_cuts, rule, mass_field], np.int64),
        targets=facts,
        factors=np.stack([np.array(factors, dtype=np.float64), units]),
        weights=weights,
        numbers=np.array(
            [purpose.alpha, purpose.least_gain(factors), largest, purpose.unit, purpose.beta, purpose.gamma],
            np.float64,
        ),
        logs=x_log_x(min(LOGS, max(whole.mass, whole.rows) + 1)),
    )


def _shape(target: Target, unit: float) -> tuple[int, int, float]:
    """A target's kind, its classes, and what its sums are multiplied by."""
    if isinstance(target, ClassTarget):
        return CLASS, target.width, unit
    if isinstance(target, ShareTarget):
        return SHARE, target.shares.shape[1], unit / (1 << SHARE_BITS)
    assert isinstance(target, NumberTarget)
    return NUMBER, 1, unit * target.scale.step * target.scale.step


def x_log_x(size: int) -> NDArray[np.float64]:
    """x ln x of the whole numbers below a size."""
    numbers: Any = np.arange(size, dtype=np.float64)
    numbers[1:] *= np.log(numbers[1:])
    return np.asarray(numbers, dtype=np.float64)
