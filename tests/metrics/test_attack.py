# SPDX-License-Identifier: Apache-2.0
"""Persons sought in a release: counted by hand, against plain counting on random tables, and in releases of all kinds."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.metrics import inference
from anonfit.metrics.attack import Attack, SoughtPersons, attack, attack_content, draw_persons, link
from anonfit.metrics.inference import Guesses, LearnedClasses, ReleasedRecords, Secret
from anonfit.privacy.disclosure import Disclosure
from anonfit.report.words import attack_sentences
from anonfit.tables.schema import Role
from waivers import waived

# --- by hand ----------------------------------------------------------------------------------------------------

# Two groups: node 3 with classes a a a b, node 5 with b b c. Everybody is sought.
NODES = np.array([3, 3, 3, 3, 5, 5, 5])
CLASSES = np.array([0, 0, 0, 1, 1, 1, 2])


def everybody(
    nodes: Any = NODES, classes: Any = CLASSES, *, k: int = 3, are_numbers: bool = False, **words: Any
) -> Attack:
    """All persons of a table of one row each, or of several where `entities` or `counts` say so."""
    records = ReleasedRecords(nodes, **words)
    sample = SoughtPersons(nodes, np.ones(len(nodes), bool), words.get("entities"))
    return attack(records, sample, [Secret("class", classes, classes, are_numbers)], k=k)


def test_the_chance_of_finding_a_person_by_hand() -> None:
    found = everybody()
    assert found.chance == pytest.approx((4 * 1 / 4 + 3 * 1 / 3) / 7)
    assert found.highest == pytest.approx(1 / 3)
    assert found.blind_chance == pytest.approx(1 / 7)
    assert (found.persons, found.linked, found.released, found.alone) == (7, 7, 7, 0)
    assert everybody(k=4).alone == 3


def test_guesses_by_hand() -> None:
    found = everybody().guesses[0]
    # Groups: a is right for three of four, b for two of three.
    assert found.of_group == 5
    # Of the others: a person of class a still sees a a b; b of the first group sees a a a. In the second group a b
    # sees b c, a tie, and the c sees b b.
    assert found.of_others == 3 + 0 + 2 * Fraction(1, 2) + 0
    # The table has a a a b b b c: a tie of a and b.
    assert found.of_table == 6 * Fraction(1, 2)
    # Without one a, b is the commonest; without one b, a is; without the c it is a tie of others.
    assert found.of_other_rows == 0
    assert found.persons == 7


def test_who_is_alone_is_guessed_by_the_table_of_the_others() -> None:
    found = everybody(np.array([1, 2, 2, 2]), np.array([0, 1, 1, 1]), k=1).guesses[0]
    assert found.of_group == 4
    # The first person: nobody else is in the group, and all others are of class 1.
    assert found.of_others == 3
    found = everybody(np.array([1]), np.array([0]), k=1).guesses[0]
    assert (found.of_group, found.of_others) == (1, 0)


def test_numbers_are_guessed_by_the_mean() -> None:
    numbers = np.array([1.0, 3.0, np.nan, 10.0, 20.0])
    found = everybody(np.array([0, 0, 0, 1, 1]), numbers, are_numbers=True, k=2).guesses[0]
    assert found.persons == 4
    assert found.of_group == (1 + 1) + (5 + 5)
    assert found.of_others == (2 + 2) + (10 + 10)
    assert found.of_table == 7.5 + 5.5 + 1.5 + 11.5
    assert found.of_other_rows == pytest.approx(11 - 1 + 31 / 3 - 3 + 10 - 8 + 20 - 14 / 3)


def test_who_is_not_in_the_release_is_not_found_but_may_be_guessed() -> None:
    sample = SoughtPersons(np.array([3, 5, 9, -1]), np.array([False, True, False, False]))
    found = attack(ReleasedRecords(NODES), sample, [Secret("class", CLASSES, np.array([0, 1, 0, 2]))], k=3)
    assert found.linked == 2
    assert found.chance == pytest.approx((0 + 1 / 3 + 0 + 0) / 4)
    assert found.blind_chance == pytest.approx(1 / 4 / 7)
    # The first sees a a a b, the second b b c; the others see the table, which is a tie of a and b.
    assert found.guesses[0].of_group == 1 + 1 + Fraction(1, 2) + 0
    # The own record of the second is taken away: b c, a tie, of which b is one.
    assert found.guesses[0].of_others == 1 + Fraction(1, 2) + Fraction(1, 2) + 0


def test_a_release_without_rows_tells_nothing() -> None:
    none = np.zeros(0, np.int64)
    found = attack(
        ReleasedRecords(none),
        SoughtPersons(np.array([3]), np.array([False])),
        [Secret("class", none, np.array([1]))],
        k=2,
    )
    assert (found.linked, found.chance, found.released, found.guesses[0].of_group) == (0, 0.0, 0, 0.0)


def test_a_row_that_stands_for_several_persons_hides_each_of_them() -> None:
    found = everybody(np.array([0, 0]), np.array([0, 1]), counts=np.array([9, 1], np.uint32), k=10)
    assert (found.highest, found.alone, found.released) == (1 / 10, 0, 10)
    # Of ten persons nine have class 0; without one of them it still is the commonest.
    assert found.guesses[0].of_others == 1


def test_a_persons_other_rows_are_his_own_too() -> None:
    # Person 0 has three rows of class 0 in a group with persons 1 and 2, of class 1.
    nodes, classes = np.zeros(5, np.int64), np.array([0, 0, 0, 1, 1])
    entities = np.array([0, 0, 0, 1, 2], np.uint32)
    sample = SoughtPersons(np.zeros(1, np.int64), np.ones(1, bool), np.array([0], np.uint32))
    found = attack(ReleasedRecords(nodes, entities=entities), sample, [Secret("class", classes, np.array([0]))], k=3)
    assert (found.chance, found.released, found.alone) == (1 / 3, 3, 0)
    # A person counts once for a class: 1 against 2, so class 1 is guessed with and without the own rows.
    assert found.guesses[0].of_group == 0
    numbers = attack(
        ReleasedRecords(nodes, entities=entities), sample, [Secret("n", classes * 6.0, np.array([0.0]), True)], k=3
    ).guesses[0]
    assert (numbers.of_group, numbers.of_others) == (12 / 5, 6)


# --- plain counting ---------------------------------------------------------------------------------------------


def plain_hit(values: list[Any], true: Any) -> Fraction | None:
    """The chance that the commonest value is the true one."""
    held = Counter(values)
    if not held:
        return None
    best = [value for value, count in held.items() if count == max(held.values())]
    return Fraction(int(true in best), len(best))


@pytest.mark.parametrize("seed", range(25))
def test_guesses_of_numbers_equal_plain_means(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2, 60))
    nodes, numbers = rng.integers(0, 5, rows), rng.integers(0, 9, rows).astype(float)
    numbers[rng.random(rows) < 0.2] = np.nan
    entities = rng.integers(0, rows, rows).astype(np.uint32) if seed % 2 else np.arange(rows, dtype=np.uint32)
    people = draw_persons(rows, k=1, seed=seed, entities=entities)
    sample = SoughtPersons(nodes[people], np.ones(len(people), bool), entities[people])
    found = attack(
        ReleasedRecords(nodes, entities=entities), sample, [Secret("n", numbers, numbers[people], True)], k=2
    )
    known = [row for row in range(rows) if numbers[row] == numbers[row]]

    def off(rows_asked: list[int], true: float) -> float | None:
        return abs(sum(numbers[row] for row in rows_asked) / len(rows_asked) - true) if rows_asked else None

    sums = [0.0] * 4
    for row in (row for row in people.tolist() if row in known):
        others = off([other for other in known if entities[other] != entities[row]], numbers[row])
        here = [other for other in known if nodes[other] == nodes[row]]
        of_others = off([other for other in here if entities[other] != entities[row]], numbers[row])
        told = (
            off(here, numbers[row]),
            others if of_others is None else of_others,
            off(known, numbers[row]),
            others,
        )
        sums = [total + (one or 0.0) for total, one in zip(sums, told, strict=True)]
    one = found.guesses[0]
    assert [one.of_group, one.of_others, one.of_table, one.of_other_rows] == pytest.approx(sums)


@pytest.mark.parametrize("seed", range(25))
def test_guesses_equal_plain_counting(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "AT_ONCE", (1, 5, 1 << 20)[seed % 3])
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2, 60))
    nodes, classes = rng.integers(0, 5, rows), rng.integers(0, 4, rows)
    entities = rng.integers(0, rows, rows).astype(np.uint32) if seed % 2 else np.arange(rows, dtype=np.uint32)
    people = draw_persons(rows, k=1, seed=seed, entities=entities)
    sample = SoughtPersons(nodes[people], np.ones(len(people), bool), entities[people])
    records = ReleasedRecords(nodes, entities=entities)
    found = attack(records, sample, [Secret("class", classes, classes[people])], k=2)
    table = [(int(node), int(who), int(one)) for node, who, one in zip(nodes, entities, classes, strict=True)]
    sums = [Fraction(0)] * 4
    for row in people.tolist():
        node, who, true = table[row]
        whole = plain_hit([one for _, _, one in {(0, w, c) for _, w, c in table}], true)
        others = plain_hit([one for _, _, one in {(0, w, c) for _, w, c in table if w != who}], true)
        here = plain_hit([one for _, _, one in {(n, w, c) for n, w, c in table if n == node}], true)
        here_others = plain_hit([one for _, _, one in {(n, w, c) for n, w, c in table if n == node and w != who}], true)
        told = (here, here_others if here_others is not None else others, whole, others)
        sums = [total + (one or 0) for total, one in zip(sums, told, strict=True)]
    one = found.guesses[0]
    assert [one.of_group, one.of_others, one.of_table, one.of_other_rows] == pytest.approx([float(x) for x in sums])
    sizes = [len({w for n, w, _ in table if n == table[row][0]}) for row in people.tolist()]
    assert found.chance == pytest.approx(sum(1 / size for size in sizes) / len(sizes))
    assert found.alone == sum(size < 2 for size in sizes)
    if not seed % 2:
        # Where everybody has one row, it is the same without naming persons.
        without = attack(
            ReleasedRecords(nodes),
            SoughtPersons(nodes[people], sample.is_released),
            [Secret("class", classes, classes[people])],
            k=2,
        )
        assert without == found


# --- drawing ----------------------------------------------------------------------------------------------------


def test_all_are_drawn_where_too_few_would_be_left_out() -> None:
    assert draw_persons(12, k=3, seed=0, size=10).tolist() == list(range(12))
    drawn = draw_persons(13, k=3, seed=0, size=10)
    assert len(set(drawn.tolist())) == 10
    assert drawn.tolist() == sorted(drawn.tolist())
    assert drawn.tolist() == draw_persons(13, k=3, seed=0, size=10).tolist()
    assert any(draw_persons(13, k=3, seed=seed, size=10).tolist() != drawn.tolist() for seed in range(1, 5))


def test_rows_are_drawn_for_their_persons() -> None:
    drawn = Counter(draw_persons(2, k=1, seed=0, counts=np.array([990, 10], np.uint32), size=400).tolist())
    assert drawn.total() == 400
    assert drawn[0] > 380
    assert draw_persons(3, k=5, seed=0, counts=np.array([1, 2, 1], np.uint32), size=2).tolist() == [0, 1, 1, 2]


def test_one_row_of_every_person_is_drawn() -> None:
    entities = np.repeat(np.arange(50, dtype=np.uint32), 4)
    drawn = draw_persons(200, k=5, seed=1, entities=entities, size=20)
    assert len(drawn) == len(set(entities[drawn].tolist())) == 20
    assert len({row % 4 for row in drawn.tolist()}) > 1


# --- what is told -----------------------------------------------------------------------------------------------


def made_up(*guesses: Guesses, **words: Any) -> Attack:
    found = {
        "persons": 100,
        "linked": 100,
        "released": 100,
        "chance": 0.05,
        "highest": 0.1,
        "blind_chance": 0.01,
        "alone": 0,
    }
    return Attack(**{**found, **words}, guesses=guesses)


def test_shares_of_few_persons_are_not_told() -> None:
    few_wrong = Guesses("illness", 100, False, of_group=96.5, of_others=60, of_table=50, of_other_rows=50)
    line = attack_content(made_up(few_wrong), Disclosure(10), roles={"illness": Role.SENSITIVE})["inference"][0]
    assert line["role"] == "sensitive"
    assert (line["accuracy"], line["gain"]) == (None, None)
    assert (line["accuracy_by_others"], line["baseline"], line["gain_by_others"]) == (0.6, 0.5, 0.1)
    own = attack_content(made_up(few_wrong), Disclosure(0))["inference"][0]
    assert (own["accuracy"], own["gain"]) == (0.965, 0.465)
    none_wrong = Guesses("illness", 100, False, of_group=100, of_others=9, of_table=50, of_other_rows=50)
    line = attack_content(made_up(none_wrong), Disclosure(10))["inference"][0]
    assert (line["accuracy"], line["accuracy_by_others"]) == (1.0, None)


@pytest.mark.parametrize(
    ("sure", "told"), [(3, "fewer than 10"), (95, "all but fewer than 10"), (0, 0.0), (50, 0.5), (100, 1.0)]
)
def test_under_a_limit_few_are_told_from_all_but_few(sure: int, told: object) -> None:
    guesses = Guesses("illness", 100, False, of_group=50, of_others=50, of_table=50, of_other_rows=50)
    outcome = made_up(guesses, learned={"illness": LearnedClasses(100, sure, sure, 0, sure, 0)})
    line = attack_content(outcome, Disclosure(10), is_limited=True)
    assert line["inference"][0]["learned"]["sure"] == told
    [_, _, sentence] = attack_sentences(line)
    assert (
        f"sure of the value of {told if isinstance(told, str) else f'{told:.1%}'} of the persons"
        in sentence.replace("\N{NO-BREAK SPACE}", "")
    )
    unlimited = attack_content(outcome, Disclosure(10))["inference"][0]["learned"]["sure"]
    assert unlimited == (None if isinstance(told, str) else told)


def test_few_who_are_not_linked_are_not_counted_out() -> None:
    content = attack_content(made_up(linked=97), Disclosure(10))
    assert content["linked"]["persons"] == "all but fewer than 10"
    assert attack_content(made_up(linked=97), Disclosure(0))["linked"]["persons"] == 97


def test_errors_of_numbers_are_told_as_shares_only() -> None:
    numbers = Guesses(
        "wage", 100, True, of_group=123456.5, of_others=200000.0, of_table=246913.0, of_other_rows=250000.0
    )
    content = attack_content(made_up(numbers), Disclosure(10))
    assert content["inference"][0]["error_saved"] == 0.5
    assert content["inference"][0]["error_saved_by_others"] == 0.2
    assert "123456" not in json.dumps(content)
    flat = Guesses("wage", 100, True, 0.0, 0.0, 0.0, 0.0)
    assert attack_content(made_up(flat), Disclosure(10))["inference"][0]["error_saved"] == 0.0


# --- releases ---------------------------------------------------------------------------------------------------


def people(rows: int = 600, seed: int = 4) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, rows)
    return pl.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], rows),
            "illness": np.where(age + rng.normal(0, 15, rows) > 50, "heart", "flu"),
            "wage": (20.0 * age + rng.normal(0, 100, rows)) // 20 * 20,
            "who": np.arange(rows) // 3,
            "many": rng.integers(1, 4, rows),
        }
    )


def test_a_report_holds_what_the_released_table_tells() -> None:
    frame = people().drop("who", "many")
    release = af.anonymize(frame, quasi_identifiers=["age", "sex"], k=7, sensitive=waived("illness"), targets=["wage"])
    found = release.report["attack"]
    table = release.data
    sizes = table.group_by("age", "sex").len()["len"]
    # All 600 are sought, so the figures are those of the released table.
    assert found["persons"] == 600
    assert found["re_identification"]["chance"] == pytest.approx(len(sizes) / 600, abs=1e-4)
    assert found["re_identification"]["highest"] == pytest.approx(1 / sizes.min(), abs=1e-4)
    assert found["re_identification"]["sharing_with_fewer_than_k"] == 0
    by_column = {line["column"]: line for line in found["inference"]}
    commonest = table.group_by("age", "sex", "illness").len().group_by("age", "sex").agg(pl.col("len").max())
    right = commonest["len"].sum() / 600
    most = table["illness"].value_counts()["count"].max()
    assert isinstance(most, int)
    # A tie is right for half of a group's persons either way.
    assert by_column["illness"]["accuracy"] == pytest.approx(right, abs=1e-4)
    assert by_column["illness"]["gain"] == pytest.approx(right - most / 600, abs=1e-4)
    off = table.select((pl.col("wage") - pl.col("wage").mean().over("age", "sex")).abs().sum()).item()
    whole = table.select((pl.col("wage") - pl.col("wage").mean()).abs().sum()).item()
    assert by_column["wage"]["error_saved"] == pytest.approx(1 - off / whole, abs=1e-4)
    assert by_column["wage"]["error_saved_by_others"] < by_column["wage"]["error_saved"]


@pytest.mark.parametrize(
    "words",
    [
        {"entity": "who", "insensitive": ["many"]},
        {"count": "many", "insensitive": ["who"]},
        {"insensitive": ["many", "who"], "values": "bounds"},
        {"insensitive": ["many", "who"], "values": "representative"},
        {"insensitive": ["many", "who"], "regions": "observed", "order": "original", "consent": True},
        {"insensitive": ["many", "who"], "targets": [{"column": "wage", "equal_width": 3}]},
    ],
)
def test_nobody_shares_a_region_with_too_few(words: dict[str, Any]) -> None:
    words = {"targets": ["wage"], **words}
    release = af.anonymize(people(), quasi_identifiers=["age", "sex"], k=7, sensitive=waived("illness"), **words)
    found = release.report["attack"]
    assert found["re_identification"]["sharing_with_fewer_than_k"] == 0
    assert 0 < found["re_identification"]["chance"] <= found["re_identification"]["highest"] <= round(1 / 7, 4)
    assert found["linked"]["share"] == 1.0


@pytest.mark.parametrize("withheld", [3, 100])
def test_withheld_persons_are_not_counted(withheld: int) -> None:
    words: dict[str, Any] = {"quasi_identifiers": ["age", "sex"], "k": 7, "sensitive": waived("illness", "wage")}
    frame = people().drop("who", "many")
    release = af.anonymize(frame, **words)
    # New data that lacks all but three persons of some regions.
    nodes = link(release.recoding, frame).nodes
    order = pl.Series(nodes).to_frame("node").select(pl.int_range(pl.len()).over("node")).to_series()
    small = np.unique(nodes)[: -(-withheld // 3)]
    left = frame.filter((order < 3) | ~pl.Series(np.isin(nodes, small)))
    extended = release.extend(left, suppression_limit=1.0)
    found = extended.report["attack"]
    assert len(left) - len(extended.data) == 3 * len(small)
    assert extended.report["rows"]["withheld"] == ("fewer than 7" if withheld == 3 else 3 * len(small))
    # Nothing tells how many there were.
    assert found["persons"] == found["linked"]["persons"] == len(extended.data)
    groups = extended.data.group_by("age", "sex").len()
    assert found["re_identification"]["chance"] == pytest.approx(len(groups) / len(extended.data), abs=1e-4)
    assert found["re_identification"]["blind_chance"] == pytest.approx(1 / len(extended.data), abs=1e-7)
    assert found["re_identification"]["sharing_with_fewer_than_k"] == 0


def test_a_sample_from_elsewhere_is_linked_by_the_recoding() -> None:
    release = af.anonymize(
        people().drop("who", "many"), quasi_identifiers=["age", "sex"], k=7, sensitive=waived("illness", "wage")
    )
    strangers = pl.DataFrame({"age": [30, 999, 40], "sex": ["f", "m", "x"]})
    nodes = link(release.recoding, strangers).nodes
    assert nodes[0] >= 0
    assert nodes[1] >= 0  # the outermost interval is open
    named = af.anonymize(
        people().drop("who", "many"),
        quasi_identifiers=["age", "sex"],
        k=7,
        sensitive=waived("illness", "wage"),
        domains={"sex": ["f", "m"]},
    )
    assert link(named.recoding, strangers).nodes[2] == -1


def test_a_report_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    frame = people(1500).drop("who", "many")
    words: dict[str, Any] = {"quasi_identifiers": ["age", "sex"], "k": 7, "sensitive": waived("illness", "wage")}
    first, again, other = (af.anonymize(frame, **words, seed=seed).report["attack"] for seed in (0, 0, 1))
    assert first["persons"] == 1000
    assert first == again
    assert first != other
    af.anonymize(frame, **words).save(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "report.json").read_text())["attack"] == first
    assert all(math.isfinite(line["error_saved"]) for line in first["inference"] if line["kind"] == "number")
