# SPDX-License-Identifier: Apache-2.0
"""Reading SQLite files. A column of SQLite may hold values of any type, so its type is what all its values are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from anonfit.errors import DataError
from anonfit.tables.databases import DatabaseSource, quoted

if TYPE_CHECKING:
    import polars as pl

__all__ = ["SQLiteReader"]


class SQLiteReader:
    """Reads a SQLite file, which is not changed."""

    def schema(self, source: DatabaseSource) -> dict[str, pl.DataType]:
        """The columns: whole numbers, numbers or texts, whatever all known values of a column are."""
        import polars as pl

        found: dict[str, pl.DataType] = {}
        with _connected(source) as connection:
            cursor = connection.execute(f"SELECT * FROM ({source.select}) LIMIT 0")  # noqa: S608 - the user's own query
            names = [entry[0] for entry in cursor.description]
            if not names:
                return found
            kinds = ", ".join(f"max(typeof({quoted(name)}) = '{kind}')" for name in names for kind in KINDS)
            flags = connection.execute(f"SELECT {kinds} FROM ({source.select})").fetchone()  # noqa: S608
        for place, name in enumerate(names):
            held = {kind for kind, flag in zip(KINDS, flags[len(KINDS) * place :], strict=False) if flag}
            if "blob" in held:
                raise DataError(f"{source.name}: the column '{name}' has binary values; leave it out by a query.")
            if "text" in held or not held:
                found[name] = pl.String()
            else:
                found[name] = pl.Float64() if "real" in held else pl.Int64()
        return found

    def frames(self, source: DatabaseSource, schema: Mapping[str, pl.DataType], rows: int) -> Iterator[pl.DataFrame]:
        """Batches of rows."""
        import polars as pl

        texts = [name for name, dtype in schema.items() if dtype == pl.String]
        chosen = ", ".join(
            f"CAST({quoted(name)} AS TEXT) AS {quoted(name)}" if name in texts else quoted(name) for name in schema
        )
        yield pl.DataFrame(schema=schema)
        with _connected(source) as connection:
            cursor = connection.execute(f"SELECT {chosen} FROM ({source.select})")  # noqa: S608
            while batch := cursor.fetchmany(rows):
                columns = zip(*batch, strict=True)
                yield pl.DataFrame(
                    [
                        pl.Series(name, values, dtype=dtype, strict=False)
                        for (name, dtype), values in zip(schema.items(), columns, strict=True)
                    ]
                )


KINDS = ("integer", "real", "text", "blob")


@contextmanager
def _connected(source: DatabaseSource) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"{Path(source.address).absolute().as_uri()}?mode=ro", uri=True)
    try:
        yield connection
    except sqlite3.Error as error:
        raise DataError(
            f"{source.name} cannot be read ({type(error).__name__}); look at its name and at the query."
        ) from None
    finally:
        connection.close()
