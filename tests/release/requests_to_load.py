# SPDX-License-Identifier: Apache-2.0
"""Random tables and requests of every algorithm, with declared domains whose ends occur, deep taxonomies and ties."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

Random = np.random.Generator
START = datetime(2024, 1, 1)
GROUPS, HALVES, LEAVES = range(4), range(3), range(3)
TREE = {
    "name": "*",
    "children": [
        {
            "name": f"{group}",
            "children": [
                {"name": f"{group}-{half}", "children": [{"name": f"{group}-{half}-{leaf}"} for leaf in LEAVES]}
                for half in HALVES
            ],
        }
        for group in GROUPS
    ],
}
KINDS = ("whole", "real", "day", "moment", "stage", "word", "place", "truth")


def _values(rng: Random, kind: str, rows: int) -> list[Any]:
    """Few different values or many, some of them often."""
    numbers = (
        np.minimum(rng.exponential(1, rows) * rng.choice([2, 8, 40]), rng.choice([3, 12, 1000])).astype(int).tolist()
    )
    make = {
        "whole": int,
        "real": lambda number: number / 8,
        "day": lambda number: START.date() + timedelta(days=number),
        "moment": lambda number: START + timedelta(minutes=7 * number),
        "stage": lambda number: ("low", "mid, or so", "high", "[top")[min(number, 3)],
        "word": lambda number: ("a", "b, c", 'say "x"', "≥ 3", "missing", "ü", "other")[number % 7],
        "place": lambda number: "-".join(str(rng.integers(0, 4 - (step > 0))) for step in range(3)),
        "truth": lambda number: number % 3 == 0,
    }[kind]
    return [make(number) for number in numbers]


def random_release(seed: int) -> tuple[pl.DataFrame, dict[str, Any]]:
    """A table and the keywords of `anonymize`."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(20, 200))
    algorithm = str(rng.choice(["mondrian", "mondrian", "tdr", "tree"]))
    names = rng.choice(KINDS, int(rng.integers(1, 5)), replace=False).tolist()
    values = {name: _values(rng, name, rows) for name in names}
    ends = {
        name: [min(values[name]), max(values[name])]
        for name in ("whole", "real", "day", "moment")
        if name in names and min(values[name]) < max(values[name]) and rng.random() < 0.5
    }
    gaps = rng.choice([0, 0.1])
    frame = pl.DataFrame(
        {name: [None if rng.random() < gaps else value for value in column] for name, column in values.items()}
    ).with_columns(
        target=pl.Series(rng.choice(["x", "y", "z"], rows)), cost=pl.Series(rng.choice([0.5, 2.0, 7.25], rows))
    )
    words: dict[str, Any] = {
        "quasi_identifiers": names,
        "k": int(rng.integers(1, 8)),
        "algorithm": algorithm,
        "targets": ["target"],
        "insensitive": ["cost"],
        "release": ["cost"],
        "domains": ends,
        "taxonomies": {"place": TREE} if "place" in names else {},
        "types": {"stage": "ordinal"} if "stage" in names else {},
        "orders": {"stage": ["low", "mid, or so", "high", "[top"]} if "stage" in names else {},
        "cut_points": str(rng.choice(["simplest", "value"])),
        "missing": (),
        "values": str(rng.choice(["labels", "labels", "bounds", "representative"])),
        "missing_policy": "drop" if algorithm == "tree" else str(rng.choice(["category", "drop"])),
    }
    words["consent"] = words["cut_points"] == "value"
    if algorithm == "tree":
        return frame, words | {"insensitive": [], "release": [], "identifiers": ["cost"]}
    words["splits"] = {
        name: str(rng.choice(["multiway", "binary", "subset"])) for name in names if name in ("place", "word")
    }
    if algorithm == "tdr":
        words |= {"suppression": str(rng.choice(["all", "best_gain"])), "zero_gain": bool(rng.random() < 0.5)}
        words["splits"] = {}
        return frame, words
    criterion = str(rng.choice(["auto", "median", "infogain", "lsd", "selection", "weighted", "clustering", "explore"]))
    words["criterion"] = criterion
    words["candidates"] = "all" if criterion in ("auto", "infogain") and rng.random() < 0.5 else "boundary"
    if criterion == "lsd":
        words |= {"targets": ["cost"], "insensitive": ["target"]}
    if criterion == "weighted":
        words["weights"] = {name: float(rng.choice([0.5, 1, 2])) for name in names}
    if criterion == "selection":
        words["selections"] = [{"each": names[-1]}]
    return frame, words
