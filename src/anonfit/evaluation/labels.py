# SPDX-License-Identifier: Apache-2.0
"""What models predict: the classes or numbers of a target, of raw rows and of released ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import RequestError
from anonfit.estimators.features import Encoding
from anonfit.estimators.reading import RawReader, is_raw
from anonfit.evaluation.learners import Predicts
from anonfit.recoding.recoding import Recoding
from anonfit.tables.codebook import typed
from anonfit.tables.schema import Column, Role
from anonfit.workload.targets import TargetRequest, is_numeric

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Labels", "labels_of"]


@dataclass(frozen=True, slots=True)
class Labels:
    """How the values of a column become what is predicted."""

    column: Column
    predicts: Predicts
    edges: tuple[float, ...] = ()
    """Where classes of numbers meet."""

    @property
    def is_generalized(self) -> bool:
        """Whether the release tells a region in place of the value."""
        return self.column.role == Role.QUASI_IDENTIFIER

    def raw(self, frame: pl.DataFrame) -> pl.Series:
        """The labels of raw rows, missing where the value is."""
        values = frame[self.column.name]
        if self.predicts == "numbers" or self.edges:
            return self._of_numbers(_numbers(self.column, values))
        import polars as pl

        return values.cast(pl.String)

    def released(self, frame: pl.DataFrame, recoding: Recoding, nodes: NDArray[np.int32]) -> pl.Series:
        """The labels that a release of raw rows tells: of a quasi-identifier, what is in the middle of its region."""
        if not self.is_generalized:
            return self.raw(frame)
        from anonfit.evaluation.features import recoded_features

        numbers = recoded_features(recoding, nodes, Encoding.EXPECTED).columns[self.column.name][0].to_numpy()
        return self._of_numbers(numbers)

    def _of_numbers(self, numbers: NDArray[np.float64]) -> pl.Series:
        import polars as pl

        found = pl.Series(self.column.name, numbers).fill_nan(None)
        if not self.edges:
            return found
        classes = np.searchsorted(np.array(self.edges), numbers, side="right")
        return pl.select(pl.when(found.is_not_null()).then(pl.Series(classes).cast(pl.String))).to_series()


def labels_of(request: TargetRequest, column: Column, frame: pl.DataFrame) -> Labels:
    """What is predicted of a target.

    Args:
        request: The target.
        column: What its column is.
        frame: All raw rows: classes of equal width divide their range.
    """
    values = frame[column.name]
    if is_numeric(request, column, values):
        found = Labels(column, "numbers")
    else:
        found = Labels(column, "classes", _edges(request, column, values))
    if found.is_generalized and found.predicts == "classes" and not found.edges:
        raise RequestError(
            f"the target '{column.name}' is a quasi-identifier with classes, and a release tells groups of them only; "
            "only numbers can be learned from regions. Give it the role 'target', or leave it out of the models."
        )
    return found


def _edges(request: TargetRequest, column: Column, values: pl.Series) -> tuple[float, ...]:
    if not request.equal_width:
        return request.classes
    numbers = _numbers(column, values)
    return tuple(np.linspace(np.nanmin(numbers), np.nanmax(numbers), request.equal_width + 1)[1:-1].tolist())


def _numbers(column: Column, values: pl.Series) -> NDArray[np.float64]:
    """The numbers of a column, dates in days since 1970; NaN where a value is missing."""
    known = typed(column, values)
    if not is_raw(known.dtype):
        raise RequestError(f"the target '{column.name}' holds no numbers, so there is nothing to estimate.")
    return RawReader(column.name).numbers(known.to_frame(column.name), Encoding.ENDS)[:, 0]
