# SPDX-License-Identifier: Apache-2.0
"""What a query log teaches of a table that does not live in memory: its rows are read some at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from anonfit.algorithms.grouped import no_rows
from anonfit.algorithms.mondrian import persons_of
from anonfit.release.result import batches_of
from anonfit.runtime.progress import Stage
from anonfit.spec.learning import Asked, with_query_log
from anonfit.spec.model import Spec
from anonfit.tables.schema import Role, Schema
from anonfit.workload.logs.merging import Batch, RawRows

if TYPE_CHECKING:
    import polars as pl

    from anonfit.engines.contract import Engine

__all__ = ["with_log_outside"]


def with_log_outside(
    spec: Spec, schema: Schema, engine: Engine, scan: pl.LazyFrame, stage: Stage
) -> tuple[Spec, tuple[Asked, ...]]:
    """The spec with what its log teaches, and the questions of the log, those of most queries first; `scan` has the
    engine's rows.
    """
    if spec.workload.query_log is None:
        return spec, ()
    stage("Reading the query log")
    count = next((column.name for column in schema.of_role(Role.COUNT)), None)
    if count is not None:
        # What is wrong with counts is said of all rows, not of those that are read first.
        frame, _ = engine.distinct([count])
        persons_of(len(frame), frame[count], None)

    def read(names: Sequence[str]) -> Iterator[Batch]:
        wanted = list(names) if count is None or count in names else [*names, count]
        for frame in batches_of(scan.select(wanted)):
            persons = persons_of(len(frame), None if count is None else frame[count], None)
            yield Batch(frame, persons.of_groups)

    with no_rows():
        return with_query_log(spec, schema.columns, RawRows(engine.schema, engine.rows, read))
