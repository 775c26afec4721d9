# SPDX-License-Identifier: Apache-2.0
"""Whether two methods differ by more than chance: t-tests of differences that are paired by fold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

import numpy as np

from anonfit.errors import MissingPackage, RequestError

__all__ = ["PairedTest", "paired_test"]


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A mean difference, its deviation over folds, and how likely chance makes one as large (two-sided).

    The plain test takes folds to be independent, as the papers do. They share training rows, so it finds too much; the
    corrected one (Nadeau and Bengio 2003) allows for that.
    """

    difference: float
    deviation: float
    t: float
    p: float
    corrected_t: float
    corrected_p: float


def paired_test(first: Sequence[float], second: Sequence[float], *, test_share: float) -> PairedTest:
    """Test whether two measures, paired by fold, differ.

    Args:
        first: One measure a fold.
        second: The other's.
        test_share: How many test rows there are for each training row; 0 where trials share no rows.

    Returns:
        The difference, first less second, and both tests. Of fewer than two folds nothing is known: NaN.

    Example:
        >>> test = paired_test([3.0, 5.0, 4.0], [1.0, 2.0, 3.0], test_share=0.0)
        >>> test.difference, round(test.t, 3), round(test.p, 3)
        (2.0, 3.464, 0.074)
    """
    if len(first) != len(second):
        raise RequestError("measures can be paired only if there are as many of one as of the other.")
    differences = np.array(first, dtype=np.float64) - np.array(second, dtype=np.float64)
    folds = len(differences)
    if folds < 2:
        mean = float(differences.mean()) if folds else math.nan
        return PairedTest(mean, math.nan, math.nan, math.nan, math.nan, math.nan)
    mean, deviation = float(differences.mean()), float(differences.std(ddof=1))
    plain = _t(mean, deviation * math.sqrt(1 / folds))
    corrected = _t(mean, deviation * math.sqrt(1 / folds + test_share))
    return PairedTest(mean, deviation, plain, _p(plain, folds - 1), corrected, _p(corrected, folds - 1))


def _t(mean: float, error: float) -> float:
    if error > 0:
        return mean / error
    return math.copysign(math.inf, mean) if mean else 0.0


def _p(t: float, freedom: int) -> float:
    """The probability of a t at least as far from 0."""
    try:
        special = import_module("scipy.special")
    except ModuleNotFoundError:
        raise MissingPackage("scikit-learn", "learn", "Testing differences") from None
    return min(1.0, 2 * float(special.stdtr(freedom, -abs(t))))
