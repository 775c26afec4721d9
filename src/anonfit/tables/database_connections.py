# SPDX-License-Identifier: Apache-2.0
"""Connections to databases. SQLAlchemy knows how to reach SQLite, PostgreSQL, MySQL, MariaDB and SQL Server and how
each writes names; a DuckDB file is opened by DuckDB itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.errors import MissingPackage
from anonfit.tables.addresses import Address

if TYPE_CHECKING:
    from sqlalchemy import Dialect

DRIVERS = {"sqlite": "sqlite3", "postgresql": "psycopg", "mysql": "pymysql", "mariadb": "pymysql", "mssql": "pymssql"}
DRIVER_PACKAGES = ("sqlite3", "psycopg", "pymysql", "pymssql", "sqlalchemy", "duckdb", "polars")
"""Where errors of reading and writing come from."""


def dialect_of(kind: str) -> Dialect:
    """How a kind of database writes names and types; DuckDB as PostgreSQL."""
    try:
        from sqlalchemy.dialects import mssql, mysql, postgresql, sqlite
    except ModuleNotFoundError:
        raise MissingPackage("sqlalchemy", "databases", f"A database of the kind {kind}") from None
    dialects = {"sqlite": sqlite, "mysql": mysql, "mariadb": mysql, "mssql": mssql}
    found: Dialect = dialects.get(kind, postgresql).dialect(paramstyle="named")  # percent signs stay single
    return found


def quoted(name: str, kind: str = "postgresql") -> str:
    """A name as a kind of database writes it."""
    if kind in ("postgresql", "duckdb", "sqlite"):
        return '"' + name.replace('"', '""') + '"'
    return dialect_of(kind).identifier_preparer.quote_identifier(name)


def table_name(table: str, kind: str) -> str:
    """A table's name, perhaps with that of its schema."""
    return ".".join(quoted(part, kind) for part in table.split("."))


@contextmanager
def connected(address: Address, *, to_write: bool) -> Iterator[Any]:
    """A connection in one transaction: of SQLAlchemy, or of DuckDB itself."""
    if address.kind == "duckdb":
        with _duckdb(address, to_write=to_write) as connection:
            yield connection
        return
    try:
        import sqlalchemy as sa

        __import__(DRIVERS[address.kind])
    except ModuleNotFoundError as error:
        raise MissingPackage(str(error.name), "databases", f"A database of the kind {address.kind}") from None
    engine = sa.create_engine(
        _url(address), poolclass=sa.NullPool, hide_parameters=True, **_creator(address, to_write=to_write)
    )
    with engine.connect() as connection:
        if address.kind in ("mysql", "mariadb") and not to_write:
            connection.exec_driver_sql("SET SESSION TRANSACTION READ ONLY")
            connection.commit()
        with connection.begin():
            if address.kind == "sqlite":  # the driver would leave the making of tables out of a transaction
                connection.exec_driver_sql("BEGIN")
            yield connection


def _url(address: Address) -> Any:
    """The address as SQLAlchemy reads it."""
    import sqlalchemy as sa

    if address.kind in ("sqlite", "postgresql"):  # their drivers read addresses themselves
        return {"sqlite": "sqlite://", "postgresql": "postgresql+psycopg://"}[address.kind]
    kind = "mssql" if address.kind == "mssql" else "mysql"
    return sa.make_url(address.place).set(drivername=f"{kind}+{DRIVERS[kind]}")


def _creator(address: Address, *, to_write: bool) -> dict[str, Any]:
    if address.kind == "sqlite":
        place = f"{Path(address.place).absolute().as_uri()}?mode={'rwc' if to_write else 'ro'}"
        return {"creator": lambda: sqlite3.connect(place, uri=True, isolation_level=None)}
    if address.kind != "postgresql":
        return {}

    def connect() -> Any:
        import psycopg

        connection = psycopg.connect(address.place, client_encoding="UTF8", options="-c TimeZone=UTC -c DateStyle=ISO")
        connection.read_only = not to_write
        return connection

    return {"creator": connect}


@contextmanager
def _duckdb(address: Address, *, to_write: bool) -> Iterator[Any]:
    try:
        import duckdb
        import pyarrow as pa  # noqa: F401 - rows come as Arrow
    except ModuleNotFoundError as error:
        raise MissingPackage(str(error.name), "duckdb", "A DuckDB file") from None
    with duckdb.connect(address.place, read_only=not to_write) as connection:
        connection.execute("SET autoinstall_known_extensions = false")
        # A query is of this file: one that names others (read_csv, read_text, glob, ATTACH) is refused.
        connection.execute("SET enable_external_access = false")
        connection.execute("SET enable_progress_bar = false")  # it would go to standard output
        connection.execute("BEGIN")
        yield connection
        connection.execute("COMMIT")


def of_driver(error: BaseException) -> bool:
    """Whether an error is a database's; its text may hold values and addresses."""
    return type(error).__module__.lstrip("_").partition(".")[0] in DRIVER_PACKAGES
