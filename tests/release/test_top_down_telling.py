# SPDX-License-Identifier: Apache-2.0
"""What a release by several quasi-identifiers tells everybody: figures of raw rows by the largest k, figures of a
quasi-identifier's groups by its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from test_top_down import NAMES, people, released, smallest

APART: list[Any] = [
    {"columns": ["age", "hours"], "k": 30},
    {"columns": ["town"], "k": 25},
    {"columns": ["school"], "k": 20},
]


@pytest.mark.parametrize("k", [1, 5, 40])
def test_rows_that_were_left_out_are_told_by_the_largest_k(tmp_path: Path, k: int) -> None:
    frame = people().with_columns(age=pl.when(pl.int_range(pl.len()) >= 7).then("age"))
    found = released(frame, k=k, requirements=APART, missing_policy="drop")
    assert found.report["rows"]["dropped"] == f"fewer than {max(k, 30)}"
    assert found.report["rows"]["read"] != len(frame)
    found.save(tmp_path / "release")
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert manifest["rows"]["dropped"] == f"fewer than {max(k, 30)}"
    assert json.loads((tmp_path / "release.internal.json").read_text())["rows"]["dropped"] == 7


def test_a_name_that_is_too_rare_for_one_quasi_identifier_is_told_nowhere(tmp_path: Path) -> None:
    frame = people().with_columns(
        town=pl.when(pl.int_range(pl.len()) < 12).then(pl.lit("Smallville")).otherwise("town")
    )
    for most, is_told in ((20, False), (12, True)):
        sets: list[Any] = [{"columns": ["town", "hours"], "k": 5}, {"columns": ["town", "age", "school"], "k": most}]
        folder = released(frame, k=5, requirements=sets).save(tmp_path / f"release{most}", format="csv")
        told = [file.name for file in folder.iterdir() if "Smallville" in file.read_text()]
        assert ("recoding.json" in told) if is_told else (told == [])


def test_a_release_names_every_quasi_identifier_with_its_k() -> None:
    found = released(k=5, requirements=[*APART[:2], ["school"]])
    assert repr(found) == "Release(k=30 of age, hours; k=25 of town; k=5 of school; rows=900)"


@pytest.mark.parametrize("k", [1, 300])
def test_groups_of_a_quasi_identifier_are_told_by_its_own_k(k: int) -> None:
    words: dict[str, Any] = {"sensitive": {"illness": {"model": "entropy-l", "l": 1.5}}}
    found = released(k=k, requirements=APART, **words)
    audit = found.report["audit"]
    least = [smallest(found.data, one["columns"]) for one in APART]
    assert min(least) < 300
    assert [one["sizes"]["smallest"] for one in audit["sets"]] == least
    assert [one["found"] for one in audit["findings"] if one["name"] == "k"] == least
    told = [one["found"] for one in audit["findings"] if one["name"] == "entropy-l"]
    assert len(told) == 3
    assert all(isinstance(one, float) for one in told)
    assert [one["found"] for one in audit["diversity"] if one["asked"] is not None] == told
    # All columns together are nobody's quasi-identifier: their groups are told by the largest k.
    assert smallest(found.data, NAMES) < 30
    assert audit["sizes"]["smallest"] == f"fewer than {max(k, 30)}"
