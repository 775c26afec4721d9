# SPDX-License-Identifier: Apache-2.0
"""What a privacy model is: which sums it needs, whether it is monotone, and whether a group with these sums may
exist.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from anonfit.counts.measures import Measure, Sums

__all__ = ["PrivacyModel"]


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
