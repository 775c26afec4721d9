# SPDX-License-Identifier: Apache-2.0
"""The released table of rows that live outside: where each row goes, and what stands there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.outside import AnonymizedOutside
from anonfit.engines.contract import Placing
from anonfit.engines.levels.placing import RankedRegions
from anonfit.engines.levels.shape import code_name
from anonfit.recoding.boxes import Grid
from anonfit.recoding.building import cells_of_codes
from anonfit.recoding.values import Values, region_values
from anonfit.release.table import region_ranks

if TYPE_CHECKING:
    import polars as pl

__all__ = ["placing_of"]


@dataclass(frozen=True, slots=True)
class RankedGrid:
    """The parts of codes, and the rank of each combination of parts that rows have."""

    grid: Grid
    cells: tuple[NDArray[np.int32], ...]
    rank_of_node: NDArray[np.int64]  # (node,)
    regions: pl.DataFrame

    @property
    def fields(self) -> Sequence[str]:
        """The fields that ranks are found from."""
        return [code_name(column) for column in range(len(self.cells))]

    def ranks(self, codes: Mapping[str, NDArray[Any]]) -> NDArray[np.uint32]:
        """The rank of each row, from its codes."""
        nodes = self.grid.nodes([cells[codes[name]] for cells, name in zip(self.cells, self.fields, strict=True)])
        found: NDArray[np.uint32] = self.rank_of_node[nodes].astype(np.uint32)
        return found


def placing_of(result: AnonymizedOutside, names: Sequence[str], values: Values) -> tuple[Placing, tuple[str, ...]]:
    """The ranks of regions by what they say, and the names of the released table's columns in the order of `names`."""
    import polars as pl

    from anonfit.engines.memory.routing import make_routes

    recoding, used = result.recoding, result.used
    written = region_values(recoding, used, values)
    regions = pl.DataFrame([part for name in names for part in written.get(name, [])])
    rank, of_rank = region_ranks(regions)
    rank_of_node = np.full(recoding.node_count, -1, np.int64)
    rank_of_node[used] = rank
    cells = cells_of_codes(recoding, result.domains)
    final = [part for name in names for part in ([one.name for one in written[name]] if name in written else [name])]
    if isinstance(recoding.shape, Grid):
        return RankedGrid(recoding.shape, tuple(cells), rank_of_node, regions[of_rank]), tuple(final)
    routes = make_routes(recoding.tree, cells, [column.size for column in recoding.columns])
    return RankedRegions(result.columns, routes, rank_of_node, regions[of_rank]), tuple(final)
