# SPDX-License-Identifier: Apache-2.0
"""Additive statistics: exact sums that do not depend on order, and differences that are never negative by rounding."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonfit.algorithms.demands import Demands, refuse_infeasible
from anonfit.criteria.targets import ClassTarget, NumberTarget, ShareTarget
from anonfit.errors import Infeasible
from anonfit.tables.scales import fixed_point


def test_sums_by_hand() -> None:
    scale = fixed_point(1.0, 3.0, persons=4)
    values = np.array([1.0, 3.0, 2.0])
    weights = np.array([1, 1, 2])
    classes = ClassTarget("c", np.array([0, 1, 1]), 2).additions(weights)
    assert (classes[0].tolist(), classes[1:].sum(axis=0).tolist()) == ([1, 0], [0, 3])
    numbers = NumberTarget("r", scale.quantize(values), scale).additions(weights)
    assert numbers[1:].sum(axis=0).tolist() == [3, round(1.0 / scale.step), round(1.0 / scale.step) ** 2]


@given(st.lists(st.floats(999_990, 1_000_010), min_size=2, max_size=50))
def test_a_part_taken_from_the_whole_leaves_the_exact_rest(numbers: list[float]) -> None:
    values = np.array(numbers)
    scale = fixed_point(values.min(), values.max(), persons=len(values))
    rows = NumberTarget("r", scale.quantize(values), scale).additions(np.ones(len(values), np.int64))
    half = len(values) // 2
    rest = rows.sum(axis=0) - rows[:half].sum(axis=0)
    assert rest.tolist() == rows[half:][::-1].sum(axis=0).tolist()
    persons, total, squares = rest.tolist()
    assert squares * persons >= total * total


@given(st.floats(-1e300, 1e300), st.floats(0, 1e300), st.integers(1, 10**9))
def test_squares_of_the_farthest_number_can_be_summed(low: float, width: float, persons: int) -> None:
    scale = fixed_point(low, low + width, persons=persons)
    ends = scale.quantize(np.array([low, low + width]))
    assert max(abs(int(end)) for end in ends) ** 2 * persons < 2**63


def test_numbers_come_back_within_half_a_step() -> None:
    values = np.random.default_rng(0).normal(1e6, 1, 1000)
    scale = fixed_point(values.min(), values.max(), persons=1000)
    assert np.abs(scale.restore(scale.quantize(values)) - values).max() <= scale.step / 2 + 1e-9


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.integers(-60, 60))
def test_numbers_in_units_of_another_power_of_two_are_the_same_multiples(numbers: list[float], power: int) -> None:
    # Below 1e-200 the scaled numbers themselves would lose bits.
    values = np.array([number if abs(number) > 1e-200 else 0.0 for number in numbers])
    scaled = values * 2.0**power
    one, other = (fixed_point(each.min(), each.max(), persons=99) for each in (values, scaled))
    assert one.quantize(values).tolist() == other.quantize(scaled).tolist()


@pytest.mark.parametrize("ends", [(2.0, 1.0), (float("nan"), 1.0), (0.0, float("inf"))])
def test_ends_that_are_none_are_refused(ends: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="two finite ends"):
        fixed_point(*ends, persons=1)


def test_classes_and_shares_are_counted_in_persons() -> None:
    weights = np.array([3, 1, 2])
    assert ClassTarget("c", np.array([1, 0, 1]), 3).additions(weights).sum(axis=0).tolist() == [1, 5, 0]
    shares = ShareTarget("s", np.array([[1, 3], [4, 0], [2, 2]]))
    assert shares.additions(weights).tolist() == [[3, 9], [4, 0], [4, 4]]


def test_k_counts_exactly() -> None:
    for persons in (3, 4):
        refuse_infeasible(Demands(3), persons, [])
    with pytest.raises(Infeasible, match=re.escape("2 persons, fewer than k = 3")):
        refuse_infeasible(Demands(3), 2, [])
