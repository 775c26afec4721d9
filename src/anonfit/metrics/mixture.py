# SPDX-License-Identifier: Apache-2.0
"""How mixed the classes of a target are in the groups of a release: conditional entropy and the classification metric.
Computed from released rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Mixture", "mixture"]


@dataclass(frozen=True, slots=True)
class Mixture:
    """What groups leave open of one target's classes; entropies are in bits (base 2)."""

    column: str
    entropy: float
    """H(C): of the classes of all released rows."""
    conditional_entropy: float
    """H(C|P): of the classes inside a group, averaged over rows."""
    classification_metric: float
    """The share of rows whose class is not their group's commonest; withheld rows count (Iyengar 2002)."""

    @property
    def explained(self) -> float:
        """The share of the entropy that groups take away; 0 where there was none."""
        return 1 - self.conditional_entropy / self.entropy if self.entropy > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready figures."""
        return {
            "column": self.column,
            "entropy": self.entropy,
            "conditional_entropy": self.conditional_entropy,
            "explained": self.explained,
            "classification_metric": self.classification_metric,
        }


def mixture(
    column: str,
    groups: NDArray[np.integer[Any]],
    classes: NDArray[np.integer[Any]],
    *,
    counts: NDArray[Any] | None = None,
    withheld: int = 0,
) -> Mixture:
    """How mixed classes are in groups.

    Args:
        column: The target's name.
        groups: (row,) the group of each row, -1 for a row that is withheld.
        classes: (row,) the class of each row, 0 and up; missing is a class like any other.
        counts: (row,) how many persons each row stands for; None: one.
        withheld: Persons that are not among these rows because they are withheld.

    Returns:
        The figures.
    """
    masses = np.ones(len(groups)) if counts is None else counts.astype(np.float64)
    released = groups >= 0
    lost = float(masses[~released].sum()) + withheld
    masses = masses[released]
    total = float(masses.sum())
    _, group = np.unique(groups[released], return_inverse=True)
    width = int(classes.max(initial=0)) + 1
    pairs, which = np.unique(group * width + classes[released], return_inverse=True)
    held = np.bincount(which, weights=masses, minlength=len(pairs))  # persons of each class in each group
    sizes = np.bincount(group, weights=masses)
    most = np.zeros(len(sizes))
    np.maximum.at(most, pairs // width, held)
    inside = float(_n_log_n(sizes).sum() - _n_log_n(held).sum())
    overall = float(_n_log_n(np.array([total])).sum() - _n_log_n(np.bincount(pairs % width, weights=held)).sum())
    return Mixture(
        column,
        entropy=max(overall / total, 0.0) if total else 0.0,
        conditional_entropy=max(inside / total, 0.0) if total else 0.0,
        classification_metric=(total - float(most.sum()) + lost) / (total + lost) if total + lost else 0.0,
    )


def _n_log_n(numbers: NDArray[Any]) -> NDArray[np.float64]:
    """n log2 n of numbers, 0 for 0."""
    found: NDArray[np.float64] = numbers * np.log2(np.where(numbers > 0, numbers, 1.0))
    return found
