# SPDX-License-Identifier: Apache-2.0
"""The regions of a tree tile the domain: every combination of cells lies in exactly one, and rows are routed to it."""

from __future__ import annotations

import numpy as np
from cell_trees import cell_trees, points
from hypothesis import given
from hypothesis import strategies as st

from anonfit.engines.memory.route import route_table
from anonfit.engines.tree import LEAF, Tree, boxes_of
from anonfit.tables.schema import CodedColumn, CodedTable, SplitMode, code_dtype
from strategies import route, tries


def tree_of(*nodes: tuple[int, int, int, int], sets: tuple[list[int], ...] = ()) -> Tree:
    """A tree written by hand: column, children, start and set of each node."""
    column, children, start, set_of = (np.array(entries, np.int32) for entries in zip(*nodes, strict=True))
    found = tuple(np.array(cells, np.int32) for cells in sets)
    return Tree(column, children, start, np.full(len(nodes), -1, np.int32), set_of, found)


@st.composite
def trees(draw: st.DrawFn) -> tuple[Tree, list[int]]:
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    by_sets = draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))
    return draw(cell_trees(sizes, by_sets=by_sets)), sizes


@given(trees())
@tries(200)
def test_every_point_lies_in_exactly_one_region(found: tuple[Tree, list[int]]) -> None:
    tree, sizes = found
    boxes = boxes_of(tree, sizes)
    regions = np.flatnonzero(tree.column == LEAF)
    for point in points(sizes):
        holding = [
            node for node in regions if all(cell in boxes.cells(int(node), column) for column, cell in enumerate(point))
        ]
        assert holding == [route(tree, point)]


@given(trees())
@tries(100)
def test_rows_are_routed_to_the_region_that_holds_them(found: tuple[Tree, list[int]]) -> None:
    tree, sizes = found
    everywhere = points(sizes)
    columns = tuple(CodedColumn("", size, SplitMode.ORDERED, False, np.zeros(size)) for size in sizes)
    codes = tuple(
        np.array(cells, code_dtype(size)) for cells, size in zip(zip(*everywhere, strict=True), sizes, strict=True)
    )
    cells = [np.arange(size, dtype=np.int32) for size in sizes]
    nodes = route_table(CodedTable(columns, codes, len(everywhere)), tree, cells, sizes, threads=1)
    assert nodes.tolist() == [route(tree, point) for point in everywhere]


@given(trees())
@tries(100)
def test_the_children_of_a_node_share_out_its_cells(found: tuple[Tree, list[int]]) -> None:
    tree, sizes = found
    boxes = boxes_of(tree, sizes)
    for node in np.flatnonzero(tree.column != LEAF):
        first, column = int(tree.first_child[node]), int(tree.column[node])
        below = [boxes.cells(child, column) for child in range(first, first + int(tree.children[node]))]
        assert sorted(cell for part in below for cell in part) == list(boxes.cells(int(node), column))


def test_a_set_keeps_its_cells_and_its_sibling_the_others() -> None:
    tree = tree_of((0, 2, 0, 0), (-1, 0, 0, -1), (-1, 0, 1, -1), sets=([0, 2],))
    boxes = boxes_of(tree, [4])
    assert boxes.cells(1, 0) == (0, 2)
    assert boxes.cells(2, 0) == (1, 3)


def test_a_set_can_be_cut_by_a_run_and_is_kept_while_another_column_is_split() -> None:
    tree = tree_of(
        (0, 2, 0, 0),  # {1, 3, 4} against {0, 2, 5}
        (1, 2, 1, -1),  # the first part: split by the other column
        (0, 2, 0, -1),  # the second part: 0 against 2 and 5
        (-1, 0, 0, -1),
        (-1, 0, 1, -1),
        (-1, 0, 0, -1),
        (-1, 0, 2, -1),
        sets=([1, 3, 4],),
    )
    boxes = boxes_of(tree, [6, 2])
    assert [boxes.cells(node, 0) for node in (3, 4, 5, 6)] == [(1, 3, 4), (1, 3, 4), (0,), (2, 5)]
    assert [boxes.cells(node, 1) for node in (3, 4, 5, 6)] == [(0,), (1,), (0, 1), (0, 1)]


def test_a_row_whose_cell_is_not_known_stays_at_the_node_that_asks() -> None:
    tree = tree_of((0, 2, 0, -1), (1, 2, 0, -1), (-1, 0, 1, -1), (-1, 0, 0, -1), (-1, 0, 1, -1))
    columns = tuple(CodedColumn("", 3, SplitMode.ORDERED, False, np.zeros(3)) for _ in range(2))
    rows = [(0, 0), (0, 2), (2, 0), (1, 2)]  # code 2 is not known
    codes = tuple(np.array(cells, np.uint8) for cells in zip(*rows, strict=True))
    unknown = [np.array([0, 1, -1], np.int32)] * 2
    assert route_table(CodedTable(columns, codes, 4), tree, unknown, [2, 2], threads=1).tolist() == [3, 1, 0, 2]


def test_one_region_holds_everything() -> None:
    boxes = boxes_of(Tree.single(), [3, 1])
    assert boxes.cells(0, 0) == (0, 1, 2)
    assert boxes.cells(0, 1) == (0,)
