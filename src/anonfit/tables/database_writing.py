# SPDX-License-Identifier: Apache-2.0
"""Writing a released table to a database in one transaction: until it ends, the table that was there stands as it was.
Before it ends the rows are read again and held against those that were sent.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from anonfit.errors import AnonfitError, ReleaseError
from anonfit.tables.databases import DatabaseSource, connected, of_driver, quoted, rows_of, table_name
from anonfit.tables.sources import Address

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

KEPT = ("postgresql", "sqlite", "mssql")
"""Databases where a table of the same columns stays, with its rights, views and indexes, and gets other rows."""
MYSQL = ("mysql", "mariadb")
NEW, OLD = "_anonfit_new", "_anonfit_old"
"""Ends of the names of tables that come and go; where making a table ends a transaction, a run that is killed may leave
them behind, and the next one removes them.
"""
ROWS_AT_ONCE = 1 << 16


def check_target(address: Address, table: str, *, replace: bool) -> None:
    """Refuse a table that is there or cannot be reached, before any work is done for it."""
    if address.is_file and not Path(address.place).exists():
        if not Path(address.place).parent.is_dir():
            raise ReleaseError(f"{Path(address.place).parent}: there is no such folder to write a database into.")
        return
    with _writing(address, table) as connection:
        _columns_there(connection, address.kind, table, replace=replace)


def may_be_read(source: DatabaseSource, address: Address, table: str) -> bool:
    """Whether rows of a source may come from a table: it is the one that is named, or a word of the query."""
    schema, _, name = table.rpartition(".")
    if not source.address.is_same(address):
        return False
    if source.table is None:
        return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", source.select, re.IGNORECASE) is not None
    other, _, named = source.table.rpartition(".")
    return named.casefold() == name.casefold() and (not schema or not other or schema.casefold() == other.casefold())


def write_to_database(
    address: Address, table: str, frames: Iterable[pl.DataFrame], schema: Mapping[str, pl.DataType], *, replace: bool
) -> None:
    """Write frames of one schema to a table (perhaps after the name of its database schema and a dot), in their order,
    all of them or nothing; one that is there is replaced only if it may be.
    """
    types = {name: _sent(dtype, address.kind) for name, dtype in schema.items()}
    parts = (part.cast(pl.Schema(types)) for frame in frames for part in frame.iter_slices(ROWS_AT_ONCE))
    with _writing(address, table, begin="BEGIN IMMEDIATE") as connection:
        there = _columns_there(connection, address.kind, table, replace=replace)
        exchange = _to_duckdb if address.kind == "duckdb" else _exchange
        exchange(connection, address, table, parts, types, there)


@contextmanager
def _writing(address: Address, table: str, *, begin: str = "BEGIN") -> Iterator[Any]:
    """A connection that writes in one transaction; an error of it holds no address and no value."""
    try:
        with connected(address, to_write=True, begin=begin) as connection:
            yield connection
    except AnonfitError:
        raise
    except (OverflowError, pl.exceptions.InvalidOperationError):
        raise ReleaseError(f"{address.kind} has no whole numbers as large as some of '{table}'; write texts.") from None
    except Exception as error:
        if not of_driver(error):
            raise
        name = type(getattr(error, "orig", None) or error).__name__
        raise ReleaseError(
            f"the {address.kind} table '{table}' could not be written ({name}): look at the address, and whether its "
            "user may write there; the table is as it was."
        ) from None


# --- types ------------------------------------------------------------------------------------------------------


def _sent(dtype: pl.DataType, kind: str) -> pl.DataType:
    """What values of a type are sent as: texts, where a database knows no better."""
    if dtype == pl.Boolean:
        return dtype
    if dtype.is_integer():
        return pl.Int64()
    if dtype.is_float():
        return pl.Float64()
    if kind != "sqlite" and isinstance(dtype, pl.Datetime):
        has_zone = dtype.time_zone is not None and kind in ("postgresql", "duckdb")
        return pl.Datetime("us", "UTC" if has_zone else None)
    return dtype if kind != "sqlite" and isinstance(dtype, pl.Date | pl.Decimal) else pl.String()


def _read_as(dtype: pl.DataType, kind: str) -> pl.DataType:
    """What values of a type are read as when they are held against those that were sent."""
    if dtype == pl.Boolean and kind in ("sqlite", *MYSQL):
        return pl.Int64()
    return pl.String() if isinstance(dtype, pl.Decimal) and kind != "duckdb" else dtype


def _sql_type(dtype: pl.DataType, kind: str) -> Any:
    """The type of a column in a database."""
    import sqlalchemy as sa
    from sqlalchemy.dialects import mssql, mysql

    if isinstance(dtype, pl.Decimal):
        return sa.Numeric(dtype.precision or 38, dtype.scale)
    if isinstance(dtype, pl.Datetime):
        exact: dict[str, Any] = {"mssql": mssql.DATETIME2, **dict.fromkeys(MYSQL, mysql.DATETIME)}
        if kind in exact:
            return exact[kind](**{"precision" if kind == "mssql" else "fsp": 6})
        return sa.DateTime(timezone=dtype.time_zone is not None)
    plain = {pl.Boolean(): sa.Boolean(), pl.Int64(): sa.BigInteger(), pl.Float64(): sa.Double(), pl.Date(): sa.Date()}
    return plain.get(dtype) or (mysql.LONGTEXT() if kind in MYSQL else sa.UnicodeText())


class _Tally:
    """How many rows there are, and a sum of their hashes."""

    def __init__(self) -> None:
        self.rows, self.hashes = 0, 0

    def add(self, frame: pl.DataFrame) -> None:
        self.rows += len(frame)
        self.hashes = (self.hashes + int(frame.hash_rows().sum())) % 2**64


def _require_same(
    connection: Any, address: Address, table: str, types: Mapping[str, pl.DataType], written: _Tally
) -> None:
    """Refuse what does not come back as it was sent: nothing but the rows that were audited may stand there."""
    read = {name: _read_as(dtype, address.kind) for name, dtype in types.items()}
    read_back = _Tally()
    for frame in rows_of(DatabaseSource(address, table), connection, read):
        read_back.add(frame.cast(pl.Schema(types)))
    if (read_back.rows, read_back.hashes) != (written.rows, written.hashes):
        raise ReleaseError(
            f"{address.kind} does not give the rows of '{table}' back as they were written, so the table stays as it "
            "was; write to another kind of database."
        )


# --- the table --------------------------------------------------------------------------------------------------


def _columns(connection: Any, kind: str, table: str) -> list[tuple[str, str]] | None:
    """The names and types of a table's columns; None if there is no such table."""
    schema, _, name = table.rpartition(".")
    if kind == "duckdb":
        query = (
            "SELECT column_name, data_type FROM duckdb_columns() "
            "WHERE lower(table_name) = lower(?) AND lower(schema_name) = lower(?)"  # as DuckDB compares names
        )
        return connection.execute(query, [name, schema or "main"]).fetchall() or None
    import sqlalchemy as sa

    inspector = sa.inspect(connection)
    if not inspector.has_table(name, schema=schema or None):
        return None
    columns = inspector.get_columns(name, schema=schema or None)
    return [(column["name"], column["type"].compile(dialect=connection.dialect)) for column in columns]


def _columns_there(connection: Any, kind: str, table: str, *, replace: bool) -> list[tuple[str, str]] | None:
    """The columns of the table that is there, if there is one; refused if it may not be replaced."""
    there = _columns(connection, kind, table)
    if there is not None and not replace:
        raise ReleaseError(
            f"the {kind} table '{table}' is already there; choose another name, or allow to replace it (--replace)."
        )
    return there


def _beside(table: str, end: str) -> str:
    """The name of a table that stands beside another."""
    return table[:40] + end if len(table) > 40 and "." not in table else table + end


def _exchange(
    connection: Connection,
    address: Address,
    table: str,
    frames: Iterable[pl.DataFrame],
    types: Mapping[str, pl.DataType],
    there: list[tuple[str, str]] | None,
) -> None:
    """Write rows where nobody sees them yet, and let them take the place of those of the table that is there. If none
    is, nothing is removed: of a table that appears meanwhile, the database refuses to take the name.
    """
    import sqlalchemy as sa

    kind = address.kind
    columns = [sa.Column(name, _sql_type(dtype, kind), autoincrement=False) for name, dtype in types.items()]
    wanted = [(column.name, column.type.compile(dialect=connection.dialect)) for column in columns]
    stays = there == wanted and kind in KEPT
    place = table if stays else _beside(table, NEW)
    schema, _, name = place.rpartition(".")
    new = sa.Table(name, sa.MetaData(), *columns, schema=schema or None, mysql_charset="utf8mb4", mysql_engine="InnoDB")
    if stays:
        connection.execute(sa.delete(new))
    else:
        new.drop(connection, checkfirst=True)
        new.create(connection)
    tally = _Tally()
    for frame in frames:
        tally.add(frame)
        if kind == "postgresql":
            _copy(connection, new, frame)
        else:
            connection.execute(sa.insert(new), frame.to_dicts())
    _require_same(connection, address, place, types, tally)
    if not stays:
        _rename(connection, kind, table, there=there is not None)


def _copy(connection: Connection, table: Table, frame: pl.DataFrame) -> None:
    """Rows as CSV, a missing value as a word that nobody can know."""
    missing = secrets.token_hex(16)
    names = ", ".join(quoted(name) for name in frame.columns)
    place = connection.dialect.identifier_preparer.format_table(table)
    options = f"FORMAT csv, NULL '{missing}', FORCE_NULL ({names})"
    content = frame.write_csv(include_header=False, null_value=missing, quote_style="non_numeric")
    with connection.connection.cursor().copy(f"COPY {place} ({names}) FROM STDIN ({options})") as copy:
        copy.write(content)


def _rename(connection: Connection, kind: str, table: str, *, there: bool) -> None:
    """Give the new table the name of the one that was there, which goes."""
    own, new, old = (table_name(name, kind) for name in (table, _beside(table, NEW), _beside(table, OLD)))
    name = table.rpartition(".")[2]
    if kind in MYSQL:  # making and removing tables ends a transaction there, and one statement renames several
        moves = f"{own} TO {old}, {new} TO {own}" if there else f"{new} TO {own}"
        statements = [f"DROP TABLE IF EXISTS {old}", f"RENAME TABLE {moves}", f"DROP TABLE IF EXISTS {old}"]
    else:
        moves = "EXEC sp_rename N'{}', N'{}'".format(*(word.replace("'", "''") for word in (new, name)))
        plain = f"ALTER TABLE {new} RENAME TO {quoted(name, kind)}"
        statements = [*([f"DROP TABLE {own}"] if there else []), moves if kind == "mssql" else plain]
    for statement in statements:
        connection.execution_options(no_parameters=True).exec_driver_sql(statement)


def _to_duckdb(
    connection: Any,
    address: Address,
    table: str,
    frames: Iterable[pl.DataFrame],
    types: Mapping[str, pl.DataType],
    there: list[tuple[str, str]] | None,
) -> None:
    """Nobody else reads a DuckDB file while it is written."""
    name, tally = table_name(table, "duckdb"), _Tally()

    def run(statement: str, frame: pl.DataFrame) -> None:
        connection.register("frame_to_write", frame.to_arrow())
        connection.execute(f"{statement} SELECT * FROM frame_to_write")  # noqa: S608 - the name is quoted
        connection.unregister("frame_to_write")

    if there is not None:
        connection.execute(f"DROP TABLE {name}")
    run(f"CREATE TABLE {name} AS", pl.DataFrame(schema=types))
    for frame in frames:
        tally.add(frame)
        run(f"INSERT INTO {name}", frame)
    _require_same(connection, address, table, types, tally)
