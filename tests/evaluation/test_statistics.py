# SPDX-License-Identifier: Apache-2.0
"""Paired t-tests against scipy's and against the formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from anonfit.errors import RequestError
from anonfit.evaluation.result import paired_test


@pytest.mark.parametrize("seed", range(20))
def test_the_plain_test_is_the_paired_t_test(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(2, int(rng.integers(2, 12))))
    found = paired_test(first.tolist(), second.tolist(), test_share=0.25)
    expected = stats.ttest_rel(first, second)
    assert found.t == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue)


def test_the_corrected_test_by_hand() -> None:
    # Differences 1, 2, 3: mean 2, variance 1. Three folds: test rows are half as many as training rows.
    found = paired_test([1.0, 2.0, 3.0], [0.0, 0.0, 0.0], test_share=1 / 2)
    assert found.corrected_t == pytest.approx(2 / math.sqrt(1 / 3 + 1 / 2))
    assert found.corrected_p == pytest.approx(2 * stats.t.sf(found.corrected_t, 2))
    assert found.corrected_p > found.p


def test_equal_measures_do_not_differ() -> None:
    found = paired_test([1.0, 2.0], [1.0, 2.0], test_share=0.0)
    assert (found.difference, found.t, found.p) == (0.0, 0.0, 1.0)


def test_a_difference_that_is_always_the_same_is_beyond_chance() -> None:
    found = paired_test([2.0, 3.0], [1.0, 2.0], test_share=0.5)
    assert (found.t, found.p, found.corrected_p) == (math.inf, 0.0, 0.0)


def test_of_one_fold_nothing_is_known() -> None:
    found = paired_test([2.0], [1.0], test_share=1.0)
    assert found.difference == 1.0
    assert math.isnan(found.p)
    assert math.isnan(found.corrected_p)


def test_measures_must_be_paired() -> None:
    with pytest.raises(RequestError, match="paired"):
        paired_test([1.0], [1.0, 2.0], test_share=0.0)
