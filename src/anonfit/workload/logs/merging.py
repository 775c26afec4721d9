# SPDX-License-Identifier: Apache-2.0
"""Few rectangles in place of many: predicates that select nearly the same rows are one, and the most asked for are
kept.

Every rectangle that is kept was asked for as it is: the one that most queries have stands for those like it. How alike
two are is measured on rows, as the share of the rows of both together that both select; only predicates over the same
columns are alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from anonfit.workload.logs.drawing import drawn_rows
from anonfit.workload.logs.raw_rows import RawRows, columns_named
from anonfit.workload.predicates import Condition, Or, Predicate, all_of, conditions_of
from anonfit.workload.rectangles import by_column, column_of
from anonfit.workload.truth import Rows

__all__ = ["Merged", "merge", "rectangles"]

SAMPLE = 1024
"""Rows on which predicates are compared."""
COMPARED = 3_000
"""Predicates that may be kept."""
ASSIGNED = 50_000
"""Others that may be like one of them; rarer ones are not counted."""
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


def merge(counts: Mapping[Predicate, int], rows: RawRows, *, most: int, seed: int = 0) -> list[Merged]:
    """The rectangles that are asked for most.

    Args:
        counts: Predicates, and how many queries have each.
        rows: The raw rows.
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
    if len(ranked) <= most:
        return [Merged(one, single[one], single[one], 0) for one in ranked]
    chosen, others = _chosen(ranked, single)
    sample = drawn_rows(rows, columns_named([*chosen, *others]), size=SAMPLE, seed=seed)
    found = _Leaders(Rows(sample), 1.0)
    for alike in ALIKE:
        found = _Leaders(found.rows, alike, found.seen)
        for one in chosen:
            found.add(one, single[one])
        if len(found.merged) <= most:
            break
    for one in others:
        found.add(one, single[one], may_lead=False)
    return sorted(found.merged, key=lambda one: (-one.times, repr(one.predicate)))[:most]


def _chosen(ranked: Sequence[Predicate], times: Mapping[Predicate, int]) -> tuple[list[Predicate], list[Predicate]]:
    """The predicates that may be kept, and those that may only be like one of them: where there are many, of those over
    the same columns as many as their queries are worth, from frequent to rare.
    """
    if len(ranked) <= COMPARED:
        return list(ranked), []
    groups: dict[frozenset[str], list[Predicate]] = {}
    for one in ranked:
        groups.setdefault(_columns(one), []).append(one)
    whole = sum(times[one] for one in ranked)
    taken: set[Predicate] = set()
    for group in groups.values():
        share = max(1, round(COMPARED * sum(times[one] for one in group) / whole))
        places = np.linspace(0, len(group) - 1, min(share, len(group))).astype(int)
        taken |= {group[place] for place in places.tolist()}
    return [one for one in ranked if one in taken], [one for one in ranked if one not in taken][:ASSIGNED]


def _columns(predicate: Predicate) -> frozenset[str]:
    return frozenset(one.column for one in conditions_of(predicate))


class _Leaders:
    """Predicates that are not like one before them, each with those that are."""

    def __init__(self, rows: Rows, alike: float, seen: dict[Predicate, NDArray[np.uint8]] | None = None) -> None:
        self.rows = rows
        self.alike = alike
        self.seen = {} if seen is None else seen
        self.merged: list[Merged] = []
        self.places: dict[frozenset[str], list[int]] = {}
        self.bits: dict[frozenset[str], NDArray[np.uint8]] = {}

    def add(self, predicate: Predicate, times: int, *, may_lead: bool = True) -> None:
        """Count a predicate with the one that it is most like, or let it lead."""
        columns = _columns(predicate)
        places = self.places.setdefault(columns, [])
        bits = self._bits(predicate)
        nearest = _nearest(self.bits[columns][: len(places)], bits, self.alike) if places else None
        if nearest is not None:
            at = places[nearest]
            one = self.merged[at]
            self.merged[at] = replace(one, times=one.times + times, alike=one.alike + 1)
        elif may_lead:
            self._lead(columns, bits)
            places.append(len(self.merged))
            self.merged.append(Merged(predicate, times, times, 0))

    def _bits(self, predicate: Predicate) -> NDArray[np.uint8]:
        """Which rows a predicate selects."""
        if predicate not in self.seen:
            self.seen[predicate] = np.packbits(self.rows.holds(predicate))
        return self.seen[predicate]

    def _lead(self, columns: frozenset[str], bits: NDArray[np.uint8]) -> None:
        """Put the rows of one more leader beside the others; room is made for twice as many where there is none."""
        count = len(self.places[columns])
        known = self.bits.get(columns, np.zeros((8, len(bits)), np.uint8))
        if count == len(known):
            known = np.vstack([known, np.zeros_like(known)])
        known[count] = bits
        self.bits[columns] = known


def _nearest(known: NDArray[np.uint8], one: NDArray[np.uint8], alike: float) -> int | None:
    """Which of the known sets of rows is most like one, if any is alike enough."""
    both = np.bitwise_count(known & one).sum(axis=1, dtype=np.int64)
    either = np.bitwise_count(known | one).sum(axis=1, dtype=np.int64)
    share = np.where(either > 0, both / np.maximum(either, 1), 0.0)
    best = int(share.argmax())
    return best if share[best] >= alike else None
