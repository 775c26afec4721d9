# SPDX-License-Identifier: Apache-2.0
"""The distinct texts of a column are the same whether they are few, found by their hashes, or many."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal, assert_series_equal

from anonfit.tables import frames
from anonfit.tables.frames import categorized, enumerated, rebuilt, reordered


@pytest.mark.parametrize("slot_bits", [1, 2, 4, 12])
@pytest.mark.parametrize("few", [0, 3, 256])
def test_rows_point_to_their_texts(monkeypatch: pytest.MonkeyPatch, slot_bits: int, few: int) -> None:
    monkeypatch.setattr(frames, "SLOTS", [(slot_bits, 0), (slot_bits, 20), (16, 48)])
    monkeypatch.setattr(frames, "CHUNK", 64)
    monkeypatch.setattr(frames, "FEW", few)
    rng = random.Random(slot_bits + few)
    for words in ([], ["a"], ["a", "", " a", '"', "a, b", "ß"], [f"text {number}" for number in range(300)]):
        for rows in (0, 1, 400):
            values = [rng.choice([*words, None]) for _ in range(rows)]
            texts = pl.Series("x", values, dtype=pl.String)
            for column in (texts, texts.cast(pl.Categorical), texts.cast(pl.Enum(words))):
                distinct, places = categorized(column)
                assert distinct.name == "x"
                known = distinct.to_list()
                assert len(known) == len(set(known))
                assert {value for value in values if value is not None} <= set(known)
                assert [[*known, None][place] for place in places.tolist()] == values


def test_few_texts_need_no_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above would not notice if the fast way were never taken."""
    monkeypatch.setattr(pl.Categories, "random", None)
    distinct, places = categorized(pl.Series(["b", None, "a", "b"]))
    assert [[*distinct.to_list(), None][place] for place in places.tolist()] == ["b", None, "a", "b"]


@pytest.mark.parametrize("words", [[], ["a"], ["ß", "a, b", "", "Z", "a"], [f"text {number}" for number in range(300)]])
def test_few_texts_are_enumerated_in_the_order_of_their_code_points(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "FEW", 400)
    rng = random.Random(len(words))
    for values in ([], [None, None], words, [rng.choice([*words, None]) for _ in range(2000)]):
        texts = pl.Series("x", values, dtype=pl.String)
        found = enumerated(texts)
        assert isinstance(found.dtype, pl.Enum)
        assert found.dtype.categories.to_list() == sorted(set(values) - {None})
        assert_series_equal(found.cast(pl.String), texts)
        assert_frame_equal(reordered(found.to_frame(), np.arange(len(values), dtype=np.uint32)), texts.to_frame())


def test_many_texts_and_what_is_no_text_are_not_enumerated() -> None:
    texts = pl.Series([f"text {number}" for number in range(300)])
    assert enumerated(texts) is texts
    assert enumerated(names := texts.cast(pl.Categorical)) is names


def test_reordered_rows_are_those_of_a_gather_and_hold_no_other_text() -> None:
    rng = np.random.default_rng(0)
    rows = 3000
    few = pl.Series(
        "few", [["a", None, "ü" * 20, "", "long enough not to be inlined"][i] for i in rng.integers(0, 5, rows)]
    )
    frame = pl.DataFrame(
        {
            "few": few,
            "many": pl.Series([f"the text of row {row}" for row in range(rows)]),
            "float": rng.choice([0.0, -0.0, np.nan, 1.5], rows),
            "small": pl.Series(rng.integers(0, 9, rows)).cast(pl.UInt8),
            "lost": pl.Series([None if row % 3 else row for row in range(rows)]),
            "truth": pl.Series(rng.random(rows) < 0.5),
            "price": pl.Series(rng.integers(0, 9, rows)).cast(pl.Decimal(10, 2)),
            "name": few.cast(pl.Categorical),
        }
    )
    order = rng.permutation(rows).astype(np.uint32)
    found = reordered(frame.with_columns(enumerated(few)), order)
    assert_frame_equal(found, rebuilt(frame[order]))
    assert np.array_equal(np.signbit(found["float"].to_numpy()), np.signbit(frame["float"][order].to_numpy()))
    # Each text is there once, in an order of its own.
    assert found["few"].estimated_size() < rows * 16 + rows // 8 + 200
    assert reordered(pl.DataFrame(), order).is_empty()
