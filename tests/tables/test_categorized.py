# SPDX-License-Identifier: Apache-2.0
"""The distinct texts of a column are the same whether they are few, found by their hashes, or many."""

from __future__ import annotations

import random

import polars as pl
import pytest

from anonfit.tables import frames
from anonfit.tables.frames import categorized


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
