# SPDX-License-Identifier: Apache-2.0
"""What is learned from a log: weights of columns, selections, and min-term predicates, the parts into which the simple
conditions of a log divide a table. In each part every condition either holds of all rows or of none, so that every
query that is made of these conditions is a union of parts.

Each has its evidence. There can be two to the power of the conditions of min-terms; only those are made that rows are
in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.tables.schema import Column, Role
from anonfit.workload import predicates
from anonfit.workload.logs.merging import Merged, RawRows, columns_named, merge
from anonfit.workload.logs.shapes import QueriedColumns
from anonfit.workload.logs.tallies import LogTally, Uses, read_log
from anonfit.workload.parsing import predicate_text
from anonfit.workload.predicates import COMPARISONS, Condition, Predicate, Relation, Value
from anonfit.workload.truth import RawTable

CONDITIONS = 32
"""Conditions that parts are made of, the most frequent ones."""


def minterms(counts: Mapping[Predicate, int], rows: RawRows, *, most: int, k: int) -> list[Merged]:
    """At most so many min-terms of at least k persons, those first that most queries ask for; `counts` says how many
    queries have each predicate.
    """
    conditions = _frequent(counts)
    if not conditions:
        return []
    parts, persons = _parts(rows, conditions)
    asked = _asked(counts, conditions, parts)
    order = sorted(np.flatnonzero((persons >= k) & (asked > 0)).tolist(), key=lambda at: (-asked[at], at))
    terms = [(predicates.all_of(_tightest(_conditions(conditions, parts[at]))), int(asked[at])) for at in order[:most]]
    return [Merged(predicate, times, times, 0) for predicate, times in terms]


def _parts(rows: RawRows, conditions: Sequence[Condition]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(part, condition) How rows stand to conditions, each way once, and (part,) the persons of each."""
    known, persons = np.zeros((0, len(conditions)), np.uint8), np.zeros(0, np.int64)
    for batch in rows.batches(columns_named(conditions)):
        own = RawTable(batch.frame)
        # A missing value meets neither a condition nor its opposite, so a row has three ways to stand to each.
        # (row, condition) 1 where a condition holds, 2 where its opposite does, 0 where the value is missing
        ways = [
            own.holds(condition).astype(np.uint8) + 2 * own.holds(_opposite(condition)).astype(np.uint8)
            for condition in conditions
        ]
        parts, part_of = np.unique(np.stack(ways, axis=1), axis=0, return_inverse=True)
        more = batch.persons(part_of.ravel().astype(np.int64), len(parts))
        known, place = np.unique(np.vstack([known, parts]), axis=0, return_inverse=True)
        sums = np.zeros(len(known), np.int64)
        np.add.at(sums, place.ravel(), np.concatenate([persons, more]))
        persons = sums
    return known, persons


def _frequent(counts: Mapping[Predicate, int]) -> list[Condition]:
    """The conditions that most queries have; of a condition and its opposite, one."""
    times: Counter[Condition] = Counter()
    for predicate, count in counts.items():
        times.update(dict.fromkeys(predicates.conditions_of(predicate), count))
    frequent: list[Condition] = []
    for condition in sorted(times, key=lambda candidate: (-times[candidate], repr(candidate))):
        if _opposite(condition) not in frequent and len(frequent) < CONDITIONS:
            frequent.append(condition)
    return frequent


def _opposite(condition: Condition) -> Condition:
    return replace(condition, relation=condition.relation.opposite)


def _conditions(conditions: Sequence[Condition], part: NDArray[np.uint8]) -> list[Condition]:
    """What holds in a part."""
    ways = [
        (Condition(condition.column, Relation.MISSING, kind=condition.kind), condition, _opposite(condition))[stand]
        for condition, stand in zip(conditions, part.tolist(), strict=True)
    ]
    return list(dict.fromkeys(ways))


def _tightest(conditions: Sequence[Condition]) -> list[Condition]:
    """The conditions without those that follow from others: of each column and direction the nearest end, and no value
    that is ruled out anyway.
    """
    lowest = (Relation.AT_LEAST, Relation.MORE)
    best: dict[tuple[str, bool], Condition] = {}
    others: list[Condition] = []
    for condition in conditions:
        if not condition.relation.is_of_order or not condition.kind.is_ordered:
            others.append(condition)
            continue
        key = (condition.column, condition.relation in lowest)
        known = best.get(key)
        if known is None or _is_tighter(condition, known, is_low=key[1]):
            best[key] = condition
    kept = [*best.values(), *others]
    return [
        condition for condition in kept if not _follows(condition, [other for other in kept if other is not condition])
    ]


def _follows(condition: Condition, others: Sequence[Condition]) -> bool:
    """Whether a condition that rules something out is met wherever the others of its column are."""
    own = [other for other in others if other.column == condition.column and other.relation != Relation.MISSING]
    if condition.relation == Relation.NOT_MISSING:
        return bool(own)
    named = [other for other in own if other.relation == Relation.IN or other.relation.is_of_order]
    return condition.relation == Relation.NOT_IN and all(
        any(not _meets(value, other) for other in named) for value in condition.values
    )


def _meets(value: Value, condition: Condition) -> bool:
    """Whether a value is one that a condition lets pass, as far as that is known."""
    if condition.relation == Relation.IN:
        return value in condition.values
    return not condition.kind.is_ordered or bool(COMPARISONS[condition.relation](value, condition.values[0]))


def _is_tighter(condition: Condition, known: Condition, *, is_low: bool) -> bool:
    end, known_end = condition.values[0], known.values[0]
    if end == known_end:
        return condition.relation in (Relation.MORE, Relation.LESS)
    return (end > known_end) == is_low  # type: ignore[operator]


def _asked(
    counts: Mapping[Predicate, int], conditions: Sequence[Condition], parts: NDArray[np.uint8]
) -> NDArray[np.int64]:
    """(part,) How many queries select a part, of those that are made of the conditions."""
    stands = {condition: parts[:, at] == 1 for at, condition in enumerate(conditions)}
    stands |= {_opposite(condition): parts[:, at] == 2 for at, condition in enumerate(conditions)}
    queries = np.zeros(len(parts), np.int64)
    for predicate, times in counts.items():
        if all(condition in stands for condition in predicates.conditions_of(predicate)):
            queries += times * predicates.evaluated(predicate, stands.__getitem__)
    return queries


DIGITS = 4
"""Of weights."""


@dataclass(frozen=True, slots=True)
class LogRequest:
    """A log, and how it is read and used."""

    paths: tuple[Path, ...]
    dialect: str | None = None
    table: str | None = None
    selections: int = 50
    """Rectangles that are kept at most."""
    minterms: int = 0
    """Min-terms that are made in their place, at most; 0: none."""


@dataclass(frozen=True, slots=True)
class LearnedSelection:
    """A selection, its weight, and the queries that it is learned from."""

    where: str
    weight: float
    own: int
    times: int
    alike: int


@dataclass(frozen=True, slots=True)
class LearnedWeight:
    """A quasi-identifier, its weight, and how it is used."""

    column: str
    weight: float
    uses: Uses


@dataclass(frozen=True, slots=True)
class LearnedWorkload:
    """What a log teaches."""

    tally: LogTally
    selections: tuple[LearnedSelection, ...]
    weights: tuple[LearnedWeight, ...]
    few: int
    """Selections that were left out since fewer than k persons are asked for."""
    is_minterms: bool


def columns_of(
    columns: Sequence[Column], frame: pl.DataFrame, *, table: str | None = None, is_capped: bool = False
) -> QueriedColumns:
    """The columns of a table, with or without its rows, as queries name them."""
    return QueriedColumns(predicates.kinds_of(columns, frame), table, is_capped)


def learn(
    request: LogRequest, columns: Sequence[Column], rows: RawRows, *, k: int, is_capped: bool = False
) -> LearnedWorkload:
    """Learn selections, those of most queries first, and a weight for every quasi-identifier from a log.

    On the raw rows it is seen which selections are alike and which ask for too few: selections of fewer than k persons
    are not learned, since no group could answer them, and they may be about somebody. `is_capped` says whether what
    groups tell of targets is capped.
    """
    queried = columns_of(columns, rows.without_rows(), table=request.table, is_capped=is_capped)
    tally = read_log(request.paths, queried, dialect=request.dialect)
    selected, few = _selected(request, tally, rows, k)
    whole = sum(merged.times for merged in selected)
    selections = []
    for merged in selected:
        weight = max(round(merged.times / whole, DIGITS), 10**-DIGITS)
        text = predicate_text(merged.predicate)
        selections.append(LearnedSelection(text, weight, merged.own, merged.times, merged.alike))
    return LearnedWorkload(tally, tuple(selections), _weights(tally, columns), few, request.minterms > 0)


def _selected(request: LogRequest, tally: LogTally, rows: RawRows, k: int) -> tuple[list[Merged], int]:
    """The rectangles or min-terms to select by, and how many were left out."""
    if request.minterms:
        return minterms(tally.predicates, rows, most=request.minterms, k=k), 0
    # Some are left out below, so a few more are looked at.
    merged = merge(tally.predicates, rows, most=2 * request.selections)
    persons = rows.persons([rectangle.predicate for rectangle in merged]).tolist()
    enough = [rectangle for rectangle, selected in zip(merged, persons, strict=True) if selected >= k]
    return enough[: request.selections], len(merged) - len(enough)


def _weights(tally: LogTally, columns: Sequence[Column]) -> tuple[LearnedWeight, ...]:
    """The share that every quasi-identifier has in the uses of all of them; none if none is used."""
    names = [column.name for column in columns if column.role == Role.QUASI_IDENTIFIER]
    uses = {name: tally.uses.get(name, Uses()) for name in names}
    whole = sum(use.total for use in uses.values())
    if not whole:
        return ()
    return tuple(LearnedWeight(name, round(uses[name].total / whole, DIGITS), uses[name]) for name in names)
