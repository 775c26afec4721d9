# SPDX-License-Identifier: Apache-2.0
"""The selections of a log held against raw rows, all at once or some at a time, and merged where they select nearly the
same; where there are too many rows, some are drawn.

Every rectangle that is kept was asked for as it is: the one that most queries have stands for those like it. How alike
two are is measured on rows, as the share of the rows of both together that both select; only predicates over the same
columns are alike.

The same rows are drawn in whatever order and however many at a time the rows of a table come. Every row has a key, a
hash of what it holds, and rows are drawn by their places in the order of keys. Rows of one key hold the same, so it
does not matter which of them has which place. The order is never made as a whole: rows are counted by the first bits
of their keys, and those alike in these bits to a row that is drawn are looked at once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain, product
from math import prod

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.tables.frames import categorized
from anonfit.workload.denoising_models import mixed
from anonfit.workload.predicates import Condition, Or, Predicate, all_of, by_column, column_of, conditions_of
from anonfit.workload.truth import RawTable

PersonsOf = Callable[[NDArray[np.int64], int], NDArray[np.int64]]
"""From the group of each row and the number of groups, how many persons each group has."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows, and whom they stand for."""

    frame: pl.DataFrame
    persons: PersonsOf


@dataclass(frozen=True, slots=True)
class RawRows:
    """The rows of a table. A person's rows are all in one batch, so that persons of batches can be added up."""

    schema: Mapping[str, pl.DataType]
    count: int
    read: Callable[[Sequence[str]], Iterable[Batch]]
    """All rows with at least these columns, each time from the beginning."""

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """All rows with at least these columns; no batch is empty."""
        return (batch for batch in self.read(names) if len(batch.frame))

    def without_rows(self) -> pl.DataFrame:
        """The columns alone."""
        return pl.DataFrame(schema=dict(self.schema))

    def persons(self, predicates: Sequence[Predicate]) -> NDArray[np.int64]:
        """How many persons each predicate selects."""
        sums = np.zeros(len(predicates), np.int64)
        for batch in self.batches(columns_named(predicates)) if predicates else ():
            rows = RawTable(batch.frame)
            sums += [batch.persons(rows.holds(predicate).astype(np.int64), 2)[1] for predicate in predicates]
        return sums


def rows_of_frame(frame: pl.DataFrame, persons: PersonsOf) -> RawRows:
    """Rows that are in memory."""
    return RawRows(frame.schema, len(frame), lambda _: (Batch(frame, persons),))


def columns_named(predicates: Iterable[Predicate]) -> list[str]:
    """The columns that predicates are about, in the order of their names."""
    return sorted({condition.column for predicate in predicates for condition in conditions_of(predicate)})


BITS = 20
"""First bits of keys by which rows are counted."""
KEY, TIMES = "\0key", "\0times"
_MISSING = np.uint64(0x9E3779B97F4A7C15)


def drawn_rows(rows: RawRows, names: Sequence[str], *, size: int, seed: int) -> pl.DataFrame:
    """Some columns of rows that are drawn at random, each as likely as any other; of all rows if these are no more."""
    if rows.count == 0:
        return rows.without_rows().select(names)
    if rows.count <= size:
        return pl.concat([batch.frame.select(names) for batch in rows.batches(names)])
    places = np.sort(np.random.default_rng(seed).choice(rows.count, size, replace=False))
    sizes = np.zeros(1 << BITS, np.int64)
    for _, keys in _keyed(rows, names):
        sizes += np.bincount(_first_bits(keys), minlength=len(sizes))
    ends = np.cumsum(sizes)
    run = np.searchsorted(ends, places, side="right")
    wanted = np.zeros(len(sizes), np.bool_)
    wanted[run] = True
    different = _different(rows, names, wanted)
    # Rows of other runs are not among those that were found.
    before = ends - np.cumsum(np.where(wanted, sizes, 0))
    at = np.searchsorted(different[TIMES].cum_sum().to_numpy(), places - before[run], side="right")
    drawn: pl.DataFrame = different[at].select(names)
    return drawn


def _first_bits(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    return (keys >> np.uint64(64 - BITS)).astype(np.int64)


def _different(rows: RawRows, names: Sequence[str], wanted: NDArray[np.bool_]) -> pl.DataFrame:
    """What rows hold whose keys begin in a way that is wanted, in the order of keys, and how many rows hold it."""
    parts: list[pl.DataFrame] = []
    for frame, keys in _keyed(rows, names):
        chosen = np.flatnonzero(wanted[_first_bits(keys)])
        some = frame[chosen].select(names)
        some = some.with_columns(pl.Series(KEY, keys[chosen]), pl.lit(1, pl.Int64).alias(TIMES))
        parts = [pl.concat([*parts, some]).group_by(*names, KEY).agg(pl.col(TIMES).sum())]
    return parts[0].sort(KEY, *names)


def _keyed(rows: RawRows, names: Sequence[str]) -> Iterator[tuple[pl.DataFrame, NDArray[np.uint64]]]:
    """The rows, and the key of each."""
    for batch in rows.batches(names):
        keys = np.zeros(len(batch.frame), np.uint64)
        for name in names:
            keys = mixed(keys * np.uint64(31) + mixed(_bits(batch.frame[name])))
        yield batch.frame, keys


def _bits(values: pl.Series) -> NDArray[np.uint64]:
    """(row,) A number for each value, the same for the same."""
    dtype = values.dtype
    if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        distinct, places = categorized(values.cast(pl.String))
        hashes = [int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) for text in distinct.to_list()]
        return np.asarray(np.array([*hashes, int(_MISSING)], np.uint64)[places])
    plain = values.to_physical()
    if plain.dtype.is_integer() or plain.dtype == pl.Boolean:
        numbers = plain.cast(pl.Int64, strict=False).fill_null(0).to_numpy().view(np.uint64)
    else:
        numbers = (plain.cast(pl.Float64, strict=False).fill_null(0.0).to_numpy() + 0.0).view(np.uint64)
    return np.where(values.is_null().to_numpy(), _MISSING, numbers)


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
    """The alternatives of which a predicate needs any one; None if they are too many."""
    if isinstance(predicate, Condition) or column_of(predicate) is not None:
        return [predicate]
    inner = [_alternatives(part) for part in predicate.parts]
    known = [part for part in inner if part is not None]
    sizes = [float(len(part)) for part in known]
    if len(known) < len(inner) or (sum(sizes) if isinstance(predicate, Or) else prod(sizes)) > MOST_PARTS:
        return None
    return list(chain(*known)) if isinstance(predicate, Or) else [all_of(parts) for parts in product(*known)]


def merge(counts: Mapping[Predicate, int], rows: RawRows, *, most: int, seed: int = 0) -> list[Merged]:
    """At most so many rectangles, the most frequent first; `counts` says how many queries have each predicate, and the
    seed is that of the rows that are looked at where there are many.
    """
    single: Counter[Predicate] = Counter()
    for predicate, times in counts.items():
        for part in rectangles(predicate):
            single[part] += times
    ranked = sorted(single, key=lambda rectangle: (-single[rectangle], repr(rectangle)))
    if len(ranked) <= most:
        return [Merged(rectangle, single[rectangle], single[rectangle], 0) for rectangle in ranked]
    chosen, others = _chosen(ranked, single)
    sample = drawn_rows(rows, columns_named([*chosen, *others]), size=SAMPLE, seed=seed)
    leaders = _Leaders(RawTable(sample), 1.0)
    for alike in ALIKE:
        leaders = _Leaders(leaders.rows, alike, leaders.seen)
        for rectangle in chosen:
            leaders.add(rectangle, single[rectangle])
        if len(leaders.merged) <= most:
            break
    for rectangle in others:
        leaders.add(rectangle, single[rectangle], may_lead=False)
    return sorted(leaders.merged, key=lambda leader: (-leader.times, repr(leader.predicate)))[:most]


def _chosen(ranked: Sequence[Predicate], times: Mapping[Predicate, int]) -> tuple[list[Predicate], list[Predicate]]:
    """The predicates that may be kept, and those that may only be like one of them: where there are many, of those over
    the same columns as many as their queries are worth, from frequent to rare.
    """
    if len(ranked) <= COMPARED:
        return list(ranked), []
    groups: dict[frozenset[str], list[Predicate]] = {}
    for predicate in ranked:
        groups.setdefault(_columns(predicate), []).append(predicate)
    whole = sum(times[predicate] for predicate in ranked)
    taken: set[Predicate] = set()
    for group in groups.values():
        share = max(1, round(COMPARED * sum(times[predicate] for predicate in group) / whole))
        places = np.linspace(0, len(group) - 1, min(share, len(group))).astype(int)
        taken |= {group[place] for place in places.tolist()}
    others = [predicate for predicate in ranked if predicate not in taken]
    return [predicate for predicate in ranked if predicate in taken], others[:ASSIGNED]


def _columns(predicate: Predicate) -> frozenset[str]:
    return frozenset(condition.column for condition in conditions_of(predicate))


class _Leaders:
    """Predicates that are not like one before them, each with those that are."""

    def __init__(self, rows: RawTable, alike: float, seen: dict[Predicate, NDArray[np.uint8]] | None = None) -> None:
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
            leader = self.merged[places[nearest]]
            self.merged[places[nearest]] = replace(leader, times=leader.times + times, alike=leader.alike + 1)
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


def _nearest(known: NDArray[np.uint8], own: NDArray[np.uint8], alike: float) -> int | None:
    """Which of the known sets of rows is most like a predicate's own, if any is alike enough."""
    both = np.bitwise_count(known & own).sum(axis=1, dtype=np.int64)
    either = np.bitwise_count(known | own).sum(axis=1, dtype=np.int64)
    share = np.where(either > 0, both / np.maximum(either, 1), 0.0)
    best = int(share.argmax())
    return best if share[best] >= alike else None
