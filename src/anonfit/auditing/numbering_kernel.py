# SPDX-License-Identifier: Apache-2.0
"""The compiled loop that gives equal keys equal numbers. Called by `coding.py` only; it stands alone so that tables
without a source need no other."""

# mypy: allow-untyped-defs

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from anonfit.runtime.compiling import kernel


def _number(keys, codes, slots, first):
    """Number different keys 1, 2, … as they appear, and note the first row of each; returns how many there are, or -1
    if `first` has no room for so many. `slots` is a table of twice that room, a power of two, all 0.
    """
    count, mask, one = 0, np.uint64(len(slots) - 1), np.uint64(1)
    for row in range(len(keys)):
        key = keys[row]
        slot = ((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
        while slots[slot] != 0 and keys[first[slots[slot] - one]] != key:
            slot = (slot + one) & mask
        if slots[slot] == 0:
            if count == len(first):
                return -1
            first[count] = row
            count += 1
            slots[slot] = count
        codes[row] = slots[slot]
    return count


_types: Any = numba
_KEYS = _types.types.Array(_types.uint64, 1, "C", readonly=True)  # polars lends its memory, and nobody may write there
_SIGNATURE = _types.int64(_KEYS, _types.int64[::1], _types.uint32[::1], _types.int64[::1])
number: Callable[..., Any] = kernel(_number, _SIGNATURE)
