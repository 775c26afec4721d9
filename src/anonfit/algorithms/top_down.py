# SPDX-License-Identifier: Apache-2.0
"""Top-down refinement of a table: codes it, refines its columns, and gives the recoding with the region of each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.demands import Demands, guard
from anonfit.algorithms.mondrian import Anonymized, Persons
from anonfit.algorithms.refinements import Part, Requirement, Step
from anonfit.algorithms.refining import Refinables, Suppression, refine
from anonfit.algorithms.starting import Start, start_of
from anonfit.algorithms.told_refinements import told_refinements
from anonfit.criteria.refinement import Average, Criterion
from anonfit.engines.memory.refining import RowsToRefine
from anonfit.errors import DataError, SpecError
from anonfit.recoding.boxes import Grid
from anonfit.recoding.building import build_grid, cells_of_codes
from anonfit.recoding.recoding import Recoding
from anonfit.runtime.progress import Stage, Stopping, silent, unstoppable
from anonfit.tables.codebook import CodedValues, code_column
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import CodedColumn, CodedTable, Column, Domain, Role, Schema
from anonfit.workload.objectives import masses_of
from anonfit.workload.targets import TargetRequest, Workload, classes_of, is_numeric

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Refining", "anonymize_top_down", "check_sizes", "refined_recoding", "requirements_of", "single_target"]

PAUSE = 0.5
"""Seconds between two words on progress."""
CELLS = 1 << 26
"""Values of a column times classes of the target that are counted, eight bytes each."""


@dataclass(frozen=True, slots=True)
class Refining:
    """How columns are refined; the options are those of `refining.refine`."""

    criterion: Criterion = "score"
    average: Average = "containing"
    suppression: Suppression = "all"
    zero_gain: bool = False
    seconds: float | None = None
    """Refining stops after so many; None: when nothing is left to refine."""
    start: Recoding | None = None
    """What refining begins with; None: every column is one part."""


def requirements_of(demands: Demands, columns: Sequence[str]) -> tuple[Requirement, ...]:
    """The quasi-identifiers that are asked for, over columns by number; without any, all columns are one."""
    if not demands.quasi_identifiers:
        return (Requirement(tuple(range(len(columns))), demands.k),)
    place = {name: number for number, name in enumerate(columns)}
    return tuple(
        Requirement(tuple(place[name] for name in asked.columns), asked.k) for asked in demands.quasi_identifiers
    )


def anonymize_top_down(
    schema: Schema,
    frame: pl.DataFrame,
    *,
    persons: Persons,
    demands: Demands,
    workload: Workload,
    refining: Refining,
    cut_points: CutPoints,
    threads: int | None = None,
    stage: Stage = silent,
    stopping: Stopping = unstoppable,
) -> Anonymized:
    """Make a recoding of a frame's quasi-identifiers by top-down refinement: each column by itself, as fine as the
    demands allow, for the classes of one target. What was reached when refining is stopped is a recoding too.
    """
    target, column = single_target(workload, schema, lambda name: frame[name])
    guarded = guard(demands, schema, frame, counts=persons.counts, entities=persons.entities)
    stage("Coding")
    names = [one.name for one in schema.quasi_identifiers]
    requirements = requirements_of(demands, names)
    coded = _coded(schema.quasi_identifiers, frame, persons, requirements)
    domains = [one.domain for one in coded]
    table = CodedTable(
        tuple(domain.coded() for domain in domains),
        tuple(one.codes for one in coded),
        persons.rows,
        persons.counts,
        persons.entities,
    )
    start = None if refining.start is None else start_of(refining.start, domains)
    classes, _ = classes_of(target, column, frame[target.column])
    check_sizes(table.columns, int(classes.max(initial=0)) + 1, target.column)
    stage("Refining")
    recoding, nodes, told = refined_recoding(
        RowsToRefine(table, classes, _weights(workload, frame, persons), guarded, threads),
        requirements,
        domains,
        start=start,
        refining=refining,
        cut_points=cut_points,
        stage=stage,
        stopping=stopping,
    )
    numbers = np.argsort(nodes, kind="stable").astype(np.uint32)
    return Anonymized(recoding, numbers, nodes[numbers], steered={target.column: False}, refinements=told)


def refined_recoding(
    rows: Refinables,
    requirements: Sequence[Requirement],
    domains: Sequence[Domain],
    *,
    start: Start | None,
    refining: Refining,
    cut_points: CutPoints,
    stage: Stage = silent,
    stopping: Stopping = unstoppable,
) -> tuple[Recoding, NDArray[np.int32], Mapping[str, Any]]:
    """The recoding that refining coded rows gives, the node of each combination of codes that they tell of, and how it
    came to it.
    """
    is_over = _clock(refining.seconds)
    with stopping() as is_stopped:
        found = refine(
            rows,
            requirements,
            start=None if start is None else start.parts,
            criterion=refining.criterion,
            average=refining.average,
            suppression=refining.suppression,
            zero_gain=refining.zero_gain,
            stop=lambda: is_over() or is_stopped(),
            progress=_progress(stage),
        )
    stage("Routing rows")
    parts = [_part_of(column_parts, one.size) for column_parts, one in zip(found.parts, rows.columns, strict=True)]
    rests = [next((number for number, part in enumerate(some) if part.is_rest), -1) for some in found.parts]
    recoding = build_grid(parts, rests, domains, points=cut_points, given=None if start is None else start.cuts)
    cells = cells_of_codes(recoding, domains)
    assert isinstance(recoding.shape, Grid)
    nodes = recoding.shape.nodes([of_code[codes] for of_code, codes in zip(cells, rows.codes, strict=True)])
    return recoding, nodes, told_refinements(found, recoding.columns, cells)


def single_target(
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


def check_sizes(columns: Sequence[CodedColumn], number: int, target: str) -> None:
    """Refuse a target of so many classes that counting them for every value of a column would take all memory."""
    largest = max(columns, key=lambda column: column.size)
    if number * largest.size > CELLS:
        raise DataError(
            f"the target '{target}' has {number:,} classes and column '{largest.name}' {largest.size:,} values, too "
            "many to be weighed together; give the target fewer classes, or the column a taxonomy or fewer values."
        )


def _coded(
    columns: Sequence[Column], frame: pl.DataFrame, persons: Persons, requirements: Sequence[Requirement]
) -> list[CodedValues]:
    """Domains and codes of the quasi-identifiers. A value that is too rare for one of its quasi-identifiers can never
    stand alone.
    """
    found = []
    for index, column in enumerate(columns):
        k = max(one.k for one in requirements if index in one.columns)
        found.append(code_column(column, frame[column.name], persons=persons.of_groups, k=k))
    return found


def _weights(workload: Workload, frame: pl.DataFrame, persons: Persons) -> NDArray[np.int64] | None:
    """What each row counts in gains; None: its persons."""
    return None if workload.sample_weight is None else masses_of(frame[workload.sample_weight], persons.counts)


def _part_of(parts: Sequence[Part], size: int) -> NDArray[np.int32]:
    """The part of each code of a column."""
    found = np.zeros(size, np.int32)
    for number, part in enumerate(parts):
        found[np.array(part.codes, np.int64)] = number
    return found


def _clock(seconds: float | None) -> Callable[[], bool]:
    """Whether the time is over."""
    if seconds is None:
        return lambda: False
    end = monotonic() + seconds
    return lambda: monotonic() >= end


def _progress(stage: Stage) -> Callable[[Step], None]:
    """Tell now and then how many refinements were made, and the anonymity of every quasi-identifier."""
    made, last = 0, monotonic()

    def told(step: Step) -> None:
        nonlocal made, last
        made += 1
        if monotonic() - last >= PAUSE:
            last = monotonic()
            stage(f"Refining: {made} made, anonymity {', '.join(map(str, step.anonymity))}")

    return told
