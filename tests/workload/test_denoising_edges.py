# SPDX-License-Identifier: Apache-2.0
"""Denoising of tables that teach little, wrong inputs, and shares in fixed point."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from denoising_tables import Table, column, mixed, table
from hypothesis import given
from hypothesis import strategies as st

from anonfit.errors import MissingPackage
from anonfit.tables.schema import SplitMode
from anonfit.workload.denoising import cross_fitted_numbers, cross_fitted_shares, fixed_shares

# Tables in which there is little or nothing to learn


def test_without_features_shares_are_those_of_the_other_folds() -> None:
    # One cell, ordered by class: places 0 1 2 3 of classes 0 0 0 1 are in folds 0 1 0 1. The model of fold 0 sees
    # classes 0 1, that of fold 1 sees 0 0. The three rows of class 0 get the mean of 1/2, 1, 1/2.
    classes = np.array([0, 1, 0, 0])
    expected = np.array([[2 / 3, 1 / 3], [1, 0], [2 / 3, 1 / 3], [2 / 3, 1 / 3]])
    for people in (table(column([0, 0, 0, 0])), table(column([3, 3, 3, 3], size=5)), table()):
        assert np.allclose(cross_fitted_shares(*people, classes, 2, folds=2), expected, atol=1e-15)
    numbers = cross_fitted_numbers(*table(), classes * 6.0, folds=2)
    # fold 0 sees 0 6, fold 1 sees 0 0
    assert np.allclose(numbers, [2, 0, 2, 2])


def test_without_features_weights_count_in_shares_and_in_the_mean_of_equal_rows() -> None:
    # Places by class, then weight: (0, w1) (0, w3) (1, w1) (1, w2) in folds 0 1 0 1. The model of fold 0 sees weights
    # 3 and 2, that of fold 1 sees 1 and 1.
    classes = np.array([1, 0, 1, 0])
    weights = np.array([2.0, 3.0, 1.0, 1.0])
    found = cross_fitted_shares(*table(), classes, 2, weights=weights, folds=2)
    first = (1 * 0.6 + 3 * 0.5) / 4
    second = (1 * 0.6 + 2 * 0.5) / 3
    assert np.allclose(found[:, 0], [second, first, second, first])


@pytest.mark.parametrize("mode", [SplitMode.ORDERED, SplitMode.SUBSET])
@pytest.mark.parametrize("missing", [False, True])
def test_a_column_without_differences_is_as_no_column(mode: SplitMode, missing: bool) -> None:
    classes = np.random.default_rng(16).integers(0, 3, 200)
    constant = column(np.zeros(200), mode=mode, size=3, missing=missing)
    expected = cross_fitted_shares(*table(), classes, 3)
    assert np.array_equal(cross_fitted_shares(*table(constant), classes, 3), expected)


def test_one_class_only_is_certain() -> None:
    rng = np.random.default_rng(17)
    shares = cross_fitted_shares(*mixed(rng, 100), np.full(100, 2), 4)
    assert np.array_equal(shares, np.tile([0.0, 0, 1, 0], (100, 1)))
    assert np.array_equal(cross_fitted_numbers(*mixed(rng, 100), np.full(100, 7.25)), np.full(100, 7.25))


def test_a_class_of_one_row_is_not_known_to_the_model_that_predicts_it() -> None:
    rng = np.random.default_rng(18)
    people = mixed(rng, 200)
    classes = rng.integers(0, 2, 200)
    classes[50] = 2
    shares = cross_fitted_shares(*people, classes, 3)
    assert shares[50, 2] == 0
    assert (shares[:, 2] > 0).sum() > 100
    assert np.allclose(shares.sum(axis=1), 1)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7])
def test_fewer_rows_than_folds(rows: int) -> None:
    rng = np.random.default_rng(rows)
    people = table(column(rng.integers(0, 9, rows), size=9))
    classes = np.arange(rows) % 2
    shares = cross_fitted_shares(*people, classes, 2, folds=10)
    # every other row is learned from, and they are too few for more than shares
    others = [np.delete(classes, row) for row in range(rows)]
    expected = [np.bincount(other, minlength=2) / len(other) if len(other) else [0.5, 0.5] for other in others]
    assert np.allclose(shares, expected)
    numbers = cross_fitted_numbers(*people, classes * 1.0, folds=10)
    assert np.allclose(numbers, [share[1] if rows > 1 else 0 for share in expected])


def test_no_rows_and_no_known_targets() -> None:
    empty = table(column(np.zeros(0), size=3))
    assert cross_fitted_shares(*empty, np.zeros(0, dtype=np.int64), 3).shape == (0, 3)
    assert cross_fitted_numbers(*empty, np.zeros(0)).shape == (0,)
    some = table(column([0, 1, 2]))
    assert np.allclose(cross_fitted_shares(*some, np.full(3, -1), 4), 0.25)
    assert cross_fitted_numbers(*some, np.full(3, np.nan)).tolist() == [0, 0, 0]
    assert np.allclose(cross_fitted_shares(*some, np.array([0, 1, 1]), 2, weights=np.zeros(3)), 0.5)


@pytest.mark.parametrize("seed", range(6))
def test_many_rare_classes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(25, 400))
    people = mixed(rng, rows)
    classes = np.minimum(rng.geometric(0.15, rows) - 1, 39)
    shares = cross_fitted_shares(*people, classes, 40, seed=seed)
    assert (shares >= 0).all()
    assert np.allclose(shares.sum(axis=1), 1, atol=1e-12)
    assert np.allclose(shares.mean(axis=0), np.bincount(classes, minlength=40) / rows, atol=0.06)


def test_classes_beyond_those_of_a_model_share_what_is_left() -> None:
    rng = np.random.default_rng(19)
    codes = rng.integers(0, 2, 6000)
    # 15 common classes in cell 0, 25 rarer ones in cell 1: a model tells the 15 apart and takes the others together
    classes = np.where(codes == 0, rng.integers(0, 15, 6000), 15 + rng.integers(0, 25, 6000))
    shares = cross_fitted_shares(*table(column(codes)), classes, 40)
    rest = shares[codes == 1][:, 15:]
    assert (rest.sum(axis=1) > 0.97).all()
    assert np.allclose(rest, 1 / 25, atol=0.02)
    assert (shares[codes == 0][:, :15].sum(axis=1) > 0.97).all()


# Wrong inputs, packages


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda p: cross_fitted_shares(*p, np.array([0, 1, 2]), 2), "classes must be"),
        (lambda p: cross_fitted_shares(*p, np.array([0, 1, -2]), 2), "classes must be"),
        (lambda p: cross_fitted_shares(*p, np.array([0, 1, 1]), 2, folds=1), "at least 2 folds"),
        (lambda p: cross_fitted_shares(*p, np.array([0, 1]), 2), "one code for each row"),
        (lambda p: cross_fitted_shares(p[0], [], np.array([0, 1, 1]), 2), "one code for each row"),
        (lambda p: cross_fitted_shares(*p, np.array([0, 1, 1]), 2, weights=np.array([1.0, -1, 1])), "weights must"),
        (lambda p: cross_fitted_numbers(*p, np.ones(3), weights=np.array([1.0, np.nan, 1])), "weights must"),
        (lambda p: cross_fitted_numbers(*p, np.ones(3), weights=np.ones(2)), "weights must"),
        (lambda p: cross_fitted_numbers(*p, np.array([1.0, np.inf, 0])), "numbers must be finite"),
    ],
)
def test_wrong_inputs_are_refused(call: Callable[[Table], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call(table(column([0, 1, 2])))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(MissingPackage, match=r"anonfit\[learn\]"):
        cross_fitted_numbers(*table(column([0, 1, 2])), np.ones(3))


def test_importing_loads_no_scikit_learn() -> None:
    code = "import sys, anonfit.workload.denoising; print('sklearn' in sys.modules, 'threadpoolctl' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.split() == ["False", "False"]


# Shares in fixed point


def test_what_is_left_goes_to_the_largest_remainders_and_then_to_lower_classes() -> None:
    shares = np.array([[0.5, 0.25, 0.25], [1 / 3, 1 / 3, 1 / 3], [0.0, 1.0, 0.0], [0.15, 0.45, 0.4], [0.1, 0.2, 0.7]])
    # times 8: 4 2 2 | 2.67 2.67 2.67 | 0 8 0 | 1.2 3.6 3.2 | 0.8 1.6 5.6
    assert fixed_shares(shares, bits=3).tolist() == [[4, 2, 2], [3, 3, 2], [0, 8, 0], [1, 4, 3], [1, 2, 5]]


@given(
    st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4).filter(lambda row: sum(row) > 1e-3), min_size=1),
    st.sampled_from([1, 2, 8, 16, 30, 40]),
)
def test_rows_sum_to_a_power_of_two_and_stay_within_one_of_their_share(rows: list[list[float]], bits: int) -> None:
    shares = np.array(rows)
    shares /= shares.sum(axis=1, keepdims=True)
    found = fixed_shares(shares, bits)
    assert found.dtype == np.int64
    assert (found >= 0).all()
    assert (found.sum(axis=1) == 1 << bits).all()
    assert (np.abs(found - shares * (1 << bits)) < 1 + 1e-3).all()
    # a larger share never gets less
    for row, whole in zip(shares, found, strict=True):
        assert all(whole[a] >= whole[b] for a in range(4) for b in range(4) if row[a] > row[b] + 1e-9)


def test_fixed_shares_of_many_rows_are_those_of_each() -> None:
    rng = np.random.default_rng(20)
    shares = rng.dirichlet(np.ones(3), 300_000)
    found = fixed_shares(shares)
    assert (found.sum(axis=1) == 65_536).all()
    assert np.array_equal(found[262_100:262_200], fixed_shares(shares[262_100:262_200]))
    assert fixed_shares(np.ones((2, 1))).tolist() == [[65_536], [65_536]]
    assert fixed_shares(np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("shares", [[[np.nan, 1.0]], [[-0.1, 1.1]], [[0.0, 0.0]], [[np.inf, 1.0]]])
def test_shares_that_are_none_are_refused(shares: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="shares must be"):
        fixed_shares(np.array(shares))


@pytest.mark.parametrize("bits", [0, 41, -1])
def test_bits_out_of_range_are_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="bits must be"):
        fixed_shares(np.ones((1, 2)), bits)
