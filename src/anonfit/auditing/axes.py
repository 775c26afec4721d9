# SPDX-License-Identifier: Apache-2.0
"""One column of the space of boxes: values that no label tells apart are one cell, and a label is runs of cells.
Cell 0 is missing; the last cell holds values that the column's meaning does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from anonfit.auditing.labels import Interval, ValueSet
from anonfit.auditing.meanings import Meaning
from anonfit.auditing.placing import Placed, distinct_texts, placed_on_line

__all__ = ["Axis", "Run", "axis_of", "joined"]

Run = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Axis:
    """The cells of one column: how many, the runs of cells of a label's set, and the cells of raw values."""

    cells: int
    runs: Callable[[ValueSet], list[Run]]
    place: Callable[[pl.Series], Placed]


def axis_of(meaning: Meaning, sets: Sequence[ValueSet]) -> Axis:
    """The axis that tells apart what these sets of one column tell apart."""
    axis = _name_axis(meaning, sets) if meaning.type == "nominal" else _line_axis(meaning, sets)
    return replace(axis, place=_knows_none_missing(axis.place)) if meaning.missing is False else axis


def _knows_none_missing(place: Callable[[pl.Series], Placed]) -> Callable[[pl.Series], Placed]:
    """The cells of a column of which a recoding has no missing values: one is as strange as an unknown name."""

    def placed(series: pl.Series) -> Placed:
        found = place(series)
        if not series.null_count():
            return found
        lost = found.cells == 0
        return replace(found, strangers=lost if found.strangers is None else lost | found.strangers)

    return placed


def _name_axis(meaning: Meaning, sets: Sequence[ValueSet]) -> Axis:
    """A nominal column: a cell per leaf; without a taxonomy, per name that some label uses."""
    if meaning.tree is not None:
        leaves, below = meaning.tree.leaves, meaning.tree.below
    else:
        named = {name for found in sets for name in found.names}
        leaves = tuple(sorted(named if meaning.other is None else named | {meaning.other}))
        below = {leaf: (position, position) for position, leaf in enumerate(leaves)}
    cell_of = {leaf: position + 1 for position, leaf in enumerate(leaves)}
    unknown = len(leaves) + 1
    rest = unknown if meaning.other is None else cell_of.get(meaning.other, unknown)

    def runs(found: ValueSet) -> list[Run]:
        return _cells(found, unknown, [(below[name][0] + 1, below[name][1] + 1) for name in found.names])

    def place(series: pl.Series) -> Placed:
        codes, texts = distinct_texts(series)
        if series.dtype.is_numeric() or series.dtype == pl.Boolean:
            texts = [next((spelled for spelled in _spellings(text) if spelled in cell_of), text) for text in texts]
        cell = np.array([0, *(cell_of.get(text, rest) for text in texts)], np.int32)
        cells = cell.take(codes)
        if unknown not in cell:
            return Placed(cells, 0, 0)
        strange = cells == unknown
        return Placed(cells, 0, int(np.count_nonzero(strange)), strange)

    return Axis(unknown + 1, runs, place)


def _spellings(text: str) -> tuple[str, ...]:
    """How a number or truth value may be written as a name."""
    return text, text.removesuffix(".0"), text.capitalize(), text.upper()


def _line_axis(meaning: Meaning, sets: Sequence[ValueSet]) -> Axis:
    """An ordered column: with ends b1 < b2 < …, cells are missing, below b1, b1, between b1 and b2, b2, …"""
    intervals = [interval for found in sets for interval in found.intervals]
    ends = sorted({end for one in intervals for end in (one.lower, one.upper) if end is not None})
    position = {end: i for i, end in enumerate(ends)}
    unknown = 2 * len(ends) + 2

    def run(interval: Interval) -> Run:
        low = 1 if interval.lower is None else 2 * position[interval.lower] + 2
        if interval.upper is None:
            return low, unknown - 1
        return low, 2 * position[interval.upper] + (2 if interval.closed else 1)

    def runs(found: ValueSet) -> list[Run]:
        return _cells(found, unknown, [run(interval) for interval in found.intervals])

    def place(series: pl.Series) -> Placed:
        return placed_on_line(series, meaning, ends=ends)

    return Axis(unknown + 1, runs, place)


def _cells(found: ValueSet, last: int, runs: Iterable[Run]) -> list[Run]:
    """The cells of a set as separate runs in rising order."""
    every = [(1, last)] if found.everything else list(runs)
    return joined([*every, (0, 0)] if found.missing else every)


def joined(runs: Iterable[Run]) -> list[Run]:
    """Runs as separate ones in rising order."""
    found: list[Run] = []
    for low, high in sorted(runs):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found
