# SPDX-License-Identifier: Apache-2.0
"""Association rules: those that are planted are found, counted as they are, and told by the disclosure rule."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from anonfit.pipeline import make
from anonfit.report.rules import rules_content
from anonfit.spec_reading import parse_spec
from anonfit.utility.rule_items import Item, items_of
from anonfit.utility.rules import CONFIDENCE, LIFT, SUPPORT, Rule, find_rules

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
        rule = Rule(("a",), "b", 2.0, 1000, (100, 90), raw)
        content = rules_content([rule], least, rows_are_persons=rows_are_persons)
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
