# SPDX-License-Identifier: Apache-2.0
"""Likeness: no value is much more frequent in a group than in the whole table, measured in proportion.

β-likeness: Cao, Karras: Publishing Microdata with a Robust Privacy Guarantee, PVLDB 5(11), 2012.
δ-disclosure: Brickell, Shmatikov: The Cost of Privacy, KDD 2008.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anonfit.privacy.bounds import at_least, more_than, plain
from anonfit.privacy.sensitive import TIE, SensitiveColumn, shares_of

__all__ = ["BetaLikeness", "DeltaDisclosure"]


@dataclass(frozen=True, slots=True)
class BetaLikeness:
    """No value's share grows by more than β times its share in the whole table; enhanced, also by no more than −ln of
    that share, which binds frequent values.
    """

    name: ClassVar[str] = "beta-likeness"
    is_monotone: ClassVar[bool] = True
    column: SensitiveColumn
    beta: float
    enhanced: bool = False

    @property
    def bounds(self) -> NDArray[np.float64]:
        """How far each value's share may grow. (size,)"""
        found: NDArray[np.float64] = np.minimum(self.beta, self._caps())
        return found

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether every value's growth stays within its bound."""
        return np.asarray((self._growth(counts) <= self.bounds + TIE).all(axis=-1))

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The largest growth of a value's share, as a part of its share in the whole table."""
        found: NDArray[np.float64] = self._growth(counts).max(axis=-1)
        return found

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """Some value grows too much; a whole table compared with itself never does."""
        found = float(self.figure(counts))
        told = f"{self.column.name} has a value whose share grew by {found:.4g} times its share in the"
        if bool((self._growth(counts) > self._caps() + TIE).any()):
            return f"{told} whole table or less: enhanced beta-likeness forbids such growth, whatever beta is."
        return (
            f"{told} whole table, so beta must be at least {at_least(max(found - TIE, 0.0))}; beta-likeness asks for "
            f"beta = {plain(self.beta)}."
        )

    def _growth(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        shares = self.column.shares
        growth: NDArray[np.float64] = (shares_of(counts) - shares) / shares
        return growth

    def _caps(self) -> NDArray[np.float64]:
        """What no β can allow. (size,)"""
        return -np.log(self.column.shares) if self.enhanced else np.full(self.column.size, np.inf)


@dataclass(frozen=True, slots=True)
class DeltaDisclosure:
    """The logarithm of the ratio of every value's share in a group and in the whole table is nearer to 0 than δ; so
    every value of the table is in every group.
    """

    name: ClassVar[str] = "delta-disclosure"
    is_monotone: ClassVar[bool] = True
    column: SensitiveColumn
    delta: float

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether every value's ratio stays within δ."""
        found: NDArray[np.bool_] = self.figure(counts) < self.delta + TIE
        return found

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The farthest logarithm of a ratio; infinite where a value is absent."""
        ratios = shares_of(counts) / self.column.shares
        present = counts > 0
        logarithms = np.abs(np.log(np.where(present, ratios, 1.0)))
        found: NDArray[np.float64] = np.where(present, logarithms, np.inf).max(axis=-1)
        return found

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """Some value is too frequent, too rare or absent; a whole table compared with itself never has one."""
        found = float(self.figure(counts))
        if np.isinf(found):
            return (
                f"{self.column.name} lacks a value of the whole table: delta-disclosure forbids it, whatever delta is."
            )
        return (
            f"{self.column.name} has a value whose share is {np.exp(found):.4g} times larger or "
            f"smaller than in the whole table, so delta must be at least {more_than(max(found - TIE, 0.0))}; "
            f"delta-disclosure asks for delta = {plain(self.delta)}."
        )
