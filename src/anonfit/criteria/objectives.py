# SPDX-License-Identifier: Apache-2.0
"""The criteria and algorithms that a spec can name, as objects: whoever must know what a name stands for asks its
object.

To add a criterion, add its Objective to `OBJECTIVES`. If it measures how mixed classes are in a new way, add an
Impurity to `criteria.targets` and its branch to the kernel in `engines.memory.count`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.refinement import score
from anonfit.criteria.targets import Impurity, NumberTarget, Target

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
