# SPDX-License-Identifier: Apache-2.0
"""Weights from single-column accuracy: guesses counted one by one, ranges of equally many persons, and ranks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.errors import SpecError
from anonfit.tables.schema import CodedColumn, SplitMode
from anonfit.workload.objectives import RANGES, guessed, in_ranges

Array = np.ndarray[Any, np.dtype[np.int64]]


def one_by_one(places: Array, classes: Array, width: int, persons: Array) -> float:
    """Every person is guessed from all others, slowly."""
    everybody = [(p, c) for p, c, n in zip(places, classes, persons, strict=True) for _ in range(n)]
    right = 0
    for index, (place, own) in enumerate(everybody):
        others = everybody[:index] + everybody[index + 1 :]
        here = Counter(c for p, c in others if p == place)
        anywhere = Counter(c for _, c in others)
        likely = max(range(width), key=lambda c: (here[c], anywhere[c], -c))
        right += likely == own
    return right / len(everybody)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(60))
def test_every_person_is_guessed_from_the_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, width = int(rng.integers(1, 25)), int(rng.integers(1, 5))
    places, classes = rng.integers(0, rng.integers(1, 9), rows), rng.integers(0, width, rows)
    persons = rng.integers(1, 4, rows) if seed % 2 else np.ones(rows, np.int64)
    assert guessed(places, classes, width, persons) == pytest.approx(one_by_one(places, classes, width, persons))


def test_a_column_that_names_everybody_tells_nothing() -> None:
    classes = np.array([0] * 6 + [1] * 4)
    ones = np.ones(10, np.int64)
    assert guessed(np.arange(10), classes, 2, ones) == 0.6
    assert guessed(np.zeros(10, np.int64), classes, 2, ones) == 0.6
    assert guessed(classes.copy(), classes, 2, ones) == 1.0


def column(size: int, mode: SplitMode = SplitMode.ORDERED, *, missing: bool = False) -> CodedColumn:
    return CodedColumn("c", size, mode, missing, np.arange(size, dtype=np.float64))


def test_ranges_have_equally_many_persons() -> None:
    codes = np.repeat(np.arange(100), 3)
    found = in_ranges(column(100), codes, np.ones(300, np.int64))
    assert np.bincount(found).tolist() == [0] + [30] * RANGES
    weighed = in_ranges(column(4), np.arange(4), np.array([1, 1, 1, 97]))
    assert weighed[0] == weighed[2] == 1
    assert weighed[3] in (5, 6)
    assert in_ranges(column(5, SplitMode.SUBSET), np.array([4, 0, 4]), np.ones(3, np.int64)).tolist() == [4, 0, 4]


def test_missing_is_a_range_of_its_own() -> None:
    found = in_ranges(column(11, missing=True), np.array([0, 0, 0, *range(1, 11)]), np.ones(13, np.int64))
    assert found.tolist() == [0, 0, 0, *range(1, 11)]


def people(rows: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    age, hours = rng.integers(20, 80, rows), rng.integers(0, 60, rows)
    ill = age + rng.normal(0, 6, rows) > 50
    return pl.DataFrame(
        {
            "hours": hours,
            "age": age,
            "town": rng.choice(list("abcdefgh"), rows),
            "half": np.where(rng.random(rows) < 0.7, ill, ~ill).astype(str),
            "ill": np.where(ill, "yes", "no"),
        }
    )


def release(**words: Any) -> af.Release:
    names = ["hours", "age", "town", "half"]
    return af.anonymize(people(), quasi_identifiers=names, k=10, weights_from="accuracy", **words)


def test_the_three_best_columns_get_weights_by_rank() -> None:
    found = release(targets=["ill"])
    weights = found.report["asked"]["weights"]
    assert weights["age"] == 3.0
    assert weights["half"] == 2.0
    assert sorted(weights.values()) == [0.0, 1.0, 2.0, 3.0]
    assert any("found from how well each column alone predicts" in one for one in found.report["asked"]["sentences"])
    given = af.anonymize(people(), quasi_identifiers=list(weights), k=10, weights=weights, targets=["ill"])
    assert given.data.equals(found.data)


def test_a_column_does_not_predict_itself() -> None:
    found = release(targets=["half"], default_role="insensitive", criterion="weighted")
    assert found.report["asked"]["weights"]["half"] == 0.0


def test_the_order_of_rows_does_not_matter() -> None:
    names = ["hours", "age", "town", "half"]
    words: dict[str, Any] = {"quasi_identifiers": names, "k": 10, "weights_from": "accuracy", "targets": ["ill"]}
    one, other = (
        af.anonymize(people(), **words),
        af.anonymize(people().sample(fraction=1, shuffle=True, seed=1), **words),
    )
    assert one.data.equals(other.data)


def test_numbers_have_no_accuracy() -> None:
    frame = people().with_columns(cost=pl.Series(np.random.default_rng(0).normal(size=300).round(2)))
    with pytest.raises(SpecError, match="needs a target with classes"):
        af.anonymize(
            frame.drop("ill"),
            quasi_identifiers=["age"],
            k=5,
            targets=["cost"],
            weights_from="accuracy",
            default_role="insensitive",
            release=["cost"],
            criterion="weighted",
        )
