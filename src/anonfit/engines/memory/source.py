# SPDX-License-Identifier: Apache-2.0
"""A source as the in-memory engine reads it: as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from anonfit.engines.contract import Opening
from anonfit.engines.memory.engine import MemoryEngine
from anonfit.tables.reading import ReadOptions, read_table


def complete_rows(frame: pl.DataFrame, dropping: Sequence[str]) -> pl.DataFrame:
    """The rows of a frame that have a value of all of some columns; nothing but null is missing in them."""
    floats = [name for name in frame.columns if frame[name].dtype.is_float()]
    if floats:
        frame = frame.with_columns(pl.col(floats).fill_nan(None))
    gaps = any(frame[name].null_count() for name in dropping)
    return frame.drop_nulls(dropping) if gaps else frame


def persons_left_out(before: pl.DataFrame, after: pl.DataFrame, count: str | None, entity: str | None) -> int:
    """Persons of whom fewer rows are left: what is told of rows that were left out covers so many."""
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
