# SPDX-License-Identifier: Apache-2.0
"""The groups of a requirement, and the kernels that count and divide them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.memory.count import at, persons_at
from anonfit.engines.memory.layout import Int
from anonfit.runtime.compiling import inner, kernel

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
        of_group = np.zeros(room, np.int64)
        of_group[0] = persons
        return cls(columns, np.zeros(rows, np.int32), of_group, np.zeros((room, len(columns)), np.int32))

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


@kernel
def count_classes(codes: Any, classes: Any, weights: Any, counts: Any) -> None:
    """Add the weights of rows to counts (code, class)."""
    for row in range(codes.shape[0]):
        counts[at(codes[at(row)]), at(classes[at(row)])] += persons_at(weights, row)


@inner
def _row(order: Any, place: Int) -> Any:
    """The row at a place of a list of rows; an empty list has all of them in their order."""
    return np.int64(order[at(place)]) if order.shape[0] > 0 else np.int64(place)


@kernel
def order_by_code(codes: Any, places: Any, order: Any) -> None:
    """List rows by their codes; `places` holds the first place of each code and is moved on."""
    for row in range(codes.shape[0]):
        code = at(codes[at(row)])
        order[at(places[code])] = row
        places[code] += 1


@kernel
def count_cells(
    codes: Any, slots: Any, groups: Any, persons: Any, order: Any, start: Int, stop: Int, table: Any
) -> None:
    """Add the persons of rows to a table (group, slot)."""
    for place in range(start, stop):
        row = _row(order, place)
        slot = slots[at(codes[at(row)])]
        if slot >= 0:
            table[at(groups[at(row)]), at(slot)] += persons_at(persons, row)


@kernel
def count_entities(
    codes: Any, slots: Any, groups: Any, entities: Any, table: Any, alone: Any, stamps: Any, marks: Any
) -> None:
    """Count in tables (group, slot) the entities that have a row there, and those that have no row elsewhere in the
    group. Rows are sorted by entity.

    stamps: (group, slot) the last entity seen there; marks: (3, group) the last entity seen in the group, its first
    slot, and the last entity seen in more than one slot. All -1 at first.
    """
    for row in range(codes.shape[0]):
        entity, group = np.int64(entities[at(row)]), at(groups[at(row)])
        slot = np.int64(slots[at(codes[at(row)])])
        if slot >= 0 and stamps[group, at(slot)] != entity:
            stamps[group, at(slot)] = entity
            table[group, at(slot)] += 1
        if marks[0, group] != entity:
            marks[0, group] = entity
            marks[1, group] = slot
            if slot >= 0:
                alone[group, at(slot)] += 1
        elif marks[1, group] != slot and marks[2, group] != entity:
            marks[2, group] = entity
            if marks[1, group] >= 0:
                alone[group, at(marks[1, group])] -= 1


@kernel
def move(codes: Any, children: Any, groups: Any, targets: Any, order: Any, start: Int, stop: Int, lists: Any) -> Any:
    """Give rows the group that their child of a refined part has in their group, and list those whose group is another
    one, with the group they had; how many they are.

    children: (code,) -1 where the code is not refined; targets: (group, child); lists: rows, old and new groups
    """
    rows, old, new = lists
    moved = np.int64(start)
    for place in range(start, stop):
        row = _row(order, place)
        child = children[at(codes[at(row)])]
        if child >= 0:
            group = groups[at(row)]
            target = targets[at(group), at(child)]
            if target != group:
                groups[at(row)] = target
                rows[at(moved)] = row
                old[at(moved)] = group
                new[at(moved)] = target
                moved += 1
    return moved - start


@kernel
def shift(codes: Any, slots: Any, persons: Any, rows: Any, old: Any, new: Any, table: Any) -> None:
    """Move the persons of rows from one group to another in a table (group, slot)."""
    for index in range(rows.shape[0]):
        row = rows[at(index)]
        slot = slots[at(codes[at(row)])]
        if slot >= 0:
            number = persons_at(persons, row)
            table[at(old[at(index)]), at(slot)] -= number
            table[at(new[at(index)]), at(slot)] += number


@kernel
def least_by_part(table: Any, parts: Any, used: Int, least: Any) -> None:
    """For each part, the fewest persons of a slot of its groups, if that is less. parts: (group,)"""
    for group in range(used):
        part = at(parts[at(group)])
        for slot in range(table.shape[1]):
            persons = table[at(group), at(slot)]
            if 0 < persons < least[part]:
                least[part] = persons


@kernel
def least_by_slot(table: Any, alone: Any, persons: Any, parts: Any, used: Int, least: Any) -> None:
    """For each slot, the fewest persons that it, or the rest without it, has in a group of part 0, if that is less."""
    for group in range(used):
        if parts[at(group)] != 0:
            continue
        for slot in range(table.shape[1]):
            fewest = table[at(group), at(slot)]
            if fewest > 0:
                rest = persons[at(group)] - alone[at(group), at(slot)]
                if 0 < rest < fewest:
                    fewest = rest
                if fewest < least[at(slot)]:
                    least[at(slot)] = fewest


@kernel
def count_values(
    codes: Any, children: Any, groups: Any, places: Any, values: Any, persons: Any, entities: Any, counts: Any
) -> None:
    """Count persons of each value of a sensitive column in the groups that a refinement would make.

    places: (group, child) the number of that group; counts: (group, value) of the groups whose number it has. With
    entities, by which rows are sorted, each counts once for a value in a group.
    """
    stamps = np.full(counts.shape if entities.shape[0] > 0 else (1, 1), -1, np.int64)
    for row in range(codes.shape[0]):
        child = children[at(codes[at(row)])]
        if child < 0:
            continue
        place = places[at(groups[at(row)]), at(child)]
        if place < 0 or place >= counts.shape[0]:
            continue
        value = at(values[at(row)])
        if entities.shape[0] == 0:
            counts[at(place), value] += persons_at(persons, row)
        elif stamps[at(place), value] != entities[at(row)]:
            stamps[at(place), value] = entities[at(row)]
            counts[at(place), value] += 1
