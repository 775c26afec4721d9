# SPDX-License-Identifier: Apache-2.0
"""How mixed groups are, by hand: entropies, squared deviations, and how several targets are put together."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonfit.criteria.targets import SHARE_BITS, ClassTarget, Impurity, NumberTarget, ShareTarget, Target, factors
from anonfit.tables.scales import fixed_point
from strategies import tries

WHOLE = 1 << SHARE_BITS


def class_target(classes: list[int], **settings: float) -> ClassTarget:
    return ClassTarget("c", np.array(classes), max(classes) + 1, **settings)


def number_target(values: list[float], **settings: object) -> NumberTarget:
    scale = fixed_point(min(values), max(values), persons=1000)
    return NumberTarget("n", scale.quantize(np.array(values)), scale, **settings)  # type: ignore[arg-type]


def impurity_of(target: Target, masses: list[int], unit: float = 1.0) -> float:
    """The impurity of all rows of a target."""
    return target.impurity(target.additions(np.array(masses)).sum(axis=0), unit)


# --- classes ----------------------------------------------------------------------------------------------------


def test_the_entropy_of_classes_is_counted_in_persons() -> None:
    target = class_target([0, 0, 0, 1])
    expected = -(3 * math.log(3 / 4) + math.log(1 / 4))
    assert impurity_of(target, [1, 1, 1, 1]) == pytest.approx(expected)
    assert impurity_of(target, [2, 2, 2, 2]) == pytest.approx(2 * expected)
    # 1 1 1 of the first class and 3 of the second are six persons, half and half.
    assert impurity_of(target, [1, 1, 1, 3]) == pytest.approx(6 * math.log(2))


def test_names_are_points_at_the_corners_of_a_simplex() -> None:
    """The squared deviations of rows that have a 1 in the place of their name."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        names, masses = rng.integers(0, 4, 12), rng.integers(1, 5, 12)
        points = np.repeat(np.eye(4)[names], masses, axis=0)
        expected = float(np.square(points - points.mean(axis=0)).sum())
        target = ClassTarget("n", names, 4, measured_by=Impurity.GINI)
        assert impurity_of(target, masses.tolist()) == pytest.approx(expected)
        assert impurity_of(target, masses.tolist(), unit=0.5) == pytest.approx(expected / 2)
    assert ClassTarget("n", np.array([0]), 2, measured_by=Impurity.GINI).impurity(np.zeros(2, np.int64), 1.0) == 0


def test_surprise_is_what_own_classes_do_not_tell_of_the_expected_ones() -> None:
    """Four persons of whom half are expected in each class; three have the first, and half a person is added to each."""
    half = WHOLE // 2
    shares = np.array([[half, half, WHOLE, 0]] * 3 + [[half, half, 0, WHOLE]])
    target = ShareTarget("s", shares, measured_by=Impurity.SURPRISE)
    assert target.class_count == 2
    expected = -2 * math.log(3.5 / 5) - 2 * math.log(1.5 / 5)
    assert impurity_of(target, [1, 1, 1, 1]) == pytest.approx(expected)
    assert impurity_of(target, [2, 2, 2, 2], unit=0.5) == pytest.approx(expected)
    assert factors((target,), (0.5,)) == (1.0,)
    assert target.impurity(np.zeros(4, np.int64), 1.0) == 0


def test_own_numbers_are_held_against_the_expected_ones() -> None:
    """1, 3 and 5 are expected, 8 apart from their mean in squares; that of the own 2, 2, 11 is two away from it."""
    target = number_target([1.0, 3.0, 5.0])
    own = target.scale.quantize(np.array([2.0, 2.0, 11.0]))
    judged = replace(target, own=own)
    assert judged.measured_by == Impurity.SURPRISE
    assert impurity_of(judged, [1, 1, 1]) == pytest.approx(8 + 3 * 2**2)
    assert impurity_of(judged, [2, 2, 2], unit=0.5) == pytest.approx(8 + 3 * 2**2)
    assert impurity_of(replace(target, own=target.multiples), [1, 1, 1]) == pytest.approx(8)
    assert judged.impurity(np.zeros(4, np.int64), 1.0) == 0


def test_features_are_shares_of_their_dispersion_in_the_table() -> None:
    features = (ClassTarget("n", np.array([0, 1]), 2, weight=3.0, measured_by=Impurity.GINI), number_target([1.0, 3.0]))
    assert factors(features, (0.5, 4.0)) == (6.0, 0.25)
    assert factors(features[:1], (0.5,)) == (6.0,)


def test_groups_of_one_class_and_of_nobody_are_pure() -> None:
    assert impurity_of(class_target([1, 1, 1]), [5, 1, 2]) == 0
    assert class_target([0, 1]).impurity(np.zeros(2, np.int64), 1.0) == 0


def test_four_equal_classes_have_two_bits() -> None:
    assert impurity_of(class_target([0, 1, 2, 3]), [1] * 4) / math.log(2) == pytest.approx(8)


def test_a_unit_of_mass_stands_for_so_many_persons() -> None:
    target = class_target([0, 0, 1])
    assert impurity_of(target, [8, 8, 16], unit=0.125) == pytest.approx(impurity_of(target, [1, 1, 2]))


def test_shares_of_rows_that_are_sure_are_classes() -> None:
    target = class_target([0, 2, 2, 1])
    shares = ShareTarget("s", np.eye(3, dtype=np.int64)[target.classes] * WHOLE)
    assert impurity_of(shares, [1, 2, 1, 1]) == pytest.approx(impurity_of(target, [1, 2, 1, 1]))


def test_unsure_rows_are_mixed_by_their_mean_share() -> None:
    # Means of 1/4 and 3/4 and a half of each: 3/8 and 5/8.
    shares = ShareTarget("s", np.array([[WHOLE // 4, 3 * WHOLE // 4], [WHOLE // 2, WHOLE // 2]]))
    expected = -2 * (3 / 8 * math.log(3 / 8) + 5 / 8 * math.log(5 / 8))
    assert impurity_of(shares, [1, 1]) == pytest.approx(expected)


# --- numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [0.0, 1e6, -1e9])
def test_the_squared_deviations_of_numbers(base: float) -> None:
    target = number_target([base + 1, base + 2, base + 6])
    assert impurity_of(target, [1, 1, 1]) == pytest.approx(14)
    assert impurity_of(target, [2, 2, 2]) == pytest.approx(28)
    assert impurity_of(target, [1, 0, 1]) == pytest.approx(12.5)
    assert impurity_of(target, [0, 0, 0]) == 0


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.sampled_from([0.0, 1e6, -3e8]))
@tries(100)
def test_deviations_are_exact_to_the_fixed_point_however_far_from_zero(values: list[float], base: float) -> None:
    target = number_target([base + value for value in values])
    exact = [Fraction(int(one)) * Fraction(target.scale.step) for one in target.multiples]
    mean = sum(exact, Fraction()) / len(exact)
    expected = float(sum(((one - mean) ** 2 for one in exact), Fraction()))
    assert impurity_of(target, [1] * len(values)) == pytest.approx(expected, rel=1e-6, abs=1e-12)


# --- several targets --------------------------------------------------------------------------------------------


def test_nominal_targets_alone_are_added_in_nats() -> None:
    targets = (class_target([0, 1]), class_target([0, 1], weight=3.0))
    assert factors(targets, (0.7, 0.1)) == (1.0, 3.0)


def test_numbers_are_divided_by_their_variance() -> None:
    targets = (number_target([0.0, 1.0]), number_target([0.0, 9.0], weight=2.0))
    assert factors(targets, (0.25, 20.25)) == (4.0, 2.0 / 20.25)


def test_numbers_that_are_not_to_be_standardized_share_a_divisor() -> None:
    plain = {"scaled": False}
    targets = (number_target([0.0, 1.0], **plain), number_target([0.0, 9.0], **plain), number_target([0.0, 1.0]))
    assert factors(targets, (1.0, 3.0, 0.5)) == (0.25, 0.25, 2.0)


def test_of_both_kinds_each_is_a_share_of_what_there_was() -> None:
    targets = (class_target([0, 1], weight=0.5), number_target([0.0, 2.0]))
    assert factors(targets, (0.5, 4.0)) == (1.0, 0.25)


def test_targets_that_are_the_same_everywhere_do_not_matter() -> None:
    targets = (class_target([0, 0]), number_target([3.0, 3.0]))
    assert factors(targets, (0.0, 0.0)) == (0.0, 0.0)
