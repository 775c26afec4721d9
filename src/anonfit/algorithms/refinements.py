# SPDX-License-Identifier: Apache-2.0
"""What top-down refinement is asked and what it gives: requirements, the parts of every column, and how they came
about.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Left", "Part", "Reason", "Refined", "Requirement", "Step", "redundant"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """A quasi-identifier: columns, by number, on which every record shares its values with at least k persons."""

    columns: tuple[int, ...]
    k: int


@dataclass(frozen=True, slots=True)
class Part:
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
    refined: Part | None
    into: tuple[Part, ...]
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
    """A refinement that was not made: of this part, or the disclosure of it.

    What it would tell, and the anonymity it would cost in the end; None where that is not known any more.
    """

    column: int
    part: Part
    reason: Reason
    gain: float
    loss: float | None


@dataclass(frozen=True, slots=True)
class Refined:
    """The parts of every column, and what led to them.

    `parts` are in the order of their codes, the rest of a suppressed column last. `redundant` says which requirement
    follows from which other one. `anonymity` and `groups` are those of every requirement.
    """

    parts: tuple[tuple[Part, ...], ...]
    steps: tuple[Step, ...]
    left: tuple[Left, ...]
    redundant: tuple[tuple[int, int], ...]
    anonymity: tuple[int, ...]
    groups: tuple[int, ...]
    is_stopped: bool


def redundant(requirements: tuple[Requirement, ...]) -> tuple[tuple[int, int], ...]:
    """Requirements that follow from another one, and that other one, which itself follows from none."""
    numbers = range(len(requirements))
    follows = {
        one: [other for other in numbers if other != one and _follows(requirements, one, other)] for one in numbers
    }
    return tuple((one, next(other for other in found if not follows[other])) for one, found in follows.items() if found)


def _follows(requirements: tuple[Requirement, ...], one: int, other: int) -> bool:
    """Whether a requirement's columns are among another's and its k is no more; of two that are the same the later."""
    asked, wider = requirements[one], requirements[other]
    columns, among = set(asked.columns), set(wider.columns)
    same = columns == among and asked.k == wider.k
    return columns <= among and asked.k <= wider.k and (not same or other < one)
