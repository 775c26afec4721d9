# SPDX-License-Identifier: Apache-2.0
"""What regions tell of rows that were put aside, and what counts as a gain."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonfit.algorithms.demands import Demands
from anonfit.metrics.holdout import Holdout, HoldoutRequest, paired_gain
from anonfit.metrics.workload import LEAN, coded_targets
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import Column, ColumnType, Role, Schema, persons_in
from anonfit.tables.taxonomy import Taxonomy
from anonfit.workload.targets import TargetRequest, Workload

PLACES = {"name": "*", "children": [{"name": "x"}, {"name": "y"}, {"name": "z"}]}


def says(known: pl.DataFrame, others: pl.DataFrame, k: int) -> list[bool]:
    """Whether the class of each of the others is what regions of the known rows say."""
    name = known.columns[0]
    of_names = known[name].dtype == pl.String
    kind, tree = (ColumnType.NOMINAL, Taxonomy.from_tree(PLACES)) if of_names else (None, None)
    schema = Schema((Column(name, Role.QUASI_IDENTIFIER, kind, taxonomy=tree), Column("class", Role.TARGET)))
    workload = Workload(targets=(TargetRequest("class"),), criterion="median")
    persons: Any = partial(persons_in, schema)
    request = HoldoutRequest(schema, known, persons, Demands(k), workload, CutPoints.SIMPLEST, seed=0)
    frame = pl.concat([known, others], how="vertical_relaxed")
    held = Holdout(request, known, others, coded_targets(workload, schema, frame))
    regions = held.regions(workload)
    assert regions is not None
    return (held.judge(regions)[0].misses == 0).tolist()


def of_ages(ages: list[int], classes: list[str | None]) -> pl.DataFrame:
    return pl.DataFrame({"age": ages, "class": classes})


def test_a_large_region_says_its_most_frequent_class() -> None:
    known = of_ages([20] * 300 + [60] * 300, ["a"] * 200 + ["b"] * 100 + ["a"] * 100 + ["b"] * 200)
    others = of_ages([5, 20, 60, 99] * 2, ["a"] * 4 + ["b"] * 4)
    assert says(known, others, 300) == [True, True, False, False, False, False, True, True]


def test_a_small_region_leans_on_the_one_it_was_cut_from() -> None:
    # Of 104 rows 100 are a; the four at 60 are b: (4 + 100 * 4 / 104) / 104 is less than a half.
    known = of_ages([20] * LEAN + [60] * 4, ["a"] * LEAN + ["b"] * 4)
    assert says(known, of_ages([60], ["a"]), 4) == [True]
    # With as many rows as the weight of the region around it, it speaks for itself.
    known = of_ages([20] * LEAN + [60] * LEAN, ["a"] * LEAN + ["b"] * LEAN)
    assert says(known, of_ages([60], ["b"]), LEAN) == [True]


def test_an_empty_region_and_an_unknown_value_say_what_the_region_around_them_does() -> None:
    known = pl.DataFrame({"place": ["x"] * 30 + ["y"] * 20, "class": ["a"] * 30 + ["b"] * 20})
    others = pl.DataFrame({"place": ["z", "nowhere", None] * 2, "class": ["a"] * 3 + ["b"] * 3})
    assert says(known, others, 10) == [True, True, True, False, False, False]


def test_missing_is_a_class_of_its_own() -> None:
    known = of_ages([20] * 300 + [60] * 300, [None] * 300 + ["b"] * 300)
    assert says(known, of_ages([20, 60, 20, 60], [None, "b", "b", None]), 300) == [True, True, False, False]


def test_of_equally_likely_classes_the_first_is_said() -> None:
    known = of_ages([20] * 4, ["b", "a", "b", "a"])
    assert says(known, of_ages([20, 20], ["a", "b"]), 4) == [True, False]


def test_a_gain_is_the_mean_difference_and_its_noise_two_standard_errors() -> None:
    before = np.array([True, False, False, False, True])
    after = np.array([True, True, True, False, False])
    gain = paired_gain(before, after)
    assert gain.share == pytest.approx(0.2)  # 0, 1, 1, 0, -1: squares of deviations add up to 3 - 5 / 25
    assert gain.noise == pytest.approx(2 * math.sqrt(2.8 / 4 / 5))
    assert not gain.is_real
    assert not gain.is_loss


def test_a_gain_beyond_noise_is_real_and_the_other_way_round_a_loss() -> None:
    rng = np.random.default_rng(1)
    before = rng.random(1000) < 0.5
    after = before | (rng.random(1000) < 0.2)
    assert paired_gain(before, after).is_real
    assert paired_gain(after, before).is_loss
    assert not paired_gain(after, before).is_real
    assert not paired_gain(before, before).is_real


def test_one_row_proves_nothing() -> None:
    gain = paired_gain(np.array([False]), np.array([True]))
    assert gain.share == 1.0
    assert not gain.is_real
