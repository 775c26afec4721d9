# SPDX-License-Identifier: Apache-2.0
"""Rows are put in order by group and then by their keys, whatever the number of threads, groups and words."""

from __future__ import annotations

import numpy as np
import pytest

from anonfit.engines.memory.write import order_rows


@pytest.mark.parametrize("words", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("rows", "count"), [(0, 1), (1, 1), (15, 1), (16, 2), (17, 1), (300, 7), (3_000, 4), (5_000, 900)]
)
def test_rows_are_ordered_as_by_a_stable_sort(rows: int, count: int, words: int) -> None:
    rng = np.random.default_rng(rows + words)
    groups = rng.integers(0, count, rows).astype(np.int32)
    numbers = rng.permutation(rows).astype(np.uint32)
    for width in (1, 3, 2**63):
        keys = rng.integers(0, width, (words, rows), dtype=np.uint64, endpoint=True)
        slow = np.lexsort((*(word[numbers] for word in keys[::-1]), groups))
        for threads in (1, 2, 5):
            order, edges = order_rows(groups, np.arange(rows), numbers, count, keys, threads=threads)
            assert order.tolist() == numbers[slow].tolist()
            assert edges.tolist() == [int((groups < group).sum()) for group in range(count)] + [rows]


def test_empty_groups_have_no_rows() -> None:
    groups = np.array([5, 2, 5], np.int32)
    order, edges = order_rows(groups, np.arange(3), np.arange(3, dtype=np.uint32), 7, np.array([[2, 0, 1]], np.uint64))
    assert order.tolist() == [1, 2, 0]
    assert edges.tolist() == [0, 0, 0, 1, 1, 1, 3, 3]


@pytest.mark.parametrize("length", [1, 2, 50])
def test_rows_that_stand_in_runs_of_a_group_are_ordered_alike(length: int) -> None:
    rng = np.random.default_rng(length)
    lengths = rng.integers(0, length, 60, endpoint=True)
    rows = int(lengths.sum())
    of_run = rng.integers(0, 9, 60).astype(np.int32)
    groups, numbers = np.repeat(of_run, lengths), rng.permutation(rows).astype(np.uint32)
    keys = rng.integers(0, 4, (2, rows), dtype=np.uint64)
    single = order_rows(groups, np.arange(rows), numbers, 9, keys)
    in_runs = order_rows(of_run, np.cumsum(lengths) - lengths, numbers, 9, keys)
    assert all(one.tolist() == other.tolist() for one, other in zip(single, in_runs, strict=True))
