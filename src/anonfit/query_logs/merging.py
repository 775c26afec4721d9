# SPDX-License-Identifier: Apache-2.0
"""Few rectangles in place of many: predicates that select nearly the same rows are one, and the most asked for are
kept.

Every rectangle that is kept was asked for as it is: the one that most queries have stands for those like it. How alike
two are is measured on rows, as the share of the rows of both together that both select; only predicates over the same
columns are alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.workload.predicates import Condition, Or, Predicate, all_of, conditions_of
from anonfit.workload.rectangles import by_column, column_of
from anonfit.workload.truth import Rows

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Merged", "merge", "rectangles"]

SAMPLE = 1024
"""Rows on which predicates are compared."""
COMPARED = 3_000
"""Predicates that are compared, the most frequent ones."""
ALIKE = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5)
"""How alike predicates must be to become one: as much as it takes to keep few."""
MOST_PARTS = 8
"""Rectangles of one predicate; one that needs more stays as it is."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A rectangle, how many queries ask for it, and for how many it stands with those like it."""

    predicate: Predicate
    own: int
    times: int
    alike: int
    """How many other rectangles it stands for."""


def rectangles(predicate: Predicate) -> list[Predicate]:
    """The parts of a predicate that are joined by OR, each a set of values of every column that it names; the
    predicate itself where these are many.
    """
    parts = _alternatives(by_column(predicate))
    return [predicate] if parts is None else parts


def _alternatives(predicate: Predicate) -> list[Predicate] | None:
    """What a predicate is that is met by any of; None if these are too many."""
    if isinstance(predicate, Condition) or column_of(predicate) is not None:
        return [predicate]
    inner = [_alternatives(part) for part in predicate.parts]
    if any(part is None for part in inner):
        return None
    known = [part for part in inner if part is not None]
    if isinstance(predicate, Or):
        found = [one for part in known for one in part]
    else:
        if int(np.prod([len(part) for part in known], dtype=np.float64)) > MOST_PARTS:
            return None
        found = [all_of(parts) for parts in product(*known)]
    return found if len(found) <= MOST_PARTS else None


def merge(counts: Mapping[Predicate, int], frame: pl.DataFrame, *, most: int, seed: int = 0) -> list[Merged]:
    """The rectangles that are asked for most.

    Args:
        counts: Predicates, and how many queries have each.
        frame: The raw rows.
        most: How many rectangles are kept at most.
        seed: Of the rows that are looked at where there are many.

    Returns:
        The rectangles, the most frequent first.
    """
    single: dict[Predicate, int] = {}
    for predicate, times in counts.items():
        for part in rectangles(predicate):
            single[part] = single.get(part, 0) + times
    ranked = sorted(single, key=lambda one: (-single[one], repr(one)))
    compared = ranked[:COMPARED]
    seen = _seen(compared, frame, seed)
    found: list[Merged] = []
    for alike in ALIKE if len(compared) > most else (1.01,):
        found = _led(compared, [single[one] for one in compared], seen, alike)
        if len(found) <= most:
            break
    return sorted(found, key=lambda one: (-one.times, repr(one.predicate)))[:most]


def _seen(predicates: Sequence[Predicate], frame: pl.DataFrame, seed: int) -> NDArray[np.uint8]:
    """Which rows each predicate selects, as bits. (predicate, byte)"""
    if len(frame) > SAMPLE:
        frame = frame[np.sort(np.random.default_rng(seed).choice(len(frame), SAMPLE, replace=False))]
    rows = Rows(frame)
    truths = [np.packbits(rows.holds(one)) for one in predicates]
    return np.stack(truths) if truths else np.zeros((0, 1), np.uint8)


def _led(predicates: Sequence[Predicate], times: Sequence[int], seen: NDArray[np.uint8], alike: float) -> list[Merged]:
    """The predicates that are not like one before them, each with those that are."""
    leaders: dict[frozenset[str], list[int]] = {}
    total, others = list(times), [0] * len(predicates)
    for place, predicate in enumerate(predicates):
        known = leaders.setdefault(frozenset(one.column for one in conditions_of(predicate)), [])
        nearest = _nearest(seen[known], seen[place], alike) if known else None
        if nearest is None:
            known.append(place)
        else:
            total[known[nearest]] += times[place]
            others[known[nearest]] += 1
    kept = [place for group in leaders.values() for place in group]
    return [Merged(predicates[place], times[place], total[place], others[place]) for place in kept]


def _nearest(known: NDArray[np.uint8], one: NDArray[np.uint8], alike: float) -> int | None:
    """Which of the known sets of rows is most like one, if any is alike enough."""
    both = np.bitwise_count(known & one).sum(axis=1, dtype=np.int64)
    either = np.bitwise_count(known | one).sum(axis=1, dtype=np.int64)
    share = np.where(either > 0, both / np.maximum(either, 1), 0.0)
    best = int(share.argmax())
    return best if share[best] >= alike else None
