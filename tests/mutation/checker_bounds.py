# SPDX-License-Identifier: Apache-2.0
"""What leaves no room in a manifest and a report for anything else, from docs/release-folder.md alone: texts that are
few and short, figures of groups, and the picture of two columns. Part of the independent checker: nothing of the
package.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from checker_labels import Cells, Column, need
from checker_regions import is_label
from checker_release import Release, whole

DIRECTIVE = re.compile(r"%(?:[-_0]?[A-Za-z%+]|\.?[369]?f|:{0,3}z|#z)")
SPANS = [0.05, 0.25, 0.5, 1.0, None]
Ends = tuple[int, int, int, int]


def texts_of_manifest(release: Release) -> None:
    """Texts that mean missing, forms of dates, types and names of columns that are not released."""
    columns = release.spec["columns"]
    for texts in (part["missing"] for part in (release.spec["data"], *columns.values()) if "missing" in part):
        need(isinstance(texts, list) and len(texts) <= 30, "more texts mean missing than may")
        need(all(isinstance(text, str) and len(text) <= 32 and shown(text) for text in texts), "a long text is missing")
    types = {column.name: column.type for column in release.recoding.columns}
    for name, column in columns.items():
        need(column.get("type") in (None, types.get(name, column.get("type"))), "a column is of another type")
        form = column.get("date_format")
        need(form is None or (column.get("type") in (None, "date") and is_form(form)), "a form of dates that is none")
        need(form is None or types.get(name, "date") == "date", "a form of dates of no dates")
        line = len(name) <= 200 and name.isprintable()
        need(line or column["role"] not in ("identifier", "entity"), "the name of a column is no line")
        need(len(column.get("reason") or "") <= 1000, "a reason is too long")
    data = release.manifest["data"]
    need(data["texts"] == [name for name in data["columns"] if name in data["texts"]], "texts in another order")


def shown(text: str) -> bool:
    return all(sign.isprintable() or sign.isspace() for sign in text)


def is_form(form: str) -> bool:
    rest = DIRECTIVE.sub("\0", form)
    words = [word for word in re.split(r"[\0 \-/.,:;_]+", rest) if word]
    return len(form) <= 40 and "\0" in rest and all(len(word) <= 3 and word.isalpha() for word in words)


def bounds_of_report(release: Release, said: dict[str, Any]) -> None:
    """No entry, bin, finding or line that tells nothing."""
    need(set(said["rows"]) == {"released", "read", "withheld", "dropped"}, "the report counts other rows")
    need(said["audit"]["labels"]["no_region"] in (None, 0), "groups that are no region")
    for one in said["audit"]["findings"]:
        need(one["persons"] is None and one["asked_persons"] is None, "a finding tells hidden persons")
    ends = [-1, *(one[end] for one in said["group_sizes"] for end in ("low", "high"))]
    need(all(a < b for a, b in zip(ends[::2], ends[1::2], strict=False)), "bins do not rise")
    need(len(said["group_sizes"]) <= 15, "more bins than there are")
    for one in said["group_sizes"]:
        need(one["low"] <= one["high"] and one["groups"] > 0, "a bin of no groups")
        need(one["low"] * one["groups"] <= one["persons"] <= one["high"] * one["groups"], "a bin of other persons")
    for line in said["detail"]:
        told = line.get("persons_by_span") or line.get("records_by_span")
        need(sorted(map(str, (one["up_to"] for one in told))) == sorted(map(str, SPANS)), "other spans than there are")
    asked = release.spec.get("workload", {}).get("selections", 0)
    answers = (said.get("selections") or {}).get("answers") or []
    need(all(whole(one["number"]) and 1 <= one["number"] <= asked for one in answers), "an answer to nothing")
    for rule in (said.get("rules") or {}).get("rules") or []:
        need(len(set(rule["given"])) == len(rule["given"]) <= 2, "a rule of more than there is")
    limit(release, said["attack"])


def limit(release: Release, attack: dict[str, Any]) -> None:
    """Where what a model learns is limited, the report tells that it learns no more of every sensitive column."""
    most = release.privacy.get("attack_limit", 1)
    need(isinstance(most, int | float) and 0 <= most <= 1, "a limit that is none")
    if most == 1:
        return
    few, sought = max(k for _, k in release.sets), attack["persons"]
    need(whole(sought) and 0 < sought <= release.persons(release.members), "persons were sought that there are not")
    if release.entity is not None:
        sought += few - 1
    words = {f"fewer than {few}": 1 / sought, f"all but fewer than {few}": (sought - few + 1) / sought}
    told = {one["column"]: (one.get("learned") or {}).get("sure") for one in attack["inference"]}
    for name in release.having("sensitive"):
        share = words.get(told[name]) if isinstance(told[name], str) else told[name]
        need(share is not None and share <= most + (0.005 if release.entity else 0.00005), "a model learns more")


# --- the picture of two columns -----------------------------------------------------------------------------------


def picture(release: Release, said: dict[str, Any] | None) -> None:
    """The rectangles are regions of the recoding in a slice, with the persons of the groups in the file."""
    if said is None or (release.entity is not None and release.source is None):
        return
    need(set(said) == {"across", "up", "held", "rectangles", "cut_short", "regions"}, "no picture")
    columns = release.recoding.columns
    names = [column.name for column in columns]
    both = [names.index(said[side]["column"]) for side in ("across", "up")]
    need(both == sorted(set(both)), "two columns that are not two")
    others = [name for place, name in enumerate(names) if place not in both]
    need([one["column"] for one in said["held"]] == others, "other columns are held")
    need(all(set(one) == {"column", "label"} for one in said["held"]), "a column is held at more than a label")
    edges = [places(columns[at], said[side]) for at, side in zip(both, ("across", "up"), strict=True)]
    boxes = rectangles(said["rectangles"], edges)
    need(said["cut_short"] is True or (said["cut_short"] is False and None not in boxes.values()), "cut short or not")
    for side, other, at in ((0, 1, 0), (1, 0, 2)):
        used = {end for box in boxes for end in box[at : at + 2]}
        need(used == set(edges[side]) or columns[both[other]].missing, "an edge that no rectangle has")
    sizes = [rounded(release, release.persons(rows)) for rows in release.groups(names, release.members).values()]
    drawn = [size for size in boxes.values() if size]
    if release.form == "representative":
        need(whole(said["regions"]) and len(drawn) <= said["regions"], "other regions than there are")
        if release.entity is None:
            need(said["regions"] <= sum(sizes) >= sum(drawn), "more persons than there are")
        return
    need(said["regions"] == len(sizes) and Counter(drawn) <= Counter(sizes), "persons of other groups")
    if not release.observed:
        slices(release, {one["column"]: one["label"] for one in said["held"]}, both, boxes)


def places(column: Column, side: dict[str, Any]) -> list[int]:
    """The cells, missing apart, before which the edges lie."""
    if column.kind == "words":
        need(set(side) == {"column", "scale", "places", "edges"} and side["scale"] == "order", "no side")
        found, words = side["places"], [*column.order, None]
        need(all(whole(one) and 0 <= one < len(words) for one in found), "places that are none")
        need(side["edges"] == [words[one] for one in found], "edges of other places")
    else:
        need(column.kind == "cuts" and set(side) == {"column", "scale", "edges"}, "no side")
        need(side["scale"] in (("number",) if column.scale == "number" else ("date", "time")), "another scale")
        low, high = column.domain or (None, None)
        ends = [None if one is None else column.text(one) for one in (low, *column.cuts, high)]
        found = []
        for number, edge in enumerate(side["edges"], start=1):
            after = range(found[-1] + 1 if found else 0, len(ends))
            fits = [at for at in after if ends[at] == edge]
            # A cut may lie at the end of the domain; the last edge is the end.
            found.append(-1 if not fits else fits[-1 if number == len(side["edges"]) else 0])
        need(-1 not in found, "an edge that is no cut")
    need(all(a < b for a, b in zip(found, found[1:], strict=False)), "edges do not rise")
    return found


def rectangles(told: list[list[Any]], edges: list[list[int]]) -> dict[Ends, int | None]:
    """The rectangles by their cells; none lies over another."""
    need(len(told) <= 240, "more rectangles than are drawn")
    found: dict[Ends, int | None] = {}
    covered: set[tuple[int, int]] = set()
    for one in told:
        need(len(one) == 5 and all(map(whole, one[:4])) and (one[4] is None or whole(one[4])), "no rectangle")
        left, right, bottom, top, persons = one
        need(0 <= left < right < len(edges[0]) and 0 <= bottom < top < len(edges[1]), "beyond the edges")
        need(persons is None or persons >= 0, "fewer persons than none")
        cells = {(x, y) for x in range(left, right) for y in range(bottom, top)}
        need(not cells & covered, "a rectangle over another")
        covered |= cells
        found[edges[0][left], edges[0][right], edges[1][bottom], edges[1][top]] = persons
    return found


def rounded(release: Release, persons: int) -> int:
    """Persons as a picture tells them."""
    k = max(k for _, k in release.sets)
    return persons if release.entity is None else max(persons // k * k, 1)


def slices(release: Release, held: dict[str, str], both: list[int], boxes: dict[Ends, int | None]) -> None:
    """Every group where the other columns are held is a rectangle with its persons, or in one that is divided."""
    columns, form = release.recoding.columns, release.form
    known: list[dict[Any, Cells]] = [{} for _ in columns]
    if release.recoding.parts is not None:
        known = [{c.written(part, form): part for part in release.recoding.part_cells(c)} for c in columns]
    else:
        for box in release.recoding.boxes():
            for column, cells, of in zip(columns, box, known, strict=True):
                of[column.written(cells, form)] = cells
    widths = [len(column.released(form)) for column in columns]
    groups: dict[Ends, int] = {}
    at = {column.name: held_cells(release, column, held[column.name]) for column in columns if column.name in held}
    for key, rows in release.groups([column.name for column in columns], release.members).items():
        begins = [sum(widths[:place]) for place in range(len(widths))]
        texts = [key[begin : begin + width] for begin, width in zip(begins, widths, strict=True)]
        need(all(text in of for text, of in zip(texts, known, strict=True)), "a group of no region")
        box = [of[text] for text, of in zip(texts, known, strict=True)]
        if all(at[c.name] <= cells for c, cells in zip(columns, box, strict=True) if c.name in at):
            ends = tuple(end for place in both for end in span(columns[place], box[place]))
            if ends[0] < ends[1] and ends[2] < ends[3]:
                groups[ends] = rounded(release, release.persons(rows))  # type: ignore[index]
    for ends, persons in groups.items():
        inside = [box for box, size in boxes.items() if size is None and within(ends, box)]
        need(boxes.get(ends) == persons or inside, "a group that is no rectangle")
    for box, size in boxes.items():
        need(not size or groups.get(box) == size, "a rectangle that is no group")
        need(size != 0 or not any(overlap(box, ends) for ends in groups), "an empty rectangle that is not")


def held_cells(release: Release, column: Column, label: str) -> Cells:
    """The cell, or the part of a grid, at which a column is held."""
    need(is_label(column, label), "a column is held at no label")
    parts = [frozenset({cell}) for cell in column.cells]
    parts = parts if release.recoding.parts is None else release.recoding.part_cells(column)
    found = next((part for part in parts if column.label(part) == label), None)
    need(found is not None, "a column is held at more than a cell")
    return found  # type: ignore[return-value]


def span(column: Column, cells: Cells) -> tuple[int, int]:
    """From which cell, missing apart, to before which."""
    return max(min(cells) - column.missing, 0), max(max(cells) - column.missing + 1, 0)


def within(inner: Ends, outer: Ends) -> bool:
    return all(outer[at] <= inner[at] and inner[at + 1] <= outer[at + 1] for at in (0, 2))


def overlap(one: Ends, two: Ends) -> bool:
    return all(one[at] < two[at + 1] and two[at] < one[at + 1] for at in (0, 2))
