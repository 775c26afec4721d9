# SPDX-License-Identifier: Apache-2.0
"""A recoding as SQL gives, run in a database, what applying it to a frame gives."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.errors import RecodingError
from anonfit.tables.database_writing import write_to_database
from anonfit.tables.databases import connected
from anonfit.tables.sources import read_address

BRANCHES = {"name": "all", "children": [{"name": "w", "children": [{"name": "fr"}, {"name": "de"}]}, {"name": "e", "children": [{"name": "pl"}, {"name": "o'x"}]}]}  # fmt: skip


def _frame(seed: int, rows: int = 250) -> pl.DataFrame:
    rng = np.random.default_rng(seed)

    def gaps(values: list[Any]) -> list[Any]:
        return [None if rng.random() < 0.1 else value for value in values]

    return pl.DataFrame(
        {
            "age": gaps(rng.integers(-5, 80, rows).tolist()),
            "weight": (rng.normal(70, 20, rows)).round(2),
            "born": [date(1990, 1, 1) + timedelta(days=int(day)) for day in rng.integers(0, 4000, rows)],
            "town": gaps(rng.choice(['a "b"', "c'd", "é", "rare"], rows, p=[0.4, 0.3, 0.29, 0.01]).tolist()),
            "land": gaps(rng.choice(["fr", "de", "pl", "o'x"], rows).tolist()),
            "size": rng.choice(["s", "m", "l"], rows),
            "code": rng.choice([1, 2, 30], rows),
            "row": np.arange(rows),
            "y": rng.choice(["no", "yes"], rows),
        }
    )


def _release(frame: pl.DataFrame, seed: int, **words: Any) -> af.Release:
    rng = np.random.default_rng(seed)
    every = [name for name in ("age", "weight", "born", "town", "land", "size", "code") if name in frame.columns]
    names = sorted(rng.choice(every, int(rng.integers(1, 6)), replace=False).tolist())
    words = {"k": 3, "targets": ["y"]} | words
    declared = {
        "taxonomies": {"land": BRANCHES},
        "splits": {"land": str(rng.choice(["multiway", "binary", "subset"]))},
        "types": {"size": "ordinal", "code": "nominal"},
        "orders": {"size": ["s", "m", "l"]},
        "domains": {"age": [-10, 100]},
    }
    declared = {key: {name: value for name, value in found.items() if name in names} for key, found in declared.items()}
    if words.get("algorithm") == "tdr":
        declared.pop("splits")
    frame = frame.select([*names, "row", "y"])
    return af.anonymize(frame, quasi_identifiers=names, identifiers=["row"], **declared, **words)


def _expected(release: af.Release, frame: pl.DataFrame, values: str) -> list[tuple[Any, ...]]:
    names = [*release.recoding.quasi_identifiers, "row"]
    found = release.recoding.apply(frame.select(names), values=values)
    found = found.select(pl.all().exclude("row"), "row")
    return [tuple(str(one) if one is not None else None for one in row) for row in found.sort("row").rows()]


def _plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    ordered = sorted(rows, key=lambda row: row[-1])
    return [tuple(str(one) if one is not None else None for one in row) for row in ordered]


def _run_duckdb(frame: pl.DataFrame, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.register("people", frame.to_arrow())
        return connection.execute(query).fetchall()


def _run_in(address: str, frame: pl.DataFrame, query: str) -> list[tuple[Any, ...]]:
    """The answer of a database that holds the frame."""
    place = read_address(address, folder=Path())
    write_to_database(place, "people", [frame], frame.schema, replace=True)
    with connected(place, to_write=False) as connection:
        rows = connection.execution_options(no_parameters=True).exec_driver_sql(query).fetchall()
    return [tuple(row) for row in rows]


@pytest.fixture
def people_in(request, tmp_path):
    """Runs a query in a database of some kind over a frame."""

    def run(kind: str, frame: pl.DataFrame, query: str) -> list[tuple[Any, ...]]:
        if kind == "duckdb":
            return _run_duckdb(frame, query)
        address = f"sqlite:{tmp_path / 'people.db'}" if kind == "sqlite" else request.getfixturevalue(f"{kind}_address")
        return _run_in(address, frame, query)

    return run


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgresql", "mariadb"])
def test_the_same_in_a_database(seed, kind, people_in):
    frame = _frame(seed)
    words = {"algorithm": "tdr"} if seed % 4 == 3 else {}
    release = _release(frame, seed, **words)
    rows = people_in(kind, frame, release.recoding.to_sql("people", keep=["row"], dialect=kind))
    assert _plain(rows) == _expected(release, frame, "labels")


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgresql", "mariadb"])
def test_names_that_look_alike_and_moments(kind, people_in):
    """Case, blanks at the end and backslashes count, and microseconds do."""
    names = ["a", "A", "a ", "ä", "\\n", "it's %s", "日本"]
    moment = datetime(2024, 2, 29, 12, 0, 0)
    exact = kind != "sqlite"  # which counts milliseconds
    rows = 400
    frame = pl.DataFrame(
        {
            "name": [names[row % len(names)] for row in range(rows)],
            "seen": [moment + timedelta(microseconds=row if exact else 1000 * row) for row in range(rows)],
            "row": range(rows),
        }
    )
    release = af.anonymize(frame, quasi_identifiers=["name", "seen"], identifiers=["row"], k=3)
    assert release.recoding.regions > 50
    found = people_in(kind, frame, release.recoding.to_sql("people", keep=["row"], dialect=kind))
    assert _plain(found) == _expected(release, frame, "labels")


def _many_regions(rows: int, k: int) -> tuple[pl.DataFrame, af.Release]:
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "age": rng.integers(0, 100, rows),
            "weight": rng.normal(70, 20, rows).round(1),
            "zip": rng.integers(1000, 99999, rows),
            "town": rng.choice([f"t{town}" for town in range(40)], rows),
            "size": rng.choice(["s", "m", "l"], rows),
            "row": np.arange(rows),
            "y": rng.choice(["a", "b"], rows),
        }
    )
    names = ["age", "weight", "zip", "town", "size"]
    release = af.anonymize(
        frame, quasi_identifiers=names, identifiers=["row"], targets=["y"], k=k, criterion="infogain"
    )
    return frame.drop("y"), release


def test_some_hundred_regions(people_in):
    """A tree that is deeper than databases nest expressions, in all four."""
    frame, release = _many_regions(3000, 4)
    assert release.recoding.regions > 400
    expected = _expected(release, frame, "labels")
    for kind in ("duckdb", "sqlite", "postgresql", "mariadb"):
        found = people_in(kind, frame, release.recoding.to_sql("people", keep=["row"], dialect=kind))
        assert _plain(found) == expected, kind


@pytest.mark.slow
def test_five_thousand_regions_of_a_hundred_thousand_rows(people_in):
    """At most 30 seconds anywhere, and in PostgreSQL at most five times what DuckDB takes."""
    frame, release = _many_regions(100_000, 14)
    assert release.recoding.regions >= 5000
    expected, took = _expected(release, frame, "labels"), {}
    for kind in ("duckdb", "sqlite", "postgresql", "mariadb"):
        query = release.recoding.to_sql("people", keep=["row"], dialect=kind)
        begin = perf_counter()
        people_in(kind, frame, "SELECT count(*) FROM people")  # the frame is written
        middle = perf_counter()
        found = people_in(kind, frame, query)
        took[kind] = perf_counter() - middle - (middle - begin)
        assert _plain(found) == expected, kind
    assert max(took.values()) < 30, took
    assert took["postgresql"] < 5 * max(took["duckdb"], 0.5), took


@pytest.mark.parametrize("dialect", ["postgresql", "duckdb", "sqlite", "mysql", "mssql"])
@pytest.mark.parametrize("seed", [0, 3])
def test_every_dialect_is_understood_by_another_reader(dialect, seed):
    """SQL Server and MySQL cannot be had here: their queries are parsed, and what they say is that of DuckDB's."""
    sqlglot = pytest.importorskip("sqlglot")
    names = {"postgresql": "postgres", "mssql": "tsql"}
    frame = _frame(seed)
    release = _release(frame, seed, **({"algorithm": "tdr"} if seed == 3 else {}))
    query = release.recoding.to_sql("people", keep=["row"], dialect=dialect)
    parsed = sqlglot.parse_one(query, dialect=names.get(dialect, dialect))
    assert isinstance(parsed, sqlglot.exp.Select)
    tables = {table.alias for table in parsed.find_all(sqlglot.exp.CTE)}
    assert "anonfit_rows" in tables
    assert len(parsed.selects) == len(release.recoding.quasi_identifiers) + 1
    assert ("RECURSIVE" in query) == (dialect != "mssql")


def test_the_walk_without_recursion_is_the_same():
    """What SQL Server is sent, but for its words, gives in DuckDB what it should."""
    frame, release = _many_regions(600, 4)
    query = release.recoding.to_sql("people", keep=["row"], dialect="mssql")
    plain = re.sub(r"\[(\w+)\]", r'"\1"', query).replace("INNER HASH JOIN", "JOIN").replace("N'", "'")
    plain = (
        plain.replace("COLLATE Latin1_General_BIN2", "")
        .replace("NVARCHAR(3999)", "TEXT")
        .replace(" AS FLOAT)", " AS DOUBLE)")
    )
    plain = re.sub(r"(anonfit_walk\d+) AS \(", r"\1 AS MATERIALIZED (", plain)
    assert _plain(_run_duckdb(frame, plain)) == _expected(release, frame, "labels")


def test_an_unknown_dialect_is_refused():
    _, release = _many_regions(300, 10)
    with pytest.raises(RecodingError, match="dialect = 'oracle' is not known"):
        release.recoding.to_sql("people", dialect="oracle")


@pytest.mark.parametrize("values", ["bounds", "representative"])
def test_other_values(values):
    frame = _frame(3)
    release = af.anonymize(frame.select("age", "weight", "y"), quasi_identifiers=["age", "weight"], k=5, targets=["y"])
    with duckdb.connect() as connection:
        connection.register("people", frame.to_arrow())
        found = connection.execute(
            release.recoding.to_sql("people", keep=["row"], values=values, dialect="duckdb")
        ).fetchall()
    expected = release.recoding.apply(frame.select("age", "weight", "row"), values=values)
    expected = expected.select(pl.all().exclude("row"), "row").sort("row").rows()

    def numbers(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return [tuple(float(one) if isinstance(one, int | float) or str(one).lstrip("-").replace(".", "").isdigit() else one for one in row) for row in rows]  # fmt: skip

    assert numbers(sorted(found, key=lambda row: row[-1])) == numbers(expected)


def test_rows_that_the_recoding_does_not_know_are_left_out():
    frame = pl.DataFrame({"age": [1, 2, 3, 4], "land": ["fr", "de", "fr", "de"], "y": ["a", "b", "a", "b"]})
    release = af.anonymize(frame, quasi_identifiers=["age", "land"], k=2, targets=["y"], taxonomies={"land": BRANCHES}, domains={"age": [0, 9]})  # fmt: skip
    new = pl.DataFrame({"age": [1, None, 99, 4, 5], "land": ["fr", "fr", "fr", "unknown", None], "row": range(5)})
    with duckdb.connect() as connection:
        connection.register("people", new.to_arrow())
        found = connection.execute(release.recoding.to_sql("people", keep=["row"], dialect="duckdb")).fetchall()
    assert [row[-1] for row in found] == [0]


def test_dates_of_a_format_are_refused():
    frame = pl.DataFrame({"day": ["01.02.2020", "02.02.2020", "03.03.2020", "04.04.2020"]})
    release = af.anonymize(frame, quasi_identifiers=["day"], k=2, types={"day": "date"}, date_formats={"day": "%d.%m.%Y"})  # fmt: skip
    with pytest.raises(RecodingError, match="store them as dates"):
        release.recoding.to_sql("people")


def test_neighbours_among_short_numbers_stay_apart():
    """A cut between two numbers of 32 bits that follow each other would be one of them, if it were rounded."""
    low = np.float32(0.1)
    values = [low, np.nextafter(low, np.float32(1))] * 4
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Float32), "row": range(8)})
    release = af.anonymize(frame, quasi_identifiers=["x"], identifiers=["row"], k=3)
    assert release.recoding.regions == 2
    with duckdb.connect() as connection:
        connection.register("people", frame.to_arrow())
        found = connection.execute(release.recoding.to_sql("people", keep=["row"], dialect="duckdb")).fetchall()
    assert _plain(found) == _expected(release, frame, "labels")
