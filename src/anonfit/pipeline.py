# SPDX-License-Identifier: Apache-2.0
"""From a spec to a table that may be released: reads, checks, anonymizes. Called by every door through the api."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.demands import Demands, DiversityRequest, QuasiIdentifier, guard
from anonfit.algorithms.mondrian import Anonymized, Persons, SelectionAnswers, anonymize, answer_selections, persons_of
from anonfit.algorithms.top_down import Refining, anonymize_top_down
from anonfit.errors import DataError, Infeasible, SpecError, did_you_mean, listed
from anonfit.interrupting import Stopping, unstoppable
from anonfit.privacy.groups import groups_allowed
from anonfit.progress import Stage, silent
from anonfit.recoding.grid import combined
from anonfit.recoding.recoding import Recoding, Unseen
from anonfit.recoding.storage import read_recoding
from anonfit.recoding.values import Values
from anonfit.release.table import released_table
from anonfit.spec import ColumnSpec, Spec, TargetSpec
from anonfit.spec_learning import Asked, with_query_log
from anonfit.tables.reading import ReadOptions, column_names, read_table
from anonfit.tables.schema import Column, ColumnType, Role, Schema
from anonfit.tables.taxonomy import Taxonomy
from anonfit.tables.taxonomy_files import read_taxonomy
from anonfit.trees.building import Growing
from anonfit.trees.demand import Demand
from anonfit.trees.growing import Variant
from anonfit.trees.making import TreeRequest, anonymize_by_tree, tested_columns
from anonfit.workload.request import TargetRequest, Workload

if TYPE_CHECKING:
    import polars as pl

    from anonfit.algorithms.refining import Suppression
    from anonfit.criteria.refinement import Average
    from anonfit.engines.memory.guard import Guarded
    from anonfit.workload.accuracy import LearnedWeights

__all__ = [
    "Made",
    "RowCounts",
    "demands_of",
    "extend",
    "make",
    "persons_in",
    "read_source",
    "refining_of",
    "schema_of",
    "source_of",
    "tree_of",
    "without_missing",
    "workload_of",
]

NEARLY_DISTINCT = 0.9
"""A raw column with a larger share of distinct values identifies its records, and is released only if that is
written.
"""


@dataclass(frozen=True, slots=True)
class RowCounts:
    """What became of the input's rows."""

    read: int
    dropped: int
    withheld: int
    unknown: int = 0
    """Of the withheld rows, those with a value that the recoding does not know."""
    dropped_persons: int = 0
    withheld_persons: int = 0

    @property
    def released(self) -> int:
        """Rows of the released table."""
        return self.read - self.dropped - self.withheld


@dataclass(frozen=True, slots=True)
class Made:
    """A table that may be released, what it was made from, and how."""

    spec: Spec
    schema: Schema
    table: pl.DataFrame = field(repr=False)
    recoding: Recoding = field(repr=False)
    rows: RowCounts
    source: pl.DataFrame | None = field(default=None, repr=False)
    """The raw rows that could have been released, where they are at hand: the audit compares with them."""
    answers: SelectionAnswers | None = None
    nodes: NDArray[np.int32] | None = field(default=None, repr=False)
    """(row,) The node of the recoding's tree that each row of the source was released in, -1 if it was withheld."""
    extends: bool = False
    """Whether the recoding is that of an earlier release."""
    steered: Mapping[str, bool] | None = None
    """The targets that steered splits, and whether each did as a number; None where that is not known."""
    refinements: Mapping[str, Any] | None = field(default=None, repr=False)
    """How top-down refinement came to the recoding, where it did just now."""
    asked: tuple[Asked, ...] = field(default=(), repr=False)
    """The questions of the query log, those of most queries first."""
    learned: LearnedWeights | None = field(default=None, repr=False)
    """The weights of columns, where they were found from the rows."""
    exploration: Mapping[str, Any] | None = field(default=None, repr=False)
    """All that was tried, where the use is not known; the spec then asks for what was chosen."""


def source_of(spec: Spec) -> Any:
    """The spec's source: a frame, or a path that starts at the spec's folder."""
    source = spec.data.source
    if source is None:
        raise SpecError(["data.source is missing: name the file to anonymize."])
    if not isinstance(source, str | Path):
        return source
    if "://" in str(source) or str(source).startswith(("duckdb:", "postgresql:", "sqlite:")):
        raise SpecError(
            ["data.source: databases are not supported by this version of anonfit; export the table to Parquet or CSV."]
        )
    return (spec.folder or Path()) / source


def _taxonomy(spec: Spec, name: str, column: ColumnSpec) -> Taxonomy | None:
    found = column.taxonomy
    if found is None or isinstance(found, Taxonomy):
        return found
    if isinstance(found, dict):
        return Taxonomy.from_tree(found, column=name)
    return read_taxonomy((spec.folder or Path()) / found, column=name)


def schema_of(spec: Spec, names: Sequence[str]) -> Schema:
    """The role of every column of the table; all that is missing or unknown is reported together."""
    faults = [
        f"columns.{name}: the table has no such column; {did_you_mean(name, names)}"
        for name in spec.columns
        if name not in names
    ]
    without = [name for name in names if name not in spec.columns]
    if without and spec.data.default_role is None:
        faults.append(
            f"{len(without)} column(s) have no role: {listed(without, 20)}; give each a role, or write "
            'default_role = "insensitive" in [data].'
        )
    if "" in names:
        faults.append("the table has a column without a name, as pandas writes its index; name it, or leave it out.")
    if faults:
        raise SpecError(faults)
    columns = []
    for name in names:
        found = spec.columns.get(name) or ColumnSpec(role=spec.data.default_role or Role.IDENTIFIER)
        columns.append(
            Column(
                name,
                found.role,
                found.type,
                found.order,
                found.domain,
                found.date_format,
                _taxonomy(spec, name, found),
                found.split,
                found.release,
            )
        )
    return Schema(tuple(columns))


def _divided(spec: Spec, schema: Schema) -> tuple[Column, ...]:
    """The columns that are divided: quasi-identifiers or, for a tree, all that it may test."""
    asked = tree_of(spec)
    return schema.quasi_identifiers if asked is None else tested_columns(schema, asked.target.column)


def _texts(columns: Iterable[Column]) -> frozenset[str]:
    """Columns whose values are names: a text file must not turn 01 into 1."""
    kinds = (ColumnType.NOMINAL, ColumnType.ORDINAL)
    return frozenset(
        column.name
        for column in columns
        if column.type in kinds or (column.type is None and column.taxonomy is not None)
    )


def read_source(spec: Spec, source: Any) -> tuple[Schema, pl.DataFrame]:
    """The schema and the rows of a source; identifiers are not even read."""
    options = ReadOptions(missing=spec.data.missing, delimiter=spec.data.delimiter, header=spec.data.header)
    schema = schema_of(spec, column_names(source, options))
    wanted = tuple(column.name for column in schema.columns if column.role != Role.IDENTIFIER)
    divided = _divided(spec, schema)
    clean = frozenset(column.name for column in divided)
    options = ReadOptions(options.missing, options.delimiter, options.header, wanted, _texts(divided), clean)
    return schema, read_table(source, options)


def without_missing(spec: Spec, schema: Schema, frame: pl.DataFrame) -> pl.DataFrame:
    """The rows that the missing policy lets through: by quasi-identifiers or, for a tree, by all that it reads."""
    import polars as pl

    names = [column.name for column in _divided(spec, schema)]
    if (asked := tree_of(spec)) is not None:
        names.append(asked.target.column)
    floats = [name for name in frame.columns if frame[name].dtype.is_float()]
    if floats:
        frame = frame.with_columns(pl.col(floats).fill_nan(None))
    if spec.data.missing_policy == "category":
        return frame
    gaps = {name: frame[name].null_count() for name in names if frame[name].null_count()}
    if gaps and spec.data.missing_policy == "error":
        raise DataError(
            f"missing values in {listed(gaps)}, and data.missing_policy is 'error'; fill them, or use 'category' "
            "or 'drop'."
        )
    return frame.drop_nulls(names) if gaps else frame


def _check_raw(schema: Schema, frame: pl.DataFrame) -> None:
    """Refuse raw columns that nearly tell every record apart, unless their release is written."""
    import polars as pl

    faults = []
    names = [column.name for column in schema.released_raw]
    for name in names:
        if frame[name].dtype.is_nested() or frame[name].dtype == pl.Object:
            raise DataError(f"column '{name}' is of type {frame[name].dtype}; only plain values can be released.")
    asked = [
        column
        for column in schema.released_raw
        if not column.release and column.role not in (Role.COUNT, Role.SAMPLE_WEIGHT)
    ]
    if len(frame) < 2 or not asked:
        return
    roughly = frame.lazy().select(pl.col([column.name for column in asked]).approx_n_unique()).collect()
    for column in asked:
        values = frame[column.name]
        known = len(values) - values.null_count()
        if roughly[column.name][0] < 0.85 * known:
            continue
        share = values.drop_nulls().n_unique() / known if known > 1 else 0.0
        if share > NEARLY_DISTINCT:
            faults.append(
                f"column '{column.name}' would be released as it is, and {share:.0%} of its values are distinct, "
                "so it can identify records; "
                "make it a quasi-identifier or an identifier, or write release = true for it."
            )
    if faults:
        raise SpecError(faults)


def _check_bounds(spec: Spec, schema: Schema) -> None:
    """Names of bounds must not be those of other columns."""
    if spec.output.values == Values.BOUNDS:
        names = {column.name for column in schema.columns}
        made = {f"{column.name}_{end}" for column in schema.quasi_identifiers for end in ("lower", "upper", "missing")}
        if taken := sorted(names & made):
            raise SpecError(
                [f"output.values = 'bounds' needs the column names {listed(taken)} for itself; rename them."]
            )


def persons_in(schema: Schema, frame: pl.DataFrame) -> Persons:
    """Who the rows of a frame stand for."""
    entity = next((column.name for column in schema.of_role(Role.ENTITY)), None)
    count = next((column.name for column in schema.of_role(Role.COUNT)), None)
    return persons_of(len(frame), frame[count] if count else None, frame[entity] if entity else None)


def _persons_left_out(schema: Schema, before: pl.DataFrame, after: pl.DataFrame) -> int:
    """Persons of whom fewer rows are left: what is told of rows that were left out covers so many."""
    import polars as pl

    if len(before) == len(after):
        return 0
    entity = next((column.name for column in schema.of_role(Role.ENTITY)), None)
    count = next((column.name for column in schema.of_role(Role.COUNT)), None)
    if count is not None:
        sums = [
            int(frame[count].cast(pl.Int64, strict=False).fill_null(0).to_numpy().sum()) for frame in (before, after)
        ]
        return sums[0] - sums[1]
    if entity is None:
        return len(before) - len(after)
    left = before[entity].value_counts().join(after[entity].value_counts(), on=entity, how="left", suffix="_after")
    return int((left["count"] > left["count_after"].fill_null(0)).sum())


def _table(spec: Spec, schema: Schema, result: Anonymized, frame: pl.DataFrame, threads: int | None) -> pl.DataFrame:
    return released_table(
        result,
        frame,
        names=[
            column.name
            for column in schema.columns
            if column.role == Role.QUASI_IDENTIFIER or column.role.is_released_raw
        ],
        values=spec.output.values,
        observed=spec.output.regions == "observed",
        order=spec.output.order,
        threads=threads,
    )


def make(
    spec: Spec,
    *,
    source: Any = None,
    threads: int | None = None,
    stage: Stage = silent,
    stopping: Stopping = unstoppable,
) -> Made:
    """Anonymize the spec's table, or another source in its place; `stopping` says whether refining is to stop."""
    if spec.output.values == Values.REPRESENTATIVE and spec.of_role(Role.ENTITY):
        raise SpecError(
            ["output.values = 'representative' tells no regions, so entities could not be audited; use labels."]
        )
    if spec.output.regions == "observed" and spec.output.values != Values.LABELS:
        raise SpecError(["output.regions = 'observed' changes labels only; use values = 'labels' with it."])
    source = source if source is not None else source_of(spec)
    from anonfit.warming import prepare

    has_models = spec.privacy.has_models
    refines = spec.method.algorithm == "tdr"
    prepare(stage, models=has_models, refining=refines, ahead=isinstance(source, str | Path))
    stage("Reading")
    schema, read = read_source(spec, source)
    if len(read) == 0:
        raise DataError("the table has no rows; there is nothing to release.")
    frame = without_missing(spec, schema, read)
    _check_raw(schema, frame)
    _check_bounds(spec, schema)
    persons = persons_in(schema, frame)
    if spec.workload.query_log is not None:
        stage("Reading the query log")
    spec, asked_by_log = with_query_log(spec, schema.columns, frame, persons)
    workload = workload_of(spec)
    asked: dict[str, Any] = {
        "persons": persons,
        "demands": demands_of(spec),
        "workload": workload,
        "cut_points": spec.method.cut_points,
        "threads": threads,
        "stage": stage,
    }
    refining, tree, exploration = refining_of(spec), tree_of(spec), None
    if tree is not None:
        result = anonymize_by_tree(schema, frame, tree, stage=stage)
    elif spec.method.criterion == "explore":
        from anonfit.exploration import explored

        def way(one: Workload) -> Anonymized:
            return anonymize(schema, frame, **asked | {"workload": one, "stage": silent})

        names = [column.name for column in schema.quasi_identifiers]
        spec, result, exploration = explored(spec, frame, persons, way, workload=workload, names=names, stage=stage)
    elif refining is None:
        result = anonymize(schema, frame, **asked)
    else:
        refining = replace(refining, start=_start(spec))
        result = anonymize_top_down(schema, frame, refining=refining, stopping=stopping, **asked)
    stage("Writing labels")
    table = _table(spec, schema, result, frame, threads)
    dropped = _persons_left_out(schema, read, frame)
    rows = RowCounts(len(read), len(read) - len(frame), 0, dropped_persons=dropped)
    answers = result.answers
    if answers is None and workload.selections:
        answers = answer_selections(workload.selections, schema, frame, result, persons=persons, k=spec.privacy.k)
    nodes = _nodes(result, len(frame))
    return Made(
        spec,
        schema,
        table,
        result.recoding,
        rows,
        frame,
        answers,
        nodes,
        steered=result.steered,
        refinements=result.refinements,
        learned=result.learned,
        exploration=exploration,
        asked=asked_by_log,
    )


def _nodes(result: Anonymized, rows: int) -> NDArray[np.int32]:
    """The node of each row, -1 for those that are not released."""
    found = np.full(rows, -1, np.int32)
    found[result.numbers] = result.nodes
    return found


def _target_requests(targets: Iterable[TargetSpec]) -> tuple[TargetRequest, ...]:
    return tuple(
        TargetRequest(one.column, one.classes, one.equal_width, one.weight, one.scale, one.model) for one in targets
    )


def demands_of(spec: Spec) -> Demands:
    """What every group must hold."""
    asked = tuple(DiversityRequest(one.column, one.model, one.parameters) for one in spec.privacy.diversity)
    capped = _target_requests(spec.capped_targets)
    several = tuple(QuasiIdentifier(one.columns, one.k or spec.privacy.k) for one in spec.privacy.quasi_identifiers)
    return Demands(spec.privacy.k, asked, spec.privacy.max_confidence, capped, spec.method.criterion, several)


def refining_of(spec: Spec) -> Refining | None:
    """How columns are refined, from one part each; None where regions are split by Mondrian."""
    method = spec.method
    if method.algorithm != "tdr":
        return None
    return Refining(
        "infogain" if method.criterion == "infogain" else "score",
        cast("Average", method.average),
        cast("Suppression", method.suppression),
        method.zero_gain,
        method.time_budget,
    )


def tree_of(spec: Spec) -> TreeRequest | None:
    """The tree that is asked for; None where regions are found otherwise."""
    method, privacy = spec.method, spec.privacy
    if method.algorithm != "tree":
        return None
    variant = Variant(method.variant)
    default = 0.25 if variant == Variant.C45 else 0.0
    pruning = default if method.pruning is None else method.pruning
    asked = [float(one.parameters["l"]) for one in privacy.diversity]
    return TreeRequest(
        _target_requests(spec.targets)[0],
        Demand(privacy.k, max(asked, default=1.0), privacy.max_confidence),
        Growing(variant, pruning or None, method.max_spans, method.cut_points),
        privacy.class_is_public,
    )


def _start(spec: Spec) -> Recoding | None:
    """The recoding that refining begins with; a path starts at the spec's folder."""
    given = spec.method.start
    if given is None or isinstance(given, Recoding):
        return given
    return read_recoding((spec.folder or Path()) / given)


def workload_of(spec: Spec) -> Workload:
    """What the release is for."""
    method, asked = spec.method, spec.workload
    return Workload(
        targets=_target_requests(spec.targets),
        denoise=asked.denoise,
        selections=asked.selections,
        weights=asked.weights if method.criterion == "clustering" else spec.weights,
        weights_from=asked.weights_from,
        features=asked.features,
        criterion=method.criterion,
        candidates=method.candidates,
        split_on=method.split_on,
        weight_rule=method.weight_rule,
        alpha=method.alpha,
        beta=method.beta,
        gamma=method.gamma,
        min_gain=method.min_gain,
        seed=method.seed,
        sample_weight=next(iter(spec.of_role(Role.SAMPLE_WEIGHT)), None),
    )


def _asked(spec: Spec) -> str:
    """What a region must have to be released, in words."""
    models = [f"{one.model} of '{one.column}'" for one in spec.privacy.diversity]
    if spec.privacy.max_confidence < 1.0:
        models.append("max_confidence")
    k = min((one.k for one in demands_of(spec).quasi_identifiers), default=spec.privacy.k)
    persons = f"{k} persons or more"
    return f"what is asked ({', '.join([persons, *models])})" if models else persons


def _allowed(
    spec: Spec, schema: Schema, frame: pl.DataFrame, groupings: Sequence[tuple[int, NDArray[np.int64]]]
) -> NDArray[np.int64]:
    """The new rows whose groups hold the demands: in each grouping, of so many persons and by the group of each row.

    Models that compare with the whole table compare with the rows that are left, and rows that leave a group of one
    quasi-identifier leave one of each: groups are withheld until all that are left hold, or none is.
    """
    rows = np.arange(len(frame))
    demands = demands_of(spec)
    while len(rows):
        kept = frame[rows]
        persons = persons_in(schema, kept)
        asked = spec.privacy.has_models
        guarded = guard(demands, schema, kept, counts=persons.counts, entities=persons.entities) if asked else []
        fine = np.ones(len(rows), np.bool_)
        for k, groups in groupings:
            fine &= _fine(persons, guarded, groups[rows], k)[groups[rows]]
        if fine.all():
            return rows
        rows = rows[fine]
    return rows


def _fine(persons: Persons, guarded: Sequence[Guarded], groups: NDArray[np.int64], k: int) -> NDArray[np.bool_]:
    """Which groups have k persons and are allowed by all models."""
    count = int(groups.max(initial=-1)) + 1
    fine: NDArray[np.bool_] = persons.of_groups(groups, count) >= k
    if guarded:
        fine &= groups_allowed(
            [model for one in guarded for model in one.models],
            groups,
            {one.column.name: one.codes for one in guarded},
            count=count,
            weights=None if persons.counts is None else persons.counts.astype(np.int64),
            entities=persons.entities,
        )
    return fine


def _groupings(spec: Spec, recoding: Recoding, nodes: NDArray[np.int32]) -> list[tuple[int, NDArray[np.int64]]]:
    """For each quasi-identifier its k, and the group of each row."""
    if not spec.privacy.quasi_identifiers:
        return [(spec.privacy.k, nodes.astype(np.int64))]
    found = []
    for one in demands_of(spec).quasi_identifiers:
        columns = [recoding.quasi_identifiers.index(name) for name in one.columns]
        parts = [recoding.boxes.parts(nodes, column).of_node for column in columns]
        found.append((one.k, combined(parts, [int(part.max(initial=0)) + 1 for part in parts])))
    return found


def extend(
    spec: Spec,
    recoding: Recoding,
    source: Any,
    *,
    unseen: Unseen = Unseen.SUPPRESS,
    steered: Mapping[str, bool] | None = None,
    stage: Stage = silent,
) -> Made:
    """Recode new data by a saved recoding, and withhold the regions in which it has fewer than k persons. `steered` has
    the targets that steered the splits of that recoding, and whether each did as a number.
    """
    stage("Reading")
    schema, read = read_source(spec, source)
    frame = without_missing(spec, schema, read)
    _check_raw(schema, frame)
    stage("Routing rows")
    cells = recoding.cells(frame, unseen=unseen)
    nodes = recoding.nodes(cells)
    unknown = np.any(np.stack([found < 0 for found in cells]), axis=0)
    known = np.flatnonzero(~unknown)
    kept = known[_allowed(spec, schema, frame[known], _groupings(spec, recoding, nodes[known]))]
    if len(kept) == 0:
        unseen_rows = len(frame) - len(known)
        told = f" {unseen_rows} row(s) have a value that the recoding does not know." if unseen_rows else ""
        raise Infeasible(
            f"no region has {_asked(spec)} in the new data, so nothing can be released.{told} "
            "Wait for more data, or make a release of its own."
        )
    stage("Writing labels")
    result = Anonymized(recoding, kept.astype(np.uint32), nodes[kept])
    table = _table(spec, schema, result, frame, None)
    rows = RowCounts(
        read=len(read),
        dropped=len(read) - len(frame),
        withheld=len(frame) - len(kept),
        unknown=len(frame) - len(known),
        dropped_persons=_persons_left_out(schema, read, frame),
        withheld_persons=_persons_left_out(schema, frame, frame[kept]),
    )
    # A row with an unknown value lies in no region, though its other values may lie inside a label.
    source_rows = frame[known] if len(known) < len(frame) else frame
    nodes_of_rows = _nodes(result, len(frame))[known]
    return Made(spec, schema, table, recoding, rows, source_rows, nodes=nodes_of_rows, extends=True, steered=steered)
