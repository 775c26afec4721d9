# SPDX-License-Identifier: Apache-2.0
"""Chance that every engine draws alike: it depends on a seed and on the way from the root to a node, never on the order
in which nodes are visited.

Where columns are to be drawn with probabilities in proportion to some merits, each merit is divided by an exponential
number and the largest is taken. That draws as asked, and, of what is left when some are taken out, as asked again.
"""

from __future__ import annotations

import math

__all__ = ["child_key", "exponential", "root_key"]

WORD = (1 << 64) - 1
GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def _mixed(word: int) -> int:
    """A word of 64 bits in which each bit depends on all of another (SplitMix64)."""
    word = (word + GOLDEN) & WORD
    word = ((word ^ word >> 30) * FIRST) & WORD
    word = ((word ^ word >> 27) * SECOND) & WORD
    return word ^ word >> 31


def root_key(seed: int) -> int:
    """The key of the root."""
    return _mixed(seed & WORD)


def child_key(key: int, part: int) -> int:
    """The key of a part of a node's split, by its number."""
    return _mixed(key ^ part + 1)


def exponential(key: int, column: int) -> float:
    """The number of a column at a node: above 0, exponentially distributed with mean 1."""
    word = _mixed(key ^ (column + 1 << 32))
    return -math.log(((word >> 11) + 0.5) * 2.0**-53)
