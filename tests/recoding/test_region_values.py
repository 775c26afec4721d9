# SPDX-License-Identifier: Apache-2.0
"""Bounds are the ends of a region, and a representative lies in it; both are made from the region alone."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import polars as pl
from cell_trees import recodings
from hypothesis import given

from anonfit.engines.tree import Tree
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Values, region_values
from anonfit.tables.scales import Cut, Scale
from anonfit.tables.schema import ColumnType
from anonfit.tables.taxonomy import Taxonomy
from strategies import tries


def value(cut: Cut | None, scale: Scale) -> Any:
    if cut is None:
        return None
    if scale.is_number:
        return float(cut)
    return date.fromisoformat(str(cut)) if scale == Scale.DATE else datetime.fromisoformat(str(cut))


def chain(column: RecodedColumn) -> Recoding:
    """A recoding that parts every cell of its one column."""
    size = column.size
    if size == 1:
        return Recoding((column,), Tree.single())
    return Recoding(
        (column,),
        Tree(
            column=np.array([0] + [-1] * size, np.int32),
            children=np.array([size] + [0] * size, np.int32),
            start=np.array([0, *range(size)], np.int32),
            before=np.full(size + 1, -1, np.int32),
            set_of=np.full(size + 1, -1, np.int32),
        ),
    )


def said(column: RecodedColumn, values: Values) -> dict[str, list[Any]]:
    """What the cells of a column say, one after the other."""
    recoding = chain(column)
    nodes = np.arange(1, column.size + 1, dtype=np.int32) if column.size > 1 else np.zeros(1, np.int32)
    return {part.name: part.to_list() for part in region_values(recoding, nodes, values)[column.name]}


def test_bounds_by_hand() -> None:
    ages = OrderedCells("age", ColumnType.CONTINUOUS, Scale.NUMBER, (30, 50.5), True, ())
    assert said(ages, Values.BOUNDS) == {
        "age_lower": [None, None, 30, 50.5],
        "age_upper": [None, 30, 50.5, None],
        "age_missing": ["only", "no", "no", "no"],
    }
    closed = OrderedCells("age", ColumnType.CONTINUOUS, Scale.NUMBER, (30,), False, (0, 120))
    assert said(closed, Values.BOUNDS) == {"age_lower": [0, 30], "age_upper": [30, 120]}
    days = OrderedCells("day", ColumnType.DATE, Scale.DATE, ("2024-03-01",), False, ())
    assert said(days, Values.BOUNDS) == {"day_lower": [None, date(2024, 3, 1)], "day_upper": [date(2024, 3, 1), None]}
    stages = OrdinalCells("stage", ("low", "mid", "high"), False)
    assert said(stages, Values.BOUNDS) == {"stage_lower": [None, "mid", "high"], "stage_upper": ["mid", "high", None]}
    jobs = NominalCells("job", Taxonomy.flat(["a", "b"]), False)
    assert said(jobs, Values.BOUNDS) == {"job": ["a", "b"]}


def test_representatives_by_hand() -> None:
    ages = OrderedCells("age", ColumnType.CONTINUOUS, Scale.NUMBER, (30, 50), True, ())
    assert said(ages, Values.REPRESENTATIVE) == {"age": [None, 30, 40, 50]}
    closed = OrderedCells("age", ColumnType.CONTINUOUS, Scale.NUMBER, (30,), False, (0, 120))
    assert said(closed, Values.REPRESENTATIVE) == {"age": [15, 75]}
    days = OrderedCells("day", ColumnType.DATE, Scale.DATE, ("2024-03-01", "2024-03-11"), False, ())
    assert said(days, Values.REPRESENTATIVE)["day"] == [date(2024, 3, 1), date(2024, 3, 6), date(2024, 3, 11)]
    times = OrderedCells("at", ColumnType.DATE, Scale.TIME, ("2024-03-01T00:00:00", "2024-03-02T00:00:00"), False, ())
    assert said(times, Values.REPRESENTATIVE)["at"][1] == datetime(2024, 3, 1, 12)
    stages = OrdinalCells("stage", ("low", "mid", "high"), False)
    assert said(stages, Values.REPRESENTATIVE) == {"stage": ["low", "mid", "high"]}


@given(recodings())
@tries(100)
def test_bounds_and_representatives_lie_in_their_region(recoding: Recoding) -> None:
    nodes = np.arange(len(recoding.tree.column), dtype=np.int32)
    bounds, middles = (
        region_values(recoding, nodes, Values.BOUNDS),
        region_values(recoding, nodes, Values.REPRESENTATIVE),
    )
    for index, column in enumerate(recoding.columns):
        if not isinstance(column, OrderedCells) or any(
            abs(float(cut)) > 1e15 for cut in column.cuts + column.domain if not isinstance(cut, str)
        ):
            continue  # long whole numbers: see test_bounds_of_long_whole_numbers
        for node in nodes.tolist():
            cells = recoding.boxes.cells(node, index)
            low, high = (value(end, column.scale) for end in column.ends(cells))
            if column.has_missing and cells == (0,):
                low = high = None
            assert (bounds[column.name][0][node], bounds[column.name][1][node]) == (low, high)
            middle = middles[column.name][0][node]
            if (column.has_missing and cells[0] == 0) or (low is None and high is None):
                assert middle is None
            elif low is None or high is None:
                assert middle == (high if low is None else low)
            else:
                assert low <= middle <= high
                assert middle < high or column.domain


@given(recodings())
@tries(100)
def test_words_and_names_lie_in_their_region(recoding: Recoding) -> None:
    nodes = np.arange(len(recoding.tree.column), dtype=np.int32)
    middles = region_values(recoding, nodes, Values.REPRESENTATIVE)
    labels = region_values(recoding, nodes, Values.LABELS)
    for index, column in enumerate(recoding.columns):
        for node in nodes.tolist():
            cells = recoding.boxes.cells(node, index)
            assert labels[column.name][0][node] == column.label(cells)
            if isinstance(column, OrdinalCells):
                word = middles[column.name][0][node]
                shift = int(column.has_missing)
                assert (word is None) == (shift == 1 and cells[0] == 0)
                assert word is None or column.order.index(word) + shift in cells
            if isinstance(column, NominalCells):
                assert middles[column.name][0][node] == column.label(cells)


def test_bounds_of_long_whole_numbers() -> None:
    column = OrderedCells("x", ColumnType.CONTINUOUS, Scale.NUMBER, (2**60 + 1,), False, ())
    assert said(column, Values.BOUNDS)["x_lower"][1] == 2**60 + 1


def test_the_middle_of_adjacent_floats_is_the_lower_one() -> None:
    low = float(np.nextafter(1.0, 2.0))
    column = OrderedCells("x", ColumnType.CONTINUOUS, Scale.NUMBER, (low, float(np.nextafter(low, 2.0))), False, ())
    assert said(column, Values.REPRESENTATIVE)["x"][1] == low


def test_the_middle_of_a_huge_interval_is_finite() -> None:
    column = OrderedCells("x", ColumnType.CONTINUOUS, Scale.NUMBER, (-1.7e308, 1.7e308), False, ())
    assert said(column, Values.REPRESENTATIVE)["x"][1] == 0


def test_types_of_bounds() -> None:
    times = OrderedCells("at", ColumnType.DATE, Scale.TIME, ("2024-03-01T00:00:00.5",), False, ())
    (series, _) = region_values(chain(times), np.array([1, 2], np.int32), Values.BOUNDS)["at"]
    assert series.dtype == pl.Datetime("us")
    labels = region_values(chain(times), np.array([1, 2], np.int32), Values.LABELS)["at"][0]
    assert isinstance(labels.dtype, pl.Enum)
    assert labels.dtype.categories.to_list() == sorted(labels.to_list())
