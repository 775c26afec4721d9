# SPDX-License-Identifier: Apache-2.0
"""Top-down refinement of coded rows: the best valid refinement is made, again and again, and logged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.demands import Demands, Requirement, redundant, refuse_infeasible
from anonfit.algorithms.recounted import RecountedRows
from anonfit.algorithms.refining_columns import (
    ColumnPart,
    Disclosures,
    Left,
    Reason,
    Refinable,
    Refined,
    Step,
    refinable,
)
from anonfit.criteria.objectives import OBJECTIVES
from anonfit.criteria.refinement import Average, Criterion, ahead, anonymity_loss
from anonfit.engines.memory.refining import NOBODY, Groups, RowsToRefine
from anonfit.errors import Infeasible, RequestError, listed
from anonfit.recoding.columns import RecodedColumn
from anonfit.recoding.recoding import Recoding
from anonfit.tables.schema import CodedColumn


def refinement_log(
    refined: Refined, columns: Sequence[RecodedColumn], cells: Sequence[NDArray[np.int32]]
) -> dict[str, Any]:
    """The refinements that were made, in their order, and those that were not, as plain data: with labels of the
    recoding's columns, for which `cells` has the cell of each code.
    """

    def label(column: int, part: ColumnPart) -> str:
        held = np.unique(cells[column][np.array(part.codes, np.int64)]).tolist()
        return columns[column].label(held)

    return {
        "steps": [
            {
                "column": columns[step.column].name,
                "refined": None if step.refined is None else label(step.column, step.refined),
                "into": [label(step.column, part) for part in step.into],
                "gain": step.gain,
                "loss": step.loss,
                "score": step.score,
                "anonymity": list(step.anonymity),
            }
            for step in refined.steps
        ],
        "not_made": [
            {
                "column": columns[left.column].name,
                "part": label(left.column, left.part),
                "reason": str(left.reason),
                "gain": left.gain,
                "loss": left.loss,
            }
            for left in refined.left
        ],
        "anonymity": list(refined.anonymity),
        "groups": list(refined.groups),
        "stopped": refined.is_stopped,
    }


Suppression: TypeAlias = Literal["all", "best_gain"]


@dataclass(frozen=True, slots=True)
class Refining:
    """How columns are refined."""

    criterion: Criterion = "score"
    """What is best: information gain against anonymity loss, or information gain alone."""
    average: Average = "containing"
    """Anonymity loss is the mean over the requirements that have the column, or its sum over all of them divided by
    their number (as in the authors' program).
    """
    suppression: Suppression = "all"
    """Whether every suppressed value is a candidate, or of each column only the one of the highest gain; a column is
    closed when that one is invalid (as in the authors' program).
    """
    zero_gain: bool = False
    """Whether refinements that tell nothing of the classes are made, after all others."""
    seconds: float | None = None
    """Refining stops after so many; None: when nothing is left to refine."""
    start: Recoding | None = None
    """What refining begins with; None: every column is one part."""


Refinables: TypeAlias = RowsToRefine | RecountedRows
"""Rows that can be refined: in memory, or of an engine that counts their cells."""


def refine(
    rows: Refinables,
    requirements: Sequence[Requirement],
    *,
    refining: Refining,
    start: Sequence[Sequence[ColumnPart]] | None = None,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[Step], None] = lambda _: None,
) -> Refined:
    """Refine the columns of rows as far as requirements allow.

    Ordered columns are cut into intervals, columns divided along their taxonomy (BINARY, MULTIWAY) are generalized,
    others (SUBSET) are suppressed, and their values disclosed one by one.

    Models are asked about the best refinement that k allows; one that they forbid is never made. Every column is in at
    least one requirement. `start` has the parts of every column to begin with, which must meet all requirements, by
    default each is one part; `stop` is asked before each refinement, and `progress` told when it is made.
    """
    asked = tuple(requirements)
    _check(rows.columns, asked)
    implied = redundant(asked)
    silent = frozenset(number for number, _ in implied)
    groups = rows.groups([requirement.columns for requirement in asked], silent)
    try:
        refuse_infeasible(Demands(max(requirement.k for requirement in asked)), groups.anonymity(0), rows.constraints)
        columns = [
            refinable(index, column, counts, present)
            for index, (column, (counts, present)) in enumerate(zip(rows.columns, rows.by_class(), strict=True))
        ]
        refiner = _Refiner(columns, asked, silent, groups, refining)
        if start is not None:
            refiner.begin(start)
        stopped = refiner.run(stop, progress)
        return refiner.result(implied, is_stopped=stopped)
    finally:
        groups.close()


def _check(columns: Sequence[CodedColumn], requirements: tuple[Requirement, ...]) -> None:
    """Refuse requirements that do not fit the table."""
    if not requirements or not all(requirement.columns for requirement in requirements):
        raise RequestError("a quasi-identifier without columns, or none at all, was asked for; name at least one.")
    named = {column for requirement in requirements for column in requirement.columns}
    unknown = sorted(named - set(range(len(columns))))
    if unknown:
        raise RequestError(f"a quasi-identifier names column {unknown[0]} of a table of {len(columns)} columns.")
    unnamed = [column.name for index, column in enumerate(columns) if index not in named]
    if unnamed:
        raise RequestError(f"{listed(unnamed[:1])} is in no quasi-identifier; add it to one, or release it as it is.")


class _Refiner:
    """The state: the candidates of every column, and how good each is. A candidate that is out is out for good."""

    def __init__(
        self,
        columns: list[Refinable],
        requirements: tuple[Requirement, ...],
        silent: frozenset[int],
        groups: Groups,
        rules: Refining,
    ) -> None:
        self.columns = columns
        self.groups = groups
        self.rules = rules
        self.requirements = requirements
        # What follows from other requirements is not counted in losses, as if it had not been asked.
        self.counted = [number for number in range(len(requirements)) if number not in silent]
        self.anonymity = self.measured()
        self.merits = [np.zeros(0)] * len(columns)
        self.losses = [np.zeros(0)] * len(columns)
        self.steps: list[Step] = []

    def measured(self) -> NDArray[np.int64]:
        """The anonymity of every requirement. (requirement,)"""
        return np.array([self.groups.anonymity(number) for number in range(len(self.requirements))], np.int64)

    def begin(self, start: Sequence[Sequence[ColumnPart]]) -> None:
        """Begin with other parts than whole columns, unless they are too fine."""
        for refined_column, parts in zip(self.columns, start, strict=True):
            for refinement in refined_column.begin(parts):
                self.groups.refine(refinement, self.groups.divide(refinement))
        self.anonymity = self.measured()
        reached = zip(self.requirements, self.anonymity, strict=True)
        short = [requirement for requirement, anonymity in reached if anonymity < requirement.k]
        if short:
            names = listed(self.groups.names[index] for index in short[0].columns)
            raise Infeasible(
                f"the recoding to start from leaves fewer than k = {short[0].k} persons in a group of {names}; make it "
                "coarser, or start without it."
            )
        if not self.groups.all_allowed():
            raise Infeasible(
                "the recoding to start from has a group that a model of a sensitive column forbids; make it coarser, "
                "or start without it."
            )

    def run(self, stop: Callable[[], bool], progress: Callable[[Step], None]) -> bool:
        """Refine until nothing is left, or stop; whether it was stopped."""
        for column in self.columns:
            self.settle(column)
            if column.open.any():
                self.groups.watch(column.index, column.slots, column.width, by_value=column.by_value)
            self.survey(column)
        while True:
            best = ahead(np.concatenate(self.merits))
            if best < 0 or stop():
                return best >= 0
            ends = np.cumsum([len(merits) for merits in self.merits])
            index = int(np.searchsorted(ends, best, side="right"))
            step = self.make(self.columns[index], best - int(ends[index]) + len(self.merits[index]))
            if step is not None:
                self.steps.append(step)
                progress(step)

    def settle(self, column: Refinable) -> None:
        """Give up parts of a column that tell nothing; a suppressed value may tell more once others are disclosed."""
        if not (self.rules.zero_gain or column.by_value):
            column.exclude(np.flatnonzero(column.open & (column.gains <= 0)), Reason.NO_GAIN)

    def survey(self, column: Refinable) -> None:
        """Find what each candidate of a column is worth, and give up those that k forbids."""
        if column.open.any():
            after = self.foresee(column)
            over = len(after) if self.rules.average == "containing" else len(self.counted)
            before = self.anonymity[self.containing(column)]
            loss = anonymity_loss(before, after, over)
            least = np.array([self.requirements[number].k for number in self.containing(column)])
            usable = self.prune(column, np.all(after >= least[:, None], axis=0))
            merits = OBJECTIVES[self.rules.criterion].merits(column.gains, loss)
            self.merits[column.index] = np.where(usable, merits, -np.inf)
            self.losses[column.index] = loss
        if not column.open.any():
            self.merits[column.index] = np.zeros(0)
            self.groups.forget(column.index)
        elif isinstance(column, Disclosures) and 2 * np.count_nonzero(column.open) < column.width:
            column.number_slots()
            self.groups.watch(column.index, column.slots, column.width, by_value=True)

    def containing(self, column: Refinable) -> list[int]:
        """The requirements that have a column."""
        return [number for number in self.counted if column.index in self.requirements[number].columns]

    def foresee(self, column: Refinable) -> NDArray[np.int64]:
        """The anonymity after each refinement of a column. (requirement, candidate)

        Groups that are not divided keep their persons, and the parts of the smallest group are no larger than it.
        """
        foreseen = []
        for number in self.containing(column):
            if isinstance(column, Disclosures):
                by_slot = self.groups.least(number, column.index, column.width)
                least = np.where(column.slots >= 0, by_slot[column.slots], NOBODY)
            else:
                least = self.groups.least(number, column.index, len(column.parts))
            foreseen.append(np.minimum(least, self.anonymity[number]))
        return np.stack(foreseen)

    def prune(self, column: Refinable, valid: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Give up candidates that k forbids; which of the others may be refined now."""
        usable = column.open & ((column.gains > 0) | self.rules.zero_gain)
        if isinstance(column, Disclosures) and self.rules.suppression == "best_gain":
            best = ahead(np.where(usable, column.gains, -np.inf))
            usable &= np.arange(len(usable)) == best
            if best >= 0 and not valid[best]:
                self.give_up(column, best, Reason.FEW_PERSONS)
        else:
            column.exclude(np.flatnonzero(column.open & ~valid), Reason.FEW_PERSONS)
        return usable & column.open

    def give_up(self, column: Refinable, candidate: int, reason: Reason) -> None:
        """Give up a candidate; with it, where only the value of the highest gain is one, its whole column."""
        column.exclude(np.array([candidate]), reason)
        if isinstance(column, Disclosures) and self.rules.suppression == "best_gain":
            column.exclude(np.flatnonzero(column.open), Reason.CLOSED)

    def make(self, column: Refinable, candidate: int) -> Step | None:
        """Make a refinement, unless a model forbids it."""
        gain, loss = float(column.gains[candidate]), float(self.losses[column.index][candidate])
        refinement = column.refinement(candidate)
        divisions = self.groups.divide(refinement)
        if not self.groups.allowed(refinement, divisions):
            self.give_up(column, candidate, Reason.MODEL)
            self.survey(column)
            return None
        refined, into = column.refine(candidate)
        self.settle(column)
        self.groups.refine(refinement, divisions)
        for number in divisions:
            self.anonymity[number] = self.groups.anonymity(number)
        touched = {index for number in divisions for index in self.requirements[number].columns}
        for index in sorted(touched):
            self.survey(self.columns[index])
        anonymity = tuple(self.anonymity.tolist())
        return Step(column.index, refined, into, gain, loss, gain / (loss + 1.0), anonymity)

    def left(self, column: Refinable, candidate: int, part: ColumnPart, reason: Reason | None) -> Left:
        """A candidate that was not refined."""
        value = float(column.gains[candidate])
        if reason is not None:
            return Left(column.index, part, reason, value, None)
        unforced = Reason.STOPPED if value > 0 or self.rules.zero_gain else Reason.NO_GAIN
        return Left(column.index, part, unforced, value, float(self.losses[column.index][candidate]))

    def result(self, implied: tuple[tuple[int, int], ...], *, is_stopped: bool) -> Refined:
        """The parts that columns have now, and what led to them."""
        return Refined(
            parts=tuple(column.result() for column in self.columns),
            steps=tuple(self.steps),
            left=tuple(self.left(column, *candidate) for column in self.columns for candidate in column.left()),
            redundant=implied,
            anonymity=tuple(self.anonymity.tolist()),
            groups=tuple(self.groups.number(number) for number in range(len(self.requirements))),
            is_stopped=is_stopped,
        )
