# SPDX-License-Identifier: Apache-2.0
"""Predictions from the other rows: by hand, and against leaving out one row after another."""

from __future__ import annotations

import numpy as np
import pytest

from anonfit.metrics import workload as leaving_out
from anonfit.metrics.workload import CodedTarget, predicted_classes, predicted_numbers, squared_errors


def test_a_row_does_not_predict_itself() -> None:
    # In the first region one row of three differs: the two others are right, it is not. In the second both differ.
    found = predicted_classes(np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 0, 1]), 2, 2)
    assert (found.rows, found.by_region) == (5, 2)


def test_equal_numbers_are_decided_for_the_first_class() -> None:
    # Left out, each row of two leaves the class of the other.
    assert predicted_classes(np.array([0, 0]), np.array([0, 1]), 1, 2).by_region == 0
    # Three and two: without one of the three it is two and two, and the first class wins.
    assert predicted_classes(np.zeros(5, int), np.array([0, 0, 0, 1, 1]), 1, 2).by_region == 3
    assert predicted_classes(np.zeros(5, int), np.array([1, 1, 1, 0, 0]), 1, 2).by_region == 0


def slow_classes(regions: np.ndarray, classes: np.ndarray) -> int:
    right = 0
    for row in range(len(regions)):
        others = (regions == regions[row]) & (np.arange(len(regions)) != row)
        counts = np.bincount(classes[others], minlength=int(classes.max()) + 1)
        right += int(counts.argmax() == classes[row]) if others.any() else int(classes[row] == classes.min())
    return right


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dense", [0, 1 << 24])
def test_classes_are_predicted_as_row_by_row(seed: int, dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving_out, "DENSE", dense)
    rng = np.random.default_rng(seed)
    regions, classes = np.repeat(np.arange(12), 6)[rng.permutation(72)], rng.integers(0, 4, 72)
    found = predicted_classes(regions, classes, 12, 4)
    assert found.by_region == slow_classes(regions, classes)
    assert found.by_table == slow_classes(np.zeros(72, int), classes)


@pytest.mark.parametrize("seed", range(8))
def test_numbers_are_predicted_as_row_by_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    regions, numbers = rng.integers(0, 10, 60), 1e6 + rng.normal(0, 5, 60)
    regions[0] = 10  # alone
    found = predicted_numbers(regions, numbers, 12)
    errors = []
    for row in range(60):
        others = (regions == regions[row]) & (np.arange(60) != row)
        others = others if others.any() else np.arange(60) != row
        errors.append((numbers[row] - numbers[others].mean()) ** 2)
    assert found.by_region == pytest.approx(np.mean(errors))
    whole = [(numbers[row] - np.delete(numbers, row).mean()) ** 2 for row in range(60)]
    assert found.by_table == pytest.approx(np.mean(whole))


@pytest.mark.parametrize("seed", range(4))
def test_squared_errors_of_shares_are_those_of_leaving_out_row_by_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    regions, classes = rng.integers(0, 10, 60).astype(np.int32), rng.integers(0, 3, 60)
    regions[0] = 10  # alone: nothing is known of it
    target = CodedTarget("state", classes, 3, np.ones(60, np.bool_), is_generalized=False)
    errors = []
    for row in range(60):
        others = (regions == regions[row]) & (np.arange(60) != row)
        own = np.eye(3)[classes[row]]
        shares = np.bincount(classes[others], minlength=3) / others.sum() if others.any() else np.zeros(3)
        errors.append(((own - shares) ** 2).sum())
    # Left out, a row moves the shares: the mean over rows is that of n - Σ n_c² / n, times (n / (n - 1))².
    assert squared_errors([target], regions, 11)["state"] == pytest.approx(np.mean(errors))


def test_one_row_cannot_be_predicted() -> None:
    assert predicted_numbers(np.array([0]), np.array([5.0]), 1).by_region == 0.0
