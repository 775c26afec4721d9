# SPDX-License-Identifier: Apache-2.0
"""The classes that a tree tells: the values of a target, or intervals of its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.trees.tallies import tallied
from anonfit.algorithms.trees.tree import ClassName
from anonfit.errors import DataError, SpecError
from anonfit.recoding.columns import interval_label
from anonfit.tables.codebook import typed
from anonfit.tables.schema import Column
from anonfit.workload.targets import TargetRequest, is_numeric

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Classes", "classes_of_target"]


@dataclass(frozen=True, slots=True)
class Classes:
    """The class of each row, as a place among the names."""

    of_row: NDArray[np.int32]
    names: tuple[ClassName, ...]


def classes_of_target(
    request: TargetRequest, column: Column, values: pl.Series, times: NDArray[np.int64] | None = None
) -> Classes:
    """The classes of a target; all rows must have one. Each value stands for so many rows, for one if that is not
    said.
    """
    import polars as pl

    gaps = int(tallied(values.is_null().to_numpy().astype(np.int64), times, 2)[1])
    if gaps:
        raise DataError(
            f"the target '{request.column}' has {gaps} missing value(s), and a tree can learn nothing from a row "
            "without a class; leave those rows out, or fill them."
        )
    if request.classes:
        numbers = typed(column, values).cast(pl.Float64, strict=False)
        if numbers.null_count():
            raise DataError(f"the target '{request.column}' has classes by numbers, and does not hold numbers.")
        edges = np.array(request.classes, np.float64)
        return Classes(np.searchsorted(edges, numbers.to_numpy(), side="right").astype(np.int32), _intervals(edges))
    if is_numeric(request, column, values):
        raise SpecError(
            [
                f"method.algorithm = 'tree': the target '{request.column}' is a number; give it classes, or "
                "type = 'nominal'."
            ]
        )
    plain = values if values.dtype.is_integer() or values.dtype in (pl.Boolean, pl.String) else _texts(values)
    names = plain.unique().sort()
    of_row = plain.replace_strict(names, np.arange(len(names)), return_dtype=pl.Int32)
    return Classes(of_row.to_numpy().astype(np.int32), tuple(names.to_list()))


def _texts(values: pl.Series) -> pl.Series:
    """Values as names; whole numbers without a point."""
    import polars as pl

    if values.dtype.is_float():
        whole = values.cast(pl.Int64, strict=False)
        if not whole.null_count() and bool((whole == values).all()):
            return whole
    return values.cast(pl.String)


def _intervals(edges: NDArray[np.float64]) -> tuple[str, ...]:
    texts = [f"{edge:.15g}" for edge in edges.tolist()]
    ends: Sequence[str | None] = [None, *texts, None]
    return tuple(interval_label(low, high) for low, high in pairwise(ends))
