# SPDX-License-Identifier: Apache-2.0
"""Growing a k-anonymous decision tree: a split is made only if all spans hold what is asked."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.memory.tree_kernels import BEFORE, FACTS, GAIN, HIGH, INFO, LOW, PLACE, SpanRuns, part_rows
from anonfit.engines.memory.tree_splits import weigh
from anonfit.engines.tree import LEAF, Tree
from anonfit.errors import Infeasible, RequestError, counted
from anonfit.privacy.models import at_least, at_most, plain
from anonfit.tables.schema import Codes, Domain, NominalDomain, Persons
from anonfit.tables.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True)
class Attributes:
    """The codes of all columns.

    `breaks` has, for every code of a nominal column, the least depth at which its taxonomy parts it from the code
    before; those of a column begin at its `offset`. A division at a depth has the runs of codes between breaks
    of at most that depth as its parts.
    """

    codes: NDArray[np.int32]  # (column, row)
    sizes: NDArray[np.int32]  # (column,)
    is_ordered: NDArray[np.bool_]  # (column,)
    is_public: NDArray[np.bool_]  # (column,)
    breaks: NDArray[np.int32]
    offsets: NDArray[np.int32]  # (column,)


def breaks_of(taxonomy: Taxonomy) -> NDArray[np.int32]:
    """For each leaf, the least depth at which it and the leaf before have different ancestors."""
    breaks = np.zeros(len(taxonomy.leaves), np.int32)
    # Of the nodes that begin at a leaf, the one nearest the root parts it from the leaf before.
    for node in range(len(taxonomy.names) - 1, 0, -1):
        breaks[taxonomy.first_leaf[node]] = taxonomy.depth[node]
    breaks[0] = 0
    return breaks


def attributes_of(
    domains: Sequence[Domain], codes: Sequence[Codes | NDArray[np.int32]], public: Sequence[bool]
) -> Attributes:
    """The columns of these domains."""
    none = np.zeros(0, np.int32)
    breaks = [breaks_of(domain.taxonomy) if isinstance(domain, NominalDomain) else none for domain in domains]
    table = np.empty((len(domains), len(codes[0]) if len(codes) else 0), np.int32)
    for index, column in enumerate(codes):
        table[index] = column
    return Attributes(
        table,
        np.array([domain.coded().size for domain in domains], np.int32),
        np.array([not isinstance(domain, NominalDomain) for domain in domains], bool),
        np.array(public, bool),
        np.concatenate([none, *breaks]),
        np.cumsum([0, *(len(of_column) for of_column in breaks)])[:-1].astype(np.int32),
    )


TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Demand:
    """At least k persons in every span that anybody has; the entropy of their classes is at least that of `l` equally
    frequent ones, and no class has a share above `max_confidence`.
    """

    k: int = 1
    l: float = 1.0  # noqa: E741 - the parameter's name in the field
    max_confidence: float = 1.0

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether spans with these persons by class may exist. counts: (span, class)"""
        persons = counts.sum(axis=-1)
        some = np.maximum(persons, 1)
        entropy = np.log2(some) - (counts * np.log2(np.maximum(counts, 1))).sum(axis=-1) / some
        is_diverse = (entropy >= math.log2(self.l) - TIE) | (self.l <= 1.0)
        is_vague = (counts.max(axis=-1) <= (self.max_confidence + TIE) * persons) | (self.max_confidence >= 1.0)
        return np.asarray(((persons >= self.k) & is_diverse & is_vague) | (persons == 0))


def demand_of(k: object, entropy_l: object, max_confidence: object) -> Demand:
    """The demand that a caller writes down; what is no such number is refused."""
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
        raise RequestError(f"k must be a whole number of at least 1; found {k!r}.")
    if not _is_number(entropy_l) or not 1 <= entropy_l < math.inf:
        raise RequestError(f"entropy_l must be a number of at least 1; found {entropy_l!r}.")
    if not _is_number(max_confidence) or not 0 < max_confidence <= 1:
        raise RequestError(f"max_confidence must be a number above 0 and at most 1; found {max_confidence!r}.")
    return Demand(int(k), float(entropy_l), float(max_confidence))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def require_demand(demand: Demand, classes: NDArray[np.int64], *, class_is_public: bool) -> None:
    """Refuse a demand that not even the root meets. classes: (class,) the persons of each"""
    if class_is_public and (demand.l > 1.0 or demand.max_confidence < 1.0):
        raise RequestError(
            "the class is public, so its diversity protects nobody: ask for k alone, or let the class be private."
        )
    total = int(classes.sum())
    smallest = int(classes[classes > 0].min(initial=total)) if class_is_public else total
    if smallest < demand.k:
        known = " with the same class, which is public," if class_is_public else ""
        raise Infeasible(
            f"the training rows are of {counted(smallest, 'person')}{known}, fewer than k = {demand.k}: no tree can "
            f"give each of them {demand.k - 1} others like them."
        )
    shares = classes[classes > 0] / total
    if shares.max() > demand.max_confidence + TIE and demand.max_confidence < 1.0:
        raise Infeasible(
            f"one class has {shares.max():.2%} of the training rows, so max_confidence must be at least "
            f"{at_least(float(shares.max()) - TIE)}; {plain(demand.max_confidence)} is asked for."
        )
    entropy = float(-(shares * np.log2(shares)).sum())
    if demand.l > 1.0 and entropy < math.log2(demand.l) - TIE:
        raise Infeasible(
            f"the class has entropy {entropy:.3f} bits over all training rows, so l cannot exceed "
            f"{at_most(2.0 ** (entropy + TIE))}; l = {plain(demand.l)} is asked for."
        )


STEP = 1e-9
"""Scores that differ by less are equal: then the earlier node, the earlier column."""
SLACK = 1e-3
"""C4.5 takes a gain for average that is so little below."""
TABLED = 1 << 22
"""n log n is looked up for numbers up to this."""
FEWEST = 2
"""C4.5 asks for two sons with at least so many persons."""


class Variant(StrEnum):
    """How splits are compared: by gain, with every value a son; or by gain ratio, with cuts and pruning."""

    ID3 = "id3"
    C45 = "c45"


@dataclass(frozen=True, slots=True)
class GrownTree:
    """A tree over codes, the training persons of each node by class, and, before pruning, the span of each row."""

    tree: Tree
    counts: NDArray[np.int64]  # (node, class)
    span_of_row: NDArray[np.int32] | None = None


@dataclass(slots=True)
class _Node:
    """A node that may still be split: its rows (`first` to `stop` in the grower's list), what it holds of each column,
    where its spans stand in the list of spans, and the best split of each column. Sons are known once it is split.
    """

    first: int
    stop: int
    counts: NDArray[np.int64]
    box: NDArray[np.int32]  # (fact, column)
    segments: NDArray[np.int64]  # (segment, 2)
    splits: NDArray[np.float64] | None = None  # (column, FACTS)
    best: int = LEAF
    column: int = LEAF
    sons: list[int] = field(default_factory=list)
    start: int = 0
    before: int = -1


class DecisionTreeGrower:
    """Grows a tree whose every span meets a demand."""

    def __init__(
        self,
        attributes: Attributes,
        labels: NDArray[np.int32],
        *,
        class_count: int,
        demand: Demand,
        variant: Variant = Variant.C45,
        class_is_public: bool = False,
        max_spans: int = 1_000_000,
        persons: NDArray[np.int64] | None = None,
    ) -> None:
        """`labels` is the class of each row, and `persons` how many it stands for; so many spans are kept at most."""
        rows = len(labels)
        counts = Persons(rows, persons).of_groups(labels, class_count)
        self.persons = np.zeros(0, np.int64) if persons is None else persons
        require_demand(demand, counts, class_is_public=class_is_public)
        self.attributes, self.labels, self.demand, self.variant = attributes, labels, demand, variant
        self.has_private = bool((~attributes.is_public).any())
        self.is_shared = not self.has_private and not class_is_public
        # (fact, column), and k, l in bits, the confidence: as kernels read them
        self.facts = np.stack([attributes.is_ordered, attributes.is_public, attributes.offsets]).astype(np.int32)
        self.numbers = np.array([demand.k, math.log2(demand.l), demand.max_confidence])
        is_c45 = variant == Variant.C45
        self.settings = np.array([FEWEST if is_c45 else 1, is_c45], np.int64)
        whole = np.arange(min(int(counts.sum()), TABLED) + 1, dtype=np.float64)
        self.logs = whole * np.log2(np.maximum(whole, 1.0))
        self.own = np.arange(rows, dtype=np.int32)
        self.buffer = np.empty(rows, np.int32)
        self.runs = SpanRuns.none(max_spans)
        if not self.is_shared:
            self.runs = SpanRuns(labels, class_is_public=class_is_public, max_spans=max_spans)
        widest = int(attributes.sizes.max(initial=1))
        held = min(widest, rows) + 1
        sizes = (rows, 2 * class_count, held, held * class_count, held, held * class_count, held + 1)
        self.lists = (np.zeros(widest * class_count, np.int64), *(np.empty(size, np.int64) for size in sizes))
        box = np.zeros((3, len(attributes.sizes)), np.int32)
        box[HIGH] = attributes.sizes
        self.nodes = [_Node(0, rows, counts, box, self.runs.all_segments)]
        self.queue: list[tuple[int, int]] = []

    def grow(self) -> GrownTree:
        """Split the best node while there is one. The tree is in breadth-first order, and not pruned."""
        self._enqueue(0)
        while self.queue:
            _, number = heapq.heappop(self.queue)
            node = self.nodes[number]
            if self.has_private:
                # Other splits may have parted this node's spans since it was weighed.
                score = self._weighed(node)
                if score == 0:
                    continue
                if self.queue and (-score, number) > self.queue[0]:
                    heapq.heappush(self.queue, (-score, number))
                    continue
            self._split(node)
            for son in node.sons:
                self._enqueue(son)
        return self._finished()

    def _enqueue(self, number: int) -> None:
        """Let a node wait for its turn, if it can be split with a gain."""
        node = self.nodes[number]
        persons = node.counts.sum()
        if node.counts.max() == persons or (self.is_shared and persons < 2 * self.demand.k):
            return
        if (score := self._weighed(node)) > 0:
            heapq.heappush(self.queue, (-score, number))

    def _weighed(self, node: _Node) -> int:
        """Weigh a node's splits; the score of the best one in steps, 0 without one."""
        if node.splits is None:
            node.splits = np.zeros((len(self.attributes.sizes), FACTS))
        rows = (self.attributes.codes, self.labels, self.persons, self.own, node.first, node.stop)
        spans = (self.runs.order, self.runs.ends, node.segments, self.is_shared)
        columns = (node.box, self.facts, self.attributes.breaks)
        rules = (self.numbers, self.settings, self.logs)
        weigh(*rows, *spans, *columns, node.counts, *rules, self.lists, node.splits)
        node.best, score = self._best(node.splits)
        return score

    def _best(self, splits: NDArray[np.float64]) -> tuple[int, int]:
        """The column that is split by the variant's rule, and its score in steps; of equal ones the first."""
        scores = gains = splits[:, GAIN].tolist()
        if self.variant == Variant.C45:
            positive = [gain for gain in gains if gain > STEP]
            average = sum(positive) / len(positive) - SLACK if positive else 0.0
            both = zip(gains, splits[:, INFO].tolist(), strict=True)
            scores = [gain / info if gain > STEP and gain >= average and info > STEP else 0.0 for gain, info in both]
        steps = [round(score / STEP) for score in scores]
        best = max(steps, default=0)
        return (steps.index(best), best) if best > 0 else (LEAF, 0)

    def _starts(self, node: _Node, column: int) -> NDArray[np.int32]:
        """The first code of each son."""
        assert node.splits is not None
        low, high = int(node.box[LOW, column]), int(node.box[HIGH, column])
        place = int(node.splits[column, PLACE])
        if self.attributes.is_ordered[column]:
            return np.array([low, place], np.int32)
        offset = int(self.attributes.offsets[column])
        within = np.flatnonzero(self.attributes.breaks[offset + low + 1 : offset + high] <= place) + low + 1
        return np.append(low, within).astype(np.int32)

    def _split(self, node: _Node) -> None:
        """Make sons for every part, also for those that nobody comes to."""
        assert node.splits is not None
        column = node.best
        starts = self._starts(node, column)
        codes = self.attributes.codes[column]
        edges = np.empty(len(starts) + 1, np.int64)
        counts = np.zeros((len(starts), len(node.counts)), np.int64)
        part_rows(codes, starts, self.own, node.first, node.stop, self.buffer, edges, self.labels, self.persons, counts)
        segments = [node.segments] * len(starts)
        if self.is_shared:
            # Spans are leaves that somebody is in.
            self.runs.add(int((counts.sum(axis=1) > 0).sum()) - 1)
        elif self.attributes.is_public[column]:
            segments = self.runs.part(codes, starts, node.segments)
        stops = np.append(starts[1:], node.box[HIGH, column])
        is_ordered = bool(self.attributes.is_ordered[column])
        depth = 0 if is_ordered else int(node.splits[column, PLACE])
        before = int(node.splits[column, BEFORE]) if is_ordered else -1
        node.column = column
        for son, (low, high) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
            box = node.box.copy()
            box[:, column] = low, high, depth
            node.sons.append(len(self.nodes))
            first, stop, upper = int(edges[son]), int(edges[son + 1]), before if son else -1
            self.nodes.append(_Node(first, stop, counts[son], box, segments[son], start=low, before=upper))
        node.splits = None
        node.segments = self.runs.all_segments

    def _finished(self) -> GrownTree:
        """The nodes in breadth-first order."""
        order = [0]
        for number in order:
            order.extend(self.nodes[number].sons)
        nodes = [self.nodes[number] for number in order]
        facts = [(node.column, len(node.sons), node.start, node.before, -1) for node in nodes]
        tree = Tree(*np.array(facts, np.int32).T.copy())
        counts = np.array([node.counts for node in nodes], np.int64).reshape(len(nodes), -1)
        return GrownTree(tree, counts, self._span_of_row())

    def _span_of_row(self) -> NDArray[np.int32]:
        """A number for the span of each row."""
        ends = [node.first for node in self.nodes if not node.sons and node.stop > node.first]
        starts = sorted(ends) if self.is_shared else self.runs.starts()
        span_of_row = np.empty(len(self.labels), np.int32)
        lengths = np.diff([*starts, len(self.labels)])
        span_of_row[self.own if self.is_shared else self.runs.order] = np.repeat(np.arange(len(starts)), lengths)
        return span_of_row
