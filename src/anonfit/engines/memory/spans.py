# SPDX-License-Identifier: Apache-2.0
"""Kernels that find what a part of a split holds: the span and the tile of a node's child."""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.engines.memory.layout import FROM, GAP, HIGH, LOW, SIZE, SPAN, TILE, TO, Columns, Int
from anonfit.engines.memory.scratch import PARTS
from anonfit.runtime.compiling import inner, kernel

__all__ = ["child_span", "child_tile"]


@inner
def _fit_span(columns: Columns, column: Int, span: Any, tile: Any) -> None:
    """Bring FROM and TO of a column to the first and last code of its tile."""
    held = columns.facts[TILE, column]
    first, last = np.int64(-1), np.int64(-1)
    for code in range(columns.facts[SIZE, column]):
        if tile[held + code] == 1:
            last = np.int64(code)
            if first < 0:
                first = np.int64(code)
    span[FROM, column], span[TO, column] = first, last


@kernel
def child_span(
    columns: Columns, span: Any, tile: Any, column: Int, part: Int, parts: Int, lists: Any, child: Any, inner_tile: Any
) -> None:
    """The span and the tile of a part of a split by runs, written to `child` and `inner_tile`."""
    for fact in range(SPAN):
        for other in range(span.shape[1]):
            child[fact, other] = span[fact, other]
    first = lists[PARTS, part]
    last = lists[PARTS, part + 1] - 1 if part + 1 < parts else span[TO, column]
    child[FROM, column], child[TO, column] = first, last
    child[LOW, column] = max(first, span[LOW, column])
    child[HIGH, column] = min(last, span[HIGH, column])
    if first > 0:
        child[GAP, column] = 0
    for entry in range(tile.shape[0]):
        inner_tile[entry] = tile[entry]
    held = columns.facts[TILE, column]
    if held >= 0:
        for code in range(columns.facts[SIZE, column]):
            if code < first or code > last:
                inner_tile[held + code] = 0
        _fit_span(columns, column, child, inner_tile)


@kernel
def child_tile(
    columns: Columns, span: Any, tile: Any, column: Int, part: Int, sides: Any, child: Any, inner_tile: Any
) -> None:
    """The span and the tile of a part of a split by a set, written to `child` and `inner_tile`."""
    for fact in range(SPAN):
        for other in range(span.shape[1]):
            child[fact, other] = span[fact, other]
    for entry in range(tile.shape[0]):
        inner_tile[entry] = tile[entry]
    held = columns.facts[TILE, column]
    if held >= 0:
        for code in range(columns.facts[SIZE, column]):
            if sides[code] != part:
                inner_tile[held + code] = 0
        _fit_span(columns, column, child, inner_tile)
