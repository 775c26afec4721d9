# SPDX-License-Identifier: Apache-2.0
"""A written folder that just keeps a promise of diversity is accepted; two values exchanged between its groups, so that
one group just breaks it, are found by that promise's finding and by no other."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from audit_folders import Folder, raw_rows, released_rows
from diversity_reference import BOUND, SMALLEST_IS_WORST, is_met, worst_figure

from anonfit.auditing.api import audit_release
from anonfit.auditing.result import Audit

KEYS = ["age", "country", "rank"]
WORDS = ["never", "seldom", "often", "always"]
TREE = {"name": "*", "children": [
    {"name": "rarely", "children": [{"name": "never"}, {"name": "seldom"}]},
    {"name": "mostly", "children": [{"name": "often"}, {"name": "always"}]},
]}  # fmt: skip
PROMISES: dict[str, dict[str, Any]] = {
    "distinct": {"column": "diagnosis", "model": "distinct-l"},
    "entropy": {"column": "diagnosis", "model": "entropy-l"},
    "recursive": {"column": "diagnosis", "model": "recursive-cl", "l": 2},
    "equal": {"column": "diagnosis", "model": "t-closeness", "distance": "equal"},
    "words": {"column": "diagnosis", "model": "t-closeness", "distance": "ordered", "order": WORDS},
    "taxonomy": {"column": "diagnosis", "model": "t-closeness", "distance": "hierarchical", "taxonomy": TREE},
    "numbers": {"column": "note", "model": "t-closeness", "distance": "ordered"},
    "alpha": {"column": "diagnosis", "model": "alpha-k"},
    "beta": {"column": "diagnosis", "model": "beta-likeness"},
    "enhanced": {"column": "diagnosis", "model": "beta-likeness", "enhanced": True},
    "delta": {"column": "diagnosis", "model": "delta-disclosure"},
    "squares": {"column": "note", "model": "squared-error"},
    "variance": {"column": "note", "model": "variance"},
}


def missed(found: Audit) -> set[str]:
    """What was missed, but for the report: none is true of a promise that is broken."""
    return {one.name for one in found.findings if one.met is False and not one.name.startswith("report")}


def asked(found: Audit, promise: Mapping[str, Any]) -> Any:
    """What was measured for a promise."""
    return next(one for one in found.diversity if (one.column, one.model) == (promise["column"], promise["model"]))


def rank(promise: Mapping[str, Any]) -> Any:
    return WORDS.index if "order" in promise else lambda value: value


def figure(data: pl.DataFrame, promise: Mapping[str, Any]) -> float:
    return worst_figure(data.to_dicts(), KEYS, promise["column"], promise, rank=rank(promise))


def sound_folder(path: Path, promise: Mapping[str, Any], seed: int, kind: str) -> tuple[Folder, dict[str, Any]]:
    """A folder whose data just keeps a promise, and the promise with what it asks; every group has every word."""
    rng = random.Random(f"{seed} {promise}")
    while True:
        raw = raw_rows(seed)
        words = [rng.choice(WORDS[: rng.choice([2, 4])]) for _ in range(len(raw))]
        notes = [rng.choice([1, 2, 3, 40]) for _ in range(len(raw))]
        raw = raw.with_columns(diagnosis=pl.Series(words), note=pl.Series(notes))
        found = figure(released_rows(raw), promise)
        if 0 < found < float("inf"):
            break
    # recursive diversity asks for less than c, so c is a little more; texts of numbers keep all their digits
    bound = found * (1 + 1e-12) if promise["model"] == "recursive-cl" else found
    return Folder(path, raw=raw, kind=kind), {**promise, BOUND[promise["model"]]: bound}


def exchanged(data: pl.DataFrame, column: str, one: int, other: int) -> pl.DataFrame:
    values = data[column].to_list()
    values[one], values[other] = values[other], values[one]
    return data.with_columns(pl.Series(column, values, dtype=data.schema[column]))


def exchanges(data: pl.DataFrame, column: str, seed: int) -> list[pl.DataFrame]:
    """The data with two values exchanged between groups, in many ways; the whole table's values stay the same."""
    rng = random.Random(seed)
    groups: dict[Any, list[int]] = {}
    for row, group in enumerate(data.select(KEYS).rows()):
        groups.setdefault(group, []).append(row)
    found = []
    while len(found) < 60:
        one, other = (rng.choice(rows) for rows in rng.sample(list(groups.values()), 2))
        if data[column][one] != data[column][other]:
            found.append(exchanged(data, column, one, other))
    return found


@pytest.mark.sampled(11)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("name", PROMISES)
@pytest.mark.parametrize("seed", range(2))
def test_a_promise_that_is_just_broken_is_found(tmp_path: Path, name: str, seed: int, kind: str) -> None:
    folder, promise = sound_folder(tmp_path / "release", PROMISES[name], seed, kind)
    folder.spec["privacy"]["diversity"] = [promise]
    assert missed(audit_release(folder.write())) == missed(audit_release(folder.path, source=folder.raw)) == set()
    bound = promise[BOUND[promise["model"]]]
    broken = [(figure(data, promise), data) for data in exchanges(folder.data, promise["column"], seed)]
    broken = [(found, data) for found, data in broken if not is_met(found, promise)]
    found, folder.data = min(broken, key=lambda one: abs(one[0] - bound))
    alone, with_source = audit_release(folder.write()), audit_release(folder.path, source=folder.raw)
    assert missed(alone) == {promise["model"]}
    assert missed(with_source) >= {promise["model"], "released rows"}
    assert asked(alone, promise).found.value == pytest.approx(found)


@pytest.mark.sampled(13)
@pytest.mark.parametrize("name", PROMISES)
def test_verdicts_are_right_whatever_is_exchanged(tmp_path: Path, name: str) -> None:
    folder, promise = sound_folder(tmp_path / "release", PROMISES[name], 5, "parquet")
    folder.spec["privacy"]["diversity"] = [promise]
    verdicts = set()
    for data in exchanges(folder.data, promise["column"], 5):
        folder.data = data
        kept = is_met(figure(data, promise), promise)
        verdicts.add(kept)
        assert missed(audit_release(folder.write())) == (set() if kept else {promise["model"]})
    assert verdicts == {True, False}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PROMISES)
def test_a_promise_of_a_little_more_is_not_kept(tmp_path: Path, name: str) -> None:
    folder, promise = sound_folder(tmp_path / "release", PROMISES[name], 9, "parquet")
    key = BOUND[promise["model"]]
    bound = promise[key]
    more = 1 if promise["model"] in SMALLEST_IS_WORST else -1
    for step, kept in ((1e-6, False), (1e-11, promise["model"] not in ("distinct-l", "recursive-cl"))):
        folder.spec["privacy"]["diversity"] = [{**promise, key: bound * (1 + more * step)}]
        assert missed(audit_release(folder.write())) == (set() if kept else {promise["model"]})


def test_several_promises_on_several_columns(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    folder.spec["columns"]["note"]["role"] = "sensitive"
    folder.spec["privacy"]["diversity"] = [
        {"column": "diagnosis", "model": "distinct-l", "l": 2},
        {"column": "note", "model": "variance", "variance": 100},
        {"column": "note", "model": "distinct-l", "l": 2},
        {"column": "diagnosis", "model": "alpha-k", "alpha": 0.01},
    ]
    found = audit_release(folder.write())
    assert [(one.name, one.where, one.met) for one in found.findings if one.where in ("note", "diagnosis")] == [
        ("distinct-l", "diagnosis", True),
        ("alpha-k", "diagnosis", False),
        ("variance", "note", False),
        ("distinct-l", "note", True),
    ]


# --- persons that only the source knows ---------------------------------------------------------------------------


def entity_folder(path: Path) -> Folder:
    """A release in which the persons of the smallest group, five rows, are told apart by the source only."""
    raw = raw_rows().with_columns(person=pl.col("patient"))
    folder = Folder(path, raw=raw)
    folder.spec["columns"]["person"] = {"role": "entity"}
    return folder


def test_entities_are_needed_for_all_but_different_values(tmp_path: Path) -> None:
    folder = entity_folder(tmp_path / "release")
    folder.spec["privacy"]["diversity"] = [
        {"column": "diagnosis", "model": "distinct-l", "l": 2},
        {"column": "diagnosis", "model": "entropy-l", "l": 1.1},
        {"column": "note", "model": "variance", "variance": 0.01},
    ]
    alone = audit_release(folder.write(), max_risk=0.5)
    assert {one.name: one.met for one in alone.findings if one.met is not True} == dict.fromkeys(
        ["entities", "k", "entropy-l", "variance", "prosecutor risk", "report texts", "report page"]
    )
    assert {one.sentence for one in alone.unchecked if not one.name.startswith(("entities", "report"))} == {
        "Not checked: persons are told apart by their entities, which are only in the source."
    }
    with_source = audit_release(folder.path, source=folder.raw, max_risk=0.5)
    assert with_source.passed
    assert {one.name for one in with_source.unchecked} == {"report texts", "report page"}


def test_too_few_rows_are_too_few_persons(tmp_path: Path) -> None:
    folder = entity_folder(tmp_path / "release")
    folder.spec["privacy"]["k"] = 6
    assert missed(audit_release(folder.write())) == {"k"}
    folder.spec["privacy"]["k"] = 5
    assert missed(audit_release(folder.write(), max_risk=0.1)) == {"prosecutor risk"}
    folder.spec["privacy"]["quasi_identifiers"] = [
        {"columns": ["age", "country", "rank"], "k": 6},
        {"columns": ["age"], "k": 5},
    ]
    verdicts = [(one.where, one.met) for one in audit_release(folder.write()).findings if one.name == "k"]
    assert verdicts == [("age, country, rank", False), ("age", None)]


def test_a_person_of_the_source_has_a_value_once(tmp_path: Path) -> None:
    folder = entity_folder(tmp_path / "release")
    smallest = (pl.col("age") >= 60) & (pl.col("rank") == "high")
    raw = folder.raw.with_columns(diagnosis=pl.when(smallest).then(pl.lit("a")).otherwise("diagnosis"))
    raw = raw.with_columns(person=pl.when(smallest).then(pl.lit("one")).otherwise("person"))
    folder.data = released_rows(raw)
    promise = {"column": "note", "model": "squared-error", "error": 0.1}
    folder.spec["privacy"] = {"k": 1, "diversity": [promise]}
    found = audit_release(folder.write(), source=raw)
    notes = sorted(set(raw.filter(smallest)["note"]))
    mean = sum(notes) / len(notes)
    measured = asked(found, promise).found
    assert (found.k, measured.persons) == (1, 1)
    assert measured.value == pytest.approx(sum((note - mean) ** 2 for note in notes))


def test_what_the_spec_declares_of_a_column_is_known_to_its_promises(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release", kind="csv")
    promise = {"column": "note", "model": "t-closeness", "t": 0.99}
    folder.spec["privacy"]["diversity"] = [promise]
    assert asked(audit_release(folder.write()), promise).settings == {"distance": "ordered"}
    folder.spec["columns"]["note"]["type"] = "nominal"
    assert asked(audit_release(folder.write()), promise).settings == {"distance": "equal"}
    folder.spec["privacy"]["diversity"] = [{**promise, "type": "continuous"}]
    assert asked(audit_release(folder.write()), promise).settings == {"distance": "ordered"}
