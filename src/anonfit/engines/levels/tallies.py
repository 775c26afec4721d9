# SPDX-License-Identifier: Apache-2.0
"""From what an engine counts to what who chooses splits for selections is told of a node's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.contract import Counted, Counting, CountRequest
from anonfit.engines.levels.shape import Shape, code_name, sensitive_name
from anonfit.engines.memory.tallies import SensitiveTally, Tally

__all__ = ["Tallies", "count_tallies"]


@dataclass(frozen=True, slots=True)
class _Parted:
    """What was counted, parted by nodes."""

    counted: Counted
    order: NDArray[np.int64]  # (group,)
    nodes: NDArray[np.int64]  # (group,) in that order

    @classmethod
    def of(cls, counted: Counted) -> _Parted:
        order = np.argsort(counted.nodes, kind="stable")
        return cls(counted, order, counted.nodes[order])

    def groups(self, node: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The groups of a node: what they are made by, and their sums. (field, group), (sum, group)"""
        first, last = np.searchsorted(self.nodes, [node, node + 1])
        chosen = self.order[first:last]
        return self.counted.by[:, chosen], self.counted.sums[:, chosen]


@dataclass(frozen=True, slots=True)
class Tallies:
    """The counts of columns: by signature, and by the values of each sensitive column."""

    shape: Shape
    of_column: Mapping[int, list[_Parted]]

    def of(self, node: int, column: int) -> Tally:
        """What a node's rows have of a column."""
        first, *others = self.of_column[column]
        by, sums = first.groups(node)
        signatures = self.shape.signatures.of(list(by[1:]), by.shape[1])
        sensitive = (one.groups(node) for one in others)
        return Tally(
            by[0],
            signatures,
            sums[-1],
            sums[0],
            tuple(SensitiveTally(codes, values, persons[0]) for (codes, values), persons in sensitive),
        )


def count_tallies(counting: Counting, shape: Shape, columns: Mapping[int, Sequence[int]]) -> Tallies:
    """Count the columns that are given for each node."""
    nodes: dict[int, list[int]] = {}
    for node, wanted in columns.items():
        for column in wanted:
            nodes.setdefault(column, []).append(node)
    requests = [request for column, some in nodes.items() for request in _asked(shape, column, tuple(some))]
    counted = [_Parted.of(one) for one in counting.count(requests)] if requests else []
    each = 1 + len(shape.guarded)
    return Tallies(shape, {column: counted[each * at : each * (at + 1)] for at, column in enumerate(nodes)})


def _asked(shape: Shape, column: int, nodes: tuple[int, ...]) -> list[CountRequest]:
    code = code_name(column)
    sums = (shape.persons, shape.mass) if shape.weighted else (shape.persons,)
    found = [CountRequest(nodes, (code, *shape.signature_names), sums)]
    return found + [
        CountRequest(nodes, (code, sensitive_name(one)), (shape.persons,)) for one in range(len(shape.guarded))
    ]
