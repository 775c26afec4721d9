# SPDX-License-Identifier: Apache-2.0
"""k-anonymity: every group has at least k persons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonfit.counts.measures import Measure, Persons, Sums

__all__ = ["KAnonymity"]


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
