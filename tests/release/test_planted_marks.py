# SPDX-License-Identifier: Apache-2.0
"""Nothing but released values is in the bytes of a release: not in its files after unpacking, and not in the buffers of
its frames.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from planted_marks import Marks, folder_bytes, frame_bytes, leaks, planted_table, unpacked

import anonfit as af


@pytest.mark.sampled(11)
@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("seed", range(20))
def test_no_mark_is_in_a_release(seed: int, engine: str, tmp_path: Path) -> None:
    assert leaks(seed, engine, tmp_path) == []


@pytest.mark.sampled(3)
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(3))
def test_no_mark_is_in_a_release_of_spark(seed: int, tmp_path: Path) -> None:
    assert leaks(seed, "spark", tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 350))
@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_no_mark_is_in_500_releases(seed: int, engine: str, tmp_path: Path) -> None:
    assert leaks(seed, engine, tmp_path) == []


def test_marks_are_found_where_they_are(tmp_path: Path) -> None:
    """What is searched is all there is: raw columns are found in every format and every kind of frame."""
    marks = Marks(np.random.default_rng(1))
    people = pl.DataFrame({"age": [1, 2] * 50, "ill": [marks.text(long=True), marks.text(long=False)] * 50})
    people = people.with_columns(cost=pl.Series([marks.number(), marks.number()] * 50))
    words = {"quasi_identifiers": ["age"], "k": 5, "default_role": "insensitive"}
    for kind, frame in {"polars": people, "pandas": people.to_pandas(), "pyarrow": people.to_arrow()}.items():
        release = af.anonymize(frame, **words)
        assert len(set(marks.found_in(frame_bytes(release.data)))) == 4, kind
        for form in ("csv", "parquet", "arrow"):
            content = folder_bytes(release.save(tmp_path / f"{kind}-{form}", format=form))
            assert len(set(marks.found_in(content))) == 4, (kind, form)


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_bytes_do_not_depend_on_the_order_of_the_input(form: str, tmp_path: Path) -> None:
    people = planted_table(Marks(np.random.default_rng(3)), 100, rare=True, drop=True)
    words = {"identifiers": ["who"], "quasi_identifiers": ["age", "town"], "k": 5, "default_role": "insensitive"}
    found = []
    for place, frame in enumerate((people, people.sample(fraction=1.0, shuffle=True, seed=5))):
        release = af.anonymize(frame, missing_policy="drop", **words)
        data = release.save(tmp_path / f"{place}", format=form) / f"data.{form}"
        buffers = [part for column in release.data.to_arrow().columns for part in column.chunk(0).buffers() if part]
        found.append((data.read_bytes(), [unpacked(part.to_pybytes()) for part in buffers]))
    assert found[0] == found[1]
