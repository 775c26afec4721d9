# SPDX-License-Identifier: Apache-2.0
"""The groups of one requirement in top-down refinement, and what a refinement makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Division", "Grouping", "Refinement", "Table"]

Table: TypeAlias = NDArray[np.int64]

CELLS = 1 << 22
"""Cells of a table that is kept; a larger one is counted anew, some slots at a time, whenever it is needed."""


@dataclass(frozen=True, slots=True)
class Refinement:
    """A part of a column, by number, that is refined.

    children: (code,) the child that a code of the part comes to, -1 for other codes; numbers: (child,) their parts.
    `moving` are the codes whose rows may come to another group. `disclosed` is the slot of a value that is disclosed
    (child 1, while child 0 stays what it was), -1 where children are slots.
    """

    column: int
    part: int
    children: NDArray[np.int32]
    numbers: NDArray[np.int32]
    moving: range
    disclosed: int = -1


@dataclass(frozen=True, slots=True)
class Division:
    """What a refinement would make of the groups of a requirement: persons and number of each. (group, child)"""

    persons: Table
    targets: NDArray[np.int32]

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Where rows of a group part. (group, child)"""
        filled = self.persons > 0
        changed: NDArray[np.bool_] = filled & (filled.sum(axis=1) > 1)[:, None]
        return changed


@dataclass(slots=True)
class Grouping:
    """The groups of a requirement.

    groups: (row,); persons: (group,); parts: (group, column) its part of each column. tables: by column, how many
    persons of a group would come to each slot, and how many of them to no other; these are one array where every row
    has persons of its own. (group, slot)
    """

    columns: tuple[int, ...]
    groups: NDArray[np.int32]
    persons: NDArray[np.int64]
    parts: NDArray[np.int32]
    used: int = 1
    tables: dict[int, tuple[Table, Table]] = field(default_factory=dict)

    @classmethod
    def of_all(cls, columns: tuple[int, ...], rows: int, persons: int) -> Grouping:
        """All rows in one group."""
        room = 16
        found = np.zeros(room, np.int64)
        found[0] = persons
        return cls(columns, np.zeros(rows, np.int32), found, np.zeros((room, len(columns)), np.int32))

    def parts_of(self, column: int) -> NDArray[np.int32]:
        """The part of a column that each group has. (group,)"""
        return self.parts[: self.used, self.columns.index(column)]

    def divided(self, refinement: Refinement, persons: Table) -> Division:
        """The groups that come of children with so many persons: the largest child of a group keeps its number, or
        what stays suppressed; the others get new ones. persons: (group, child)
        """
        mine = self.parts_of(refinement.column) == refinement.part
        filled = (persons > 0) & mine[:, None]
        groups = np.flatnonzero(mine)
        keeps = np.argmax((filled if refinement.disclosed >= 0 else persons)[groups], axis=1)
        targets = np.full(persons.shape, -1, np.int32)
        targets[groups, keeps] = groups
        others = filled.copy()
        others[groups, keeps] = False
        targets[others] = np.arange(self.used, self.used + np.count_nonzero(others))
        return Division(np.where(filled, persons, 0), targets)

    def take(self, refinement: Refinement, division: Division) -> NDArray[np.int32]:
        """Take the groups of a division as they are now; their numbers. Rows and tables are left to be changed."""
        groups, children = np.nonzero(division.persons)
        targets: NDArray[np.int32] = division.targets[groups, children]
        used = max(self.used, int(targets.max(initial=-1)) + 1)
        self._reserve(used)
        self.parts[targets] = self.parts[groups]
        self.parts[targets, self.columns.index(refinement.column)] = refinement.numbers[children]
        self.persons[targets] = division.persons[groups, children]
        self.used = used
        return targets

    def _reserve(self, groups: int) -> None:
        """Make room for so many groups; tables that get too large are given up."""
        room = len(self.persons)
        if groups <= room:
            return
        more = max(groups, 2 * room) - room
        self.persons = np.append(self.persons, np.zeros(more, np.int64))
        self.parts = np.concatenate([self.parts, np.zeros((more, len(self.columns)), np.int32)])
        for column, (table, alone) in list(self.tables.items()):
            if (room + more) * table.shape[1] > CELLS:
                del self.tables[column]
                continue
            wider = np.concatenate([table, np.zeros((more, table.shape[1]), np.int64)])
            self.tables[column] = wider, wider if alone is table else np.zeros_like(wider)
