# SPDX-License-Identifier: Apache-2.0
"""Median Mondrian's criterion: the widest column, cut where half of the persons are on each side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anonfit.counts.measures import Measure, Persons

__all__ = ["TIE", "Median"]

TIE = 1e-9
"""Merits that differ by less are equal."""


@dataclass(frozen=True, slots=True)
class Median:
    """Prefers columns by their normalized range, and cuts of a column by their distance from the median."""

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Persons."""
        return (Persons(),)

    def distance(self, below: int, last: int, total: int) -> tuple[bool, int]:
        """How far a cut is from the best: whether it is not the lower median's, and its distance from half of the
        persons.

        Args:
            below: Persons under the cut.
            last: Of these, persons of the highest element under it.
            total: Persons of the node.
        """
        half = (total + 1) // 2
        return not below - last < half <= below, abs(below - half)

    def prefer(self, spreads: Sequence[float]) -> int:
        """The column to try: the widest, of equal ones the first; -1 if none is left (ranges below 0)."""
        best = -1
        for column, spread in enumerate(spreads):
            if spread >= 0 and (best < 0 or spread > spreads[best] + TIE):
                best = column
        return best
