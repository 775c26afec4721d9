# SPDX-License-Identifier: Apache-2.0
"""Median Mondrian's choice within a column: the cut with half of the persons on each side."""

from __future__ import annotations

__all__ = ["TIE", "median_distance"]

TIE = 1e-9
"""Merits that differ by less are equal."""


def median_distance(below: int, last: int, total: int) -> tuple[bool, int]:
    """How far a cut is from the best: whether it is not the lower median's, and its distance from half of the persons.

    Args:
        below: Persons under the cut.
        last: Of these, persons of the highest element under it.
        total: Persons of the node.
    """
    half = (total + 1) // 2
    return not below - last < half <= below, abs(below - half)
