# SPDX-License-Identifier: Apache-2.0
"""From a spec to a tree where rows do not live in memory: an engine counts, and the tree is grown from its counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from anonfit.algorithms.trees.outside import make_tree_outside
from anonfit.algorithms.trees.tree import DecisionTree
from anonfit.engines.spilling import spill_folder
from anonfit.errors import DataError
from anonfit.release.bind import complete_names, reading_of, tree_of
from anonfit.release.result import RowCounts
from anonfit.release.run_outside import opened, refuse_only_memory, spill_place
from anonfit.release.run_spark import rows_that_stay
from anonfit.runtime.progress import Stage, silent
from anonfit.spec.model import Spec
from anonfit.tables.schema import Schema

if TYPE_CHECKING:
    import polars as pl

__all__ = ["NOTHING_LEFT", "TreeOutside", "grow_outside"]

NOTHING_LEFT = "every row has a missing value, and data.missing_policy is 'drop'; nothing is left."


@dataclass(frozen=True, slots=True)
class TreeOutside:
    """A tree, and the rows that it was grown from: each that is different once, and in the column `times` how often."""

    schema: Schema
    tree: DecisionTree
    rows: RowCounts
    source: pl.DataFrame = field(repr=False)
    times: str


def grow_outside(spec: Spec, source: Any, *, engine: str, stage: Stage = silent) -> TreeOutside:
    """Grow the tree of a spec by an engine that does not hold the rows in memory."""
    refuse_only_memory(spec, engine)
    asked = tree_of(spec)
    assert asked is not None
    schema, options = reading_of(spec, source)
    with spill_folder(spill_place(spec)) as folder:
        stage("Reading")
        source = rows_that_stay(source, options, folder) if engine == "spark" else source
        with opened(engine, spec, schema, source, options, folder, None) as (held, left_out, scan):
            if held.rows == 0:
                raise DataError(NOTHING_LEFT)
            built, _, _ = make_tree_outside(held, schema, asked, stage=stage)
            rows, times = _different(scan, complete_names(spec, schema))
            told = RowCounts(held.read, held.read - held.rows, 0, dropped_persons=left_out)
    return TreeOutside(schema, built.tree, told, rows, times)


def _different(scan: pl.LazyFrame, names: list[str]) -> tuple[pl.DataFrame, str]:
    """The different rows of some columns, and the name of the column that says how often each is there. They are
    counted without the engine: the audit compares with them.
    """
    times = "times" + max(names, key=len)  # longer than any name that is there
    return scan.group_by(names).len(times).collect(engine="streaming"), times
