# SPDX-License-Identifier: Apache-2.0
"""From the rows and roles of a spec to a k-anonymous tree, and to the table that it stands for.

Quasi-identifiers are public, sensitive and insensitive columns private, the one target is the class.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from anonfit.algorithms.mondrian import Anonymized
from anonfit.errors import SpecError
from anonfit.progress import Stage, silent
from anonfit.tables.schema import Column, Role, Schema
from anonfit.trees.building import BuiltTree, Growing, build_tree
from anonfit.trees.classes import Classes, classes_of_target
from anonfit.trees.demand import Demand
from anonfit.trees.regions import public_recoding
from anonfit.workload.request import TargetRequest

if TYPE_CHECKING:
    import polars as pl

__all__ = ["TreeRequest", "anonymize_by_tree", "make_tree", "tested_columns"]


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


def make_tree(
    schema: Schema, frame: pl.DataFrame, asked: TreeRequest, *, stage: Stage = silent
) -> tuple[BuiltTree, Classes]:
    """Grow a tree from the rows of a frame, and tell the class of each."""
    column = next(column for column in schema.columns if column.name == asked.target.column)
    classes = classes_of_target(asked.target, column, frame[column.name])
    stage("Growing")
    # A name of a private column that fewer than k persons have would tell that there is such a person.
    growing = replace(asked.growing, least_named=asked.demand.k)
    built = build_tree(
        tested_columns(schema, column.name),
        frame,
        classes.of_row,
        public=[one.name for one in schema.quasi_identifiers],
        target=column.name,
        classes=classes.names,
        class_is_public=asked.class_is_public,
        demand=asked.demand,
        growing=growing,
    )
    return built, classes


def anonymize_by_tree(schema: Schema, frame: pl.DataFrame, asked: TreeRequest, *, stage: Stage = silent) -> Anonymized:
    """The table that a k-anonymous tree stands for: public columns say what the tree makes of them."""
    if asked.class_is_public:
        raise SpecError(
            [
                "privacy.class_is_public: in a table the target stands as it is, beside the quasi-identifiers; make "
                "the tree itself with anonfit tree, or let the class be private."
            ]
        )
    built, _ = make_tree(schema, frame, asked, stage=stage)
    stage("Routing rows")
    tiling = built.tree.tiling
    recoding, nodes = public_recoding(built.tree, tiling.cells(frame))
    numbers = np.argsort(nodes, kind="stable").astype(np.uint32)
    return Anonymized(recoding, numbers, nodes[numbers], steered={asked.target.column: False})
