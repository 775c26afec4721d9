# SPDX-License-Identifier: Apache-2.0
"""From the rows and roles of a spec to a k-anonymous tree, and to the table that it stands for.

Quasi-identifiers are public, sensitive and insensitive columns private, the one target is the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from anonfit.algorithms.mondrian import Anonymized
from anonfit.algorithms.trees.building import BuiltTree, Growing, Training, build_coded, build_tree
from anonfit.algorithms.trees.classes import Classes, classes_of_target
from anonfit.algorithms.trees.demand import Demand
from anonfit.algorithms.trees.regions import public_recoding
from anonfit.algorithms.trees.tree import ClassName
from anonfit.errors import SpecError
from anonfit.runtime.progress import Stage, silent
from anonfit.tables.schema import Column, Role, Schema
from anonfit.workload.targets import TargetRequest

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "TreeRequest",
    "anonymize_by_tree",
    "build_asked",
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


def _settings(schema: Schema, asked: TreeRequest, classes: Sequence[ClassName]) -> dict[str, Any]:
    """What is asked, as trees are built."""
    return {
        "public": [one.name for one in schema.quasi_identifiers],
        "target": asked.target.column,
        "classes": classes,
        "class_is_public": asked.class_is_public,
        "demand": asked.demand,
        # A name of a private column that fewer than k persons have would tell that there is such a person.
        "growing": replace(asked.growing, least_named=asked.demand.k),
    }


def build_asked(training: Training, classes: Sequence[ClassName], schema: Schema, asked: TreeRequest) -> BuiltTree:
    """Grow a tree from rows in codes."""
    return build_coded(training, **_settings(schema, asked, classes))


def make_tree(
    schema: Schema, frame: pl.DataFrame, asked: TreeRequest, *, stage: Stage = silent
) -> tuple[BuiltTree, Classes]:
    """Grow a tree from the rows of a frame, and tell the class of each."""
    column = target_column(schema, asked)
    classes = classes_of_target(asked.target, column, frame[column.name])
    stage("Growing")
    tested = tested_columns(schema, column.name)
    return build_tree(tested, frame, classes.of_row, **_settings(schema, asked, classes.names)), classes


def refuse_public_class(asked: TreeRequest) -> None:
    """Refuse a class that somebody may know, where it would stand in a table."""
    if asked.class_is_public:
        raise SpecError(
            [
                "privacy.class_is_public: in a table the target stands as it is, beside the quasi-identifiers; make "
                "the tree itself with anonfit tree, or let the class be private."
            ]
        )


def anonymize_by_tree(schema: Schema, frame: pl.DataFrame, asked: TreeRequest, *, stage: Stage = silent) -> Anonymized:
    """The table that a k-anonymous tree stands for: public columns say what the tree makes of them."""
    refuse_public_class(asked)
    built, _ = make_tree(schema, frame, asked, stage=stage)
    stage("Routing rows")
    recoding, nodes = public_recoding(built.tree, built.tree.tiling.cells(frame))
    numbers = np.argsort(nodes, kind="stable").astype(np.uint32)
    return Anonymized(recoding, numbers, nodes[numbers], steered={asked.target.column: False})
