# SPDX-License-Identifier: Apache-2.0
"""A small table about people for reports, and the releases of it that differ most."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

import anonfit as af
from waivers import waived

K = 7
ROWS = 420
ODD = "<script>alert('x')</script>&\"'"
"""A name that must stay a text."""


def people(rows: int = ROWS, seed: int = 3) -> pl.DataFrame:
    """People whose outcome and cost follow their age."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    return pl.DataFrame(
        {
            "name": [f"person {number}" for number in range(rows)],
            "age": age,
            "height": rng.integers(1500, 2000, rows) / 10,
            "seen": pl.Series(rng.integers(18000, 19000, rows)).cast(pl.Int32).cast(pl.Date),
            "sex": rng.choice(["f", "m"], rows),
            "place": rng.choice(["north", "south", "east", "west", None], rows).tolist(),
            "grade": rng.choice(["low", "middle", "high"], rows),
            "illness": rng.choice(["flu", "cold", "burn", "none"], rows),
            "outcome": np.where(age + rng.normal(0, 12, rows) > 55, "ill", "well"),
            "cost": (10 * age + rng.normal(0, 40, rows)).round(1),
        }
    )


WORDS: dict[str, Any] = {
    "quasi_identifiers": ["age", "height", "seen", "sex", "place", "grade"],
    "orders": {"grade": ["low", "middle", "high"]},
    "types": {"grade": "ordinal"},
    "k": K,
    "identifiers": ["name"],
    "sensitive": waived("illness"),
    "release": ["cost"],
}
KINDS: dict[str, dict[str, Any]] = {
    "blind": {"insensitive": ["outcome", "cost"]},
    "classes": {"targets": ["outcome"], "insensitive": ["cost"], "criterion": "infogain"},
    "numbers": {"targets": ["cost"], "insensitive": ["outcome"], "criterion": "lsd"},
    "generalized": {
        "targets": ["sex", {"column": "age", "equal_width": 3}, "height"],
        "insensitive": ["outcome", "cost"],
        "min_gain": 0.0,
    },
    "selections": {"selections": ["age >= 60", "age = 30", {"each": "sex"}], "insensitive": ["outcome", "cost"]},
    "everything": {
        "targets": ["outcome", "cost"],
        "selections": ["age >= 60 and sex = 'f'"],
        "weights": {"age": 2.0},
        "sensitive": {"illness": {"model": "distinct-l", "l": 2}},
    },
    "capped": {"targets": ["outcome"], "insensitive": ["cost"], "max_confidence": 0.95},
    "bounds": {"targets": ["outcome"], "insensitive": ["cost"], "values": "bounds", "min_gain": 0.0},
    "middles": {"targets": ["outcome"], "insensitive": ["cost"], "values": "representative", "min_gain": 0.0},
}


def released(kind: str, frame: pl.DataFrame | None = None, **words: Any) -> af.Release:
    """A release of one kind."""
    return af.anonymize(people() if frame is None else frame, **{**WORDS, **KINDS[kind], **words})
