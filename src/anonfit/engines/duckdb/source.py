# SPDX-License-Identifier: Apache-2.0
"""A source as DuckDB reads it: Parquet files, into which rows of other kinds are written first, in a database of our
own that keeps to its limits, and whose failures are errors that say what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from anonfit.engines.contract import Opening
from anonfit.errors import EngineError, MissingPackage
from anonfit.runtime.process import available_memory, thread_count
from anonfit.tables.ingesting import ingest, scan_of
from anonfit.tables.reading import ReadOptions

if TYPE_CHECKING:
    from anonfit.engines.duckdb.engine import DuckDBEngine


def text(value: str) -> str:
    """A text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


Result = TypeVar("Result")
AWAKE = 0.05
"""Seconds after which who waits looks for signals."""


class Connection:
    """A database in memory that spills to a folder."""

    def __init__(self, connection: Any, folder: Path, memory: int | None, worker: ThreadPoolExecutor) -> None:
        self.duckdb, self.folder, self.memory, self._worker = connection, folder, memory, worker

    def _awaited(self, work: Callable[[], Result], connection: Any) -> Result:
        """What some work gives. DuckDB looks for signals now and then only, and makes one error of all that these
        raise; so the main thread, which hears them, waits for another one to do the work.
        """
        if current_thread() is not main_thread():
            return work()
        future = self._worker.submit(work)
        try:
            # Not without end: polars hears interrupts, too, in a way that does not wake who waits.
            while not wait([future], timeout=AWAKE).done:
                pass
        except BaseException:
            while not future.done():
                connection.interrupt()
                wait([future], timeout=AWAKE)
            raise
        return future.result()

    def _result_of(self, work: Callable[[], Result], connection: Any = None) -> Result:
        """What some work gives. An error says only its kind: DuckDB's own texts may hold values of records."""
        import duckdb

        try:
            return self._awaited(work, connection or self.duckdb)
        except duckdb.OutOfMemoryException as error:
            # A full folder gives the same kind of error as too little memory.
            if "max_temp_directory_size" in str(error) or "No space left" in str(error):
                raise self._full() from None
            limit = "the default" if self.memory is None else f"{self.memory / 2**30:.2f} GiB"
            raise EngineError(
                f"engine duckdb: {limit} of memory is too little for this table; give more by --memory or "
                "engine.memory."
            ) from None
        except (duckdb.IOException, duckdb.InternalException, duckdb.FatalException, OSError) as error:
            if "No space left" in str(error) or getattr(error, "errno", None) == 28:
                raise self._full() from None
            raise EngineError(
                f"engine duckdb: reading or spilling failed ({type(error).__name__}); look whether the source and the "
                f"spill folder {self.folder.parent.parent} can be read and written."
            ) from None
        except duckdb.Error as error:
            raise EngineError(
                f"engine duckdb: a query failed ({type(error).__name__}); the source may be damaged."
            ) from None

    def _full(self) -> EngineError:
        return EngineError(
            f"engine duckdb: the disk of the spill folder {self.folder.parent.parent} is full; free some, or name "
            "another place by engine.spill."
        )

    def run(self, query: str) -> None:
        """Run a statement."""
        self._result_of(lambda: self.duckdb.execute(query))

    def row(self, query: str) -> tuple[Any, ...]:
        """The one row of a result."""
        row: tuple[Any, ...] = self._result_of(lambda: self.duckdb.execute(query).fetchall())[0]
        return row

    def value(self, query: str) -> Any:
        """The one value of a result."""
        return self.row(query)[0]

    def columns(self, query: str) -> list[Any]:
        """The columns of a result as arrays."""
        return list(self._result_of(lambda: self.duckdb.execute(query).fetchnumpy()).values())

    def frame(self, query: str) -> pl.DataFrame:
        """A result as a frame."""
        frame = pl.from_arrow(self._result_of(lambda: self.duckdb.sql(query).to_arrow_table()))
        assert isinstance(frame, pl.DataFrame)
        return frame

    def batches(self, query: str, rows: int) -> Iterator[Any]:
        """A result in batches of Arrow, none of which is made before it is asked for."""
        cursor = self.duckdb.cursor()
        reader = self._result_of(lambda: cursor.sql(query).to_arrow_reader(rows), cursor)
        while True:
            batch = self._result_of(lambda: next(reader, None), cursor)
            if batch is None:
                return
            yield batch

    def store(self, table: str, rows: pl.DataFrame | Iterator[Any]) -> None:
        """A frame, or batches of Arrow, at least one, as a table; no batch is made before it is stored."""
        import pyarrow as pa

        if isinstance(rows, pl.DataFrame):
            content: Any = rows.to_arrow()
        else:
            first = next(rows)
            content = pa.RecordBatchReader.from_batches(first.schema, chain([first], rows))
        self.duckdb.register("rows_to_store", content)
        try:
            self.run(f"CREATE TABLE {table} AS SELECT * FROM rows_to_store")  # noqa: S608 - our name
        finally:
            self.duckdb.unregister("rows_to_store")


@contextmanager
def connect(folder: Path, *, memory: int | None = None, threads: int = 1) -> Iterator[Connection]:
    """A new database that spills to a folder and keeps to so many bytes of memory."""
    try:
        import duckdb
        import pyarrow as pa  # noqa: F401 - results come as Arrow
    except ModuleNotFoundError as error:
        raise MissingPackage(str(error.name), "duckdb", "The engine duckdb") from None
    connection = duckdb.connect(":memory:")
    worker = ThreadPoolExecutor(1, "anonfit-duckdb")
    try:
        settings = {
            "temp_directory": text(str(folder)),
            "threads": threads,
            "preserve_insertion_order": "false",
            "perfect_ht_threshold": 20,
            "autoinstall_known_extensions": "false",
            "enable_progress_bar": "false",  # it would go to standard output
        }
        for name, value in (settings | ({} if memory is None else {"memory_limit": f"'{memory}B'"})).items():
            connection.execute(f"SET {name} = {value}")
        yield Connection(connection, folder, memory, worker)
    finally:
        connection.interrupt()
        worker.shutdown()
        connection.close()


LEAST_MEMORY = 256 * 2**20
"""What DuckDB is given at least, if nothing is said."""


@contextmanager
def opened(source: Any, options: ReadOptions, asked: Opening, folder: Path) -> Iterator[DuckDBEngine]:
    """The source's rows in a database of our own."""
    from anonfit.engines.duckdb.engine import DuckDBEngine

    memory = asked.memory or max(available_memory() // 2, LEAST_MEMORY)
    with connect(folder / "duckdb", memory=memory, threads=thread_count(asked.threads)) as connection:
        files = ingest(source, options, folder)
        texts = {} if files.cleaned else dict.fromkeys(options.clean, options.missing)
        yield DuckDBEngine(
            connection,
            files.files,
            files.schema,
            missing_texts=texts,
            without_missing=asked.dropping,
            count=asked.count,
            scan=scan_of(files, missing_texts=texts, without_missing=asked.dropping),
        )


def file_rows(files: Sequence[Path]) -> tuple[dict[str, str], str]:
    """The columns of files by names of our own, and the rows of the files under these names. Folders such as `age=7`
    say nothing about rows.
    """
    places = {name: f"column{place}" for place, name in enumerate(pl.read_parquet_schema(files[0]))}
    paths = ", ".join(text(str(path)) for path in files)
    return places, f"read_parquet([{paths}], hive_partitioning = false) AS file({', '.join(places.values())})"


def clean(column: str, dtype: pl.DataType, missing: Sequence[str]) -> str:
    """A source column in which nothing but NULL is missing."""
    if isinstance(dtype, pl.String) and missing:
        return f"CASE WHEN {column} IN ({', '.join(text(word) for word in missing)}) THEN NULL ELSE {column} END"
    if dtype.is_float():
        return f"CASE WHEN isnan({column}) THEN NULL ELSE {column} END"
    return column
