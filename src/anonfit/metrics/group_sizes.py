# SPDX-License-Identifier: Apache-2.0
"""What the sizes of groups say of a release: their average, and how many others each record cannot be told from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["GroupFigures", "group_figures", "sizes_of"]


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """Figures of group sizes, in persons. Smaller is more useful."""

    persons: int
    groups: int
    k: int
    withheld: int

    squares: int
    """Of the sizes of groups, summed."""

    @property
    def average(self) -> float:
        """The average size of a group; 0 without groups."""
        return self.persons / self.groups if self.groups else 0.0

    @property
    def c_avg(self) -> float:
        """The average size in multiples of k (LeFevre et al. 2006): 1 is the best that k allows."""
        return self.average / self.k

    @property
    def discernibility(self) -> int:
        """For every person how many cannot be told from him or her, summed (Bayardo and Agrawal 2005): the group's
        size, and for a withheld one the whole table.
        """
        return self.squares + self.withheld * (self.persons + self.withheld)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready figures."""
        return {
            "persons": self.persons,
            "groups": self.groups,
            "average": self.average,
            "c_avg": self.c_avg,
            "discernibility": self.discernibility,
        }


def sizes_of(groups: NDArray[np.integer[Any]], counts: NDArray[Any] | None = None) -> NDArray[np.int64]:
    """The sizes of the groups of rows that are released (0 and up), or of the persons that rows stand for."""
    released = np.flatnonzero(groups >= 0)
    _, which = np.unique(groups[released], return_inverse=True)
    if counts is None:
        return np.bincount(which).astype(np.int64)
    # Whole numbers, since sums of squares are exact in these only.
    found = np.zeros(int(which.max(initial=-1)) + 1, np.int64)
    np.add.at(found, which, counts[released].astype(np.int64))
    return found


def group_figures(sizes: NDArray[np.integer[Any]], *, k: int, withheld: int = 0) -> GroupFigures:
    """Figures of groups of these sizes.

    Args:
        sizes: (group,) the persons of each group that has any.
        k: The persons that were asked of a group.
        withheld: Persons that are not released; each counts as if nobody could be told from anybody.

    Returns:
        Average size, its multiple of k, and discernibility.
    """
    whole = [int(size) for size in sizes]
    return GroupFigures(sum(whole), len(whole), k, withheld, sum(size * size for size in whole))
