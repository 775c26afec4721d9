# SPDX-License-Identifier: Apache-2.0
"""The released table of rows that live outside: where each row goes, and what stands there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonfit.algorithms.outside import AnonymizedOutside
from anonfit.engines.levels.placing import RankedRegions
from anonfit.recoding.building import cells_of_codes
from anonfit.recoding.values import Values, region_values
from anonfit.release.table import region_ranks

__all__ = ["placing_of"]


def placing_of(
    result: AnonymizedOutside, names: Sequence[str], values: Values
) -> tuple[RankedRegions, tuple[str, ...]]:
    """The ranks of regions by what they say, and the names of the released table's columns in the order of `names`."""
    import polars as pl

    from anonfit.engines.memory.routing import make_routes

    recoding = result.recoding
    used = np.flatnonzero(result.grown.sizes).astype(np.int32)
    written = region_values(recoding, used, values)
    regions = pl.DataFrame([part for name in names for part in written.get(name, [])])
    rank, of_rank = region_ranks(regions)
    rank_of_node = np.full(recoding.node_count, -1, np.int64)
    rank_of_node[used] = rank
    cells = cells_of_codes(recoding, result.domains)
    routes = make_routes(recoding.tree, cells, [column.size for column in recoding.columns])
    final = [part for name in names for part in ([one.name for one in written[name]] if name in written else [name])]
    return RankedRegions(result.shape.columns, routes, rank_of_node, regions[of_rank]), tuple(final)
