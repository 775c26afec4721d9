# SPDX-License-Identifier: Apache-2.0
"""The columns that are refined top-down: their parts, what each could become, and what that would gain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.refinement import ahead, cut_gains, disclosure_gains, gain, is_beneficial
from anonfit.engines.memory.refining_kernels import Refinement
from anonfit.tables.schema import MISSING, CodedColumn, SplitMode


@dataclass(frozen=True, slots=True)
class ColumnPart:
    """Codes of a column that are released as one value.

    `node` is the taxonomy node they are released as, where there is one (a missing value has none); `is_rest` marks
    the values of a suppressed column that are not disclosed.
    """

    codes: range | tuple[int, ...]
    node: int | None = None
    is_rest: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A refinement that was made.

    `refined` is None where a value of a suppressed column was disclosed: `into` is then that value alone.
    `anonymity` is that of every requirement afterwards.
    """

    column: int
    refined: ColumnPart | None
    into: tuple[ColumnPart, ...]
    gain: float
    loss: float
    score: float
    anonymity: tuple[int, ...]


class Reason(StrEnum):
    """Why a refinement was not made."""

    FEW_PERSONS = "fewer than k persons in a group"
    MODEL = "a group that a model of a sensitive column forbids"
    ONE_CLASS = "all its records have one class"
    NO_GAIN = "it tells nothing of the classes"
    CLOSED = "the value of the highest gain could not be disclosed"
    STOPPED = "stopped before"


@dataclass(frozen=True, slots=True)
class Left:
    """A refinement that was not made: of this part, or its disclosure. `loss` is the anonymity that it would have cost
    in the end, None where that is not known any more.
    """

    column: int
    part: ColumnPart
    reason: Reason
    gain: float
    loss: float | None


@dataclass(frozen=True, slots=True)
class Refined:
    """The parts of every column, and what led to them.

    `parts` are in the order of their codes, the rest of a suppressed column last. `redundant` says which requirement
    follows from which other one. `anonymity` and `groups` are those of every requirement.
    """

    parts: tuple[tuple[ColumnPart, ...], ...]
    steps: tuple[Step, ...]
    left: tuple[Left, ...]
    redundant: tuple[tuple[int, int], ...]
    anonymity: tuple[int, ...]
    groups: tuple[int, ...]
    is_stopped: bool


Counts: TypeAlias = NDArray[np.int64]


class Runs:
    """A column whose parts are runs of codes. A candidate is a part, numbered in the order of making.

    counts: (code, class); present: (code,) whether it has rows; slots: (code,) the piece of its part that a code would
    come to, -1 where the part is never refined.
    """

    by_value = False

    def __init__(self, index: int, column: CodedColumn, counts: Counts, present: NDArray[np.bool_]) -> None:
        self.index = index
        self.column = column
        self.counts = counts
        self.present = present
        self.slots = np.full(column.size, -1, np.int32)
        self.parts: list[ColumnPart] = []
        self.pieces: list[tuple[ColumnPart, ...]] = []
        self.reasons: dict[int, Reason] = {}
        self.refined = np.zeros(0, np.bool_)
        self.open = np.zeros(0, np.bool_)
        self.gains = np.zeros(0)
        self.add([ColumnPart(range(column.size), None if column.mode == SplitMode.ORDERED else 0)])

    @property
    def width(self) -> int:
        """The most pieces that a part can have."""
        if self.column.mode == SplitMode.ORDERED:
            return 2
        taxonomy, shift = self.column.taxonomy, int(self.column.has_missing)
        assert taxonomy is not None
        most = 0
        for node, (first, last) in enumerate(zip(taxonomy.first_leaf, taxonomy.last_leaf, strict=True)):
            codes = range(first + shift if node else 0, last + shift + 1)  # missing is in the root
            most = max(most, len(self._children(ColumnPart(codes, node))))
        return most

    def begin(self, parts: Sequence[ColumnPart]) -> Iterator[Refinement]:
        """Begin with some parts in place of the whole column: what engines are to do first."""
        if len(parts) < 2:
            return
        yield self._into(0, parts)
        self.refined[0], self.open[0] = True, False
        self.add(list(parts))

    def add(self, parts: list[ColumnPart]) -> None:
        """Take parts as new candidates."""
        gains, beneficial = np.zeros(len(parts)), np.zeros(len(parts), np.bool_)
        for number, part in enumerate(parts):
            pieces = self._halves(part) if self.column.mode == SplitMode.ORDERED else self._children(part)
            sums = [self.counts[_run(piece)].sum(axis=0) for piece in pieces]
            self.slots[_run(part)] = -1
            self.pieces.append(pieces)
            if pieces and is_beneficial(np.sum(sums, axis=0)):
                gains[number], beneficial[number] = gain(sums), True
                for slot, piece in enumerate(pieces):
                    self.slots[_run(piece)] = slot
            elif pieces:
                self.reasons[len(self.parts) + number] = Reason.ONE_CLASS
        self.parts += parts
        self.gains = np.append(self.gains, gains)
        self.open = np.append(self.open, beneficial)
        self.refined = np.append(self.refined, np.zeros_like(beneficial))

    def _children(self, part: ColumnPart) -> tuple[ColumnPart, ...]:
        """The children of a taxonomy node; missing is one more child of the root. In place of the only child that has
        rows there are its own children: to go down to it tells nothing and costs nothing.
        """
        children = self._below(part)
        filled = [place for place, child in enumerate(children) if self.present[_run(child)].any()]
        if len(filled) == 1:
            (only,) = filled
            if further := self._children(children[only]):
                return (*children[:only], *further, *children[only + 1 :])
        return children

    def _below(self, part: ColumnPart) -> tuple[ColumnPart, ...]:
        """The children of a taxonomy node, whether they have rows or not."""
        taxonomy, shift = self.column.taxonomy, int(self.column.has_missing)
        assert taxonomy is not None
        if part.node is None:
            return ()
        below = taxonomy.children(part.node)
        missing: tuple[ColumnPart, ...] = ()
        if part.node == 0 and shift and len(part.codes) == self.column.size:
            missing, below = (ColumnPart(range(MISSING, MISSING + 1)),), below or (0,)
        runs = [range(taxonomy.first_leaf[node] + shift, taxonomy.last_leaf[node] + shift + 1) for node in below]
        return (*missing, *(ColumnPart(run, node) for run, node in zip(runs, below, strict=True)))

    def _halves(self, part: ColumnPart) -> tuple[ColumnPart, ...]:
        """The two intervals that tell most of the classes; the upper one begins with a value that occurs."""
        first, stop = part.codes[0], part.codes[-1] + 1
        codes = np.flatnonzero(self.present[first:stop]) + first
        if len(codes) < 2:
            return ()
        cut = int(codes[ahead(cut_gains(self.counts[codes])) + 1])
        return ColumnPart(range(first, cut)), ColumnPart(range(cut, stop))

    def refinement(self, candidate: int) -> Refinement:
        """A refinement as engines read it."""
        return self._into(candidate, self.pieces[candidate])

    def _into(self, candidate: int, pieces: Sequence[ColumnPart]) -> Refinement:
        """The refinement of a part into pieces."""
        children = np.full(self.column.size, -1, np.int32)
        for child, piece in enumerate(pieces):
            children[_run(piece)] = child
        numbers = np.arange(len(self.parts), len(self.parts) + len(pieces), dtype=np.int32)
        codes = self.parts[candidate].codes
        return Refinement(self.index, candidate, children, numbers, range(codes[0], codes[-1] + 1))

    def refine(self, candidate: int) -> tuple[ColumnPart | None, tuple[ColumnPart, ...]]:
        """Refine a part; what it was and what it is now."""
        self.refined[candidate], self.open[candidate] = True, False
        self.add(list(self.pieces[candidate]))
        return self.parts[candidate], self.pieces[candidate]

    def exclude(self, candidates: NDArray[np.int64], reason: Reason) -> None:
        """Some candidates are never refined."""
        self.open[candidates] = False
        for candidate in candidates.tolist():
            self.reasons[candidate] = reason
            self.slots[_run(self.parts[candidate])] = -1

    def result(self) -> tuple[ColumnPart, ...]:
        """The parts in the order of their codes."""
        kept = [self.parts[number] for number in np.flatnonzero(~self.refined).tolist()]
        return tuple(sorted(kept, key=lambda part: part.codes[0]))

    def left(self) -> list[tuple[int, ColumnPart, Reason | None]]:
        """The candidates that were not refined, and why; None where nothing forbids it."""
        kept = [number for number in np.flatnonzero(~self.refined).tolist() if self.pieces[number]]
        return [(number, self.parts[number], self.reasons.get(number)) for number in kept]


class Disclosures:
    """A column whose values are suppressed, or disclosed one by one. A candidate is a value, numbered by its code."""

    by_value = True

    def __init__(self, index: int, column: CodedColumn, counts: Counts, present: NDArray[np.bool_]) -> None:
        self.index = index
        self.counts = counts
        self.open = present.copy()
        self.suppressed = np.ones(column.size, np.bool_)
        self.present = present
        self.reasons: dict[int, Reason] = {}
        self.disclosed: list[int] = []
        self.gains = np.zeros(column.size)
        self.number_slots()
        self.weigh()

    def number_slots(self) -> None:
        """Give a slot to each value that may still be disclosed."""
        self.slots = np.where(self.open, np.cumsum(self.open) - 1, -1).astype(np.int32)
        self.width = int(np.count_nonzero(self.open))

    def begin(self, parts: Sequence[ColumnPart]) -> Iterator[Refinement]:
        """Begin with some values disclosed: what engines are to do first."""
        for code in (part.codes[0] for part in parts if not part.is_rest):
            yield replace(self.refinement(code), disclosed=max(int(self.slots[code]), 0))
            self.disclose(code)
        self.weigh()

    def disclose(self, code: int) -> None:
        """Take a value out of those that are suppressed."""
        self.suppressed[code] = self.open[code] = False
        self.slots[code] = -1
        self.disclosed.append(code)

    def weigh(self) -> None:
        """The gain of each value that is suppressed now."""
        held = np.flatnonzero(self.suppressed & self.present)
        self.gains[:] = 0.0
        self.gains[held] = disclosure_gains(self.counts[held])
        if not is_beneficial(self.counts[held].sum(axis=0)):
            self.exclude(np.flatnonzero(self.open), Reason.ONE_CLASS)

    def refinement(self, candidate: int) -> Refinement:
        """A refinement as engines read it: what stays suppressed is the first child, and the same part."""
        children = np.where(self.suppressed, 0, -1).astype(np.int32)
        children[candidate] = 1
        numbers = np.array([0, len(self.disclosed) + 1], np.int32)
        moving = range(candidate, candidate + 1)
        return Refinement(self.index, 0, children, numbers, moving, disclosed=int(self.slots[candidate]))

    def refine(self, candidate: int) -> tuple[ColumnPart | None, tuple[ColumnPart, ...]]:
        """Disclose a value; what it is now."""
        self.disclose(candidate)
        self.weigh()
        return None, (_value(candidate),)

    def exclude(self, candidates: NDArray[np.int64], reason: Reason) -> None:
        """Some values are never disclosed."""
        self.open[candidates] = False
        self.slots[candidates] = -1
        for candidate in candidates.tolist():
            self.reasons[candidate] = reason

    def result(self) -> tuple[ColumnPart, ...]:
        """The disclosed values in the order of their codes, then the rest."""
        rest = tuple(np.flatnonzero(self.suppressed).tolist())
        shown = tuple(_value(code) for code in sorted(self.disclosed))
        return (*shown, ColumnPart(rest, is_rest=True)) if rest else shown

    def left(self) -> list[tuple[int, ColumnPart, Reason | None]]:
        """The values that are still suppressed, and why; None where nothing forbids it."""
        held = np.flatnonzero(self.suppressed & self.present).tolist()
        return [(code, _value(code), self.reasons.get(code)) for code in held]


Refinable: TypeAlias = Runs | Disclosures


def refinable(index: int, column: CodedColumn, counts: Counts, present: NDArray[np.bool_]) -> Refinable:
    """A column with the refinements that suit it: nominal columns without a taxonomy are suppressed."""
    kind = Disclosures if column.mode == SplitMode.SUBSET else Runs
    return kind(index, column, counts, present)


def _run(part: ColumnPart) -> slice:
    return slice(part.codes[0], part.codes[-1] + 1)


def _value(code: int) -> ColumnPart:
    return ColumnPart(range(code, code + 1))
