# SPDX-License-Identifier: Apache-2.0
"""The sizes of the released groups in a few classes, for a picture: finer than the audit's where groups are alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["group_bins"]

MOST = 14


def group_bins(sizes: NDArray[np.int64]) -> list[dict[str, int]]:
    """Groups and persons by size; bins without groups are left out.

    Args:
        sizes: (group,) the persons of each released group, so that no bin tells of fewer than share a group.

    Returns:
        Bins from `low` to `high` persons, both included.
    """
    if not len(sizes):
        return []
    smallest, largest = int(sizes.min()), int(sizes.max())
    starts = [*([] if smallest else [0]), *_starts(max(1, smallest), max(1, largest))]  # rounded down, some may be 0
    place = np.searchsorted(starts, sizes, side="right") - 1
    groups = np.bincount(place, minlength=len(starts))
    persons = np.bincount(place, weights=sizes, minlength=len(starts))
    ends = [*(start - 1 for start in starts[1:]), int(sizes.max())]
    found: list[dict[str, Any]] = [
        {"low": low, "high": high, "groups": int(number), "persons": int(total)}
        for low, high, number, total in zip(starts, ends, groups, persons, strict=True)
        if number
    ]
    return found


def _starts(smallest: int, largest: int) -> list[int]:
    """Where bins start: at every size if there are few, else each wider than the one before by the same factor."""
    if largest - smallest < MOST:
        return list(range(smallest, largest + 1))
    edges = np.geomspace(smallest, largest + 1, MOST + 1)
    return sorted({int(edge) for edge in np.ceil(edges[:-1] - 1e-9)})
