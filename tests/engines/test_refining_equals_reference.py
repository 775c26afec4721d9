# SPDX-License-Identifier: Apache-2.0
"""Top-down refinement makes the steps that the plain engine makes, whatever the table, its order and the threads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from guarded import random_guarded, reordered_guarded

from anonfit.algorithms.demands import Requirement
from anonfit.algorithms.refining_columns import ColumnPart, Refined
from anonfit.engines.memory import refining as engine
from anonfit.engines.memory import refining_kernels as grouping
from anonfit.engines.memory.forms import Constraint
from anonfit.tables.schema import CodedTable, SplitMode
from anonfit.testing.reference import refining as plain
from refined_tables import refine
from strategies import random_column, random_table, reordered, table_of

Array = np.ndarray[Any, np.dtype[Any]]
BLOCK = 60


@dataclass(frozen=True)
class Asked:
    """A table, its classes, and how it is to be refined."""

    table: CodedTable
    classes: Array
    requirements: tuple[Requirement, ...]
    options: plain.Options
    weights: Array | None
    constraints: tuple[Constraint, ...]
    start: tuple[tuple[ColumnPart, ...], ...] | None = None

    def refined(self, threads: int = 1, **words: Any) -> Refined:
        options: Any = vars(self.options)
        return refine(
            self.table,
            self.classes,
            self.requirements,
            start=self.start,
            weights=self.weights,
            constraints=self.constraints,
            threads=threads,
            **options,
            **words,
        )

    def plainly(self) -> plain.Plain:
        asked = [(one.columns, one.k) for one in self.requirements]
        start = None if self.start is None else [plainly_parted(parts) for parts in self.start]
        return plain.refine(
            self.table,
            self.classes,
            asked,
            weights=self.weights,
            constraints=self.constraints,
            options=self.options,
            start=start,
        )


def plainly_parted(parts: tuple[ColumnPart, ...]) -> list[plain.Part]:
    """The parts of a column as the plain engine has them: what is suppressed comes first."""
    found = [(tuple(part.codes), -1 if part.node is None else part.node) for part in parts]
    return [found[-1], *found[:-1]] if parts[-1].is_rest else found


def random_classes(rng: np.random.Generator, table: CodedTable) -> Array:
    """A class per row: by chance, or one that a column's codes tell."""
    number = int(rng.choice([1, 2, 2, 2, 3, 3]))
    found = rng.integers(0, number, table.rows)
    if rng.random() < 0.7:
        told = table.codes[int(rng.integers(0, len(table.codes)))].astype(np.int64) // int(rng.integers(1, 4))
        found = np.where(rng.random(table.rows) < 0.7, told % number, found)
    return found


def random_requirements(rng: np.random.Generator, table: CodedTable) -> tuple[Requirement, ...]:
    """One to four quasi-identifiers over all columns, for which the whole table has persons enough."""
    number = len(table.columns)
    whole = len(np.unique(table.entities)) if table.entities is not None else table.rows
    most = max(1, min(5, whole // 6))
    columns = [
        set(rng.permutation(number)[: int(rng.integers(1, number + 1))].tolist()) for _ in range(rng.integers(1, 5))
    ]
    for column in range(number):
        columns[int(rng.integers(0, len(columns)))].add(column)
    return tuple(Requirement(tuple(sorted(one)), int(rng.integers(1, most + 1))) for one in columns)


def some_table(rng: np.random.Generator) -> CodedTable:
    """Any small table, or one of columns of few values, in which more can be refined."""
    if rng.random() < 0.3:
        return random_table(rng)
    columns = [
        random_column(rng, f"c{index}", size=int(rng.integers(2, 8))) for index in range(int(rng.integers(1, 6)))
    ]
    return table_of(rng, columns, int(rng.integers(20, 121)))


def random_asked(rng: np.random.Generator, table: CodedTable | None = None) -> Asked:
    table = some_table(rng) if table is None else table
    return Asked(
        table,
        random_classes(rng, table),
        random_requirements(rng, table),
        plain.Options(
            str(rng.choice(["score", "score", "infogain"])),
            str(rng.choice(["containing", "all"])),
            str(rng.choice(["all", "best_gain"])),
            bool(rng.random() < 0.3),
        ),
        rng.integers(0, 5, table.rows) if rng.random() < 0.2 else None,
        tuple(random_guarded(rng, table)) if rng.random() < 0.3 else (),
    )


def part_of(codes: tuple[int, ...], node: int, *, is_rest: bool = False) -> ColumnPart:
    return ColumnPart(codes if is_rest else range(codes[0], codes[-1] + 1), node if node >= 0 else None, is_rest)


def check(asked: Asked, *, threads: int = 1, note: str = "") -> Refined:
    """Hold the refinements against those of the plain engine, and give them."""
    expected, found = asked.plainly(), asked.refined(threads)
    steps = []
    for step in expected.steps:
        candidate = step.candidate
        shown = candidate.pieces if candidate.value < 0 else candidate.pieces[1:]
        before = part_of(*candidate.part) if candidate.value < 0 else None
        steps.append((candidate.column, before, tuple(part_of(*piece) for piece in shown), step.anonymity))
    assert [(one.column, one.refined, one.into, one.anonymity) for one in found.steps] == steps, note
    for one, other in zip(found.steps, expected.steps, strict=True):
        assert (one.gain, one.loss) == pytest.approx((other.gain, other.loss), rel=1e-9, abs=1e-12), note
    for column, parts, plain_parts in zip(asked.table.columns, found.parts, expected.parts, strict=True):
        if column.mode == SplitMode.SUBSET:
            rest, shown = plain_parts[0], sorted(plain_parts[1:])
            ends = [part_of(*rest, is_rest=True)] if rest[0] else []
            assert list(parts) == [part_of(*one) for one in shown] + ends, note
        else:
            assert list(parts) == [part_of(*one) for one in sorted(plain_parts)], note
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("block", range(5))
def test_steps_of_random_tables_are_equal(block: int) -> None:
    made = 0
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        asked = random_asked(np.random.default_rng(seed))
        made += len(check(asked, threads=1 + seed % 2, note=f"seed {seed}").steps)
    assert made > BLOCK, "the tables are too easy"


@pytest.mark.slow
@pytest.mark.parametrize("block", range(5, 105))
def test_steps_of_thousands_of_random_tables_are_equal(block: int) -> None:
    test_steps_of_random_tables_are_equal(block)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(60))
def test_refining_goes_on_from_any_state(seed: int) -> None:
    rng = np.random.default_rng(60_000 + seed)
    asked = random_asked(rng)
    left = int(rng.integers(1, 5))
    told: list[Any] = []
    reached = asked.refined(stop=lambda: len(told) >= left, progress=told.append)
    again = replace(asked, start=reached.parts, options=random_asked(rng, asked.table).options)
    assert check(again, threads=1 + seed % 2, note=f"seed {seed}").anonymity <= reached.anonymity


@pytest.mark.parametrize("seed", range(20))
def test_tables_that_are_too_large_to_keep_are_counted_in_pieces(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "CELLS", 40)
    check(random_asked(np.random.default_rng(90_000 + seed)), note=f"seed {seed}")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(40))
def test_rows_may_be_found_by_their_codes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "FEW", 1)
    check(random_asked(np.random.default_rng(70_000 + seed)), threads=1 + seed % 2, note=f"seed {seed}")


def test_neither_the_order_of_rows_nor_the_threads_matter() -> None:
    for seed in range(40):
        rng = np.random.default_rng(80_000 + seed)
        columns = [random_column(rng, f"c{index}") for index in range(4)]
        asked = random_asked(rng, table_of(rng, columns, 400))
        order = rng.permutation(asked.table.rows)
        shuffled = replace(
            asked,
            table=reordered(asked.table, order),
            classes=asked.classes[order],
            weights=None if asked.weights is None else asked.weights[order],
            constraints=tuple(reordered_guarded(asked.constraints, order)),
        )
        assert shuffled.refined(3) == asked.refined(1), f"seed {seed}"
