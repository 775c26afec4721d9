# SPDX-License-Identifier: Apache-2.0
"""Trees of rows that live outside: an engine counts the groups of rows that are alike in all columns and in their
class, and these are what a tree is grown from, each as one row with so many persons.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.grouped import GroupedTable, no_rows
from anonfit.algorithms.outside import AnonymizedOutside
from anonfit.algorithms.trees.building import BuiltTree, Training, require_complete, require_divisible
from anonfit.algorithms.trees.classes import Classes, classes_of_target
from anonfit.algorithms.trees.making import TreeRequest, build_asked, refuse_public_class, target_column, tested_columns
from anonfit.algorithms.trees.regions import public_recoding
from anonfit.engines.contract import CountRequest, Engine, Field
from anonfit.engines.levels.shape import code_name, target_name
from anonfit.runtime.progress import Stage, silent
from anonfit.tables.schema import Domain, Schema, code_dtype

if TYPE_CHECKING:
    import polars as pl

__all__ = ["anonymize_by_tree_outside", "make_tree_outside"]


def make_tree_outside(
    engine: Engine, schema: Schema, asked: TreeRequest, *, kept: Sequence[str] = (), stage: Stage = silent
) -> tuple[BuiltTree, tuple[Domain, ...], Classes]:
    """Grow a tree from an engine's rows, which are coded on the way; the raw columns `kept` stay beside their codes.

    The span and cells of a row that the tree is built with are those of a group of rows; the classes are those of the
    different values of the target.
    """
    stage("Finding values")
    table = GroupedTable(engine, None)
    target = target_column(schema, asked)
    values, times = _target_values(engine, target.name)
    with no_rows():
        classes = classes_of_target(asked.target, target, values, times)
    table.fields.append(Field(target_name(0), values.to_frame(), classes.of_row.astype(code_dtype(len(classes.names)))))
    columns = tested_columns(schema, target.name)
    for column in columns:
        require_divisible(column, engine.schema[column.name], asked.growing.variant)
    domains = table.code(columns, [asked.demand.k] * len(columns))
    for domain in domains:
        require_complete(domain, table.codes[domain.name], table.groups(domain.name).rows)
    stage("Coding")
    engine.code(table.fields, kept)
    training = _groups(engine, domains)
    stage("Growing")
    return build_asked(training, classes.names, schema, asked), tuple(domains), classes


def _target_values(engine: Engine, name: str) -> tuple[pl.Series, NDArray[np.int64]]:
    """The different values of the target, and how many rows have each."""
    frame, times = engine.distinct([name])
    return frame[name], times


def _groups(engine: Engine, domains: Sequence[Domain]) -> Training:
    """The groups of rows that are alike."""
    by = (*(code_name(place) for place in range(len(domains))), target_name(0))
    counted = engine.count([CountRequest((0,), by, ((),))])[0]
    codes: list[NDArray[Any]] = [
        counted.by[place].astype(code_dtype(domain.coded().size)) for place, domain in enumerate(domains)
    ]
    return Training(domains, codes, counted.by[len(domains)].astype(np.int32), counted.sums[0])


def anonymize_by_tree_outside(
    engine: Engine, schema: Schema, asked: TreeRequest, *, kept: Sequence[str], stage: Stage = silent
) -> AnonymizedOutside:
    """The recoding of an engine's rows to the table that a k-anonymous tree stands for; the raw columns `kept` stay
    beside their codes.
    """
    refuse_public_class(asked)
    built, domains, _ = make_tree_outside(engine, schema, asked, kept=kept, stage=stage)
    engine.route([], [0])
    recoding, nodes = public_recoding(built.tree, built.cells)
    public = domains[: len(recoding.columns)]  # of the columns that are tested, the public ones stand first
    used = np.unique(nodes).astype(np.int32)
    coded = tuple(domain.coded() for domain in public)
    return AnonymizedOutside(recoding, public, coded, used, {asked.target.column: False})
