# SPDX-License-Identifier: Apache-2.0
"""A tree of many levels: what rows were made from must not grow with them until Java has no room for it."""

from __future__ import annotations

import polars as pl
import pytest
from spark_sessions import spark_frame

import anonfit as af

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_many_levels() -> None:
    rows = range(300)
    people = pl.DataFrame(
        {
            "age": [20 + (row * 7919) % 60 for row in rows],
            "size": [(row * 104729) % 97 for row in rows],
            "ill": ["flu" if row % 3 else "cold" for row in rows],
        }
    )
    words = {"quasi_identifiers": ["age", "size"], "targets": ["ill"], "k": 2, "criterion": "infogain"}
    here = af.anonymize(people, **words)
    there = af.anonymize(spark_frame(people), **words, engine="spark", engine_options={"hand_over": 10})
    assert there.recoding.to_json() == here.recoding.to_json()
