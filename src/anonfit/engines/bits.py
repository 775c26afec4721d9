# SPDX-License-Identifier: Apache-2.0
"""Sets of codes as bits, one row per set and eight codes per byte, the lowest code first. Routing looks codes up in
them, and a recoding's boxes are made of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.tree import Tree

__all__ = [
    "Bits",
    "bits_of_pairs",
    "bits_of_runs",
    "blocks_of",
    "bounds_of",
    "different_sets",
    "set_bits",
    "unpacked",
]

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
    """The bits of `rows` sets of a column of `size` codes, from pairs of a set's number and a code of it, in the order
    of the sets.
    """
    found = np.zeros((rows, -(-size // 8)), np.uint8)
    for block in blocks_of(rows, size):
        first, last = np.searchsorted(sets, [block.start, block.stop])
        held = np.zeros((block.stop - block.start, size), np.bool_)
        held[sets[first:last] - block.start, codes[first:last]] = True
        found[block] = np.packbits(held, axis=1)
    return found


def bits_of_runs(first: NDArray[np.integer], last: NDArray[np.integer], size: int) -> Bits:
    """The bits of runs of codes, both ends included and within the column."""
    found = np.empty((len(first), -(-size // 8)), np.uint8)
    byte = np.arange(0, 8 * found.shape[1], 8)
    for block in blocks_of(len(first), size):
        below = np.clip(first[block, None] - byte, 0, 8)  # codes of the byte that come before the run
        above = np.clip(byte + 7 - last[block, None], 0, 8)
        found[block] = (0xFF >> below) & (0xFF << above) & 0xFF
    return found


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
