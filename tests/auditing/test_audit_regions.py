# SPDX-License-Identifier: Apache-2.0
"""The tree of recoding.json is read as plain code reads it, and every group is held against its regions."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from audit_folders import COLUMNS, NODES, Folder

from anonfit.auditing.api import audit, audit_release
from anonfit.auditing.labels import cell_reader, read_label
from anonfit.auditing.meanings import LabelMeaning, read_meaning
from anonfit.auditing.recoding import RegionTree, read_region_tree
from anonfit.auditing.released import count_strangers
from anonfit.auditing.result import Audit
from anonfit.errors import DataError, RecodingError

Cells = list[set[int]]
MEANINGS = {column["name"]: read_meaning(column["name"], column) for column in COLUMNS}


def missed(found: Audit) -> set[str]:
    return {finding.name for finding in found.findings if finding.met is False}


def held(folder: Folder, **words: Any) -> Audit:
    columns = {column["name"]: column for column in folder.recoding["columns"]}
    names = ["age", "country", "rank"]
    return audit(
        folder.data, quasi_identifiers=names, columns=columns, nodes=folder.recoding["nodes"], regions="domain", **words
    )


# --- the tree ---------------------------------------------------------------------------------------------------------


def names_of(number: int) -> list[str]:
    return [f"n{place}" for place in range(number)]


def flat(name: str, number: int, *, missing: bool) -> dict[str, Any]:
    tree = {"name": "*", "children": [{"name": leaf} for leaf in names_of(number)]}
    return {"name": name, "type": "nominal", "missing": missing, "taxonomy": tree, "other": None}


def random_tree(rng: random.Random, sizes: list[int]) -> tuple[dict[str, Any], list[Cells]]:
    """A tree of random splits by runs and sets, and its regions."""
    lists: dict[str, list[Any]] = {"column": [], "children": [], "start": [], "set": [], "sets": []}
    regions: list[Cells] = []
    level: list[tuple[Cells, int]] = [([set(range(size)) for size in sizes], 0)]
    while level:
        below: list[tuple[Cells, int]] = []
        for cells, start in level:
            lists["start"].append(start)
            choices = [column for column, part in enumerate(cells) if len(part) > 1]
            if not choices or rng.random() < 0.3:
                regions.append(cells)
                parts, column, number = [], -1, -1
            else:
                column = rng.choice(choices)
                parts, number = random_parts(rng, sorted(cells[column]), lists["sets"], sizes[column])
            lists["column"].append(column)
            lists["children"].append(len(parts))
            lists["set"].append(number)
            below += [([*cells[:column], part, *cells[column + 1 :]], min(part)) for part in parts]
        level = below
    if not lists["sets"]:
        lists["set"] = []
    return lists, regions


def random_parts(rng: random.Random, cells: list[int], sets: list[list[int]], size: int) -> tuple[list[set[int]], int]:
    """Parts of the cells of a column, and the set they were made by (-1: runs)."""
    if rng.random() < 0.5:
        cuts = sorted(rng.sample(cells[1:], rng.randint(1, min(3, len(cells) - 1))))
        ends = [cells[0], *cuts, size]
        return [{cell for cell in cells if low <= cell < high} for low, high in zip(ends, ends[1:], strict=False)], -1
    chosen = set(rng.sample(cells, rng.randint(1, len(cells) - 1)))
    others = set(range(size)) - set(cells)
    sets.append(sorted(chosen | set(rng.sample(sorted(others), rng.randint(0, len(others))))))
    return [chosen, set(cells) - chosen], len(sets) - 1


def cells_of(tree: RegionTree, sizes: list[int]) -> list[Cells]:
    found = []
    for region in range(len(tree.first)):
        parts: Cells = []
        for column, size in enumerate(sizes):
            part = set(range(tree.first[region, column], tree.last[region, column] + 1))
            if column in tree.sets:
                part = set(np.flatnonzero(np.unpackbits(tree.sets[column][region])[:size]).tolist())
            parts.append(part)
        found.append(parts)
    return found


def label(cells: set[int], size: int, *, missing: bool) -> str:
    """The label of some cells of a flat column, by the grammar."""
    if len(cells) == size:
        return "*"
    names = [f"n{cell - missing}" for cell in sorted(cells) if cell >= missing]
    if not names:
        return "missing"
    text = "not missing" if len(names) == size - missing else names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"
    return f"missing or {text}" if missing and 0 in cells else text


def cells_of_labels(texts: list[str], meaning: LabelMeaning) -> list[list[tuple[int, int]] | None]:
    values = [read_label(text, meaning) for text in texts]
    return [None if label is None else cell_reader(meaning)(label) for label in values]


@pytest.mark.parametrize("seed", range(60))
def test_a_random_tree_has_the_regions_that_plain_code_finds(seed: int) -> None:
    rng = random.Random(seed)
    numbers = [rng.randint(1, 12) for _ in range(rng.randint(1, 4))]
    gaps = [rng.random() < 0.5 for _ in numbers]
    sizes = [number + gap for number, gap in zip(numbers, gaps, strict=True)]
    nodes, regions = random_tree(rng, sizes)
    entries = [flat(f"c{i}", number, missing=gap) for i, (number, gap) in enumerate(zip(numbers, gaps, strict=True))]
    meanings = {entry["name"]: read_meaning(entry["name"], entry) for entry in entries}
    tree = read_region_tree(nodes, meanings)
    assert tree.fits
    assert cells_of(tree, sizes) == regions
    for spoilt in (False, True):
        groups = [list(region) for region in regions]
        if spoilt:
            region, place = rng.randrange(len(groups)), rng.randrange(len(sizes))
            part = {cell for cell in range(sizes[place]) if rng.random() < 0.5} or {0}
            groups[region][place] = part
        strange = sum(group not in regions for group in groups)
        texts = [
            [label(group[place], size, missing=gap) for group in groups]
            for place, (size, gap) in enumerate(zip(sizes, gaps, strict=True))
        ]
        labels = {
            name: (cells_of_labels(column, meanings[name]), np.arange(len(groups)))
            for name, column in zip(meanings, texts, strict=True)
        }
        assert count_strangers(labels, tree, groups=len(groups)) == strange


def test_arrays_are_read_as_lists_are() -> None:
    arrays = {name: np.array(entries, np.int32) for name, entries in NODES.items() if name != "sets"} | {"sets": []}
    one, other = read_region_tree(NODES, MEANINGS), read_region_tree(arrays, MEANINGS)
    assert (one.first == other.first).all()
    assert (one.last == other.last).all()


def changed(name: str, change: Callable[[list[Any]], Any]) -> Any:
    nodes = json.loads(json.dumps(NODES))
    found = change(nodes[name])
    return nodes if found is None else nodes | {name: found}


def put(place: int, value: Any) -> Callable[[list[Any]], None]:
    return lambda entries: entries.__setitem__(place, value)


DAMAGED = {
    "nothing": None,
    "a list": [],
    "no lists": {},
    "a list too few": {name: entries for name, entries in NODES.items() if name != "set"},
    "a list too many": NODES | {"counts": [5]},
    "no nodes": {name: [] for name in NODES},
    "a text": changed("start", lambda entries: "00230302"),
    "a number": changed("start", lambda entries: 7),
    "a number as a text": changed("start", put(2, "2")),
    "half a number": changed("start", put(2, 2.5)),
    "a truth value": changed("column", put(0, False)),
    "null": changed("children", put(0, None)),
    "a number too long": changed("start", put(2, 2**70)),
    "lists of two lengths": changed("start", lambda entries: entries.pop()),
    "a node too few": changed("children", put(0, 4)),
    "a node too many": changed("children", put(0, 2)),
    "a negative number of children": changed("children", put(1, -2)),
    "children of a region": changed("column", put(1, -1)),
    "a split without children": changed("column", put(2, 1)),
    "a column that there is not": changed("column", put(0, 3)),
    "a column below none": changed("column", put(2, -2)),
    "children before their parent": {
        "column": [-1, 0, 0], "children": [0, 1, 1], "start": [0, 0, 0], "set": [], "sets": [],
    },
    "parts in another order": changed("start", put(2, 3)),
    "parts turned round": changed("start", lambda entries: [0, 0, 3, 2, 0, 3, 0, 2]),
    "a part without cells": changed("start", put(5, 0)),
    "a part before its parent": changed("start", put(5, -1)),
    "a gap before the first part": changed("start", put(1, 1)),
    "a set that there is not": NODES | {"set": [-1, -1, -1, 0, -1, -1, -1, -1]},
    "a set below none": NODES | {"set": [-2, -1, -1, -1, -1, -1, -1, -1]},
    "a set that is no list": NODES | {"set": 7},
    "sets that are no list": NODES | {"sets": 7},
    "a set of texts": NODES | {"sets": [["0"]]},
    "sets that are no lists": NODES | {"sets": [3]},
    "an empty set": NODES | {"set": [-1, -1, -1, 0, -1, -1, -1, -1], "sets": [[]]},
    "a negative cell": NODES | {"set": [-1, -1, -1, 0, -1, -1, -1, -1], "sets": [[-1]]},
    "a set of everything": NODES | {"set": [-1, -1, -1, 0, -1, -1, -1, -1], "sets": [[0, 1, 2]]},
    "a set for three children": NODES | {"set": [0, -1, -1, -1, -1, -1, -1, -1], "sets": [[0]]},
    "a set of a region": NODES | {"set": [-1, -1, 0, -1, -1, -1, -1, -1], "sets": [[0]]},
}  # fmt: skip


@pytest.mark.parametrize("nodes", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_tree_is_refused(nodes: Any) -> None:
    with pytest.raises(RecodingError, match="tree of regions"):
        read_region_tree(nodes, MEANINGS)


def test_a_deep_tree_is_read_to_its_end() -> None:
    depth = 3000
    meaning = read_meaning("age", {"type": "continuous", "missing": False, "cuts": list(range(depth))})
    nodes = {
        "column": [0, *[-1, 0] * (depth - 1), -1, -1],
        "children": [2, *[0, 2] * (depth - 1), 0, 0],
        "start": [0, *[start for cell in range(depth) for start in (cell, cell + 1)]],
        "set": [],
        "sets": [],
    }
    tree = read_region_tree(nodes, {"age": meaning})
    assert tree.first[:, 0].tolist() == tree.last[:, 0].tolist() == list(range(depth + 1))


# --- labels in cells --------------------------------------------------------------------------------------------------

DECLARED = {"type": "continuous", "missing": True, "domain": [0, 120], "cuts": [30, 60]}
OPEN = {"type": "continuous", "missing": False, "domain": None, "cuts": [30, 60]}
AGES = {
    "name": "*",
    "children": [{"name": "< 30"}, {"name": "old", "children": [{"name": "[30, 60)"}, {"name": "≥ 60"}]}],
}
BY_TREE = {"type": "continuous", "missing": True, "taxonomy": AGES}
DAYS = {
    "type": "date",
    "missing": False,
    "taxonomy": {"name": "*", "children": [{"name": "2024-01"}, {"name": "2024-02"}]},
}


@pytest.mark.parametrize(
    ("entry", "text", "cells"),
    [
        (DECLARED, "*", [(0, 3)]),
        (DECLARED, "missing", [(0, 0)]),
        (DECLARED, "not missing", [(1, 3)]),
        (DECLARED, "[0, 120]", [(1, 3)]),
        (DECLARED, "missing or [0, 30)", [(0, 1)]),
        (DECLARED, "missing or [30, 60)", [(0, 0), (2, 2)]),
        (DECLARED, "[30, 120]", [(2, 3)]),
        (DECLARED, "[0, 120)", None),
        (DECLARED, "[30, 60]", None),
        (DECLARED, "[31, 60)", None),
        (DECLARED, "45", None),
        (OPEN, "*", [(0, 2)]),
        (OPEN, "not missing", [(0, 2)]),
        (OPEN, "< 60", [(0, 1)]),
        (OPEN, "≥ 60.0", [(2, 2)]),
        (OPEN, "missing", None),
        (OPEN, "missing or < 30", None),
        (BY_TREE, "old", [(2, 3)]),
        (BY_TREE, "missing or < 30", [(0, 1)]),
        (BY_TREE, '{"< 30", "≥ 60"}', [(1, 1), (3, 3)]),
        (DAYS, "2024-02", [(1, 1)]),
        (COLUMNS[1], "Asia", [(3, 4)]),
        (COLUMNS[1], "{FR, Asia}", [(0, 0), (3, 4)]),
        (COLUMNS[2], "mid", [(1, 1)]),
        (COLUMNS[2], "< high", [(0, 1)]),
        (COLUMNS[2], "[mid, high]", [(1, 2)]),
    ],
)
def test_a_label_in_the_cells_of_a_recoding(entry: dict[str, Any], text: str, cells: list[Any] | None) -> None:
    meaning = read_meaning("x", entry)
    found = read_label(text, meaning)
    assert found is not None
    assert cell_reader(meaning)(found) == cells


# --- groups -----------------------------------------------------------------------------------------------------------


def test_groups_that_are_regions_are_accepted() -> None:
    folder = Folder(Path("unused"))
    found = held(folder)
    assert missed(found) == set()
    assert found.labels is not None
    assert found.labels.no_region == 0
    assert missed(held(folder, source=folder.raw, withheld=0)) == set()


MOVED = {
    "narrowed": ("rank", "< high", "low"),
    "missing taken out": ("age", "missing or [0, 30)", "[0, 30)"),
    "a leaf for its parent": ("country", "Asia", "JP"),
    "of another region": ("rank", "*", "high"),
}


@pytest.mark.parametrize(("column", "old", "new"), MOVED.values(), ids=MOVED)
def test_a_group_that_is_no_region_is_found(column: str, old: str, new: str) -> None:
    folder = Folder(Path("unused"))
    folder.relabel(column, old, new)
    assert missed(held(folder)) >= {"regions"}


@pytest.mark.parametrize(("start", "strange"), [((5, 2), 2), ((7, 1), 2)])
def test_a_moved_split_is_found(tmp_path: Path, start: tuple[int, int], strange: int) -> None:
    folder = Folder(tmp_path / "release")
    folder.recoding["nodes"]["start"][start[0]] = start[1]
    found = held(folder)
    assert found.labels is not None
    assert found.labels.no_region == strange
    for source in (None, folder.raw):
        # The picture in the report is of other regions, too.
        assert missed(audit_release(folder.write(), source=source)) - {"report figures"} == {"regions"}


def test_a_cut_that_parts_no_regions_is_refused(tmp_path: Path) -> None:
    """It is nobody's region, so it tells something else."""
    folder = Folder(tmp_path / "release")
    folder.recoding["columns"][0]["cuts"] = [30, 37, 60]
    folder.recoding["nodes"]["start"][3] = 4
    with pytest.raises(RecodingError, match="part no regions"):
        audit_release(folder.write(), source=folder.raw)


@pytest.mark.parametrize("start", [(3, 9), (5, 7), (7, 3)])
def test_a_tree_that_speaks_of_cells_that_the_columns_have_not(start: tuple[int, int]) -> None:
    folder = Folder(Path("unused"))
    folder.recoding["nodes"]["start"][start[0]] = start[1]
    assert missed(held(folder)) == {"regions"}
    folder.data = folder.data.clear()
    assert missed(held(folder)) == {"regions", "rows"}


def test_a_tree_needs_the_meaning_of_every_quasi_identifier() -> None:
    folder = Folder(Path("unused"))
    for columns in (None, {"age": folder.recoding["columns"][0]}):
        with pytest.raises(DataError, match="every quasi-identifier"):
            audit(folder.data, quasi_identifiers=["age", "country", "rank"], columns=columns, nodes=NODES)


def test_quasi_identifiers_may_stand_in_another_order_than_in_the_recoding() -> None:
    folder = Folder(Path("unused"))
    columns = {column["name"]: column for column in folder.recoding["columns"]}
    for names in product(["rank"], ["age", "country"], ["country", "age"]):
        if len(set(names)) == 3:
            assert missed(audit(folder.data, quasi_identifiers=names, columns=columns, nodes=NODES)) == set()


def test_many_regions_are_held_quickly() -> None:
    """A generous limit: it takes a fraction of it, and a loop over regions would take many times more."""
    import time

    size = 400
    edges = list(range(1, size))
    meanings = {name: read_meaning(name, {"type": "continuous", "missing": False, "cuts": edges}) for name in "xy"}
    nodes = {
        "column": [0, *[1] * size, *[-1] * size**2],
        "children": [size, *[size] * size, *[0] * size**2],
        "start": [0, *range(size), *list(range(size)) * size],
        "set": [],
        "sets": [],
    }
    texts = ["< 1", *(f"[{i}, {i + 1})" for i in range(1, size - 1)), f"≥ {size - 1}"]
    x, y = (cells_of_labels(texts, meaning) for meaning in meanings.values())
    labels = {"x": (x, np.arange(size**2) // size), "y": (y, np.arange(size**2) % size)}
    begin = time.perf_counter()
    tree = read_region_tree(nodes, meanings)
    assert count_strangers(labels, tree, groups=size**2) == 0
    assert time.perf_counter() - begin < 3


def test_a_frame_of_no_rows_has_no_strange_groups() -> None:
    folder = Folder(Path("unused"))
    folder.data = folder.data.clear()
    assert missed(held(folder)) == {"rows"}
    assert folder.data.schema["age"] == pl.String
