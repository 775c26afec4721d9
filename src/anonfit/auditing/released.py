# SPDX-License-Identifier: Apache-2.0
"""A released table as the audit sees it: groups of equal quasi-identifiers and what their labels mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing.axes import axis_of, distinct_texts
from anonfit.auditing.boxes import Boxes, box_space, overlapping_boxes
from anonfit.auditing.coding import IntArray
from anonfit.auditing.groups import Grouping, group_rows
from anonfit.auditing.labels import Interval, ValueSet, read_bounds, read_label, speller
from anonfit.auditing.meanings import Meaning
from anonfit.auditing.reading import Table, require_columns
from anonfit.auditing.recoding import RegionGrid, RegionTree
from anonfit.auditing.regions import GroupLabels, count_strangers
from anonfit.auditing.result import LabelCheck

__all__ = [
    "ColumnLabels",
    "Regions",
    "Released",
    "boxes_of",
    "check_labels",
    "label_texts",
    "open_released",
    "physical_columns",
    "read_columns",
]

Regions = Literal["any", "domain", "observed"]


@dataclass(frozen=True, slots=True)
class Released:
    """A table, its quasi-identifiers with the columns that hold them, its groups, and one row of each group."""

    table: Table
    columns: Mapping[str, tuple[str, ...]]  # quasi-identifier -> columns of the file
    grouping: Grouping
    heads: pl.DataFrame  # (group) the quasi-identifiers' columns

    @property
    def rows(self) -> int:
        """The number of rows of the file."""
        return len(self.grouping.of_row)

    @property
    def suppressed(self) -> npt.NDArray[np.bool_]:
        """The groups with a star in every quasi-identifier, as other tools write rows that they suppress."""
        if not self.heads.width:
            return np.zeros(self.grouping.count, np.bool_)
        stars = pl.all_horizontal(pl.all().cast(pl.String).eq_missing("*"))
        return self.heads.select(stars).to_series().to_numpy()


@dataclass(frozen=True, slots=True)
class ColumnLabels:
    """The different labels of one quasi-identifier, what they mean (None: no label), and the label of every group."""

    meaning: Meaning
    sets: list[ValueSet | None]
    of_group: IntArray
    empty: int | None  # the place in `sets` of an empty cell, which is no label; None: bounds may be empty


def physical_columns(table: Table, name: str) -> tuple[str, ...]:
    """The columns of a file that hold a quasi-identifier: itself, or its bounds."""
    if name not in table.schema and f"{name}_lower" in table.schema and f"{name}_upper" in table.schema:
        return tuple(f"{name}_{end}" for end in ("lower", "upper", "missing") if f"{name}_{end}" in table.schema)
    require_columns(table, [name], purpose="a quasi-identifier")
    return (name,)


def open_released(table: Table, quasi_identifiers: Sequence[str]) -> Released:
    """Read the quasi-identifiers of a table and group its rows."""
    columns = {name: physical_columns(table, name) for name in quasi_identifiers}
    names = [column for held in columns.values() for column in held]
    table = table.loaded(names).shortened()
    frame = table.frame(names)
    grouping = group_rows(frame, frame.height if names else table.height())
    return Released(table, columns, grouping, frame[grouping.first] if names else frame)


def label_texts(released: Released, name: str) -> list[str]:
    """The different labels of a quasi-identifier that is held by one column."""
    return distinct_texts(released.heads[released.columns[name][0]])[1]


def read_column(released: Released, name: str, meaning: Meaning, regions: Regions | None) -> ColumnLabels:
    """Read every different label of a quasi-identifier once; in a release (`regions` are given), one that is not
    written as labels are is none.
    """
    columns = [distinct_texts(released.heads[column]) for column in released.columns[name]]
    if len(columns) == 1:
        codes, texts = columns[0]
        found = [read_label(text, meaning) for text in texts]
        if regions in ("domain", "observed") and meaning.missing is not None:
            spelled = speller(meaning, observed=regions == "observed")
            found = [one and (one if spelled(text, one) else None) for text, one in zip(texts, found, strict=True)]
        return ColumnLabels(meaning, [read_label(None, meaning), *found], codes, empty=0)
    frame = pl.DataFrame({str(i): codes for i, (codes, _) in enumerate(columns)})
    grouping = group_rows(frame, frame.height)
    sets = []
    for first in grouping.first:
        ends = [(None, *texts)[codes[first]] for codes, texts in columns]
        sets.append(read_bounds(ends[0], ends[1], ends[2] if len(ends) > 2 else None, meaning=meaning))
    return ColumnLabels(meaning, sets, grouping.of_row, empty=None)


def read_columns(
    released: Released, meanings: Mapping[str, Meaning], regions: Regions | None = None
) -> dict[str, ColumnLabels]:
    """The labels of every quasi-identifier that has a meaning."""
    return {name: read_column(released, name, meanings[name], regions) for name in released.columns if name in meanings}


def boxes_of(
    released: Released, columns: Mapping[str, ColumnLabels], *, without: npt.NDArray[np.bool_] | None = None
) -> Boxes | None:
    """The groups as boxes of the space of raw values, but for those `without` one; None if the labels of some
    quasi-identifier have no meaning.
    """
    if len(columns) < len(released.columns):
        return None
    known = [[found for found in column.sets if found is not None] for column in columns.values()]
    axes = [axis_of(column.meaning, sets) for column, sets in zip(columns.values(), known, strict=True)]
    places = np.empty((released.grouping.count, len(columns)), np.int64)
    for position, column in enumerate(columns.values()):
        places[:, position] = column.of_group
    sets = [column.sets for column in columns.values()]
    if without is None:
        return box_space(axes, sets, places)
    boxes = box_space(axes, sets, places[~without])
    return replace(boxes, group_of_box=np.flatnonzero(~without)[boxes.group_of_box])


def check_labels(
    columns: Mapping[str, ColumnLabels],
    boxes: Boxes | None,
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
        known = [found for found in used if found is not None]
        unreadable[name] = len(used) - len(known)
        not_allowed[name] = sum(not _allowed(found, column.meaning, regions) for found in known)
    if boxes is None:
        return LabelCheck(unreadable, not_allowed, overlapping=None, no_region=None)
    strangers = None if tree is None else count_strangers(_group_labels(columns), tree, groups=groups)
    return LabelCheck(unreadable, not_allowed, overlapping=overlapping_boxes(boxes), no_region=strangers)


def _group_labels(columns: Mapping[str, ColumnLabels]) -> dict[str, GroupLabels]:
    """Labels as they are held against regions: an empty cell is none."""
    return {
        name: (
            column.meaning,
            [None if code == column.empty else found for code, found in enumerate(column.sets)],
            column.of_group,
        )
        for name, column in columns.items()
    }


def _allowed(found: ValueSet, meaning: Meaning, regions: Regions) -> bool:
    """Whether the ends of a label's intervals are cuts or ends of the domain."""
    if regions != "domain" or meaning.tree is not None or found.everything:
        return True
    return all(_allowed_interval(interval, meaning) for interval in found.intervals)


def _allowed_interval(interval: Interval, meaning: Meaning) -> bool:
    if meaning.type == "ordinal":
        return not interval.closed or interval.lower == interval.upper or interval.upper == len(meaning.order) - 1
    if meaning.cuts is None:
        return True
    low, high = meaning.domain
    lower = low is None if interval.lower is None else interval.lower == low or interval.lower in meaning.cuts
    if interval.upper is None:
        return lower and high is None
    return lower and (interval.upper == high if interval.closed else interval.upper in meaning.cuts)
