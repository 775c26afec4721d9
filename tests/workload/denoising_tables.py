# SPDX-License-Identifier: Apache-2.0
"""Hand-made coded tables for the tests of denoising."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.tables.schema import CodedColumn, SplitMode
from anonfit.workload.denoising import fit_numbers, fit_shares
from anonfit.workload.denoising_models import Examples, make_examples

Table = tuple[list[CodedColumn], list[NDArray[Any]]]


def column(
    codes: Any, *, mode: SplitMode = SplitMode.ORDERED, size: int | None = None, missing: bool = False
) -> tuple[CodedColumn, NDArray[Any]]:
    found = np.asarray(codes, dtype=np.uint16)
    size = size or int(found.max()) + 1
    return CodedColumn("x", size, mode, missing, np.arange(size, dtype=np.float64) ** 1.5), found


def table(*columns: tuple[CodedColumn, NDArray[Any]]) -> Table:
    return [first for first, _ in columns], [second for _, second in columns]


def mixed(rng: np.random.Generator, rows: int, *, wide: bool = False) -> Table:
    """Few values, so that many rows are alike; a missing code; all kinds of columns."""
    columns = [
        column(rng.integers(0, 6, rows), size=6, missing=True),
        column(rng.integers(0, 4, rows), mode=SplitMode.SUBSET, size=4, missing=True),
        column(rng.integers(0, 3, rows), mode=SplitMode.MULTIWAY, size=3),
    ]
    if wide:
        columns.append(column(rng.permutation(np.arange(rows) % 300), mode=SplitMode.SUBSET, size=300, missing=True))
    return table(*columns)


def ids(rows: int, rng: np.random.Generator) -> tuple[CodedColumn, NDArray[Any]]:
    return column(rng.permutation(rows), size=rows)


def taken(found: Table, rows: NDArray[np.int64]) -> Table:
    return found[0], [codes[rows] for codes in found[1]]


def log_loss(classes: NDArray[np.int64], shares: NDArray[np.float64]) -> float:
    return float(-np.log(shares[np.arange(len(classes)), classes]).mean())


def r_squared(numbers: NDArray[np.float64], found: NDArray[np.float64]) -> float:
    return float(1 - ((numbers - found) ** 2).mean() / numbers.var())


def examples(people: Table, target: NDArray[Any], weights: NDArray[Any] | None = None) -> Examples:
    """Every row as an example."""
    masses = np.ones(len(target), np.int64) if weights is None else weights.astype(np.int64)
    return make_examples(people[0], people[1], target, np.ones(len(target), np.int64), masses)


def expected_shares(
    columns: list[CodedColumn],
    codes: list[NDArray[Any]],
    classes: NDArray[np.int64],
    width: int,
    *,
    weights: NDArray[Any] | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> NDArray[np.float64]:
    """What is expected of the rows that are learned from."""
    learned = examples((columns, codes), classes, weights)
    fitted = fit_shares(columns, learned, width, seed=seed, threads=threads)
    return fitted(codes, len(classes), threads)


def expected_numbers(
    columns: list[CodedColumn],
    codes: list[NDArray[Any]],
    numbers: NDArray[np.float64],
    *,
    weights: NDArray[Any] | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> NDArray[np.float64]:
    """The same of numbers."""
    learned = examples((columns, codes), numbers, weights)
    return fit_numbers(columns, learned, seed=seed, threads=threads)(codes, len(numbers), threads)[:, 0]
