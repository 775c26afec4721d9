# SPDX-License-Identifier: Apache-2.0
"""From a spec to a table that may be released where rows do not live in memory: the same steps as in the pipeline, each
done by an engine.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.outside import AnonymizedOutside, anonymize_outside, anonymize_top_down_outside
from anonfit.algorithms.support import ONLY_MEMORY
from anonfit.algorithms.trees.outside import anonymize_by_tree_outside
from anonfit.engines.fitting import COMFORTABLE, needed_memory
from anonfit.engines.levels.growing import HAND_OVER
from anonfit.engines.sinking import check_writable
from anonfit.engines.spark.sources import PARTITION
from anonfit.engines.spilling import spill_folder
from anonfit.errors import DataError, SpecError
from anonfit.release.bind import (
    NEARLY_DISTINCT,
    asked_raw,
    check_bounds,
    complete_names,
    demands_of,
    missing_refused,
    nearly_distinct,
    not_plain,
    reading_of,
    refining_of,
    released_names,
    start_recoding,
    tree_of,
    workload_of,
)
from anonfit.release.outside import placing_of
from anonfit.release.outside_log import with_log_outside
from anonfit.release.result import Later, Made, RowCounts, raw_batches, within_limit
from anonfit.release.run_spark import rows_here, rows_that_stay, spark_engine
from anonfit.runtime.progress import Stage, Stopping, silent, unstoppable
from anonfit.runtime.threads import available_memory, thread_count
from anonfit.spec.model import Spec
from anonfit.tables.frames import is_spark, rebuilt
from anonfit.tables.ingesting import ingest, scan_of
from anonfit.tables.reading import ReadOptions
from anonfit.tables.schema import Role, Schema

if TYPE_CHECKING:
    import polars as pl

    from anonfit.algorithms.mondrian import SelectionAnswers
    from anonfit.engines.contract import Written
    from anonfit.engines.duckdb.connection import Connection
    from anonfit.engines.duckdb.engine import DuckDBEngine
    from anonfit.engines.spark.engine import SparkEngine
    from anonfit.workload.selections import AskedSelections

__all__ = ["REASONS", "engine_for", "make_outside", "opened", "refuse_only_memory", "spill_place"]


LEAST_MEMORY = 256 * 2**20
"""What an engine is given at least, if nothing is said."""


MAY_NOT_FIT = "the table may not fit in memory, but "
SPARK, KNOWN, FITS, NO_DUCKDB, LARGE = (
    "the table is a DataFrame of Spark",
    "the table is in memory already, or its size is not known",
    "the table fits in memory",
    f"{MAY_NOT_FIT}the package duckdb is not installed",
    "the table does not fit in memory with ease",
)
ONLY_HERE = {choice.name: f"{choice.asked} needs the engine 'memory'" for choice in ONLY_MEMORY}
REASONS = (SPARK, KNOWN, FITS, NO_DUCKDB, LARGE, *(f"{MAY_NOT_FIT}{fault}" for fault in ONLY_HERE.values()))
"""Why an engine was taken, in words: all that a report may say."""


def engine_for(spec: Spec, source: Any) -> tuple[str, str | None]:
    """The engine that a spec asks for, or the one that fits the source, and why."""
    if spec.engine.name != "auto":
        return spec.engine.name, None
    if is_spark(source):
        return "spark", SPARK
    needed = needed_memory(source, [name for name in spec.columns if spec.columns[name].role != Role.IDENTIFIER])
    if needed is None:
        return "memory", KNOWN
    if needed <= COMFORTABLE * (spec.engine.memory or available_memory()):
        return "memory", FITS
    if find_spec("duckdb") is None or find_spec("pyarrow") is None:
        return "memory", NO_DUCKDB
    if faults := _not_outside(spec):
        return "memory", f"{MAY_NOT_FIT}{faults[0]}"
    return "duckdb", LARGE


def _not_outside(spec: Spec) -> list[str]:
    """What a spec asks that only the in-memory engine does."""
    workload = workload_of(spec)
    asked = {
        "entity": bool(spec.of_role(Role.ENTITY)),
        "denoise": workload.denoise and bool(workload.used_targets),
        "models": any(target.model is not None for target in workload.used_targets),
        "observed": spec.output.regions == "observed",
        "original": spec.output.order == "original",
        "explore": spec.method.objective.explores,
    }
    return [fault for name, fault in ONLY_HERE.items() if asked[name]]


def refuse_only_memory(spec: Spec, engine: str | None = None) -> None:
    """Refuse a spec for an engine, if none is given the one that it names, which cannot do what it asks."""
    name = engine or spec.engine.name
    if name not in ("auto", "memory") and (faults := _not_outside(spec)):
        raise SpecError([f"engine.name = '{name}': {fault}." for fault in faults])
    if name not in ("auto", "memory") and spec.engine.sample is not None and not spec.method.capabilities.splits:
        raise SpecError([f"engine.sample is not for method.algorithm = '{spec.method.algorithm}'; leave it out."])


def make_outside(
    spec: Spec,
    source: Any,
    *,
    engine: str,
    reason: str | None = None,
    threads: int | None = None,
    stage: Stage = silent,
    stopping: Stopping = unstoppable,
) -> Made:
    """Anonymize a source by an engine that does not hold its rows in memory; `stopping` says whether refining is to
    stop.
    """
    from anonfit.release.warmup import prepare

    refuse_only_memory(spec, engine)
    schema, options = reading_of(spec, source)
    check_bounds(spec, schema)
    prepare(stage, models=spec.privacy.has_models, refining=spec.method.capabilities.refines, ahead=True)
    stack = ExitStack()
    with stack:
        folder = stack.enter_context(spill_folder(spill_place(spec)))
        stage("Reading")
        source = rows_that_stay(source, options, folder) if engine == "spark" else source
        with opened(engine, spec, schema, source, options, folder, threads) as (rows_of, left_out, scan):
            _check_raw(rows_of, spec, schema)
            spec, asked = with_log_outside(spec, schema, rows_of, scan, stage)
            result, written = _grown(rows_of, spec, schema, folder, threads, stage, stopping)
        rows = within_limit(spec, RowCounts(rows_of.read, rows_of.read - rows_of.rows, 0, dropped_persons=left_out))
        made = _made(spec, schema, source, result, written, rows, rows_of.name, reason, scan)
        made = replace(made, asked=asked)
        if result.selections is not None:
            stage("Answering selections")
            made = replace(made, answers=_answers(made, result.selections))
        # The written table stays until what was made of it is gone.
        return replace(made, discard=weakref.finalize(written, stack.pop_all().close))


def _grown(
    engine: DuckDBEngine | SparkEngine,
    spec: Spec,
    schema: Schema,
    folder: Path,
    threads: int | None,
    stage: Stage,
    stopping: Stopping,
) -> tuple[AnonymizedOutside, Written]:
    """The recoding of an engine's rows, and the released table as a file."""
    names = released_names(schema)
    kept = [name for name in names if name not in {column.name for column in schema.quasi_identifiers}]
    asked: dict[str, Any] = {
        "demands": demands_of(spec),
        "workload": workload_of(spec),
        "cut_points": spec.method.cut_points,
        "kept": kept,
        "threads": threads,
        "stage": stage,
    }
    refining, tree = refining_of(spec), tree_of(spec)
    if tree is not None:
        result = anonymize_by_tree_outside(engine, schema, tree, kept=kept, stage=stage)
    elif refining is None:
        # In Spark, nodes as large as partitions, so that all executors have some to finish.
        hand_over = spec.engine.hand_over or (PARTITION if engine.name == "spark" else HAND_OVER)
        result = anonymize_outside(engine, schema, hand_over=hand_over, sample=spec.engine.sample, **asked)
    else:
        refining = replace(refining, start=start_recoding(spec))
        result = anonymize_top_down_outside(engine, schema, refining=refining, stopping=stopping, **asked)
    stage("Writing labels")
    placing, columns = placing_of(result, names, spec.output.values)
    return result, engine.write(placing, columns, folder / f"data.{spec.output.format}", spec.output.format)


@contextmanager
def opened(
    name: str, spec: Spec, schema: Schema, source: Any, options: ReadOptions, folder: Path, threads: int | None
) -> Iterator[tuple[DuckDBEngine | SparkEngine, int, pl.LazyFrame]]:
    """An engine with the source's rows that the missing policy lets through, how many persons it leaves out, and those
    rows some at a time.
    """
    if name == "spark":
        with spark_engine(spec, schema, source, options, folder) as (found, scan):
            _check_rows(found, spec, schema)
            yield found, found.persons_left_out, scan
        return
    from anonfit.engines.duckdb.connection import connect

    memory = spec.engine.memory or max(available_memory() // 2, LEAST_MEMORY)
    with connect(folder / "duckdb", memory=memory, threads=thread_count(threads)) as connection:
        engine, scan = _engine(spec, schema, source, options, connection, folder)
        _check_rows(engine, spec, schema)
        count = next((column.name for column in schema.of_role(Role.COUNT)), None)
        yield engine, engine.left_out(count), scan


def _check_rows(engine: DuckDBEngine | SparkEngine, spec: Spec, schema: Schema) -> None:
    """Refuse a table without rows, and missing values where the policy says so."""
    if engine.read == 0:
        raise DataError("the table has no rows; there is nothing to release.")
    if spec.data.missing_policy == "error" and (gaps := engine.missing(complete_names(spec, schema))):
        raise DataError(missing_refused(gaps))


def spill_place(spec: Spec) -> Path | None:
    """Where rows are spilled; a relative place starts at the spec's folder."""
    return None if spec.engine.spill is None else (spec.folder or Path()) / spec.engine.spill


def _engine(
    spec: Spec, schema: Schema, source: Any, options: ReadOptions, connection: Connection, folder: Path
) -> tuple[DuckDBEngine, pl.LazyFrame]:
    """The engine with the source's rows that the missing policy lets through, and these as a lazy frame."""
    from anonfit.engines.duckdb.engine import DuckDBEngine

    found = ingest(source, options, folder)
    texts = {} if found.cleaned else dict.fromkeys(options.clean, options.missing)
    dropping = complete_names(spec, schema) if spec.data.missing_policy == "drop" else []
    engine = DuckDBEngine(connection, found.files, found.schema, missing_texts=texts, without_missing=dropping)
    return engine, scan_of(found, missing_texts=texts, without_missing=dropping)


def _check_raw(engine: DuckDBEngine | SparkEngine, spec: Spec, schema: Schema) -> None:
    """Refuse raw columns that nearly tell every record apart, unless their release is written."""
    import polars as pl

    for column in schema.released_raw:
        dtype = engine.schema[column.name]
        if dtype.is_nested() or dtype == pl.Object:
            raise DataError(not_plain(column.name, dtype))
    check_writable({column.name: engine.schema[column.name] for column in schema.released_raw}, spec.output.format)
    faults = []
    for column in asked_raw(schema) if engine.rows > 1 else ():
        share = engine.distinct_share(column.name)
        if share > NEARLY_DISTINCT:
            faults.append(nearly_distinct(column.name, share))
    if faults:
        raise SpecError(faults)


def _made(
    spec: Spec,
    schema: Schema,
    source: Any,
    result: AnonymizedOutside,
    written: Written,
    rows: RowCounts,
    engine: str,
    reason: str | None,
    scan: pl.LazyFrame,
) -> Made:
    recoding = result.recoding
    raw: Later[pl.DataFrame] = Later(lambda: rows_here(spec, schema, source))

    def nodes() -> NDArray[np.int32]:
        return recoding.nodes(recoding.cells(raw.get()))

    return Made(
        spec,
        schema,
        Later(lambda: rebuilt(written.scan().collect())),
        recoding,
        rows,
        raw,
        None,
        Later(nodes),
        steered=result.steered,
        refinements=result.refinements,
        learned=result.learned,
        engine=engine,
        engine_reason=reason,
        stored=written,
        scan=scan,
    )


def _answers(made: Made, asked: AskedSelections) -> SelectionAnswers:
    """How well the selections can be answered; rows are read some at a time."""
    from anonfit.algorithms.grouped_selections import answer_batches

    count = next((column.name for column in made.schema.of_role(Role.COUNT)), None)
    return answer_batches(asked, made.recoding, raw_batches(made), count)
