# SPDX-License-Identifier: Apache-2.0
"""Targets and selections as a criterion sees them: what is summed of a target over a group and how mixed a group with
these sums is; which codes of each quasi-identifier the sub-populations of a workload reach.

An impurity is a total, not a mean: the parts of a split are compared with the whole by adding. It is computed from
exact integer sums in one fixed order, so that every engine finds the same number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.tables.scales import FixedPoint


@dataclass(frozen=True, slots=True)
class CodedSelections:
    """Disjoint rectangles of codes, and for which rows each of them counts.

    Rows of the same signature satisfy the same conditions on columns that are released as they are.
    """

    rectangles: NDArray[np.uint8]  # (rectangle, code of any quasi-identifier, columns one after another)
    selection: NDArray[np.int64]  # (rectangle,) the selection it belongs to
    weights: NDArray[np.float64]  # (selection,)
    signatures: NDArray[np.int64]  # (row,)
    applies: NDArray[np.uint8]  # (signature, rectangle)
    boundaries: NDArray[np.uint8]  # (code of any ordered quasi-identifier,) 1 where a rectangle begins or ends
    names: tuple[str, ...] = ()

    @property
    def shares(self) -> NDArray[np.float64]:
        """The weights by which splits are compared: as shares of the largest, so that any may be asked for."""
        largest = self.weights.max(initial=0.0)
        return self.weights / largest if largest > 0 else self.weights


@dataclass(frozen=True, slots=True)
class Signatures:
    """How the classes of rows, one for each column that is released as it is, become signatures: column by column, the
    place of a combination of classes among those that occur.
    """

    sizes: tuple[int, ...] = ()  # (column,) how many classes it has
    known: tuple[NDArray[np.int64], ...] = ()
    """(column,) What occurs, ascending: the place of the combination so far times the classes, plus the class."""

    def of(self, classes: Sequence[NDArray[np.integer[Any]]], rows: int) -> NDArray[np.int64]:
        """The signatures of so many rows, from their classes of each column."""
        places = np.zeros(rows, np.int64)
        for size, known, own in zip(self.sizes, self.known, classes, strict=True):
            places = np.searchsorted(known, places * size + own).astype(np.int64)
        return places


def signatures_of(
    sizes: Sequence[int], classes: Sequence[NDArray[np.integer[Any]]], rows: int
) -> tuple[Signatures, NDArray[np.int64]]:
    """The signatures that occur in so many rows, given their classes of each column, and the signature of each row."""
    places = np.zeros(rows, np.int64)
    known = []
    for size, own in zip(sizes, classes, strict=True):
        used, places = np.unique(places * size + own, return_inverse=True)
        known.append(used)
    return Signatures(tuple(sizes), tuple(known)), places


Sums: TypeAlias = NDArray[np.int64]
"""What is summed of a target over a group, in the last dimension: additive integers, so that adding gives the sums of
any union of groups, and subtracting a part's from the whole the rest's.
"""
SHARE_BITS = 15
"""Shares of classes are whole multiples of 2**-15; those of a row add up to one."""


class Target(Protocol):
    """A column that splits should tell apart."""

    @property
    def name(self) -> str:
        """The column."""

    @property
    def weight(self) -> float:
        """How much it counts beside other targets."""

    @property
    def column(self) -> int:
        """The quasi-identifier it is itself, by number; -1 if it is none. It is not split to predict itself."""

    @property
    def price(self) -> float:
        """What one more group costs those who estimate the target in each group from its own rows: a split must gain
        more of impurity for it than that. 0: any gain will do.
        """

    def additions(self, masses: NDArray[np.int64]) -> Sums:
        """What each row, of so much mass, adds to the sums of a group. (row, sum)"""

    def impurity(self, sums: Sums, unit: float) -> float:
        """How mixed a group is: 0 if all its rows are alike. `unit` is what a row's mass of 1 stands for."""


def _x_log_x(x: float) -> float:
    return x * math.log(x) if x > 0 else 0.0


def _entropy(sums: Sums, unit: float) -> float:
    """Persons times the entropy of their classes, in nats."""
    total = _x_log_x(float(int(sums.sum())) * unit)
    for count in sums.tolist():
        total -= _x_log_x(float(count) * unit)
    return total


def _gini(sums: Sums, unit: float) -> float:
    """The sum of squared deviations from the mean, with one number for each class that is 1 where a row has it."""
    number, squares = float(int(sums.sum())), 0.0
    for count in sums.tolist():
        squares += float(count) * float(count)
    return max(number - squares / number, 0.0) * unit if number else 0.0


def _surprise(sums: Sums, unit: float) -> float:
    """What is not told of the expected classes by those who learn from the persons' own: persons times the
    cross-entropy, in nats. The first half of the sums are the expected shares, the second half the own classes, to
    which one person is added who has an equal share of each.
    """
    classes = len(sums) // 2
    even = 1.0 / classes
    total = float(int(sums[:classes].sum())) * unit * math.log(float(int(sums[classes:].sum())) * unit + 1.0)
    for expected, own in zip(sums[:classes].tolist(), sums[classes:].tolist(), strict=True):
        total -= float(expected) * unit * math.log(float(own) * unit + even)
    return total


class Impurity(IntEnum):
    """How the mixture of classes is measured; kernels (`engines.memory.impurity`) know it by its number."""

    ENTROPY = 0
    GINI = 1
    SURPRISE = 2  # of what is expected of a row, beside which it has its own class, or number

    def of(self, sums: Sums, unit: float) -> float:
        """The impurity of a group with these sums of each class."""
        measures = {Impurity.ENTROPY: _entropy, Impurity.GINI: _gini, Impurity.SURPRISE: _surprise}
        return measures[self](sums, unit)


@dataclass(frozen=True, slots=True)
class ClassTarget:
    """A nominal target, or a nominal feature whose rows should be alike. classes: (row,) 0 .. width - 1."""

    name: str
    classes: NDArray[np.int64]
    width: int
    weight: float = 1.0
    column: int = -1
    measured_by: Impurity = Impurity.ENTROPY
    price: float = 0.0

    def additions(self, masses: NDArray[np.int64]) -> Sums:
        """A row's mass, in the place of its class."""
        sums = np.zeros((len(masses), self.width), np.int64)
        sums[np.arange(len(masses)), self.classes] = masses
        return sums

    def impurity(self, sums: Sums, unit: float) -> float:
        """Persons times the impurity of their classes."""
        return self.measured_by.of(sums, unit)


@dataclass(frozen=True, slots=True)
class ShareTarget:
    """A nominal target of which each row has a share of every class. shares: (row, class), each row adds to 2**15.

    Measured by SURPRISE it has twice as many columns: the expected shares, then the row's own class as shares.
    """

    name: str
    shares: NDArray[np.int64]
    weight: float = 1.0
    column: int = -1
    measured_by: Impurity = Impurity.ENTROPY
    price: float = 0.0

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return int(self.shares.shape[1])

    @property
    def class_count(self) -> int:
        """How many classes there are."""
        return self.width // 2 if self.measured_by == Impurity.SURPRISE else self.width

    def additions(self, masses: NDArray[np.int64]) -> Sums:
        """A row's mass times its shares."""
        return masses[:, None] * self.shares

    def impurity(self, sums: Sums, unit: float) -> float:
        """Persons times the impurity of their mean shares."""
        return self.measured_by.of(sums, unit / (1 << SHARE_BITS))


@dataclass(frozen=True, slots=True)
class NumberTarget:
    """A numeric target in fixed point. multiples: (row,). Standardized unless `scaled` is false.

    With `own`, (row,), the numbers are those that are expected, and groups are judged by how well the rows' own tell
    them.
    """

    name: str
    multiples: NDArray[np.int64]
    scale: FixedPoint
    weight: float = 1.0
    column: int = -1
    scaled: bool = True
    price: float = 0.0
    own: NDArray[np.int64] | None = None

    @property
    def measured_by(self) -> Impurity:
        """What else but the numbers is summed follows from it."""
        return Impurity.ENTROPY if self.own is None else Impurity.SURPRISE

    def additions(self, masses: NDArray[np.int64]) -> Sums:
        """A row's mass, and it times the row's number, the number's square, and its own number."""
        factors = [1, self.multiples, self.multiples**2, *(() if self.own is None else (self.own,))]
        return np.stack([masses * factor for factor in factors], axis=1)

    def impurity(self, sums: Sums, unit: float) -> float:
        """The sum of squared deviations from the mean: that of the numbers, or of the own ones."""
        number, first, second, *own = (int(total) for total in sums)
        if number == 0:
            return 0.0
        deviations = max(float(second) - float(first) * float(first) / float(number), 0.0)
        for total in own:
            deviations += float(first - total) * float(first - total) / float(number)
        return deviations * (unit * self.scale.step * self.scale.step)


def by_entropy(target: Target) -> bool:
    """Whether a target has one class in each row and is measured by their entropy: a cut between two rows of the same
    class is then never the best.
    """
    return isinstance(target, ClassTarget) and target.measured_by == Impurity.ENTROPY


def factors(targets: tuple[Target, ...], whole: tuple[float, ...]) -> tuple[float, ...]:
    """What each target's impurity is multiplied by before they are added; `whole` is the table's mean impurity of
    each.

    Nominal targets alone are added as they are, in nats. Numeric targets, and nominal ones that are measured by GINI
    (as features are), are divided by their variance in the table, those that are not to be standardized all by
    the same number. Where both kinds are given, nominal ones are divided by their entropy in the table, so that each
    target's impurity is a share of what there was.
    """
    numeric = [
        isinstance(target, NumberTarget) or getattr(target, "measured_by", Impurity.ENTROPY) == Impurity.GINI
        for target in targets
    ]
    plain = [index for index, target in enumerate(targets) if isinstance(target, NumberTarget) and not target.scaled]
    shared = 0.0
    for index in plain:  # one by one: `sum` rounds differently from Python 3.12 on
        shared += whole[index]
    divisors = [shared if index in plain else whole[index] if any(numeric) else 1.0 for index in range(len(targets))]
    pairs = zip(targets, divisors, strict=True)
    return tuple(target.weight / divisor if divisor > 0 else 0.0 for target, divisor in pairs)
