# SPDX-License-Identifier: Apache-2.0
"""Splits that models forbid, counted by hand and held against both engines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from engine_pairs import Asked, check_same
from hand_tables import classes, divisions, nominal, ordered, table

from anonfit.criteria.objectives import MEDIAN, SplitObjective
from anonfit.engines.memory.forms import Constraint
from anonfit.privacy.catalogue import make_model
from anonfit.privacy.coding import sensitive_column
from anonfit.tables.schema import CodedTable, SplitMode


def guarded(found: CodedTable, values: Sequence[Any], *models: tuple[str, dict[str, Any]]) -> list[Constraint]:
    """A column of these values with models."""
    weights = np.ones(found.rows, np.int64) if found.counts is None else found.counts.astype(np.int64)
    column, codes = sensitive_column(pl.Series("s", values), weights, entities=found.entities)
    return [Constraint(column, codes, tuple(make_model(column, name, asked) for name, asked in models))]


def split(
    found: CodedTable, values: Sequence[Any], model: str, k: int = 1, purpose: SplitObjective = MEDIAN, **asked: Any
) -> Any:
    """The splits under one model, by both engines."""
    return divisions(check_same(Asked(found, k, purpose, guarded(found, values, (model, asked)))))


LINE = table((ordered(range(8)), range(8)))


@pytest.mark.parametrize(
    ("model", "asked", "values", "cuts"),
    [
        # The median is 4. Nearest cuts to it, lower first: 3, 5, 2, 6 …
        ("distinct-l", {"l": 2}, "aaaababb", [(0, [0, 5])]),
        ("distinct-l", {"l": 3}, "abcabcab", [(0, [0, 4])]),
        # 3:1 is as diverse as 1.75 equally frequent values, 3:2 as 1.96 and 2:1 as 1.89.
        ("entropy-l", {"l": 1.88}, "aaabbaab", [(0, [0, 5])]),
        ("entropy-l", {"l": 1.9}, "aaabbaab", []),
        # ln 2 is what both have, to the last bit or not.
        ("entropy-l", {"l": 2.0}, "abbaabab", [(0, [0, 4]), (0, [0, 2]), (0, [4, 6])]),
        # 3 < c * 1 only if c is above 3.
        ("recursive-cl", {"c": 3.0, "l": 2}, "aaabaaab", []),
        ("recursive-cl", {"c": 3.01, "l": 2}, "aaabaaab", [(0, [0, 4])]),
        # 3:1 is 1/4 away from the table's 4:4, and 1:2 is 1/6 away.
        ("t-closeness", {"t": 0.25, "distance": "equal"}, "aaabbbba", [(0, [0, 4])]),
        ("t-closeness", {"t": 0.2499, "distance": "equal"}, "aaabbbba", [(0, [0, 5])]),
        ("t-closeness", {"t": 0.16, "distance": "equal"}, "aaabbbba", [(0, [0, 6])]),
        ("t-closeness", {"t": 0.16, "distance": "equal"}, "aaaabbbb", []),
        ("alpha-k", {"alpha": 0.75}, "aaabbbba", [(0, [0, 4])]),
        ("alpha-k", {"alpha": 0.7499}, "aaabbbba", [(0, [0, 5])]),
        # From 1/2 to 3/4 is a growth by one half.
        ("beta-likeness", {"beta": 0.5}, "aaabbbba", [(0, [0, 4])]),
        ("delta-disclosure", {"delta": math.log(2)}, "aaabbbba", [(0, [0, 4])]),
        ("delta-disclosure", {"delta": 0.69}, "aaabbbba", [(0, [0, 5])]),
        # 0 0 0 1 has squared deviations of 3/4 and a variance of 3/16; 1 1 0 after the next cut has 2/3.
        ("squared-error", {"error": 0.75}, [0, 0, 0, 1, 1, 1, 1, 0], [(0, [0, 4])]),
        ("squared-error", {"error": 0.76}, [0, 0, 0, 1, 1, 1, 1, 0], []),
        ("variance", {"variance": 3 / 16}, [0, 0, 0, 1, 1, 1, 1, 0], [(0, [0, 4])]),
    ],
)
def test_the_nearest_cut_that_a_model_allows(model: str, asked: dict[str, Any], values: Any, cuts: Any) -> None:
    assert split(LINE, list(values), model, k=2, **asked) == cuts


def test_ordered_distance_counts_how_far_shares_move() -> None:
    """Values 1 to 4, two persons each. After four persons: 1 1 2 2, so that shares of 1/4, 1/2 and 1/4 have moved up
    past the values 1, 2 and 3: one third of what all of them could.
    """
    values = [1, 1, 2, 2, 3, 3, 4, 4]
    assert split(LINE, values, "t-closeness", k=4, t=1 / 3, distance="ordered") == [(0, [0, 4])]
    assert split(LINE, values, "t-closeness", k=4, t=0.333, distance="ordered") == []


@pytest.mark.parametrize(("model", "parameter"), [("squared-error", "error"), ("variance", "variance")])
def test_numbers_in_fixed_point_are_given_no_more_room_by_one_engine_than_by_the_other(
    model: str, parameter: str
) -> None:
    """What is asked is what the lower half has, or nearly: numbers in fixed point are a little off."""
    splits = set()
    for seed in range(40):
        values = np.random.default_rng(seed).normal(0, 1, 8)
        values[4:] *= 10
        own = float(values[:4].var()) * (4 if parameter == "error" else 1)
        for factor in (1.0, 1 - 1e-8, 1 - 1e-7, 1 - 1e-6, 1 + 1e-8):
            splits.add(len(split(LINE, values.tolist(), model, k=4, **{parameter: own * factor})))
    assert splits == {0, 1}


def test_a_forbidden_best_cut_gives_way_to_the_best_that_is_allowed() -> None:
    # Of the changes of class at 2, 5 and 6 the one at 6 is best, then 5; with 6 the right side has one value.
    target = SplitObjective((classes("aabbbacc"),))
    free = divisions(check_same(Asked(LINE, 2, target)))
    assert free[0] == (0, [0, 6])
    assert split(LINE, list("xyxxyxyy"), "distinct-l", k=2, purpose=target, l=2)[0] == (0, [0, 5])


def test_the_column_of_a_forbidden_split_is_compared_anew() -> None:
    # x tells the classes exactly, but only by a split that leaves one value on a side; y nearly tells them.
    x = (ordered(range(2)), [0, 0, 0, 0, 1, 1, 1, 1])
    y = (ordered(range(2)), [0, 0, 0, 1, 0, 1, 1, 1])
    purpose = SplitObjective((classes("aaaabbbb"),))
    assert divisions(check_same(Asked(table(x, y), 2, purpose)))[0] == (0, [0, 1])
    assert split(table(x, y), list("rrrrsrrs"), "distinct-l", k=2, purpose=purpose, l=2)[0][0] == 1


def test_a_median_that_models_move_may_become_the_best_split() -> None:
    # The class changes in x below one row only, so that x is cut at its median: after 2, which leaves s s above it.
    # The nearest cut that is allowed is the one after 1: (a b)(b b b) is clearer than (a b b)(b b), and than what y
    # can do: (b b)(a b b).
    x = (ordered(range(5)), [0, 1, 2, 3, 3])
    y = (ordered(range(3)), [1, 2, 0, 2, 0])
    purpose = SplitObjective((classes("abbbb"),))
    assert split(table(x, y), list("srrss"), "distinct-l", k=2, purpose=purpose, l=2) == [(0, [0, 2])]


def test_missing_is_joined_where_a_model_forbids_it_to_stand_alone() -> None:
    # Codes: missing, three children. Missing alone is r r; joined to the first child it is r r r s.
    column = nominal(SplitMode.MULTIWAY, [None, None, None], missing=True)
    found = table((column, [0, 0, 1, 1, 2, 2, 3, 3]))
    assert split(found, list("rsrsrsrs"), "distinct-l", k=2, l=2) == [(0, [0, 1, 2, 3])]
    assert split(found, list("rrrsrsrs"), "distinct-l", k=2, l=2) == [(0, [0, 2, 3])]
    assert split(found, list("rrrsrrrs"), "distinct-l", k=2, l=2) == []


def test_a_person_counts_once_for_a_value_in_a_group() -> None:
    # Person 0 has four rows of r: r once, s once on the left side.
    codes, people = [0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 2, 3]
    values = list("rrrrsrs")
    found = table((ordered(range(2)), codes), entities=people)
    assert split(found, values, "alpha-k", k=2, alpha=0.5) == [(0, [0, 1])]
    rows = table((ordered(range(2)), codes))
    assert split(rows, values, "alpha-k", k=2, alpha=0.75) == []


def test_a_row_counts_for_all_its_persons() -> None:
    codes, values = [0, 0, 1, 1], list("rsrs")
    assert split(table((ordered(range(2)), codes)), values, "alpha-k", k=2, alpha=0.5) == [(0, [0, 1])]
    found = table((ordered(range(2)), codes), counts=[3, 1, 1, 3])
    assert split(found, values, "alpha-k", k=2, alpha=0.5) == []
    assert split(found, values, "alpha-k", k=2, alpha=0.75) == [(0, [0, 1])]


def test_several_columns_and_models_must_all_allow_a_split() -> None:
    one = guarded(LINE, list("ababbaab"), ("distinct-l", {"l": 2}), ("alpha-k", {"alpha": 0.6}))
    other = guarded(LINE, list("xxxxyxyx"), ("distinct-l", {"l": 2}))
    assert divisions(check_same(Asked(LINE, 2, MEDIAN, one)))[0] == (0, [0, 4])
    # The other column needs the cut after 5 persons: a b a b b and a a b. One share is then 2/3.
    assert divisions(check_same(Asked(LINE, 2, MEDIAN, other))) == [(0, [0, 5])]
    assert divisions(check_same(Asked(LINE, 2, MEDIAN, [*one, *other]))) == [(0, [0, 6])]
