# SPDX-License-Identifier: Apache-2.0
"""The plain engine splits for targets as the definition says, counted by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hand_tables import classes, divisions, guided, nominal, numbers, ordered, table

from anonfit.criteria.objectives import SplitObjective
from anonfit.criteria.targets import ShareTarget
from anonfit.tables.schema import SplitMode
from anonfit.testing.reference import grow
from strategies import route

HALF = 0.5 * math.log(2)
MOSTLY = 0.75 * math.log(4 / 3) + 0.25 * math.log(4)
"""The entropy of three of one class and one of another."""


# --- costs ------------------------------------------------------------------------------------------------------


def test_the_cost_of_a_split_is_the_mean_entropy_of_its_parts() -> None:
    found = table((ordered([0, 1]), [0, 0, 0, 0, 1, 1, 1, 1]))
    criterion, root = guided(found, SplitObjective((classes("aaababbb"),)))
    assert criterion.node_cost(root) == pytest.approx(math.log(2), abs=1e-12)
    assert criterion.split_cost(root, 0, [[0], [1]]) == pytest.approx(MOSTLY, abs=1e-12)


def test_costs_are_counted_in_masses() -> None:
    found = table((ordered([0, 1]), [0, 0, 1, 1]))
    masses = np.array([24, 8, 8, 24])
    criterion, root = guided(found, SplitObjective((classes("abab"),), masses=masses, unit=0.125))
    assert criterion.node_cost(root) == pytest.approx(math.log(2), abs=1e-12)
    assert criterion.split_cost(root, 0, [[0], [1]]) == pytest.approx(MOSTLY, abs=1e-12)


def test_the_cost_of_a_number_is_its_squared_error_over_its_variance() -> None:
    # Mean 3, deviations -3 -1 1 3: variance 5. In halves of mean 1 and 5 the squared error is 4 of 4 rows: 1.
    found = table((ordered([0, 1]), [0, 0, 1, 1]))
    criterion, root = guided(found, SplitObjective((numbers([0, 2, 4, 6]),)))
    assert criterion.node_cost(root) == pytest.approx(1.0, abs=1e-12)
    assert criterion.split_cost(root, 0, [[0], [1]]) == pytest.approx(0.2, abs=1e-12)


def test_several_targets_are_added_with_their_weights() -> None:
    found = table((ordered([0, 1]), [0, 0, 1, 1]))
    both = (classes("aabb", weight=2.0), numbers([0, 2, 4, 6], weight=0.5))
    criterion, root = guided(found, SplitObjective(both))
    assert criterion.node_cost(root) == pytest.approx(2.5, abs=1e-12)
    assert criterion.split_cost(root, 0, [[0], [1]]) == pytest.approx(0.1, abs=1e-12)


def test_empty_parts_of_a_multiway_split_cost_nothing() -> None:
    found = table((nominal(SplitMode.MULTIWAY, [None, None, None]), [0, 0, 2, 2]))
    criterion, root = guided(found, SplitObjective((classes("aaab"),)))
    assert criterion.split_cost(root, 0, [[0], [1], [2]]) == pytest.approx(HALF, abs=1e-12)


# --- ordered columns --------------------------------------------------------------------------------------------


def test_an_ordered_column_is_cut_where_the_class_changes() -> None:
    found = table((ordered(range(6)), range(6)))
    tree = grow(found, 2, SplitObjective((classes("aaaabb"),)))
    # The left part is pure: it goes on by range, and at its median.
    assert divisions(tree) == [(0, [0, 4]), (0, [0, 2])]
    assert tree.before.tolist() == [-1, -1, 3, -1, 1]


@pytest.mark.parametrize("base", [0.0, 1e6])
def test_an_ordered_column_is_cut_where_a_number_jumps(base: float) -> None:
    found = table((ordered(range(6)), range(6)))
    target = numbers([base, base + 0.1, base + 2, base + 2.1, base + 2, base + 2.1])
    assert divisions(grow(found, 2, SplitObjective((target,))))[0] == (0, [0, 2])


def test_of_equally_good_cuts_the_lowest_is_taken() -> None:
    found = table((ordered(range(4)), [0, 0, 1, 1, 2, 2, 3, 3]))
    # Every value has both classes: all cuts are candidates and cost the same.
    assert divisions(grow(found, 2, SplitObjective((classes("abababab"),))))[0] == (0, [0, 1])


def test_missing_is_an_element_of_its_own() -> None:
    found = table((ordered([1, 2, 3], missing=True), [0, 0, 1, 1, 2, 2, 3, 3]))
    assert divisions(grow(found, 2, SplitObjective((classes("bbaaaaaa"),))))[0] == (0, [0, 1])


def test_cuts_within_a_run_of_one_class_are_candidates_only_if_asked_for() -> None:
    # The class changes after code 0, which one row has alone: no legal candidate. So the column is cut at its median,
    # after code 2, though after code 1 would be purer.
    found = table((ordered(range(4)), [0, 1, 1, 2, 2, 3, 3, 3, 3]))
    target = classes("baaaaaaaa")
    assert divisions(grow(found, 2, SplitObjective((target,))))[0] == (0, [0, 3])
    assert divisions(grow(found, 2, SplitObjective((target,), all_cuts=True)))[0] == (0, [0, 2])


def test_a_change_of_any_class_makes_a_candidate() -> None:
    found = table((ordered(range(4)), [0, 0, 1, 1, 2, 2, 3, 3]))
    steady, changing = classes("aaaaaaaa"), classes("aabbbbbb")
    assert divisions(grow(found, 2, SplitObjective((steady,))))[0] == (0, [0, 2])
    assert divisions(grow(found, 2, SplitObjective((steady, changing))))[0] == (0, [0, 1])


def test_beside_a_number_every_cut_is_a_candidate() -> None:
    found = table((ordered(range(4)), [0, 0, 1, 1, 2, 2, 3, 3]))
    assert divisions(grow(found, 2, SplitObjective((classes("aaaaaaaa"), numbers([5] * 8)))))[0] == (0, [0, 1])


def test_where_no_candidate_is_legal_the_nearest_legal_cut_to_the_median_is_taken() -> None:
    # 12 rows: 1, 4, 6, 1 by code. Candidates are beside the rare ends; the median after code 2 is illegal as well.
    found = table((ordered(range(4)), [0] + [1] * 4 + [2] * 6 + [3]))
    assert divisions(grow(found, 2, SplitObjective((classes("b" + "a" * 10 + "c"),)))) == [(0, [0, 2])]


def test_masses_move_cuts_but_not_medians() -> None:
    found = table((ordered(range(3)), [0, 0, 1, 1, 2, 2]))
    mixed = classes("aaabbb")
    assert divisions(grow(found, 2, SplitObjective((mixed,)))) == [(0, [0, 1]), (0, [1, 2])]
    heavy = SplitObjective((mixed,), masses=np.array([1, 1, 9, 1, 1, 1]))
    assert divisions(grow(found, 2, heavy)) == [(0, [0, 2]), (0, [0, 1])]
    pure = SplitObjective((classes("aaaa"),), masses=np.array([100, 1, 1, 1]))
    assert divisions(grow(table((ordered(range(4)), range(4))), 2, pure)) == [(0, [0, 2])]


def test_counts_are_masses_unless_masses_are_given() -> None:
    found = table((ordered(range(3)), [0, 1, 1, 2]), counts=[2, 9, 1, 2])
    assert divisions(grow(found, 2, SplitObjective((classes("aabb"),))))[0] == (0, [0, 2])
    light = SplitObjective((classes("aabb"),), masses=np.array([1, 1, 9, 1]))
    assert divisions(grow(found, 2, light))[0] == (0, [0, 1])


# --- which column -----------------------------------------------------------------------------------------------


def test_the_column_that_tells_classes_apart_is_split_first() -> None:
    wide = (ordered([0, 1]), [0, 1, 0, 1, 0, 1, 0, 1])
    telling = (ordered([0, 1, 9]), [0, 0, 0, 0, 1, 1, 1, 1])
    assert divisions(grow(table(wide, telling), 4, SplitObjective((classes("aaaabbbb"),)))) == [(1, [0, 1])]


def test_a_pure_node_goes_on_by_range() -> None:
    narrow = (ordered([0, 1, 9]), [0, 0, 1, 1])
    wide = (ordered([0, 1]), [0, 1, 0, 1])
    assert divisions(grow(table(narrow, wide), 2, SplitObjective((classes("aaaa"),)))) == [(1, [0, 1])]
    assert divisions(grow(table(wide, narrow), 2, SplitObjective((classes("aaaa"),)))) == [(0, [0, 1])]


def test_of_equal_costs_and_ranges_the_first_column_is_split() -> None:
    one, other = (ordered([0, 1]), [0, 0, 1, 1]), (ordered([0, 1]), [1, 1, 0, 0])
    assert divisions(grow(table(one, other), 2, SplitObjective((classes("aabb"),)))) == [(0, [0, 1])]


def test_multiway_splits_compete_by_the_cost_of_their_parts() -> None:
    many = (nominal(SplitMode.MULTIWAY, [None, None, None]), [0, 0, 1, 1, 2, 2])
    two = (ordered([0, 1]), [0, 0, 0, 1, 1, 1])
    assert divisions(grow(table(two, many), 2, SplitObjective((classes("aabbaa"),)))) == [(1, [0, 1, 2])]
    assert divisions(grow(table(two, many), 2, SplitObjective((classes("aaabbb"),)))) == [(0, [0, 1])]


def test_missing_costs_together_with_the_child_it_joins() -> None:
    # Missing is one row, so it joins the first child, and that part is mixed.
    many = (nominal(SplitMode.MULTIWAY, [None, None], missing=True), [0, 1, 1, 1, 2, 2, 2, 2])
    other = (ordered([0, 1]), [1, 0, 0, 0, 1, 1, 1, 1])
    found = table(many, other)
    assert divisions(grow(found, 2, SplitObjective((classes("baaabbbb"),))))[0] == (1, [0, 1])
    assert divisions(grow(found, 2, SplitObjective((classes("aaaabbbb"),))))[0] == (0, [0, 2])


def test_columns_that_may_not_be_split_are_neither_split_nor_narrowed() -> None:
    tree = (nominal(SplitMode.MULTIWAY, [[None, None], None]), [0, 0, 1, 1])
    other = (ordered([0, 1]), [0, 1, 0, 1])
    target = (classes("aabb"),)
    assert divisions(grow(table(tree, other), 2, SplitObjective(target))) == [(0, [0, 2]), (0, [0, 1])]
    assert divisions(grow(table(tree, other), 2, SplitObjective(target, split_on=frozenset({1})))) == [(1, [0, 1])]
    assert divisions(grow(table(tree, other), 2, SplitObjective(split_on=frozenset({1})))) == [(1, [0, 1])]
    assert divisions(grow(table(tree, other), 2, SplitObjective(split_on=frozenset()))) == []
    # Without a limit this one is cut down to its first branch where nothing can be split.
    assert divisions(grow(table(tree), 3)) == [(0, [0, 2])]
    assert divisions(grow(table(tree), 3, SplitObjective(split_on=frozenset()))) == []


# --- two-way splits of nominal columns --------------------------------------------------------------------------


def test_a_subset_takes_the_values_of_the_lowest_rate() -> None:
    found = table((nominal(SplitMode.SUBSET, [None] * 5), [0, 0, 1, 1, 2, 2, 3, 3]))
    tree = grow(found, 2, SplitObjective((classes("aabbaabb"),)))
    # Both classes are as frequent, so the first counts: values 1 and 3 have none of it. Below, all is pure.
    assert divisions(tree) == [(0, {1, 3}), (0, {1}), (0, {0})]
    assert [codes.tolist() for codes in tree.sets] == [[1, 3], [1], [0]]
    assert tree.set_of.tolist() == [0, 1, 2, -1, -1, -1, -1]
    assert set(tree.start.tolist()) == {0}
    assert set(tree.before.tolist()) == {-1}
    # The value that nobody has is with the others on the second side.
    assert route(tree, [4]) == route(tree, [2]) == 6


def test_the_rate_is_that_of_the_most_frequent_class() -> None:
    # Class c is the most frequent. Its rates are 1/4, 0, 3/4, 1: cut between 1/4 and 3/4.
    found = table((nominal(SplitMode.SUBSET, [None] * 4), [0] * 4 + [1] * 2 + [2] * 4 + [3] * 2))
    tree = grow(found, 6, SplitObjective((classes("aabc" + "ab" + "cccb" + "cc"),)))
    assert divisions(tree) == [(0, {0, 1})]


def test_a_subset_takes_the_values_of_the_lowest_mean() -> None:
    found = table((nominal(SplitMode.SUBSET, [None] * 3), [0, 0, 1, 1, 2, 2]))
    assert divisions(grow(found, 2, SplitObjective((numbers([5, 5, 1, 1, 20, 20]),)))) == [(0, {0, 1}), (0, {1})]


def test_a_subset_takes_the_values_of_the_lowest_mean_share() -> None:
    found = table((nominal(SplitMode.SUBSET, [None] * 3), [0, 0, 1, 1, 2, 2]))
    whole = 1 << 15
    shares = np.array([[whole - 300, 300]] * 2 + [[100, whole - 100]] * 2 + [[whole - 100, 100]] * 2)
    # The first class has the largest sum; its shares are high, low, high.
    assert divisions(grow(found, 2, SplitObjective((ShareTarget("share", shares),)))) == [(0, {1}), (0, {0})]


def test_every_target_gives_an_order() -> None:
    found = table((nominal(SplitMode.SUBSET, [None] * 3), [0, 0, 1, 1, 2, 2]))
    rising = numbers([0, 0, 1, 1, 2, 2], weight=0.1)
    middle = numbers([0, 0, 10, 10, 0, 0])
    assert divisions(grow(found, 2, SplitObjective((rising,))))[0] == (0, {0})
    assert divisions(grow(found, 2, SplitObjective((rising, middle))))[0] == (0, {0, 2})


def test_a_subset_without_a_legal_candidate_is_cut_at_the_median_of_the_first_order() -> None:
    # Rates of a: 0 for value 2 (one row, alone illegal), 1 for the others. In the order 2, 0, 1, 3 half of the rows is
    # reached at value 1.
    found = table((nominal(SplitMode.SUBSET, [None] * 4), [0, 0, 1, 1, 2, 3, 3, 3]))
    assert divisions(grow(found, 2, SplitObjective((classes("aaaabaaa"),))))[0] == (0, {0, 1, 2})
    # A median in the order of codes would be reached at value 1 as well, and leave value 2 on the other side.
    assert divisions(grow(found, 2))[0] == (0, [0, 2])


def test_a_binary_split_is_a_set_of_whole_children() -> None:
    found = table((nominal(SplitMode.BINARY, [[None, None], None, [None, None]]), [0, 0, 2, 2, 3, 3]))
    tree = grow(found, 2, SplitObjective((classes("bbaabb"),)))
    # Only the middle child has no b. The others part next, and then descend to the leaves that have rows.
    assert divisions(tree) == [(0, {2}), (0, {0, 1}), (0, [0, 1]), (0, [3, 4])]
    assert tree.column.tolist() == [0, -1, 0, 0, 0, -1, -1, -1, -1]


def test_a_binary_split_follows_a_free_descent() -> None:
    found = table((nominal(SplitMode.BINARY, [None, [None, None, None]]), [1, 1, 2, 2, 3, 3]))
    tree = grow(found, 2, SplitObjective((classes("aabbaa"),)))
    assert divisions(tree) == [(0, [0, 1]), (0, {2}), (0, {1})]


def test_a_tile_with_holes_is_as_wide_as_the_codes_it_holds() -> None:
    # After the set {1, 2}, the other part holds codes 0, 3 and 4 of the tree (2 of 4). The ordered column spans 3 of 5
    # there, and is wider; if the holes counted, it were not.
    tree = (nominal(SplitMode.BINARY, [None, [None, None], [None, None]]), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    other = (ordered(range(6)), [0, 3, 0, 5, 0, 5, 0, 3, 0, 3])
    found = divisions(grow(table(tree, other), 2, SplitObjective((classes("bb" + "aaaa" + "bbbb"),))))
    assert found[0] == (0, {1, 2})
    assert found[2] == (1, [0, 3])
