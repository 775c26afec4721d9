# SPDX-License-Identifier: Apache-2.0
"""Putting rows in an order that tells nothing of the input's: by group, and within a group by sort keys."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.compiling import kernel
from anonfit.threads import thread_count

__all__ = ["order_rows"]


@kernel
def _by_group(groups: Any, numbers: Any, places: Any, order: Any) -> None:
    """Counting sort of row numbers by group; `places` holds the first place of each group and is moved on."""
    for index in range(groups.shape[0]):
        group = groups[index]
        order[places[group]] = numbers[index]
        places[group] += 1


@kernel
def _before(near: Any, one: int, other: int) -> Any:
    """Whether a row's keys come before, or are the same as, another's."""
    for word in range(near.shape[1]):
        if near[one, word] != near[other, word]:
            return near[one, word] < near[other, word]
    return True


@kernel
def _sort_groups(keys: Any, edges: Any, order: Any, near: Any, places: Any, spare: Any) -> None:
    """Sort the row numbers of some groups by their keys: insertion in short runs, then merging.

    What is compared and moved stays near: copies of the keys in the order of the groups, and places among them. Indices
    have no sign, since numba would look whether they are negative.
    """
    one, short, base = np.uint64(1), np.uint64(16), np.uint64(edges[0])
    for group in range(edges.shape[0] - 1):
        start, stop = np.uint64(edges[group]) - base, np.uint64(edges[group + 1]) - base
        for place in range(start, stop):
            places[place] = place
            for word in range(keys.shape[0]):
                near[place, word] = keys[word, order[base + place]]
        begin = start
        while begin < stop:
            for index in range(begin + one, min(begin + short, stop)):
                moved, hole = places[index], np.uint64(index)
                while hole > begin and not _before(near, places[hole - one], moved):
                    places[hole] = places[hole - one]
                    hole -= one
                places[hole] = moved
            begin += short
        width = short
        while width < stop - start:
            begin = start
            while begin < stop:
                middle, end = min(begin + width, stop), min(begin + width + width, stop)
                left, right = begin, middle
                for place in range(begin, end):
                    if left < middle and (right >= end or _before(near, places[left], places[right])):
                        spare[place] = places[left]
                        left += one
                    else:
                        spare[place] = places[right]
                        right += one
                begin = end
            for place in range(start, stop):
                places[place] = spare[place]
            width += width
        for place in range(start, stop):
            spare[place] = order[base + places[place]]
        for place in range(start, stop):
            order[base + place] = spare[place]


def order_rows(
    groups: NDArray[np.int32],
    numbers: NDArray[np.uint32],
    count: int,
    keys: NDArray[np.uint64],
    *,
    threads: int | None = None,
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Row numbers by group (0..count), within a group by their keys, and the first place of each group.

    groups: (place,) of the rows `numbers`; keys: (word, row number), compared word by word.
    """
    sizes = np.bincount(groups, minlength=count)
    edges = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    order = np.empty(len(numbers), np.uint32)
    _by_group(groups, numbers, edges[:-1].copy(), order)
    if keys.shape[0]:
        workers = thread_count(threads)
        cuts = np.searchsorted(edges, np.linspace(0, len(order), 4 * workers + 1)).tolist()
        cuts[0], cuts[-1] = 0, count

        def sort(first: int, last: int) -> None:
            rows = int(edges[last] - edges[first])
            near = np.empty((rows, keys.shape[0]), np.uint64)
            places, spare = np.empty((2, rows), np.uint32)
            _sort_groups(keys, edges[first : last + 1], order, near, places, spare)

        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(sort, cuts[:-1], cuts[1:]))
    return order, edges
