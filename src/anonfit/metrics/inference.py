# SPDX-License-Identifier: Apache-2.0
"""What a release tells of the values of a person: by the rows of the person's group, and by a model learned across
groups.

Guesses take the commonest class, or the mean number, of the group, against that of the whole table. Every guess is made
twice: from all rows, and from those of others only. What others' rows tell would be known without the person's own
record; only the difference is due to its release.

Learning across groups is the deFinetti attack: naive Bayes over the cells of the recoding. Of every class, the
likeliest distribution over the cells of each quasi-identifier is found from the labels of its rows. For a person in a
group, whose quasi-identifiers are known exactly, a class is as likely as its share of the group times how much likelier
it makes the person's cells than the others that the group's labels hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.tree import Parts, blocks_of, unpacked
from anonfit.metrics.arrays import AnyIntegers, Flags, Floats, Integers
from anonfit.metrics.detail import MANY, cell_shares, labels_of
from anonfit.recoding.recoding import Recoding
from anonfit.tables.schema import Persons


@dataclass(frozen=True)
class ReleasedRecords:
    """Released rows: the node of each, how many persons it stands for, or whose it is."""

    nodes: AnyIntegers  # (row,)
    counts: NDArray[Any] | None = None  # (row,)
    entities: AnyIntegers | None = None  # (row,) below 2 ** 32

    @cached_property
    def places(self) -> tuple[NDArray[Any], Integers]:
        """The nodes that have rows, in ascending order, and each row's place among them."""
        # Nodes are numbers from 0: marking them is several times faster than sorting them.
        is_used = np.zeros(int(self.nodes.max(initial=-1)) + 1, np.bool_)
        is_used[self.nodes] = True
        return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[self.nodes]

    def sizes(self) -> tuple[NDArray[Any], Integers]:
        """The nodes that have rows, and the persons in each."""
        used, place = self.places
        return used, self.persons().of_groups(place, len(used))

    def persons(self) -> Persons:
        """Whom the rows stand for."""
        entities = None if self.entities is None else self.entities.astype(np.uint32)
        return Persons(len(self.nodes), self.counts, entities)


@dataclass(frozen=True, slots=True)
class Secret:
    """A column an attacker would like to know: classes as codes, or numbers, NaN where one is missing."""

    column: str
    released: NDArray[Any]  # (row,)
    true: NDArray[Any]  # (person,)
    are_numbers: bool = False


@dataclass(frozen=True, slots=True)
class Guesses:
    """Guesses of `persons`, summed: right ones of classes (ties by chance), or how far those of numbers were off."""

    column: str
    persons: int
    are_numbers: bool
    of_group: float
    of_others: float
    """Without the person's own record."""
    of_table: float
    of_other_rows: float
    """Without the person's own record, in the table."""


def guess(
    secret: Secret, records: ReleasedRecords, place: Integers, *, is_released: Flags, entities: NDArray[Any] | None
) -> Guesses:
    """Guess a column of persons in the `place`th of the records' nodes; of those in none (-1), from the table."""
    _, group = records.places
    known = np.flatnonzero(~np.isnan(secret.true)) if secret.are_numbers else np.arange(len(place))
    groups, table = (_Summary.of(secret, numbers, records) for numbers in (group, np.zeros(len(group), np.int64)))
    at, nowhere, true = place[known], np.zeros(len(known), np.int64), secret.true[known]
    in_group, anywhere = _own_values(secret, records.entities, entities, is_released, group, place, known)
    judge = _errors if secret.are_numbers else _hits
    of_table, of_other_rows = judge(table, nowhere, true, NOTHING), judge(table, nowhere, true, anywhere)
    here, others = judge(groups, at, true, NOTHING), judge(groups, at, true, in_group)
    # Where nobody is left in the group, the table is all there is.
    guesses = (_first(here, of_table), _first(others, of_other_rows), _first(of_table), _first(of_other_rows))
    sums = [float(np.add.accumulate(figures)[-1]) if len(figures) else 0.0 for figures in guesses]
    return Guesses(secret.column, len(known), secret.are_numbers, *sums)


def _first(*figures: Floats) -> Floats:
    """The first figure that there is, 0 where there is none. (person,)"""
    found = figures[-1]
    for earlier in reversed(figures[:-1]):
        found = np.where(np.isnan(earlier), found, earlier)
    return np.nan_to_num(found)


@dataclass(frozen=True, slots=True)
class _Summary:
    """The classes of each group and how many persons have each; or numbers' sum and number."""

    codes: NDArray[Any]  # (pair,) in the order of groups
    held: NDArray[Any]  # (pair,)
    starts: Integers  # (group + 1,)

    @classmethod
    def of(cls, secret: Secret, group: Integers, records: ReleasedRecords) -> _Summary:
        """Summarize the rows of each group."""
        size = int(group.max(initial=0)) + 1
        masses = np.ones(len(group)) if records.counts is None else records.counts.astype(np.float64)
        if secret.are_numbers:
            known = ~np.isnan(secret.released)
            sums = np.bincount(group[known], weights=(secret.released * masses)[known], minlength=size)
            return cls(sums, np.bincount(group[known], weights=masses[known], minlength=size), np.arange(size + 1))
        codes = secret.released.astype(np.int64, copy=False)
        width = int(codes.max(initial=0)) + 1
        if records.entities is not None:
            # Who has a value in several rows of a group counts once for it.
            _, who = np.unique(group << 32 | records.entities.astype(np.int64), return_inverse=True)
            _, once = np.unique(who * width + codes, return_index=True)
            group, codes, masses = group[once], codes[once], masses[once]
        if size * width <= max(_FEW_PAIRS, 4 * len(group)):  # counting all that there could be is faster than sorting
            counts = np.bincount(group * width + codes, minlength=size * width)
            pairs = np.flatnonzero(counts)
            held = counts if records.counts is None else np.bincount(group * width + codes, masses, size * width)
            held = held[pairs].astype(np.float64)
        else:
            pairs, which = np.unique(group * width + codes, return_inverse=True)
            held = np.bincount(which, weights=masses, minlength=len(pairs))
        return cls(pairs % width, held, np.searchsorted(pairs // width, np.arange(size + 1)))


@dataclass(frozen=True, slots=True)
class _Own:
    """What the release holds of persons themselves: pairs of a person, by place, in ascending order, and a value."""

    person: Integers
    value: NDArray[Any]


NOTHING = _Own(np.zeros(0, np.int64), np.zeros(0))
AT_ONCE = 1 << 20
"""Pairs of a person and a class that are looked at together."""


def _hits(summary: _Summary, groups: Integers, true: NDArray[Any], own: _Own) -> Floats:
    """The chance that the commonest class of each person's group (-1: of none) is the true one, without the person's
    own; NaN where nobody else is left. (person,)
    """
    chances = np.full(len(groups), np.nan)
    lengths = np.where(groups >= 0, summary.starts[groups + 1] - summary.starts[groups], 0)
    asked = np.flatnonzero(lengths)
    ends = np.cumsum(lengths[asked])
    begin = 0
    while begin < len(asked):
        end = max(begin + 1, int(np.searchsorted(ends, ends[begin] - lengths[asked[begin]] + AT_ONCE, side="right")))
        some = asked[begin:end]
        chances[some] = _chances_of(summary, some, groups, lengths[some], true, own)
        begin = end
    return chances


def _chances_of(
    summary: _Summary, some: Integers, groups: Integers, lengths: Integers, true: NDArray[Any], own: _Own
) -> Floats:
    """The chances of some persons, whose groups have so many classes."""
    first = np.cumsum(lengths) - lengths
    pair = np.arange(int(lengths.sum())) + np.repeat(summary.starts[groups[some]] - first, lengths)
    codes, held, person = summary.codes[pair], summary.held[pair], np.repeat(some, lengths)
    width = int(max(summary.codes.max(initial=0), own.value.max(initial=0))) + 1
    # Classes of a group are in ascending order, so that keys are, too.
    keys, mine = person * width + codes, own.person * width + own.value.astype(np.int64)
    mine = mine[(mine >= keys[0]) & (mine <= keys[-1])]
    at = np.searchsorted(keys, mine)
    held[at[keys[at] == mine]] -= 1
    most = np.maximum.reduceat(held, first)
    is_best = held == np.repeat(most, lengths)
    ties = np.add.reduceat(is_best, first, dtype=np.int64)
    is_right = np.add.reduceat(is_best & (codes == true[person]), first, dtype=np.int64) > 0
    return np.where(most > 0, np.where(is_right, 1 / ties, 0.0), np.nan)


def _errors(summary: _Summary, groups: Integers, true: NDArray[Any], own: _Own) -> Floats:
    """How far the mean of each person's group (-1: of none), without the person's own numbers, is from the true one;
    NaN where nobody else is left. (person,)
    """
    is_number = ~np.isnan(own.value)
    person, mine = own.person[is_number], own.value[is_number]
    total = summary.codes[groups] - np.bincount(person, weights=mine, minlength=len(groups))
    number = summary.held[groups] - np.bincount(person, minlength=len(groups))
    has_others = (groups >= 0) & (number > 0)
    return np.where(has_others, np.abs(total / np.where(has_others, number, 1) - true), np.nan)


def _own_values(
    secret: Secret,
    of_row: NDArray[Any] | None,
    of_person: NDArray[Any] | None,
    is_released: Flags,
    group: Integers,
    place: Integers,
    known: Integers,
) -> tuple[_Own, _Own]:
    """What the release holds of the `known` persons: the values of their rows in their groups, and anywhere."""
    if of_row is None or of_person is None:
        released = np.flatnonzero(is_released[known])
        alone = _Own(released, secret.true[known][released])
        return alone, alone
    rows = np.flatnonzero(np.isin(of_row, of_person))
    held: dict[tuple[int, int | None], list[Any]] = {}
    for entity, at, value in zip(
        of_row[rows].tolist(), group[rows].tolist(), secret.released[rows].tolist(), strict=True
    ):
        for key in ((entity, at), (entity, None)):
            held.setdefault(key, []).append(value)
    if not secret.are_numbers:
        held = {key: sorted(set(values)) for key, values in held.items()}
    persons = list(zip(of_person[known].tolist(), place[known].tolist(), strict=True))
    return tuple(  # type: ignore[return-value]  # a pair
        _flat([held.get((entity, None if is_anywhere else at), []) for entity, at in persons])
        for is_anywhere in (False, True)
    )


def _flat(values: Sequence[Sequence[Any]]) -> _Own:
    """The values of each person, one after the other."""
    return _Own(np.repeat(np.arange(len(values)), list(map(len, values))), np.array(list(chain.from_iterable(values))))


_FEW_PAIRS = 1 << 16

SURE = 0.9
"""How likely a value must be for the model to be sure of it."""
MOST_CLASSES = 64
"""Of the classes of a column the commonest are told apart, the others are one."""
ROWS = 50_000
"""From more rows not more is learned: of their groups, some that are far from each other are taken."""
SMALLEST = 1e-12


@dataclass(frozen=True, slots=True)
class LearnedClasses:
    """Of how many persons the model is sure, of these is right, and of how many the groups alone make one as sure; of
    how many only the model is sure, or only their groups make one so.
    """

    persons: int
    sure: int
    right: int
    sure_by_group: int
    only_learned: int
    only_by_group: int


def learn(
    recoding: Recoding, records: ReleasedRecords, secret: Secret, place: Integers, cells: Sequence[NDArray[Any]]
) -> LearnedClasses:
    """Learn classes from a release and guess those of persons. place: (person,) the place of the person's group among
    the records' nodes, -1 for none; cells: the persons' exact quasi-identifiers, column by column.
    """
    used, group = records.places
    held = _held(secret, records, group, len(used))
    asked = np.flatnonzero(place >= 0)
    at = place[asked]
    some = np.arange(0, len(used), max(1, len(group) // ROWS))
    with np.errstate(divide="ignore"):
        scores = np.log(held[at])  # (person, class)
    for column, part in enumerate(recoding.columns):
        parts, mine = recoding.boxes.parts(used[at], column), cells[column][asked].astype(np.int64)
        shares = _shares(recoding, used[some], column, held[some].T)
        for code, own in enumerate(shares):
            inside = _sums(parts, own, part.size)[parts.of_node]
            scores[:, code] += np.log(np.maximum(own[mine], SMALLEST) / np.maximum(inside, SMALLEST))
    # To be sure of a rare class means of one of many: of nothing.
    named = min(held.shape[1], MOST_CLASSES)
    likely = np.exp(scores - scores.max(axis=1, keepdims=True))
    is_sure = likely[:, :named].max(axis=1, initial=0.0) >= SURE * likely.sum(axis=1)
    by_group = held[at, :named].max(axis=1, initial=0) >= SURE * held[at].sum(axis=1)
    true = _places(secret)[secret.true[asked].astype(np.int64)]
    return LearnedClasses(
        persons=len(place),
        sure=int(is_sure.sum()),
        right=int((is_sure & (likely.argmax(axis=1) == true)).sum()),
        sure_by_group=int(by_group.sum()),
        only_learned=int((is_sure & ~by_group).sum()),
        only_by_group=int((by_group & ~is_sure).sum()),
    )


def _places(secret: Secret) -> Integers:
    """The place of each class: the commonest have one each, all others the last one. (class,)"""
    times = np.bincount(secret.released.astype(np.int64, copy=False), minlength=int(secret.true.max(initial=0)) + 1)
    ranks = np.empty(len(times), np.int64)
    ranks[np.argsort(-times, kind="stable")] = np.arange(len(times))
    return np.minimum(ranks, MOST_CLASSES)


def _held(secret: Secret, records: ReleasedRecords, group: Integers, groups: int) -> Floats:
    """How many persons of each group have each class. (group, class)"""
    places = _places(secret)
    width = int(places.max(initial=0)) + 1
    keys = group * width + places[secret.released.astype(np.int64, copy=False)]
    if records.entities is not None:  # who has a value in several rows of a group counts once for it
        _, once = np.unique(np.stack([keys, records.entities.astype(np.int64)]), axis=1, return_index=True)
        keys = keys[once]
    counts: Floats = np.bincount(keys, weights=records.counts, minlength=groups * width).astype(np.float64)
    return counts.reshape(groups, width)


def _shares(recoding: Recoding, used: NDArray[Any], column: int, persons: Floats) -> Floats:
    """The likeliest distribution over the cells of a column of the persons of each class, of whom groups have so many,
    (class, group): (class, cell). Of a class of few persons little can be learned: one person more has what all have.
    """
    size, number = recoding.columns[column].size, persons.sum(axis=1)
    found = np.empty((len(persons) + 1, size))
    every = np.concatenate([persons, persons.sum(axis=0, keepdims=True)]).astype(np.int64)
    sets = recoding.boxes.sets_of.get(column)
    together = max(1, MANY // (size * max(1, 0 if sets is None else len(sets.bits))))
    for start in range(0, len(every), together):
        own = every[start : start + together]
        some = np.flatnonzero(own.any(axis=0))
        labels = labels_of(recoding.boxes, used[some], column, size, own[:, some])
        found[start : start + together] = cell_shares(labels, size)
    shares: Floats = (found[:-1] * number[:, None] + found[-1]) / (number[:, None] + 1)
    return shares


def _sums(parts: Parts, shares: Floats, size: int) -> Floats:
    """The share of all cells of each part. (part,)"""
    before = np.append(0.0, np.cumsum(shares))
    sums: Floats = before[parts.last + 1] - before[parts.first]
    by_set = np.flatnonzero(parts.set_of >= 0)
    for block in blocks_of(len(by_set), size):
        rows = by_set[block]
        sums[rows] = unpacked(parts.sets[parts.set_of[rows]], size) @ shares
    return sums
