# SPDX-License-Identifier: Apache-2.0
"""Nodes whose rows are fetched in one go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

__all__ = ["in_batches"]


def in_batches(nodes: Mapping[int, int], most: int) -> Iterator[list[int]]:
    """Nodes, given with their sizes, in batches of at most so many rows; a larger node is a batch by itself."""
    batch: list[int] = []
    rows = 0
    for node in sorted(nodes):
        if batch and rows + nodes[node] > most:
            yield batch
            batch, rows = [], 0
        batch.append(node)
        rows += nodes[node]
    if batch:
        yield batch
