# SPDX-License-Identifier: Apache-2.0
"""Models that compare a group with the whole table: distances of distributions (t-closeness), bounds on the frequency
of a value (alpha-k, beta-likeness) and on its ratio to the whole (delta-disclosure).

t-closeness: Li, Li, Venkatasubramanian: t-Closeness: Privacy Beyond k-Anonymity and l-Diversity, ICDE 2007. Each earth
mover's distance is a weighted sum over runs of codes: of what the one distribution has more than the other in that
run. For equal distances a run is a value, for ordered ones all values up to one, for hierarchical ones the values
below a node of the taxonomy.

(α, k)-anonymity, of which the k part is the table's own k: Wong, Li, Fu, Wang: (α, k)-Anonymity: An Enhanced
k-Anonymity Model for Privacy Preserving Data Publishing, KDD 2006. β-likeness: Cao, Karras: Publishing Microdata with
a Robust Privacy Guarantee, PVLDB 5(11), 2012. δ-disclosure: Brickell, Shmatikov: The Cost of Privacy, KDD 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.privacy.models import (
    TIE,
    DiversityModel,
    Kind,
    Parameter,
    SensitiveColumn,
    at_least,
    more_than,
    plain,
    shares_of,
)
from anonfit.tables.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True, eq=False)
class Distance:
    """Runs of codes, from `first` to `last` inclusive, and how much an excess in each weighs."""

    name: str
    first: NDArray[np.int64]  # (run,)
    last: NDArray[np.int64]  # (run,)
    weight: NDArray[np.float64]  # (run,)

    def of(self, excess: NDArray[np.float64]) -> NDArray[np.float64]:
        """The distance of distributions from another, given how much more of each value they have. excess: (…, size)"""
        before = np.zeros((*excess.shape[:-1], excess.shape[-1] + 1))
        np.cumsum(excess, axis=-1, out=before[..., 1:])
        distances: NDArray[np.float64] = np.abs(before[..., self.last + 1] - before[..., self.first]) @ self.weight
        return distances


def equal_distance(column: SensitiveColumn) -> Distance:
    """Any two values are at distance 1: half the sum of the differences."""
    values = np.arange(column.size)
    return Distance("equal", values, values, np.full(column.size, 0.5))


def ordered_distance(column: SensitiveColumn) -> Distance:
    """Neighbouring values are one step apart, the lowest and the highest 1."""
    steps = max(column.size - 1, 0)
    return Distance("ordered", np.zeros(steps, np.int64), np.arange(steps), np.full(steps, 1.0 / max(steps, 1)))


def hierarchical_distance(column: SensitiveColumn) -> Distance:
    """Two values are at the height of their lowest common node, as a part of the root's.

    Li, Li and Venkatasubramanian charge every inner node its height, as a part of the root's, times the smaller of what
    its children have too much and too little. That smaller one is half of the children's differences less the node's
    own, so each node's difference counts with half the height it lies below its parent.
    """
    assert column.taxonomy is not None
    heights = _heights(column.taxonomy)
    top = max(heights[0], 1)
    firsts, lasts = _runs(column, column.taxonomy)
    above = np.array([heights[parent] if parent >= 0 else top for parent in column.taxonomy.parents])
    weights = (above - heights) / (2.0 * top)
    if column.has_missing:
        firsts, lasts, weights = np.append(firsts, 0), np.append(lasts, 0), np.append(weights, 0.5)
    kept = (lasts >= firsts) & (weights > 0)
    return Distance("hierarchical", firsts[kept], lasts[kept], weights[kept])


def _runs(column: SensitiveColumn, taxonomy: Taxonomy) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and last code below each node of the taxonomy; the last before the first where none is."""
    shift = int(column.has_missing)
    leaves = np.arange(column.size - shift) if column.leaves is None else column.leaves[shift:]
    firsts = np.searchsorted(leaves, taxonomy.first_leaf, side="left") + shift
    lasts = np.searchsorted(leaves, taxonomy.last_leaf, side="right") + shift - 1
    return firsts, lasts


def _heights(taxonomy: Taxonomy) -> NDArray[np.int64]:
    """The longest way down to a leaf from each node."""
    heights = [0] * len(taxonomy.parents)
    for node in range(len(heights) - 1, 0, -1):
        parent = taxonomy.parents[node]
        heights[parent] = max(heights[parent], heights[node] + 1)
    return np.array(heights)


DISTANCES: Mapping[str, Callable[[SensitiveColumn], Distance]] = MappingProxyType(
    {"equal": equal_distance, "ordered": ordered_distance, "hierarchical": hierarchical_distance}
)


@dataclass(frozen=True, slots=True)
class TCloseness(DiversityModel):
    """Every group's distribution is at most t away from the whole table's."""

    name = "t-closeness"
    words = "the values of every group are distributed nearly as in the whole table"
    attacker = "Someone who finds a person's group learns little more about the value than the whole table tells."
    sentence = "no group is farther than {} from the whole table, by the {distance} distance"
    bound = "at most"
    parameters = (
        Parameter("t", "the largest distance from the whole table", highest=1, empty="highest"),
        Parameter("distance", "how far two values are apart", Kind.CHOICE, choices=tuple(DISTANCES), free=True),
    )
    kernel = 3
    column: SensitiveColumn
    t: float
    distance: Distance

    @classmethod
    def sentence_of(cls, settings: Mapping[str, Any]) -> str:
        """It names the distance."""
        return cls.sentence.format("{}", distance=settings.get("distance", "equal"))

    def limits(self) -> tuple[int, float]:
        """The distance."""
        return 0, self.t + TIE

    def value_runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Those of the distance."""
        return self.distance.first, self.distance.last, self.distance.weight

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The distance from the whole table's distribution."""
        return self.distance.of(shares_of(counts) - self.column.shares)

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """The distance is too large; a whole table compared with itself has none."""
        distance = float(self.figure(counts))
        least = at_least(max(distance - TIE, 0.0))
        return (
            f"{self.column.name} is distributed {distance:.4g} away from the whole table (distance "
            f"{self.distance.name}), so t must be at least {least}; t-closeness asks for t = {plain(self.t)}."
        )


@dataclass(frozen=True, slots=True)
class AlphaK(DiversityModel):
    """No value has more than the share α in any group. `parameter` is the word that the spec asked with."""

    name = "alpha-k"
    words = "no value has a larger share than alpha in a group"
    attacker = "Someone who finds a person's group can be sure of no value with more than the share alpha."
    sentence = "no value has a larger share of a group than {}"
    bound = "at most"
    parameter = "alpha"
    parameters = (
        Parameter("alpha", "the largest share of a value in a group", highest=1, above_lowest=True, empty="highest"),
    )
    kernel = 4
    column: SensitiveColumn
    alpha: float

    def limits(self) -> tuple[int, float]:
        """The share."""
        return 0, self.alpha + TIE

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The share of the most frequent value."""
        largest: NDArray[np.float64] = shares_of(counts).max(axis=-1)
        return largest

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """The table's most frequent value is too frequent, and in some group it is never rarer."""
        share = float(self.figure(counts))
        least = at_least(share - TIE)
        return (
            f"{self.column.name} has a value that {share:.2%} of the persons of the whole table have, so "
            f"{self.parameter} must be at least {least}; {self.parameter} = {plain(self.alpha)} is asked for."
        )


class MaxConfidence(AlphaK):
    """What holds a target to privacy.max_confidence."""

    __slots__ = ()
    name = "max_confidence"
    sentence = "no class has a larger share of a group than {}"
    parameter = "max_confidence"


@dataclass(frozen=True, slots=True)
class BetaLikeness(DiversityModel):
    """No value's share grows by more than β times its share in the whole table; enhanced, also by no more than −ln of
    that share, which binds frequent values.
    """

    name = "beta-likeness"
    words = "no value's share is much larger in a group than in the whole table"
    attacker = (
        "Someone who finds a person's group does not see any value become much more likely than in the whole table."
    )
    sentence = "no value's share grows in a group by more than {} times its share in the whole table{enhanced}"
    bound = "at most"
    parameters = (
        Parameter("beta", "how much a value's share may grow, as a part of its share in the whole table"),
        Parameter("enhanced", "bind frequent values more tightly", Kind.FLAG, default=False),
    )
    kernel = 5
    column: SensitiveColumn
    beta: float
    enhanced: bool = False

    @classmethod
    def sentence_of(cls, settings: Mapping[str, Any]) -> str:
        """It says whether the bound is the enhanced one."""
        return cls.sentence.format("{}", enhanced=" and within the enhanced bound" if settings.get("enhanced") else "")

    def value_bounds(self) -> NDArray[np.float64]:
        """How far each value's share may grow. (size,)"""
        return np.minimum(self.beta, self._caps()) + TIE

    def limits(self) -> tuple[int, float]:
        """Nothing: every value has a bound of its own."""
        return 0, 0.0

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether every value's growth stays within its bound."""
        return np.asarray((self._growth(counts) <= self.value_bounds()).all(axis=-1))

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The largest growth of a value's share, as a part of its share in the whole table."""
        largest: NDArray[np.float64] = self._growth(counts).max(axis=-1)
        return largest

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """Some value grows too much; a whole table compared with itself never does."""
        growth = float(self.figure(counts))
        beginning = f"{self.column.name} has a value whose share grew by {growth:.4g} times its share in the"
        if bool((self._growth(counts) > self._caps() + TIE).any()):
            return f"{beginning} whole table or less: enhanced beta-likeness forbids such growth, whatever beta is."
        least = at_least(max(growth - TIE, 0.0))
        return (
            f"{beginning} whole table, so beta must be at least {least}; beta-likeness asks for beta = "
            f"{plain(self.beta)}."
        )

    def _growth(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        shares = self.column.shares
        return (shares_of(counts) - shares) / shares

    def _caps(self) -> NDArray[np.float64]:
        """What no β can allow. (size,)"""
        return -np.log(self.column.shares) if self.enhanced else np.full(self.column.size, np.inf)


@dataclass(frozen=True, slots=True)
class DeltaDisclosure(DiversityModel):
    """The logarithm of the ratio of every value's share in a group and in the whole table is nearer to 0 than δ; so
    every value of the table is in every group.
    """

    name = "delta-disclosure"
    words = "no value's share is much larger or smaller in a group than in the whole table"
    attacker = "Someone who finds a person's group sees no value become much more or much less likely."
    sentence = "the logarithm of a share in a group by its share in the whole table is at most {}"
    bound = "below"
    parameters = (Parameter("delta", "the largest logarithm of the ratio of two shares"),)
    kernel = 6
    column: SensitiveColumn
    delta: float

    def limits(self) -> tuple[int, float]:
        """The logarithm."""
        return 0, self.delta + TIE

    def figure(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The farthest logarithm of a ratio; infinite where a value is absent."""
        ratios = shares_of(counts) / self.column.shares
        present = counts > 0
        logarithms = np.abs(np.log(np.where(present, ratios, 1.0)))
        farthest: NDArray[np.float64] = np.where(present, logarithms, np.inf).max(axis=-1)
        return farthest

    def why_not(self, counts: NDArray[np.int64]) -> str:
        """Some value is too frequent, too rare or absent; a whole table compared with itself never has one."""
        logarithm = float(self.figure(counts))
        if np.isinf(logarithm):
            return (
                f"{self.column.name} lacks a value of the whole table: delta-disclosure forbids it, whatever delta is."
            )
        return (
            f"{self.column.name} has a value whose share is {np.exp(logarithm):.4g} times larger or "
            f"smaller than in the whole table, so delta must be at least {more_than(max(logarithm - TIE, 0.0))}; "
            f"delta-disclosure asks for delta = {plain(self.delta)}."
        )


LIKENESS: tuple[type[DiversityModel], ...] = (TCloseness, AlphaK, BetaLikeness, DeltaDisclosure)
"""The models of this module."""
