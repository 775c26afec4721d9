# SPDX-License-Identifier: Apache-2.0
"""Kernels that move rows: a node's own rows to its sons, and the runs of rows that are spans to the spans they become.

Rows are listed in an order in which the rows of a node, or of a span, stand together. The row after the last one of the
span that begins at a place is `ends[place]`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.runtime.compiling import inner, kernel

__all__ = ["at", "n_log_n", "part_rows", "part_spans"]

at: Any = np.uint64
"""Marks an index of a hot loop: of an unsigned one the compiler knows that it does not count from the end."""


@inner
def n_log_n(logs: Any, number: Any) -> Any:
    """n log n, from a table as far as that goes."""
    if number < logs.shape[0]:
        return logs[at(number)]
    return number * np.log2(number)


@inner
def _son_of(starts: Any, code: Any) -> Any:
    """The last son that starts at or below a code."""
    low, high = np.int64(0), np.int64(starts.shape[0] - 1)
    while low < high:
        middle = (low + high + 1) >> 1
        if starts[at(middle)] <= code:
            low = middle
        else:
            high = middle - 1
    return low


@inner
def _part(codes: Any, starts: Any, order: Any, first: Any, stop: Any, buffer: Any, edges: Any) -> None:
    """Bring the rows of a run into the order of their sons, else as they were; edges: (son + 1,)"""
    for son in range(edges.shape[0]):
        edges[son] = 0
    for place in range(first, stop):
        row = order[at(place)]
        buffer[at(place)] = row
        edges[at(_son_of(starts, codes[at(row)]) + 1)] += 1
    edges[0] = first
    for son in range(1, edges.shape[0]):
        edges[son] += edges[son - 1]
    for place in range(first, stop):
        row = buffer[at(place)]
        son = _son_of(starts, codes[at(row)])
        order[at(edges[at(son)])] = row
        edges[at(son)] += 1
    for son in range(edges.shape[0] - 1, 0, -1):
        edges[son] = edges[son - 1]
    edges[0] = first


@kernel
def part_rows(
    codes: Any,
    starts: Any,
    order: Any,
    first: Any,
    stop: Any,
    buffer: Any,
    edges: Any,
    classes: Any,
    persons: Any,
    counts: Any,
) -> None:
    """Part a node's rows among its sons and count the persons of their classes; no persons: one a row.

    edges: (son + 1,); counts: (son, class)
    """
    _part(codes, starts, order, first, stop, buffer, edges)
    if persons.shape[0] > 0:
        for son in range(edges.shape[0] - 1):
            for place in range(edges[son], edges[son + 1]):
                row = at(order[at(place)])
                counts[at(son), at(classes[row])] += persons[row]
        return
    for son in range(edges.shape[0] - 1):
        for place in range(edges[son], edges[son + 1]):
            counts[at(son), at(classes[at(order[at(place)])])] += 1


@kernel
def part_spans(codes: Any, starts: Any, order: Any, ends: Any, segments: Any, buffer: Any, pieces: Any) -> Any:
    """Part every span of some segments among sons; how many pieces that gave, and spans there are more.

    pieces: (fact, piece) son, first place, place after the last; a piece goes on where the one before of its son ended.
    """
    sons = starts.shape[0]
    edges = np.empty(sons + 1, np.int64)
    last = np.full(sons, -1, np.int64)
    used, more = np.int64(0), np.int64(0)
    for segment in range(segments.shape[0]):
        place = segments[segment, 0]
        while place < segments[segment, 1]:
            stop = np.int64(ends[at(place)])
            _part(codes, starts, order, place, stop, buffer, edges)
            more -= 1
            for son in range(sons):
                if edges[son + 1] > edges[son]:
                    more += 1
                    ends[at(edges[son])] = edges[son + 1]
                    if last[son] >= 0 and pieces[2, last[son]] == edges[son]:
                        pieces[2, last[son]] = edges[son + 1]
                    else:
                        pieces[0, used], pieces[1, used], pieces[2, used] = son, edges[son], edges[son + 1]
                        last[son] = used
                        used += 1
            place = stop
    return used, more
