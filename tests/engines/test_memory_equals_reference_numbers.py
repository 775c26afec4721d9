# SPDX-License-Identifier: Apache-2.0
"""Both engines on numeric targets far from 0 and in other units, where sums of floats would lose what is asked for."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from engine_pairs import Asked, check_same, same
from guarded import guarded_by
from hand_tables import numbers, ordered, table
from purpose_kinds import mass_of
from purposes import random_class_target, random_number_target

from anonfit.criteria.objectives import SplitObjective
from anonfit.criteria.targets import NumberTarget
from anonfit.tables.scales import fixed_point
from strategies import random_table


def number_target(values: Any, persons: int, **settings: Any) -> NumberTarget:
    scale = fixed_point(float(values.min()), float(values.max()), persons=persons)
    return NumberTarget("t", scale.quantize(values), scale, **settings)


@pytest.mark.parametrize("model", ["k", "squared-error", "variance", "t-closeness"])
def test_trees_are_equal_for_numbers_of_mean_a_million_and_deviation_one(model: str) -> None:
    for seed in range(40):
        rng = np.random.default_rng([seed, 9])
        found = random_table(rng)
        values = 1e6 + rng.normal(0, 0.2, found.rows) + found.codes[0] / found.columns[0].size
        purpose = SplitObjective((number_target(values, mass_of(found)),), all_cuts=bool(seed % 2))
        guarded = guarded_by(rng, found, model) if model != "k" else []
        check_same(Asked(found, 1 + seed % 4, purpose, guarded), threads=1 + seed % 2, note=f"seed {seed}")


def exact_error(values: list[Fraction]) -> Fraction:
    """The sum of squared deviations from the mean."""
    return sum((value * value for value in values), Fraction()) - sum(values) ** 2 / len(values)


def test_the_cut_for_a_number_far_from_zero_is_the_best_in_exact_arithmetic() -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        codes = np.sort(rng.integers(0, 12, 30))
        values = 1e6 + rng.normal(0, 1, 30)
        found = table((ordered(range(12)), codes.tolist()))
        tree = Asked(found, 4, SplitObjective((numbers(values.tolist()),))).grown().tree
        exact = [Fraction(value) for value in values.tolist()]
        errors = {}
        for cut in set(codes.tolist()):
            below = int((codes < cut).sum())  # rows stand in the order of their codes
            if 4 <= below <= 26:
                errors[cut] = exact_error(exact[:below]) + exact_error(exact[below:])
        assert float(errors[int(tree.start[2])] / min(errors.values())) == pytest.approx(1, abs=1e-6)


def test_a_number_may_be_moved_and_scaled_by_powers_of_two() -> None:
    """Standardized or not, alone or beside others: what is measured in twice as large units says the same."""
    for seed in range(60):
        rng = np.random.default_rng([seed, 10])
        found = random_table(rng)
        values = np.round(rng.normal(0, 1, found.rows) * 1024) / 1024 + found.codes[0]
        others = (
            random_class_target(rng, found, "o", 1.0),
            random_number_target(rng, found, "o", 1.0, mass_of(found)),
        )[: seed % 3]
        scaled = bool(seed % 2) or bool(others)
        trees = []
        for factor, shift in ((1.0, 0.0), (2.0**30, 0.0), (2.0**-40, 0.0), (1.0, 2.0**20), (0.5, -(2.0**20))):
            target = number_target(values * factor + shift, mass_of(found), scaled=scaled)
            trees.append(Asked(found, 2, SplitObjective((target, *others)), ()).grown().tree)
        assert all(same(trees[0], tree) for tree in trees[1:])
