# SPDX-License-Identifier: Apache-2.0
"""A recoding in which every column is divided by itself: every row finds its parts, however many regions there are, and
what was edited reads back or is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonfit.engines.tree import Grid, GridColumn, grid_column
from anonfit.errors import RecodingError
from anonfit.evaluation.compared import released_nodes
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Values
from anonfit.tables.scales import Scale
from anonfit.tables.schema import ColumnType
from anonfit.tables.taxonomy import Taxonomy
from strategies import tries


def example() -> Recoding:
    """Age in three parts (missing is its own), a word of an order in two, a town of which one value is disclosed."""
    columns: tuple[RecodedColumn, ...] = (
        OrderedCells("age", ColumnType.CONTINUOUS, Scale.NUMBER, (30, 50), True, (0, 120)),
        OrdinalCells("stage", ("low", "mid", "high"), False),
        NominalCells("town", Taxonomy.from_paths([("Kiel", "*"), ("Lund", "*"), ("Oslo", "*"), ("Rome", "*")]), False),
    )
    parts = (grid_column([0, 1, 2, 2]), grid_column([0, 1, 1]), grid_column([-1, 0, -1, -1], -1))
    return Recoding(columns, Grid(parts))


def test_every_row_is_recoded_column_by_column() -> None:
    rows = pl.DataFrame(
        {"age": [None, 3, 30, 90], "stage": ["low", "mid", "high", "low"], "town": ["Lund", "Kiel", "Rome", "Lund"]}
    )
    found = example().apply(rows)
    assert found["age"].to_list() == ["missing", "[0, 30)", "[30, 120]", "[30, 120]"]
    assert found["stage"].to_list() == ["low", "≥ mid", "≥ mid", "low"]
    assert found["town"].to_list() == ["Lund", "{Kiel, Oslo, Rome}", "{Kiel, Oslo, Rome}", "Lund"]


def test_what_is_not_known_becomes_the_rest_or_the_whole_column() -> None:
    rows = pl.DataFrame({"age": [130, 40], "stage": ["low", "low"], "town": ["Lund", "Nice"]})
    found = example().apply(rows, unseen="ancestor")
    assert found["age"].to_list() == ["*", "[30, 120]"]
    assert found["town"].to_list() == ["Lund", "{Kiel, Oslo, Rome}"]
    assert example().apply(rows, unseen="suppress").rows() == [("*",) * 3] * 2
    with pytest.raises(RecodingError):
        example().apply(rows)


def test_regions_are_all_combinations_and_nodes_those_that_were_met() -> None:
    recoding = example()
    assert recoding.regions == 3 * 2 * 2
    assert recoding.node_count == 1
    nodes = recoding.nodes([np.array([0, 1, 0]), np.array([0, 2, 0]), np.array([1, 0, 1])])
    assert nodes.tolist() == [1, 2, 1]
    assert recoding.nodes([np.array([2, 1]), np.array([0, 1]), np.array([1, 3])]).tolist() == [3, 2]
    assert recoding.parents.tolist() == [-1, 0, 0, 0]
    assert recoding.boxes.cells(0, 2) == (0, 1, 2, 3)
    assert recoding.boxes.cells(2, 2) == (0, 2, 3)
    assert recoding.boxes.cells(3, 0) == (2, 3)


def test_more_regions_than_there_are_numbers() -> None:
    """Forty columns of nine parts: their combinations do not fit in 64 bits."""
    columns = tuple(OrdinalCells(f"c{number}", tuple("abcdefghi"), False) for number in range(40))
    recoding = Recoding(columns, Grid(tuple(GridColumn(np.arange(9, dtype=np.int32)) for _ in columns)))
    rng = np.random.default_rng(1)
    cells = [rng.integers(0, 9, 500).astype(np.int32) for _ in columns]
    cells = [np.concatenate([column, column[::-1]]) for column in cells]
    nodes = recoding.nodes(cells)
    assert recoding.regions == 9**40
    assert len(set(nodes.tolist())) == 500
    assert nodes.tolist() == nodes[::-1].tolist()
    for index, column in enumerate(cells):
        assert recoding.boxes.first[nodes, index].tolist() == column.tolist()


@st.composite
def grids(draw: st.DrawFn) -> tuple[Recoding, list[list[int]]]:
    """A grid over nominal and ordinal columns, and rows in cells, some of them not known."""
    columns: list[RecodedColumn] = []
    parts = []
    for number in range(draw(st.integers(1, 3))):
        size = draw(st.integers(1, 5))
        names = tuple("abcde"[:size])
        if draw(st.booleans()):
            columns.append(NominalCells(f"c{number}", Taxonomy.from_paths([(name, "*") for name in names]), False))
            parts.append(grid_column(draw(st.lists(st.integers(-1, 3), min_size=size, max_size=size)), -1))
        else:
            columns.append(OrdinalCells(f"c{number}", names, False))
            parts.append(grid_column(np.cumsum(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))))
    rows = draw(st.integers(1, 12))
    cells = [draw(st.lists(st.integers(-1, column.size - 1), min_size=rows, max_size=rows)) for column in columns]
    return Recoding(tuple(columns), Grid(tuple(parts))), cells


@given(grids())
@tries(60)
def test_boxes_are_the_parts_of_each_row(drawn: tuple[Recoding, list[list[int]]]) -> None:
    recoding, cells = drawn
    assert isinstance(recoding.shape, Grid)
    half = len(cells[0]) // 2
    nodes = np.concatenate(
        [
            recoding.nodes([np.array(column[part], np.int32) for column in cells])
            for part in (slice(half), slice(half, None))
        ]
    )
    for row, node in enumerate(nodes.tolist()):
        for index, column in enumerate(recoding.shape.columns):
            cell = cells[index][row]
            wanted = (
                np.flatnonzero(column.part_of == (column.part_of[cell] if cell >= 0 else column.rest))
                if cell >= 0 or column.rest >= 0
                else np.arange(len(column.part_of))
            )
            assert recoding.boxes.cells(node, index) == tuple(wanted.tolist())


@given(grids())
@tries(40)
def test_the_file_reads_back_to_the_same_recoding(drawn: tuple[Recoding, list[list[int]]]) -> None:
    recoding, _ = drawn
    text = recoding.to_json()
    again = Recoding.from_json(text)
    assert again.to_json() == text
    assert isinstance(recoding.shape, Grid)
    assert isinstance(again.shape, Grid)
    for one, other in zip(recoding.shape.columns, again.shape.columns, strict=True):
        assert one.part_of.tolist() == other.part_of.tolist()
        assert one.rest == other.rest


@given(grids())
@tries(40)
def test_released_rows_are_found_by_what_they_say(drawn: tuple[Recoding, list[list[int]]]) -> None:
    recoding, cells = drawn
    known = [np.maximum(column, 0).astype(np.int32) for column in cells]
    nodes = recoding.nodes(known)
    names = ["abcde"[cell] for cell in range(5)]
    rows = pl.DataFrame(
        {column.name: [names[cell] for cell in found] for column, found in zip(recoding.columns, known, strict=True)}
    )
    found = released_nodes(recoding, recoding.apply(rows), Values.LABELS)
    assert found is not None
    assert found.tolist() == nodes.tolist()


def edited(change: Callable[[dict[str, Any]], Any]) -> Recoding:
    tables = json.loads(example().to_json())
    change(tables)
    return Recoding.from_json(json.dumps(tables))


def test_who_edits_the_file_joins_parts_and_tells_them_apart() -> None:
    joined = edited(lambda tables: tables["parts"].update(age=[0, 7, 7, 7]))
    rows = pl.DataFrame({"age": [3, 90], "stage": ["low", "mid"], "town": ["Rome", "Lund"]})
    assert joined.apply(rows)["age"].to_list() == ["[0, 120]"] * 2
    apart = edited(lambda tables: tables["parts"].update(town=[0, 1, -1, 3]))
    assert apart.apply(rows)["town"].to_list() == ["Rome", "Lund"]

    def cut(tables: dict[str, Any]) -> None:
        tables["columns"][0]["cuts"] = [30, 50, 65]
        tables["parts"]["age"] = [0, 1, 2, 2, 3]

    assert edited(cut).apply(rows)["age"].to_list() == ["[0, 30)", "[65, 120]"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda tables: tables["parts"].update(age=[0, 1, 2]), "in place of 4"),
        (lambda tables: tables["parts"].update(age=[0, 1, 0, 2]), "no run of cells"),
        (lambda tables: tables["parts"].update(age=[0, 1, -1, -1]), "only those of nominal"),
        (lambda tables: tables["parts"].update(town=[0, 1, -2, 3]), "from -1 to"),
        (lambda tables: tables["parts"].update(town=[0, 1, True, 3]), "whole numbers"),
        (lambda tables: tables["parts"].pop("town"), "has no 'town'"),
        (lambda tables: tables.pop("parts"), "damaged"),
        (lambda tables: tables.update(version=3), "version 3"),
        (lambda tables: tables.update(version=1), "damaged"),
    ],
)
def test_a_damaged_file_is_refused(change: Callable[[dict[str, Any]], Any], told: str) -> None:
    with pytest.raises(RecodingError, match=told):
        edited(change)
