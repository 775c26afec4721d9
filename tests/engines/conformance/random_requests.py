# SPDX-License-Identifier: Apache-2.0
"""Random tables, and what is asked of them, by the settings of a case."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
from pairwise_cases import Case
from random_selections import random_selections

Random = np.random.Generator

FACTORS = {
    "ordered": ["integer", "float", "decimal", "date", "datetime", "text-number", "wide"],
    "named": ["flat", "declared", "boolean", "ordinal", "number-names", "many", "none"],
    "tree": ["multiway", "binary", "subset", "none"],
    "target": ["blind", "class", "classes", "number", "two", "mixed", "itself", "edges", "equal-width"],
    "criterion": ["auto", "infogain", "lsd", "median", "weighted", "clustering", "selection"],
    "selections": ["none", "ordered", "names", "raw", "each", "mixed"],
    "candidates": ["boundary", "all"],
    "model": ["none", "distinct-l", "entropy-l", "recursive-cl", "t-closeness", "alpha-k", "beta-likeness",
              "delta-disclosure", "variance", "squared-error", "max-confidence", "two"],
    "persons": ["rows", "count", "weight", "both"],
    "missing": ["none", "category", "drop"],
    "rule": ["none", "first", "product", "blend", "naive", "probabilistic", "combined", "learned"],
    "more": ["none", "split-on", "min-gain", "features", "selected-by"],
    "values": ["labels", "bounds", "representative"],
    "cut_points": ["simplest", "value"],
    "hand_over": ["nothing", "some", "all"],
    "source": ["frame", "parquet", "csv", "pattern"],
}  # fmt: skip

BRANCHES = {"west": ["fr", "de", "nl"], "east": ["pl", "cz"], "far": ["us"]}
TREE = {
    "name": "all",
    "children": [
        {"name": branch, "children": [{"name": leaf} for leaf in leaves]} for branch, leaves in BRANCHES.items()
    ],
}


def _gaps(rng: Random, values: list[Any], share: float) -> list[Any]:
    return [None if rng.random() < share else value for value in values]


def _ordered(rng: Random, kind: str, rows: int) -> pl.Series:
    numbers = rng.integers(-20, 40, rows)
    if kind == "wide":
        return pl.Series(rng.integers(0, 3000, rows))
    if kind == "float":
        return pl.Series([float(number) / 4 if number else -0.0 for number in numbers])
    if kind == "decimal":
        return pl.Series([f"{number}.5" for number in numbers]).cast(pl.Decimal(8, 1))
    if kind == "date":
        return pl.Series([date(2020, 1, 1) + timedelta(days=int(number)) for number in numbers])
    if kind == "datetime":
        return pl.Series([datetime(2020, 1, 1) + timedelta(minutes=7 * int(number)) for number in numbers])
    if kind == "text-number":
        return pl.Series([f"{number}.25" for number in numbers])
    return pl.Series(numbers)


def _named(rng: Random, kind: str, rows: int) -> pl.Series:
    if kind == "boolean":
        return pl.Series(rng.random(rows) < 0.4)
    if kind == "ordinal":
        return pl.Series(rng.choice(["low", "middle", "high"], rows))
    if kind == "number-names":
        return pl.Series(rng.choice([1, 2, 3, 10], rows))
    if kind == "many":
        return pl.Series([f"n{number}" for number in rng.integers(0, 90, rows)])
    return pl.Series(rng.choice(["ä", "b", "c'", 'd"', "e,f", "rare"], rows, p=[0.3, 0.3, 0.2, 0.1, 0.09, 0.01]))


def _with_gaps(rng: Random, frame: pl.DataFrame, names: list[str], share: float) -> pl.DataFrame:
    if not share:
        return frame
    return frame.with_columns(
        pl.when(pl.Series(rng.random(len(frame)) < share)).then(None).otherwise(pl.col(name)).alias(name)
        for name in names
    )


def random_request(case: Case, seed: int) -> tuple[pl.DataFrame, dict[str, Any]]:
    """A table and the keywords of `anonymize` that the settings of a case stand for."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(40, 260))
    columns = {"ordered": _ordered(rng, case["ordered"], rows)}
    words: dict[str, Any] = {"k": int(rng.integers(2, 6)), "taxonomies": {}, "types": {}, "orders": {}, "splits": {}}
    words |= {"domains": {}, "release": ["extra"], "insensitive": ["extra", "word"]}
    if case["ordered"] == "text-number":
        words["types"]["ordered"] = "continuous"
    if case["named"] != "none":
        columns["named"] = _named(rng, case["named"], rows)
        if case["named"] == "declared":
            words["domains"]["named"] = ["ä", "b", "c'", 'd"', "e,f", "rare", "never"]
        if case["named"] == "ordinal":
            words["types"]["named"], words["orders"]["named"] = "ordinal", ["low", "middle", "high"]
        if case["named"] == "number-names":
            words["types"]["named"] = "nominal"
    if case["tree"] != "none":
        columns["tree"] = pl.Series(
            rng.choice(["fr", "de", "nl", "pl", "cz", "us"], rows, p=[0.3, 0.3, 0.1, 0.1, 0.1, 0.1])
        )
        words["taxonomies"]["tree"], words["splits"]["tree"] = TREE, case["tree"]
    words["quasi_identifiers"] = list(columns)
    frame = pl.DataFrame([column.alias(name) for name, column in columns.items()])
    share = 0.0 if case["missing"] == "none" else 0.15
    frame = _with_gaps(rng, frame, frame.columns, share)
    if case["missing"] == "drop":
        words["missing_policy"] = "drop"
    frame = frame.with_columns(
        pl.Series("extra", rng.choice([0.0, -0.0, 1.5, 2.25], rows)),
        pl.Series("word", _gaps(rng, rng.choice(["x", "é", "Z"], rows).tolist(), 0.1)),
    )
    frame = _targets(rng, case, frame, words)
    frame = _models(rng, case, frame, words)
    frame = _persons(rng, case, frame, words)
    words["selections"] = random_selections(rng, case, frame.columns)
    return frame, _settings(rng, case, words)


def _targets(rng: Random, case: Case, frame: pl.DataFrame, words: dict[str, Any]) -> pl.DataFrame:
    rows, kind = len(frame), case["target"]
    score = rng.normal(size=rows) + (frame["word"] == "x").fill_null(value=False).to_numpy()
    two = pl.Series("two", np.where(score > 0.4, "yes", "no"))
    several = pl.Series("several", _gaps(rng, rng.choice(["a", "b", "c", "d"], rows).tolist(), 0.1))
    number = pl.Series("number", _gaps(rng, (score * 100).round(2).tolist(), 0.1))
    whole = pl.Series("whole", (score * 10).astype(int))
    chosen: dict[str, tuple[list[pl.Series], list[Any]]] = {
        "blind": ([], []),
        "class": ([two], ["two"]),
        "classes": ([several], ["several"]),
        "number": ([number], ["number"]),
        "two": ([two, several], ["two", {"column": "several", "weight": 2.0}]),
        "mixed": ([two, number], ["two", "number"]),
        "itself": ([two], ["two", "ordered"] if case["ordered"] in ("integer", "float", "wide") else ["two"]),
        "edges": ([whole], [{"column": "whole", "classes": [0, 5]}]),
        "equal-width": ([number], [{"column": "number", "equal_width": 4}]),
    }
    series, targets = chosen[kind]
    words["targets"] = targets
    words["release"] = [*words["release"], *(one.name for one in series)]
    words["release"] = [name for name in words["release"] if name in ("extra", *(one.name for one in series))]
    return frame.with_columns(series)


MODELS: dict[str, dict[str, Any]] = {
    "distinct-l": {"l": 2},
    "entropy-l": {"l": 1.5},
    "recursive-cl": {"c": 4.0, "l": 2},
    "t-closeness": {"t": 0.4},
    "alpha-k": {"alpha": 0.8},
    "beta-likeness": {"beta": 2.0},
    "delta-disclosure": {"delta": 2.0},
    "variance": {"variance": 0.1},
    "squared-error": {"error": 0.5},
}


def _models(rng: Random, case: Case, frame: pl.DataFrame, words: dict[str, Any]) -> pl.DataFrame:
    rows, model = len(frame), case["model"]
    named = pl.Series("illness", _gaps(rng, rng.choice(["u", "v", "w"], rows, p=[0.5, 0.3, 0.2]).tolist(), 0.05))
    number = pl.Series("amount", rng.choice([1.5, 2.0, 7.25, 9.0], rows))
    if model == "max-confidence" and case["target"] not in ("blind", "number", "mixed"):
        words["max_confidence"] = 0.9
    if model in MODELS:
        of_number = model in ("variance", "squared-error") or (model == "t-closeness" and rng.random() < 0.5)
        column = number if of_number else named
        words["sensitive"] = {column.name: {"model": model, **MODELS[model]}}
        return frame.with_columns(column)
    if model == "two":
        words["sensitive"] = {
            "illness": [{"model": "distinct-l", "l": 2}, {"model": "t-closeness", "t": 0.5}],
            "amount": {"model": "entropy-l", "l": 1.3},
        }
        return frame.with_columns(named, number)
    return frame


def _persons(rng: Random, case: Case, frame: pl.DataFrame, words: dict[str, Any]) -> pl.DataFrame:
    if case["persons"] in ("count", "both"):
        words["count"] = "many"
        frame = frame.with_columns(pl.Series("many", rng.integers(1, 4, len(frame))))
    if case["persons"] in ("weight", "both"):
        words["sample_weight"] = "weight"
        frame = frame.with_columns(pl.Series("weight", rng.choice([0.25, 1.0, 3.5], len(frame))))
    return frame


def _leave_out(words: dict[str, Any]) -> None:
    """What the criterion would refuse, since it could change nothing."""
    out = {
        "median": ("weights", "weights_from", "weight_rule", "alpha", "beta", "gamma", "features", "selected_by"),
        "clustering": ("weight_rule", "weights_from", "alpha", "beta", "gamma", "selected_by"),
    }.get(words["criterion"], ("features", "selected_by") if {"weights", "weights_from"} & set(words) else ())
    for name in out:
        words.pop(name, None)


def _settings(rng: Random, case: Case, words: dict[str, Any]) -> dict[str, Any]:
    numeric = case["target"] in ("number", "mixed")
    fits = {"lsd": numeric, "infogain": case["target"] not in ("blind", "number"), "selection": words["selections"]}
    words["criterion"] = case["criterion"] if fits.get(case["criterion"], True) else "auto"
    words |= {name: case[name] for name in ("candidates", "values", "cut_points")} | {
        "consent": case["cut_points"] == "value"
    }
    guided = bool(words["targets"]) and words["criterion"] not in ("median", "weighted", "clustering")
    named = {"features": "features", "selected-by": "selected_by"}.get(case["more"])
    if named is not None:
        words[named] = [words["quasi_identifiers"][-1], "word"]
    if case["rule"] == "learned" and case["target"] not in ("blind", "number"):
        words["weights_from"] = "accuracy"
    elif case["rule"] not in ("none", "learned") or case["criterion"] == "weighted":
        words["weights"] = {name: float(rng.choice([0.5, 1.0, 2.0])) for name in words["quasi_identifiers"]}
        rule = (
            "first"
            if case["rule"] in ("none", "learned") or (case["rule"] == "combined" and not guided)
            else case["rule"]
        )
        words |= {"weight_rule": rule, "seed": int(rng.integers(100))}
        if rule == "combined":
            words |= {"alpha": 0.6, "beta": 0.3, "gamma": 0.1}
    if not guided or words["criterion"] == "lsd":
        words["candidates"] = "boundary"
    _leave_out(words)
    if case["more"] == "split-on":
        words["split_on"] = words["quasi_identifiers"][-2:]
    if case["more"] == "min-gain" and (guided or words["criterion"] == "clustering"):
        words["min_gain"] = 1.0
    return words
