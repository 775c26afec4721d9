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
def _before(keys: Any, one: int, other: int) -> Any:
    """Whether a row's keys come before, or are the same as, another's."""
    for word in range(keys.shape[0]):
        if keys[word, one] != keys[word, other]:
            return keys[word, one] < keys[word, other]
    return True


@kernel
def _sort_groups(keys: Any, edges: Any, first: int, last: int, order: Any, spare: Any) -> None:
    """Sort the row numbers of groups first..last by their keys: insertion in short runs, then merging."""
    short = 16
    for group in range(first, last):
        start, stop = edges[group], edges[group + 1]
        for begin in range(start, stop, short):
            for index in range(begin + 1, min(begin + short, stop)):
                number = order[index]
                place = index
                while place > begin and not _before(keys, order[place - 1], number):
                    order[place] = order[place - 1]
                    place -= 1
                order[place] = number
        width = short
        while width < stop - start:
            for begin in range(start, stop, 2 * width):
                middle, end = min(begin + width, stop), min(begin + 2 * width, stop)
                left, right = begin, middle
                for place in range(begin, end):
                    if left < middle and (right >= end or _before(keys, order[left], order[right])):
                        spare[place] = order[left]
                        left += 1
                    else:
                        spare[place] = order[right]
                        right += 1
            for place in range(start, stop):
                order[place] = spare[place]
            width *= 2


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
        spare = np.empty_like(order)
        workers = thread_count(threads)
        cuts = np.searchsorted(edges, np.linspace(0, len(order), 4 * workers + 1)).tolist()
        cuts[0], cuts[-1] = 0, count
        with ThreadPoolExecutor(workers) as pool:
            list(
                pool.map(
                    lambda first, last: _sort_groups(keys, edges, first, last, order, spare),
                    cuts[:-1],
                    cuts[1:],
                )
            )
    return order, edges
