# SPDX-License-Identifier: Apache-2.0
"""Top-down specialization: each column is generalized alike in all rows, from the most general values downwards.

The rival of the multidimensional methods in the experiments of KDD 2006. One class is predicted, one k is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.mondrian import persons_of
from anonfit.engines.tree import LEAF, Tree
from anonfit.errors import Infeasible, RequestError
from anonfit.pipeline import schema_of
from anonfit.recoding.building import build_recoding
from anonfit.recoding.recoding import Recoding
from anonfit.spec import Spec
from anonfit.tables.codebook import CodedValues, code_column
from anonfit.tables.domains import Domain, NominalDomain

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Part", "SingleDimensional", "grid", "specialize"]

Counts: TypeAlias = NDArray[np.int64]
Rule: TypeAlias = Literal["score", "gain"]

MOST_REGIONS = 1 << 21
"""A grid of more regions would not be worth its memory; tables of the experiments have some thousands."""


@dataclass(frozen=True, slots=True)
class Part:
    """A run of a column's codes, from `start` up to, not including, `stop`, that all rows show alike."""

    column: int
    start: int
    stop: int
    node: int | None = None
    """Its node of the column's taxonomy, where there is one."""


@dataclass(frozen=True, slots=True)
class SingleDimensional:
    """Top-down specialization as a method of the experiments.

    `rule` says which refinement comes next: that of the largest information gain for each unit of anonymity that is
    lost ("score"), or of the largest information gain ("gain").
    """

    name: str = "tds"
    rule: Rule = "score"

    def recode(self, frame: pl.DataFrame, spec: Spec, k: int, seed: int = 0) -> Recoding:  # noqa: ARG002
        """The recoding of a table for the one class that the spec has as its target.

        Args:
            frame: The rows to learn from.
            spec: Roles, types and taxonomies of the columns.
            k: How many rows must share every combination.
            seed: Nothing is drawn at random; there for methods that do.

        Returns:
            A grid: every region is one part of each column.
        """
        if len(spec.targets) != 1:
            raise RequestError(f"Top-down specialization needs one target, but the spec has {len(spec.targets)}.")
        if len(frame) < k:
            raise Infeasible(f"The table has {len(frame)} rows, fewer than k = {k}: ask for a smaller k.")
        persons = persons_of(len(frame), None, None)
        columns = schema_of(spec, frame.columns).quasi_identifiers
        coded = [code_column(column, frame[column.name], persons=persons.of_groups, k=k) for column in columns]
        classes = frame[spec.targets[0].column].rank("dense").fill_null(0).to_numpy().astype(np.int64)
        domains = [one.domain for one in coded]
        return build_recoding(
            grid(specialize(coded, classes, k, self.rule), domains), domains, points=spec.method.cut_points
        )


@dataclass(slots=True)
class _State:
    """Where a specialization stands."""

    codes: Sequence[NDArray[np.int64]]
    classes: Counts  # (row,) from 0
    group: Counts  # (row,) which combination of parts it shows
    parts: list[Part] = field(default_factory=list)

    @property
    def sizes(self) -> Counts:
        return np.bincount(self.group)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A part, what it would be refined to, and what that gains. Neither changes when other parts are refined."""

    part: Part
    children: tuple[Part, ...]
    rows: Counts
    gain: float

    def child_of_rows(self, codes: NDArray[np.int64]) -> Counts:
        starts = [child.start for child in self.children]
        return np.searchsorted(starts, codes[self.rows], side="right") - 1


def specialize(coded: Sequence[CodedValues], classes: Counts, k: int, rule: Rule = "score") -> list[Part]:
    """The parts of every column.

    A refinement replaces a taxonomy node by its children, or an interval by the two that tell most of the class. It is
    made if it tells something and leaves k rows in each combination; one that once did not never will.

    Args:
        coded: The quasi-identifiers.
        classes: (row,) the class of each row.
        k: How many rows must share every combination.
        rule: As in `SingleDimensional`.

    Returns:
        The parts, in the order of columns and codes.
    """
    state = _State(
        [one.codes.astype(np.int64) for one in coded],
        np.unique(classes, return_inverse=True)[1],
        np.zeros_like(classes),
    )
    domains = [one.domain for one in coded]
    waiting = []
    for column, domain in enumerate(domains):
        whole = Part(column, 0, domain.coded().size, 0 if isinstance(domain, NominalDomain) else None)
        waiting.extend(_refine(state, domains, whole))
    while waiting:
        best, highest = None, 0.0
        allowed = []
        for one in waiting:
            smallest = _smallest_after(state, one)
            if smallest < k:
                state.parts.append(one.part)
                continue
            allowed.append(one)
            score = one.gain if rule == "gain" else one.gain / (int(state.sizes.min()) - smallest + 1)
            if best is None or score > highest:
                best, highest = one, score
        waiting = allowed
        if best is not None:
            # New candidates stand behind those that are there: of equal scores the older comes first.
            waiting = [one for one in waiting if one is not best]
            _make(state, best)
            for child in best.children:
                waiting.extend(_refine(state, domains, child))
            waiting.sort(key=lambda one: one.part.column)
    return sorted(state.parts, key=lambda part: (part.column, part.start))


def _refine(state: _State, domains: Sequence[Domain], part: Part) -> list[_Candidate]:
    """The refinement of a part, if there is one that tells something of the class; otherwise the part is final."""
    codes = state.codes[part.column]
    rows = np.flatnonzero((codes >= part.start) & (codes < part.stop))
    counts = np.zeros((part.stop - part.start, int(state.classes.max(initial=0)) + 1), np.int64)
    np.add.at(counts, (codes[rows] - part.start, state.classes[rows]), 1)
    domain = domains[part.column]
    children = _below(domain, part) if isinstance(domain, NominalDomain) else _best_cut(part, counts)
    if children:
        sums = np.add.reduceat(counts, [child.start - part.start for child in children], axis=0)
        gain = float(_entropies(counts.sum(axis=0)) - _entropies(sums).sum()) / max(len(rows), 1)
        if gain > 1e-12:
            return [_Candidate(part, children, rows, gain)]
    state.parts.append(part)
    return []


def _below(domain: NominalDomain, part: Part) -> tuple[Part, ...]:
    """The children of a taxonomy node; missing values are a leaf under the root."""
    if part.node is None:
        return ()
    shift, tree = int(domain.has_missing), domain.taxonomy
    missing = [Part(part.column, 0, 1)] if part.node == 0 and shift else []
    found = [
        Part(part.column, tree.first_leaf[node] + shift, tree.last_leaf[node] + 1 + shift, node)
        for node in tree.children(part.node)
    ]
    return (*missing, *found)


def _best_cut(part: Part, counts: Counts) -> tuple[Part, ...]:
    """The two intervals that tell most of the class; k plays no role. counts: (code, class)"""
    below = np.cumsum(counts, axis=0)[:-1]
    held = counts.sum(axis=1) > 0
    # A cut stands before a code that rows have, and some rows are below it.
    places = np.flatnonzero(held[1:] & (below.sum(axis=1) > 0))
    if not len(places):
        return ()
    costs = _entropies(below[places]) + _entropies(counts.sum(axis=0) - below[places])
    cut = part.start + int(places[np.argmin(costs)]) + 1
    return Part(part.column, part.start, cut), Part(part.column, cut, part.stop)


def _entropies(counts: Counts) -> NDArray[np.float64]:
    """The entropy of classes in bits, times the number of rows. (…, class) → (…)"""
    sizes = counts.sum(axis=-1, keepdims=True)
    shares = counts / np.maximum(sizes, 1)
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    found: NDArray[np.float64] = -(counts * logs).sum(axis=-1)
    return found


def _smallest_after(state: _State, one: _Candidate) -> int:
    """The size of the smallest combination once a refinement is made."""
    groups = state.group[one.rows]
    width = len(one.children)
    new = np.bincount(groups * width + one.child_of_rows(state.codes[one.part.column]))
    sizes = state.sizes
    sizes[groups] = 0  # a combination that shows the part shows it in all its rows
    left = np.concatenate([new[new > 0], sizes[sizes > 0]])
    return int(left.min())


def _make(state: _State, one: _Candidate) -> None:
    """Refine a part in all rows."""
    keys = state.group * len(one.children)
    keys[one.rows] += one.child_of_rows(state.codes[one.part.column])
    state.group = np.unique(keys, return_inverse=True)[1]


def grid(parts: Sequence[Part], domains: Sequence[Domain]) -> Tree:
    """The tree that splits by one column after another into all its parts.

    Args:
        parts: The parts of every column, in the order of columns and codes.
        domains: The columns.

    Returns:
        A tree over codes, whose regions are all combinations of parts.
    """
    starts = [[part.start for part in parts if part.column == column] for column in range(len(domains))]
    refined = [column for column, found in enumerate(starts) if len(found) > 1]
    regions = int(np.prod([len(starts[column]) for column in refined], dtype=np.float64))
    if regions > MOST_REGIONS:
        raise RequestError(f"The grid of all columns' parts has {regions:,} regions, too many: ask for a larger k.")
    column, children, start, before = [], [], [np.zeros(1, np.int32)], [np.full(1, -1, np.int32)]
    nodes = 1
    for index in refined:
        column.append(np.full(nodes, index, np.int32))
        children.append(np.full(nodes, len(starts[index]), np.int32))
        first = np.array(starts[index], np.int32)
        start.append(np.tile(first, nodes))
        is_ordered = not isinstance(domains[index], NominalDomain)
        before.append(np.tile(first - 1 if is_ordered else np.full_like(first, -1), nodes))
        nodes *= len(first)
    column.append(np.full(nodes, LEAF, np.int32))
    children.append(np.zeros(nodes, np.int32))
    return Tree(
        np.concatenate(column),
        np.concatenate(children),
        np.concatenate(start),
        np.concatenate(before),
        np.full(sum(map(len, column)), -1, np.int32),
    )
