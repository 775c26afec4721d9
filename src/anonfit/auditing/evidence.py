# SPDX-License-Identifier: Apache-2.0
"""What an audit has to go by: labels that are understood, raw rows found in them, and rows to count persons on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing.boxes import Boxes
from anonfit.auditing.coding import IntArray
from anonfit.auditing.groups import Grouping, Persons, persons_in_groups, read_persons
from anonfit.auditing.guessing import guess_meanings
from anonfit.auditing.hashing import aligned, aligned_texts
from anonfit.auditing.meanings import Meaning
from anonfit.auditing.observed import Seen, observed_groups
from anonfit.auditing.reading import Table, is_text_file, open_table, require_columns
from anonfit.auditing.released import Released, boxes_of, check_labels, open_released, read_columns
from anonfit.auditing.representatives import read_representatives
from anonfit.auditing.request import OtherRelease, Request
from anonfit.auditing.result import LabelCheck
from anonfit.auditing.source import Located, locate_source
from anonfit.errors import DataError

__all__ = [
    "Evidence",
    "Space",
    "gather_evidence",
    "left_out_groups",
    "locate_in_other",
    "open_data",
    "open_raw_rows",
    "open_source",
    "persons_in_file",
    "read_groups",
    "read_space",
    "source_persons",
    "without_suppressed",
]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Space:
    """The boxes of the released groups, if all their labels are understood, and the source's rows found in them."""

    labels: LabelCheck | None = None
    boxes: Boxes | None = None
    located: Located | None = None
    seen: Seen | None = None  # what records have, where labels are of these
    in_vain: int = 0  # rows of the source that were withheld though their groups meet all demands


@dataclass(frozen=True, slots=True)
class Evidence:
    """The rows that persons are counted on: those of the file, or the source's where only it has the entities."""

    grouping: Grouping
    persons: Persons
    sizes: IntArray  # (group) persons
    names: tuple[str, ...]  # raw columns
    columns: Callable[[Sequence[str]], Iterator[list[pl.Series]]]
    text_file: bool  # nothing tells numbers from texts of digits
    persons_unknown: bool = False  # rows were counted though persons are entities


def open_data(request: Request, *, lazily: bool = False) -> Table:
    """The table that is audited; in a file of a release only an empty field means missing, in a typed one nothing."""
    missing: tuple[str, ...] = request.missing
    if request.is_release:
        missing = ("",) if is_text_file(request.data) else ()
    return open_table(request.data, missing=missing, lazily=lazily)


def open_raw_rows(request: Request, *, lazily: bool = False) -> Table:
    """The source, all of it, with missing values as they were taken for such when the release was made."""
    found = open_table(
        request.source, missing=request.missing, label="the source", lazily=lazily, stripped=request.stripped
    )
    if request.keys is None or found.is_text:
        return found
    # A text file of a release cannot tell an empty text from a missing one.
    return replace(found, keys=frozenset(request.keys), rest=("",) if is_text_file(request.data) else ())


def open_source(released: Released, request: Request, *, raw: Sequence[str]) -> Table | None:
    """The source, reduced to the columns the audit needs."""
    if request.source is None:
        return None
    source = open_raw_rows(request)
    require_columns(source, released.columns, purpose="a quasi-identifier")
    others = request.other.quasi_identifiers if request.other else ()
    persons = [name for name in (request.entity, request.count) if name]
    known = request.meanings or {}
    names = [name for name in released.columns if name in known and known[name].type in ("nominal", "ordinal")]
    return source.only([*released.columns, *raw, *persons, *others]).loaded(names)


def read_space(released: Released, request: Request, *, source: Table | None) -> Space:
    """Read the labels as far as they have a meaning, and find the rows of the source in them."""
    if request.regions == "any" and request.tree is None and source is None and request.population is None:
        return Space()
    meanings = request.meanings
    if meanings is None:
        meanings = {} if source is None else guess_meanings(released, source)
    space = read_groups(released, request, meanings)
    if source is None or space.boxes is None:
        return space
    names = list(released.columns)
    located = locate_source(space.boxes, source, quasi_identifiers=names, seen=space.seen, **request.left_out)
    return replace(space, located=located)


def read_groups(released: Released, request: Request, meanings: Mapping[str, Meaning]) -> Space:
    """What is wrong with the labels, unless their meaning was only guessed, and the groups as boxes."""
    tree, groups = request.tree, released.grouping.count
    if request.representatives and tree is not None:
        return Space(*read_representatives(released, meanings, tree))
    columns = read_columns(released, meanings, None if request.meanings is None else request.regions)
    if request.regions == "observed" and tree is not None:
        strangers, regions, seen = observed_groups(columns, tree, groups)
        labels = check_labels(columns, None, regions=request.regions, tree=None, groups=groups)
        return Space(replace(labels, overlapping=0 if regions else None, no_region=strangers), regions, None, seen)
    boxes = boxes_of(released, columns, without=left_out_groups(released, request))
    if request.meanings is None:
        return Space(None, boxes)
    return Space(check_labels(columns, boxes, regions=request.regions, tree=tree, groups=groups), boxes)


def persons_in_file(released: Released, request: Request) -> bool:
    """Whether the file itself tells its persons, so that they can be counted without the source."""
    return request.entity is None or request.entity in released.table.schema


def gather_evidence(
    released: Released, request: Request, *, source: Table | None, located: Located | None, raw: Sequence[str]
) -> Evidence:
    """Persons in the groups, counted in the file if it can be, else among the source's rows in the labels."""
    table, grouping, entity = released.table, released.grouping, request.entity
    by_rows = located is None and source is not None and entity in source.schema
    if entity is None or persons_in_file(released, request) or by_rows:
        entity = entity if entity in table.schema else None
        names = [name for name in (entity, request.count) if name]
        persons = read_persons(table.frame(names), entity=entity, count=request.count)
        sizes = persons_in_groups(persons, grouping.of_row, grouping.count)
        unknown = request.entities_lost or (request.entity is not None and entity is None)
        return Evidence(grouping, persons, sizes, tuple(raw), table.columns, table.is_text, persons_unknown=unknown)
    if source is None or located is None or entity not in source.schema:
        raise DataError(f"The entity column '{entity}' is neither in the data nor in the source.")
    inside = located.found.group >= 0
    kept, rows = pl.Series(inside), source
    grouping = Grouping(located.found.group[inside], grouping.count, grouping.first)
    persons = read_persons(source.frame([entity]).filter(kept), entity=entity, count=None)

    def columns(names: Sequence[str]) -> Iterator[list[pl.Series]]:
        for chunk in rows.columns(names):
            yield [_like(table, series).filter(kept) for series in chunk]

    sizes = persons_in_groups(persons, grouping.of_row, grouping.count)
    raw = tuple(name for name in raw if name in source.schema)
    return Evidence(grouping, persons, sizes, raw, columns, table.is_text)


def _like(table: Table, series: pl.Series) -> pl.Series:
    """A column of the source with its values as the file has them: texts of numbers may be spelled in several ways."""
    if series.name not in table.schema:
        return series
    column = table.frame([series.name]).to_series()
    align = aligned_texts if table.is_text and series.dtype == pl.String else aligned
    return align(column, series)[1].alias(series.name)


def left_out_groups(released: Released, request: Request) -> BoolArray | None:
    """The groups of a foreign file that are rows which another tool suppressed; None: there are none of them. In a
    release, a star in every column is a region like any other.
    """
    if request.meanings is not None:
        return None
    found = released.suppressed
    return found if found.any() and not found.all() else None


def without_suppressed(evidence: Evidence, released: Released, request: Request) -> Evidence:
    """The same persons and groups without rows that another tool suppressed: their group is no equivalence class."""
    left_out = left_out_groups(released, request)
    if left_out is None:
        return evidence
    keep = ~left_out[evidence.grouping.of_row]
    kept = pl.Series(keep)

    def columns(names: Sequence[str]) -> Iterator[list[pl.Series]]:
        for chunk in evidence.columns(names):
            yield [series.filter(kept) for series in chunk]

    return replace(
        evidence,
        grouping=replace(evidence.grouping, of_row=evidence.grouping.of_row[keep]),
        persons=evidence.persons.only(keep),
        sizes=np.where(left_out, 0, evidence.sizes),
        columns=columns,
    )


def source_persons(source: Table, request: Request) -> Persons:
    """Whom the rows of the source stand for."""
    names = [name for name in (request.entity, request.count) if name in source.schema and name is not None]
    entity = request.entity if request.entity in names else None
    count = request.count if request.count in names else None
    return read_persons(source.frame(names), entity=entity, count=count)


def locate_in_other(other: OtherRelease, source: Table, *, missing: Sequence[str]) -> IntArray:
    """The group of every row of the source in a second release."""
    released = open_released(
        open_table(other.data, missing=missing, label="the other release"), other.quasi_identifiers
    )
    meanings = other.meanings if other.meanings is not None else guess_meanings(released, source)
    if other.tree is not None:
        boxes = read_representatives(released, meanings, other.tree)[1]
    else:
        boxes = boxes_of(released, read_columns(released, meanings))
    if boxes is None:
        raise DataError("The labels of the other release are not understood: give the meaning of its columns.")
    return locate_source(boxes, source, quasi_identifiers=list(released.columns), **other.left_out).found.group
