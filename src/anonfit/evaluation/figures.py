# SPDX-License-Identifier: Apache-2.0
"""Figures of a release that no learner is needed for: what the papers hold beside accuracies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonfit.evaluation.features import nodes_of
from anonfit.evaluation.models import Task
from anonfit.evaluation.selecting import Learned, imprecision
from anonfit.spec import Spec
from anonfit.utility.extents import observed_extents
from anonfit.utility.neutral import neutral_figures

__all__ = ["Figure", "release_figures"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a release; `target` is the column it is about, where it is about one."""

    name: str
    value: float
    target: str = ""


def release_figures(learned: Learned, spec: Spec, tasks: Sequence[Task]) -> list[Figure]:
    """The figures of the release of the rows that a recoding was learned from.

    Args:
        learned: The recoding and its rows.
        spec: For the selections of its workload.
        tasks: Models; how mixed their classes are is told for each target.

    Returns:
        Sizes of groups, losses of columns, mixture of classes, imprecision of selections. Ordered columns are measured
        by the range of the rows, so that all methods are measured alike: these figures are not for the public.
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
    if spec.workload.selections:
        figures.append(Figure("imprecision", imprecision(learned, spec.workload.selections, nodes)))
    return figures
