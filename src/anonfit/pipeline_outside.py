# SPDX-License-Identifier: Apache-2.0
"""From a spec to a table that may be released where rows do not live in memory: the same steps as in the pipeline, each
done by an engine.
"""

from __future__ import annotations

import weakref
from contextlib import ExitStack
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.outside import AnonymizedOutside, anonymize_outside, anonymize_top_down_outside
from anonfit.algorithms.support import ONLY_MEMORY
from anonfit.binding import (
    NEARLY_DISTINCT,
    asked_raw,
    check_bounds,
    demands_of,
    missing_refused,
    nearly_distinct,
    not_plain,
    read_rows,
    reading_of,
    refining_of,
    released_names,
    start_recoding,
    workload_of,
)
from anonfit.engines.fitting import COMFORTABLE, available_memory, needed_memory
from anonfit.engines.levels.growing import HAND_OVER
from anonfit.engines.spilling import spill_folder
from anonfit.errors import DataError, EngineError, SpecError
from anonfit.interrupting import Stopping, unstoppable
from anonfit.made import Later, Made, RowCounts
from anonfit.progress import Stage, silent
from anonfit.release.outside import placing_of
from anonfit.spec import Spec
from anonfit.tables.ingesting import ingest, scan_of
from anonfit.tables.reading import ReadOptions
from anonfit.tables.schema import Role, Schema
from anonfit.threads import thread_count

if TYPE_CHECKING:
    import polars as pl

    from anonfit.engines.contract import Written
    from anonfit.engines.duckdb.connection import Connection
    from anonfit.engines.duckdb.engine import DuckDBEngine

__all__ = ["engine_for", "make_outside", "refuse_only_memory"]


LEAST_MEMORY = 256 * 2**20
"""What an engine is given at least, if nothing is said."""


def engine_for(spec: Spec, source: Any) -> tuple[str, str | None]:
    """The engine that a spec asks for, or the one that fits the source, and why."""
    if spec.engine.name != "auto":
        return spec.engine.name, None
    needed = needed_memory(source, [name for name in spec.columns if spec.columns[name].role != Role.IDENTIFIER])
    if needed is None:
        return "memory", "the table is in memory already, or its size is not known"
    if needed <= COMFORTABLE * (spec.engine.memory or available_memory()):
        return "memory", "the table fits in memory"
    if find_spec("duckdb") is None or find_spec("pyarrow") is None:
        return "memory", "the table may not fit in memory, but the package duckdb is not installed"
    if faults := _not_outside(spec):
        return "memory", f"the table may not fit in memory, but {faults[0]}"
    return "duckdb", "the table does not fit in memory with ease"


def _not_outside(spec: Spec) -> list[str]:
    """What a spec asks that only the in-memory engine does."""
    workload = workload_of(spec)
    asked = {
        "entity": bool(spec.of_role(Role.ENTITY)),
        "selections": bool(spec.workload.selections),
        "denoise": workload.denoise and bool(workload.used_targets),
        "models": any(target.model is not None for target in workload.used_targets),
        "observed": spec.output.regions == "observed",
        "original": spec.output.order == "original",
        "tree": spec.method.algorithm == "tree",
        "explore": spec.method.criterion == "explore",
        "weights_from": workload.weights_from is not None and not workload.is_blind,
        "query_log": spec.workload.query_log is not None,
    }
    return [f"{choice.asked} needs the engine 'memory'" for choice in ONLY_MEMORY if asked[choice.name]]


def refuse_only_memory(spec: Spec) -> None:
    """Refuse a spec that names an engine which cannot do what it asks."""
    if spec.engine.name not in ("auto", "memory") and (faults := _not_outside(spec)):
        raise SpecError([f"engine.name = '{spec.engine.name}': {fault}." for fault in faults])


def make_outside(
    spec: Spec,
    source: Any,
    *,
    reason: str | None = None,
    threads: int | None = None,
    stage: Stage = silent,
    stopping: Stopping = unstoppable,
) -> Made:
    """Anonymize a source by the DuckDB engine; `stopping` says whether refining is to stop."""
    from anonfit.engines.duckdb.connection import connect
    from anonfit.warming import prepare

    refuse_only_memory(spec)
    schema, options = reading_of(spec, source)
    check_bounds(spec, schema)
    prepare(stage, models=spec.privacy.has_models, refining=spec.method.algorithm == "tdr", ahead=True)
    workers = thread_count(threads)
    stack = ExitStack()
    with stack:
        folder = stack.enter_context(spill_folder(_spill_place(spec)))
        stage("Reading")
        memory = spec.engine.memory or max(available_memory() // 2, LEAST_MEMORY)
        with connect(folder / "duckdb", memory=memory, threads=workers) as connection:
            engine, left_out, scan = _engine(spec, schema, source, options, connection, folder)
            _check_raw(engine, schema)
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
            refining = refining_of(spec)
            if refining is None:
                hand_over = spec.engine.hand_over or HAND_OVER
                result = anonymize_outside(engine, schema, hand_over=hand_over, sample=spec.engine.sample, **asked)
            else:
                refining = replace(refining, start=start_recoding(spec))
                result = anonymize_top_down_outside(engine, schema, refining=refining, stopping=stopping, **asked)
            stage("Writing labels")
            placing, columns = placing_of(result, names, spec.output.values)
            written = engine.write(placing, columns, folder / f"data.{spec.output.format}", spec.output.format)
        rows = RowCounts(engine.read, engine.read - engine.rows, 0, dropped_persons=left_out)
        made = _made(spec, schema, source, result, written, rows, reason, scan)
        # The written table stays until what was made of it is gone.
        weakref.finalize(written, stack.pop_all().close)
    return made


def _spill_place(spec: Spec) -> Path | None:
    """Where rows are spilled; a relative place starts at the spec's folder."""
    return None if spec.engine.spill is None else (spec.folder or Path()) / spec.engine.spill


def _engine(
    spec: Spec, schema: Schema, source: Any, options: ReadOptions, connection: Connection, folder: Path
) -> tuple[DuckDBEngine, int, pl.LazyFrame]:
    """The engine with the source's rows that the missing policy lets through, how many persons it leaves out, and the
    rows as a lazy frame.
    """
    from anonfit.engines.duckdb.engine import DuckDBEngine

    try:
        found = ingest(source, options, folder)
    except OSError as error:
        raise EngineError(
            f"engine duckdb: the source could not be copied to the spill folder {folder.parent} ({error.strerror}): is "
            "the disk full?"
        ) from None
    names = [column.name for column in schema.quasi_identifiers]
    texts = {} if found.cleaned else dict.fromkeys(names, options.missing)
    dropping = names if spec.data.missing_policy == "drop" else []
    engine = DuckDBEngine(connection, found.files, found.schema, missing_texts=texts, without_missing=dropping)
    if engine.read == 0:
        raise DataError("the table has no rows; there is nothing to release.")
    if spec.data.missing_policy == "error" and (gaps := engine.missing(names)):
        raise DataError(missing_refused(gaps))
    count = next((column.name for column in schema.of_role(Role.COUNT)), None)
    return engine, engine.left_out(count), scan_of(found, missing_texts=texts, without_missing=dropping)


def _check_raw(engine: DuckDBEngine, schema: Schema) -> None:
    """Refuse raw columns that nearly tell every record apart, unless their release is written."""
    import polars as pl

    for column in schema.released_raw:
        dtype = engine.schema[column.name]
        if dtype.is_nested() or dtype == pl.Object:
            raise DataError(not_plain(column.name, dtype))
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
    reason: str | None,
    scan: pl.LazyFrame,
) -> Made:
    recoding = result.recoding
    raw: Later[pl.DataFrame] = Later(lambda: read_rows(spec, schema, source))

    def nodes() -> NDArray[np.int32]:
        return recoding.nodes(recoding.cells(raw.get()))

    return Made(
        spec,
        schema,
        Later(lambda: written.scan().collect()),
        recoding,
        rows,
        raw,
        None,
        Later(nodes),
        steered=result.steered,
        refinements=result.refinements,
        engine="duckdb",
        engine_reason=reason,
        stored=written,
        scan=scan,
    )
