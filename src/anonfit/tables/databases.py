# SPDX-License-Identifier: Apache-2.0
"""Tables and queries of databases as sources: DuckDB and SQLite files and PostgreSQL servers. Rows come in batches. An
address may hold a password, so it is shown nowhere: not in errors, not in logs, not in what is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from anonfit.errors import DataError, SpecError, refuse_patterns

if TYPE_CHECKING:
    import polars as pl

__all__ = ["DatabaseSource", "database_source", "is_database", "shown_address"]

KINDS = ("duckdb", "sqlite", "postgresql")
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
        found = _reader(self).schema(self)
        refuse_patterns(found)
        return found

    def frames(self, names: tuple[str, ...] | None = None) -> Iterator[pl.DataFrame]:
        """Its rows in batches, of all columns or of some; at least one batch, if only an empty one."""
        schema = self.schema()
        wanted = [name for name in schema if names is None or name in names]
        yield from _reader(self).frames(self, {name: schema[name] for name in wanted}, BATCH)


class Reader(Protocol):
    """Reads one kind of database."""

    def schema(self, source: DatabaseSource) -> dict[str, pl.DataType]:
        """The columns of a source and their types."""

    def frames(self, source: DatabaseSource, schema: Mapping[str, pl.DataType], rows: int) -> Iterator[pl.DataFrame]:
        """Some columns of a source, in batches of so many rows; at least one."""


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def _reader(source: DatabaseSource) -> Reader:
    if source.kind == "postgresql":
        from anonfit.tables.database_postgresql import PostgreSQLReader

        return PostgreSQLReader()
    if source.kind == "sqlite":
        from anonfit.tables.database_sqlite import SQLiteReader

        return SQLiteReader()
    from anonfit.tables.database_duckdb import DuckDBReader

    return DuckDBReader()


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
    path = Path(rest.removeprefix("//")) if rest.startswith("///") or not rest.startswith("//") else Path(rest[2:])
    path = folder / path
    if not path.is_file():
        raise DataError(f"{path.name}: there is no such {kind} file.")
    return DatabaseSource(kind, str(path), table, query)
