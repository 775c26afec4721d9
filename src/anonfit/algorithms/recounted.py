# SPDX-License-Identifier: Apache-2.0
"""Top-down refinement of rows out of core, where even the groups of rows that are alike are too many: cells take
their place, which are no finer than the next step needs.

A cell is a run of codes of every column. Runs end where parts end, and where parts would be divided next, so that all
rows of a cell go the same way. When a part is refined, its pieces are parts with divisions of their own: an engine
counts their cells anew, in one grouped scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.contract import Counted, Counting, CountRequest, first_of_run
from anonfit.engines.memory.forms import Constraint
from anonfit.engines.memory.layout import code_name, sensitive_name, target_name
from anonfit.engines.memory.refining import ByClass, Groups
from anonfit.engines.memory.refining_kernels import Division, Refinement
from anonfit.engines.tree import combined
from anonfit.tables.schema import CodedColumn, CodedTable, Codes, code_dtype


class CellGroups(Groups):
    """The groups of all requirements, of cells that an engine counts."""

    def __init__(self, rows: RecountedRows, requirements: Sequence[tuple[int, ...]], silent: frozenset[int]) -> None:
        columns, constraints = rows.columns, rows.constraints
        self.source = rows
        self.width = len(columns)
        self.starts = [np.arange(column.size) == 0 for column in columns]
        self.fields = [code_name(place) for place in range(len(columns))]
        self.fields += [sensitive_name(place) for place in range(len(constraints))]
        self.types = [code_dtype(column.size) for column in columns]
        counted = self._counted(None)
        total = int(counted.sums[0].sum())
        # Cells may have very many persons.
        self.number_type = np.uint32 if total <= np.iinfo(np.uint32).max else np.int64
        table = CodedTable(
            columns, self._codes_of(counted), len(counted.nodes), counted.sums[0].astype(self.number_type)
        )
        of_cells = self._of_cells(counted, constraints)
        super().__init__(table, requirements, silent=silent, constraints=of_cells, threads=rows.threads)

    def watch(self, column: int, slots: NDArray[np.int32], width: int, *, by_value: bool) -> None:
        """Foresee what refinements of a column would leave, for cells that come to one slot each."""
        self._part(column, slots)
        super().watch(column, slots, width, by_value=by_value)

    def divide(self, refinement: Refinement) -> dict[int, Division]:
        """What a refinement would make of the groups of each requirement that has its column, by number."""
        self._part(refinement.column, refinement.children)
        return super().divide(refinement)

    def refine(self, refinement: Refinement, divisions: dict[int, Division]) -> None:
        """Make a refinement. The slots of its column must be those of its children already."""
        if refinement.column in self.watched:
            self._part(refinement.column, self.watched[refinement.column].slots)
        super().refine(refinement, divisions)

    # --- cells ------------------------------------------------------------------------------------------------------

    def _part(self, column: int, labels: NDArray[np.int32]) -> None:
        """Part the cells of a column between codes that have different labels. labels: (code,)"""
        known = np.flatnonzero(self.starts[column])
        begins = np.flatnonzero(labels[1:] != labels[:-1]) + 1
        new = begins[~self.starts[column][begins]]
        if not len(new):
            return
        first = int(known[np.searchsorted(known, new[0], side="right") - 1])
        after = int(np.searchsorted(known, new[-1], side="right"))
        stop = int(known[after]) if after < len(known) else len(labels)
        self.starts[column][new] = True
        self._replace(column, known, first, stop)

    def _replace(self, column: int, known: NDArray[np.int64], first: int, stop: int) -> None:
        """Count the cells anew that have some codes of a column; `known` are the runs they were in."""
        counted = self._counted((self.fields[column], first, stop))
        codes = self._codes_of(counted)
        inside = (self.codes[column] >= first) & (self.codes[column] < stop)
        old, kept = np.flatnonzero(inside), np.flatnonzero(~inside)
        before = [first_of_run(own, known) if place == column else own for place, own in enumerate(codes)]
        from_cell = old[_places([own[old] for own in self.codes], before, self.sizes)]
        for grouping in self.groupings:
            grouping.groups = np.concatenate([grouping.groups[kept], grouping.groups[from_cell]])
        self.codes = [np.concatenate([own[kept], new]) for own, new in zip(self.codes, codes, strict=True)]
        self.persons = np.concatenate([self.persons[kept], counted.sums[0].astype(self.number_type)])
        self.constraints = [
            replace(held, codes=np.concatenate([held.codes[kept], new.codes]))
            for held, new in zip(self.constraints, self._of_cells(counted, self.constraints), strict=True)
        ]
        self.rows = len(self.persons)
        self.moved = np.empty(self.rows, np.uint32), np.empty(self.rows, np.int32), np.empty(self.rows, np.int32)
        self.by_code = {}

    def _counted(self, within: tuple[str, int, int] | None) -> Counted:
        """The cells of all rows, or of those with some codes of a field."""
        runs = [() if starts.all() else tuple(np.flatnonzero(starts).tolist()) for starts in self.starts]
        runs += [()] * (len(self.fields) - self.width)
        request = CountRequest((0,), tuple(self.fields), (self.source.persons,), tuple(runs), within)
        return self.source.engine.count([request])[0]

    def _codes_of(self, counted: Counted) -> tuple[Codes, ...]:
        return tuple(codes.astype(dtype) for codes, dtype in zip(counted.by, self.types, strict=False))

    def _of_cells(self, counted: Counted, constraints: Sequence[Constraint]) -> list[Constraint]:
        """Constraints with the sensitive values of the cells that were counted."""
        values = counted.by[self.width :].astype(np.uint32)
        return [replace(constraint, codes=codes) for constraint, codes in zip(constraints, values, strict=True)]


def _places(held: Sequence[NDArray[Any]], asked: Sequence[NDArray[Any]], sizes: Sequence[int]) -> NDArray[np.int64]:
    """Where combinations of codes that are asked for stand among those that are held."""
    together = [np.concatenate(pair).astype(np.int64) for pair in zip(held, asked, strict=True)]
    numbers = combined(together, sizes)
    place = np.full(int(numbers.max(initial=-1)) + 1, -1, np.int64)
    place[numbers[: len(held[0])]] = np.arange(len(held[0]))
    places: NDArray[np.int64] = place[numbers[len(held[0]) :]]
    assert (places >= 0).all(), "a cell that was not there before"
    return places


@dataclass(slots=True)
class RecountedRows:
    """Rows of an engine that are to be refined; `classes` is how many the target has, and `persons` and `mass` name the
    fields of how many persons a row stands for and of how much it weighs, if these are not one.
    """

    engine: Counting
    columns: tuple[CodedColumn, ...]
    constraints: Sequence[Constraint]
    classes: int
    persons: tuple[str, ...]
    mass: tuple[str, ...]
    threads: int | None = None
    held: CellGroups | None = None

    @property
    def codes(self) -> Sequence[Codes]:
        """The first codes of cells, which are no coarser than groups."""
        assert self.held is not None
        return self.held.codes

    def by_class(self) -> list[ByClass]:
        """What every column tells of the classes, in one scan a column."""
        by_column = []
        for place, column in enumerate(self.columns):
            request = CountRequest((0,), (code_name(place), target_name(0)), (self.mass,))
            counted = self.engine.count([request])[0]
            counts = np.zeros((column.size, self.classes), np.int64)
            counts[counted.by[0], counted.by[1]] = counted.sums[0]
            by_column.append((counts, np.bincount(counted.by[0], minlength=column.size) > 0))
        return by_column

    def groups(self, requirements: Sequence[tuple[int, ...]], silent: frozenset[int]) -> Groups:
        """The groups of requirements, of which those in `silent` foresee nothing."""
        self.held = CellGroups(self, requirements, silent)
        return self.held
