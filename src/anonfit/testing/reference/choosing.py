# SPDX-License-Identifier: Apache-2.0
"""How the plain engine chooses a node's split: by targets, or blind by the normalized range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonfit.criteria.objectives import TIE, SplitObjective, WeightRule, exponential
from anonfit.criteria.targets import NumberTarget, ShareTarget, Sums, by_entropy
from anonfit.tables.schema import SplitMode
from anonfit.testing.reference.records import Parts, PlainNode, PlainSplit, Records, joined

WEIGHT_FIRST = (WeightRule.FIRST, WeightRule.NAIVE)
MIXED = (WeightRule.PRODUCT, WeightRule.BLEND, WeightRule.CHANCE, WeightRule.COMBINED)
"""Rules that mix weights with what a split is worth."""


def _larger(value: float, other: float) -> int:
    """1 if the first is larger by more than a tie, -1 if it is smaller by more, 0 between."""
    return int(value > other + TIE) - int(value < other - TIE)


class Blind:
    """No targets: the column of the largest range, weight or both that has a legal split, cut at its median."""

    def __init__(self, records: Records, purpose: SplitObjective) -> None:
        self.records = records
        self.purpose = purpose

    def merit(self, column: int, spread: float, key: int) -> float:
        """How much a column is preferred by a rule that mixes weight and range."""
        return self.purpose.merit(column, spread, spread=spread, chance=exponential(key, column))

    def better(self, column: int, spread: float, best: int, best_spread: float, key: int) -> bool:
        """Whether a column is preferred to an earlier one, at the node of a key."""
        purpose = self.purpose
        if purpose.rule in WEIGHT_FIRST and purpose.weights[column] != purpose.weights[best]:
            return purpose.weights[column] > purpose.weights[best]
        if purpose.rule in MIXED:
            order = _larger(self.merit(column, spread, key), self.merit(best, best_spread, key))
            if order != 0:
                return order > 0
        return _larger(spread, best_spread) > 0

    def prefer(self, spreads: dict[int, float], key: int = 0) -> int:
        """The column to try of those that are left, at the node of a key."""
        columns = sorted(spreads)
        best = columns[0]
        for column in columns[1:]:
            if self.better(column, spreads[column], best, spreads[best], key):
                best = column
        return best

    def choose(self, node: PlainNode) -> PlainSplit | None:
        """The split of a node, if there is a legal one."""
        records = self.records
        spreads = {index: records.spread(node, index) for index in range(len(records.columns))}
        left = {index: spread for index, spread in spreads.items() if spread >= 0 and self.purpose.may_split(index)}
        while left:
            index = self.prefer(left, node.key)
            if records.columns[index].mode == SplitMode.MULTIWAY:
                parts = records.multiway(node, index)
            else:
                parts = records.median(node, index, records.filled(node, index))
            if parts:
                return PlainSplit(index, parts, is_set=False)
            del left[index]
        return None


@dataclass(frozen=True, slots=True)
class _Offer:
    """The best split of one column."""

    split: PlainSplit
    cost: float
    spread: float
    merit: float


class Guided:
    """The split after which the targets are least mixed. Masses are at least 1."""

    def __init__(self, records: Records, purpose: SplitObjective) -> None:
        self.records = records
        self.purpose = purpose
        self.targets = purpose.targets
        masses = np.array(records.masses, np.int64)
        self.additions = [target.additions(masses) for target in self.targets]  # each (row, sum)
        everyone = range(len(masses))
        whole = tuple(self.sums(index, everyone) for index in range(len(self.targets)))
        self.factors = purpose.factors(whole, records.mass(everyone))

    def sums(self, target: int, rows: Sequence[int]) -> Sums:
        """A target's sums over rows."""
        sums: Sums = self.additions[target][list(rows)].sum(axis=0)
        return sums

    def impurity(self, target: int, rows: Sequence[int]) -> float:
        """How mixed rows are in a target, in what all targets are added in."""
        return self.factors[target] * self.targets[target].impurity(self.sums(target, rows), self.purpose.unit)

    def cost(self, rows: Sequence[int], targets: Sequence[int]) -> float:
        """How mixed rows are in several targets."""
        total = 0.0
        for target in targets:
            total += self.impurity(target, rows)
        return total

    def others(self, column: int) -> list[int]:
        """The targets that a column is not itself."""
        return [index for index, target in enumerate(self.targets) if target.column != column]

    def persons(self, node: PlainNode) -> float:
        """What costs are divided by, so that they are means."""
        return self.records.mass(node.rows) * self.purpose.unit

    def node_cost(self, node: PlainNode) -> float:
        """How mixed a node is before it is split."""
        return self.cost(node.rows, range(len(self.targets))) / self.persons(node)

    def split_cost(self, node: PlainNode, column: int, parts: Parts) -> float:
        """How mixed the parts of a split are; a column does not become clearer by splitting itself."""
        others = self.others(column)
        total = 0.0
        for part in parts:
            if rows := self.records.within(node, column, part):
                total += self.cost(rows, others)
        for target in range(len(self.targets)):
            if target not in others:
                total += self.impurity(target, node.rows)
        return total / self.persons(node)

    def rate(self, target: int, node: PlainNode, column: int, piece: list[int]) -> float:
        """The mean of a number, or the share of the node's most frequent class, within an element."""
        here = self.sums(target, self.records.within(node, column, piece))
        if isinstance(self.targets[target], NumberTarget):
            number, first, *_ = here
            return float(first) / float(number)
        # argmax finds the lowest of equally frequent classes.
        own = self.targets[target]
        whole = self.sums(target, node.rows)
        most_frequent = int(np.argmax(whole[: own.class_count] if isinstance(own, ShareTarget) else whole))
        return float(here[most_frequent]) / float(here.sum())

    def orders(self, node: PlainNode, column: int) -> list[Parts]:
        """The orders in which the elements of a column may be cut; sorting keeps equal ones in the order of codes."""
        pieces = self.records.filled(node, column)
        if self.records.columns[column].mode == SplitMode.ORDERED:
            return [pieces]
        orders = []
        for target in self.others(column):
            rates = {piece[0]: self.rate(target, node, column, piece) for piece in pieces}
            orders.append(sorted(pieces, key=lambda piece: rates[piece[0]]))
        return orders or [pieces]

    def only_class(self, target: int, rows: Sequence[int]) -> int | None:
        """The class that all rows have, if it is one."""
        classes = np.flatnonzero(self.sums(target, rows))
        return int(classes[0]) if len(classes) == 1 else None

    def is_candidate(self, node: PlainNode, column: int, low: list[int], high: list[int]) -> bool:
        """Whether a cut between two neighbouring elements can be the best: not within a run of one class."""
        others = self.others(column)
        if not others:
            return False
        if self.purpose.all_cuts or not all(by_entropy(self.targets[target]) for target in others):
            return True
        below, above = self.records.within(node, column, low), self.records.within(node, column, high)
        for target in others:
            only = self.only_class(target, below)
            if only is None or only != self.only_class(target, above):
                return True
        return False

    def two_way(self, node: PlainNode, column: int) -> Parts | None:
        """The best legal candidate of all orders, or else the median of the first."""
        orders = self.orders(node, column)
        best: Parts | None = None
        best_cost = 0.0
        for order in orders:
            for cut in range(1, len(order)):
                parts = [joined(order[:cut]), joined(order[cut:])]
                if not self.is_candidate(node, column, order[cut - 1], order[cut]):
                    continue
                if not self.records.all_legal(node, column, parts):
                    continue
                cost = self.split_cost(node, column, parts)
                if best is None or _larger(best_cost, cost) > 0:
                    best, best_cost = parts, cost
        return best or self.records.median(node, column, orders[0])

    def offer(self, node: PlainNode, column: int) -> _Offer | None:
        """The best split of a column, if it has a legal one."""
        spread = self.records.spread(node, column)
        if spread < 0 or not self.purpose.may_split(column):
            return None
        mode = self.records.columns[column].mode
        parts = self.records.multiway(node, column) if mode == SplitMode.MULTIWAY else self.two_way(node, column)
        if parts is None:
            return None
        before, after = self.node_cost(node), self.split_cost(node, column, parts)
        share = max(before - after, 0.0) / before if before != 0 else 0.0
        split = PlainSplit(column, parts, is_set=mode in (SplitMode.SUBSET, SplitMode.BINARY))
        together, chance = self.together(node, column, parts), exponential(node.key, column)
        merit = self.purpose.merit(column, share, spread=spread, together=together, chance=chance)
        return _Offer(split, after, spread, merit)

    def together(self, node: PlainNode, column: int, parts: Parts) -> float:
        """The share of all pairs of rows that a split leaves together."""
        sizes = [float(self.records.weight(self.records.within(node, column, part))) for part in parts]
        return sum(size * size for size in sizes) / (sum(sizes) * sum(sizes))

    def better(self, offer: _Offer, best: _Offer) -> bool:
        """Whether a column's split is preferred to that of an earlier column."""
        if self.purpose.rule in WEIGHT_FIRST:
            weight, best_weight = (self.purpose.weights[rival.split.column] for rival in (offer, best))
            if weight != best_weight:
                return weight > best_weight
        if self.purpose.rule == WeightRule.NAIVE:
            order = 0
        elif self.purpose.rule in MIXED:
            order = _larger(offer.merit, best.merit)
        else:
            order = _larger(best.cost, offer.cost)
        return order > 0 if order != 0 else _larger(offer.spread, best.spread) > 0

    def choose(self, node: PlainNode) -> PlainSplit | None:
        """The split of a node, if there is a legal one that gains enough."""
        best: _Offer | None = None
        for column in range(len(self.records.columns)):
            offer = self.offer(node, column)
            if offer and (best is None or self.better(offer, best)):
                best = offer
        if best is None:
            return None
        gain = self.node_cost(node) - best.cost
        in_all = gain * self.records.mass(node.rows) * self.purpose.unit
        least = self.purpose.least_gain(self.factors)
        return None if least > 0 and in_all < least else best.split
