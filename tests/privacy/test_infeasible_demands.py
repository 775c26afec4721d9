# SPDX-License-Identifier: Apache-2.0
"""What is said of a demand that a whole table does not meet: its own figures, and a bound that is right."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from plain_diversity import DEMANDS, random_sensitive

from anonfit.privacy.catalogue import MODELS, make_model, parameter_faults
from anonfit.privacy.likeness import MaxConfidence
from anonfit.privacy.models import SensitiveColumn, at_least, at_most, more_than
from anonfit.tables.scales import FixedPoint

TABLE = SensitiveColumn("diagnosis", 4, True, np.array([10, 60, 20, 10]), np.array([0, 0, 1, 4]), FixedPoint(7.0, 1.0))


def sentence(model: str, **asked: Any) -> str:
    return make_model(TABLE, model, asked).why_not(TABLE.whole)


@pytest.mark.parametrize(
    ("model", "asked", "told"),
    [
        (
            "distinct-l",
            {"l": 6},
            "diagnosis has 4 distinct values, missing among them, over the whole table, so l cannot exceed 4; "
            "distinct-l asks for l = 6.",
        ),
        (
            "entropy-l",
            {"l": 3.5},
            "diagnosis has entropy 1.571 bits over the whole table, so l cannot exceed 2.971; entropy-l asks for "
            "l = 3.5.",
        ),
        (
            "recursive-cl",
            {"c": 2, "l": 3},
            "diagnosis has 4 distinct values, the most frequent with 60 of 100 persons, over the whole table, so with "
            "l = 3 c must be at least 3.001, or with c = 2 l cannot exceed 2; recursive-cl asks for c = 2, l = 3.",
        ),
        (
            "recursive-cl",
            {"c": 0.5, "l": 5},
            "diagnosis has 4 distinct values, the most frequent with 60 of 100 persons, over the whole table, so l "
            "cannot exceed 4, and with l = 4 c must be at least 6.001; recursive-cl asks for c = 0.5, l = 5.",
        ),
        (
            "recursive-cl",
            {"c": 20, "l": 5},
            "diagnosis has 4 distinct values, the most frequent with 60 of 100 persons, over the whole table, so with "
            "c = 20 l cannot exceed 4; recursive-cl asks for c = 20, l = 5.",
        ),
        (
            "alpha-k",
            {"alpha": 0.5},
            "diagnosis has a value that 60.00% of the persons of the whole table have, so alpha must be at least 0.6; "
            "alpha = 0.5 is asked for.",
        ),
        (
            "squared-error",
            {"error": 500},
            "diagnosis has a sum of squared deviations of 140 over the whole table, so error cannot exceed 140; "
            "squared-error asks for error = 500.",
        ),
        (
            "variance",
            {"variance": 2},
            "diagnosis has variance 1.555555556 over the whole table, so variance cannot exceed 1.555; variance = 2 is "
            "asked for.",
        ),
    ],
)
def test_sentences(model: str, asked: dict[str, Any], told: str) -> None:
    assert not make_model(TABLE, model, asked).allows(TABLE.whole)
    assert sentence(model, **asked) == told


def test_a_target_is_told_of_its_own_setting() -> None:
    told = MaxConfidence(TABLE, 0.5).why_not(TABLE.whole)
    assert "so max_confidence must be at least 0.6; max_confidence = 0.5 is asked for." in told


def test_groups_unlike_the_table() -> None:
    group = np.array([0, 9, 1, 0])
    close = make_model(TABLE, "t-closeness", {"t": 0.1})
    assert "is distributed 0.3 away from the whole table (distance equal), so t must be at least 0.3;" in close.why_not(
        group
    )
    grown = make_model(TABLE, "beta-likeness", {"beta": 0.1})
    assert "whose share grew by 0.5 times its share in the whole table, so beta must be at least 0.5;" in grown.why_not(
        group
    )
    ratio = make_model(TABLE, "delta-disclosure", {"delta": 0.1})
    assert "lacks a value of the whole table: delta-disclosure forbids it, whatever delta is." in ratio.why_not(group)
    assert "is 2 times larger or smaller than in the whole table, so delta must be at least" in ratio.why_not(
        np.array([10, 60, 10, 20])
    )
    # -ln 0.6 is 0.511: growth by two thirds is too much, however large beta is.
    enhanced = make_model(TABLE, "beta-likeness", {"beta": 99, "enhanced": True})
    assert "enhanced beta-likeness forbids such growth, whatever beta is." in enhanced.why_not(np.array([0, 9, 0, 0]))


def bounds_in(text: str) -> list[tuple[str, Decimal, int]]:
    """The parameter, the bound and the direction in which it can be missed, for each bound of a sentence."""
    upper = re.findall(r"(\w+) cannot exceed ([\d.e+-]*\d)", text)
    lower = re.findall(r"(\w+) must be at least ([\d.e+-]*\d)", text)
    return [(name, Decimal(bound), 1) for name, bound in upper] + [(name, Decimal(bound), -1) for name, bound in lower]


def beyond(model: str, name: str, bound: Decimal, direction: int) -> float:
    """One of the last shown digit beyond a bound."""
    is_whole = name == "l" and model != "entropy-l"
    unit = Decimal(1) if is_whole else Decimal(1).scaleb(bound.adjusted() - 3)
    return float(bound + direction * unit)


def test_the_bound_is_possible_and_a_digit_beyond_is_not() -> None:
    rng = np.random.default_rng(3)
    checked = dict.fromkeys(MODELS, 0)
    for _ in range(6000):
        column, groups = random_sensitive(rng)
        model = str(rng.choice(sorted(MODELS)))
        asked = DEMANDS[model](rng)
        made, group = make_model(column, model, asked), groups[0]
        if made.allows(group):
            continue
        told = made.why_not(group)
        bounds = bounds_in(told)
        together = {name: float(bound) for name, bound, _ in bounds} if " and with l" in told else {}
        for name, bound, direction in bounds:
            nearest = {**asked, name: float(bound), **together}
            if parameter_faults(model, nearest, where=""):  # a table of one value meets no demand
                assert np.count_nonzero(group) == 1 or model in ("squared-error", "variance"), (column, asked, group)
                continue
            assert make_model(column, model, nearest).allows(group), (column, asked, group)
            farther = {**nearest, name: beyond(model, name, bound, direction)}
            if not parameter_faults(model, farther, where=""):
                assert not make_model(column, model, farther).allows(group), (column, farther, group)
                checked[model] += 1
    assert min(checked.values()) > 25, checked


def test_whole_tables_never_fail_models_that_compare_with_them() -> None:
    rng = np.random.default_rng(4)
    for _ in range(200):
        column, _ = random_sensitive(rng)
        for model in ("t-closeness", "beta-likeness", "delta-disclosure"):
            assert make_model(column, model, DEMANDS[model](rng)).allows(column.whole)


@pytest.mark.parametrize(
    ("number", "down", "up", "above"),
    [
        (3.73213, "3.732", "3.733", "3.733"),
        (0.5, "0.5", "0.5", "0.5001"),
        (1234567.8, "1234000", "1235000", "1235000"),
        (99999.0, "99990", "100000", "100000"),
        (0.0, "0", "0", "0.001"),
        (1.23456e-7, "1.234e-07", "1.235e-07", "1.235e-07"),
    ],
)
def test_bounds_are_shortened_to_the_possible_side(number: float, down: str, up: str, above: str) -> None:
    assert (at_most(number), at_least(number), more_than(number)) == (down, up, above)
