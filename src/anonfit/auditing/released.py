# SPDX-License-Identifier: Apache-2.0
"""What the labels of released groups mean, guessed from the source where nobody has said it, and whether they are
those of the recoding's regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from anonfit.auditing.axes import as_moments, axis_of, distinct_texts
from anonfit.auditing.boxes import LabelBoxes, box_space, overlapping_boxes
from anonfit.auditing.coding import BoolArray, Coded, IntArray, join_codes
from anonfit.auditing.groups import group_rows
from anonfit.auditing.labels import Interval, ValueSet, cell_reader, read_bounds, read_label
from anonfit.auditing.meanings import LabelMeaning
from anonfit.auditing.reading import AuditedTable
from anonfit.auditing.recoding import RegionGrid, RegionTree
from anonfit.auditing.regions import parts_of
from anonfit.auditing.result import LabelCheck
from anonfit.auditing.rows import Released
from anonfit.auditing.spelling import speller

Regions = Literal["any", "domain", "observed"]


@dataclass(frozen=True, slots=True)
class ReleasedLabels:
    """The different labels of one quasi-identifier, what they mean (None: no label), and the label of every group."""

    meaning: LabelMeaning
    sets: list[ValueSet | None]
    of_group: IntArray
    empty: int | None  # the place in `sets` of an empty cell, which is no label; None: bounds may be empty


def read_column(released: Released, name: str, meaning: LabelMeaning, regions: Regions | None) -> ReleasedLabels:
    """Read every different label of a quasi-identifier once; in a release (`regions` are given), one that is not
    written as labels are is none.
    """
    columns = [distinct_texts(released.heads[column]) for column in released.columns[name]]
    if len(columns) == 1:
        codes, texts = columns[0]
        values = [read_label(text, meaning) for text in texts]
        if regions in ("domain", "observed") and meaning.missing is not None:
            spelled = speller(meaning, observed=regions == "observed")
            values = [
                label and (label if spelled(text, label) else None) for text, label in zip(texts, values, strict=True)
            ]
        return ReleasedLabels(meaning, [read_label(None, meaning), *values], codes, empty=0)
    frame = pl.DataFrame({str(i): codes for i, (codes, _) in enumerate(columns)})
    grouping = group_rows(frame, frame.height)
    sets = []
    for first in grouping.first:
        ends = [(None, *texts)[codes[first]] for codes, texts in columns]
        sets.append(read_bounds(ends[0], ends[1], ends[2] if len(ends) > 2 else None, meaning=meaning))
    return ReleasedLabels(meaning, sets, grouping.of_row, empty=None)


def read_columns(
    released: Released, meanings: Mapping[str, LabelMeaning], regions: Regions | None = None
) -> dict[str, ReleasedLabels]:
    """The labels of every quasi-identifier that has a meaning."""
    return {name: read_column(released, name, meanings[name], regions) for name in released.columns if name in meanings}


def boxes_of(
    released: Released, columns: Mapping[str, ReleasedLabels], *, without: BoolArray | None = None
) -> LabelBoxes | None:
    """The groups as boxes in the space of raw values; groups marked in `without` get none. None if the labels of some
    quasi-identifier have no meaning.
    """
    if len(columns) < len(released.columns):
        return None
    known = [[values for values in column.sets if values is not None] for column in columns.values()]
    axes = [axis_of(column.meaning, sets) for column, sets in zip(columns.values(), known, strict=True)]
    places = np.empty((released.groups, len(columns)), np.int64)
    for position, column in enumerate(columns.values()):
        places[:, position] = column.of_group
    sets = [column.sets for column in columns.values()]
    if without is None:
        return box_space(axes, sets, places)
    boxes = box_space(axes, sets, places[~without])
    return replace(boxes, group_of_box=np.flatnonzero(~without)[boxes.group_of_box])


def check_labels(
    columns: Mapping[str, ReleasedLabels],
    boxes: LabelBoxes | None,
    *,
    regions: Regions,
    tree: RegionTree | RegionGrid | None,
    groups: int,
) -> LabelCheck:
    """Count the labels that are none, those that the recoding does not allow, and the groups whose labels overlap or
    are no region of its tree.
    """
    unreadable, not_allowed = {}, {}
    for name, column in columns.items():
        codes = np.unique(column.of_group)
        used = [None if code == column.empty and regions != "any" else column.sets[code] for code in codes]
        known = [values for values in used if values is not None]
        unreadable[name] = len(used) - len(known)
        not_allowed[name] = sum(not _allowed(values, column.meaning, regions) for values in known)
    if boxes is None:
        return LabelCheck(unreadable, not_allowed, overlapping=None, no_region=None)
    strangers = None if tree is None else count_strangers(_group_labels(columns), tree, groups=groups)
    return LabelCheck(unreadable, not_allowed, overlapping=overlapping_boxes(boxes), no_region=strangers)


def _group_labels(columns: Mapping[str, ReleasedLabels]) -> dict[str, GroupLabels]:
    """Labels as they are held against regions: an empty cell is none."""
    return {
        name: (
            column.meaning,
            [None if code == column.empty else values for code, values in enumerate(column.sets)],
            column.of_group,
        )
        for name, column in columns.items()
    }


def _allowed(values: ValueSet, meaning: LabelMeaning, regions: Regions) -> bool:
    """Whether the ends of a label's intervals are cuts or ends of the domain."""
    if regions != "domain" or meaning.tree is not None or values.everything:
        return True
    return all(_allowed_interval(interval, meaning) for interval in values.intervals)


def _allowed_interval(interval: Interval, meaning: LabelMeaning) -> bool:
    if meaning.type == "ordinal":
        return not interval.closed or interval.lower == interval.upper or interval.upper == len(meaning.order) - 1
    if meaning.cuts is None:
        return True
    low, high = meaning.domain
    lower = low is None if interval.lower is None else interval.lower == low or interval.lower in meaning.cuts
    if interval.upper is None:
        return lower and high is None
    return lower and (interval.upper == high if interval.closed else interval.upper in meaning.cuts)


GroupLabels = tuple[LabelMeaning, Sequence[ValueSet | None], IntArray]
"""A column's meaning, the sets of its different labels (None: no label), and the label of every group."""


def count_strangers(labels: Mapping[str, GroupLabels], tree: RegionTree | RegionGrid, *, groups: int) -> int:
    """How many groups are no region of the recoding: all (and at least one) if it is not one of these columns. Under
    regions = "domain" each group says exactly what one region is, so that its labels tell nothing else of its records.
    """
    if not tree.fits:
        return max(1, groups)
    of_group, of_region, bounds = [], [], []
    for name, (meaning, sets, label_of_group) in labels.items():
        parts, part_of_region = parts_of(tree, name)
        number, read = {part: place for place, part in enumerate(parts)}, cell_reader(meaning)
        runs = (None if values is None else read(values) for values in sets)
        part_of_label = np.array([-1 if cells is None else number.get(tuple(cells), -1) for cells in runs], np.int64)
        of_group.append(part_of_label[label_of_group])
        of_region.append(part_of_region)
        bounds.append(max(1, len(parts)))
    known = np.all([parts >= 0 for parts in of_group], axis=0)
    count = int(np.count_nonzero(known))
    if isinstance(tree, RegionGrid):  # every combination of parts is a region
        return groups - count
    every = [np.concatenate([group[known], region]) for group, region in zip(of_group, of_region, strict=True)]
    keys, _ = join_codes([Coded(codes, bound) for codes, bound in zip(every, bounds, strict=True)], len(every[0]))
    return groups - int(np.count_nonzero(np.isin(keys[:count], keys[count:])))


def guess_meanings(released: Released, source: AuditedTable) -> Mapping[str, LabelMeaning]:
    """A meaning per quasi-identifier under which all its labels can be read; a column without one is left out."""
    meanings = {}
    for name, columns in released.columns.items():
        if name not in source.schema:
            continue
        raw = source.frame([name]).to_series()
        if len(columns) > 1:
            meanings[name] = LabelMeaning(name, "date" if raw.dtype.is_temporal() else "continuous")
            continue
        labels = distinct_texts(released.heads[columns[0]])[1]
        fitting = [meaning for meaning in _candidates(name, raw) if _fits(labels, meaning, raw)]
        if fitting:
            meanings[name] = fitting[0]
    return meanings


def _candidates(name: str, raw: pl.Series) -> Sequence[LabelMeaning]:
    """What the raw values could be, the most telling first."""
    nominal = LabelMeaning(name, "nominal")
    if raw.dtype.is_temporal():
        return LabelMeaning(name, "date"), nominal
    if raw.dtype.is_numeric():
        return LabelMeaning(name, "continuous"), nominal
    if raw.dtype == pl.Boolean:
        return (nominal,)
    texts = raw.cast(pl.String)
    numbers = texts.cast(pl.Float64, strict=False)
    if numbers.null_count() == texts.null_count():
        return LabelMeaning(name, "continuous"), nominal
    if as_moments(texts).null_count() == texts.null_count():
        return LabelMeaning(name, "date"), nominal
    return (nominal,)


def _fits(labels: Sequence[str], meaning: LabelMeaning, raw: pl.Series) -> bool:
    """Whether every label can be read and, of names, is made of raw values."""
    sets = [read_label(label, meaning) for label in labels]
    if meaning.type != "nominal":
        return None not in sets
    known = set(distinct_texts(raw)[1])
    return all(values is not None and known.issuperset(values.names) for values in sets)
