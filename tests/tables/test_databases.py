# SPDX-License-Identifier: Apache-2.0
"""Databases as sources: the same release as of the same rows in a frame, on every engine, and nothing secret in sight."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import anonfit as af
from anonfit.errors import AnonfitError, DataError, ReleaseError, SpecError
from anonfit.spec.parse import spec_of
from anonfit.tables import database_writing, databases
from anonfit.tables.database_writing import write_to_database
from anonfit.tables.databases import connected, database_source, dialect_of, named_source
from anonfit.tables.sources import has_password, read_address, shown_address, without_password
from postgresql_server import PASSWORD

ROWS = 300
WORDS = {"quasi_identifiers": ["age", "town", "born"], "targets": ["ill"], "insensitive": ["note"], "k": 5}


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    gaps = rng.random(ROWS) < 0.1
    return pl.DataFrame(
        {
            "age": [None if gap else int(age) for gap, age in zip(gaps, rng.integers(0, 90, ROWS), strict=True)],
            "town": rng.choice(["Köln", "it's", 'a "b"', "x"], ROWS),
            "born": [date(1950, 1, 1).replace(year=1950 + int(year)) for year in rng.integers(0, 50, ROWS)],
            "ill": rng.choice(["no", "yes"], ROWS),
            "note": rng.choice([0.5, 1.25, 2.0], ROWS),
        }
    )


@pytest.fixture(scope="module")
def sqlite_file(people: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sqlite") / "people.db"
    with sqlite3.connect(path) as connection:
        connection.execute('CREATE TABLE "the people" (age INTEGER, town TEXT, born TEXT, ill TEXT, note REAL)')
        rows = people.with_columns(pl.col("born").cast(pl.String)).rows()
        connection.executemany('INSERT INTO "the people" VALUES (?, ?, ?, ?, ?)', rows)
    connection.close()
    return path


@pytest.fixture(scope="module")
def duckdb_file(people: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import duckdb

    path = tmp_path_factory.mktemp("duckdb") / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("people", people.to_arrow())
        connection.execute("CREATE TABLE persons AS SELECT * FROM people")
    return path


@pytest.fixture(scope="module")
def postgresql(people: pl.DataFrame, postgresql_address: str) -> str:
    import psycopg

    with psycopg.connect(postgresql_address) as connection:
        connection.execute(
            "CREATE TABLE persons (age integer, town text, born date, ill varchar(3), note numeric(5, 2))"
        )
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO persons VALUES (%s, %s, %s, %s, %s)", people.rows())
    return postgresql_address


@pytest.fixture(scope="module")
def mariadb(people: pl.DataFrame, mariadb_address: str) -> str:
    with connected(read_address(mariadb_address, folder=Path()), to_write=True) as connection:
        connection.exec_driver_sql(
            "CREATE TABLE persons (age integer, town text, born date, ill varchar(3), note numeric(5, 2))"
        )
        connection.exec_driver_sql("INSERT INTO persons VALUES (%s, %s, %s, %s, %s)", people.rows())
    return mariadb_address


def check(people: pl.DataFrame, source: str, engine: str, **which: str) -> None:
    words = WORDS | {"types": {"born": "date"}}
    expected = af.anonymize(people, **words)
    found = af.anonymize(source, engine=engine, **which, **words)
    assert found.recoding.to_json() == expected.recoding.to_json()
    assert_frame_equal(found.data, expected.data)


@pytest.mark.parametrize("engine", ["memory", "duckdb", "auto"])
def test_sqlite(people, sqlite_file, engine):
    check(people, f"sqlite:{sqlite_file}", engine, table="the people")
    check(people, f"sqlite:{sqlite_file}", engine, query='SELECT * FROM "the people" WHERE 1 = 1;')
    check(people, f"sqlite:{sqlite_file}", engine, query='SELECT * FROM "the people" -- everybody')


@pytest.mark.parametrize("engine", ["memory", "duckdb", "auto"])
def test_duckdb(people, duckdb_file, engine):
    check(people, f"duckdb:{duckdb_file}", engine, table="persons")
    check(people, f"duckdb:{duckdb_file}", engine, query="SELECT * FROM persons")


@pytest.mark.parametrize("engine", ["memory", "duckdb", "auto"])
def test_postgresql(people, postgresql, engine):
    check(people, postgresql, engine, table="public.persons")
    check(people, postgresql, engine, query="SELECT * FROM persons ORDER BY age -- the youngest first")


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_mariadb(people, mariadb, engine):
    check(people, mariadb, engine, table="persons")
    check(
        people, mariadb.replace("mariadb:", "mysql:"), engine, query="SELECT * FROM persons WHERE town LIKE '%' -- all"
    )


def test_an_address_that_is_not_known_is_not_repeated():
    with pytest.raises(SpecError, match="those of databases are known") as found:
        af.propose("oracle://me:hunter3@host/db#t")
    assert "hunter3" not in str(found.value)


def test_a_table_by_its_address_alone(people, postgresql, mariadb, sqlite_file, duckdb_file, monkeypatch):
    monkeypatch.setenv("ANONFIT_TEST_SOURCE", postgresql)
    addresses = [
        f"{postgresql}#public.persons",
        "env:ANONFIT_TEST_SOURCE#persons",
        f"{mariadb}#persons",
        f"{postgresql.replace('postgresql:', 'postgres:')}#persons",
        f"sqlite:{sqlite_file}#the people",
        f"duckdb:{duckdb_file}#persons",
    ]
    for address in addresses:
        assert named_source(address).names() == tuple(people.columns)
        check(people, address, "memory")
        with pytest.raises(SpecError, match="its tables are '"):
            named_source(address.partition("#")[0])


def test_types_of_sqlite_are_those_of_the_values(tmp_path):
    path = tmp_path / "mixed.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a, b, c, d)")
        connection.executemany(
            "INSERT INTO t VALUES (?, ?, ?, ?)", [(1, 1, None, "x"), (2, 2.5, None, 7), (None, 3, None, None)]
        )
    connection.close()
    found = database_source(f"sqlite:{path}", table="t", query=None, folder=Path())
    assert pl.concat(found.frames()).to_dict(as_series=False) == {
        "a": [1, 2, None],
        "b": [1.0, 2.5, 3.0],
        "c": [None, None, None],
        "d": ["x", "7", None],
    }


def test_types_of_as_many_columns_as_sqlite_has_are_found(tmp_path):
    path, names = tmp_path / "wide.db", [f"c{place}" for place in range(1999)]
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(names)})")
        kinds = [1, 2.5, "a"] * 666 + [None]
        for missing in range(3):
            row = [None if place % 3 == missing else value for place, value in enumerate(kinds)]
            connection.execute(f"INSERT INTO t VALUES ({', '.join('?' * 1999)})", row)
    found = database_source(f"sqlite:{path}", table="t", query=None, folder=Path()).schema()
    assert list(found.values()) == [pl.Int64(), pl.Float64(), pl.String()] * 666 + [pl.String()]


def test_nothing_secret_is_shown(postgresql, tmp_path, capfd):
    spec = tmp_path / "spec.toml"
    spec.write_text(
        f"""version = 1
        [data]
        source = "{postgresql}"
        table = "persons"
        [columns]
        age = {{ role = "quasi-identifier" }}
        town = {{ role = "quasi-identifier" }}
        born = {{ role = "identifier" }}
        ill = {{ role = "target" }}
        note = {{ role = "insensitive" }}
        [privacy]
        k = 5
        [engine]
        name = "duckdb"
        """
    )
    release = af.run(spec, tmp_path / "release")
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path != spec]
    assert len(written) >= 6
    assert not any(word in content for content in written for word in (PASSWORD.encode(), b"keeper", b"127.0.0.1"))
    assert PASSWORD not in repr(release) + repr(release._draft) + json.dumps(release.report)
    assert PASSWORD not in "".join(capfd.readouterr())


@pytest.mark.parametrize("wrong", ["table", "password", "query", "port"])
def test_nothing_secret_is_in_errors(postgresql, wrong):
    address = postgresql
    which = {"table": "persons"}
    if wrong == "table":
        which = {"table": "nothing"}
    elif wrong == "query":
        which = {"query": "SELECT 'Köln'::integer FROM persons"}
    elif wrong == "password":
        address = address.replace("hunter2", "wrong-hunter2")
    else:
        address = address.rpartition(":")[0] + ":1/postgres"
    with pytest.raises(DataError) as found:
        af.anonymize(address, **which, **WORDS)
    shown = str(found.value) + repr(found.value.__cause__)
    assert not any(word in shown for word in ("hunter2", "keeper", "127.0.0.1", "Köln"))


@pytest.mark.parametrize(
    ("source", "which", "message"),
    [
        ("sqlite:none.db", {"table": "t"}, "no such sqlite file"),
        ("sqlite:none.db", {}, "one of table and query, or #table"),
        ("sqlite:none.db", {"table": "t", "query": "q"}, "one of table and query, or #table"),
        ("postgresql:", {"table": "t"}, "the address of a server"),
        ("env:ANONFIT_NO_SUCH", {"table": "t"}, "environment variable ANONFIT_NO_SUCH holds no address of a database"),
        ("table.csv", {"table": "t"}, "are of databases"),
        ("https://example.org/t.csv", {}, "download it first"),
    ],
)
def test_wrong_sources(source, which, message):
    with pytest.raises((SpecError, DataError), match=message):
        af.anonymize(source, **which, **WORDS)


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "x.db").write_bytes(b"no database at all, really not" * 100)
    for kind in ("sqlite", "duckdb"):
        with pytest.raises(AnonfitError, match="cannot be read"):
            af.anonymize(f"{kind}:{tmp_path / 'x.db'}", table="t", **WORDS)


def test_binary_columns_are_refused(tmp_path):
    path = tmp_path / "blob.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a BLOB)")
        connection.execute("INSERT INTO t VALUES (?)", (b"secret",))
    connection.close()
    with pytest.raises(DataError, match="the column 'a' has binary values"):
        af.anonymize(f"sqlite:{path}", table="t", quasi_identifiers=["a"], k=2)


@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgresql", "mariadb"])
def test_a_release_as_a_table(people, kind, tmp_path, request):
    release = af.anonymize(people, **WORDS)
    is_server = kind in ("postgresql", "mariadb")
    address = request.getfixturevalue(kind) if is_server else f"{kind}:{tmp_path / 'out.db'}"
    release.to_table(address, "re leased")
    found = pl.concat(database_source(address, table="re leased", query=None, folder=Path()).frames())
    assert_frame_equal(found, release.data.cast({"age": pl.String, "town": pl.String, "born": pl.String}))
    with pytest.raises(ReleaseError, match="is already there") as error:
        release.to_table(address, "re leased")
    assert PASSWORD not in str(error.value)
    release.to_table(address, "re leased", replace=True)
    again = pl.concat(database_source(address, table="re leased", query=None, folder=Path()).frames())
    assert_frame_equal(again, found)


def test_whole_numbers_that_sqlite_does_not_know(tmp_path):
    frame = pl.DataFrame({"age": [1, 2] * 3, "count": pl.Series([2**63 + 1] * 6, dtype=pl.UInt64)})
    release = af.anonymize(frame, quasi_identifiers=["age"], insensitive=["count"], k=3)
    with pytest.raises(ReleaseError, match="no whole numbers as large as some of 't'"):
        release.to_table(f"sqlite:{tmp_path / 'out.db'}", "t")


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_query_of_a_duckdb_file_reads_no_other_file(duckdb_file, tmp_path, engine):
    import duckdb

    (tmp_path / "other.csv").write_text("age,sex\n" + "1,f\n" * 20, encoding="utf-8")
    with duckdb.connect(str(tmp_path / "other.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS age FROM range(20)")
    others = [
        f"SELECT * FROM read_csv('{tmp_path}/other.csv')",
        f"SELECT content AS age FROM read_text('{tmp_path}/other.csv')",
        f"SELECT file AS age FROM glob('{tmp_path}/*')",
        f"SELECT * FROM '{tmp_path}/other.csv'",
        f"SELECT age FROM '{tmp_path}/other.duckdb'.t",
    ]
    for query in others:
        tables = {
            "version": 1,
            "data": {"source": f"duckdb:{duckdb_file}", "query": query, "default_role": "insensitive"},
            "columns": {"age": {"role": "quasi-identifier"}},
            "privacy": {"k": 2},
            "engine": {"name": engine},
        }
        with pytest.raises(DataError, match="cannot be read"):
            af.run(spec_of(tables), tmp_path / "out")
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("address", "secret", "shown"),
    [
        ("postgresql://me:pa:s#s@host/db#t", True, "postgresql:…#t"),
        ("postgresql://me@host/db#a.t", False, "postgresql:…#a.t"),
        ("postgresql://me@host/db?password=x#t", True, "postgresql:…#t"),
        ("postgresql://me:p/w@host/db#t", True, "postgresql:…#t"),
        ("mssql://me:p%40w@host/db#t", True, "mssql:…#t"),
        ("env:HIDDEN#t", False, "env:HIDDEN#t"),
        ("sqlite:/a/b.db#t", False, "sqlite:b.db#t"),
        ("postgres://me:x@host/db#t", True, "postgres:…#t"),
        ("postgresql+psycopg://me:x@host/db#t", True, None),
        ("people.csv", False, None),
    ],
)
def test_addresses(address, secret, shown):
    assert has_password(address) == secret
    if shown is not None:
        assert shown_address(address) == shown
    bare = without_password(address)
    assert not has_password(bare)
    assert secret or bare == address
    if secret:
        assert bare.startswith(address.partition("://")[0] + "://me@host/db")
        assert bare.endswith("#t")


VALUES = {
    "text": ["a,b", 'q"', "", None, "\\.", "é\n\t", "NULL", "%s %%"],
    "whole": [1, -(2**62), None, 0, 5, 6, 7, 8],
    "number": [0.1, 1e300, None, -0.5, 1 / 3, 5e-324, 2.0, 1e16],
    "truth": [True, False, None, True, True, True, False, False],
    "day": [date(1850, 2, 3), None, *[date(2024, 2, 29)] * 6],
    "moment": [datetime(2024, 1, 2, 3, 4, 5, 678901), None, *[datetime(1969, 12, 31, 23, 59, 59)] * 6],
    "pay%s": [Decimal("1.25"), None, *[Decimal("-3.50")] * 6],
}


@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgresql", "mariadb"])
def test_every_kind_of_value_comes_back(kind, tmp_path, request):
    is_server = kind in ("postgresql", "mariadb")
    text = request.getfixturevalue(f"{kind}_address") if is_server else f"{kind}:{tmp_path / 'out.db'}"
    address = read_address(text, folder=Path())
    frame = pl.DataFrame(VALUES).with_columns(pl.col("pay%s").cast(pl.Decimal(10, 2)))
    for turn in range(3):  # a new table, one of the same columns, one of others
        part = frame if turn < 2 else frame.drop("day").reverse()
        write_to_database(address, "values of all", [part.head(3), part.tail(-3)], part.schema, replace=turn > 0)
        source = database_source(text, table="values of all", query=None, folder=Path())
        found = pl.concat(source.frames())
        assert found.columns == part.columns
        assert found["text"].to_list() == part["text"].to_list()
        assert found["number"].to_list() == part["number"].to_list()
        assert found["whole"].to_list() == part["whole"].to_list()
        if kind != "sqlite":
            assert found["moment"].to_list() == part["moment"].to_list()
            assert [None if pay is None else float(pay) for pay in found["pay%s"]] == [
                None if pay is None else float(pay) for pay in part["pay%s"]
            ]


KILLED = """
import sys, time
from pathlib import Path
import polars as pl
from anonfit.tables.sources import read_address
from anonfit.tables.database_writing import write_to_database

def frames():
    for number in range(20):
        yield pl.DataFrame({"a": [number] * 5000})
        if number == 10:
            print("half", flush=True)
            time.sleep(60)

write_to_database(read_address("env:TARGET", folder=Path()), "kept", frames(), {"a": pl.Int64()}, replace=True)
"""


@pytest.mark.parametrize("columns", [["a"], ["a", "b"]], ids=["same columns", "others"])
@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgresql", "mariadb"])
def test_killed_in_the_middle_the_table_is_as_before(kind, columns, tmp_path, request):
    is_server = kind in ("postgresql", "mariadb")
    text = request.getfixturevalue(f"{kind}_address") if is_server else f"{kind}:{tmp_path / 'out.db'}"
    address = read_address(text, folder=Path())
    before = pl.DataFrame({name: list(range(1000)) for name in columns})
    write_to_database(address, "kept", [before], before.schema, replace=True)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED], env={**os.environ, "TARGET": text}, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "half\n"
    source = database_source(text, table="kept", query=None, folder=Path())
    if is_server:  # others read the old rows meanwhile
        assert_frame_equal(pl.concat(source.frames()), before, check_row_order=False)
        listing = Path(f"/proc/{process.pid}/cmdline")
        assert not listing.exists() or PASSWORD not in listing.read_text()
    process.kill()
    process.wait()
    process.stdout.close()
    assert_frame_equal(pl.concat(source.frames()), before, check_row_order=False)
    after = pl.DataFrame({"a": [7, 8]})
    write_to_database(address, "kept", [after], after.schema, replace=True)
    assert_frame_equal(pl.concat(named_source(f"{text}#kept").frames()), after)


def test_rights_to_a_table_stay(postgresql_address):
    import psycopg

    address, frame = read_address(postgresql_address, folder=Path()), pl.DataFrame({"a": ["x"], "b": [1.5]})
    write_to_database(address, "granted", [frame], frame.schema, replace=True)
    with psycopg.connect(postgresql_address) as connection:
        connection.execute("CREATE ROLE recipient")
        connection.execute("GRANT SELECT ON granted TO recipient")
        connection.execute("CREATE VIEW seen AS SELECT a FROM granted")
    write_to_database(address, "granted", [frame, frame], frame.schema, replace=True)
    with psycopg.connect(postgresql_address) as connection:
        assert connection.execute("SELECT has_table_privilege('recipient', 'granted', 'SELECT')").fetchone() == (True,)
        assert connection.execute("SELECT count(*) FROM seen").fetchone() == (2,)


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_the_types_of_sqlite_are_looked_for_once(sqlite_file, engine, monkeypatch):
    scans, found = [], databases._types_of_sqlite

    def counted(source, connection):
        scans.append(source.name)
        return found(source, connection)

    monkeypatch.setattr(databases, "_types_of_sqlite", counted)
    af.anonymize(f"sqlite:{sqlite_file}#the people", engine=engine, types={"born": "date"}, **WORDS)
    assert len(scans) == 1


SECOND = "SELECT * FROM persons) AS a; {}DROP TABLE others; SELECT * FROM (SELECT 1 AS age"


@pytest.mark.parametrize(
    "before", ["", "COMMIT; ", "COMMIT; BEGIN READ WRITE; ", "ROLLBACK; SET TRANSACTION READ WRITE; "]
)
@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgresql", "mariadb"])
def test_a_query_cannot_write(kind, before, tmp_path, request):
    """A query that ends the brackets around it is one statement more, which could end the transaction that reads."""
    files = {"sqlite": "sqlite:x.db", "duckdb": "duckdb:x.duckdb"}
    source = files.get(kind) or request.getfixturevalue(f"{kind}_address")
    address = read_address(source, folder=tmp_path)
    write_to_database(address, "others", [pl.DataFrame({"a": [1]})], {"a": pl.Int64()}, replace=True)
    write_to_database(address, "those", [pl.DataFrame({"age": [1]})], {"age": pl.Int64()}, replace=True)
    query = SECOND.format(before).replace("persons", "those")
    with pytest.raises(AnonfitError):
        list(database_source(source, table=None, query=query, folder=tmp_path).frames())
    others = database_source(source, table="others", query=None, folder=tmp_path)
    assert pl.concat(others.frames())["a"].to_list() == [1]


@pytest.mark.parametrize("to", ["sqlite:x.db#those", "sqlite:./x.db#THOSE", "sqlite:../{name}/x.db#those"])
@pytest.mark.parametrize("which", [{"table": "those"}, {"query": "SELECT * FROM [those] WHERE age > 0"}])
def test_a_release_is_not_written_over_its_source(to, which, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = pl.DataFrame({"age": [1 + number % 9 for number in range(60)]})
    write_to_database(read_address("sqlite:x.db", folder=tmp_path), "those", [rows], rows.schema, replace=False)
    to = to.format(name=tmp_path.name)
    columns = {"age": {"role": "quasi-identifier"}}
    tables = {"version": 1, "columns": columns, "privacy": {"k": 5}, "data": {"source": "sqlite:x.db", **which}}
    with pytest.raises(ReleaseError, match="would be lost"):
        af.run(spec_of({**tables, "output": {"to": to}}, folder=tmp_path), tmp_path / "out", replace=True)
    release = af.run(spec_of(tables, folder=tmp_path), tmp_path / "out")
    with pytest.raises(ReleaseError, match="would be lost"):
        release.to_table(*to.split("#"), replace=True)
    if "table" in which:
        with pytest.raises(ReleaseError, match="would be lost"):
            release.publish_extension("sqlite:x.db#those", tmp_path / "later", to=to, replace=True)
    assert sqlite3.connect("x.db").execute("SELECT count(DISTINCT age) FROM those").fetchone() == (9,)
    release.to_table("sqlite:x.db", "others")


def test_the_same_server_by_another_name_of_its_user_is_the_same():
    addresses = ["postgresql://a:b@host/clinic", "postgres://c@HOST/clinic", "mysql://a@h/d", "mariadb://b@h/d"]
    one, two, three, four = (read_address(address, folder=Path()) for address in addresses)
    assert (one.is_same(two), three.is_same(four), one.is_same(three)) == (True, True, False)
    assert not one.is_same(read_address("postgresql://a@host/other", folder=Path()))


CLOSED = {
    "SELECT (1) AS [a)] FROM t": True,
    "SELECT ')' AS \"x)\" -- )\n, 2 FROM t": True,
    "SELECT 1 /* ) /* ' */ ) */ , (2)": True,
    "SELECT 'it''s (', [a]](]": True,
    SECOND.format(""): False,
    "SELECT 1) AS a DROP TABLE t SELECT * FROM (SELECT 1 AS b": False,
    "SELECT 1 /* ' */) AS a DROP TABLE t SELECT * FROM (SELECT 1 /* ' */": False,
    "SELECT 1 -- '\n) AS a DROP TABLE t SELECT * FROM (SELECT 1 AS b -- '": False,
    "SELECT 1 /* /* */": False,
    "SELECT 'a": False,
    "SELECT [a": False,
    "SELECT (1": False,
    "SELECT 1 */": True,
}


@pytest.mark.parametrize("query", CLOSED)
def test_a_query_of_sql_server_stays_within_its_brackets(query):
    if CLOSED[query]:
        databases.require_closed(query)
    else:
        with pytest.raises(SpecError, match="one whole query"):
            databases.require_closed(query)


class Recorder:
    """In place of a connection to a server that cannot be had here: keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def execution_options(self, **_options: object) -> Recorder:
        return self

    def exec_driver_sql(self, statement: str) -> None:
        self.sent.append(statement)


def test_what_sql_server_is_sent_can_be_read():
    """There is no SQL Server here: what it would be sent is parsed by another reader of its dialect."""
    sqlglot = pytest.importorskip("sqlglot")
    import sqlalchemy as sa
    from sqlalchemy.schema import CreateTable

    types = {name: database_writing._sent(dtype, "mssql") for name, dtype in pl.DataFrame(VALUES).schema.items()}
    source = databases.DatabaseSource(read_address("mssql://me@host/db", folder=Path()), "dbo.it's [a] table")
    query = sqlglot.parse_one(databases._chosen(source, types), dialect="tsql")
    assert [column.alias_or_name for column in query.selects] == list(types)
    table = next(query.find_all(sqlglot.exp.Table))
    assert (table.db, table.name) == ("dbo", "it's [a] table")
    columns = [sa.Column(name, database_writing._sql_type(dtype, "mssql")) for name, dtype in types.items()]
    made = str(CreateTable(sa.Table("t", sa.MetaData(), *columns)).compile(dialect=dialect_of("mssql")))
    assert isinstance(sqlglot.parse_one(made, dialect="tsql"), sqlglot.exp.Create)
    assert "DATETIME2(6)" in made
    recorder = Recorder()
    database_writing._rename(recorder, "mssql", "dbo.it's", there=True)
    assert recorder.sent == ["DROP TABLE [dbo].[it's]", "EXEC sp_rename N'[dbo].[it''s_anonfit_new]', N'it''s'"]
    for statement in recorder.sent:
        sqlglot.parse_one(statement, dialect="tsql")
