# SPDX-License-Identifier: Apache-2.0
"""The compiled loops that every audit of a file needs; they stand alone so that tables without a source need no other.
One gives equal keys equal numbers, for `coding.py`; one finds where numbers in a page of Parquet end, for
`file_bytes.py`."""

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


def _runs_end(data, place, end, width, count):
    """Where the runs end in which Parquet has so many numbers of `width` bits, repeated or packed; -1 where they hold
    anything else: runs of no number, numbers behind the last (packed ones come by eight), bits above a number's.
    """
    while count > 0:
        head, shift = np.int64(0), 0
        while True:
            if place >= end or shift > 28:
                return -1
            byte = np.int64(data[place])
            head |= (byte & 127) << shift
            place, shift = place + 1, shift + 7
            if byte < 128:
                break
        held, size, spare = head >> 1, (width + 7) // 8, 0
        if head & 1:
            held, size, spare = held * 8, held * width, 7
        if (shift > 7 and byte == 0) or held == 0 or held - count > spare or place + size > end:
            return -1
        if not head & 1 and width % 8 and data[place + size - 1] >> (width % 8):
            return -1
        place, count = place + size, count - held
    return place


_BODY = _types.types.Array(_types.uint8, 1, "C", readonly=True)
runs_end: Callable[..., Any] = kernel(_runs_end, _types.int64(_BODY, *[_types.int64] * 4))
