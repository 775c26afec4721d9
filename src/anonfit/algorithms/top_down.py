# SPDX-License-Identifier: Apache-2.0
"""Top-down refinement of a table: codes it, refines its columns from the top or from a given recoding, and gives the
recoding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.coding import TableCoding
from anonfit.algorithms.demands import Demands, requirements_of
from anonfit.algorithms.mondrian import used_nodes
from anonfit.algorithms.recounted import RecountedRows
from anonfit.algorithms.refining import Refinables, Refining, refine, refinement_log
from anonfit.algorithms.refining_columns import ColumnPart, Refined, Step
from anonfit.algorithms.result import Anonymized
from anonfit.engines.contract import CountRequest, Engine, out_of_core
from anonfit.engines.memory.forms import Constraint
from anonfit.engines.memory.layout import MASS, PERSONS, code_name, sensitive_name, target_name
from anonfit.engines.memory.refining import RowsToRefine
from anonfit.engines.tree import Grid, GridColumn
from anonfit.errors import DataError, Infeasible, RequestError, SpecError, TooManyGroups, counted
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding, build_grid, cells_of_codes
from anonfit.runtime.process import Stage, Stopping, silent, unstoppable
from anonfit.tables.scales import Cut, CutPoints, parse_cut, scale_of
from anonfit.tables.schema import (
    MISSING,
    CodedColumn,
    CodedTable,
    Column,
    Domain,
    NominalDomain,
    NominalSplit,
    OrderedDomain,
    OrdinalDomain,
    Role,
    Schema,
    code_dtype,
)
from anonfit.workload.targets import TargetRequest, Workload, is_numeric

if TYPE_CHECKING:
    import polars as pl

PAUSE = 0.5
"""Seconds between two words on progress."""
CELLS = 1 << 26
"""Values of a column times classes of the target that are counted, eight bytes each."""


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
    start, cuts = (None, None) if refining.start is None else start_of(refining.start, domains)
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
    end = math.inf if refining.seconds is None else monotonic() + refining.seconds
    with stopping() as is_stopped:
        refined = refine(
            rows,
            requirements,
            refining=refining,
            start=start,
            stop=lambda: monotonic() >= end or is_stopped(),
            progress=_progress(stage),
        )
    stage("Routing rows")
    parts, rests = _parts_of(refined, coded)
    recoding = build_grid(parts, rests, domains, points=cut_points, given=cuts)
    cells = cells_of_codes(recoding, domains)
    assert isinstance(recoding.shape, Grid)
    nodes = recoding.shape.nodes([of_code[codes] for of_code, codes in zip(cells, rows.codes, strict=True)])
    log = refinement_log(refined, recoding.columns, cells)
    result = placed(coding, recoding, nodes, domains)
    return replace(result, steered={target.column: False}, refinements=log)


def placed(coding: TableCoding, recoding: Recoding, nodes: NDArray[np.int32], domains: Sequence[Domain]) -> Anonymized:
    """A recoding with the node of every row, or (out of core) of every group of equal rows."""
    columns = tuple(domain.coded() for domain in domains)
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
    """Rows that an engine counts: the groups of those that are alike in all codes, each one row with so many persons.
    Where these are too many, cells are counted, and once more with every refinement.
    """
    engine, width = out_of_core(coding.engine), len(columns)
    persons = (PERSONS,) if coding.count is not None else ()
    by = (*map(code_name, range(width)), target_name(0), *map(sensitive_name, range(len(constraints))))
    try:
        [counted] = engine.count([CountRequest((0,), by, (persons, *([(MASS,)] if weighted else ())))])
    except TooManyGroups:
        mass = (MASS,) if weighted else persons
        return RecountedRows(engine, columns, constraints, classes, persons, mass, coding.threads)
    codes = tuple(own.astype(code_dtype(column.size)) for own, column in zip(counted.by, columns, strict=False))
    table = CodedTable(columns, codes, len(counted.nodes), counted.sums[0].astype(np.uint32))
    sensitive = counted.by[width + 1 :].astype(np.uint32)
    of_groups = [replace(constraint, codes=own) for constraint, own in zip(constraints, sensitive, strict=True)]
    return RowsToRefine(table, counted.by[width], counted.sums[1] if weighted else None, of_groups, coding.threads)


def _parts_of(refined: Refined, columns: Sequence[CodedColumn]) -> tuple[list[NDArray[np.int32]], list[int]]:
    """Of every column the part of each code, and the part that is suppressed, -1 without one."""
    parts, rests = [], []
    for column, column_parts in zip(columns, refined.parts, strict=True):
        part_of, rest = np.zeros(column.size, np.int32), -1
        for number, part in enumerate(column_parts):
            part_of[np.array(part.codes, np.int64)] = number
            rest = number if part.is_rest else rest
        parts.append(part_of)
        rests.append(rest)
    return parts, rests


def _single_target(
    workload: Workload, schema: Schema, values: Callable[[str], pl.Series]
) -> tuple[TargetRequest, Column]:
    """The one target, which has classes; `values` gives what a column holds."""
    count, fault = len(workload.targets), ""
    if count != 1:
        raise SpecError([f"method.algorithm = 'tdr' refines for the classes of one target; found {count} targets."])
    [target] = workload.targets
    column = next(column for column in schema.columns if column.name == target.column)
    if column.role == Role.QUASI_IDENTIFIER:
        fault = "cannot be a quasi-identifier."
    elif is_numeric(target, column, values(target.column), workload.objective):
        fault = "is a number; give it classes or equal_width, or type = 'nominal'."
    if fault:
        raise SpecError([f"method.algorithm = 'tdr': the target '{target.column}' {fault}"])
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


Parts = tuple[ColumnPart, ...]
"""Of a column."""
Cuts = tuple[Cut, ...]


def start_of(recoding: Recoding, domains: Sequence[Domain]) -> tuple[tuple[Parts, ...], tuple[Cuts, ...]]:
    """The parts of a recoding in which every column is divided by itself, in the codes of a table, and the cuts between
    them, which stay also where one side has no row.
    """
    if not isinstance(recoding.shape, Grid):
        raise RequestError(
            "the recoding to start from divides columns together; top-down refinement starts from one that it made "
            "itself (version 2 in docs/recoding.md)."
        )
    known = dict(
        zip(recoding.quasi_identifiers, zip(recoding.columns, recoding.shape.columns, strict=True), strict=True)
    )
    if known.keys() != {domain.name for domain in domains}:
        raise RequestError("the recoding to start from is one of other quasi-identifiers than the table has.")
    parts, cuts = zip(*(_column(domain, *known[domain.name]) for domain in domains), strict=True)
    return parts, cuts


def _column(domain: Domain, column: RecodedColumn, grid: GridColumn) -> tuple[Parts, Cuts]:
    """A column's parts in codes, and the cuts between them."""
    if isinstance(domain, OrderedDomain) and isinstance(column, OrderedCells):
        cuts = _cuts(domain, column, grid)
        cells = column.cells_on_axis(domain.values, domain.dtype)
        if (cells < 0).any():
            raise _misfit(domain, "has values outside the domain that it declares")
        return _runs(domain, column, cells, grid), cuts
    if isinstance(domain, OrdinalDomain) and isinstance(column, OrdinalCells):
        if domain.order != column.order:
            raise _misfit(domain, "has another order there")
        cells = np.arange(len(domain.order), dtype=np.int32) + int(column.has_missing)
        return _runs(domain, column, cells, grid), ()
    if isinstance(domain, NominalDomain) and isinstance(column, NominalCells):
        named = _disclosed if domain.split == NominalSplit.SUBSET else _nodes
        return named(domain, column, grid), ()
    raise _misfit(domain, "is of another kind there (numbers, dates, words in an order, or names)")


def _misfit(domain: Domain, why: str) -> RequestError:
    return RequestError(
        f"the recoding to start from does not fit: column '{domain.name}' {why}; mend it, or start without it."
    )


def _cuts(domain: OrderedDomain, column: OrderedCells, grid: GridColumn) -> Cuts:
    """The cuts between parts; one between cells of the same part is none."""
    scale, shift = scale_of(domain.dtype), int(column.has_missing)
    if scale is None or (scale != column.scale and not (scale.is_number and column.scale.is_number)):
        raise _misfit(domain, "has cuts of another kind there")
    cuts = tuple(cut for cut, parts in zip(column.cuts, np.diff(grid.part_of[shift:]).tolist(), strict=True) if parts)
    if domain.declared:
        low, high = (parse_cut(end, scale) for end in domain.declared)
        if not all(low < cut <= high for cut in cuts):  # type: ignore[operator]
            raise _misfit(domain, "has cuts outside its domain")
    return cuts


def _runs(
    domain: OrderedDomain | OrdinalDomain, column: RecodedColumn, cells: NDArray[np.int32], grid: GridColumn
) -> Parts:
    """Runs of codes that lie in one part, from the cells of codes that are not missing."""
    if domain.has_missing:
        if not column.has_missing:
            raise _misfit(domain, "has missing values, which it does not know")
        cells = np.append(np.int32(MISSING), cells)
    parts = grid.part_of[cells]
    edges = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(parts)]
    return tuple(ColumnPart(range(first, stop)) for first, stop in pairwise(edges) if stop > first)


def _nodes(domain: NominalDomain, column: NominalCells, grid: GridColumn) -> Parts:
    """Nodes of the table's taxonomy, each one of the recoding's parts."""
    taxonomy, shift = domain.taxonomy, int(domain.has_missing)
    places = [column.taxonomy.leaf_position.get(leaf) for leaf in taxonomy.leaves]
    if None in places:
        raise _misfit(domain, "has a taxonomy with other leaves than there")
    cells = np.array([place + int(column.has_missing) for place in places if place is not None], np.int32)
    parts = grid.part_of[cells]
    if shift:
        parts = np.append(grid.part_of[MISSING] if column.has_missing else -1, parts)
    if (parts == parts[0]).all():
        return (ColumnPart(range(len(parts)), 0),)
    top: dict[tuple[int, int], int] = {}  # the topmost node over each run of leaves
    for node, run in enumerate(zip(taxonomy.first_leaf, taxonomy.last_leaf, strict=True)):
        top.setdefault(run, node)
    nodes = []
    for first, *rest in (np.flatnonzero(parts == number).tolist() for number in dict.fromkeys(parts.tolist())):
        last = rest[-1] if rest else first
        over = top.get((first - shift, last - shift))
        is_missing = bool(shift) and first == last == MISSING
        if last - first != len(rest) or (over is None and not is_missing):
            raise _misfit(domain, "has a part there that is no node of its taxonomy")
        nodes.append(ColumnPart(range(first, last + 1), None if is_missing else over))
    return tuple(sorted(nodes, key=lambda part: part.codes[0]))


def _disclosed(domain: NominalDomain, column: NominalCells, grid: GridColumn) -> Parts:
    """The values that are disclosed, and the rest. Those that the recoding has no name for are in the rest."""
    if (np.delete(np.bincount(grid.part_of), [] if grid.rest < 0 else [grid.rest]) > 1).any():
        raise _misfit(domain, "has several values in one part there, and no taxonomy that names them")

    def is_shown(leaf: str) -> bool:
        cell = column.taxonomy.leaf_position[leaf] + int(column.has_missing)
        return int(grid.part_of[cell]) != grid.rest

    shift, places = int(domain.has_missing), domain.taxonomy.leaf_position
    named = [leaf for leaf in column.taxonomy.leaves if leaf != column.other and is_shown(leaf)]
    absent = [leaf for leaf in named if leaf not in places or leaf == domain.other]
    if absent:
        raise Infeasible(
            f"the recoding to start from discloses {counted(len(absent), 'value')} of column '{domain.name}' that too "
            "few persons have, or none; suppress them there (-1), or start without it."
        )
    codes = [places[leaf] + shift for leaf in named]
    if domain.other is not None and column.other is not None and is_shown(column.other):
        codes.append(places[domain.other] + shift)
    if shift and column.has_missing and int(grid.part_of[MISSING]) != grid.rest:
        codes.append(MISSING)
    shown = tuple(ColumnPart(range(code, code + 1)) for code in sorted(codes))
    rest = tuple(sorted(set(range(len(places) + shift)) - set(codes)))
    return (*shown, ColumnPart(rest, is_rest=True)) if rest else shown
