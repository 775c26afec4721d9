# SPDX-License-Identifier: Apache-2.0
"""From what an engine counts to the histograms that kernels choose splits from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.targets import ClassTarget, Sums
from anonfit.engines.contract import Counting, CountRequest
from anonfit.engines.levels.shape import Layout, Shape, code_name, target_name
from anonfit.engines.memory.guide import LEAN, SLOT, SLOTS, Whole
from anonfit.engines.memory.layout import BIN

__all__ = ["Histograms", "count_nodes", "whole_table"]


def whole_table(counting: Counting, shape: Shape) -> Whole:
    """What a purpose is told of the whole table."""
    targets = shape.purpose.targets
    if not targets:
        return Whole(len(shape.columns), counting.rows, 0, ())
    requests = [CountRequest((0,), (), (shape.mass,))]
    for index, target in enumerate(targets):
        name = target_name(index)
        if isinstance(target, ClassTarget):
            requests.append(CountRequest((0,), (name,), (shape.mass,)))
        else:
            requests.append(CountRequest((0,), (), ((*shape.mass, name), (*shape.mass, name, name))))
    first, *others = counting.count(requests)
    mass = int(first.sums[0].sum())
    sums: list[Sums] = []
    for target, counted in zip(targets, others, strict=True):
        if isinstance(target, ClassTarget):
            found = np.zeros(target.width, np.int64)
            found[counted.by[0]] = counted.sums[0]
            sums.append(found)
        else:
            sums.append(np.array([mass, *counted.sums.sum(axis=1)], np.int64))
    return Whole(len(shape.columns), counting.rows, mass, tuple(sums))


@dataclass(frozen=True, slots=True)
class Histograms:
    """The histograms of several nodes, sparse: entries in the order of the nodes."""

    places: NDArray[np.int64]  # (entry,)
    values: NDArray[np.int64]  # (entry,)
    nodes: NDArray[np.int64]  # (node,) ascending
    edges: NDArray[np.int64]  # (node + 1,) where each node's entries begin
    length: int

    def of(self, node: int) -> NDArray[np.int64]:
        """A node's histogram."""
        index = int(np.searchsorted(self.nodes, node))
        found = np.zeros(self.length, np.int64)
        if index < len(self.nodes) and self.nodes[index] == node:
            entries = slice(int(self.edges[index]), int(self.edges[index + 1]))
            found[self.places[entries]] = self.values[entries]
        return found


def count_nodes(counting: Counting, layout: Layout, nodes: Sequence[int]) -> Histograms:
    """The histograms of a batch of nodes."""
    asked = _asked(layout, tuple(nodes))
    slots = int(layout.guide.settings[SLOTS])
    of_node, places, values = [], [], []
    for one, counted in zip(asked, counting.count([one.request for one in asked]), strict=True):
        place = (layout.columns.facts[BIN, one.column] + counted.by[0]) * slots
        if len(one.request.by) > 1:
            place = place + counted.by[1]  # a class
        for slot, sums in zip(one.slots, counted.sums, strict=True):
            of_node.append(counted.nodes)
            places.append(place + slot)
            values.append(sums)
    return _arranged(of_node, places, values, layout.columns.bins * slots)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request for sums of a column's codes, and the slot of each sum."""

    column: int
    request: CountRequest
    slots: tuple[int, ...]


def _asked(layout: Layout, nodes: tuple[int, ...]) -> list[_Asked]:
    """What is asked of an engine: sums by code, and for each target with classes sums by code and class."""
    shape, guide = layout.shape, layout.guide
    sums, slots = [], []
    if guide.settings[LEAN] == 0:
        sums, slots = [shape.persons], [0]
        if shape.weighted:
            sums, slots = [*sums, shape.mass], [0, 1]
    classes = []
    for index, target in enumerate(shape.purpose.targets):
        name, slot = target_name(index), int(guide.targets[SLOT, index])
        if isinstance(target, ClassTarget):
            classes.append((name, slot))
        else:
            sums += [(*shape.mass, name), (*shape.mass, name, name)]
            slots += [slot, slot + 1]
    found = []
    for column in range(len(shape.columns)):
        by = code_name(column)
        if sums:
            found.append(_Asked(column, CountRequest(nodes, (by,), tuple(sums)), tuple(slots)))
        found += [_Asked(column, CountRequest(nodes, (by, name), (shape.mass,)), (slot,)) for name, slot in classes]
    return found


def _arranged(
    of_node: list[NDArray[np.int64]], places: list[NDArray[np.int64]], values: list[NDArray[np.int64]], length: int
) -> Histograms:
    nodes = np.concatenate(of_node)
    order = np.argsort(nodes, kind="stable")
    known, first = np.unique(nodes[order], return_index=True)
    edges = np.append(first, len(nodes))
    return Histograms(np.concatenate(places)[order], np.concatenate(values)[order], known, edges, length)
