# SPDX-License-Identifier: Apache-2.0
"""Releases made for selections: cuts at their faces, regions that they select whole, and predicates that select hardly
anyone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from patients_table import QUASI_IDENTIFIERS, REGIONS, patients
from releases import made, said, smallest

from anonfit.api import Release, anonymize
from anonfit.errors import SpecError

RAW = ["diagnosis", "stage", "cost", "outcome"]


def released(frame: pl.DataFrame, k: int = 10, **words: Any) -> Release:
    targets = words.get("targets", ())
    return anonymize(
        frame,
        quasi_identifiers=QUASI_IDENTIFIERS,
        k=k,
        insensitive=[name for name in RAW if name not in targets],
        release=RAW,
        taxonomies={"region": REGIONS},
        **words,
    )


Holds = Callable[[dict[str, Any]], bool]


def retrieved(release: Release, frame: pl.DataFrame, holds: Holds) -> int:
    """The persons of all groups of which some person is selected: what must be fetched to have all selected ones."""
    rows = frame.rows(named=True)
    groups: dict[Any, list[int]] = {}
    for row, label in enumerate(release.recoding.apply(frame).select(QUASI_IDENTIFIERS).rows()):
        groups.setdefault(label, []).append(row)
    return sum(len(group) for group in groups.values() if any(holds(rows[row]) for row in group))


# --- faces ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "low", "high"),
    [
        ("x >= 5", "< 5", "≥ 5"),
        ("x < 5", "< 5", "≥ 5"),
        ("x >= 4.25", "< 4.25", "≥ 4.25"),
        ("x between 5 and 30", "< 5", "≥ 5"),
        ("not x < 6.75", "< 6.75", "≥ 6.75"),
    ],
)
def test_a_cut_lies_exactly_at_the_face_of_a_selection(where: str, low: str, high: str) -> None:
    """No row is between 4 and 7: the simplest cut would lie anywhere there."""
    table = {"x": [1.0, 2.0, 3.0, 4.0, 7.0, 8.0, 9.0, 20.0]}
    assert said(made(table, k=4, selections=[where]), "x") == {low: 4, high: 4}


def test_a_cut_lies_at_the_face_though_a_row_has_its_value() -> None:
    table = {"x": [1, 2, 3, 4, 5, 6, 7, 8]}
    assert said(made(table, k=3, selections=["x >= 4"]), "x") == {"< 4": 3, "≥ 4": 5}
    # Whole numbers above 3 are those from 4 on, and at most 3 those below 4.
    assert set(said(made(table, k=3, selections=["x > 3"]), "x")) in ({"< 4", "≥ 4"}, {"< 3.5", "≥ 3.5"})


def test_dates_are_cut_at_faces_too() -> None:
    days = [date(2020, 1, 1) + timedelta(days=40 * number) for number in range(8)]
    found = made({"day": days}, k=3, selections=["day >= '2020-07-01'"])
    assert said(found, "day") == {"< 2020-07-01": 5, "≥ 2020-07-01": 3}


def test_names_are_selected_as_a_set() -> None:
    table = {"city": list("aabbccddee"), "x": [1, 2] * 5}
    domains = {"city": list("abcde")}
    found = made(table, k=4, selections=["city in ('b', 'e')"], split_on=["city"], domains=domains)
    assert said(found, "city") == {"{b, e}": 4, "{a, c, d}": 6}


def test_a_taxonomy_is_cut_where_a_selection_ends() -> None:
    found = released(patients(), selections=["region in ('s1', 's2')"])
    assert not {"*"} & set(said(found, "region"))


# --- regions that are selected whole ----------------------------------------------------------------------------

ASKED: list[tuple[str, Holds]] = [
    ("age between 30 and 44", lambda row: 30 <= row["age"] <= 44),
    ("age >= 60 and sex = 'f'", lambda row: row["age"] >= 60 and row["sex"] == "f"),
    ("region = 's1' or age < 25", lambda row: row["region"] == "s1" or row["age"] < 25),
    ("not (region in ('n1', 'n2') or sex = 'm')", lambda row: row["region"] not in ("n1", "n2") and row["sex"] != "m"),
]


@pytest.mark.parametrize("words", [{}, {"targets": ["outcome"]}])
@pytest.mark.parametrize("k", [5, 10, 25, 50])
def test_selections_are_answered_better_than_blind(k: int, words: dict[str, Any]) -> None:
    frame = patients()
    blind = released(frame, k, **words)
    found = released(frame, k, selections=[where for where, _ in ASKED], **words)
    assert smallest(found) >= k
    true = sum(holds(row) for row in frame.rows(named=True) for _, holds in ASKED)
    sums = [sum(retrieved(one, frame, holds) for _, holds in ASKED) for one in (found, blind)]
    assert true <= sums[0] < sums[1]


@pytest.mark.parametrize("k", [5, 10, 25])
def test_a_range_of_enough_persons_is_cut_out_exactly(k: int) -> None:
    frame = patients()
    where, holds = ASKED[0]
    true = sum(holds(row) for row in frame.rows(named=True))
    assert true >= k
    assert retrieved(released(frame, k, selections=[where]), frame, holds) == true


@pytest.mark.parametrize(("heavy", "labels"), [(0, {"< 4": 3, "≥ 4": 3}), (1, {"< 2.5": 2, "[2.5, 5)": 2, "≥ 5": 2})])
def test_a_weight_says_which_selection_matters(heavy: int, labels: dict[str, int]) -> None:
    # Both faces cannot be cut: one row is between them.
    wheres = ["x >= 4", "x >= 5"]
    asked = [{"where": where, "weight": 9.0 if number == heavy else 1.0} for number, where in enumerate(wheres)]
    assert said(made({"x": [1, 2, 3, 4, 5, 6]}, k=2, selections=asked), "x") == labels


def test_what_is_asked_of_raw_columns_moves_no_cuts() -> None:
    frame = patients()
    raw = released(frame, selections=["outcome = 'bad'"])
    assert raw.recoding.to_json() == released(frame).recoding.to_json()
    mixed = released(frame, selections=["outcome = 'bad' and age >= 70"])
    assert all(label == "≥ 70" or "[70, " in label or ", 70)" in label for label in said(mixed, "age") if "70" in label)
    assert any("70" in label for label in said(mixed, "age"))


# --- each -------------------------------------------------------------------------------------------------------


def test_each_value_of_a_column_is_a_selection() -> None:
    frame = patients()
    found = released(frame, selections=[{"each": "sex"}])
    assert set(said(found, "sex")) == {"f", "m"}
    by_hand = released(frame, selections=["sex = 'f'", "sex = 'm'"])
    assert found.recoding.to_json() == by_hand.recoding.to_json()


def test_each_value_of_a_raw_column_and_of_numbers_gives_a_release() -> None:
    frame = patients()
    assert smallest(released(frame, selections=[{"each": "outcome"}])) >= 10
    assert smallest(released(frame, selections=[{"each": "age", "weight": 0.5}])) >= 10


# --- hardly anyone ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "where",
    [
        "age > 500",
        "age < -3 or age > 500",
        "age = 47 and sex = 'f' and region = 'n3'",
        "age is null",
        "age is not null",
        "region in ('n3') and age between 18 and 19",
        "diagnosis = 'none of these'",
        "age = 30 and age = 31",
        "age > 20 or age <= 20",
    ],
)
@pytest.mark.parametrize("targets", [[], ["outcome"]])
def test_a_selection_of_fewer_than_k_or_none_or_all_gives_a_release(where: str, targets: list[str]) -> None:
    frame = patients()
    found = released(frame, selections=[where], targets=targets, min_gain=0.0)
    assert smallest(found) >= 10
    assert len(set(found.data.select(QUASI_IDENTIFIERS).rows())) > 8
    assert Counter(found.data.select(RAW).rows()) == Counter(frame.select(RAW).rows())


def test_a_selection_of_nobody_changes_nothing() -> None:
    frame = patients()
    for words in ({}, {"targets": ["outcome"]}):
        one = released(frame, selections=["age > 500 and sex = 'f'"], **words)
        assert one.recoding.to_json() == released(frame, **words).recoding.to_json()


def test_random_selections_of_rare_rows_give_valid_releases() -> None:
    rng = np.random.default_rng(0)
    for seed in range(15):
        frame = patients(80, seed=seed, missing=bool(seed % 2))
        low, sex, region = int(rng.integers(18, 90)), rng.choice(["f", "m"]), rng.choice(["n1", "s2"])
        wheres = [f"age between {low} and {low + 1} and sex = '{sex}'", f"region = '{region}' and age > {low + 20}"]
        k = int(rng.integers(2, 20))
        assert smallest(released(frame, k, selections=wheres, targets=["outcome"] if seed % 3 else [])) >= k


# --- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selections", "sentence"),
    [
        (["agee > 3"], "agee"),
        (["age > 3", "upper(sex) = 'F'"], "selections\\[1\\]"),
        (["age in (select 1)"], "selections\\[0\\]"),
        (["age >"], "selections\\[0\\]"),
        ([{"each": "nothing"}], "nothing"),
    ],
)
def test_selections_that_cannot_be_understood_are_refused(selections: Sequence[Any], sentence: str) -> None:
    with pytest.raises(SpecError, match=sentence):
        released(patients(), selections=selections)
