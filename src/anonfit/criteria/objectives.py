# SPDX-License-Identifier: Apache-2.0
"""What a release is made for. First the criteria and algorithms that a spec can name, as objects: whoever must know
what a name stands for asks its object. Then the objective as engines see it: what steers the choice of splits, in
codes and whole numbers; the median where nothing does; and chance that every engine draws alike.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.refinement import score
from anonfit.criteria.targets import CodedSelections, Impurity, NumberTarget, Sums, Target, factors

AlgorithmName: TypeAlias = Literal["mondrian", "tdr", "tree"]
CriterionName: TypeAlias = Literal[
    "auto", "score", "median", "infogain", "lsd", "selection", "weighted", "clustering", "explore"
]
"""The names of ALGORITHMS and OBJECTIVES, for those who check types."""


class TargetKind(StrEnum):
    """What a target is for those who predict it, in the words of a message."""

    CLASSES = "nominal target (or classes of a numeric one)"
    NUMBERS = "numeric target"


@dataclass(frozen=True, slots=True)
class Objective:
    """A criterion: which part of a workload steers the splits, and how a split is judged by it.

    `serves` is the only kind of targets that it judges by (None: any), `impurity` how it measures the classes of one.
    With `uses_features`, rows of a region should be alike in the features; one that `explores` tries several objectives
    and settles for one. `needs` is the part of a workload without which it has nothing to judge by. `against_loss` is
    of top-down refinement: gains are held against the anonymity they cost. `title` is its name in the report; `asked`
    and `words` are its row in docs/supported.md.
    """

    name: CriterionName
    algorithms: tuple[AlgorithmName, ...] = ("mondrian",)
    title: str = ""
    asked: str = ""
    words: str = ""
    serves: TargetKind | None = None
    needs: str | None = None
    impurity: Impurity = Impurity.ENTROPY
    uses_targets: bool = False
    uses_selections: bool = False
    uses_weights: bool = False
    uses_features: bool = False
    explores: bool = False
    against_loss: bool = False

    @property
    def is_blind(self) -> bool:
        """Whether nothing of a workload steers the splits."""
        return not (self.uses_targets or self.uses_selections or self.uses_weights or self.uses_features)

    @property
    def clusters(self) -> bool:
        """Whether splits are judged by the features alone."""
        return self.uses_features and not self.explores

    def fits(self, target: Target) -> bool:
        """Whether it judges by targets of this kind."""
        kind = TargetKind.NUMBERS if isinstance(target, NumberTarget) else TargetKind.CLASSES
        return self.serves in (None, kind)

    def title_for(self, kinds: Collection[TargetKind]) -> str:
        """How the report names the splits that were chosen for targets of these kinds."""
        if self.uses_features:
            return self.title
        names = [(self if self.serves == kind else DEFAULTS[kind]).title for kind in TargetKind if kind in kinds]
        return " and ".join(names) or OBJECTIVES["median"].title

    def merits(self, gains: NDArray[np.float64], loss: NDArray[np.float64]) -> NDArray[np.float64]:
        """How good refinements are that gain and lose so much."""
        return score(gains, loss) if self.against_loss else gains


AUTO = Objective(
    "auto", ("mondrian", "tdr", "tree"), uses_targets=True, uses_selections=True, uses_weights=True, against_loss=True
)
OBJECTIVES: dict[str, Objective] = {
    objective.name: objective
    for objective in (
        AUTO,
        Objective("score", ("tdr",), "information gain against anonymity loss", uses_targets=True, against_loss=True),
        Objective(
            "median",
            title="Median",
            asked='no workload, or criterion = "median"',
            words="blind: the widest column, at its median",
        ),
        Objective(
            "infogain",
            ("mondrian", "tdr"),
            title="InfoGain",
            asked="a target with classes",
            words="the least entropy of the classes is left",
            serves=TargetKind.CLASSES,
            needs="targets",
            uses_targets=True,
            uses_weights=True,
        ),
        Objective(
            "lsd",
            title="LSD",
            asked="a numeric target",
            words="the least squared deviation of the numbers is left",
            serves=TargetKind.NUMBERS,
            needs="targets",
            uses_targets=True,
            uses_weights=True,
        ),
        Objective(
            "selection",
            asked="selections",
            words="the fewest rows are answered that are not asked for; then median",
            needs="selections",
            uses_targets=True,
            uses_selections=True,
            uses_weights=True,
        ),
        Objective("weighted", needs="weights", uses_weights=True),
        Objective(
            "clustering",
            title="Clustering",
            asked='criterion = "clustering"',
            words="the least dispersion of the features is left",
            impurity=Impurity.GINI,
            uses_features=True,
        ),
        Objective(
            "explore",
            asked='criterion = "explore"',
            words="several ways to weigh columns are tried, and one is published",
            uses_features=True,
            explores=True,
        ),
    )
}
"""All criteria by name, in the order in which messages list them."""
DEFAULTS = {TargetKind.CLASSES: OBJECTIVES["infogain"], TargetKind.NUMBERS: OBJECTIVES["lsd"]}
"""What judges by targets of a kind unless a criterion is named."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A way to find regions.

    One that `splits` divides regions for a whole workload: targets of both kinds, selections and weights. One that
    `refines` divides every column by itself for the classes of one target. One that `grows_tree` tells one class, which
    may be sensitive.
    """

    name: AlgorithmName
    splits: bool = False
    refines: bool = False
    grows_tree: bool = False

    @property
    def criteria(self) -> tuple[str, ...]:
        """The names of the criteria it knows."""
        return tuple(objective.name for objective in OBJECTIVES.values() if self.name in objective.algorithms)


ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("mondrian", splits=True),
        Algorithm("tdr", refines=True),
        Algorithm("tree", grows_tree=True),
    )
}
"""All algorithms by name."""


TIE = 1e-9
"""Merits that differ by less are equal."""


def median_distance(below: int, last: int, total: int) -> tuple[bool, int]:
    """How far a cut is from the best: whether it is not the lower median's, and its distance from half of the persons.
    Of the node's persons, `below` are under the cut, `last` of them in the highest element under it.
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

    def least_gain(self, factors: tuple[float, ...]) -> float:
        """What a split must gain, given the factor of each target."""
        least = self.min_gain  # added one by one: `sum` rounds differently from Python 3.12 on
        for factor, target in zip(factors, self.targets, strict=True):
            least += factor * target.price
        return least

    def merit(
        self, column: int, value: float, *, spread: float = 0.0, together: float = 0.0, chance: float = 1.0
    ) -> float:
        """How much a split of a column is preferred, by its value: its normalized range, or its share of the gain that
        could be had. `spread` is its normalized range, `together` the share of all pairs of rows that its split leaves
        together, `chance` the exponential number of the column at the node.
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
