# SPDX-License-Identifier: Apache-2.0
"""From training rows to a decision tree that may be released: code, grow, prune, put cuts between values, and find the
spans anew.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import AuditFailed, DataError, RequestError
from anonfit.recoding.building import build_recoding, cells_of_codes
from anonfit.tables.codebook import CodedValues, code_column, column_type, typed
from anonfit.tables.cuts import CutPoints
from anonfit.tables.schema import Column, ColumnType
from anonfit.trees.attributes import attributes_of
from anonfit.trees.demand import Demand
from anonfit.trees.growing import GrownTree, Variant, grow_tree
from anonfit.trees.pruning import prune
from anonfit.trees.spans import FoundSpans, find_spans
from anonfit.trees.tree import ClassName, DecisionTree

if TYPE_CHECKING:
    import polars as pl

__all__ = ["BuiltTree", "Growing", "build_tree"]


@dataclass(frozen=True, slots=True)
class Growing:
    """How a tree is grown."""

    variant: Variant = Variant.C45
    pruning: float | None = 0.25
    """The confidence of error-based pruning; None: the tree stays as it was grown."""
    max_spans: int = 1_000_000
    cut_points: CutPoints = CutPoints.SIMPLEST
    least_named: int = 1
    """Of a private column without a taxonomy, values that fewer persons have are one, so that none of them is named."""


@dataclass(frozen=True, slots=True)
class BuiltTree:
    """A tree, and the span of each training row."""

    tree: DecisionTree
    span_of_row: NDArray[np.int32]


def build_tree(
    columns: Sequence[Column],
    frame: pl.DataFrame,
    labels: NDArray[np.int32],
    *,
    public: Collection[str],
    target: str,
    classes: Sequence[ClassName],
    class_is_public: bool,
    demand: Demand,
    growing: Growing,
) -> BuiltTree:
    """Grow a tree that is k-anonymous with respect to training rows.

    Args:
        columns: What is declared of the columns that may be tested.
        frame: The training rows.
        labels: The class of each row, as a place among `classes`.
        public: The columns that somebody may know of a person; the others are private.
        target: The name of the class.
        classes: Its values.
        class_is_public: Whether somebody may know the class of a person.
        demand: What every span must hold.
        growing: How the tree is grown.

    Returns:
        The tree and the rows' spans.
    """
    least = {column.name: demand.k if column.name in public else growing.least_named for column in columns}
    coded = [_coded(column, frame, least[column.name], growing.variant) for column in columns]
    domains = [one.domain for one in coded]
    is_public = [column.name in public for column in columns]
    grown = grow_tree(
        attributes_of(domains, [one.codes for one in coded], is_public),
        labels,
        class_count=len(classes),
        demand=demand,
        variant=growing.variant,
        class_is_public=class_is_public,
        max_spans=growing.max_spans,
    )
    if growing.pruning is not None:
        grown = prune(grown, growing.pruning)
    tiling = build_recoding(grown.tree, domains, points=growing.cut_points)
    cells = [
        of_code[one.codes].astype(np.int32) for of_code, one in zip(cells_of_codes(tiling, domains), coded, strict=True)
    ]
    found = find_spans(tiling.tree, is_public, cells, labels, class_count=len(classes), class_is_public=class_is_public)
    _require_held(grown, found, demand)
    names = tuple(name for name, known in zip(tiling.quasi_identifiers, is_public, strict=True) if known)
    tree = DecisionTree(tiling, names, target, tuple(classes), class_is_public, grown.counts, found.spans)
    return BuiltTree(tree, found.of_row)


def _coded(column: Column, frame: pl.DataFrame, k: int, variant: Variant) -> CodedValues:
    """The codes of a column. Of a public one without a taxonomy, values that fewer than k persons have are one."""
    values = frame[column.name]
    gaps = typed(column, values).null_count()
    if gaps:
        raise DataError(
            f"column '{column.name}' has {gaps} missing value(s): what a missing value tells of a person is not "
            "modelled for trees; leave those rows out, or fill them."
        )
    if variant == Variant.ID3 and column.taxonomy is None:
        kind = column_type(column, values.dtype)
        if kind != ColumnType.NOMINAL:
            raise RequestError(
                f"column '{column.name}' is {kind}, and variant = 'id3' divides nominal columns only; leave it out, "
                "declare it nominal, give it a taxonomy, or use variant = 'c45'."
            )
    return code_column(column, values, persons=_persons, k=k)


def _persons(groups: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    return np.bincount(groups, minlength=count)


def _require_held(grown: GrownTree, found: FoundSpans, demand: Demand) -> None:
    """The spans are found anew, from the finished tree: nothing that growing believed is taken for granted."""
    bad = int((~demand.allows(found.spans.counts)).sum())
    if bad or int(found.spans.counts.sum()) != int(grown.counts[0].sum()):
        raise AuditFailed(
            f"{bad} span(s) of the grown tree do not hold what was asked; nothing is given out. This is a fault of "
            "anonfit: please report it."
        )
