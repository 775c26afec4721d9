# SPDX-License-Identifier: Apache-2.0
"""What a purpose says of columns: which may be split, and what their splits are worth."""

from __future__ import annotations

import numpy as np
import pytest

from anonfit.criteria.objectives import MEDIAN, SplitObjective, WeightRule, median_distance
from anonfit.criteria.targets import ClassTarget

WEIGHTS = (2.0, 0.5, 0.0)


@pytest.mark.parametrize(
    ("rule", "alpha", "merits"),
    [
        (WeightRule.NONE, 0.5, [0.4, 0.4, 0.4]),
        (WeightRule.FIRST, 0.5, [0.4, 0.4, 0.4]),
        (WeightRule.PRODUCT, 0.5, [0.8, 0.2, 0.0]),
        # The weight's share of the largest, and the value, half each.
        (WeightRule.BLEND, 0.5, [0.7, 0.325, 0.2]),
        (WeightRule.BLEND, 1.0, [1.0, 0.25, 0.0]),
        (WeightRule.BLEND, 0.0, [0.4, 0.4, 0.4]),
    ],
)
def test_the_merit_of_a_split(rule: WeightRule, alpha: float, merits: list[float]) -> None:
    purpose = SplitObjective(weights=WEIGHTS, rule=rule, alpha=alpha)
    assert [purpose.merit(column, 0.4) for column in range(3)] == pytest.approx(merits)


def test_the_merit_where_all_is_combined() -> None:
    """Section 5.1(c): the gain, weight times spread, and the pairs of rows that stay together."""
    purpose = SplitObjective(weights=WEIGHTS, rule=WeightRule.COMBINED, alpha=0.5, beta=0.2, gamma=0.3)
    found = [purpose.merit(column, 0.4, spread=0.5, together=0.6) for column in range(3)]
    assert found == pytest.approx([0.2 + 0.1 - 0.18, 0.2 + 0.025 - 0.18, 0.2 - 0.18])


def test_the_merit_by_chance_is_a_share_of_an_exponential_number() -> None:
    purpose = SplitObjective(weights=WEIGHTS, rule=WeightRule.CHANCE)
    assert [purpose.merit(column, 0.4, chance=0.5) for column in range(3)] == pytest.approx([0.8, 0.2, 0.0])
    assert SplitObjective(weights=(0.0, 0.0), rule=WeightRule.CHANCE).merit(0, 0.4) == 0.0


def test_a_blend_of_weights_that_are_all_zero_is_the_value_alone() -> None:
    assert SplitObjective(weights=(0.0, 0.0), rule=WeightRule.BLEND, alpha=0.25).merit(1, 0.4) == pytest.approx(0.3)


def test_columns_that_may_be_split() -> None:
    assert all(MEDIAN.may_split(column) for column in range(5))
    some = SplitObjective(split_on=frozenset({1, 3}))
    assert [some.may_split(column) for column in range(4)] == [False, True, False, True]
    assert not SplitObjective(split_on=frozenset()).may_split(0)


def test_factors_are_of_mean_impurities() -> None:
    """Four persons in units of a half: the mean is over persons, not over units."""
    target = ClassTarget("c", np.array([0, 1]), 2, weight=2.0)
    sums = target.additions(np.array([4, 4])).sum(axis=0)
    purpose = SplitObjective((target,), unit=0.5)
    assert purpose.factors((sums,), 8) == (2.0,)
    assert purpose.factors((sums * 0,), 0) == (2.0,)


def test_the_distance_of_a_cut_from_the_lower_median() -> None:
    # Of seven persons the fourth is the median.
    assert median_distance(4, 1, 7) == (False, 0)
    assert median_distance(5, 2, 7) == (False, 1)
    assert median_distance(5, 1, 7) == (True, 1)
    assert median_distance(3, 1, 7) == (True, 1)
