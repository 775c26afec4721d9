# SPDX-License-Identifier: Apache-2.0
"""Released groups against the regions of the recoding: under regions = "domain" each group says exactly what one
region is, so that its labels tell nothing else of its records. Called by `released.check_labels`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from anonfit.auditing.coding import Coded, IntArray, join_codes
from anonfit.auditing.labels import Run, ValueSet, cell_count, cell_reader
from anonfit.auditing.meanings import Meaning
from anonfit.auditing.recoding import Bits, RegionGrid, RegionTree

__all__ = ["GroupLabels", "count_strangers"]

GroupLabels = tuple[Meaning, Sequence[ValueSet | None], IntArray]
"""A column's meaning, the sets of its different labels (None: no label), and the label of every group."""


def count_strangers(labels: Mapping[str, GroupLabels], tree: RegionTree | RegionGrid, *, groups: int) -> int:
    """How many groups are no region of the recoding: all (and at least one) if it is not one of these columns."""
    if not tree.fits:
        return max(1, groups)
    if isinstance(tree, RegionGrid):
        return _strangers_of_grid(labels, tree, groups)
    strange = np.zeros(groups, np.bool_)
    known = np.ones(len(tree.first), np.bool_)
    columns = []
    for place, name in enumerate(tree.columns):
        part_of_label, part_of_region, parts = _parts(labels[name], tree, place)
        part_of_group = part_of_label[labels[name][2]]
        strange |= part_of_group < 0
        known &= part_of_region >= 0
        columns.append((part_of_group, part_of_region, parts))
    codes = [Coded(np.concatenate([group[~strange], region[known]]), max(1, parts)) for group, region, parts in columns]
    inside = groups - int(strange.sum())
    keys, _ = join_codes(codes, inside + int(known.sum()))
    return groups - int(np.count_nonzero(_places(keys[:inside], np.sort(keys[inside:])) >= 0))


def _strangers_of_grid(labels: Mapping[str, GroupLabels], grid: RegionGrid, groups: int) -> int:
    """How many groups have a label that is no part of its column: every combination of parts is a region."""
    strange = np.zeros(groups, np.bool_)
    for name, parts in grid.parts.items():
        meaning, sets, of_group = labels[name]
        read = cell_reader(meaning)
        runs = [None if found is None else read(found) for found in sets]
        known = np.array([one is not None and tuple(one) in parts for one in runs], np.bool_)
        strange |= ~known[of_group]
    return int(strange.sum())


def _parts(column: GroupLabels, tree: RegionTree, place: int) -> tuple[IntArray, IntArray, int]:
    """The part of the column that every label and every region is (-1: none that both have), and how many there are."""
    meaning, sets, _ = column
    read = cell_reader(meaning)
    runs = [None if found is None else read(found) for found in sets]
    size = cell_count(meaning)
    if place in tree.sets:
        return _parts_by_bits(runs, tree.sets[place], size)
    single = [one[0] if one is not None and len(one) == 1 else None for one in runs]
    keys = np.array([-1 if run is None else run[0] * size + run[1] for run in single], np.int64)
    parts = np.unique(keys[keys >= 0])
    regions = tree.first[:, place].astype(np.int64) * size + tree.last[:, place]
    return _places(keys, parts), _places(regions, parts), len(parts)


def _places(keys: IntArray, parts: IntArray) -> IntArray:
    """Where keys stand among sorted parts, -1 for those that do not."""
    at = np.searchsorted(parts, keys)
    found: IntArray = np.where(np.append(parts, -2)[at] == keys, at, -1)
    return found


def _parts_by_bits(runs: Sequence[list[Run] | None], regions: Bits, size: int) -> tuple[IntArray, IntArray, int]:
    """The same where parts are sets of cells."""
    table = np.zeros((len(runs), size), np.bool_)
    for row, one in zip(table, runs, strict=True):
        for low, high in one or ():
            row[low : high + 1] = True
    texts = [bits.tobytes() for bits in np.packbits(table, axis=1)]
    parts = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    of_label = np.array([-1 if one is None else parts[text] for one, text in zip(runs, texts, strict=True)], np.int64)
    return of_label, np.array([parts.get(bits.tobytes(), -1) for bits in regions], np.int64), len(parts)
