# SPDX-License-Identifier: Apache-2.0
"""A release and its source as one audit reads them: what is opened, with which texts for missing, in which of the ways
that a text file can be read, and which boxes of raw values the labels are: those of regions need not be read one by
one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import polars as pl

from anonfit.auditing.boxes import Axis, LabelBoxes, Runs, axis_of, boxes_of_runs, distinct_texts, overlapping_boxes
from anonfit.auditing.coding import BoolArray, IntArray
from anonfit.auditing.labels import Interval, ValueSet, labeller, labels_of_line
from anonfit.auditing.meanings import LabelMeaning
from anonfit.auditing.reading import AuditedTable, is_text_file, open_table, require_columns
from anonfit.auditing.recoding import ColumnParts, Part, RegionGrid, RegionTree, parts_of
from anonfit.auditing.regions import ObservedValues, observed_groups, read_representatives, units_of, value_set
from anonfit.auditing.released import (
    CellsOfGroups,
    Released,
    boxes_of,
    cells_of_groups,
    check_labels,
    guess_meanings,
    read_columns,
    strangers_among,
)
from anonfit.auditing.request import Request
from anonfit.auditing.result import LabelCheck
from anonfit.auditing.source import SourceRows
from anonfit.errors import DataError

_WAYS_TO_READ: tuple[dict[str, Any], ...] = ({}, {"stripped": True}, {"care": "."}, {"care": ","})

Outcome = TypeVar("Outcome")


def in_best_reading(
    request: Request, attempt: Callable[[Request], Outcome], faults: Callable[[Outcome], int]
) -> Outcome:
    """What is found under the reading of the source that has the fewest faults, the first of these.

    Blanks around the texts of a text file may have been taken for a part of them, lines for none, and points for
    thousands, or not, when a release was made of it.
    """
    if not request.is_release or not is_text_file(request.source):
        return attempt(request)
    outcomes: list[Outcome] = []
    errors: list[DataError] = []
    for way in _WAYS_TO_READ:
        try:
            outcomes.append(attempt(replace(request, **way)))
        except DataError as error:
            errors.append(error)
            continue
        if not faults(outcomes[-1]):
            return outcomes[-1]
    if not outcomes:
        raise errors[0]
    return min(outcomes, key=faults)


def open_data(request: Request, *, lazily: bool = False) -> AuditedTable:
    """The table that is audited; in a file of a release only an empty field means missing, in a typed one nothing."""
    missing: tuple[str, ...] = request.missing
    if request.is_release:
        missing = ("",) if is_text_file(request.data) else ()
    return open_table(request.data, missing=missing, lazily=lazily)


def open_source(released: Released, request: Request) -> SourceRows | None:
    """The source, with the columns that the audit needs, and missing values as the release took them for such."""
    if request.source is None:
        return None
    table = open_table(
        request.source,
        missing=request.missing,
        label="the source",
        lazily=not released.is_whole,
        stripped=request.stripped,
        columns=list(dict.fromkeys([*released.columns, *request.beside])),
        codes=request.codes,
        care=request.care,
        layout=request.layout,
    )
    if request.keys is not None and not table.is_text:
        # A text file of a release cannot tell an empty text from a missing one.
        table = replace(table, keys=frozenset(request.keys), rest=("",) if is_text_file(request.data) else ())
    require_columns(table, released.columns, purpose="a quasi-identifier")
    persons = [name for name in (request.entity, request.count) if name]
    table = table.only([*released.columns, *released.raw, *persons])
    if released.is_whole:
        kinds = {name: meaning.type for name, meaning in (request.meanings or {}).items()}
        table = table.loaded(name for name in released.columns if kinds.get(name) in ("nominal", "ordinal"))
    return SourceRows(table, request, tuple(released.columns), request.rows_at_once)


def left_out_groups(released: Released, request: Request) -> BoolArray | None:
    """The groups of a foreign file that are rows which another tool suppressed; None: there are none of them. In a
    release, a star in every column is a region like any other.
    """
    if request.meanings is not None:
        return None
    suppressed = released.suppressed
    return suppressed if suppressed.any() and not suppressed.all() else None


Space = tuple[LabelCheck | None, LabelBoxes | None, ObservedValues | None, CellsOfGroups | None]
"""What is wrong with the labels (None: nothing is known of their meaning); the boxes of the groups in the space of raw
values (None: some labels are not understood); of labels that tell what records have, what takes these in; and of a
release whose labels say of which regions they are, the cells of each label and the label of each group."""


def read_space(released: Released, request: Request, source: SourceRows | None) -> Space:
    """Read the labels as far as they have a meaning."""
    if request.regions == "any" and request.tree is None and source is None and request.population is None:
        return None, None, None, None
    meanings, tree = request.meanings, request.tree
    if meanings is None:
        meanings = {} if source is None else guess_meanings(released, source.table)
    if request.representatives and tree is not None:
        return *read_representatives(released, meanings, tree), None, None
    tells_regions = request.is_release and tree is not None
    known = groups_of_regions(released, meanings, tree) if tree is not None and request.regions == "domain" else None
    if known is not None:
        of_regions, none_of = known[0], dict.fromkeys(meanings, 0)
        labels = LabelCheck(none_of, none_of, overlapping_boxes(of_regions), no_region=0)
        return labels, of_regions, None, known[1] if tells_regions else None
    columns = read_columns(released, meanings, None if request.meanings is None else request.regions)
    if request.regions == "observed" and tree is not None:
        strangers, regions, seen = observed_groups(columns, tree, released.groups)
        labels = check_labels(columns, None, request.regions, None)
        return replace(labels, overlapping=0 if regions else None, no_region=strangers), regions, seen, None
    boxes = boxes_of(released, columns, without=left_out_groups(released, request))
    if request.meanings is None:
        return None, boxes, None, None
    cells = cells_of_groups(columns) if tells_regions else None
    return check_labels(columns, boxes, request.regions, tree), boxes, None, cells


# --- labels that are those of regions -------------------------------------------------------------------------------


def groups_of_regions(
    released: Released, meanings: Mapping[str, LabelMeaning], tree: RegionTree | RegionGrid
) -> tuple[LabelBoxes, CellsOfGroups] | None:
    """The boxes of a release and the cells of its labels, where every label is spelled as that of a part of its column
    and every group is a region; None: that is not so, and labels must be read one by one to tell what is wrong.

    Of some cells there is one label, and it is that of no others: where these cells are known, it need not be read.
    """
    columns = released.columns
    if not tree.fits or not columns or set(meanings) != set(columns) or any(len(held) > 1 for held in columns.values()):
        return None
    cells: CellsOfGroups = {}
    of_column, labels, axes, runs = [], [], [], []
    for name, (column,) in columns.items():
        parts = parts_of(tree, name)
        listed = parts.listed()
        part_of_group = _parts_of_labels(released.heads[column], listed, meanings[name])
        on_axis = _ends_on_axis(meanings[name])
        if part_of_group is None or on_axis is None:
            return None
        cells[name] = [*map(list, listed)], part_of_group
        of_column.append(parts)
        labels.append(part_of_group)
        axes.append(on_axis[0])
        runs.append(_runs_on_axis(parts, meanings[name], *on_axis))
    if strangers_among(labels, of_column, is_grid=isinstance(tree, RegionGrid)):
        return None
    return boxes_of_runs(axes, runs, np.stack(labels, axis=1)), cells


def _parts_of_labels(labels: pl.Series, listed: Sequence[Part], meaning: LabelMeaning) -> IntArray | None:
    """The part that each label says; None if some label is that of no part, or of two."""
    part_of: dict[str | None, int]
    if meaning.has_ends:
        texts = [set(labels_of_line(value_set(part, meaning), meaning, observed=False)) for part in listed]
        part_of, spelled = {text: place for place, own in enumerate(texts) for text in own}, sum(map(len, texts))
    else:
        label_of = labeller(meaning)
        part_of, spelled = {label_of(part): place for place, part in enumerate(listed)}, len(listed)
    if len(part_of) < spelled or None in part_of:
        return None
    codes, found = distinct_texts(labels)
    numbers = np.array([-1, *(part_of.get(text, -1) for text in found)], np.int64)[codes]
    return None if (numbers < 0).any() else numbers


def _ends_on_axis(meaning: LabelMeaning) -> tuple[Axis, IntArray] | None:
    """The axis that tells apart the cells of a recoding, and its first and last cell of each of these; None if the axis
    has none of some cell.
    """
    shift = int(bool(meaning.missing))
    present = np.arange(meaning.cells - shift)
    if meaning.has_ends:
        axis = axis_of(meaning, [ValueSet(intervals=(Interval(cut, None),)) for cut in meaning.rising_cuts])
        ends = np.stack([np.maximum(1, 2 * present), 2 * present + 1], axis=1)
    elif meaning.type == "nominal":
        axis = axis_of(meaning, ())
        ends = np.stack([present + 1, present + 1], axis=1)
    else:
        units = units_of(meaning)
        axis = axis_of(meaning, units)
        runs = [axis.runs(values) for values in units]
        if any(len(held) != 1 for held in runs):
            return None
        ends = np.array([held[0] for held in runs], np.int64)
        if meaning.tree is None:  # nothing lies between two words
            ends[1:, 0] = ends[:-1, 1] + 1
    return axis, np.concatenate([np.zeros((shift, 2), np.int64), ends])


def _runs_on_axis(parts: ColumnParts, meaning: LabelMeaning, axis: Axis, ends: IntArray) -> Runs:
    """The runs of parts on an axis: cells of a recoding that do not touch there are parted. All values that there are
    may be any, and where none is missing, a missing one, too: that is what their label says.
    """
    low, high = parts.runs.T
    every = (low <= int(bool(meaning.missing))) & (high == len(ends) - 1)
    gaps = np.flatnonzero(ends[1:, 0] > ends[:-1, 1] + 1)  # the cells before them
    before = np.searchsorted(gaps, np.arange(len(ends)))
    pieces = np.where(every, 1, before[high] - before[low] + 1)
    of_run = np.repeat(np.arange(len(pieces)), pieces)
    begins = np.append(0, np.cumsum(pieces))
    rank = np.arange(len(of_run)) - begins[of_run]
    gap = np.append(gaps, 0)[np.minimum(before[low][of_run] + rank + np.array([[-1], [0]]), len(gaps))]
    first = np.where(rank == 0, low[of_run], gap[0] + 1)
    last = np.where(rank == pieces[of_run] - 1, high[of_run], gap[1])
    runs = np.stack([ends[first, 0], ends[last, 1]], axis=1)
    is_whole = every[of_run]
    runs[is_whole] = np.stack([low[of_run] > 0, np.full(len(of_run), axis.cells - 1)], axis=1)[is_whole]
    return runs, begins[parts.begins]
