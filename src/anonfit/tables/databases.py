# SPDX-License-Identifier: Apache-2.0
"""Tables and queries of databases as sources. SQLAlchemy knows how to reach SQLite, PostgreSQL, MySQL, MariaDB and SQL
Server and how each writes names; a DuckDB file is opened by DuckDB itself. Rows come in batches: of PostgreSQL by COPY,
of DuckDB files as Arrow, of others as their drivers fetch them.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from anonfit.errors import AnonfitError, DataError, MissingPackage, SpecError, listed, refuse_patterns
from anonfit.tables.sources import KINDS, SERVERS, Address, is_database, read_address, require_closed, require_file

if TYPE_CHECKING:
    from sqlalchemy import Connection, Dialect

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
    dialect: Dialect = dialects.get(kind, postgresql).dialect(paramstyle="named")  # percent signs stay single
    return dialect


def quoted(name: str, kind: str = "postgresql") -> str:
    """A name as a kind of database writes it."""
    if kind in ("postgresql", "duckdb", "sqlite"):
        return '"' + name.replace('"', '""') + '"'
    return dialect_of(kind).identifier_preparer.quote_identifier(name)


def table_name(table: str, kind: str) -> str:
    """A table's name, perhaps with that of its schema."""
    return ".".join(quoted(part, kind) for part in table.split("."))


@contextmanager
def connected(address: Address, *, to_write: bool, begin: str = "BEGIN") -> Iterator[Any]:
    """A connection in one transaction: of SQLAlchemy, or of DuckDB itself. `begin` is how one of SQLite begins: at once
    as the only one that writes, or when something is written.
    """
    if address.kind == "duckdb":
        with _duckdb(address, to_write=to_write) as connection:
            yield connection
        return
    try:
        import sqlalchemy as sa

        __import__(DRIVERS[address.kind])
    except ModuleNotFoundError as error:
        raise MissingPackage(str(error.name), "databases", f"A database of the kind {address.kind}") from None
    options = _engine_options(address, to_write=to_write)
    engine = sa.create_engine(poolclass=sa.NullPool, hide_parameters=True, **options)
    with engine.connect() as connection:
        if address.kind in ("mysql", "mariadb") and not to_write:
            connection.exec_driver_sql("SET SESSION TRANSACTION READ ONLY")
            connection.commit()
        with connection.begin():
            if address.kind == "sqlite":  # the driver would leave the making of tables out of a transaction
                connection.exec_driver_sql(begin)
            yield connection


def _engine_options(address: Address, *, to_write: bool) -> dict[str, Any]:
    """How SQLAlchemy reaches a database; the drivers of SQLite and PostgreSQL read addresses themselves."""
    import sqlalchemy as sa

    if address.kind == "sqlite":
        place = f"{Path(address.place).absolute().as_uri()}?mode={'rwc' if to_write else 'ro'}"
        return {"url": "sqlite://", "creator": lambda: sqlite3.connect(place, uri=True, isolation_level=None)}
    if address.kind != "postgresql":
        kind = "mssql" if address.kind == "mssql" else "mysql"
        return {"url": sa.make_url(address.place).set(drivername=f"{kind}+{DRIVERS[kind]}")}

    def connect() -> Any:
        import psycopg

        connection = psycopg.connect(address.place, client_encoding="UTF8", options="-c TimeZone=UTC -c DateStyle=ISO")
        connection.read_only = not to_write
        return connection

    return {"url": "postgresql+psycopg://", "creator": connect}


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


BATCH = 1 << 17  # rows of a batch
BYTES = 1 << 25  # bytes of a batch that PostgreSQL copies


@dataclass(frozen=True, slots=True)
class DatabaseSource:
    """A table or a query of a database."""

    address: Address
    table: str | None
    query: str | None = field(default=None, repr=False)
    _known: dict[str, pl.DataType] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def kind(self) -> str:
        """The kind of database."""
        return self.address.kind

    @property
    def select(self) -> str:
        """The query that gives all rows."""
        if self.query is not None:
            return self.query.strip().rstrip(";") + "\n"  # it may end with a comment
        assert self.table is not None
        return f"SELECT * FROM {table_name(self.table, self.kind)}"  # noqa: S608 - the name is quoted

    @property
    def name(self) -> str:
        """How errors call it."""
        return f"the {self.kind} table '{self.table}'" if self.table is not None else f"the {self.kind} query"

    def names(self) -> tuple[str, ...]:
        """The names of its columns; no row is read."""
        with _reading(self) as connection:
            names = tuple(entry[0] for entry in _head(self, connection).description)
        refuse_patterns(names)
        return names

    def schema(self) -> dict[str, pl.DataType]:
        """Its columns and their types, found once."""
        if not self._known:
            with _reading(self) as connection:
                types = {"duckdb": _types_of_duckdb, "sqlite": _types_of_sqlite}.get(self.kind, _types_of_server)
                self._known.update(types(self, connection))
            refuse_patterns(self._known)
        return dict(self._known)

    def frames(self, names: tuple[str, ...] | None = None) -> Iterator[pl.DataFrame]:
        """Its rows in batches, of all columns or of some; at least one batch, if only an empty one."""
        wanted = {name: dtype for name, dtype in self.schema().items() if names is None or name in names}
        yield pl.DataFrame(schema=wanted)
        with _reading(self) as connection:
            yield from rows_of(self, connection, wanted)


def database_source(source: str, *, table: str | None, query: str | None, folder: Path) -> DatabaseSource:
    """The source that an address names, alone or with a table or query; a relative path starts at a folder."""
    address = read_address(source, folder=folder)
    given = [name for name in (address.table, table, query) if name is not None]
    if len(given) > 1:
        raise SpecError(["data.source is a database: one of data.table and data.query, or #table after it, not two."])
    if not given:
        says = "data.source is a database, so one of data.table and data.query, or #table after the address, says"
        raise SpecError([f"{says} which rows of it are meant{_tables(address)}."])
    require_file(address)
    return DatabaseSource(address, table or address.table, query)


def named_source(data: Any, *, query: str | None = None) -> Any:
    """What data given by a caller is: a text that is the address of a database names a table of it, other texts are
    paths, and all else is a frame.
    """
    if is_database(data):
        return database_source(data, table=None, query=query, folder=Path())
    if query is not None:
        raise SpecError(["a query is of a database, and the data is none."])
    if isinstance(data, str) and "://" in data:  # it is not repeated: it may hold a password
        known = f"those of databases are known ({', '.join(KINDS)})"
        raise SpecError([f"of addresses, {known}; name a file, or download it."])
    return Path(data) if isinstance(data, str) else data


def table_names(address: Address) -> list[str]:
    """The names of a database's tables and views, in their order."""
    with _reading(DatabaseSource(address, "")) as connection:
        if address.kind == "duckdb":
            return sorted(row[0] for row in connection.execute("SHOW TABLES").fetchall())
        import sqlalchemy as sa

        found = sa.inspect(connection)
        return sorted([*found.get_table_names(), *found.get_view_names()])


def _tables(address: Address) -> str:
    """The names of a database's tables, for an error; of one that cannot be reached, none."""
    try:
        names = table_names(address)
    except AnonfitError:
        return ""
    return f"; its tables are {listed(names)}" if names else "; it has no tables"


@contextmanager
def _reading(source: DatabaseSource) -> Iterator[Any]:
    """A connection that cannot write; of a failure only its kind is told."""
    try:
        with connected(source.address, to_write=False) as connection:
            yield connection
    except AnonfitError:
        raise
    except Exception as error:
        if not (of_driver(error) or isinstance(error, OverflowError | TypeError)):
            raise
        kind = type(getattr(error, "orig", None) or error).__name__
        why = "; look at its name and at the query"
        if kind == "OperationalError" and source.kind in SERVERS:
            why = ": the server cannot be reached, or does not know the user or the database"
        raise DataError(f"{source.name} cannot be read ({kind}){why}.") from None


# --- types ------------------------------------------------------------------------------------------------------

CASTS: dict[str, dict[pl.DataType, str]] = {
    "sqlite": {pl.String(): "TEXT"},
    "mysql": {pl.String(): "CHAR", pl.Float64(): "DOUBLE"},
    "mariadb": {pl.String(): "CHAR", pl.Float64(): "DOUBLE"},
    "mssql": {pl.String(): "nvarchar(max)", pl.Float64(): "float", pl.Int64(): "bigint"},
}
"""What values of each type are asked for as; those of other types come as they are."""
MYSQL_BINARY = 63  # the number of the character set of bytes


def _from(source: DatabaseSource) -> str:
    return f"({source.select}) AS anonfit_rows"


def _head(source: DatabaseSource, connection: Any) -> Any:
    """A cursor that knows the columns of a source."""
    query = f"SELECT * FROM {_from(source)} WHERE 1 = 0"  # noqa: S608 - the user's own query
    if source.kind == "postgresql":
        # What is prepared is one statement: a second one could end the transaction that only reads.
        return connection.connection.cursor().execute(query, prepare=True)
    return connection.execute(query) if source.kind == "duckdb" else _run(connection, query).cursor


def _run(connection: Connection, query: str) -> Any:
    """A statement as it stands: a percent sign in it is one."""
    return connection.execution_options(no_parameters=True).exec_driver_sql(query)


def _types_of_duckdb(source: DatabaseSource, connection: Any) -> dict[str, pl.DataType]:
    return dict(connection.sql(f"SELECT * FROM {_from(source)} LIMIT 0").pl().schema)  # noqa: S608


def _types_of_sqlite(source: DatabaseSource, connection: Any) -> dict[str, pl.DataType]:
    """Whole numbers, numbers or texts, whatever all known values of a column are. One scan finds it, by one figure for
    each column, however many they are and whatever is missing in them: the last of the kinds that it has.
    """
    names = [entry[0] for entry in _head(source, connection).description]
    last = (f"max(instr('irtb', substr(typeof({quoted(name)}), 1, 1)))" for name in names)  # 0: null
    query = f"SELECT {', '.join(last)} FROM {_from(source)}"  # noqa: S608
    found = _run(connection, query).fetchone() if names else ()
    of_kind = (pl.String(), pl.Int64(), pl.Float64(), pl.String())
    types: dict[str, pl.DataType] = {}
    for name, kind in zip(names, found, strict=True):
        if kind == len(of_kind):
            raise _binary(source, name)
        types[name] = of_kind[kind or 0]  # of no row: nothing
    return types


def _binary(source: DatabaseSource, name: str) -> DataError:
    return DataError(f"{source.name}: the column '{name}' has binary values; leave it out by a query.")


def _types_of_server(source: DatabaseSource, connection: Connection) -> dict[str, pl.DataType]:
    """The types that a server tells of the columns; values of a type that is not known here become texts."""
    types: dict[str, pl.DataType] = {}
    for name, type_name in _type_names(source, connection):
        is_bit = (source.kind, type_name) == ("mssql", "bit")
        if type_name == "bytea" or (source.kind != "postgresql" and type_name in _BINARY and not is_bit):
            raise _binary(source, name)
        types[name] = pl.Boolean() if is_bit else _KNOWN.get(type_name, pl.String())
    return types


_NAMES: dict[pl.DataType, str] = {
    pl.Boolean(): "bool",
    pl.Int64(): "int2 int4 int8 tinyint smallint int bigint tiny short int24 long longlong year",
    pl.Float64(): "float4 float8 numeric decimal newdecimal real float double smallmoney",
    pl.Date(): "date",
    pl.Datetime("us"): "timestamp datetime datetime2 smalldatetime",
    pl.Datetime("us", "UTC"): "timestamptz",
}
_KNOWN = {name: dtype for dtype, names in _NAMES.items() for name in names.split()}
"""Types by the names that servers give them."""
_BINARY = ("blob", "binary", "varbinary", "image", "bit")


def _type_names(source: DatabaseSource, connection: Connection) -> list[tuple[str, str]]:
    """The names of a query's columns and of their types."""
    if source.kind == "mssql":
        require_closed(source.select)
        described = "SELECT name, system_type_name FROM sys.dm_exec_describe_first_result_set(N'{}', NULL, 0)"
        rows = _run(connection, described.format(source.select.replace("'", "''"))).fetchall()
        return [(name, str(type_name).partition("(")[0]) for name, type_name in rows]
    head = _head(source, connection)
    if source.kind == "postgresql":
        registry = connection.connection.dbapi_connection.adapters.types  # type: ignore[union-attr]
        return [(column.name, getattr(registry.get(column.type_code), "name", "")) for column in head.description]
    from pymysql.constants import FIELD_TYPE as codes  # noqa: N811 - names of numbers

    names = {getattr(codes, name): name.lower() for name in dir(codes) if name.isupper()}
    texts = (codes.TINY_BLOB, codes.BLOB, codes.MEDIUM_BLOB, codes.LONG_BLOB, codes.VAR_STRING, codes.STRING)
    names |= {**dict.fromkeys(texts, "text"), codes.GEOMETRY: "binary"}
    return [  # only the fields of a result tell texts from bytes
        (
            column[0],
            "binary" if field.type_code in texts and field.charsetnr == MYSQL_BINARY else names.get(column[1], ""),
        )
        for column, field in zip(head.description, head._result.fields, strict=True)
    ]


# --- rows -------------------------------------------------------------------------------------------------------


def rows_of(source: DatabaseSource, connection: Any, schema: Mapping[str, pl.DataType]) -> Iterator[pl.DataFrame]:
    """The rows of some columns, as values of these types, in batches."""
    read = {"duckdb": _arrow, "postgresql": _copied}.get(source.kind, _fetched)
    return read(source, connection, schema)


def _chosen(source: DatabaseSource, schema: Mapping[str, pl.DataType]) -> str:
    """The query of some columns, as values that become those of a schema without loss."""
    casts = CASTS[source.kind]
    names = {name: quoted(name, source.kind) for name in schema}
    columns = [
        f"CAST({names[name]} AS {casts[dtype]}) AS {names[name]}" if dtype in casts else names[name]
        for name, dtype in schema.items()
    ]
    return f"SELECT {', '.join(columns)} FROM {_from(source)}"  # noqa: S608


def _fetched(
    source: DatabaseSource, connection: Connection, schema: Mapping[str, pl.DataType]
) -> Iterator[pl.DataFrame]:
    """Rows of a driver, a batch at a time."""
    streamed = connection.execution_options(stream_results=True, max_row_buffer=BATCH)
    result = _run(streamed, _chosen(source, schema))
    while rows := result.fetchmany(BATCH):
        columns = zip(schema.items(), zip(*rows, strict=True), strict=True)
        strict = source.kind != "sqlite"
        yield pl.DataFrame([pl.Series(name, values, dtype=dtype, strict=strict) for (name, dtype), values in columns])


def _arrow(source: DatabaseSource, connection: Any, schema: Mapping[str, pl.DataType]) -> Iterator[pl.DataFrame]:
    """Rows of a DuckDB file, a batch of Arrow at a time."""
    names = ", ".join(quoted(name) for name in schema)
    for batch in connection.sql(f"SELECT {names} FROM {_from(source)}").to_arrow_reader(BATCH):  # noqa: S608
        frame = pl.from_arrow(batch)
        assert isinstance(frame, pl.DataFrame)
        yield frame.cast(pl.Schema(schema))


def _copied(
    source: DatabaseSource, connection: Connection, schema: Mapping[str, pl.DataType]
) -> Iterator[pl.DataFrame]:
    """Rows that PostgreSQL copies out as CSV: dates as days, moments as microseconds, both since 1970, and a missing
    value as a word that nobody can know.
    """
    missing = secrets.token_hex(16)
    texts = ", ".join(quoted(name) for name, dtype in schema.items() if dtype == pl.String)
    options = f"FORMAT csv, NULL '{missing}'" + (f", FORCE_QUOTE ({texts})" if texts else "")
    chosen = ", ".join(f"{_copy_value(quoted(name), dtype)} AS {quoted(name)}" for name, dtype in schema.items())
    query = f"COPY (SELECT {chosen} FROM {_from(source)}) TO STDOUT ({options})"  # noqa: S608
    sent: dict[Any, pl.DataType] = {pl.Date: pl.Int32(), pl.Datetime: pl.Int64()}
    types = {name: sent.get(dtype.base_type(), dtype) for name, dtype in schema.items()}

    def frame(content: bytearray) -> pl.DataFrame:
        options: dict[str, Any] = {"schema": types, "null_values": missing, "empty_string_is_null": False}
        return pl.read_csv(bytes(content), has_header=False, **options).cast(pl.Schema(schema))

    content = bytearray()
    with connection.connection.cursor().copy(query) as copy:
        for row in copy:
            content += row
            if len(content) >= BYTES:
                yield frame(content)
                content.clear()
    if content:
        yield frame(content)


def _copy_value(name: str, dtype: pl.DataType) -> str:
    if dtype == pl.Date:
        return f"({name} - DATE '1970-01-01')"
    if isinstance(dtype, pl.Datetime):
        return f"(extract(epoch FROM {name}) * 1000000)::int8"
    casts: dict[pl.DataType, str] = {pl.Int64(): "int8", pl.Float64(): "float8"}
    return f"{name}::{casts.get(dtype, 'text')}"
