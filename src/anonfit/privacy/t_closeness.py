# SPDX-License-Identifier: Apache-2.0
"""t-closeness: the values of a group are distributed nearly as in the whole table.

Li, Li, Venkatasubramanian: t-Closeness: Privacy Beyond k-Anonymity and l-Diversity, ICDE 2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anonfit.privacy.bounds import at_least, plain
from anonfit.privacy.distances import Distance
from anonfit.privacy.sensitive import TIE, SensitiveColumn, shares_of

__all__ = ["TCloseness"]


@dataclass(frozen=True, slots=True)
class TCloseness:
    """Every group's distribution is at most t away from the whole table's."""

    name: ClassVar[str] = "t-closeness"
    is_monotone: ClassVar[bool] = True
    column: SensitiveColumn
    t: float
    distance: Distance

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the distance is at most t."""
        found: NDArray[np.bool_] = self.figure(counts) <= self.t + TIE
        return found

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The distance from the whole table's distribution."""
        return self.distance.of(shares_of(counts) - self.column.shares)

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """The distance is too large; a whole table compared with itself has none."""
        found = float(self.figure(counts))
        least = at_least(max(found - TIE, 0.0))
        return (
            f"{self.column.name} is distributed {found:.4g} away from the whole table (distance "
            f"{self.distance.name}), so t must be at least {least}; t-closeness asks for t = {plain(self.t)}."
        )
