# SPDX-License-Identifier: Apache-2.0
"""Mondrian: codes a table, grows its regions on an engine, and gives the recoding with the region of every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.demands import Demands, guard, refuse_infeasible
from anonfit.criteria.targets import NumberTarget
from anonfit.errors import DataError
from anonfit.recoding.building import build_recoding, cells_of_codes
from anonfit.recoding.recoding import Recoding
from anonfit.runtime.progress import Stage, silent
from anonfit.runtime.threads import thread_count
from anonfit.tables.codebook import CodedValues, code_column
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import CodedTable, Column, OrderedDomain, Schema
from anonfit.workload.objectives import LearnedWeights, learn_weights, make_objective
from anonfit.workload.targets import NOTHING, Workload

if TYPE_CHECKING:
    import polars as pl

    from anonfit.recoding.imprecision import Answers
    from anonfit.workload.predicates import Predicate
    from anonfit.workload.selections import SelectionRequest, Selections

__all__ = [
    "Anonymized",
    "Persons",
    "SelectionAnswers",
    "anonymize",
    "answer_selections",
    "coded_with_faces",
    "persons_of",
]


@dataclass(frozen=True, slots=True)
class Persons:
    """Who the rows stand for: each row a person, or by `counts` several persons, or by `entities` a person with
    several rows.
    """

    rows: int
    counts: NDArray[np.uint32] | None = None
    entities: NDArray[np.uint32] | None = None

    def total(self) -> int:
        """How many persons the table is about."""
        if self.entities is not None:
            return len(np.unique(self.entities))
        return self.rows if self.counts is None else int(self.counts.sum(dtype=np.int64))

    def of_groups(self, groups: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """How many persons each group of rows has."""
        if self.entities is not None:
            pairs = np.unique(groups.astype(np.int64) << 32 | self.entities)
            return np.bincount(pairs >> 32, minlength=count)
        if self.counts is None:
            return np.bincount(groups, minlength=count)
        return np.bincount(groups, weights=self.counts, minlength=count).astype(np.int64)


@dataclass(frozen=True, slots=True)
class SelectionAnswers:
    """How well each selection of a workload can be answered, and what should be known of some of them."""

    names: tuple[str, ...]
    answers: Answers
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Anonymized:
    """A recoding, and for the rows it was made from, region by region: their numbers and nodes."""

    recoding: Recoding
    numbers: NDArray[np.uint32]  # (place,)
    nodes: NDArray[np.int32]  # (place,)
    answers: SelectionAnswers | None = None
    steered: Mapping[str, bool] | None = None
    """The targets that steered splits, and whether each did as a number; None where that is not known."""
    refinements: Mapping[str, Any] | None = None
    """How top-down refinement came to it, as `told_refinements` says it."""
    learned: LearnedWeights | None = None
    """The weights of columns, where they were found from the rows."""


def persons_of(rows: int, counts: pl.Series | None, entities: pl.Series | None) -> Persons:
    """Who the rows of a table stand for, from its count or entity column."""
    import polars as pl

    if counts is not None:
        whole = counts.cast(pl.Int64, strict=False)
        bad = int(
            (whole.is_null() | (whole.cast(pl.Float64) != counts.cast(pl.Float64, strict=False)) | (whole < 1))
            .fill_null(value=True)
            .sum()
        )
        if bad:
            raise DataError(
                f"count column '{counts.name}': {bad} value(s) are not whole numbers of at least 1; mend them."
            )
        if rows and int(whole.to_numpy().max()) >= 2**32:
            raise DataError(f"count column '{counts.name}': a row cannot stand for more than four billion persons.")
        return Persons(rows, counts=whole.to_numpy().astype(np.uint32))
    if entities is not None:
        if entities.null_count():
            raise DataError(
                f"entity column '{entities.name}': {entities.null_count()} value(s) are missing; every row needs "
                "its person."
            )
        ranks = entities.rank("dense") - 1
        return Persons(rows, entities=ranks.to_numpy().astype(np.uint32))
    return Persons(rows)


def _coded(
    columns: Sequence[Column], frame: pl.DataFrame, persons: Persons, k: int, threads: int | None = None
) -> list[CodedValues]:
    """Domains and codes of the quasi-identifiers."""
    with ThreadPoolExecutor(thread_count(threads)) as pool:
        return list(
            pool.map(lambda column: code_column(column, frame[column.name], persons=persons.of_groups, k=k), columns)
        )


def _with_faces(
    coded: list[CodedValues], requests: Sequence[SelectionRequest], columns: Sequence[Column], frame: pl.DataFrame
) -> list[CodedValues]:
    """Domains that have the boundaries of the selections, so that they can be cut there."""
    from anonfit.workload.selections import predicates_of

    predicates = predicates_of(requests, columns, frame)
    return [coded_with_faces(one, predicates) for one in coded]


def coded_with_faces(coded: CodedValues, predicates: Sequence[Predicate]) -> CodedValues:
    """A column whose domain has the boundaries of predicates."""
    from anonfit.workload.coding import selection_boundaries, with_boundaries

    if not isinstance(coded.domain, OrderedDomain):
        return coded
    domain, places = with_boundaries(coded.domain, selection_boundaries(predicates, coded.domain))
    return CodedValues(domain, places[coded.codes])


def anonymize(
    schema: Schema,
    frame: pl.DataFrame,
    *,
    persons: Persons,
    demands: Demands,
    workload: Workload = NOTHING,
    cut_points: CutPoints,
    threads: int | None = None,
    stage: Stage = silent,
) -> Anonymized:
    """Make a recoding of a frame's quasi-identifiers by Mondrian: what the demands ask, as good for the workload as
    can be.
    """
    k = demands.k
    if workload.selections:
        from anonfit.workload.selections import refuse_guarded

        refuse_guarded(workload.selections, schema.columns, frame, is_capped=demands.max_confidence < 1.0)
    guarded = guard(demands, schema, frame, counts=persons.counts, entities=persons.entities)
    refuse_infeasible(demands, persons.total(), guarded)
    stage("Coding")
    coded = _coded(schema.quasi_identifiers, frame, persons, k, threads)
    selections = None
    if workload.used_selections:
        from anonfit.workload.selections import code_selections

        coded = _with_faces(coded, workload.used_selections, schema.columns, frame)
        selections = code_selections(workload.used_selections, schema.columns, [one.domain for one in coded], frame)
    domains = [one.domain for one in coded]
    table = CodedTable(
        tuple(domain.coded() for domain in domains),
        tuple(one.codes for one in coded),
        persons.rows,
        persons.counts,
        persons.entities,
    )
    learned = None
    if workload.weights_from is not None and not workload.is_blind:
        learned = learn_weights(workload, schema.columns, frame, table)
        workload = replace(workload, weights=learned.weights)
    if workload.denoise and workload.used_targets:
        stage("Fitting models of the targets")
    purpose = make_objective(
        workload,
        schema.columns,
        frame,
        table,
        selections=None if selections is None else selections.coded,
        threads=threads,
    )
    stage("Growing regions")
    from anonfit.engines.memory.engine import grow
    from anonfit.engines.memory.routing import make_routes, route_regions

    growth = grow(table, k, purpose, guarded=guarded, threads=threads)
    stage("Routing rows")
    recoding = build_recoding(growth.tree, domains, points=cut_points)
    sizes = [column.size for column in recoding.columns]
    cells = cells_of_codes(recoding, domains)
    routes = make_routes(recoding.tree, cells, sizes)
    nodes = route_regions(growth.rows, growth.columns, routes, growth.begins, threads=threads)
    numbers = growth.numbers
    answers = None
    if selections is not None:
        answers = _answers(selections, recoding, cells, frame, persons, numbers=numbers, nodes=nodes)
    targets = () if workload.objective.clusters else purpose.targets
    steered = {target.name: isinstance(target, NumberTarget) for target in targets}
    return Anonymized(recoding, numbers, nodes, answers, steered, learned=learned)


def _answers(
    selections: Selections,
    recoding: Recoding,
    cells: list[NDArray[np.int32]],
    frame: pl.DataFrame,
    persons: Persons,
    *,
    numbers: NDArray[np.uint32],
    nodes: NDArray[np.int32],
) -> SelectionAnswers:
    """How well the selections can be answered from the regions."""
    from anonfit.recoding.imprecision import answer
    from anonfit.workload.truth import Rows

    of_row = np.empty(persons.rows, np.int32)
    of_row[numbers] = nodes
    counts = None if persons.counts is None else persons.counts.astype(np.int64)
    true = Rows(frame).count(selections.predicates, counts=counts)
    found = answer(selections.coded, recoding.boxes, of_row, cells=cells, true=true, counts=counts)
    return SelectionAnswers(selections.coded.names, found, selections.warnings)


def answer_selections(
    requests: Sequence[SelectionRequest],
    schema: Schema,
    frame: pl.DataFrame,
    result: Anonymized,
    *,
    persons: Persons,
    k: int,
) -> SelectionAnswers:
    """How well selections can be answered from regions that were made of a frame, whatever they were made for."""
    from anonfit.workload.selections import code_selections

    coded = _with_faces(_coded(schema.quasi_identifiers, frame, persons, k), requests, schema.columns, frame)
    domains = [one.domain for one in coded]
    selections = code_selections(requests, schema.columns, domains, frame)
    cells = cells_of_codes(result.recoding, domains)
    return _answers(selections, result.recoding, cells, frame, persons, numbers=result.numbers, nodes=result.nodes)
