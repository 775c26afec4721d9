# SPDX-License-Identifier: Apache-2.0
"""What many small decision trees add up to, for many rows. A row is not sent down a tree: each of its codes rules out
leaves, and of those that all codes leave the first is the row's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.runtime.compiling import kernel

MOST_LEAVES = 16
ALL_LEAVES = np.uint16(0xFFFF)
LANES = 4
"""Trees whose leaves, a bit each, are looked up together."""
_BLOCK = 2048  # rows whose sums stay near while trees pass
_MOST_ENTRIES = 1024  # of features that are looked up together
_BITS = np.uint64(0xFFFF)
_HASH = 0x09AF  # times a power of two below 2**16, the upper four of 16 bits differ


@kernel
def _add_leaves(entries: Any, tables: Any, leaves: Any, sums: Any) -> None:
    """Add to each row what its leaves say, tree by tree. entries (group, row), tables (four trees, entry), leaves (four
    trees, tree, hashed leaf).
    """
    groups, rows = entries.shape
    for start in range(0, rows, _BLOCK):
        for four in range(tables.shape[0]):
            for row in range(start, min(start + _BLOCK, rows)):
                left = tables[four, np.uint64(entries[0, row])]
                for group in range(1, groups):
                    left &= tables[four, np.uint64(entries[group, row])]
                total = sums[row]
                for lane in range(LANES):
                    own = left & _BITS
                    first = own & (~own + np.uint64(1))
                    total += leaves[four, lane, (first * np.uint64(_HASH) & _BITS) >> np.uint64(12)]
                    left >>= np.uint64(16)
                sums[row] = total


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of trees: the column it is of, the bin of each code, and the leaves that each bin leaves in each tree,
    a bit each, the first leaf the lowest.
    """

    column: int
    bins: NDArray[np.int64]  # (code,)
    left: NDArray[np.uint16]  # (tree, bin)


@dataclass(frozen=True, slots=True)
class BoostedTrees:
    """Trees of some outputs, each of which starts at a number. Features that have few bins are looked up together."""

    places: tuple[tuple[tuple[int, NDArray[np.uint32]], ...], ...]  # by group: columns, what each code adds to an entry
    tables: NDArray[np.uint64]  # (output, four trees, entry)
    leaves: NDArray[np.float64]  # (output, four trees, tree, hashed leaf)
    start: NDArray[np.float64]  # (output,)

    def sums(self, codes: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        """What the trees of each output add up to, in their order. # (row, output)"""
        rows = len(codes[0])
        entries = np.zeros((len(self.places), rows), np.uint32)
        for own, group in zip(entries, self.places, strict=True):
            for column, added in group:
                own += added[codes[column]]
        sums = np.repeat(self.start[:, None], rows, axis=1)
        for output, own_sums in enumerate(sums):
            _add_leaves(entries, self.tables[output], self.leaves[output], own_sums)
        return sums.T


def make_trees(features: Sequence[Feature], leaves: NDArray[np.float64], start: NDArray[np.float64]) -> BoostedTrees:
    """Trees by what features leave of them; leaves (tree, leaf) stand from left to right, the trees of one output, one
    of `start`, after those of another.
    """
    outputs, trees = len(start), len(leaves) // len(start)
    padded = -(-trees // LANES) * LANES
    hashed = np.zeros((outputs, padded, MOST_LEAVES))
    order = (1 << np.arange(MOST_LEAVES)) * _HASH % (1 << 16) >> 12
    hashed[:, :trees, order] = leaves.reshape(outputs, trees, MOST_LEAVES)
    places, tables, begin = [], [], 0
    for group in _groups(features):
        table, size = np.full((len(leaves), 1), _BITS), 1
        added: dict[int, NDArray[np.uint32]] = {}
        for feature in group:
            own = feature.bins * size + (begin if size == 1 else 0)
            added[feature.column] = added.get(feature.column, np.uint32(0)) + own.astype(np.uint32)
            table = (feature.left[:, :, None] & table[:, None, :]).reshape(len(leaves), -1)
            size = table.shape[1]
        places.append(tuple(added.items()))
        tables.append(table)
        begin += size
    entries = np.full((outputs, padded, begin), _BITS)
    entries[:, :trees] = np.concatenate(tables, axis=1).reshape(outputs, trees, begin)
    entries = entries.reshape(outputs, -1, LANES, begin) << (16 * np.arange(LANES, dtype=np.uint64))[:, None]
    four = np.bitwise_or.reduce(entries, axis=2)
    return BoostedTrees(tuple(places), four, hashed.reshape(outputs, -1, LANES, MOST_LEAVES), start)


def _groups(features: Sequence[Feature]) -> list[list[Feature]]:
    """Features that are looked up together: their bins make not too many combinations."""
    groups: list[tuple[int, list[Feature]]] = []
    for feature in sorted(features, key=lambda each: -each.left.shape[1]):
        bins = feature.left.shape[1]
        with_room = next((place for place, (size, _) in enumerate(groups) if size * bins <= _MOST_ENTRIES), None)
        if with_room is None:
            groups.append((bins, [feature]))
        else:
            groups[with_room] = (groups[with_room][0] * bins, [*groups[with_room][1], feature])
    return [members for _, members in groups]
