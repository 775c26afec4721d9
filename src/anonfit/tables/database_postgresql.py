# SPDX-License-Identifier: Apache-2.0
"""Reading from PostgreSQL servers. Nothing that a server says is passed on: it may hold values, or where it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from anonfit.errors import DataError, MissingPackage
from anonfit.tables.databases import DatabaseSource, quoted

if TYPE_CHECKING:
    import polars as pl

__all__ = ["PostgreSQLReader"]


def _types() -> dict[str, pl.DataType]:
    """The types of a server, and what their values become; those of other types become texts."""
    import polars as pl

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
        import polars as pl

        with _connected(source) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM ({source.select}) AS rows LIMIT 0")  # noqa: S608 - the user's own query
            known = _types()
            registry = connection.adapters.types
            found = {}
            for column in cursor.description:
                info = registry.get(column.type_code)
                found[column.name] = known.get(info.name if info else "", pl.String())
            return found

    def frames(self, source: DatabaseSource, schema: Mapping[str, pl.DataType], rows: int) -> Iterator[pl.DataFrame]:
        """Batches of a cursor that the server keeps."""
        import polars as pl

        casts = {pl.String(): "text", pl.Float64(): "float8", pl.Int64(): "int8"}
        chosen = ", ".join(
            f"{quoted(name)}::{casts[dtype]}" if dtype in casts else quoted(name) for name, dtype in schema.items()
        )
        yield pl.DataFrame(schema=schema)
        with _connected(source) as connection, connection.cursor(name="anonfit") as cursor:
            cursor.execute(f"SELECT {chosen} FROM ({source.select}) AS rows")  # noqa: S608
            while batch := cursor.fetchmany(rows):
                columns = zip(*batch, strict=True)
                yield pl.DataFrame(
                    [
                        pl.Series(name, values, dtype=dtype)
                        for (name, dtype), values in zip(schema.items(), columns, strict=True)
                    ]
                )


@contextmanager
def _connected(source: DatabaseSource) -> Iterator[Any]:
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
        raise DataError(
            f"{source.name} cannot be read ({type(error).__name__}); look at its name and at the query."
        ) from None
