# SPDX-License-Identifier: Apache-2.0
"""Top-down refinement of a table: codes it, refines its columns, and gives the recoding."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.coding import TableCoding
from anonfit.algorithms.demands import Demands
from anonfit.algorithms.mondrian import used_nodes
from anonfit.algorithms.recounted import RecountedRows
from anonfit.algorithms.refining import Refinables, Refining, refine, refinement_log
from anonfit.algorithms.refining_columns import Requirement, Step
from anonfit.algorithms.result import Anonymized
from anonfit.algorithms.starting import Start, start_of
from anonfit.engines.contract import CountRequest, Engine, out_of_core
from anonfit.engines.levels.shape import MASS, PERSONS, code_name, sensitive_name, target_name
from anonfit.engines.memory.constraints import Constraint
from anonfit.engines.memory.refining import RowsToRefine
from anonfit.errors import DataError, SpecError, TooManyGroups
from anonfit.recoding.boxes import Grid
from anonfit.recoding.building import build_grid, cells_of_codes
from anonfit.recoding.recoding import Recoding
from anonfit.runtime.progress import Stage, Stopping, silent, unstoppable
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import CodedColumn, CodedTable, Column, Domain, Role, Schema, code_dtype
from anonfit.workload.targets import TargetRequest, Workload, is_numeric

if TYPE_CHECKING:
    import polars as pl

PAUSE = 0.5
"""Seconds between two words on progress."""
CELLS = 1 << 26
"""Values of a column times classes of the target that are counted, eight bytes each."""


def requirements_of(demands: Demands, columns: Sequence[str]) -> tuple[Requirement, ...]:
    """The quasi-identifiers that are asked for, over columns by number; without any, all columns are one."""
    if not demands.quasi_identifiers:
        return (Requirement(tuple(range(len(columns))), demands.k),)
    place = {name: number for number, name in enumerate(columns)}
    return tuple(
        Requirement(tuple(place[name] for name in asked.columns), asked.k) for asked in demands.quasi_identifiers
    )


def anonymize_top_down(
    engine: Engine,
    schema: Schema,
    *,
    demands: Demands,
    workload: Workload,
    refining: Refining,
    cut_points: CutPoints,
    kept: Sequence[str] = (),
    threads: int | None = None,
    stage: Stage = silent,
    stopping: Stopping = unstoppable,
) -> Anonymized:
    """Make a recoding of a table's quasi-identifiers by top-down refinement: each column by itself, as fine as the
    demands allow, for the classes of one target. What was reached when refining is stopped is a recoding too.
    """
    coding = TableCoding(engine, schema, threads)
    if not coding.by_row:
        stage("Finding values")
    target, target_column = _single_target(workload, schema, coding.column)
    constraints = coding.constraints(demands)
    if coding.by_row:
        stage("Coding")
    columns = schema.quasi_identifiers
    requirements = requirements_of(demands, [column.name for column in columns])
    # A value that is too rare for one of its quasi-identifiers can never stand alone.
    ks = [max(asked.k for asked in requirements if place in asked.columns) for place in range(len(columns))]
    domains = coding.code(columns, ks)
    coded = tuple(domain.coded() for domain in domains)
    start = None if refining.start is None else start_of(refining.start, domains)
    classes, class_count = coding.classes(target, target_column)
    _check_sizes(coded, class_count, target.column)
    weights = None if workload.sample_weight is None else coding.masses(workload.sample_weight)[0]
    if not coding.by_row:
        stage("Coding")
    engine.code(coding.fields, kept)
    rows: Refinables
    if coding.by_row:
        rows = RowsToRefine(coding.table(coded), classes, weights, constraints, threads)
    else:
        rows = _counted_rows(coding, coded, constraints, classes=class_count, weighted=weights is not None)
    stage("Refining")
    recoding, nodes, log = _refined_recoding(
        rows,
        requirements,
        domains,
        start=start,
        refining=refining,
        cut_points=cut_points,
        stage=stage,
        stopping=stopping,
    )
    result = placed(coding, recoding, nodes, domains, coded)
    return replace(result, steered={target.column: False}, refinements=log)


def placed(
    coding: TableCoding,
    recoding: Recoding,
    nodes: NDArray[np.int32],
    domains: Sequence[Domain],
    columns: tuple[CodedColumn, ...],
) -> Anonymized:
    """A recoding with the node of every row, or (out of core) of every group of equal rows."""
    used = used_nodes(nodes)
    if coding.by_row:
        numbers = np.argsort(nodes, kind="stable").astype(np.uint32)
        return Anonymized(recoding, numbers, nodes[numbers], domains=domains, columns=columns, used=used)
    out_of_core(coding.engine).route([], [0])
    return Anonymized(recoding, domains=domains, columns=columns, used=used)


def _counted_rows(
    coding: TableCoding,
    columns: tuple[CodedColumn, ...],
    constraints: Sequence[Constraint],
    *,
    classes: int,
    weighted: bool,
) -> Refinables:
    """Rows that an engine counts: the groups of those that are alike in all codes, counted once. Where these are too
    many, cells are counted, and once more with every refinement.
    """
    try:
        return _groups(coding, columns, constraints, weighted=weighted)
    except TooManyGroups:
        return RecountedRows(
            out_of_core(coding.engine),
            columns,
            constraints,
            classes=classes,
            has_counts=coding.count is not None,
            weighted=weighted,
            threads=coding.threads,
        )


def _groups(
    coding: TableCoding, columns: tuple[CodedColumn, ...], constraints: Sequence[Constraint], *, weighted: bool
) -> RowsToRefine:
    """The groups of rows that are alike in all codes, each one row with so many persons."""
    by = [code_name(place) for place in range(len(columns))]
    by += [target_name(0), *(sensitive_name(place) for place in range(len(constraints)))]
    sums = [(PERSONS,) if coding.count is not None else (), *([(MASS,)] if weighted else [])]
    counted = out_of_core(coding.engine).count([CountRequest((0,), tuple(by), tuple(sums))])[0]
    width = len(columns)
    codes = tuple(counted.by[place].astype(code_dtype(column.size)) for place, column in enumerate(columns))
    table = CodedTable(columns, codes, len(counted.nodes), counted.sums[0].astype(np.uint32))
    of_groups = [
        replace(constraint, codes=counted.by[width + 1 + place].astype(np.uint32))
        for place, constraint in enumerate(constraints)
    ]
    return RowsToRefine(table, counted.by[width], counted.sums[1] if weighted else None, of_groups, coding.threads)


def _refined_recoding(
    rows: Refinables,
    requirements: Sequence[Requirement],
    domains: Sequence[Domain],
    *,
    start: Start | None,
    refining: Refining,
    cut_points: CutPoints,
    stage: Stage,
    stopping: Stopping,
) -> tuple[Recoding, NDArray[np.int32], Mapping[str, Any]]:
    """The recoding that refining gives, the node of each combination of codes, and the log of refinements."""
    end = math.inf if refining.seconds is None else monotonic() + refining.seconds
    with stopping() as is_stopped:
        refined = refine(
            rows,
            requirements,
            refining=refining,
            start=None if start is None else start.parts,
            stop=lambda: monotonic() >= end or is_stopped(),
            progress=_progress(stage),
        )
    stage("Routing rows")
    parts, rests = [], []
    for column, column_parts in zip(rows.columns, refined.parts, strict=True):
        part_of, rest = np.zeros(column.size, np.int32), -1
        for number, part in enumerate(column_parts):
            part_of[np.array(part.codes, np.int64)] = number
            rest = number if part.is_rest else rest
        parts.append(part_of)
        rests.append(rest)
    recoding = build_grid(parts, rests, domains, points=cut_points, given=None if start is None else start.cuts)
    cells = cells_of_codes(recoding, domains)
    assert isinstance(recoding.shape, Grid)
    nodes = recoding.shape.nodes([of_code[codes] for of_code, codes in zip(cells, rows.codes, strict=True)])
    return recoding, nodes, refinement_log(refined, recoding.columns, cells)


def _single_target(
    workload: Workload, schema: Schema, values: Callable[[str], pl.Series]
) -> tuple[TargetRequest, Column]:
    """The one target, which has classes; `values` gives what a column holds."""
    if len(workload.targets) != 1:
        raise SpecError(
            [f"method.algorithm = 'tdr' refines for the classes of one target; found {len(workload.targets)} targets."]
        )
    target = workload.targets[0]
    column = next(column for column in schema.columns if column.name == target.column)
    if column.role == Role.QUASI_IDENTIFIER:
        raise SpecError([f"method.algorithm = 'tdr': the target '{target.column}' cannot be a quasi-identifier."])
    if is_numeric(target, column, values(target.column), workload.objective):
        raise SpecError(
            [
                f"method.algorithm = 'tdr': the target '{target.column}' is a number; give it classes or equal_width, "
                "or type = 'nominal'."
            ]
        )
    return target, column


def _check_sizes(columns: Sequence[CodedColumn], number: int, target: str) -> None:
    """Refuse a target of so many classes that counting them for every value of a column would take all memory."""
    largest = max(columns, key=lambda column: column.size)
    if number * largest.size > CELLS:
        raise DataError(
            f"the target '{target}' has {number:,} classes and column '{largest.name}' {largest.size:,} values, too "
            "many to be weighed together; give the target fewer classes, or the column a taxonomy or fewer values."
        )


def _progress(stage: Stage) -> Callable[[Step], None]:
    """Tell now and then how many refinements were made, and the anonymity of every quasi-identifier."""
    count, last = 0, monotonic()

    def on_step(step: Step) -> None:
        nonlocal count, last
        count += 1
        if monotonic() - last >= PAUSE:
            last = monotonic()
            stage(f"Refining: {count} made, anonymity {', '.join(map(str, step.anonymity))}")

    return on_step
