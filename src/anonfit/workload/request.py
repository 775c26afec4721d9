# SPDX-License-Identifier: Apache-2.0
"""What a release is for, as it was asked: the plain form that a spec, keywords and estimators are turned into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from anonfit.workload.selections import SelectionRequest

__all__ = ["NOTHING", "TargetRequest", "Workload"]


@dataclass(frozen=True, slots=True)
class TargetRequest:
    """A column to be predicted: as it is, in classes that thresholds part, or in classes of equal width.

    With a fitted `model` its predictions steer the splits in place of the column's values.
    """

    column: str
    classes: tuple[float, ...] = ()
    equal_width: int | None = None
    weight: float = 1.0
    scale: bool = True
    model: Any = None


@dataclass(frozen=True, slots=True)
class Workload:
    """Targets, selections and weights, and how they steer the splits."""

    targets: tuple[TargetRequest, ...] = ()
    denoise: bool = False
    selections: tuple[SelectionRequest, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    weights_from: str | None = None
    features: tuple[str, ...] = ()
    criterion: str = "auto"
    candidates: str = "boundary"
    split_on: tuple[str, ...] = ()
    weight_rule: str = "first"
    alpha: float = 0.5
    beta: float = 0.25
    gamma: float = 0.25
    min_gain: float = 0.0
    seed: int = 0
    sample_weight: str | None = None

    @property
    def is_blind(self) -> bool:
        """Whether targets, selections and weights are left out of account."""
        return self.criterion == "median"

    @property
    def used_targets(self) -> tuple[TargetRequest, ...]:
        """The targets that steer splits."""
        return () if self.criterion in ("median", "weighted", "clustering") else self.targets

    @property
    def used_selections(self) -> tuple[SelectionRequest, ...]:
        """The selections that steer splits."""
        return self.selections if self.criterion in ("auto", "selection") else ()


NOTHING = Workload()
"""No use is known."""
