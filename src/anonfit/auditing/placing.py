# SPDX-License-Identifier: Apache-2.0
"""A release and its source as one audit reads them: what is opened, with which texts for missing, in which of the ways
that a text file can be read, and which boxes of raw values the labels are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from anonfit.auditing.boxes import LabelBoxes, overlapping_boxes
from anonfit.auditing.coding import BoolArray
from anonfit.auditing.reading import AuditedTable, is_text_file, open_table, require_columns
from anonfit.auditing.regions import ObservedValues, groups_of_regions, observed_groups, read_representatives
from anonfit.auditing.released import (
    CellsOfGroups,
    Released,
    boxes_of,
    cells_of_groups,
    check_labels,
    guess_meanings,
    read_columns,
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
