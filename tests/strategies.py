# SPDX-License-Identifier: Apache-2.0
"""Random coded tables, taxonomies and frames, and the plain counting that results are checked against."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from anonfit.engines.tree import LEAF, Tree
from anonfit.tables.schema import CodedColumn, CodedTable, SplitMode, code_dtype
from anonfit.tables.taxonomy import Taxonomy


def tries(examples: int) -> settings:
    """A third of so many examples of a property, or HYPOTHESIS_TIMES as many."""
    return settings(max_examples=max(5, round(examples * float(os.environ.get("HYPOTHESIS_TIMES", "0.33")))))


Shape = list[Any] | None
"""A tree without names: a list of its branches, None for a leaf."""


# --- taxonomies -------------------------------------------------------------------------------------------------


def random_shape(rng: np.random.Generator, leaves: int, depth: int = 0) -> Shape:
    """A tree over so many leaves, in which a node may have a single child."""
    if leaves == 1 and (depth > 2 or rng.random() < 0.8):
        return None
    if depth > 3:
        return [None] * leaves
    branches = int(rng.integers(1, min(leaves, 4) + 1)) if leaves > 1 else 1
    cuts = sorted(rng.choice(np.arange(1, leaves), branches - 1, replace=False).tolist()) if branches > 1 else []
    sizes = np.diff([0, *cuts, leaves]).tolist()
    return [random_shape(rng, size, depth + 1) for size in sizes]


def taxonomy_of(shape: Shape) -> Taxonomy:
    """The taxonomy of a tree, its nodes named by their number. Built by hand, so that single-child chains stay as they are."""
    names: list[str] = []
    parents: list[int] = []
    runs: list[list[int]] = []
    leaves = 0

    def add(part: Shape, parent: int) -> None:
        nonlocal leaves
        node = len(names)
        names.append(f"n{node}")
        parents.append(parent)
        runs.append([leaves, leaves])
        if part is None:
            leaves += 1
        for child in part or []:
            add(child, node)
        runs[node][1] = leaves - 1

    add(shape or [None], -1)
    return Taxonomy(tuple(names), tuple(parents), tuple(run[0] for run in runs), tuple(run[1] for run in runs))


@st.composite
def shapes(draw: st.DrawFn, leaves: int, depth: int = 0) -> Shape:
    """The same under hypothesis."""
    if leaves == 1 and (depth > 2 or draw(st.booleans())):
        return None
    if depth > 3:
        return [None] * leaves
    cuts = draw(st.sets(st.integers(1, leaves - 1), max_size=3)) if leaves > 1 else set()
    edges = [0, *sorted(cuts), leaves]
    return [draw(shapes(high - low, depth + 1)) for low, high in pairwise(edges)]


# --- coded tables -----------------------------------------------------------------------------------------------


def _positions(steps: Sequence[int], has_missing: bool) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.concatenate([[0.0] * has_missing, np.cumsum(steps, dtype=np.float64)])


def random_column(
    rng: np.random.Generator, name: str, *, size: int | None = None, mode: SplitMode | None = None
) -> CodedColumn:
    """A column of some kind; of `size` values if that is given."""
    if mode is None:
        mode = SplitMode(int(rng.integers(0, 4)))
    has_missing = bool(rng.random() < 0.4)
    if size is None:
        size = int(rng.integers(1, 9))
        if rng.random() < (0.15 if mode == SplitMode.ORDERED else 0.1):
            size = int(rng.integers(250, 400))
    taxonomy = None if mode == SplitMode.ORDERED else taxonomy_of(random_shape(rng, size))
    steps = rng.integers(1, 5, size).tolist()
    return CodedColumn(name, size + has_missing, mode, has_missing, _positions(steps, has_missing), taxonomy)


def random_codes(rng: np.random.Generator, column: CodedColumn, rows: int) -> Any:
    """Codes of which some are frequent and some are not there."""
    shares = rng.dirichlet(np.ones(column.size) * rng.choice([0.2, 1, 5]))
    return rng.choice(column.size, rows, p=shares).astype(code_dtype(column.size))


def table_of(rng: np.random.Generator, columns: Sequence[CodedColumn], rows: int) -> CodedTable:
    """Random rows of these columns: persons, counts of persons, or several rows a person."""
    codes = tuple(random_codes(rng, column, rows) for column in columns)
    kind = rng.integers(0, 3)
    counts = rng.integers(1, 5, rows).astype(np.uint32) if kind == 1 else None
    entities = rng.integers(0, max(1, rows // 2) + 1, rows).astype(np.uint32) if kind == 2 else None
    return CodedTable(tuple(columns), codes, rows, counts, entities)


def random_table(rng: np.random.Generator) -> CodedTable:
    """1 to 60 rows of 1 to 5 columns of all kinds."""
    columns = [random_column(rng, f"c{index}") for index in range(int(rng.integers(1, 6)))]
    return table_of(rng, columns, int(rng.integers(1, 61)))


@st.composite
def coded_columns(draw: st.DrawFn, name: str) -> CodedColumn:
    """A column that shrinks to few values in order."""
    mode = draw(st.sampled_from(SplitMode))
    size = draw(st.integers(1, 8) | st.integers(255, 260))
    has_missing = draw(st.booleans())
    shape = None if mode == SplitMode.ORDERED else (draw(shapes(size)) if size < 20 else [None] * size)
    steps = draw(st.lists(st.integers(1, 9), min_size=size, max_size=size)) if size < 20 else [1] * size
    taxonomy = None if mode == SplitMode.ORDERED else taxonomy_of(shape)
    return CodedColumn(name, size + has_missing, mode, has_missing, _positions(steps, has_missing), taxonomy)


@st.composite
def coded_tables(draw: st.DrawFn) -> CodedTable:
    """A table that shrinks to few rows and columns."""
    columns = [draw(coded_columns(f"c{index}")) for index in range(draw(st.integers(1, 4)))]
    row = st.tuples(*(st.integers(0, column.size - 1) for column in columns))
    rows = draw(st.lists(row, min_size=1, max_size=30))
    codes = tuple(
        np.array([row[index] for row in rows], dtype=code_dtype(column.size)) for index, column in enumerate(columns)
    )
    numbers = st.lists(st.integers(1, 6), min_size=len(rows), max_size=len(rows))
    kind = draw(st.sampled_from(["persons", "counts", "entities"]))
    found = None if kind == "persons" else np.array(draw(numbers), dtype=np.uint32)
    return CodedTable(
        tuple(columns), codes, len(rows), found if kind == "counts" else None, found if kind == "entities" else None
    )


def reordered(table: CodedTable, order: Any) -> CodedTable:
    """The same rows in another order."""
    return replace(
        table,
        codes=tuple(codes[order] for codes in table.codes),
        counts=None if table.counts is None else table.counts[order],
        entities=None if table.entities is None else table.entities[order],
    )


# --- plain counting ---------------------------------------------------------------------------------------------


def route(tree: Tree, point: Sequence[int]) -> int:
    """The node that a point (one code or cell per column) ends in, step by step."""
    node = 0
    while tree.column[node] != LEAF:
        first = 1 + sum(int(count) for count in tree.children[:node])
        code = point[tree.column[node]]
        if tree.set_of[node] >= 0:
            node = first + (code not in tree.sets[tree.set_of[node]])
            continue
        below = [child for child in range(first, first + int(tree.children[node])) if tree.start[child] <= code]
        node = below[-1] if below else first
    return node


def persons(table: CodedTable, rows: Sequence[int]) -> int:
    """How many persons rows stand for."""
    if table.entities is not None:
        return len({int(table.entities[row]) for row in rows})
    return len(rows) if table.counts is None else sum(int(table.counts[row]) for row in rows)


def rows_by_region(table: CodedTable, tree: Tree) -> dict[int, list[int]]:
    """The rows of every region that has any."""
    found: dict[int, list[int]] = {}
    for row in range(table.rows):
        found.setdefault(route(tree, [int(codes[row]) for codes in table.codes]), []).append(row)
    return found
