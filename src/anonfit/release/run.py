# SPDX-License-Identifier: Apache-2.0
"""From a spec to a table that may be released: reads, checks, anonymizes. Called by every door through the api."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.coding import without_row_numbers
from anonfit.algorithms.demands import bind_constraints
from anonfit.algorithms.exploring import RULE, RULE_OF_TARGETS, CandidateRule, exploration_record, explore
from anonfit.algorithms.mondrian import anonymize
from anonfit.algorithms.result import Anonymized
from anonfit.algorithms.selections import answer_batches, answer_selections
from anonfit.algorithms.top_down import anonymize_top_down
from anonfit.algorithms.trees.making import anonymize_by_tree
from anonfit.criteria.objectives import OBJECTIVES, CriterionName
from anonfit.engines.contract import ENGINES, Engine, InMemory, Written, out_of_core
from anonfit.engines.memory.engine import MemoryEngine
from anonfit.engines.memory.source import persons_left_out
from anonfit.engines.tree import combined
from anonfit.errors import DataError, Infeasible, SpecError, counted
from anonfit.metrics.arrays import Flags, Integers
from anonfit.metrics.registry import RecodedTable, metrics_of
from anonfit.metrics.workload import coded_targets, squared_errors
from anonfit.privacy.coding import groups_allowed
from anonfit.privacy.disclosure import Disclosure
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Unseen
from anonfit.release import bind
from anonfit.release import engine as engines
from anonfit.release.draft import Draft, Lazy, RowCounts, within_limit
from anonfit.release.table import placing_of, released_table
from anonfit.runtime.files import spill_folder
from anonfit.runtime.process import Stage, Stopping, silent, unstoppable
from anonfit.spec.learning import Asked, with_query_log
from anonfit.spec.model import AUTO, Spec, WeightRule
from anonfit.tables.frames import rebuilt
from anonfit.tables.profile_columns import MOST_ROWS, suspicions_of
from anonfit.tables.reading import ReadOptions, notices_of, read_table
from anonfit.tables.schema import KnownValues, Persons, Role, Schema, persons_in
from anonfit.tables.sources import FORMATS, PLAIN
from anonfit.workload.objectives import unit_masses
from anonfit.workload.targets import Workload

if TYPE_CHECKING:
    import polars as pl

    from anonfit.engines.memory.forms import Constraint


COMPARED = sorted(metrics_of("explore"), key=lambda metric: metric.words)
FIGURES = {metric.short or metric.name: metric.words for metric in COMPARED}
"""What candidates are held against; less is better."""


def read_source(spec: Spec, source: Any) -> tuple[Schema, pl.DataFrame]:
    """The schema and the rows of a source; identifiers are not even read."""
    schema, options = bind.reading_of(spec, source)
    return schema, read_table(source, options)


def _first_rows(engine: Engine) -> pl.DataFrame:
    """All rows, or of a table that is not in memory the first ones."""
    from polars.exceptions import PolarsError

    try:
        return engine.frame if isinstance(engine, InMemory) else engine.scan.head(MOST_ROWS).collect()
    except PolarsError as error:  # whose text may hold values
        raise DataError(f"the rows of the source cannot be read: {type(error).__name__}; it may be damaged.") from None


def _notices(rows: pl.DataFrame, schema: Schema, source: Any, options: ReadOptions) -> tuple[str, ...]:
    """What was guessed when the source was read, and what is doubtful about values that are to be released."""
    doubts = suspicions_of(rows, [name for name in bind.released_names(schema) if name in rows.columns])
    return (*notices_of(source, options), *(doubt.sentence for doubt in doubts))


def make(
    spec: Spec,
    *,
    source: Any = None,
    threads: int | None = None,
    stage: Stage = silent,
    stopping: Stopping = unstoppable,
) -> Draft:
    """Anonymize the spec's table, or another source in its place; `stopping` says whether refining is to stop."""
    bind.refuse_output(spec)
    source = source if source is not None else bind.source_of(spec)
    name, reason = engines.engine_for(spec, source)
    engines.refuse_unsupported(spec, name)
    here = name == "memory"
    schema, options = bind.reading_of(spec, source)
    spec = spec.in_order_of(column.name for column in schema.columns)
    bind.check_bounds(spec, schema)
    kernels = {"models": spec.privacy.has_models, "refining": spec.method.capabilities.refines}
    ready = engines.is_ready(**kernels, ahead=not here or isinstance(source, str | Path))
    stack = ExitStack()
    with stack:
        folder = Path() if here else stack.enter_context(spill_folder(engines.spill_place(spec)))
        stage("Reading")
        opened = engines.opened(name, spec, schema, source, options, folder, threads=threads)
        with opened as engine, ThreadPoolExecutor(1) as pool:  # for what can be looked at beside growing
            engines.check_raw(engine, spec, schema)
            noticing = pool.submit(_notices, _first_rows(engine), schema, source, options)
            if not ready:  # whatever can be refused before that is refused
                engines.prepare(stage, **kernels, ahead=False)
            asked: tuple[Asked, ...] = ()
            if spec.workload.query_log is not None:
                stage("Reading the query log")
                with nullcontext() if isinstance(engine, InMemory) else without_row_numbers():
                    spec, asked = with_query_log(spec, schema.columns, engines.raw_rows(engine, schema))
            spec = spec.settled(engine.rows)
            spec, result, exploration = _anonymized(engine, spec, schema, threads, stage, stopping)
            result = replace(result, recoding=_worded(result.recoding, spec))
            stage("Writing labels")
            written = _written(engine, result, spec, schema, folder, threads)
        dropped = engine.read - engine.rows
        rows = within_limit(spec, RowCounts(engine.read, dropped, 0, dropped_persons=engine.persons_left_out))
        draft = Draft(
            spec,
            schema,
            written if not isinstance(written, Written) else Lazy(lambda: rebuilt(written.scan().collect())),
            result.recoding,
            rows,
            steered=result.steered,
            refinements=result.refinements,
            asked=asked,
            learned=result.learned,
            exploration=exploration,
            engine=engine.name,
            engine_reason=reason,
            notices=noticing.result(),
        )
        if isinstance(engine, InMemory):
            nodes, answers, selections = _nodes(result, engine.rows), result.answers, bind.workload_of(spec).selections
            if answers is None and selections:  # they steered nothing
                answers = answer_selections(selections, schema, engine.frame, result, k=spec.privacy.k)
            return replace(draft, held_source=engine.frame, held_nodes=nodes, answers=answers)
        assert isinstance(written, Written)
        draft = _stored(draft, written, source, engine.scan)
        if result.selections is not None:
            stage("Answering selections")
            count = schema.name_of(Role.COUNT)
            answers = answer_batches(result.selections, result.recoding, draft.raw_batches(), count)
            draft = replace(draft, answers=answers)
        # The written table stays until what was made of it is gone.
        return replace(draft, discard=weakref.finalize(written, stack.pop_all().close))


def _worded(recoding: Recoding, spec: Spec) -> Recoding:
    """The recoding with the labels that a spec asks for."""
    closed = spec.output.intervals == "closed"
    if closed and not recoding.has_whole_numbers:
        fault = "output.intervals = 'closed' is of whole numbers, and no quasi-identifier has these; remove it."
        raise SpecError([fault])
    return recoding.written(closed=closed)


def _anonymized(
    engine: Engine, spec: Spec, schema: Schema, threads: int | None, stage: Stage, stopping: Stopping
) -> tuple[Spec, Anonymized, Mapping[str, Any] | None]:
    """The recoding of an engine's rows, by the algorithm that a spec asks for; where several ways were explored, the
    spec that asks for the chosen one, and the record of all.
    """
    divided = {column.name for column in schema.quasi_identifiers}
    kept = [name for name in bind.released_names(schema) if name not in divided]
    workload = bind.workload_of(spec)
    request: dict[str, Any] = {
        "demands": bind.demands_of(spec),
        "workload": workload,
        "cut_points": spec.method.cut_points,
        "kept": kept,
        "threads": threads,
        "stage": stage,
    }
    refining, tree = bind.refining_of(spec), bind.tree_of(spec)
    if tree is not None:
        return spec, anonymize_by_tree(engine, schema, tree, kept=kept, stage=stage), None
    if refining is not None:
        refining = replace(refining, start=bind.start_recoding(spec))
        return spec, anonymize_top_down(engine, schema, refining=refining, stopping=stopping, **request), None
    request["hand_over"] = spec.engine.hand_over or ENGINES[engine.name].hand_over
    request["sample"] = spec.engine.sample
    if not spec.method.objective.explores:
        return spec, anonymize(engine, schema, **request), None
    assert isinstance(engine, InMemory)
    return _explored(engine, spec, schema, partial(anonymize, engine, **request | {"stage": silent}), stage)


def _explored(
    engine: InMemory, spec: Spec, schema: Schema, grow: Callable[..., Anonymized], stage: Stage
) -> tuple[Spec, Anonymized, Mapping[str, Any]]:
    """Try ways to weigh the quasi-identifiers, whose regions `grow` makes, and, where there are targets, first what
    these alone ask for. Gives the spec that asks for the chosen one alone, its regions, and the record of all; weights
    of the spec say how much columns are known to matter.
    """
    weights = {column.name: float(spec.weights.get(column.name, 1.0)) for column in schema.quasi_identifiers}
    frame, persons, workload = engine.frame, persons_in(schema, engine.frame), bind.workload_of(spec)
    served = CandidateRule(0, AUTO, dict(spec.weights), seed=spec.method.seed) if spec.targets else None
    targets = coded_targets(workload, schema, frame)

    def make_regions(candidate: Workload) -> Anonymized:
        if served is None or candidate.criterion != AUTO:
            return grow(schema=schema, workload=candidate)
        alone = _asking_for(spec, served).settled(engine.rows)
        names = [column.name for column in schema.columns]
        return grow(schema=bind.schema_of(alone, names), workload=bind.workload_of(alone))

    def measure(result: Anonymized) -> dict[str, float]:
        # By the range of the rows, so these figures are not for the public.
        nodes = _nodes(result, len(frame))
        table = RecodedTable.of_rows(result.recoding, frame, nodes, persons, k=spec.privacy.k, weights=weights)
        figures = {metric.short or metric.name: float(metric.measure(table)) for metric in COMPARED}
        errors = squared_errors(targets, nodes, result.recoding.node_count)
        return figures | {f"error of {column}": error for column, error in errors.items()}

    errors = [f"error of {target.column}" for target in targets]
    seconds = spec.method.time_budget
    chosen = explore(
        workload, weights, make_regions, measure, served=served, errors=errors, seconds=seconds, stage=stage
    )
    record = exploration_record(chosen, rule=rule_of(spec), seconds=seconds, seed=spec.method.seed)
    words = FIGURES | {name: name for name in errors}
    return _asking_for(spec, chosen.candidate).settled(engine.rows), chosen.result, record | {"figures": words}


def rule_of(spec: Spec) -> str:
    """By what one of the ways that were tried is published."""
    return RULE_OF_TARGETS if spec.targets else RULE


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


def _written(
    engine: Engine, result: Anonymized, spec: Spec, schema: Schema, folder: Path, threads: int | None
) -> pl.DataFrame | Written:
    """The released table: a frame where the rows are in memory, else a file."""
    if isinstance(engine, InMemory):
        return _table(spec, schema, result, engine.frame, threads)
    placing, columns = placing_of(result, bind.released_names(schema), spec.output.values)
    # What engines cannot write themselves is written of this when the release is published.
    is_theirs = spec.output.form == PLAIN and not FORMATS[spec.output.format].program
    kind = spec.output.format if is_theirs else "parquet"
    return out_of_core(engine).write(placing, columns, folder / f"data.{kind}", kind)


def _table(spec: Spec, schema: Schema, result: Anonymized, frame: pl.DataFrame, threads: int | None) -> pl.DataFrame:
    return released_table(
        result,
        frame,
        names=bind.released_names(schema),
        values=spec.output.values,
        observed=spec.output.regions == "observed",
        order=spec.output.order,
        threads=threads,
    )


def _nodes(result: Anonymized, rows: int) -> NDArray[np.int32]:
    """The node of each row, -1 for those that are not released."""
    nodes = np.full(rows, -1, np.int32)
    nodes[result.numbers] = result.nodes
    return nodes


def _stored(draft: Draft, written: Written, source: Any, scan: pl.LazyFrame) -> Draft:
    """A release that is stored in a file, and whose raw rows are read when they are asked for."""
    raw = Lazy(lambda: engines.rows_here(draft.spec, draft.schema, source, scan))
    nodes = Lazy(lambda: draft.recoding.nodes(draft.recoding.cells(raw.get())))
    return replace(draft, held_source=raw, held_nodes=nodes, stored=written, scan=scan)


def _left_out(schema: Schema, before: pl.DataFrame, after: pl.DataFrame) -> int:
    return persons_left_out(before, after, schema.name_of(Role.COUNT), schema.name_of(Role.ENTITY))


def _asked(spec: Spec) -> str:
    """What a region must have to be released, in words."""
    models = [f"{demand.model} of '{demand.column}'" for demand in spec.privacy.diversity]
    if spec.privacy.max_confidence < 1.0:
        models.append("max_confidence")
    k = min((columns.k for columns in bind.demands_of(spec).quasi_identifiers), default=spec.privacy.k)
    persons = f"{k} persons or more"
    return f"what is asked ({', '.join([persons, *models])})" if models else persons


def _allowed(spec: Spec, schema: Schema, frame: pl.DataFrame, groupings: Sequence[tuple[int, Integers]]) -> Integers:
    """The new rows whose groups hold the demands in each grouping, which is a k and the group of each row.

    Models that compare with the whole table compare with the rows that are left, and rows that leave a group of one
    quasi-identifier leave one of each: groups are withheld until all that are left hold, or none is.
    """
    rows = np.arange(len(frame))
    demands = bind.demands_of(spec)

    def values(name: str) -> KnownValues:
        return KnownValues(kept.select(name), None, persons)

    while len(rows):
        kept = frame[rows]
        persons = persons_in(schema, kept)
        constraints = bind_constraints(demands, schema, values) if spec.privacy.has_models else []
        fine = np.ones(len(rows), np.bool_)
        for k, groups in groupings:
            fine &= _fine(persons, constraints, groups[rows], k)[groups[rows]]
        if fine.all():
            return rows
        rows = rows[fine]
    return rows


def _fine(persons: Persons, constraints: Sequence[Constraint], groups: Integers, k: int) -> Flags:
    """Which groups have k persons and are allowed by all models."""
    count = int(groups.max(initial=-1)) + 1
    fine: Flags = persons.of_groups(groups, count) >= k
    if constraints:
        fine &= groups_allowed(
            [model for constraint in constraints for model in constraint.models],
            groups,
            {constraint.column.name: constraint.codes for constraint in constraints},
            count=count,
            weights=None if persons.counts is None else persons.counts.astype(np.int64),
            entities=persons.entities,
        )
    return fine


def _groupings(spec: Spec, recoding: Recoding, nodes: NDArray[np.int32]) -> list[tuple[int, Integers]]:
    """For each quasi-identifier its k, and the group of each row."""
    if not spec.privacy.quasi_identifiers:
        return [(spec.privacy.k, nodes.astype(np.int64))]
    groupings = []
    for demand in bind.demands_of(spec).quasi_identifiers:
        columns = [recoding.quasi_identifiers.index(name) for name in demand.columns]
        parts = [recoding.boxes.parts(nodes, column).of_node for column in columns]
        groupings.append((demand.k, combined(parts, [int(part.max(initial=0)) + 1 for part in parts])))
    return groupings


def extend(
    spec: Spec,
    recoding: Recoding,
    source: Any,
    *,
    unseen: Unseen = Unseen.SUPPRESS,
    steered: Mapping[str, bool] | None = None,
    stage: Stage = silent,
) -> Draft:
    """Recode new data by a saved recoding, and withhold the regions that do not hold the demands in it. `steered` names
    the targets that steered the splits of that recoding, and whether each did as a number.
    """
    stage("Reading")
    schema, read = read_source(spec, source)
    frame = bind.without_missing(spec, schema, read)
    engines.check_raw(MemoryEngine(frame), spec, schema)
    for column in schema.of_role(Role.SAMPLE_WEIGHT):
        unit_masses(frame[column.name], np.ones(len(frame), np.int64))  # refuses weights that are none
    stage("Routing rows")
    cells = recoding.cells(frame, unseen=unseen)
    nodes = recoding.nodes(cells)
    unknown = np.any(np.stack([codes < 0 for codes in cells]), axis=0)
    known = np.flatnonzero(~unknown)
    kept = known[_allowed(spec, schema, frame[known], _groupings(spec, recoding, nodes[known]))]
    if len(kept) == 0:
        strangers = _left_out(schema, frame, frame[known])
        unseen_rows = Disclosure(spec.privacy.least).rows(len(frame) - len(known), strangers)
        they = counted(unseen_rows, "row has", "rows have")
        note = f" {they} a value that the recoding does not know." if unseen_rows else ""
        raise Infeasible(
            f"no region has {_asked(spec)} in the new data, so nothing can be released.{note} "
            "Wait for more data, or make a release of its own."
        )
    rows = RowCounts(
        read=len(read),
        dropped=len(read) - len(frame),
        withheld=len(frame) - len(kept),
        unknown=len(frame) - len(known),
        dropped_persons=_left_out(schema, read, frame),
        withheld_persons=_left_out(schema, frame, frame[kept]),
    )
    within_limit(spec, rows)
    stage("Writing labels")
    result = Anonymized(recoding, kept.astype(np.uint32), nodes[kept])
    table = _table(spec, schema, result, frame, None)
    # A row with an unknown value lies in no region, though its other values may lie inside a label.
    source_rows = frame[known] if len(known) < len(frame) else frame
    nodes_of_rows = _nodes(result, len(frame))[known]
    return Draft(
        spec, schema, table, recoding, rows, source_rows, held_nodes=nodes_of_rows, extends=True, steered=steered
    )
