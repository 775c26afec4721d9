# SPDX-License-Identifier: Apache-2.0
"""The engine for a spec and a source: which one, whether it can do what is asked, opened with the source's rows, and
its kernels ready before they are needed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from anonfit.engines import contract
from anonfit.engines.memory.write import check_writable
from anonfit.errors import DataError, SpecError
from anonfit.release.bind import (
    asked_raw,
    complete_names,
    missing_refused,
    read_rows,
    released_names,
    without_missing,
    workload_of,
)
from anonfit.runtime import compiling
from anonfit.runtime.process import Stage, available_memory, thread_count
from anonfit.spec.model import Spec
from anonfit.tables.frames import is_spark
from anonfit.tables.reading import ReadOptions
from anonfit.tables.schema import Role, Schema, persons_in, persons_of
from anonfit.tables.sources import FORMATS
from anonfit.workload.logs.merging import Batch, RawRows, rows_of_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

BATCH = 1 << 20
"""Rows that are read at once."""
NEARLY_DISTINCT = 0.9
"""A raw column with a larger share of distinct values identifies its records: it is released only if that is asked."""

MAY_NOT_FIT = "the table may not fit in memory, but "
SPARK, KNOWN, FITS, NO_DUCKDB, LARGE = (
    "the table is a DataFrame of Spark",
    "the table is in memory already, or its size is not known",
    "the table fits in memory",
    f"{MAY_NOT_FIT}the package duckdb is not installed",
    "the table does not fit in memory with ease",
)
NEEDS_MEMORY = {
    capability.name: f"{capability.asked} needs the engine 'memory'" for capability in contract.CAPABILITIES
}
REASONS = (SPARK, KNOWN, FITS, NO_DUCKDB, LARGE, *(f"{MAY_NOT_FIT}{fault}" for fault in NEEDS_MEMORY.values()))
"""Why an engine was taken, in words: all that a report may say."""


def engine_for(spec: Spec, source: Any) -> tuple[str, str | None]:
    """The engine that a spec asks for, or the one that fits the source, and why."""
    if spec.engine.name != "auto":
        return spec.engine.name, None
    if is_spark(source):
        return "spark", SPARK
    needed = contract.needed_memory(
        source, [name for name in spec.columns if spec.columns[name].role != Role.IDENTIFIER]
    )
    if needed is None:
        return "memory", KNOWN
    if needed <= contract.COMFORTABLE * (spec.engine.memory or available_memory()):
        return "memory", FITS
    if find_spec("duckdb") is None or find_spec("pyarrow") is None:
        return "memory", NO_DUCKDB
    if faults := _unsupported(spec, "duckdb"):
        return "memory", f"{MAY_NOT_FIT}{faults[0]}"
    return "duckdb", LARGE


def _unsupported(spec: Spec, engine: str) -> list[str]:
    """What a spec asks that an engine does not do."""
    workload = workload_of(spec)
    asked = {
        "entity": bool(spec.of_role(Role.ENTITY)),
        "models": any(target.model is not None for target in workload.used_targets),
        "observed": spec.output.regions == "observed",
        "original": spec.output.order == "original",
        "explore": spec.method.objective.explores,
    }
    able = contract.ENGINES[engine].capabilities
    return [fault for name, fault in NEEDS_MEMORY.items() if asked[name] and name not in able]


def refuse_unsupported(spec: Spec, engine: str | None = None) -> None:
    """Refuse a spec whose engine, given or the one that it names, cannot do what it asks."""
    name = engine or spec.engine.name
    if name in ("auto", "memory"):
        return
    if faults := _unsupported(spec, name):
        raise SpecError([f"engine.name = '{name}': {fault}." for fault in faults])
    if spec.engine.sample is not None and not spec.method.capabilities.splits:
        raise SpecError([f"engine.sample is not for method.algorithm = '{spec.method.algorithm}'; leave it out."])


def spill_place(spec: Spec) -> Path | None:
    """Where rows are spilled; a relative place starts at the spec's folder."""
    return None if spec.engine.spill is None else (spec.folder or Path()) / spec.engine.spill


@contextmanager
def opened(
    name: str,
    spec: Spec,
    schema: Schema,
    source: Any,
    options: ReadOptions,
    folder: Path,
    *,
    threads: int | None = None,
    purpose: str = "release",
) -> Iterator[contract.Engine]:
    """An engine with the source's rows that the missing policy lets through; `purpose` says what for."""
    dropping = tuple(complete_names(spec, schema)) if spec.data.missing_policy == "drop" else ()
    asked = contract.Opening(
        dropping,
        schema.name_of(Role.COUNT),
        schema.name_of(Role.ENTITY),
        tuple(column.name for column in asked_raw(schema)),
        _asked_sets(spec, schema),
        spec.engine.memory,
        threads,
    )
    with contract.open_engine(name, source, options, asked, folder) as engine:
        if engine.read == 0:
            raise DataError(f"the table has no rows; there is nothing to {purpose}.")
        if spec.data.missing_policy == "error" and (gaps := engine.missing(complete_names(spec, schema))):
            raise DataError(missing_refused(gaps))
        yield engine


def _asked_sets(spec: Spec, schema: Schema) -> tuple[tuple[str, ...], ...]:
    """The sets of columns whose values will be asked for: each column beside how many persons a row stands for."""
    workload, count = workload_of(spec), schema.name_of(Role.COUNT)
    names = complete_names(spec, schema)
    names += [demand.column for demand in spec.privacy.diversity]
    names += [target.column for target in spec.capped_targets]
    names += [target.column for target in workload.used_targets]
    names += [selection.each for selection in workload.selections if selection.each is not None]
    if workload.sample_weight is not None:
        names.append(workload.sample_weight)
    if count is None:
        return tuple((name,) for name in dict.fromkeys(names))
    pairs = [(name, count) for name in dict.fromkeys(names) if name != count]
    singles = [(name,) for name in dict.fromkeys(names)] if spec.data.missing_policy == "error" else []
    return ((count,), *pairs, *singles)


def check_raw(engine: contract.Engine, spec: Spec, schema: Schema) -> None:
    """Refuse raw columns that nearly tell every record apart, unless their release is written."""
    import polars as pl

    held = engine.schema  # frames make it anew each time it is asked for
    types = {column.name: held[column.name] for column in schema.released_raw}
    for name, dtype in types.items():
        if dtype.is_nested() or dtype == pl.Object:
            raise DataError(f"column '{name}' is of type {dtype}; only plain values can be released.")
    FORMATS[spec.output.format].refuse(released_names(schema))
    check_writable(types, spec.output.format)
    asked = [column.name for column in asked_raw(schema)]
    shares = engine.distinct_shares(asked) if engine.rows > 1 and asked else {}
    faults = [
        f"column '{name}' would be released as it is, and {share:.0%} of its values are distinct, so it can identify "
        "records; make it a quasi-identifier or an identifier, or write release = true for it."
        for name, share in shares.items()
        if share > NEARLY_DISTINCT
    ]
    if faults:
        raise SpecError(faults)


def rows_here(spec: Spec, schema: Schema, source: Any, scan: pl.LazyFrame) -> pl.DataFrame:
    """The rows of a source that could be released, in memory: what the audit compares with. They are read without the
    engine, but for those of a DataFrame of Spark, which may give other rows the next time.
    """
    return without_missing(spec, schema, scan.collect()) if is_spark(source) else read_rows(spec, schema, source)


def batches_of(scan: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Rows that are not in memory, some at a time."""
    return scan.collect_batches(chunk_size=BATCH, maintain_order=True, engine="streaming")


def raw_rows(engine: contract.Engine, schema: Schema) -> RawRows:
    """An engine's rows as a query log is held against them."""
    if isinstance(engine, contract.InMemory):
        return rows_of_frame(engine.frame, persons_in(schema, engine.frame).of_groups)
    count = schema.name_of(Role.COUNT)
    if count is not None:
        # What is wrong with counts is said of all rows, not of those that are read first.
        frame, _ = engine.distinct([count])
        persons_of(len(frame), frame[count], None)

    def read(names: Sequence[str]) -> Iterator[Batch]:
        wanted = list(names) if count is None or count in names else [*names, count]
        for frame in batches_of(engine.scan.select(wanted)):
            yield Batch(frame, persons_of(len(frame), None if count is None else frame[count], None).of_groups)

    return RawRows(engine.schema, engine.rows, read)


# --- kernels: compiled once with a word about it, later loaded while the table is read ------------------------------

WITH_MODELS, AUDIT_ONLY = "with-models", "audit-only"
"""What the second process is told to compile: compiling takes one core, and where there are two, another process does
a part of it, into the cache."""


def prepare(stage: Stage, *, models: bool = False, refining: bool = False, ahead: bool = True) -> None:
    """Compile the kernels now, if that was never done, or load them in the background if there is something else to do
    meanwhile (`ahead`). `models`: groups will be held against models; `refining`: columns are refined top-down.
    """
    from anonfit.engines.memory import warming

    if is_ready(models=models, refining=refining, ahead=ahead):
        return
    seconds = "some" if refining else "about 20"
    stage(f"Compiling (once on this machine, {seconds} seconds{compiling.why_not_brought()})")
    if refining:
        with _second_process(AUDIT_ONLY):
            warming.warm_refining(models=models)
        return
    with _second_process(*([WITH_MODELS] if models else [])):
        warming.warm_weighing(models=models)
    # What is left puts both halves together, on one core; the audit has nothing to do with it.
    with _second_process(AUDIT_ONLY):
        warming.warm_up(models=models)


def is_ready(*, models: bool, refining: bool, ahead: bool) -> bool:
    """Whether the kernels are compiled; if so, they are loaded in the background (`ahead`)."""
    from anonfit.engines.memory import warming

    def warm_up() -> None:
        with suppress(Exception):  # the run itself meets whatever fails here, unless it has ended already
            (warming.warm_refining if refining else warming.warm_up)(models=models)

    is_compiled = warming.is_compiled(models=models, refining=refining)
    if is_compiled and ahead:
        Thread(target=warm_up, name="anonfit-warm-up").start()
    return is_compiled


def compile_all() -> None:
    """Compile every kernel for all that it is ever called with: what building a wheel does."""
    from anonfit.algorithms.trees.growing import Attributes, DecisionTreeGrower, Demand
    from anonfit.engines.memory import warming

    _compile_the_rest([AUDIT_ONLY])
    warming.warm_boosting()
    warming.warm_selecting()
    for models in (False, True):
        warming.warm_up(models=models)
        warming.warm_refining(models=models)
    warming.use_refining(sizes=(1 << 8, 1 << 16, 1 << 17), entities=True)
    codes = np.indices((2, 2)).reshape(2, 4).astype(np.int32)
    sizes, breaks, is_first = codes.max(axis=1) + codes[0, 2:], codes[1, :2], codes[1, :2] == 0
    attributes = Attributes(codes, sizes, is_first, is_first, breaks, offsets=codes[0, :2])
    DecisionTreeGrower(attributes, codes[0], class_count=2, demand=Demand()).grow()


def _compile_the_rest(words: list[str]) -> None:
    """What the second process does."""
    if AUDIT_ONLY in words:
        from anonfit.auditing import kernels

        kernels.compile_all()
    else:
        from anonfit.engines.memory import warming

        warming.warm_finding(models=WITH_MODELS in words)


@contextmanager
def _second_process(*words: str) -> Iterator[None]:
    """Another process that compiles some kernels, waited for at the end; what it fails to is compiled later here."""
    started = None
    if thread_count(None) > 1 and compiling.own("engines") is not None:
        with suppress(OSError):
            started = subprocess.Popen(  # noqa: S603  our own module
                [sys.executable, "-m", "anonfit.release.engine", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
    try:
        yield
    except BaseException:
        if started is not None:
            started.kill()
        raise
    finally:
        if started is not None:
            started.wait()


if __name__ == "__main__":
    _compile_the_rest(sys.argv)
