# SPDX-License-Identifier: Apache-2.0
"""The selections of a workload over a table that is being coded, and how well a recoding can answer them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.coding import TableCoding, without_row_numbers
from anonfit.algorithms.result import Anonymized, SelectionAnswers
from anonfit.criteria.targets import CodedSelections, Signatures, signatures_of
from anonfit.engines.contract import CountRequest, Engine, InMemory, out_of_core
from anonfit.engines.memory.engine import MemoryEngine
from anonfit.engines.memory.layout import signature_name
from anonfit.recoding.imprecision import Answers, answer
from anonfit.recoding.recoding import Recoding, cells_of_codes
from anonfit.tables.schema import Domain, OrderedDomain, Role, Schema, persons_of
from anonfit.workload.coding import ValueClasses, selection_boundaries, with_boundaries
from anonfit.workload.predicates import ColumnKind, Predicate, kinds_of
from anonfit.workload.selections import AskedSelections, SelectionRequest, ask_selections, predicates_of
from anonfit.workload.truth import ColumnValues, RawTable, TableValues

if TYPE_CHECKING:
    import polars as pl


def typed_frame(engine: Engine) -> pl.DataFrame:
    """A frame of an engine's columns, with or without rows."""
    import polars as pl

    return engine.frame if isinstance(engine, InMemory) else pl.DataFrame(schema=dict(engine.schema))


def selection_predicates(engine: Engine, requests: Sequence[SelectionRequest], schema: Schema) -> tuple[Predicate, ...]:
    """The predicates whose boundaries an engine's columns must have."""
    return predicates_of(requests, schema.columns, typed_frame(engine))


class _DistinctValues(TableValues):
    """The values of a table's columns, whichever rows have them."""

    def column(self, kind: ColumnKind) -> ColumnValues:
        """The values of a column."""
        with without_row_numbers():
            return super().column(kind)


class CodingSelections:
    """The selections of a workload over a table that is being coded."""

    def __init__(self, coding: TableCoding, requests: Sequence[SelectionRequest], domains: Sequence[Domain]) -> None:
        """`domains` may have the boundaries of the requests already."""
        engine, schema = coding.engine, coding.schema
        self.coding = coding
        self.values: TableValues = (
            RawTable(engine.frame) if isinstance(engine, InMemory) else _DistinctValues(coding.column)
        )
        predicates = selection_predicates(engine, requests, schema)
        faced = [
            with_boundaries(domain, selection_boundaries(predicates, domain))[0]
            if isinstance(domain, OrderedDomain)
            else domain
            for domain in domains
        ]
        kinds = kinds_of(schema.columns, typed_frame(engine))
        self.asked: AskedSelections = ask_selections(requests, kinds, faced, self.values)
        self.classes: list[ValueClasses] = []

    def add_fields(self) -> None:
        """Let rows hold the classes of the raw columns that they are selected by."""
        if self.coding.by_row:
            return
        for number, kind in enumerate(self.asked.coder.raw_columns):
            column = self.values.column(kind)
            classes = self.asked.coder.classes(column)
            codes = classes.of_value[column.places]
            self.coding.add_class(signature_name(number), kind.declared.name, codes, len(classes.truths))
            self.classes.append(classes)

    def coded(self) -> tuple[CodedSelections, Signatures]:
        """The selections over codes, and how classes become signatures; the rows are coded."""
        if isinstance(self.values, RawTable):
            return self.asked.coder.of_rows(self.values), Signatures()
        names = tuple(signature_name(number) for number in range(len(self.classes)))
        sizes = [len(classes.truths) for classes in self.classes]
        signatures = Signatures()
        if names:
            counted = out_of_core(self.coding.engine).count([CountRequest((0,), names, ((),))])[0]
            signatures, _ = signatures_of(sizes, list(counted.by), counted.by.shape[1])
        truths = [classes.truths for classes in self.classes]
        return self.asked.coder.coded(signatures, truths, np.zeros(0, np.int64)), signatures


def answer_batches(
    asked: AskedSelections,
    recoding: Recoding,
    batches: Iterable[tuple[pl.DataFrame, NDArray[np.int32]]],
    count: str | None,
) -> SelectionAnswers:
    """How well selections can be answered from regions, given the raw rows some at a time with the node of each;
    `count` is the column of how many persons a row stands for.
    """
    cells = cells_of_codes(recoding, asked.coder.domains)
    names = tuple(selection.name for selection in asked.coder.asked)
    weights = np.array([selection.weight for selection in asked.coder.asked], np.float64)
    true, answered = np.zeros((2, len(weights)), np.int64)
    for frame, nodes in batches:
        rows = RawTable(frame)
        counts = None if count is None else persons_of(len(frame), frame[count], None).of_rows()
        selected = rows.count(asked.predicates, counts=counts)
        coded = asked.coder.of_rows(rows)
        true += selected
        answered += answer(coded, recoding.boxes, nodes, cells=cells, true=selected, counts=counts).answered
    return SelectionAnswers(names, Answers(true, true, answered, weights), asked.warnings)


def answer_selections(
    requests: Sequence[SelectionRequest], schema: Schema, frame: pl.DataFrame, result: Anonymized, *, k: int
) -> SelectionAnswers:
    """How well selections can be answered from regions that were made of a frame, whatever they were made for."""
    coding = TableCoding(MemoryEngine(frame), schema)
    columns = schema.quasi_identifiers
    domains = coding.code(columns, [k] * len(columns))
    asked = CodingSelections(coding, requests, domains).asked
    nodes = np.empty(len(frame), np.int32)
    nodes[result.numbers] = result.nodes
    return answer_batches(asked, result.recoding, [(frame, nodes)], schema.name_of(Role.COUNT))
