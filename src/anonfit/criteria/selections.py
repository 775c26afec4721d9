# SPDX-License-Identifier: Apache-2.0
"""Selections over codes: which codes of each quasi-identifier the sub-populations of a workload reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CodedSelections", "Signatures", "signatures_of"]


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


@dataclass(frozen=True, slots=True)
class Signatures:
    """How the classes of rows, one for each column that is released as it is, become signatures: column by column, the
    place of a combination of classes among those that occur.
    """

    sizes: tuple[int, ...] = ()  # (column,) how many classes it has
    known: tuple[NDArray[np.int64], ...] = ()
    """(column,) What occurs, ascending: the place of the combination so far times the classes, plus the class."""

    def of(self, classes: Sequence[NDArray[np.integer[Any]]], rows: int) -> NDArray[np.int64]:
        """The signatures of so many rows, from their classes of each column."""
        found = np.zeros(rows, np.int64)
        for size, known, own in zip(self.sizes, self.known, classes, strict=True):
            found = np.searchsorted(known, found * size + own).astype(np.int64)
        return found


def signatures_of(
    sizes: Sequence[int], classes: Sequence[NDArray[np.integer[Any]]], rows: int
) -> tuple[Signatures, NDArray[np.int64]]:
    """The signatures that occur in so many rows, given their classes of each column, and the signature of each row."""
    found = np.zeros(rows, np.int64)
    known = []
    for size, own in zip(sizes, classes, strict=True):
        used, found = np.unique(found * size + own, return_inverse=True)
        known.append(used)
    return Signatures(tuple(sizes), tuple(known)), found
