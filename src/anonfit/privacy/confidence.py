# SPDX-License-Identifier: Apache-2.0
"""(α, k)-anonymity: no value is more frequent in a group than α, so nobody can be told a value with more confidence.

Wong, Li, Fu, Wang: (α, k)-Anonymity: An Enhanced k-Anonymity Model for Privacy Preserving Data Publishing, KDD 2006.
The k part is the table's own k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anonfit.privacy.bounds import at_least, plain
from anonfit.privacy.sensitive import TIE, SensitiveColumn, shares_of

__all__ = ["AlphaK", "confidence_limit"]


@dataclass(frozen=True, slots=True)
class AlphaK:
    """No value has more than the share α in any group. `name` and `parameter` are the words the spec asked with."""

    is_monotone: ClassVar[bool] = True
    column: SensitiveColumn
    alpha: float
    name: str = "alpha-k"
    parameter: str = "alpha"

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the most frequent value's share is at most α."""
        found: NDArray[np.bool_] = self.figure(counts) <= self.alpha + TIE
        return found

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The share of the most frequent value."""
        found: NDArray[np.float64] = shares_of(counts).max(axis=-1)
        return found

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """The table's most frequent value is too frequent, and in some group it is never rarer."""
        share = float(self.figure(counts))
        least = at_least(share - TIE)
        return (
            f"{self.column.name} has a value that {share:.2%} of the persons of the whole table have, so "
            f"{self.parameter} must be at least {least}; {self.parameter} = {plain(self.alpha)} is asked for."
        )


def confidence_limit(column: SensitiveColumn, confidence: float) -> AlphaK:
    """The model that holds a target to privacy.max_confidence."""
    return AlphaK(column, confidence, name="max_confidence", parameter="max_confidence")
