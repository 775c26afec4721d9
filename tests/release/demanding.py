# SPDX-License-Identifier: Apache-2.0
"""A table with sensitive columns of every kind, and demands on them that groups of k persons alone do not meet."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl

import anonfit as af
from anonfit.release.draft import Draft
from anonfit.spec.model import DiversitySpec
from waivers import waived

ROWS, K = 200, 4
GRADES = ["low", "mid", "high", "top"]
ILLS = {
    "name": "*",
    "children": [
        {"name": "lung", "children": [{"name": "flu"}, {"name": "cold"}]},
        {"name": "skin", "children": [{"name": "rash"}, {"name": "burn"}]},
    ],
}


def people() -> pl.DataFrame:
    """Sensitive values follow the age, so that groups of k persons have few of them."""
    rng = np.random.default_rng(11)
    age = rng.integers(18, 90, ROWS)
    return pl.DataFrame(
        {
            "age": age,
            "sex": [["f", "m"][number] for number in rng.integers(0, 2, ROWS)],
            "illness": [["flu", "cold", "rash", "burn"][number // 23] for number in age],
            "grade": [GRADES[number // 23] for number in age],
            "salary": 1000 + 100 * age,
            "told": [date(2024, 1, 1) + timedelta(days=int(number)) for number in age // 10],
            "outcome": np.where(age > 50, 1, 0),
            "cost": age * 10.0,
        }
    )


WORDS: dict[str, Any] = {
    "quasi_identifiers": ["age", "sex"],
    "k": K,
    "sensitive": waived("illness", "grade", "salary", "told"),
    "targets": ["outcome"],
    "insensitive": ["cost"],
    "criterion": "median",
}

UNMET: list[tuple[str, str, dict[str, Any]]] = [
    ("illness", "distinct-l", {"l": 2}),
    ("illness", "entropy-l", {"l": 1.5}),
    ("illness", "recursive-cl", {"c": 2.0, "l": 2}),
    ("illness", "t-closeness", {"t": 0.1, "distance": "equal"}),
    ("illness", "t-closeness", {"t": 0.1, "distance": "hierarchical"}),
    ("grade", "t-closeness", {"t": 0.1, "distance": "ordered"}),
    ("salary", "t-closeness", {"t": 0.1}),
    ("told", "t-closeness", {"t": 0.1}),
    ("illness", "alpha-k", {"alpha": 0.5}),
    ("illness", "beta-likeness", {"beta": 0.5}),
    ("illness", "beta-likeness", {"beta": 0.5, "enhanced": True}),
    ("illness", "delta-disclosure", {"delta": 0.5}),
    ("salary", "squared-error", {"error": 5e6}),
    ("salary", "variance", {"variance": 1e6}),
]
"""Demands that the whole table meets, and groups of k persons miss."""


def declared(column: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """What a distance needs to be declared of its column."""
    if parameters.get("distance") == "hierarchical":
        return {"taxonomies": {column: ILLS}}
    if column == "grade":
        return {"types": {column: "ordinal"}, "orders": {column: GRADES}}
    return {}


def missing_demand(column: str, model: str, parameters: dict[str, Any]) -> Draft:
    """A table made by k alone, whose spec asks for more: as if the algorithm had forgotten the demand."""
    words = WORDS | {"sensitive": {**WORDS["sensitive"], column: loose(column, model, parameters)}}
    made = af.anonymize(people(), **words, **declared(column, parameters))._draft
    asked = DiversitySpec(column, model, parameters)
    return replace(made, spec=replace(made.spec, privacy=replace(made.spec.privacy, diversity=(asked,))))


def loose(column: str, model: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """The same demand, so loose that it changes nothing: a taxonomy or order is refused where nothing needs it."""
    return {"model": model, **parameters, "t": 0.999} if model == "t-closeness" else waived(column)[column]
