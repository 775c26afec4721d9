# SPDX-License-Identifier: Apache-2.0
"""One division into training and test rows, one method, one k: recode once, then teach and test every model, and
measure what needs no learner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.evaluation import models
from anonfit.evaluation.boxes import box_features
from anonfit.evaluation.learners import Learner
from anonfit.evaluation.methods import ORIGINAL, REMOVED, Method, method
from anonfit.evaluation.models import FeatureColumns, LearnedRecoding, ModelTask, answered, nodes_of, satisfied
from anonfit.metrics.clusters import workload_clusters
from anonfit.metrics.estimates import observed_ends
from anonfit.metrics.queries import JUDGED, judge_queries, query_table
from anonfit.metrics.registry import RecodedTable, figures
from anonfit.release.bind import workload_of
from anonfit.spec.learning import Asked
from anonfit.spec.model import Spec
from anonfit.tables.schema import Role, Schema, persons_in

HOLDOUT, COMBINED, RAW_TEST = "holdout", "combined", "raw-test"
PROTOCOLS = (HOLDOUT, COMBINED, RAW_TEST)
"""How test rows are treated: recoded by what was learned from training rows, recoded together with them, or raw."""

Values: TypeAlias = Mapping[str, Mapping[str, float]]
"""The measures of each part, by name; nothing where there were no rows to learn from or to test on."""
Figure: TypeAlias = tuple[str, str, float]
"""A figure of a release: its name, the column it is about, where it is about one, and its value."""


@dataclass(frozen=True, slots=True)
class TrainingAndTest:
    """Raw rows to learn from and raw rows to test on."""

    schema: Schema
    training: pl.DataFrame
    test: pl.DataFrame


@dataclass(frozen=True, slots=True)
class ReleasedFeatures:
    """What models see of the rows of a division: the features of its parts, and the regions of the training rows."""

    training: FeatureColumns
    test: FeatureColumns
    learned: LearnedRecoding | None = None
    nodes: NDArray[np.int32] | None = None  # (training row,)


def learned(
    way: Method | str, spec: Spec, schema: Schema, frame: pl.DataFrame, *, k: int | None, seed: int
) -> LearnedRecoding | None:
    """The recoding that a method, or a baseline, makes of rows; None where they stay raw."""
    if way == ORIGINAL:
        return None
    persons = persons_in(schema, frame)
    if isinstance(way, str):
        # One region for everything: it overlaps every selection, and nothing can be learned from its columns.
        way, k = method("median"), persons.total()
        waived = {name: replace(spec.columns[name], diversity="none") for name in spec.of_role(Role.SENSITIVE)}
        asked = replace(spec.privacy, diversity=(), max_confidence=1.0, quasi_identifiers=(), attack_limit=1.0)
        spec = replace(spec, columns={**spec.columns, **waived}, privacy=asked)
    assert k is not None
    observed = spec.output.regions == "observed"
    return LearnedRecoding(way.recode(frame, spec, k, seed), schema, frame, persons, k, observed)


def released(
    way: Method | str, division: TrainingAndTest, learned: LearnedRecoding | None, *, protocol: str, encoding: str
) -> ReleasedFeatures:
    """What models see of both parts of a division by a method, or a baseline; without a recoding, raw rows."""
    roles = (Role.ENTITY, Role.IDENTIFIER, *([Role.QUASI_IDENTIFIER] if way != ORIGINAL else []))
    columns = [column for column in division.schema.columns if column.role not in roles]
    training, test = (models.plain_features(columns, frame) for frame in (division.training, division.test))
    if learned is None:
        return ReleasedFeatures(training, test)
    nodes = nodes_of(learned.recoding, division.training)
    if way == REMOVED:
        return ReleasedFeatures(training, test, learned, nodes)
    told = _region_features(learned, division.training, nodes)
    training = told(nodes, encoding).beside(training)
    if protocol == RAW_TEST:
        recoded = models.one_value_features(learned.recoding, division.test, encoding)
    else:
        recoded = told(nodes_of(learned.recoding, division.test), encoding)
    return ReleasedFeatures(training, recoded.beside(test), learned, nodes)


def _region_features(
    learned: LearnedRecoding, training: pl.DataFrame, own: NDArray[np.int32]
) -> Callable[[NDArray[np.int32], str], FeatureColumns]:
    """From the nodes of rows and an encoding to what a release tells of them: whole regions, or the boxes of the
    training rows, each in a node of `own` (training row,).
    """
    if learned.observed:
        return partial(box_features, learned.recoding, training, own)
    return partial(models.recoded_features, learned.recoding)


def measured(
    release: ReleasedFeatures, division: TrainingAndTest, task: ModelTask, learners: Sequence[Learner], seed: int
) -> dict[tuple[str, str], Values]:
    """Teach and test each learner for one model; learners of another kind are left out."""
    where, schema, training = task.model.where, division.schema, division.training
    truth = task.labels.raw(division.test)
    if release.learned is None or release.nodes is None:
        labels = task.labels.raw(training)
        chosen = satisfied(where, schema, training) if where else True
    else:  # which rows a recipient takes to satisfy a predicate
        told = _region_features(release.learned, training, release.nodes)
        labels = task.labels.released(training, partial(told, release.nodes))
        chosen = answered(release.learned, where, training, release.nodes) if where else True
    learned, tested = labels.is_not_null().to_numpy() & chosen, truth.is_not_null().to_numpy()
    if where:
        tested &= satisfied(where, schema, division.test)
    rows, places = np.flatnonzero(learned), np.flatnonzero(tested)
    parts = {
        "train": (release.training.taken(rows).frame(task.using), labels.gather(rows)),
        "test": (release.test.taken(places).frame(task.using), truth.gather(places)),
    }
    results: dict[tuple[str, str], Values] = {}
    for learner in learners:
        if learner.predicts != task.labels.predicts:
            continue
        values: dict[str, dict[str, float]] = {}
        if len(rows) and len(places):
            model = learner.make(seed).fit(*parts["train"])
            values = {part: _measures(truth, model.predict(seen)) for part, (seen, truth) in parts.items()}
            seen, truth = parts["test"]
            if (expected := getattr(model, "shares", lambda _: None)(seen)) is not None:
                values["test"] |= expected.measures(truth)
        results[task.model.title, learner.name] = values
    return results


def _measures(truth: pl.Series, predicted: pl.Series) -> dict[str, float]:
    if not truth.dtype.is_numeric():
        return {"accuracy": float((truth == predicted).mean())}  # type: ignore[arg-type]
    errors = (truth - predicted).to_numpy()
    return {"mae": float(np.abs(errors).mean()), "rmse": float(np.sqrt((errors**2).mean()))}


def release_figures(
    learned: LearnedRecoding, spec: Spec, tasks: Sequence[ModelTask], asked: Sequence[Asked] = ()
) -> list[Figure]:
    """The metrics of the release of the rows that a recoding was learned from. Ordered columns are measured by the
    range of the rows, so that all methods are measured alike: these figures are not for the public.
    """
    nodes, frame, persons = nodes_of(learned.recoding, learned.frame), learned.frame, learned.persons
    labels = {task.labels.column.name: task.labels for task in tasks if task.labels.predicts == "classes"}
    clusters, answers, selections = None, [], spec.workload.selections
    if spec.method.objective.clusters or spec.workload.features:
        clusters = workload_clusters(
            workload_of(spec), learned.recoding, learned.schema, frame, nodes, clusters=spec.workload.clusters
        )
    if asked:  # how the queries of a log are answered
        released = query_table(learned.recoding, learned.schema.columns, frame, nodes, persons, k=learned.k)
        queries = [(query.ask, query.times) for query in asked[:JUDGED]]
        answers = judge_queries(queries, released, ends=observed_ends(released.domains))
    table = RecodedTable.of_rows(
        learned.recoding,
        frame,
        nodes,
        persons,
        k=learned.k,
        weights=spec.weights,
        # What is missing is a class.
        classes={
            name: label.raw(frame).rank("dense").fill_null(0).to_numpy().astype(np.int64)
            for name, label in labels.items()
        },
        clusters=clusters,
        imprecision=models.imprecision(learned, selections, nodes) if selections else None,
        queries=answers,
    )
    return [
        (f"column_{metric.name}" if metric.subject == "column" else metric.name, column, float(value))
        for metric, column, value in figures(table, "evaluate")
    ]
