# SPDX-License-Identifier: Apache-2.0
"""Kernels that draw chance as `criteria.chance` does: by the way from the root to a node."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anonfit.engines.memory.layout import Int
from anonfit.engines.memory.scratch import CHANCE
from anonfit.runtime.compiling import inner

__all__ = ["draw", "part_key"]

GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # as in criteria.chance


@inner
def _mixed(word: Any) -> Any:
    word = word + np.uint64(GOLDEN)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(FIRST)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(SECOND)
    return word ^ (word >> np.uint64(31))


@inner
def part_key(key: Int, part: Int) -> Any:
    """The key of a part of a node's split."""
    return np.int64(_mixed(np.uint64(key) ^ np.uint64(part + 1)))


@inner
def draw(key: Int, found: Any) -> None:
    """Fill the row CHANCE of what is found of each column with the numbers of the node of a key."""
    for column in range(found.shape[1]):
        word = _mixed(np.uint64(key) ^ (np.uint64(column + 1) << np.uint64(32)))
        found[CHANCE, column] = -math.log((np.float64(word >> np.uint64(11)) + 0.5) * 2.0**-53)
