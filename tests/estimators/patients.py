# SPDX-License-Identifier: Apache-2.0
"""A table of patients with columns of every kind, and targets that depend on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

COUNTRIES: dict[str, Any] = {
    "name": "*",
    "children": [{"name": "Europe", "children": [{"name": "FR"}, {"name": "DE"}]}, {"name": "US"}, {"name": "JP"}],
}
GRADES = ["low", "mid", "high", "top"]
DECLARED: dict[str, Any] = {
    "taxonomies": {"country": COUNTRIES},
    "types": {"grade": "ordinal"},
    "orders": {"grade": GRADES},
}


def patients(seed: int = 0, rows: int = 600) -> pl.DataFrame:
    """The quasi-identifiers: numbers with missing values, dates, words of an order, names, leaves of a taxonomy."""
    rng = np.random.default_rng(seed)
    age = pl.Series(rng.integers(18, 90, rows))
    return pl.DataFrame(
        {
            "age": pl.select(pl.when(pl.Series(rng.random(rows) < 0.05)).then(None).otherwise(age)).to_series(),
            "admitted": pl.Series(rng.integers(19_000, 19_800, rows)).cast(pl.Int32).cast(pl.Date),
            "grade": rng.choice(GRADES, rows),
            "sex": rng.choice(["F", "M", "X"], rows, p=[0.5, 0.4, 0.1]),
            "country": rng.choice(["FR", "DE", "US", "JP"], rows),
        }
    )


def outcomes(table: pl.DataFrame, seed: int = 0) -> pl.DataFrame:
    """Two targets: a class that depends on age and country, and a number that depends on age and sex."""
    rng = np.random.default_rng(seed + 1000)
    age = table["age"].fill_null(50).to_numpy()
    risk = (age > 55).astype(float) + (table["country"] == "US").to_numpy() + rng.normal(0, 0.4, len(table))
    cost = 10.0 * age + 200.0 * (table["sex"] == "F").to_numpy() + rng.normal(0, 30, len(table))
    return pl.DataFrame({"died": np.where(risk > 0.9, "yes", "no"), "cost": cost})
