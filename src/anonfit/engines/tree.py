# SPDX-License-Identifier: Apache-2.0
"""The tree of splits that tiles the domain, as flat arrays, and sets of codes as bits. Engines grow a tree over codes;
a recoding keeps one over cells, and its boxes are made of the bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEAF = -1


@dataclass(frozen=True, slots=True)
class Tree:
    """Nodes in breadth-first order; the children of a node stand together, in the order of their runs.

    A split divides the codes its node holds of `column` into runs: child i takes the codes from its `start` up to, not
    including, the next child's. Where a node has a set (`set_of` >= 0), it has two children: the first takes the
    codes of `sets[set_of]`, the second all others. `before` is, for a child of an ordered split, the highest code of
    its node's rows below `start` (-1 elsewhere): the cut lies somewhere above `before` and not above `start`.
    """

    column: NDArray[np.int32]  # (node,) LEAF for a region
    children: NDArray[np.int32]  # (node,)
    start: NDArray[np.int32]  # (node,)
    before: NDArray[np.int32]  # (node,)
    set_of: NDArray[np.int32]  # (node,)
    sets: tuple[NDArray[np.int32], ...] = ()

    @property
    def first_child(self) -> NDArray[np.int32]:
        """The node number of each node's first child (of no meaning for a region)."""
        before = np.cumsum(self.children, dtype=np.int64) - self.children
        return (before + 1).astype(np.int32)

    @property
    def region_of(self) -> NDArray[np.int32]:
        """The region number of each node that is a region, -1 for the others: regions are numbered in node order."""
        is_region = self.column == LEAF
        numbers = np.cumsum(is_region, dtype=np.int64) - 1
        return np.where(is_region, numbers, -1).astype(np.int32)

    @property
    def regions(self) -> int:
        """How many regions there are, empty ones included."""
        return int(np.count_nonzero(self.column == LEAF))

    @classmethod
    def single(cls) -> Tree:
        """One region that holds everything."""
        unset = np.array([-1], dtype=np.int32)
        return cls(unset, np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int32), unset, unset)


Bits = NDArray[np.uint8]

BLOCK = 1 << 22
"""Codes that are unpacked at once."""

_SIGNS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
_LOWEST = _SIGNS.argmax(axis=1)  # (byte,) the place of its first code
_HIGHEST = 7 - _SIGNS[:, ::-1].argmax(axis=1)


def blocks_of(rows: int, size: int) -> list[slice]:
    """Slices of rows that are few enough to be unpacked at once."""
    step = max(1, BLOCK // max(1, size))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def bits_of_pairs(sets: NDArray[np.integer], codes: NDArray[np.integer], rows: int, size: int) -> Bits:
    """The bits of `rows` sets of a column of `size` codes, from pairs of set and code in the order of the sets."""
    bits = np.zeros((rows, -(-size // 8)), np.uint8)
    for block in blocks_of(rows, size):
        first, last = np.searchsorted(sets, [block.start, block.stop])
        held = np.zeros((block.stop - block.start, size), np.bool_)
        held[sets[first:last] - block.start, codes[first:last]] = True
        bits[block] = np.packbits(held, axis=1)
    return bits


def bits_of_runs(first: NDArray[np.integer], last: NDArray[np.integer], size: int) -> Bits:
    """The bits of runs of codes, both ends included and within the column."""
    bits = np.empty((len(first), -(-size // 8)), np.uint8)
    byte = np.arange(0, 8 * bits.shape[1], 8)
    for block in blocks_of(len(first), size):
        below = np.clip(first[block, None] - byte, 0, 8)  # codes of the byte that come before the run
        above = np.clip(byte + 7 - last[block, None], 0, 8)
        bits[block] = (0xFF >> below) & (0xFF << above) & 0xFF
    return bits


def set_bits(tree: Tree, column: int, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Bits]:
    """The nodes that divide a column by sets, which of the column's sets each has, and the bits of these sets."""
    nodes = np.flatnonzero((tree.column == column) & (tree.set_of >= 0))
    numbers, which = np.unique(tree.set_of[nodes], return_inverse=True)
    sets = [tree.sets[number] for number in numbers.tolist()]
    lengths = np.fromiter(map(len, sets), np.int64, len(sets))
    codes = np.concatenate(sets) if sets else np.zeros(0, np.int32)
    return nodes, which, bits_of_pairs(np.repeat(np.arange(len(sets)), lengths), codes, len(sets), size)


def bounds_of(bits: Bits) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The lowest and highest code of each set, and how many it has; an empty one reaches from 0 to -1."""
    rows = np.arange(len(bits))
    is_used = bits != 0
    low = is_used.argmax(axis=1)
    high = bits.shape[1] - 1 - is_used[:, ::-1].argmax(axis=1)
    counts = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
    first = np.where(counts > 0, 8 * low + _LOWEST[bits[rows, low]], 0)
    last = np.where(counts > 0, 8 * high + _HIGHEST[bits[rows, high]], -1)
    return first, last, counts


def unpacked(bits: Bits, size: int) -> NDArray[np.bool_]:
    """(set, code) whether the set holds the code."""
    return np.unpackbits(bits, axis=1, count=size).view(np.bool_)


def different_sets(bits: Bits) -> tuple[Bits, NDArray[np.int64]]:
    """The different sets, and which of them each row is."""
    rows = np.ascontiguousarray(bits).view(np.dtype((np.void, bits.shape[1]))).ravel()
    _, first, which = np.unique(rows, return_index=True, return_inverse=True)
    return bits[first], which
