# SPDX-License-Identifier: Apache-2.0
"""`evaluate`: methods × k × learners × models, fold by fold, on several processes, going on where it was left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from anonfit.errors import DataError, RequestError, did_you_mean
from anonfit.evaluation.jobs import EvaluationSetting, Progress, Store, collected, fold_of_rows, jobs_of, name_of, work
from anonfit.evaluation.judging import PROTOCOLS, RAW_TEST
from anonfit.evaluation.learners import CLASSIFIERS, REGRESSORS, Learner, learner
from anonfit.evaluation.methods import BASELINES, DEFAULT_METHODS, Method, SpecMethod, method
from anonfit.evaluation.models import (
    ENCODINGS,
    SUITED,
    ModelSpec,
    ModelTask,
    default_models,
    model_of,
    satisfied,
    tasks_of,
)
from anonfit.evaluation.result import COLUMNS, FIGURE_COLUMNS, Evaluation, frame_of
from anonfit.evaluation.toolkit import TOOLKIT_METHODS, ToolkitMethod, Way
from anonfit.release.bind import source_of
from anonfit.release.run import read_source
from anonfit.runtime.process import thread_count
from anonfit.spec.kinds import is_whole
from anonfit.spec.learning import with_query_log
from anonfit.spec.model import ColumnSpec, Spec
from anonfit.spec.parse import read_spec
from anonfit.tables.schema import Role, Schema, persons_in
from anonfit.workload.logs.merging import rows_of_frame

LARGEST = 1e38
"""Some learners have numbers of single precision."""


def evaluate(
    data: Any,
    spec: Spec | str | Path | None = None,
    *,
    methods: Sequence[str | Method] = (*DEFAULT_METHODS, *BASELINES),
    ks: Sequence[int] = (),
    learners: Sequence[str | Learner] = (),
    models: Sequence[ModelSpec | Mapping[str, Any] | str] = (),
    protocol: str = "holdout",
    folds: int = 10,
    seed: int = 0,
    encoding: str = SUITED,
    workers: int | None = None,
    store: str | Path | None = None,
    progress: Progress = lambda _done, _all, _name: None,
) -> Evaluation:
    """Measure how well models do that are taught with releases: utility against privacy.

    Args:
        data: A path or frame; or a spec, or the path of one, that names its own data.
        spec: The spec, where `data` is data: a `Spec` or the path of a spec file.
        methods: `spec` (as the spec says), `median`, `infogain`, `infogain-subset-denoised`, `lsd`, `selection`,
            `weighted`, `naive`, `probabilistic`, `combined`, `clustering`, `explore`, the baselines
            `original` (raw rows) and `removed` (no quasi-identifiers), ai-privacy-toolkit by its guides
            (`toolkit-forest`, `toolkit-boosting`), or objects with a `name` and `recode`.
        ks: The demands; that of the spec if none is given.
        learners: Names, see `anonfit.evaluation.learners.LEARNERS`, or `Learner` objects; by default those of
            scikit-learn for the kinds of targets that there are.
        models: What recipients will predict: `{"target": …, "using": […], "where": "…"}`; by default each target.
        protocol: `holdout` (recodings are learned from training rows only and applied to the test rows), `combined`
            (all rows are recoded together, then divided: leaks test labels, for repeating a paper only) or `raw-test`
            (test rows are not recoded).
        folds: How many times another part of the rows is tested on.
        seed: Of the folds, the learners and the methods.
        encoding: `ends`, `expected`, `both` or `smooth`: how regions become numbers, see `RegionEncoder`; or
            `suited`: smooth for linear models, expected for others, the ends for those of Weka.
        workers: How many processes; as many as there are cores if not given.
        store: A folder in which measures are kept as they are found, and from which the same evaluation goes on.
        progress: Told how far it is.

    Returns:
        The measures: `.frame`, `.summary()`, `.compared(method, baseline)`.

    Example:
        >>> import anonfit as af
        >>> import polars as pl
        >>> people = pl.DataFrame({"age": list(range(20, 60)), "ill": ["no"] * 20 + ["yes"] * 20})
        >>> spec = af.parse_spec(
        ...     "version = 1\\ncolumns.age.role = 'quasi-identifier'\\ncolumns.ill.role = 'target'\\nprivacy.k = 2"
        ... )
        >>> evaluation = af.evaluate(people, spec, methods=["spec"], learners=["tree"], folds=2, workers=1)
        >>> evaluation.summary()["folds"].to_list()
        [2]
    """
    if spec is None and not isinstance(data, Spec | str | Path):
        raise RequestError("a spec is missing: give it beside the data, so that it is known what the columns are.")
    given = data if spec is None else spec
    asked = given if isinstance(given, Spec) else read_spec(given)
    for k in ks:
        if not is_whole(k) or k < 1:
            raise RequestError(f"k = {k} must be a whole number of at least 1.")
    chosen_ks = list(dict.fromkeys(int(k) for k in ks)) or [asked.privacy.k]
    ways = _ways(methods)
    for way in ways:
        if isinstance(way, SpecMethod):
            way.required(asked, asked.privacy.k)  # refused before any has worked
    setting = _setting(
        asked,
        source_of(asked) if spec is None else data,
        models=[model_of(model) for model in models],
        learners=learners,
        protocol=protocol,
        folds=folds,
        seed=seed,
        encoding=encoding,
    )
    for way in ways:
        if isinstance(way, ToolkitMethod):
            way.require(asked, setting.tasks, protocol)
    pairs = [
        (task.model.title, learner.name)
        for task in setting.tasks
        for learner in setting.learners
        if learner.predicts == task.labels.predicts
    ]
    jobs = list(jobs_of(ways, chosen_ks, folds, tuple(pairs)))
    kept = Store(None if store is None else Path(store), setting)
    unmet = work(setting, jobs, kept, workers=thread_count(workers), progress=progress)
    rows, figures, empty = collected(jobs, kept)
    missed, regions = (*unmet, *empty), asked.output.regions
    return Evaluation(frame_of(rows, COLUMNS), frame_of(figures, FIGURE_COLUMNS), folds, protocol, missed, regions)


def _setting(
    spec: Spec,
    source: Any,
    *,
    models: Sequence[ModelSpec],
    learners: Sequence[str | Learner],
    protocol: str,
    folds: int,
    seed: int,
    encoding: str,
) -> EvaluationSetting:
    """What all jobs share; whatever is wrong with it is found here."""
    for what, word, known in (("protocol", protocol, PROTOCOLS), ("encoding", encoding, (SUITED, *ENCODINGS))):
        if word not in known:
            raise RequestError(f"there is no {what} '{word}'; {did_you_mean(word, known)}")
    schema, frame = _rows(spec, source, folds)
    rows = rows_of_frame(frame, persons_in(schema, frame).of_groups)
    spec, asked = with_query_log(spec, schema.columns, rows)
    spec = replace(spec, workload=replace(spec.workload, query_log=None))  # so that it is read once
    for_clusters = spec.method.objective.clusters or bool(spec.workload.features)
    # Releases can be judged without a model.
    is_asked = bool(asked or spec.workload.selections or spec.weights) or for_clusters
    chosen = models or (() if is_asked and not spec.targets else default_models(spec))
    tasks = tasks_of(chosen, spec, schema, frame)
    for task in tasks:
        if task.labels.is_generalized and protocol != RAW_TEST:
            raise RequestError(
                f"the target '{task.labels.column.name}' is a quasi-identifier, so its value decides which region a "
                f"test row is in, and the region tells it; use the protocol '{RAW_TEST}', or leave the target out of "
                "the models."
            )
        _require_rows(task, schema, frame)
    return EvaluationSetting(
        spec=_settled(spec, schema),
        schema=schema,
        frame=frame,
        tasks=tasks,
        learners=_learners(learners, tasks),
        fold_of=fold_of_rows(schema, frame, folds, seed),
        protocol=protocol,
        encoding=encoding,
        seed=seed,
        asked=asked,
    )


# --- what was asked ---------------------------------------------------------------------------------------------


def _settled(spec: Spec, schema: Schema) -> Spec:
    """The spec of the rows that were read: without identifiers, and with the trees of taxonomies in place of files.

    Nothing is released, so columns with many different values need no leave; in fewer rows more of them are different.
    """
    read = {column.name: column for column in schema.columns if column.role != Role.IDENTIFIER}
    others = (name for name, column in read.items() if name not in spec.columns and column.role == Role.INSENSITIVE)
    unnamed = {name: ColumnSpec(Role.INSENSITIVE) for name in others}
    columns = {
        name: replace(column, taxonomy=read[name].taxonomy, release=True)
        for name, column in {**spec.columns, **unnamed}.items()
        if name in read
    }
    return replace(spec, columns=columns, data=replace(spec.data, source=None))


def _ways(methods: Sequence[str | Method]) -> list[Way]:
    if isinstance(methods, str):
        raise RequestError(f"methods = '{methods}' must be a list, such as ['{methods}'].")
    given = [TOOLKIT_METHODS.get(way, way) if isinstance(way, str) else way for way in methods]
    ways = [way if not isinstance(way, str) or way in BASELINES else method(way) for way in given]
    if not ways:
        raise RequestError("no method is named; name one, such as 'spec'.")
    names = [name_of(way) for way in ways]
    if len(set(names)) < len(names):
        raise RequestError("a method is named twice; name each once.")
    return ways


def _learners(given: Sequence[str | Learner], tasks: Sequence[ModelTask]) -> tuple[Learner, ...]:
    if isinstance(given, str):
        raise RequestError(f"learners = '{given}' must be a list, such as ['{given}'].")
    kinds = {task.labels.predicts for task in tasks}
    names = given or [
        *(CLASSIFIERS if "classes" in kinds else ()),
        *(REGRESSORS if "numbers" in kinds else ()),
    ]
    chosen = tuple(entry if isinstance(entry, Learner) else learner(entry) for entry in names)
    if len({entry.name for entry in chosen}) < len(chosen):
        raise RequestError("a learner is named twice; name each once.")
    for task in tasks:
        if all(entry.predicts != task.labels.predicts for entry in chosen):
            raise RequestError(
                f"no learner of {task.labels.predicts} is named, and '{task.labels.column.name}' has such; name one, "
                f"such as '{CLASSIFIERS[0] if task.labels.predicts == 'classes' else REGRESSORS[0]}'."
            )
    for entry in chosen:
        entry.make(0)  # refuses where a package is missing
    return chosen


def _require_rows(task: ModelTask, schema: Schema, frame: pl.DataFrame) -> None:
    """Refuse a model of which there is nothing to measure, and columns that no learner can take."""
    where, target = task.model.where, task.labels.column.name
    chosen = task.labels.raw(frame).is_not_null().to_numpy()
    if not chosen.any():
        raise DataError(f"the target '{target}' has no value at all; leave it out of the models.")
    if where and not (chosen & satisfied(where, schema, frame)).any():
        raise DataError(f"the model '{task.model.title}' is for no row whose '{target}' is known; ask for other rows.")
    for name in (*task.using, target):
        values = frame[name]
        if values.dtype.is_float() and not (values.abs().fill_null(0.0) <= LARGEST).all():
            raise DataError(
                f"column '{name}' holds numbers that are infinite or too large to be learned from; mend them, or leave "
                "the column out of the models."
            )


def _rows(spec: Spec, source: Any, folds: int) -> tuple[Schema, pl.DataFrame]:
    """The rows that could be released."""
    schema, frame = read_source(spec, source)
    floats = [name for name in frame.columns if frame[name].dtype.is_float()]
    frame = frame.with_columns(pl.col(floats).fill_nan(None)) if floats else frame
    if spec.data.missing_policy == "drop":
        frame = frame.drop_nulls([column.name for column in schema.quasi_identifiers])
    if folds < 2:
        raise RequestError(f"folds = {folds}: at least 2 are needed, so that some rows are tested on.")
    if len(frame) < 2 * folds:
        raise DataError(f"the table has {len(frame)} rows, too few for {folds} folds.")
    return schema, frame
