# SPDX-License-Identifier: Apache-2.0
"""The released table against the raw rows it was made from: every label must hold exactly the rows it was given."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing.axes import Axis, Cells, Placed
from anonfit.auditing.boxes import Boxes, Found, locate_rows
from anonfit.auditing.coding import Hashes, IntArray
from anonfit.auditing.hashing import Align, add_hashes, aligned, aligned_texts, mixed, parts_of, side_of
from anonfit.auditing.observed import Seen
from anonfit.auditing.reading import Table, require_columns
from anonfit.auditing.released import Released
from anonfit.auditing.result import Figure, Share, SourceCheck

__all__ = ["Keys", "Located", "check_source", "locate_source", "place_rows", "raw_hashes", "row_keys"]

Keys = tuple[IntArray, Hashes]
"""The group of every row (-1: none), and a hash of its values."""
_GROUP = np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True, slots=True)
class Located:
    """Where the raw rows lie in a release: their group (-1: none), and what was strange about them."""

    found: Found
    beyond: int
    unknown: int
    dropped: int  # rows that were left out for a missing value
    outside: int  # rows that are in no group, though they were not left out


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """The cells of raw rows, column by column, and which rows were left out on purpose (None: none)."""

    cells: list[Cells]
    rows: int
    lost: npt.NDArray[np.bool_] | None
    beyond: int
    unknown: int
    dropped: int


def locate_source(
    boxes: Boxes, source: Table, *, quasi_identifiers: Sequence[str], seen: Seen | None = None, **left_out: Any
) -> Located:
    """Find the group of every raw row by the labels alone; rows that were left out (see `place_rows`) are in none,
    though some labels would hold them. `seen` takes in what the rows of groups have.
    """
    placed = place_rows(boxes.axes, source, quasi_identifiers=quasi_identifiers, **left_out)
    found = locate_rows(boxes, placed.cells, rows=placed.rows)
    if placed.lost is not None:
        found.group[placed.lost] = -1
    if seen is not None:
        seen.add(found.group, placed.cells)
    lost = 0 if placed.lost is None else int(np.count_nonzero(placed.lost))
    outside = int(np.count_nonzero(found.group < 0)) - lost
    return Located(found, placed.beyond, placed.unknown, placed.dropped, outside)


def place_rows(
    axes: Sequence[Axis],
    source: Table,
    *,
    quasi_identifiers: Sequence[str],
    drops_missing: bool = False,
    complete: Sequence[str] = (),
    leaves_out_unknown: bool = False,
) -> PlacedRows:
    """The cells of every raw row. Rows with a missing value, or with one that the recoding does not know (a category,
    or a number beyond the declared domain), may be left out on purpose; `complete` are columns beside the
    quasi-identifiers that a row with a missing value was left out for, too.
    """
    require_columns(source, quasi_identifiers, purpose="a quasi-identifier")
    series = source.frame(quasi_identifiers).get_columns()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(axis.place, column) for axis, column in zip(axes, series, strict=True)]
        placed: list[Placed] = [job.result() for job in jobs]
    rows = len(series[0]) if series else source.height()
    strange = [one.strangers for one in placed if one.strangers is not None] if leaves_out_unknown else []
    lost = np.any(strange, axis=0) if strange else None
    dropped = 0
    if drops_missing and placed:
        lacking = [one.cells == 0 for one in placed]
        lacking += [is_missing(column) for column in source.frame(complete).get_columns()] if complete else []
        missing = np.any(lacking, axis=0)
        lost = missing if lost is None else lost | missing
        dropped = int(np.count_nonzero(missing))
    cells, beyond, unknown = (
        [one.cells for one in placed],
        (one.beyond for one in placed),
        (one.unknown for one in placed),
    )
    return PlacedRows(cells, rows, lost, sum(beyond), sum(unknown), dropped)


def is_missing(column: pl.Series) -> npt.NDArray[np.bool_]:
    """Which rows have no value, NaN being none."""
    found = column.is_null() | column.is_nan().fill_null(value=False) if column.dtype.is_float() else column.is_null()
    return found.to_numpy()


def raw_hashes(
    released: Released, source: Table, raw: Sequence[str], *, align: Align = aligned
) -> tuple[Hashes, Hashes]:
    """Hashes of the raw values that both have, of every released and every raw row."""
    compared = [name for name in raw if name in source.schema]
    return _hashes(released.table, source, compared, align=align, rows=(released.rows, source.height()))


def check_source(
    released: Released,
    source: Table,
    *,
    located: Located | None,
    raw: Sequence[str],
    hashes: tuple[Hashes, Hashes],
    suppressed: npt.NDArray[np.bool_] | None = None,
    not_observed: int = 0,
    in_vain: int = 0,
) -> SourceCheck:
    """Compare (group, raw values) of released and raw rows as multisets; raw values alone without labels. `hashes` are
    those of `raw_hashes`. Rows of `suppressed` groups may be any that are in no other group.
    """
    rows = source.height() if located is None else len(located.found.group)
    groups = np.zeros(released.rows, np.int64) if located is None else released.grouping.of_row
    inside = np.zeros(rows, np.int64) if located is None else located.found.group
    if suppressed is not None and located is not None:
        inside = _with_suppressed((groups, hashes[0]), (inside, hashes[1]), suppressed)
    unmatched, absent_inside = _differences((groups, hashes[0]), (inside, hashes[1]))
    if (unmatched or absent_inside) and (released.table.is_text or source.is_text):
        # Texts of text files that differ may still be the same numbers.
        hashes = raw_hashes(released, source, raw, align=aligned_texts)
        if suppressed is not None and located is not None:
            inside = _with_suppressed((groups, hashes[0]), (located.found.group, hashes[1]), suppressed)
        unmatched, absent_inside = _differences((groups, hashes[0]), (inside, hashes[1]))
    absent = absent_inside + int(np.count_nonzero(inside < 0))
    several = 0 if located is None else int(np.count_nonzero(located.found.others))
    return SourceCheck(
        by_labels=located is not None,
        compared=tuple(name for name in raw if name in source.schema),
        not_in_source=tuple(name for name in raw if name not in source.schema),
        rows=Figure(rows, rows, rest=absent),
        unmatched=Share(unmatched, released.rows),
        absent=Share(absent, rows),
        absent_inside=Share(absent_inside, rows),
        in_several=Share(several, rows),
        beyond_domain=0 if located is None else located.beyond,
        unknown_values=0 if located is None else located.unknown,
        dropped=0 if located is None else located.dropped,
        not_observed=not_observed,
        in_vain=in_vain,
    )


def _hashes(
    one: Table, other: Table, names: Sequence[str], *, align: Align, rows: tuple[int, int]
) -> tuple[Hashes, Hashes]:
    """A hash of the raw values of every row of both tables, read some columns at a time."""
    found = np.zeros(rows[0], np.uint64), np.zeros(rows[1], np.uint64)
    width = min(one.width, other.width)
    with ThreadPoolExecutor(2) as pool:
        for begin in range(0, len(names), width):
            some = names[begin : begin + width]
            pairs = zip(one.frame(some).get_columns(), other.frame(some).get_columns(), strict=True)
            for place, pair in enumerate(pairs, begin + 1):
                sides = list(pool.map(side_of, pair))
                values = align(sides[0].values, sides[1].values)
                sides = [replace(side, values=series) for side, series in zip(sides, values, strict=True)]
                list(pool.map(add_hashes, found, sides, (place, place)))
    return found


def _differences(one: Keys, other: Keys) -> tuple[int, int]:
    """How many members of each multiset the other has not; equal ones have the same number of rows and the same sum."""
    with ThreadPoolExecutor(2) as pool:
        if operator.eq(*pool.map(_total, (one, other))):
            return 0, 0
        counted = [np.unique(keys, return_counts=True) for keys in pool.map(row_keys, (one, other))]
    (keys, numbers), (other_keys, other_numbers) = counted
    _, mine, theirs = np.intersect1d(keys, other_keys, assume_unique=True, return_indices=True)
    common = int(np.minimum(numbers[mine], other_numbers[theirs]).sum())
    return int(numbers.sum()) - common, int(other_numbers.sum()) - common


def _with_suppressed(released: Keys, raw: Keys, suppressed: npt.NDArray[np.bool_]) -> IntArray:
    """The groups of raw rows, those that no released row of their group explains being in a suppressed one that has
    their values. Which of several equal rows it is makes no difference.
    """
    inside = raw[0].copy()
    told = ~suppressed[released[0]]
    known, numbers = np.unique(row_keys((released[0][told], released[1][told])), return_counts=True)
    keys = mixed(inside.astype(np.uint64) * _GROUP ^ raw[1])
    free = np.flatnonzero(_taken(keys, known, numbers) | (inside < 0))
    for group in np.flatnonzero(suppressed):
        wanted, numbers = np.unique(released[1][released[0] == group], return_counts=True)
        rest = _taken(raw[1][free], wanted, numbers)
        inside[free[~rest]] = group
        free = free[rest]
    return inside


def _taken(keys: Hashes, known: Hashes, numbers: IntArray) -> npt.NDArray[np.bool_]:
    """Which rows are left when of every known key so many are taken."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(ordered) else np.empty(0, np.int64)
    rank = np.arange(len(ordered)) - np.repeat(begins, np.diff(np.append(begins, len(ordered))))
    place = np.minimum(np.searchsorted(known, ordered), max(0, len(known) - 1))
    allowed = np.where(known[place] == ordered, numbers[place], 0) if len(known) else np.zeros(len(ordered), np.int64)
    left = np.empty(len(keys), np.bool_)
    left[order] = rank >= allowed
    return left


def row_keys(rows: Keys) -> Hashes:
    """A hash of every row that is in some group, out of its group and the hash of its values."""
    groups, hashes = rows
    if groups.min(initial=0) < 0:
        groups, hashes = groups[groups >= 0], hashes[groups >= 0]
    return mixed(groups.astype(np.uint64) * _GROUP ^ hashes)


def _total(rows: Keys) -> tuple[int, int]:
    """How many rows are in some group, and the sum of their hashes."""
    found = [row_keys((rows[0][part], rows[1][part])) for part in parts_of(rows[0])]
    return sum(map(len, found)), sum(int(keys.sum()) for keys in found) % 2**64
