# SPDX-License-Identifier: Apache-2.0
"""Sampled rows: which are drawn, how many persons of a part must be among them, and counting and routing them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.contract import Counted, CountRequest, Draw, Move, first_of_run

__all__ = ["SampledRows", "draw_of", "least_sampled"]

CHANCE = 1e-4
"""How likely a part of fewer than k persons may be to look as if it had enough."""

FACTORS = (12_582_917, 6_291_469, 3_145_739, 1_572_869, 786_433, 393_241, 196_613, 98_317, 49_157)
"""Large numbers, so that sums of products differ where rows do; used in turns, a little smaller for each field."""


def draw_of(fields: Sequence[str], share: float) -> Draw:
    """A draw of about this share of all rows, by what their fields hold: it is the same in every engine and whatever
    the order of rows.
    """
    factors = tuple(FACTORS[place % len(FACTORS)] - place for place in range(len(fields)))
    return Draw(tuple(fields), factors, int(share * Draw.MODULUS))


def least_sampled(k: int, share: float) -> int:
    """The least number of sampled persons that a part of fewer than k persons hardly ever has.

    How many are sampled of few is distributed by Poisson's law.
    """
    mean = k * share
    if mean > 500:  # the law is that of Gauss, nearly
        return int(mean + 4 * mean**0.5) + 1
    chance = tail = exp(-mean)
    count = 0
    while 1 - tail > CHANCE:
        count += 1
        chance *= mean / count
        tail += chance
    return max(1, count + 1)


class SampledRows:
    """Sampled rows, counted and routed as an engine does."""

    def __init__(self, values: Mapping[str, NDArray[Any]]) -> None:
        self.values = {name: np.asarray(column).astype(np.int64) for name, column in values.items()}
        self.rows = len(next(iter(self.values.values()))) if self.values else 0
        self.node = np.zeros(self.rows, np.int64)

    def count(self, requests: Sequence[CountRequest]) -> list[Counted]:
        """Count a batch of nodes."""
        return [self._count(request) for request in requests]

    def _count(self, request: CountRequest) -> Counted:
        inside = np.isin(self.node, request.nodes)
        if request.within is not None:
            name, first, stop = request.within
            inside &= (self.values[name] >= first) & (self.values[name] < stop)
        chosen = np.flatnonzero(inside)
        keys = [self.node[chosen]]
        for name, starts in zip(request.by, request.starts, strict=True):
            codes = self.values[name][chosen]
            keys.append(first_of_run(codes, starts) if starts else codes)
        order = np.lexsort(keys[::-1])
        keys = [key[order] for key in keys]
        changes = np.zeros(len(chosen), np.bool_)
        changes[:1] = True
        for key in keys:
            changes[1:] |= key[1:] != key[:-1]
        begins = np.flatnonzero(changes)
        sums = np.zeros((len(request.sums), len(begins)), np.int64)
        for place, factors in enumerate(request.sums):
            product = np.ones(len(chosen), np.int64)
            for name in factors:
                product *= self.values[name][chosen]
            sums[place] = np.add.reduceat(product[order], begins) if len(begins) else 0
        by = np.array([key[begins] for key in keys[1:]], np.int64).reshape(len(request.by), len(begins))
        return Counted(keys[0][begins], by, sums)

    def route(self, moves: Sequence[Move], finished: Collection[int]) -> dict[int, int]:
        """Send the rows of nodes to the parts of their splits; how many each part got."""
        for move in moves:
            rows = np.flatnonzero(self.node == move.node)
            codes = self.values[move.field][rows]
            if move.members is None:
                part = np.searchsorted(move.starts, codes, side="right") - 1
            else:
                part = (~np.isin(codes, move.members)).astype(np.int64)
            self.node[rows] = move.first + np.maximum(part, 0)
        gone = np.isin(self.node, list(finished))
        nodes, sizes = np.unique(self.node[~gone], return_counts=True)
        return dict(zip(nodes.tolist(), sizes.tolist(), strict=True))
