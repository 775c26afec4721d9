# SPDX-License-Identifier: Apache-2.0
"""The plain engine splits for selections as the definition says, counted by hand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from engine_pairs import Asked, check_same
from hand_tables import divisions, nominal, ordered, table

from anonfit.criteria.objectives import SplitObjective, WeightRule
from anonfit.criteria.targets import ClassTarget, CodedSelections
from anonfit.tables.schema import CodedTable, SplitMode
from anonfit.testing.reference import grow
from anonfit.testing.reference.growing import Selecting
from anonfit.testing.reference.records import PlainNode, Records

Sides = dict[int, Sequence[int]]
"""The codes of a rectangle, for the columns that it limits."""


def selections(
    found: CodedTable,
    *rectangles: tuple[int, Sides],
    weights: Sequence[float] | None = None,
    signatures: Sequence[int] | None = None,
    applies: Sequence[Sequence[int]] | None = None,
    boundaries: Sequence[tuple[int, int]] = (),
) -> CodedSelections:
    """Rectangles with the number of their selection; `boundaries` are pairs of column and code."""
    sizes = [column.size for column in found.columns]
    rows = []
    for _, sides in rectangles:
        columns = [
            [int(code in sides.get(index, range(size))) for code in range(size)] for index, size in enumerate(sizes)
        ]
        rows.append([bit for column in columns for bit in column])
    at_boundary = np.zeros(sum(sizes), np.uint8)
    for column, code in boundaries:
        at_boundary[sum(sizes[:column]) + code] = 1
    numbers = [number for number, _ in rectangles]
    return CodedSelections(
        np.array(rows, np.uint8),
        np.array(numbers, np.int64),
        np.array(weights or [1.0] * (max(numbers) + 1)),
        np.zeros(found.rows, np.int64) if signatures is None else np.array(signatures),
        np.array(applies or [[1] * len(rectangles)], np.uint8),
        at_boundary,
    )


def grid(size: int) -> CodedTable:
    """Two columns, and one row for each pair of values."""
    points = list(product(range(size), repeat=2))
    return table((ordered(range(size)), [x for x, _ in points]), (ordered(range(size)), [y for _, y in points]))


def retrieved(found: CodedTable, wanted: CodedSelections, *, masses: Sequence[int] | None = None) -> float:
    """What selections retrieve from the whole domain."""
    purpose = SplitObjective(selections=wanted, masses=None if masses is None else np.array(masses))
    criterion = Selecting(Records(found, 1, purpose, ()), purpose, wanted)
    root = PlainNode(list(range(found.rows)), [list(range(column.size)) for column in found.columns], selecting=True)
    return criterion.retrieved(root.rows, criterion.meets(root))


# --- what is retrieved ------------------------------------------------------------------------------------------


def test_a_region_that_a_selection_touches_is_retrieved_whole() -> None:
    found = grid(2)
    assert retrieved(found, selections(found, (0, {0: [1], 1: [1]}))) == 4
    assert retrieved(found, selections(found, (0, {0: [], 1: [1]}))) == 0
    assert retrieved(found, selections(found, (0, {0: [1]})), masses=[1, 2, 3, 4]) == 10


def test_several_rectangles_of_a_selection_count_once_and_selections_by_their_weight() -> None:
    found = grid(2)
    assert retrieved(found, selections(found, (0, {0: [0]}), (0, {0: [1]}))) == 4
    # Weights are shares of the largest one.
    assert retrieved(found, selections(found, (0, {0: [0]}), (1, {0: [1]}), weights=[2.0, 0.5])) == 5


def test_a_rectangle_counts_for_the_rows_whose_signature_it_applies_to() -> None:
    found = grid(2)
    wanted = selections(found, (0, {0: [0]}), (1, {}), signatures=[0, 0, 0, 1], applies=[[1, 0], [0, 1]])
    assert retrieved(found, wanted) == 4
    wanted = selections(found, (0, {0: [0]}), (1, {}), signatures=[0, 0, 0, 1], applies=[[1, 1], [0, 1]])
    assert retrieved(found, wanted) == 7


# --- ordered columns --------------------------------------------------------------------------------------------


def test_a_grid_is_cut_along_the_boundaries_of_a_selection_and_then_at_medians() -> None:
    found = grid(4)
    wanted = selections(found, (0, {0: [2, 3], 1: [2, 3]}), boundaries=[(0, 2), (1, 2)])
    tree = grow(found, 4, SplitObjective(selections=wanted))
    # 16 rows are retrieved; with x cut at 2 only 8, and with y cut at 2 in its upper half 4. The lower half of x is
    # retrieved by nothing, and cut at the median of its widest column.
    assert divisions(tree) == [(0, [0, 2]), (1, [0, 2]), (1, [0, 2])]
    # Faces are exact; the median lies between the codes 1 and 2.
    assert tree.before.tolist() == [-1, -1, 2, -1, 1, -1, 2]
    assert divisions(grow(found, 4))[0] == (0, [0, 2])


def test_a_cut_may_lie_at_a_code_that_nobody_has() -> None:
    # Rows have the codes 0 and 4; the selection ends before 3. Cuts at 1 and 2 leave it in both parts.
    found = table((ordered(range(6)), [0, 0, 4, 4]))
    exact = grow(found, 2, SplitObjective(selections=selections(found, (0, {0: [0, 1, 2]}), boundaries=[(0, 3)])))
    assert divisions(exact) == [(0, [0, 3])]
    assert exact.before.tolist() == [-1, -1, 3]
    free = grow(found, 2, SplitObjective(selections=selections(found, (0, {0: [0, 1, 2]}))))
    assert divisions(free) == [(0, [0, 3])]
    assert free.before.tolist() == [-1, -1, 0]


def test_missing_is_a_present_code() -> None:
    found = table((ordered(range(4), missing=True), [0, 0, 3, 3]))
    assert divisions(grow(found, 2, SplitObjective(selections=selections(found, (0, {0: [0]})))))[0] == (0, [0, 1])
    # No cut is made above the highest code or below the lowest that rows have, though this would retrieve nothing.
    above = SplitObjective(selections=selections(found, (0, {0: [4]})))
    assert divisions(grow(found, 2, above)) == [(0, [0, 1])]


def test_without_a_reduction_the_median_goes_on() -> None:
    found = grid(4)
    for sides in ({}, {0: []}, {0: [0, 3]}):
        tree = grow(found, 8, SplitObjective(selections=selections(found, (0, sides))))
        assert divisions(tree) == [(0, [0, 2])], sides
        assert tree.before.tolist() == [-1, -1, 1]


def test_a_node_that_selections_gain_nothing_from_is_theirs_no_more() -> None:
    # Each cut leaves the selection in both parts. After the median, cuts at its faces would gain, but are not sought:
    # the cuts made there lie between codes.
    found = table((ordered(range(4)), [0, 0, 1, 1, 2, 2, 3, 3]))
    wanted = selections(found, (0, {0: [0, 3]}), boundaries=[(0, 1), (0, 3)])
    tree = grow(found, 2, SplitObjective(selections=wanted))
    assert divisions(tree) == [(0, [0, 2]), (0, [0, 1]), (0, [2, 3])]
    assert tree.before.tolist() == [-1, -1, 1, -1, 0, -1, 2]


def test_a_selection_that_a_node_is_beside_does_not_matter_to_its_parts() -> None:
    # After the cut of x each half meets one selection, and y is cut at the face of that one.
    found = grid(4)
    wanted = selections(found, (0, {0: [0, 1], 1: [0, 1]}), (1, {0: [2, 3], 1: [2, 3]}), boundaries=[(0, 2), (1, 2)])
    tree = grow(found, 4, SplitObjective(selections=wanted))
    assert divisions(tree) == [(0, [0, 2]), (1, [0, 2]), (1, [0, 2])]
    assert tree.before.tolist() == [-1, -1, 2, -1, 2, -1, 2]


def test_a_selection_of_fewer_than_k_persons_is_cut_as_close_as_k_allows() -> None:
    found = table((ordered(range(8)), range(8)))
    assert divisions(grow(found, 3, SplitObjective(selections=selections(found, (0, {0: [7]}))))) == [(0, [0, 5])]


def test_weights_of_selections_decide_between_cuts() -> None:
    found = table((ordered(range(8)), range(8)))
    # Cut at 2: 2 rows of the first and 6 of the second; cut at 6: 6 and 2. Any cut between is worse in one of them.
    first = selections(found, (0, {0: [0, 1]}), (1, {0: [6, 7]}), weights=[2.0, 1.0])
    second = selections(found, (0, {0: [0, 1]}), (1, {0: [6, 7]}), weights=[1.0, 2.0])
    assert divisions(grow(found, 2, SplitObjective(selections=first)))[0] == (0, [0, 2])
    assert divisions(grow(found, 2, SplitObjective(selections=second)))[0] == (0, [0, 6])
    equal = selections(found, (0, {0: [0, 1]}), (1, {0: [6, 7]}))
    assert divisions(grow(found, 2, SplitObjective(selections=equal)))[0] == (0, [0, 2])


def test_masses_count_and_not_persons() -> None:
    found = grid(2)
    # The selection is the pair (1, 1). The cut of x spares the rows of x = 0, that of y those of y = 0.
    wanted = selections(found, (0, {0: [1], 1: [1]}))
    assert divisions(grow(found, 2, SplitObjective(selections=wanted)))[0] == (0, [0, 1])
    heavy = SplitObjective(selections=wanted, masses=np.array([1, 1, 9, 1]))
    assert divisions(grow(found, 2, heavy))[0] == (1, [0, 1])


def test_rows_that_a_selection_cannot_mean_do_not_matter() -> None:
    found = grid(2)
    # Only the row (1, 0) has the signature that the selection applies to: a cut of y spares it, a cut of x does not.
    wanted = selections(found, (0, {0: [1], 1: [1]}), signatures=[0, 0, 1, 0], applies=[[0], [1]])
    assert divisions(grow(found, 2, SplitObjective(selections=wanted)))[0] == (1, [0, 1])


def test_of_equal_columns_the_wider_is_split() -> None:
    narrow, wide = (ordered([0, 1, 9]), [0, 0, 1, 1]), (ordered([0, 1]), [0, 0, 1, 1])
    found = table(narrow, wide)
    wanted = selections(found, (0, {0: [1], 1: [1]}))
    assert divisions(grow(found, 2, SplitObjective(selections=wanted))) == [(1, [0, 1])]
    limited = SplitObjective(selections=wanted, split_on=frozenset({0}))
    assert divisions(grow(found, 2, limited)) == [(0, [0, 1])]


def test_weights_of_columns_do_not_matter_to_selections() -> None:
    found = grid(4)
    wanted = selections(found, (0, {0: [0]}))
    rule = SplitObjective(selections=wanted, rule=WeightRule.FIRST, weights=(0.0, 1.0))
    # First the selection cuts x; then the heavier column is halved in both parts.
    assert divisions(grow(found, 2, rule))[:3] == [(0, [0, 1]), (1, [0, 2]), (1, [0, 2])]


# --- nominal columns --------------------------------------------------------------------------------------------


def test_a_subset_is_ordered_by_the_first_selection_that_reaches_a_value() -> None:
    found = table((nominal(SplitMode.SUBSET, [None] * 5), [0, 0, 1, 1, 2, 2, 3, 3]))
    wanted = selections(found, (0, {0: [1, 4]}), (1, {0: [3]}))
    tree = grow(found, 2, SplitObjective(selections=wanted))
    # The order is 1, 4, 3, 0, 2, the value 4 being nobody's: {1} retrieves 2 + 6 + 6, {1, 4} retrieves 2 + 6, {1, 4, 3}
    # 4 + 4. Then 3 is parted from 0 and 2, and these go on by the median, as a run.
    assert divisions(tree) == [(0, {1, 4}), (0, {3}), (0, [0, 2])]
    assert tree.set_of.tolist() == [0, -1, 1, -1, -1, -1, -1]
    assert tree.start.tolist() == [0, 0, 0, 0, 0, 0, 2]


def test_a_binary_split_for_selections_is_a_set_of_whole_children() -> None:
    column = nominal(SplitMode.BINARY, [[None, None], [None, None], None], missing=True)
    found = table((column, [1, 1, 3, 3, 5, 5]))
    tree = grow(found, 2, SplitObjective(selections=selections(found, (0, {0: [4]}))))
    # Nobody is missing: that code is cut off first. Then the middle child, though nobody has the selected leaf.
    assert divisions(tree) == [(0, [0, 1]), (0, {3, 4}), (0, [3, 4]), (0, [1, 5]), (0, [1, 2])]


def test_missing_may_be_selected_in_a_taxonomy() -> None:
    found = table((nominal(SplitMode.BINARY, [None, None], missing=True), [0, 0, 1, 1, 2, 2]))
    tree = grow(found, 2, SplitObjective(selections=selections(found, (0, {0: [0, 2]}))))
    assert divisions(tree) == [(0, {0, 2}), (0, [0, 2])]


def test_a_multiway_split_reduces_what_is_retrieved() -> None:
    found = table((ordered([0, 1]), [0, 1] * 3), (nominal(SplitMode.MULTIWAY, [None] * 3), [0, 0, 1, 1, 2, 2]))
    wanted = selections(found, (0, {1: [1]}))
    assert divisions(grow(found, 2, SplitObjective(selections=wanted))) == [(1, [0, 1, 2])]


# --- after the selections ---------------------------------------------------------------------------------------


def test_parts_of_a_selection_go_on_by_targets() -> None:
    found = grid(4)
    wanted = selections(found, (0, {0: [2, 3]}))
    target = ClassTarget("class", np.array([int(y == 0) for _ in range(4) for y in range(4)]), 2)
    tree = grow(found, 2, SplitObjective((target,), wanted))
    assert divisions(tree)[:3] == [(0, [0, 2]), (1, [0, 1]), (1, [0, 1])]
    # The least gain is asked of targets only: after the selection's cut, each half gains 4.5 nats by y.
    stopped = SplitObjective((target,), wanted, min_gain=4.6)
    assert divisions(grow(found, 2, stopped)) == [(0, [0, 2])]
    allowed = SplitObjective((target,), wanted, min_gain=4.4)
    assert divisions(grow(found, 2, allowed)) == [(0, [0, 2]), (1, [0, 1]), (1, [0, 1])]


@pytest.mark.parametrize("with_target", [False, True])
def test_a_subset_goes_on_as_a_run_or_by_the_target(with_target: bool) -> None:
    found = table((nominal(SplitMode.SUBSET, [None] * 4), [0, 0, 1, 1, 2, 2, 3, 3]))
    wanted = selections(found, (0, {0: [1]}))
    target = ClassTarget("class", np.array([0, 0, 0, 0, 1, 1, 0, 0]), 2)
    tree = grow(found, 2, SplitObjective((target,) * with_target, wanted))
    # What is left beside the selected value 1 is 0, 2 and 3: by the median 0 and 2, by the target 2 alone.
    expected = [(0, {1}), (0, {2}), (0, {0})] if with_target else [(0, {1}), (0, [0, 3]), (0, [0, 2])]
    assert divisions(tree) == expected


@pytest.mark.parametrize("scale", [1e-12, 1e300])
def test_only_the_proportions_of_weights_matter(scale: float) -> None:
    found = grid(6)
    asked = [(0, {0: [0, 1]}), (1, {1: [3, 4, 5]}), (2, {0: [2], 1: [1]})]
    trees = []
    for factor in (1.0, scale):
        wanted = selections(found, *asked, weights=[3 * factor, factor, 2 * factor])
        trees.append(check_same(Asked(found, 2, SplitObjective(selections=wanted), [])))
    assert divisions(trees[0]) == divisions(trees[1])
    assert trees[0].regions > 3
