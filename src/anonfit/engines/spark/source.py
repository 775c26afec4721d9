# SPDX-License-Identifier: Apache-2.0
"""The Spark session that is used, with Spark's failures as errors that say what to do; and sources as DataFrames of
Spark whose columns are in the form in which they are held.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from anonfit.engines.contract import Opening
from anonfit.engines.spark.rows import (
    CHANGED,
    CHUNK,
    NOT_SHARED,
    Missing,
    Work,
    held_name,
    in_shared_folder,
    is_storable,
    load,
    one_after_other,
    read,
    restored,
    spark_type,
    stored_type,
)
from anonfit.errors import EngineError, MissingPackage, SpecError
from anonfit.tables.frames import is_spark, spark_types
from anonfit.tables.ingesting import ingest, scan_of
from anonfit.tables.reading import ReadOptions

if TYPE_CHECKING:
    from anonfit.engines.spark.engine import SparkEngine


Result = TypeVar("Result")

LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Settings of a session that we start on this machine alone, where nothing else is said: nobody else can reach it."""
PRIVATE = 0o077
"""Files that Java and the executors it starts write hold rows: others may not read them."""


@contextmanager
def quiet() -> Iterator[None]:
    """Without Spark's words about versions of pandas, of which nothing is used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, message="PySpark does not yet fully support pandas")
        yield


@quiet()
def session() -> Any:
    """The session of this process; if there is none, one by Spark's own settings, without any on this machine."""
    try:
        import pyarrow as pa  # noqa: F401 - rows travel as Arrow
        from pyspark import SparkConf
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise MissingPackage(str(error.name), "spark", "The engine spark") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if "SPARK_REMOTE" in os.environ:
        return result_of(lambda: SparkSession.builder.getOrCreate())
    # Rows are counted by Python processes: they must be of the Python that runs here.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _start_java()
    known = SparkConf()  # Spark's own settings, which Java reads
    builder = SparkSession.builder.appName("anonfit")
    if known.get("spark.master", "local[*]").startswith("local"):
        for name, value in LOCAL.items():
            if not known.contains(name):
                builder = builder.config(name, value)
    with _own_interrupts():
        return result_of(builder.getOrCreate)


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep what Ctrl-C does. Spark's answer to it asks Java in the middle of another question, and prints all of it."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


def _start_java() -> None:
    """Start Java. What it says goes nowhere: words about the machine, and what executors say of rows."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    words = {"stdout": DEVNULL, "stderr": DEVNULL, "umask": PRIVATE}
    try:
        gateway: Any = launch_gateway(popen_kwargs=words)  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)
    except Exception as error:
        raise EngineError(
            f"engine spark: Java did not start ({type(error).__name__}); install Java 17 or newer, or set JAVA_HOME."
        ) from None


REASONS = (
    ("No space left", "a disk is full; free some, or set spark.local.dir or engine.spill to another place"),
    (
        r"OutOfMemoryError|spark\.driver\.maxResultSize",
        "there is too little memory; give more by spark.driver.memory and spark.executor.memory",
    ),
    ("No module named 'anonfit'", "the package anonfit is not installed where the executors run"),
    (
        "No module named",
        "a package that anonfit needs is not installed where the executors run; Spark's log names it",
    ),
    (
        "PYTHON_VERSION_MISMATCH|different version in worker",
        "the executors run another version of Python; set PYSPARK_PYTHON",
    ),
    (NOT_SHARED, f"{NOT_SHARED}; set engine.spill to a folder that the driver and all executors share"),
    (CHANGED, f"{CHANGED}; read it while nobody writes to it"),
)
"""What is in the text of a failure, and what it then says."""


def result_of(work: Callable[[], Result]) -> Result:
    """What some work gives. An error says only its kind: Spark's own texts may hold values of records and addresses."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with quiet():
            return work()
    except (PySparkException, Py4JError, OSError) as error:
        text = str(error)
        why = next((why for mark, why in REASONS if re.search(mark, text)), None)
        why = why or f"a job failed ({_kind(error)}); Spark's log says more"
        raise EngineError(f"engine spark: {why}.") from None


def _kind(error: BaseException) -> str:
    """The kind of an error, with Spark's own word for it where there is one."""
    condition = getattr(error, "getCondition", None)
    word = condition() if condition is not None else None
    return f"{type(error).__name__} {word}" if word else type(error).__name__


PARTITION = 1 << 18
"""Rows that a partition has, roughly, as long as Spark's setting of partitions allows for so many."""


@contextmanager
def opened(source: Any, options: ReadOptions, asked: Opening, folder: Path) -> Iterator[SparkEngine]:
    """The source's rows in Spark; a DataFrame is written once, since it may give other rows the next time."""
    from anonfit.engines.spark.engine import SparkEngine

    texts = dict.fromkeys(options.clean, options.missing)
    if is_spark(source):
        if options.missing_in:
            raise SpecError(
                [
                    f"columns.{name}.missing is not for DataFrames of Spark; mend it there."
                    for name in options.missing_in
                ]
            )
        types = {name: dtype for name, dtype in spark_types(source).items() if name in (options.columns or ())}
        held = hold(source, types, texts, folder / "source")
        rows, scan = held.rows(), held.scan()
        scan = scan.drop_nulls(list(asked.dropping)) if asked.dropping else scan
    else:
        spark, files = session(), ingest(source, options, folder)
        types, texts = dict(files.schema), {} if files.cleaned else texts
        rows = from_files(spark, files.files, types, texts)
        scan = scan_of(files, missing_texts=texts, without_missing=asked.dropping)
    engine = SparkEngine(
        rows, types, without_missing=asked.dropping, asked=asked.asked, raw=asked.raw, persons=asked.count, scan=scan
    )
    try:
        yield engine
    finally:
        engine.close()


def storable(schema: Mapping[str, pl.DataType]) -> tuple[str, ...]:
    """The columns that can be held, in the order in which they are."""
    return tuple(name for name, dtype in schema.items() if is_storable(dtype))


def _words(schema: Mapping[str, pl.DataType], names: Sequence[str]) -> str:
    """The columns as they are held, as Spark says it."""
    return ", ".join(f"{held_name(place)} {spark_type(stored_type(schema[name]))}" for place, name in enumerate(names))


@dataclass(frozen=True, slots=True)
class Loading:
    """Rows that are still to be loaded: a DataFrame of Spark, and the work that makes of it rows as they are held."""

    frame: Any
    work: Work
    words: str

    def rows(self) -> Any:
        """The rows."""
        with quiet():
            return self.frame.mapInArrow(self.work, self.words)

    def mapped(self, work: Any, words: str) -> Any:
        """What some work makes of the rows."""
        with quiet():
            return self.frame.mapInArrow(partial(one_after_other, self.work, work), words)


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows that Spark wrote to Parquet files in the form in which they are held, and the types that they have."""

    spark: Any
    files: tuple[Path, ...]
    types: Mapping[str, pl.DataType]

    def rows(self) -> Loading:
        """The rows, to be loaded again."""
        names = tuple(held_name(place) for place in range(len(storable(self.types))))
        return _read(self.spark, self.files, names, {}, _words(self.types, storable(self.types)))

    def scan(self) -> pl.LazyFrame:
        """The rows as they were, read here some at a time."""
        from polars.io.plugins import register_io_source

        held = {name: held_name(place) for place, name in enumerate(storable(self.types))}

        def frames(
            with_columns: list[str] | None, predicate: Any, n_rows: int | None, _batch_size: int | None
        ) -> Iterator[pl.DataFrame]:
            names = list(held) if with_columns is None else with_columns
            left = n_rows
            for frame in self._frames([held[name] for name in names]):
                rows = pl.DataFrame([restored(frame[held[name]], self.types[name]).alias(name) for name in names])
                rows = rows if predicate is None else rows.filter(predicate)
                rows = rows if left is None else rows.head(left)
                yield rows
                if left is not None and (left := left - len(rows)) <= 0:
                    return

        return register_io_source(frames, schema=pl.Schema({name: self.types[name] for name in held}))

    def _frames(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Some columns as they are held."""
        for path in self.files:
            rows = pl.scan_parquet(path, glob=False).select(names)
            for first in range(0, rows.select(pl.len()).collect().item(), CHUNK):
                yield rows.slice(first, CHUNK).collect()


@quiet()
def hold(source: Any, types: Mapping[str, pl.DataType], missing: Missing, folder: Path) -> StoredRows:
    """Write the columns of a DataFrame of Spark to a folder once: what makes it may give other rows the next time."""
    loading = _from_spark(source, types, missing)
    rows = replace(loading, work=partial(in_shared_folder, loading.work, seen_mark(folder))).rows()
    result_of(lambda: rows.write.mode("error").option("compression", "zstd").parquet(folder.absolute().as_uri()))
    return StoredRows(source.sparkSession, tuple(parts_of(folder)), types)


def seen_mark(folder: Path) -> str:
    """A new file beside a folder that executors will write to, by which they know that it is the driver's."""
    mark = folder.absolute().with_name(f"seen-{secrets.token_hex(8)}")
    mark.touch(mode=0o600)
    return str(mark)


def parts_of(folder: Path) -> list[Path]:
    """The parts that executors wrote to a folder, in their order; it may be one that is not seen here."""

    def number(path: Path) -> tuple[int, str]:
        match = re.match(r"part-(\d+)", path.name)
        return int(match[1]) if match else 0, path.name

    parts = sorted(folder.glob("part-*.parquet"), key=number) if folder.is_dir() else []
    if not (folder / "_SUCCESS").exists() and not parts:
        raise EngineError(
            f"engine spark: what the executors wrote to {folder.parent.parent} is not seen on this machine; set "
            "engine.spill to a folder that the driver and all executors share."
        )
    return parts


@quiet()
def read_address(address: str) -> Any:
    """The Parquet files at an address that Spark knows, such as s3a://bucket/patients."""
    place = address.partition("://")[2]
    if ":" in place.partition("/")[0].rpartition("@")[0] or "?" in place:
        raise SpecError(
            ["data.source: an address with a password or key is not taken; give these by Spark's settings."]
        )
    spark = session()
    return result_of(lambda: spark.read.parquet(address))


def _from_spark(source: Any, schema: Mapping[str, pl.DataType], missing: Missing) -> Loading:
    """The columns of a schema of a DataFrame of Spark."""
    names = storable(schema)
    # Columns are renamed by their places: names may have dots, or differ in case only.
    place_of = {name: f"column{place}" for place, name in enumerate(source.columns)}
    frame = source.toDF(*place_of.values()).select(*(place_of[name] for name in names))
    texts = {place_of[name]: tuple(texts) for name, texts in missing.items() if name in place_of}
    return Loading(frame, partial(load, texts, tuple(place_of[name] for name in names)), _words(schema, names))


def from_files(spark: Any, files: Sequence[Path], schema: Mapping[str, pl.DataType], missing: Missing) -> Loading:
    """The columns of a schema of Parquet files, which executors must see, too."""
    names = storable(schema)
    return _read(spark, files, names, missing, _words(schema, names))


@quiet()
def _read(spark: Any, files: Sequence[Path], names: tuple[str, ...], missing: Missing, words: str) -> Loading:
    tasks = [(str(path.absolute()), first, rows) for path in files for first, rows in _runs(path)]
    numbers = spark.range(0, len(tasks), 1, max(1, len(tasks)))
    return Loading(numbers, partial(read, dict(missing), names, tasks), words)


def _runs(path: Path) -> list[tuple[int, int]]:
    """Runs of whole row groups of a file, each large enough for a partition: first row and how many."""
    from pyarrow import parquet

    metadata = parquet.read_metadata(path)
    runs: list[tuple[int, int]] = []
    first = rows = 0
    for group in range(metadata.num_row_groups):
        rows += metadata.row_group(group).num_rows
        if rows >= PARTITION:
            runs.append((first, rows))
            first, rows = first + rows, 0
    return [*runs, (first, rows)] if rows else runs
