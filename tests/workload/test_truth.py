# SPDX-License-Identifier: Apache-2.0
"""Which rows a predicate selects: as SQL says, also of missing values. Held against plain Python and a database."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import polars as pl
import pytest
from random_predicates import KINDS, columns, random_frame, random_tree, truth, written

from anonfit.errors import DataError
from anonfit.tables.schema import Column, ColumnType, Role
from anonfit.tables.taxonomy import Taxonomy
from anonfit.workload.parsing import parse_predicate
from anonfit.workload.predicates import kinds_of
from anonfit.workload.truth import RawTable, holds


def selected(where: str, frame: pl.DataFrame, **declared: Column) -> list[int]:
    """The numbers of the rows that a text selects; columns are quasi-identifiers unless declared."""
    given = [declared.get(name, Column(name, Role.QUASI_IDENTIFIER)) for name in frame.columns]
    return np.flatnonzero(holds(parse_predicate(where, kinds_of(given, frame)), frame)).tolist()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(25))
def test_rows_are_selected_as_by_the_three_valued_rules(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = random_frame(rng)
    kinds, rows = kinds_of(columns(), frame), RawTable(frame)
    seen = set()
    for _ in range(40):
        tree = random_tree(rng)
        expected = [truth(tree, row) is True for row in frame.iter_rows(named=True)]
        predicate = parse_predicate(written(tree), kinds)
        assert rows.holds(predicate).tolist() == expected, written(tree)
        seen.update(expected)
    assert seen == {True, False}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(8))
def test_rows_are_selected_as_a_database_selects_them(seed: int) -> None:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is the oracle of this test: pip install duckdb")
    rng = np.random.default_rng(1000 + seed)
    frame = random_frame(rng)
    kinds, rows = kinds_of(columns(), frame), RawTable(frame)
    with duckdb.connect() as database:
        named = ", ".join(f'"{name}" {kind.database}' for name, kind in KINDS.items())
        database.execute(f"CREATE TABLE people (number INTEGER, {named})")
        slots = ", ".join("?" * (len(KINDS) + 1))
        for number, row in enumerate(frame.iter_rows(named=True)):
            stored = [None if row[name] is None else kind.stored(row[name]) for name, kind in KINDS.items()]
            database.execute(f"INSERT INTO people VALUES ({slots})", [number, *stored])
        for _ in range(60):
            tree = random_tree(rng)
            where = written(tree, oracle=True)
            expected = database.execute(f"SELECT number FROM people WHERE {where} ORDER BY 1").fetchall()
            found = np.flatnonzero(rows.holds(parse_predicate(written(tree), kinds))).tolist()
            assert found == [number for (number,) in expected], where


def test_a_row_counts_as_often_as_it_stands_for_persons() -> None:
    frame = pl.DataFrame({"x": [1, 2, 3, None], "y": ["a", "a", "b", "b"]})
    kinds = kinds_of([Column("x", Role.QUASI_IDENTIFIER), Column("y", Role.TARGET)], frame)
    predicates = [parse_predicate(where, kinds) for where in ("x >= 2", "y = 'a' or x = 3", "x is null", "x > 9")]
    rows = RawTable(frame)
    assert rows.count(predicates).tolist() == [2, 3, 1, 0]
    assert rows.count(predicates, counts=np.array([1, 10, 100, 1000])).tolist() == [110, 111, 1000, 0]
    released = np.array([True, True, False, True])
    assert rows.count(predicates, among=released).tolist() == [1, 2, 1, 0]


def test_missing_is_selected_only_where_it_is_asked_for() -> None:
    frame = pl.DataFrame({"x": [1, None, 3], "y": [None, None, 2]})
    assert selected("x <> 1", frame) == [2]
    assert selected("not x = 1", frame) == [2]
    assert selected("not (x = 1 or y = 5)", frame) == [2]
    assert selected("not (x = 3 and y = 2)", frame) == [0]  # x = 3 is false there, so the whole is, whatever y is
    assert selected("x is null or x = 1", frame) == [0, 1]
    assert selected("not (x is null)", frame) == [0, 2]
    assert selected("x not in (1, 7)", frame) == [2]


def test_nan_is_missing() -> None:
    frame = pl.DataFrame({"x": [1.0, float("nan"), None]})
    assert selected("x <> 7", frame) == [0]
    assert selected("x is null", frame) == [1, 2]


def test_whole_numbers_beyond_floats_are_told_apart() -> None:
    frame = pl.DataFrame({"x": [2**53, 2**53 + 1, 2**62]})
    assert selected("x = 9007199254740993", frame) == [1]
    assert selected("x > 9007199254740992.5", frame) == [1, 2]
    assert selected("x < 1e30 and x > -1e30", frame) == [0, 1, 2]
    assert selected("x in (1e30, 4611686018427387904)", frame) == [2]


def test_numbers_of_32_bits_equal_what_is_written() -> None:
    frame = pl.DataFrame({"x": pl.Series([37.1, 0.1], dtype=pl.Float32)})
    assert selected("x = 37.1", frame) == [0]
    assert selected("x <= 0.1", frame) == [1]


def test_infinite_numbers_of_a_raw_column_are_compared() -> None:
    frame = pl.DataFrame({"x": [float("inf"), 1.0, float("-inf")]})
    assert selected("x > 5", frame, x=Column("x", Role.TARGET)) == [0]


def test_texts_declared_to_be_dates_or_numbers_are_compared_as_such() -> None:
    frame = pl.DataFrame({"day": ["31.01.2020", "01.02.2020", None], "size": ["10", "9", "?"]})
    day = Column("day", Role.TARGET, date_format="%d.%m.%Y")
    assert selected("day > DATE '2020-01-31'", frame, day=day) == [1]
    size = Column("size", Role.TARGET, ColumnType.CONTINUOUS)
    assert selected("size > 9", frame.head(2), size=size) == [0]
    with pytest.raises(DataError, match="not numbers"):
        selected("size > 9", frame, size=size)


def test_a_day_among_times_is_its_midnight_and_zones_are_minded() -> None:
    times = [datetime(2020, 1, 31), datetime(2020, 1, 31, 0, 0, 1), datetime(2020, 1, 30, 23)]
    frame = pl.DataFrame({"at": times, "zoned": pl.Series(times).dt.replace_time_zone("UTC")})
    assert selected("at <= '2020-01-31'", frame) == [0, 2]
    assert selected("zoned = TIMESTAMP '2020-01-31 02:00:00+02:00'", frame) == [0]
    assert datetime(2020, 1, 31, tzinfo=UTC) == frame["zoned"][0]


def test_names_that_are_numbers_may_be_written_either_way() -> None:
    nominal = Column("code", Role.QUASI_IDENTIFIER, ColumnType.NOMINAL)
    numbers = pl.DataFrame({"code": [1, 2, 10, None]})
    texts = pl.DataFrame({"code": ["1", "2", "01", None]})
    for frame in (numbers, texts):
        assert selected("code in (1, 2)", frame, code=nominal) == [0, 1]
        assert selected("code in ('1', '2')", frame, code=nominal) == [0, 1]
    assert selected("code = 01", texts, code=nominal) == [2]
    assert selected("code <> 1.0", numbers, code=nominal) == [1, 2]


def test_numbers_and_dates_are_in_the_leaves_and_nodes_of_their_taxonomy() -> None:
    ages = Taxonomy.from_tree(
        {
            "name": "*",
            "children": [{"name": "young", "children": [{"name": "< 10"}, {"name": "[10, 20)"}]}, {"name": "≥ 20"}],
        }
    )
    column = Column("age", Role.QUASI_IDENTIFIER, taxonomy=ages)
    frame = pl.DataFrame({"age": [5, 10, 19, 20, None]})
    assert selected("age = 'young'", frame, age=column) == [0, 1, 2]
    assert selected("age <> '[10, 20)'", frame, age=column) == [0, 3]
    assert selected("age in (10, '≥ 20')", frame, age=column) == [1, 3]
    years = Column("day", Role.QUASI_IDENTIFIER, taxonomy=Taxonomy.flat(["2019", "2020"]))
    days = pl.DataFrame({"day": [date(2019, 3, 1), date(2020, 5, 5)]})
    assert selected("day = '2020'", days, day=years) == [1]
    assert selected("day = DATE '2019-03-01'", days, day=years) == [0]


def test_a_word_of_a_raw_column_outside_its_order_is_an_error() -> None:
    column = Column("size", Role.TARGET, ColumnType.ORDINAL, order=("small", "large"))
    with pytest.raises(DataError, match="its order"):
        selected("size < 'large'", pl.DataFrame({"size": ["small", "huge"]}), size=column)
