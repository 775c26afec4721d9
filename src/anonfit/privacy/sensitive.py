# SPDX-License-Identifier: Apache-2.0
"""A sensitive column as the diversity models see it: its values as codes, and how many persons of the whole table have
each. Made by coding.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonfit.counts.fixed_point import FixedPoint
from anonfit.tables.taxonomy import Taxonomy

__all__ = ["TIE", "SensitiveColumn", "shares_of"]

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
