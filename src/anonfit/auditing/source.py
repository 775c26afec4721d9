# SPDX-License-Identifier: Apache-2.0
"""The released table against the raw rows it was made from: every label must hold exactly the rows it was given."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing.alignment import Hashes, add_hashes, aligned, aligned_texts
from anonfit.auditing.boxes import Boxes, Found, locate_rows
from anonfit.auditing.coding import IntArray
from anonfit.auditing.figures import Figure, Share
from anonfit.auditing.placing import Placed
from anonfit.auditing.reading import Table, require_columns
from anonfit.auditing.released import Released
from anonfit.auditing.result import SourceCheck

__all__ = ["Located", "check_source", "locate_source"]

Align = Callable[[pl.Series, pl.Series], tuple[pl.Series, pl.Series]]
_GROUP = np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True, slots=True)
class Located:
    """Where the raw rows lie in a release: their group (-1: none), and what was strange about them."""

    found: Found
    missing: npt.NDArray[np.bool_]  # rows with a missing quasi-identifier
    beyond: int
    unknown: int


def locate_source(boxes: Boxes, source: Table, *, quasi_identifiers: Sequence[str]) -> Located:
    """Find the group of every raw row by the labels alone."""
    require_columns(source, quasi_identifiers, purpose="a quasi-identifier")
    series = source.frame(quasi_identifiers).get_columns()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(axis.place, column) for axis, column in zip(boxes.axes, series, strict=True)]
        placed: list[Placed] = [job.result() for job in jobs]
    rows = len(series[0]) if series else source.height()
    missing = np.zeros(rows, np.bool_)
    for one in placed:
        missing |= one.cells == 0
    found = locate_rows(boxes, [one.cells for one in placed], rows=rows)
    return Located(found, missing, sum(one.beyond for one in placed), sum(one.unknown for one in placed))


def check_source(
    released: Released, source: Table, *, located: Located | None, raw: Sequence[str], drops_missing: bool
) -> SourceCheck:
    """Compare (group, raw values) of released and raw rows as multisets; raw values alone without labels."""
    compared = [name for name in raw if name in source.schema]
    rows = source.height() if located is None else len(located.missing)
    groups = np.zeros(released.rows, np.int64) if located is None else released.grouping.of_row
    inside = np.zeros(rows, np.int64) if located is None else located.found.group
    if drops_missing and located is not None:
        inside = np.where(located.missing, -1, inside)
    unmatched, absent_inside = 1, 1
    # Texts of text files that differ may still be the same numbers.
    for align in (aligned, aligned_texts) if released.table.is_text or source.is_text else (aligned,):
        hashes, raw_hashes = _hashes(released.table, source, compared, align=align, rows=(released.rows, rows))
        unmatched, absent_inside = _differences(_keys(groups, hashes), _keys(inside, raw_hashes)[inside >= 0])
        if not unmatched and not absent_inside:
            break
    absent = absent_inside + int(np.count_nonzero(inside < 0))
    several = 0 if located is None else int(np.count_nonzero(located.found.others))
    return SourceCheck(
        by_labels=located is not None,
        compared=tuple(compared),
        not_in_source=tuple(name for name in raw if name not in source.schema),
        rows=Figure(rows, rows, rest=absent),
        unmatched=Share(unmatched, released.rows),
        absent=Share(absent, rows),
        absent_inside=Share(absent_inside, rows),
        in_several=Share(several, rows),
        beyond_domain=0 if located is None else located.beyond,
        unknown_values=0 if located is None else located.unknown,
    )


def _hashes(
    one: Table, other: Table, names: Sequence[str], *, align: Align, rows: tuple[int, int]
) -> tuple[Hashes, Hashes]:
    """A hash of the raw values of every row of both tables, read some columns at a time."""
    hashes, others = np.zeros(rows[0], np.uint64), np.zeros(rows[1], np.uint64)
    width = min(one.width, other.width)
    for begin in range(0, len(names), width):
        some = names[begin : begin + width]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            pairs = list(pool.map(align, one.frame(some).get_columns(), other.frame(some).get_columns()))
        for place, (mine, theirs) in enumerate(pairs, begin + 1):
            hashes = add_hashes(hashes, mine, place=place)
            others = add_hashes(others, theirs, place=place)
    return hashes, others


def _keys(groups: IntArray, hashes: Hashes) -> Hashes:
    keys: Hashes = (hashes ^ (groups.astype(np.uint64) * _GROUP)) * _GROUP
    return keys ^ (keys >> np.uint64(31))


def _differences(one: Hashes, other: Hashes) -> tuple[int, int]:
    """How many members of each multiset the other has not."""
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(np.sort, (one, other))
    if len(one) == len(other) and np.array_equal(one, other):
        return 0, 0
    keys, numbers = np.unique(one, return_counts=True)
    other_keys, other_numbers = np.unique(other, return_counts=True)
    _, mine, theirs = np.intersect1d(keys, other_keys, assume_unique=True, return_indices=True)
    common = int(np.minimum(numbers[mine], other_numbers[theirs]).sum())
    return len(one) - common, len(other) - common
