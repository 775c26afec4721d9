# SPDX-License-Identifier: Apache-2.0
"""recoding.json reads back to the same recoding; what was damaged or edited is refused, never half understood."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cell_trees import points, recodings
from hypothesis import given
from hypothesis import strategies as st

from anonfit.engines.tree import LEAF, Tree
from anonfit.errors import RecodingError
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells
from anonfit.recoding.recoding import Recoding
from anonfit.tables.scales import Scale
from anonfit.tables.schema import ColumnType
from anonfit.tables.taxonomy import Taxonomy
from strategies import route, tries

Edit = Callable[[dict[str, Any]], Any]


def example() -> Recoding:
    """Age (missing, < 30, 30 to 50, 50 and more), a word of an order, a country; two levels of splits, one of them by a set."""
    columns = (
        OrderedCells("age", ColumnType.CONTINUOUS, Scale.NUMBER, (30, 50), True, (0, 120)),
        OrdinalCells("stage", ("low", "mid", "high"), False),
        NominalCells(
            "country",
            Taxonomy.from_paths([("FR", "EU", "*"), ("DE", "EU", "*"), ("US", "*"), ("other", "*")]),
            False,
            "other",
        ),
        OrderedCells("when", ColumnType.DATE, Scale.DATE, ("2024-03-01",), False),
    )
    tree = Tree(
        column=np.array([0, 2, 3, -1, -1, -1, -1], np.int32),
        children=np.array([2, 2, 2, 0, 0, 0, 0], np.int32),
        start=np.array([0, 0, 2, 0, 1, 0, 1], np.int32),
        before=np.full(7, -1, np.int32),
        set_of=np.array([-1, 0, -1, -1, -1, -1, -1], np.int32),
        sets=(np.array([0, 2], np.int32),),
    )
    return Recoding(columns, tree)


def edited(change: Edit) -> str:
    tables = json.loads(example().to_json())
    change(tables)
    return json.dumps(tables)


def put(*path: Any, to: Any) -> Edit:
    """The edit that puts a value at a place."""

    def change(tables: dict[str, Any]) -> None:
        place: Any = tables
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = to

    return change


def drop(*path: Any) -> Edit:
    def change(tables: dict[str, Any]) -> None:
        place: Any = tables
        for key in path[:-1]:
            place = place[key]
        del place[path[-1]]

    return change


# --- round trips ------------------------------------------------------------------------------------------------


@given(recodings())
@tries(200)
def test_a_recoding_reads_back_to_the_same_text(recoding: Recoding) -> None:
    text = recoding.to_json()
    back = Recoding.from_json(text)
    assert back.to_json() == text
    assert back.columns == recoding.columns
    for name in ("column", "children", "start", "set_of"):
        assert np.array_equal(getattr(back.tree, name), getattr(recoding.tree, name))
    assert [cells.tolist() for cells in back.tree.sets] == [cells.tolist() for cells in recoding.tree.sets]


def test_the_text_has_a_format_a_version_and_nothing_but_columns_and_nodes() -> None:
    tables = json.loads(example().to_json())
    assert list(tables) == ["format", "version", "columns", "nodes"]
    assert (tables["format"], tables["version"]) == ("anonfit recoding", 1)
    assert list(tables["nodes"]) == ["column", "children", "start", "set", "sets"]


def test_one_line_a_column_and_a_list() -> None:
    assert len(example().to_json().splitlines()) == 4 + 4 + 2 + 5 + 2


def test_numbers_keep_their_kind() -> None:
    column = OrderedCells("x", ColumnType.CONTINUOUS, Scale.NUMBER, (-5, 0.1, 1e-05 + 1, 2**60, 1e300), False)
    back = Recoding.from_json(Recoding((column,), Tree.single()).to_json()).columns[0]
    assert [repr(cut) for cut in back.cuts] == [repr(cut) for cut in column.cuts]  # type: ignore[attr-defined]


# --- damage -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "5", '"anonfit recoding"', "{}", '{"format": "anonfit release", "version": 1}']
)
def test_what_is_no_recoding_is_refused(text: str) -> None:
    with pytest.raises(RecodingError):
        Recoding.from_json(text)


@given(st.data())
@tries(60)
def test_a_text_that_was_cut_short_is_refused(data: st.DataObject) -> None:
    text = example().to_json()
    with pytest.raises(RecodingError):
        Recoding.from_json(text[: data.draw(st.integers(0, len(text) - 3))])


@pytest.mark.parametrize("version", [0, 3, "1", None, 1.5])
def test_other_versions_are_refused_by_number(version: Any) -> None:
    with pytest.raises(RecodingError, match="version"):
        Recoding.from_json(edited(put("version", to=version)))


NODES = ("nodes",)
EDITS: dict[str, Edit] = {
    "no columns": drop("columns"),
    "no nodes": drop("nodes"),
    "no starts": drop("nodes", "start"),
    "no sets": drop("nodes", "sets"),
    "columns are no list": put("columns", to={"age": 1}),
    "a column is no table": put("columns", 0, to="age"),
    "a column has no name": drop("columns", 0, "name"),
    "a column has no type": drop("columns", 0, "type"),
    "a type is not known": put("columns", 0, "type", to="number"),
    "a scale is not known": put("columns", 0, "scale", to="length"),
    "cuts are not in order": put("columns", 0, "cuts", to=[50, 30]),
    "a cut stands twice": put("columns", 0, "cuts", to=[30, 30]),
    "a cut is a text": put("columns", 0, "cuts", to=["30", "50"]),
    "a cut is true": put("columns", 0, "cuts", to=[True, 50]),
    "a cut is infinite": put("columns", 0, "cuts", to=[30, float("inf")]),
    "a cut is no number": put("columns", 0, "cuts", to=[30, float("nan")]),
    "a cut is no date": put("columns", 3, "cuts", to=["2024-02-30"]),
    "a domain has one end": put("columns", 0, "domain", to=[0]),
    "a domain has three ends": put("columns", 0, "domain", to=[0, 1, 2]),
    "cuts are fewer than the tree needs": put("columns", 3, "cuts", to=[]),
    "the order is gone": drop("columns", 1, "order"),
    "the taxonomy is gone": drop("columns", 2, "taxonomy"),
    "the taxonomy has a name twice": put(
        "columns", 2, "taxonomy", to={"name": "*", "children": [{"name": "a"}, {"name": "a"}]}
    ),
    "the taxonomy has fewer leaves than the tree needs": put(
        "columns", 2, "taxonomy", to={"name": "*", "children": [{"name": "other"}]}
    ),
    "the unnamed leaf is no leaf": put("columns", 2, "other", to="EU"),
    "a list is too short": put("nodes", "start", to=[0, 0, 2]),
    "a list is too long": put("nodes", "children", to=[2, 2, 2, 0, 0, 0, 0, 0]),
    "a node splits a column that is not there": put("nodes", "column", 1, to=9),
    "a node splits a column below none": put("nodes", "column", 1, to=-2),
    "a leaf has children": put("nodes", "children", 3, to=2),
    "a split has no children": put("nodes", "children", 2, to=0),
    "children are negative": put("nodes", "children", 2, to=-2),
    "there are too many children": put("nodes", "children", 2, to=3),
    "starts go down": put("nodes", "start", 2, to=-1),
    "a start is beyond the column": put("nodes", "start", 2, to=4),
    "a start is huge": put("nodes", "start", 2, to=2**40),
    "a start is a text": put("nodes", "start", 2, to="two"),
    "a set is not there": put("nodes", "set", 1, to=1),
    "a set holds a cell that is not there": put("nodes", "sets", 0, to=[0, 9]),
    "a set holds a negative cell": put("nodes", "sets", 0, to=[-1, 0]),
    "a set is empty": put("nodes", "sets", 0, to=[]),
    "a set is everything": put("nodes", "sets", 0, to=[0, 1, 2, 3]),
    "a set is a number": put("nodes", "sets", 0, to=2),
    "a set is a table": put("nodes", "sets", 0, to={"0": 0}),
    "a set holds a fraction": put("nodes", "sets", 0, to=[0, 2.0]),
    "a set holds a truth": put("nodes", "sets", 0, to=[0, True]),
    "a set holds a huge cell": put("nodes", "sets", 0, to=[0, 2**40]),
    "a set divides words of an order": put("nodes", "column", 1, to=1),
    "a set divides numbers": put("nodes", "column", 1, to=0),
    "there are no nodes": put("nodes", to={"column": [], "children": [], "start": [], "set": [], "sets": []}),
    "nodes go round": put("nodes", to={"column": [0, 0], "children": [0, 1], "start": [0, 0], "set": [], "sets": []}),
    "a name is there twice": put("columns", 1, "name", to="age"),
    "an order has a word twice": put("columns", 1, "order", to=["low", "low", "high"]),
    "an order is empty": put("columns", 1, "order", to=[]),
    "a cut is outside the domain": put("columns", 0, "cuts", to=[30, 500]),
    "a domain is upside down": put("columns", 0, "domain", to=[120, 0]),
    "the type and the scale differ": put("columns", 0, "type", to="date"),
    "missing is a word": put("columns", 0, "missing", to="no"),
    "a start is a fraction": put("nodes", "start", 2, to=2.5),
    "a start is a quoted number": put("nodes", "start", 2, to="2"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_damaged_recoding_is_refused(edit: Edit) -> None:
    with pytest.raises(RecodingError, match="damaged"):
        Recoding.from_json(edited(edit))


@pytest.mark.parametrize("cells", [[1, 3], [0, 2], [1, 0, 2], [3]], ids=str)
def test_a_set_must_divide_what_its_node_holds(cells: list[int]) -> None:
    """The first split leaves a and c to node 1: a set of all or none of them leaves a part without cells."""
    column = NominalCells("x", Taxonomy.flat(list("abcd")), False)
    tree = Tree(
        column=np.array([0, 0, -1, -1, -1], np.int32),
        children=np.array([2, 2, 0, 0, 0], np.int32),
        start=np.array([0, 0, 1, 0, 2], np.int32),
        before=np.full(5, -1, np.int32),
        set_of=np.array([0, 1, -1, -1, -1], np.int32),
        sets=(np.array([0, 2], np.int32), np.array(cells, np.int32)),
    )
    with pytest.raises(RecodingError, match="do not tile"):
        Recoding.from_json(Recoding((column,), tree).to_json())


def test_a_set_may_hold_cells_that_its_node_has_not_and_divide_several_nodes() -> None:
    column = NominalCells("x", Taxonomy.flat(list("abcd")), False)
    tree = Tree(
        column=np.array([0, 0, 0, -1, -1, -1, -1], np.int32),
        children=np.array([2, 2, 2, 0, 0, 0, 0], np.int32),
        start=np.array([0, 0, 1, 0, 2, 1, 3], np.int32),
        before=np.full(7, -1, np.int32),
        set_of=np.array([0, 1, 1, -1, -1, -1, -1], np.int32),
        sets=(np.array([0, 2], np.int32), np.array([1, 0], np.int32)),
    )
    back = Recoding.from_json(Recoding((column,), tree).to_json())
    assert [back.boxes.cells(node, 0) for node in range(3, 7)] == [(0,), (2,), (1,), (3,)]


def test_sets_may_stand_in_any_order() -> None:
    columns = (
        NominalCells("wide", Taxonomy.flat(list("abcdefgh")), False),
        NominalCells("narrow", Taxonomy.flat(list("abc")), False),
    )
    tree = Tree(
        column=np.array([1, 0, -1, -1, -1], np.int32),
        children=np.array([2, 2, 0, 0, 0], np.int32),
        start=np.array([0, 0, 1, 0, 1], np.int32),
        before=np.full(5, -1, np.int32),
        set_of=np.array([1, 0, -1, -1, -1], np.int32),
        sets=(np.array([0, 7], np.int32), np.array([0, 2], np.int32)),
    )
    text = Recoding(columns, tree).to_json()
    assert Recoding.from_json(text).to_json() == text


# --- any edit at all --------------------------------------------------------------------------------------------

JUNK = (
    st.none()
    | st.booleans()
    | st.integers(-3, 9)
    | st.sampled_from(["", "a", "2024-01-01", [], [0], {}, 2.5, -1, 10**12])
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to everything inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path + (key,) for key, _ in inside] + [deep for key, part in inside for deep in places(part, (*path, key))]


@given(recodings(), st.data())
@tries(300)
def test_any_edit_is_refused_or_leaves_a_tiling(recoding: Recoding, data: st.DataObject) -> None:
    tables = copy.deepcopy(json.loads(recoding.to_json()))
    where = data.draw(st.sampled_from(places(tables)))
    (put(*where, to=data.draw(JUNK)) if data.draw(st.integers(0, 3)) else drop(*where))(tables)
    try:
        found = Recoding.from_json(json.dumps(tables))
    except RecodingError:
        return
    sizes = [column.size for column in found.columns]
    regions = [int(node) for node in np.flatnonzero(found.tree.column == LEAF)]
    for point in points(sizes)[:200]:
        holding = [
            node for node in regions if all(cell in found.boxes.cells(node, index) for index, cell in enumerate(point))
        ]
        assert holding == [route(found.tree, point)]
