# SPDX-License-Identifier: Apache-2.0
"""How much each quasi-identifier lost by generalizing, whatever the release is for: the certainty penalty (NCP of a
column, GCP of all) and the loss metric (LM), over the regions that rows are in.

Both are 0 where a value is told exactly and 1 where nothing is told. For ordered columns both are the share of the
column's width that a region takes (by ranks where words are ordered). For nominal columns NCP is the share of the names
that a region holds, 0 for a single one (Xu et al. 2006); LM is (names - 1) / (all names - 1) (Iyengar 2002). Missing is
one more name of a nominal column, and has no width in an ordered one. A withheld row has lost everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.metrics.extents import Extent, Extents, places, stated_extents
from anonfit.recoding.boxes import Parts
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding

__all__ = ["ColumnLoss", "Losses", "losses"]

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ColumnLoss:
    """What the average row lost of one quasi-identifier, from 0 to 1."""

    name: str
    ncp: float
    lm: float


@dataclass(frozen=True, slots=True)
class Losses:
    """What the average row lost of each quasi-identifier."""

    columns: tuple[ColumnLoss, ...]

    @property
    def gcp(self) -> float:
        """The global certainty penalty: NCP averaged over rows and columns (Ghinita et al. 2007)."""
        return sum(column.ncp for column in self.columns) / len(self.columns) if self.columns else 0.0

    @property
    def lm(self) -> float:
        """The loss metric averaged over rows and columns."""
        return sum(column.lm for column in self.columns) / len(self.columns) if self.columns else 0.0

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready figures."""
        lines = [{"name": one.name, "ncp": one.ncp, "lm": one.lm} for one in self.columns]
        return {"gcp": self.gcp, "lm": self.lm, "columns": lines}


def losses(
    recoding: Recoding,
    nodes: NDArray[np.integer[Any]],
    *,
    extents: Extents | None = None,
    unnamed: Mapping[str, int] | None = None,
    counts: NDArray[Any] | None = None,
    withheld: int = 0,
) -> Losses:
    """How much rows lost of each quasi-identifier.

    Args:
        recoding: The recoding of the release.
        nodes: (row,) the node of each row, -1 for a row that is withheld.
        extents: The ends of ordered columns (of `extents`); what the recoding says if not given, which is public.
        unnamed: How many values are in a nominal column's leaf of values that are not named; one if not given.
        counts: (row,) how many persons each row stands for; None: one.
        withheld: Persons that are not among these rows because they are withheld.

    Returns:
        NCP and LM of each column, and of all.
    """
    extents = stated_extents(recoding) if extents is None else extents
    used, which = np.unique(nodes, return_inverse=True)
    masses = np.bincount(which, weights=counts, minlength=len(used))
    is_released = used >= 0
    released, lost = masses[is_released], float(masses[~is_released].sum()) + withheld
    total = float(released.sum()) + lost
    lines = []
    for index, column in enumerate(recoding.columns):
        parts = recoding.boxes.parts(used[is_released], index)
        ncp, lm = (
            (released @ loss[parts.of_node] + lost) / total if total else 0.0
            for loss in _losses(column, parts, extents.get(column.name), (unnamed or {}).get(column.name, 1))
        )
        lines.append(ColumnLoss(column.name, float(ncp), float(lm)))
    return Losses(tuple(lines))


def _losses(column: RecodedColumn, parts: Parts, extent: Extent | None, unnamed: int) -> tuple[Numbers, Numbers]:
    """NCP and LM of parts of a column. (part,)"""
    if isinstance(column, NominalCells):
        more = unnamed - 1 if column.other is not None else 0
        return _of_names(_cells_of(parts) + more * _holds(parts, column.other_cell), column.size + more)
    assert isinstance(column, OrderedCells | OrdinalCells)
    shift = int(column.has_missing)
    first, last = np.maximum(parts.first - shift, 0), parts.last - shift
    if isinstance(column, OrdinalCells):
        loss = (last - first) / max(len(column.order) - 1, 1)
    else:
        loss = _widths(column, first, np.maximum(last, 0), extent)
    loss = np.where(last < 0, 0.0, loss)  # missing alone is told exactly
    return loss, loss


def _cells_of(parts: Parts) -> NDArray[np.int64]:
    """How many cells each part has."""
    counts = parts.last - parts.first + 1
    by_set = parts.set_of >= 0
    counts[by_set] = np.bitwise_count(parts.sets[parts.set_of[by_set]]).sum(axis=1, dtype=np.int64)
    return counts


def _holds(parts: Parts, cell: int) -> NDArray[np.int64]:
    """1 for the parts that hold a cell, else 0."""
    found = (parts.first <= cell) & (cell <= parts.last)
    by_set = parts.set_of >= 0
    if by_set.any():
        bytes_of = parts.sets[parts.set_of[by_set]]
        found[by_set] = bytes_of[:, max(cell, 0) // 8] >> (7 - max(cell, 0) % 8) & 1
    return found.astype(np.int64)


def _of_names(held: NDArray[np.int64], size: int) -> tuple[Numbers, Numbers]:
    return np.where(held > 1, held / size, 0.0), (held - 1) / max(size - 1, 1)


def _widths(column: OrderedCells, first: NDArray[np.int64], last: NDArray[np.int64], extent: Extent | None) -> Numbers:
    """The share of a column's width that intervals take; everything where nothing is cut."""
    if extent is None or not column.cuts:
        return np.ones(len(first))
    cuts = places(column.cuts, column.scale)
    if extent.high <= extent.low:
        return np.where((first == 0) & (last == len(cuts)), 1.0, 0.0)
    edges = np.clip(np.concatenate([[extent.low], cuts, [extent.high]]), extent.low, extent.high)
    shares = (edges - extent.low) / (extent.high - extent.low)
    found: Numbers = shares[last + 1] - shares[first]
    return found
