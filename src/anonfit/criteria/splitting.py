# SPDX-License-Identifier: Apache-2.0
"""The objective of a release as engines see it: what steers the choice of splits, in codes and whole numbers; the
median where nothing does; and chance that every engine draws alike.

Chance depends on a seed and on the way from the root to a node, never on the order in which nodes are visited. Where
columns are to be drawn with probabilities in proportion to some merits, each merit is divided by an exponential number
and the largest is taken. That draws as asked, and, of what is left when some are taken out, as asked again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.targets import CodedSelections, Sums, Target, factors

TIE = 1e-9
"""Merits that differ by less are equal."""


def median_distance(below: int, last: int, total: int) -> tuple[bool, int]:
    """How far a cut is from the best: whether it is not the lower median's, and its distance from half of the persons.

    Args:
        below: Persons under the cut.
        last: Of these, persons of the highest element under it.
        total: Persons of the node.
    """
    half = (total + 1) // 2
    return not below - last < half <= below, abs(below - half)


WORD = (1 << 64) - 1
GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def _mixed(word: int) -> int:
    """A word of 64 bits in which each bit depends on all of another (SplitMix64)."""
    word = (word + GOLDEN) & WORD
    word = ((word ^ word >> 30) * FIRST) & WORD
    word = ((word ^ word >> 27) * SECOND) & WORD
    return word ^ word >> 31


def root_key(seed: int) -> int:
    """The key of the root."""
    return _mixed(seed & WORD)


def child_key(key: int, part: int) -> int:
    """The key of a part of a node's split, by its number."""
    return _mixed(key ^ part + 1)


def exponential(key: int, column: int) -> float:
    """The number of a column at a node: above 0, exponentially distributed with mean 1."""
    word = _mixed(key ^ (column + 1 << 32))
    return -math.log(((word >> 11) + 0.5) * 2.0**-53)


class WeightRule(IntEnum):
    """How attribute weights and the criterion are put together: in the words of the paper on weighted anonymization,
    NONE is its non-adaptive enforcement, FIRST the strict one, NAIVE and CHANCE are the naive and the probabilistic
    adaptive ones, PRODUCT and BLEND are relaxed, and COMBINED is that of its section 5.1(c).
    """

    NONE = 0
    FIRST = 1
    NAIVE = 2
    PRODUCT = 3
    BLEND = 4
    CHANCE = 5
    COMBINED = 6


@dataclass(frozen=True, slots=True)
class SplitObjective:
    """What splits are for: with nothing given, Median Mondrian.

    `weights` has a number per quasi-identifier (with `rule` NONE they do not matter); `alpha` is of BLEND and COMBINED,
    `beta` and `gamma` are of COMBINED, which needs targets, `seed` is of CHANCE; `split_on` has the quasi-identifiers
    that may be split (None: all); `masses` what each row counts in criteria, in units of `unit` persons (None: its
    persons).
    """

    targets: tuple[Target, ...] = ()
    selections: CodedSelections | None = None
    all_cuts: bool = False
    weights: tuple[float, ...] = ()
    rule: WeightRule = WeightRule.NONE
    alpha: float = 0.5
    min_gain: float = 0.0
    split_on: frozenset[int] | None = None
    masses: NDArray[np.int64] | None = None
    unit: float = 1.0
    beta: float = 0.25
    gamma: float = 0.25
    seed: int = 0

    def may_split(self, column: int) -> bool:
        """Whether a quasi-identifier may be split."""
        return self.split_on is None or column in self.split_on

    def factors(self, sums: tuple[Sums, ...], mass: int) -> tuple[float, ...]:
        """The factor of each target, from the whole table's sums of each and its mass."""
        persons = mass * self.unit
        whole = tuple(
            target.impurity(part, self.unit) / persons if persons else 0.0
            for target, part in zip(self.targets, sums, strict=True)
        )
        return factors(self.targets, whole)

    def merit(
        self, column: int, value: float, *, spread: float = 0.0, together: float = 0.0, chance: float = 1.0
    ) -> float:
        """How much a split of a column is preferred.

        Args:
            column: The column.
            value: Its normalized range, or its share of the gain that could be had.
            spread: Its normalized range.
            together: The share of all pairs of rows that its split leaves together.
            chance: The exponential number of the column at the node.
        """
        if self.rule == WeightRule.PRODUCT:
            return self.weights[column] * value
        if self.rule not in (WeightRule.BLEND, WeightRule.CHANCE, WeightRule.COMBINED):
            return value
        largest = max(self.weights)
        weight = self.weights[column] / largest if largest > 0 else 0.0
        if self.rule == WeightRule.CHANCE:
            return weight * value / chance
        if self.rule == WeightRule.COMBINED:
            return self.alpha * value + self.beta * weight * spread - self.gamma * together
        return self.alpha * weight + (1.0 - self.alpha) * value


MEDIAN = SplitObjective()
"""No purpose: regions as even as they can be."""
