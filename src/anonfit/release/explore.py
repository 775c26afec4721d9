# SPDX-License-Identifier: Apache-2.0
"""Exploring by a spec: what candidates are held against, and the spec that asks for the chosen one alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.exploring import CandidateRule, exploration_record, explore
from anonfit.algorithms.result import Anonymized
from anonfit.criteria.objectives import OBJECTIVES, CriterionName
from anonfit.metrics.registry import RecodedTable, metrics_of
from anonfit.runtime.progress import Stage
from anonfit.spec.model import Spec, WeightRule
from anonfit.tables.persons import Persons
from anonfit.workload.targets import Workload

if TYPE_CHECKING:
    import polars as pl

COMPARED = sorted(metrics_of("explore"), key=lambda metric: metric.words)
FIGURES = {metric.short or metric.name: metric.words for metric in COMPARED}
"""What candidates are held against; less is better."""


def explored(
    spec: Spec,
    frame: pl.DataFrame,
    persons: Persons,
    make: Callable[[Workload], Anonymized],
    *,
    workload: Workload,
    names: list[str],
    stage: Stage,
) -> tuple[Spec, Anonymized, Mapping[str, Any]]:
    """Try ways to weigh the quasi-identifiers `names` of a frame, whose regions `make` makes. Gives the spec that asks
    for the chosen one alone, its regions, and the record of all; weights of the spec say how much columns are known to
    matter.
    """
    stated = {name: float(spec.weights.get(name, 1.0)) for name in names}

    def measure(result: Anonymized) -> dict[str, float]:
        return _figures(result, frame, persons, k=spec.privacy.k, weights=stated)

    chosen = explore(workload, stated, make, measure, seconds=spec.method.time_budget, stage=stage)
    record = exploration_record(chosen, seconds=spec.method.time_budget, seed=spec.method.seed)
    return _asking_for(spec, chosen.candidate), chosen.result, record | {"figures": dict(FIGURES)}


def _figures(
    result: Anonymized, frame: pl.DataFrame, persons: Persons, *, k: int, weights: Mapping[str, float]
) -> dict[str, float]:
    """The figures of a candidate. They are measured by the range of the rows, so they are not for the public."""
    nodes: NDArray[np.int32] = np.full(len(frame), -1, np.int32)
    nodes[result.numbers] = result.nodes
    table = RecodedTable.of_rows(result.recoding, frame, nodes, persons, k=k, weights=weights)
    return {metric.short or metric.name: float(metric.measure(table)) for metric in COMPARED}


def _asking_for(spec: Spec, chosen: CandidateRule) -> Spec:
    """A spec whose release is the candidate's, without any exploring; its weights say what features said."""
    method = replace(
        spec.method,
        criterion=cast("CriterionName", chosen.criterion),
        weight_rule=cast("WeightRule", chosen.weight_rule),
        alpha=chosen.alpha,
        seed=chosen.seed,
        time_budget=None,
    )
    features = spec.workload.features if OBJECTIVES[chosen.criterion].clusters else ()
    workload = replace(spec.workload, weights=chosen.weights, features=features, selected_by=())
    return replace(spec, method=method, workload=workload)
