# SPDX-License-Identifier: Apache-2.0
"""A tree of many levels: what rows were made from must not grow with them until Java has no room for it."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

import anonfit as af
from anonfit.release.run import make
from anonfit.spec.keywords import spec_of_keywords
from spark_sessions import spark_frame

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
    spec = spec_of_keywords(spark_frame(people), words)
    found = make(replace(spec, engine=replace(spec.engine, name="spark", hand_over=10)))
    assert found.recoding.to_json() == af.anonymize(people, **words).recoding.to_json()
