# SPDX-License-Identifier: Apache-2.0
"""Top-down refinement in plain words: everything is recounted after each refinement. For tests.

Gains and ties are computed here by their definitions, not by what they are held against.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log2
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.tables.schema import MISSING, CodedTable, SplitMode

if TYPE_CHECKING:
    from anonfit.engines.memory.forms import Constraint

Codes = tuple[int, ...]
Part = tuple[Codes, int]
"""Codes, and the taxonomy node they are released as; -1 where there is none."""


def entropy(counts: list[int]) -> float:
    """The entropy of classes with so many records, in bits."""
    shares = [count / sum(counts) for count in counts if count]
    return -sum(share * log2(share) for share in shares)


def gain(parts: list[list[int]]) -> float:
    """How much less mixed the classes are in the parts than in the whole: nothing at all if, and only if, all parts
    that have records have the classes in the same proportion. parts: (part, class)
    """
    whole: list[int] = [sum(counts) for counts in zip(*parts, strict=True)]
    filled = [part for part in parts if sum(part)]
    if all(part[label] * sum(whole) == whole[label] * sum(part) for part in filled for label in range(len(whole))):
        return 0.0
    left = sum(sum(part) / sum(whole) * entropy(part) for part in filled)
    return max(entropy(whole) - left, 1e-18)


def first_best(merits: list[float]) -> int:
    """The first that is as good as the best but for rounding; -1 if there is none."""
    best = max(merits, default=0.0)
    return next((place for place, merit in enumerate(merits) if merit >= best * (1 - 1e-9)), -1)


@dataclass(frozen=True)
class Options:
    """How refinements are chosen."""

    criterion: str = "score"
    average: str = "containing"
    suppression: str = "all"
    zero_gain: bool = False


@dataclass(frozen=True)
class PlainCandidate:
    """A part of a column and what it would become; `value` is the one that would be disclosed."""

    column: int
    part: Part
    pieces: tuple[Part, ...]
    value: int = -1


@dataclass(frozen=True)
class PlainStep:
    """A refinement, and the anonymity of every requirement after it."""

    candidate: PlainCandidate
    gain: float
    loss: float
    anonymity: tuple[int, ...]


@dataclass
class Plain:
    """The parts of each column, and the steps that led to them."""

    parts: list[list[Part]]
    steps: list[PlainStep] = field(default_factory=list)


class _Records:
    """The rows in plain lists, and the parts of each column in the order of making."""

    def __init__(
        self,
        table: CodedTable,
        classes: NDArray[Any],
        quasi_identifiers: Sequence[tuple[tuple[int, ...], int]],
        weights: NDArray[Any] | None,
        start: Sequence[Sequence[Part]] | None,
    ) -> None:
        self.table, self.asked = table, quasi_identifiers
        self.codes = [codes.tolist() for codes in table.codes]
        self.persons = [1] * table.rows if table.counts is None else table.counts.tolist()
        self.weights = self.persons if weights is None else weights.tolist()
        self.entities = None if table.entities is None else table.entities.tolist()
        self.classes = classes.tolist()
        tops = [(tuple(range(column.size)), -1 if column.mode < SplitMode.BINARY else 0) for column in table.columns]
        self.parts: list[list[Part]] = [[top] for top in tops] if start is None else [list(parts) for parts in start]

    def class_counts(self, column: int, codes: Codes) -> list[int]:
        counts = [0] * (max(self.classes) + 1)
        for row, code in enumerate(self.codes[column]):
            if code in codes:
                counts[self.classes[row]] += self.weights[row]
        return counts

    def groups(self, number: int, candidate: PlainCandidate | None = None) -> list[list[int]]:
        """The rows of each group of a requirement, now or after a refinement."""
        places = []
        for column in self.asked[number][0]:
            parts = list(self.parts[column])
            if candidate is not None and candidate.column == column:
                parts = [part for part in parts if part != candidate.part] + list(candidate.pieces)
            places.append({code: part for part in parts for code in part[0]})
        groups = defaultdict(list)
        for row in range(self.table.rows):
            values = [
                place[self.codes[column][row]] for column, place in zip(self.asked[number][0], places, strict=True)
            ]
            groups[tuple(values)].append(row)
        return list(groups.values())

    def count(self, rows: list[int]) -> int:
        if self.entities is not None:
            return len({self.entities[row] for row in rows})
        return sum(self.persons[row] for row in rows)

    def anonymity(self, number: int, candidate: PlainCandidate | None = None) -> int:
        return min(self.count(rows) for rows in self.groups(number, candidate))

    def binding(self) -> list[int]:
        """The requirements that do not follow from another one."""
        asked = [(set(columns), k) for columns, k in self.asked]
        binding = []
        for number, (columns, k) in enumerate(asked):
            wider = [other for other, (among, limit) in enumerate(asked) if columns <= among and k <= limit]
            if all(other == number or (asked[other] == asked[number] and other > number) for other in wider):
                binding.append(number)
        return binding

    def cut(self, index: int, part: Part) -> tuple[Part, ...]:
        """The two intervals of the highest gain, the first of them where there are several."""
        used = sorted(set(self.codes[index]) & set(part[0]))
        halves = [
            [tuple(code for code in part[0] if (code >= cut) == upper) for upper in (False, True)] for cut in used[1:]
        ]
        if not halves:
            return ()
        gains = [gain([self.class_counts(index, codes) for codes in pair]) for pair in halves]
        low, high = halves[first_best(gains)]
        return (low, -1), (high, -1)

    def children(self, index: int, part: Part) -> tuple[Part, ...]:
        """The children of a taxonomy node; the children of an only child that has rows stand in its place."""
        children = self.below(index, part)
        filled = [child for child in children if set(child[0]) & set(self.codes[index])]
        further = self.children(index, filled[0]) if len(filled) == 1 else ()
        return tuple(piece for child in children for piece in (further if further and child == filled[0] else (child,)))

    def below(self, index: int, part: Part) -> tuple[Part, ...]:
        """The children of a taxonomy node; missing is a child of the root."""
        codes, node = part
        column = self.table.columns[index]
        taxonomy, shift = column.taxonomy, int(column.has_missing)
        assert taxonomy is not None
        if node < 0:
            return ()
        below = [child for child, parent in enumerate(taxonomy.parents) if parent == node]
        missing: list[Part] = []
        if shift and codes[0] == MISSING:
            missing, below = [((MISSING,), -1)], below or [0]
        runs = [
            tuple(range(taxonomy.first_leaf[child] + shift, taxonomy.last_leaf[child] + shift + 1)) for child in below
        ]
        return (*missing, *zip(runs, below, strict=True))

    def candidates(self, index: int) -> list[PlainCandidate]:
        """The refinements of a column in the order of their making."""
        mode = self.table.columns[index].mode
        if mode == SplitMode.SUBSET:
            rest = self.parts[index][0]
            used = [code for code in rest[0] if code in self.codes[index]]
            without = [tuple(other for other in rest[0] if other != code) for code in used]
            return [
                PlainCandidate(index, rest, ((kept, -1), ((code,), -1)), code)
                for code, kept in zip(used, without, strict=True)
            ]
        refined = self.cut if mode == SplitMode.ORDERED else self.children
        refinements = [(part, refined(index, part)) for part in self.parts[index]]
        return [PlainCandidate(index, part, pieces) for part, pieces in refinements if pieces]


class _PlainRefining:
    def __init__(self, records: _Records, constraints: Sequence[Constraint], options: Options) -> None:
        self.records, self.constraints, self.options = records, constraints, options
        self.out: set[tuple[int, Part | int]] = set()
        self.closed: set[int] = set()

    def name(self, candidate: PlainCandidate) -> tuple[int, Part | int]:
        return candidate.column, candidate.part if candidate.value < 0 else candidate.value

    def gain(self, candidate: PlainCandidate) -> float:
        """The information gain; negative where the refinement is not made for want of it."""
        counts = [self.records.class_counts(candidate.column, codes) for codes, _ in candidate.pieces]
        value = gain(counts)
        several = sum(any(part[label] for part in counts) for label in range(len(counts[0]))) > 1
        wanted = several and (value > 0 or self.options.zero_gain)
        return value if wanted else -1.0

    def is_valid(self, candidate: PlainCandidate) -> bool:
        """Whether every group of every requirement has k persons after a refinement."""
        numbers = range(len(self.records.asked))
        return all(self.records.anonymity(number, candidate) >= self.records.asked[number][1] for number in numbers)

    def loss(self, candidate: PlainCandidate) -> float:
        """The mean loss of anonymity."""
        binding = self.records.binding()
        having = [number for number in binding if candidate.column in self.records.asked[number][0]]
        lost = sum(self.records.anonymity(number) - self.records.anonymity(number, candidate) for number in having)
        return lost / len(having if self.options.average == "containing" else binding)

    def is_allowed(self, candidate: PlainCandidate) -> bool:
        """Whether the models allow every group of every requirement after a refinement."""
        records = self.records
        for number, (columns, _) in enumerate(records.asked):
            for rows in records.groups(number, candidate) if candidate.column in columns else []:
                for constraint in self.constraints:
                    counts = np.zeros(constraint.column.size, np.int64)
                    for value in range(constraint.column.size):
                        counts[value] = records.count([row for row in rows if constraint.codes[row] == value])
                    if not all(bool(model.allows(counts)) for model in constraint.models):
                        return False
        return True

    def drop(self, candidate: PlainCandidate) -> None:
        self.out.add(self.name(candidate))
        if candidate.value >= 0 and self.options.suppression == "best_gain":
            self.closed.add(candidate.column)

    def open(self, index: int) -> list[tuple[PlainCandidate, float]]:
        """The candidates of a column that are valid and beneficial, with their gains."""
        candidates = [
            (candidate, self.gain(candidate))
            for candidate in self.records.candidates(index)
            if self.name(candidate) not in self.out
        ]
        candidates = [(candidate, value) for candidate, value in candidates if value >= 0]
        if index in self.closed or not candidates:
            return []
        if candidates[0][0].value >= 0 and self.options.suppression == "best_gain":
            candidates = [candidates[first_best([value for _, value in candidates])]]
        valid = []
        for candidate, value in candidates:
            if self.is_valid(candidate):
                valid.append((candidate, value))
            else:
                self.drop(candidate)
        return valid

    def best(self) -> tuple[PlainCandidate, float, float] | None:
        """The best candidate that models allow, its gain and its loss."""
        while True:
            candidates = [pair for index in range(len(self.records.codes)) for pair in self.open(index)]
            losses = [self.loss(candidate) for candidate, _ in candidates]
            by_gain = self.options.criterion == "infogain"
            merits = [
                value if by_gain else value / (loss + 1) for (_, value), loss in zip(candidates, losses, strict=True)
            ]
            place = first_best(merits)
            if place < 0:
                return None
            if not self.constraints or self.is_allowed(candidates[place][0]):
                return *candidates[place], losses[place]
            self.drop(candidates[place][0])

    def make(self, candidate: PlainCandidate) -> None:
        parts = self.records.parts[candidate.column]
        place = parts.index(candidate.part)
        if candidate.value < 0:
            parts.pop(place)
            parts.extend(candidate.pieces)
        else:
            parts[0] = candidate.pieces[0]
            parts.append(candidate.pieces[1])


def refine(
    table: CodedTable,
    classes: NDArray[Any],
    requirements: Sequence[tuple[tuple[int, ...], int]],
    *,
    weights: NDArray[Any] | None = None,
    constraints: Sequence[Constraint] = (),
    options: Options | None = None,
    start: Sequence[Sequence[Part]] | None = None,
) -> Plain:
    """Refine the columns of a table as far as requirements, each of columns and k, allow. The parts to start with have
    what is suppressed first.
    """
    records = _Records(table, classes, requirements, weights, start)
    refining = _PlainRefining(records, constraints, options or Options())
    steps = []
    while (best := refining.best()) is not None:
        candidate, value, loss = best
        refining.make(candidate)
        anonymity = tuple(records.anonymity(number) for number in range(len(requirements)))
        steps.append(PlainStep(candidate, value, loss, anonymity))
    return Plain(records.parts, steps)
