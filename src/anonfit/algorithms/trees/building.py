# SPDX-License-Identifier: Apache-2.0
"""From training rows to a decision tree that may be released: code, grow, prune, put cuts between values, and find the
spans anew.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.trees.growing import DecisionTreeGrower, Demand, GrownTree, Variant, attributes_of
from anonfit.algorithms.trees.tree import ClassName, DecisionTree, find_spans
from anonfit.engines.tree import LEAF, Tree
from anonfit.errors import AuditFailed, DataError, RequestError, counted, listed
from anonfit.recoding.recoding import build_recoding, cells_of_codes
from anonfit.tables.codebook import CodedValues, code_column, column_type
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import Codes, Column, ColumnType, Domain, OrderedDomain, Persons

if TYPE_CHECKING:
    import polars as pl

GAIN_OF_COLLAPSE = 1e-3
"""A subtree that saves fewer errors on the training rows is not kept."""
SLACK = 0.1
"""A leaf may have so many more expected errors than the subtree it replaces."""


def expected_errors(persons: NDArray[np.int64], errors: NDArray[np.int64], confidence: float) -> NDArray[np.float64]:
    """The upper end of the errors to expect in leaves with so many persons, of which so many are errors.

    Quinlan: C4.5, 1993, section 4.2; for fewer than one error exactly, else by the normal approximation with a
    correction for continuity.
    """
    size = np.maximum(persons, 1).astype(np.float64)
    none = size * (1.0 - confidence ** (1.0 / size))
    score = NormalDist().inv_cdf(1.0 - confidence)
    share = (errors + 0.5) / size
    spread = np.sqrt(np.maximum(share / size - share**2 / size + score**2 / (4 * size**2), 0.0))
    bound = (share + score**2 / (2 * size) + score * spread) / (1 + score**2 / size)
    more = np.where(errors + 0.5 >= size, np.maximum(size - errors, 0.0), bound * size - errors)
    return np.asarray(np.where(persons == 0, 0.0, np.where(errors == 0, none, errors + more)))


def prune(grown: GrownTree, confidence: float) -> GrownTree:
    """Replace every subtree by a leaf that is expected to err no more."""
    tree, counts = grown.tree, grown.counts
    persons = counts.sum(axis=1)
    errors = persons - counts.max(axis=1, initial=0)
    first, children = tree.first_child.tolist(), tree.children.tolist()
    is_leaf = (tree.column == LEAF).tolist()

    def collapse(errors: list[float], slack: float) -> None:
        """Make a leaf of every node that errs hardly more than what is below it."""
        left = list(errors)
        for node in range(len(errors) - 1, -1, -1):
            if not is_leaf[node]:
                below = sum(left[first[node] : first[node] + children[node]])
                is_leaf[node] = errors[node] <= below + slack
                left[node] = errors[node] if is_leaf[node] else below

    collapse(errors.tolist(), GAIN_OF_COLLAPSE)
    collapse(expected_errors(persons, errors, confidence).tolist(), SLACK)
    return pruned_at(grown, np.array(is_leaf, bool))


def pruned_at(grown: GrownTree, is_leaf: NDArray[np.bool_]) -> GrownTree:
    """The tree in which these nodes are leaves, whatever was below them."""
    tree = grown.tree
    parent = np.append(-1, np.repeat(np.arange(len(tree.column)), tree.children))
    kept = np.ones(len(tree.column), bool)
    ends = is_leaf | (tree.column == LEAF)
    for node in range(1, len(kept)):
        kept[node] = kept[parent[node]] and not ends[parent[node]]
    stays = ~ends[kept]
    column = np.where(stays, tree.column[kept], LEAF).astype(np.int32)
    children = np.where(stays, tree.children[kept], 0).astype(np.int32)
    set_of = np.where(stays, tree.set_of[kept], -1).astype(np.int32)
    pruned = Tree(column, children, tree.start[kept], tree.before[kept], set_of, tree.sets)
    return GrownTree(pruned, grown.counts[kept])


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
class Training:
    """Training rows in codes: of every column, the class of each as a place among the classes, and the persons that it
    stands for, if these are not one. The columns of `public` and, if `class_is_public`, the class are what somebody may
    know of a person.
    """

    domains: Sequence[Domain]
    codes: Sequence[Codes]
    labels: NDArray[np.int32]
    public: Collection[str]
    target: str
    classes: Sequence[ClassName]
    class_is_public: bool
    persons: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True)
class BuiltTree:
    """A tree, for each column the cell of each training row, and what its codes stand for."""

    tree: DecisionTree
    cells: Sequence[NDArray[np.int32]]
    domains: Sequence[Domain]


def code_columns(
    columns: Sequence[Column], frame: pl.DataFrame, *, public: Collection[str], k: int, growing: Growing
) -> list[CodedValues]:
    """Code the training rows of a frame; the columns of `public` may be known of a person."""
    for column in columns:
        require_divisible(column, frame[column.name].dtype, growing.variant)
    persons = Persons(len(frame)).of_groups
    # Of a public column without a taxonomy, values that fewer than k persons have are one.
    least = [k if column.name in public else growing.least_named for column in columns]
    coded = [
        code_column(column, frame[column.name], persons=persons, k=few)
        for column, few in zip(columns, least, strict=True)
    ]
    for values in coded:
        require_complete(values.domain, values.codes)
    return coded


def build_tree(training: Training, *, demand: Demand, growing: Growing) -> BuiltTree:
    """Grow a tree that is k-anonymous with respect to training rows."""
    domains = training.domains
    is_public = [domain.name in training.public for domain in domains]
    if growing.cut_points == CutPoints.VALUE:
        _require_public_cuts(domains, is_public)
    grown = DecisionTreeGrower(
        attributes_of(domains, training.codes, is_public),
        training.labels,
        class_count=len(training.classes),
        demand=demand,
        variant=growing.variant,
        class_is_public=training.class_is_public,
        max_spans=growing.max_spans,
        persons=training.persons,
    ).grow()
    if growing.pruning is not None:
        grown = prune(grown, growing.pruning)
    built = finish_tree(grown, training, growing.cut_points)
    # The spans were found anew, from the finished tree: nothing that growing believed is taken for granted.
    spans = built.tree.spans
    bad = int((~demand.allows(spans.counts)).sum())
    if bad or int(spans.counts.sum()) != int(grown.counts[0].sum()):
        raise AuditFailed(
            f"{counted(bad, 'span of the grown tree does', 'spans of the grown tree do')} not hold what was asked; "
            "nothing is given out. This is a fault of anonfit: please report it."
        )
    return built


def finish_tree(grown: GrownTree, training: Training, cut_points: CutPoints) -> BuiltTree:
    """Put cuts between values, and find the spans of the tree that comes of it."""
    tiling = build_recoding(grown.tree, training.domains, points=cut_points)
    of_codes = zip(cells_of_codes(tiling, training.domains), training.codes, strict=True)
    cells = [of_code[codes].astype(np.int32) for of_code, codes in of_codes]
    classes, class_is_public = tuple(training.classes), training.class_is_public
    spans, _ = find_spans(
        tiling.tree,
        [name in training.public for name in tiling.quasi_identifiers],
        cells,
        training.labels,
        class_count=len(classes),
        class_is_public=class_is_public,
        persons=training.persons,
    )
    public = tuple(name for name in tiling.quasi_identifiers if name in training.public)
    tree = DecisionTree(tiling, public, training.target, classes, class_is_public, grown.counts, spans)
    return BuiltTree(tree, cells, training.domains)


def require_complete(domain: Domain, codes: Codes, times: NDArray[np.int64] | None = None) -> None:
    """Refuse a column with missing values; each code stands for so many rows."""
    gaps = int(Persons(len(codes), times).of_groups(codes, 1)[0]) if domain.has_missing else 0
    if gaps:
        raise DataError(
            f"column '{domain.name}' has {counted(gaps, 'missing value')}: what a missing value tells of a person is "
            "not modelled for trees; leave those rows out, or fill them."
        )


def require_divisible(column: Column, dtype: pl.DataType, variant: Variant) -> None:
    """Refuse a column that a variant does not divide."""
    if variant == Variant.ID3 and column.taxonomy is None:
        kind = column_type(column, dtype)
        if kind != ColumnType.NOMINAL:
            raise RequestError(
                f"column '{column.name}' is {kind}, and variant = 'id3' divides nominal columns only; leave it out, "
                "declare it nominal, give it a taxonomy, or use variant = 'c45'."
            )


def _require_public_cuts(domains: Sequence[Domain], is_public: Sequence[bool]) -> None:
    """A cut of a private column that stands at a value would tell what somebody's private value is."""
    known = zip(domains, is_public, strict=True)
    revealing = [domain.name for domain, public in known if not public and isinstance(domain, OrderedDomain)]
    if revealing:
        raise RequestError(
            f"cut_points = 'value' would tell values of single persons in the private column {listed(revealing)}; use "
            "cut_points = 'simplest'."
        )
