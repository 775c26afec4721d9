# SPDX-License-Identifier: Apache-2.0
"""Top-down refinement of coded tables, as tests ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms import refining
from anonfit.algorithms.demands import Requirement
from anonfit.algorithms.refining_columns import Refined
from anonfit.engines.memory.forms import Constraint
from anonfit.engines.memory.refining import RowsToRefine
from anonfit.tables.schema import CodedTable


def refine(
    table: CodedTable,
    classes: NDArray[np.integer[Any]],
    requirements: Sequence[Requirement],
    *,
    weights: NDArray[np.int64] | None = None,
    constraints: Sequence[Constraint] = (),
    threads: int | None = None,
    **options: Any,
) -> Refined:
    """Refine the columns of a table; the options are those of `Refining`, and the other words of `refine`."""
    words = {word: options.pop(word) for word in ("start", "stop", "progress") if word in options}
    rows = RowsToRefine(table, classes, weights, constraints, threads)
    return refining.refine(rows, requirements, refining=refining.Refining(**options), **words)
