# SPDX-License-Identifier: Apache-2.0
"""What a privacy model is: whether it is monotone, and whether a group may exist. One kind judges the sums of a group,
the other (diversity) how often each value of a sensitive column occurs in it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from anonfit.counts.measures import Measure, Sums
from anonfit.privacy.sensitive import SensitiveColumn

__all__ = ["DiversityModel", "PrivacyModel"]


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
