# SPDX-License-Identifier: Apache-2.0
"""All experiments, in the order of their numbers."""

from __future__ import annotations

from anonfit.experiments.reproduction.anonymous_tree_errors import ANONYMOUS_C45, ANONYMOUS_ID3
from anonfit.experiments.reproduction.anonymous_tree_exposure import CONFIDENCE_LIMITS, EXPOSED_CLASSES
from anonfit.experiments.reproduction.census_accuracy import CENSUS_ACCURACY
from anonfit.experiments.reproduction.census_numbers import CENSUS_NUMBERS
from anonfit.experiments.reproduction.contraceptives import CONTRACEPTIVES
from anonfit.experiments.reproduction.entropy_and_size import ENTROPY_AND_SIZE
from anonfit.experiments.reproduction.forest_overfits import FOREST_OVERFITS
from anonfit.experiments.reproduction.frame import Experiment
from anonfit.experiments.reproduction.imprecision import IMPRECISION
from anonfit.experiments.reproduction.mortgage_customers import MORTGAGE_CUSTOMERS
from anonfit.experiments.reproduction.projection import PROJECTION
from anonfit.experiments.reproduction.random_groups import RANDOM_GROUPS
from anonfit.experiments.reproduction.several_targets import SEVERAL_TARGETS
from anonfit.experiments.reproduction.synthetic_accuracy import SYNTHETIC_ACCURACY

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: tuple[Experiment, ...] = (
    SYNTHETIC_ACCURACY,
    SEVERAL_TARGETS,
    IMPRECISION,
    CENSUS_ACCURACY,
    ENTROPY_AND_SIZE,
    CONTRACEPTIVES,
    RANDOM_GROUPS,
    PROJECTION,
    CENSUS_NUMBERS,
    MORTGAGE_CUSTOMERS,
    ANONYMOUS_ID3,
    ANONYMOUS_C45,
    EXPOSED_CLASSES,
    CONFIDENCE_LIMITS,
    FOREST_OVERFITS,
)
