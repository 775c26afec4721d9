# SPDX-License-Identifier: Apache-2.0
"""Structures that kernels share: fields are read and written in place, and nobody's reference is lost or kept."""

from __future__ import annotations

import gc
import sys
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from anonfit.runtime.compiling import shared


class Fields(NamedTuple):
    numbers: NDArray[np.int64]
    count: int
    table: NDArray[np.float64]
    cube: NDArray[np.uint8]


def make() -> Fields:
    return Fields(
        np.arange(5),
        -7,
        np.arange(6.0).reshape(2, 3),
        np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
    )


@numba.njit
def total(fields: Any) -> Any:
    found = 0.0
    for number in fields.numbers:
        found += number
    for row in range(fields.table.shape[0]):
        for column in range(fields.table.shape[1]):
            found += fields.table[row, column]
    return found + fields.count + fields.cube[1, 2, 3]


@numba.njit
def write(fields: Any, place: int) -> None:
    numbers = fields.numbers
    numbers[place] = fields.count
    fields.table[1] = 9.0
    view = fields.cube[1, 2]
    view[0] = 1


def test_a_kernel_reads_every_kind_of_field() -> None:
    assert total(shared(make())) == 10 + 15 - 7 + 23


def test_a_kernel_writes_into_the_arrays_themselves() -> None:
    fields = make()
    write(shared(fields), 2)
    assert fields.numbers.tolist() == [0, 1, -7, 3, 4]
    assert fields.table[1].tolist() == [9.0, 9.0, 9.0]
    assert fields.cube[1, 2].tolist() == [1, 21, 22, 23]


def test_kernels_change_no_count_of_references() -> None:
    fields = make()
    given = shared(fields)
    total(given)
    before = [sys.getrefcount(value) for value in fields]
    for _ in range(1000):
        total(given)
        write(given, 1)
    assert [sys.getrefcount(value) for value in fields] == before


def test_a_structure_keeps_its_arrays_alive() -> None:
    given = shared(make())
    gc.collect()
    assert total(given) == 41


def test_structures_of_other_shapes_are_compiled_once() -> None:
    total(shared(make()))
    compiled = len(total.signatures)
    total(shared(make()._replace(numbers=np.zeros(0, np.int64), table=np.zeros((0, 3)))))
    assert len(total.signatures) == compiled


def test_an_array_that_is_not_in_one_piece_is_refused() -> None:
    with pytest.raises(AssertionError, match="numbers"):
        shared(make()._replace(numbers=np.arange(10)[::2]))
