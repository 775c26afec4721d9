# SPDX-License-Identifier: Apache-2.0
"""The groups of every requirement in top-down refinement, kept while columns are refined.

For every requirement each row has the number of its group. For each of its columns that may still be refined a table
holds how many persons of a group would come to each piece of the column's part there, so that the anonymity that is
left after any refinement is read from small tables. A refinement moves rows out of their groups, all but those of the
largest piece, and only moved rows change the tables of the other columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.memory import refining_kernels as kernels
from anonfit.engines.memory.forms import Constraint
from anonfit.engines.memory.refining_kernels import Division, Grouping, Refinement, Table
from anonfit.runtime.process import thread_count
from anonfit.tables.schema import CodedColumn, CodedTable, Codes

NOBODY = np.iinfo(np.int64).max
"""Persons of the smallest group, where there is no group."""
FEW = 16
"""Rows are found by their codes if they are less than one in so many; else all rows are read in their order."""


@dataclass(frozen=True, slots=True)
class _Watched:
    slots: NDArray[np.int32]
    width: int
    by_value: bool


ByClass: TypeAlias = tuple[Table, NDArray[np.bool_]]
"""What a column has of every class at every code (code, class), and whether a code has rows (code,)."""


class Groups:
    """The groups of all requirements. For those in `silent` nothing is foreseen."""

    def __init__(
        self,
        table: CodedTable,
        requirements: Sequence[tuple[int, ...]],
        *,
        silent: frozenset[int] = frozenset(),
        constraints: Sequence[Constraint] = (),
        threads: int | None = None,
    ) -> None:
        order: Any = slice(None) if table.entities is None else np.argsort(table.entities, kind="stable")
        self.codes = [np.ascontiguousarray(codes[order]) for codes in table.codes]
        self.entities = np.zeros(0, np.uint32) if table.entities is None else table.entities[order]
        self.persons = np.zeros(0, np.uint32) if table.counts is None else table.counts
        self.constraints = [
            replace(constraint, codes=np.ascontiguousarray(constraint.codes[order])) for constraint in constraints
        ]
        self.silent = silent
        self.names = [column.name for column in table.columns]
        self.sizes = [column.size for column in table.columns]
        self.watched: dict[int, _Watched] = {}
        self.by_code: dict[int, tuple[NDArray[np.uint32], NDArray[np.int64]]] = {}
        self.threads = thread_count(threads)
        self.pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None
        self.rows = table.rows
        self.moved = np.empty(self.rows, np.uint32), np.empty(self.rows, np.int32), np.empty(self.rows, np.int32)
        whole = self.rows if table.counts is None else int(table.counts.sum(dtype=np.int64))
        if table.entities is not None:
            whole = int(np.count_nonzero(np.diff(self.entities.astype(np.int64), prepend=-1)))
        self.groupings = [Grouping.of_all(columns, self.rows, whole) for columns in requirements]

    def close(self) -> None:
        """Let the threads go."""
        if self.pool:
            self.pool.shutdown()

    def each(self, task: Callable[..., None], arguments: Iterable[tuple[Any, ...]]) -> None:
        """Do a task for each of its arguments, with all threads."""
        calls = list(arguments)
        run = self.pool.map if self.pool and len(calls) > 1 else map
        list(run(lambda call: task(*call), calls))

    # --- what there is ----------------------------------------------------------------------------------------------

    def anonymity(self, requirement: int) -> int:
        """The persons of the smallest group of a requirement."""
        grouping = self.groupings[requirement]
        return int(grouping.persons[: grouping.used].min())

    def number(self, requirement: int) -> int:
        """The number of groups of a requirement."""
        return self.groupings[requirement].used

    def watch(self, column: int, slots: NDArray[np.int32], width: int, *, by_value: bool) -> None:
        """Foresee what refinements of a column would leave.

        The slots (code,) are borrowed; who owns them may set some to -1, for parts that are never refined.
        """
        self.watched[column] = _Watched(slots, width, by_value)
        holders = [grouping for number, grouping in enumerate(self.groupings) if number not in self.silent]
        self.each(self._recount, [(grouping, column) for grouping in holders if column in grouping.columns])

    def forget(self, column: int) -> None:
        """Foresee nothing more for a column."""
        self.watched.pop(column, None)
        for grouping in self.groupings:
            grouping.tables.pop(column, None)

    def least(self, requirement: int, column: int, candidates: int) -> Table:
        """The fewest persons that each refinement of a column would leave in a group that it divides.

        (part,) or, where values are disclosed, (slot,); NOBODY where it divides no group.
        """
        grouping, by_value = self.groupings[requirement], self.watched[column].by_value
        least = np.full(candidates, NOBODY, np.int64)
        parts = np.ascontiguousarray(grouping.parts_of(column))
        for first, table, alone in self._tables(grouping, column):
            if by_value:
                some = least[first : first + table.shape[1]]
                kernels.least_by_slot(table, alone, grouping.persons, parts, grouping.used, some)
            else:
                kernels.least_by_part(table, parts, grouping.used, least)
        return least

    # --- refining ---------------------------------------------------------------------------------------------------

    def divide(self, refinement: Refinement) -> dict[int, Division]:
        """What a refinement would make of the groups of each requirement that has its column, by number."""
        return {
            number: grouping.divided(refinement, self._persons_of_children(grouping, refinement))
            for number, grouping in enumerate(self.groupings)
            if refinement.column in grouping.columns
        }

    def allowed(self, refinement: Refinement, divisions: dict[int, Division]) -> bool:
        """Whether the models of sensitive columns allow all groups that a refinement would make."""
        return all(
            self._values_allowed(self.groupings[number], refinement.column, refinement.children, division.changed)
            for number, division in divisions.items()
        )

    def all_allowed(self) -> bool:
        """Whether the models of sensitive columns allow all groups that there are."""
        for grouping in self.groupings:
            column = grouping.columns[0]
            whole, every = np.zeros(self.sizes[column], np.int32), np.ones((grouping.used, 1), np.bool_)
            if not self._values_allowed(grouping, column, whole, every):
                return False
        return True

    def refine(self, refinement: Refinement, divisions: dict[int, Division]) -> None:
        """Make a refinement. The slots of its column must be those of its children already."""
        for number, division in divisions.items():
            self._apply(self.groupings[number], refinement, division)

    def _count(
        self, grouping: Grouping, column: int, slots: NDArray[np.int32], tables: tuple[Table, Table], *moving: range
    ) -> None:
        """Add all rows, or those of some codes, to tables that do not count them yet."""
        codes, (table, alone) = self.codes[column], tables
        if not len(self.entities):
            order, start, stop = self._rows_with(column, *moving)
            kernels.count_cells(codes, slots, grouping.groups, self.persons, order, start, stop, table)
            return
        stamps = np.full(table.shape, -1, np.int64)
        marks = np.full((3, len(table)), -1, np.int64)
        kernels.count_entities(codes, slots, grouping.groups, self.entities, table, alone, stamps, marks)

    def _rows_with(self, column: int, codes: range | None = None) -> tuple[NDArray[np.uint32], int, int]:
        """Where the rows with some codes are: in a list of rows from one place to another; an empty list stands for all
        rows in their order.
        """
        everywhere = np.zeros(0, np.uint32), 0, self.rows
        if codes is None:
            return everywhere
        if column not in self.by_code:
            ends = np.cumsum(np.bincount(self.codes[column], minlength=codes.stop))
            self.by_code[column] = np.zeros(0, np.uint32), np.append(0, ends)
        order, edges = self.by_code[column]
        start, stop = int(edges[codes.start]), int(edges[codes.stop])
        if FEW * (stop - start) >= self.rows:
            return everywhere
        if not len(order):
            order = np.empty(self.rows, np.uint32)
            kernels.order_by_code(self.codes[column], edges[:-1].copy(), order)
            self.by_code[column] = order, edges
        return order, start, stop

    def _new_tables(self, groups: int, width: int) -> tuple[Table, Table]:
        table = np.zeros((groups, width), np.int64)
        return table, np.zeros_like(table) if len(self.entities) else table

    def _recount(self, grouping: Grouping, column: int) -> None:
        """Count the tables of a column anew, unless they are too large to keep."""
        watched = self.watched[column]
        grouping.tables.pop(column, None)
        if len(grouping.persons) * watched.width <= kernels.CELLS:
            tables = self._new_tables(len(grouping.persons), watched.width)
            self._count(grouping, column, watched.slots, tables)
            grouping.tables[column] = tables

    def _tables(self, grouping: Grouping, column: int) -> Iterator[tuple[int, Table, Table]]:
        """The tables of a column: those that are kept, or some slots at a time; with the first slot of each."""
        if column in grouping.tables:
            yield 0, *grouping.tables[column]
            return
        watched = self.watched[column]
        step = max(kernels.CELLS // grouping.used, 1)
        for first in range(0, watched.width, step):
            number = min(step, watched.width - first)
            slots = np.where(watched.slots < first + number, watched.slots - first, -1)
            tables = self._new_tables(grouping.used, number)
            self._count(grouping, column, np.maximum(slots, -1).astype(np.int32), tables)
            yield first, *tables

    def _persons_of_children(self, grouping: Grouping, refinement: Refinement) -> Table:
        """How many persons of each group come to each child. (group, child)"""
        kept = grouping.tables.get(refinement.column)
        if kept is None:
            tables = self._new_tables(grouping.used, len(refinement.numbers))
            self._count(grouping, refinement.column, refinement.children, tables)
            return tables[0]
        table, alone = (whole[: grouping.used] for whole in kept)
        if refinement.disclosed < 0:
            return table[:, : len(refinement.numbers)]
        slot = refinement.disclosed
        return np.stack([grouping.persons[: grouping.used] - alone[:, slot], table[:, slot]], axis=1)

    def _values_allowed(
        self, grouping: Grouping, column: int, children: NDArray[np.int32], asked: NDArray[np.bool_]
    ) -> bool:
        """Whether the models of sensitive columns allow the groups `asked` (group, child) of children (code,)."""
        number = int(np.count_nonzero(asked))
        places = np.full(asked.shape, -1, np.int64)
        places[asked] = np.arange(number)
        for constraint in self.constraints:
            size = constraint.column.size
            step = max(kernels.CELLS // size, 1)
            for first in range(0, number, step):
                counts = np.zeros((min(step, number - first), size), np.int64)
                of_groups = self.codes[column], children, grouping.groups, places - first
                kernels.count_values(*of_groups, constraint.codes, self.persons, self.entities, counts)
                if not all(bool(model.allows(counts).all()) for model in constraint.models):
                    return False
        return True

    def _apply(self, grouping: Grouping, refinement: Refinement, division: Division) -> None:
        targets = grouping.take(refinement, division)
        runs = self._move(grouping, refinement, division)
        if len(self.entities):
            self.each(self._recount, [(grouping, column) for column in grouping.tables])
            return
        own = refinement.column
        self.each(self._shift, [(grouping, column, runs) for column in grouping.tables if column != own])
        # A value that is disclosed was alone in its slot, and the slot is read no more.
        if own in grouping.tables and refinement.disclosed < 0:
            slots = np.where(refinement.children >= 0, self.watched[own].slots, -1).astype(np.int32)
            grouping.tables[own][0][targets] = 0
            self._count(grouping, own, slots, grouping.tables[own], refinement.moving)

    def _move(self, grouping: Grouping, refinement: Refinement, division: Division) -> list[tuple[int, int]]:
        """Move rows to their groups; where the lists of those that moved begin and end."""
        order, start, stop = self._rows_with(refinement.column, refinement.moving)
        edges = np.linspace(start, stop, self.threads + 1).astype(int).tolist()
        runs = [(0, 0)] * self.threads

        def task(thread: int, begin: int, end: int) -> None:
            of_rows = self.codes[refinement.column], refinement.children, grouping.groups, division.targets
            runs[thread] = begin, begin + int(kernels.move(*of_rows, order, begin, end, self.moved))

        self.each(task, zip(range(self.threads), edges[:-1], edges[1:], strict=True))
        return runs

    def _shift(self, grouping: Grouping, column: int, runs: list[tuple[int, int]]) -> None:
        """Let the rows that moved change a table."""
        slots, table = self.watched[column].slots, grouping.tables[column][0]
        for start, stop in runs:
            rows, old, new = (moved[start:stop] for moved in self.moved)
            kernels.shift(self.codes[column], slots, self.persons, rows, old, new, table)


@dataclass(frozen=True, slots=True)
class RowsToRefine:
    """Coded rows, their classes from 0 on and how much each weighs in gains, by default its persons."""

    table: CodedTable
    classes: NDArray[np.integer[Any]]
    weights: NDArray[np.int64] | None = None
    constraints: Sequence[Constraint] = ()
    threads: int | None = None

    @property
    def columns(self) -> tuple[CodedColumn, ...]:
        """The columns that are refined."""
        return self.table.columns

    @property
    def codes(self) -> Sequence[Codes]:
        """The codes of every column that occur together."""
        return self.table.codes

    def by_class(self) -> list[ByClass]:
        """What every column tells of the classes."""
        return count_by_class(self.table, self.classes, self.weights)

    def groups(self, requirements: Sequence[tuple[int, ...]], silent: frozenset[int]) -> Groups:
        """The groups of requirements, of which those in `silent` foresee nothing."""
        return Groups(self.table, requirements, silent=silent, constraints=self.constraints, threads=self.threads)


def count_by_class(
    table: CodedTable, classes: NDArray[np.integer[Any]], weights: NDArray[np.integer[Any]] | None
) -> list[ByClass]:
    """For each column the weight of every class at every code (code, class), and whether a code has rows (code,).

    Rows weigh as many as their persons, unless weights are given.
    """
    masses = table.counts if weights is None else weights
    given = np.zeros(0, np.int64) if masses is None else masses.astype(np.int64)
    numbers = classes.astype(np.int64)
    width = int(numbers.max(initial=0)) + 1
    by_class = []
    for column, codes in zip(table.columns, table.codes, strict=True):
        counts = np.zeros((column.size, width), np.int64)
        kernels.count_classes(codes, numbers, given, counts)
        by_class.append((counts, np.bincount(codes, minlength=column.size) > 0))
    return by_class
