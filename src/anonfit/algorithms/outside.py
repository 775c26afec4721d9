# SPDX-License-Identifier: Apache-2.0
"""Algorithms where the rows live outside: an engine finds values, codes and counts rows, and routes them; what is
chosen from the counts is what is chosen in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.demands import Demands, refuse_infeasible
from anonfit.algorithms.grouped import GroupedTable
from anonfit.algorithms.grouped_weights import learn_weights_outside
from anonfit.algorithms.refining import Refinables
from anonfit.algorithms.refining_outside import RowsOutside
from anonfit.algorithms.starting import start_of
from anonfit.algorithms.top_down import Refining, check_sizes, refined_recoding, requirements_of, single_target
from anonfit.criteria.targets import NumberTarget
from anonfit.engines.contract import CountRequest, Engine
from anonfit.engines.levels.growing import HAND_OVER, grow_by_levels
from anonfit.engines.levels.planning import start_on_sample
from anonfit.engines.levels.shape import MASS, PERSONS, Shape, code_name, sensitive_name, target_name
from anonfit.engines.memory.guard import Guarded
from anonfit.engines.memory.refining import RowsToRefine
from anonfit.errors import TooManyGroups
from anonfit.recoding.building import build_recoding
from anonfit.recoding.recoding import Recoding
from anonfit.runtime.progress import Stage, Stopping, silent, unstoppable
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import CodedColumn, CodedTable, Domain, Role, Schema, code_dtype
from anonfit.workload.objectives import LearnedWeights
from anonfit.workload.targets import Workload

if TYPE_CHECKING:
    from anonfit.algorithms.grouped_selections import GroupedSelections
    from anonfit.workload.predicates import Predicate
    from anonfit.workload.selections import AskedSelections, SelectionRequest

__all__ = ["AnonymizedOutside", "anonymize_outside", "anonymize_top_down_outside"]


@dataclass(frozen=True, slots=True)
class AnonymizedOutside:
    """A recoding of rows that an engine has: what their codes stand for, and the nodes that have rows."""

    recoding: Recoding
    domains: tuple[Domain, ...]
    columns: tuple[CodedColumn, ...]
    used: NDArray[np.int32]
    steered: Mapping[str, bool]
    levels: int = 0
    """How many levels of the tree were counted outside."""
    refinements: Mapping[str, Any] | None = None
    selections: AskedSelections | None = None
    """What is to be answered."""
    learned: LearnedWeights | None = None


def _count_column(schema: Schema) -> str | None:
    return next((column.name for column in schema.of_role(Role.COUNT)), None)


def anonymize_outside(
    engine: Engine,
    schema: Schema,
    *,
    demands: Demands,
    workload: Workload,
    cut_points: CutPoints,
    kept: Sequence[str],
    hand_over: int = HAND_OVER,
    sample: int | None = None,
    threads: int | None = None,
    stage: Stage = silent,
) -> AnonymizedOutside:
    """Make a recoding of an engine's rows, which are coded and routed on the way; the raw columns `kept` stay beside
    their codes. `sample`: upper levels are grown on about so many rows.
    """
    stage("Finding values")
    count = _count_column(schema)
    table = GroupedTable(engine, count)
    if workload.selections:
        from anonfit.algorithms.grouped_selections import no_frame
        from anonfit.workload.selections import refuse_guarded

        refuse_guarded(workload.selections, schema.columns, no_frame(engine), is_capped=demands.max_confidence < 1.0)
    guarded = table.guard(demands, schema)
    refuse_infeasible(demands, table.total(), guarded)
    columns = schema.quasi_identifiers
    used = _predicates(engine, workload.used_selections, schema)
    domains = table.code(columns, [demands.k] * len(columns), used)
    coded = tuple(domain.coded() for domain in domains)
    selections = _selections(table, workload.used_selections, schema, domains)
    if selections is not None:
        selections.add_fields()
    learned = None
    if workload.weights_from is not None and not workload.is_blind:
        learned = learn_weights_outside(table, workload, schema.columns, coded)
        workload = replace(workload, weights=learned.weights)
    purpose = table.purpose(workload, schema.columns, coded)
    # Those that steer nothing are answered, too.
    asked = selections or _selections(table, workload.selections, schema, domains)
    stage("Coding")
    engine.code(table.fields, kept)
    shape = Shape(coded, purpose, tuple(guarded), count is not None)
    if selections is not None:
        found, signatures = selections.coded()
        shape = replace(shape, purpose=replace(purpose, selections=found), signatures=signatures)
    start = None if sample is None else partial(start_on_sample, rows=sample)
    grown = grow_by_levels(
        engine, shape, demands.k, hand_over=hand_over, threads=threads, told=_told(stage), start=start
    )
    recoding = build_recoding(grown.tree, domains, points=cut_points)
    targets = () if workload.objective.clusters else purpose.targets
    steered = {target.name: isinstance(target, NumberTarget) for target in targets}
    return AnonymizedOutside(
        recoding,
        tuple(domains),
        shape.columns,
        np.flatnonzero(grown.sizes).astype(np.int32),
        steered,
        grown.levels,
        selections=None if asked is None else asked.asked,
        learned=learned,
    )


def _predicates(engine: Engine, requests: Sequence[SelectionRequest], schema: Schema) -> tuple[Predicate, ...]:
    """The predicates of selections."""
    if not requests:
        return ()
    from anonfit.algorithms.grouped_selections import predicates_outside

    return predicates_outside(engine, requests, schema.columns)


def _selections(
    table: GroupedTable, requests: Sequence[SelectionRequest], schema: Schema, domains: Sequence[Domain]
) -> GroupedSelections | None:
    """Selections over domains, which may have their boundaries already."""
    if not requests:
        return None
    from anonfit.algorithms.grouped_selections import GroupedSelections, domains_with_faces

    faced = domains_with_faces(domains, _predicates(table.engine, requests, schema))
    return GroupedSelections(table, requests, schema.columns, faced)


def _told(stage: Stage) -> Callable[[int, int], None]:
    return lambda level, nodes: stage(f"Growing regions: level {level}, {nodes} node(s)")


def anonymize_top_down_outside(
    engine: Engine,
    schema: Schema,
    *,
    demands: Demands,
    workload: Workload,
    refining: Refining,
    cut_points: CutPoints,
    kept: Sequence[str],
    threads: int | None = None,
    stage: Stage = silent,
    stopping: Stopping = unstoppable,
) -> AnonymizedOutside:
    """Refine top-down. Rows that are alike in all codes are one with so many persons: the engine counts these groups
    once, and they are what is refined. Where they are too many, it counts cells, and once more with every refinement.
    """
    stage("Finding values")
    table = GroupedTable(engine, _count_column(schema))
    target, column = single_target(workload, schema, lambda name: table.groups(name).frame[name])
    guarded = table.guard(demands, schema)
    columns = schema.quasi_identifiers
    requirements = requirements_of(demands, [one.name for one in columns])
    ks = [max(one.k for one in requirements if place in one.columns) for place in range(len(columns))]
    domains = table.code(columns, ks)
    coded = tuple(domain.coded() for domain in domains)
    start = None if refining.start is None else start_of(refining.start, domains)
    classes = table.classes(target, column)
    check_sizes(coded, classes, target.column)
    weighted = workload.sample_weight is not None
    if workload.sample_weight is not None:
        table.masses(workload.sample_weight)
    stage("Coding")
    engine.code(table.fields, kept)
    has_counts = table.count is not None
    rows: Refinables
    try:
        rows = _groups(engine, coded, guarded, has_counts, weighted, threads)
    except TooManyGroups:
        rows = RowsOutside(
            engine, coded, guarded, classes=classes, has_counts=has_counts, weighted=weighted, threads=threads
        )
    stage("Refining")
    recoding, nodes, told = refined_recoding(
        rows,
        requirements,
        domains,
        start=start,
        refining=refining,
        cut_points=cut_points,
        stage=stage,
        stopping=stopping,
    )
    engine.route([], [0])
    used = np.unique(nodes).astype(np.int32)
    return AnonymizedOutside(recoding, tuple(domains), coded, used, {target.column: False}, refinements=told)


def _groups(
    engine: Engine,
    columns: tuple[CodedColumn, ...],
    guarded: Sequence[Guarded],
    has_counts: bool,
    weighted: bool,
    threads: int | None,
) -> RowsToRefine:
    """The groups of rows that are alike: their codes and persons, their classes, their weights and sensitive values."""
    by = [code_name(place) for place in range(len(columns))]
    by += [target_name(0), *(sensitive_name(place) for place in range(len(guarded)))]
    sums = [(PERSONS,) if has_counts else (), *([(MASS,)] if weighted else [])]
    counted = engine.count([CountRequest((0,), tuple(by), tuple(sums))])[0]
    width = len(columns)
    codes = tuple(counted.by[place].astype(code_dtype(column.size)) for place, column in enumerate(columns))
    table = CodedTable(columns, codes, len(counted.nodes), counted.sums[0].astype(np.uint32))
    found = [
        Guarded(one.column, counted.by[width + 1 + place].astype(np.uint32), one.models)
        for place, one in enumerate(guarded)
    ]
    return RowsToRefine(table, counted.by[width], counted.sums[1] if weighted else None, found, threads)
