# SPDX-License-Identifier: Apache-2.0
"""The distribution of group sizes: k is the smallest of them."""

from __future__ import annotations

import numpy as np
import polars as pl

from anonfit.auditing.coding import IntArray
from anonfit.auditing.result import Bin, Figure, FrequentLabels, GroupSizes, Share

__all__ = ["frequent_labels", "group_sizes", "share_of"]

_BINS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)


def share_of(sizes: IntArray, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Share:
    """The persons in the chosen groups, of all persons."""
    return Share(int(sizes[chosen].sum()), int(sizes.sum()))


def group_sizes(sizes: IntArray, k: int | None) -> GroupSizes:
    """Smallest, quartiles, largest, and what is below k."""
    if not len(sizes):
        below, share = (Figure(0, 0), Share(0, 0)) if k else (None, None)
        return GroupSizes(0, None, None, None, None, None, None, below, share, histogram=())
    low, first, middle, third, high = (
        int(size) for size in np.percentile(sizes, [0, 25, 50, 75, 100], method="inverted_cdf")
    )
    below = persons_below = None
    if k is not None:
        persons_below = share_of(sizes, sizes < k)
        below = Figure(int(np.count_nonzero(sizes < k)), persons_below.persons)
    return GroupSizes(
        len(sizes),
        low,
        first,
        middle,
        third,
        high,
        float(sizes.mean()),
        below,
        persons_below,
        _histogram(sizes),
        dict(zip(*(part.tolist() for part in np.unique(sizes, return_counts=True)), strict=True)),
    )


def _histogram(sizes: IntArray) -> tuple[Bin, ...]:
    """Groups and persons by size, bins without groups left out."""
    bins = []
    for low, after in zip(_BINS, (*_BINS[1:], None), strict=True):
        inside = (sizes >= low) if after is None else (sizes >= low) & (sizes < after)
        if inside.any():
            persons = share_of(sizes, inside)
            groups = Figure(int(np.count_nonzero(inside)), persons.persons)
            bins.append(Bin(low, None if after is None else after - 1, groups, persons))
    return tuple(bins)


def frequent_labels(heads: pl.DataFrame, sizes: IntArray) -> dict[str, FrequentLabels]:
    """The labels of every column that most persons have; heads: (group) what a group says."""
    found = {}
    for name in heads.columns:
        labels = pl.DataFrame({"label": heads[name], "persons": sizes})
        held = labels.group_by("label").agg(pl.col("persons").sum())
        most = int(held["persons"].max() or 0)  # type: ignore[arg-type]
        frequent = held.filter(pl.col("persons") == most)["label"].to_list()
        found[name] = FrequentLabels(len(held), most, frozenset(frequent))
    return found
