# SPDX-License-Identifier: Apache-2.0
"""The plain engine does what the definition says, counted by hand: if it were wrong, another engine could be wrong with it."""

from __future__ import annotations

import numpy as np
import pytest
from hand_tables import nominal, ordered, table

from anonfit.engines.memory import engine as engine
from anonfit.engines.tree import LEAF, Tree
from anonfit.tables.schema import CodedTable, SplitMode
from anonfit.testing import reference

Split = tuple[int, list[int]]
"""The column of a split and the first code of each part."""


@pytest.fixture(params=["reference", "memory"])
def splits(request: pytest.FixtureRequest) -> object:
    """Grows a table and gives its splits in breadth-first order; by either engine, since both must agree with the hand."""

    def grown(found: CodedTable, k: int) -> list[Split]:
        tree = grow(found, k, request.param)
        inner = np.flatnonzero(tree.column != LEAF)
        first = tree.first_child
        return [
            (int(tree.column[node]), tree.start[first[node] : first[node] + tree.children[node]].tolist())
            for node in inner
        ]

    return grown


def grow(found: CodedTable, k: int, name: str) -> Tree:
    if name == "reference":
        return reference.grow(found, k)
    return engine.grow(found, k, threads=1).tree


# --- ordered columns --------------------------------------------------------------------------------------------


def test_an_even_number_of_rows_is_halved(splits) -> None:
    assert splits(table((ordered(range(4)), [0, 1, 2, 3])), 2) == [(0, [0, 2])]


def test_the_median_of_an_odd_number_goes_left(splits) -> None:
    assert splits(table((ordered(range(5)), [0, 1, 2, 3, 4])), 2) == [(0, [0, 3])]


def test_the_lower_median_is_the_one_of_two(splits) -> None:
    # 6 rows, the third is the lower median and has code 1: cut after 1, though cutting after 0 is as far from half.
    assert splits(table((ordered(range(3)), [0, 0, 1, 1, 2, 2])), 2) == [(0, [0, 2]), (0, [0, 1])]


def test_equal_values_are_never_parted(splits) -> None:
    assert splits(table((ordered(range(3)), [0, 1, 1, 1, 2])), 2) == []
    assert splits(table((ordered(range(3)), [0, 1, 1, 1, 2])), 1) == [(0, [0, 2]), (0, [0, 1])]


def test_where_the_median_cut_is_illegal_the_nearest_legal_one_is_taken(splits) -> None:
    # Half of 6 is reached at code 1 (2 + 3 rows); one row would remain. The next cut below leaves 2 and 4.
    assert splits(table((ordered(range(3)), [0, 0, 1, 1, 1, 2])), 2) == [(0, [0, 1])]


def test_the_nearest_legal_cut_may_lie_above_the_median(splits) -> None:
    # Person 0 has five rows with code 0: cut there, one person is left; the cut after 1 gives two and two.
    found = table((ordered(range(4)), [0, 0, 0, 0, 0, 1, 2, 3]), entities=[0, 0, 0, 0, 0, 1, 2, 3])
    assert splits(found, 2) == [(0, [0, 2])]


def test_nearest_is_counted_in_rows_not_in_codes(splits) -> None:
    # 12 rows: 1, 4, 6, 1 by code. Half (6) is reached at code 2, and one row would remain above it. Left of it: 5 rows
    # below code 2 (1 from half) and 1 row below code 1.
    codes = [0] + [1] * 4 + [2] * 6 + [3]
    assert splits(table((ordered(range(4)), codes)), 2)[0] == (0, [0, 2])


def test_the_code_below_a_cut_is_the_highest_the_left_rows_have() -> None:
    for name in ("reference", "memory"):
        tree = grow(table((ordered(range(6)), [0, 1, 4, 5])), 2, name)
        assert tree.before.tolist() == [-1, -1, 1]
        assert tree.start.tolist() == [0, 0, 4]


# --- which column -----------------------------------------------------------------------------------------------


def test_the_widest_column_is_split_first(splits) -> None:
    # In the left half x spans 1 of 100 and y 2 of 10. Ranks would say 1 of 3 against 2 of 10.
    x = (ordered([0, 1, 2, 100]), [0, 0, 1, 1, 2, 2, 3, 3])
    y = (ordered(range(11)), [0, 2, 0, 2, 0, 10, 0, 10])
    found = splits(table(x, y), 2)
    assert found[0] == (0, [0, 2])
    assert found[1] == (1, [0, 2])


def test_of_equally_wide_columns_the_first_is_split(splits) -> None:
    one, other = (ordered([0, 1]), [0, 0, 1, 1]), (ordered([0, 7]), [0, 1, 0, 1])
    assert splits(table(one, other), 2) == [(0, [0, 1])]
    assert splits(table(other, one), 2) == [(0, [0, 1])]


def test_widths_within_a_billionth_are_equal(splits) -> None:
    # Both right halves are split again. There the second column is wider by less than 1e-9.
    one = (ordered([0, 1e12, 2e12]), [0, 0, 1, 1, 2, 2])
    other = (ordered([0, 1e12 - 1, 2e12]), [0, 0, 1, 1, 2, 2])
    assert splits(table(one, other), 2) == [(0, [0, 2]), (0, [0, 1])]
    assert splits(table(other, one), 2) == [(0, [0, 2]), (0, [0, 1])]


def test_where_the_widest_column_has_no_legal_cut_the_next_is_tried(splits) -> None:
    wide = (ordered(range(3)), [0, 1, 1, 2])
    narrow = (ordered([0, 1, 9]), [0, 0, 1, 1])  # code 2 is not there: 1 of 9
    assert splits(table(wide, narrow), 2) == [(1, [0, 1])]


def test_a_constant_column_is_never_split(splits) -> None:
    constant = (ordered([5]), [0, 0, 0, 0])
    assert splits(table(constant), 1) == []
    assert splits(table(constant, (ordered([0, 1]), [0, 0, 1, 1])), 2) == [(1, [0, 1])]


def test_constant_nominal_columns_are_cut_down_to_their_value_for_free(splits) -> None:
    assert splits(table((nominal(SplitMode.MULTIWAY, [None, None]), [1, 1])), 2) == [(0, [0, 1])]
    assert splits(table((nominal(SplitMode.SUBSET, [None, None]), [1, 1])), 2) == []


def test_fewer_persons_than_k_stay_one_region(splits) -> None:
    assert splits(table((ordered([0, 1]), [0, 1])), 3) == []


# --- missing values ---------------------------------------------------------------------------------------------


def test_missing_is_the_lowest_code_of_an_ordered_column(splits) -> None:
    column = ordered([10, 20, 30], missing=True)
    assert splits(table((column, [0, 0, 1, 3])), 2) == [(0, [0, 1])]
    # Too rare to stand alone: it stays with the lowest values.
    assert splits(table((column, [0, 1, 2, 3])), 2) == [(0, [0, 2])]


def test_missing_and_one_value_can_be_parted_though_their_range_is_nothing(splits) -> None:
    column = ordered([10, 20], missing=True)
    assert splits(table((column, [0, 0, 1, 1])), 2) == [(0, [0, 1])]


def test_the_normalized_range_ignores_missing(splits) -> None:
    # Left after the first split by x: x has missing and 10 (range 0), y spans 1 of 10. With missing as a value 0, x would
    # span 10 of 30 and win.
    x = (ordered([10, 40], missing=True), [0, 0, 1, 1, 2, 2, 2, 2])
    y = (ordered(range(11)), [0, 1, 0, 1, 10, 10, 10, 10])
    found = splits(table(x, y), 2)
    assert found[0] == (0, [0, 2])
    assert found[1] == (1, [0, 1])


def test_all_missing_is_not_split(splits) -> None:
    assert splits(table((ordered([], missing=True), [0, 0, 0])), 1) == []
    assert splits(table((ordered([1, 2], missing=True), [0, 0, 0])), 1) == []


@pytest.mark.parametrize("mode", [SplitMode.MULTIWAY, SplitMode.BINARY])
def test_all_missing_is_cut_off_the_taxonomy_for_free(splits, mode: SplitMode) -> None:
    assert splits(table((nominal(mode, [None, None], missing=True), [0, 0])), 1) == [(0, [0, 1])]


def test_missing_stands_alone_in_a_multiway_split_if_it_may(splits) -> None:
    column = nominal(SplitMode.MULTIWAY, [None, None], missing=True)
    assert splits(table((column, [0, 0, 1, 1, 2, 2])), 2) == [(0, [0, 1, 2])]


def test_missing_joins_the_first_child_where_it_is_too_rare(splits) -> None:
    column = nominal(SplitMode.MULTIWAY, [None, None], missing=True)
    assert splits(table((column, [0, 1, 1, 2, 2])), 2) == [(0, [0, 2])]
    # Together with the first child it is enough, though that child alone is too rare as well.
    assert splits(table((column, [0, 1, 2, 2])), 2) == [(0, [0, 2])]


def test_missing_joins_the_first_child_even_if_that_is_empty(splits) -> None:
    column = nominal(SplitMode.MULTIWAY, [None, None, None], missing=True)
    # Missing (one row) with the empty first child is still one row: no legal split.
    assert splits(table((column, [0, 2, 2, 3, 3])), 2) == []


# --- nominal columns --------------------------------------------------------------------------------------------


def test_a_multiway_split_goes_one_level_down_and_keeps_empty_children(splits) -> None:
    column = nominal(SplitMode.MULTIWAY, [[None, None], None, [None, None]])
    codes = [0, 1, 3, 4, 3, 4]  # the second child of the root has no rows
    assert splits(table((column, codes)), 2) == [(0, [0, 2, 3]), (0, [3, 4])]


def test_one_rare_child_blocks_a_multiway_split_but_not_a_binary_one(splits) -> None:
    codes = [0, 1, 1, 1, 2, 2]
    assert splits(table((nominal(SplitMode.MULTIWAY, [None, None, None]), codes)), 2) == []
    assert splits(table((nominal(SplitMode.BINARY, [None, None, None]), codes)), 2) == [(0, [0, 2])]


def test_a_binary_split_divides_the_children_of_the_node_into_two_groups(splits) -> None:
    # Children with 1, 2 and 3 rows: half (3) is reached at the second. Below, the left group is split again between its
    # two children only if both are large enough.
    column = nominal(SplitMode.BINARY, [None, [None, None], [None, None]])
    assert splits(table((column, [0, 1, 2, 3, 4, 4])), 2) == [(0, [0, 3])]
    assert splits(table((column, [0, 1, 2, 3, 4, 4])), 1)[0] == (0, [0, 3])


def test_a_single_child_with_rows_is_a_free_descent(splits) -> None:
    column = nominal(SplitMode.MULTIWAY, [[None, None], [None, None]])
    # First the empty branch is cut off, then its sibling is split.
    assert splits(table((column, [0, 0, 1, 1])), 2) == [(0, [0, 2]), (0, [0, 1])]
    assert splits(table((column, [2, 2, 3, 3])), 2) == [(0, [0, 2]), (0, [2, 3])]


def test_free_descents_are_made_once_more_on_every_leaf(splits) -> None:
    column = nominal(SplitMode.MULTIWAY, [[None, None], [None, None]])
    # Both branches have rows of one leaf only: after the split each part descends to that leaf.
    assert splits(table((column, [0, 0, 3, 3])), 2) == [(0, [0, 2]), (0, [0, 1]), (0, [2, 3])]
    # Nothing can be split, but the rows are all below the first branch.
    assert splits(table((column, [0, 1])), 2) == [(0, [0, 2])]


def test_a_free_descent_cuts_on_both_sides(splits) -> None:
    column = nominal(SplitMode.MULTIWAY, [None, [None, None], None])
    assert splits(table((column, [1, 2])), 2) == [(0, [0, 1, 3])]


def test_a_free_descent_with_missing_goes_along_first_children_only(splits) -> None:
    column = nominal(SplitMode.MULTIWAY, [[None, None], [None, None]], missing=True)
    # Missing and a leaf of the first branch: missing and that leaf are a run of codes.
    assert splits(table((column, [0, 1])), 2) == [(0, [0, 2])]
    # Missing and a leaf of the second branch are not; the tile stays whole.
    assert splits(table((column, [0, 3])), 2) == []


def test_a_chain_of_single_children_is_passed_at_once(splits) -> None:
    column = nominal(SplitMode.MULTIWAY, [[[None, None]], None])
    assert splits(table((column, [0, 0, 1, 1])), 2) == [(0, [0, 2]), (0, [0, 1])]


def test_a_subset_split_ignores_the_taxonomy(splits) -> None:
    codes = [0, 0, 1, 1, 2, 2, 3, 3]
    column = nominal(SplitMode.SUBSET, [[None, None, None], None])
    # The taxonomy would part 3 from 0, 1 and 2; the median lies between 1 and 2.
    assert splits(table((column, codes)), 2)[0] == (0, [0, 2])


def test_a_subset_is_as_wide_as_it_has_values(splits) -> None:
    # Left after the split by `wide`: 2 of 5 values of the subset column (1 of 4), and y spans 2 of 10.
    subset = (nominal(SplitMode.SUBSET, [None] * 5), [0, 4, 0, 4, 1, 2, 3, 4])
    y = (ordered(range(11)), [0, 2, 0, 2, 10, 10, 10, 10])
    found = splits(table(y, subset), 2)
    assert found[0] == (0, [0, 10])
    assert found[1] == (1, [0, 4])


def test_a_taxonomy_node_is_as_wide_as_its_leaves(splits) -> None:
    # Left after the split by y: rows under the first branch (3 of 6 leaves: 2 of 5), and y spans 3 of 10.
    tree = (nominal(SplitMode.MULTIWAY, [[None, None, None], [None, None, None]]), [0, 0, 2, 2, 3, 3, 4, 4])
    y = (ordered(range(11)), [0, 3, 0, 3, 10, 10, 10, 10])
    found = splits(table(y, tree), 2)
    assert found[0] == (0, [0, 10])
    assert found[1] == (1, [0, 3])  # the free descent to the first branch, before its leaves are parted


# --- persons ----------------------------------------------------------------------------------------------------


def test_a_person_with_rows_on_both_sides_counts_on_both(splits) -> None:
    found = table((ordered([0, 1]), [0, 1, 0, 1]), entities=[7, 7, 9, 9])
    assert splits(found, 2) == [(0, [0, 1])]
    assert splits(found, 3) == []


def test_many_rows_of_one_person_are_one_person(splits) -> None:
    assert splits(table((ordered([0, 1]), [0, 0, 0, 1, 1, 1]), entities=[1, 1, 1, 2, 2, 3]), 2) == []


def test_persons_of_every_part_of_a_multiway_split_are_counted(splits) -> None:
    column = nominal(SplitMode.MULTIWAY, [None, None, None])
    assert splits(table((column, [0, 0, 1, 1, 2, 2]), entities=[1, 2, 1, 2, 1, 2]), 2) == [(0, [0, 1, 2])]
    assert splits(table((column, [0, 0, 1, 1, 2, 2]), entities=[1, 2, 1, 2, 3, 3]), 2) == []


def test_counts_are_persons_and_weigh_in_the_median(splits) -> None:
    found = table((ordered(range(3)), [0, 1, 2]), counts=[5, 1, 1])
    # Seven persons; the fourth has code 0. Two remain above.
    assert splits(found, 2) == [(0, [0, 1])]
    assert splits(found, 3) == []
    assert splits(table((ordered(range(3)), [0, 1, 2]), counts=[1, 1, 5]), 2) == [(0, [0, 2])]
