# SPDX-License-Identifier: Apache-2.0
"""The targets of a workload as figures are made of them: classes or numbers, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.targets import ClassTarget, NumberTarget
from anonfit.tables.schema import Role, Schema
from anonfit.workload.targets import Workload, code_target

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CodedTarget", "coded_targets"]


@dataclass(frozen=True, slots=True)
class CodedTarget:
    """The values of a target: classes where there is a `width`, numbers where there is none. Numbers are multiples of a
    unit, from anywhere, so that their squares neither overflow nor vanish.
    """

    column: str
    values: NDArray[np.int64] | NDArray[np.float64]  # (row,)
    width: int
    known: NDArray[np.bool_]  # (row,) a missing class is a class, a missing number is not predicted
    is_generalized: bool
    unit: float = 1.0

    @property
    def has_classes(self) -> bool:
        """Whether it is a class to be told, not a number to be estimated."""
        return self.width > 0


def coded_targets(workload: Workload, schema: Schema, frame: pl.DataFrame) -> tuple[CodedTarget, ...]:
    """The targets of a workload; `frame` has their raw values. Of a target that a model predicts, the values count."""
    declared = {column.name: column for column in schema.columns}
    masses = np.ones(len(frame), np.int64)
    found = []
    for request in workload.targets:
        column, values = declared[request.column], frame[request.column]
        generalized = column.role == Role.QUASI_IDENTIFIER
        coded = code_target(request, column, values, masses=masses, own=-1, objective=workload.objective)
        if isinstance(coded, ClassTarget):
            known = np.ones(len(frame), np.bool_)
            found.append(CodedTarget(request.column, coded.classes, coded.width, known, generalized))
            continue
        assert isinstance(coded, NumberTarget)
        known = values.is_not_null().to_numpy()
        numbers = coded.multiples.astype(np.float64)
        found.append(CodedTarget(request.column, numbers, 0, known, generalized, coded.scale.step))
    return tuple(found)
