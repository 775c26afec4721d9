# SPDX-License-Identifier: Apache-2.0
"""The small learner over regions, and what counts as a gain."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.metrics.holdout import RegionLearner, paired_gain
from anonfit.metrics.workload import LEAN
from anonfit.recoding.recoding import Recoding


def recoding(ages: list[int], k: int) -> Recoding:
    return af.anonymize(pl.DataFrame({"age": ages}), quasi_identifiers=["age"], k=k).recoding


def test_a_large_region_says_its_most_frequent_class() -> None:
    ages = [20] * 300 + [60] * 300
    known = pl.DataFrame({"age": ages, "class": ["a"] * 200 + ["b"] * 100 + ["a"] * 100 + ["b"] * 200})
    learner = RegionLearner.taught(recoding(ages, 300), known, "class")
    assert learner.predict(pl.DataFrame({"age": [5, 20, 60, 99]})).to_list() == ["a", "a", "b", "b"]


def test_a_small_region_leans_on_the_one_it_was_cut_from() -> None:
    # Of 104 rows 100 are a; the four at 60 are b: (4 + 100 * 4 / 104) / 104 is less than a half.
    ages = [20] * LEAN + [60] * 4
    known = pl.DataFrame({"age": ages, "class": ["a"] * LEAN + ["b"] * 4})
    learner = RegionLearner.taught(recoding(ages, 4), known, "class")
    assert learner.predict(pl.DataFrame({"age": [60]})).to_list() == ["a"]
    # With as many rows as the weight of the region around it, it speaks for itself.
    ages = [20] * LEAN + [60] * LEAN
    known = pl.DataFrame({"age": ages, "class": ["a"] * LEAN + ["b"] * LEAN})
    learner = RegionLearner.taught(recoding(ages, LEAN), known, "class")
    assert learner.predict(pl.DataFrame({"age": [60]})).to_list() == ["b"]


def test_an_empty_region_says_what_the_one_around_it_does() -> None:
    tree = {"name": "*", "children": [{"name": "x"}, {"name": "y"}, {"name": "z"}]}
    known = pl.DataFrame({"place": ["x"] * 30 + ["y"] * 20, "class": ["a"] * 30 + ["b"] * 20})
    regions = af.anonymize(
        known.select("place"), quasi_identifiers=["place"], k=10, taxonomies={"place": tree}
    ).recoding
    learner = RegionLearner.taught(regions, known, "class")
    assert learner.predict(pl.DataFrame({"place": ["z"]})).to_list() == ["a"]


def test_an_unknown_value_is_predicted_from_the_region_in_which_it_does_not_matter() -> None:
    tree = {"name": "*", "children": [{"name": "x"}, {"name": "y"}]}
    known = pl.DataFrame({"place": ["x"] * 30 + ["y"] * 20, "class": [1] * 30 + [2] * 20})
    regions = af.anonymize(
        known.select("place"), quasi_identifiers=["place"], k=10, taxonomies={"place": tree}
    ).recoding
    learner = RegionLearner.taught(regions, known, "class")
    assert learner.predict(pl.DataFrame({"place": ["nowhere", None]})).to_list() == [1, 1]


def test_missing_is_a_class_of_its_own() -> None:
    ages = [20] * 300 + [60] * 300
    known = pl.DataFrame({"age": ages, "class": [None] * 300 + ["b"] * 300})
    learner = RegionLearner.taught(recoding(ages, 300), known, "class")
    assert learner.predict(pl.DataFrame({"age": [20, 60]})).to_list() == [None, "b"]


def test_of_equally_likely_classes_the_first_is_said() -> None:
    known = pl.DataFrame({"age": [20] * 4, "class": ["b", "a", "b", "a"]})
    learner = RegionLearner.taught(recoding([20] * 4, 4), known, "class")
    assert learner.predict(pl.DataFrame({"age": [20]})).to_list() == ["a"]


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
