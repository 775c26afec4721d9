# SPDX-License-Identifier: Apache-2.0
"""Every diversity model equals its definition, word by word, on thousands of random tables of all kinds of columns."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from audit_reference import groups_of, plain
from diversity_reference import (
    BOUND,
    counts_of,
    hierarchical_distance,
    is_met,
    ordered_distance,
    taxonomy_ground,
    transport,
    worst_figure,
)

from anonfit.auditing.api import audit

ORDER = ["low", "mid", "high", "top"]
TREE = {"name": "*", "children": [
    {"name": "stomach", "children": [{"name": "low"}, {"name": "mid"}]},
    {"name": "lung", "children": [{"name": "deep", "children": [{"name": "high"}, {"name": "a"}]}, {"name": "top"}]},
    {"name": "b"},
]}  # fmt: skip
POOLS: dict[str, list[Any]] = {
    "word": ["low", "mid", "high", "top", "a", "b", None],
    "step": ["low", "mid", "high", "top", None],
    "int": [0, 1, 2, -5, 1000, None],
    "wide": [0, 2**62, -(2**62) + 1, 7, None],
    "long": [2**60, 2**60 + 1, 2**60 + 5, None],  # floating point numbers do not tell these apart
    "float": [0.0, 1.5, -3.25, None, 1e6, 1e6 + 1, 0.1],
    "bool": [True, False, None],
    "day": [datetime.date(2020, 1, 1), datetime.date(1950, 3, 1), datetime.date(2020, 1, 2), None],
}
TYPES = {"word": pl.String, "step": pl.String, "bool": pl.Boolean, "day": pl.Date, "float": pl.Float64}
NUMBERS = ("int", "long", "float")


def random_table(rng: random.Random, kind: str) -> list[dict[str, Any]]:
    pool = rng.sample(POOLS[kind], rng.randint(1, len(POOLS[kind])))
    weights = [rng.choice([1, 1, 5, 30]) for _ in pool]
    return [
        {
            "q": rng.choice("abcd"[: rng.choice([1, 2, 4])]),
            "s": rng.choices(pool, weights)[0],
            "who": rng.choice(["u", "v", "w", "x", "y", None]),
            "n": rng.randint(1, 4),
        }
        for _ in range(rng.choice([1, 2, 5, 20, 80]))
    ]


def random_demand(rng: random.Random, kind: str) -> dict[str, Any]:
    models = [
        {"model": "distinct-l", "l": rng.randint(2, 4)},
        {"model": "entropy-l", "l": rng.choice([1.1, 1.5, 2, 3.2])},
        {"model": "recursive-cl", "c": rng.choice([0.5, 1, 2, 3.5]), "l": rng.randint(2, 4)},
        {"model": "t-closeness", "t": rng.choice([0.05, 0.2, 0.5]), "distance": "equal"},
        {"model": "alpha-k", "alpha": rng.choice([0.3, 0.5, 0.8, 0.99])},
        {"model": "beta-likeness", "beta": rng.choice([0.2, 1, 4])},
        {"model": "beta-likeness", "beta": rng.choice([0.2, 1, 4]), "enhanced": True},
        {"model": "delta-disclosure", "delta": rng.choice([0.2, 1, 3])},
    ]
    if kind in ("int", "float", "day", "bool", "wide", "long"):
        models.append({"model": "t-closeness", "t": rng.choice([0.05, 0.2, 0.5]), "distance": "ordered"})
    if kind == "step":
        models.append({"model": "t-closeness", "t": rng.choice([0.05, 0.2]), "distance": "ordered", "order": ORDER})
    if kind in ("step", "word"):
        models.append({"model": "t-closeness", "t": 0.2, "distance": "hierarchical", "taxonomy": TREE})
    if kind in NUMBERS:
        models.append({"model": "squared-error", "error": rng.choice([0.01, 1, 50, 1e9])})
        models.append({"model": "variance", "variance": rng.choice([0.01, 1, 50, 1e9])})
    return rng.choice(models)


def rank_of(kind: str) -> Any:
    return ORDER.index if kind == "step" else lambda value: value


@pytest.mark.sampled(23)
@pytest.mark.parametrize("kind", POOLS)
@pytest.mark.parametrize("block", range(5))
def test_models_equal_their_definitions_on_random_tables(block: int, kind: str) -> None:
    rng = random.Random(f"{block} {kind}")
    for _ in range(100):
        rows = random_table(rng, kind)
        frame = pl.DataFrame(rows, schema_overrides={"s": TYPES.get(kind, pl.Int64)})
        whom: dict[str, Any] = rng.choice([{}, {"entity": "who"}, {"count": "n"}])
        asked = random_demand(rng, kind)
        wanted = worst_figure(rows, ["q"], "s", asked, rank=rank_of(kind), **whom)
        found = audit(frame, quasi_identifiers=["q"], sensitive={"s": asked}, **whom)
        check(found.diversity[0], asked, wanted)
        assert [(one.name, one.where, one.met) for one in found.findings] == [(asked["model"], "s", found.passed)]


def check(measured: Any, asked: Mapping[str, Any], wanted: float) -> None:
    """The figure is the reference's; so is the verdict, but where both differ by less than what they can tell."""
    assert measured.found.value == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    assert measured.asked == asked[BOUND[asked["model"]]]
    bound = asked[BOUND[asked["model"]]]
    if math.isinf(wanted) or abs(wanted - bound) > 1e-7 * max(1.0, bound):
        assert measured.met is is_met(wanted, asked)
    else:
        assert measured.met is (asked["model"] != "recursive-cl")  # what is just reached is met, unless it must be less


@pytest.mark.parametrize("kind", [kind for kind in POOLS if kind != "wide"])
def test_a_text_file_is_read_as_what_it_holds(kind: str, tmp_path: Path) -> None:
    rng = random.Random(kind)
    for number in range(25):
        rows = random_table(rng, kind)
        frame = pl.DataFrame(rows, schema_overrides={"s": TYPES.get(kind, pl.Int64)})
        asked = random_demand(rng, kind)
        if kind == "bool" and asked.get("distance") == "ordered":
            asked["order"] = ["false", "true"]
        frame.write_csv(tmp_path / f"{number}.csv")
        found = audit(tmp_path / f"{number}.csv", quasi_identifiers=["q"], diversity=[{**asked, "column": "s"}])
        check(found.diversity[0], asked, worst_figure(rows, ["q"], "s", asked, rank=rank_of(kind)))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(60))
def test_distances_are_the_least_work_of_a_transport(seed: int) -> None:
    rng = random.Random(seed)
    rows = random_table(rng, "word") + random_table(rng, "step")
    table = counts_of(rows, "s", entity=None, count=None)
    group = counts_of(next(iter(groups_of(rows, ["q"]).values())), "s", entity=None, count=None)
    wanted = transport(group, table, taxonomy_ground(TREE))
    assert hierarchical_distance(group, table, TREE) == pytest.approx(wanted, abs=1e-7)
    values = sorted(table, key=str)
    steps = {value: place for place, value in enumerate(values)}
    line = transport(group, table, lambda one, other: abs(steps[one] - steps[other]) / max(1, len(values) - 1))
    if None not in table:
        assert ordered_distance(group, table, steps.__getitem__) == pytest.approx(line, abs=1e-7)


def test_a_column_of_many_numbers_in_many_groups() -> None:
    rng = random.Random(3)
    rows = [{"q": rng.randint(0, 60), "s": rng.choice([None, rng.uniform(0, 1), 0.5])} for _ in range(3000)]
    frame = pl.DataFrame(rows)
    for asked in ({"model": "t-closeness", "t": 0.1}, {"model": "variance", "variance": 0.01}):
        wanted = worst_figure(rows, ["q"], "s", {**asked, "distance": "ordered"})
        check(audit(frame, quasi_identifiers=["q"], sensitive={"s": asked}).diversity[0], asked, wanted)


def test_plain_keeps_values_apart() -> None:
    assert [plain(value) for value in (0, 0.0, "", None, "x")] == [0, 0.0, None, None, "x"]
