# SPDX-License-Identifier: Apache-2.0
"""Small tables and targets written by hand, and a tree in short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anonfit.criteria.objectives import SplitObjective
from anonfit.criteria.targets import ClassTarget, NumberTarget
from anonfit.engines.tree import LEAF, Tree
from anonfit.tables.scales import fixed_point
from anonfit.tables.schema import CodedColumn, CodedTable, SplitMode, code_dtype
from anonfit.testing.reference.choosing import Guided
from anonfit.testing.reference.records import PlainNode, Records
from strategies import taxonomy_of


def ordered(positions: Sequence[float], *, missing: bool = False) -> CodedColumn:
    """A column of values at these positions."""
    found = np.array([0.0] * missing + list(positions))
    return CodedColumn("ordered", len(found), SplitMode.ORDERED, missing, found)


def nominal(mode: SplitMode, shape: list[object], *, missing: bool = False) -> CodedColumn:
    """A column over the leaves of a tree."""
    taxonomy = taxonomy_of(shape)
    size = len(taxonomy.leaves) + missing
    return CodedColumn(mode.name, size, mode, missing, np.zeros(size), taxonomy)


def table(
    *columns: tuple[CodedColumn, Sequence[int]],
    counts: Sequence[int] | None = None,
    entities: Sequence[int] | None = None,
) -> CodedTable:
    """A table of columns with the codes of each row."""
    return CodedTable(
        tuple(column for column, _ in columns),
        tuple(np.array(codes, code_dtype(column.size)) for column, codes in columns),
        len(columns[0][1]),
        None if counts is None else np.array(counts, np.uint32),
        None if entities is None else np.array(entities, np.uint32),
    )


def classes(found: Sequence[int] | str, **settings: Any) -> ClassTarget:
    """A nominal target; a text has a class per letter, in the order of the alphabet."""
    numbers = [ord(one) - ord("a") for one in found] if isinstance(found, str) else list(found)
    return ClassTarget("class", np.array(numbers, np.int64), max(numbers) + 1, **settings)


def numbers(found: Sequence[float], *, persons: int = 1000, **settings: Any) -> NumberTarget:
    """A numeric target."""
    scale = fixed_point(min(found), max(found), persons=persons)
    return NumberTarget("number", scale.quantize(np.array(found, np.float64)), scale, **settings)


Divided = tuple[int, list[int] | set[int]]
"""The column of a split, and the first code of each part or the set of codes that the first part takes."""


def divisions(tree: Tree) -> list[Divided]:
    """The splits of a tree in breadth-first order."""
    found: list[Divided] = []
    for node in np.flatnonzero(tree.column != LEAF):
        first = int(tree.first_child[node])
        runs: list[int] | set[int] = tree.start[first : first + int(tree.children[node])].tolist()
        if tree.set_of[node] >= 0:
            runs = set(tree.sets[tree.set_of[node]].tolist())
        found.append((int(tree.column[node]), runs))
    return found


def guided(found: CodedTable, purpose: SplitObjective) -> tuple[Guided, PlainNode]:
    """The criterion and the root of a table."""
    records = Records(found, 1, purpose, ())
    tile = [list(range(column.size)) for column in found.columns]
    return Guided(records, purpose), PlainNode(list(range(found.rows)), tile, selecting=False)
