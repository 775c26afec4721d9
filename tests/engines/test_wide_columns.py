# SPDX-License-Identifier: Apache-2.0
"""The best cut of a wide column for one target of two classes is the one that is found by weighing every cut."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from engine_pairs import Asked, check_rows, check_same, same

from anonfit.criteria.objectives import SplitObjective, WeightRule
from anonfit.criteria.targets import ClassTarget
from anonfit.engines.memory import engine, forms
from anonfit.tables.schema import CodedTable, SplitMode
from strategies import random_codes, random_column

Random = np.random.Generator


def wide_codes(rng: Random, size: int, rows: int) -> np.ndarray:
    """All values alike, some far more frequent than others, or few of them."""
    if rng.random() < 0.3:
        return rng.integers(0, size, rows)
    if rng.random() < 0.5:
        return (rng.zipf(1.3, rows) % size).astype(np.int64)
    return rng.choice(rng.integers(0, size, 40), rows)


def asked_of(seed: int, most: int) -> Asked:
    """A table with a wide column (or two) of which the target follows none, one, or both."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2, most))
    columns = [random_column(rng, "narrow", size=int(rng.integers(1, 9)))]
    columns += [
        random_column(rng, f"wide{index}", size=int(rng.integers(257, 3000)), mode=SplitMode.ORDERED)
        for index in range(int(rng.integers(1, 3)))
    ]
    codes = [random_codes(rng, columns[0], rows)]
    codes += [wide_codes(rng, column.size, rows).astype(np.uint16) for column in columns[1:]]
    signal = rng.choice([0.0, 1.0, 5.0]) * codes[1] / columns[1].size + rng.choice([0.0, 1.0]) * codes[0]
    classes = (signal + rng.random(rows) > np.quantile(signal, rng.random()) + 0.5).astype(np.int64)
    purpose = SplitObjective(
        targets=(ClassTarget("target", classes, 2, column=int(rng.choice([-1, -1, -1, 1]))),),
        all_cuts=bool(rng.random() < 0.3),
        min_gain=float(rng.choice([0.0, 2.0])),
        weights=tuple(rng.integers(1, 4, len(columns)).astype(float)),
        rule=rng.choice([WeightRule.NONE, WeightRule.PRODUCT, WeightRule.COMBINED]),
    )
    return Asked(CodedTable(tuple(columns), tuple(codes), rows), int(rng.integers(1, 1 + max(1, rows // 8))), purpose)


@pytest.mark.parametrize("block", range(4))
def test_trees_are_those_of_the_plain_engine(block: int) -> None:
    for seed in range(block * 30, block * 30 + 30):
        check_same(asked_of(seed, 120), threads=1 + seed % 2, note=f"seed {seed}")


@pytest.mark.parametrize("block", range(4))
def test_trees_and_regions_are_those_of_weighing_every_cut(block: int) -> None:
    used = 0
    for seed in range(1000 + block * 20, 1020 + block * 20):
        asked = asked_of(seed, 6000)
        used += forms.sorted_column(asked.table, asked.purpose, ()) >= 0
        found = asked.grown(threads=1 + seed % 2, subtree=500)
        with patch.object(engine, "sorted_column", lambda *_: -1):
            plain = asked.grown()
        assert same(found.tree, plain.tree), f"seed {seed}: {asked}"
        check_rows(found, asked.table)
    assert used > 10, "hardly any column is in the order of rows"
