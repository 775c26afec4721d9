# SPDX-License-Identifier: Apache-2.0
"""What a privacy model is: whether a group with these values of a sensitive column may exist."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from enum import StrEnum
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.tables.scales import FixedPoint
from anonfit.tables.schema import ColumnType
from anonfit.tables.taxonomy import Taxonomy

DIGITS = 4


def plain(number: float) -> str:
    """A number without a needless fraction."""
    return f"{number:.10g}"


def at_most(number: float) -> str:
    """The largest short number that is not above a bound.

    Example:
        >>> at_most(3.73213)
        '3.732'
    """
    return plain(float(_shortened(number, ROUND_FLOOR)))


def at_least(number: float) -> str:
    """The smallest short number that is not below a bound."""
    return plain(float(_shortened(number, ROUND_CEILING)))


def more_than(number: float) -> str:
    """The smallest short number above a bound, also above one that is only rounded below a short number."""
    return plain(float(_shortened(number * (1 + 1e-12), ROUND_FLOOR) + _unit(number)))


def _unit(number: float) -> Decimal:
    """One of the last digit that is shown."""
    return Decimal(1).scaleb(Decimal(number).adjusted() - DIGITS + 1)


def _shortened(number: float, rounding: str) -> Decimal:
    return Decimal(number).quantize(_unit(number), rounding=rounding)


TIE = 1e-9
"""How far a figure may miss what is asked and still count as equal to it."""
Value: TypeAlias = float | str | bool
ANY = tuple(ColumnType)
NUMBERS = (ColumnType.CONTINUOUS,)


@dataclass(frozen=True, slots=True, eq=False)
class SensitiveColumn:
    """The values that occur in the table, missing among them: code 0 if `has_missing`.

    `whole` has the persons of each value, none of them 0. `numbers` are the values of a numeric column as multiples of
    `scale`, which must be fine for that many persons: sums of their squares then fit in 64 bits. `ordered` says that
    the codes follow an order of the values. `leaves` has the leaf position of each code in the taxonomy, ascending;
    without it every leaf has a code. The entries of the missing code in `numbers` and `leaves` are not used.
    """

    name: str
    size: int
    has_missing: bool
    whole: NDArray[np.int64]  # (size,)
    numbers: NDArray[np.int64] | None = None  # (size,)
    scale: FixedPoint | None = None
    taxonomy: Taxonomy | None = None
    ordered: bool = False
    leaves: NDArray[np.int64] | None = None  # (size,)
    rounding: float = 0.0
    """How far a number in fixed point is from the value it stands for, at most."""

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of each value in the whole table. (size,)"""
        return shares_of(self.whole)


def shares_of(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The share of each value in groups. counts: (…, size)"""
    shares: NDArray[np.float64] = counts / counts.sum(axis=-1, keepdims=True)
    return shares


class Kind(StrEnum):
    """What a parameter is, in the words of a message."""

    NUMBER = "a number"
    WHOLE = "a whole number"
    FLAG = "true or false"
    CHOICE = "one of"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A setting of a model. Without a default it must be given, unless it is `free`: then the column decides. `empty`
    is the end of its range at which the demand asks nothing, since every group of any table meets it; that end is
    refused.
    """

    name: str
    words: str
    kind: Kind = Kind.NUMBER
    lowest: float = 0.0
    highest: float = math.inf
    above_lowest: bool = False
    choices: tuple[str, ...] = ()
    default: Value | None = None
    free: bool = False
    empty: Literal["lowest", "highest"] | None = None

    @property
    def is_needed(self) -> bool:
        """Whether it must be given."""
        return self.default is None and not self.free

    def demand(self) -> str:
        """What its value must be."""
        if self.kind == Kind.FLAG:
            return str(self.kind)
        if self.kind == Kind.CHOICE:
            return f"{self.kind} {', '.join(self.choices)}"
        low = f"{'above' if self.above_lowest else 'of at least'} {plain(self.lowest)}"
        if self.empty == "lowest":
            low = f"of at least {plain(self.lowest + 1)}" if self.kind == Kind.WHOLE else f"above {plain(self.lowest)}"
        high = f" and {'below' if self.empty == 'highest' else 'at most'} {plain(self.highest)}"
        return f"{self.kind} {low}" + (high if math.isfinite(self.highest) else "")

    def accepts(self, value: object) -> bool:
        """Whether a value is one it may have."""
        if self.kind == Kind.FLAG:
            return isinstance(value, bool)
        if self.kind == Kind.CHOICE:
            return value in self.choices
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < math.inf:
            return False
        if self.asks_nothing(value) or (self.kind == Kind.WHOLE and value != int(value)):
            return False
        above = value > self.lowest if self.above_lowest else value >= self.lowest
        return above and value <= self.highest

    def asks_nothing(self, value: object) -> bool:
        """Whether every group of any table meets a demand with this value; so near to the end, models see a tie."""
        if self.empty is None or isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.empty == "lowest":
            return value <= self.lowest * (1 + 2 * TIE)
        return value >= self.highest * (1 - 2 * TIE)


class DiversityModel:
    """May a group with these values of a sensitive column exist? To add a model, write its class, list it at the end of
    its module, give it a branch in the kernel (`engines.memory.model_kernels`), and have the audit recount it
    (`auditing.models`).

    `words` say what is demanded, `attacker` against whom; `sentence` tells the figure of the worst group, which is
    `bound` to be what was asked. A model that is monotone allows a group that is divided into parts which may exist,
    where the persons of the parts add up to its own. (With an entity column they need not: a person may have rows in
    two parts.)
    """

    __slots__ = ()
    name: str
    words: str
    attacker: str
    sentence: str
    bound = "at least"
    parameters: tuple[Parameter, ...]
    suits = ANY
    is_monotone = True
    kernel: int
    """The number of its kernel."""
    column: SensitiveColumn
    """The column whose values it guards."""

    @classmethod
    def sentence_of(cls, settings: Mapping[str, Any]) -> str:
        """The sentence on the worst group's figure, which stands in place of `{}`, for a demand with these settings."""
        return cls.sentence.format("{}", **settings)

    def limits(self) -> tuple[int, float]:
        """What the kernel compares with: a whole number and a limit."""
        raise NotImplementedError

    def value_bounds(self) -> NDArray[np.float64] | None:
        """What the kernel compares each value with, where it does. (size,)"""
        return None

    def value_runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]] | None:
        """Runs of values that the kernel sums over, where it does: first, last and charge of each. (run,)"""
        return None

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether groups with so many persons of each value (…, size) may exist; no group is empty. If not said
        otherwise, their figure is bound by the limit.
        """
        compare = {"at least": np.greater_equal, "at most": np.less_equal, "below": np.less}[self.bound]
        allowed: NDArray[np.bool_] = compare(self.figure(counts), self.limits()[1])
        return allowed

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The model's own measure of groups: what `allows` compares with the model's parameter."""
        raise NotImplementedError

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """Why a whole table may not exist, with its own figures and the nearest possible parameter."""
        raise NotImplementedError
