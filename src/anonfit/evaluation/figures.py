# SPDX-License-Identifier: Apache-2.0
"""Figures of a release that no learner is needed for: what the papers hold beside accuracies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonfit.evaluation.features import nodes_of
from anonfit.evaluation.models import Task
from anonfit.evaluation.selecting import Learned, imprecision
from anonfit.metrics.clusters import cluster_figures
from anonfit.metrics.discernibility import weighted_discernibility
from anonfit.metrics.extents import observed_extents
from anonfit.metrics.neutral import neutral_figures
from anonfit.metrics.queries import judge_queries, query_table
from anonfit.metrics.spreading import observed_ends
from anonfit.release.measure import JUDGED
from anonfit.release.run import workload_of
from anonfit.report.queries import query_figures
from anonfit.spec.learning import Asked
from anonfit.spec.model import Spec
from anonfit.workload.objectives import feature_weights

__all__ = ["Figure", "release_figures"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a release; `target` is the column it is about, where it is about one."""

    name: str
    value: float
    target: str = ""


def release_figures(learned: Learned, spec: Spec, tasks: Sequence[Task], asked: Sequence[Asked] = ()) -> list[Figure]:
    """The figures of the release of the rows that a recoding was learned from.

    Args:
        learned: The recoding and its rows.
        spec: For the selections of its workload.
        tasks: Models; how mixed their classes are is told for each target.
        asked: Questions of a query log.

    Returns:
        Sizes of groups, losses of columns by two measures, mixture of classes, clusters, imprecision of selections,
        answers to queries. Ordered
        columns are measured by the range of the rows, so that all methods are measured alike: these figures are not
        for the public.
    """
    nodes = nodes_of(learned.recoding, learned.frame)
    labels = {task.labels.column.name: task.labels for task in tasks if task.labels.predicts == "classes"}
    classes = {
        name: one.raw(learned.frame).rank("dense").fill_null(0).to_numpy().astype(np.int64)
        for name, one in labels.items()
    }
    persons = learned.persons
    sizes = persons.of_groups(nodes.astype(np.int64), int(nodes.max(initial=0)) + 1)
    found = neutral_figures(
        learned.recoding,
        nodes,
        k=learned.k,
        classes=classes,
        counts=persons.counts,
        sizes=sizes[sizes > 0],
        extents=observed_extents(learned.recoding, learned.frame),
    )
    figures = [
        Figure("average_size", found.groups.average),
        Figure("discernibility", float(found.groups.discernibility)),
        Figure("gcp", found.losses.gcp),
        Figure("lm", found.losses.lm),
        *(Figure("conditional_entropy", one.conditional_entropy, one.column) for one in found.targets),
        *(Figure("classification_metric", one.classification_metric, one.column) for one in found.targets),
    ]
    wdm = weighted_discernibility(learned.recoding, nodes, weights=spec.weights, counts=persons.counts)
    figures.append(Figure("weighted_discernibility", wdm.total))
    figures += [Figure("column_ncp", one.ncp, one.name) for one in found.losses.columns]
    figures += [Figure("column_together", wdm.share(name), name) for name in wdm.columns]
    figures += _of_clusters(learned, spec, nodes)
    if spec.workload.selections:
        figures.append(Figure("imprecision", imprecision(learned, spec.workload.selections, nodes)))
    if asked:
        figures += _of_queries(learned, nodes, asked)
    return figures


def _of_clusters(learned: Learned, spec: Spec, nodes: NDArray[np.int32]) -> list[Figure]:
    """Clusters in the release and in the raw rows, where the spec says what clusters are made of."""
    if not spec.method.objective.clusters and not spec.workload.features:
        return []
    features = feature_weights(workload_of(spec), list(learned.recoding.quasi_identifiers))
    raw = [column.name for column in learned.schema.released_raw if column.name in spec.workload.features]
    clusters, seed = spec.workload.clusters, spec.method.seed
    weights = features | dict.fromkeys(raw, 1.0)
    found = cluster_figures(learned.recoding, learned.frame, nodes, weights, clusters=clusters, seed=seed)
    if found is None:
        return []
    return [
        Figure("cluster_agreement", found.agreement),
        Figure("cluster_within", found.within_release),
        Figure("cluster_within_original", found.within_original),
    ]


def _of_queries(learned: Learned, nodes: NDArray[np.int32], asked: Sequence[Asked]) -> list[Figure]:
    """How the queries of a log are answered, in the mean over all that were asked."""
    persons = learned.persons
    table = query_table(
        learned.recoding,
        learned.schema.columns,
        learned.frame,
        nodes,
        counts=persons.counts,
        persons=persons.of_groups,
        k=learned.k,
    )
    answers = judge_queries([(one.ask, one.times) for one in asked[:JUDGED]], table, ends=observed_ends(table.domains))
    found = query_figures(answers)
    return [Figure(f"query_{name}", value) for name, value in found.items() if value is not None]
