# SPDX-License-Identifier: Apache-2.0
"""A recoding as SQL gives, run in a database, what applying it to a frame gives."""

from __future__ import annotations

import sqlite3
from datetime import date, timedelta
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.errors import RecodingError

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


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_the_same_in_a_database(seed, engine):
    frame = _frame(seed) if engine == "duckdb" else _frame(seed).drop("born")  # SQLite has no dates
    words = {"algorithm": "tdr"} if seed % 4 == 3 else {}
    release = _release(frame, seed, **words)
    query = release.recoding.to_sql("people", keep=["row"])
    if engine == "duckdb":
        with duckdb.connect() as connection:
            connection.register("people", frame.to_arrow())
            rows = connection.execute(query).fetchall()
    else:
        connection = sqlite3.connect(":memory:")
        names = frame.columns
        connection.execute(f"CREATE TABLE people ({', '.join(names)})")
        connection.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(names))})", frame.rows())
        rows = connection.execute(query).fetchall()
        connection.close()
    assert _plain(rows) == _expected(release, frame, "labels")


@pytest.fixture(scope="module")
def postgresql(postgresql_address):
    import psycopg

    with psycopg.connect(postgresql_address) as connection:
        yield connection


@pytest.mark.parametrize("seed", range(6))
def test_the_same_in_postgresql(seed, postgresql):
    frame = _frame(seed)
    release = _release(frame, seed)
    types = {pl.Int64: "bigint", pl.Float64: "float8", pl.Date: "date", pl.String: "text"}
    columns = ", ".join(f"{name} {types[type(dtype)]}" for name, dtype in frame.schema.items())
    postgresql.execute(f"DROP TABLE IF EXISTS people; CREATE TABLE people ({columns})")
    with postgresql.cursor() as cursor:
        cursor.executemany(f"INSERT INTO people VALUES ({', '.join(['%s'] * frame.width)})", frame.rows())
        rows = cursor.execute(release.recoding.to_sql("people", keep=["row"])).fetchall()
    assert _plain(rows) == _expected(release, frame, "labels")


@pytest.mark.parametrize("values", ["bounds", "representative"])
def test_other_values(values):
    frame = _frame(3)
    release = af.anonymize(frame.select("age", "weight", "y"), quasi_identifiers=["age", "weight"], k=5, targets=["y"])
    with duckdb.connect() as connection:
        connection.register("people", frame.to_arrow())
        found = connection.execute(release.recoding.to_sql("people", keep=["row"], values=values)).fetchall()
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
        found = connection.execute(release.recoding.to_sql("people", keep=["row"])).fetchall()
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
        found = connection.execute(release.recoding.to_sql("people", keep=["row"])).fetchall()
    assert _plain(found) == _expected(release, frame, "labels")
