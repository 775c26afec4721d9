# SPDX-License-Identifier: Apache-2.0
"""Distributions before and after: shares counted by hand, all of them, and for the owner of the data only."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.metrics.losses import BARS, OTHERS, _of_values
from waivers import waived


def people() -> pl.DataFrame:
    rng = np.random.default_rng(2)
    return pl.DataFrame(
        {
            "age": rng.integers(20, 80, 600),
            "town": rng.choice([f"town {n}" for n in range(14)], 600),
            "sex": rng.choice(["f", "m", None], 600).tolist(),
            "ill": rng.choice(["flu", "gout"], 600),
            "pay": rng.normal(3000, 500, 600),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    release = af.anonymize(
        people(),
        quasi_identifiers=["age", "town", "sex"],
        sensitive=waived("ill"),
        insensitive=["pay"],
        release=["pay"],
        k=5,
    )
    return release.save(tmp_path_factory.mktemp("drawn") / "release")


def test_every_released_column_is_drawn_for_the_owner_and_nobody_else(folder: Path) -> None:
    record = json.loads(folder.with_name("release.internal.json").read_text())["distributions"]
    assert [line["column"] for line in record] == ["age", "town", "sex", "ill", "pay"]
    assert 'id="distributions"' in folder.with_name("release.internal.html").read_text(encoding="utf-8")
    assert "distributions" not in (folder / "report.json").read_text(encoding="utf-8")
    assert 'id="distributions"' not in (folder / "report.html").read_text(encoding="utf-8")


def test_shares_before_are_those_of_the_raw_values_and_all_shares_add_up(folder: Path) -> None:
    record = json.loads(folder.with_name("release.internal.json").read_text())["distributions"]
    bars = {line["column"]: line["bars"] for line in record}
    for line in bars.values():
        assert 1 < len(line) <= BARS
        assert sum(bar["before"] for bar in line) == pytest.approx(1)
        assert line[0]["after"] is None or sum(bar["after"] for bar in line) == pytest.approx(1)
    frame = people()
    for name in ("town", "ill"):
        counted = dict(frame[name].value_counts().rows())
        assert all(
            bar["before"] == pytest.approx(counted[bar["label"]] / 600) for bar in bars[name] if bar["label"] != OTHERS
        )
    youngest = bars["age"][0]
    assert youngest["label"].startswith("< ")
    assert youngest["before"] == pytest.approx((frame["age"] < float(youngest["label"][2:])).mean())


def test_values_that_are_missing_or_all_the_same_are_drawn() -> None:
    assert _of_values(pl.Series([None, "a", "a", None, "a"])) == [
        {"label": "a", "before": 0.6, "after": None},
        {"label": "missing", "before": 0.4, "after": None},
    ]
    assert [bar["before"] for bar in _of_values(pl.Series([1.5] * 4))] == [1.0]
