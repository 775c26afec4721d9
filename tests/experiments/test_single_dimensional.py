# SPDX-License-Identifier: Apache-2.0
"""Top-down specialization: the tables of TKDE 2007 counted by hand, a slow search beside it, wrong requests."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from real_data import folder_with

from anonfit.errors import Infeasible, RequestError
from anonfit.experiments import single_dimensional
from anonfit.experiments.datasets_adult import ADULT_TAXONOMIES, complete_adult
from anonfit.experiments.single_dimensional import Rule, SingleDimensional
from anonfit.spec import Spec
from anonfit.spec_keywords import spec_of_keywords

GRADES = {"name": "*", "children": [{"name": "8th"}, {"name": "9th"}, {"name": "10th"}]}
SEXES = {"name": "*", "children": [{"name": "M"}, {"name": "F"}]}
TABLE_2 = [
    ("10th", "M", 40, 20, 0),
    ("10th", "M", 30, 0, 4),
    ("9th", "M", 30, 0, 2),
    ("9th", "F", 30, 0, 4),
    ("9th", "F", 40, 0, 6),
    ("8th", "F", 30, 0, 2),
    ("8th", "F", 40, 0, 2),
]
SCHOOLS = {
    "name": "*",
    "children": [
        {
            "name": "Secondary",
            "children": [
                {"name": "JuniorSec", "children": [{"name": "9th"}, {"name": "10th"}]},
                {"name": "SeniorSec", "children": [{"name": "11th"}, {"name": "12th"}]},
            ],
        },
        {
            "name": "University",
            "children": [
                {"name": "Bachelors"},
                {"name": "GradSchool", "children": [{"name": "Masters"}, {"name": "Doctorate"}]},
            ],
        },
    ],
}


def spec(columns: list[str], trees: dict[str, Any], **words: Any) -> Spec:
    asked = {"quasi_identifiers": columns, "targets": ["class"], "k": 2, "taxonomies": trees, "cut_points": "value"}
    return spec_of_keywords(None, {**asked, **words})


def table_2() -> pl.DataFrame:
    rows = [
        (grade, sex, hours, name)
        for grade, sex, hours, yes, no in TABLE_2
        for name, times in (("Y", yes), ("N", no))
        for _ in range(times)
    ]
    return pl.DataFrame(rows, schema=["education", "sex", "hours", "class"], orient="row")


def groups(frame: pl.DataFrame, rule: Rule, k: int, trees: dict[str, Any]) -> dict[tuple[str, ...], tuple[int, int]]:
    """Released combinations of values, with how many of each class they have."""
    columns = frame.columns[:-1]
    recoding = SingleDimensional(rule=rule).recode(frame, spec(columns, trees), k)
    shown = recoding.apply(frame)
    found = Counter(zip(*(shown[name].to_list() for name in columns), shown["class"].to_list(), strict=True))
    combinations = {key[:-1] for key in found}
    return {key: (found[(*key, "Y")], found[(*key, "N")]) for key in combinations}


def test_information_gain_alone_refines_education_of_table_2() -> None:
    found = groups(table_2(), "gain", 4, {"education": GRADES, "sex": SEXES})
    assert found == {("10th", "*", "*"): (20, 4), ("9th", "*", "*"): (0, 12), ("8th", "*", "*"): (0, 4)}


def test_the_score_refines_sex_then_hours_of_table_2() -> None:
    found = groups(table_2(), "score", 4, {"education": GRADES, "sex": SEXES})
    assert found == {
        ("*", "M", "≥ 40"): (20, 0),
        ("*", "M", "< 40"): (0, 6),
        ("*", "F", "≥ 40"): (0, 8),
        ("*", "F", "< 40"): (0, 6),
    }


def test_a_taxonomy_is_descended_level_by_level() -> None:
    counts = {"9th": (0, 3), "10th": (0, 4), "11th": (2, 3), "12th": (3, 1), "Bachelors": (8, 2), "Masters": (7, 0)}
    rows = [(name, label) for name, (y, n) in counts.items() for label in ["Y"] * y + ["N"] * n]
    frame = pl.DataFrame(rows, schema=["education", "class"], orient="row")
    found = groups(frame, "score", 3, {"education": SCHOOLS})
    # JuniorSec is pure, so refining it tells nothing; so is GradSchool.
    assert found == {
        ("JuniorSec",): (0, 7),
        ("11th",): (2, 3),
        ("12th",): (3, 1),
        ("Bachelors",): (8, 2),
        ("GradSchool",): (7, 0),
    }


def test_every_value_of_a_column_is_shown_alike() -> None:
    draw = np.random.default_rng(3)
    frame = people(draw, 300)
    recoding = SingleDimensional().recode(frame, spec(["a", "b", "c"], {"b": GRADES}), 5)
    shown = recoding.apply(frame)
    for name in ("a", "b", "c"):
        pairs = pl.DataFrame({"raw": frame[name], "shown": shown[name].cast(pl.String)}).unique()
        assert pairs["raw"].n_unique() == len(pairs)
    assert shown.group_by("a", "b", "c").len()["len"].min() >= 5


def people(draw: np.random.Generator, rows: int) -> pl.DataFrame:
    frame = pl.DataFrame(
        {
            "a": draw.integers(0, 6, rows),
            "b": draw.choice(["8th", "9th", "10th"], rows),
            "c": draw.integers(0, 4, rows) * 1.5,
        }
    )
    signal = frame["a"].to_numpy() + 2 * (frame["b"] == "9th").to_numpy() + draw.normal(0, 2, rows)
    return frame.with_columns(pl.Series("class", np.where(signal > 3, "Y", "N")))


def entropy(labels: list[str]) -> float:
    counts = Counter(labels).values()
    return -sum(count / len(labels) * math.log2(count / len(labels)) for count in counts)


def slowly(frame: pl.DataFrame, k: int, rule: Rule) -> list[tuple[int, ...]]:
    """Sizes of all combinations, by the plainest search: sets of values, counted anew each time."""
    columns = ["a", "b", "c"]
    rows = frame.rows()
    parts: list[list[frozenset[Any]]] = [[frozenset(frame[name].to_list())] for name in columns]

    def combos(cuts: list[list[frozenset[Any]]]) -> list[int]:
        keys = [
            tuple(next(at for at, part in enumerate(cut) if row[i] in part) for i, cut in enumerate(cuts))
            for row in rows
        ]
        return list(Counter(keys).values())

    def best_children(column: int, part: frozenset[Any]) -> tuple[float, list[frozenset[Any]]] | None:
        inside = [row for row in rows if row[column] in part]
        if column == 1:
            options = [[frozenset([name]) for name in ("8th", "9th", "10th")]] if len(part) == 3 else []
        else:
            values = sorted(part)
            options = [[frozenset(values[:cut]), frozenset(values[cut:])] for cut in range(1, len(values))]
        found = []
        for option in options:
            held = [[row[3] for row in inside if row[column] in piece] for piece in option]
            left = sum(len(labels) / len(inside) * entropy(labels) for labels in held if labels)
            found.append((entropy([row[3] for row in inside]) - left, option))
        if not found:
            return None
        gain, option = max(found, key=lambda one: round(one[0], 12))
        return (gain, option) if gain > 1e-12 else None

    while True:
        before = min(combos(parts))
        best: tuple[float, list[list[frozenset[Any]]]] | None = None
        for column, cut in enumerate(parts):
            for at, part in enumerate(cut):
                offer = best_children(column, part)
                if offer is None:
                    continue
                tried = [list(other) for other in parts]
                tried[column] = [*cut[:at], *cut[at + 1 :], *(piece for piece in offer[1])]
                smallest = min(combos(tried))
                if smallest < k:
                    continue
                score = offer[0] if rule == "gain" else offer[0] / (before - smallest + 1)
                if best is None or score > best[0] + 1e-12:
                    best = score, tried
        if best is None:
            return sorted((size,) for size in combos(parts))
        parts = best[1]


@pytest.mark.parametrize(("seed", "k", "rule"), list(itertools.product(range(6), (2, 8), ("score", "gain"))))
def test_it_finds_what_a_slow_search_finds(seed: int, k: int, rule: Rule) -> None:
    frame = people(np.random.default_rng(seed), 120)
    recoding = SingleDimensional(rule=rule).recode(frame, spec(["a", "b", "c"], {"b": GRADES}), k)
    shown = recoding.apply(frame)
    sizes = sorted((size,) for size in shown.group_by("a", "b", "c").len()["len"].to_list())
    assert sizes == slowly(frame, k, rule)


def test_unseen_rows_are_recoded_and_missing_values_have_their_own_part() -> None:
    frame = pl.DataFrame({"a": [None, None, None, 1, 1, 1, 5, 5, 5], "class": [*"YYY", *"NNN", *"YYY"]})
    recoding = SingleDimensional().recode(frame, spec(["a"], {}), 3)
    shown = recoding.apply(pl.DataFrame({"a": [None, 0, 1, 4, 5, 99]}))
    assert shown["a"].to_list() == ["missing", "< 5", "< 5", "< 5", "≥ 5", "≥ 5"]


@pytest.mark.parametrize(
    ("k", "groups_found", "smallest", "refined"),
    [
        (20, 24, 29, {"capital-gain", "marital-status", "education-num", "hours-per-week"}),
        (60, 12, 71, {"capital-gain", "marital-status", "education-num"}),
        (500, 12, 691, {"marital-status", "education-num", "hours-per-week"}),
    ],
)
def test_the_reference_runs_on_adult(k: int, groups_found: int, smallest: int, refined: set[str]) -> None:
    folder = folder_with("uci/adult.data", "uci/adult.test")
    columns = [*("capital-gain", "age", "marital-status", "education-num", "relationship", "hours-per-week", "sex")]
    frame = complete_adult(folder).select(*columns, "class")
    trees = {name: ADULT_TAXONOMIES[name] for name in columns if name in ADULT_TAXONOMIES}
    shown = SingleDimensional().recode(frame, spec(columns, trees), k).apply(frame)
    sizes = shown.group_by(columns).len()["len"]
    assert (len(sizes), sizes.min()) == (groups_found, smallest)
    assert {name for name in columns if shown[name].n_unique() > 1} == refined
    assert set(shown["education-num"].unique()) == {"< 13", "≥ 13"}


def test_requests_that_cannot_be_met_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = people(np.random.default_rng(0), 50)
    asked = spec(["a", "b", "c"], {"b": GRADES})
    with pytest.raises(Infeasible, match="50 rows, fewer than k = 51"):
        SingleDimensional().recode(frame, asked, 51)
    blind = spec(["a", "b", "c"], {"b": GRADES}, targets=[], insensitive=["class"])
    with pytest.raises(RequestError, match="needs one target, but the spec has 0"):
        SingleDimensional().recode(frame, blind, 2)
    monkeypatch.setattr(single_dimensional, "MOST_REGIONS", 1)
    with pytest.raises(RequestError, match="ask for a larger k"):
        SingleDimensional().recode(frame, asked, 2)
