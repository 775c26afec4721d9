# SPDX-License-Identifier: Apache-2.0
"""From a spec to a table that may be released: reads, checks, anonymizes. Called by every door through the api."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.demands import guard
from anonfit.algorithms.mondrian import Anonymized, Persons, anonymize, answer_selections, persons_of
from anonfit.algorithms.top_down import anonymize_top_down
from anonfit.algorithms.trees.making import anonymize_by_tree
from anonfit.engines.sinking import check_writable
from anonfit.errors import DataError, Infeasible, SpecError
from anonfit.privacy.coding import groups_allowed
from anonfit.privacy.disclosure import Disclosure
from anonfit.recoding.boxes import combined
from anonfit.recoding.recoding import Recoding, Unseen
from anonfit.release.bind import (
    NEARLY_DISTINCT,
    asked_raw,
    check_bounds,
    demands_of,
    nearly_distinct,
    not_plain,
    reading_of,
    refining_of,
    refuse_output,
    released_names,
    schema_of,
    source_of,
    start_recoding,
    tree_of,
    without_missing,
    workload_of,
)
from anonfit.release.result import Made, RowCounts, within_limit
from anonfit.release.run_outside import engine_for, make_outside
from anonfit.release.table import released_table
from anonfit.runtime.progress import Stage, Stopping, silent, unstoppable
from anonfit.spec.learning import with_query_log
from anonfit.spec.model import Spec
from anonfit.tables.reading import read_table
from anonfit.tables.schema import Role, Schema
from anonfit.workload.logs.merging import rows_of_frame
from anonfit.workload.objectives import masses_of
from anonfit.workload.targets import Workload

if TYPE_CHECKING:
    import polars as pl

    from anonfit.engines.memory.guard import Guarded

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


def read_source(spec: Spec, source: Any) -> tuple[Schema, pl.DataFrame]:
    """The schema and the rows of a source; identifiers are not even read."""
    schema, options = reading_of(spec, source)
    return schema, read_table(source, options)


def _check_raw(spec: Spec, schema: Schema, frame: pl.DataFrame) -> None:
    """Refuse raw columns that nearly tell every record apart, unless their release is written."""
    import polars as pl

    faults = []
    names = [column.name for column in schema.released_raw]
    for name in names:
        if frame[name].dtype.is_nested() or frame[name].dtype == pl.Object:
            raise DataError(not_plain(name, frame[name].dtype))
    check_writable({name: frame[name].dtype for name in names}, spec.output.format)
    asked = asked_raw(schema)
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
            faults.append(nearly_distinct(column.name, share))
    if faults:
        raise SpecError(faults)


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
        names=released_names(schema),
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
    refuse_output(spec)
    source = source if source is not None else source_of(spec)
    engine, reason = engine_for(spec, source)
    if engine != "memory":
        return make_outside(spec, source, engine=engine, reason=reason, threads=threads, stage=stage, stopping=stopping)
    from anonfit.release.warmup import prepare

    refines = spec.method.capabilities.refines
    prepare(stage, models=spec.privacy.has_models, refining=refines, ahead=isinstance(source, str | Path))
    stage("Reading")
    schema, read = read_source(spec, source)
    if len(read) == 0:
        raise DataError("the table has no rows; there is nothing to release.")
    frame = without_missing(spec, schema, read)
    _check_raw(spec, schema, frame)
    check_bounds(spec, schema)
    persons = persons_in(schema, frame)
    if spec.workload.query_log is not None:
        stage("Reading the query log")
    spec, asked_by_log = with_query_log(spec, schema.columns, rows_of_frame(frame, persons.of_groups))
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
    elif spec.method.objective.explores:
        from anonfit.release.explore import explored

        def way(one: Workload) -> Anonymized:
            return anonymize(schema, frame, **asked | {"workload": one, "stage": silent})

        names = [column.name for column in schema.quasi_identifiers]
        spec, result, exploration = explored(spec, frame, persons, way, workload=workload, names=names, stage=stage)
    elif refining is None:
        result = anonymize(schema, frame, **asked)
    else:
        refining = replace(refining, start=start_recoding(spec))
        result = anonymize_top_down(schema, frame, refining=refining, stopping=stopping, **asked)
    stage("Writing labels")
    table = _table(spec, schema, result, frame, threads)
    dropped = _persons_left_out(schema, read, frame)
    rows = within_limit(spec, RowCounts(len(read), len(read) - len(frame), 0, dropped_persons=dropped))
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
        asked=asked_by_log,
        learned=result.learned,
        exploration=exploration,
        engine_reason=reason,
    )


def _nodes(result: Anonymized, rows: int) -> NDArray[np.int32]:
    """The node of each row, -1 for those that are not released."""
    found = np.full(rows, -1, np.int32)
    found[result.numbers] = result.nodes
    return found


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
    _check_raw(spec, schema, frame)
    for column in schema.of_role(Role.SAMPLE_WEIGHT):
        masses_of(frame[column.name], None)  # refuses weights that are none
    stage("Routing rows")
    cells = recoding.cells(frame, unseen=unseen)
    nodes = recoding.nodes(cells)
    unknown = np.any(np.stack([found < 0 for found in cells]), axis=0)
    known = np.flatnonzero(~unknown)
    kept = known[_allowed(spec, schema, frame[known], _groupings(spec, recoding, nodes[known]))]
    if len(kept) == 0:
        strangers = _persons_left_out(schema, frame, frame[known])
        unseen_rows = Disclosure(spec.privacy.least).rows(len(frame) - len(known), strangers)
        told = f" {unseen_rows} row(s) have a value that the recoding does not know." if unseen_rows else ""
        raise Infeasible(
            f"no region has {_asked(spec)} in the new data, so nothing can be released.{told} "
            "Wait for more data, or make a release of its own."
        )
    rows = RowCounts(
        read=len(read),
        dropped=len(read) - len(frame),
        withheld=len(frame) - len(kept),
        unknown=len(frame) - len(known),
        dropped_persons=_persons_left_out(schema, read, frame),
        withheld_persons=_persons_left_out(schema, frame, frame[kept]),
    )
    within_limit(spec, rows)
    stage("Writing labels")
    result = Anonymized(recoding, kept.astype(np.uint32), nodes[kept])
    table = _table(spec, schema, result, frame, None)
    # A row with an unknown value lies in no region, though its other values may lie inside a label.
    source_rows = frame[known] if len(known) < len(frame) else frame
    nodes_of_rows = _nodes(result, len(frame))[known]
    return Made(
        spec, schema, table, recoding, rows, source_rows, held_nodes=nodes_of_rows, extends=True, steered=steered
    )
