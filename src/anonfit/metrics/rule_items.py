# SPDX-License-Identifier: Apache-2.0
"""What a row may have in common with others, for association rules: a part of an ordered column, a node of a taxonomy,
a value. Items are chosen by the release alone; whether a row has one is asked of the release and of the raw rows.

A released row has an item if its label lies wholly within it, a raw row if its value does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.bits import unpacked
from anonfit.recoding.columns import NominalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Item", "items_of"]

PARTS = 4
"""Parts of an ordered column, of about as many rows each."""
MOST_NAMES = 20
"""Names of a column that are items, those of most rows."""


@dataclass(frozen=True, slots=True)
class Item:
    """What rows may have: of which column, in words, and which released and raw rows have it."""

    column: str
    text: str
    released: NDArray[np.bool_]  # (row,)
    raw: NDArray[np.bool_]  # (row,)


def items_of(
    recoding: Recoding, nodes: NDArray[np.integer[Any]], frame: pl.DataFrame, columns: Sequence[str]
) -> list[Item]:
    """The items of released rows.

    Args:
        recoding: The recoding.
        nodes: (row,) the node of each row; all rows are released.
        frame: The raw rows.
        columns: Columns that are released as they are and have items too.
    """
    cells = recoding.cells(frame)
    found: list[Item] = []
    for index, column in enumerate(recoding.columns):
        found += _of_quasi_identifier(recoding, column, index, nodes, cells[index])
    for name in columns:
        found += _of_raw(name, frame[name])
    return found


def _of_quasi_identifier(
    recoding: Recoding, column: RecodedColumn, index: int, nodes: NDArray[Any], cells: NDArray[np.int32]
) -> Iterator[Item]:
    parts = recoding.boxes.parts(nodes, index)
    held = unpacked(parts.bits(column.size), column.size).astype(np.bool_)  # (part, cell)
    for chosen in _sets(column, held, parts.of_node):
        outside = ~chosen
        lies_within: NDArray[np.bool_] = np.logical_not((held & outside).any(axis=1))
        text = f"{column.name} {column.label(np.flatnonzero(chosen).tolist())}"
        yield Item(column.name, text, lies_within[parts.of_node], chosen[cells])


def _sets(column: RecodedColumn, held: NDArray[np.bool_], of_node: NDArray[np.int64]) -> Iterator[NDArray[np.bool_]]:
    """The sets of cells that are items. held: (part, cell)"""
    shift, size = int(column.has_missing), column.size
    if isinstance(column, NominalCells):
        taxonomy = column.taxonomy
        single = held.sum(axis=1) == 1
        counts = np.bincount(held.argmax(axis=1)[of_node], weights=single[of_node], minlength=size)
        frequent = sorted(range(shift, size), key=lambda cell: (-counts[cell], cell))[:MOST_NAMES]
        runs = [(cell - shift, cell - shift) for cell in frequent if counts[cell] > 0]
        inner = zip(taxonomy.first_leaf[1:], taxonomy.last_leaf[1:], strict=True)
        runs += [(int(first), int(last)) for first, last in inner if last > first]
    else:
        middles = (held.argmax(axis=1) + size - 1 - held[:, ::-1].argmax(axis=1)) / 2
        cuts = np.unique(np.quantile(middles[of_node], np.arange(1, PARTS) / PARTS).round().astype(int))
        edges = [shift, *[int(cut) for cut in cuts if shift < cut < size], size]
        runs = [(low - shift, high - 1 - shift) for low, high in pairwise(edges) if len(edges) > 2]
    for first, last in dict.fromkeys(runs):
        chosen = np.zeros(size, np.bool_)
        chosen[first + shift : last + shift + 1] = True
        if not chosen[shift:].all():
            yield chosen


def _of_raw(name: str, values: pl.Series) -> Iterator[Item]:
    """Values, or parts of numbers that are of many values; all of it can be seen in the release."""
    import polars as pl

    if values.dtype.is_numeric() and values.n_unique() > MOST_NAMES:
        numbers = values.cast(pl.Float64)
        ends = {numbers.quantile(at / PARTS, "nearest") for at in range(1, PARTS)}
        edges = [None, *sorted(end for end in ends if end is not None), None]
        for low, high in pairwise(edges):
            has = numbers.is_not_null()
            has = has if low is None else has & (numbers >= low)
            has = has if high is None else has & (numbers < high)
            text = f"< {high:g}" if low is None else f"≥ {low:g}" if high is None else f"[{low:g}, {high:g})"
            truth = has.fill_null(value=False).to_numpy()
            yield Item(name, f"{name} {text}", truth, truth)
        return
    counted = values.drop_nulls().value_counts(sort=True).head(MOST_NAMES)
    for value in counted[values.name].to_list():
        truth = (values == value).fill_null(value=False).to_numpy()
        yield Item(name, f"{name} {value}", truth, truth)
