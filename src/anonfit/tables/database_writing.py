# SPDX-License-Identifier: Apache-2.0
"""Writing a table to a database: all of it, or nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from anonfit.errors import MissingPackage, ReleaseError
from anonfit.tables.databases import KINDS, is_database, quoted

if TYPE_CHECKING:
    import polars as pl

__all__ = ["write_to_database"]


def _sql_type(dtype: pl.DataType) -> str:
    """The type of a column in any of the databases."""
    import polars as pl

    if dtype == pl.Boolean:
        return "BOOLEAN"
    if dtype.is_integer():
        return "BIGINT"
    if isinstance(dtype, pl.Decimal):
        return f"DECIMAL({dtype.precision or 38}, {dtype.scale})"
    if dtype.is_float():
        return "DOUBLE PRECISION"
    if dtype == pl.Date:
        return "DATE"
    if isinstance(dtype, pl.Datetime):
        return "TIMESTAMP WITH TIME ZONE" if dtype.time_zone else "TIMESTAMP"
    return "TEXT"


def _plain(frame: pl.DataFrame, *, as_text: bool) -> pl.DataFrame:
    """A frame of values that a driver knows; SQLite has texts for all but numbers."""
    import polars as pl

    texts = [
        name
        for name, dtype in frame.schema.items()
        if _sql_type(dtype) == "TEXT" or (as_text and (dtype.is_temporal() or isinstance(dtype, pl.Decimal)))
    ]
    return frame.with_columns(pl.col(texts).cast(pl.String))


def write_to_database(
    address: str, table: str, frames: Iterable[pl.DataFrame], schema: Mapping[str, pl.DataType], *, replace: bool
) -> None:
    """Write frames of one schema to a new table, in their order.

    Args:
        address: Such as `sqlite:release.db`, `duckdb:release.duckdb` or `postgresql://user@host/name`.
        table: The table's name.
        frames: Its rows.
        schema: Its columns.
        replace: Whether a table that is there may be replaced.
    """
    if not is_database(address):
        raise ReleaseError(f"a table is written to a database; its address begins with one of {', '.join(KINDS)}.")
    kind, _, rest = address.partition(":")
    name = ".".join(quoted(part) for part in table.split("."))
    columns = ", ".join(f"{quoted(column)} {_sql_type(dtype)}" for column, dtype in schema.items())
    statements = [f"DROP TABLE IF EXISTS {name}"] if replace else []
    statements.append(f"CREATE TABLE {name} ({columns})")
    try:
        if kind == "sqlite":
            _to_sqlite(Path(rest.removeprefix("//")), statements, name, frames, len(schema))
        elif kind == "duckdb":
            _to_duckdb(rest.removeprefix("//"), statements, name, frames)
        else:
            _to_postgresql(address, statements, name, frames)
    except ReleaseError:
        raise
    except Exception as error:
        if isinstance(error, OverflowError):
            raise ReleaseError(f"{kind} has no whole numbers as large as some of '{table}'; write texts.") from None
        if type(error).__module__.lstrip("_").partition(".")[0] not in ("sqlite3", "duckdb", "psycopg"):
            raise
        raise ReleaseError(
            f"the {kind} table '{table}' could not be written ({type(error).__name__}): is it there already "
            "(replace=True), and may it be written?"
        ) from None


def _to_sqlite(path: Path, statements: list[str], name: str, frames: Iterable[pl.DataFrame], width: int) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("BEGIN")
        for statement in statements:
            connection.execute(statement)
        for frame in frames:
            query = f"INSERT INTO {name} VALUES ({', '.join('?' * width)})"  # noqa: S608 - the name is quoted
            connection.executemany(query, _plain(frame, as_text=True).rows())
        connection.execute("COMMIT")
    finally:
        connection.close()


def _to_duckdb(path: str, statements: list[str], name: str, frames: Iterable[pl.DataFrame]) -> None:
    try:
        import duckdb
    except ModuleNotFoundError:
        raise MissingPackage("duckdb", "duckdb", "A DuckDB file") from None
    with duckdb.connect(path) as connection:
        connection.execute("SET enable_progress_bar = false")  # it would go to standard output
        connection.execute("BEGIN")
        for statement in statements:
            connection.execute(statement)
        for frame in frames:
            connection.register("frame_to_write", _plain(frame, as_text=False).to_arrow())
            connection.execute(f"INSERT INTO {name} SELECT * FROM frame_to_write")  # noqa: S608 - the name is quoted
            connection.unregister("frame_to_write")
        connection.execute("COMMIT")


def _to_postgresql(address: str, statements: list[str], name: str, frames: Iterable[pl.DataFrame]) -> None:
    try:
        import psycopg
    except ModuleNotFoundError:
        raise MissingPackage("psycopg", "postgresql", "A PostgreSQL server") from None
    with psycopg.connect(address) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement.encode())
        for frame in frames:
            with cursor.copy(f"COPY {name} FROM STDIN".encode()) as copy:
                for row in _plain(frame, as_text=False).iter_rows():
                    copy.write_row(row)
