# SPDX-License-Identifier: Apache-2.0
"""Rows in a DuckDB database of our own, which keeps to a limit of memory and spills the rest to a folder."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.engines.contract import Counted, CountRequest, Derive, Draw, Field, Move, Placing, Written
from anonfit.engines.duckdb.count import count_query, drawn
from anonfit.engines.duckdb.route import NODE, node_list, routed_node
from anonfit.engines.duckdb.source import Connection, clean, file_rows
from anonfit.engines.duckdb.write import BATCH, KeptColumn, write_sorted
from anonfit.engines.memory.write import in_batches, plain, released
from anonfit.errors import TooManyGroups

TYPES = {"u1": "UTINYINT", "u2": "USMALLINT", "u4": "UINTEGER", "i4": "INTEGER", "i8": "BIGINT"}
"""The types of columns that hold such whole numbers."""
ACTIVE, NEXT, ASIDE = "active_rows", "next_rows", "rows_aside"
FEW_FIELDS = 3
"""Groups by so many fields may be as many as the rows."""
GROUP_TIMES = 3
"""How often groups are held while they are counted and used."""
FEW_TEXTS = 1 << 16
"""Texts of a raw column that are kept as their ranks: these are faster to copy and to sort."""
LEAST_SHARE = 8
"""Nodes with less than one in so many rows are counted alone."""
TAKEN_ROWS = 1 << 22
"""Rows that are handed over in one go."""


class DuckDBEngine:
    """The rows of Parquet files."""

    name = "duckdb"

    def __init__(
        self,
        connection: Connection,
        files: Sequence[Path],
        schema: Mapping[str, pl.DataType],
        *,
        missing_texts: Mapping[str, Sequence[str]] | None = None,
        without_missing: Sequence[str] = (),
        count: str | None = None,
        scan: pl.LazyFrame | None = None,
    ) -> None:
        """Rows of files with these columns, which `scan` reads, too. In columns of `missing_texts` some texts mean a
        missing value; rows that have no value of a column of `without_missing` are left out; `count` is the column of
        how many persons a row stands for.
        """
        self.connection = connection
        self.scan: Any = scan
        self.schema = {name: plain(dtype) for name, dtype in schema.items()}
        self.released = {name: released(dtype) for name, dtype in schema.items()}
        # Columns are named by their places: for DuckDB names that differ in case only are the same.
        self.held = {name: f"held{place}" for place, name in enumerate(self.schema)}
        places, rows = file_rows(files)
        columns = ", ".join(
            f"{clean(places[name], dtype, (missing_texts or {}).get(name, ()))} AS {self.held[name]}"
            for name, dtype in self.schema.items()
        )
        source = f"SELECT {columns} FROM {rows}"  # noqa: S608 - our names
        self.read = int(connection.value(f"SELECT count(*) FROM {rows}"))  # noqa: S608
        gaps = " OR ".join(f"{self.held[name]} IS NULL" for name in without_missing) or "false"
        connection.run(f"CREATE VIEW all_rows AS {source}")
        connection.run(f"CREATE VIEW source_rows AS SELECT * FROM all_rows WHERE NOT ({gaps})")  # noqa: S608
        self.rows = int(connection.value("SELECT count(*) FROM source_rows")) if without_missing else self.read
        self.persons_left_out = self.read - self.rows
        if count is not None and without_missing:
            persons = f"coalesce(sum(TRY_CAST({self.held[count]} AS BIGINT)), 0)"
            self.persons_left_out = int(connection.value(f"SELECT {persons} FROM all_rows WHERE {gaps}"))  # noqa: S608
        self.columns: list[str] = []
        self.dictionaries: dict[str, pl.Series] = {}
        self.kept: list[str] = []
        self.active = {0: self.rows}

    def missing(self, names: Sequence[str]) -> dict[str, int]:
        """How many values are missing in columns that have missing values."""
        if not names:
            return {}
        counts = ", ".join(f"count(*) - count({self.held[name]})" for name in names)
        gaps = self.connection.row(f"SELECT {counts} FROM source_rows")  # noqa: S608
        return {name: int(count) for name, count in zip(names, gaps, strict=True) if count}

    def distinct_shares(self, names: Sequence[str]) -> dict[str, float]:
        """The share of different values among each column's known ones, 0 where it is far from 1."""
        shares = dict.fromkeys(names, 0.0)
        for name in names:
            column = self.held[name]
            query = f"SELECT count({column}), approx_count_distinct({column}) FROM source_rows"  # noqa: S608
            known, roughly = self.connection.row(query)
            if known > 1 and roughly >= 0.75 * known:
                exact = self.connection.value(f"SELECT count(DISTINCT {column}) FROM source_rows")  # noqa: S608
                shares[name] = float(exact) / float(known)
        return shares

    def distinct(self, names: Sequence[str]) -> tuple[pl.DataFrame, NDArray[np.int64]]:
        """The different combinations of some columns' values, missing ones too, and how many rows have each."""
        keys = ", ".join(self.held[name] for name in names)
        query = f"SELECT {keys}, count(*)::BIGINT AS {COUNT} FROM source_rows GROUP BY {keys}"  # noqa: S608
        frame = self.connection.frame(query)
        counts = frame[COUNT].to_numpy().astype(np.int64)
        named = frame.drop(COUNT).rename({self.held[name]: name for name in names})
        return named.cast({name: self.schema[name] for name in names}), counts

    def code(self, fields: Sequence[Field], kept: Sequence[str]) -> None:
        """Turn every row into its fields by looking its values up, and keep raw values; few texts are kept as ranks."""
        self.dictionaries = {name: texts for name in kept if (texts := self._dictionary(name)) is not None}
        places = {name: f"raw{place}" for place, name in enumerate(kept)}
        lookups = [*fields, *(_rank_field(places[name], texts) for name, texts in self.dictionaries.items())]
        chosen, joins = [], []
        for number, field in enumerate(lookups):
            table = f"lookup{number}"
            held = {name: f"value{place}" for place, name in enumerate(field.values.columns)}
            self.connection.store(table, field.values.rename(held).with_columns(pl.Series("code", field.codes)))
            same = " AND ".join(
                f"source_rows.{self.held[name]} IS NOT DISTINCT FROM {table}.{value}" for name, value in held.items()
            )
            joins.append(f" JOIN {table} ON {same}")
            chosen.append(f"{table}.code::{TYPES[field.codes.dtype.str[1:]]} AS {field.name}")
        chosen += [
            f"source_rows.{self.held[name]} AS {place}"
            for name, place in places.items()
            if name not in self.dictionaries
        ]
        query = f"SELECT {', '.join(chosen)}, 0::UINTEGER AS {NODE} FROM source_rows{''.join(joins)}"  # noqa: S608
        self.connection.run(f"CREATE TABLE {ACTIVE} AS {query}")
        self.connection.run(f"CREATE TABLE {ASIDE} AS SELECT * FROM {ACTIVE} LIMIT 0")  # noqa: S608
        for number in range(len(lookups)):
            self.connection.run(f"DROP TABLE lookup{number}")
        found_rows = int(self.connection.value(f"SELECT count(*) FROM {ACTIVE}"))  # noqa: S608
        if found_rows != self.rows:
            raise AssertionError(f"{self.rows - found_rows} rows have values that were not there before")
        self.columns = [*(field.name for field in fields), *places.values()]
        self.kept = list(kept)

    def _dictionary(self, name: str) -> pl.Series | None:
        """The different texts of a column in rising order, missing first, if they are few."""
        if self.schema[name] != pl.String:
            return None
        roughly = self.connection.value(f"SELECT approx_count_distinct({self.held[name]}) FROM source_rows")  # noqa: S608
        if roughly > FEW_TEXTS // 2:
            return None
        values = self.distinct([name])[0][name]
        return values.sort(nulls_last=False) if len(values) <= FEW_TEXTS else None

    def sample(self, draw: Draw, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """The fields of the rows that are drawn."""
        query = f"SELECT {', '.join(names)} FROM {ACTIVE} WHERE {drawn(draw)}"  # noqa: S608 - our names
        return dict(zip(names, map(np.asarray, self.connection.columns(query)), strict=True))

    def derive(self, names: Sequence[str], work: Derive) -> None:
        """Write the rows anew, some at a time, with their further fields."""
        import pyarrow as pa

        held = [*self.columns, NODE]
        batches = self.connection.batches(f"SELECT {', '.join(held)} FROM {ACTIVE}", BATCH)  # noqa: S608 - our names
        added: list[str] = []

        def wider() -> Iterator[Any]:
            for batch in batches:
                further = work({name: batch.column(name).to_numpy(zero_copy_only=False) for name in names})
                added[:] = further
                yield pa.RecordBatch.from_arrays(
                    [*batch.columns, *map(pa.array, further.values())], names=[*held, *further]
                )

        self.connection.store(NEXT, wider())
        self._go_on()
        self.columns += added
        self.connection.run(f"DROP TABLE {ASIDE}")
        self.connection.run(f"CREATE TABLE {ASIDE} AS SELECT * FROM {ACTIVE} LIMIT 0")  # noqa: S608

    def _go_on(self) -> None:
        """Let the next rows be the active ones."""
        self.connection.run(f"DROP TABLE {ACTIVE}")
        self.connection.run(f"ALTER TABLE {NEXT} RENAME TO {ACTIVE}")

    def count(self, requests: Sequence[CountRequest]) -> list[Counted]:
        """Count a batch of nodes, one grouped scan a request."""
        results = []
        for request in requests:
            exactly = set(request.nodes) == set(self.active)
            every = exactly or self._are_many(request)
            if len(request.by) >= FEW_FIELDS:
                self._refuse_many(request, every=every)
            groups = self.connection.frame(count_query(request, ACTIVE, every=every))
            if every and not exactly:
                groups = groups.filter(pl.col(NODE).is_in(request.nodes))
            results.append(Counted.of(groups, request))
        return results

    def _are_many(self, request: CountRequest) -> bool:
        """Whether the nodes of a request have so many of the rows that counting all is faster than leaving some out."""
        rows = sum(self.active.get(node, 0) for node in request.nodes)
        return len(request.by) < FEW_FIELDS and LEAST_SHARE * rows > sum(self.active.values())

    def _refuse_many(self, request: CountRequest, *, every: bool) -> None:
        """Refuse to count groups that do not fit in memory."""
        memory, size = self.connection.memory, 8 * (1 + len(request.by) + len(request.sums)) * GROUP_TIMES
        rows = sum(self.active.values()) if every else sum(self.active.get(node, 0) for node in request.nodes)
        if memory is None or size * request.most_groups(rows) <= memory:
            return
        groups = int(self.connection.value(f"SELECT count(*) FROM ({count_query(request, ACTIVE, every=every)})"))  # noqa: S608
        needed = size * groups
        if needed > memory:
            raise TooManyGroups(
                f"engine duckdb: {groups} groups of equal rows need {needed / 2**30:.1f} GiB of memory; give more "
                "by --memory or engine.memory."
            )

    def route(self, moves: Sequence[Move], finished: Collection[int]) -> dict[int, int]:
        """Write the rows that are still to be counted anew, with their new nodes."""
        everything = ", ".join(self.columns)
        if finished:
            self.connection.run(
                f"INSERT INTO {ASIDE} BY NAME SELECT {everything}, {NODE} FROM {ACTIVE} "  # noqa: S608
                f"WHERE {node_list(finished)}"
            )
        if not moves:
            self.connection.run(f"DROP TABLE {ACTIVE}")
            self.active = {}
            return {}
        moved = {move.node for move in moves} & set(self.active)
        self.connection.run(
            f"CREATE TABLE {NEXT} AS SELECT {everything}, ({routed_node(moves, moved)})::UINTEGER AS {NODE} "  # noqa: S608
            f"FROM {ACTIVE} WHERE {node_list(moved)}"
        )
        self._go_on()
        nodes, sizes = self.connection.columns(f"SELECT {NODE}, count(*) FROM {ACTIVE} GROUP BY {NODE}")  # noqa: S608
        self.active = dict(zip(nodes.tolist(), sizes.tolist(), strict=True))
        return dict(self.active)

    def take(self, nodes: Mapping[int, int], names: Sequence[str]) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
        """Fetch the rows of several nodes in one scan, and part them here."""
        for batch in in_batches(nodes, TAKEN_ROWS):
            query = f"SELECT {NODE}, {', '.join(names)} FROM {ASIDE} WHERE {node_list(batch)}"  # noqa: S608
            of_row, *columns = self.connection.columns(query)
            order = np.argsort(of_row, kind="stable")
            edges = np.searchsorted(of_row[order], [*batch, batch[-1] + 1]).tolist()
            for node, (first, last) in zip(batch, pairwise(edges), strict=True):
                chosen = order[first:last]
                yield node, {name: np.asarray(column)[chosen] for name, column in zip(names, columns, strict=True)}

    def write(self, placing: Placing, names: Sequence[str], path: Path, kind: str) -> Written:
        """Sort the rows in the database, and write them as they come out of it."""
        kept = {name: KeptColumn(self.released[name], self.dictionaries.get(name)) for name in self.kept}
        return write_sorted(self.connection, ASIDE, placing, names, kept, path, kind)


COUNT = "rows_of_a_value"


def _rank_field(name: str, values: pl.Series) -> Field:
    """The field of texts' ranks."""
    return Field(name, values.to_frame(), np.arange(len(values)).astype(np.uint16 if len(values) > 256 else np.uint8))
