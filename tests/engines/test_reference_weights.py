# SPDX-License-Identifier: Apache-2.0
"""The plain engine with columns that are targets themselves, weights and a least gain, counted by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hand_tables import classes, divisions, guided, nominal, numbers, ordered, table

from anonfit.criteria.objectives import MEDIAN, SplitObjective, WeightRule
from anonfit.criteria.targets import ClassTarget, Impurity
from anonfit.tables.schema import CodedTable, SplitMode
from anonfit.testing.reference import grow
from anonfit.testing.reference.choosing import Blind
from anonfit.testing.reference.records import Records

# --- a quasi-identifier as the target ---------------------------------------------------------------------------


def test_a_column_is_not_split_to_predict_itself() -> None:
    itself, other = (ordered([0, 1]), [0, 0, 1, 1]), (ordered([0, 1]), [0, 0, 1, 1])
    target = classes([0, 0, 1, 1], column=0)
    criterion, root = guided(table(itself, other), SplitObjective((target,)))
    assert criterion.split_cost(root, 0, [[0], [1]]) == criterion.node_cost(root) == pytest.approx(math.log(2))
    assert criterion.split_cost(root, 1, [[0], [1]]) == 0.0
    assert divisions(grow(table(itself, other), 2, SplitObjective((target,)))) == [(1, [0, 1])]


@pytest.mark.parametrize("all_cuts", [False, True])
def test_a_column_that_is_the_only_target_is_cut_at_its_median(all_cuts: bool) -> None:
    found = table((ordered(range(5)), [0, 0, 1, 2, 3, 4, 4, 4]))
    target = numbers([0, 0, 1, 2, 3, 4, 4, 4], column=0)
    assert divisions(grow(found, 2, SplitObjective((target,), all_cuts=all_cuts)))[0] == (0, [0, 3])
    subset = table((nominal(SplitMode.SUBSET, [None] * 4), [3, 3, 1, 1, 0, 0, 2, 2]))
    itself = classes([3, 3, 1, 1, 0, 0, 2, 2], column=0)
    assert divisions(grow(subset, 2, SplitObjective((itself,), all_cuts=all_cuts))) == [(0, {0, 1}), (0, {0}), (0, {2})]


def test_a_column_that_is_a_target_is_cut_for_the_other_targets() -> None:
    found = table((ordered(range(4)), [0, 0, 1, 1, 2, 2, 3, 3]))
    itself, other = classes([0, 0, 1, 1, 2, 2, 3, 3], column=0), classes("aabbbbbb")
    purpose = SplitObjective((itself, other))
    criterion, root = guided(found, purpose)
    assert criterion.split_cost(root, 0, [[0], [1, 2, 3]]) == pytest.approx(math.log(4), abs=1e-12)
    assert divisions(grow(found, 2, purpose))[0] == (0, [0, 1])


# --- weights ----------------------------------------------------------------------------------------------------

RANGES = table((ordered(range(11)), [0, 0, 3, 3]), (ordered(range(11)), [0, 5, 0, 5]))
"""Columns that span 3 and 5 of 10."""

GAINS = table((ordered([0, 1]), [0, 0, 0, 0, 1, 1, 1, 1]), (ordered([0, 1]), [0, 0, 0, 1, 0, 1, 1, 1]))
"""For the classes aaaabbbb: a column that gains all, and one that gains 1 - 0.5623 / ln 2 = 18.9 %."""


def first_column(found: CodedTable, k: int, **settings: Any) -> int:
    return divisions(grow(found, k, SplitObjective(**settings)))[0][0]


@pytest.mark.parametrize(
    ("rule", "weights", "alpha", "column"),
    [
        (WeightRule.NONE, (9.0, 1.0), 0.5, 1),
        (WeightRule.FIRST, (1.1, 1.0), 0.5, 0),
        (WeightRule.FIRST, (1.0, 1.0), 0.5, 1),
        (WeightRule.FIRST, (1.0 + 1e-15, 1.0), 0.5, 0),
        (WeightRule.PRODUCT, (5.1, 3.0), 0.5, 0),  # 1.53 and 1.5
        (WeightRule.PRODUCT, (4.9, 3.0), 0.5, 1),
        (WeightRule.PRODUCT, (0.0, 0.0), 0.5, 1),
        (WeightRule.BLEND, (2.0, 1.0), 0.5, 0),  # 0.65 and 0.5
        (WeightRule.BLEND, (2.0, 1.0), 0.2, 1),  # 0.44 and 0.5
        (WeightRule.BLEND, (0.0, 0.0), 0.5, 1),
        (WeightRule.NAIVE, (1.1, 1.0), 0.5, 0),
        (WeightRule.NAIVE, (1.0, 1.0), 0.5, 1),
    ],
)
def test_weights_and_ranges(rule: WeightRule, weights: tuple[float, ...], alpha: float, column: int) -> None:
    assert first_column(RANGES, 2, rule=rule, weights=weights, alpha=alpha) == column


@pytest.mark.parametrize(
    ("rule", "weights", "alpha", "column"),
    [
        (WeightRule.NONE, (1.0, 9.0), 0.5, 0),
        (WeightRule.FIRST, (1.0, 1.1), 0.5, 1),
        (WeightRule.FIRST, (1.0, 1.0), 0.5, 0),
        (WeightRule.FIRST, (1.0, 1.0 + 1e-15), 0.5, 1),
        (WeightRule.PRODUCT, (1.0, 5.5), 0.5, 1),  # 1 and 1.038
        (WeightRule.PRODUCT, (1.0, 5.0), 0.5, 0),  # 1 and 0.944
        (WeightRule.BLEND, (0.0, 1.0), 0.5, 1),  # 0.5 and 0.594
        (WeightRule.BLEND, (0.0, 1.0), 0.4, 0),  # 0.6 and 0.513
        (WeightRule.NAIVE, (1.0, 1.1), 0.5, 1),
        (WeightRule.NAIVE, (1.0, 1.0), 0.5, 0),
    ],
)
def test_weights_and_gains(rule: WeightRule, weights: tuple[float, ...], alpha: float, column: int) -> None:
    target = (classes("aaaabbbb"),)
    assert first_column(GAINS, 4, targets=target, rule=rule, weights=weights, alpha=alpha) == column


UNEVEN = table((ordered([0, 1]), [0] * 6 + [1] * 2), (ordered([0, 1, 2]), [0] * 4 + [1] * 4))
"""Columns that part 6 from 2 rows over their whole range, and 4 from 4 over half of theirs."""


@pytest.mark.parametrize(
    ("alpha", "beta", "gamma", "weights", "column"),
    [
        (1.0, 0.0, 0.0, (1.0, 1.0), 0),  # gains: all, and 1 - 0.5 ln 2 / 0.5623 = 38.4 %
        (0.0, 1.0, 0.0, (1.0, 1.0), 0),  # spreads 1 and 0.5
        (0.0, 1.0, 0.0, (0.4, 1.0), 1),  # 0.4 and 0.5
        (0.0, 0.0, 1.0, (1.0, 1.0), 1),  # 40 / 64 and 32 / 64 of the pairs stay together
        (0.1, 0.0, 0.4, (1.0, 1.0), 0),  # 0.1 - 0.25, and 0.0384 - 0.2
        (0.1, 0.0, 0.6, (1.0, 1.0), 1),  # 0.1 - 0.375, and 0.0384 - 0.3
    ],
)
def test_gain_weight_and_evenness_combined(
    alpha: float, beta: float, gamma: float, weights: tuple[float, ...], column: int
) -> None:
    settings: dict[str, Any] = {"alpha": alpha, "beta": beta, "gamma": gamma, "weights": weights}
    target = (classes("aaaaaabb"),)
    assert first_column(UNEVEN, 2, targets=target, rule=WeightRule.COMBINED, **settings) == column


def test_naive_is_by_the_range_where_gains_would_choose_otherwise() -> None:
    # The wider column gains nothing.
    found = table((ordered(range(3)), [0, 0, 1, 1]), (ordered(range(2)), [0, 1, 0, 1]))
    target = (classes("aabb"),)
    assert first_column(found, 2, targets=target, rule=WeightRule.FIRST, weights=(1.0, 1.0)) == 0
    assert first_column(found, 2, targets=target, rule=WeightRule.NAIVE, weights=(1.0, 1.0)) == 1


# --- features ---------------------------------------------------------------------------------------------------


def test_a_feature_counts_for_the_splits_of_its_own_column() -> None:
    codes = [0, 0, 0, 9, 9, 9]
    found = table((ordered(range(10)), codes), (ordered([0, 1]), [0, 1, 0, 1, 0, 1]))
    assert divisions(grow(found, 3, SplitObjective((numbers(codes),))))[0] == (0, [0, 9])
    names = ClassTarget("names", np.array([0, 0, 1, 1, 2, 2]), 3, measured_by=Impurity.GINI)
    subset = table((nominal(SplitMode.SUBSET, [None] * 3), [0, 0, 1, 1, 2, 2]), (ordered([0, 1]), [0, 1] * 3))
    criterion, root = guided(subset, SplitObjective((names,)))
    # Shares of 2/3, and of 1/2 in four of six rows.
    assert criterion.node_cost(root) == pytest.approx(1.0)
    assert criterion.split_cost(root, 0, [[0], [1, 2]]) == pytest.approx((4 * 1 / 2) / (6 * 2 / 3))


def test_the_heaviest_column_is_passed_over_where_it_has_no_legal_split() -> None:
    blocked = (ordered(range(3)), [0, 1, 1, 2])
    free = (ordered([0, 1]), [0, 0, 1, 1])
    for targets in ((), (classes("aabb"),)):
        assert first_column(table(blocked, free), 2, targets=targets, rule=WeightRule.FIRST, weights=(9.0, 0.0)) == 1


def test_a_pure_node_has_no_gain_to_share() -> None:
    # The share of the gain is 0 for both columns: the weights decide in a blend, the range in a product.
    settings: dict[str, Any] = {"targets": (classes("aaaa"),), "weights": (2.0, 1.0)}
    assert first_column(RANGES, 2, rule=WeightRule.BLEND, **settings) == 0
    assert first_column(RANGES, 2, rule=WeightRule.PRODUCT, **settings) == 1


# --- the least gain ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1.0, 0.125])
def test_a_node_that_gains_too_little_is_a_region(unit: float) -> None:
    # The first split gains 8 ln 2 = 5.545 in all, those of its pure halves nothing.
    found = table((ordered(range(4)), [0, 0, 1, 1, 2, 2, 3, 3]))
    settings: dict[str, Any] = {"targets": (classes("aaaabbbb"),), "masses": np.full(8, round(1 / unit)), "unit": unit}
    assert len(divisions(grow(found, 2, SplitObjective(**settings)))) == 3
    assert divisions(grow(found, 2, SplitObjective(**settings, min_gain=5.54))) == [(0, [0, 2])]
    assert divisions(grow(found, 2, SplitObjective(**settings, min_gain=5.55))) == []


def test_without_targets_there_is_no_least_gain() -> None:
    assert divisions(grow(RANGES, 2, SplitObjective(min_gain=9.0))) == [(1, [0, 5])]


def test_the_widest_column_is_preferred_and_of_equal_ones_the_first() -> None:
    """Ranges that differ by less than a billionth are equal."""
    chooser = Blind(Records(table((ordered(range(2)), [0, 1])), 1, MEDIAN, ()), MEDIAN)
    assert chooser.prefer({0: 0.2, 1: 0.5, 2: 0.5 + 1e-10}) == 1
    assert chooser.prefer({0: 0.5, 1: 0.5 + 1e-8}) == 1
    assert chooser.prefer({0: 0.0}) == 0
