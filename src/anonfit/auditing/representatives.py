# SPDX-License-Identifier: Apache-2.0
"""Released representatives against the regions of the recoding, from which they follow (docs/labels.md): the middle of
an interval, the finite end of an open one, nothing where missing values may be. Several regions may have the same
representatives, so a group is all of these regions together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from anonfit.auditing.axes import axis_of, distinct_texts
from anonfit.auditing.boxes import Boxes, box_space
from anonfit.auditing.coding import Coded, IntArray, join_codes
from anonfit.auditing.labels import ValueSet, cell_reader, read_label, speller
from anonfit.auditing.meanings import Meaning, moment, number
from anonfit.auditing.recoding import RegionGrid, RegionTree
from anonfit.auditing.region_parts import Part, ends_of, parts_of, value_set
from anonfit.auditing.released import Released
from anonfit.auditing.result import LabelCheck

__all__ = ["read_representatives"]

_DAY = 86400


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of regions: the values of its parts, the part of every region, and the value of every part and group
    (-1: one that no region has).
    """

    sets: list[ValueSet]  # (part)
    part_of_region: IntArray
    value_of_part: IntArray
    value_of_group: IntArray
    values: int
    strangers: int  # different released values that no region has


def read_representatives(
    released: Released, meanings: Mapping[str, Meaning], tree: RegionTree | RegionGrid
) -> tuple[LabelCheck, Boxes | None]:
    """Whether every released value follows from a region, and all of a group from one; and the regions as boxes, each
    in the group that has its representatives.
    """
    if not tree.fits or set(meanings) != set(released.columns):
        count = max(1, released.grouping.count)
        return LabelCheck(dict.fromkeys(released.columns, 0), {}, overlapping=None, no_region=count), None
    columns = {name: _column(released, meanings[name], parts_of(tree, name)) for name in released.columns}
    by_grid = isinstance(tree, RegionGrid)
    regions, groups = (
        np.stack([getattr(column, name) for column in columns.values()], axis=1)
        for name in ("value_of_group" if by_grid else "part_of_region", "value_of_group")
    )
    sets = [_by_value(column) if by_grid else column.sets for column in columns.values()]
    if by_grid:  # every combination of parts is a region
        known = (groups >= 0).all(axis=1)
        boxes_at, group_of_region = regions[known], np.flatnonzero(known)
        strange = int(np.count_nonzero(~known))
        several = [np.bincount(one.value_of_part, minlength=one.values) > 1 for one in columns.values()]
        shared = known & np.any([some[place] for some, place in zip(several, groups.T, strict=True)], axis=0)
    else:
        values = np.stack([one.value_of_part[one.part_of_region] for one in columns.values()], axis=1)
        group_of_region = _group_of(values, groups, [one.values for one in columns.values()])
        boxes_at, strange = regions, released.grouping.count - len(np.unique(group_of_region[group_of_region >= 0]))
        shared = np.bincount(group_of_region[group_of_region >= 0], minlength=released.grouping.count) > 1
    axes = [axis_of(meanings[name], some) for name, some in zip(columns, sets, strict=True)]
    boxes = box_space(axes, sets, boxes_at)
    boxes = replace(boxes, group_of_box=group_of_region[boxes.group_of_box], shared=shared)
    unreadable = {name: column.strangers for name, column in columns.items()}
    return LabelCheck(unreadable, {}, overlapping=0, no_region=strange), boxes


def _column(released: Released, meaning: Meaning, found: tuple[list[Part], IntArray]) -> _Column:
    """A column of regions beside the released values of it."""
    parts, part_of_region = found
    keys = [_key(part, meaning) for part in parts]
    number_of = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    codes, texts = distinct_texts(released.heads[released.columns[meaning.name][0]])
    numbers = np.array([number_of.get(_read(text, meaning), -1) for text in (None, *texts)], np.int64)
    used = numbers[np.unique(codes)]
    return _Column(
        [value_set(part, meaning) for part in parts],
        part_of_region,
        np.array([number_of[key] for key in keys], np.int64),
        numbers[codes],
        len(number_of),
        int(np.count_nonzero(used < 0)),
    )


def _by_value(column: _Column) -> list[ValueSet]:
    """The values of all parts that have the same representative."""
    found = [ValueSet() for _ in range(column.values)]
    for place, one in zip(column.value_of_part.tolist(), column.sets, strict=True):
        known = found[place]
        found[place] = ValueSet(
            known.missing or one.missing,
            known.everything or one.everything,
            known.intervals + one.intervals,
            known.names + one.names,
        )
    return found


def _group_of(regions: IntArray, groups: IntArray, bounds: Iterable[int]) -> IntArray:
    """The group that has the values of each region, -1 for none."""
    together = np.concatenate([groups, regions])
    codes = [Coded(column + 1, bound + 1) for column, bound in zip(together.T, bounds, strict=True)]
    keys, _ = join_codes(codes, len(together))
    order = np.argsort(keys[: len(groups)])
    place = np.minimum(np.searchsorted(keys[: len(groups)], keys[len(groups) :], sorter=order), max(0, len(groups) - 1))
    if not len(groups):
        return np.full(len(regions), -1)
    at = order[place]
    known = (keys[at] == keys[len(groups) :]) & (groups[at] >= 0).all(axis=1)
    found: IntArray = np.where(known, at, -1)
    return found


def _keeps_labels(meaning: Meaning) -> bool:
    return meaning.type == "nominal" or meaning.tree is not None


def _read(text: str | None, meaning: Meaning) -> Hashable:
    """A released value as keys are compared; a text that is none equals no key."""
    if _keeps_labels(meaning):
        label = None if text is None else read_label(text, meaning)
        if text is None or label is None or not speller(meaning, observed=False)(text, label):
            return "none"
        cells = cell_reader(meaning)(label)
        return "none" if cells is None else tuple(cells)
    if text is None or meaning.type == "ordinal":
        return text
    found = moment(text) if meaning.type == "date" else number(text)
    return "none" if found is None else float(found) if meaning.type != "date" else found


def _key(part: Part, meaning: Meaning) -> Hashable:
    """What is released of a part: its cells where labels are kept, else its representative, None where it is empty."""
    if _keeps_labels(meaning):
        return part
    shift = int(bool(meaning.missing))
    low, high = part[0][0], part[-1][1]
    if shift and low == 0:
        return None
    if meaning.type == "ordinal":
        return meaning.order[(low + high) // 2 - shift]
    first, last = ends_of(low - shift, high - shift, meaning)
    if first is None or last is None:
        end = last if first is None else first
        return end if end is None or meaning.type == "date" else float(end)
    return _middle_moment(first, last, meaning) if meaning.type == "date" else _middle(float(first), float(last))


def _middle(low: float, high: float) -> float:
    half = low / 2 + high / 2
    return half if low <= half < high else low


def _middle_moment(low: Decimal, high: Decimal, meaning: Meaning) -> Decimal:
    """The middle of two moments: of dates, the day it is in; of times, to the microsecond."""
    if meaning.scale != "time":
        return low + (high - low) // (2 * _DAY) * _DAY
    return low + (((high - low) / 2 * 10**6).quantize(Decimal(1))) / 10**6
