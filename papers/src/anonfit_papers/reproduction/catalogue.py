# SPDX-License-Identifier: Apache-2.0
"""All experiments, in the order of their numbers."""

from __future__ import annotations

from anonfit_papers.reproduction.adult_curves import GENERALIZED_ADULT, SUPPRESSED_ADULT
from anonfit_papers.reproduction.adult_errors import BASELINE_ERROR, CUT_OF_SEVEN, ERROR_AT_500, UPPER_ERROR
from anonfit_papers.reproduction.anonymous_tree_errors import ANONYMOUS_C45, ANONYMOUS_ID3
from anonfit_papers.reproduction.anonymous_tree_exposure import CONFIDENCE_LIMITS, EXPOSED_CLASSES
from anonfit_papers.reproduction.bounding_regions import BOUNDING_REGIONS
from anonfit_papers.reproduction.census_accuracy import CENSUS_ACCURACY, CENSUS_ACCURACY_BY_NUMBER
from anonfit_papers.reproduction.census_numbers import CENSUS_NUMBERS
from anonfit_papers.reproduction.contraceptives import CONTRACEPTIVES
from anonfit_papers.reproduction.credit import CREDIT_SCREENING, GERMAN_CREDIT
from anonfit_papers.reproduction.credit_weights import CREDIT_WEIGHTS
from anonfit_papers.reproduction.entropy_and_size import ENTROPY_AND_SIZE, ENTROPY_AND_SIZE_BY_NUMBER
from anonfit_papers.reproduction.forest_overfits import FOREST_OVERFITS, FOREST_OVERFITS_BY_NUMBER
from anonfit_papers.reproduction.frame import Experiment
from anonfit_papers.reproduction.imprecision import IMPRECISION
from anonfit_papers.reproduction.interval_trees import INTERVAL_TREES
from anonfit_papers.reproduction.joint_score import JOINT_SCORE
from anonfit_papers.reproduction.loss_metrics import LARGE_K, LOSS_METRICS
from anonfit_papers.reproduction.metrics_and_tasks import METRICS_AND_TASKS
from anonfit_papers.reproduction.mortgage_customers import MORTGAGE_CUSTOMERS
from anonfit_papers.reproduction.naive_bayes_curves import NAIVE_BAYES_ADULT
from anonfit_papers.reproduction.one_weight import ONE_WEIGHT
from anonfit_papers.reproduction.paper_examples import PAPER_EXAMPLES
from anonfit_papers.reproduction.projection import PROJECTION, PROJECTION_BY_NUMBER
from anonfit_papers.reproduction.random_groups import RANDOM_GROUPS, RANDOM_GROUPS_BY_NUMBER
from anonfit_papers.reproduction.refinement_time import REFINEMENT_TIME
from anonfit_papers.reproduction.several_quasi_identifiers import SEVERAL_QUASI_IDENTIFIERS
from anonfit_papers.reproduction.several_targets import SEVERAL_TARGETS
from anonfit_papers.reproduction.split_points import SPLIT_POINTS
from anonfit_papers.reproduction.synthetic_accuracy import SYNTHETIC_ACCURACY

EXPERIMENTS: tuple[Experiment, ...] = (
    PAPER_EXAMPLES,
    SPLIT_POINTS,
    CUT_OF_SEVEN,
    BASELINE_ERROR,
    UPPER_ERROR,
    GENERALIZED_ADULT,
    ERROR_AT_500,
    SUPPRESSED_ADULT,
    NAIVE_BAYES_ADULT,
    SEVERAL_QUASI_IDENTIFIERS,
    CREDIT_SCREENING,
    GERMAN_CREDIT,
    LOSS_METRICS,
    REFINEMENT_TIME,
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
    ONE_WEIGHT,
    CREDIT_WEIGHTS,
    FOREST_OVERFITS,
    METRICS_AND_TASKS,
    INTERVAL_TREES,
    CENSUS_ACCURACY_BY_NUMBER,
    ENTROPY_AND_SIZE_BY_NUMBER,
    RANDOM_GROUPS_BY_NUMBER,
    PROJECTION_BY_NUMBER,
    FOREST_OVERFITS_BY_NUMBER,
    BOUNDING_REGIONS,
    JOINT_SCORE,
    LARGE_K,
)
