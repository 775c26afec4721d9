# SPDX-License-Identifier: Apache-2.0
"""Chance that every engine draws alike, and that draws in proportion to what it is given."""

from __future__ import annotations

import numpy as np
import pytest

from anonfit.criteria.objectives import WORD, SplitObjective, WeightRule, child_key, exponential, root_key


def test_keys_of_different_ways_are_different() -> None:
    keys = {root_key(seed) for seed in range(-500, 500)}
    keys |= {child_key(root_key(0), part) for part in range(1000)}
    keys |= {child_key(child_key(root_key(1), part), other) for part in range(20) for other in range(20)}
    assert len(keys) == 1000 + 1000 + 400
    assert all(0 <= key <= WORD for key in keys)
    assert root_key(3) == root_key(3 + (1 << 64))


def test_the_numbers_of_columns_are_exponential() -> None:
    numbers = np.array([exponential(root_key(seed), column) for seed in range(4000) for column in range(5)])
    assert numbers.min() > 0
    assert numbers.mean() == pytest.approx(1, abs=0.03)
    assert np.mean(numbers > 1) == pytest.approx(np.exp(-1), abs=0.02)
    by_column = numbers.reshape(-1, 5)
    assert np.abs(np.corrcoef(by_column.T) - np.eye(5)).max() < 0.06


def drawn(weights: tuple[float, ...], spreads: list[float], left: list[int], seeds: int = 6000) -> list[float]:
    """How often each column has the highest merit."""
    found = np.zeros(len(weights))
    for seed in range(seeds):
        purpose, key = SplitObjective(weights=weights, rule=WeightRule.CHANCE, seed=seed), root_key(seed)
        merits = {one: purpose.merit(one, spreads[one], chance=exponential(key, one)) for one in left}
        found[max(merits, key=lambda one: merits[one])] += 1
    return (found / seeds).tolist()


def test_columns_are_drawn_in_proportion_to_weight_times_spread() -> None:
    weights, spreads = (3.0, 1.0, 1.0, 0.0), [0.2, 0.2, 1.0, 1.0]  # 0.6, 0.2, 1, 0
    assert drawn(weights, spreads, [0, 1, 2, 3]) == pytest.approx([1 / 3, 1 / 9, 5 / 9, 0], abs=0.02)
    # Where the one that was drawn has no legal split, the others are drawn by the same proportions.
    assert drawn(weights, spreads, [0, 1, 3]) == pytest.approx([0.75, 0.25, 0, 0], abs=0.02)
