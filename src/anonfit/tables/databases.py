# SPDX-License-Identifier: Apache-2.0
"""Tables and queries of databases as sources. Rows come in batches: of PostgreSQL by COPY, of DuckDB files as Arrow, of
others as their drivers fetch them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from anonfit.errors import AnonfitError, DataError, SpecError, listed, refuse_patterns
from anonfit.tables.addresses import KINDS, SERVERS, Address, is_database, read_address, require_file
from anonfit.tables.database_connections import connected, of_driver, quoted, table_name

if TYPE_CHECKING:
    from sqlalchemy import Connection

BATCH = 1 << 17
"""Rows of a batch."""
BYTES = 1 << 25
"""Bytes of a batch that PostgreSQL copies."""
_EPOCH = "extract(epoch FROM {})"


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
    given = [one for one in (address.table, table, query) if one is not None]
    if len(given) > 1:
        raise SpecError(["data.source is a database: one of data.table and data.query, or #table after it, not two."])
    if not given:
        raise SpecError(
            [
                "data.source is a database, so one of data.table and data.query, or #table after the address, says "
                f"which rows of it are meant{_tables(address)}."
            ]
        )
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
        raise SpecError(
            [f"of addresses, those of databases are known ({', '.join(KINDS)}); name a file, or download it."]
        )
    return Path(data) if isinstance(data, str) else data


def _tables(address: Address) -> str:
    """The names of a database's tables, for an error; of one that cannot be reached, none."""
    try:
        with _reading(DatabaseSource(address, "")) as connection:
            if address.kind == "duckdb":
                names = [row[0] for row in connection.execute("SHOW TABLES").fetchall()]
            else:
                import sqlalchemy as sa

                names = sa.inspect(connection).get_table_names()
    except AnonfitError:
        return ""
    return f"; its tables are {listed(sorted(names))}" if names else "; it has no tables"


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
        unreached = kind == "OperationalError" and source.kind in SERVERS
        raise DataError(
            f"{source.name} cannot be read ({kind}): the server cannot be reached, or does not know the user or the "
            "database."
            if unreached
            else f"{source.name} cannot be read ({kind}); look at its name and at the query."
        ) from None


# --- types ------------------------------------------------------------------------------------------------------

CASTS: dict[str, dict[pl.DataType, str]] = {
    "sqlite": {pl.String(): "TEXT"},
    "mysql": {pl.String(): "CHAR", pl.Float64(): "DOUBLE"},
    "mariadb": {pl.String(): "CHAR", pl.Float64(): "DOUBLE"},
    "mssql": {pl.String(): "nvarchar(max)", pl.Float64(): "float", pl.Int64(): "bigint"},
}
"""What values of each type are asked for as; those of other types come as they are."""
MYSQL_BINARY = 63
"""The number of the character set of bytes."""
SQLITE_KINDS = ("null", "integer", "real", "text", "blob")


def _from(source: DatabaseSource) -> str:
    return f"({source.select}) AS anonfit_rows"


def _head(source: DatabaseSource, connection: Any) -> Any:
    """A cursor that knows the columns of a source."""
    query = f"SELECT * FROM {_from(source)} WHERE 1 = 0"  # noqa: S608 - the user's own query
    return connection.execute(query) if source.kind == "duckdb" else _run(connection, query).cursor


def _run(connection: Connection, query: str) -> Any:
    """A statement as it stands: a percent sign in it is one."""
    return connection.execution_options(no_parameters=True).exec_driver_sql(query)


def _types_of_duckdb(source: DatabaseSource, connection: Any) -> dict[str, pl.DataType]:
    head = pl.from_arrow(connection.sql(f"SELECT * FROM {_from(source)} LIMIT 0").to_arrow_table())  # noqa: S608
    assert isinstance(head, pl.DataFrame)
    return dict(head.schema)


def _types_of_sqlite(source: DatabaseSource, connection: Any) -> dict[str, pl.DataType]:
    """Whole numbers, numbers or texts, whatever all known values of a column are: one scan finds which there are."""
    names = [entry[0] for entry in _head(source, connection).description]
    kinds = " || ".join(f"substr(typeof({quoted(name)}), 1, 1)" for name in names)
    found = _run(connection, f"SELECT DISTINCT {kinds} FROM {_from(source)}").fetchall() if names else []  # noqa: S608
    letters = {kind[0]: kind for kind in SQLITE_KINDS}
    types: dict[str, pl.DataType] = {}
    for place, name in enumerate(names):
        held = {letters[row[0][place]] for row in found} - {"null"}
        if "blob" in held:
            raise _binary(source, name)
        if "text" in held or not held:
            types[name] = pl.String()
        else:
            types[name] = pl.Float64() if "real" in held else pl.Int64()
    return types


def _binary(source: DatabaseSource, name: str) -> DataError:
    return DataError(f"{source.name}: the column '{name}' has binary values; leave it out by a query.")


def _types_of_server(source: DatabaseSource, connection: Connection) -> dict[str, pl.DataType]:
    """The types that a server tells of the columns; values of a type that is not known here become texts."""
    types: dict[str, pl.DataType] = {}
    for name, told in _told(source, connection):
        if told in ("bytea", "blob", "binary", "varbinary", "image", "bit"):
            if (source.kind, told) == ("mssql", "bit"):
                types[name] = pl.Boolean()
                continue
            if source.kind != "postgresql" or told == "bytea":
                raise _binary(source, name)
        types[name] = _KNOWN.get(told, pl.String())
    return types


_WHOLE, _NUMBER, _MOMENT = pl.Int64(), pl.Float64(), pl.Datetime("us")
_KNOWN: dict[str, pl.DataType] = {
    "bool": pl.Boolean(),
    **dict.fromkeys(("int2", "int4", "int8", "tinyint", "smallint", "mediumint", "int", "bigint", "year"), _WHOLE),
    **dict.fromkeys(("float4", "float8", "numeric", "decimal", "real", "float", "double", "smallmoney"), _NUMBER),
    "date": pl.Date(),
    **dict.fromkeys(("timestamp", "datetime", "datetime2", "smalldatetime"), _MOMENT),
    "timestamptz": pl.Datetime("us", "UTC"),
}
"""Types by the names that servers give them."""


def _told(source: DatabaseSource, connection: Connection) -> list[tuple[str, str]]:
    """The names of a query's columns and of their types."""
    if source.kind == "mssql":
        described = "SELECT name, system_type_name FROM sys.dm_exec_describe_first_result_set(N'{}', NULL, 0)"
        rows = _run(connection, described.format(source.select.replace("'", "''"))).fetchall()
        return [(name, str(told).partition("(")[0]) for name, told in rows]
    head = _head(source, connection)
    if source.kind == "postgresql":
        registry = connection.connection.dbapi_connection.adapters.types  # type: ignore[union-attr]
        return [(column.name, getattr(registry.get(column.type_code), "name", "")) for column in head.description]
    from pymysql.constants import FIELD_TYPE as codes  # noqa: N811 - names of numbers

    names = {
        codes.TINY: "tinyint",
        codes.SHORT: "smallint",
        codes.INT24: "mediumint",
        codes.LONG: "int",
        codes.LONGLONG: "bigint",
        codes.YEAR: "year",
        codes.FLOAT: "float",
        codes.DOUBLE: "double",
        codes.DECIMAL: "decimal",
        codes.NEWDECIMAL: "decimal",
        codes.DATE: "date",
        codes.DATETIME: "datetime",
        codes.TIMESTAMP: "timestamp",
        codes.BIT: "bit",
        codes.GEOMETRY: "binary",
    }
    fields = head._result.fields  # only these tell texts from bytes
    texts = (codes.TINY_BLOB, codes.BLOB, codes.MEDIUM_BLOB, codes.LONG_BLOB, codes.VAR_STRING, codes.STRING)
    binary = [field.type_code in texts and field.charsetnr == MYSQL_BINARY for field in fields]
    return [
        (column[0], "binary" if is_binary else names.get(column[1], ""))
        for column, is_binary in zip(head.description, binary, strict=True)
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
        yield _frame(rows, schema, strict=source.kind != "sqlite")


def _frame(rows: Sequence[Sequence[Any]], schema: Mapping[str, pl.DataType], *, strict: bool) -> pl.DataFrame:
    """Rows of a driver, at least one, as a frame."""
    columns = zip(schema.items(), zip(*rows, strict=True), strict=True)
    return pl.DataFrame([pl.Series(name, values, dtype=dtype, strict=strict) for (name, dtype), values in columns])


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
    types = {name: pl.Int64() if dtype.is_temporal() else dtype for name, dtype in schema.items()}

    def frame(content: bytearray) -> pl.DataFrame:
        read = pl.read_csv(
            bytes(content), has_header=False, schema=types, null_values=missing, empty_string_is_null=False
        )
        return read.with_columns(
            pl.col(name).cast(pl.Int32).cast(dtype) if dtype == pl.Date else pl.col(name).cast(dtype)
            for name, dtype in schema.items()
            if dtype.is_temporal()
        )

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
        return f"({_EPOCH.format(name)} * 1000000)::int8"
    casts: dict[pl.DataType, str] = {pl.Int64(): "int8", pl.Float64(): "float8"}
    return f"{name}::{casts.get(dtype, 'text')}"
