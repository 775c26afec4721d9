# SPDX-License-Identifier: Apache-2.0
"""What gradient boosting lowers: the losses of shares of two classes, of more, and of numbers. Each says where models
start, which slopes (gradients and hessians) examples have, how far off totals are, and what totals stand for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import exp, log, log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.runtime.compiling import inner, kernel

Numbers = NDArray[np.float64]


class Loss(ABC):
    """A loss; totals (output, example) are what the trees of each output add up to."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Trees that are grown at a time."""

    @abstractmethod
    def start(self, target: Numbers, weights: Numbers) -> Numbers:
        """What totals start at: as if nothing were known of an example. # (output,)"""

    @abstractmethod
    def find_slopes(self, target: Numbers, weights: Numbers, totals: Numbers, slopes: NDArray[np.float32]) -> None:
        """Find the gradient and the hessian of every example; slopes (output, 2, example)."""

    @abstractmethod
    def errors(self, target: Numbers, totals: Numbers) -> Numbers:
        """The loss of each example. # (example,)"""

    @abstractmethod
    def expected(self, totals: Numbers) -> Numbers:
        """What totals (example, output) stand for. # (example, class), or (example, 1)"""


class TwoShares(Loss):
    """The logarithmic loss of two classes, 0 and 1."""

    outputs = 1

    def start(self, target: Numbers, weights: Numbers) -> Numbers:
        """The logit of the share."""
        from scipy.special import logit

        least = 10 * np.finfo(np.float64).eps
        return np.atleast_1d(logit(np.clip(np.average(target, weights=weights), least, 1 - least)))

    def find_slopes(self, target: Numbers, weights: Numbers, totals: Numbers, slopes: NDArray[np.float32]) -> None:
        """By the kernel."""
        _slopes_of_two(target, weights, totals[0], slopes[0])

    def errors(self, target: Numbers, totals: Numbers) -> Numbers:
        """By the kernel."""
        return np.asarray(_errors_of_two(target, totals[0]))

    def expected(self, totals: Numbers) -> Numbers:
        """The shares of both."""
        from scipy.special import expit

        share = expit(totals[:, 0])
        return np.stack([1 - share, share], axis=1)


@dataclass(frozen=True, slots=True)
class ManyShares(Loss):
    """The logarithmic loss of three classes or more."""

    classes: int

    @property
    def outputs(self) -> int:
        """One for each class."""
        return self.classes

    def start(self, target: Numbers, weights: Numbers) -> Numbers:
        """The logarithms of shares, which sum to 0."""
        least = np.finfo(np.float64).eps
        shares = [np.average(target == each, weights=weights) for each in range(self.classes)]
        clipped = np.clip(shares, least, 1 - least)
        return np.asarray(np.log(clipped / np.exp(np.log(clipped).mean())))

    def find_slopes(self, target: Numbers, weights: Numbers, totals: Numbers, slopes: NDArray[np.float32]) -> None:
        """By the kernel."""
        _slopes_of_many(target, weights, totals, slopes)

    def errors(self, target: Numbers, totals: Numbers) -> Numbers:
        """By the kernel."""
        return np.asarray(_errors_of_many(target, totals))

    def expected(self, totals: Numbers) -> Numbers:
        """The share of each."""
        shares = totals - totals.max(axis=1)[:, None]
        np.exp(shares, out=shares)
        return np.asarray(shares / shares.sum(axis=1)[:, None])


class SquaredError(Loss):
    """Half the square of how far off a number is."""

    outputs = 1

    def start(self, target: Numbers, weights: Numbers) -> Numbers:
        """The mean."""
        return np.atleast_1d(np.average(target, weights=weights))

    def find_slopes(self, target: Numbers, weights: Numbers, totals: Numbers, slopes: NDArray[np.float32]) -> None:
        """The gradient is how far off a number is."""
        slopes[0, 0] = (totals[0] - target) * weights
        slopes[0, 1] = weights

    def errors(self, target: Numbers, totals: Numbers) -> Numbers:
        """Half the squares."""
        off = totals[0] - target
        return np.asarray(0.5 * off * off)

    def expected(self, totals: Numbers) -> Numbers:
        """The numbers themselves."""
        return totals


@kernel
def _slopes_of_two(target: Any, weights: Any, totals: Any, slopes: Any) -> None:
    for example in range(len(target)):
        own, total, weight = target[example], totals[example], weights[example]
        if total > -37.0:
            odds = exp(-total)
            slopes[0, example] = ((1.0 - own) - own * odds) / (1.0 + odds) * weight
            slopes[1, example] = odds / ((1.0 + odds) * (1.0 + odds)) * weight
        else:
            share = exp(total)
            slopes[0, example], slopes[1, example] = (share - own) * weight, share * weight


@kernel
def _errors_of_two(target: Any, totals: Any) -> Any:
    errors = np.empty(len(target))
    for example in range(len(target)):
        errors[example] = _log_of_one_and_exp(totals[example]) - target[example] * totals[example]
    return errors


@inner
def _log_of_one_and_exp(number: Any) -> Any:
    """log(1 + exp(number)) without overflow."""
    if number <= -37.0:
        return exp(number)
    if number <= -2.0:
        return log1p(exp(number))
    if number <= 18.0:
        return log(1.0 + exp(number))
    if number <= 33.3:
        return number + exp(-number)
    return number


@inner
def _exponentials(totals: Any, example: Any, found: Any) -> Any:
    """Put exp(total - the largest) of each class into `found`; gives the largest and the sum."""
    largest = totals[0, example]
    for each in range(1, len(totals)):
        largest = max(largest, totals[each, example])
    summed = 0.0
    for each in range(len(totals)):
        found[each] = exp(totals[each, example] - largest)
        summed += found[each]
    return largest, summed


@kernel
def _slopes_of_many(target: Any, weights: Any, totals: Any, slopes: Any) -> None:
    found = np.empty(len(totals))
    for example in range(len(target)):
        _, summed = _exponentials(totals, example, found)
        for each in range(len(totals)):
            share = found[each] / summed
            slopes[each, 0, example] = (share - (1.0 if target[example] == each else 0.0)) * weights[example]
            slopes[each, 1, example] = (share * (1.0 - share)) * weights[example]


@kernel
def _errors_of_many(target: Any, totals: Any) -> Any:
    errors, found = np.empty(len(target)), np.empty(len(totals))
    for example in range(len(target)):
        largest, summed = _exponentials(totals, example, found)
        errors[example] = log(summed) + largest - totals[int(target[example]), example]
    return errors
