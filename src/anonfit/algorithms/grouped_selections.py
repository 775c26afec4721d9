# SPDX-License-Identifier: Apache-2.0
"""Selections over a table that is known by its values: they are coded without its rows, and answered some rows at a
time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from anonfit.algorithms.grouped import GroupedTable, no_rows
from anonfit.algorithms.mondrian import SelectionAnswers, persons_of
from anonfit.criteria.targets import CodedSelections, Signatures, signatures_of
from anonfit.engines.contract import CountRequest, Engine
from anonfit.engines.levels.shape import signature_name
from anonfit.recoding.building import cells_of_codes
from anonfit.recoding.imprecision import Answers, answer
from anonfit.recoding.recoding import Recoding
from anonfit.tables.schema import Column, Domain, OrderedDomain, code_dtype
from anonfit.workload.coding import Classes, selection_boundaries, with_boundaries
from anonfit.workload.predicates import ColumnKind, Predicate, kinds_of
from anonfit.workload.selections import AskedSelections, SelectionRequest, ask_selections, predicates_of
from anonfit.workload.truth import ColumnValues, Rows

if TYPE_CHECKING:
    import polars as pl

__all__ = ["GroupedSelections", "answer_batches", "domains_with_faces", "no_frame", "predicates_outside"]


def no_frame(engine: Engine) -> pl.DataFrame:
    """A frame of an engine's columns without rows."""
    import polars as pl

    return pl.DataFrame(schema=dict(engine.schema))


def predicates_outside(
    engine: Engine, requests: Sequence[SelectionRequest], columns: Sequence[Column]
) -> tuple[Predicate, ...]:
    """The predicates whose boundaries an engine's columns must have."""
    return predicates_of(requests, columns, no_frame(engine))


def domains_with_faces(domains: Sequence[Domain], predicates: Sequence[Predicate]) -> list[Domain]:
    """Domains that have the boundaries of predicates."""
    return [
        with_boundaries(domain, selection_boundaries(predicates, domain))[0]
        if isinstance(domain, OrderedDomain)
        else domain
        for domain in domains
    ]


class _GroupedValues:
    """The values of a table's columns."""

    def __init__(self, table: GroupedTable) -> None:
        self.table = table
        self.known: dict[str, ColumnValues] = {}

    def column(self, kind: ColumnKind) -> ColumnValues:
        """The values of a column."""
        name = kind.declared.name
        if name not in self.known:
            with no_rows():
                self.known[name] = ColumnValues(kind, self.table.groups(name).frame[name])
        return self.known[name]


class GroupedSelections:
    """The selections of a workload over a table whose rows an engine has."""

    def __init__(
        self,
        table: GroupedTable,
        requests: Sequence[SelectionRequest],
        columns: Sequence[Column],
        domains: Sequence[Domain],
    ) -> None:
        """`domains` have the boundaries of the requests."""
        self.table, self.values = table, _GroupedValues(table)
        kinds = kinds_of(columns, no_frame(table.engine))
        self.asked: AskedSelections = ask_selections(requests, kinds, domains, self.values)
        self.classes: list[Classes] = []

    def add_fields(self) -> None:
        """Let rows hold the classes of the raw columns that they are selected by."""
        for number, kind in enumerate(self.asked.coder.raw_columns):
            column = self.values.column(kind)
            classes = self.asked.coder.classes(column)
            codes = classes.of_value[column.places].astype(code_dtype(len(classes.truths)))
            self.table.add(signature_name(number), kind.declared.name, codes)
            self.classes.append(classes)

    def coded(self) -> tuple[CodedSelections, Signatures]:
        """The selections over codes, without rows, and how classes become signatures; the rows are coded."""
        names = tuple(signature_name(number) for number in range(len(self.classes)))
        sizes = [len(one.truths) for one in self.classes]
        signatures = Signatures()
        if names:
            counted = self.table.engine.count([CountRequest((0,), names, ((),))])[0]
            signatures, _ = signatures_of(sizes, list(counted.by), counted.by.shape[1])
        truths = [one.truths for one in self.classes]
        return self.asked.coder.coded(signatures, truths, np.zeros(0, np.int64)), signatures


def answer_batches(
    asked: AskedSelections, recoding: Recoding, batches: Iterable[pl.DataFrame], count: str | None
) -> SelectionAnswers:
    """How well selections can be answered from regions, given the raw rows some at a time; `count` is the column of how
    many persons a row stands for.
    """
    cells = cells_of_codes(recoding, asked.coder.domains)
    weights = np.array([one.weight for one in asked.coder.asked], np.float64)
    nothing = np.zeros(len(weights), np.int64)
    found = Answers(nothing, nothing, nothing, weights)
    for frame in batches:
        rows, counts = Rows(frame), None
        if count is not None:
            persons = persons_of(len(frame), frame[count], None).counts
            counts = None if persons is None else persons.astype(np.int64)
        own = answer(
            asked.coder.of_rows(rows),
            recoding.boxes,
            recoding.nodes(recoding.cells(frame)),
            cells=cells,
            true=rows.count(asked.predicates, counts=counts),
            counts=counts,
        )
        true, answered = found.true + own.true, found.answered + own.answered
        found = replace(found, true=true, kept=true, answered=answered)
    return SelectionAnswers(tuple(one.name for one in asked.coder.asked), found, asked.warnings)
