# SPDX-License-Identifier: Apache-2.0
"""Rows are drawn at random, and the same ones however the rows of a table come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from anonfit.workload.logs import merging as drawing
from anonfit.workload.logs.merging import Batch, RawRows, drawn_rows

NAMES = ["day", "hours", "pay", "sure", "town"]


def people(rows: int, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    found = pl.DataFrame({
        "town": rng.choice(["a", "b", "ü", ""], rows),
        "hours": rng.integers(-3, 4, rows),
        "pay": rng.integers(0, 3, rows) / 3,
        "sure": rng.random(rows) < 0.5,
        "day": [date(2020, 1, 1 + int(at)) for at in rng.integers(0, 3, rows)],
        "other": np.arange(rows),
    })  # fmt: skip
    gaps = [pl.when(pl.Series(rng.random(rows) < 0.9)).then(pl.col(name)).alias(name) for name in NAMES]
    return found.with_columns(gaps)


def raw_rows(frame: pl.DataFrame, size: int) -> RawRows:
    def read(names: Sequence[str]) -> Iterator[Batch]:
        for some in frame.iter_slices(size):
            yield Batch(some.select(names), lambda groups, count: np.bincount(groups, minlength=count))
            yield Batch(some[:0].select(names), lambda groups, count: np.zeros(count, np.int64))

    return RawRows(frame.schema, len(frame), read)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("bits", [1, 5, 12])
def test_the_same_rows_are_drawn_however_they_come(seed: int, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "BITS", bits)
    rng = np.random.default_rng(seed)
    frame = people(int(rng.integers(41, 400)), seed)
    names = sorted(rng.choice(NAMES, rng.integers(1, 6), replace=False).tolist())
    expected = drawn_rows(raw_rows(frame, len(frame)), names, size=40, seed=seed)
    assert (expected.columns, len(expected)) == (names, 40)
    for size in (19, 50):
        shuffled = frame.sample(fraction=1, shuffle=True, seed=size)
        assert_frame_equal(drawn_rows(raw_rows(shuffled, size), names, size=40, seed=seed), expected)
    texts = frame.with_columns(pl.col("town").cast(pl.Categorical))
    found = drawn_rows(raw_rows(texts, 30), names, size=40, seed=seed)
    assert_frame_equal(found.with_columns(pl.col("town").cast(pl.String)) if "town" in names else found, expected)


@pytest.mark.parametrize("seed", range(10))
def test_they_are_at_the_drawn_places_of_the_order_of_keys(seed: int) -> None:
    frame = people(300, seed)
    rows = raw_rows(frame, 300)
    [(_, keys)] = drawing._keyed(rows, NAMES)
    places = np.sort(np.random.default_rng(seed).choice(300, 40, replace=False))
    expected = frame.select(NAMES)[np.argsort(keys, kind="stable")[places]]
    assert_frame_equal(drawn_rows(rows, NAMES, size=40, seed=seed), expected)


def test_keys_tell_values_apart() -> None:
    frame = people(3_000).select(NAMES)
    [(_, keys)] = drawing._keyed(raw_rows(frame, len(frame)), NAMES)
    assert len(np.unique(keys)) == frame.n_unique()
    crossed = pl.DataFrame({"a": [1, 2, None, 0], "b": [2, 1, 0, None]})
    [(_, keys)] = drawing._keyed(raw_rows(crossed, 4), ["a", "b"])
    assert len(np.unique(keys)) == 4


def test_every_row_is_as_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the rows of a value that most rows have."""
    monkeypatch.setattr(drawing, "BITS", 6)
    frame = pl.DataFrame({"a": [0] * 300 + list(range(1, 101))})
    drawn = [drawn_rows(raw_rows(frame, 250), ["a"], size=40, seed=seed)["a"] for seed in range(400)]
    assert abs(np.mean([(one == 0).mean() for one in drawn]) - 0.75) < 0.01
    times = pl.concat(drawn).value_counts().filter(pl.col("a") > 0)["count"].to_numpy()
    assert len(times) == 100
    assert abs(times.mean() - 40) < 3
    assert times.std() < 2 * np.sqrt(40 * 0.9)


def test_few_rows_are_all_drawn_and_none_none() -> None:
    frame = people(40)
    found = drawn_rows(raw_rows(frame, 11), ["other"], size=40, seed=0)
    assert found["other"].sort().to_list() == list(range(40))
    assert drawn_rows(raw_rows(frame[:0], 11), ["day", "town"], size=40, seed=0).is_empty()
