# SPDX-License-Identifier: Apache-2.0
"""A table of patients whose diagnoses, stages and costs depend on who they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

REGIONS: dict[str, Any] = {
    "name": "*",
    "children": [
        {"name": "north", "children": [{"name": "n1"}, {"name": "n2"}, {"name": "n3"}]},
        {"name": "south", "children": [{"name": "s1"}, {"name": "s2"}]},
    ],
}
DIAGNOSES: dict[str, Any] = {
    "name": "any",
    "children": [
        {"name": "heart", "children": [{"name": "angina"}, {"name": "infarct"}]},
        {"name": "lung", "children": [{"name": "asthma"}, {"name": "flu"}]},
        {"name": "fracture"},
    ],
}
NAMES = ["angina", "infarct", "asthma", "flu", "fracture"]
STAGES = ("none", "mild", "grave")
QUASI_IDENTIFIERS = ["age", "region", "sex"]


def patients(rows: int = 300, *, seed: int = 0, missing: bool = False) -> pl.DataFrame:
    """Age, region and sex; diagnosis, stage and cost, which go with age; and an outcome."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    region = rng.choice(["n1", "n2", "n3", "s1", "s2"], rows, p=[0.3, 0.2, 0.1, 0.25, 0.15])
    old = (age - 18) / 72
    diagnosis = [str(rng.choice(NAMES, p=_shares(share))) for share in old]
    frame = pl.DataFrame(
        {
            "age": age,
            "region": region,
            "sex": rng.choice(["f", "m"], rows),
            "diagnosis": diagnosis,
            "stage": [STAGES[int(one)] for one in np.clip(np.floor(old * 3 + rng.normal(0, 0.8, rows)), 0, 2)],
            "cost": np.round(100 + 400 * old + rng.normal(0, 60, rows)) / 4,
            "outcome": ["bad" if one > 0.8 else "good" for one in old + rng.normal(0, 0.3, rows)],
        }
    )
    if missing:
        frame = frame.with_columns(
            pl.when(pl.Series(rng.random(rows) < 0.12)).then(None).otherwise(pl.col(name)).alias(name)
            for name in ("diagnosis", "cost", "age")
        )
    return frame


def _shares(old: float) -> Any:
    raw = np.array([0.5 + 2 * old, 0.3 + 2 * old, 1.0, 2.0 - old, 1.0 - 0.5 * old])
    return raw / raw.sum()
