# SPDX-License-Identifier: Apache-2.0
"""All experiments, in the order of their numbers."""

from __future__ import annotations

from anonfit.experiments.reproduction.census_accuracy import CENSUS_ACCURACY
from anonfit.experiments.reproduction.census_numbers import CENSUS_NUMBERS
from anonfit.experiments.reproduction.contraceptives import CONTRACEPTIVES
from anonfit.experiments.reproduction.credit_weights import CREDIT_WEIGHTS
from anonfit.experiments.reproduction.entropy_and_size import ENTROPY_AND_SIZE
from anonfit.experiments.reproduction.forest_overfits import FOREST_OVERFITS
from anonfit.experiments.reproduction.frame import Experiment
from anonfit.experiments.reproduction.imprecision import IMPRECISION
from anonfit.experiments.reproduction.metrics_and_tasks import METRICS_AND_TASKS
from anonfit.experiments.reproduction.one_weight import ONE_WEIGHT
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
    ONE_WEIGHT,
    CREDIT_WEIGHTS,
    FOREST_OVERFITS,
    METRICS_AND_TASKS,
)
