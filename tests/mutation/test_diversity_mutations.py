# SPDX-License-Identifier: Apache-2.0
"""Faults of diversity planted in real releases: each model is promised at what the release just reaches, which is
accepted; then one value is changed so that one group just misses it, which is found by that model's finding."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from planted import COUNTRIES, KINDS, Planted, Shape, missed, planted

import anonfit as af
from waivers import waived

MOODS = ["calm", "even", "tense"]
MOOD_TREE = {"name": "*", "children": [
    {"name": "fine", "children": [{"name": "calm"}, {"name": "even"}]}, {"name": "tense"},
]}  # fmt: skip


@cache
def clients(seed: int = 3, rows: int = 600) -> pl.DataFrame:
    """Persons with a few values each in raw columns, so that large groups hold all of them."""
    rng = random.Random(seed)
    return pl.DataFrame(
        [
            {
                "whose": f"c{number // 2:03}",
                "age": rng.randint(0, 95),
                "country": rng.choice(["FR", "DE", "JP", "IN", "KE"]),
                "mood": rng.choices(MOODS, [3, 2, 1])[0],
                "debt": rng.choice([0.0, 0.0, 12.5, 80.0, 300.25]),
                "paid": rng.random() < 0.4,
            }
            for number in range(rows)
        ]
    )


WORDS: dict[str, Any] = {
    "quasi_identifiers": ["age", "country"],
    "sensitive": waived("mood"),
    "targets": ["paid"],
    "insensitive": ["debt"],
    "taxonomies": {"country": COUNTRIES},
    "k": 30,
}
SHAPES = {kind: Shape(clients, WORDS | {"identifiers": ["whose"]}, kind) for kind in KINDS}
SHAPES["bounds"] = Shape(clients, WORDS | {"identifiers": ["whose"], "values": "bounds"})
SHAPES["entities"] = Shape(clients, WORDS | {"entity": "whose"})
PROMISES: dict[str, dict[str, Any]] = {
    "distinct": {"column": "mood", "model": "distinct-l", "l": 3},
    "entropy": {"column": "mood", "model": "entropy-l"},
    "recursive": {"column": "mood", "model": "recursive-cl", "l": 2},
    "equal": {"column": "mood", "model": "t-closeness", "distance": "equal"},
    "words": {"column": "mood", "model": "t-closeness", "distance": "ordered", "order": MOODS},
    "numbers": {"column": "debt", "model": "t-closeness", "distance": "ordered"},
    "taxonomy": {"column": "mood", "model": "t-closeness", "distance": "hierarchical", "taxonomy": MOOD_TREE},
    "alpha": {"column": "mood", "model": "alpha-k"},
    "beta": {"column": "mood", "model": "beta-likeness"},
    "delta": {"column": "mood", "model": "delta-disclosure"},
    "squares": {"column": "debt", "model": "squared-error"},
    "variance": {"column": "debt", "model": "variance"},
}
ASKED = {
    "entropy-l": "l", "recursive-cl": "c", "t-closeness": "t", "alpha-k": "alpha", "beta-likeness": "beta",
    "delta-disclosure": "delta", "squared-error": "error", "variance": "variance",
}  # fmt: skip
LOOSEST = {
    "l": 1.001, "c": 1e9, "t": 0.999, "alpha": 0.999, "beta": 1e9, "delta": 1e9, "error": 1e-3, "variance": 1e-3,
}  # fmt: skip


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    root = tmp_path_factory.mktemp("releases")

    def path(name: str) -> Path:
        if not (root / name).exists():
            SHAPES[name].release().save(root / name, format=SHAPES[name].kind)
        return root / name

    return path


def measured(p: Planted, promise: dict[str, Any]) -> Any:
    """What an audit of the folder finds for a promise."""
    p.spec["privacy"]["diversity"] = [promise]
    found = af.audit_release(p.write(), source=p.shape.source)
    return next(one for one in found.diversity if (one.column, one.model) == (promise["column"], promise["model"]))


def just_kept(p: Planted, promise: dict[str, Any]) -> dict[str, Any]:
    """The promise at what the release reaches."""
    key = ASKED.get(promise["model"])
    if key is None:
        return promise
    figure = measured(p, {**promise, key: LOOSEST[key]}).found.value
    return {**promise, key: figure + 1e-12 if key == "c" else figure}  # less than c is asked


def worsened(p: Planted, promise: dict[str, Any]) -> None:
    """Change one value of one group: among all such changes, the first that the model must not accept."""
    column, groups = promise["column"], p.data.select(p.keys).rows()
    values = p.data[column].to_list()
    rows: dict[Any, list[int]] = {}
    for row, group in enumerate(groups):
        rows.setdefault(group, []).append(row)
    if promise["model"] == "distinct-l":  # all of the rarest value of a group must go
        group = min(rows.values(), key=lambda some: min(Counter(values[row] for row in some).values()))
        rarest = min(Counter(values[row] for row in group).items(), key=lambda one: one[1])[0]
        p.edit([row for row in group if values[row] == rarest], **{column: "calm" if rarest != "calm" else "even"})
        return
    before = p.data
    for group in sorted(rows.values(), key=len):
        for row in {values[row]: row for row in group}.values():
            for value in sorted(set(values) - {values[row]}):
                p.edit(row, **{column: value})
                if not measured(p, promise).met:
                    return
                p.data = before
    raise AssertionError("no change of one value breaks the promise")


CASES = [(name, shape) for name in PROMISES for shape in ("parquet", "csv")]
CASES += [("entropy", "arrow"), ("variance", "bounds"), ("alpha", "bounds")]


@pytest.mark.sampled(9)
@pytest.mark.parametrize(("name", "shape"), CASES)
def test_one_value_that_breaks_a_promise_is_found(
    releases: Callable[[str], Path], tmp_path: Path, name: str, shape: str
) -> None:
    p = planted(releases(shape), tmp_path / "release", SHAPES[shape])
    promise = just_kept(p, PROMISES[name])
    p.spec["privacy"]["diversity"] = [promise]
    assert missed(af.audit_release(p.write(), source=p.shape.source)) == missed(af.audit_release(p.path)) == set()
    worsened(p, promise)
    folder = p.write()
    assert missed(af.audit_release(folder)) == {promise["model"]}
    assert missed(af.audit_release(folder, source=p.shape.source)) >= {promise["model"], "released rows"}


@pytest.mark.parametrize("shape", ["parquet", "csv"])
def test_one_person_who_makes_a_target_too_certain_is_found(
    releases: Callable[[str], Path], tmp_path: Path, shape: str
) -> None:
    p = planted(releases(shape), tmp_path / "release", SHAPES[shape])
    counts = p.data.group_by(*p.keys, "paid").len().with_columns(share=pl.col("len") / pl.col("len").sum().over(p.keys))
    worst = counts.sort("share").row(-1, named=True)
    p.spec["privacy"]["max_confidence"] = worst["share"]
    assert missed(af.audit_release(p.write())) == set()
    group = {name: worst[name] for name in p.keys}
    p.edit(p.rows(**group, paid=not worst["paid"])[0], paid=worst["paid"])
    assert missed(af.audit_release(p.write())) == {"max_confidence"}
    assert missed(af.audit_release(p.path, source=p.shape.source)) >= {"max_confidence", "released rows"}


def test_what_one_person_has_twice_counts_once(releases: Callable[[str], Path], tmp_path: Path) -> None:
    """The file alone cannot tell; with the source, persons who become one break the promise."""
    p = planted(releases("entities"), tmp_path / "release", SHAPES["entities"])
    promise = just_kept(p, PROMISES["alpha"])
    p.spec["privacy"]["diversity"] = [promise]
    folder = p.write()
    assert missed(af.audit_release(folder, source=clients())) == set()
    alone = af.audit_release(folder)
    assert missed(alone) == set()
    assert {one.name for one in alone.unchecked} == {"entities", "k", "alpha-k"}
    # All who are not calm become one person; each group then has a larger share of calm persons.
    other = pl.when(pl.col("mood") != "calm").then(pl.lit("one")).otherwise("whose").alias("whose")
    assert missed(af.audit_release(folder, source=clients().with_columns(other))) >= {"alpha-k"}


def test_nothing_is_said_of_records(releases: Callable[[str], Path], tmp_path: Path) -> None:
    p = planted(releases("parquet"), tmp_path / "release", SHAPES["parquet"])
    p.edit(0, mood="unheard-of")
    for name in ("words", "taxonomy"):
        p.spec["privacy"]["diversity"] = [{**PROMISES[name], "t": 0.5}]
        with pytest.raises(af.errors.DataError) as error:
            af.audit_release(p.write())
        assert "unheard" not in str(error.value)
