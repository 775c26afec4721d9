# SPDX-License-Identifier: Apache-2.0
"""Selections over codes: which codes of each quasi-identifier the sub-populations of a workload reach."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["CodedSelections"]


@dataclass(frozen=True, slots=True)
class CodedSelections:
    """Disjoint rectangles of codes, and for which rows each of them counts.

    Rows of the same signature satisfy the same conditions on columns that are released as they are.
    """

    rectangles: NDArray[np.uint8]  # (rectangle, code of any quasi-identifier, columns one after another)
    selection: NDArray[np.int64]  # (rectangle,) the selection it belongs to
    weights: NDArray[np.float64]  # (selection,)
    signatures: NDArray[np.int64]  # (row,)
    applies: NDArray[np.uint8]  # (signature, rectangle)
    faces: NDArray[np.uint8]  # (code of any quasi-identifier,) 1 where a rectangle of an ordered column begins or ends
    names: tuple[str, ...] = ()
