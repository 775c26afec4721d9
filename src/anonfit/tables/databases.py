# SPDX-License-Identifier: Apache-2.0
"""Tables and queries of databases as sources: DuckDB and SQLite files and PostgreSQL servers. Rows come in batches. An
address may hold a password, so it is shown nowhere: not in errors, not in logs, not in what is written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import polars as pl

from anonfit.errors import DataError, MissingPackage, ReleaseError, SpecError, refuse_patterns

KINDS = ("duckdb", "sqlite", "postgresql")
SQLITE_TYPES = ("integer", "real", "text", "blob")
BATCH = 1 << 17
"""Rows of a batch."""


def is_database(source: object) -> bool:
    """Whether a source is the address of a database."""
    return isinstance(source, str) and source.startswith(tuple(f"{kind}:" for kind in KINDS))


def shown_address(source: str) -> str:
    """An address without anything secret: the kind of database, and of a file its name."""
    kind = source.partition(":")[0]
    return f"{kind}:…" if kind == "postgresql" else f"{kind}:{Path(source.partition(':')[2]).name}"


@dataclass(frozen=True, slots=True)
class DatabaseSource:
    """A table or a query of a database."""

    kind: str
    address: str = field(repr=False)  # of a file its path, of a server the whole URL
    table: str | None
    query: str | None = field(default=None, repr=False)

    @property
    def select(self) -> str:
        """The query that gives all rows."""
        if self.query is not None:
            return self.query.strip().rstrip(";") + "\n"  # it may end with a comment
        assert self.table is not None
        name = ".".join(quoted(part) for part in self.table.split("."))
        return f"SELECT * FROM {name}"  # noqa: S608 - the name is quoted

    @property
    def name(self) -> str:
        """How errors call it."""
        return f"the {self.kind} table '{self.table}'" if self.table is not None else f"the {self.kind} query"

    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(self.schema())

    def schema(self) -> dict[str, pl.DataType]:
        """Its columns and their types."""
        types = _reader(self).schema(self)
        refuse_patterns(types)
        return types

    def frames(self, names: tuple[str, ...] | None = None) -> Iterator[pl.DataFrame]:
        """Its rows in batches, of all columns or of some; at least one batch, if only an empty one."""
        schema = self.schema()
        wanted = {name: dtype for name, dtype in schema.items() if names is None or name in names}
        yield pl.DataFrame(schema=wanted)
        yield from _reader(self).frames(self, wanted)


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def _reader(source: DatabaseSource) -> PostgreSQLReader | SQLiteReader | DuckDBReader:
    """What knows the columns of a source, and reads some of them in batches."""
    if source.kind == "postgresql":
        return PostgreSQLReader()
    return SQLiteReader() if source.kind == "sqlite" else DuckDBReader()


def _frame(rows: Sequence[Sequence[Any]], schema: Mapping[str, pl.DataType], *, strict: bool) -> pl.DataFrame:
    """Rows of a driver, at least one, as a frame."""
    columns = zip(schema.items(), zip(*rows, strict=True), strict=True)
    return pl.DataFrame([pl.Series(name, values, dtype=dtype, strict=strict) for (name, dtype), values in columns])


def _unreadable(source: DatabaseSource, error: Exception) -> DataError:
    """What a database says of a failure may hold values, so only its kind is passed on."""
    return DataError(f"{source.name} cannot be read ({type(error).__name__}); look at its name and at the query.")


def database_source(source: str, *, table: str | None, query: str | None, folder: Path) -> DatabaseSource:
    """The source that an address names; a relative path starts at a folder."""
    if (table is None) == (query is None):
        raise SpecError(
            ["data.source is a database, so one of data.table and data.query says which rows of it are meant."]
        )
    kind, _, rest = source.partition(":")
    if kind == "postgresql":
        if not urlsplit(source).hostname and "host=" not in source:
            raise SpecError(["data.source: the address of a server is such as postgresql://user@host/database."])
        return DatabaseSource(kind, source, table, query)
    path = folder / rest.removeprefix("//")
    if not path.is_file():
        raise DataError(f"{path.name}: there is no such {kind} file.")
    return DatabaseSource(kind, str(path), table, query)


class DuckDBReader:
    """Reads a DuckDB file, which is not changed."""

    def schema(self, source: DatabaseSource) -> dict[str, pl.DataType]:
        """The columns and their types, as a few rows show them."""
        with _duckdb(source) as connection:
            head = pl.from_arrow(connection.sql(f"SELECT * FROM ({source.select}) LIMIT 0").to_arrow_table())  # noqa: S608
            assert isinstance(head, pl.DataFrame)
            return dict(head.schema)

    def frames(self, source: DatabaseSource, schema: Mapping[str, pl.DataType]) -> Iterator[pl.DataFrame]:
        """Batches of Arrow."""
        names = ", ".join(quoted(name) for name in schema)
        with _duckdb(source) as connection:
            for batch in connection.sql(f"SELECT {names} FROM ({source.select})").to_arrow_reader(BATCH):  # noqa: S608
                frame = pl.from_arrow(batch)
                assert isinstance(frame, pl.DataFrame)
                yield frame.cast(pl.Schema(schema))


@contextmanager
def _duckdb(source: DatabaseSource) -> Iterator[Any]:
    try:
        import duckdb
        import pyarrow as pa  # noqa: F401 - rows come as Arrow
    except ModuleNotFoundError as error:
        raise MissingPackage(str(error.name), "duckdb", "A DuckDB file") from None
    try:
        with duckdb.connect(source.address, read_only=True) as connection:
            connection.execute("SET autoinstall_known_extensions = false")
            # A query is of this file: one that names others (read_csv, read_text, glob, ATTACH) is refused.
            connection.execute("SET enable_external_access = false")
            connection.execute("SET enable_progress_bar = false")  # it would go to standard output
            yield connection
    except duckdb.Error as error:
        raise _unreadable(source, error) from None


def _types() -> dict[str, pl.DataType]:
    """The types of a server, and what their values become; those of other types become texts."""
    return {
        "bool": pl.Boolean(),
        "int2": pl.Int64(),
        "int4": pl.Int64(),
        "int8": pl.Int64(),
        "float4": pl.Float64(),
        "float8": pl.Float64(),
        "numeric": pl.Float64(),
        "date": pl.Date(),
        "timestamp": pl.Datetime("us"),
        "timestamptz": pl.Datetime("us", "UTC"),
    }


class PostgreSQLReader:
    """Reads in one transaction that cannot write."""

    def schema(self, source: DatabaseSource) -> dict[str, pl.DataType]:
        """The columns and their types."""
        with _postgresql(source) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM ({source.select}) AS rows LIMIT 0")  # noqa: S608 - the user's own query
            known = _types()
            registry = connection.adapters.types
            types = {}
            for column in cursor.description:
                info = registry.get(column.type_code)
                types[column.name] = known.get(info.name if info else "", pl.String())
            return types

    def frames(self, source: DatabaseSource, schema: Mapping[str, pl.DataType]) -> Iterator[pl.DataFrame]:
        """Batches of a cursor that the server keeps."""
        casts = {pl.String(): "text", pl.Float64(): "float8", pl.Int64(): "int8"}
        chosen = ", ".join(
            f"{quoted(name)}::{casts[dtype]}" if dtype in casts else quoted(name) for name, dtype in schema.items()
        )
        with _postgresql(source) as connection, connection.cursor(name="anonfit") as cursor:
            cursor.execute(f"SELECT {chosen} FROM ({source.select}) AS rows")  # noqa: S608
            while batch := cursor.fetchmany(BATCH):
                yield _frame(batch, schema, strict=True)


@contextmanager
def _postgresql(source: DatabaseSource) -> Iterator[Any]:
    try:
        import psycopg
    except ModuleNotFoundError:
        raise MissingPackage("psycopg", "postgresql", "A PostgreSQL server") from None
    try:
        with psycopg.connect(source.address, autocommit=False) as connection:
            connection.read_only = True
            connection.execute("SET TIME ZONE 'UTC'")
            yield connection
    except psycopg.OperationalError as error:
        raise DataError(
            f"{source.name} cannot be read ({type(error).__name__}): the server cannot be reached, or does not know "
            "the user or the database."
        ) from None
    except psycopg.Error as error:
        raise _unreadable(source, error) from None


class SQLiteReader:
    """Reads a SQLite file, which is not changed."""

    def schema(self, source: DatabaseSource) -> dict[str, pl.DataType]:
        """The columns: whole numbers, numbers or texts, whatever all known values of a column are."""
        types: dict[str, pl.DataType] = {}
        with _sqlite(source) as connection:
            cursor = connection.execute(f"SELECT * FROM ({source.select}) LIMIT 0")  # noqa: S608 - the user's own query
            names = [entry[0] for entry in cursor.description]
            if not names:
                return types
            kinds = ", ".join(f"max(typeof({quoted(name)}) = '{kind}')" for name in names for kind in SQLITE_TYPES)
            flags = connection.execute(f"SELECT {kinds} FROM ({source.select})").fetchone()  # noqa: S608
        for place, name in enumerate(names):
            held = {kind for kind, flag in zip(SQLITE_TYPES, flags[len(SQLITE_TYPES) * place :], strict=False) if flag}
            if "blob" in held:
                raise DataError(f"{source.name}: the column '{name}' has binary values; leave it out by a query.")
            if "text" in held or not held:
                types[name] = pl.String()
            else:
                types[name] = pl.Float64() if "real" in held else pl.Int64()
        return types

    def frames(self, source: DatabaseSource, schema: Mapping[str, pl.DataType]) -> Iterator[pl.DataFrame]:
        """Batches of rows."""
        texts = [name for name, dtype in schema.items() if dtype == pl.String]
        chosen = ", ".join(
            f"CAST({quoted(name)} AS TEXT) AS {quoted(name)}" if name in texts else quoted(name) for name in schema
        )
        with _sqlite(source) as connection:
            cursor = connection.execute(f"SELECT {chosen} FROM ({source.select})")  # noqa: S608
            while batch := cursor.fetchmany(BATCH):
                yield _frame(batch, schema, strict=False)


@contextmanager
def _sqlite(source: DatabaseSource) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"{Path(source.address).absolute().as_uri()}?mode=ro", uri=True)
    try:
        yield connection
    except sqlite3.Error as error:
        raise _unreadable(source, error) from None
    finally:
        connection.close()


def _sql_type(dtype: pl.DataType) -> str:
    """The type of a column in any of the databases."""
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
