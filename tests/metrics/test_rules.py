# SPDX-License-Identifier: Apache-2.0
"""Association rules: those that are planted are found, counted as they are, and told by the disclosure rule."""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np
import polars as pl
import pytest

from anonfit.metrics.rules import CONFIDENCE, LIFT, SUPPORT, AssociationRule, Item, find_rules, items_of, rules_content
from anonfit.privacy.disclosure import Disclosure
from anonfit.release.run import make
from anonfit.spec.parse import parse_spec

pytest.importorskip("mlxtend", reason="rules are mined by mlxtend: pip install 'anonfit[rules]'")


def item(column: str, released: list[int], raw: list[int] | None = None) -> Item:
    has = np.array(released, dtype=bool)
    return Item(column, f"{column}!", has, has if raw is None else np.array(raw, dtype=bool))


def test_a_planted_rule_is_found_and_held_against_the_raw_rows() -> None:
    a, b = [1] * 40 + [0] * 60, [1] * 38 + [0] * 62
    (first, second) = find_rules([item("a", a), item("b", b, [1] * 20 + [0] * 80), item("c", [1, 0] * 50)])
    assert (first.given, first.then, first.released, first.raw) == (("a!",), "b!", (40, 38), (40, 20))
    assert not first.holds
    assert (second.given, second.released, second.raw) == (("b!",), (38, 38), (20, 20))
    assert second.holds
    assert first.lift == pytest.approx(38 / 40 / 0.38)


def test_things_of_one_column_and_rare_or_weak_rules_are_left_out() -> None:
    one = [1] * 40 + [0] * 60
    assert find_rules([item("a", one), item("a", one)]) == []
    rare = [1] + [0] * 99
    assert find_rules([item("a", rare), item("b", rare)]) == []
    nearly_all = [1] * 95 + [0] * 5
    assert find_rules([item("a", nearly_all), item("b", nearly_all)]) == []
    assert find_rules([]) == []


def test_a_rule_that_follows_from_a_simpler_one_is_left_out() -> None:
    a, b, c = [1] * 40 + [0] * 60, [1] * 40 + [0] * 60, [1, 1, 0, 0] * 25
    givens = {one.given for one in find_rules([item("a", a), item("b", b), item("c", c)])}
    assert givens == {("a!",), ("b!",)}


def test_many_columns_that_say_the_same_or_nothing_are_no_burden() -> None:
    rng = np.random.default_rng(0)
    same = rng.random(2000) < 0.4
    items = [Item(f"same {at}", f"same {at}!", same, same) for at in range(15)]
    for column in range(30):
        values = rng.integers(0, 9, 2000)
        items += [Item(f"noise {column}", f"noise {column} {at}", values == at, values == at) for at in range(9)]
    begin = time.process_time()
    found = find_rules(items)
    assert time.process_time() - begin < 30
    assert len(found) == 30
    assert all(rule.given[0].startswith("same") and len(rule.given) == 1 for rule in found)


@pytest.mark.parametrize("seed", range(4))
def test_rules_are_those_that_counting_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = rng.random((400, 6)) < rng.uniform(0.1, 0.9, 6)
    columns[:, 0] |= columns[:, 1]
    columns[:, 2] |= columns[:, 3] & columns[:, 4]
    items = [Item(f"c{at}", f"c{at}", columns[:, at], ~columns[:, at]) for at in range(6)]
    known = {}
    for size in (1, 2):
        for given in combinations(range(6), size):
            for then in set(range(6)) - set(given):
                has = columns[:, list(given)].all(axis=1)
                both = has & columns[:, then]
                if both.sum() < SUPPORT * 400 or both.sum() < CONFIDENCE * has.sum():
                    continue
                if both.sum() / has.sum() >= LIFT * columns[:, then].mean():
                    known[given, then] = both.sum() / has.sum()
    wanted = {
        (tuple(f"c{at}" for at in given), f"c{then}")
        for (given, then), sure in known.items()
        if len(given) == 1 or not any(known.get(((at,), then), 0) >= sure for at in given)
    }
    found = find_rules(items)
    assert {(one.given, one.then) for one in found} == wanted
    for one in found:
        has = ~columns[:, [int(name[1:]) for name in one.given]]
        assert one.raw == (has.all(axis=1).sum(), (has.all(axis=1) & ~columns[:, int(one.then[1:])]).sum())


def test_rules_of_a_release_are_counted_by_labels_and_values() -> None:
    rng = np.random.default_rng(0)
    age = rng.integers(20, 80, 600)
    frame = pl.DataFrame(
        {
            "age": age,
            "town": rng.choice(list("abc"), 600),
            "retired": np.where(age >= 60, "yes", "no"),
            "pay": rng.random(600),
        }
    )
    spec = parse_spec(
        "version = 1\ncolumns.age.role = 'quasi-identifier'\ncolumns.town.role = 'quasi-identifier'\n"
        "columns.retired.role = 'target'\ncolumns.pay.role = 'insensitive'\ncolumns.pay.release = true\nprivacy.k = 10"
    )
    made = make(spec, source=frame, threads=1)
    assert made.nodes is not None
    items = items_of(made.recoding, made.nodes, frame, ["retired", "pay"])
    for one in items:  # a released row has an item only if every value it may have does, so its own has it too
        assert not (one.released & ~one.raw).any(), one.text
    rules = find_rules(items)
    assert any(rule.then == "retired yes" and rule.given[0].startswith("age ≥") for rule in rules)
    texts = {one.text: one for one in items}
    for rule in rules:
        given = np.logical_and.reduce([texts[text].released for text in rule.given])
        both = given & texts[rule.then].released
        assert rule.released == (given.sum(), both.sum())
        assert both.sum() >= SUPPORT * 600
        assert both.sum() >= CONFIDENCE * given.sum()
        assert both.mean() / given.mean() >= LIFT * texts[rule.then].released.mean() - 1e-9


def test_what_may_be_told_of_raw_rows() -> None:
    def told(raw: tuple[int, int], *, least: int = 10, rows_are_persons: bool = True) -> bool | None:
        rule = AssociationRule(("a",), "b", 2.0, 1000, (100, 90), raw)
        content = rules_content([rule], Disclosure(least, rows_are_persons=rows_are_persons))
        assert content["rules"][0]["confidence"] == 0.9
        assert ("raw_support" in content["rules"][0]) == (least == 0)
        found: bool | None = content["rules"][0]["holds"]
        return found

    assert told((100, 90)) is True
    assert told((100, 70)) is False
    assert told((100, 100)) is True
    assert told((100, 95)) is None  # five persons are against it
    assert told((9, 9)) is None
    assert told((100, 90), rows_are_persons=False) is None
    assert told((100, 95), least=0) is True
