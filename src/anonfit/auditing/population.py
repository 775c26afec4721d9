# SPDX-License-Identifier: Apache-2.0
"""How many persons of a population lie in each released group: by equal labels, or by finding raw rows in labels."""

from __future__ import annotations

import numpy as np
import polars as pl

from anonfit.auditing.boxes import Boxes
from anonfit.auditing.coding import IntArray
from anonfit.auditing.groups import group_rows
from anonfit.auditing.reading import Table, require_columns
from anonfit.auditing.released import Released
from anonfit.auditing.source import locate_source

__all__ = ["population_sizes"]


def population_sizes(released: Released, population: Table, *, boxes: Boxes | None) -> tuple[IntArray, str]:
    """Persons of the population per group, and in words how they were found."""
    names = list(released.heads.columns)
    if all(name in population.schema for name in names):
        sizes = _equal_labels(released, population)
        if boxes is None or (sizes > 0).all():
            return sizes, "a population with the same labels"
    if boxes is None:
        require_columns(population, names, purpose="a quasi-identifier")
    assert boxes is not None
    found = locate_source(boxes, population, quasi_identifiers=list(released.columns)).found.group
    return np.bincount(found[found >= 0], minlength=released.grouping.count), "a population of raw rows"


def _equal_labels(released: Released, population: Table) -> IntArray:
    """Rows of the population with the very labels of each group."""
    names = list(released.heads.columns)
    texts = [frame.cast(pl.String).cast(pl.Categorical) for frame in (released.heads, population.frame(names))]
    groups = released.grouping.count
    if not names:
        return np.full(groups, population.height(), np.int64)
    together = group_rows(pl.concat(texts), len(texts[0]) + len(texts[1])).of_row
    sizes = np.bincount(together[groups:], minlength=int(together.max(initial=0)) + 1)
    found: IntArray = sizes[together[:groups]].astype(np.int64)
    return found
