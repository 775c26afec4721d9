# SPDX-License-Identifier: Apache-2.0
"""From a row's codes to the rank of its region, batch by batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.levels.shape import code_name
from anonfit.engines.memory.layout import Packing, add_fields, describe, pack
from anonfit.engines.memory.routing import Routes, route_packed
from anonfit.tables.schema import CodedColumn, CodedTable

if TYPE_CHECKING:
    import polars as pl

__all__ = ["RankedRegions"]


@dataclass(frozen=True, slots=True)
class RankedRegions:
    """The way of codes to regions, and the rank of each node's region."""

    columns: tuple[CodedColumn, ...]
    routes: Routes
    rank_of_node: NDArray[np.int64]  # (node,) -1 where no row is
    regions: pl.DataFrame

    @property
    def fields(self) -> Sequence[str]:
        """The fields that ranks are found from."""
        return [code_name(column) for column in range(len(self.columns))]

    def ranks(self, codes: Mapping[str, NDArray[Any]]) -> NDArray[np.uint32]:
        """The rank of each row, from its codes."""
        found = self.rank_of_node[self.nodes(codes)]
        assert (found >= 0).all(), "a row is in a region that no row was in"
        return found.astype(np.uint32)

    def nodes(self, codes: Mapping[str, NDArray[Any]]) -> NDArray[np.int32]:
        """The node of each row."""
        values = tuple(codes[name] for name in self.fields)
        table = CodedTable(self.columns, values, len(values[0]))
        packing = Packing()
        fields = add_fields(table, packing)
        packing.settle()
        packed = pack(packing, table.rows)
        return route_packed(packed, describe(table, packing, fields), self.routes, threads=1)
