# SPDX-License-Identifier: Apache-2.0
"""Reading DuckDB files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from anonfit.errors import DataError, MissingPackage
from anonfit.tables.databases import DatabaseSource, quoted

if TYPE_CHECKING:
    import polars as pl

__all__ = ["DuckDBReader"]


class DuckDBReader:
    """Reads a DuckDB file, which is not changed."""

    def schema(self, source: DatabaseSource) -> dict[str, pl.DataType]:
        """The columns and their types, as a few rows show them."""
        import polars as pl

        with _connected(source) as connection:
            found = pl.from_arrow(connection.sql(f"SELECT * FROM ({source.select}) LIMIT 0").to_arrow_table())  # noqa: S608
            assert isinstance(found, pl.DataFrame)
            return dict(found.schema)

    def frames(self, source: DatabaseSource, schema: Mapping[str, pl.DataType], rows: int) -> Iterator[pl.DataFrame]:
        """Batches of Arrow."""
        import polars as pl

        names = ", ".join(quoted(name) for name in schema)
        yield pl.DataFrame(schema=schema)
        with _connected(source) as connection:
            for batch in connection.sql(f"SELECT {names} FROM ({source.select})").to_arrow_reader(rows):  # noqa: S608
                found = pl.from_arrow(batch)
                assert isinstance(found, pl.DataFrame)
                yield found.cast(pl.Schema(schema))


@contextmanager
def _connected(source: DatabaseSource) -> Iterator[Any]:
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
        # What DuckDB says may hold values.
        raise DataError(
            f"{source.name} cannot be read ({type(error).__name__}); look at its name and at the query."
        ) from None
