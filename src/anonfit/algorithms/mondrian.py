# SPDX-License-Identifier: Apache-2.0
"""Mondrian: codes a table, grows its regions on an engine, and gives the recoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.coding import TableCoding
from anonfit.algorithms.demands import Demands, refuse_infeasible
from anonfit.algorithms.result import Anonymized
from anonfit.algorithms.selections import CodingSelections, answer_batches, selection_predicates, typed_frame
from anonfit.criteria.targets import NumberTarget
from anonfit.engines.contract import Engine, InMemory, out_of_core
from anonfit.engines.memory.layout import Shape
from anonfit.errors import counted
from anonfit.recoding.recoding import build_recoding, cells_of_codes
from anonfit.runtime.process import Stage, silent
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import Domain, Role, Schema
from anonfit.workload.selections import refuse_sensitive_selections
from anonfit.workload.targets import NOTHING, Workload


def anonymize(
    engine: Engine,
    schema: Schema,
    *,
    demands: Demands,
    workload: Workload = NOTHING,
    cut_points: CutPoints,
    kept: Sequence[str] = (),
    hand_over: int | None = None,
    sample: int | None = None,
    threads: int | None = None,
    stage: Stage = silent,
) -> Anonymized:
    """Make a recoding of a table's quasi-identifiers by Mondrian: what the demands ask, as good for the workload as can
    be. The engine's rows are coded and routed on the way.

    Out-of-core engines keep the raw columns `kept` beside their codes, finish nodes of at most `hand_over` rows in
    memory, and grow upper levels on about `sample` rows.
    """
    coding = TableCoding(engine, schema, threads)
    if not coding.by_row:
        stage("Finding values")
    if workload.selections:
        is_capped = demands.max_confidence < 1.0
        refuse_sensitive_selections(workload.selections, schema.columns, typed_frame(engine), is_capped=is_capped)
    constraints = coding.constraints(demands)
    refuse_infeasible(demands, coding.total(), constraints)
    if coding.by_row:
        stage("Coding")
    columns = schema.quasi_identifiers
    requests, selections, asked = workload.used_selections, None, None
    predicates = selection_predicates(engine, requests, schema) if requests else ()
    domains = coding.code(columns, [demands.k] * len(columns), predicates)
    coded = tuple(domain.coded() for domain in domains)
    if requests:
        selections = CodingSelections(coding, requests, domains)
        selections.add_fields()
        asked = selections.asked
    elif workload.selections and not coding.by_row:  # those that steer nothing are answered, too
        asked = CodingSelections(coding, workload.selections, domains).asked
    learned = None
    if workload.weights_from is not None and not workload.is_blind:
        learned = coding.learn_weights(workload, coded)
        workload = replace(workload, weights=learned.weights)
    purpose = coding.objective(workload, coded)
    if not coding.by_row:
        stage("Coding")
    engine.code(coding.fields, kept)
    if workload.denoise and purpose.targets:
        from anonfit.algorithms.denoised import denoised

        stage("Fitting models of the targets")
        purpose = denoised(coding, purpose, workload, coded, demands.k)
    shape = Shape(coded, purpose, tuple(constraints), coding.count is not None)
    if selections is not None:
        over_codes, signatures = selections.coded()
        shape = replace(shape, purpose=replace(purpose, selections=over_codes), signatures=signatures)
    targets = () if workload.objective.clusters else purpose.targets
    steered = {target.name: isinstance(target, NumberTarget) for target in targets}
    if isinstance(engine, InMemory):
        result = _grown_here(coding, shape, demands.k, domains, cut_points, stage)
    else:
        result = _grown_by_levels(coding, shape, demands.k, domains, cut_points, hand_over, sample, stage)
    result = replace(result, steered=steered, learned=learned, selections=asked)
    if asked is None or not isinstance(engine, InMemory):
        return result
    of_row = np.empty(engine.rows, np.int32)
    of_row[result.numbers] = result.nodes
    answers = answer_batches(asked, result.recoding, [(engine.frame, of_row)], schema.name_of(Role.COUNT))
    return replace(result, answers=answers)


def _grown_here(
    coding: TableCoding, shape: Shape, k: int, domains: Sequence[Domain], cut_points: CutPoints, stage: Stage
) -> Anonymized:
    """The regions of rows in memory, and where each row is."""
    from anonfit.engines.memory.route import make_routes, route_regions

    stage("Growing regions")
    engine = coding.engine
    assert isinstance(engine, InMemory)
    assert coding.persons is not None
    growth = engine.grow(shape, coding.persons, k, threads=coding.threads)
    stage("Routing rows")
    recoding = build_recoding(growth.tree, domains, points=cut_points)
    cells = cells_of_codes(recoding, domains)
    routes = make_routes(recoding.tree, cells, [column.size for column in recoding.columns])
    nodes = route_regions(growth.rows, growth.columns, routes, growth.begins, threads=coding.threads)
    return Anonymized(recoding, growth.numbers, nodes, domains=domains, columns=shape.columns, used=used_nodes(nodes))


def _grown_by_levels(
    coding: TableCoding,
    shape: Shape,
    k: int,
    domains: Sequence[Domain],
    cut_points: CutPoints,
    hand_over: int | None,
    sample: int | None,
    stage: Stage,
) -> Anonymized:
    """The regions of rows that an engine counts level by level."""
    from anonfit.engines.levels.growing import HAND_OVER, LevelGrower
    from anonfit.engines.levels.sampling import start_on_sample

    def on_level(level: int, nodes: int) -> None:
        stage(f"Growing regions: level {level}, {counted(nodes, 'node')}")

    start = None if sample is None else partial(start_on_sample, rows=sample)
    engine, size = out_of_core(coding.engine), hand_over or HAND_OVER
    grown = LevelGrower(engine, shape, k, hand_over=size, threads=coding.threads).grow(on_level, start)
    recoding = build_recoding(grown.tree, domains, points=cut_points)
    used = np.flatnonzero(grown.sizes).astype(np.int32)
    return Anonymized(recoding, domains=domains, columns=shape.columns, used=used, levels=grown.levels)


def used_nodes(nodes: NDArray[np.int32]) -> NDArray[np.int32]:
    """The different nodes of rows, ascending."""
    is_used = np.zeros(int(nodes.max(initial=-1)) + 1, np.bool_)
    is_used[nodes] = True
    return np.flatnonzero(is_used).astype(np.int32)
