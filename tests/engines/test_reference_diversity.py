# SPDX-License-Identifier: Apache-2.0
"""The plain engine makes no group that a sensitive column forbids, counted by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hand_tables import divisions, nominal, ordered, table
from purposes import DistinctValues, LargestShare, ValueEntropy

from anonfit.criteria.objectives import SplitObjective
from anonfit.criteria.targets import ClassTarget
from anonfit.tables.schema import CodedTable, SplitMode
from anonfit.testing.reference import Diverse, grow
from anonfit.testing.reference.records import Records

Demand = DistinctValues | ValueEntropy | LargestShare


def diverse(codes: Sequence[int], allows: Demand) -> tuple[Diverse, ...]:
    return (Diverse(np.array(codes), max(codes) + 1, allows),)


def counts(found: CodedTable, codes: Sequence[int], rows: Sequence[int]) -> list[int]:
    one = Diverse(np.array(codes), max(codes) + 1, DistinctValues(1))
    return Records(found, 1, SplitObjective(), ()).counts(one, rows).tolist()


def test_persons_of_each_value_are_counted() -> None:
    rows = [0, 0, 0, 0]
    assert counts(table((ordered([0]), rows)), [0, 2, 2, 2], [0, 1, 2]) == [1, 0, 2]
    assert counts(table((ordered([0]), rows), counts=[5, 1, 2, 9]), [0, 2, 2, 2], [0, 1, 2]) == [5, 0, 3]


def test_a_person_has_each_of_their_values_once() -> None:
    found = table((ordered([0]), [0] * 5), entities=[1, 1, 1, 2, 2])
    assert counts(found, [0, 0, 1, 0, 0], range(5)) == [2, 1]


def test_a_forbidden_median_gives_way_to_the_nearest_allowed_cut() -> None:
    found = table((ordered(range(6)), range(6)))
    assert divisions(grow(found, 2)) == [(0, [0, 3])]
    # The lower three have one value only. After code 3 there are 0 0 0 1 and 0 1.
    assert divisions(grow(found, 2, diversity=diverse([0, 0, 0, 1, 0, 1], DistinctValues(2)))) == [(0, [0, 4])]


def test_the_best_cut_for_a_target_may_be_forbidden() -> None:
    found = table((ordered(range(6)), range(6)))
    target = ClassTarget("class", np.array([0, 0, 0, 0, 1, 1]), 2)
    demand = diverse([0, 1, 0, 1, 0, 0], DistinctValues(2))
    assert divisions(grow(found, 2, SplitObjective((target,))))[0] == (0, [0, 4])
    # It is the only candidate: the median takes its place, though the cut below it is allowed too.
    assert divisions(grow(found, 2, SplitObjective((target,)), diversity=demand)) == [(0, [0, 3])]


def test_the_best_allowed_candidate_is_taken_before_the_median() -> None:
    # Classes abaaaabb: the class changes at 1 (one row below it), 2 and 6. The best is 6, and the median 4.
    found = table((ordered(range(8)), range(8)))
    purpose = SplitObjective((ClassTarget("class", np.array([0, 1, 0, 0, 0, 0, 1, 1]), 2),))
    assert divisions(grow(found, 2, purpose))[0] == (0, [0, 6])
    demand = diverse([0, 1, 0, 1, 0, 1, 0, 0], DistinctValues(2))
    assert divisions(grow(found, 2, purpose, diversity=demand))[0] == (0, [0, 2])


def test_every_part_of_a_multiway_split_must_be_allowed() -> None:
    found = table((nominal(SplitMode.MULTIWAY, [None, None, None]), [0, 0, 2, 2]))
    # The middle child is empty: no demand is made of it.
    assert divisions(grow(found, 2, diversity=diverse([0, 1, 0, 1], DistinctValues(2)))) == [(0, [0, 1, 2])]
    assert divisions(grow(found, 2, diversity=diverse([0, 1, 0, 0], DistinctValues(2)))) == []


def test_missing_joins_the_first_child_where_it_may_not_stand_alone() -> None:
    found = table((nominal(SplitMode.MULTIWAY, [None, None], missing=True), [0, 0, 1, 1, 2, 2]))
    assert divisions(grow(found, 2, diversity=diverse([0, 1, 0, 1, 0, 1], DistinctValues(2)))) == [(0, [0, 1, 2])]
    assert divisions(grow(found, 2, diversity=diverse([0, 0, 0, 1, 0, 1], DistinctValues(2)))) == [(0, [0, 2])]


def test_all_sensitive_columns_must_be_allowed() -> None:
    found = table((ordered([0, 1]), [0, 0, 1, 1]))
    fine, poor = diverse([0, 1, 0, 1], DistinctValues(2)), diverse([0, 1, 1, 1], DistinctValues(2))
    assert divisions(grow(found, 2, diversity=fine)) == [(0, [0, 1])]
    assert divisions(grow(found, 2, diversity=fine + poor)) == []


@pytest.mark.parametrize(("entities", "expected"), [([1, 1, 2, 3, 4, 4], [(0, [0, 1])]), (None, [])])
def test_rows_of_one_person_do_not_make_a_value_more_frequent(entities: list[int] | None, expected: list) -> None:
    found = table((ordered([0, 1]), [0, 0, 0, 1, 1, 1]), entities=entities)
    assert divisions(grow(found, 2, diversity=diverse([0, 0, 1, 0, 1, 1], LargestShare(0.5)))) == expected


def test_the_plain_demands() -> None:
    assert DistinctValues(2)(np.array([1, 0, 9]))
    assert not DistinctValues(3)(np.array([1, 0, 9]))
    assert ValueEntropy(2.0)(np.array([3, 3]))
    assert not ValueEntropy(2.0)(np.array([3, 4]))
    # Three and one: entropy 0.5623, the logarithm of 1.7548.
    assert ValueEntropy(1.754)(np.array([3, 1]))
    assert not ValueEntropy(1.755)(np.array([3, 1]))
    assert LargestShare(0.6)(np.array([3, 2]))
    assert not LargestShare(0.59)(np.array([3, 2]))
