# SPDX-License-Identifier: Apache-2.0
"""What a privacy model is: whether it is monotone, and whether a group may exist. One kind judges the sums of a group,
as k-anonymity does, the other the values of a sensitive column.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from anonfit.tables.measures import FixedPoint, Measure, Persons, Sums
from anonfit.tables.taxonomy import Taxonomy

__all__ = [
    "TIE",
    "DiversityModel",
    "KAnonymity",
    "SensitiveColumn",
    "at_least",
    "at_most",
    "more_than",
    "plain",
    "shares_of",
]

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


class PrivacyModel(Protocol):
    """May a group exist?"""

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What must be summed over a group; the first is its persons."""

    @property
    def is_monotone(self) -> bool:
        """Whether a group may exist whenever one of its parts may: then a group that may not need not be divided."""

    def allows(self, sums: Sums) -> NDArray[np.bool_]:
        """Whether groups with these sums (…, sum) may exist; groups of nobody are not asked about."""

    def why_not(self, sums: Sums) -> str:
        """For a whole table that may not exist: the sentence that says why, with the table's own figures."""


class DiversityModel(Protocol):
    """May a group with these values of a sensitive column exist?"""

    @property
    def name(self) -> str:
        """The word for the model in a spec."""

    @property
    def column(self) -> SensitiveColumn:
        """The column whose values it guards."""

    @property
    def is_monotone(self) -> bool:
        """Whether a group that is divided into parts which may exist may exist itself, where the persons of the parts
        add up to its own. (With an entity column they need not: a person may have rows in two parts.)
        """

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether groups with so many persons of each value (…, size) may exist; groups of nobody are not asked
        about.
        """

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The model's own measure of groups: what `allows` compares with the model's parameter."""

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """For a whole table that may not exist: why, with the table's own figures and the nearest possible
        parameter.
        """


@dataclass(frozen=True, slots=True)
class KAnonymity:
    """At least k persons in every group."""

    k: int
    is_monotone: bool = True

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Persons."""
        return (Persons(),)

    def allows(self, sums: Sums) -> NDArray[np.bool_]:
        """Whether there are k persons."""
        found: NDArray[np.bool_] = sums[..., 0] >= self.k
        return found

    def why_not(self, sums: Sums) -> str:
        """Too few persons in the whole table."""
        return (
            f"the table is about {int(sums[0])} person(s), fewer than k = {self.k}: no release can give each of them "
            f"{self.k - 1} others like them."
        )
