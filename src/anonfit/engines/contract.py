# SPDX-License-Identifier: Apache-2.0
"""What an engine must do: tell what it read, find the values of columns, and turn them into codes. One that holds the
rows in memory then grows the whole tree; one that works out of core counts nodes, routes rows to the parts of splits,
hands over the rows of small nodes, and writes what is released. And the engines there are: what each is for and can do,
how it is opened, and how much memory a table needs.

An engine knows rows and whole numbers. It never chooses: splits are chosen from its counts by the same kernels that
choose them in memory, so every engine gives the same regions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.tables.databases import DatabaseSource
from anonfit.tables.reading import ReadOptions, files_of
from anonfit.tables.sources import FORMATS, format_of

if TYPE_CHECKING:
    from anonfit.engines.memory.engine import Growth
    from anonfit.engines.memory.layout import Shape
    from anonfit.tables.schema import Persons


Grow = Callable[[int, Mapping[str, NDArray[Any]]], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""The in-memory kernel: from a node's number and the fields of its rows to its subtree. It can be pickled."""
Derive = Callable[[Mapping[str, NDArray[Any]]], dict[str, NDArray[Any]]]
"""From some fields of rows to further fields of the same rows, row by row. It can be pickled."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What a run asks when it opens an engine: how rows are held, and what it will want to know of them."""

    dropping: Sequence[str] = ()
    """Rows that have no value of one of these columns are left out."""
    count: str | None = None
    """The column of how many persons a row stands for."""
    entity: str | None = None
    """The column of whose row it is."""
    raw: Sequence[str] = ()
    """Columns that are released as they are, whose share of different values will be asked for."""
    asked: Sequence[tuple[str, ...]] = ()
    """Sets of columns whose different values will be asked for."""
    memory: int | None = None
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A whole number that every coded row holds: what the values of one or two source columns become.

    `values` has each combination that occurs once, missing ones too, and `codes` what it becomes.
    """

    name: str
    values: pl.DataFrame
    codes: NDArray[Any]  # (combination,), of the type that the rows shall hold


@dataclass(frozen=True, slots=True)
class CountRequest:
    """Group the rows of some nodes by node and by fields, and sum products of fields; no field at all: count rows.

    Groups can be coarser than codes: `runs` has for each field of `by` the first codes, ascending from 0, of runs of
    its codes, each of which is counted as its first code; none: every code by itself. `within` leaves rows out: those
    of a field whose code is less than the first number, or not less than the second.
    """

    nodes: tuple[int, ...]
    by: tuple[str, ...]
    sums: tuple[tuple[str, ...], ...]
    runs: tuple[tuple[int, ...], ...] = ()
    within: tuple[str, int, int] | None = None

    @property
    def starts(self) -> tuple[tuple[int, ...], ...]:
        """The first codes of the runs of every field; none where every code is by itself."""
        return self.runs or ((),) * len(self.by)

    def most_groups(self, rows: int) -> int:
        """The most groups that there can be in so many rows of one node."""
        runs = prod(len(starts) or rows for starts in self.starts)
        return min(rows, runs * len(self.nodes))


def first_of_run(codes: NDArray[Any], starts: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """The first code of the run that each code is in; `starts` has those of all runs."""
    firsts: NDArray[np.int64] = np.asarray(starts, np.int64)
    return firsts[np.searchsorted(firsts, codes, side="right") - 1]


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted, one entry per group, in any order. Sums are exact."""

    nodes: NDArray[np.int64]  # (group,)
    by: NDArray[np.int64]  # (field, group)
    sums: NDArray[np.int64]  # (sum, group)

    @classmethod
    def of(cls, groups: pl.DataFrame, request: CountRequest) -> Counted:
        """What was counted for a request, from the columns node, by0, by1, …, sum0, sum1, … of a frame."""

        def columns(prefix: str, count: int) -> NDArray[np.int64]:
            values = [groups[f"{prefix}{place}"].to_numpy() for place in range(count)]
            return np.array(values, np.int64).reshape(count, len(groups))

        nodes = groups["node"].to_numpy().astype(np.int64)
        return cls(nodes, columns("by", len(request.by)), columns("sum", len(request.sums)))


@dataclass(frozen=True, slots=True)
class Move:
    """A node's rows go to its parts, which are nodes `first`, `first` + 1, …: by the first code of each part, or, where
    `members` are given, those with these codes to the first part and all others to the second.
    """

    node: int
    field: str
    first: int
    starts: tuple[int, ...] = ()
    members: tuple[int, ...] | None = None

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return len(self.starts) if self.members is None else 2

    def part_of(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """The part that each code goes to."""
        if self.members is None:
            return np.searchsorted(np.array(self.starts[1:], np.int64), codes.astype(np.int64), side="right")
        return 1 - np.isin(codes, self.members).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Draw:
    """Rows that are drawn by what their fields hold, the same in every engine: with x the sum of fields times factors,
    modulo MODULUS, those whose ((x² + ADDED) mod MODULUS)² mod MODULUS is less than `below`.

    No number on the way needs more than 63 bits: fields have at most 32 (a negative one is taken as the unsigned number
    of the same bits), factors 24, the modulus 31.
    """

    MODULUS: ClassVar[int] = 2**31 - 1
    ADDED: ClassVar[int] = 12_345

    fields: tuple[str, ...]
    factors: tuple[int, ...]
    below: int

    def drawn(self, values: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Which rows of arrays are drawn."""
        words: NDArray[np.int64] = np.zeros(len(values[self.fields[0]]), np.int64)
        for name, factor in zip(self.fields, self.factors, strict=True):
            words += (values[name].astype(np.int64) & 0xFFFFFFFF) * factor
        words %= self.MODULUS
        words = (words * words + self.ADDED) % self.MODULUS
        return words * words % self.MODULUS < self.below


class Placing(Protocol):
    """Where rows are released: the rank of each row's region among all regions, by what they say. It can be pickled."""

    @property
    def fields(self) -> Sequence[str]:
        """The fields that ranks are found from."""

    @property
    def regions(self) -> pl.DataFrame:
        """What the region of each rank says, in rising order. (rank,)"""

    def ranks(self, codes: Mapping[str, NDArray[Any]]) -> NDArray[np.uint32]:
        """The rank of each row, from its codes."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Written:
    """A released table that was written: where, in which format, and what stands in it."""

    path: Path
    kind: str
    schema: Mapping[str, pl.DataType]
    rows: int

    def scan(self) -> pl.LazyFrame:
        """The table; text files have forgotten the types of their columns."""
        scan = FORMATS[self.kind].scan
        if scan is None:
            # Names are given, not read: polars leaves quotes in a header doubled.
            return pl.scan_csv(self.path, schema_overrides=self.schema, new_columns=list(self.schema), glob=False)
        return scan(self.path)


class Counting(Protocol):
    """Coded rows that can be counted and routed."""

    @property
    def rows(self) -> int:
        """How many rows there are."""

    def count(self, requests: Sequence[CountRequest]) -> list[Counted]:
        """Count a batch of nodes."""

    def route(self, moves: Sequence[Move], finished: Collection[int]) -> dict[int, int]:
        """Send the rows of nodes to the parts of their splits, and put aside those of `finished` nodes, which will not
        be counted again; how many rows each part got. Nodes that are in neither have no rows. Moves are made one
        after another: rows go on where the move of a part stands after that of its node.
        """


class Engine(Protocol):
    """Where the rows of one table live: those that the missing policy lets through."""

    name: str
    """As a spec names it."""
    read: int
    """How many rows the source has."""
    persons_left_out: int
    """Persons of the rows that the missing policy leaves out."""

    @property
    def rows(self) -> int:
        """How many rows there are."""

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The source's columns and their types, as the in-memory engine would read them."""

    @property
    def scan(self) -> pl.LazyFrame:
        """The rows, to be read some at a time, also when the engine is closed."""

    def missing(self, names: Sequence[str]) -> Mapping[str, int]:
        """How many values are missing in those of some columns that have missing values."""

    def distinct_shares(self, names: Sequence[str]) -> Mapping[str, float]:
        """The share of different values among the known ones of each of some raw columns; 0 where it is far from 1."""

    def distinct(self, names: Sequence[str]) -> tuple[pl.DataFrame, NDArray[np.int64] | None]:
        """The different combinations of some columns' values, missing ones too, and how many rows have each; or the
        values of every row (None), where these are in memory.
        """

    def code(self, fields: Sequence[Field], kept: Sequence[str]) -> None:
        """Turn every row into its fields, in node 0, and keep the raw values of some columns for the release."""


@runtime_checkable
class InMemory(Engine, Protocol):
    """An engine that holds all rows: it grows trees by itself, and the released table is a frame."""

    frame: pl.DataFrame

    def grow(self, shape: Shape, persons: Persons, k: int, *, threads: int | None) -> Growth:
        """The tree of the coded rows, and where they stand in it."""


class OutOfCore(Engine, Counting, Protocol):
    """An engine whose rows are not in our memory: once coded they are perhaps drawn, counted and routed in turns,
    taken, and written.
    """

    def sample(self, draw: Draw, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """The fields `names` of the rows that are drawn, in any order."""

    def derive(self, names: Sequence[str], work: Derive) -> None:
        """Add to every coded row, before any is routed, what `work` makes of its fields `names`."""

    def take(self, nodes: Mapping[int, int], names: Sequence[str]) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
        """The fields `names` of the rows of finished nodes, node after node in any order; `nodes` has their sizes."""

    def write(self, placing: Placing, names: Sequence[str], path: Path, kind: str) -> Written:
        """Write the released table, its columns in the order of `names`: those of the regions, and raw ones. Rows are
        sorted by their rank, then by the raw columns in this order, missing values first.
        """


def out_of_core(engine: Engine) -> OutOfCore:
    """An engine that does not hold its rows in memory, by all that it does."""
    assert not isinstance(engine, InMemory), "the rows are in memory"
    return cast("OutOfCore", engine)


@runtime_checkable
class Finishing(Protocol):
    """An engine that finishes small nodes where their rows are, instead of handing these over."""

    def finish(
        self, nodes: Mapping[int, int], names: Sequence[str], grow: Grow
    ) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
        """The subtrees of finished nodes, in any order: what `grow` gives for the fields `names` of their rows."""


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


def _bytes_in_memory(path: Path, names: Collection[str]) -> float:
    """Bytes that the wanted columns of a file become."""
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
    return int(TIMES * sum(_bytes_in_memory(path, names) for path in files_of(source)))


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
    opener: Opener | None = None
    """If not `opened` in the module `source` of its own folder here, which is imported when it is needed."""
    capabilities: frozenset[str] = frozenset()
    hand_over: int | None = None
    """Nodes of at most so many rows are finished in memory, if not as many as usual."""


ENGINES: dict[str, EngineKind] = {
    kind.name: kind
    for kind in (
        EngineKind("memory", "tables that fit in memory", capabilities=frozenset(each.name for each in CAPABILITIES)),
        EngineKind("duckdb", "tables that do not: rows are spilled to disk, and counted there"),
        # Nodes as large as partitions, so that all executors have some to finish.
        EngineKind("spark", "tables in Spark, on one machine or many, and its DataFrames", hand_over=1 << 18),
    )
}


def register_engine(kind: EngineKind) -> None:
    """Let specs name another engine."""
    ENGINES[kind.name] = kind


def open_engine(
    name: str, source: Any, options: ReadOptions, asked: Opening, folder: Path
) -> AbstractContextManager[Engine]:
    """An engine with the source's rows."""
    opener: Opener = ENGINES[name].opener or import_module(f"anonfit.engines.{name}.source").opened
    return opener(source, options, asked, folder)
