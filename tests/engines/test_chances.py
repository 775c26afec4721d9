# SPDX-License-Identifier: Apache-2.0
"""The kernels draw the chance of the plain functions, and a seed draws other trees."""

from __future__ import annotations

import numpy as np
from engine_pairs import Asked, same
from hand_tables import divisions, ordered, table
from numba import njit

from anonfit.criteria.objectives import SplitObjective, WeightRule, child_key, exponential, root_key
from anonfit.engines.memory.forms import CHANCE, FACTS
from anonfit.engines.memory.splitting import draw, part_key, signed_key
from anonfit.testing.reference import grow


@njit
def _drawn(key, parts, found):  # type: ignore[no-untyped-def]
    for part in parts:
        key = part_key(key, part)
    draw(key, found)


def test_kernels_draw_the_same_numbers() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        seed, parts = int(rng.integers(-(2**62), 2**62)), rng.integers(0, 50, rng.integers(0, 6))
        key = root_key(seed)
        found = np.zeros((FACTS, 7))
        _drawn(signed_key(key), parts, found)
        for part in parts.tolist():
            key = child_key(key, part)
        np.testing.assert_allclose(found[CHANCE], [exponential(key, column) for column in range(7)], rtol=1e-14)


def test_every_seed_is_a_tree_of_its_own_and_always_the_same() -> None:
    rng = np.random.default_rng(1)
    codes = [rng.integers(0, 12, 120).tolist() for _ in range(3)]
    asked = table(*((ordered(range(12)), one) for one in codes))
    trees = []
    for seed in range(8):
        purpose = SplitObjective(weights=(1.0, 1.0, 1.0), rule=WeightRule.CHANCE, seed=seed)
        one = Asked(asked, 4, purpose)
        assert same(one.grown(threads=1).tree, one.grown(threads=2, subtree=1).tree)
        trees.append(str(divisions(one.plain())))
    assert len(set(trees)) == 8


def test_a_column_without_weight_is_split_only_where_no_other_can_be() -> None:
    asked = table((ordered(range(4)), [0, 0, 1, 1, 2, 2, 3, 3]), (ordered([0, 1]), [0, 1] * 4))
    for seed in range(20):
        purpose = SplitObjective(weights=(1.0, 0.0), rule=WeightRule.CHANCE, seed=seed)
        found = divisions(grow(asked, 1, purpose))
        assert [column for column, _ in found] == [0, 0, 0, 1, 1, 1, 1]
