# SPDX-License-Identifier: Apache-2.0
"""Denoising of tables that teach little, wrong inputs, and shares in fixed point."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sklearn
from denoising_tables import column, examples, expected_numbers, expected_shares, mixed, table
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper

from anonfit.tables.schema import SplitMode
from anonfit.workload.denoising import fit_shares, fixed_shares
from anonfit.workload.denoising_models import fold_of, make_features

# Tables in which there is little or nothing to learn


@pytest.mark.parametrize("mode", [SplitMode.ORDERED, SplitMode.SUBSET])
@pytest.mark.parametrize("missing", [False, True])
def test_without_features_shares_are_those_of_all_rows(mode: SplitMode, missing: bool) -> None:
    classes = np.random.default_rng(16).integers(0, 3, 200)
    expected = np.tile(np.bincount(classes) / 200, (200, 1))
    for people in (table(), table(column(np.zeros(200), mode=mode, size=3, missing=missing))):
        assert np.allclose(expected_shares(*people, classes, 3), expected)
        assert np.allclose(expected_numbers(*people, classes * 6.0), classes.mean() * 6)


def test_one_class_only_is_certain() -> None:
    rng = np.random.default_rng(17)
    shares = expected_shares(*mixed(rng, 100), np.full(100, 2), 4)
    assert np.array_equal(shares, np.tile([0.0, 0, 1, 0], (100, 1)))
    assert np.array_equal(expected_numbers(*mixed(rng, 100), np.full(100, 7.25)), np.full(100, 7.25))


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7])
def test_few_rows_are_expected_to_be_as_the_others(rows: int) -> None:
    rng = np.random.default_rng(rows)
    people = table(column(rng.permutation(9)[:rows], size=9))
    classes = np.arange(rows) % 2
    shares = expected_shares(*people, classes, 2)
    assert np.allclose(shares.sum(axis=1), 1)
    numbers = expected_numbers(*people, classes * 1.0)
    assert ((numbers >= 0) & (numbers <= 1)).all()


def test_no_rows_are_predicted_as_well() -> None:
    rng = np.random.default_rng(3)
    people = mixed(rng, 100)
    fitted = fit_shares(people[0], examples(people, rng.integers(0, 3, 100)), 3)
    assert fitted([codes[:0] for codes in people[1]], 0).shape == (0, 3)


@pytest.mark.parametrize("seed", range(6))
def test_many_rare_classes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(25, 400))
    people = mixed(rng, rows)
    classes = np.minimum(rng.geometric(0.3, rows) - 1, 15)
    shares = expected_shares(*people, classes, 16, seed=seed)
    assert (shares >= 0).all()
    assert np.allclose(shares.sum(axis=1), 1, atol=1e-12)
    assert np.allclose(shares.mean(axis=0), np.bincount(classes, minlength=16) / rows, atol=0.08)


def test_models_need_no_scikit_learn() -> None:
    words = "import sys, numpy as np; sys.modules['sklearn'] = None; from denoising_tables import *; "
    words += "print(expected_shares(*mixed(np.random.default_rng(0), 90), np.arange(90) % 2, 2).shape)"
    found = subprocess.run(
        [sys.executable, "-c", words], check=True, capture_output=True, text=True, cwd=Path(__file__).parent
    )
    assert found.stdout.split() == ["(90,", "2)"]


@pytest.mark.parametrize("case", range(6))
def test_bins_are_those_that_scikit_learn_finds(case: int) -> None:
    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8):
        pytest.skip("this scikit-learn finds bins without weights")
    rng = np.random.default_rng(case)
    rows = 3000
    skewed = np.minimum(rng.exponential(150, rows), 900 if case % 2 else 300).astype(np.int64)
    known = table(column(rng.integers(0, 1000, rows), size=1000, missing=case > 1), column(skewed, missing=case > 3))
    found = examples(known, rng.integers(0, 2, rows), rng.integers(1, 4, rows) if case % 2 else None)
    folds = fold_of(found.cells, 0)
    learned = folds > 0
    for feature in make_features(known[0], found, folds, np.zeros((len(folds), 1))):
        mapper = _BinMapper(n_bins=256)
        numbers = feature.numbers[found.codes[feature.column]][:, None]
        mapper.fit(numbers[learned], sample_weight=found.weights[learned])
        bins = mapper.transform(feature.numbers[:, None])[:, 0].astype(np.int64)
        own = feature.binned(0, found, folds, learned)
        seen = np.unique(np.append(bins[found.codes[feature.column]][learned], 255))
        expected = np.searchsorted(seen[:-1], np.minimum(bins, seen[-2]))  # bins that no example is in are not kept
        is_missing = np.isnan(feature.numbers)
        assert np.array_equal(own.bins[~is_missing], expected[~is_missing])
        assert set(own.bins[is_missing].tolist()) <= {own.missing}


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
