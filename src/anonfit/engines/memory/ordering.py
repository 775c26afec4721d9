# SPDX-License-Identifier: Apache-2.0
"""Putting rows in an order that tells nothing of the input's: by group, and within a group by sort keys."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.runtime.compiling import kernel
from anonfit.runtime.threads import thread_count

__all__ = ["order_rows"]


@kernel
def _by_group(groups: Any, edges: Any, numbers: Any, places: Any, order: Any) -> None:
    """Counting sort of runs of row numbers by group; `places` holds the first place of each group and is moved on."""
    for run in range(groups.shape[0]):
        group = groups[run]
        place = places[group]
        for index in range(edges[run], edges[run + 1]):
            order[place] = numbers[index]
            place += 1
        places[group] = place


@kernel
def _before(near: Any, one: int, other: int) -> Any:
    """Whether a row's keys come before, or are the same as, another's."""
    for word in range(near.shape[1]):
        if near[one, word] != near[other, word]:
            return near[one, word] < near[other, word]
    return True


@kernel
def _sort_groups(keys: Any, edges: Any, order: Any, words: Any, near: Any, places: Any, spare: Any) -> None:
    """Sort the row numbers of some groups by their keys, which go into `words`: insertion in short runs, then merging.

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
            for word in range(keys.shape[0]):
                words[word, base + place] = near[places[place], word]
        for place in range(start, stop):
            order[base + place] = spare[place]


def order_rows(
    groups: NDArray[np.int32],
    begins: NDArray[np.int64],
    numbers: NDArray[np.uint32],
    count: int,
    keys: NDArray[np.uint64],
    *,
    threads: int | None = None,
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint64]]:
    """Row numbers by group (0..count), within a group by their keys; the first place of each group; and the keys in
    that order.

    groups: (run,) of the rows `numbers`, which stand in runs that begin at `begins`, the first at 0; keys: (word, row
    number), compared word by word.
    """
    runs = np.append(begins, len(numbers))
    edges = np.zeros(count + 1, np.int64)
    np.add.at(edges, groups + 1, np.diff(runs))
    np.cumsum(edges, out=edges)
    order = np.empty(len(numbers), np.uint32)
    words = np.empty((keys.shape[0], len(numbers)), np.uint64)
    _by_group(groups, runs, numbers, edges[:-1].copy(), order)
    if keys.shape[0]:
        workers = thread_count(threads)
        cuts = np.searchsorted(edges, np.linspace(0, len(order), 4 * workers + 1)).tolist()
        cuts[0], cuts[-1] = 0, count

        def sort(first: int, last: int) -> None:
            rows = int(edges[last] - edges[first])
            near = np.empty((rows, keys.shape[0]), np.uint64)
            places, spare = np.empty((2, rows), np.uint32)
            _sort_groups(keys, edges[first : last + 1], order, words, near, places, spare)

        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(sort, cuts[:-1], cuts[1:]))
    return order, edges, words
