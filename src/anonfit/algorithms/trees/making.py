# SPDX-License-Identifier: Apache-2.0
"""From the rows and roles of a table to a k-anonymous tree, and to the table that it stands for.

Quasi-identifiers are public, sensitive and insensitive columns private, the one target is the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.coding import TableCoding, without_row_numbers
from anonfit.algorithms.result import Anonymized
from anonfit.algorithms.top_down import placed
from anonfit.algorithms.trees.building import (
    BuiltTree,
    Growing,
    Training,
    build_coded,
    require_complete,
    require_divisible,
)
from anonfit.algorithms.trees.classes import Classes, classes_of_target
from anonfit.algorithms.trees.demand import Demand
from anonfit.algorithms.trees.regions import public_recoding
from anonfit.engines.contract import CountRequest, Engine, OutOfCore, out_of_core
from anonfit.engines.levels.shape import code_name, target_name
from anonfit.errors import SpecError
from anonfit.runtime.progress import Stage, silent
from anonfit.tables.schema import Column, Domain, Role, Schema, code_dtype
from anonfit.workload.targets import TargetRequest

__all__ = [
    "TreeRequest",
    "anonymize_by_tree",
    "make_tree",
    "refuse_public_class",
    "target_column",
    "tested_columns",
]


@dataclass(frozen=True, slots=True)
class TreeRequest:
    """What is asked of a tree."""

    target: TargetRequest
    demand: Demand
    growing: Growing
    class_is_public: bool = False


def tested_columns(schema: Schema, target: str) -> tuple[Column, ...]:
    """The columns that a tree may test: public ones first, then private ones."""
    private = [column for column in schema.of_role(Role.SENSITIVE, Role.INSENSITIVE) if column.name != target]
    return (*schema.quasi_identifiers, *private)


def target_column(schema: Schema, asked: TreeRequest) -> Column:
    """What is declared of the class."""
    return next(column for column in schema.columns if column.name == asked.target.column)


def make_tree(
    engine: Engine, schema: Schema, asked: TreeRequest, *, kept: Sequence[str] = (), stage: Stage = silent
) -> tuple[BuiltTree, TableCoding, Classes]:
    """Grow a tree from an engine's rows, which are coded on the way, and tell the class of each of the target's values;
    out-of-core engines keep the raw columns `kept` beside their codes.

    Out of core, the rows that the tree is built from are the groups of rows that are alike in all columns and in their
    class.
    """
    coding = TableCoding(engine, schema)
    if not coding.by_row:
        stage("Finding values")
    target = target_column(schema, asked)
    known = coding.values(target.name)
    with nullcontext() if coding.by_row else without_row_numbers():
        classes = classes_of_target(asked.target, target, known.frame[target.name], known.times)
    coding.add_class(target_name(0), target.name, classes.of_row, len(classes.names))
    columns = tested_columns(schema, target.name)
    for column in columns:
        require_divisible(column, engine.schema[column.name], asked.growing.variant)
    # Of a column without a taxonomy, values that fewer than k persons have are one: a name of a private column that
    # fewer than k persons have would tell that there is such a person.
    domains = coding.code(columns, [asked.demand.k] * len(columns))
    for domain in domains:
        require_complete(domain, coding.codes[domain.name], coding.values(domain.name).times)
    if not coding.by_row:
        stage("Coding")
    engine.code(coding.fields, kept)
    training = _rows(coding, domains, classes) if coding.by_row else _groups(out_of_core(engine), domains)
    stage("Growing")
    built = build_coded(
        training,
        public=[one.name for one in schema.quasi_identifiers],
        target=asked.target.column,
        classes=classes.names,
        class_is_public=asked.class_is_public,
        demand=asked.demand,
        growing=asked.growing,
    )
    return built, coding, classes


def _rows(coding: TableCoding, domains: Sequence[Domain], classes: Classes) -> Training:
    """All rows."""
    return Training(domains, [coding.codes[domain.name] for domain in domains], classes.of_row)


def _groups(engine: OutOfCore, domains: Sequence[Domain]) -> Training:
    """The groups of rows that are alike."""
    by = (*(code_name(place) for place in range(len(domains))), target_name(0))
    counted = engine.count([CountRequest((0,), by, ((),))])[0]
    codes: list[NDArray[Any]] = [
        counted.by[place].astype(code_dtype(domain.coded().size)) for place, domain in enumerate(domains)
    ]
    return Training(domains, codes, counted.by[len(domains)].astype(np.int32), counted.sums[0])


def refuse_public_class(asked: TreeRequest) -> None:
    """Refuse a class that somebody may know, where it would stand in a table."""
    if asked.class_is_public:
        raise SpecError(
            [
                "privacy.class_is_public: in a table the target stands as it is, beside the quasi-identifiers; make "
                "the tree itself with anonfit tree, or let the class be private."
            ]
        )


def anonymize_by_tree(
    engine: Engine, schema: Schema, asked: TreeRequest, *, kept: Sequence[str] = (), stage: Stage = silent
) -> Anonymized:
    """The table that a k-anonymous tree stands for: public columns say what the tree makes of them."""
    refuse_public_class(asked)
    built, coding, _ = make_tree(engine, schema, asked, kept=kept, stage=stage)
    if coding.by_row:
        stage("Routing rows")
    recoding, nodes = public_recoding(built.tree, built.cells)
    public = built.domains[: len(recoding.columns)]  # of the columns that are tested, the public ones stand first
    coded = tuple(domain.coded() for domain in public)
    return replace(placed(coding, recoding, nodes, public, coded), steered={asked.target.column: False})
