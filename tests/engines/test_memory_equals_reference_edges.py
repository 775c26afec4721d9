# SPDX-License-Identifier: Apache-2.0
"""Both engines at the edges of what is packed and summed: wide columns, many classes, many values, large counts,
persons with many rows; and tables too large for the plain engine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from engine_pairs import Asked, check_rows, check_same, is_allowed, rows_of_regions, same
from guarded import MODELS, guarded_by, random_guarded, random_sensitive, reordered_guarded
from purpose_kinds import KINDS, mass_of
from purposes import random_class_target, random_number_target, random_share_target, reordered_purpose

from anonfit.criteria.objectives import SplitObjective
from anonfit.criteria.targets import SHARE_BITS, ClassTarget, ShareTarget, Target
from anonfit.engines.memory.forms import Constraint
from anonfit.privacy.catalogue import make_model
from anonfit.privacy.coding import sensitive_column
from anonfit.tables.schema import CodedColumn, CodedTable, SplitMode
from strategies import random_column, random_table, reordered, table_of, taxonomy_of

Random = np.random.Generator


# --- wide columns -----------------------------------------------------------------------------------------------


def wide_column(rng: Random, mode: SplitMode, size: int) -> CodedColumn:
    positions = np.cumsum(rng.integers(1, 5, size)).astype(np.float64)
    taxonomy = None
    if mode != SplitMode.ORDERED:
        taxonomy = taxonomy_of([[None] * len(part) for part in np.array_split(np.arange(size), 20)])
    return CodedColumn("wide", size, mode, False, positions, taxonomy)


def a_target(rng: Random, found: CodedTable, kind: str, name: str = "t") -> Target:
    if kind == "class":
        return random_class_target(rng, found, name, 1.0)
    if kind == "share":
        return random_share_target(rng, found, name, 1.0)
    return random_number_target(rng, found, name, 1.0, mass_of(found))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["class", "share", "number"])
@pytest.mark.parametrize("mode", [SplitMode.ORDERED, SplitMode.SUBSET])
def test_trees_are_equal_with_more_codes_than_two_bytes_hold(mode: SplitMode, kind: str) -> None:
    for seed in range(3):
        rng = np.random.default_rng([seed, mode])
        wide = wide_column(rng, mode, 65_530 + int(rng.integers(10, 3000)))
        found = table_of(rng, [wide, random_column(rng, "c")], 40)
        guarded = guarded_by(rng, found, "entropy-l") if seed else []
        asked = Asked(found, 1 + seed, SplitObjective((a_target(rng, found, kind),)), guarded)
        check_same(asked, threads=1 + seed % 2, note=f"seed {seed}")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["one class target", "numbers", "shares", "mixed", "own", "selections", "blend"])
def test_trees_are_equal_with_columns_of_hundreds_of_codes(kind: str) -> None:
    for seed in range(2 if kind == "selections" else 4):
        rng = np.random.default_rng(seed)
        modes = [SplitMode.ORDERED, SplitMode(seed)]
        columns = [wide_column(rng, mode, int(rng.integers(255, 600))) for mode in modes]
        found = table_of(rng, [*columns, random_column(rng, "c", size=4)], 70 if kind == "selections" else 120)
        asked = Asked(found, 3 + seed, KINDS[kind](rng, found), random_guarded(rng, found) if seed % 2 else [])
        check_same(asked, threads=1 + seed % 2, note=f"seed {seed}")


# --- many sums --------------------------------------------------------------------------------------------------


def class_target(rng: Random, found: CodedTable, classes: int) -> ClassTarget:
    """Classes that follow the first column, with some noise."""
    signal = found.codes[0].astype(np.int64) * 7 + rng.integers(0, 5, found.rows)
    return ClassTarget("many", signal % classes, classes)


@pytest.mark.parametrize("classes", [1, 2, 200, 257, 3000])
def test_trees_are_equal_whatever_the_number_of_classes(classes: int) -> None:
    for seed in range(6):
        rng = np.random.default_rng([classes, seed])
        columns = [random_column(rng, "x", size=30, mode=SplitMode(seed % 4)), random_column(rng, "y")]
        found = table_of(rng, columns, 120)
        guarded = random_guarded(rng, found) if seed % 3 == 2 else []
        asked = Asked(found, 2 + seed % 3, SplitObjective((class_target(rng, found, classes),)), guarded)
        check_same(asked, threads=1 + seed % 2, note=f"seed {seed}")


def test_one_class_is_no_target_at_all() -> None:
    """Pure nodes go on by range; candidates are none, so that cuts are medians."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        columns = [random_column(rng, f"c{index}", mode=SplitMode.ORDERED) for index in range(3)]
        found = table_of(rng, columns, 40)
        alone = SplitObjective((ClassTarget("one", np.zeros(40, np.int64), 1),))
        assert same(Asked(found, 3, alone).grown().tree, Asked(found, 3).grown().tree)


def test_trees_are_equal_with_many_targets_of_all_kinds() -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        found = table_of(rng, [random_column(rng, f"c{index}") for index in range(4)], 60)
        shares = rng.dirichlet(np.ones(12), found.rows)
        whole = np.floor(shares * (1 << SHARE_BITS)).astype(np.int64)
        whole[:, 0] += (1 << SHARE_BITS) - whole.sum(axis=1)
        targets: list[Target] = [class_target(rng, found, 200), ShareTarget("shares", whole, 0.5)]
        targets += [a_target(rng, found, kind, f"t{kind}") for kind in ("number", "class", "number", "share", "class")]
        order = rng.permutation(len(targets))
        purpose = SplitObjective(tuple(targets[index] for index in order))
        check_same(Asked(found, 3, purpose, random_guarded(rng, found)), threads=1 + seed % 2, note=f"seed {seed}")


# --- many values, many rows of a person, large counts -----------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_trees_are_equal_with_hundreds_of_sensitive_values(model: str) -> None:
    """More than one byte holds."""
    regions = free = 0
    for seed in range(3):
        rng = np.random.default_rng([seed, 5])
        columns = [random_column(rng, f"c{index}", mode=SplitMode(index), size=9) for index in range(3)]
        found = replace(table_of(rng, columns, 400), entities=None)
        numeric = model in ("squared-error", "variance")
        column, codes = random_sensitive(rng, found, numeric=numeric, size=300)
        own = np.zeros(1)
        if column.numbers is not None and column.scale is not None:
            own = np.repeat(column.scale.restore(column.numbers), column.whole)
        parameters: dict[str, dict[str, Any]] = {
            "distinct-l": {"l": 30},
            "entropy-l": {"l": 20.0},
            "recursive-cl": {"c": 2.0, "l": 12},
            "t-closeness": {"t": 0.6, "distance": "equal"},
            "alpha-k": {"alpha": 0.05},
            "beta-likeness": {"beta": 9.0},
            "delta-disclosure": {"delta": 3.0},
            "squared-error": {"error": float(own.var() * len(own)) / 20},
            "variance": {"variance": float(own.var()) * 0.8},
        }
        made = make_model(column, model, parameters[model])
        asked = Asked(found, 10, KINDS["one class target"](rng, found), [Constraint(column, codes, (made,))])
        regions += check_same(asked, threads=1 + seed % 2, note=f"seed {seed}").regions
        free += Asked(found, 10, asked.purpose).grown().tree.regions
    # No group but the whole table has all values, as delta-disclosure asks.
    assert regions == 3 if model == "delta-disclosure" else regions > 3
    assert regions < free


def test_more_sensitive_values_than_two_bytes_hold_are_guarded() -> None:
    rng = np.random.default_rng(0)
    rows = 80_000
    columns = [random_column(rng, f"c{index}", size=50, mode=SplitMode.ORDERED) for index in range(2)]
    found = replace(table_of(rng, columns, rows), counts=None, entities=None)
    values = rng.permutation(np.concatenate([np.arange(70_000), np.full(10_000, 7)]))
    column, codes = sensitive_column(pl.Series("s", values), np.ones(rows, np.int64))
    models = tuple(
        make_model(column, name, asked) for name, asked in (("distinct-l", {"l": 12}), ("alpha-k", {"alpha": 0.3}))
    )
    assert column.size == 70_000
    asked = Asked(found, 5, SplitObjective((class_target(rng, found, 5),)), [Constraint(column, codes, models)])
    groups = rows_of_regions(asked.grown(threads=2, subtree=500).tree, found)
    assert len(groups) > 100
    assert all(is_allowed(asked, rows) for rows in groups.values())
    free = rows_of_regions(Asked(found, 5, asked.purpose).grown().tree, found)
    assert not all(is_allowed(asked, rows) for rows in free.values()), "the models forbid nothing here"


@pytest.mark.parametrize("model", [*MODELS, "max_confidence"])
def test_trees_are_equal_where_persons_have_many_rows(model: str) -> None:
    for seed in range(8):
        rng = np.random.default_rng([seed, 6])
        columns = [random_column(rng, f"c{index}", mode=SplitMode(index)) for index in range(4)]
        found = replace(table_of(rng, columns, 70), counts=None)
        found = replace(found, entities=rng.integers(0, 7, found.rows).astype(np.uint32))
        kind = ["one class target", "numbers", "selections", "blind"][seed % 4]
        asked = Asked(found, 1 + seed % 4, KINDS[kind](rng, found), guarded_by(rng, found, model))
        check_same(asked, threads=1 + seed % 2, note=f"seed {seed}")


@pytest.mark.parametrize("kind", ["one class target", "class targets", "numbers", "shares", "mixed", "selections"])
def test_trees_are_equal_where_rows_stand_for_millions(kind: str) -> None:
    """Counts beyond the tables of logarithms."""
    for seed in range(8):
        rng = np.random.default_rng([seed, 7])
        found = table_of(rng, [random_column(rng, f"c{index}") for index in range(3)], 50)
        counts = rng.choice([1, 3000, 20_000, 5_000_000], found.rows).astype(np.uint32)
        found = replace(found, counts=counts, entities=None)
        guarded = guarded_by(rng, found, MODELS[seed]) if seed else []
        asked = Asked(found, int(rng.integers(1, 10**6)), KINDS[kind](rng, found), guarded)
        check_same(asked, threads=1 + seed % 2, note=f"seed {seed}")


def test_trees_are_equal_with_masses_of_thirty_two_bits() -> None:
    for seed in range(10):
        rng = np.random.default_rng([seed, 8])
        found = random_table(rng)
        masses = rng.choice([1, 77, 2**31, 2**32 - 1], found.rows)
        target = a_target(rng, found, "class")
        number = random_number_target(rng, found, "n", 1.0, int(masses.sum()))
        purpose = SplitObjective((target, number) if seed % 2 else (target,), masses=masses, unit=2.0**-20)
        check_same(Asked(found, 2, purpose), threads=1 + seed % 2, note=f"seed {seed}")


# --- large tables -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_trees_of_hundreds_of_rows_are_equal(seed: int) -> None:
    rng = np.random.default_rng([seed, 13])
    columns = [random_column(rng, f"c{index}", size=size) for index, size in enumerate((3, 8, 40))]
    found = table_of(rng, columns, 500)
    kind = ["one class target", "numbers", "mixed", "selections", "shares", "first"][seed]
    asked = Asked(found, 12, KINDS[kind](rng, found), guarded_by(rng, found, MODELS[seed]))
    assert check_same(asked, threads=2, subtree=40).regions > 1


@pytest.mark.parametrize("kind", ["one class target", "numbers", "mixed", "shares", "selections", "masses", "product"])
def test_the_tree_of_many_rows_depends_neither_on_threads_nor_on_the_order_of_rows(kind: str) -> None:
    rng = np.random.default_rng(3)
    columns = [random_column(rng, f"c{index}", size=size) for index, size in enumerate((5, 90, 300, 2000))]
    found = table_of(rng, columns, 12_000)
    column, codes = random_sensitive(rng, found, numeric=False, size=6)
    guarded = [Constraint(column, codes, (make_model(column, "entropy-l", {"l": 2.5}),))]
    asked = Asked(found, 20, KINDS[kind](rng, found), guarded)
    growth = asked.grown(threads=1, subtree=8)
    assert growth.tree.regions > 20
    assert all(is_allowed(asked, rows) for rows in rows_of_regions(growth.tree, found).values())
    check_rows(growth, found)
    order = rng.permutation(found.rows)
    again = Asked(
        reordered(found, order), 20, reordered_purpose(asked.purpose, order), reordered_guarded(guarded, order)
    )
    for other in (asked.grown(threads=2, subtree=300), again.grown(threads=3, subtree=5000)):
        assert same(growth.tree, other.tree)


def test_fewer_persons_than_k_stay_together() -> None:
    for seed in range(40):
        rng = np.random.default_rng([seed, 12])
        found = random_table(rng)
        tree = check_same(Asked(found, 10**6, KINDS["anything"](rng, found)), note=f"seed {seed}")
        # Free descents may be left: only one part of each has rows.
        assert len(rows_of_regions(tree, found)) == 1
