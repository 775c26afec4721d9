# SPDX-License-Identifier: Apache-2.0
"""Gains, losses and scores of refinements, counted by hand and against their plain definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonfit.criteria.refinement import (
    ahead,
    anonymity_loss,
    cut_gains,
    disclosure_gains,
    entropy,
    gain,
    is_beneficial,
    score,
)


def array(*rows: Any) -> Any:
    return np.array(rows, np.int64)


def plain_entropy(counts: list[int]) -> float:
    total = sum(counts)
    return -sum(one / total * math.log2(one / total) for one in counts if one)


def plain_gain(parts: list[list[int]]) -> float:
    whole = [sum(column) for column in zip(*parts, strict=True)]
    return plain_entropy(whole) - sum(sum(part) / sum(whole) * plain_entropy(part) for part in parts if sum(part))


def test_entropy_in_bits() -> None:
    assert entropy([5, 5]) == pytest.approx(1.0)
    assert entropy([4, 2, 2]) == pytest.approx(1.5)
    assert entropy([7, 0]) == 0.0


def test_gain_of_parts() -> None:
    assert gain(array([4, 0], [0, 4])) == pytest.approx(1.0)
    assert gain(array([2, 2], [0, 0], [2, 2])) == 0.0
    assert gain(array([0, 0], [0, 0])) == 0.0


counts = st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), min_size=2, max_size=6).filter(
    lambda parts: any(sum(part) for part in parts)
)


@given(counts)
def test_gains_are_those_of_the_definition(parts: list[list[int]]) -> None:
    found = array(*parts)
    assert gain(found) == pytest.approx(plain_gain(parts), abs=1e-9)
    cuts = [gain([found[:cut].sum(axis=0), found[cut:].sum(axis=0)]) for cut in range(1, len(parts))]
    assert cut_gains(found).tolist() == pytest.approx(cuts, abs=1e-12)
    whole = found.sum(axis=0)
    assert disclosure_gains(found).tolist() == pytest.approx([gain([one, whole - one]) for one in found], abs=1e-12)


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=4), st.lists(st.integers(1, 10**5), min_size=2, max_size=5))
def test_parts_in_the_same_proportion_gain_exactly_nothing(whole: list[int], shares: list[int]) -> None:
    parts = array(*([share * one for one in whole] for share in shares))
    assert gain(parts) == 0.0
    assert not cut_gains(parts).any()
    assert not disclosure_gains(parts).any()


@pytest.mark.parametrize("size", [10**6, 10**9, 10**15])
def test_the_smallest_difference_of_proportions_is_a_gain(size: int) -> None:
    parts = array([size, size], [size, size - 1])
    assert gain(parts) > 0
    assert (cut_gains(parts) > 0).all()


def test_loss_is_a_mean_and_score_weighs_it() -> None:
    before, after = np.array([34, 34]), array([16, 34], [12, 30])
    lost = anonymity_loss(before, after, 2)
    assert lost.tolist() == [20.0, 2.0]
    assert score(np.array([0.42, 0.3]), lost).tolist() == pytest.approx([0.02, 0.1])


def test_the_first_that_is_as_good_as_the_best() -> None:
    assert ahead(np.array([0.1, 0.3, 0.3])) == 1
    assert ahead(np.array([0.1, 0.3 * (1 - 1e-12), 0.3])) == 1
    assert ahead(np.array([0.1, 0.3 * (1 - 1e-6), 0.3])) == 2
    assert ahead(np.array([-np.inf, 0.0, 0.0])) == 1
    assert ahead(np.array([-np.inf])) == -1
    assert ahead(np.zeros(0)) == -1


def test_only_records_of_several_classes_are_worth_refining() -> None:
    assert is_beneficial(np.array([1, 0, 1]))
    assert not is_beneficial(np.array([0, 5]))
    assert not is_beneficial(np.array([0, 0]))
