# SPDX-License-Identifier: Apache-2.0
"""The rectangles of two columns: by hand, and against the region of every point."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from reported import people, released

import anonfit as af
from anonfit.metrics import detail as partition
from anonfit.recoding.recoding import Recoding
from anonfit.report.pictures import tiling_figure


def drawn(recoding: Recoding, frame: pl.DataFrame) -> dict[str, Any] | None:
    nodes, persons = np.unique(recoding.nodes(recoding.cells(frame)), return_counts=True)
    shares = [np.full(column.size, 1 / column.size) for column in recoding.columns]
    return partition.partition_content(recoding, nodes, persons, shares)


def test_four_corners() -> None:
    frame = pl.DataFrame({"x": [1, 1, 1, 1, 9, 9, 9, 9], "y": [1, 1, 9, 9, 1, 1, 9, 9]})
    found = drawn(af.anonymize(frame, quasi_identifiers=["x", "y"], k=2).recoding, frame)
    assert found is not None
    assert found["across"] == {"column": "x", "scale": "number", "edges": [None, "5", None]}
    assert found["up"] == {"column": "y", "scale": "number", "edges": [None, "5", None]}
    assert found["rectangles"] == [[0, 1, 0, 1, 2], [0, 1, 1, 2, 2], [1, 2, 0, 1, 2], [1, 2, 1, 2, 2]]
    assert (found["held"], found["cut_short"], found["regions"]) == ([], False, 4)


def test_declared_ends_and_words_are_edges() -> None:
    frame = pl.DataFrame({"x": [1, 1, 9, 9], "g": ["a", "c", "a", "c"]})
    recoding = af.anonymize(
        frame,
        quasi_identifiers=["x", "g"],
        k=1,
        domains={"x": [0, 10]},
        types={"g": "ordinal"},
        orders={"g": ["a", "b", "c"]},
    ).recoding
    found = drawn(recoding, frame)
    assert found is not None
    assert found["across"]["edges"] == ["0", "5", "10"]
    assert found["up"]["edges"] in (["a", "b", None], ["a", "c", None])
    assert found["up"]["scale"] == "order"


def test_one_ordered_column_gives_no_rectangles() -> None:
    frame = pl.DataFrame({"x": [1, 1, 9, 9], "sex": ["f", "m", "f", "m"]})
    assert drawn(af.anonymize(frame, quasi_identifiers=["x", "sex"], k=1).recoding, frame) is None


def test_missing_values_have_no_place() -> None:
    frame = pl.DataFrame({"x": [None, None, 1, 1, 9, 9], "y": [1, 9, 1, 9, 1, 9]})
    found = drawn(af.anonymize(frame, quasi_identifiers=["x", "y"], k=1).recoding, frame)
    assert found is not None
    assert all(left < right and bottom < top for left, right, bottom, top, _ in found["rectangles"])


def place(recoding: Recoding, cells: dict[int, int]) -> int:
    """The node that a point ends in, by its cells."""
    node, tree = 0, recoding.tree
    while tree.column[node] >= 0:
        first = int(tree.first_child[node])
        node = next(
            child
            for child in range(first, first + int(tree.children[node]))
            if cells[int(tree.column[node])] in recoding.boxes.cells(child, int(tree.column[node]))
        )
    return node


@pytest.mark.parametrize("kind", ["blind", "classes", "numbers", "everything"])
def test_every_point_of_the_slice_lies_in_the_rectangle_of_its_region(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition, "MOST", 10_000)
    release = released(kind)
    recoding, made = release.recoding, release._draft
    assert made.nodes is not None
    sizes = np.bincount(made.nodes, minlength=len(recoding.tree.column))
    found = drawn(recoding, made.source)
    assert found is not None
    names = list(recoding.quasi_identifiers)
    across, up = (names.index(found[axis]["column"]) for axis in ("across", "up"))
    held = {names.index(one["column"]): one["label"] for one in found["held"]}
    at = {
        index: next(
            cell for cell in range(recoding.columns[index].size) if recoding.columns[index].label([cell]) == label
        )
        for index, label in held.items()
    }
    edges = [edges_of(recoding, index, found[axis]) for index, axis in ((across, "across"), (up, "up"))]
    for x in range(recoding.columns[across].size):
        for y in range(recoding.columns[up].size):
            node = place(recoding, {**at, across: x, up: y})
            inside = [
                persons
                for left, right, bottom, top, persons in found["rectangles"]
                if edges[0][left] <= x < edges[0][right] and edges[1][bottom] <= y < edges[1][top]
            ]
            assert inside == [sizes[node]]


def edges_of(recoding: Recoding, index: int, axis: dict[str, Any]) -> list[int]:
    """The first cell at or above each edge."""
    column: Any = recoding.columns[index]
    assert not column.has_missing
    if axis["scale"] == "order":
        return list(axis["places"])
    texts = [str(cut) for cut in column.cuts]
    return [
        0 if edge is None and place == 0 else column.size if edge is None else 1 + texts.index(edge)
        for place, edge in enumerate(axis["edges"])
    ]


def test_a_large_tiling_is_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = people(3000)
    recoding = af.anonymize(frame.select("age", "height"), quasi_identifiers=["age", "height"], k=3).recoding
    monkeypatch.setattr(partition, "MOST", 50)
    found = drawn(recoding, frame)
    assert found is not None
    assert found["cut_short"]
    assert 40 <= len(found["rectangles"]) <= 51
    assert any(persons is None for *_, persons in found["rectangles"])
    picture = tiling_figure(found, 3)
    assert picture.count("<rect") == len(found["rectangles"]) + 5  # and the key
    assert "drawn as one" in picture


@pytest.mark.parametrize(
    ("scale", "edges"),
    [
        ("number", [None, "1", "2", "3", "1000000", None]),
        ("date", [None, "2020-01-01", "2020-06-01", None]),
        ("time", ["2020-01-01T00:00:00", "2020-01-01T12:30:00", "2020-01-02T00:00:00"]),
        ("number", [None, "5", None]),
        ("number", [None, None]),
    ],
)
def test_edges_are_drawn_in_their_order(scale: str, edges: list[str | None]) -> None:
    from anonfit.report.pictures import _places

    places, _ = _places({"column": "x", "scale": scale, "edges": edges})
    assert places[0] == 0
    assert places[-1] == 1
    assert all(low < high for low, high in zip(places, places[1:], strict=False))


def test_the_picture_of_a_domain_whose_end_is_a_cut_is_accepted(tmp_path: Path) -> None:
    """With `cut_points = "value"` the values that are the end of the domain stand behind a cut that is the end, too."""
    frame = pl.DataFrame({"size": [1, 2, 3] * 40, "age": [20, 30, 40, 50] * 30})
    release = af.anonymize(
        frame, quasi_identifiers=["size", "age"], k=5, domains={"size": [1, 3]}, cut_points="value", consent=True
    )
    folder = release.save(tmp_path / "release")
    edges = [release.report["partition"][side]["edges"] for side in ("across", "up")]
    assert edges[0] == ["1", "2", "3", "3"]
    for source in (None, frame):
        assert af.audit_release(folder, source=source).passed
