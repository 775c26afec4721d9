# SPDX-License-Identifier: Apache-2.0
"""A table of somebody else that appears while a release is under way is not replaced, unless that is allowed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anonfit as af
from anonfit.errors import ReleaseError
from anonfit.tables import database_writing
from anonfit.tables.database_writing import write_to_database
from anonfit.tables.databases import connected, database_source
from anonfit.tables.sources import Address, read_address

KINDS = ["sqlite", "duckdb", "postgresql", "mariadb"]
ROWS = pl.DataFrame({"a": [1, 2, 3]})


def _address(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    is_server = kind in ("postgresql", "mariadb")
    return str(request.getfixturevalue(f"{kind}_address")) if is_server else f"{kind}:{tmp_path / 'x.db'}"


def _make(address: Address, table: str) -> None:
    """Somebody's table, by a connection that waits for nobody."""
    statements = [f"CREATE TABLE {table} (precious INTEGER)", f"INSERT INTO {table} VALUES (7)"]
    if address.kind == "sqlite":
        connection = sqlite3.connect(address.place, timeout=0)
        try:
            with connection:
                for statement in statements:
                    connection.execute(statement)
        finally:
            connection.close()
        return
    with connected(address, to_write=True) as connection:
        run: Any = connection.execute if address.kind == "duckdb" else connection.exec_driver_sql
        for statement in statements:
            run(statement)


def _read(text: str, table: str) -> dict[str, list[Any]]:
    source = database_source(text, table=table, query=None, folder=Path())
    return pl.concat(source.frames()).to_dict(as_series=False)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_appears_after_the_last_look_stays(kind, tmp_path, request, monkeypatch):
    text = _address(kind, tmp_path, request)
    address = read_address(text, folder=Path())
    release = af.anonymize(pl.DataFrame({"age": [1, 2] * 6}), quasi_identifiers=["age"], k=3)
    monkeypatch.setattr(database_writing, "check_target", lambda *_words, **_keys: None)  # it saw nothing yet
    _make(address, "appeared")
    with pytest.raises(ReleaseError, match="'appeared' is already there"):
        release.to_table(text, "appeared")
    assert _read(text, "appeared") == {"precious": [7]}
    release.to_table(text, "appeared", replace=True)
    assert list(_read(text, "appeared")) == ["age"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_appears_while_rows_are_written_stays(kind, tmp_path, request):
    text = _address(kind, tmp_path, request)
    address = read_address(text, folder=Path())
    write_to_database(address, "other", [ROWS], ROWS.schema, replace=True)  # there is a file

    def frames() -> Iterator[pl.DataFrame]:
        yield ROWS
        _make(address, "midway")

    # SQLite lets nobody else write meanwhile, others do not give the name away.
    with pytest.raises(ReleaseError, match="could not be written"):
        write_to_database(address, "midway", frames(), ROWS.schema, replace=False)
    if kind in ("sqlite", "duckdb"):  # two transactions cannot make it, so neither did
        _make(address, "midway")
    assert _read(text, "midway") == {"precious": [7]}


def test_nobody_writes_between_the_look_and_the_rows(tmp_path, monkeypatch):
    address = read_address(f"sqlite:{tmp_path / 'x.db'}", folder=Path())
    write_to_database(address, "other", [ROWS], ROWS.schema, replace=False)
    look, refused = database_writing._columns, []

    def looked(connection: Any, kind: str, table: str) -> Any:
        columns = look(connection, kind, table)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            _make(address, "soon")
        refused.append(table)
        return columns

    monkeypatch.setattr(database_writing, "_columns", looked)
    write_to_database(address, "soon", [ROWS], ROWS.schema, replace=False)
    assert refused == ["soon"]


def test_names_that_differ_in_case_are_one_table_of_duckdb(tmp_path):
    text = f"duckdb:{tmp_path / 'x.db'}"
    address = read_address(text, folder=Path())
    _make(address, "Precious")
    with pytest.raises(ReleaseError, match="is already there"):
        write_to_database(address, "precious", [ROWS], ROWS.schema, replace=False)
    assert _read(text, "Precious") == {"precious": [7]}
    write_to_database(address, "precious", [ROWS], ROWS.schema, replace=True)
    assert _read(text, "Precious") == ROWS.to_dict(as_series=False)
