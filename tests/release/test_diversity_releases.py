# SPDX-License-Identifier: Apache-2.0
"""Every diversity model from the request to the released table, recounted there; and what is refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from diversity_counts import groups_of, holds
from patients_table import DIAGNOSES, QUASI_IDENTIFIERS, REGIONS, STAGES, patients

from anonfit.api import Release, anonymize
from anonfit.errors import Infeasible, SpecError
from waivers import waived

K = 5
Demand = dict[str, Any]
# A column, what is asked of it, and what is declared of it.
CASES: dict[str, tuple[str, Demand, dict[str, Any]]] = {
    "distinct": ("diagnosis", {"model": "distinct-l", "l": 3}, {}),
    "entropy": ("diagnosis", {"model": "entropy-l", "l": 3.2}, {}),
    "recursive": ("diagnosis", {"model": "recursive-cl", "c": 1.5, "l": 2}, {}),
    "equal": ("diagnosis", {"model": "t-closeness", "t": 0.25}, {}),
    "ordered numbers": ("cost", {"model": "t-closeness", "t": 0.2, "distance": "ordered"}, {}),
    "ordered words": (
        "stage",
        {"model": "t-closeness", "t": 0.15, "distance": "ordered"},
        {"types": {"stage": "ordinal"}, "orders": {"stage": STAGES}},
    ),
    "hierarchical": (
        "diagnosis",
        {"model": "t-closeness", "t": 0.2, "distance": "hierarchical"},
        {"taxonomies": {"diagnosis": DIAGNOSES}},
    ),
    "alpha": ("diagnosis", {"model": "alpha-k", "alpha": 0.4}, {}),
    "beta": ("diagnosis", {"model": "beta-likeness", "beta": 1.0}, {}),
    "enhanced beta": ("diagnosis", {"model": "beta-likeness", "beta": 1.2, "enhanced": True}, {}),
    "delta": ("diagnosis", {"model": "delta-disclosure", "delta": 1.0}, {}),
    "squared error": ("cost", {"model": "squared-error", "error": 5000.0}, {}),
    "variance": ("cost", {"model": "variance", "variance": 400.0}, {}),
}
RAW = ["diagnosis", "stage", "cost", "outcome"]


def released(frame: pl.DataFrame, sensitive: dict[str, Any], k: int = K, **words: Any) -> Release:
    """A release in which what is not sensitive or a target is insensitive."""
    targets = words.get("targets", ())
    others = [name for name in RAW if name in frame.columns and name not in sensitive and name not in targets]
    taxonomies = {"region": REGIONS, **words.pop("taxonomies", {})}
    return anonymize(
        frame,
        quasi_identifiers=QUASI_IDENTIFIERS,
        k=k,
        sensitive=sensitive,
        insensitive=others,
        taxonomies=taxonomies,
        release=[name for name in RAW if name in frame.columns],
        **words,
    )


def is_held(values: list[Any], asked: Demand, whole: Any) -> bool:
    return holds(values, whole, asked, tree=DIAGNOSES, order=STAGES if set(whole) == set(STAGES) else None)


def check(data: pl.DataFrame, column: str, asked: Demand, count: str | None = None) -> int:
    """Recount a released table; how many groups it has."""
    groups = groups_of(data, QUASI_IDENTIFIERS, column, count)
    whole = [value for group in groups for value in group]
    assert all(len(group) >= K for group in groups)
    assert all(is_held(list(group), asked, whole) for group in groups)
    return len(groups)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_every_group_holds_what_is_asked(case: str, missing: bool) -> None:
    column, asked, declared = CASES[case]
    frame = patients(missing=missing)
    free = released(frame, waived(column))
    found = released(frame, {column: asked}, **declared)
    assert check(found.data, column, asked) > 3
    assert Counter(found.data.select(RAW).rows()) == Counter(frame.select(RAW).rows())
    groups = groups_of(free.data, QUASI_IDENTIFIERS, column)
    assert not all(is_held(list(group), asked, frame[column].to_list()) for group in groups), "asks for nothing"


@pytest.mark.parametrize("case", CASES)
def test_with_targets_and_selections_too(case: str) -> None:
    column, asked, declared = CASES[case]
    frame = patients(seed=3)
    found = released(
        frame,
        {column: asked},
        targets=["outcome"],
        selections=["age >= 65", "region = 's1' and sex = 'f'"],
        weights={"age": 2.0},
        weight_rule="blend",
        **declared,
    )
    assert check(found.data, column, asked) > 2


@pytest.mark.parametrize("case", CASES)
def test_a_row_that_stands_for_several_persons_counts_for_all(case: str) -> None:
    column, asked, declared = CASES[case]
    many = pl.Series("many", np.random.default_rng(5).integers(1, 4, 300))
    found = released(patients().with_columns(many), {column: asked}, count="many", **declared)
    assert check(found.data, column, asked, count="many") > 2


@pytest.mark.parametrize("case", CASES)
def test_a_person_counts_once_for_a_value_of_a_group(case: str) -> None:
    """Persons are not released: their rows are found again by the recoding."""
    column, asked, declared = CASES[case]
    who = pl.Series("who", np.random.default_rng(6).integers(0, 110, 300))
    frame = patients(seed=2).with_columns(who)
    found = released(frame, {column: asked}, k=4, entity="who", **declared)
    assert "who" not in found.data.columns
    labels = found.recoding.apply(frame)
    shown = [*QUASI_IDENTIFIERS, *RAW]
    assert Counter(labels.select(shown).rows()) == Counter(found.data.select(shown).rows())
    groups: dict[Any, set[tuple[int, Any]]] = {}
    for row in labels.rows(named=True):
        groups.setdefault(tuple(row[name] for name in QUASI_IDENTIFIERS), set()).add((row["who"], row[column]))
    whole = [value for _, value in set(frame.select("who", column).rows())]
    assert len(groups) > 2
    for pairs in groups.values():
        assert len({person for person, _ in pairs}) >= 4
        assert is_held([value for _, value in pairs], asked, whole)


def test_several_columns_and_several_models_of_one() -> None:
    demands: dict[str, Any] = {
        "diagnosis": [{"model": "distinct-l", "l": 3}, {"model": "alpha-k", "alpha": 0.5}],
        "cost": {"model": "variance", "variance": 300.0},
        **waived("stage"),
    }
    found = released(patients(), demands)
    for asked in demands["diagnosis"]:
        check(found.data, "diagnosis", asked)
    assert check(found.data, "cost", demands["cost"]) > 3
    alone = released(patients(), {"cost": demands["cost"]})
    assert len(groups_of(alone.data, QUASI_IDENTIFIERS, "cost")) > len(groups_of(found.data, QUASI_IDENTIFIERS, "cost"))


def test_a_demand_may_be_dropped_with_the_rows_of_a_policy() -> None:
    """Models compare with the rows that are released, not with those that were read."""
    frame = patients(missing=True)
    asked = {"model": "t-closeness", "t": 0.2}
    found = released(frame, {"diagnosis": asked}, missing_policy="drop")
    assert len(found.data) == len(frame.drop_nulls(QUASI_IDENTIFIERS)) < len(frame)
    check(found.data, "diagnosis", asked)


# --- targets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "confidence", "edges"),
    [
        ("outcome", 0.85, None),
        ({"column": "cost", "classes": [60.0, 90.0]}, 0.8, [60.0, 90.0]),
        ({"column": "cost", "equal_width": 2}, 0.9, None),
    ],
)
def test_no_group_tells_a_target_with_more_confidence(target: Any, confidence: float, edges: Any) -> None:
    frame = patients()
    name = target if isinstance(target, str) else target["column"]
    words = {
        "quasi_identifiers": QUASI_IDENTIFIERS,
        "k": K,
        "targets": [target],
        "insensitive": [one for one in RAW if one != name],
        "release": RAW,
        "min_gain": 0.0,
    }
    costs = frame["cost"].to_list()
    edges = edges or [(min(costs) + max(costs)) / 2]

    def classes(values: Any) -> list[Any]:
        return list(values) if name == "outcome" else [sum(value >= edge for edge in edges) for value in values]

    asked = {"model": "max_confidence", "alpha": confidence}
    found = anonymize(frame, max_confidence=confidence, **words)
    groups = groups_of(found.data, QUASI_IDENTIFIERS, name)
    assert len(groups) > 3
    assert all(holds(classes(group), [], asked) for group in groups)
    free = groups_of(anonymize(frame, **words).data, QUASI_IDENTIFIERS, name)
    assert not all(holds(classes(group), [], asked) for group in free)


def test_too_much_confidence_in_the_whole_table_is_told() -> None:
    share = Counter(patients()["outcome"].to_list()).most_common(1)[0][1] / 300
    with pytest.raises(
        Infeasible, match=f"outcome has a value that {share:.2%} of the persons .* max_confidence must be"
    ):
        released(patients(), waived("diagnosis"), targets=["outcome"], max_confidence=0.5)


# --- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (
            {"model": "distinct-l", "l": 6},
            "diagnosis has 5 distinct values over the whole table, so l cannot exceed 5",
        ),
        (
            {"model": "entropy-l", "l": 5},
            "diagnosis has entropy 2\\.\\d+ bits over the whole table, so l cannot exceed 4\\.\\d",
        ),
        (
            {"model": "alpha-k", "alpha": 0.1},
            "diagnosis has a value that .*% of the persons .* alpha must be at least 0\\.\\d",
        ),
        ({"model": "recursive-cl", "c": 0.1, "l": 5}, "the most frequent with \\d+ of 300 persons"),
    ],
)
def test_what_the_whole_table_does_not_hold_is_told_with_its_figures(asked: Demand, sentence: str) -> None:
    with pytest.raises(Infeasible, match=sentence) as told:
        released(patients(), {"diagnosis": asked})
    assert not any(name in str(told.value) for name in ("angina", "infarct", "asthma", "flu", "fracture"))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"model": "squared-error", "error": 1e9}, "cost has a sum of squared deviations of .* error cannot exceed"),
        (
            {"model": "variance", "variance": 1e9},
            "cost has variance .* over the whole table, so variance cannot exceed",
        ),
    ],
)
def test_numbers_that_are_not_far_enough_apart_are_told(asked: Demand, sentence: str) -> None:
    with pytest.raises(Infeasible, match=sentence):
        released(patients(), {"cost": asked})


def test_the_strictest_demand_that_the_whole_table_holds_is_met() -> None:
    frame = patients()
    shares = [count / 300 for count in Counter(frame["diagnosis"].to_list()).values()]
    most = max(shares)
    found = released(frame, {"diagnosis": {"model": "alpha-k", "alpha": most}})
    check(found.data, "diagnosis", {"model": "alpha-k", "alpha": most})
    with pytest.raises(Infeasible):
        released(frame, {"diagnosis": {"model": "alpha-k", "alpha": most - 1e-6}})


def test_a_model_of_numbers_is_refused_for_words() -> None:
    with pytest.raises(SpecError, match="variance is for numbers"):
        released(patients(), {"diagnosis": {"model": "variance", "variance": 1.0}})


def test_values_that_a_taxonomy_lacks_are_counted_not_told() -> None:
    frame = patients().with_columns(pl.col("diagnosis").replace("flu", "SECRET4711"))
    asked = {"model": "t-closeness", "t": 0.3, "distance": "hierarchical"}
    with pytest.raises(Exception, match="1 of its 5 distinct values is not in its taxonomy") as told:
        released(frame, {"diagnosis": asked}, taxonomies={"diagnosis": DIAGNOSES})
    assert "SECRET4711" not in str(told.value)


# --- what the recoding does not depend on -----------------------------------------------------------------------


@pytest.mark.parametrize("case", ["entropy", "ordered numbers", "hierarchical", "enhanced beta", "variance"])
def test_the_order_of_rows_and_threads_do_not_matter(case: str) -> None:
    column, asked, declared = CASES[case]
    frame = patients(missing=True, seed=4)
    order = np.random.default_rng(0).permutation(len(frame))
    words = {"targets": ["outcome"], **declared}
    one = released(frame, {column: asked}, threads=1, **words)
    other = released(frame[order], {column: asked}, threads=2, **words)
    assert one.recoding.to_json() == other.recoding.to_json()
    assert one.data.equals(other.data)
