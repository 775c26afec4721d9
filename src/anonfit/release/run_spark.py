# SPDX-License-Identifier: Apache-2.0
"""The engine spark for a spec: the source's rows as they are held there, and what will be asked of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.engines.spark.sources import HeldRows, from_files, hold
from anonfit.release.bind import (
    asked_raw,
    complete_names,
    read_rows,
    without_missing,
    workload_of,
)
from anonfit.spec.model import Spec
from anonfit.tables.frames import is_spark, spark_types
from anonfit.tables.ingesting import ingest, scan_of
from anonfit.tables.reading import ReadOptions
from anonfit.tables.schema import Role, Schema

if TYPE_CHECKING:
    import polars as pl

    from anonfit.engines.spark.engine import SparkEngine

__all__ = ["rows_here", "rows_that_stay", "spark_engine"]


def rows_that_stay(source: Any, options: ReadOptions, folder: Path) -> Any:
    """A source that is a DataFrame of Spark as rows that stay the same; any other as it is."""
    if not is_spark(source):
        return source
    types = {name: dtype for name, dtype in spark_types(source).items() if name in (options.columns or ())}
    texts = dict.fromkeys(options.clean, options.missing)
    return hold(source, types, texts, folder / "source")


def rows_here(spec: Spec, schema: Schema, source: Any) -> pl.DataFrame:
    """The rows of a source that could be released, in memory: what the audit compares with."""
    if isinstance(source, HeldRows):
        return without_missing(spec, schema, source.scan().collect())
    return read_rows(spec, schema, source)


@contextmanager
def spark_engine(
    spec: Spec, schema: Schema, source: Any, options: ReadOptions, folder: Path
) -> Iterator[tuple[SparkEngine, pl.LazyFrame]]:
    """An engine with the source's rows that the missing policy lets through, and these rows some at a time."""
    from anonfit.engines.spark.engine import SparkEngine

    dropping = complete_names(spec, schema) if spec.data.missing_policy == "drop" else []
    rows, types, scan = _rows(source, options, dropping, folder)
    count = next((column.name for column in schema.of_role(Role.COUNT)), None)
    engine = SparkEngine(
        rows,
        types,
        without_missing=dropping,
        asked=_asked(spec, schema, count),
        raw=[column.name for column in asked_raw(schema)],
        persons=count,
    )
    try:
        yield engine, scan
    finally:
        engine.close()


def _rows(
    source: Any, options: ReadOptions, dropping: list[str], folder: Path
) -> tuple[Any, Mapping[str, pl.DataType], pl.LazyFrame]:
    """The source as a DataFrame of Spark in the form in which columns are held, their types, and its rows."""
    from anonfit.engines.spark.session import session

    if isinstance(source, HeldRows):
        return source.rows(), source.types, source.scan().drop_nulls(dropping) if dropping else source.scan()
    spark = session()
    found = ingest(source, options, folder)
    texts = {} if found.cleaned else dict.fromkeys(options.clean, options.missing)
    scan = scan_of(found, missing_texts=texts, without_missing=dropping)
    return from_files(spark, found.files, found.schema, texts), found.schema, scan


def _asked(spec: Spec, schema: Schema, count: str | None) -> list[tuple[str, ...]]:
    """The sets of columns whose values will be asked for: each column beside how many persons a row stands for."""
    workload = workload_of(spec)
    names = complete_names(spec, schema)
    names += [one.column for one in spec.privacy.diversity]
    names += [one.column for one in spec.capped_targets]
    names += [one.column for one in workload.used_targets]
    names += [one.each for one in workload.selections if one.each is not None]
    if workload.sample_weight is not None:
        names.append(workload.sample_weight)
    if count is None:
        return [(name,) for name in dict.fromkeys(names)]
    pairs = [(name, count) for name in dict.fromkeys(names) if name != count]
    singles = [(name,) for name in dict.fromkeys(names)] if spec.data.missing_policy == "error" else []
    return [(count,), *pairs, *singles]
