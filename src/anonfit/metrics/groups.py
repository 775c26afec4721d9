# SPDX-License-Identifier: Apache-2.0
"""What groups say of a release: their sizes, and how mixed the classes of a target are in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.metrics.arrays import AnyIntegers, Floats, Integers


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """Figures of group sizes, in persons. Smaller is more useful."""

    persons: int
    groups: int
    k: int
    withheld: int

    squares: int
    """The squares of the sizes of groups, summed."""

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


def released_persons(
    groups: AnyIntegers, counts: NDArray[Any] | None = None, withheld: int = 0
) -> tuple[NDArray[Any], Integers, int]:
    """The groups that rows were released in, the persons of each, and how many persons are withheld. groups: (row,) -1
    for a row that is withheld; counts: (row,) the persons a row stands for; withheld: further persons, who are not
    among the rows.
    """
    used, which = np.unique(groups, return_inverse=True)
    # Whole numbers, since sums of squares are exact in these only.
    persons = np.zeros(len(used), np.int64)
    np.add.at(persons, which, 1 if counts is None else counts.astype(np.int64))
    is_released = used >= 0
    return used[is_released], persons[is_released], withheld + int(persons[~is_released].sum())


def sizes_of(groups: AnyIntegers, counts: NDArray[Any] | None = None) -> Integers:
    """The sizes of the groups of released rows (0 and up): in rows, or in the persons that rows stand for."""
    return released_persons(groups, counts)[1]


def group_figures(sizes: AnyIntegers, *, k: int, withheld: int = 0) -> GroupFigures:
    """Figures of groups of so many persons each (group,); a withheld person cannot be told from anybody."""
    whole = [int(size) for size in sizes]
    return GroupFigures(sum(whole), len(whole), k, withheld, sum(size * size for size in whole))


@dataclass(frozen=True, slots=True)
class ClassEntropy:
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


def class_entropy(
    column: str, groups: AnyIntegers, classes: AnyIntegers, *, counts: NDArray[Any] | None = None, withheld: int = 0
) -> ClassEntropy:
    """How mixed the classes of a target are in groups; missing is a class like any other. groups: (row,) -1 for a row
    that is withheld; classes: (row,) 0 and up; counts: (row,) the persons a row stands for; withheld: further persons,
    who are not among the rows.
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
    return ClassEntropy(
        column,
        entropy=max(overall / total, 0.0) if total else 0.0,
        conditional_entropy=max(inside / total, 0.0) if total else 0.0,
        classification_metric=(total - float(most.sum()) + lost) / (total + lost) if total + lost else 0.0,
    )


def _n_log_n(numbers: NDArray[Any]) -> Floats:
    """n log2 n of numbers, 0 for 0."""
    products: Floats = numbers * np.log2(np.where(numbers > 0, numbers, 1.0))
    return products
