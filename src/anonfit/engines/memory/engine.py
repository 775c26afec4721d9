# SPDX-License-Identifier: Apache-2.0
"""Rows in a frame in memory, grown by compiled kernels with all threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.engines.contract import Field, Opening
from anonfit.tables.persons import Persons
from anonfit.tables.reading import ReadOptions, read_table
from anonfit.tables.schema import CodedTable, Codes

if TYPE_CHECKING:
    import polars as pl

    from anonfit.engines.levels.shape import Shape
    from anonfit.engines.memory.grower import Growth

MOSTLY = 0.85
"""Columns of which a smaller share of values differs, roughly, need no exact count."""


class MemoryEngine:
    """The rows of a frame."""

    name = "memory"

    def __init__(self, frame: pl.DataFrame, *, read: int | None = None, persons_left_out: int = 0) -> None:
        """Rows of which the source has `read`, if not only these."""
        self.frame = frame
        self.read = len(frame) if read is None else read
        self.persons_left_out = persons_left_out
        self.codes: tuple[Codes, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.frame)

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The columns and their types."""
        return self.frame.schema

    @property
    def scan(self) -> pl.LazyFrame:
        """The rows."""
        return self.frame.lazy()

    def missing(self, names: Sequence[str]) -> dict[str, int]:
        """How many values are missing in columns that have missing values."""
        return {name: count for name in names if (count := self.frame[name].null_count())}

    def distinct_shares(self, names: Sequence[str]) -> dict[str, float]:
        """The share of different values among each column's known ones, 0 where it is far from 1."""
        import polars as pl

        shares = dict.fromkeys(names, 0.0)
        roughly = self.frame.lazy().select(pl.col(list(names)).approx_n_unique()).collect()
        for name in names:
            values = self.frame[name]
            known = len(values) - values.null_count()
            if known > 1 and roughly[name][0] >= MOSTLY * known:
                shares[name] = values.drop_nulls().n_unique() / known
        return shares

    def distinct(self, names: Sequence[str]) -> tuple[pl.DataFrame, None]:
        """The values of every row."""
        return self.frame.select(names), None

    def code(self, fields: Sequence[Field], kept: Sequence[str]) -> None:  # noqa: ARG002  the frame has all columns
        """Take the codes of all rows: those of the quasi-identifiers."""
        self.codes = tuple(field.codes for field in fields)

    def grow(self, shape: Shape, persons: Persons, k: int, *, threads: int | None) -> Growth:
        """The tree of the coded rows."""
        from anonfit.engines.memory.grower import grow

        table = CodedTable(shape.columns, self.codes, self.rows, persons.counts, persons.entities)
        return grow(table, k, shape.purpose, constraints=shape.constraints, threads=threads)


def complete_rows(frame: pl.DataFrame, dropping: Sequence[str]) -> pl.DataFrame:
    """The rows of a frame that have a value of all of some columns; nothing but null is missing in them."""
    import polars as pl

    floats = [name for name in frame.columns if frame[name].dtype.is_float()]
    if floats:
        frame = frame.with_columns(pl.col(floats).fill_nan(None))
    gaps = any(frame[name].null_count() for name in dropping)
    return frame.drop_nulls(dropping) if gaps else frame


def persons_left_out(before: pl.DataFrame, after: pl.DataFrame, count: str | None, entity: str | None) -> int:
    """Persons of whom fewer rows are left: what is told of rows that were left out covers so many."""
    import polars as pl

    if len(before) == len(after):
        return 0
    if count is not None:
        sums = [
            int(frame[count].cast(pl.Int64, strict=False).fill_null(0).to_numpy().sum()) for frame in (before, after)
        ]
        return sums[0] - sums[1]
    if entity is None:
        return len(before) - len(after)
    left = before[entity].value_counts().join(after[entity].value_counts(), on=entity, how="left", suffix="_after")
    return int((left["count"] > left["count_after"].fill_null(0)).sum())


@contextmanager
def opened(source: Any, options: ReadOptions, asked: Opening, folder: Path | None = None) -> Iterator[MemoryEngine]:  # noqa: ARG001
    """The source's rows, read as a whole."""
    read = read_table(source, options)
    frame = complete_rows(read, asked.dropping)
    yield MemoryEngine(frame, read=len(read), persons_left_out=persons_left_out(read, frame, asked.count, asked.entity))
