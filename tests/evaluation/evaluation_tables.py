# SPDX-License-Identifier: Apache-2.0
"""A small made-up table whose target follows from its quasi-identifiers, and its spec."""

from __future__ import annotations

import numpy as np
import polars as pl

import anonfit as af
from anonfit.spec.model import Spec

SPEC = """
version = 1
[columns.age]
role = "quasi-identifier"
[columns.job]
role = "quasi-identifier"
type = "nominal"
[columns.hours]
role = "insensitive"
[columns.ill]
role = "target"
[columns.cost]
role = "target"
type = "continuous"
release = true
[privacy]
k = 5
[workload]
targets = ["ill"]
"""


def people(rows: int = 400, seed: int = 0) -> pl.DataFrame:
    """Workers: who is old and a miner is ill, nearly always."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 70, rows)
    job = rng.choice(["clerk", "miner", "nurse", "smith"], rows)
    hours = rng.integers(10, 60, rows)
    ill = (age >= 45) & np.isin(job, ["miner", "smith"])
    ill ^= rng.random(rows) < 0.05
    cost = 10.0 * age + np.where(job == "nurse", 100.0, 0.0) + rng.normal(size=rows)
    return pl.DataFrame(
        {"age": age, "job": job, "hours": hours, "ill": np.where(ill, "yes", "no"), "cost": cost.round(3)}
    )


def spec(text: str = SPEC) -> Spec:
    """The spec of that table."""
    return af.parse_spec(text)
