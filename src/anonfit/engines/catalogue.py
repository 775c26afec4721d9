# SPDX-License-Identifier: Apache-2.0
"""The engines there are: what each is for, what it can do, how it is opened, and how much memory a table needs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias

from anonfit.engines.contract import Engine, Opening
from anonfit.tables.databases import DatabaseSource
from anonfit.tables.formats import format_of
from anonfit.tables.reading import ReadOptions, files_of

EngineName: TypeAlias = Literal["auto", "memory", "duckdb", "spark"]
"""The names of ENGINES, and `auto`, for those who check types."""
TIMES = 4
"""The table itself, its coded rows twice, and what the audit keeps of both."""
COMFORTABLE = 0.6
"""The share of the available memory that a table may need."""
UNPACKED = 8.0
"""How many bytes a byte of a packed file becomes."""
NUMBER, TEXT = 8, 24
"""Bytes of a value."""


def _file(path: Path, names: Collection[str]) -> float:
    """Bytes that the wanted columns of a file become."""
    import polars as pl

    kind, size = format_of(path), path.stat().st_size
    if kind.scan is not None and kind.knows_rows:
        try:
            scan = kind.scan(path)
            widths = [NUMBER if dtype.is_numeric() or dtype.is_temporal() else TEXT
                      for name, dtype in scan.collect_schema().items() if name in names]  # fmt: skip
            return float(scan.select(pl.len()).collect().item()) * sum(widths)
        except (pl.exceptions.PolarsError, OSError):
            return kind.grows * size
    is_packed = path.suffix in (".gz", ".zst")
    return (UNPACKED if is_packed else kind.grows) * size


def needed_memory(source: Any, names: Collection[str]) -> int | None:
    """Bytes that a release of a source with these columns needs in memory, roughly; None where the source is there
    already, or nobody knows.
    """
    if isinstance(source, DatabaseSource):
        address = source.address
        return int(TIMES * 3 * Path(address.place).stat().st_size) if address.is_file else None
    if not isinstance(source, str | Path):
        return None
    return int(TIMES * sum(_file(path, names) for path in files_of(source)))


@dataclass(frozen=True, slots=True)
class Capability:
    """Something that not every engine can do: its name, how a spec asks for it, and what that means."""

    name: str
    asked: str
    words: str


CAPABILITIES = (
    Capability("entity", 'role = "entity"', "persons have several rows"),
    Capability("models", "a model of a target", "models of targets that are given, from Python"),
    Capability("observed", 'output.regions = "observed"', "labels of what records really have"),
    Capability("original", 'output.order = "original"', "rows in the order of the input"),
    Capability("explore", 'criterion = "explore"', "several ways to weigh columns, held against each other"),
)
"""What needs all rows in memory; everything else is done by every engine, with the same result."""

Opener = Callable[[Any, ReadOptions, Opening, Path], AbstractContextManager[Engine]]
"""From a source, how it is read, what will be asked and a folder of the run's own to an engine with the rows."""


@dataclass(frozen=True, slots=True)
class EngineKind:
    """An engine as a spec names it."""

    name: str
    words: str
    opener: str | Opener
    """A function, or where it is: `module:name`, imported when it is needed."""
    capabilities: frozenset[str] = frozenset()
    hand_over: int | None = None
    """Nodes of at most so many rows are finished in memory, if not as many as usual."""


ENGINES: dict[str, EngineKind] = {
    kind.name: kind
    for kind in (
        EngineKind(
            "memory",
            "tables that fit in memory",
            "anonfit.engines.memory.engine:opened",
            frozenset(capability.name for capability in CAPABILITIES),
        ),
        EngineKind(
            "duckdb",
            "tables that do not: rows are spilled to disk, and counted there",
            "anonfit.engines.duckdb.sources:opened",
        ),
        EngineKind(
            "spark",
            "tables in Spark, on one machine or many, and its DataFrames",
            "anonfit.engines.spark.sources:opened",
            # Nodes as large as partitions, so that all executors have some to finish.
            hand_over=1 << 18,
        ),
    )
}


def register_engine(kind: EngineKind) -> None:
    """Let specs name another engine."""
    ENGINES[kind.name] = kind


def open_engine(
    name: str, source: Any, options: ReadOptions, asked: Opening, folder: Path
) -> AbstractContextManager[Engine]:
    """An engine with the source's rows."""
    opener = ENGINES[name].opener
    if isinstance(opener, str):
        module, _, function = opener.partition(":")
        opener = getattr(import_module(module), function)
    assert callable(opener)
    return opener(source, options, asked, folder)
