# SPDX-License-Identifier: Apache-2.0
"""Sets of codes as bits, against sets of numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonfit.engines import tree as module
from anonfit.engines.tree import (
    Tree,
    bits_of_pairs,
    bits_of_runs,
    blocks_of,
    bounds_of,
    different_sets,
    set_bits,
    unpacked,
)
from strategies import tries

SIZES = st.integers(1, 20) | st.sampled_from([31, 32, 33, 255, 256, 257, 1000])


@st.composite
def many_sets(draw: st.DrawFn) -> tuple[list[set[int]], int]:
    size = draw(SIZES)
    return draw(st.lists(st.sets(st.integers(0, size - 1)), max_size=6)), size


def packed(sets: list[set[int]], size: int) -> module.Bits:
    pairs = [(number, code) for number, codes in enumerate(sets) for code in codes]
    numbers, codes = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    return bits_of_pairs(numbers, codes, len(sets), size)


def members(bits: module.Bits, size: int) -> list[set[int]]:
    return [set(np.flatnonzero(row).tolist()) for row in unpacked(bits, size)]


@given(many_sets())
@tries(200)
def test_sets_come_back_from_their_bits(found: tuple[list[set[int]], int]) -> None:
    sets, size = found
    bits = packed(sets, size)
    assert bits.shape == (len(sets), -(-size // 8))
    assert members(bits, size) == sets


@given(many_sets(), st.integers(1, 40))
@tries(100)
def test_blocks_change_nothing(found: tuple[list[set[int]], int], block: int) -> None:
    sets, size = found
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)
        assert members(packed(sets, size), size) == sets
        assert [row for part in blocks_of(len(sets), size) for row in range(part.start, part.stop)] == list(
            range(len(sets))
        )


@given(SIZES, st.data())
@tries(200)
def test_runs_are_the_codes_between_their_ends(size: int, data: st.DataObject) -> None:
    codes = st.integers(0, size - 1)
    runs = data.draw(st.lists(st.tuples(codes, codes), max_size=5))
    first, last = (np.array([run[side] for run in runs], np.int64) for side in (0, 1))
    assert members(bits_of_runs(first, last, size), size) == [set(range(low, high + 1)) for low, high in runs]


@given(many_sets())
@tries(200)
def test_bounds_are_the_lowest_and_the_highest_code(found: tuple[list[set[int]], int]) -> None:
    sets, size = found
    first, last, counts = bounds_of(packed(sets, size))
    assert first.tolist() == [min(codes, default=0) for codes in sets]
    assert last.tolist() == [max(codes, default=-1) for codes in sets]
    assert counts.tolist() == [len(codes) for codes in sets]


@given(many_sets())
@tries(100)
def test_every_set_is_one_of_the_different_ones(found: tuple[list[set[int]], int]) -> None:
    sets, size = found
    different, which = different_sets(packed(sets, size))
    assert [members(different, size)[place] for place in which.tolist()] == sets
    assert len(different) == len({frozenset(codes) for codes in sets})


def test_the_sets_of_a_column_are_those_its_nodes_are_divided_by() -> None:
    # Column 1 is divided by the sets 2 and 0, the second of them twice; column 0 by set 1.
    tree = Tree(
        column=np.array([1, 0, 1, 1, -1], np.int32),
        children=np.array([2, 2, 2, 2, 0], np.int32),
        start=np.zeros(5, np.int32),
        before=np.full(5, -1, np.int32),
        set_of=np.array([2, 1, 0, 0, -1], np.int32),
        sets=tuple(np.array(codes, np.int32) for codes in ([9, 3], [1], [0, 0, 8])),
    )
    nodes, which, bits = set_bits(tree, 1, 10)
    assert nodes.tolist() == [0, 2, 3]
    assert [members(bits, 10)[place] for place in which.tolist()] == [{0, 8}, {3, 9}, {3, 9}]
    assert set_bits(tree, 2, 10)[0].tolist() == []
