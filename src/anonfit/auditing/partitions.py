# SPDX-License-Identifier: Apache-2.0
"""The picture of two columns in a report, as rectangles: it follows from the recoding and from the groups of the file,
and is recounted from both. Of observed labels and representatives, which do not say what region a group is, there are
no more rectangles than are drawn, none over another, and their persons are those of groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from anonfit.auditing.labels import Run, cell_reader, read_label, spelled_scalars, speller
from anonfit.auditing.meanings import LabelMeaning
from anonfit.auditing.report_shape import Json, entries, listed_objects
from anonfit.auditing.result import Audit

_MOST = 240
"""Rectangles of a picture."""
_ENTRIES = {"across", "up", "held", "rectangles", "cut_short", "regions"}
_Box = tuple[int, int, int, int]
"""The cells, missing apart, from which to before which a rectangle goes across and up."""


def is_partition(
    picture: Any, meanings: Mapping[str, LabelMeaning], audit: Audit, *, multiples_of: int | None, shared: bool
) -> bool:
    """Whether a picture is one of this recoding and of these groups. Their persons are told as `multiples_of` a number
    where a person may have several rows; `shared`: several regions may be one group of the file.
    """
    axes = [entries(entries(picture).get(side)) for side in ("across", "up")]
    names: list[Any] = [axis.get("column") for axis in axes]
    columns = list(meanings)
    if not isinstance(picture, Mapping) or set(picture) != _ENTRIES or not all(name in columns for name in names):
        return False
    both = [meanings[str(name)] for name in names]
    edges = [_edges(axis, meaning) for axis, meaning in zip(axes, both, strict=True)]
    across, up = edges
    held = _held(picture["held"], {name: meanings[name] for name in columns if name not in names})
    boxes = None if across is None or up is None else _boxes(picture["rectangles"], across, up)
    if boxes is None or held is None or columns.index(names[0]) >= columns.index(names[1]):
        return False
    if type(picture["cut_short"]) is not bool or (None in boxes.values() and not picture["cut_short"]):
        return False
    # Edges that no rectangle has are those of regions of missing values, which have no place in the picture.
    used = [{end for box in boxes for end in box[place : place + 2]} for place in (0, 2)]
    if not all(
        set(side or ()) == ends or other.missing for side, ends, other in zip(edges, used, both[::-1], strict=True)
    ):
        return False
    return _are_of_groups(boxes, picture["regions"], audit, multiples_of=multiples_of, shared=shared) and (
        audit.groups is None or _are_regions(boxes, _slice(audit, names, held, both), multiples_of)
    )


def _edges(axis: Json, meaning: LabelMeaning) -> list[int] | None:
    """The cells, missing apart, before which the edges of a side lie, in rising order; None: they are no edges."""
    edges: Any = axis.get("edges")
    places: Any = axis.get("places")
    if meaning.is_named or not isinstance(edges, list):
        return None
    if meaning.type == "ordinal":
        words = [*meaning.order, None]
        known = isinstance(places, list) and all(type(place) is int and 0 <= place < len(words) for place in places)
        if not known or set(axis) != {"column", "scale", "places", "edges"} or axis["scale"] != "order":
            return None
        rising = all(before < after for before, after in pairwise(places))
        return places if rising and edges == [words[place] for place in places] else None
    scales = ("date", "time") if meaning.type == "date" else ("number",)
    if set(axis) != {"column", "scale", "edges"} or axis["scale"] not in scales:
        return None
    low, high = meaning.domain
    ends = [None if end is None else spelled_scalars(end, meaning.type, meaning.scale) for end in (
        low, *sorted(meaning.cuts or ()), high
    )]  # fmt: skip
    found: list[int] = []
    for number, edge in enumerate(edges, start=1):
        after = found[-1] + 1 if found else 0
        fits = [place for place in range(after, len(ends)) if _is_end(edge, ends[place])]
        if not fits:
            return None
        # The end of a domain may be a cut, too: before the values that are the end. The last edge is the end.
        found.append(fits[-1 if number == len(edges) else 0])
    return found


def _is_end(edge: Any, spelled: list[str] | None) -> bool:
    """Whether an edge is an end in its one spelling, or null at an end that is open."""
    return edge is None if spelled is None else isinstance(edge, str) and edge in spelled


def _held(held: Any, meanings: Mapping[str, LabelMeaning]) -> dict[str, list[Run]] | None:
    """The cells at which the other columns are held; None: these are other columns, or no labels of theirs."""
    lines = listed_objects(held)
    if not isinstance(held, list) or len(lines) < len(held) or [line.get("column") for line in lines] != list(meanings):
        return None
    cells = {}
    for line, (name, meaning) in zip(lines, meanings.items(), strict=True):
        label: Any = line.get("label")
        values = read_label(label, meaning) if isinstance(label, str) else None
        if values is None or set(line) != {"column", "label"}:
            return None
        runs = cell_reader(meaning)(values)
        if runs is None or not speller(meaning, observed=False)(label, values, runs):
            return None
        cells[name] = runs
    return cells


def _boxes(rectangles: Any, across: Sequence[int], up: Sequence[int]) -> dict[_Box, int | None] | None:
    """The rectangles, none over another, and the persons of each (null: it is divided further); None: they are none."""
    if not isinstance(rectangles, list) or len(rectangles) > _MOST:
        return None
    boxes: dict[_Box, int | None] = {}
    covered = np.zeros((len(across), len(up)), np.bool_)
    for rectangle in rectangles:
        if not isinstance(rectangle, list) or len(rectangle) != 5:
            return None
        *ends, persons = rectangle
        if any(type(end) is not int for end in ends) or not (persons is None or type(persons) is int):
            return None
        left, right, bottom, top = ends
        if not (0 <= left < right < len(across) and 0 <= bottom < top < len(up)) or (persons or 0) < 0:
            return None
        if covered[left:right, bottom:top].any():
            return None
        covered[left:right, bottom:top] = True
        boxes[across[left], across[right], up[bottom], up[top]] = persons
    return boxes


def _are_of_groups(
    boxes: Mapping[_Box, int | None], regions: Any, audit: Audit, *, multiples_of: int | None, shared: bool
) -> bool:
    """Whether rectangles have the persons of groups, each of another one, and regions are as many as groups."""
    persons = [size for size in boxes.values() if size]
    if type(regions) is not int or len(persons) > regions:
        return False
    if shared:
        return multiples_of is not None or (regions <= audit.persons and sum(persons) <= audit.persons)
    sizes: Counter[int] = Counter()
    for size, groups in audit.sizes.of_size.items():
        sizes[_rounded(size, multiples_of)] += groups
    return regions == sizes.total() and Counter(persons) <= sizes


def _rounded(size: int, multiples_of: int | None) -> int:
    """The persons of a group as a picture tells them: of one that is not empty, at least one."""
    return size if multiples_of is None else max(size // multiples_of * multiples_of, 1)


def _slice(
    audit: Audit, names: Sequence[Any], held: Mapping[str, list[Run]], both: Sequence[LabelMeaning]
) -> dict[_Box, int]:
    """The groups that hold the cells at which other columns are held, as boxes of the two, and the persons of each."""
    assert audit.groups is not None
    inside = np.ones(len(audit.groups.sizes), np.bool_)
    for name, runs in held.items():
        cells, of_group = audit.groups.columns[name]
        inside &= np.array([part is not None and _contains(part, runs) for part in cells], np.bool_)[of_group]
    boxes: dict[_Box, int] = {}
    for group in np.flatnonzero(inside).tolist():
        ends: list[int] = []
        for name, meaning in zip(names, both, strict=True):
            cells, of_group = audit.groups.columns[str(name)]
            part, shift = cells[of_group[group]] or [(0, -1)], int(bool(meaning.missing))
            ends += [max(part[0][0] - shift, 0), max(part[-1][1] - shift + 1, 0)]
        if ends[0] < ends[1] and ends[2] < ends[3]:
            boxes[ends[0], ends[1], ends[2], ends[3]] = int(audit.groups.sizes[group])
    return boxes


def _contains(part: Sequence[Run], runs: Sequence[Run]) -> bool:
    return all(any(low <= first and last <= high for low, high in part) for first, last in runs)


def _are_regions(boxes: Mapping[_Box, int | None], groups: Mapping[_Box, int], multiples_of: int | None) -> bool:
    """Whether each rectangle has the persons of the group that it is, an empty one meets none, and every group is a
    rectangle or lies in one that is divided further.
    """
    empty = [box for box, persons in boxes.items() if persons == 0]
    divided = [box for box, persons in boxes.items() if persons is None]
    told = {box: persons for box, persons in boxes.items() if persons}
    for box, size in groups.items():
        if told.pop(box, None) == _rounded(size, multiples_of):
            continue
        if not any(_meet(box, other, whole=True) for other in divided):
            return False
    return not told and not any(_meet(group, box) for box in empty for group in groups)


def _meet(box: _Box, other: _Box, *, whole: bool = False) -> bool:
    """Whether two boxes have a cell in common or, if `whole`, the one lies in the other."""
    sides = [(box[place], box[place + 1], other[place], other[place + 1]) for place in (0, 2)]
    if whole:
        return all(low <= first and last <= high for first, last, low, high in sides)
    return all(first < high and low < last for first, last, low, high in sides)
