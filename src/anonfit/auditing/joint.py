# SPDX-License-Identifier: Apache-2.0
"""Two releases of one table: who has both sees the cells (label here, label there), which may hold too few persons."""

from __future__ import annotations

import numpy as np

from anonfit.auditing.coding import Coded, IntArray, join_codes, numbered
from anonfit.auditing.groups import Persons, persons_in_groups
from anonfit.auditing.result import Figure, JointCells
from anonfit.auditing.sizes import share_of

__all__ = ["joint_cells"]


def joint_cells(here: IntArray, there: IntArray, *, persons: Persons, k: int | None) -> JointCells:
    """Count the persons of the source in every cell; rows that one of the releases does not hold are in no cell.

    `here` and `there` are the groups of every source row in the two releases, -1 for none.
    """
    both = (here >= 0) & (there >= 0)
    sides = [Coded(side[both], int(side.max(initial=0)) + 1) for side in (here, there)]
    cells, first = numbered(join_codes(sides, int(np.count_nonzero(both)))[0])
    sizes = persons_in_groups(persons.only(both), cells - 1, len(first))
    below = None if k is None else share_of(sizes, sizes < k)
    return JointCells(
        cells=len(sizes),
        smallest=int(sizes.min()) if len(sizes) else None,
        cells_below_k=None if below is None or k is None else Figure(int(np.count_nonzero(sizes < k)), below.persons),
        persons_below_k=below,
    )
