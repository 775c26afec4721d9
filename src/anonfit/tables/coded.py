# SPDX-License-Identifier: Apache-2.0
"""A coded table: every quasi-identifier as small integers. Made by the codebook, grown and routed by the engines."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.tables.taxonomy import Taxonomy

__all__ = ["MISSING", "CodedColumn", "CodedTable", "Codes", "SplitMode", "code_dtype"]

Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]

MISSING = 0
"""The code of a missing value in a column that has missing values."""


class SplitMode(IntEnum):
    """How the codes of a column may be divided."""

    ORDERED = 0
    SUBSET = 1
    BINARY = 2
    MULTIWAY = 3


@dataclass(frozen=True, slots=True)
class CodedColumn:
    """What growing must know of a column: nothing but its codes.

    Code 0 is the missing value if `has_missing`; the other codes follow the order of the values, or of the taxonomy's
    leaves.
    `positions` says where each code's value stands on its scale (ordered columns; the entry of a missing code is not
    used).
    """

    name: str
    size: int
    mode: SplitMode
    has_missing: bool
    positions: NDArray[np.float64]
    taxonomy: Taxonomy | None = None


@dataclass(frozen=True, slots=True)
class CodedTable:
    """The columns, their codes (one array per column), and who the rows stand for.

    `counts` is the number of persons of each row, `entities` the person a row belongs to; at most one of them is given.
    """

    columns: tuple[CodedColumn, ...]
    codes: tuple[Codes, ...]
    rows: int
    counts: NDArray[np.uint32] | None = None
    entities: NDArray[np.uint32] | None = None


def code_dtype(size: int) -> np.dtype[Any]:
    """The narrowest unsigned type that holds `size` codes."""
    if size <= 1 << 8:
        return np.dtype(np.uint8)
    if size <= 1 << 16:
        return np.dtype(np.uint16)
    return np.dtype(np.uint32)
