# SPDX-License-Identifier: Apache-2.0
"""Having the kernels of top-down refinement ready: each is used once, on a table of a few rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonfit.engines.memory.guard import Guarded
from anonfit.engines.memory.ordering import order_rows
from anonfit.engines.memory.refining import FEW, Groups, Refinement, count_by_class
from anonfit.tables.schema import CodedColumn, CodedTable, Codes, SplitMode, code_dtype

__all__ = ["ROWS", "use_refining"]

ROWS = 4 * FEW
"""So many that the rows of one code are found by it."""


def use_refining(guarded: Sequence[Guarded] = ()) -> None:
    """Refine columns of each kind; those of more than 65,536 values compile their own when they come.

    Args:
        guarded: Sensitive columns of that many rows, where groups will be held against models.
    """
    modes = (SplitMode.ORDERED, SplitMode.SUBSET)
    sizes = (1 << 8, 1 << 16)
    columns = tuple(CodedColumn("column", size, mode, False, np.zeros(size)) for mode in modes for size in sizes)
    codes: list[Codes] = []
    for row, column in enumerate(columns):
        codes.append(np.zeros(ROWS, code_dtype(column.size)))
        codes[-1][row] = 1
    table = CodedTable(columns, tuple(codes), ROWS)
    count_by_class(table, np.zeros(ROWS, np.int64), None)
    groups = Groups(table, [tuple(range(len(columns)))], guarded=guarded, threads=1)
    both = np.arange(2, dtype=np.int32)
    for index, column in enumerate(columns):
        by_value = column.mode == SplitMode.SUBSET
        slots = np.resize(both, column.size)
        groups.watch(index, slots, 2, by_value=by_value)
        groups.least(0, index, 2)
        moving, slot = (range(1, 2), 1) if by_value else (range(2), -1)
        refinement = Refinement(index, 0, slots, both + (0 if by_value else 1), moving, disclosed=slot)
        divisions = groups.divide(refinement)
        groups.allowed(refinement, divisions)
        groups.refine(refinement, divisions)
    nodes = np.zeros(ROWS, np.int32)
    order_rows(nodes, np.arange(ROWS), np.arange(ROWS, dtype=np.uint32), 1, np.zeros((1, ROWS), np.uint64))
