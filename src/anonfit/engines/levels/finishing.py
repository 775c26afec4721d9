# SPDX-License-Identifier: Apache-2.0
"""Finishing small nodes in memory: their rows are here, and the kernel that grows subtrees does the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.levels.shape import Layout
from anonfit.engines.memory import growing
from anonfit.engines.memory.counting import count_rows
from anonfit.engines.memory.grower import Grower, signed_key
from anonfit.engines.memory.guide import SLOTS
from anonfit.engines.memory.layout import Rows, rows_of
from anonfit.engines.memory.scratch import make_scratch
from anonfit.engines.memory.selecting import RowSelector, Selector
from anonfit.engines.memory.structs import shared

__all__ = ["Finisher", "Small", "Subtrees"]


class Finisher:
    """Grows the subtrees of nodes that were handed over; threads may share it."""

    def __init__(self, layout: Layout, k: int) -> None:
        self.layout, self.k = layout, k
        self.columns, self.guide = shared(layout.columns), shared(layout.guide)
        self.guard = None if layout.guard is None else shared(layout.guard)
        self.own = local()
        shape = layout.shape
        self.selector = None
        if shape.purpose.selections is not None:
            self.selector = Selector(shape.columns, k, shape.purpose.selections, shape.guarded, layout.columns)

    def __reduce__(self) -> tuple[Any, ...]:
        """What another process makes its own from."""
        return Finisher, (self.layout, self.k)

    def _scratch(self, rows: int) -> Any:
        """Working memory of this thread for nodes of so many rows."""
        if getattr(self.own, "rows", 0) < rows:
            layout = self.layout
            self.own.scratch = shared(make_scratch(layout.columns, layout.guide, layout.guard, rows))
            self.own.rows = rows
        return self.own.scratch

    def grow(self, values: Mapping[str, NDArray[Any]], node: Small) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The nodes below a node with these rows, and the members of their sets."""
        columns = self.layout.columns
        rows = len(next(iter(values.values())))
        first = self.layout.pack(values, rows)
        if node.selecting:
            return self._selected(values, first, node)
        buffers = shared(first), shared(rows_of(np.empty_like(first.words)))
        histogram = np.zeros(columns.bins * int(self.layout.guide.settings[SLOTS]), np.int64)
        places = np.zeros(max(1, len(columns.narrow)), np.int64)
        count_rows(buffers[0], self.columns, self.guide, 0, rows, 1, histogram, places)
        found: tuple[NDArray[np.int64], NDArray[np.int64]] = growing.grow_subtree(
            *buffers,
            self.columns,
            self.guide,
            self.k,
            self.guard,
            0,
            rows,
            0,
            signed_key(node.key),
            histogram,
            node.span,
            node.tile,
            self._scratch(rows),
        )
        return found

    def _selected(
        self, values: Mapping[str, NDArray[Any]], first: Rows, node: Small
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The same for a node that is still split for selections."""
        layout, shape, rows = self.layout, self.layout.shape, len(first.words)
        table, purpose, guarded = shape.with_rows(values, rows, has_counts=shape.has_counts)
        assert self.selector is not None
        assert purpose.selections is not None
        signatures = shape.signatures.of([values[name] for name in shape.signature_names], rows)
        purpose = replace(purpose, selections=replace(purpose.selections, signatures=signatures))
        selector = RowSelector(self.selector, table, purpose, guarded)
        grower = Grower(
            first, layout.columns, layout.guide, layout.guard, self.k, selector=selector, by_chance=purpose.by_chance
        )
        return grower.grow(grower.root(node.span, node.tile, node.key))


@dataclass(frozen=True, slots=True)
class Small:
    """A node that is handed over."""

    key: int
    span: NDArray[np.int64]
    tile: NDArray[np.uint8]
    selecting: bool


@dataclass(frozen=True, slots=True)
class Subtrees:
    """Grows the subtree of any of some nodes, given its rows; it can be sent to another process."""

    finisher: Finisher
    nodes: Mapping[int, Small]

    def __call__(self, number: int, values: Mapping[str, NDArray[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The nodes below a node, and the members of their sets."""
        return self.finisher.grow(values, self.nodes[number])
