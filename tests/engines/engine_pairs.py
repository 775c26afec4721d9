# SPDX-License-Identifier: Apache-2.0
"""Both engines on the same request, and whether they grew the same tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from guarded import as_diverse

from anonfit.criteria.objectives import MEDIAN, SplitObjective
from anonfit.engines.memory import engine as engine
from anonfit.engines.memory.engine import Growth
from anonfit.engines.memory.forms import Constraint
from anonfit.engines.tree import LEAF, Tree
from anonfit.tables.schema import CodedTable
from anonfit.testing import reference
from strategies import persons

Rows = np.ndarray[Any, np.dtype[np.int64]]
FIELDS = ("column", "children", "start", "before", "set_of")


@dataclass(frozen=True)
class Asked:
    """A table, and what its regions must hold and are for."""

    table: CodedTable
    k: int
    purpose: SplitObjective = MEDIAN
    constraints: Sequence[Constraint] = ()

    def grown(self, *, threads: int = 1, subtree: int = 4) -> Growth:
        """What the memory engine makes of it."""
        return engine.grow(
            self.table, self.k, self.purpose, constraints=self.constraints, threads=threads, subtree=subtree
        )

    def plain(self) -> Tree:
        """The tree of the plain engine."""
        return reference.grow(self.table, self.k, self.purpose, diversity=as_diverse(self.constraints))

    def __str__(self) -> str:
        table, purpose = self.table, self.purpose
        kinds = [(column.mode.name, column.size, column.has_missing) for column in table.columns]
        targets = [(type(target).__name__, target.column, target.weight) for target in purpose.targets]
        rest = f"{purpose.rule.name}, min_gain {purpose.min_gain}, all_cuts {purpose.all_cuts}, on {purpose.split_on}"
        asked = [model.name for one in self.constraints for model in one.models]
        return (
            f"k = {self.k}, {table.rows} rows of {kinds}, counts {table.counts is not None}, entities "
            f"{table.entities is not None}; {targets}, selections {purpose.selections is not None}, {rest}, masses "
            f"{purpose.masses is not None}; {asked}"
        )


def same(one: Tree, other: Tree) -> bool:
    """Whether two trees are equal in every node and every set."""
    if not all(np.array_equal(getattr(one, name), getattr(other, name)) for name in FIELDS):
        return False
    return [codes.tolist() for codes in one.sets] == [codes.tolist() for codes in other.sets]


def check_same(asked: Asked, *, threads: int = 1, subtree: int = 4, note: str = "") -> Tree:
    """Hold the memory engine's tree, and which rows it has put together, against the plain engine's, and give it."""
    expected = asked.plain()
    growth = asked.grown(threads=threads, subtree=subtree)
    assert same(growth.tree, expected), f"{note}: {asked}"
    together = {tuple(sorted(run.tolist())) for run in np.split(growth.numbers, growth.begins[1:])}
    assert together == {tuple(rows.tolist()) for rows in rows_of_regions(expected, asked.table).values()}, note
    return growth.tree


def rows_of_regions(tree: Tree, table: CodedTable) -> dict[int, Rows]:
    """The rows of every region that has any, divided node by node."""
    rows_of: dict[int, Rows] = {0: np.arange(table.rows)}
    first_child = tree.first_child
    for node in np.flatnonzero(tree.column != LEAF).tolist():
        rows, first, children = rows_of.pop(node), int(first_child[node]), int(tree.children[node])
        codes = table.codes[tree.column[node]][rows].astype(np.int64)
        if tree.set_of[node] >= 0:
            parts = 1 - np.isin(codes, tree.sets[tree.set_of[node]]).astype(np.int64)
        else:
            parts = np.searchsorted(tree.start[first : first + children], codes, side="right") - 1
        for part in range(children):
            rows_of[first + part] = rows[parts == part]
    return {node: rows for node, rows in rows_of.items() if len(rows)}


def check_rows(growth: Growth, table: CodedTable) -> None:
    """The packed rows are all rows, region by region."""
    numbers = growth.numbers.tolist()
    assert sorted(numbers) == list(range(table.rows))
    node_of = {row: node for node, rows in rows_of_regions(growth.tree, table).items() for row in rows.tolist()}
    nodes = [node_of[row] for row in numbers]
    changes = sum(one != other for one, other in pairwise(nodes))
    assert changes == len(set(nodes)) - 1


def is_allowed(asked: Asked, rows: Rows) -> bool:
    """Whether some rows have k persons and what the models ask, counted one by one."""
    table = asked.table
    if persons(table, rows.tolist()) < asked.k:
        return False
    for one in asked.constraints:
        counts = np.zeros(one.column.size, np.int64)
        if table.entities is not None:
            for _, code in set(zip(table.entities[rows].tolist(), one.codes[rows].tolist(), strict=True)):
                counts[code] += 1
        else:
            np.add.at(counts, one.codes[rows], 1 if table.counts is None else table.counts[rows].astype(np.int64))
        if not all(bool(model.allows(counts)) for model in one.models):
            return False
    return True
