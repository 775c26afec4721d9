# SPDX-License-Identifier: Apache-2.0
"""What every span of a tree must hold: k persons, and classes that are mixed enough."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import Infeasible, RequestError
from anonfit.privacy.models import at_least, at_most, plain

__all__ = ["TIE", "Demand", "demand_of", "require_demand"]

TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Demand:
    """At least k persons in every span that anybody has; the entropy of their classes is at least that of `l` equally
    frequent ones, and no class has a share above `max_confidence`.
    """

    k: int = 1
    l: float = 1.0  # noqa: E741 - the parameter's name in the field
    max_confidence: float = 1.0

    @property
    def is_diverse(self) -> bool:
        """Whether anything but k is asked for."""
        return self.l > 1.0 or self.max_confidence < 1.0

    def numbers(self) -> NDArray[np.float64]:
        """The demand as kernels read it: k, l in bits, the confidence."""
        return np.array([self.k, math.log2(self.l), self.max_confidence])

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether spans with these persons by class may exist. counts: (span, class)"""
        persons = counts.sum(axis=-1)
        some = np.maximum(persons, 1)
        entropy = np.log2(some) - (counts * np.log2(np.maximum(counts, 1))).sum(axis=-1) / some
        found: NDArray[np.bool_] = (
            (persons >= self.k)
            & ((entropy >= math.log2(self.l) - TIE) | (self.l <= 1.0))
            & ((counts.max(axis=-1) <= (self.max_confidence + TIE) * persons) | (self.max_confidence >= 1.0))
        )
        found |= persons == 0
        return found


def demand_of(k: object, entropy_l: object, max_confidence: object) -> Demand:
    """The demand that a caller writes down; what is no such number is refused."""
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
        raise RequestError(f"k must be a whole number of at least 1; found {k!r}.")
    if not _is_number(entropy_l) or not 1 <= entropy_l < math.inf:
        raise RequestError(f"entropy_l must be a number of at least 1; found {entropy_l!r}.")
    if not _is_number(max_confidence) or not 0 < max_confidence <= 1:
        raise RequestError(f"max_confidence must be a number above 0 and at most 1; found {max_confidence!r}.")
    return Demand(int(k), float(entropy_l), float(max_confidence))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def require_demand(demand: Demand, classes: NDArray[np.int64], *, class_is_public: bool) -> None:
    """Refuse a demand that not even the root meets. classes: (class,) the persons of each"""
    if class_is_public and demand.is_diverse:
        raise RequestError(
            "the class is public, so its diversity protects nobody: ask for k alone, or let the class be private."
        )
    total = int(classes.sum())
    smallest = int(classes[classes > 0].min(initial=total)) if class_is_public else total
    if smallest < demand.k:
        known = " with the same class, which is public," if class_is_public else ""
        raise Infeasible(
            f"there are {smallest} person(s){known} in the training rows, fewer than k = {demand.k}: no tree can give "
            f"each of them {demand.k - 1} others like them."
        )
    shares = classes[classes > 0] / total
    if shares.max() > demand.max_confidence + TIE and demand.max_confidence < 1.0:
        raise Infeasible(
            f"one class has {shares.max():.2%} of the training rows, so max_confidence must be at least "
            f"{at_least(float(shares.max()) - TIE)}; {plain(demand.max_confidence)} is asked for."
        )
    found = float(-(shares * np.log2(shares)).sum())
    if demand.l > 1.0 and found < math.log2(demand.l) - TIE:
        raise Infeasible(
            f"the class has entropy {found:.3f} bits over all training rows, so l cannot exceed "
            f"{at_most(2.0 ** (found + TIE))}; l = {plain(demand.l)} is asked for."
        )
