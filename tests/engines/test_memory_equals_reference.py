# SPDX-License-Identifier: Apache-2.0
"""The memory engine grows the tree that the plain engine grows, whatever the table, the order of its rows and the threads."""

from __future__ import annotations

import numpy as np
import pytest
from engine_pairs import Asked, check_rows, check_same, rows_of_regions, same
from hypothesis import given
from hypothesis import strategies as st

from anonfit.engines.memory.engine import Growth
from anonfit.engines.tree import LEAF, Tree
from anonfit.tables.schema import CodedColumn, CodedTable, SplitMode
from strategies import (
    coded_tables,
    persons,
    random_column,
    random_table,
    reordered,
    rows_by_region,
    table_of,
    taxonomy_of,
    tries,
)

BLOCK = 500


def grow(table: CodedTable, k: int, *, threads: int, subtree: int = 4) -> Growth:
    return Asked(table, k).grown(threads=threads, subtree=subtree)


def check_against_reference(table: CodedTable, k: int, *, threads: int, note: str) -> Tree:
    return check_same(Asked(table, k), threads=threads, note=note)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("block", range(8))
def test_trees_of_thousands_of_random_tables_are_equal(block: int) -> None:
    regions = 0
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        rng = np.random.default_rng(seed)
        table, k = random_table(rng), int(rng.integers(1, 9))
        regions += check_against_reference(table, k, threads=1 + seed % 2, note=f"seed {seed}").regions
    assert regions > 5 * BLOCK, "the tables are too easy"


@given(coded_tables(), st.integers(1, 8), st.sampled_from([1, 2]))
@tries(300)
def test_trees_are_equal_on_tables_that_shrink(table: CodedTable, k: int, threads: int) -> None:
    check_against_reference(table, k, threads=threads, note="")


def wide_table(mode: SplitMode, seed: int) -> CodedTable:
    """A column of more codes than two bytes hold, and two others."""
    rng = np.random.default_rng(seed)
    size = 65_530 + int(rng.integers(0, 3000))
    taxonomy = None
    if mode != SplitMode.ORDERED:
        taxonomy = taxonomy_of([[None] * len(part) for part in np.array_split(np.arange(size), 50)])
    positions = np.cumsum(rng.integers(1, 5, size)).astype(np.float64)
    wide = CodedColumn("wide", size, mode, False, positions, taxonomy)
    columns = [wide, *(random_column(rng, f"c{index}", mode=SplitMode.ORDERED) for index in range(2))]
    return table_of(rng, columns, 40 if mode <= SplitMode.SUBSET else 3000)


@pytest.mark.parametrize("mode", [SplitMode.ORDERED, SplitMode.SUBSET])
@pytest.mark.parametrize("seed", range(4))
def test_trees_are_equal_with_more_codes_than_two_bytes_hold(mode: SplitMode, seed: int) -> None:
    check_against_reference(wide_table(mode, seed), 1 + seed, threads=1 + seed % 2, note=f"seed {seed}")


@pytest.mark.parametrize("mode", [SplitMode.BINARY, SplitMode.MULTIWAY])
def test_a_taxonomy_of_more_leaves_than_two_bytes_hold_is_split_legally(mode: SplitMode) -> None:
    """The plain engine would need minutes for these: what every tree must obey is counted instead."""
    for seed in range(4):
        table = wide_table(mode, seed)
        growth = grow(table, 3, threads=1 + seed % 2)
        assert 0 in growth.tree.column
        check_tiles(growth.tree, [column.size for column in table.columns])
        assert all(persons(table, rows) >= 3 for rows in rows_of_regions(growth.tree, table).values())
        check_rows(growth, table)


@pytest.mark.parametrize("seed", range(12))
def test_trees_are_equal_where_a_split_has_more_parts_than_histograms_are_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    leaves = int(rng.integers(60, 120))
    shape = [[None] * int(rng.integers(1, 4)) for _ in range(leaves)]
    taxonomy = taxonomy_of(shape)
    has_missing = bool(seed % 2)
    size = len(taxonomy.leaves) + has_missing
    many = CodedColumn("many", size, SplitMode.MULTIWAY, has_missing, np.zeros(size), taxonomy)
    columns = [many, *(random_column(rng, f"c{index}") for index in range(3))]
    if seed % 3 == 0:
        columns.reverse()
    table = table_of(rng, columns, int(rng.integers(200, 600)))
    check_against_reference(table, 1 + seed % 3, threads=1 + seed % 2, note=f"seed {seed}")


def test_trees_are_equal_with_two_hundred_histograms_deep() -> None:
    """Long chains of uneven splits: every level leaves few rows behind."""
    rng = np.random.default_rng(7)
    column = CodedColumn("x", 200, SplitMode.ORDERED, False, np.cumsum(1.5 ** np.arange(200)))
    other = random_column(rng, "y", size=200, mode=SplitMode.ORDERED)
    table = table_of(rng, [column, other], 500)
    for k in (1, 2, 5):
        check_against_reference(table, k, threads=2, note=f"k {k}")


@given(coded_tables(), st.integers(1, 8), st.randoms(use_true_random=False))
@tries(150)
def test_the_tree_does_not_depend_on_the_order_of_rows(table: CodedTable, k: int, random: object) -> None:
    order = np.arange(table.rows)
    random.shuffle(order)  # type: ignore[attr-defined]
    assert same(grow(table, k, threads=1).tree, grow(reordered(table, order), k, threads=2, subtree=2).tree)


@given(coded_tables(), st.integers(1, 5), st.sampled_from([1, 2, 3]), st.sampled_from([1, 2, 5, 1 << 16]))
@tries(150)
def test_the_tree_does_not_depend_on_threads(table: CodedTable, k: int, threads: int, subtree: int) -> None:
    assert same(grow(table, k, threads=1).tree, grow(table, k, threads=threads, subtree=subtree).tree)


def test_the_tree_of_many_rows_does_not_depend_on_threads() -> None:
    rng = np.random.default_rng(3)
    columns = [random_column(rng, f"c{index}", size=size) for index, size in enumerate((5, 90, 300, 2000))]
    table = table_of(rng, columns, 20_000)
    trees = [
        grow(table, 5, threads=threads, subtree=subtree).tree for threads, subtree in ((1, 8), (2, 300), (3, 5000))
    ]
    assert same(trees[0], trees[1])
    assert same(trees[0], trees[2])


@given(coded_tables(), st.integers(1, 8))
@tries(150)
def test_regions_with_rows_have_k_persons(table: CodedTable, k: int) -> None:
    growth = grow(table, k, threads=1)
    if persons(table, range(table.rows)) < k:
        assert growth.tree.children[0] == 0 or len(rows_by_region(table, growth.tree)) == 1
        return
    for rows in rows_by_region(table, growth.tree).values():
        assert persons(table, rows) >= k
    check_rows(growth, table)


def check_tiles(tree: Tree, sizes: list[int]) -> None:
    """Every split divides its node's codes into runs that begin where the node does and follow each other."""
    tiles = {0: [(0, size) for size in sizes]}
    for node in range(len(tree.column)):
        if tree.column[node] == LEAF:
            assert tree.children[node] == 0
            continue
        column, first = int(tree.column[node]), int(tree.first_child[node])
        begin, end = tiles[node][column]
        starts = [int(start) for start in tree.start[first : first + tree.children[node]]]
        assert len(starts) >= 2
        assert starts[0] == begin
        for child, (start, stop) in enumerate(zip(starts, [*starts[1:], end], strict=True), first):
            assert start < stop
            tiles[child] = [*tiles[node][:column], (start, stop), *tiles[node][column + 1 :]]
    assert len(tiles) == len(tree.column)


@given(coded_tables(), st.integers(1, 6))
@tries(150)
def test_children_tile_their_parent(table: CodedTable, k: int) -> None:
    check_tiles(grow(table, k, threads=1).tree, [column.size for column in table.columns])


@given(coded_tables(), st.integers(1, 6))
@tries(150)
def test_an_ordered_cut_lies_between_neighbouring_codes_of_its_node(table: CodedTable, k: int) -> None:
    tree = grow(table, k, threads=1).tree
    rows_of = {0: list(range(table.rows))}
    for node in range(len(tree.column)):
        if tree.column[node] == LEAF:
            continue
        column, first = int(tree.column[node]), int(tree.first_child[node])
        children = range(first, first + int(tree.children[node]))
        for child in children:
            rows_of[child] = []
        for row in rows_of[node]:
            code = table.codes[column][row]
            rows_of[max(child for child in children if tree.start[child] <= code)].append(row)
        if table.columns[column].mode == SplitMode.ORDERED:
            present = {int(table.codes[column][row]) for row in rows_of[node]}
            upper = children[1]
            assert tree.before[upper] == max(code for code in present if code < tree.start[upper])
            assert tree.start[upper] in present
