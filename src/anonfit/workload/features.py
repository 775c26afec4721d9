# SPDX-License-Identifier: Apache-2.0
"""The quasi-identifiers that clusters are made of, as a criterion sees them: rows of a region should be alike in them.

Numbers, dates and ranks count by their squared distance in standard deviations, names by whether they are the same.
Unlike a target, a feature also counts for the splits of its own column: dividing it makes the rows alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.targets import NameTarget
from anonfit.errors import SpecError
from anonfit.tables.coded import MISSING, CodedColumn, SplitMode
from anonfit.workload.request import Workload

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MOST_NAMES", "feature_numbers", "feature_weights", "name_target", "require_feature"]

MOST_NAMES = 64
"""A column with more names is taken by its commonest ones, and all others as one."""


def feature_weights(workload: Workload, quasi_identifiers: Sequence[str]) -> dict[str, float]:
    """The features among the quasi-identifiers (all if none is named), and how much each counts; those that do not
    count are left out.
    """
    named = [name for name in quasi_identifiers if not workload.features or name in workload.features]
    weights = {name: float(workload.weights.get(name, 1.0)) for name in named}
    return {name: weight for name, weight in weights.items() if weight > 0}


def require_feature(workload: Workload, quasi_identifiers: Sequence[str]) -> dict[str, float]:
    """The same, of which there must be one at least."""
    weights = feature_weights(workload, quasi_identifiers)
    if not weights:
        raise SpecError(["method.criterion = 'clustering' needs a feature among the quasi-identifiers."])
    return weights


def feature_numbers(column: CodedColumn, codes: NDArray[np.int64], values: pl.Series) -> NDArray[np.float64] | None:
    """The numbers behind a column of numbers, dates or ranks, NaN where one is missing; None of names."""
    import polars as pl

    if column.mode == SplitMode.ORDERED:
        missing = column.has_missing & (codes == MISSING)
        return np.where(missing, np.nan, np.asarray(column.positions, np.float64)[codes])
    if values.dtype.is_numeric():
        found: NDArray[np.float64] = values.cast(pl.Float64).fill_null(float("nan")).to_numpy().astype(np.float64)
        return np.where(np.isfinite(found), found, np.nan)
    return None


def name_target(column: CodedColumn, codes: NDArray[np.int64], weight: float, masses: NDArray[np.int64]) -> NameTarget:
    """The names of a column; of many, the commonest, of equally common ones the first."""
    if column.size <= MOST_NAMES:
        return NameTarget(column.name, codes, column.size, weight)
    counts = np.zeros(column.size, np.int64)
    np.add.at(counts, codes, masses)
    common = np.argsort(-counts, kind="stable")[: MOST_NAMES - 1]
    place = np.full(column.size, MOST_NAMES - 1)
    place[common] = np.arange(MOST_NAMES - 1)
    return NameTarget(column.name, place[codes], MOST_NAMES, weight)
