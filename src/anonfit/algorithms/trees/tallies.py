# SPDX-License-Identifier: Apache-2.0
"""Persons by a number that rows have: their class, or their span and class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def tallied(numbers: NDArray[np.integer[Any]], persons: NDArray[np.int64] | None, count: int) -> NDArray[np.int64]:
    """The persons who have each of `count` numbers; each row stands for so many, for one if that is not said."""
    if persons is None:
        return np.bincount(numbers, minlength=count)
    # Sums of whole numbers below 2^53 are exact.
    found: NDArray[np.int64] = np.bincount(numbers, weights=persons, minlength=count).astype(np.int64)
    return found
