# SPDX-License-Identifier: Apache-2.0
"""Random recodings over few cells, with splits by runs and by sets, and plain questions about them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from anonfit.engines.tree import LEAF, Tree
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding
from anonfit.tables.scales import Scale
from anonfit.tables.schema import ColumnType
from anonfit.tables.taxonomy import Taxonomy

Parts = list[tuple[int, ...]]
"""The cells that a node holds of each column."""


@st.composite
def cell_trees(draw: st.DrawFn, sizes: Sequence[int], *, by_sets: Sequence[bool]) -> Tree:
    """A tree that tiles columns of these many cells; columns may be split by sets where that is said."""
    column, children, start, set_of = [], [], [0], []
    sets: list[Any] = []
    waiting: deque[Parts] = deque([[tuple(range(size)) for size in sizes]])
    while waiting:
        parts = waiting.popleft()
        open_columns = [index for index, cells in enumerate(parts) if len(cells) > 1]
        if not open_columns or len(column) > 12 or draw(st.integers(0, 3)) == 0:
            column.append(LEAF)
            children.append(0)
            set_of.append(-1)
            continue
        index = draw(st.sampled_from(open_columns))
        cells = parts[index]
        if by_sets[index] and draw(st.booleans()):
            chosen = draw(st.sets(st.sampled_from(cells), min_size=1, max_size=len(cells) - 1))
            divided = [tuple(cell for cell in cells if (cell in chosen) == wanted) for wanted in (True, False)]
            set_of.append(len(sets))
            sets.append(np.array(sorted(chosen), np.int32))
        else:
            starts = sorted({cells[0]} | draw(st.sets(st.sampled_from(cells[1:]), min_size=1, max_size=3)))
            ends = [*starts[1:], cells[-1] + 1]
            divided = [
                tuple(cell for cell in cells if low <= cell < high) for low, high in zip(starts, ends, strict=True)
            ]
            set_of.append(-1)
        column.append(index)
        children.append(len(divided))
        start.extend(part[0] for part in divided)
        waiting.extend([*parts[:index], part, *parts[index + 1 :]] for part in divided)
    arrays = [np.array(entries, np.int32) for entries in (column, children, start, set_of)]
    return Tree(arrays[0], arrays[1], arrays[2], np.full(len(column), -1, np.int32), arrays[3], tuple(sets))


def random_cell_tree(
    rng: np.random.Generator, sizes: Sequence[int], *, by_sets: Sequence[bool], nodes: int, deep: bool = False
) -> Tree:
    """A tree of about so many nodes; sets may hold cells that their node has not, and may divide several nodes.

    A deep one grows from its last part on, a flat one from its first.
    """
    column, children, part_starts, set_of, sets = [LEAF], [0], [0], [-1], []
    below: list[list[int]] = [[]]
    waiting: list[tuple[int, Parts]] = [(0, [tuple(range(size)) for size in sizes])]
    while waiting and len(column) < nodes:
        node, parts = waiting.pop(-1 if deep else 0)
        open_columns = [index for index, cells in enumerate(parts) if len(cells) > 1]
        if not open_columns:
            continue
        index = int(rng.choice(open_columns))
        cells = parts[index]
        if by_sets[index] and rng.random() < 0.7:
            chosen = _some_set(rng, cells, sets, sizes[index])
            divided = [tuple(cell for cell in cells if (cell in sets[chosen]) == wanted) for wanted in (True, False)]
            set_of[node] = chosen
        else:
            starts = sorted({cells[0], *rng.choice(cells[1:], int(rng.integers(1, 4))).tolist()})
            ends = [*starts[1:], cells[-1] + 1]
            divided = [
                tuple(cell for cell in cells if low <= cell < high) for low, high in zip(starts, ends, strict=True)
            ]
        column[node], children[node] = index, len(divided)
        for part in divided:
            below[node].append(len(column))
            waiting.append((len(column), [*parts[:index], part, *parts[index + 1 :]]))
            for entries, value in ((column, LEAF), (children, 0), (part_starts, part[0]), (set_of, -1)):
                entries.append(value)
            below.append([])
    order = [0]
    for node in order:
        order.extend(below[node])
    arrays = [np.array(entries, np.int32)[order] for entries in (column, children, part_starts, set_of)]
    before = np.full(len(column), -1, np.int32)
    return Tree(arrays[0], arrays[1], arrays[2], before, arrays[3], tuple(np.array(one, np.int32) for one in sets))


def _some_set(rng: np.random.Generator, cells: tuple[int, ...], sets: list[list[int]], size: int) -> int:
    """The number of a set that divides these cells: one that is there, or a new one, in any order."""
    for number in rng.permutation(len(sets)).tolist()[:2]:
        if max(sets[number]) < size and 0 < len(set(sets[number]) & set(cells)) < len(cells):
            return number
    chosen = rng.choice(cells, int(rng.integers(1, len(cells))), replace=False).tolist()
    others = [cell for cell in range(size) if cell not in cells and rng.random() < 0.3]
    sets.append(rng.permutation([*chosen, *others]).tolist())
    return len(sets) - 1


def cells_held(tree: Tree, node: int, column: int, size: int) -> tuple[int, ...]:
    """The cells that a node holds of a column, by going up to the root and asking every split on the way."""
    parent = np.repeat(np.arange(len(tree.column)), tree.children)
    cells = set(range(size))
    while node > 0:
        above = int(parent[node - 1])
        if tree.column[above] == column:
            children = [child for child in range(1, len(tree.column)) if parent[child - 1] == above]
            place = children.index(node)
            if tree.set_of[above] >= 0:
                members = set(tree.sets[tree.set_of[above]].tolist())
                cells &= members if place == 0 else cells - members
            else:
                cells = {cell for cell in cells if place == 0 or cell >= tree.start[node]}
                if place + 1 < len(children):
                    cells = {cell for cell in cells if cell < tree.start[children[place + 1]]}
        node = above
    return tuple(sorted(cells))


NAMES = st.sampled_from(
    [
        "a",
        "b",
        "other",
        "*",
        "**",
        "missing",
        "not missing",
        "missing or a",
        "[20, 25)",
        "< 5",
        "≥ 90",
        "{a, b}",
        '"',
        "a, b",
        "a;b",
    ]
    + [
        "a~b",
        "a-b",
        "-5",
        "",
        " a",
        "a ",
        "a\nb",
        "\t",
        "O'Neil",
        "<",
        "[",
        "é",
        "日本",
        "\u2028",
        "\x7f",
        "\x85",
        "1e-05",
        "{}",
        "}",
        "] ",
    ]
) | st.text(max_size=4)


@st.composite
def nominal_cells(draw: st.DrawFn, name: str, *, most: int = 5) -> NominalCells:
    """A nominal column with odd names, flat or with inner nodes, perhaps with a leaf of unnamed values."""
    names = draw(st.lists(NAMES, min_size=1, max_size=most, unique=True))
    inner = draw(st.lists(NAMES, max_size=2, unique=True))
    leaves = [{"name": one} for one in names]
    groups = [word for word in inner if word not in names]
    root = next(word for word in ("*", "**", "***", "****") if word not in [*names, *groups])
    if groups and len(names) > 2:
        cut = draw(st.integers(1, len(names) - 1))
        children: list[Any] = [{"name": groups[0], "children": leaves[:cut]}, *leaves[cut:]]
    else:
        children = leaves
    taxonomy = Taxonomy.from_tree({"name": root, "children": children})
    other = draw(st.none() | st.sampled_from(names))
    return NominalCells(name, taxonomy, draw(st.booleans()), other)


@st.composite
def ordered_cells(draw: st.DrawFn, name: str) -> OrderedCells:
    """Numbers, dates or times with some cuts, open or in a domain."""
    scale = draw(st.sampled_from(Scale))
    if scale.is_number:
        whole = st.integers(-(2**60), 2**60) | st.integers(-5, 5)
        fractions = st.floats(-1e6, 1e6).map(lambda value: value + 0.0) | st.floats(-1e300, 1e300)
        numbers = whole if scale == Scale.WHOLE else whole | fractions
        found: list[Any] = sorted(draw(st.lists(numbers, max_size=4, unique_by=float)), key=float)
        if scale == Scale.WHOLE and draw(st.booleans()):
            found[1:-1] = [number - 0.5 if abs(number) < 2**50 else number for number in found[1:-1]]
    else:
        moments = st.dates() if scale == Scale.DATE else st.datetimes()
        found = [moment.isoformat() for moment in sorted(draw(st.lists(moments, max_size=4, unique=True)))]
    kind = ColumnType.CONTINUOUS if scale.is_number else ColumnType.DATE
    domain = (found[0], found[-1]) if len(found) > 1 and draw(st.booleans()) else ()
    cuts = tuple(found[1:-1] if domain else found)
    closed = scale == Scale.WHOLE and draw(st.booleans())
    return OrderedCells(name, kind, scale, cuts, draw(st.booleans()), domain, closed=closed)


@st.composite
def ordinal_cells(draw: st.DrawFn, name: str) -> OrdinalCells:
    """Odd words in an order."""
    words = draw(st.lists(NAMES.filter(bool), min_size=1, max_size=5, unique=True))
    return OrdinalCells(name, tuple(words), draw(st.booleans()))


@st.composite
def recodings(draw: st.DrawFn) -> Recoding:
    """A recoding of one to three columns of any kind."""
    kinds = (ordered_cells, ordinal_cells, nominal_cells)
    columns: list[RecodedColumn] = [
        draw(draw(st.sampled_from(kinds))(f"c{index}")) for index in range(draw(st.integers(1, 3)))
    ]
    by_sets = [isinstance(column, NominalCells) for column in columns]
    return Recoding(tuple(columns), draw(cell_trees([column.size for column in columns], by_sets=by_sets)))


def points(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Every combination of cells."""
    return list(product(*(range(size) for size in sizes)))
