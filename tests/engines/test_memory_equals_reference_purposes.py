# SPDX-License-Identifier: Apache-2.0
"""The memory engine grows the plain engine's tree for every criterion under every privacy model, in any order of rows."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from engine_pairs import Asked, check_rows, check_same, is_allowed, rows_of_regions, same
from guarded import MODELS, guarded_by, random_guarded, reordered_guarded
from hypothesis import given
from hypothesis import strategies as st
from purpose_kinds import KINDS
from purposes import reordered_purpose

from anonfit.tables.schema import CodedTable
from strategies import coded_tables, persons, random_table, reordered, tries

TABLES = 24
MANY = 200


def asked_of(kind: str, model: str, seed: int) -> Asked:
    """A random table with a purpose of a kind, its sensitive columns guarded by a model."""
    rng = np.random.default_rng([zlib.crc32(f"{kind}, {model}".encode()), seed])
    table = random_table(rng)
    guarded = [] if model == "k" else guarded_by(rng, table, model)
    return Asked(table, int(rng.integers(1, 6)), KINDS[kind](rng, table), guarded)


def check_tables(kind: str, model: str, tables: int) -> None:
    """Many random tables; they must not be too easy."""
    regions = 0
    for seed in range(tables):
        asked = asked_of(kind, model, seed)
        regions += check_same(asked, threads=1 + seed % 2, note=f"{kind}, {model}, seed {seed}").regions
    assert regions > 1.5 * tables, "the tables are too easy"


@pytest.mark.sampled(23)
@pytest.mark.parametrize("model", ["k", *MODELS, "max_confidence"])
@pytest.mark.parametrize("kind", KINDS)
def test_trees_are_equal(kind: str, model: str) -> None:
    check_tables(kind, model, TABLES)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["k", *MODELS, "max_confidence"])
@pytest.mark.parametrize("kind", KINDS)
def test_trees_of_many_more_tables_are_equal(kind: str, model: str) -> None:
    check_tables(kind, model, MANY)


@pytest.mark.parametrize("model", [*MODELS, "max_confidence"])
def test_every_model_forbids_splits_of_these_tables(model: str) -> None:
    """If a model allowed everything, the trees above would say nothing about it."""
    fewer = 0
    for seed in range(40):
        asked = asked_of("anything", model, seed)
        free = Asked(asked.table, asked.k, asked.purpose)
        fewer += asked.grown().tree.regions < free.grown().tree.regions
    assert fewer >= 5


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "blind"])
def test_every_purpose_changes_trees_of_these_tables(kind: str) -> None:
    others = 0
    for seed in range(30):
        asked = asked_of(kind, "k", seed)
        others += not same(asked.grown().tree, Asked(asked.table, asked.k).grown().tree)
    assert others >= 10


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", KINDS)
def test_the_tree_depends_neither_on_the_order_of_rows_nor_on_threads(kind: str) -> None:
    for seed in range(25):
        rng = np.random.default_rng([zlib.crc32(kind.encode()), 1, seed])
        table = random_table(rng)
        asked = Asked(table, int(rng.integers(1, 6)), KINDS[kind](rng, table), random_guarded(rng, table))
        order = rng.permutation(table.rows)
        again = Asked(
            reordered(table, order),
            asked.k,
            reordered_purpose(asked.purpose, order),
            reordered_guarded(asked.constraints, order),
        )
        tree = asked.grown(threads=1, subtree=1 << 16).tree
        for other in (again.grown(threads=2, subtree=3), asked.grown(threads=3, subtree=1), again.grown(threads=1)):
            assert same(tree, other.tree), f"{kind}, seed {seed}: {asked}"


@given(coded_tables(), st.integers(1, 5), st.sampled_from(sorted(KINDS)), st.booleans(), st.integers(0, 2**32 - 1))
@tries(150)
def test_trees_are_equal_on_tables_that_shrink(table: CodedTable, k: int, kind: str, guard: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    purpose = KINDS[kind](rng, table)
    check_same(Asked(table, k, purpose, random_guarded(rng, table) if guard else ()), threads=1 + seed % 2)


@pytest.mark.parametrize("kind", KINDS)
def test_regions_hold_what_is_asked_and_the_packed_rows_lie_region_by_region(kind: str) -> None:
    checked = 0
    for seed in range(25):
        asked = asked_of(kind, MODELS[seed % len(MODELS)], 1000 + seed)
        growth = asked.grown(threads=1 + seed % 2, subtree=3)
        check_rows(growth, asked.table)
        if persons(asked.table, range(asked.table.rows)) >= asked.k:
            groups = rows_of_regions(growth.tree, asked.table).values()
            assert all(is_allowed(asked, rows) for rows in groups), f"{kind}, seed {seed}: {asked}"
            checked += len(groups)
    assert checked > 40
