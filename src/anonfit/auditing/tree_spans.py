# SPDX-License-Identifier: Apache-2.0
"""Spans of a model (Friedman, Schuster and Wolff, Definition 5): the outcomes that a row may have as far as its public
values say, whatever the private ones are. Rows of one span cannot be told apart by the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from anonfit.auditing.branches import ModelTree, cells_of, points_of, route
from anonfit.auditing.coding import Coded, IntArray, join_codes
from anonfit.auditing.numbering import numbered

__all__ = ["joined_spans", "spans_of_tree"]

_BYTES_AT_ONCE = 1 << 26


def spans_of_tree(tree: ModelTree, frame: pl.DataFrame, public: Sequence[str]) -> tuple[IntArray, list[IntArray]]:
    """The span of every row, numbered from 0, and the leaves of every span.

    A leaf is in the span if the public tests on its path hold and some private values pass the others. A path is one
    conjunction, so private values need not be enumerated: it is enough that each column has a cell left.
    """
    cells = cells_of(tree, frame, public)
    point_of_row, first = points_of(tree, cells, len(frame))
    leaves = tree.leaves
    place = {leaf: number for number, leaf in enumerate(leaves)}
    width = (len(leaves) + 7) // 8
    step = max(1, _BYTES_AT_ONCE // width)
    numbers: dict[bytes, int] = {}
    of_point = np.empty(len(first), np.int64)
    for begin in range(0, len(first), step):
        chosen = first[begin : begin + step]
        bits = np.zeros((len(chosen), width), np.uint8)  # (point, leaf / 8)
        for leaf, here in route(tree, {number: of_row[chosen] for number, of_row in cells.items()}, len(chosen)):
            byte, bit = divmod(place[leaf], 8)
            bits[here, byte] |= np.uint8(1 << bit)
        found, which = np.unique(bits, axis=0, return_inverse=True)
        names = np.array([numbers.setdefault(one.tobytes(), len(numbers)) for one in found], np.int64)
        of_point[begin : begin + len(chosen)] = names[which.reshape(-1)]
    every = np.array(leaves, np.int64)
    return of_point[point_of_row], [every[_members(bits, len(leaves))] for bits in numbers]


def _members(bits: bytes, count: int) -> IntArray:
    """The places whose bits are set."""
    return np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[:count])


def joined_spans(several: Sequence[IntArray], rows: int) -> IntArray:
    """The spans of several models that are released together, numbered from 0.

    Together they have the combinations of outcomes that some private values allow. Every outcome of a span occurs in
    one of these, so rows have the same combinations if and only if they have the same span in every model.
    """
    codes, _ = numbered(join_codes([Coded(one, int(one.max(initial=0)) + 1) for one in several], rows)[0])
    return codes - 1
