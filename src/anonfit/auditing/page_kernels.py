# SPDX-License-Identifier: Apache-2.0
"""Compiled loops over the numbers in a page of Parquet (`parquet_bytes.py`)."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from anonfit.runtime.compiling import inner


@inner
def _note_packed(data, place, width, done, after, last):
    """Note the last places of packed numbers, of which these are those from `done` to before `after`."""
    bits, held = np.uint64(0), 0
    step, mask, most = np.uint64(width), (np.uint64(1) << np.uint64(width)) - np.uint64(1), np.uint64(len(last))
    for i in range(done, after):
        while held < width:
            bits |= np.uint64(data[place]) << np.uint64(held)
            place, held = place + 1, held + 8
        number = bits & mask
        bits, held = bits >> step, held - width
        if number >= most:
            return False
        last[number] = i
    return True


@inner
def _note_repeated(data, place, width, after, last):
    """Note the last place of a number that is repeated up to place `after`."""
    number = 0
    for i in range((width + 7) // 8):
        number |= int(data[place + i]) << (8 * i)
    if number >> width or number >= len(last):
        return False
    last[number] = after - 1
    return True


def numbers_end(data, place, end, width, count, last):
    """Where the runs end in which Parquet has so many numbers of `width` bits, repeated or packed; -1 where they hold
    anything else: runs of no number, numbers behind the last (packed ones come by eight), bits above a number's, or
    numbers from the length of `last` on. This gets the last place of each among all.
    """
    done, is_good = np.int64(0), width <= 32 and end <= len(data)
    while done < count and is_good:
        head, shift, byte = np.int64(0), 0, 128
        while byte >= 128:
            if place >= end or shift > 28:
                return -1
            byte = int(data[place])
            head |= (byte & 127) << shift
            place, shift = place + 1, shift + 7
        held, size, spare = head >> 1, (width + 7) // 8, 0
        if head & 1:
            held, size, spare = held * 8, held * width, 7
        after = done + held
        if (shift > 7 and byte == 0) or held == 0 or after - count > spare or place + size > end:
            return -1
        if head & 1:
            is_good = _note_packed(data, place, width, done, min(after, count), last)
        else:
            is_good = _note_repeated(data, place, width, after, last)
        place, done = place + size, after
    return place if is_good else -1
