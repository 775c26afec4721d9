# SPDX-License-Identifier: Apache-2.0
"""Top-down refinement on small tables whose refinements are counted by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonfit.algorithms.demands import Requirement, redundant
from anonfit.algorithms.refining_columns import ColumnPart, Left, Reason, Refined, Step
from anonfit.engines.memory.forms import Constraint
from anonfit.errors import Infeasible, RequestError
from anonfit.privacy.catalogue import make_model
from anonfit.privacy.coding import sensitive_column
from anonfit.tables.schema import CodedColumn, CodedTable, SplitMode, code_dtype
from anonfit.tables.taxonomy import Taxonomy
from refined_tables import refine


def ordered(size: int, *, missing: bool = False) -> CodedColumn:
    return CodedColumn("ordered", size, SplitMode.ORDERED, missing, np.arange(size, dtype=np.float64))


def named(tree: Any, mode: SplitMode = SplitMode.MULTIWAY, *, missing: bool = False) -> CodedColumn:
    """A nominal column over a tree of nested lists of names; the first name of a list is the node's own."""

    def nested(part: Any) -> dict[str, Any]:
        if isinstance(part, str):
            return {"name": part}
        return {"name": part[0], "children": [nested(one) for one in part[1:]]}

    taxonomy = Taxonomy.from_tree(nested(tree))
    size = len(taxonomy.leaves) + missing
    return CodedColumn("nominal", size, mode, missing, np.zeros(size), taxonomy)


def table(*columns: tuple[CodedColumn, Sequence[int]], **persons: Sequence[int]) -> CodedTable:
    return CodedTable(
        tuple(column for column, _ in columns),
        tuple(np.array(codes, code_dtype(column.size)) for column, codes in columns),
        len(columns[0][1]),
        **{name: np.array(numbers, np.uint32) for name, numbers in persons.items()},
    )


def classes(text: str) -> Any:
    return np.array([ord(one) - ord("a") for one in text])


def refined(found: CodedTable, text: str, k: int = 1, **options: Any) -> Refined:
    """A table refined for one requirement on all its columns."""
    everything = Requirement(tuple(range(len(found.columns))), k)
    return refine(found, classes(text), [everything], **options)


def codes(parts: Sequence[ColumnPart]) -> list[list[int]]:
    return [list(part.codes) for part in parts]


def left(found: Refined) -> dict[tuple[int, tuple[int, ...]], Reason]:
    return {(one.column, tuple(one.part.codes)): one.reason for one in found.left}


# --- columns ----------------------------------------------------------------------------------------------------


def test_an_interval_is_cut_where_classes_part_even_if_k_forbids_it() -> None:
    line = table((ordered(8), range(8)))
    assert codes(refined(line, "aaabbbbb", 3).parts[0]) == [[0, 1, 2], [3, 4, 5, 6, 7]]
    found = refined(line, "aaabbbbb", 4)
    assert codes(found.parts[0]) == [list(range(8))]
    assert left(found) == {(0, tuple(range(8))): Reason.FEW_PERSONS}


def test_the_first_of_equally_good_cuts() -> None:
    # Before 2 and before 6 the same is told; the upper part is then cut before 6.
    found = refined(table((ordered(8), range(8))), "aabbbbaa")
    assert [codes(step.into) for step in found.steps] == [[[0, 1], [2, 3, 4, 5, 6, 7]], [[2, 3, 4, 5], [6, 7]]]


def test_values_that_do_not_occur_stay_with_the_lower_interval() -> None:
    assert codes(refined(table((ordered(6), [0, 1, 4, 5])), "aabb").parts[0]) == [[0, 1, 2, 3], [4, 5]]


def test_missing_is_the_lowest_value_of_an_interval() -> None:
    found = refined(table((ordered(4, missing=True), [0, 0, 1, 2, 3])), "bbaaa")
    assert codes(found.parts[0]) == [[0], [1, 2, 3]]


def test_missing_is_a_child_of_the_root() -> None:
    column = named(["*", ["low", "p", "q"], "r"], missing=True)
    found = refined(table((column, [0, 0, 1, 1, 2, 2, 3, 3])), "aaaabbbb", 2)
    assert found.steps[0].refined == ColumnPart(range(4), 0)
    assert found.steps[0].into == (ColumnPart(range(1)), ColumnPart(range(1, 3), 1), ColumnPart(range(3, 4), 4))
    assert found.parts[0] == (
        ColumnPart(range(1)),
        ColumnPart(range(1, 2), 2),
        ColumnPart(range(2, 3), 3),
        ColumnPart(range(3, 4), 4),
    )


def test_the_only_leaf_of_a_taxonomy_parts_from_missing() -> None:
    found = refined(table((named("x", missing=True), [0, 0, 1, 1])), "aabb")
    assert found.parts[0] == (ColumnPart(range(1)), ColumnPart(range(1, 2), 0))


def test_children_without_rows_are_parts_too() -> None:
    found = refined(table((named(["*", "p", "q", "r"]), [0, 0, 2, 2])), "aabb")
    assert codes(found.parts[0]) == [[0], [1], [2]]
    assert found.groups == (2,)


def test_suppressed_values_are_disclosed_one_by_one() -> None:
    column = named(["*", "p", "q", "r", "s"], SplitMode.SUBSET)
    found = refined(table((column, [0, 0, 1, 1, 2, 2, 3, 3])), "aabbcccc", 2)
    # Disclosing r or s leaves more mixed than p or q: 1.5 bits against 0.5 x 0 + 0.5 x 1 + … p first, being the first.
    assert [(step.refined, codes(step.into)) for step in found.steps] == [(None, [[0]]), (None, [[1]])]
    assert found.parts[0][-1] == ColumnPart((2, 3), is_rest=True)
    assert left(found) == {(0, (2,)): Reason.ONE_CLASS, (0, (3,)): Reason.ONE_CLASS}


def test_a_rare_value_stays_suppressed_while_others_are_disclosed() -> None:
    column = named(["*", "p", "q", "r"], SplitMode.SUBSET)
    found = refined(table((column, [0, 0, 0, 1, 2, 2, 2])), "aaabbba", 2)
    assert codes(found.parts[0]) == [[0], [1, 2]]
    assert left(found) == {(0, (1,)): Reason.FEW_PERSONS, (0, (2,)): Reason.FEW_PERSONS}


def test_only_the_value_of_the_highest_gain_is_tried_and_closes_its_column() -> None:
    # q tells most but is one person; p alone would do.
    column = named(["*", "p", "q", "r"], SplitMode.SUBSET)
    found = table((column, [0] * 4 + [1] + [2] * 4))
    text = "aaab" + "b" + "aaaa"
    everything = refined(found, text, 2)
    assert codes(everything.parts[0])[0] in ([0], [2])
    closed = refined(found, text, 2, suppression="best_gain")
    assert not closed.steps
    assert left(closed) == {(0, (0,)): Reason.CLOSED, (0, (1,)): Reason.FEW_PERSONS, (0, (2,)): Reason.CLOSED}


def test_what_tells_nothing_is_refined_only_if_asked() -> None:
    tree = named(["*", ["low", "p", "q"], ["high", "r", "s"]])
    found = table((tree, [0, 1, 2, 3]))
    assert left(refined(found, "abab")) == {(0, (0, 1, 2, 3)): Reason.NO_GAIN}
    steps = refined(found, "abab", zero_gain=True).steps
    assert [(step.gain, step.loss) for step in steps] == [(0, 2), (1, 1), (1, 0)]


def test_the_only_child_that_has_rows_is_passed_through() -> None:
    tree = named(["*", ["only", ["one", "p", "q"]]])
    (step,) = refined(table((tree, [0, 0, 1, 1])), "aabb").steps
    assert (step.refined, codes(step.into), step.gain, step.loss) == (ColumnPart(range(2), 0), [[0], [1]], 1, 2)
    beside = named(["*", ["low", ["one", "p", "q"], "r"], "s"])
    found = refined(table((beside, [0, 0, 1, 1])), "aabb")
    assert found.parts[0] == (
        ColumnPart(range(1), 3),
        ColumnPart(range(1, 2), 4),
        ColumnPart(range(2, 3), 5),
        ColumnPart(range(3, 4), 6),
    )
    assert refined(table((beside, [0, 0, 1, 1])), "aabb", 3).parts[0] == (ColumnPart(range(4), 0),)


def test_zero_gain_is_exact() -> None:
    # Thirds: rounding must not make a gain of them.
    found = table((ordered(2), [0] * 3 + [1] * 9))
    assert not refined(found, "abb" + "abb" * 3).steps
    assert refined(found, "abb" + "abb" * 3, zero_gain=True).steps[0].gain == 0


# --- choosing ---------------------------------------------------------------------------------------------------


def test_equal_scores_are_decided_by_the_order_of_columns() -> None:
    one, other = (ordered(2), [0, 0, 1, 1]), (named(["*", "p", "q"]), [1, 1, 0, 0])
    assert refined(table(one, other), "aabb", 2).steps[0].column == 0
    assert refined(table(other, one), "aabb", 2).steps[0].column == 0


def test_a_candidate_made_earlier_wins_a_tie_with_a_later_one() -> None:
    # After the cut in the middle, both halves are equally good.
    found = refined(table((ordered(8), range(8))), "abbbccca")
    assert [codes(step.into)[0] for step in found.steps[:2]] == [[0, 1, 2, 3], [0]]


def test_weights_count_in_gains_and_not_in_persons() -> None:
    found = table((ordered(4), range(4)))
    assert codes(refined(found, "abba").steps[0].into) == [[0], [1, 2, 3]]
    weighted = refine(found, classes("abba"), [Requirement((0,), 1)], weights=np.array([1, 9, 9, 9]))
    assert codes(weighted.steps[0].into) == [[0, 1, 2], [3]]
    assert weighted.steps[0].anonymity == (1,)


# --- persons ----------------------------------------------------------------------------------------------------


def test_a_row_counts_for_all_its_persons() -> None:
    found = table((ordered(2), [0, 1]), counts=[3, 5])
    assert refined(found, "ab", 3).anonymity == (3,)
    assert refined(found, "ab", 4).anonymity == (8,)


def test_a_person_with_rows_in_two_groups_counts_in_both() -> None:
    found = table((ordered(2), [0, 0, 0, 1, 1, 1]), entities=[0, 1, 1, 1, 2, 3])
    assert refined(found, "aaabbb", 2).anonymity == (2,)
    assert refined(found, "aaabbb", 3).anonymity == (4,)


def test_who_stays_suppressed_is_counted_by_persons() -> None:
    # Without q, the rest is persons 0 and 1; q is persons 1, 2 and 3.
    column = named(["*", "p", "q"], SplitMode.SUBSET)
    found = table((column, [0, 0, 1, 1, 1]), entities=[0, 1, 1, 2, 3])
    assert refined(found, "aabbb", 2).steps[0].anonymity == (2,)
    assert not refined(found, "aabbb", 3).steps


# --- requirements -----------------------------------------------------------------------------------------------


def test_a_requirement_within_another_is_redundant_unless_its_k_is_higher() -> None:
    asked = (Requirement((0,), 2), Requirement((0, 1), 2), Requirement((1,), 3), Requirement((1, 0), 2))
    assert redundant(asked) == ((0, 1), (3, 1))
    assert redundant((Requirement((0,), 2), Requirement((0, 1), 2), Requirement((0, 1, 2), 5))) == ((0, 2), (1, 2))


def test_a_redundant_requirement_changes_nothing() -> None:
    found = table((ordered(4), [0, 0, 1, 1, 2, 2, 3, 3]), (ordered(2), [0, 1] * 4))
    text = classes("aabbabab")
    alone = refine(found, text, [Requirement((0, 1), 2)])
    both = refine(found, text, [Requirement((0, 1), 2), Requirement((0,), 1)])
    assert alone.steps
    assert both.redundant == ((1, 0),)
    assert [(one.column, one.into, one.loss) for one in both.steps] == [
        (one.column, one.into, one.loss) for one in alone.steps
    ]
    assert [one.anonymity[0] for one in both.steps] == [one.anonymity[0] for one in alone.steps]


def test_columns_of_different_requirements_do_not_meet() -> None:
    # On both columns together every record is alone.
    found = table((ordered(2), [0, 0, 1, 1]), (ordered(2), [0, 1, 0, 1]))
    apart = refine(found, classes("abbb"), [Requirement((0,), 2), Requirement((1,), 2)])
    assert [codes(parts) for parts in apart.parts] == [[[0], [1]], [[0], [1]]]
    together = refined(found, "abbb", 2)
    assert [codes(parts) for parts in together.parts] == [[[0], [1]], [[0, 1]]]


# --- models -----------------------------------------------------------------------------------------------------


def guarded(values: str, different: int) -> list[Constraint]:
    column, found = sensitive_column(pl.Series("s", list(values)), np.ones(len(values), np.int64))
    return [Constraint(column, found, (make_model(column, "distinct-l", {"l": different}),))]


def test_the_best_refinement_that_a_model_forbids_gives_way_to_the_next() -> None:
    found = table((ordered(2), [0, 0, 1, 1]), (ordered(2), [0, 0, 0, 1]))
    text = "aabb"
    assert refined(found, text).steps[0].column == 0
    held = refined(found, text, constraints=guarded("rrss", 2))
    assert not held.steps
    assert left(held) == {(0, (0, 1)): Reason.MODEL, (1, (0, 1)): Reason.MODEL}
    found = table((ordered(2), [0, 0, 1, 1]), (ordered(2), [0, 1, 0, 1]))
    assert [step.column for step in refined(found, "aaab", constraints=guarded("rrss", 2)).steps] == [1]


def test_models_hold_in_the_groups_of_every_requirement() -> None:
    found = table((ordered(2), [0, 0, 1, 1]), (ordered(2), [0, 1, 0, 1]))
    asked = [Requirement((0,), 2), Requirement((0, 1), 1)]
    assert [step.column for step in refine(found, classes("abbb"), asked, constraints=guarded("rssr", 2)).steps] == [0]


def test_a_model_that_fails_in_the_last_requirement_forbids_as_well() -> None:
    # Each column alone leaves both values in every group, both together one value in each.
    found = table((ordered(2), [0, 0, 0, 0, 1, 1, 1, 1]), (ordered(2), [0, 0, 1, 1, 0, 0, 1, 1]))
    asked = [Requirement((0,), 1), Requirement((1,), 1), Requirement((0, 1), 1)]
    free = refine(found, classes("aabbaabc"), asked)
    assert [step.column for step in free.steps] == [1, 0]
    for order in (asked, asked[::-1]):
        held = refine(found, classes("aabbaabc"), order, constraints=guarded("rrssssrr", 2))
        assert [step.column for step in held.steps] == [1]
        assert left(held) == {(0, (0, 1)): Reason.MODEL}


# --- stopping and telling ---------------------------------------------------------------------------------------


def test_stopping_leaves_a_valid_state_and_progress_is_told_every_step() -> None:
    found = table((ordered(8), range(8)))
    told: list[Step] = []
    whole = refined(found, "aabbbbaa", progress=told.append)
    assert tuple(told) == whole.steps
    stopped = refined(found, "aabbbbaa", stop=lambda: len(told) > 0)
    assert stopped.is_stopped
    assert codes(stopped.parts[0]) == [list(range(8))]
    assert stopped.anonymity == (8,)
    assert stopped.left == (Left(0, ColumnPart(range(8)), Reason.STOPPED, stopped.left[0].gain, 6.0),)


def test_a_run_that_is_through_was_not_stopped() -> None:
    found = refined(table((ordered(2), [0, 1])), "aa", stop=lambda: True)
    assert not found.is_stopped


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ([], "at least one"),
        ([Requirement((), 2)], "at least one"),
        ([Requirement((0, 2), 2)], "column 2 of a table of 2"),
        ([Requirement((0,), 2)], "'nominal' is in no quasi-identifier"),
    ],
)
def test_requirements_that_do_not_fit_are_refused(asked: list[Requirement], text: str) -> None:
    found = table((ordered(2), [0, 1]), (named(["*", "p", "q"]), [0, 1]))
    with pytest.raises(RequestError, match=text):
        refine(found, classes("ab"), asked)


def test_a_table_of_fewer_than_k_persons_is_infeasible() -> None:
    with pytest.raises(Infeasible, match="fewer than k = 5"):
        refined(table((ordered(2), [0, 1, 1, 0])), "abab", 5)
    with pytest.raises(Infeasible):
        refined(table((ordered(2), [0, 1])), "ab", constraints=guarded("rr", 2))
