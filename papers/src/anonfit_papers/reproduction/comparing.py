# SPDX-License-Identifier: Apache-2.0
"""Comparisons that experiments are judged by: paired differences, and how closely one quantity follows another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonfit.evaluation.result import paired_test, student_p

WEAK = 0.05
"""The p from which on a difference says little."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How far one series is above another on average, and how likely chance alone would part them as much.

    `p` is that of the paired t-test, as in the paper; `corrected` allows for rows that folds share.
    """

    mean: float
    p: float
    corrected: float

    def is_above(self, p: float) -> bool:
        """Whether the first is above the second, and that is no chance at this level."""
        return self.mean > 0 and self.p < p

    @property
    def is_weak(self) -> bool:
        """Whether chance alone would often part them as much."""
        return self.p >= WEAK

    def __str__(self) -> str:
        """The difference in points."""
        return f"{self.mean:+.2f} points, p = {self.p:.2g}"

    def told(self, above: str, below: str) -> str:
        """The difference by one of two words.

        Example:
            >>> Difference(-0.5, 0.01, 0.02).told("higher", "lower")
            '0.50 points lower, p = 0.01'
        """
        return f"{abs(self.mean):.2f} points {above if self.mean >= 0 else below}, p = {self.p:.2g}"


def difference(first: Sequence[float], second: Sequence[float], *, folds: int = 0) -> Difference:
    """The paired t-test of two series.

    Args:
        first: One number a trial.
        second: The numbers of the same trials.
        folds: How many folds the trials are; 0 where they share no rows.

    Returns:
        The mean difference and the two-sided p; 1 where there are fewer than two trials.

    Example:
        >>> difference([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
        Difference(mean=0.0, p=1.0, corrected=1.0)
    """
    test = paired_test(first, second, test_share=1 / (folds - 1) if folds > 1 else 0.0)
    known = len(first) > 1
    return Difference(test.difference, test.p if known else 1.0, test.corrected_p if known else 1.0)


def sign_test(first: int, second: int) -> float:
    """How likely chance alone would give as uneven a number of wins (two-sided; ties are left out).

    Example:
        >>> sign_test(5, 0)
        0.0625
    """
    wins, trials = max(first, second), first + second
    tail = sum(math.comb(trials, number) for number in range(wins, trials + 1)) / 2**trials
    return min(1.0, 2 * float(tail))


def correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Pearson's correlation; 0 where one of them does not change.

    Example:
        >>> correlation([1, 2, 3], [3, 2, 1])
        -1.0
    """
    left, right = (np.asarray(numbers, dtype=np.float64) for numbers in (first, second))
    if len(left) < 2 or left.std() == 0 or right.std() == 0:
        return 0.0
    return round(float(np.corrcoef(left, right)[0, 1]), 12)


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's correlation: that of the ranks, equal numbers sharing theirs.

    Example:
        >>> rank_correlation([1, 2, 3], [1, 10, 100])
        1.0
    """
    return correlation(_ranks(first), _ranks(second))


def correlations_test(of: Sequence[float], first: Sequence[float], second: Sequence[float]) -> float:
    """How likely chance alone would part as far how closely two series follow a third one, whatever their directions.

    Williams's test of two correlations that share a variable.

    Args:
        of: What both are correlated with.
        first: One series.
        second: The other one.

    Returns:
        The two-sided p; 1 where there are fewer than four numbers.

    Example:
        >>> correlations_test([1, 2, 3, 4, 5], [1, 2, 3, 4, 5.1], [1, 2, 3, 4, 5.1])
        1.0
    """
    count = len(of)
    if count < 4:
        return 1.0
    one, other, both = correlation(of, first), correlation(of, second), correlation(first, second)
    # A direction that is turned turns how the two go together, too.
    both = math.copysign(1.0, one) * math.copysign(1.0, other) * both
    one, other = abs(one), abs(other)
    left = 1 - one**2 - other**2 - both**2 + 2 * one * other * both
    spread = 2 * left * (count - 1) / (count - 3) + ((one + other) / 2) ** 2 * (1 - both) ** 3
    if one == other or spread <= 0:
        return 1.0 if one == other else 0.0
    t = (one - other) * math.sqrt((count - 1) * (1 + both) / spread)
    return student_p(t, count - 3)


def mean_and_error(numbers: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error.

    Example:
        >>> mean_and_error([1.0, 3.0])
        (2.0, 1.0)
    """
    values = np.asarray(numbers, dtype=np.float64)
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(values.mean()), error


def _ranks(numbers: Sequence[float]) -> list[float]:
    values = np.asarray(numbers, dtype=np.float64)
    return [float((values < number).sum() + ((values == number).sum() - 1) / 2) for number in values]
